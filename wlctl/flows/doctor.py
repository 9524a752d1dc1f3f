"""Look at everything an installation stands on, and say what is wrong and what to do about it."""

import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from wlctl import signing
from wlctl.errors import ExitCode, GateDenied, WlctlError
from wlctl.flows import alerting, gate, listing
from wlctl.flows.runtime import Runtime
from wlctl.flows.witnesses import error_of
from wlctl.ledger import chain, nodes, passes, signers, witnesses
from wlctl.lifecycle.oddity import oddities
from wlctl.model.event import rfc3339
from wlctl.model.policy import Unreadable


class Health(StrEnum):
    """How one thing is."""

    GOOD = "good"
    NOTE = "note"
    """Nothing is broken, but something will not work as it is."""
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one thing.

    Attributes:
        exit_code: What a command that needs it would answer with; DONE unless it is bad.
    """

    about: str
    health: Health
    text: str
    hint: str = ""
    exit_code: ExitCode = ExitCode.DONE


def examine(rt: Runtime) -> list[Finding]:
    """Examine ledger, keys, trust, fleet, passes and alerts; contacts no node, changes nothing."""
    found = [_guarded("ledger", lambda: _ledger(rt))]
    found.append(_guarded("keys", lambda: _keys(rt)))
    if found[0].health is not Health.BAD:
        found.append(_guarded("signers", lambda: _signers(rt)))
        found.append(_guarded("policy", lambda: _policy(rt)))
        found.append(_guarded("revocations", lambda: _revocations(rt)))
        found += _fleet(rt)
        found.append(_guarded("reconcile", lambda: _reconcile(rt)))
        found += _alerts(rt)
    return found


def _guarded(about: str, look: Callable[[], Finding]) -> Finding:
    try:
        return look()
    except WlctlError as failure:
        return Finding(about, Health.BAD, failure.message, failure.hint or "", failure.exit_code)


def _ledger(rt: Runtime) -> Finding:
    with rt.ledger.read() as tx:
        seq, _ = chain.head(tx)
        why = witnesses.doubt_of(tx)
    if why is not None:
        raise error_of(why)
    where = f"{rt.home.ledger}, {seq} events, installation {rt.ledger.installation}"
    directory = rt.home.ledger.parent
    mode = directory.stat().st_mode
    if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
        risk = f"others can write {directory}, so they can put another ledger in its place"
        return Finding("ledger", Health.NOTE, risk, f"`chmod go-w {directory}`")
    return Finding("ledger", Health.GOOD, where)


def _keys(rt: Runtime) -> Finding:
    for path in (rt.home.ssh_key, rt.home.checkpoint_key):
        if not path.exists():
            gone = f"there is no file {path}"
            code = ExitCode.USAGE
            return Finding("keys", Health.BAD, gone, "`wlctl help recover-ledger`", code)
        signing.load_private_key(path)
    return Finding("keys", Health.GOOD, f"{rt.home.keys}, readable by their owner alone")


def _policy(rt: Runtime) -> Finding:
    """Read the policy in force: unreadable, it denies everything but teardown."""
    with rt.ledger.read() as tx:
        policy = gate.policy_of(tx)
    if isinstance(policy, Unreadable):
        raise GateDenied(policy.why, hint="`wlctl audit verify` says what was changed")
    return Finding("policy", Health.GOOD, f"{len(policy.permits)} permits")


def _revocations(rt: Runtime) -> Finding:
    """Read what is revoked: unreadable, it denies everything but teardown."""
    with rt.ledger.read() as tx:
        revoked = gate.revoked_of(tx)
    if isinstance(revoked, Unreadable):
        raise GateDenied(revoked.why, hint="`wlctl audit verify` says what was changed")
    return Finding("revocations", Health.GOOD, f"{len(revoked)} revoked")


def _signers(rt: Runtime) -> Finding:
    now_ms = rt.now_ms()
    with rt.ledger.read() as tx:
        accepted = [one for one in signers.ls(tx) if one.is_valid_at(now_ms)]
    if not accepted:
        return Finding(
            "signers",
            Health.NOTE,
            "no signer is accepted, so no package can be placed",
            "`wlctl signer add NAME KEYFILE.pub`",
        )
    return Finding("signers", Health.GOOD, f"{len(accepted)} accepted")


def _fleet(rt: Runtime) -> Iterator[Finding]:
    with rt.ledger.read() as tx:
        fleet = nodes.ls(tx)
    if not fleet:
        yield Finding(
            "fleet",
            Health.NOTE,
            "there is no node, so nothing can be placed",
            "`wlctl node add NAME [USER@]HOST`, or `wlctl node add here local`",
        )
    now_ms = rt.now_ms()
    for node in fleet:
        about = f"node {node.name}"
        odd = oddities(node, now_ms)
        for one in odd:
            yield Finding(about, Health.NOTE, one.text, one.hint)
        if not odd:
            yield Finding(about, Health.GOOD, node.liveness.value)


def _reconcile(rt: Runtime) -> Finding:
    with rt.ledger.read() as tx:
        last_ms = passes.last_at_ms(tx)
    if last_ms is None:
        return Finding(
            "reconcile",
            Health.NOTE,
            "no pass ever ran, so nothing is finished or started again by itself",
            "`wlctl help cron`",
        )
    said = f"the last pass began {rfc3339(last_ms)}"
    if listing.overdue(rt):
        return Finding("reconcile", Health.NOTE, said, "`wlctl help cron`")
    return Finding("reconcile", Health.GOOD, said)


def _alerts(rt: Runtime) -> Iterator[Finding]:
    """Look at each way that alerts are told by; nothing is sent."""
    ways = alerting.ways(rt)
    if not ways:
        yield Finding(
            "alerts",
            Health.NOTE,
            "nobody is told of them",
            "name a command or URLs below [alerts] in config.toml",
        )
    for way in ways:
        about = f"alerts.{way.name}"
        if way.outcome == alerting.TOLD:
            yield Finding(about, Health.GOOD, "the last message was taken")
        elif way.tried_at_ms is None:
            yield Finding(about, Health.GOOD, "there was nothing to tell yet")
        else:
            said = f"the last message was not taken: {way.outcome}"
            yield Finding(about, Health.NOTE, said, "`wlctl alerts` lists what it was to tell")
