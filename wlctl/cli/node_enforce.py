"""`wlctl node enforce`: put a doorkeeper on a node, renew its lists, or take it away."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from wlctl.cli import render
from wlctl.cli.node_words import AskPass
from wlctl.cli.options import Session, session_of
from wlctl.errors import UsageError
from wlctl.model.event import Json

if TYPE_CHECKING:
    from wlctl.flows.enforce import Done, Wish
    from wlctl.model.enforcement import KeyLines


def enforce(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A node.")],
    admin: Annotated[
        str,
        typer.Option(
            "--as", metavar="LOGIN", help="An administrator's login there: root, or one with sudo."
        ),
    ] = "",
    projects: Annotated[
        str,
        typer.Option(
            metavar="P,…",
            help="Take work of these projects only; '*' takes all. Kept until changed.",
        ),
    ] = "",
    leave_key: Annotated[
        bool,
        typer.Option("--leave-key", help="Print the key's line, and leave authorized_keys alone."),
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take all of it away again.")] = False,
    ask_pass: AskPass = False,
) -> None:
    """Have a node verify for itself what it is sent, so that wlctl's key is no shell key there.

    Over your own login, never by wlctl's key, it puts a doorkeeper, the list of this version's
    actions and the list of accepted signers into /etc/wlctl, and lets wlctl's key start nothing but
    the doorkeeper. Whoever has that key can then stop things, and start again what was signed and
    is not revoked. Run it again after an upgrade, and when signers change.
    """
    session = session_of(ctx)
    if not admin:
        raise UsageError(
            "an administrator's login is needed; wlctl's own key must not do this",
            hint=f"`wlctl node enforce {name} --as root`",
        )
    if ask_pass:
        session.runtime.admin_passwords = session.passwords()
    if remove:
        if projects or leave_key:
            raise UsageError("--remove takes all of it away", hint="give it alone, with --as")
        _remove(session, name, admin)
        return
    from wlctl.flows import enforce as flow

    wish = flow.Wish(
        admin,
        projects=projects.split(",") if projects else None,
        key_line=not leave_key,
    )
    done = flow.enforce(
        session.runtime, name, wish, accept=lambda seen: _confirm(session, name, wish, seen)
    )
    render.document(session, "wlctl.enforcement/1", _document(done), _lines(done), name=name)


def _confirm(session: Session, name: str, wish: "Wish", seen: "KeyLines") -> None:
    if wish.key_line and seen.open:
        where = ", ".join(seen.open)
        session.note(f"in {where} on {name} the line of wlctl's key becomes: {seen.line}")
        session.confirm(f"Put doorkeeper and lists on {name}, and replace that line?")


def _remove(session: Session, name: str, admin: str) -> None:
    from wlctl.flows import enforce as flow

    removed = flow.remove(
        session.runtime,
        name,
        admin,
        accept=lambda: session.confirm(f"Let wlctl's key open a shell on {name} again?"),
    )
    document: dict[str, Json] = {"name": name, "enforced": False, "removed": list(removed)}
    lines = [f"{name} is not enforced: wlctl's key opens a shell there"]
    lines += [f"  removed {path}" for path in removed]
    render.document(session, "wlctl.enforcement/1", document, lines, name=name)


def _lines(done: "Done") -> Iterator[str]:
    node, keys = done.node, done.keys
    if done.is_shut:
        yield f"{node.name} is enforced: wlctl's key opens only the doorkeeper there"
    else:
        yield f"{node.name} is not enforced yet: wlctl's key still opens a shell there"
    for path in keys.files:
        yield f"  put {path}"
    for title, names in (
        ("signers", _signers(done)),
        ("projects", done.wanted.projects or ("all",)),
        ("actions", _actions(done)),
    ):
        yield f"  {title}: {', '.join(names) or 'none'}"
    for path in keys.shut:
        yield f"  in {path}:"
    if not done.is_shut:
        yield "  put this in place of its line, wherever its keys come from, then enforce it again:"
    yield f"  {keys.line}"


def _signers(done: "Done") -> tuple[str, ...]:
    return tuple(line.split(" ", 1)[0] for line in done.wanted.signers.splitlines())


def _actions(done: "Done") -> tuple[str, ...]:
    return tuple(line.split(" ")[1] for line in done.wanted.actions.splitlines())


def _document(done: "Done") -> dict[str, Json]:
    return {
        "name": done.node.name,
        "enforced": done.is_shut,
        "files": list(done.keys.files),
        "signers": list(_signers(done)),
        "projects": list(done.wanted.projects),
        "actions": list(_actions(done)),
        "key_line": done.keys.line,
        "key_files": list(done.keys.shut),
        "open_key_files": list(done.keys.open),
    }
