"""`workload.toml`: what is read of it."""

from pathlib import Path

import pytest

from tests.unit.packages import MINIMAL, with_line
from wlctl.model.facts import Provenance
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
from wlctl.package.workload import parse

FULL = Path(__file__).with_name("full.toml").read_text(encoding="utf-8")


def test_every_key_is_read() -> None:
    assert parse(FULL) == Workload(
        kind=Kind.SERVICE,
        name="web",
        version="1.4.2",
        run=Run(
            command=("./bin/web", "--port", "$PORT"),
            args=ArgsRule.APPEND,
            env={"LOG": "info", "DATA": "${WLCTL_DATA_DIR}/db"},
            env_allow=("FEATURE_*",),
            user="web",
            groups=("video",),
            capabilities=("CAP_NET_BIND_SERVICE",),
            secrets=("API_KEY", "DB_PASSWORD"),
        ),
        ports=(Port("http"), Port("metrics", 9100)),
        keep_data=True,
        common=(
            Requirement(id_prefix="runtime.python", where=(Predicate("version", Op.GTE, "3.11"),)),
        ),
        variants=(
            PackageVariant(
                name="x86_64",
                requires=(
                    Requirement(id="cpu.arch.x86_64"),
                    Requirement(
                        id="accel.cuda",
                        where=(
                            Predicate("memory_bytes", Op.GTE, 8_000_000_000),
                            Predicate("model", Op.IN, ("a100", "h100")),
                            Predicate("shared", Op.EQ, False),
                        ),
                        count=2,
                        exclusive=True,
                        min_provenance=Provenance.PROBED,
                    ),
                ),
                files=("bin/web", "assets/"),
            ),
            PackageVariant(
                name="any",
                execution=Execution.EMULATED,
                command=("./bin/web.py",),
                files=("bin/web.py",),
            ),
        ),
        resources=Resources(
            cpu_cores=0.5,
            memory_bytes=256 * 2**20,
            accel_memory_bytes=2**30,
            disk_bytes=10**9,
            pids=512,
        ),
        health=Health(
            HealthKind.HTTP,
            "http://127.0.0.1:$PORT/healthz",
            interval_ms=5_000,
            timeout_ms=1_500,
            misses=2,
        ),
        restart=RestartPolicy(
            max_restarts=5, window_ms=300_000, backoff_base_ms=500, backoff_max_ms=60_000
        ),
        policy=WorkloadPolicy(
            min_trust=Tier.TRUSTED,
            min_provenance=Provenance.MEASURED,
            labels=("web",),
            excludes=("web", "batch"),
            latency_class=LatencyClass.INTERACTIVE,
            perf=PerfTarget("perf.cpu.single", 1200.0),
            preferences=(Preference(Requirement(id="store.nvme"), 2.5),),
            sticky=True,
        ),
        lifecycle=LifecyclePolicy(
            stop_signal="QUIT",
            stop_grace_ms=20_000,
            migratable=False,
            max_reschedules=2,
            lease_ms=300_000,
            switch=("./bin/web", "--switch"),
            keep_ms=86_400_000,
        ),
        schedule=None,
    )


def test_what_is_not_written_has_its_documented_value() -> None:
    read = parse('kind = "service"\nname = "a"\nversion = "1"\n[run]\ncommand = ["true"]\n')

    assert read == Workload(
        kind=Kind.SERVICE,
        name="a",
        version="1",
        run=Run(command=("true",)),
        ports=(),
        keep_data=False,
        common=(),
        variants=(PackageVariant("default"),),
        resources=Resources(),
        health=None,
        restart=RestartPolicy(max_restarts=3),
        policy=WorkloadPolicy(),
        lifecycle=LifecyclePolicy(),
        schedule=None,
    )


@pytest.mark.parametrize(
    ("kind", "max_restarts"),
    [
        pytest.param("service", 3, id="a service is started again three times"),
        pytest.param("job", 0, id="a job is not started again"),
        pytest.param("interval", 0, id="nor is an interval job"),
    ],
)
def test_restarts_default_by_kind(kind: str, max_restarts: int) -> None:
    schedule = '\n[schedule]\nevery = "6h"\n' if kind == "interval" else ""

    assert parse(with_line(f'kind = "{kind}"') + schedule).restart.max_restarts == max_restarts


@pytest.mark.parametrize(
    ("section", "schedule"),
    [
        pytest.param('every = "6h"', Schedule(every_ms=21_600_000), id="every so often"),
        pytest.param(
            'cron = "15 2 * * *"', Schedule(cron="15 2 * * *"), id="cron, UTC unless said"
        ),
        pytest.param(
            'cron = "*/5 8-18/2 1,15 * 1-5"\ntimezone = "Europe/Berlin"',
            Schedule(cron="*/5 8-18/2 1,15 * 1-5", timezone="Europe/Berlin"),
            id="cron in a timezone",
        ),
    ],
)
def test_an_interval_job_says_when_it_is_due(section: str, schedule: Schedule) -> None:
    assert parse(with_line('kind = "interval"') + f"[schedule]\n{section}\n").schedule == schedule


@pytest.mark.parametrize(
    ("section", "health"),
    [
        pytest.param('tcp = "$PORT"', Health(HealthKind.TCP, "$PORT"), id="a port"),
        pytest.param('tcp = "[::1]:80"', Health(HealthKind.TCP, "[::1]:80"), id="an address"),
        pytest.param('exec = "bin/check"', Health(HealthKind.EXEC, "bin/check"), id="a file"),
        pytest.param(
            'heartbeat = "beat"',
            Health(HealthKind.HEARTBEAT, "beat", max_age_ms=30_000),
            id="a heartbeat has a greatest age",
        ),
    ],
)
def test_health_is_asked_in_one_way(section: str, health: Health) -> None:
    text = MINIMAL + f'[ports]\nhttp = "auto"\n[health]\n{section}\n'

    assert parse(text).health == health
