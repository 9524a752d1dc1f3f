"""Does a description make sense? What no single key shows, whichever file it was read from."""

import re
from collections.abc import Collection, Iterator, Sequence

from wlctl.model.package import Health, HealthKind, PackageVariant, Run, Workload
from wlctl.package import cron, requirements, template, units, words
from wlctl.package.fault import Fault, nearest, quoted
from wlctl.package.kinds import KINDS
from wlctl.package.requirements import check_words, distinct

MAX_VARIANTS = 16
MAX_PORT = 65_535
MAX_PIDS = 4_194_304
"""The kernel's own limit on process ids."""
_MIN_EVERY_MS = 1_000
MAX_DURATION_MS = 3660 * 24 * 3_600_000
"""Ten years: more is a slip, and fewer milliseconds than any node's arithmetic can hold."""
_MAX_TIMES = 1_000_000
_MAX_RESTARTS = 1_000  # a node keeps the moment of each that is within the window
_MAX_MISSES = 1_000
_MIN_INTERVAL_MS = 100
_MIN_LEASE_MS = 1_000
_MAX_WORDS = 256
_MAX_PORTS = 32
_MAX_ENTRIES = 64

_TCP_TARGET = re.compile(r"(?:[^\s:/]+:|\[[^\s\]/]+\]:)?[^\s:/]+")
_TIMEZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,31}(/[A-Za-z0-9_+-]{1,31}){0,2}")


def check(workload: Workload) -> None:
    """Check everything that does not depend on the files.

    Raises:
        Fault: At the first thing that is wrong, with its key path in `workload.toml`.
    """
    _is(words.WORKLOAD_NAME, "name", workload.name, "lower-case letters, digits, . _ -, up to 100")
    if ".." in workload.name:
        raise Fault("name", f"{quoted(workload.name)} has two dots in a row")
    _is(words.VERSION, "version", workload.version, "letters, digits, . _ + -, up to 64")
    _check_run(workload.run)
    _check_ports(workload)
    requirements.check_all("requires.common", workload.common)
    _check_variants(workload)
    _check_commands(workload)
    _check_health(workload)
    requirements.check_policy(workload.policy)
    _check_ranges(workload)
    _check_lifecycle(workload)
    _check_schedule(workload)


def known_names(workload: Workload) -> frozenset[str]:
    """List the variables that a value of the environment may refer to."""
    ports = {words.port_variable(port.name) for port in workload.ports}
    return (
        words.GIVEN_NAMES
        | ports
        | ({"PORT"} if ports else set())
        | {f"{secret}_FILE" for secret in workload.run.secrets}
    )


def _check_run(run: Run) -> None:
    files = {f"{secret}_FILE" for secret in run.secrets}
    for name in run.env:
        where = f"run.env.{name[:60]}"
        _is(words.VARIABLE, where, name, "a variable's name: letters, digits and _")
        if words.is_given(name) or name in files:
            raise Fault(where, "wlctl sets this one itself")
        if words.is_kept_by_shells(name):
            raise Fault(where, "shells keep this one for themselves")
    for index, pattern in enumerate(run.env_allow):
        where = f"run.env_allow[{index}]"
        _is(words.VARIABLE_PATTERN, where, pattern, "a variable's name, a * at its end at most")
        if words.is_never_allowed(pattern.rstrip("*")):
            raise Fault(where, f"{quoted(pattern)} is never taken from a command line")
    if run.user:
        _is(words.LOGIN, "run.user", run.user, "a login name")
    _each("run.groups", run.groups, words.LOGIN, "a group's name")
    _each("run.secrets", run.secrets, words.VARIABLE, "letters, digits and _")
    distinct("run.env_allow", run.env_allow)
    distinct("run.capabilities", run.capabilities)
    for index, capability in enumerate(run.capabilities):
        if capability not in words.CAPABILITIES:
            what = f"{quoted(capability)}; {nearest(capability, words.CAPABILITIES)}"
            raise Fault(f"run.capabilities[{index}]", what)


def _check_ports(workload: Workload) -> None:
    ports = workload.ports
    if len(ports) > _MAX_PORTS:
        raise Fault("ports", f"{len(ports)} ports; at most {_MAX_PORTS}")
    for port in ports:
        _is(words.PORT_NAME, f"ports.{port.name[:60]}", port.name, "a-z, 0-9 and -, up to 31")
        if not 0 <= port.number <= MAX_PORT:
            raise Fault(f"ports.{port.name}", f"{port.number} is not a port")
    distinct("ports", [port.name for port in ports])
    distinct("ports", [str(port.number) for port in ports if port.number])


def _check_variants(workload: Workload) -> None:
    variants = workload.variants
    if not 1 <= len(variants) <= MAX_VARIANTS:
        raise Fault("variant", f"{len(variants)} variants; 1 to {MAX_VARIANTS}")
    distinct("variant", [variant.name for variant in variants])
    for index, variant in enumerate(variants):
        _check_variant(f"variant[{index}]", variant)


def _check_variant(where: str, variant: PackageVariant) -> None:
    _is(words.VARIANT_NAME, f"{where}.name", variant.name, "a-z, 0-9, . _ -, up to 64")
    if ".." in variant.name:
        raise Fault(f"{where}.name", f"{quoted(variant.name)} has two dots in a row")
    requirements.check_all(f"{where}.requires", variant.requires)
    for index, path in enumerate(variant.files):
        if words.plain_path(path) is None:
            what = f"{quoted(path)} is not a path inside the package: relative, without .."
            raise Fault(f"{where}.files[{index}]", what)


def _check_commands(workload: Workload) -> None:
    given = known_names(workload)
    for name, value in workload.run.env.items():
        _check_template(f"run.env.{name}", value, given)
    known = given | workload.run.env.keys()
    if workload.run.command:
        _check_argv("run.command", workload.run.command, known)
    for index, variant in enumerate(workload.variants):
        if variant.command:
            _check_argv(f"variant[{index}].command", variant.command, known)
        elif not workload.run.command:
            raise Fault("run.command", f"missing, and variant {variant.name} has none of its own")
    if workload.lifecycle.switch:
        _check_argv("lifecycle.switch", workload.lifecycle.switch, known)


def _check_argv(where: str, argv: Sequence[str], known: Collection[str]) -> None:
    if len(argv) > _MAX_WORDS:
        raise Fault(where, f"{len(argv)} words; at most {_MAX_WORDS}")
    if not argv[0]:
        raise Fault(f"{where}[0]", "the program's name is empty")
    for index, word in enumerate(argv):
        _check_template(f"{where}[{index}]", word, known)


def _check_template(where: str, text: str, known: Collection[str]) -> None:
    check_words(where, text)
    if template.split(text) is None:
        what = f"{quoted(text)} has a $ that is no $NAME and no ${{NAME}}; a dollar itself is $$"
        raise Fault(where, what)
    for name in sorted(template.names(text)):
        if name not in known:
            raise Fault(where, f"${name} is not known; {nearest(name, known)}")


def _check_health(workload: Workload) -> None:
    health = workload.health
    if health is None:
        return
    if not KINDS[workload.kind].has_health:
        raise Fault("health", f"a {workload.kind} ends by itself and is not asked how it is")
    where = f"health.{health.kind}"
    if health.kind in {HealthKind.EXEC, HealthKind.HEARTBEAT}:
        if words.plain_path(health.target) in {None, "."}:
            within = "the package" if health.kind is HealthKind.EXEC else "$WLCTL_RUN_DIR"
            raise Fault(where, f"{quoted(health.target)} is not the path of a file in {within}")
        return
    _check_template(where, health.target, known_names(workload))
    if not _is_reachable(health):
        form = "http://HOST:PORT/PATH" if health.kind is HealthKind.HTTP else "HOST:PORT or PORT"
        raise Fault(where, f"{quoted(health.target)} is not {form}")


def _is_reachable(health: Health) -> bool:
    if not (health.target.isprintable() and " " not in health.target):
        return False
    if health.kind is HealthKind.HTTP:
        return re.match(r"http://[^/?#]", health.target) is not None
    return _TCP_TARGET.fullmatch(health.target) is not None


def _check_ranges(workload: Workload) -> None:
    if units.cores(workload.resources.cpu_cores) is None:
        found = quoted(workload.resources.cpu_cores)
        raise Fault("resources.cpu", f"{found} is not {units.CORES_WORDS}")
    for where, value, least, most in _ranges(workload):
        if not least <= value <= most:
            raise Fault(where, f"{value} is not a number from {least} to {most}")


def _ranges(workload: Workload) -> Iterator[tuple[str, int, int, int]]:
    """List every number with its key and its bounds; durations count milliseconds."""
    resources, restart, lifecycle = workload.resources, workload.restart, workload.lifecycle
    yield "resources.memory", resources.memory_bytes, 0, units.MAX_INTEGER
    yield "resources.accel_memory", resources.accel_memory_bytes, 0, units.MAX_INTEGER
    yield "resources.disk", resources.disk_bytes, 0, units.MAX_INTEGER
    yield "resources.pids", resources.pids, 0, MAX_PIDS
    yield "restart.max", restart.max_restarts, 0, _MAX_RESTARTS
    yield "restart.window", restart.window_ms, 0, MAX_DURATION_MS
    yield "restart.backoff", restart.backoff_base_ms, 0, MAX_DURATION_MS
    yield "restart.backoff_max", restart.backoff_max_ms, 0, MAX_DURATION_MS
    yield "lifecycle.stop_grace", lifecycle.stop_grace_ms, 0, MAX_DURATION_MS
    yield "lifecycle.max_reschedules", lifecycle.max_reschedules, 0, _MAX_TIMES
    yield "lifecycle.keep", lifecycle.keep_ms, 0, MAX_DURATION_MS
    if lifecycle.lease_ms is not None:
        yield "lifecycle.lease", lifecycle.lease_ms, _MIN_LEASE_MS, MAX_DURATION_MS
    if (schedule := workload.schedule) is not None and schedule.every_ms is not None:
        yield "schedule.every", schedule.every_ms, _MIN_EVERY_MS, MAX_DURATION_MS
    if (health := workload.health) is not None:
        is_heartbeat = health.kind is HealthKind.HEARTBEAT
        yield "health.interval", health.interval_ms, _MIN_INTERVAL_MS, MAX_DURATION_MS
        yield "health.timeout", health.timeout_ms, 1, MAX_DURATION_MS
        yield "health.misses", health.misses, 1, _MAX_MISSES
        most = MAX_DURATION_MS if is_heartbeat else 0
        yield "health.max_age", health.max_age_ms, int(is_heartbeat), most


def _check_lifecycle(workload: Workload) -> None:
    signal = workload.lifecycle.stop_signal
    if signal not in words.STOP_SIGNALS:
        what = f"{quoted(signal)}; one of {', '.join(words.STOP_SIGNALS)}"
        raise Fault("lifecycle.stop_signal", what)


def _check_schedule(workload: Workload) -> None:
    schedule = workload.schedule
    if KINDS[workload.kind].has_schedule != (schedule is not None):
        what = "missing" if schedule is None else f"a {workload.kind} is not run on a schedule"
        raise Fault("schedule", what)
    if schedule is None:
        return
    if (schedule.every_ms is None) == (schedule.cron is None):
        raise Fault("schedule", "write exactly one of every and cron")
    if schedule.cron is not None and (wrong := cron.fault(schedule.cron)) is not None:
        raise Fault("schedule.cron", wrong)
    _is(_TIMEZONE, "schedule.timezone", schedule.timezone, "an IANA name such as Europe/Berlin")


def _is(pattern: re.Pattern[str], where: str, text: str, allowed: str) -> None:
    if pattern.fullmatch(text) is None:
        raise Fault(where, f"{quoted(text)} is not {allowed}")


def _each(where: str, texts: Sequence[str], pattern: re.Pattern[str], allowed: str) -> None:
    if len(texts) > _MAX_ENTRIES:
        raise Fault(where, f"{len(texts)} entries; at most {_MAX_ENTRIES}")
    for index, text in enumerate(texts):
        _is(pattern, f"{where}[{index}]", text, allowed)
    distinct(where, texts)
