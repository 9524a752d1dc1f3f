"""Where what the ledger says of a copy and what its node shows are not the same."""

from collections.abc import Iterator

from wlctl.lifecycle.machine import LIVE
from wlctl.lifecycle.seen import judge
from wlctl.model.actions import InstanceStatus
from wlctl.model.instance import CLOSED, Desired, Instance, State

_NOT_THERE_YET = frozenset({State.REQUESTED, State.PLACED, State.FETCHING, State.VERIFIED})


def differences(
    instance: Instance, seen: InstanceStatus | None, *, twice: bool = False
) -> tuple[str, ...]:
    """Say what is not the same, most important first; empty where all is.

    Args:
        seen: None where the node does not list the copy.
        twice: The look was repeated; see `lifecycle.seen.judge`.
    """
    if seen is None:
        is_expected = instance.state not in CLOSED and instance.state not in _NOT_THERE_YET
        return ("its node does not list it",) if is_expected else ()
    return tuple(_differences(instance, seen, twice=twice))


def _differences(instance: Instance, seen: InstanceStatus, *, twice: bool) -> Iterator[str]:
    found = judge(instance, seen, twice=twice)
    if instance.state in CLOSED:
        yield f"the ledger says {instance.state.value}, and its node lists it"
    if found.state is not instance.state:
        says = f"the ledger says {instance.state.value}, its node {found.state.value}"
        yield f"{says}: {found.reason}"
    elif found.is_alive and instance.state not in LIVE:
        yield f"the ledger says {instance.state.value}, and it runs"
    if seen.current is not None and seen.current > instance.generation:
        yield f"its node launched g{seen.current}, the ledger knows of g{instance.generation}"
    if seen.package and seen.package != instance.package_id:
        yield f"its node has package {seen.package[:12]} of it, not {instance.package_id[:12]}"
    wanted = "running" if instance.desired is Desired.RUNNING else "stopped"
    if seen.desired and seen.desired != wanted:
        yield f"{instance.desired.value} is wanted of it, and its node was told {seen.desired}"
    if seen.unsupervised:
        yield "it runs, and its supervisor does not: its health is not looked at"
