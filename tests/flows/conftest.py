"""A real ledger, a real signed package, and a world of unit-test nodes around real flows."""

import itertools
from pathlib import Path

import pytest

from tests.flows.setting import Setting
from tests.world import World
from wlctl import signing
from wlctl.flows import init, packages, signers
from wlctl.flows.signing import KeyChoice


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    """An installation with one accepted signer and the package `web`, and an empty world."""
    home = tmp_path / "home"
    home.mkdir()
    made = Setting(home, World(), itertools.count(1_700_000_000_000, 1000))
    with made.runtime() as rt:
        init.init(rt)
        key = tmp_path / "signer"
        signing.generate_key(key, comment="signer")
        signers.add(rt, "me", key.with_name("signer.pub"))
        made.package = tmp_path / "web"
        write_package(made.package)
        packages.build(made.package)
        packages.sign(rt, made.package, KeyChoice(key))
    made.key = key
    return made


def write_package(directory: Path, *, name: str = "web", memory: str = "256MiB") -> None:
    """Write the smallest package that has a file."""
    (directory / "bin").mkdir(parents=True)
    run = directory / "bin" / "run"
    run.write_text("#!/bin/sh\nexec sleep 1000\n")
    run.chmod(0o755)
    (directory / "workload.toml").write_text(
        f"""\
kind = "service"
name = "{name}"
version = "1.0.0"
[run]
command = ["./bin/run"]
[[variant]]
name = "any"
files = ["bin/"]
[resources]
memory = "{memory}"
"""
    )
