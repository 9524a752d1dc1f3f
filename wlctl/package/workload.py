"""What does `workload.toml` say? Read strictly: every key known, every unit written, no guess."""

import tomllib
from collections.abc import Mapping
from typing import TypeVar

from wlctl.errors import InvalidFile
from wlctl.model.facts import AttrValue, Provenance
from wlctl.model.node import Tier
from wlctl.model.package import (
    ArgsRule,
    Health,
    HealthKind,
    LifecyclePolicy,
    PackageVariant,
    Port,
    RestartPolicy,
    Run,
    Schedule,
    Workload,
)
from wlctl.model.workload import (
    Execution,
    Kind,
    LatencyClass,
    Op,
    PerfTarget,
    Predicate,
    Preference,
    Requirement,
    Resources,
    WorkloadPolicy,
)
from wlctl.package import check, requirements
from wlctl.package.fault import Fault, nearest, quoted
from wlctl.package.kinds import KINDS
from wlctl.package.table import Table

FILE_NAME = "workload.toml"

WordT = TypeVar("WordT", Tier, Provenance)

_TOP = (
    *("kind", "name", "version", "run", "ports", "data", "variant", "requires", "resources"),
    *("health", "restart", "policy", "lifecycle", "schedule"),
)
_RUN = ("command", "args", "env", "env_allow", "user", "groups", "capabilities", "secrets")
_VARIANT = ("name", "execution", "files", "requires", "command")
_REQUIREMENT = ("id", "id_prefix", "where", "count", "exclusive", "min_provenance")
_POLICY = (
    *("min_trust", "labels", "excludes", "min_provenance", "latency_class", "perf"),
    *("preferences", "sticky"),
)
_LIFECYCLE = (
    *("stop_signal", "stop_grace", "migratable", "max_reschedules", "lease", "switch"),
    "keep",
)
_HEALTH = ("http", "tcp", "exec", "heartbeat", "max_age", "interval", "timeout", "misses")

_IMPLICIT = PackageVariant("default")


def parse(text: str, source: str = FILE_NAME) -> Workload:
    """Read a description.

    Args:
        text: The whole file.
        source: How the file is called in messages.

    Raises:
        InvalidFile: It is no TOML, a key is unknown or missing, a value is not what it must be, or
            two of them do not go together. The message names the key's path, what was found and
            what is allowed.
    """
    try:
        return _workload(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InvalidFile(f"{source} is not TOML: {error}") from error
    except RecursionError as error:
        raise InvalidFile(f"{source} is not TOML wlctl can read: nested too deeply") from error
    except Fault as fault:
        raise InvalidFile(f"{source}: {fault}") from fault


def _workload(values: dict[str, object]) -> Workload:
    top = Table(values, "", _TOP)
    kind = top.choice("kind", Kind)
    requires = top.table("requires", ["common"])
    workload = Workload(
        kind=kind,
        name=top.text("name"),
        version=top.text("version"),
        run=_run(top.table("run", _RUN)),
        ports=_ports(top.open_table("ports")),
        keep_data=top.table("data", ["keep"]).flag("keep", default=False),
        common=_requirements(requires, "common"),
        variants=_variants(top),
        resources=_resources(top),
        health=_health(top.table("health", _HEALTH)) if top.has("health") else None,
        restart=_restart(top, kind),
        policy=_policy(top.table("policy", _POLICY)),
        lifecycle=_lifecycle(top.table("lifecycle", _LIFECYCLE)),
        schedule=_schedule(top) if top.has("schedule") else None,
    )
    check.check(workload)
    return workload


def _run(table: Table) -> Run:
    return Run(
        command=table.texts("command"),
        args=table.choice("args", ArgsRule, ArgsRule.NONE),
        env=_env(table.open_table("env"), table.at("env")),
        env_allow=table.texts("env_allow"),
        user=table.text("user", ""),
        groups=table.texts("groups"),
        capabilities=table.texts("capabilities"),
        secrets=tuple(sorted(table.texts("secrets"))),
    )


def _env(values: Mapping[str, object], path: str) -> dict[str, str]:
    env: dict[str, str] = {}
    for name, value in values.items():
        if not isinstance(value, str):
            raise Fault(f"{path}.{name[:60]}", f"{quoted(value)} is not text; write it in quotes")
        env[name] = value
    return env


def _ports(values: Mapping[str, object]) -> tuple[Port, ...]:
    ports: list[Port] = []
    for name, value in values.items():
        if value == "auto":
            ports.append(Port(name))
        elif (
            isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= check.MAX_PORT
        ):
            ports.append(Port(name, value))
        else:
            what = f'{quoted(value)} is not "auto" and not a number, 1 to 65535'
            raise Fault(f"ports.{name[:60]}", what)
    return tuple(ports)


def _variants(top: Table) -> tuple[PackageVariant, ...]:
    if not top.has("variant"):
        return (_IMPLICIT,)
    return tuple(
        PackageVariant(
            name=table.text("name"),
            execution=table.choice("execution", Execution, Execution.NATIVE),
            requires=_requirements(table, "requires"),
            command=table.texts("command"),
            files=table.texts("files"),
        )
        for table in top.tables("variant", _VARIANT, check.MAX_VARIANTS)
    )


def _requirements(table: Table, key: str) -> tuple[Requirement, ...]:
    found = table.tables(key, _REQUIREMENT, requirements.MAX_REQUIREMENTS)
    return tuple(_requirement(entry) for entry in found)


def _requirement(table: Table) -> Requirement:
    return Requirement(
        id=table.text("id") if table.has("id") else None,
        id_prefix=table.text("id_prefix") if table.has("id_prefix") else None,
        where=tuple(
            Predicate(
                attr=entry.text("attr"),
                op=entry.choice("op", Op),
                value=_attr_value(entry.raw("value"), entry.at("value")),
            )
            for entry in table.tables("where", ["attr", "op", "value"], requirements.MAX_PREDICATES)
        ),
        count=table.integer("count", 1),
        exclusive=table.flag("exclusive", default=False),
        min_provenance=(
            _word(table, "min_provenance", Provenance, None)
            if table.has("min_provenance")
            else None
        ),
    )


def _attr_value(value: object, path: str) -> AttrValue:
    if isinstance(value, str | int | float):  # bool is an int
        return value
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return tuple(value)
    raise Fault(path, f"{quoted(value)} is not text, a number, true, false, or a list of those")


def _resources(top: Table) -> Resources:
    table = top.table("resources", ["cpu", "memory", "accel_memory", "disk", "pids"])
    return Resources(
        cpu_cores=table.cores("cpu"),
        memory_bytes=table.size_bytes("memory"),
        accel_memory_bytes=table.size_bytes("accel_memory"),
        disk_bytes=table.size_bytes("disk"),
        pids=table.integer("pids", 0),
    )


def _health(table: Table) -> Health:
    kinds = [kind for kind in HealthKind if table.has(kind)]
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none of them"
        raise Fault(table.at("")[:-1], f"{found}; write exactly one of http, tcp, exec, heartbeat")
    is_heartbeat = kinds[0] is HealthKind.HEARTBEAT
    if table.has("max_age") and not is_heartbeat:
        raise Fault(table.at("max_age"), "only a heartbeat has a greatest age")
    return Health(
        kind=kinds[0],
        target=table.text(kinds[0]),
        interval_ms=table.duration_ms("interval", 10_000),
        timeout_ms=table.duration_ms("timeout", 2_000),
        misses=table.integer("misses", 3),
        max_age_ms=table.duration_ms("max_age", 30_000) if is_heartbeat else 0,
    )


def _restart(top: Table, kind: Kind) -> RestartPolicy:
    table = top.table("restart", ["max", "window", "backoff", "backoff_max"])
    usual = RestartPolicy(max_restarts=KINDS[kind].max_restarts)
    return RestartPolicy(
        max_restarts=table.integer("max", usual.max_restarts),
        window_ms=table.duration_ms("window", usual.window_ms),
        backoff_base_ms=table.duration_ms("backoff", usual.backoff_base_ms),
        backoff_max_ms=table.duration_ms("backoff_max", usual.backoff_max_ms),
    )


def _policy(table: Table) -> WorkloadPolicy:
    perf = table.table("perf", ["id", "minimum"])
    preferences = table.tables(
        "preferences", [*_REQUIREMENT, "weight"], requirements.MAX_REQUIREMENTS
    )
    return WorkloadPolicy(
        min_trust=_word(table, "min_trust", Tier, Tier.PAIRED),
        min_provenance=_word(table, "min_provenance", Provenance, Provenance.CLAIMED),
        labels=table.texts("labels"),
        excludes=table.texts("excludes"),
        latency_class=table.choice("latency_class", LatencyClass, LatencyClass.BATCH),
        perf=PerfTarget(perf.text("id"), perf.number("minimum")) if table.has("perf") else None,
        preferences=tuple(
            Preference(_requirement(entry), entry.number("weight")) for entry in preferences
        ),
        sticky=table.flag("sticky", default=False),
    )


def _lifecycle(table: Table) -> LifecyclePolicy:
    usual = LifecyclePolicy()
    return LifecyclePolicy(
        stop_signal=table.text("stop_signal", usual.stop_signal),
        stop_grace_ms=table.duration_ms("stop_grace", usual.stop_grace_ms),
        migratable=table.flag("migratable", default=usual.migratable),
        max_reschedules=table.integer("max_reschedules", usual.max_reschedules),
        lease_ms=table.duration_ms("lease", 0) if table.has("lease") else None,
        switch=table.texts("switch"),
        keep_ms=table.duration_ms("keep", usual.keep_ms),
    )


def _schedule(top: Table) -> Schedule:
    table = top.table("schedule", ["every", "cron", "timezone"])
    if table.has("every") == table.has("cron"):
        raise Fault("schedule", "write exactly one of every and cron")
    if table.has("timezone") and not table.has("cron"):
        raise Fault("schedule.timezone", "only cron is read in a timezone")
    if table.has("every"):
        return Schedule(every_ms=table.duration_ms("every", 0))
    return Schedule(cron=table.text("cron"), timezone=table.text("timezone", "UTC"))


def _word(table: Table, key: str, words: type[WordT], default: WordT | None) -> WordT:
    by_word = {member.word: member for member in words}
    found = table.text(key, None if default is None else default.word)
    if found not in by_word:
        raise Fault(table.at(key), f"{quoted(found)}; {nearest(found, by_word)}")
    return by_word[found]
