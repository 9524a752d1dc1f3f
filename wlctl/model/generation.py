"""A generation: one run of an instance, what was read of it on the node, and what that proves."""

from dataclasses import dataclass
from enum import StrEnum


class Containment(StrEnum):
    """How well a generation is held together, and kept from leaving."""

    ISOLATED = "isolated"
    """It cannot leave: it has a uid, a PID namespace and a root-owned cgroup of its own."""
    CGROUP = "cgroup"
    """It is kept together by a cgroup alone: under the login's uid it could leave."""
    LEADER_ONLY = "leader-only"
    """It has no cgroup: its leader is known, and its namespace's init where there may be one."""


class Liveliness(StrEnum):
    """What was read of a process, identified by pid, start time and boot."""

    NONE = "none"
    """It was never recorded."""
    ALIVE = "alive"
    """Of the recorded start time and boot; a zombie counts while another thread of it runs."""
    GONE = "gone"
    """No process has that pid, or another one has it now."""
    UNKNOWN = "unknown"
    """It was recorded under another boot: its pid says nothing here."""


class CgroupEnd(StrEnum):
    """What became of one recorded cgroup directory."""

    REMOVED = "removed"
    """rmdir of the recorded inode succeeded: empty, and nothing can enter any more."""
    MISSING = "missing"
    """Not there, read on a cgroup2 mount below a parent with the recorded inode."""
    MISSING_UNKNOWN = "missing-unknown"
    """Not there, and the parent is not the recorded one either."""
    UNIT_GONE = "unit-gone"
    """Not there, and systemd has taken away the unit that it was below, or made it anew."""
    OCCUPIED = "occupied"
    """Still there when the bound ran out."""
    THERE = "there"
    """Nobody has taken it away, and no process was seen in it: one could still enter."""
    FOREIGN = "foreign"
    """A directory of that name with another inode: another cgroup."""
    NONE = "none"
    """No cgroup was recorded for it."""


@dataclass(frozen=True, slots=True)
class Readings:
    """What an action on the node read of one generation, to be judged by `lifecycle.proof`.

    Attributes:
        closed: The generation was marked closed before anything was read.
        launched: The node has a launch record of it; False means that none was ever written.
        recorded: The launch record was whole; a torn or empty one proves nothing.
        boot_id: The node's boot at the reading.
        recorded_boot_id: The boot the launch record names; empty without one.
        containment: As it was launched; None where no whole record says.
        ctl: The cgroup of init and waiter.
        limit: The cgroup of the workload.
        uid: The uid of its own, or None where it runs under the login's.
        uid_left: Processes of that uid seen after the kill; None when not scanned.
        uid_shared: The uid is a login's that may run other things: what is left of it says nothing.
        how: exited, stopped, killed, or empty when nothing ran.
        exit_status: As a shell counts (above 128: a signal); None when not known.
        read_at_ms: The node's uptime at the reading, milliseconds.
        oom_kills: Processes of it that the kernel killed for want of memory; None where the node
            does not count them.
    """

    generation: int
    closed: bool
    launched: bool
    recorded: bool
    boot_id: str
    recorded_boot_id: str
    containment: Containment | None
    leader: Liveliness
    init: Liveliness
    ctl: CgroupEnd
    limit: CgroupEnd
    cgroup_inode: int | None
    uid: int | None
    uid_left: int | None
    how: str
    exit_status: int | None
    read_at_ms: int
    oom_kills: int | None = None
    uid_shared: bool = False


@dataclass(frozen=True, slots=True)
class Proven:
    """No process of the generation is left and none can come."""

    evidence: Readings
    by: str


@dataclass(frozen=True, slots=True)
class Disproven:
    """A process of it was seen alive."""

    evidence: Readings
    why: str


@dataclass(frozen=True, slots=True)
class Unproven:
    """The readings do not suffice; what the generation holds is retained."""

    evidence: Readings
    why: str


Proof = Proven | Disproven | Unproven
