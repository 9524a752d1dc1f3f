"""What `wlctl help WORD` says: gathered from the code that uses the word, and from the glossary."""

import ast
import inspect
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType

import wlctl.model
from wlctl import errors
from wlctl.errors import ExitCode, WlctlError

CRON = """\
Lines for a crontab, and for systemd, that keep a fleet as it was asked for.

As the user who owns the ledger (`crontab -e`); mail comes only when something was done or is wrong:

* * * * *  wlctl --db /home/ops/.local/share/wlctl/ledger.db reconcile --quiet
15 3 * * * wlctl --db /home/ops/.local/share/wlctl/ledger.db ledger backup --keep 14 /backups/wlctl/

cron gives no HOME of yours to rely on: name the ledger. Two passes at once are no harm, the second
one does nothing. With systemd, a service that stays does the same:

[Service]
User=ops
Environment=WLCTL_DB=/home/ops/.local/share/wlctl/ledger.db
ExecStart=/usr/local/bin/wlctl reconcile --quiet --watch 60
Restart=on-failure
[Install]
WantedBy=multi-user.target

SIGTERM ends that one after the pass under way. Or a timer starts one pass a minute:

[Service]
Type=oneshot
User=ops
Environment=WLCTL_DB=/home/ops/.local/share/wlctl/ledger.db
ExecStart=/usr/local/bin/wlctl reconcile --quiet

[Timer]
OnCalendar=minutely
AccuracySec=1s
[Install]
WantedBy=timers.target

A pass that finds something new to tell of exits 5 or 7: systemd shows that one as failed."""


RECOVER = """\
How to have a ledger back. Nodes keep what is needed for it: signed checkpoints of the chain, who is
in the fleet, and what each was asked to run. `wlctl audit verify --witnesses` says how the ledger
stands to them, and changes nothing on any.

First stop what uses the ledger by itself: cron, and `wlctl reconcile --watch`.

The ledger is deleted or damaged, and there is a backup:
  wlctl ledger restore FILE          (--replace where there is one still; it is kept aside)
  wlctl ledger rebuild

The ledger is deleted, there is no backup, and its keys are still there (keys/ beside it):
  wlctl ledger rebuild ops@10.0.0.5  (any node that was in the fleet; it knows the others)
  wlctl signer add NAME KEYFILE      (and the policy: no node knows either)

An old one is in use (ledger-rolled-back): somebody put a backup or a snapshot of the disk back. Use
the newer one, if there is one. Otherwise:
  wlctl ledger rebuild

Two copies are in use (ledger-forked): keep one, take the other away with its cron lines, and:
  wlctl ledger rebuild               (in the one that is kept)

A rebuild is over when every node has answered. One that will not come back:
  wlctl node attest-dead NODE        (your word that nothing runs there any more)
  wlctl ledger rebuild

Until then only stop, unload, cordon and revoke are done, also with a ledger that is far behind.
After it: `wlctl ps`, `wlctl status --all`, `wlctl reconcile --dry-run`, and only then cron again.

The keys are gone, too: no node lets a new key in by itself. `wlctl init` makes another one;
put its key on the nodes and add them, and end what the old one left there by hand."""


@dataclass(frozen=True, slots=True)
class Topic:
    """One word that output uses.

    Attributes:
        kind: What the word is: `error code`, or the enum it belongs to, e.g. `state`.
        text: Its docstring; paragraphs are separated by an empty line.
        exit_code: None for a word that is no error.
    """

    word: str
    kind: str
    text: str
    exit_code: ExitCode | None = None


def every() -> list[Topic]:
    """List every word that has a meaning of its own, by kind and word."""
    found = [*_exit_codes(), *_errors(), *_enums(), Topic("cron", "how to", CRON)]
    found.append(Topic("recover-ledger", "how to", RECOVER))
    found += _glossary()
    return sorted(found, key=_order)


def _order(topic: Topic) -> tuple[str, int, str]:
    return topic.kind, int(topic.word) if topic.word.isdigit() else 0, topic.word


def coded() -> list[type[WlctlError]]:
    """List the errors that have a code of their own."""

    def below(error: type[WlctlError]) -> Iterator[type[WlctlError]]:
        for special in error.__subclasses__():
            if "code" in vars(special):
                yield special
            yield from below(special)

    return sorted(below(WlctlError), key=lambda error: error.code)


def _errors() -> Iterator[Topic]:
    for error in coded():
        yield Topic(error.code, "error code", inspect.getdoc(error) or "", error.exit_code)


def _exit_codes() -> Iterator[Topic]:
    texts = member_texts(errors)
    for code in ExitCode:
        yield Topic(str(code.value), "exit code", texts["ExitCode", code.name])


def _glossary() -> Iterator[Topic]:
    package = Path(wlctl.__file__).parent
    shipped = package / "glossary.md"  # in an installed wheel
    file = shipped if shipped.is_file() else package.parent / "docs" / "glossary.md"
    for word, text in _TERM.findall(file.read_text(encoding="utf-8")):
        yield Topic(word, "word", text.strip())


_TERM = re.compile(r"^\*\*(.+?)\*\*: ((?:.+\n)+)", re.MULTILINE)


def _enums() -> Iterator[Topic]:
    for info in pkgutil.iter_modules(wlctl.model.__path__, "wlctl.model."):
        module = import_module(info.name)
        texts = member_texts(module)
        for enum in vars(module).values():
            if not (isinstance(enum, type) and issubclass(enum, Enum)):
                continue
            if enum.__module__ != module.__name__:
                continue
            for member in enum:
                yield Topic(_word(member), _kind(enum), texts.get((enum.__name__, member.name), ""))


def _word(member: Enum) -> str:
    return member.value if isinstance(member.value, str) else member.name.lower()


def _kind(enum: type[Enum]) -> str:
    """Make `desired state` of `DesiredState`."""
    return "".join(f" {c.lower()}" if c.isupper() else c for c in enum.__name__).strip()


def member_texts(module: ModuleType) -> dict[tuple[str, str], str]:
    """Read the docstring under each member of a module's enums, by class and member."""
    texts: dict[tuple[str, str], str] = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for member, after in zip(node.body, node.body[1:], strict=False):
            if isinstance(member, ast.Assign) and isinstance(member.targets[0], ast.Name):
                text = _docstring(after)
                if text:
                    texts[node.name, member.targets[0].id] = text
    return texts


def _docstring(node: ast.stmt) -> str:
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return inspect.cleandoc(text)
        case _:
            return ""
