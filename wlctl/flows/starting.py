"""Start and restart: never beside a run that is not proven gone, never past a stop that failed.

Each run has its number before anything is sent. What may still run is looked at, and ended with its
proof, before the next one starts; so a start whose answer was lost, or whose process died, is taken
over by the next verb: its run is adopted where it lives, and replaced where it does not.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from wlctl.errors import (
    FalseWitness,
    ForeignNode,
    Indeterminate,
    Interrupted,
    LedgerForked,
    LedgerRolledBack,
    TwoMachines,
    Unreachable,
    WlctlError,
)
from wlctl.flows import leasing, looking, operating, secrets, staged, witnesses
from wlctl.flows.intents import REQUEST_VALID_MS, check_ours, lease_until_ms, walk_to
from wlctl.flows.looking import Look
from wlctl.flows.mirror import changes, mirror
from wlctl.flows.nodes import check_identity, check_placed_there
from wlctl.flows.runtime import Runtime
from wlctl.flows.staged import Staged
from wlctl.flows.start_intents import (
    Begin,
    Beginning,
    Verb,
    Wish,
    finish,
    intend,
    number_next,
)
from wlctl.ledger import generations, instances, nodes, operations
from wlctl.ledger.operations import Turn
from wlctl.lifecycle.machine import LIVE
from wlctl.lifecycle.seen import judge
from wlctl.model.actions import (
    Launched,
    RefusalCode,
    Refused,
    Secrets,
    StartRequest,
    Stopped,
    StopRequest,
)
from wlctl.model.event import Json
from wlctl.model.ids import InstanceId
from wlctl.model.instance import Desired, Instance, State
from wlctl.package.store import Store

if TYPE_CHECKING:
    from wlctl.host.node import NodeSession

T = TypeVar("T")


def start(rt: Runtime, word: str) -> Beginning:
    """Start the copy that `word` means, where it is staged.

    Raises:
        UnknownName, AmbiguousName: `word` means none, or more than one.
        Busy: Another operation on it did not end in time.
        Interrupted: Ctrl-C; what may run by then is unsettled.
        Overtaken: Another process took this over meanwhile.
    """
    with rt.ledger.read() as tx:
        instance = instances.find(tx, word)
    return start_one(rt, instance)


def start_one(rt: Runtime, instance: Instance, *, as_seen: bool = False) -> Beginning:
    """Start a copy that was looked up; see `start`.

    Args:
        as_seen: Only while nothing else was asked of it since `instance` was read.
    """
    return _begin(rt, Verb.START, instance, None, as_seen=as_seen)


def restart_one(rt: Runtime, instance: Instance, *, grace_ms: int | None = None) -> Beginning:
    """Stop a copy and, when that is proven, start it; see `start`.

    Args:
        grace_ms: Between the stop signal and the kill; None takes the package's.

    Raises:
        SecretUnavailable: One cannot be had; nothing was stopped.
    """
    return _begin(rt, Verb.RESTART, instance, grace_ms)


class _Way:
    """The one connection that all steps of one verb share, made when the first one needs it."""

    def __init__(self, rt: Runtime, instance: Instance, stack: ExitStack) -> None:
        with rt.ledger.read() as tx:
            self.node = nodes.get(tx, instance.node)
        self._rt = rt
        self._placed_at_ms = instance.created_at_ms
        self._stack = stack
        self._session: NodeSession | None = None
        self._secrets: Secrets | None = None

    def secrets(self, of: Staged) -> Secrets:
        """Get the values anew, once: before anything is ended for the run that needs them.

        Raises:
            SecretUnavailable: One cannot be had; nothing was sent.
        """
        if self._secrets is None:
            self._secrets = secrets.resolve(self._rt, of.spec.secrets, of.secrets)
        return self._secrets

    def session(self) -> "NodeSession":
        """Connect, once."""
        if self._session is None:
            check_placed_there(self.node, self._placed_at_ms)
            self._session = self._stack.enter_context(self._rt.connect(self.node.address))
        return self._session

    def look(self) -> Look:
        """Look at the node."""
        found = looking.look(self._rt, self.session(), self.node)
        witnesses.Watch(self._rt).check(self.session(), self.node, found.status.checkpoint)
        return found


def _begin(
    rt: Runtime, verb: Verb, instance: Instance, grace_ms: int | None, *, as_seen: bool = False
) -> Beginning:
    timeout_s = rt.settings.busy_timeout_s
    with operations.turn(rt.ledger, instance.id, timeout_s=timeout_s) as turn, ExitStack() as ways:
        way = _Way(rt, instance, ways)
        runs = _runs(rt, instance.id, way) if verb is Verb.START else None
        if runs is not None:
            return runs
        if verb is Verb.RESTART:
            with rt.ledger.read() as tx:
                made_from = staged.read(tx, instance)
            way.secrets(made_from)
        seen = instance if as_seen else None
        wish = intend(rt, verb, turn, way.node, grace_ms, seen=seen)
        if isinstance(wish, Wish) and wish.clears and verb is Verb.START:
            wish = _adopt(rt, wish, way)
        if isinstance(wish, Wish) and wish.clears:
            wish = _clear(rt, wish, way, turn)
        return _launch(rt, wish, way) if isinstance(wish, Wish) else wish


def _runs(rt: Runtime, instance_id: InstanceId, way: _Way) -> Beginning | None:
    """Answer for a copy that runs by the ledger's word: it does, or cannot be asked.

    None where it has to be started; then nothing but what was seen has been recorded.
    """
    with rt.ledger.read() as tx:
        instance = instances.get(tx, instance_id)
        is_left = operations.holder_of(tx, instance_id) is not None
    wanted = instance.desired is Desired.RUNNING
    if instance.state not in LIVE or not wanted or instance.unsettled or is_left:
        return None
    try:
        found = way.look()
    except (Unreachable, ForeignNode, TwoMachines) as failure:
        if not way.node.was_another_at(instance.created_at_ms):
            operating.silent(rt, way.node, failure.code)
        return Beginning(
            Verb.START, Begin.UNREACHABLE, instance, code=failure.code, detail=failure.message
        )
    status = found.of(instance_id)
    seen = judge(instance, status, twice=found.twice)
    if status is not None and changes(instance, seen):
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            instance = mirror(tx, instance, status, at_ms=found.at_ms, twice=found.twice)
    return Beginning(Verb.START, Begin.ALREADY, instance) if seen.is_alive else None


def _adopt(rt: Runtime, wish: Wish, way: _Way) -> Wish | Beginning:
    """Look whether a run lives that is as good as the one asked for."""
    found = _asked(rt, wish, way.look)
    if isinstance(found, Beginning):
        return found
    status = found.of(wish.instance.id)
    if status is None:
        return wish
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        operations.check(tx, wish.operation)
        was = instances.get(tx, wish.instance.id)
        instance = mirror(tx, was, status, at_ms=found.at_ms, twice=found.twice)
        seen = judge(instance, status, twice=found.twice)
        if not seen.is_alive or instance.state not in LIVE:
            return replace(wish, instance=instance)
        late = was.state not in LIVE
        run = seen.run.number if seen.run is not None else 0
        begin = Begin.DONE if late else Begin.ALREADY
        now = finish(tx, wish, begin, more={"adopted": run})
    launched = seen.run.launch if late and seen.run is not None else None
    return Beginning(wish.verb, begin, now, launched)


def _clear(rt: Runtime, wish: Wish, way: _Way, turn: Turn) -> Wish | Beginning:
    """End what may still run, and prove it; only then does the next run get its number."""
    if wish.verb is Verb.RESTART:  # what will not be started again is not stopped for it
        seen = _asked(rt, wish, way.look)
        if isinstance(seen, Beginning):
            return seen
    answer = _asked(rt, wish, lambda: _stop(rt, wish, way))
    if isinstance(answer, Beginning):
        return answer
    if isinstance(answer, Refused):
        return _refused(rt, wish, answer)
    answered_at_ms = rt.now_ms()
    with rt.ledger.write(answered_at_ms, rt.author) as tx:
        operations.check(tx, wish.operation)
        runs = generations.of_instance(tx, wish.instance.id)
        proofs = operating.prove(wish.node, wish.instance, runs, answer.readings, answered_at_ms)
        why = operating.keep(tx, wish.instance, proofs, pruned=answer.pruned)
        evidence = [generations.evidence_json(proof) for proof in proofs]
        instance = instances.get(tx, wish.instance.id)
        if why:
            if instance.state in LIVE:
                walk_to(tx, instance, State.STOPPING, f"{wish.verb.value}: not proven gone")
            now = finish(tx, wish, Begin.UNPROVEN, evidence=evidence)
            return Beginning(wish.verb, Begin.UNPROVEN, now, proofs=proofs, detail=why)
        if instance.state in LIVE or instance.state is State.STOPPING:
            operating.proven_stopped(tx, instance, proofs)
        instances.change(tx, instance.id, unsettled=False, health="", seen_at_ms=tx.now_ms)
        operating.outcome(
            tx, "workload.stop", instance, wish.operation, Begin.DONE.value, evidence=evidence
        )
        operation = operations.begin(tx, turn, wish.verb.value, token=rt.new_token())
        instance = instances.get(tx, instance.id)
        return number_next(tx, replace(wish, instance=instance, operation=operation, proofs=proofs))


def _stop(rt: Runtime, wish: Wish, way: _Way) -> Stopped | Refused:
    session = way.session()
    check_ours(rt, wish.operation)
    answer = session.stop(
        StopRequest(
            installation=rt.ledger.installation,
            instance=wish.instance.id,
            number=wish.operation.number,
            generation=wish.instance.generation,
            grace_ms=wish.grace_ms,
        )
    )
    if not isinstance(answer, Refused):
        check_identity(wish.node, answer.node_id)
    return answer


def _launch(rt: Runtime, wish: Wish, way: _Way) -> Beginning:
    """Start the run that has its number."""
    answer = _asked(rt, wish, lambda: _send(rt, wish, way))
    if isinstance(answer, Beginning):
        return answer
    if isinstance(answer, Refused):
        return _refused(rt, wish, answer)
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        operations.check(tx, wish.operation)
        instance = instances.get(tx, wish.instance.id)
        generations.launched(tx, instance.id, answer)
        walk_to(tx, instance, State.RUNNING, f"g{answer.generation} launched")
        instances.change(tx, instance.id, unsettled=False, health="", seen_at_ms=tx.now_ms)
        told: dict[str, Json] = {
            "generation": answer.generation,
            "containment": answer.containment.value,
            "cgroup_inode": answer.cgroup_inode,
            "boot_id": answer.boot_id,
            "unenforced": list(answer.unenforced),
        }
        now = finish(tx, wish, Begin.DONE, more=told)
    return Beginning(wish.verb, Begin.DONE, now, answer, wish.proofs)


def _send(rt: Runtime, wish: Wish, way: _Way) -> Launched | Refused:
    """Bring the files that the node lacks by now, then start; secrets are got anew.

    Raises:
        SecretUnavailable: One cannot be had; nothing was sent.
    """
    given, session = way.secrets(wish.staged), way.session()
    sizes = {file.sha256: file.size_bytes for file in wish.staged.files}
    check_ours(rt, wish.operation)
    offered = session.offer(rt.ledger.installation, tuple(sizes))
    read_at = rt.boot_time()
    if isinstance(offered, Refused):
        return offered
    check_identity(wish.node, offered.node_id)
    check_ours(rt, wish.operation)
    witnesses.check_and_leave(rt, session, wish.node, offered.checkpoint)
    store = Store(rt.home.store)
    for sha256 in offered.missing:
        check_ours(rt, wish.operation)
        with store.open(sha256) as file:
            taken = session.receive(sha256, sizes[sha256], file)
        if isinstance(taken, Refused):
            return taken
    check_ours(rt, wish.operation)
    leasing.about_to_send(rt, wish.instance.id, wish.staged.lease_ms, read_at)
    return session.start(
        StartRequest(
            installation=rt.ledger.installation,
            instance=wish.instance.id,
            number=wish.operation.number,
            generation=wish.instance.generation,
            fence=wish.fence,
            package=wish.instance.package_id,
            deadline_ms=offered.uptime_ms + REQUEST_VALID_MS,
            lease_until_ms=lease_until_ms(wish.staged.lease_ms, offered.uptime_ms),
            secrets=given,
            settles=wish.node.settles,
            restart=wish.staged.restart,
        )
    )


def _asked(rt: Runtime, wish: Wish, ask: Callable[[], T]) -> T | Beginning:
    """Do a step on the node; what keeps it from being done is written down and is the answer.

    Raises:
        Interrupted: Ctrl-C; nobody knows whether the step was done.
        LedgerRolledBack, LedgerForked: The node was told more than this ledger knows; nothing was
            sent.
    """
    try:
        return ask()
    except Indeterminate as failure:
        return _not_done(rt, wish, Begin.INDETERMINATE, failure)
    except (Unreachable, ForeignNode, TwoMachines, FalseWitness) as failure:
        return _not_done(rt, wish, Begin.UNREACHABLE, failure)
    except (LedgerRolledBack, LedgerForked) as failure:
        _not_done(rt, wish, Begin.FAILED, failure)
        raise
    except WlctlError as failure:  # of this side: a file left the store
        return _not_done(rt, wish, Begin.FAILED, failure)
    except KeyboardInterrupt:
        name, node = wish.instance.name, wish.node.name
        stopped = Interrupted(
            f"interrupted: nobody knows whether {name} runs on {node}",
            hint=f"`wlctl {wish.verb.value} {name}` again finds out, and `wlctl stop {name}`",
        )
        _not_done(rt, wish, Begin.INDETERMINATE, stopped)
        raise stopped from None


def _not_done(rt: Runtime, wish: Wish, begin: Begin, failure: WlctlError) -> Beginning:
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        operations.check(tx, wish.operation)
        was_asked = not wish.node.was_another_at(wish.instance.created_at_ms)
        if begin is Begin.UNREACHABLE and was_asked:
            nodes.record_silence(tx, wish.node.name, failure.code)
        if begin is Begin.INDETERMINATE and not wish.clears:
            instances.change(tx, wish.instance.id, unsettled=True)
        elif not wish.clears:
            generations.never_began(tx, wish.instance.id, wish.instance.generation, failure.code)
        now = finish(tx, wish, begin, code=failure.code)
    return Beginning(
        wish.verb, begin, now, proofs=wish.proofs, code=failure.code, detail=failure.message
    )


def _refused(rt: Runtime, wish: Wish, answer: Refused) -> Beginning:
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        operations.check(tx, wish.operation)
        if answer.code is RefusalCode.SUPERSEDED and not wish.clears:
            # Whoever was there first may have seen our run begin.
            instances.change(tx, wish.instance.id, unsettled=True)
        elif not wish.clears:
            number, code = wish.instance.generation, answer.code.value
            generations.never_began(tx, wish.instance.id, number, code)
        now = finish(tx, wish, Begin.REFUSED, code=answer.code.value)
    code, detail = answer.code.value, answer.detail
    return Beginning(wish.verb, Begin.REFUSED, now, proofs=wish.proofs, code=code, detail=detail)
