"""A reading of a machine's boot-time clock: it counts sleep, and nothing sets it."""

from typing import NamedTuple


class BootTime(NamedTuple):
    """One reading.

    Attributes:
        boot_id: Of the boot it belongs to; readings of two boots cannot be compared.
        ms: Since that boot began, suspended time included.
    """

    boot_id: str
    ms: int

    def since(self, earlier: "BootTime") -> int | None:
        """Answer the milliseconds since an earlier reading; None where it is of another boot."""
        if not self.boot_id or earlier.boot_id != self.boot_id or earlier.ms > self.ms:
            return None
        return self.ms - earlier.ms
