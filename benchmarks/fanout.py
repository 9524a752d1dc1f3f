"""Cold facts from 100 nodes: wlctl against ssh by xargs, pyinfra and ansible, in turn, medians.

Every node is a real sshd in namespaces and a cgroup of its own. The floor is the CPU time that the
nodes themselves spend in the run, divided by the cores: no client can be faster than its servers.
All run the very script that wlctl runs; wlctl also records what it says in its ledger.

Run as root: `python benchmarks/fanout.py [--nodes N] [--rounds N]`. Exits 1 when a goal is missed.
"""

import argparse
import base64
import compileall
import contextlib
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.host.nodes import SshdNode, cgroup2, sshd_nodes  # noqa: E402 - the tests' nodes
from wlctl.config import Settings  # noqa: E402
from wlctl.flows import nodes as flow  # noqa: E402
from wlctl.flows.runtime import build  # noqa: E402
from wlctl.host import script  # noqa: E402
from wlctl.model.node import Tier  # noqa: E402

FLOOR_GOAL = 1.3
RIVALS = ("pyinfra", "ansible-core")
NONCE = "ab" * 16
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
SAMPLE_S = 0.1
SSH_OPTIONS = (
    *("-F", "none", "-o", "KexAlgorithms=curve25519-sha256", "-o", "BatchMode=yes"),
    *("-o", "StrictHostKeyChecking=yes", "-o", "IdentitiesOnly=yes", "-o", "LogLevel=ERROR"),
)


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of one tool took."""

    wall_s: float
    client_s: float
    servers_s: float
    memory_bytes: int

    @property
    def floor_s(self) -> float:
        """How long the servers alone needed, all cores at work."""
        return self.servers_s / (os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class Tool:
    """A program, and how it is run."""

    name: str
    argv: Sequence[str]
    env: dict[str, str]
    stdin: bytes = b""


def cpu_s(cgroup: Path) -> float:
    """Return the CPU time that a cgroup has used: counted without any controller."""
    for line in (cgroup / "cpu.stat").read_text("ascii").splitlines():
        if line.startswith("usage_usec "):
            return int(line.split()[1]) / 1e6
    raise AssertionError(f"{cgroup} counts no CPU time")


def resident_bytes(cgroup: Path) -> int:
    """Return what the processes of a cgroup have in memory together."""
    total = 0
    for pid in (cgroup / "cgroup.procs").read_text("ascii").split():
        with contextlib.suppress(OSError):
            total += int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * PAGE_BYTES
    return total


@contextlib.contextmanager
def client_cgroup() -> Iterator[Path]:
    """A cgroup for one client and all it starts."""
    path = cgroup2() / f"wlctl-bench-{os.getpid()}"
    path.mkdir()
    try:
        yield path
    finally:
        (path / "cgroup.kill").write_text("1", encoding="ascii")
        while (path / "cgroup.procs").read_text("ascii"):
            time.sleep(0.01)
        path.rmdir()


def run(tool: Tool, nodes: Sequence[SshdNode], log: Path) -> Run:
    """Run a tool once, cold."""
    with client_cgroup() as cgroup:
        before_s = sum(cpu_s(node.cgroup) for node in nodes)
        peaks = [0]
        over = threading.Event()

        def watch() -> None:
            while not over.wait(SAMPLE_S):
                peaks.append(resident_bytes(cgroup))

        watcher = threading.Thread(target=watch)
        watcher.start()
        join = ["sh", "-c", 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"', "sh", str(cgroup)]
        started_s = time.perf_counter()
        with log.open("wb") as out:
            done = subprocess.run(
                [*join, *tool.argv],
                input=tool.stdin,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=tool.env,
                check=False,
            )
        wall_s = time.perf_counter() - started_s
        over.set()
        watcher.join()
        client_s = cpu_s(cgroup)
        if done.returncode:
            sys.exit(f"{tool.name} failed ({done.returncode}):\n{log.read_text('utf-8')[-2000:]}")
        servers_s = sum(cpu_s(node.cgroup) for node in nodes) - before_s
        return Run(wall_s, client_s, servers_s, max(peaks))


def wlctl_tool(directory: Path, nodes: Sequence[SshdNode]) -> Tool:
    """Make an installation that has all nodes, by its own flows; the probe is what is measured."""
    program = Path(sys.executable).with_name("wlctl")
    compileall.compile_dir(ROOT / "wlctl", quiet=1)  # as an installation does
    db = directory / "home/ledger.db"
    db.parent.mkdir(mode=0o700)
    subprocess.run([program, "--db", db, "init"], check=True, stdout=subprocess.DEVNULL)
    key = directory / "home/keys/ssh_ed25519"
    for suffix in ("", ".pub"):
        data = Path(f"{nodes[0].client_key}{suffix}").read_bytes()
        Path(f"{key}{suffix}").write_bytes(data)
    rt = build(Settings(db=str(db)), command="fanout", message="")
    names = [f"n{number:03}" for number in range(1, len(nodes) + 1)]
    for name, node in zip(names, nodes, strict=True):
        flow.add(rt, name, node.address, Tier.PAIRED, accept_key=lambda _: None)
    rt.ledger.close()
    argv = [str(program), "--db", str(db), "node", "probe", *names]
    return Tool("wlctl", argv, dict(os.environ))


def facts_command() -> str:
    """Write what wlctl runs, and what it sends it, as one line without a quote or a brace."""
    params = "installation bench\n"
    request = f"{len(params):015} {0:015}\n{params}"
    text = script.text("facts").decode()
    whole = f"printf %s {shlex.quote(request)} | sh -c {shlex.quote(text)} sh {NONCE}"
    return f"echo {base64.b64encode(whole.encode()).decode()} | base64 -d | sh"


def ssh_tool(directory: Path, nodes: Sequence[SshdNode]) -> Tool:
    """ssh, 32 at once."""
    command = directory / "command"
    command.write_text(facts_command(), encoding="utf-8")
    one = directory / "one"
    options = " ".join((*SSH_OPTIONS, "-o", f"UserKnownHostsFile={directory}/known_hosts"))
    connect = f'exec ssh {options} -i {nodes[0].client_key} -p "$2" root@"$1"'
    one.write_text(f'#!/bin/sh\n{connect} "$(cat {command})"\n', encoding="utf-8")
    one.chmod(0o755)
    hosts = "".join(f"{node.address.host} {node.address.port}\n" for node in nodes)
    argv = ["xargs", "-P32", "-L1", str(one)]
    return Tool("ssh -P32", argv, dict(os.environ), hosts.encode())


def known_hosts(directory: Path, nodes: Sequence[SshdNode]) -> None:
    """Write the nodes' keys, so that no rival has to ask."""
    lines = [f"[{n.address.host}]:{n.address.port} {n.address.host_key}\n" for n in nodes]
    (directory / "known_hosts").write_text("".join(lines), encoding="ascii")


def pyinfra_tool(directory: Path, nodes: Sequence[SshdNode], programs: Path) -> Tool:
    """pyinfra, with its own default of parallel hosts."""
    inventory = directory / "inventory.py"
    common = {
        "ssh_user": "root",
        "ssh_key": str(nodes[0].client_key),
        "ssh_known_hosts_file": str(directory / "known_hosts"),
    }
    hosts = [(node.address.host, {**common, "ssh_port": node.address.port}) for node in nodes]
    inventory.write_text(f"nodes = {hosts!r}\n", encoding="utf-8")
    argv = [str(programs / "pyinfra"), "-y", str(inventory), "exec", "--", facts_command()]
    return Tool("pyinfra", argv, dict(os.environ, HOME=str(directory)))


def ansible_tool(directory: Path, nodes: Sequence[SshdNode], programs: Path) -> Tool:
    """ansible, 32 at once, its raw module: no Python on the nodes, no facts of its own."""
    inventory = directory / "inventory.ini"
    lines = [
        f"n{number} ansible_host={node.address.host} ansible_port={node.address.port}\n"
        for number, node in enumerate(nodes)
    ]
    inventory.write_text("".join(lines), encoding="utf-8")
    options = shlex.join([*SSH_OPTIONS, "-o", f"UserKnownHostsFile={directory}/known_hosts"])
    argv = [
        *(str(programs / "ansible"), "all", "-i", str(inventory), "-f", "32", "-u", "root"),
        *("--private-key", str(nodes[0].client_key), "--ssh-common-args", options),
        *("-m", "raw", "-a", facts_command()),
    ]
    env = dict(os.environ, HOME=str(directory), ANSIBLE_SSH_ARGS="-o ControlMaster=no")
    return Tool("ansible raw", argv, env)


def install_rivals(directory: Path) -> Path:
    """Install the rivals beside nothing of ours; fails when they cannot be had."""
    venv = directory / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    pip = [str(venv / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", *RIVALS]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' and '.join(RIVALS)} cannot be installed:\n{done.stderr[-2000:]}")
    return venv / "bin"


def report(taken: dict[str, list[Run]]) -> bool:
    """Print medians and ratios; say whether every goal is met."""
    wall = {name: statistics.median(one.wall_s for one in runs) for name, runs in taken.items()}
    print(f"{'':<12} {'wall s':>7} {'client CPU s':>13} {'servers CPU s':>14} {'memory MB':>10}")
    for name, runs in taken.items():
        client_s = statistics.median(one.client_s for one in runs)
        servers_s = statistics.median(one.servers_s for one in runs)
        memory = statistics.median(one.memory_bytes for one in runs) / 1e6
        print(f"{name:<12} {wall[name]:7.2f} {client_s:13.2f} {servers_s:14.2f} {memory:10.0f}")
    ratio = statistics.median(one.wall_s / one.floor_s for one in taken["wlctl"])
    work = statistics.median(1 + one.client_s / one.servers_s for one in taken["wlctl"])
    print(f"\nwlctl / floor of its own run   {ratio:.2f} (goal {FLOOR_GOAL})")
    print(f"all CPU time / the nodes'      {work:.2f}: what that can come down to, cores all busy")
    met = ratio <= FLOOR_GOAL
    for name in taken:
        if name != "wlctl":
            against = wall["wlctl"] / wall[name]
            print(f"{f'wlctl / {name}':<30} {against:.2f} (goal below 1)")
            met = met and against < 1
    return met


def main() -> int:
    """Measure, print, and compare with the goals."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--nodes", type=int, default=100)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument(
        "--only", default="", metavar="TOOL,…", help="these alone; rivals are not installed"
    )
    given = arguments.parse_args()
    only = set(filter(None, given.only.split(",")))
    if os.getloadavg()[0] > 0.5:
        print(f"this machine is busy (load {os.getloadavg()[0]:.1f}): take ratios, not times")
    with tempfile.TemporaryDirectory(prefix="wlctl-fanout-", dir="/var/tmp") as made:
        directory = Path(made)
        programs = Path() if only else install_rivals(directory)
        with sshd_nodes(given.nodes) as nodes:
            known_hosts(directory, nodes)
            tools = [
                wlctl_tool(directory, nodes),
                ssh_tool(directory, nodes),
                pyinfra_tool(directory, nodes, programs),
                ansible_tool(directory, nodes, programs),
            ]
            taken: dict[str, list[Run]] = {}
            for turn in range(given.rounds + 1):
                for tool in tools:
                    if not only or tool.name in only:
                        one = run(tool, nodes, directory / "log")
                        if turn:  # the first round only warms the caches
                            taken.setdefault(tool.name, []).append(one)
    return 0 if report(taken) else 1


if __name__ == "__main__":
    sys.exit(main())
