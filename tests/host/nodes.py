"""Real nodes on one machine: an sshd each, in namespaces and a cgroup of its own.

Such a node has its own process ids, mounts, host name, cgroup v2 root, boot id, state directory and
`/run`, and shares only the network's loopback. What runs on it is seen from outside by its cgroup.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from wlctl.model.node import Address, TransportKind

SHELLS = ("dash", "bash", "busybox")
"""What `sh` can be on a node; on one with dash there is neither of the others."""

LOGINS = ("root", "sudo", "plain")

PLAIN_UID = 1234
PLAIN_USER = "worker"

PASSWORD = "sentinel pass-0rd ü"
PASSWORD_HASH = (
    "$6$wlctltest$sdik1/wvln16vv2ypGkh60tbJzA6MzNxpTdlJbURnF2C3EE2lUS"
    "/3Ec6WKbvmVcCG.lp8GSNYscamPc3JxY6U1"
)
"""`openssl passwd -6 -salt wlctltest PASSWORD`."""

DEADLINE_S = 20.0

SUDOERS = f"""
Defaults use_pty
{PLAIN_USER} ALL=(root) NOPASSWD: ALL
"""

_IN_USER_NAMESPACE = """
import ctypes, os, sys
made, pid = os.pipe(), os.getpid()
maps = os.fork()
if maps == 0:
    os.read(made[0], 1)
    for ids in ("uid_map", "gid_map"):
        with open(f"/proc/{pid}/{ids}", "w") as file:
            file.write(f"0 0 {sys.argv[1]}")
    sys.exit()
assert ctypes.CDLL(None).unshare(0x10000000) == 0  # CLONE_NEWUSER
os.write(made[1], b".")
assert os.waitpid(maps, 0)[1] == 0
os.execvp(sys.argv[2], sys.argv[2:])
"""

_BOOT = r"""
dir=$1 shell=$2 host=$3
hostname "$host"
if [ -d "$dir/etc" ]; then
	mount --bind /etc "$dir/shared_etc"
	[ -e "$dir/etc/passwd" ] || ln -s "$dir"/shared_etc/* "$dir/etc/"
	mount --bind "$dir/etc" /etc
fi
# what was mounted before a user namespace was made cannot be taken away in it, and can be covered
umount -l /sys/fs/cgroup || [ -n "$5" ]
[ -e "$dir/no_cgroup" ] || mount -t cgroup2 cgroup2 /sys/fs/cgroup
if [ -e "$dir/delegate" ]; then
	chown worker_uid /sys/fs/cgroup /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/cgroup.threads \
		/sys/fs/cgroup/cgroup.subtree_control
fi
if [ -e "$dir/boot_id" ]; then mount --bind "$dir/boot_id" /proc/sys/kernel/random/boot_id; fi
for file in passwd shadow group hosts sudoers machine-id; do
	mount --bind "$dir/$file" "/etc/$file"
done
mount --bind "$dir/varlib" /var/lib
if [ -n "$4" ]; then
	mkdir -p /var/lib/wlctl
	mount -t tmpfs -o "$4" tmpfs /var/lib/wlctl
fi
mount --bind "$dir/root" /root
mount --bind "$dir/home" /home
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/sshd
mkdir -m 1777 /run/lock
case $shell in
dash)
	mount --bind "$dir/none" /usr/bin/bash
	mount --bind "$dir/none" /usr/bin/busybox
	;;
*) mount --bind "/usr/bin/$shell" /usr/bin/dash ;;
esac
exec /usr/sbin/sshd -D -e -f "$dir/sshd_config"
"""


class Link(NamedTuple):
    """Where a node is reached that has a network of its own.

    Attributes:
        host: Its address there.
        namespace: Path of its network namespace.
    """

    host: str
    namespace: Path


def cgroup2() -> Path:
    """Where cgroup v2 is mounted on this machine."""
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        left, _, right = line.partition(" - ")
        if right.startswith("cgroup2 "):
            return Path(left.split()[4])
    raise AssertionError("this machine mounts no cgroup v2")


@dataclass
class SshdNode:
    """One node.

    Attributes:
        directory: Its files, as this side sees them; `varlib` is its `/var/lib`.
        client_key: A private key that it lets in.
    """

    address: Address
    client_key: Path
    directory: Path
    cgroup: Path
    shell: str
    _start: list[str]
    _uptime_zero: bool = False
    _child: "subprocess.Popen[bytes] | None" = field(default=None)

    def start(self) -> None:
        """Boot it, and wait until it greets."""
        self.boot()
        self.await_greeting()

    def boot(self) -> None:
        """Boot it, and wait for nothing."""
        self.cgroup.mkdir()
        argv = list(self._start)
        if self._uptime_zero:
            uptime_s = int(self._uptime_s())
            argv[argv.index("-C") : argv.index("-C") + 1] = [
                "-C",
                "-T",
                "--boottime",
                str(-uptime_s),
            ]
        log = (self.directory / "log").open("ab")
        self._child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        log.close()

    def cut_power(self) -> None:
        """Have everything on it end, and wait for nothing."""
        if self.cgroup.exists():
            (self.cgroup / "cgroup.kill").write_text("1", encoding="ascii")

    def kill(self) -> None:
        """Cut its power: everything on it ends at once."""
        if not self.cgroup.exists():
            return
        self.cut_power()
        if self._child is not None:
            self._child.wait(DEADLINE_S)
        ends_at_s = time.monotonic() + DEADLINE_S
        while True:
            for pid in self.pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)
            try:
                for below, _, _ in os.walk(self.cgroup, topdown=False):
                    Path(below).rmdir()
            except OSError:
                assert time.monotonic() < ends_at_s, f"{self.cgroup} cannot be emptied"
                time.sleep(0.01)
            else:
                return

    def reboot(self, *, same_uptime: bool = False) -> None:
        """Cut its power and boot it anew: another boot id, and its uptime from zero."""
        self.kill()
        (self.directory / "boot_id").write_text(f"{uuid4()}\n", encoding="ascii")
        self._uptime_zero = not same_uptime
        ended_at_s = self._uptime_s()
        while self._uptime_zero and int(self._uptime_s()) == int(ended_at_s):
            time.sleep(0.02)  # its uptime begins at a whole second, and not before it was ended
        self.start()

    @staticmethod
    def _uptime_s() -> float:
        return float(Path("/proc/uptime").read_text("ascii").split()[0])

    def sweep(self) -> None:
        """Make it an empty node again, whatever became of it."""
        self.kill()
        shutil.rmtree(self.state)
        self.start()

    @property
    def state(self) -> Path:
        """Its state directory, as this side sees it."""
        if self.address.user == PLAIN_USER and not self.address.sudo:
            return self.directory / f"home/{PLAIN_USER}/.local/state/wlctl"
        return self.directory / "varlib/wlctl"

    @property
    def host_key_file(self) -> Path:
        """Its private host key."""
        return self.directory / "host_key"

    def pids(self) -> list[int]:
        """Every process on it, as this side numbers them."""
        found = []
        for below, _, files in os.walk(self.cgroup):
            if "cgroup.procs" in files:
                with contextlib.suppress(OSError):  # it was taken away in between
                    text = (Path(below) / "cgroup.procs").read_text("ascii")
                    found += [int(pid) for pid in text.split()]
        return found

    def insider(self) -> int:
        """A process that sees the processes there as the node does, as this side numbers it."""
        assert self._child is not None
        namespace = Path(f"/proc/{self._child.pid}/ns/pid_for_children").readlink()
        for pid in self.pids():
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/ns/pid").readlink() == namespace:
                    return pid
        raise AssertionError("nothing runs there")

    def commands(self) -> dict[int, str]:
        """The processes on it that are not sshd's or the node's own, with their command lines."""
        found = {}
        for pid in self.pids():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
                text = words.decode("utf-8", "replace").strip()
                if not text.startswith(("sshd:", "/usr/sbin/sshd", "unshare -C")):
                    found[pid] = text
        return found

    def await_quiet(self) -> None:
        """Wait until nothing runs on it: an action's shell exits just after it has answered."""
        ends_at_s = time.monotonic() + DEADLINE_S
        while self.commands():
            assert time.monotonic() < ends_at_s, self.commands()
            time.sleep(0.01)

    def instances(self) -> list[str]:
        """The directories of instances that are in its state directory."""
        return sorted(str(path) for path in self.state.glob("*/instances/*"))

    def cgroups(self) -> list[str]:
        """The cgroups below wlctl's own on it."""
        root = self.cgroup / "wlctl"
        return sorted(str(Path(d).relative_to(root)) for d, _, _ in os.walk(root))

    def await_greeting(self) -> None:
        """Wait until its sshd greets."""
        ends_at_s = time.monotonic() + DEADLINE_S
        assert self._child is not None
        while self._child.poll() is None and time.monotonic() < ends_at_s:
            with (
                contextlib.suppress(OSError),
                socket.create_connection(
                    (self.address.host, self.address.port), timeout=1.0
                ) as sock,
            ):
                if sock.recv(4) == b"SSH-":
                    return
            time.sleep(0.005)
        raise AssertionError((self.directory / "log").read_text("utf-8", errors="replace"))


@contextlib.contextmanager
def sshd_nodes(
    count: int = 1,
    *,
    shell: str = "dash",
    login: str = "root",
    delegate: bool = True,
    mount_cgroup: bool = True,
    own_boot_id: bool | None = None,
    state_options: str = "",
    own_etc: bool = False,
    ids: int = 0,
    password: bool = False,
    links: Sequence["Link"] = (),
) -> Iterator[list[SshdNode]]:
    """Make `count` nodes; everything of them is gone afterwards, whatever happens.

    Args:
        shell: What `sh` is there, one of SHELLS.
        login: `root`, `sudo` (a plain user that becomes root), or `plain`.
        delegate: Whether a plain user may make cgroups.
        mount_cgroup: Whether it mounts cgroup v2.
        own_boot_id: Whether each is a machine of its own. The kernel then lets no plain user have
            namespaces there, because something of `/proc` is covered, as in many containers; so by
            default a plain user's node has this machine's.
        state_options: Put the state directory on a tmpfs mounted so, e.g. `size=64k`.
        own_etc: What is made in `/etc` there is in `etc` of its directory, and nowhere else.
        ids: Give it a user namespace of its own, that has so many; 0 for this machine's.
        password: Let the plain user log in with PASSWORD, too.
        links: Where each is reached, instead of by the loopback.
    """
    covered = login != "plain" if own_boot_id is None else own_boot_id
    base = Path(tempfile.mkdtemp(prefix="wlctl-nodes-", dir="/var/tmp"))
    base.chmod(0o755)
    made: list[SshdNode] = []
    try:
        client_key = base / "client_key"
        _keygen(client_key)
        for index in range(1, count + 1):
            made.append(
                _lay_out(
                    *(base, index, client_key, shell, login),
                    delegate=delegate,
                    mount_cgroup=mount_cgroup,
                    own_boot_id=covered,
                    state_options=state_options,
                    own_etc=own_etc,
                    ids=ids,
                    password=password,
                    link=links[index - 1] if links else None,
                )
            )
            made[-1].boot()
        for node in made:
            node.await_greeting()
        yield made
    finally:
        for node in made:
            node.cut_power()
        for node in made:
            node.kill()
        shutil.rmtree(base)


def _keygen(path: Path) -> None:
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)]
    subprocess.run(argv, check=True)


def _lay_out(
    base: Path,
    index: int,
    client_key: Path,
    shell: str,
    login: str,
    *,
    delegate: bool,
    mount_cgroup: bool,
    own_boot_id: bool,
    state_options: str,
    own_etc: bool,
    ids: int,
    password: bool,
    link: "Link | None",
) -> SshdNode:
    directory = base / f"n{index}"
    for name in ("varlib", "root", "home", *(("etc", "shared_etc") if own_etc else ())):
        (directory / name).mkdir(parents=True)
    directory.chmod(0o755)
    (directory / "root").chmod(0o700)
    (directory / "home" / PLAIN_USER).mkdir()
    os.chown(directory / "home" / PLAIN_USER, PLAIN_UID, PLAIN_UID)
    _keygen(directory / "host_key")
    host = link.host if link else f"127.0.1.{index}"
    user = "root" if login == "root" else PLAIN_USER
    home = f"/home/{PLAIN_USER}"
    _write(directory / "none", "", 0o644)
    if login == "plain" and delegate:
        _write(directory / "delegate", "", 0o644)
    if not mount_cgroup:
        _write(directory / "no_cgroup", "", 0o644)
    if own_boot_id:
        _write(directory / "boot_id", f"{uuid4()}\n", 0o444)
    _write(directory / "machine-id", f"{uuid4().hex}\n", 0o444)
    accounts = (
        f"root:x:0:0:root:/root:/bin/sh\n{PLAIN_USER}:x:{PLAIN_UID}:{PLAIN_UID}::{home}:/bin/sh\n"
    )
    nobody = (
        "sshd:x:105:105::/run/sshd:/usr/sbin/nologin\nnobody:x:65534:65534::/:/usr/sbin/nologin\n"
    )
    _write(directory / "passwd", accounts + nobody, 0o644)
    known = {PLAIN_USER: PASSWORD_HASH} if password else {}
    shadow = "".join(
        f"{name}:{known.get(name, '*')}:19000:0:99999:7:::\n"
        for name in ("root", PLAIN_USER, "nobody")
    )
    _write(directory / "shadow", shadow, 0o640)
    _write(
        directory / "group", f"root:x:0:\n{PLAIN_USER}:x:{PLAIN_UID}:\nnogroup:x:65534:\n", 0o644
    )
    # sudo looks its own host up, and waits for a name server where that fails
    _write(directory / "hosts", f"127.0.0.1 localhost n{index}\n", 0o644)
    _write(directory / "sudoers", SUDOERS, 0o440)
    shutil.copy(client_key.with_suffix(".pub"), directory / "authorized_keys")
    (directory / "authorized_keys").chmod(0o644)
    port = 22 if link else _free_port(host)
    _write(directory / "sshd_config", _sshd_config(directory, host, port, password=password), 0o644)
    kind, blob = (directory / "host_key.pub").read_text("ascii").split()[:2]
    address = Address(
        TransportKind.SSH,
        host=host,
        port=port,
        user=user,
        host_key=f"{kind} {blob}",
        sudo=login == "sudo",
    )
    cgroup = cgroup2() / f"wlctl-test-{os.getpid()}-{base.name.rpartition('-')[2]}-{index}"
    boot = _BOOT.replace("worker_uid", str(PLAIN_UID))
    start = [
        *("sh", "-c", 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"', "sh", str(cgroup)),
        *(("nsenter", f"--net={link.namespace}", "--") if link else ()),
        *((sys.executable, "-c", _IN_USER_NAMESPACE, str(ids)) if ids else ()),
        *("unshare", "-C", "-m", "-u", "-p", "-i", "-f", "--kill-child=KILL", "--mount-proc"),
        *("sh", "-ec", boot, "sh", str(directory), shell, f"n{index}", state_options),
        "user-namespace" if ids else "",
    ]
    return SshdNode(address, client_key, directory, cgroup, shell, start)


def _sshd_config(directory: Path, host: str, port: int, *, password: bool) -> str:
    return f"""
ListenAddress {host}
Port {port}
HostKey {directory}/host_key
AuthorizedKeysFile {directory}/authorized_keys
PidFile none
UsePAM no
UseDNS no
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication {"yes" if password else "no"}
MaxStartups 1000:30:2000
PerSourceMaxStartups none
MaxSessions 200
LogLevel ERROR
"""


def _write(path: Path, text: str, mode: int) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


def _free_port(host: str) -> int:
    with socket.socket() as sock:
        sock.bind((host, 0))
        return int(sock.getsockname()[1])
