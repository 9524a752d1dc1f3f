"""Alerts: what a pass found is kept; what is new, or over, is told to people, and not too often.

Telling comes after the commit and never fails a pass: what could not be told is told by a later
one. A message may come twice, when the machine dies between sending and keeping that.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from wlctl.config.alerting import COMMAND, URLS
from wlctl.config.secrets import SecretSource
from wlctl.errors import SecretUnavailable
from wlctl.flows import secrets
from wlctl.flows.notify import Sent
from wlctl.flows.runtime import Runtime
from wlctl.ledger import alerts
from wlctl.ledger.alerts import Settled, nothing_unjudged
from wlctl.ledger.store import ReadTx
from wlctl.lifecycle import telling
from wlctl.lifecycle.telling import Message
from wlctl.model.alert import Alert, Channel, KeptAlert
from wlctl.model.event import Json, rfc3339

SCHEMA = "wlctl.alert-message/1"

TIMEOUT_S = 20.0
"""So long may telling take; a pass waits no longer for it."""

TOLD = "told"

Send = Callable[["Told"], str]
"""Tells somebody; answers `TOLD`, or how it failed. Raises nothing."""


@dataclass(frozen=True, slots=True)
class Told:
    """One message, as programs read it and as people do."""

    document: Mapping[str, Json]
    title: str
    text: str


def settle(
    rt: Runtime,
    found: Collection[Alert],
    unjudged: Callable[[Alert], bool] = nothing_unjudged,
) -> Settled:
    """Keep what a pass found, and tell of what nobody was told of yet; see `ledger.alerts`."""
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        settled = alerts.settle(tx, found, unjudged=unjudged)
    deliver(rt)
    return settled


def ls(rt: Runtime, *, everything: bool = False) -> list[KeptAlert]:
    """List what is open, the oldest first; with `everything`, what was closed, too."""
    with rt.ledger.read() as tx:
        return alerts.ls(tx, everything=everything)


def ack(rt: Runtime, ids: Sequence[int] | None, *, dry_run: bool = False) -> list[KeptAlert]:
    """Record that somebody knows of alerts; answer those of which nobody did before.

    Args:
        ids: None for all that are open; otherwise all of them, or none.
        dry_run: Only answer them.

    Raises:
        UnknownName: One is not open.
    """
    if dry_run:
        with rt.ledger.read() as tx:
            return [one for id_ in _meant(tx, ids) if (one := alerts.unknowing(tx, id_))]
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        return [now for id_ in _meant(tx, ids) if (now := alerts.ack(tx, id_))]


def _meant(tx: ReadTx, ids: Sequence[int] | None) -> list[int]:
    return [one.id for one in alerts.ls(tx)] if ids is None else sorted(set(ids))


def ways(rt: Runtime) -> list[Channel]:
    """List the channels that the settings have, as far as each has come."""
    with rt.ledger.read() as tx:
        known = alerts.channels(tx)
    return [known.get(name, Channel(name)) for name in _channels(rt)]


def failing(rt: Runtime) -> list[Channel]:
    """List the channels whose last message could not be told."""
    return [one for one in ways(rt) if one.tried_at_ms is not None and one.outcome != TOLD]


def deliver(rt: Runtime) -> None:
    """Tell each channel what it has not told of yet; where there is nothing, write nothing."""
    due = _due(rt)
    if not due:
        return
    with ThreadPoolExecutor(len(due)) as pool:
        outcomes = list(pool.map(lambda one: one[0](_told(rt, one[2])), due))
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        for (_send, before, message), outcome in zip(due, outcomes, strict=True):
            now = (
                replace(message.channel, outcome=TOLD)
                if outcome == TOLD
                else telling.failed(before, message, outcome)
            )
            alerts.record_channel(tx, now)


def _due(rt: Runtime) -> list[tuple[Send, Channel, Message]]:
    wanted = _channels(rt)
    if not wanted:
        return []
    now_ms = rt.now_ms()
    due = []
    with rt.ledger.read() as tx:
        known = alerts.channels(tx)
        for name, send in wanted.items():
            before = known.get(name, Channel(name))
            is_new = name not in known
            news = alerts.ls(tx, everything=not is_new, after_id=before.told_id)
            over = alerts.over(tx, before.named) if rt.settings.alerts.tells_closed else None
            message = telling.next_message(before, news, now_ms, is_new=is_new, over=over)
            if message is not None:
                due.append((send, before, message))
    return due


def _channels(rt: Runtime) -> dict[str, Send]:
    said = rt.settings.alerts
    found: dict[str, Send] = {}
    if said.command:
        found[COMMAND] = partial(_by_command, said.command)
    for name, source in said.urls.items():
        found[f"{URLS}.{name}"] = partial(_by_url, name, source)
    return found


def _told(rt: Runtime, message: Message) -> Told:
    """Write a message; text from nodes cannot add a line to it, or move anything."""
    lines = [_line(one) for one in message.alerts]
    over = [f"over: {_line(one)}" for one in message.over]
    title = (
        _title(lines, len(lines) + message.held_back, "alerts")
        if lines
        else _title(over, len(over), "alerts are over")
    )
    if message.held_back:
        lines.append(f"{message.held_back} more were held back: `wlctl alerts ls --all` lists them")
    document: dict[str, Json] = {
        "schema": SCHEMA,
        "installation": rt.ledger.installation,
        "alerts": [_json(one) for one in message.alerts],
        "closed": [{**_json(one), "closed_at": _moment(one.closed_at_ms)} for one in message.over],
        "held_back": message.held_back,
    }
    return Told(document, f"wlctl: {title}", "\n".join([*lines, *over]))


def _title(lines: Sequence[str], count: int, what: str) -> str:
    return lines[0] if count == 1 else f"{count} {what}, the first: {lines[0]}"


def _json(one: KeptAlert) -> dict[str, Json]:
    return {
        "id": one.id,
        "kind": one.alert.kind.value,
        "subject": one.alert.subject,
        "reason": one.alert.reason,
        "unproven": one.alert.is_unproven,
        "raised_at": rfc3339(one.raised_at_ms),
    }


def _moment(at_ms: int | None) -> str | None:
    return None if at_ms is None else rfc3339(at_ms)


def _line(one: KeptAlert) -> str:
    about = f" {one.alert.subject}" if one.alert.subject else ""
    said = f"{one.alert.kind.value}{about}: {one.alert.reason}"
    return "".join(character if character.isprintable() else "\ufffd" for character in said)


def _by_command(command: Sequence[str], told: Told) -> str:
    status = _run(command, json.dumps(told.document))
    return status if isinstance(status, str) else f"exit {status}" if status else TOLD


def _by_url(name: str, source: SecretSource, told: Told) -> str:
    try:
        url = secrets.value_of(f"{URLS}.{name}", source)
    except SecretUnavailable as failure:
        return failure.message
    said = json.dumps({"url": url.strip(), "title": told.title, "body": told.text})
    # -P: what lies in the working directory is not imported.
    status = _run([sys.executable, "-P", "-m", "wlctl.flows.notify"], said)
    return status if isinstance(status, str) else _OUTCOMES.get(status, f"exit {status}")


_OUTCOMES: dict[int, str] = {
    Sent.TOLD: TOLD,
    Sent.NOT_INSTALLED: "apprise is not installed: pip install 'wlctl[notify]'",
    Sent.UNKNOWN_URL: "apprise does not know that kind of URL",
    Sent.FAILED: "its service did not take it",
}


def _run(command: Sequence[str], said: str) -> int | str:
    """Run a program with something to read; answer its exit status, or why it has none.

    What it prints is its own affair, and may hold what must not be shown. After the time is up it
    is killed with all that it has started.
    """
    try:
        child = subprocess.Popen(  # noqa: S603 - the operator's own settings name it
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    with child:
        try:
            child.communicate(said.encode(), timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return f"it took longer than {TIMEOUT_S:g} s"
        return child.returncode
