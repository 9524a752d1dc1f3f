"""The chain's nouns: who did something, the event that says so, and a checkpoint of it all."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from wlctl.model.ids import CHECKED_ID

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
"""What JSON can say; keys are text."""


@dataclass(frozen=True, slots=True)
class Author:
    """Who asked for a change, from where, with which words.

    Attributes:
        actor: Login user (`root, sudo alice` behind sudo) `@` host name; or the database's role.
        command: The command line, values of secrets, environment and arguments replaced by `…`.
        message: The operator's `-m`, or empty.
    """

    actor: str
    command: str = ""
    message: str = ""

    @property
    def principal(self) -> str:
        """Who the policy takes the author for: the login, or the database's role.

        Never who is behind sudo: that is a variable of the environment, which anybody can set.
        """
        login, _, _host = self.actor.rpartition("@")
        name = (login or self.actor).partition(", sudo ")[0]
        return name.encode(errors="replace").decode()


@dataclass(frozen=True, slots=True)
class Event:
    """One link of the chain.

    Attributes:
        at: RFC 3339 UTC with milliseconds, informative: order is by `seq`.
        hash: sha256, 64 hex digits, of the RFC 8785 JSON of all the other fields.
    """

    seq: int
    at: str
    kind: str
    actor: str
    payload: Mapping[str, Json]
    prev_hash: str
    hash: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The head of the chain at a moment, as it is signed and kept elsewhere.

    Attributes:
        epoch: How often the ledger was restored.
        seq: Of the newest event; 0 for an empty chain.
        hash: Of that event.
    """

    installation: str
    epoch: int
    seq: int
    hash: str


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(at_ms: int) -> str:
    """Write a moment as RFC 3339 UTC with milliseconds; texts of two moments compare as they do."""
    at = _EPOCH + timedelta(milliseconds=at_ms)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_NUMBER = "(0|[1-9][0-9]{0,17})"
_CHECKPOINT = re.compile(rf"wlctl/({CHECKED_ID.pattern})\n{_NUMBER}\n{_NUMBER}\n([0-9a-f]{{64}})\n")


def checkpoint_text(checkpoint: Checkpoint) -> str:
    """Write a checkpoint as the text of the note that is signed: origin, epoch, seq and hash.

    Source: C2SP, signed-note.md; the origin is the installation, since each has a key of its own.
    """
    return (
        f"wlctl/{checkpoint.installation}\n"
        f"{checkpoint.epoch}\n"
        f"{checkpoint.seq}\n"
        f"{checkpoint.hash}\n"
    )


def parse_checkpoint(text: str) -> Checkpoint | None:
    """Read the text of a note; None for anything `checkpoint_text` would not have written."""
    found = _CHECKPOINT.fullmatch(text)
    if found is None:
        return None
    installation, epoch, seq, digest = found.groups()
    return Checkpoint(installation, int(epoch), int(seq), digest)
