"""Says what is odd about a node: whatever will surprise the person who places something there."""

from collections.abc import Iterator
from dataclasses import dataclass

from wlctl.model.facts import CapabilityState, Facts
from wlctl.model.node import Liveness, Node, Tier

SKEW_MAX_MS = 2_000
"""A clock that is further off than this is said loudly."""

DISK_LEAST_BYTES = 256 << 20
"""Below this much free space on the state directory's disk, nothing can be relied on there."""

CONTROLLERS = ("cpu", "memory", "pids")
"""What limits need."""


@dataclass(frozen=True, slots=True)
class Oddity:
    """One thing that is not as it should be.

    Attributes:
        code: Stable, kebab-case; that of an error where it is one.
        hint: What to do; empty where only the machine's owner can know.
    """

    code: str
    text: str
    hint: str = ""


def oddities(node: Node, now_ms: int) -> tuple[Oddity, ...]:
    """Return what is odd about `node` at `now_ms`, worst first."""
    return tuple(_of_contact(node)) + tuple(_of_standing(node, now_ms)) + tuple(_of_facts(node))


def _of_contact(node: Node) -> Iterator[Oddity]:
    look = f"`wlctl node probe {node.name}`"
    if node.attested_dead_at_ms is not None:
        yield Oddity("attested-dead", "attested dead: it takes nothing until it answers", look)
    match node.failure:
        case "foreign-node":
            text = "what answers there has another identity, and nothing it lists is believed"
            yield Oddity(node.failure, text, f"{look} says more; `wlctl node rekey {node.name}`")
        case "two-machines":
            text = "two machines answer there, and nothing they list is believed"
            yield Oddity(node.failure, text, f"{look} says more; `wlctl help two-machines`")
        case "host-key-changed":
            text = "it shows another host key than the recorded one"
            yield Oddity(node.failure, text, f"find out why; `wlctl node rekey {node.name}`")
        case _ if node.liveness is not Liveness.ALIVE and node.failed_contacts:
            times = f"{node.failed_contacts} time{'s' if node.failed_contacts > 1 else ''}"
            why = f", last with {node.failure}" if node.failure else ""
            text = f"{node.liveness.value}: it did not answer {times}{why}"
            yield Oddity(node.failure or "unreachable", text, look)
        case _:
            return


def _of_standing(node: Node, now_ms: int) -> Iterator[Oddity]:
    if node.is_cordoned_at(now_ms):
        yield Oddity(
            "cordoned", "cordoned: it takes nothing new", f"`wlctl node uncordon {node.name}`"
        )
    if node.tier is Tier.DISCOVERED:
        yield Oddity(
            "discovered",
            "its tier is discovered: it may only be looked at",
            f"`wlctl node set {node.name} --tier paired`",
        )
    if node.facts is None or node.facts.expires_at_ms <= now_ms:
        yield Oddity(
            "facts-expired",
            "its facts have run out, so nothing is decided from them",
            f"`wlctl node probe {node.name}`",
        )


def _of_facts(node: Node) -> Iterator[Oddity]:
    facts = node.facts
    if facts is None:
        return
    if abs(facts.clock_skew_ms) > SKEW_MAX_MS:
        yield Oddity("clock-skew", skew_text(facts), "set its clock, and keep it set (NTP)")
    if facts.missing:
        tools = ", ".join(facts.missing)
        yield Oddity("missing-tools", f"it lacks {tools}", "install what is missing there")
    if facts.machine_id != node.machine_id:
        yield Oddity("machine-id", "its machine id is another one than when it was added")
    yield from _of_containment(node, facts)
    if facts.disk_free_bytes < DISK_LEAST_BYTES:
        free = f"{facts.disk_free_bytes >> 20} MiB"
        yield Oddity("disk-full", f"only {free} are free where its state is", "make room there")
    broken = [one.id for one in facts.capabilities if one.state is CapabilityState.DEGRADED]
    for id_ in broken:
        yield Oddity("degraded", f"{id_} is there and does not answer")


def _of_containment(node: Node, facts: Facts) -> Iterator[Oddity]:
    if node.is_leader_only:
        yield Oddity(
            "leader-only",
            "what runs there has no cgroup, by your word: it is not confined, nor held to limits",
            "mount cgroup v2 there, or add it as root",
        )
        return
    if not facts.cgroup_root:
        yield Oddity(
            "no-cgroup",
            "it has no cgroup v2 that wlctl may write, so nothing is started there",
            f"mount cgroup v2 there, add it as root, or `wlctl node set {node.name} "
            "--containment leader-only` to do without",
        )
        return
    have: set[object] = set()
    for one in facts.capabilities:
        if one.id == "node.cgroup":
            found = one.attrs.get("controllers", ())
            have |= set(found) if isinstance(found, tuple) else {found}
    lacking = [name for name in CONTROLLERS if name not in have]
    if lacking:
        names = " and ".join([", ".join(lacking[:-1]), lacking[-1]] if lacking[1:] else lacking)
        plural = "s" if lacking[1:] else ""
        yield Oddity("no-controllers", f"no {names} controller{plural}: limits are not enforced")


def skew_text(facts: Facts) -> str:
    """Say how far a node's clock is off."""
    seconds = abs(facts.clock_skew_ms) / 1000
    return f"its clock is {seconds:.1f} s {'ahead' if facts.clock_skew_ms > 0 else 'behind'}"
