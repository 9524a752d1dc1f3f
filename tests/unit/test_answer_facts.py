"""Reading a facts answer: one typed value, or an error that says what is wrong with it."""

import pytest

from wlctl.errors import GarbledAnswer
from wlctl.host.answer import Answer, parse
from wlctl.host.probe import cores, read, wall_ms
from wlctl.model.facts import Capability
from wlctl.model.generation import Containment

NONCE = "ef" * 16

LINES = {
    "node_id": "0" * 32,
    "machine_id": "1" * 32,
    "boot_id": "b-1",
    "uptime_ms": "1500",
    "wall": "1700000000.250",
    "state_dir": "/var/lib/wlctl",
    "uid": "0",
    "memory_total_kib": "2048",
    "memory_available_kib": "1024",
    "memory_ours_bytes": "4096",
    "load": "0.50",
    "cpus": "0-3",
    "disk_free_kib": "100",
    "listening": "0016 1F90 0016",
    "arch": "x86_64",
    "kernel": "6.1.0-18",
    "distribution": "debian",
    "distribution_version": "12",
    "runtime": "python 3.11.2",
    "instance": "i-2",
    "containment": "isolated",
    "cgroup_root": "/sys/fs/cgroup/wlctl",
    "cgroup_way": "cgroupfs",
}


def _answer(*more: str, **changes: str | None) -> Answer:
    lines = {**LINES, **changes}
    text = "".join(f"{key} {value}\n" for key, value in lines.items() if value is not None)
    raw = text + "".join(f"{line}\n" for line in more) + f"end {NONCE} ok\n"
    return parse(raw.encode(), NONCE)


def test_every_fact_is_read() -> None:
    found = read(_answer("instance i-1", "missing setpriv", "missing flock"))

    assert found.node_id == "0" * 32
    assert found.uptime_ms == 1500
    assert found.wall_ms == 1_700_000_000_250
    assert found.memory_total_bytes == 2048 * 1024
    assert found.memory_available_bytes == 1024 * 1024
    assert found.memory_ours_bytes == 4096
    assert found.disk_free_bytes == 100 * 1024
    assert found.cpu_cores == 4
    assert found.ports_listening == (22, 8080)
    assert found.containment is Containment.ISOLATED
    assert found.instances == ("i-1", "i-2")
    assert found.missing == ("flock", "setpriv")


def test_capabilities_come_of_it() -> None:
    have = {one.id: one for one in read(_answer("controllers cpu memory")).capabilities}

    assert have["cpu.arch.x86_64"] == Capability("cpu.arch.x86_64")
    assert have["cpu.cores"].attrs == {"count": 4}
    assert have["mem.system"].attrs == {"total_bytes": 2 << 20, "free_bytes": 1 << 20}
    assert have["os.linux"].attrs == {
        "kernel": "6.1.0-18",
        "distribution": "debian",
        "version": "12",
    }
    assert have["runtime.python"].attrs == {"version": "3.11.2"}
    assert have["node.cgroup"].attrs["controllers"] == ("cpu", "memory")
    assert list(have) == sorted(have)


def test_what_a_node_does_not_have_is_no_capability() -> None:
    found = read(_answer(cgroup_root="", distribution=None, distribution_version=None))

    have = {one.id: one for one in found.capabilities}
    assert "node.cgroup" not in have
    assert have["os.linux"].attrs == {"kernel": "6.1.0-18"}


def test_a_runtime_that_does_not_say_its_version_has_none() -> None:
    have = {one.id: one for one in read(_answer(runtime="node")).capabilities}

    assert have["runtime.node"].attrs == {}


@pytest.mark.parametrize(
    "changes",
    [
        *(
            pytest.param({key: None}, id=f"no {key}")
            for key in LINES
            if key not in {"uid", "distribution", "distribution_version", "runtime", "instance"}
            and key not in {"listening", "cgroup_way"}
        ),
        pytest.param({"uptime_ms": "-1"}, id="a negative uptime"),
        pytest.param({"uptime_ms": "1e9"}, id="an uptime that is no number"),
        pytest.param({"load": "high"}, id="a load that is no number"),
        pytest.param({"wall": "yesterday"}, id="a clock that is no number"),
        pytest.param({"cpus": "many"}, id="processors that are no list"),
        pytest.param({"cpus": "3-0"}, id="processors that run backwards"),
        pytest.param({"listening": "zz"}, id="a port that is no number"),
        pytest.param({"listening": "10000"}, id="a port that cannot be"),
        pytest.param({"listening": "-1"}, id="a negative port"),
        pytest.param({"containment": "perfect"}, id="an unknown containment"),
        pytest.param({"arch": "a.b"}, id="an architecture with a dot"),
        pytest.param({"arch": ""}, id="an empty architecture"),
        pytest.param({"runtime": "a/b 1"}, id="a runtime with a slash"),
        pytest.param({"node_id": "a b"}, id="two node ids"),
    ],
)
def test_what_is_missing_or_wrong_is_an_error(changes: dict[str, str | None]) -> None:
    with pytest.raises(GarbledAnswer):
        read(_answer(**changes))


@pytest.mark.parametrize(
    ("text", "count"),
    [("0", 1), ("0-3", 4), ("0-1,4-7", 6), ("0,2,4", 3), ("0-127", 128)],
)
def test_processors_are_counted(text: str, count: int) -> None:
    assert cores(text) == count


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        pytest.param("5.123456789", 5123, id="nanoseconds"),
        pytest.param("5.1", 5100, id="tenths"),
        pytest.param("5.N", 5500, id="a date that knows no fraction"),
        pytest.param("5", 5500, id="whole seconds"),
    ],
)
def test_the_node_s_clock_is_read(text: str, moment: int) -> None:
    assert wall_ms(text) == moment


@pytest.mark.parametrize(
    ("wall", "skew"),
    [
        pytest.param("1700000003.000", 3000, id="fast"),
        pytest.param("1699999999.000", -1000, id="slow"),
        pytest.param("1700000000.000", 0, id="right"),
    ],
)
def test_its_skew_is_against_the_controller_s(wall: str, skew: int) -> None:
    facts = read(_answer(wall=wall)).as_facts(seq=3, probed_at_ms=1_700_000_000_000)

    assert facts.clock_skew_ms == skew
    assert (facts.seq, facts.load) == (3, 0.125)


def test_the_load_is_a_share_and_never_more_than_all() -> None:
    facts = read(_answer(load="9.00")).as_facts(seq=1, probed_at_ms=0)

    assert facts.load == 1.0
