"""The package's nouns: what its author says of the workload, what its manifest states of it."""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256

from wlctl.model.ids import PackageId
from wlctl.model.workload import (
    Execution,
    Kind,
    Requirement,
    Resources,
    WorkloadPolicy,
)


class ArgsRule(StrEnum):
    """What `place` may do with the words after `--`."""

    APPEND = "append"
    """Put them after the command's own."""
    NONE = "none"
    """Nothing: they are refused."""


@dataclass(frozen=True, slots=True)
class Run:
    """What is started, as whom, with what around it.

    Attributes:
        command: argv in the author's words, `$NAME` not yet substituted; empty where every variant
            has its own.
        env: Variable to value, `$NAME` not yet substituted.
        env_allow: Names, or beginnings of names with a `*` at the end, that `place` may set.
        user: An existing login of the node; empty for a uid of the instance's own.
        secrets: Ascending.
    """

    command: tuple[str, ...] = ()
    args: ArgsRule = ArgsRule.NONE
    env: Mapping[str, str] = field(default_factory=dict)
    env_allow: tuple[str, ...] = ()
    user: str = ""
    groups: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Port:
    """A TCP port the workload listens on.

    Attributes:
        number: 0 for one that is chosen on the node.
    """

    name: str
    number: int = 0


@dataclass(frozen=True, slots=True)
class PackageVariant:
    """One way to run the workload, and the files that takes.

    Attributes:
        command: Instead of the common one; empty for the common one.
        files: In `workload.toml` files and directories as the author wrote them; in a manifest
            the path of each file, ascending.
    """

    name: str
    execution: Execution = Execution.NATIVE
    requires: tuple[Requirement, ...] = ()
    command: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class HealthKind(StrEnum):
    """How health is asked for."""

    HTTP = "http"
    """GET of the target answers 2xx or 3xx."""
    TCP = "tcp"
    """A connection to the target opens."""
    EXEC = "exec"
    """The target, a file of the package, exits 0."""
    HEARTBEAT = "heartbeat"
    """The target, a file under the run directory, was touched within the greatest age."""


@dataclass(frozen=True, slots=True)
class Health:
    """When a running workload counts as healthy.

    Attributes:
        target: What is asked, `$NAME` not yet substituted.
        misses: How many checks in a row may fail before it is unhealthy.
        max_age_ms: Of a heartbeat; 0 for the other kinds.
    """

    kind: HealthKind
    target: str
    interval_ms: int = 10_000
    timeout_ms: int = 2_000
    misses: int = 3
    max_age_ms: int = 0


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """How often, and after which waits, a copy that failed is started again in its place.

    Attributes:
        max_restarts: Within the window; 0 for never.
    """

    max_restarts: int = 3
    window_ms: int = 600_000
    backoff_base_ms: int = 1_000
    backoff_max_ms: int = 30_000


@dataclass(frozen=True, slots=True)
class LifecyclePolicy:
    """How a copy is ended, moved and kept.

    Attributes:
        stop_signal: Name without `SIG`.
        max_reschedules: A cap on successful moves.
        lease_ms: Time to live of the dead-man lease; None for none.
        switch: argv run when a swap switches over; empty for none.
        keep_ms: How long a finished job stays before it is unloaded.
    """

    stop_signal: str = "TERM"
    stop_grace_ms: int = 10_000
    migratable: bool = True
    max_reschedules: int = 5
    lease_ms: int | None = None
    switch: tuple[str, ...] = ()
    keep_ms: int = 7 * 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Schedule:
    """When an interval job is due: exactly one of `every_ms` and `cron`.

    Attributes:
        cron: Minute, hour, day of month, month, day of week.
        timezone: IANA name the cron fields are read in.
    """

    every_ms: int | None = None
    cron: str | None = None
    timezone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Workload:
    """Everything `workload.toml` says; in a manifest, with the files found for it.

    Attributes:
        ports: In declared order; the first one is `PORT`.
        keep_data: The data directory survives generations, and the copy is never moved.
        common: Requirements of every variant.
        variants: In declared order; never empty.
        health: None where nothing is asked.
        schedule: Set for interval jobs and for nothing else.
    """

    kind: Kind
    name: str
    version: str
    run: Run
    ports: tuple[Port, ...]
    keep_data: bool
    common: tuple[Requirement, ...]
    variants: tuple[PackageVariant, ...]
    resources: Resources
    health: Health | None
    restart: RestartPolicy
    policy: WorkloadPolicy
    lifecycle: LifecyclePolicy
    schedule: Schedule | None


@dataclass(frozen=True, slots=True)
class PackageFile:
    """One file as a manifest lists it.

    Attributes:
        path: Relative to the package, `/` between its parts.
        mode: `0444`, or `0555` for what can be executed.
    """

    path: str
    mode: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The statement a signature is about.

    Attributes:
        package_id: sha256 of `text`.
        text: The statement itself, RFC 8785 canonical JSON.
        files: Every file, launch sheets included, ascending by path.
    """

    package_id: PackageId
    text: str
    workload: Workload
    files: tuple[PackageFile, ...]


def fingerprint(public_key: str) -> str:
    """Name a public key, `TYPE BASE64`, as ssh-keygen does: `SHA256:…`."""
    return fingerprint_of_blob(b64decode(public_key.split(" ")[1]))


def fingerprint_of_blob(blob: bytes) -> str:
    """Name a public key by its wire form."""
    return f"SHA256:{b64encode(sha256(blob).digest()).decode().rstrip('=')}"


def is_fingerprint(text: str) -> bool:
    """Answer whether a text names a key, and not a hash of something else."""
    return text.startswith("SHA256:")


@dataclass(frozen=True, slots=True)
class Signer:
    """A key whose signatures are accepted, under the one name it has.

    Attributes:
        public_key: `TYPE BASE64`, as in a `.pub` file, without the comment.
        valid_after_ms: The first moment they are accepted; None for ever since.
        valid_before_ms: The last second they are, to its end; None for ever.
    """

    name: str
    public_key: str
    added_at_ms: int
    valid_after_ms: int | None = None
    valid_before_ms: int | None = None

    @property
    def fingerprint(self) -> str:
        """`SHA256:…`; of the key itself, so that nothing can be passed off as it."""
        return fingerprint(self.public_key)

    def is_valid_at(self, now_ms: int) -> bool:
        """Answer whether signatures are accepted at a moment, by its whole second, as ssh-keygen.

        Whether they were made in that time cannot be known: a signature has no moment.
        """
        second_ms = now_ms - now_ms % 1000
        return (self.valid_after_ms is None or second_ms >= self.valid_after_ms) and (
            self.valid_before_ms is None or second_ms <= self.valid_before_ms
        )


@dataclass(frozen=True, slots=True)
class SignatureReading:
    """What one signature file says, judged against the bytes it should be about.

    Attributes:
        fingerprint: Of the key it names; empty where it cannot be read as a signature.
        fault: Why it does not fit, or None when it fits.
    """

    fingerprint: str
    fault: str | None
