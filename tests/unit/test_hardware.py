"""Reading accelerators, devices, disks and runtimes: recorded lines in, capabilities out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.test_answer_facts import _answer as answer
from wlctl.errors import GarbledAnswer
from wlctl.host.hardware import LINES_MAX, TEXT_MAX_CHARS
from wlctl.host.probe import read
from wlctl.model.facts import Capability, CapabilityState

# nvidia-smi --format=csv,noheader,nounits
# --query-gpu=index,uuid,name,memory.total,memory.free,driver_version,compute_cap
A100 = (
    "0,%20GPU-5a1f0f2e-7d6c-4c53-8c3e-0b8f6c1d2e3f,%20NVIDIA%20A100-SXM4-40GB,"
    "%2040960,%2040330,%20535.129.03,%208.0"
)
ORIN = "0,%20%5BN/A%5D,%20Orin%20(nvgpu),%20%5BN/A%5D,%20%5BN/A%5D,%20%5BN/A%5D,%20%5BN/A%5D"
ORIN = ORIN.replace("(", "%28").replace(")", "%29")
GIB = 1 << 30
MIB = 1 << 20


def have(*lines: str, **changes: str | None) -> dict[str, list[Capability]]:
    found: dict[str, list[Capability]] = {}
    for one in read(answer(*lines, **changes)).capabilities:
        found.setdefault(one.id, []).append(one)
    return found


def test_a_card_of_nvidia_is_an_accelerator_with_memory_of_its_own() -> None:
    found = have(f"accel nvidia row={A100}")

    (cuda,) = found["accel.cuda"]
    assert cuda.attrs == {
        "index": 0,
        "uuid": "GPU-5a1f0f2e-7d6c-4c53-8c3e-0b8f6c1d2e3f",
        "name": "NVIDIA A100-SXM4-40GB",
        "driver": "535.129.03",
        "compute": "8.0",
        "memory_bytes": 40 * GIB,
    }
    (vram,) = found["mem.vram"]
    assert (vram.attrs["total_bytes"], vram.attrs["free_bytes"]) == (40 * GIB, 40330 * MIB)
    assert "mem.unified" not in found


def test_a_card_that_shares_the_machine_s_memory_makes_it_one_pool() -> None:
    found = have(f"accel nvidia row={ORIN}")

    assert "memory_bytes" not in found["accel.cuda"][0].attrs
    assert "mem.vram" not in found
    assert found["mem.unified"][0].attrs == found["mem.system"][0].attrs


def test_a_card_whose_driver_does_not_answer_is_degraded() -> None:
    (cuda,) = have("accel nvidia silent=yes")["accel.cuda"]

    assert cuda.state is CapabilityState.DEGRADED


AMD = "accel dri path=/dev/dri/renderD128 vendor=0x1002 product=0x740f uuid=ab12"


@pytest.mark.parametrize(
    ("line", "rocm"),
    [
        pytest.param(f"{AMD} vram_total=68702699520 vram_used=10 kfd=yes", True, id="with compute"),
        pytest.param(f"{AMD} vram_total=68702699520 vram_used=10", False, id="without its driver"),
        pytest.param(f"{AMD} kfd=yes", False, id="without memory of its own"),
        pytest.param(
            AMD.replace("1002", "8086") + " vram_total=1 kfd=yes", False, id="of somebody else"
        ),
    ],
)
def test_a_card_of_amd_computes_when_all_of_it_is_there(line: str, rocm: bool) -> None:
    found = have(line)

    assert found["accel.dri"][0].attrs["path"] == "/dev/dri/renderD128"
    assert ("accel.rocm" in found, "mem.vram" in found) == (rocm, rocm)
    if rocm:
        assert found["mem.vram"][0].attrs == {
            "path": "/dev/dri/renderD128",
            "uuid": "ab12",
            "total_bytes": 68702699520,
            "free_bytes": 68702699510,
        }


def test_more_used_than_there_is_leaves_nothing_free() -> None:
    (vram,) = have(f"{AMD} vram_total=10 vram_used=11 kfd=yes")["mem.vram"]

    assert vram.attrs["free_bytes"] == 0


def test_devices_keep_what_tells_them_apart() -> None:
    found = have(
        "device video path=/dev/video0 name=USB%202.0%20Camera",
        "device serial path=/dev/ttyUSB0 vendor=0403 product=6001 serial=A5XK3RJT",
        "device usb path=/sys/bus/usb/devices/1-1 vendor=046d product=0825",
        "device kvm path=/dev/kvm",
        "device holodeck path=/dev/null",
    )

    assert found["device.video"][0].attrs == {"path": "/dev/video0", "name": "USB 2.0 Camera"}
    assert found["device.serial"][0].attrs["serial"] == "A5XK3RJT"
    assert found["device.usb"][0].attrs["vendor"] == "046d"
    exclusive = {id_ for id_, some in found.items() if any(one.exclusive for one in some)}
    assert exclusive == {"device.video", "device.serial"}
    assert "device.holodeck" not in found, "what is not known is not passed on"


def test_room_is_told_by_mount() -> None:
    found = have(
        "store path=/ type=ext4 total_kib=100 free_kib=40",
        "store path=/srv type=xfs total_kib=8 free_kib=8",
        disk_total_kib="100",
    )

    assert [one.attrs["path"] for one in found["store.mount"]] == ["/", "/srv"]
    assert found["store.mount"][0].attrs["free_bytes"] == 40 * 1024
    assert found["store.state"][0].attrs["total_bytes"] == 100 * 1024


def test_a_runtime_has_a_version_and_a_path_when_it_tells_them() -> None:
    found = have(
        "runtime qemu 7.2.22 path=/usr/bin/qemu-system-x86_64 arch=x86_64",
        "runtime go path=/usr/local/bin/go",
    )

    assert found["runtime.qemu"][0].attrs == {
        "version": "7.2.22",
        "path": "/usr/bin/qemu-system-x86_64",
        "arch": "x86_64",
    }
    assert found["runtime.go"][0].attrs == {"path": "/usr/local/bin/go"}


def test_a_machine_of_apple_s_has_unified_memory() -> None:
    found = have("os macos", arch="arm64", distribution="macos", distribution_version="14.5")

    assert "cpu.arch.aarch64" in found
    assert "mem.unified" in found
    assert "os.linux" not in found
    assert found["os.macos"][0].attrs["version"] == "14.5"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("device", id="a device of no kind"),
        pytest.param("device a.b path=/dev/x", id="a kind that cannot be part of an id"),
        pytest.param(f"device {'x' * 65} path=/dev/x", id="a kind without end"),
        pytest.param("accel nvidia row=1,2,3", id="a row that was cut"),
        pytest.param(f"accel nvidia row={A100.replace('0,', '-1,', 1)}", id="a negative index"),
        pytest.param(f"{AMD} vram_total=many kfd=yes", id="memory that is no number"),
        pytest.param("store path=/ type=ext4 total_kib=1", id="a disk without free space"),
        pytest.param("store path=/ type=ext4 total_kib=1 free_kib=-1", id="less than nothing free"),
        pytest.param("runtime", id="a runtime without a name"),
    ],
)
def test_a_line_that_is_none_is_an_error(line: str) -> None:
    with pytest.raises(GarbledAnswer):
        have(line)


@pytest.mark.parametrize(("count", "fine"), [(LINES_MAX, True), (LINES_MAX + 1, False)])
@pytest.mark.parametrize("line", ["device kvm path=/dev/kvm", "runtime go", "accel npu"])
def test_no_machine_has_more_than_so_many_of_anything(line: str, count: int, fine: bool) -> None:
    lines = [line] * (count - line.startswith("runtime"))  # the usual answer has one already
    if fine:
        have(*lines)
    else:
        with pytest.raises(GarbledAnswer):
            have(*lines)


encoded = st.binary(max_size=300).map(lambda raw: "".join(f"%{byte:02x}" for byte in raw))


@given(text=encoded, key=st.sampled_from(["path", "name", "serial", "vendor", "uuid"]))
def test_what_a_device_says_is_bounded_and_unicode_whatever_it_is(text: str, key: str) -> None:
    found = have(f"device usb {key}={text}", f"accel dri {key}={text}")

    for one in (*found["device.usb"], *found["accel.dri"]):
        for value in one.attrs.values():
            assert isinstance(value, str)
            assert len(value) <= TEXT_MAX_CHARS
            value.encode("utf-8")


@given(row=encoded)
def test_a_row_of_nvidia_smi_is_read_or_refused_and_nothing_else(row: str) -> None:
    try:
        found = have(f"accel nvidia row={row}")
    except GarbledAnswer:
        return
    assert "accel.cuda" in found
