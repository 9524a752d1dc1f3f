"""Policies for the flows' tests, and runs of the program by other people."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from tests.flows.setting import Setting, TestRuntime
from wlctl.flows import policy
from wlctl.model.event import Author

OWNER = """\
[[permit]]
id = "owner"
actions = ["policy.apply", "node.add", "signer.add", "approve"]
principals = ["tester"]
"""
WORK = """\
[[permit]]
id = "work"
actions = ["place", "start"]
principals = ["*"]
"""


def apply(setting: Setting, text: str) -> None:
    file = setting.home / "policy.toml"
    file.write_text(text, encoding="utf-8")
    with setting.runtime() as rt:
        policy.apply(rt, file)


def tamper(setting: Setting, statement: str) -> None:
    with sqlite3.connect(setting.home / "ledger.db") as conn:
        conn.execute(statement)
    conn.close()


@contextmanager
def run_by(setting: Setting, login: str) -> Iterator[TestRuntime]:
    with setting.runtime() as rt:
        rt.author = Author(f"{login}@controller", command="wlctl test")
        yield rt
