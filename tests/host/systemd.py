"""Nodes where systemd is PID 1: containers of systemd-nspawn.

They boot one small Debian, which is made once and kept in a cache by the hash of what makes it. A
container has no controllers where the machine it is on has them in cgroup v1; `vm` has them.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.host.nodes import PLAIN_USER, SshdNode, cgroup2
from wlctl.model.node import Address, TransportKind

UNIT = "wlctl.slice/wlctl-node.service"

SUITE = "bookworm"
PACKAGES = (
    *("systemd", "systemd-sysv", "libpam-systemd", "dbus", "dbus-user-session", "udev"),
    *("openssh-server", "linux-image-cloud-amd64", "initramfs-tools"),
)

WORKER_STATE = f"home/{PLAIN_USER}/.local/state/wlctl"

BUILD_S = 900.0

_PREPARE = r"""
cd "$1"
for unit in console-getty getty@tty1 serial-getty@ttyS0 systemd-firstboot systemd-timesyncd \
	systemd-pstore e2scrub_reap; do
	ln -sf /dev/null "etc/systemd/system/$unit.service"
done
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
	fstrim.timer ssh.socket; do
	ln -sf /dev/null "etc/systemd/system/$unit"
done
rm -rf var/cache/apt var/lib/apt/lists
echo 0123456789abcdef0123456789abcdef >etc/machine-id
echo node >etc/hostname
echo 127.0.0.1 localhost node >etc/hosts
sed -i 's,/root:/bin/bash,/root:/bin/sh,' etc/passwd
echo worker:x:1234:1234::/home/worker:/bin/sh >>etc/passwd
echo worker:x:1234: >>etc/group
echo 'worker:*:19000:0:99999:7:::' >>etc/shadow
for home in root home/worker; do
	mkdir -p "$home/.ssh"
	cp "$2" "$home/.ssh/authorized_keys"
done
chown -R 1234:1234 home/worker
echo UseDNS no >etc/ssh/sshd_config.d/tests.conf
printf '[Match]\nName=eth0\n[Network]\nAddress=10.0.2.15/24\nLinkLocalAddressing=no\n' \
	>etc/systemd/network/tests.network
"""

_CONTAINER = r"""
mount --make-rprivate /
umount -l /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" overlay "$2/merged"
exec systemd-nspawn -q --register=no --keep-unit -b -D "$2/merged" --console=pipe --hostname=node
"""


def cache() -> Path:
    """Where what is slow to make is kept."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "wlctl-tests"


def made(name: str, recipe: str) -> tuple[Path, bool]:
    """Return the cache's directory of that recipe, and whether it is whole already."""
    path = cache() / f"{name}-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"
    return path, (path / "whole").exists()


@contextlib.contextmanager
def one_builder() -> Iterator[None]:
    """Keep every other builder out: what is made is made once."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def system() -> Path:
    """A directory with the system's files below `root` and the key that it lets in."""
    with one_builder():
        path, whole = made("system", repr((SUITE, PACKAGES, _PREPARE)))
        if not whole:
            _make_system(path)
    return path


def _make_system(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(mode=0o755)
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path / "key"))
    # a process and mount namespace of its own takes everything with it, however it ends
    run(
        *("unshare", "-m", "-p", "-f", "--kill-child=KILL", "--mount-proc"),
        *("mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(PACKAGES)}"),
        *("--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*"),
        *("--dpkgopt=path-exclude=/usr/share/locale/*", SUITE, str(path / "root")),
    )
    run("sh", "-ec", _PREPARE, "sh", str(path / "root"), str(path / "key.pub"))
    (path / "whole").touch()


def run(*argv: str) -> None:
    """Run what makes something; it must end well."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=BUILD_S, check=False)
    assert done.returncode == 0, f"{argv[0]}: {done.stderr[-2000:]}"


class SystemdNode(SshdNode):
    """A node whose PID 1 is systemd."""

    def sh(self, command: str) -> str:
        """Run a command there as root, on one connection for all; return what it prints."""
        keep = ("-o", "ControlMaster=auto", "-o", "ControlPersist=yes")
        done = self._ssh(*keep, then=command)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def hang_up(self) -> None:
        """Close the connection that `sh` keeps, if there is one."""
        self._ssh("-O", "exit")

    def kill(self) -> None:
        """Cut its power, and let go of it."""
        super().kill()
        self.hang_up()

    def _ssh(self, *options: str, then: str = "") -> "subprocess.CompletedProcess[str]":
        argv = [
            *("ssh", "-F", "none", "-i", str(self.client_key), "-p", str(self.address.port)),
            *("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"),
            *("-o", "LogLevel=ERROR", "-o", f"ControlPath={self.directory}/sh"),
            *(*options, f"root@{self.address.host}", *filter(None, [then])),
        ]
        # files: what keeps the connection would keep pipes open, too
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, timeout=120, check=False
            )
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(argv, done.returncode, out.read(), err.read())

    def sweep(self) -> None:
        """Make it an empty node again, whatever became of it."""
        self.kill()
        shutil.rmtree(self.directory / f"upper/{self._state_dir()}")
        self.start()

    @property
    def state(self) -> Path:
        """Its state directory, as this side sees it through its first process."""
        for pid in self.pids():
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text("utf-8") == "systemd\n":
                    return Path(f"/proc/{pid}/root/{self._state_dir()}")
        raise AssertionError("no systemd runs there")

    def _state_dir(self) -> str:
        return "var/lib/wlctl" if self.address.user == "root" else WORKER_STATE

    def unit(self) -> str:
        """The unit's cgroup, as the node has it."""
        if self.address.user == "root":
            return f"/sys/fs/cgroup/{UNIT}"
        return f"/sys/fs/cgroup/user.slice/user-1234.slice/user@1234.service/{UNIT}"

    def cgroups(self) -> list[str]:
        """The cgroups below the unit, without the leaf of its own process."""
        found = self.sh(f"cd {self.unit()} 2>/dev/null && find . -type d || echo .").split()
        return sorted(name.removeprefix("./") for name in found if name != "./_keep")

    def commands(self) -> dict[int, str]:
        """The processes below the unit that are not its own, with their command lines."""
        script = (
            f"cd {self.unit()} 2>/dev/null || exit 0;"
            "for f in $(find . -name cgroup.procs); do"
            ' case $f in ./_keep/*) continue ;; esac; while read -r p; do printf "%s " $p;'
            ' tr "\\0" " " </proc/$p/cmdline; echo; done <$f; done'
        )
        lines = [line.partition(" ") for line in self.sh(script).splitlines()]
        return {int(pid): text.strip() for pid, _, text in lines}

    def instances(self) -> list[str]:
        """The directories of instances that are in its state directory."""
        return self.sh(f"ls -d /{self._state_dir()}/*/instances/* 2>/dev/null || :").split()


@contextlib.contextmanager
def container(*, user: str = "root") -> Iterator[SystemdNode]:
    """Boot a container; everything of it is gone afterwards, whatever happens."""
    made_of = system()
    base = Path(tempfile.mkdtemp(prefix="wlctl-systemd-", dir="/var/tmp"))
    node: SystemdNode | None = None
    try:
        base.chmod(0o755)
        for name in ("upper", "work", "merged"):
            (base / name).mkdir()
        address = address_of(made_of, user)
        conf = base / "upper/etc/ssh/sshd_config.d"
        conf.mkdir(parents=True)
        text = f"UseDNS no\nListenAddress {address.host}\nPort {address.port}\n"
        (conf / "tests.conf").write_text(text, encoding="ascii")
        cgroup = cgroup_of(base)
        start = [
            *("sh", "-c", 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"', "sh", str(cgroup)),
            *("unshare", "-C", "-m", "-p", "-f", "--kill-child=KILL", "--mount-proc"),
            *("sh", "-ec", _CONTAINER, "sh", str(made_of / "root"), str(base)),
        ]
        node = SystemdNode(address, made_of / "key", base, cgroup, "dash", start)
        node.start()
        node.sh("systemctl is-system-running --wait >/dev/null || :")
        yield node
    finally:
        if node is not None:
            node.kill()
        shutil.rmtree(base)


def address_of(made_of: Path, user: str) -> Address:
    """Return where a node of this system shall listen: a port of this machine's loopback."""
    host = "127.0.2.1"
    kind, blob = (made_of / "root/etc/ssh/ssh_host_ed25519_key.pub").read_text("ascii").split()[:2]
    with socket.socket() as sock:
        sock.bind((host, 0))
        port = int(sock.getsockname()[1])
    return Address(
        TransportKind.SSH, host=host, port=port, user=user, host_key=f"{kind} {blob}", sudo=False
    )


def cgroup_of(base: Path) -> Path:
    """Return the cgroup that a node with its files in `base` shall run in."""
    return cgroup2() / f"wlctl-test-{os.getpid()}-{base.name.rpartition('-')[2]}"
