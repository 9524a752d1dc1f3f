"""The simulations begin where the flows' tests do: a real ledger, a signed package, no machine."""

from tests.flows.conftest import setting

__all__ = ["setting"]
