"""What a pass did about one copy, or found and could not do."""

from dataclasses import dataclass

from wlctl.lifecycle.table import Act
from wlctl.model.alert import AlertKind
from wlctl.model.ids import NodeName


@dataclass(frozen=True, slots=True)
class Done:
    """What was done about one copy, or was found and could not be.

    Attributes:
        act: What the table says; None where an interrupted command was finished. To place a copy
            anew is left to the pass, which does only so many at a time.
        came: In one word; `dry_run` where nothing was done.
        trouble: What is still not as it should be; empty when it is.
        kind: Of the trouble.
    """

    name: str
    node: NodeName
    act: Act | None
    came: str
    trouble: str = ""
    kind: AlertKind | None = None

    @property
    def is_unproven(self) -> bool:
        """Nobody knows whether something of it runs."""
        return self.kind is not None and self.kind.is_unproven
