"""What is appended to the hash chain and how it is read: one event a change, nothing ever altered.

An event's hash is the sha256 of the canonical JSON of all its other fields, the hash before it
included. The payload is stored as its canonical text, so the hashed bytes are put together from the
columns, without encoding anything again.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import rfc8785
from sqlalchemy import select, text
from sqlalchemy.engine.interfaces import DBAPICursor

from wlctl.errors import LedgerDamaged
from wlctl.ledger.schema import LISTS_TOLD, chain
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.event import Event, Json, rfc3339

GENESIS = "0" * 64
"""What the first event has for the hash before it."""

KINDS = re.compile(
    r"workload\.(place|refuse|start|stop|unload|swap|move|lifecycle|revoke|unrevoke|gate)"
    r"|(node|slot|policy|signer|alert|ledger)\.[a-z][a-z_]{0,31}"
)
"""What an event may say happened."""

FAMILIES = ("workload", "node", "slot", "policy", "signer", "alert", "ledger")


def is_kind(word: str) -> bool:
    """Answer whether `word` is a kind of event, or a family of kinds such as `node.*`."""
    return KINDS.fullmatch(word) is not None or word in {f"{family}.*" for family in FAMILIES}


_SURROGATE = re.compile("[\ud800-\udfff]")

SAFE_INT = 2**53 - 1
"""The largest integer that every JSON reader keeps."""


def append(tx: WriteTx, kind: str, payload: Mapping[str, Json]) -> Event:
    """Add one event in the name of the transaction's author and return it.

    The author's command and message are recorded under `by`. No text can make an event
    unencodable: what is not valid Unicode is stored as U+FFFD, and an integer that JSON readers
    would round is stored as text.
    """
    assert KINDS.fullmatch(kind), f"{kind!r} is not a kind of event"
    actor = _valid(tx.author.actor)
    seq, prev_hash = head(tx)
    by = {"command": tx.author.command, "message": tx.author.message}
    said = {key: text for key, text in by.items() if text}
    told = canonical({**payload, "by": said} if said else payload)
    at = rfc3339(tx.now_ms)
    digest = sha256(
        hashed_bytes(
            actor=canonical(actor),
            at=at.encode(),
            kind=kind.encode(),
            payload=told,
            prev_hash=prev_hash.encode(),
            seq=seq + 1,
        )
    )
    row = {
        "seq": seq + 1,
        "at": at,
        "kind": kind,
        "actor": actor,
        "payload": told.decode(),
        "prev_hash": prev_hash,
        "hash": digest,
    }
    mark = _PLACEHOLDER[tx.conn.dialect.paramstyle]
    _speak(tx, _INSERT.replace("?", mark), tuple(row.values()))
    return _event(row)


# Every transaction runs these two while all others wait. Through SQLAlchemy they would take as long
# again as everything else that happens then, so they are said to the driver itself.
_HEAD = "SELECT seq, hash FROM chain ORDER BY seq DESC LIMIT 1"
_INSERT = (
    "INSERT INTO chain (seq, at, kind, actor, payload, prev_hash, hash)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_PLACEHOLDER = {"qmark": "?", "format": "%s", "pyformat": "%s"}


def _speak(tx: ReadTx, statement: str, values: tuple[object, ...] = ()) -> DBAPICursor:
    cursor = tx.conn.connection.cursor()
    cursor.execute(statement, values)
    return cursor


def head(tx: ReadTx) -> tuple[int, str]:
    """Return the newest event's seq and hash; 0 and 64 zeros for an empty chain."""
    row = _speak(tx, _HEAD).fetchone()
    return (0, GENESIS) if row is None else (row[0], row[1])


def last_told(tx: ReadTx, *kinds: str) -> tuple[int, Mapping[str, Any]] | None:
    """Find the last event of these kinds, some of those in `LISTS_TOLD`; its seq and its payload.

    What it binds is in force: were it looked for by the rows, the last of them could be taken away
    and the state before it would pass for the present one.
    """
    rows = (
        select(chain.c.seq, chain.c.payload)
        .where(text(LISTS_TOLD), chain.c.kind.in_(kinds))
        .order_by(chain.c.seq.desc())
        .limit(1)
    )
    row = tx.conn.execute(rows).one_or_none()
    return None if row is None else (row.seq, json.loads(row.payload))


def hashed_bytes(
    *, actor: bytes, at: bytes, kind: bytes, payload: bytes, prev_hash: bytes, seq: int
) -> bytes:
    """Put the canonical JSON of an event together; `actor` and `payload` are canonical JSON."""
    return HASHED % (actor, at, kind, payload, prev_hash, seq)


HASHED = b'{"actor":%b,"at":"%b","kind":"%b","payload":%b,"prev_hash":"%b","seq":%d}'
"""What is hashed of an event: keys in the order of RFC 8785, and no other than these."""


def sha256(content: bytes) -> str:
    """Return the sha256 of `content` in lower-case hex."""
    return hashlib.sha256(content).hexdigest()


def canonical(value: Json) -> bytes:
    """Encode `value` as RFC 8785 JSON, replacing what JSON cannot say."""
    try:
        return rfc8785.dumps(value)  # nearly always; a copy of everything is only made in need
    except ValueError:  # also when a key is no Unicode
        return rfc8785.dumps(_encodable(value))


def _encodable(value: Json) -> Any:
    match value:
        case bool() | None | float():
            return value
        case int():
            return value if -SAFE_INT <= value <= SAFE_INT else str(value)
        case str():
            return _valid(value)
        case Mapping():
            return {_valid(key): _encodable(item) for key, item in value.items()}
        case _:
            return [_encodable(item) for item in value]


def _valid(text: str) -> str:
    """Replace what is not valid Unicode (half a surrogate pair) by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def events(
    tx: ReadTx,
    *,
    kind: str | None = None,
    instance: str | None = None,
    node: str | None = None,
    since_ms: int | None = None,
    until_ms: int | None = None,
    after_seq: int = 0,
    newest_first: bool = False,
) -> Iterator[Event]:
    """Yield the events that match everything given, in order, without holding them all.

    `kind` is one kind, or a family of them written `node.*`. `since_ms` is the first moment that
    counts and `until_ms` the first that no longer does, both by the events' informative times.

    Raises:
        LedgerDamaged: An event cannot be read.
    """
    order = chain.c.seq.desc() if newest_first else chain.c.seq
    rows = select(chain).where(chain.c.seq > after_seq).order_by(order)
    if kind is not None:
        family = kind.removesuffix("*")
        rows = rows.where(
            chain.c.kind == kind
            if family == kind
            else chain.c.kind.startswith(family, autoescape=True)
        )
    if since_ms is not None:
        rows = rows.where(chain.c.at >= rfc3339(since_ms))
    if until_ms is not None:
        rows = rows.where(chain.c.at < rfc3339(until_ms))
    wanted = {"instance": instance, "node": node}
    about = {key: _valid(value) for key, value in wanted.items() if value is not None}
    for key, value in about.items():
        # The database finds the text anywhere in the payload, cheaply; below, where it stands.
        member = f"{canonical(key).decode()}:{canonical(value).decode()}"
        rows = rows.where(chain.c.payload.contains(member, autoescape=True))
    for row in tx.conn.execute(rows, execution_options={"yield_per": 1000}).mappings():
        event = _event(row)
        if all(event.payload.get(key) == value for key, value in about.items()):
            yield event


def _event(row: Mapping[Any, Any]) -> Event:
    try:
        payload = json.loads(row["payload"])
    except (TypeError, ValueError) as error:
        raise LedgerDamaged(
            f"event {row['seq']} cannot be read", hint="see `wlctl audit verify`"
        ) from error
    return Event(
        seq=row["seq"],
        at=row["at"],
        kind=row["kind"],
        actor=row["actor"],
        payload=payload,
        prev_hash=row["prev_hash"],
        hash=row["hash"],
    )
