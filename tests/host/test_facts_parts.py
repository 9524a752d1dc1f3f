"""The parts of a probe asked alone, under every shell: hardware, disks, and programs of a node."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.host.test_script import PARTS, SHELLS
from wlctl.host.answer import Answer, parse
from wlctl.host.probe import read
from wlctl.model.generation import Containment

NONCE = "ab" * 16

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

each_shell = pytest.mark.parametrize("shell", SHELLS, ids=lambda argv: argv[0])


def ask(
    shell: tuple[str, ...], text: str, tmp_path: Path, *, path: str = PATH
) -> tuple[Answer, float]:
    """Run a few lines with every part of a probe at hand; give the answer and how long it took."""
    state = tmp_path / "state"
    state.mkdir(exist_ok=True)
    prelude = (PARTS / "prelude.sh").read_text("ascii")
    start = prelude[: prelude.index("request() {")]
    start = "\n".join(line for line in start.splitlines() if not line.startswith("PATH="))
    rest = prelude[prelude.index("uptime() {") :]
    parts = ("codec", "state", "tools", "ask", "runtimes", "hardware", "storage", "macos")
    program = "\n".join(
        [
            f"{start}\nPATH={path} LC_ALL=C S={state}\n{rest}",
            *((PARTS / f"{part}.sh").read_text("ascii") for part in parts),
            f"boot_id\n{text}\nfinish ok",
        ]
    )
    began_s = time.monotonic()
    done = subprocess.run(
        [*shell, "-s", NONCE], input=program, capture_output=True, text=True, check=True, cwd="/"
    )
    took_s = time.monotonic() - began_s
    assert list(state.glob("said.*")) == [], "what was said is forgotten"
    return parse(done.stdout.encode(), NONCE), took_s


def said(answer: Answer, key: str) -> list[dict[str, str]]:
    """Give the lines of a key: their first field as `kind`, and what they name."""
    return [{"kind": line.fields[0], **line.named} for line in answer.all(key)]


def write(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8", errors="surrogateescape")


@each_shell
def test_devices_are_read_from_the_kernel_s_files(shell: tuple[str, ...], tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "sys/class/video4linux/video0/index": "0\n",
            "sys/class/video4linux/video0/name": "USB 2.0 Camera: (HD) 100%\n",
            "sys/class/video4linux/video1/index": "1\n",
            "sys/class/video4linux/video1/name": "its metadata\n",
            "sys/class/tty/ttyS0/type": "4\n",
            "sys/class/tty/ttyS1/type": "0\n",
            "sys/bus/usb/devices/usb1/idVendor": "1d6b\n",
            "sys/bus/usb/devices/usb1/bDeviceClass": "09\n",
            "sys/bus/usb/devices/1-1/idVendor": "046d\n",
            "sys/bus/usb/devices/1-1/idProduct": "0825\n",
            "sys/bus/usb/devices/1-1/bDeviceClass": "00\n",
            "sys/bus/usb/devices/1-1/serial": "\x1b[31mred\u202e\udcff\n",
            "usb/idVendor": "0403\n",
            "usb/serial": "A5XK3RJT",
            "dev/kvm": "",
        },
    )
    for name in ("ttyS0", "ttyS1"):
        (tmp_path / f"sys/class/tty/{name}/device").mkdir()
    port = tmp_path / "usb/1-1:1.0/ttyUSB0"
    port.mkdir(parents=True)
    (tmp_path / "sys/class/tty/ttyUSB0").mkdir()
    (tmp_path / "sys/class/tty/ttyUSB0/device").symlink_to(port)

    answer, _ = ask(shell, f"sys={tmp_path}/sys dev={tmp_path}/dev\ndevices", tmp_path)

    found = {one["path"].rpartition("/")[2]: one for one in said(answer, "device")}
    assert set(found) == {"video0", "ttyS0", "ttyUSB0", "1-1", "kvm"}
    assert found["video0"]["name"] == "USB 2.0 Camera: (HD) 100%"
    assert found["ttyUSB0"]["vendor"] == "0403"
    assert found["ttyUSB0"]["serial"] == "A5XK3RJT", "a last line without its end is one"
    assert found["1-1"]["serial"] == "\x1b[31mred\u202e\ufffd", "text as it is, escaped when shown"


@each_shell
def test_accelerators_are_read_from_the_kernel_s_files(
    shell: tuple[str, ...], tmp_path: Path
) -> None:
    card = "sys/class/drm/renderD128/device"
    write(
        tmp_path,
        {
            f"{card}/vendor": "0x1002\n",
            f"{card}/device": "0x740f\n",
            f"{card}/mem_info_vram_total": "68702699520\n",
            f"{card}/mem_info_vram_used": "11026432\n",
            f"{card}/unique_id": "f4a1e8c9\n",
            "sys/class/accel/accel0/device/vendor": "0x8086\n",
            "dev/kfd": "",
            "dev/apex_0": "",
            "dev/hailo0": "",
        },
    )

    answer, _ = ask(shell, f"sys={tmp_path}/sys dev={tmp_path}/dev\naccelerators", tmp_path)

    found = {one["kind"]: one for one in said(answer, "accel")}
    assert set(found) == {"dri", "npu", "edgetpu", "hailo"}
    assert found["dri"]["vram_total"] == "68702699520"
    assert found["dri"]["kfd"] == "yes"


@each_shell
def test_a_machine_with_more_than_enough_devices_tells_of_enough(
    shell: tuple[str, ...], tmp_path: Path
) -> None:
    write(tmp_path, {f"sys/bus/usb/devices/1-{number}/idVendor": "1234\n" for number in range(140)})

    answer, _ = ask(shell, f"sys={tmp_path}/sys dev={tmp_path}/dev\ndevices", tmp_path)

    assert len(said(answer, "device")) == 128


def programs(tmp_path: Path, scripts: dict[str, str]) -> str:
    """Put programs before all others, and return the search path."""
    directory = tmp_path / "bin"
    directory.mkdir(exist_ok=True)
    for name, text in scripts.items():
        file = directory / name
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
    return f"{directory}:{PATH}"


# In the form that its manual shows: nvidia-smi cannot be had here.
NVIDIA_SMI = """cat <<'END'
0, GPU-5a1f0f2e-7d6c-4c53-8c3e-0b8f6c1d2e3f, NVIDIA A100-SXM4-40GB, 40960, 40330, 535.129.03, 8.0
1, GPU-6b2f0f2e-7d6c-4c53-8c3e-0b8f6c1d2e3f, NVIDIA A100-SXM4-40GB, 40960, 40330, 535.129.03, 8.0
END"""


@each_shell
@pytest.mark.parametrize(
    ("program", "cards", "silent"),
    [
        pytest.param(NVIDIA_SMI, 2, False, id="answers"),
        pytest.param("echo No devices were found; exit 6", 0, True, id="finds none"),
        pytest.param("exec sleep 1000", 0, True, id="hangs"),
        pytest.param("yes 0,flood", 0, True, id="floods"),
    ],
)
def test_nvidia_smi_cannot_hold_up_a_probe(
    shell: tuple[str, ...], program: str, cards: int, silent: bool, tmp_path: Path
) -> None:
    write(tmp_path, {"dev/nvidiactl": ""})
    path = programs(tmp_path, {"nvidia-smi": program})

    answer, took_s = ask(
        shell, f"sys={tmp_path}/sys dev={tmp_path}/dev\naccelerators", tmp_path, path=path
    )

    lines = said(answer, "accel")
    assert len([one for one in lines if "row" in one]) == cards
    assert ({"kind": "nvidia", "silent": "yes"} in lines) == silent
    assert took_s < 8


HOSTILE = {
    "node": "exec sleep 1000",
    "java": "yes 'openjdk version \"17.0.1\"'",
    "ruby": "(trap '' TERM HUP; exec sleep 29.817) & echo 'ruby 3.1.2p20'",
    "perl": "echo; echo; echo 'This is perl 5, version 36, subversion 0 (v5.36.0) built for x'",
    "php": "printf '1.%04000d' 1",
    "go": "printf '\\033[31mgo\\0 \\377 x'",
    "deno": "exit 1",
    "dotnet": "echo 'Microsoft.NETCore.App 8.0.1 [/usr/share/dotnet]'",
}


@each_shell
def test_no_runtime_can_hold_up_a_probe_or_say_what_is_no_version(
    shell: tuple[str, ...], tmp_path: Path
) -> None:
    path = programs(tmp_path, HOSTILE)

    answer, took_s = ask(shell, "runtimes", tmp_path, path=path)

    versions = {line.fields[0]: line.fields[1] for line in answer.all("runtime")}
    assert took_s < 9, "they are asked side by side"
    assert versions["ruby"] == "3.1.2", "though its child keeps its output open"
    assert versions["perl"] == "5.36.0"
    assert versions["java"] == "17.0.1", "what came before it flooded"
    assert versions["dotnet"] == "8.0.1"
    none = {name for name, version in versions.items() if version.startswith("path=")}
    assert none >= {"node", "php", "go", "deno"}
    for orphan in _children_of("sleep 29.817"):
        os.kill(orphan, 9)


def _children_of(command: str) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().replace(b"\0", b" ").decode().strip()
        except OSError:
            continue
        if words == command and entry.parent.stat().st_uid == os.getuid():
            found.append(int(entry.parent.name))
    return found


@each_shell
def test_a_runtime_is_asked_again_only_when_it_is_another_one(
    shell: tuple[str, ...], tmp_path: Path
) -> None:
    counting = f'echo asked >>{tmp_path}/asked; echo "ruby 3.1.{{}}"'
    path = programs(tmp_path, {"ruby": counting.format(1)})
    asked = tmp_path / "asked"

    def version() -> str:
        answer, _ = ask(shell, "runtimes", tmp_path, path=path)
        return next(line.fields[1] for line in answer.all("runtime") if line.fields[0] == "ruby")

    assert [version(), version()] == ["3.1.1", "3.1.1"]
    assert asked.read_text() == "asked\n"
    programs(tmp_path, {"ruby": counting.format(22)})
    assert version() == "3.1.22"
    torn = tmp_path / "state/runtimes"
    torn.write_bytes(torn.read_bytes()[:-10])
    assert version() == "3.1.22", "and when what is remembered was torn"


@each_shell
def test_what_did_not_answer_is_asked_again_in_an_hour(
    shell: tuple[str, ...], tmp_path: Path
) -> None:
    path = programs(tmp_path, {"ruby": "exit 1"})
    ask(shell, "runtimes", tmp_path, path=path)

    remembered = (tmp_path / "state/runtimes").read_text()

    uptime_ms = float(Path("/proc/uptime").read_text().split()[0]) * 1000
    until_ms = int(remembered.splitlines()[0].rpartition(" ")[2])
    assert uptime_ms + 3_500_000 < until_ms <= uptime_ms + 3_600_000


MOUNTS = """\
1 0 8:1 / {a} rw - ext4 /dev/a rw
2 1 0:5 / {b} rw - nfs4 nas:/x rw
3 1 8:1 /sub {b} rw - ext4 /dev/a rw
4 1 8:2 / /mnt/with\\040space rw - xfs /dev/b rw
5 1 8:3 / /boot/efi rw - vfat /dev/c rw
6 1 8:4 / /etc/hosts rw - ext4 /dev/d rw
7 1 0:9 / /run rw - tmpfs tmpfs rw
"""


@each_shell
def test_room_is_asked_of_each_disk_of_the_machine_once(
    shell: tuple[str, ...], tmp_path: Path
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.mkdir()
    b.mkdir()
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTS.format(a=a, b=b), encoding="ascii")

    answer, _ = ask(shell, f"mounts {table}\nstorage", tmp_path)

    (store,) = said(answer, "store")
    disk = os.statvfs(a)
    assert store["path"] == str(a)
    assert store["type"] == "ext4"
    assert int(store["total_kib"]) == disk.f_blocks * disk.f_frsize // 1024
    assert answer.number("disk_total_kib") == int(store["total_kib"])
    assert answer.number("disk_free_kib") > 0


@each_shell
@pytest.mark.parametrize(
    ("text", "read"),
    [
        pytest.param("plain-1.2_3~/:=,@+", "plain-1.2_3~/:=,@+", id="plain"),
        pytest.param("a b(c)[d]#&'", "a b(c)[d]#&'", id="what is printable"),
        pytest.param('a "b" $(c) `d` \\e *', 'a "b" $(c) `d` \\e *', id="what a shell reads"),
        pytest.param("é\u202e☃", "é\u202e☃", id="what is not ASCII"),
        pytest.param("x" * 121, "x" * 120, id="too long"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_a_word_travels_as_it_is_and_bounded(
    shell: tuple[str, ...], text: str, read: str, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text(f"{text}\n", encoding="utf-8")

    answer, _ = ask(shell, f'first {tmp_path}/text\nword "$v"\nanswer said "$e"', tmp_path)

    assert answer.text("said") == read


# In the form that the manuals of macOS and its source show: none of these programs can be had here.
MACOS = {
    "sysctl": """case $2 in
kern.uuid) echo 6B29FC40-CA47-1067-B31D-00DD010662DA ;;
kern.bootsessionuuid) echo 0E984725-C51C-4BF4-9960-E1C80E27ABA0 ;;
kern.boottime) echo '{ sec = 1700000000, usec = 123456 } Tue Nov 14 22:13:20 2023' ;;
hw.memsize) echo 17179869184 ;;
hw.logicalcpu) echo 8 ;;
vm.loadavg) echo '{ 1.23 1.05 0.98 }' ;;
esac""",
    "sw_vers": "echo 14.5",
    "uname": "case $1 in -m) echo arm64 ;; -r) echo 23.5.0 ;; esac",
    "uuidgen": "echo 4B7C0A35-5C5D-4F7B-9E27-1A2B3C4D5E6F",
    "date": "echo 1700003600",
    "vm_stat": """cat <<'END'
Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                               10000.
Pages active:                            250000.
Pages inactive:                           20000.
Pages speculative:                         1000.
Pages throttled:                              0.
Pages wired down:                        110000.
Pages purgeable:                           1000.
END""",
    "netstat": """cat <<'END'
Active Internet connections (including servers)
Proto Recv-Q Send-Q  Local Address          Foreign Address        (state)
tcp4       0      0  *.22                   *.*                    LISTEN
tcp6       0      0  *.22                   *.*                    LISTEN
tcp4       0      0  127.0.0.1.8080         *.*                    LISTEN
tcp4       0      0  10.0.0.2.51234         1.2.3.4.443            ESTABLISHED
END""",
}


@each_shell
def test_a_mac_tells_what_it_is(shell: tuple[str, ...], tmp_path: Path) -> None:
    path = programs(tmp_path, MACOS)
    text = f"installation=it WLCTL_NODE_STATE={tmp_path}/mac\nmacos"

    first, _ = ask(shell, text, tmp_path, path=path)
    facts = read(first)
    again, _ = ask(shell, text, tmp_path, path=path)

    assert facts.node_id == "4b7c0a355c5d4f7b9e271a2b3c4d5e6f" == again.text("node_id")
    assert facts.machine_id == "6B29FC40-CA47-1067-B31D-00DD010662DA"
    assert (facts.uptime_ms, facts.wall_ms) == (3_600_000, 1_700_003_600_500)
    assert facts.memory_total_bytes == 16 << 30
    assert facts.memory_available_bytes == 32_000 * 16384
    assert (facts.cpu_cores, facts.load_average) == (8, 1.23)
    assert facts.ports_listening == (22, 8080)
    assert facts.containment is Containment.LEADER_ONLY
    have = {one.id: one for one in facts.capabilities}
    assert {"cpu.arch.aarch64", "mem.unified", "os.macos"} <= have.keys()
    assert have["os.macos"].attrs == {
        "kernel": "23.5.0",
        "distribution": "macos",
        "version": "14.5",
    }
