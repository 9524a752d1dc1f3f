"""Judges whether a generation is gone: the one opinion that everything given up relies on."""

from wlctl.model.generation import (
    CgroupEnd,
    Containment,
    Disproven,
    Liveliness,
    Proof,
    Proven,
    Readings,
    Unproven,
)

_ENDED = frozenset({CgroupEnd.REMOVED, CgroupEnd.MISSING, CgroupEnd.UNIT_GONE})


def judge(
    readings: Readings,
    *,
    boot_began_at_ms: int | None = None,
    last_reading_at_ms: int | None = None,
) -> Proof:
    """Answer whether no process of the generation is left and none can come.

    Under the boot it was launched in it is proven by all of: closed, leader gone, init gone where
    there is one, both recorded cgroups taken away, and no process of its uid where it has its own
    (a login that the package names may run other things, which are not counted). Without a cgroup
    the init of its namespace is all that can prove it: nothing leaves that, nothing enters it after
    its end, and the kernel ends whatever is in it; where only the leader is known, nothing does.
    Under another boot it is proven when that boot began after the last reading under the old one,
    and nothing is where it ran; otherwise two machines may answer under one key. A generation that
    was closed before any launch was recorded never ran. Whatever is not known is not proof.

    Args:
        boot_began_at_ms: When the boot of the readings began: the controller's clock minus the
            node's uptime. None when it is not known.
        last_reading_at_ms: The controller's clock at the last reading under the boot the generation
            was launched in; None when there was none.
    """
    if not readings.closed:
        told = readings.launched and readings.recorded
        if told and readings.recorded_boot_id == readings.boot_id and (alive := _alive(readings)):
            return Disproven(readings, alive)
        return Unproven(readings, "it is not closed: a late launch could still enter it")
    if not readings.launched:
        return _never_launched(readings)
    if not readings.recorded:
        return Unproven(readings, "its launch record is torn")
    if readings.recorded_boot_id != readings.boot_id:
        return _rebooted(readings, boot_began_at_ms, last_reading_at_ms)
    if alive := _alive(readings):
        return Disproven(readings, alive)
    if why := _unknown(readings):
        return Unproven(readings, why)
    if readings.containment is Containment.LEADER_ONLY:
        return Proven(
            readings, "closed, and the init of its namespace gone with all that was in it"
        )
    return Proven(readings, "closed, leader gone, and every place it could run in taken away")


def _never_launched(readings: Readings) -> Proof:
    if {readings.ctl, readings.limit} != {CgroupEnd.NONE}:
        return Unproven(readings, "it has a cgroup and no launch record")
    if {readings.leader, readings.init} != {Liveliness.NONE} or readings.uid_left:
        return Unproven(readings, "it has a process and no launch record")
    return Proven(readings, "closed before it was ever launched")


def _rebooted(
    readings: Readings, boot_began_at_ms: int | None, last_reading_at_ms: int | None
) -> Proof:
    if CgroupEnd.OCCUPIED in {readings.ctl, readings.limit}:
        return Disproven(readings, "another boot answers, and a process is in its place there")
    if not readings.recorded_boot_id or not readings.boot_id:
        return Unproven(readings, "the boot it was launched in, or this one, is not known")
    if boot_began_at_ms is None or last_reading_at_ms is None:
        return Unproven(readings, "another boot answers, and when it began is not known")
    if boot_began_at_ms <= last_reading_at_ms:
        return Unproven(
            readings, "another boot answers that began before the last reading: two machines"
        )
    return Proven(readings, "the machine was started anew after it was last seen")


def _alive(readings: Readings) -> str:
    """Say which process was seen alive; empty for none."""
    if readings.leader is Liveliness.ALIVE:
        return "its leader is alive"
    if readings.init is Liveliness.ALIVE:
        return "the init of its namespace is alive"
    if readings.uid is not None and readings.uid_left and not readings.uid_shared:
        return f"{readings.uid_left} processes of its uid {readings.uid} are left"
    if CgroupEnd.OCCUPIED in {readings.ctl, readings.limit}:
        return "its cgroup still holds a process"
    return ""


def _unknown(readings: Readings) -> str:
    """Say what is not known of a generation of this boot; empty when all is."""
    if Liveliness.UNKNOWN in {readings.leader, readings.init}:
        return "its leader or init cannot be told"
    if readings.containment is None:
        return "how it was contained is not known: children of its leader may live on"
    if readings.containment is Containment.LEADER_ONLY:
        if {readings.ctl, readings.limit} != {CgroupEnd.NONE}:
            return "it was launched with its leader alone, and there is a cgroup of it"
        if readings.init is not Liveliness.GONE:
            return "only its leader was ever known: its children may live on"
    elif not {readings.ctl, readings.limit} <= _ENDED:
        return f"its cgroups ended as {readings.ctl} and {readings.limit}"
    if readings.containment is Containment.ISOLATED and readings.uid is None:
        return "its uid is not known"
    if readings.uid is not None and readings.uid_left is None:
        return "the processes of its uid could not be listed"
    return ""
