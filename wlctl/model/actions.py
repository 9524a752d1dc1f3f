"""What is asked of a node and what it answers, typed: one request and one answer per action."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from wlctl.model.facts import FACTS_TTL_MS, Capability, Facts
from wlctl.model.generation import Containment, Liveliness, Readings
from wlctl.model.ids import DecisionId, InstallationId, InstanceId, PackageId
from wlctl.model.node import Settles
from wlctl.model.package import RestartPolicy
from wlctl.model.upkeep import ChainPoint, ListName

NEVER_AGAIN = RestartPolicy(max_restarts=0)
"""What ends by itself is begun again by nobody but who asks for it."""

Secrets = tuple[tuple[str, str], ...]
"""Name to value; a value is text without NUL."""


class RefusalCode(StrEnum):
    """Why a node did not do what it was asked; a refusal leaves nothing behind."""

    UNAUTHORIZED = "unauthorized"
    """The node does not let this installation, project or login do that."""
    INVALID_REQUEST = "invalid_request"
    """The node could not read what it was asked, or does not know how to do it."""
    GOVERNANCE = "governance"
    """What the package asks for is not given to packages on this node."""
    REVOKED = "revoked"
    """The package, a signer or a file of it is revoked there."""
    ADMISSION = "admission"
    """The node looked again, under its own lock, and does not take it."""
    RESOURCES = "resources"
    """Memory, disk or another resource did not suffice when it was needed."""
    FETCH = "fetch"
    """A file did not arrive whole."""
    VERIFY = "verify"
    """A file on the node is not the one that the manifest names."""
    RUNTIME = "runtime"
    """What runs the workload is missing there, or did not start it."""
    NO_CGROUP = "no_cgroup"
    """There is no cgroup v2 that wlctl may write."""
    NO_LINGER = "no_linger"
    """The login's processes would end with its session: `loginctl enable-linger`."""
    NO_LEASE = "no_lease"
    """The node cannot enforce a lease."""
    NO_USER = "no_user"
    """The node cannot give the workload the user it needs."""
    NO_FLOCK = "no_flock"
    """The node lacks `flock`, without which nothing is changed there."""
    SECRET_UNAVAILABLE = "secret_unavailable"  # noqa: S105 - the name of a refusal
    """A secret that the workload needs could not be had."""
    PORT = "port"
    """A port that the workload needs is taken."""
    BUSY = "busy"
    """The node's lock was held for too long; the same command may be repeated."""
    SUPERSEDED = "superseded"
    """A newer operation on the instance was there first."""
    UNKNOWN_INSTANCE = "unknown_instance"
    """The node has no such instance of this installation."""
    CLOCK = "clock"
    """The node's clock does not allow it, as when a deadline has passed."""
    CANCELLED = "cancelled"
    """The decision was called off before it reached the node."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The node's no. An answer, not an error.

    Attributes:
        detail: The node's words: text from outside.
    """

    code: RefusalCode
    detail: str


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """One facts answer, before the controller gives it a number and a time.

    Attributes:
        wall_ms: The node's wall clock at the probe, epoch milliseconds; 0 where it could not tell.
        load_average: Over one minute, in processors.
        missing: Tools that the node lacks, by name, ascending; empty when it can do all.
    """

    node_id: str
    machine_id: str
    boot_id: str
    uptime_ms: int
    wall_ms: int
    load_average: float
    memory_total_bytes: int
    memory_available_bytes: int
    memory_ours_bytes: int
    disk_free_bytes: int
    cpu_cores: int
    ports_listening: tuple[int, ...]
    state_dir: str
    containment: Containment
    cgroup_root: str
    instances: tuple[str, ...]
    capabilities: tuple[Capability, ...]
    missing: tuple[str, ...]

    def as_facts(
        self,
        *,
        seq: int,
        probed_at_ms: int,
        asked_at_ms: int | None = None,
        ttl_ms: int = FACTS_TTL_MS,
    ) -> Facts:
        """Return what is recorded of this probe.

        Args:
            probed_at_ms: When the controller had the answer.
            asked_at_ms: When it asked; None for that same moment. The node read its clock somewhere
                between the two, so that only what lies outside is skew.
        """
        began_at_ms = probed_at_ms if asked_at_ms is None else min(asked_at_ms, probed_at_ms)
        nearest_ms = min(max(self.wall_ms, began_at_ms), probed_at_ms)
        return Facts(
            seq=seq,
            probed_at_ms=probed_at_ms,
            ttl_ms=ttl_ms,
            node_id=self.node_id,
            machine_id=self.machine_id,
            boot_id=self.boot_id,
            uptime_ms=self.uptime_ms,
            clock_skew_ms=self.wall_ms - nearest_ms if self.wall_ms else 0,
            load=min(1.0, self.load_average / self.cpu_cores) if self.cpu_cores else None,
            memory_total_bytes=self.memory_total_bytes,
            memory_available_bytes=self.memory_available_bytes,
            memory_ours_bytes=self.memory_ours_bytes,
            disk_free_bytes=self.disk_free_bytes,
            cpu_cores=self.cpu_cores,
            ports_listening=self.ports_listening,
            state_dir=self.state_dir,
            containment=self.containment.value,
            cgroup_root=self.cgroup_root,
            instances=self.instances,
            capabilities=self.capabilities,
            missing=self.missing,
        )


@dataclass(frozen=True, slots=True)
class Measured:
    """What a bounded measurement on a node found.

    Attributes:
        figures: `perf.*`, provenance `measured`, ascending by id; what could not be measured is
            absent. `value` is in MiB a second, which `unit` says.
    """

    node_id: str
    figures: tuple[Capability, ...]


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What was taken away of an installation on a node.

    Attributes:
        removed: Paths that were there and are not any more, in the order they went.
        kept_for: Other installations, for which the rest was kept, ascending.
    """

    removed: tuple[str, ...]
    kept_for: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Offered:
    """What a node says before anything is brought to it.

    Attributes:
        uptime_ms: Of this boot, now: deadlines of what follows are counted from it.
        missing: Files that its store lacks, in the order asked.
        checkpoint: The newest that it keeps as a witness; None before the first.
    """

    node_id: str
    uptime_ms: int
    missing: tuple[str, ...]
    checkpoint: ChainPoint | None = None


@dataclass(frozen=True, slots=True)
class PlaceRequest:
    """Stage one placed copy, and start its first generation unless told not to.

    Attributes:
        number: The operation's; a node that has accepted a higher one refuses it.
        generation: The number the ledger gave this run before anything was sent; from 1.
        fence: `WLCTL_FENCE`: grows with each generation of the name on any node.
        sheet: sha256 of the launch sheet, which lies in the node's store like any other file.
        deadline_ms: On the node's uptime; a request that is read later does nothing.
        env: Added by the order, over the sheet's; only names the sheet allows.
        args: Appended by the order, where the sheet allows it.
        start: False stages it and starts nothing.
        lease_until_ms: On the node's uptime: then the copy is ended there, unless the lease was
            renewed; 0 for no lease.
        signatures: Of the manifest, which lies in the node's store under the package's id; an
            enforced node goes by them.
        project: Of the order; a node may list those that it takes.
        restart: How often its supervisor may begin it again by itself.
        settles: Whether it may be started without a cgroup.
        secrets: Name to value, of every secret the sheet names; never shown.
    """

    installation: InstallationId
    instance: InstanceId
    name: str
    node: str
    decision: DecisionId
    number: int
    generation: int
    fence: int
    package: PackageId
    sheet: str
    deadline_ms: int
    env: tuple[tuple[str, str], ...] = ()
    args: tuple[str, ...] = ()
    start: bool = True
    lease_until_ms: int = 0
    secrets: Secrets = field(default=(), repr=False)
    signatures: tuple[str, ...] = ()
    project: str = ""
    settles: Settles = Settles.AUTO
    restart: RestartPolicy = NEVER_AGAIN


@dataclass(frozen=True, slots=True)
class StartRequest:
    """Start a further generation of what was placed; fields as in `PlaceRequest`.

    Attributes:
        package: Must be the one that was placed, so that a revocation can be checked.
    """

    installation: InstallationId
    instance: InstanceId
    number: int
    generation: int
    fence: int
    package: PackageId
    deadline_ms: int
    lease_until_ms: int = 0
    secrets: Secrets = field(default=(), repr=False)
    settles: Settles = Settles.AUTO
    restart: RestartPolicy = NEVER_AGAIN


@dataclass(frozen=True, slots=True)
class StopRequest:
    """End every generation of an instance, at most `grace_ms` after the stop signal.

    Attributes:
        generation: The newest number the ledger gave; it is closed even if the node never saw it.
        grace_ms: None takes the launch sheet's.
        wait: False closes every generation and asks it to end, and reads nothing.
        within_s: How long the answer is waited for; None for as long as it may take.
    """

    installation: InstallationId
    instance: InstanceId
    number: int
    generation: int
    grace_ms: int | None = None
    wait: bool = True
    within_s: float | None = None


@dataclass(frozen=True, slots=True)
class UnloadRequest:
    """Stop an instance and remove it, kept data only with `purge`; fields as in `StopRequest`."""

    installation: InstallationId
    instance: InstanceId
    number: int
    generation: int
    grace_ms: int | None = None
    purge: bool = False
    within_s: float | None = None


@dataclass(frozen=True, slots=True)
class SettleRequest:
    """Settle one attempt of a decision whose answer was lost.

    Attributes:
        number: The operation's own: higher than the attempt's, which can do nothing afterwards.
        generation: The one the attempt was to start; it is closed even if the node never saw it.
    """

    installation: InstallationId
    instance: InstanceId
    decision: DecisionId
    number: int
    generation: int


class SettleOutcome(StrEnum):
    """What a node says of a decision that is settled, or is not yet."""

    CANCELLED = "cancelled"
    """Nothing of it runs, and the node has recorded that nothing ever will."""
    PLACED = "placed"
    """It was carried out: the instance is there."""
    REFUSED = "refused"
    """The node had refused it, and nothing was left."""
    WORKING = "working"
    """The request is still at work there; it was told to stop before it launches. Ask again."""
    UNPROVEN = "unproven"
    """The request was cut short, and what it began could not be read as gone. Ask again."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a decision on a node.

    Attributes:
        refused: Why, where it was refused.
        readings: Of what was ended now; empty when there was nothing.
    """

    node_id: str
    outcome: SettleOutcome
    refused: Refused | None
    readings: tuple[Readings, ...]


@dataclass(frozen=True, slots=True)
class Placed:
    """The files are verified and staged; nothing was started, as asked.

    Attributes:
        already: An earlier request with this number had done it.
    """

    already: bool


@dataclass(frozen=True, slots=True)
class Launched:
    """A generation's leader runs, or has run: it was recorded before its first instruction.

    Attributes:
        already: An earlier request with this number had done it.
        pid: Of the leader, as the node numbers it.
        start_ticks: Field 22 of its stat: with pid and boot id it names one process for ever.
        uid: Of its own, or None where it runs as the login.
        cgroup: The workload's cgroup directory; empty where it has none.
        way: How the cgroup was made: `cgroupfs`, `systemd` or `systemd-user`; `none` without one.
        ports: Name to number, as asked.
        unenforced: Limits the package asks for and this node cannot hold it to, e.g. `memory`.
        data_dir: What `WLCTL_DATA_DIR` says.
    """

    already: bool
    generation: int
    boot_id: str
    containment: Containment
    way: str
    pid: int
    start_ticks: int
    uid: int | None
    cgroup: str
    cgroup_inode: int | None
    ports: tuple[tuple[str, int], ...]
    unenforced: tuple[str, ...]
    data_dir: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """What was read of each generation after it was closed, oldest first.

    Attributes:
        node_id: Of the node that read it: of another node it says nothing.
        pruned: Up to this number, runs that the node has no record of any more were read as gone.
    """

    node_id: str
    readings: tuple[Readings, ...]
    pruned: int = 0


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of each generation that the node has, oldest first; nothing was ended for it.

    Attributes:
        node_id: Of the node that read it: of another node it says nothing.
        pruned: As in `Stopped`.
    """

    node_id: str
    readings: tuple[Readings, ...]
    pruned: int = 0


@dataclass(frozen=True, slots=True)
class Unloaded:
    """What was read, as in `Stopped`, and what became of the instance's directory.

    Attributes:
        removed: Its directory is gone; False when a generation could not be read as ended.
        kept_data: Where its data still lies; empty when there is none.
    """

    node_id: str
    readings: tuple[Readings, ...]
    removed: bool
    kept_data: str
    pruned: int = 0


@dataclass(frozen=True, slots=True)
class Begun:
    """How a run came to be that its supervisor began by itself.

    Attributes:
        after: Number of the run that it follows, and which was read as gone before.
        age_ms: How long ago, by the node's clock; None where that was under another boot.
        why: What became of that run: text from outside.
    """

    after: int
    age_ms: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Restarts:
    """What a supervisor may do by itself for what was launched last, and what it did.

    Attributes:
        once: What ends with success has finished.
        window_ms: Within it, `within` restarts were counted against `most`.
        held: Why it is not begun again, as a code; empty while it is.
        why: The same in words: text from outside.
    """

    once: bool
    most: int
    window_ms: int
    within: int
    held: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class GenerationStatus:
    """What one look saw of one generation; a reading, never a proof.

    Attributes:
        torn: Its launch record cannot be read.
        populated: Whether its cgroup has a process; None when it could not be read.
        exit_status: As a shell counts (above 128: a signal); None while it runs, or unknown.
        pid: Of the leader; None before it was recorded.
        oom_kills: Processes of it that the kernel killed for want of memory; None where the node
            does not count them.
        health: starting, healthy or unhealthy, as the supervisor saw it last; empty where nothing
            is asked, or was not yet.
        misses: Checks that failed in a row.
        launch: What the node answered when it was launched; of the one launched last and of those
            that a supervisor began, and None before its leader was recorded.
        begun: How its supervisor came to begin it; None where somebody asked for it.
        ended: What its supervisor read of its end; None where it read nothing.
    """

    number: int
    closed: bool
    torn: bool
    boot_id: str
    leader: Liveliness
    populated: bool | None
    exit_status: int | None
    pid: int | None
    uid: int | None
    oom_kills: int | None = None
    health: str = ""
    misses: int = 0
    launch: Launched | None = None
    begun: Begun | None = None
    ended: Readings | None = None


@dataclass(frozen=True, slots=True)
class InstanceStatus:
    """One instance of this installation as its node has it.

    Attributes:
        desired: running or stopped; empty when torn.
        number: Of the newest operation accepted; None when torn.
        current: Number of the generation that was launched last; 0 before the first.
        package: Empty for one that was never staged.
        generations: Ascending; empty when none was ever launched.
        supervisor: Of the one that was started last.
        restarts: None where its supervisor begins nothing by itself.
        pruned: As in `Stopped`.
    """

    instance: InstanceId
    desired: str
    number: int | None
    current: int | None
    name: str
    package: str
    generations: tuple[GenerationStatus, ...]
    supervisor: Liveliness = Liveliness.NONE
    restarts: Restarts | None = None
    pruned: int = 0

    @property
    def newest(self) -> GenerationStatus | None:
        """What was seen of the run that was launched last."""
        return next((one for one in self.generations if one.number == self.current), None)

    @property
    def unsupervised(self) -> bool:
        """Whether it runs, or is to be begun again, and has no supervisor to see to it."""
        run = self.newest
        if run is None or run.torn or self.supervisor is Liveliness.ALIVE:
            return False
        if run.leader is Liveliness.ALIVE and not run.closed:
            return True
        return run.leader is not Liveliness.UNKNOWN and self.is_begun_again(run)

    def is_begun_again(self, run: GenerationStatus) -> bool:
        """Whether a supervisor is to ask the policy what follows the end of `run`."""
        policy = self.restarts
        if policy is None or policy.held:
            return False
        return not (policy.once and run.exit_status == 0)


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """Everything of one installation on a node, in one look.

    Attributes:
        departed: Instances unloaded there on purpose, to the number of the operation that did it.
        revocations: Which list the node has; None before the first, or when it is damaged: then
            nothing starts there until it is sent again.
        checkpoint: The newest that it keeps as a witness; None before the first.
    """

    node_id: str
    boot_id: str
    uptime_ms: int
    instances: tuple[InstanceStatus, ...]
    departed: Mapping[InstanceId, int]
    revocations: ListName | None = None
    checkpoint: ChainPoint | None = None


@dataclass(frozen=True, slots=True)
class LogTail:
    """The end of a generation's output.

    Attributes:
        text: Text from outside, valid Unicode, not escaped.
        size_bytes: Of the whole file on the node.
        next_byte: Where what comes after this begins.
        is_over: The run has ended, and will print nothing more.
    """

    generation: int
    text: str
    size_bytes: int
    next_byte: int = 0
    is_over: bool = True
