"""Makes a node verify for itself, or undoes it: by an administrator's login, never wlctl's key."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from wlctl.host import door, script
from wlctl.host.answer import Answer
from wlctl.host.session import Session
from wlctl.host.ssh import Credentials, SshTransport
from wlctl.host.transport import Deadlines, Operation
from wlctl.model.actions import Refused
from wlctl.model.enforcement import Enforcement, Keyholder, KeyLines
from wlctl.model.node import Address

Mode = Literal["look", "put", "remove"]


def actions() -> str:
    """Write the list of what this version may ask of a node: all its actions, by their hash."""
    return "".join(f"{door.digest(script.text(name))} {name}\n" for name in script.ACTIONS)


def connect(
    address: Address,
    *,
    admin: str,
    not_with: Path,
    keys: Sequence[Path] = (),
    nonce: Callable[[], str],
    deadlines: Deadlines | None = None,
    configs: Sequence[Path] = (),
    now_ms: int = 0,
    password: str | None = None,
) -> "AdminSession":
    """Log in to a node as an administrator; through `sudo -n` unless that is root.

    Args:
        address: Of the node, as wlctl has it.
        not_with: wlctl's own private key, which is not tried, wherever it may be found.
        keys: Private key files to try before those of ssh's configuration and the agent's.
        nonce, deadlines, configs, now_ms, password: As for `host.node.connect`.

    Raises:
        Unreachable: In the leaf that says which step failed.
    """
    bounds = deadlines or Deadlines()
    operation = Operation(bounds.operation_s)
    login = replace(address, user=admin, sudo=admin != "root", enforced=False)
    credentials = Credentials(
        tuple(keys), tuple(configs), now_ms // 1000, not_with, password=password
    )
    way = SshTransport(login, credentials=credentials, deadlines=bounds)
    return AdminSession(way, nonce=nonce, deadlines=bounds, operation=operation)


class AdminSession(Session):
    """A node, reached as somebody who may become root there."""

    def look(self, holder: Keyholder, wanted: Enforcement) -> KeyLines | Refused:
        """Find out whether it could be done, and what would become of the key; change nothing."""
        found = self._enforce("look", holder, wanted)
        return found if isinstance(found, Refused) else _key_lines(found)

    def put(
        self, holder: Keyholder, wanted: Enforcement, *, key_line: bool = True
    ) -> KeyLines | Refused:
        """Put it there, and have the key open nothing else; what is right already stays.

        Args:
            key_line: False leaves the files of keys to whoever keeps them.
        """
        found = self._enforce("put", holder, wanted, key_line=key_line)
        return found if isinstance(found, Refused) else self._told(_key_lines, found)

    def remove(self, holder: Keyholder) -> tuple[str, ...] | Refused:
        """Take it all away, and give the key its former lines back; return what was removed."""
        found = self._enforce("remove", holder, Enforcement("", "", "", "", ()))
        return found if isinstance(found, Refused) else self._told(_removed, found)

    def _enforce(
        self, mode: Mode, holder: Keyholder, wanted: Enforcement, *, key_line: bool = True
    ) -> Answer | Refused:
        return self._run(
            "enforce",
            ("mode", mode),
            ("installation", holder.installation),
            ("login", holder.login),
            ("sudo", "yes" if holder.sudo else "no"),
            ("key", holder.public_key),
            ("key_line", "yes" if key_line else "no"),
            ("doorkeeper", wanted.doorkeeper),
            ("signers", wanted.signers),
            ("revoked", wanted.revoked),
            ("actions", wanted.actions),
            *(("project", project) for project in wanted.projects),
            mutates=mode != "look",
        )


def _key_lines(found: Answer) -> KeyLines:
    return KeyLines(
        line=found.text("line"),
        shut=_texts(found, "shut"),
        open=_texts(found, "open"),
        files=_texts(found, "file"),
    )


def _removed(found: Answer) -> tuple[str, ...]:
    return _texts(found, "removed")


def _texts(found: Answer, key: str) -> tuple[str, ...]:
    return tuple(line.fields[0] for line in found.all(key) if line.fields)
