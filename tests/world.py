"""A node of the unit tests: it keeps numbers and fences as a real one, and fails where told.

What it answers is held true by the suite that runs the same requests against real nodes
(`tests/host`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import BinaryIO, Self

from wlctl.errors import ConnectFailed, ConnectionLost, GarbledAnswer, Indeterminate, Unreachable
from wlctl.host.upkeep import FETCH_BYTES
from wlctl.model.actions import (
    Begun,
    Cleaned,
    GenerationStatus,
    InstanceStatus,
    Launched,
    LogTail,
    Measured,
    NodeFacts,
    NodeStatus,
    Offered,
    Placed,
    PlaceRequest,
    Read,
    RefusalCode,
    Refused,
    Restarts,
    Settled,
    SettleOutcome,
    SettleRequest,
    StartRequest,
    Stopped,
    StopRequest,
    Unloaded,
    UnloadRequest,
)
from wlctl.model.facts import Capability, Provenance
from wlctl.model.generation import CgroupEnd, Containment, Liveliness, Readings
from wlctl.model.ids import InstallationId, InstanceId
from wlctl.model.node import Address, Settles
from wlctl.model.package import RestartPolicy
from wlctl.model.upkeep import (
    ChainPoint,
    Checkpoint,
    Collected,
    Fleet,
    LeaseRequest,
    Recalled,
    Remembered,
    Witness,
)

NOBODY = InstallationId("")

Hook = Callable[[str, str], None]
"""Called with the step and `before` or `after`; what it raises happens there."""


def peaceful(_step: str, _moment: str) -> None:
    """Let everything pass."""


@dataclass
class FakeNode:
    """One machine.

    Attributes:
        alive: Instances that have a process, to its generation.
        number: Instance to the highest operation number accepted.
        launched: Instances of which a run was ever started, to the newest of them.
        unkillable: Instances whose process survives every kill.
        refusal: What `place` and `start` answer instead of doing it.
        runs: Every run that was started, to the boot it was started under.
        ended: Runs that an ending has read as gone.
        exits: Runs whose leader ended by itself, to its status; None where that is not known.
        health: What the supervisor said last of an instance.
        leases: What was launched with a lease, to the uptime at which it runs out.
        departed: What was unloaded there on purpose, to the number of the operation that did it.
        policies: How often a supervisor there may begin again what was launched last.
        begun: Runs that a supervisor began, to how that came.
        held: What is not begun again, to the code and the words for it.
        between: What a supervisor has ended, and is to begin again.
        pruned: Of an instance: up to which run nothing is known there any more.
        wanted: Of an instance: running or stopped.
        output: What the newest run of an instance has printed.
        garbage: Files of the store that nothing may run any more.
        collections: How often it was asked to take them away.
        checkpoints: Of the ledger, oldest first.
        claims: Claim of a decision to what became of it: placed, refused or cancelled.
        placed: Claim to the request that was carried out.
        settled: What `settle` answers instead of doing it.
        unread: Runs of which an ending reads nothing.
    """

    node_id: str = "a" * 32
    memory_bytes: int = 8 << 30
    up: bool = True
    store: dict[str, bytes] = field(default_factory=dict)
    alive: dict[InstanceId, int] = field(default_factory=dict)
    launched: dict[InstanceId, int] = field(default_factory=dict)
    staged: set[InstanceId] = field(default_factory=set)
    number: dict[InstanceId, int] = field(default_factory=dict)
    unkillable: set[InstanceId] = field(default_factory=set)
    refusal: Refused | None = None
    fences: list[int] = field(default_factory=list)
    boots: dict[InstanceId, str] = field(default_factory=dict)
    graces_ms: list[int | None] = field(default_factory=list)
    claims: dict[str, str] = field(default_factory=dict)
    placed: dict[str, PlaceRequest] = field(default_factory=dict)
    machine_id: str = "m" * 32
    boot_id: str = "00000000-0000-4000-8000-000000000000"
    reboots: int = 0
    uptime_ms: int = 1_000_000
    wall_ms: int = 0
    host_key: str = "ssh-ed25519 AAAA"
    missing: tuple[str, ...] = ()
    has_cgroup: bool = True
    installations: set[str] = field(default_factory=set)
    runs: dict[tuple[InstanceId, int], str] = field(default_factory=dict)
    ended: set[tuple[InstanceId, int]] = field(default_factory=set)
    exits: dict[tuple[InstanceId, int], int | None] = field(default_factory=dict)
    health: dict[InstanceId, str] = field(default_factory=dict)
    departed: dict[InstanceId, int] = field(default_factory=dict)
    policies: dict[InstanceId, RestartPolicy] = field(default_factory=dict)
    begun: dict[tuple[InstanceId, int], Begun] = field(default_factory=dict)
    held: dict[InstanceId, tuple[str, str]] = field(default_factory=dict)
    between: set[InstanceId] = field(default_factory=set)
    pruned: dict[InstanceId, int] = field(default_factory=dict)
    leases: dict[InstanceId, int] = field(default_factory=dict)
    wanted: dict[InstanceId, str] = field(default_factory=dict)
    output: dict[InstanceId, str] = field(default_factory=dict)
    garbage: int = 0
    collections: int = 0
    checkpoints: list[Checkpoint] = field(default_factory=list)
    fleet: Fleet = field(default_factory=Fleet)
    witness_of: InstallationId = NOBODY
    settled: Settled | None = None
    unread: set[tuple[InstanceId, int]] = field(default_factory=set)

    @property
    def containment(self) -> Containment:
        return Containment.ISOLATED if self.has_cgroup else Containment.LEADER_ONLY

    def uncontained(self, settles: Settles) -> Refused | None:
        """Refuse where there is no cgroup to give, unless the operator settles for that."""
        if self.has_cgroup or settles is Settles.LEADER_ONLY:
            return None
        return Refused(RefusalCode.NO_CGROUP, "the login may write no cgroup v2")

    def facts(self) -> NodeFacts:
        return NodeFacts(
            node_id=self.node_id,
            machine_id=self.machine_id,
            boot_id=self.boot_id,
            uptime_ms=self.uptime_ms,
            wall_ms=self.wall_ms,
            load_average=0.0,
            memory_total_bytes=self.memory_bytes,
            memory_available_bytes=self.memory_bytes,
            memory_ours_bytes=0,
            disk_free_bytes=100 << 30,
            cpu_cores=4,
            ports_listening=(),
            state_dir="/var/lib/wlctl",
            containment=self.containment,
            cgroup_root="/sys/fs/cgroup/wlctl" if self.has_cgroup else "",
            instances=tuple(sorted(self.staged)),
            capabilities=(
                Capability("cpu.arch.x86_64"),
                Capability("mem.system", {"total_bytes": self.memory_bytes}),
                Capability("node.cgroup", {"controllers": ("cpu", "memory", "pids")}),
                Capability("os.linux"),
            ),
            missing=self.missing,
        )

    def newest_checkpoint(self) -> ChainPoint | None:
        return self.checkpoints[-1].at if self.checkpoints else None

    def remembered(self) -> tuple[Remembered, ...]:
        """Say what each instance was asked to be."""
        asked = (one for one in self.placed.values() if one.instance in self.staged)
        return tuple(
            Remembered(
                one.instance,
                one.name,
                one.node,
                one.decision,
                one.package,
                one.sheet,
                one.env,
                one.args,
                one.signatures,
                len(self.store.get(one.package, b"")),
            )
            for one in sorted(asked, key=lambda one: one.instance)
        )

    def reboot(self) -> None:
        """Start the machine anew: another boot id, uptime from zero, and nothing runs."""
        self.reboots += 1
        self.boot_id = f"{self.reboots:08d}-0000-4000-8000-000000000000"
        self.uptime_ms = 10
        self.alive.clear()

    def exit(self, instance: InstanceId, status: int | None) -> None:
        """Let the leader of the newest run end by itself, where nothing begins it again."""
        self.policies.pop(instance, None)
        self.exits[instance, self.alive.pop(instance)] = status

    def begin_again(self, instance: InstanceId, *, age_ms: int = 5_000) -> int:
        """Let a supervisor end the newest run, which failed, and begin the next: its number."""
        after = self.launched[instance]
        self._fail(instance, after)
        why = f"g{after} ended by itself with status 1"
        self.begun[instance, after + 1] = Begun(after, age_ms, why)
        self._run(instance, after + 1)
        return after + 1

    def end_before_next(self, instance: InstanceId) -> None:
        """Let a supervisor end the newest run, which failed; the next is yet to be begun."""
        self._fail(instance, self.launched[instance])
        self.between.add(instance)

    def hold(self, instance: InstanceId, code: str = "exhausted") -> None:
        """Let a supervisor end the newest run, which failed, and begin no more."""
        after = self.launched[instance]
        self._fail(instance, after)
        self.held[instance] = code, f"g{after} ended by itself with status 1"

    def _fail(self, instance: InstanceId, number: int) -> None:
        self.alive.pop(instance, None)
        self.exits.setdefault((instance, number), 1)
        self.ended.add((instance, number))

    def prune(self, instance: InstanceId, number: int) -> None:
        """Let a supervisor forget the runs up to `number`."""
        self.pruned[instance] = number
        for key in [key for key in self.runs if key[0] == instance and key[1] <= number]:
            del self.runs[key]

    def launch(
        self, instance: InstanceId, generation: int, fence: int, policy: RestartPolicy
    ) -> None:
        """Start a run that was asked for."""
        self.wanted[instance] = "running"
        self.policies[instance] = policy
        self.held.pop(instance, None)
        self._run(instance, generation)
        self.fences.append(fence)

    def _run(self, instance: InstanceId, generation: int) -> None:
        self.between.discard(instance)
        self.alive[instance] = generation
        self.launched[instance] = generation
        self.boots[instance] = self.boot_id
        self.runs[instance, generation] = self.boot_id

    def launch_record(self, instance: InstanceId, *, already: bool = False) -> Launched:
        """Say what is known of the newest run."""
        return Launched(
            already=already,
            generation=self.launched[instance],
            boot_id=self.boots[instance],
            containment=self.containment,
            way="cgroupfs" if self.has_cgroup else "none",
            pid=4711,
            start_ticks=42,
            uid=61200,
            cgroup="/sys/fs/cgroup/wlctl/x" if self.has_cgroup else "",
            cgroup_inode=77 if self.has_cgroup else None,
            ports=(("http", 20000),),
            unenforced=("memory",),
            data_dir="/var/lib/wlctl/x/data",
        )

    def instance_status(self, instance: InstanceId) -> InstanceStatus:
        return InstanceStatus(
            instance=instance,
            desired=self.wanted.get(instance, "stopped"),
            number=self.number.get(instance, 0),
            current=self.launched.get(instance, 0),
            name=next((one.name for one in self.remembered() if one.instance == instance), ""),
            package=next(
                (one.package for one in self.remembered() if one.instance == instance), ""
            ),
            generations=tuple(
                self.run_status(instance, number)
                for iid, number in sorted(self.runs)
                if iid == instance
            ),
            supervisor=Liveliness.ALIVE if self._is_supervised(instance) else Liveliness.GONE,
            restarts=self._restarts(instance),
            pruned=self.pruned.get(instance, 0),
        )

    def may_begin_again(self, instance: InstanceId) -> bool:
        """Answer whether its supervisor may end what runs, and begin the next by itself."""
        restarts = self._restarts(instance)
        return restarts is not None and not restarts.held

    def _is_supervised(self, instance: InstanceId) -> bool:
        return instance in self.alive or self.may_begin_again(instance)

    def _restarts(self, instance: InstanceId) -> Restarts | None:
        policy = self.policies.get(instance)
        if policy is None or not policy.max_restarts or self.wanted.get(instance) != "running":
            return None
        code, why = self.held.get(instance, ("", ""))
        within = sum(1 for iid, _ in self.begun if iid == instance)
        return Restarts(
            once=False,
            most=policy.max_restarts,
            window_ms=policy.window_ms,
            within=within,
            held=code,
            why=why,
        )

    def run_status(self, instance: InstanceId, number: int) -> GenerationStatus:
        living = self.alive.get(instance) == number
        booted = self.runs[instance, number] != self.boot_id
        over = Liveliness.UNKNOWN if booted else Liveliness.GONE
        current = self.launched[instance] == number
        return GenerationStatus(
            number=number,
            closed=(instance, number) in self.ended,
            torn=False,
            boot_id=self.runs[instance, number],
            leader=Liveliness.ALIVE if living else over,
            populated=None if booted else living,
            exit_status=self.exits.get((instance, number)),
            pid=4711,
            uid=61200,
            health=self.health.get(instance, "") if living else "",
            launch=self.launch_record(instance, already=True) if current else None,
            begun=self.begun.get((instance, number)),
            ended=self.readings(instance, number) if self._is_replaced(instance, number) else None,
        )

    def _is_replaced(self, instance: InstanceId, number: int) -> bool:
        is_ended = instance in self.held or instance in self.between
        return (instance, number + 1) in self.begun or (
            is_ended and self.launched[instance] == number
        )

    def readings(self, instance: InstanceId, generation: int) -> Readings:
        ran = (instance, generation) in self.runs
        occupied = self.alive.get(instance) == generation
        booted = ran and self.runs[instance, generation] != self.boot_id
        gone = Liveliness.UNKNOWN if booted else Liveliness.GONE if ran else Liveliness.NONE
        end = CgroupEnd.OCCUPIED if occupied else CgroupEnd.REMOVED if ran else CgroupEnd.NONE
        end = end if self.has_cgroup else CgroupEnd.NONE
        return Readings(
            generation=generation,
            closed=True,
            launched=ran,
            recorded=ran,
            boot_id=self.boot_id,
            recorded_boot_id=self.runs.get((instance, generation), ""),
            containment=self.containment if ran else None,
            leader=Liveliness.ALIVE if occupied else gone,
            init=gone,
            ctl=CgroupEnd.MISSING_UNKNOWN if booted else end,
            limit=CgroupEnd.MISSING_UNKNOWN if booted else end,
            cgroup_inode=77 if ran else None,
            uid=61200 if ran else None,
            uid_left=(1 if occupied else 0) if ran else None,
            how=self._how(instance, generation) if ran and not booted else "",
            exit_status=(
                self.exits.get((instance, generation), 143)
                if ran and not occupied and not booted
                else None
            ),
            read_at_ms=self.uptime_ms,
        )

    def _how(self, instance: InstanceId, generation: int) -> str:
        return "exited" if (instance, generation) in self.exits else "stopped"


@dataclass
class FakeSession:
    """A connection to a `FakeNode`, as `host.node.NodeSession` is one to a real node."""

    node: FakeNode
    hook: Hook

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    def facts(self, installation: InstallationId) -> NodeFacts | Refused:
        self.hook("facts", "before")
        self.node.installations.add(installation)
        return self.node.facts()

    def measure(self, _installation: InstallationId) -> Measured | Refused:
        self.hook("measure", "before")
        figure = Capability("perf.memory", {"value": 512.5, "unit": "MiB/s"}, Provenance.MEASURED)
        return Measured(self.node.node_id, (figure,))

    def clean(self, installation: InstallationId, node_id: str) -> Cleaned | Refused:
        self.hook("clean", "before")
        if node_id != self.node.node_id:
            return Refused(RefusalCode.VERIFY, f"this is another node: {self.node.node_id}")
        if self.node.staged:
            return Refused(RefusalCode.ADMISSION, "an instance is still there")
        self.node.installations.discard(installation)
        self.hook("clean", "after")
        return Cleaned(("/var/lib/wlctl/it",), tuple(sorted(self.node.installations)))

    def offer(self, _installation: InstallationId, sha256s: Sequence[str]) -> Offered | Refused:
        self.hook("offer", "before")
        lacking = tuple(sha256 for sha256 in sha256s if sha256 not in self.node.store)
        return Offered(self.node.node_id, 1_000_100, lacking, self.node.newest_checkpoint())

    def checkpoint(
        self, installation: InstallationId, checkpoint: Checkpoint, fleet: Fleet | None = None
    ) -> Refused | None:
        self.hook("checkpoint", "before")
        newest, at = self.node.newest_checkpoint(), checkpoint.at
        if newest is not None and (at.epoch, at.seq) < (newest.epoch, newest.seq):
            return Refused(RefusalCode.SUPERSEDED, "there is a newer checkpoint")
        if newest is None or (at.epoch, at.seq) != (newest.epoch, newest.seq):
            self.node.checkpoints.append(checkpoint)
        elif at != newest:
            return Refused(RefusalCode.VERIFY, "that event has another hash here")
        self.node.witness_of = installation
        self.node.fleet = fleet or self.node.fleet
        self.hook("checkpoint", "after")
        return None

    def witness(self, _installation: InstallationId) -> Witness | Refused:
        self.hook("witness", "before")
        return Witness(self.node.node_id, tuple(self.node.checkpoints), self.node.fleet)

    def installations(self) -> dict[InstallationId, Checkpoint] | Refused:
        self.hook("installations", "before")
        kept = self.node.checkpoints
        return {self.node.witness_of: kept[-1]} if kept else {}

    def recall(self, _installation: InstallationId) -> Recalled | Refused:
        self.hook("recall", "before")
        return Recalled(self.node.node_id, self.node.remembered(), (), ())

    def receive(self, sha256: str, size_bytes: int, data: BinaryIO) -> Refused | None:
        self.hook("receive", "before")
        content = data.read()
        assert len(content) == size_bytes
        self.node.store[sha256] = content
        self.hook("receive", "after")
        return None

    def fetch(self, sha256: str, *, offset: int, size_bytes: int) -> bytes | Refused:
        self.hook("fetch", "before")
        if sha256 not in self.node.store:
            return Refused(RefusalCode.FETCH, "the file is not in the store")
        content = self.node.store[sha256]
        if len(content) != size_bytes:
            raise GarbledAnswer(f"the node's file has {len(content)} bytes, not {size_bytes}")
        return content[offset : offset + FETCH_BYTES]

    def place(self, request: PlaceRequest) -> Placed | Launched | Refused:
        self.hook("place", "before")
        answer = self._place(request)
        self.hook("place", "after")
        return answer

    def _place(self, request: PlaceRequest) -> Placed | Launched | Refused:
        node, newest = self.node, self.node.number.get(request.instance, 0)
        if request.number < newest:
            return Refused(RefusalCode.SUPERSEDED, "a later operation was accepted")
        if request.number == newest and node.claims.get(request.decision) == "placed":
            return self._launched(request, already=True)
        if node.claims.get(request.decision) == "cancelled":
            return Refused(RefusalCode.CANCELLED, "the decision was cancelled")
        assert request.decision not in node.claims, "a claim is made once"
        refusal = node.refusal or node.uncontained(request.settles)
        if refusal is not None:
            node.claims[request.decision] = "refused"
            return refusal
        assert request.sheet in node.store, "the sheet is brought first"
        node.number[request.instance] = request.number
        node.claims[request.decision] = "placed"
        node.placed[request.decision] = request
        node.staged.add(request.instance)
        if request.start:
            node.launch(request.instance, request.generation, request.fence, request.restart)
            self._arm(request.instance, request.lease_until_ms)
        return self._launched(request, already=False)

    def _launched(self, request: PlaceRequest, *, already: bool) -> Placed | Launched:
        if not request.start:
            return Placed(already)
        return self.node.launch_record(request.instance, already=already)

    def start(self, request: StartRequest) -> Launched | Refused:
        self.hook("start", "before")
        answer = self._start(request)
        self.hook("start", "after")
        return answer

    def _start(self, request: StartRequest) -> Launched | Refused:
        node, instance = self.node, request.instance
        if request.number < node.number.get(instance, 0):
            return Refused(RefusalCode.SUPERSEDED, "a later operation was accepted")
        if refusal := node.refusal or node.uncontained(request.settles):
            return refusal
        if instance not in node.staged:
            return Refused(RefusalCode.UNKNOWN_INSTANCE, "it was not placed on this node")
        if (instance, request.generation) in node.runs:
            return Refused(RefusalCode.INVALID_REQUEST, "the generation was used before")
        if any(run not in node.ended for run in node.runs if run[0] == instance):
            return Refused(RefusalCode.BUSY, "a generation is not proven gone")
        node.number[instance] = request.number
        node.launch(instance, request.generation, request.fence, request.restart)
        self._arm(instance, request.lease_until_ms)
        return node.launch_record(instance)

    def _arm(self, instance: InstanceId, until_ms: int) -> None:
        self.node.leases.pop(instance, None)
        if until_ms:
            self.node.leases[instance] = until_ms

    def status(self, _installation: InstallationId) -> NodeStatus | Refused:
        self.hook("status", "before")
        node = self.node
        return NodeStatus(
            node_id=node.node_id,
            boot_id=node.boot_id,
            uptime_ms=node.uptime_ms,
            instances=tuple(node.instance_status(one) for one in sorted(node.staged)),
            departed=dict(node.departed),
            checkpoint=node.newest_checkpoint(),
        )

    def collect(self, _installation: InstallationId) -> Collected | Refused:
        self.hook("collect", "before")
        files, self.node.garbage = self.node.garbage, 0
        self.node.collections += 1
        return Collected(self.node.node_id, files, 0, logs=0, held_by=())

    def renew_lease(self, request: LeaseRequest) -> int | Refused:
        self.hook("lease", "before")
        answer = self._renew_lease(request)
        self.hook("lease", "after")
        return answer

    def _renew_lease(self, request: LeaseRequest) -> int | Refused:
        until = self.node.leases.get(request.instance)
        if until is None:
            return Refused(RefusalCode.NO_LEASE, "it has no lease")
        if request.boot_id != self.node.boot_id:
            return Refused(RefusalCode.CLOCK, "the node was started anew")
        if self.node.alive.get(request.instance) != request.generation:
            return Refused(RefusalCode.SUPERSEDED, f"g{request.generation} does not run")
        self.node.leases[request.instance] = max(until, request.until_ms)
        return self.node.leases[request.instance]

    def prove(self, _installation: InstallationId, instance: InstanceId) -> Read | Refused:
        self.hook("prove", "before")
        node = self.node
        made = sorted(number for iid, number in node.runs if iid == instance)
        if not made:
            return Refused(RefusalCode.UNKNOWN_INSTANCE, f"{instance} is not on this node")
        readings = (node.readings(instance, number) for number in made)
        return Read(
            node.node_id,
            tuple(
                replace(
                    one,
                    closed=instance in node.departed or (instance, one.generation) in node.ended,
                )
                for one in readings
            ),
            node.pruned.get(instance, 0),
        )

    def settle(self, request: SettleRequest) -> Settled | Refused:
        self.hook("settle", "before")
        answer = self._settle(request)
        self.hook("settle", "after")
        return answer

    def _settle(self, request: SettleRequest) -> Settled | Refused:
        node = self.node
        if node.settled is not None:
            return replace(node.settled, node_id=node.node_id)
        was = node.claims.get(request.decision, "")
        if was == "placed":
            return Settled(node.node_id, SettleOutcome.PLACED, None, ())
        if was == "refused":
            return Settled(node.node_id, SettleOutcome.REFUSED, node.refusal, ())
        if request.number < node.number.get(request.instance, 0):
            return Refused(RefusalCode.SUPERSEDED, "a later operation was accepted")
        node.number[request.instance] = request.number
        node.claims[request.decision] = "cancelled"
        return Settled(node.node_id, SettleOutcome.CANCELLED, None, ())

    def stop(self, request: StopRequest) -> Stopped | Refused:
        self.hook("stop", "before")
        self.node.graces_ms.append(request.grace_ms)
        if not request.wait:
            self.node.number[request.instance] = request.number
            self.node.wanted[request.instance] = "stopped"
            self.hook("stop", "after")
            return Stopped(self.node.node_id, ())
        readings = self._end(request.instance, request.number, request.generation)
        self.hook("stop", "after")
        if isinstance(readings, Refused):
            return readings
        return Stopped(self.node.node_id, readings, self.node.pruned.get(request.instance, 0))

    def unload(self, request: UnloadRequest) -> Unloaded | Refused:
        self.hook("unload", "before")
        readings = self._end(request.instance, request.number, request.generation)
        removed = request.instance not in self.node.alive
        if removed:
            self.node.staged.discard(request.instance)
        self.hook("unload", "after")
        if isinstance(readings, Refused):
            return readings
        pruned = self.node.pruned.get(request.instance, 0)
        return Unloaded(self.node.node_id, readings, removed=removed, kept_data="", pruned=pruned)

    def _end(
        self, instance: InstanceId, number: int, generation: int
    ) -> tuple[Readings, ...] | Refused:
        if number < self.node.number.get(instance, 0):
            return Refused(RefusalCode.SUPERSEDED, "a later operation was accepted")
        self.node.number[instance] = number
        node = self.node
        node.wanted[instance] = "stopped"
        if instance not in node.unkillable:
            node.alive.pop(instance, None)
        made = {number for iid, number in node.runs if iid == instance}
        asked = sorted(made | ({generation} if generation else set()))
        node.ended |= {(instance, one) for one in asked if node.alive.get(instance) != one}
        read = [one for one in asked if (instance, one) not in node.unread]
        return tuple(node.readings(instance, one) for one in read)

    def logs(
        self,
        _installation: InstallationId,
        instance: InstanceId,
        *,
        generation: int = 0,
        lines: int = 100,
        after: int | None = None,
    ) -> LogTail | Refused:
        self.hook("logs", "before")
        node = self.node
        if instance not in node.launched:
            return Refused(RefusalCode.UNKNOWN_INSTANCE, "no such generation")
        generation = generation or node.launched[instance]
        whole = node.output.get(instance, "one\ntwo\n")
        shown = whole[after:] if after is not None else "".join(whole.splitlines(True)[-lines:])
        is_over = node.alive.get(instance) != generation
        return LogTail(generation, shown, len(whole), next_byte=len(whole), is_over=is_over)


@dataclass
class World:
    """Every machine there is, by host name.

    Attributes:
        controller_boot_id: Of this machine's boot.
        refuses: Machines that answer, and let nobody in.
    """

    nodes: dict[str, FakeNode] = field(default_factory=dict)
    hook: Hook = peaceful
    controller_boot_id: str = "c" * 32
    refuses: dict[str, Unreachable] = field(default_factory=dict)

    def connect(self, address: Address) -> FakeSession:
        """Open the way to a node."""
        self.hook("connect", "before")
        node = self.nodes[address.host]
        if address.host in self.refuses:
            raise self.refuses[address.host]
        if not node.up:
            raise ConnectFailed(f"{address.host} refused the connection")
        return FakeSession(node, self.hook)

    def add(self, host: str, **fields: object) -> FakeNode:
        """Add a machine of its own identity."""
        identity = f"{len(self.nodes) + 1:032x}"
        node = replace(FakeNode(), node_id=identity, **fields)  # type: ignore[arg-type] # by name
        self.nodes[host] = node
        return node

    def lose_for_good(self, host: str, step: str, moment: str) -> None:
        """Lose the connection there, and the way to that machine with it."""
        lose = lost_at(step, moment)

        def hook(here: str, when: str) -> None:
            if (here, when) == (step, moment):
                self.nodes[host].up = False
            lose(here, when)

        self.hook = hook

    def heal(self) -> None:
        """Let everything pass again."""
        self.hook = peaceful
        for node in self.nodes.values():
            node.up = True


def lost_at(step: str, moment: str) -> Hook:
    """Make a hook that loses the connection there: before a mutation was sent, or after."""

    def hook(here: str, when: str) -> None:
        if (here, when) != (step, moment):
            return
        if moment == "after":
            raise Indeterminate(f"{step}: no whole answer came")
        raise ConnectionLost(f"{step}: the connection ended")

    return hook
