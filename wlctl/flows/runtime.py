"""The composition root: it alone reads clocks, makes ids, and opens what flows work on."""

import os
import pwd
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from wlctl.config import Settings
from wlctl.errors import UsageError
from wlctl.model.boottime import BootTime
from wlctl.model.event import Author
from wlctl.model.ids import InstallationId, InstanceId

if TYPE_CHECKING:
    from wlctl.host.doorkeeper import AdminSession
    from wlctl.host.node import NodeSession
    from wlctl.ledger.store import Ledger
    from wlctl.model.node import Address

Passwords = Callable[[str], str]
"""Puts a question to somebody at the terminal, and gives what was typed and not shown."""

SYSTEM_SSH_CONFIG = Path("/etc/ssh/ssh_config")

BASE32 = "abcdefghijklmnopqrstuvwxyz234567"


@dataclass(frozen=True, slots=True)
class Home:
    """Where a ledger's things are: one ledger, one directory."""

    ledger: Path

    @property
    def directory(self) -> Path:
        """Holds everything of one ledger."""
        return self.ledger.parent

    @property
    def keys(self) -> Path:
        """Holds the keys of this installation, readable by their owner alone."""
        return self.directory / "keys"

    @property
    def ssh_key(self) -> Path:
        """The private key that nodes let in."""
        return self.keys / "ssh_ed25519"

    @property
    def checkpoint_key(self) -> Path:
        """The private key that signs checkpoints."""
        return self.keys / "checkpoint_ed25519"

    @property
    def store(self) -> Path:
        """The controller's store of package files, by sha256."""
        return self.directory / "store"


class Runtime:
    """Everything a flow needs, opened when it is first asked for.

    Attributes:
        author: Who is at work, for the chain.
        passwords: How a password is asked for, to log in at nodes with it instead of a key; None
            for keys. It is asked for when it is needed, once for each login, and kept nowhere.
        admin_passwords: Likewise, for administrators' logins.
    """

    passwords: "Passwords | None" = None
    admin_passwords: "Passwords | None" = None

    def __init__(self, settings: Settings, author: Author) -> None:
        self.settings = settings
        self.author = author
        self._typed: dict[tuple[str, str, int], str] = {}

    @cached_property
    def home(self) -> Home:
        """Where the ledger's things are.

        Raises:
            UsageError: The ledger is a URL.
        """
        if "://" in self.settings.db:
            raise UsageError(
                "a ledger behind a URL is not supported by this version",
                hint="give --db the path of a file",
            )
        return Home(Path(self.settings.db))

    @cached_property
    def ledger(self) -> "Ledger":
        """The ledger, opened; never made."""
        from wlctl.ledger.opening import open_ledger

        return open_ledger(
            self.home.ledger,
            now_ms=self.now_ms(),
            author=self.author,
            busy_timeout_s=self.settings.busy_timeout_s,
        )

    def close(self) -> None:
        """Close the ledger, if it was opened: the last to do so leaves one whole file."""
        if "ledger" in vars(self):
            self.ledger.close()

    def now_ms(self) -> int:
        """Read the wall clock: epoch milliseconds, for people and for stamping rows."""
        return time.time_ns() // 1_000_000

    def elapsed_s(self) -> float:
        """Read the clock that waiting is counted on: it never jumps."""
        return time.monotonic()

    def boot_time(self) -> BootTime:
        """Read the clock that nothing sets, and that counts sleep, too.

        Raises:
            UsageError: This system has none.
        """
        if not hasattr(time, "CLOCK_BOOTTIME"):
            raise UsageError(
                "this system has no clock that counts sleep, and leases and silence need one",
                hint="run this on Linux",
            )
        return BootTime(_boot_id(), int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000))

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)

    def new_installation_id(self) -> InstallationId:
        """Make the identity of a new ledger."""
        return InstallationId("w" + _letters(15))

    def new_instance_id(self) -> InstanceId:
        """Make the id of one copy; never reused, since there are 2**75 of them."""
        return InstanceId("i" + _letters(15))

    def new_token(self) -> str:
        """Make an operation's token, or the nonce of one action: 32 hex digits."""
        return secrets.token_hex(16)

    def connect(self, address: "Address") -> "NodeSession":
        """Open the way to a node; the session is closed by its `with` block.

        Raises:
            Unreachable: It cannot be had; nothing was done.
        """
        from wlctl.host import node
        from wlctl.host.transport import Deadlines

        return node.connect(
            address,
            keys=(self.home.ssh_key,),
            nonce=self.new_token,
            deadlines=Deadlines(connect_s=self.settings.connect_timeout_s),
            configs=ssh_configs(),
            now_ms=self.now_ms(),
            password=self._password(self.passwords, address),
        )

    def _password(self, ask: "Passwords | None", address: "Address") -> str | None:
        """Have the password of a login typed, where that is how it is logged in; once."""
        from wlctl.model.node import TransportKind  # only what reaches nodes has use for them

        if ask is None or address.transport is TransportKind.LOCAL:
            return None
        where = self.login_of(address), address.host, address.port
        if where not in self._typed:
            self._typed[where] = ask(f"password of {where[0]} at {address.host}:")
        return self._typed[where]

    def administrate(self, address: "Address", admin: str) -> "AdminSession":
        """Open the way to a node for an administrator's login; wlctl's own key is not tried.

        Raises:
            Unreachable: It cannot be had; nothing was done.
        """
        from wlctl.host import doorkeeper
        from wlctl.host.transport import Deadlines

        return doorkeeper.connect(
            address,
            admin=admin,
            not_with=self.home.ssh_key,
            nonce=self.new_token,
            deadlines=Deadlines(connect_s=self.settings.connect_timeout_s),
            configs=ssh_configs(),
            now_ms=self.now_ms(),
            password=self._password(self.admin_passwords, replace(address, user=admin)),
        )

    def login_of(self, address: "Address") -> str:
        """Say which login leads to a node, where the address leaves that to ssh's configuration.

        Raises:
            Unreachable: The configuration cannot be used.
        """
        from wlctl.host import ssh

        return ssh.login_name(address, ssh_configs())

    def scan_host_key(self, address: "Address", known_hosts: Path | None = None) -> tuple[str, str]:
        """Ask the machine at `address` which host key it shows: the key, and its fingerprint.

        Args:
            known_hosts: A file that must know the key; without one, whether it is right is for the
                caller to find out.

        Raises:
            Unreachable: It shows none, or not the one that `known_hosts` has.
        """
        from wlctl.host import ssh
        from wlctl.host.transport import Deadlines

        shown = ssh.scan_host_key(
            address,
            credentials=ssh.Credentials((self.home.ssh_key,), ssh_configs(), self.now_ms() // 1000),
            trusted=known_hosts,
            deadlines=Deadlines(connect_s=self.settings.connect_timeout_s),
        )
        return shown, ssh.fingerprint(shown)


def ssh_configs() -> tuple[Path, ...]:
    """Where ssh looks for its configuration: at the passwd entry's home, whatever HOME says."""
    try:
        own = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".ssh/config"
    except KeyError:
        return (SYSTEM_SSH_CONFIG,)
    return own, SYSTEM_SSH_CONFIG


def build(settings: Settings, *, command: str, message: str) -> Runtime:
    """Put a runtime together for the person who runs this process."""
    return Runtime(settings, Author(actor=_actor(), command=command, message=message))


def _boot_id() -> str:
    """Say which boot this is; see random(4), `/proc/sys/kernel/random/boot_id`."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _letters(count: int) -> str:
    return "".join(secrets.choice(BASE32) for _ in range(count))


def _actor() -> str:
    """Say who is at work; a login without a name is its number."""
    try:
        login = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        login = str(os.geteuid())
    sudoer = os.environ.get("SUDO_USER", "")
    who = f"{login}, sudo {sudoer}" if sudoer and sudoer != login else login
    return f"{who}@{socket.gethostname()}"
