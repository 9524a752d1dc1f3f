"""The import contracts hold, and each of them is seen to fail when it is broken."""

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRACTS = {
    contract["id"]: contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package that may be spoilt."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "wlctl", tmp_path / "wlctl", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def broken(directory: Path) -> set[str]:
    """Run the linter there and give the names of the contracts it finds broken."""
    done = subprocess.run(
        ["lint-imports", "--no-cache", "--no-logo"],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    names = {contract["name"] for contract in CONTRACTS.values()}
    found = {
        name
        for name in names
        if any(line.startswith(f"{name} BROKEN") for line in done.stdout.splitlines())
    }
    assert done.returncode == int(bool(found)), done.stdout + done.stderr
    return found


def test_no_contract_is_broken(copy: Path) -> None:
    assert broken(copy) == set()


BREACHES = [
    pytest.param("layers", "errors.py", "import wlctl.model", id="the bottom looks up"),
    pytest.param("layers", "model/node.py", "import wlctl.ledger", id="a noun reaches out"),
    pytest.param("layers", "ledger/store.py", "import wlctl.flows", id="an adapter calls a flow"),
    pytest.param("layers", "flows/runtime.py", "import wlctl.cli", id="a flow calls a command"),
    pytest.param("layers", "placement/engine.py", "import wlctl.ledger", id="a decider reads"),
    pytest.param("layers", "host/answer.py", "import wlctl.ledger", id="adapters look sideways"),
    pytest.param("layers", "package/__init__.py", "import wlctl.signing", id="and again"),
    pytest.param("layers", "helpers.py", "", id="a module without a level"),
    pytest.param("pure-deciders", "placement/engine.py", "import os", id="a decider does I/O"),
    pytest.param(
        "pure-deciders", "lifecycle/machine.py", "import time", id="a decider has a clock"
    ),
    pytest.param("pure-deciders", "gate/judge.py", "import pathlib", id="the gate reads files"),
    pytest.param("pure-deciders", "model/ids.py", "import random", id="a noun is random"),
    pytest.param(
        "sqlalchemy-in-ledger", "flows/runtime.py", "import sqlalchemy", id="SQL in flows"
    ),
    pytest.param("sqlalchemy-in-ledger", "cli/app.py", "import alembic", id="migrations in cli"),
    pytest.param("paramiko-in-ssh", "host/local.py", "import paramiko", id="SSH without SSH"),
    pytest.param("paramiko-in-ssh", "host/new.py", "import paramiko", id="SSH in a new module"),
    pytest.param(
        "cryptography-in-signing", "ledger/chain.py", "import cryptography", id="keys there"
    ),
    pytest.param("apprise-in-notify", "flows/alerting.py", "import apprise", id="in our process"),
    pytest.param("terminal-in-cli", "flows/runtime.py", "import rich", id="a flow prints"),
    pytest.param("terminal-in-cli", "config/values.py", "import typer", id="settings parse"),
]


@pytest.mark.parametrize(("contract", "module", "line"), BREACHES)
def test_a_contract_is_seen_to_break(contract: str, module: str, line: str, copy: Path) -> None:
    with (copy / "wlctl" / module).open("a") as file:
        file.write(f"\n{line}\n")

    assert CONTRACTS[contract]["name"] in broken(copy)


def test_every_contract_is_broken_once() -> None:
    assert {breach.values[0] for breach in BREACHES} == set(CONTRACTS)
