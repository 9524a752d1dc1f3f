"""What a probe sees of real nodes, and nodes that are not what they should be."""

import fcntl
import shutil
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.host.bench import INSTALLATION, Bench, nonce, python, running, script
from tests.host.nodes import SUDOERS, sshd_nodes
from wlctl.errors import SudoRefused
from wlctl.host import script as texts
from wlctl.host.node import connect
from wlctl.lifecycle.proof import judge
from wlctl.model.actions import Launched, NodeFacts, RefusalCode, Refused
from wlctl.model.generation import Containment, Liveliness, Proven
from wlctl.model.node import Address, TransportKind

ONE = [("dash", "root")]
SHELLS = [("dash",), ("bash",), ("busybox", "ash")]

SLEEP = script("exec sleep 1000")

HEADLESS_DAEMON = python(
    "if os.fork() == 0:\n    daemon(); ignore_all(); lose_main_thread()\n"
    "print('up', flush=True); time.sleep(1000)"
)
"""Its daemon's main thread has ended: `cgroup.kill` does not reach it, and there is no init."""


def test_a_node_tells_what_it_is(bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        facts = bench.session.facts(INSTALLATION)
        port = server.getsockname()[1]

    assert isinstance(facts, NodeFacts)
    assert facts.missing == ()
    isolated = bench.node.address.user == "root" or bench.node.address.sudo
    assert facts.containment is (Containment.ISOLATED if isolated else Containment.CGROUP)
    assert facts.cgroup_root == "/sys/fs/cgroup/wlctl"
    assert {port, bench.node.address.port} <= set(facts.ports_listening)
    machine_id = (bench.node.directory / "machine-id").read_text("ascii").strip()
    assert facts.machine_id == machine_id
    assert 0 < facts.memory_available_bytes <= facts.memory_total_bytes
    assert facts.disk_free_bytes > 0
    have = {one.id: one for one in facts.capabilities}
    assert {"cpu.cores", "mem.system", "os.linux", "store.state", "node.cgroup"} <= have.keys()
    version = str(have["runtime.python"].attrs["version"])
    told = subprocess.check_output(["python3", "--version"], env={"PATH": "/usr/bin"}, text=True)
    assert told.split()[1] == version


@pytest.mark.kinds([("dash", "root"), ("bash", "sudo"), ("busybox", "plain")])
def test_what_was_missing_is_looked_for_again_and_what_was_there_is_not(bench: Bench) -> None:
    remembered = bench.node.state / "tools"
    found = remembered.read_text("ascii")
    assert found.endswith(" | - .\n")

    remembered.write_text(found.replace(" | - .", " | setpriv flock ."), encoding="ascii")
    facts = bench.session.facts(INSTALLATION)

    assert isinstance(facts, NodeFacts)
    assert facts.missing == ()
    assert remembered.read_text("ascii") == found
    key = found.partition(" | ")[0]
    remembered.write_text(f"{key} | leader-only sleep /bin/sh | - .\n", encoding="ascii")
    said = bench.session.facts(INSTALLATION)
    assert isinstance(said, NodeFacts)
    assert said.containment is Containment.LEADER_ONLY, "it is not asked for at each call"
    remembered.write_text(found, encoding="ascii")


@pytest.mark.kinds(ONE)
def test_a_node_that_is_at_work_lacks_nothing(bench: Bench) -> None:
    """Whether there is a lock is not tried on the one that others hold."""
    (bench.node.state / "tools").unlink()
    with (bench.node.state / "lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        facts = bench.session.facts(INSTALLATION)

    assert isinstance(facts, NodeFacts)
    assert facts.missing == ()


@pytest.mark.kinds(ONE)
def test_a_second_probe_sees_the_same_node_and_a_later_time(bench: Bench) -> None:
    first = bench.session.facts(INSTALLATION)
    second = bench.session.facts(INSTALLATION)

    assert isinstance(first, NodeFacts)
    assert isinstance(second, NodeFacts)
    assert (first.node_id, first.boot_id) == (second.node_id, second.boot_id)
    assert second.uptime_ms >= first.uptime_ms


@pytest.mark.kinds([("dash", "root"), ("bash", "sudo"), ("busybox", "plain")])
def test_its_instances_and_what_they_use_are_told(bench: Bench) -> None:
    ballast = script("exec python3 -c 'b = b\"x\" * 40_000_000; print(1, flush=True); input()' <&0")
    request = bench.run(script("exec sleep 1000"))
    bench.run(ballast)

    facts = bench.session.facts(INSTALLATION)
    others = bench.session.facts(INSTALLATION.__class__("another"))

    assert isinstance(facts, NodeFacts)
    assert isinstance(others, NodeFacts)
    assert request.instance in facts.instances
    assert others.instances == ()
    assert facts.memory_ours_bytes > 0
    assert others.memory_ours_bytes == 0, "to another installation it is used, and by others"


@pytest.mark.root
@pytest.mark.sshd
def test_another_boot_is_told_by_its_id_and_its_uptime() -> None:
    with sshd_nodes(1) as (node,):
        bench = Bench(node)
        before = bench.session.facts(INSTALLATION)
        node.reboot()
        bench.reconnect()
        after = bench.session.facts(INSTALLATION)
        bench.session.close()

    assert isinstance(before, NodeFacts)
    assert isinstance(after, NodeFacts)
    assert before.node_id == after.node_id
    assert before.boot_id != after.boot_id
    assert after.uptime_ms < before.uptime_ms


@pytest.mark.kinds(ONE)
def test_a_node_whose_state_is_suddenly_gone_is_another_node_and_proves_nothing(
    bench: Bench,
) -> None:
    request = bench.run(SLEEP)
    moved = bench.node.state.rename(bench.node.state.with_name("moved"))

    stop = bench.unload(request, 2)
    assert isinstance(stop, Refused)
    assert stop.code is RefusalCode.VERIFY
    facts = bench.session.facts(INSTALLATION)
    assert isinstance(facts, NodeFacts)
    assert facts.node_id != bench.facts.node_id
    (readings,) = bench.stop(request, 3).readings
    assert not readings.launched
    assert not isinstance(judge(readings), Proven), "its cgroup is still there"

    shutil.rmtree(bench.node.state)
    moved.rename(bench.node.state)


@pytest.mark.root
@pytest.mark.sshd
def test_sudo_that_asks_for_a_password_is_said_with_the_line_to_add() -> None:
    with sshd_nodes(1, login="sudo") as (node,):
        asking = SUDOERS.replace("NOPASSWD: ", "")
        (node.directory / "sudoers").write_text(asking, encoding="ascii")
        with (
            connect(node.address, keys=[node.client_key], nonce=nonce) as session,
            pytest.raises(SudoRefused) as caught,
        ):
            session.facts(INSTALLATION)

    assert "NOPASSWD" in str(caught.value.hint)


@pytest.mark.root
@pytest.mark.sshd
def test_a_login_that_may_make_no_cgroup_gets_nothing_placed() -> None:
    with sshd_nodes(1, login="plain", delegate=False) as (node,):
        bench = Bench(node)

        assert bench.facts.containment is Containment.LEADER_ONLY
        assert bench.facts.cgroup_root == ""
        assert bench.refused(bench.request(SLEEP)).code is RefusalCode.NO_CGROUP
        bench.session.close()


@pytest.mark.root
@pytest.mark.sshd
@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_a_login_that_may_have_no_namespaces_is_contained_by_cgroup_alone(shell: str) -> None:
    with sshd_nodes(1, shell=shell, login="plain", own_boot_id=True) as (node,):
        bench = Bench(node)
        request = bench.request(HEADLESS_DAEMON)
        bench.place(request)
        bench.await_log(request, "up")
        status = bench.status(request)
        assert status is not None

        (readings,) = bench.stop(request).readings

        assert readings.init is Liveliness.NONE
        assert readings.how == "stopped"
        assert isinstance(judge(readings), Proven)
        assert running(node) == []
        bench.clear()
        assert bench.left_over() == []
        bench.session.close()


@pytest.mark.root
@pytest.mark.sshd
@pytest.mark.parametrize("options", ["size=320k", "nr_inodes=64"])
def test_on_a_full_disk_nothing_new_starts_and_what_runs_can_be_ended(options: str) -> None:
    with sshd_nodes(1, state_options=options) as (node,):
        bench = Bench(node)
        request = bench.request(SLEEP)
        other = bench.request(script("exec sleep 2000"))
        bench.place(request)
        inside = Path(f"/proc/{node.pids()[0]}/root/var/lib/wlctl")
        _fill(inside)

        full = bench.session.place(other)
        unloaded = bench.unload(request, 2)

        assert isinstance(full, Refused), full
        assert full.code is RefusalCode.RESOURCES
        assert not isinstance(unloaded, Refused), unloaded
        assert unloaded.removed
        assert all(isinstance(judge(readings), Proven) for readings in unloaded.readings)
        assert not [text for text in node.commands().values() if "sleep" in text]
        for filler in inside.glob("filler*"):
            filler.unlink()
        again = bench.session.place(bench.request(script("exec sleep 2000")))
        assert isinstance(again, Launched), "and with room again it works again"
        bench.session.close()


def _fill(directory: Path) -> None:
    """Take all that is left of space and inodes."""
    try:
        with (directory / "filler").open("wb", buffering=0) as file:
            for _ in range(2000):
                file.write(b"x" * 512)
    except OSError:
        pass
    try:
        for number in range(200):
            (directory / f"filler{number}").touch()
    except OSError:
        pass


@pytest.mark.root
@pytest.mark.sshd
def test_a_state_directory_that_is_read_only_is_said() -> None:
    with sshd_nodes(1, state_options="ro") as (node,):
        bench = Bench(node)

        facts = bench.session.facts(INSTALLATION)

        assert isinstance(facts, Refused)
        assert facts.code is RefusalCode.RESOURCES
        bench.session.close()


MOUNTS = """\
1 0 0:1 / / rw - ext4 /dev/a rw
2 1 0:2 / /sys/fs/cgroup ro - tmpfs tmpfs ro
3 2 0:3 / /sys/fs/cgroup/unified rw,nosuid shared:7 - cgroup2 cgroup2 rw
4 1 0:4 / /var rw - xfs /dev/b rw
5 1 0:5 / /var/lib/wlctl rw shared:1 master:2 - nfs4 nas:/x rw
6 1 0:6 / /var/library rw - btrfs /dev/c rw
7 1 0:7 /sub /elsewhere rw - cgroup2 cgroup2 rw
"""


@pytest.mark.parametrize("shell", SHELLS, ids=lambda argv: argv[0])
@pytest.mark.parametrize(
    ("state", "kind"),
    [
        pytest.param("/var/lib/wlctl", "nfs4", id="on the mount"),
        pytest.param("/var/lib/wlctl/deep", "nfs4", id="below it"),
        pytest.param("/var/lib", "xfs", id="above it"),
        pytest.param("/var/library/x", "btrfs", id="beside a name that begins the same"),
        pytest.param("/home/x", "ext4", id="on the root"),
    ],
)
def test_the_file_system_of_the_state_is_found(
    shell: tuple[str, ...], state: str, kind: str, tmp_path: Path
) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTS, encoding="ascii")
    part = (Path(texts.__file__).parent / "actions/tools.sh").read_text("ascii")
    program = f'set -fu\nnl="\n"\nS={state}\n{part}\nmounts "{table}"\nrefuse() {{ echo "$1"; }}\n'
    program += 'echo "$cg2 $state_fs"; refuse_network_state'

    done = subprocess.run([*shell, "-c", program], capture_output=True, text=True, check=False)

    first, *refusal = done.stdout.splitlines()
    assert first == f"/sys/fs/cgroup/unified {kind}"
    assert refusal == (["resources"] if kind == "nfs4" else [])


@pytest.mark.parametrize("shell", SHELLS, ids=lambda argv: argv[0])
@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Python 3.11.2", "3.11.2"),
        ("v20.20.2", "20.20.2"),
        ("GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)", "5.2.15"),
        ("Docker version 28.2.2, build 1", "28.2.2"),
        ("openjdk 17.0.15 2025-04-15", "17.0.15"),
        ("podman version 4.3.1", "4.3.1"),
        ("no version here, 5 is none", ""),
        ("", ""),
    ],
)
def test_a_version_is_found_in_what_a_program_says(
    shell: tuple[str, ...], text: str, version: str
) -> None:
    part = (Path(texts.__file__).parent / "actions/runtimes.sh").read_text("ascii")
    function = part[part.index("version_in() {") :]
    program = f'set -fu\n{function}\nversion_in "$1"; echo "$v"'

    done = subprocess.run(
        [*shell, "-c", program, "sh", text], capture_output=True, text=True, check=False
    )

    assert done.stdout == f"{version}\n"


@pytest.mark.root
@pytest.mark.sshd
def test_of_many_first_contacts_at_once_each_sees_the_one_node(tmp_path: Path) -> None:
    def look(_number: int) -> NodeFacts | Refused:
        address = Address(TransportKind.LOCAL)
        with connect(address, keys=(), nonce=nonce) as session:
            return session.facts(INSTALLATION)

    for attempt in range(3):
        state = tmp_path / f"fresh-{attempt}"
        with (
            pytest.MonkeyPatch.context() as patch,
            ThreadPoolExecutor(max_workers=12) as pool,
        ):
            patch.setenv("WLCTL_NODE_STATE", str(state))
            found = list(pool.map(look, range(12)))

        assert [one for one in found if isinstance(one, Refused)] == []
        assert len({one.node_id for one in found if isinstance(one, NodeFacts)}) == 1
