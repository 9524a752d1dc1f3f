"""Logs in with a password that was just typed: once, at a machine whose host key was checked."""

import time

import paramiko

from wlctl.errors import AuthFailed, AuthTimeout
from wlctl.host.ssh.connection import Connection
from wlctl.host.ssh.route import Hop

INTERACTIVE = "keyboard-interactive"

USE_A_KEY = "let wlctl's key in there, and leave out --ask-pass"


class _AsksForMore(paramiko.AuthenticationException):
    """It asks for what no password answers."""


def by_password(ssh: Connection, hop: Hop, password: str, *, auth_s: float) -> None:
    """Log in at `hop`, by the method `password` or, where that is not there, by the one question.

    Raises:
        AuthFailed: It does not take the password, or takes none, or wants more than that.
        AuthTimeout: It took too long to say so.
    """
    started_at_s = time.monotonic()
    who = f"{hop.user} at {hop.where}"
    try:
        more = _offer(ssh, hop.user, password)
    except paramiko.BadAuthenticationType as error:
        takes = ", ".join(error.allowed_types) or "nothing"
        raise AuthFailed(
            f"{hop.where} takes no password for {hop.user}: it takes {takes}", hint=USE_A_KEY
        ) from None
    except _AsksForMore:
        raise _not_enough(who, "it asks for more") from None
    except (paramiko.SSHException, OSError, EOFError) as error:
        if time.monotonic() - started_at_s >= auth_s:
            raise AuthTimeout(f"the login as {who} was not done in {auth_s:g} s") from None
        if isinstance(error, paramiko.AuthenticationException):
            raise AuthFailed(f"the password is not taken for {who}", hint="type it again") from None
        why = str(error) or "it hung up"
        raise AuthFailed(f"no login as {who}: the connection ended ({why})") from None
    if not ssh.is_authenticated():
        raise _not_enough(who, f"it wants {', '.join(more)} too")


def _not_enough(who: str, why: str) -> AuthFailed:
    return AuthFailed(f"a password is not enough for {who}: {why}", hint=USE_A_KEY)


def _offer(ssh: Connection, user: str, password: str) -> list[str]:
    """Return what else is wanted."""
    try:
        return ssh.auth_password(user, password, fallback=False)
    except paramiko.BadAuthenticationType as error:
        others = [method for method in error.allowed_types if method != INTERACTIVE]
        if len(others) == len(error.allowed_types):
            raise
    asked = 0

    def answer(_title: str, _said: str, fields: list[tuple[str, bool]]) -> list[str]:
        nonlocal asked
        if not fields:
            return []
        asked += len(fields)
        # a password answers one question, whose answer is not shown; it is no second factor
        if asked > 1 or fields[0][1]:
            raise _AsksForMore
        return [password]

    try:
        return ssh.auth_interactive(user, answer)
    except paramiko.AuthenticationException as error:
        if asked or isinstance(error, _AsksForMore):
            raise
        raise paramiko.BadAuthenticationType("it asks nothing", others) from None
