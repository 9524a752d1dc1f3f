"""Write into the history what one look at a node saw of a copy; a reading ends nothing by itself.

A copy that is seen to have ended is `finished` or `failed` from then on, and still holds what it
holds: that is given back by a stop or an unload, with the proof.
"""

from wlctl.flows import restarts
from wlctl.ledger import generations, instances
from wlctl.ledger.store import WriteTx
from wlctl.lifecycle import seen as judging
from wlctl.lifecycle.machine import LIVE, IllegalTransition, walk
from wlctl.lifecycle.seen import Seen, current_of
from wlctl.model.actions import GenerationStatus, InstanceStatus
from wlctl.model.event import Json
from wlctl.model.generation import Liveliness
from wlctl.model.instance import Instance, State

__all__ = ["changes", "current_of", "mirror", "state_seen"]


def state_seen(instance: Instance, seen: InstanceStatus) -> tuple[State, str]:
    """Say which state a copy is in by what was seen of it, and why it is another one."""
    found = judging.judge(instance, seen)
    return found.state, found.reason


def changes(instance: Instance, found: Seen) -> bool:
    """Answer whether a look tells the ledger anything but that the copy was seen."""
    return bool(
        found.begun
        or found.state is not instance.state
        or _health(found) != instance.health
        or _is_late(instance, found)
    )


def mirror(
    tx: WriteTx, instance: Instance, seen: InstanceStatus, *, at_ms: int, twice: bool = False
) -> Instance:
    """Keep what was seen of a copy; answer it as it is then.

    A run whose launch was never answered, and which lives, is taken as it is: nothing of the copy
    is unsettled then.

    Args:
        at_ms: When it was seen, which may be a while ago.
        twice: The look was repeated; see `lifecycle.seen.judge`.
    """
    found = judging.judge(instance, seen, twice=twice)
    if found.begun:
        instance = restarts.follow(tx, instance, found)
    restarts.keep_proofs(tx, instance.id, seen)
    if found.state is not instance.state:
        way = walk(instance.state, found.state)
        assert not isinstance(way, IllegalTransition), way
        evidence = None if found.run is None else _evidence(found.run)
        instances.advance(tx, instance, way, found.reason, evidence)
    columns: dict[str, object] = {"health": _health(found)}
    if not _is_of_another_boot(found):
        columns["seen_at_ms"] = at_ms
    if _is_late(instance, found):
        columns["unsettled"] = False
        if found.run is not None and found.run.launch is not None:
            generations.launched(tx, instance.id, found.run.launch)
    instances.change(tx, instance.id, **columns)
    return instances.get(tx, instance.id)


def _is_late(instance: Instance, found: Seen) -> bool:
    """Answer whether a launch is seen here whose answer was lost."""
    return instance.unsettled and found.is_alive and found.state in LIVE


def _is_of_another_boot(found: Seen) -> bool:
    """Answer whether the node was started anew since the run was launched.

    Such a look is no word from under the run's boot: that boot's end is proven by another one that
    began after the last such word.
    """
    return found.run is not None and found.run.leader is Liveliness.UNKNOWN


def _health(found: Seen) -> str:
    return found.run.health if found.run is not None and found.is_alive else ""


def _evidence(run: GenerationStatus) -> dict[str, Json]:
    return {
        "generation": run.number,
        "boot_id": run.boot_id,
        "leader": run.leader.value,
        "populated": run.populated,
        "exit_status": run.exit_status,
        "oom_kills": run.oom_kills,
        "health": run.health,
    }
