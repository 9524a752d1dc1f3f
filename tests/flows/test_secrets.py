"""Secrets: got where the settings say, sent to the node, and seen nowhere else."""

import os
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from tests.flows import policed
from tests.flows.setting import Setting, TestRuntime, settings_for
from wlctl.config.secrets import SecretSource
from wlctl.errors import SecretUnavailable, UsageError
from wlctl.flows import packages, secrets, starting
from wlctl.flows.deciding import Order
from wlctl.flows.place import place
from wlctl.flows.signing import KeyChoice
from wlctl.flows.start_intents import Begin
from wlctl.model.instance import State
from wlctl.model.node import Tier

SENTINEL = "s3ntinel-value"
ALLOWED = (
    policed.OWNER
    + """
[[permit]]
id = "work"
actions = ["place", "start", "stop", "unload"]
principals = ["*"]
min_node_tier = "trusted"
allow_secrets = true
"""
)


@pytest.fixture
def wanting(setting: Setting) -> Setting:
    """A fleet of one trusted node, and a package that needs DB_PASSWORD."""
    description = setting.package / "workload.toml"
    text = description.read_text().replace("[[variant]]", 'secrets = ["DB_PASSWORD"]\n[[variant]]')
    description.write_text(text)
    with setting.runtime() as rt:
        packages.build(setting.package)
        packages.sign(rt, setting.package, KeyChoice(setting.key))
    policed.apply(setting, ALLOWED)
    setting.add_node("elm", tier=Tier.TRUSTED)
    return setting


def runtime(setting: Setting, **sources: SecretSource) -> TestRuntime:
    known = replace(settings_for(setting.home), secrets=sources)
    return TestRuntime(known, setting.world, setting.clock)


def test_a_secret_reaches_the_node_and_is_in_no_row_no_event_and_no_answer(
    wanting: Setting, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text(SENTINEL)
    file.chmod(0o600)
    rt = runtime(wanting, DB_PASSWORD=SecretSource("here", file=str(file)))

    report = place(rt, Order(wanting.package))
    rt.ledger.close()

    (sent,) = wanting.world.nodes["elm"].placed.values()
    assert sent.secrets == (("DB_PASSWORD", SENTINEL),)
    assert SENTINEL not in repr(sent)
    assert SENTINEL not in repr(report)
    dumped = "\n".join(sqlite3.connect(wanting.home / "ledger.db").iterdump())
    assert SENTINEL not in dumped
    assert SENTINEL.encode() not in (wanting.home / "ledger.db").read_bytes()


def test_an_order_may_take_it_from_another_entry(
    wanting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROD_PASSWORD", SENTINEL)
    rt = runtime(wanting, prod=SecretSource("here", env="PROD_PASSWORD"))

    place(rt, Order(wanting.package, secrets=(("DB_PASSWORD", "prod"),)))
    rt.ledger.close()

    (sent,) = wanting.world.nodes["elm"].placed.values()
    assert sent.secrets == (("DB_PASSWORD", SENTINEL),)


def test_what_cannot_be_got_is_said_before_anything_is_decided(wanting: Setting) -> None:
    rt = runtime(wanting, other=SecretSource("here", env="OTHER"))

    with pytest.raises(SecretUnavailable, match="nothing says where the secret DB_PASSWORD is"):
        place(rt, Order(wanting.package))
    with pytest.raises(SecretUnavailable, match="nothing says"):
        place(rt, Order(wanting.package, dry_run=True))
    with pytest.raises(UsageError, match="takes no secret TOKEN"):
        place(rt, Order(wanting.package, secrets=(("TOKEN", "other"),)))
    rt.ledger.close()
    assert wanting.events("workload.place") == []


def test_a_dry_run_gets_no_value(wanting: Setting) -> None:
    rt = runtime(wanting, DB_PASSWORD=SecretSource("here", command=("/bin/false",)))

    report = place(rt, Order(wanting.package, dry_run=True))
    rt.ledger.close()

    assert report.placeable


def test_what_cannot_be_got_stops_nothing_for_a_restart(
    wanting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSWORD", SENTINEL)
    rt = runtime(wanting, DB_PASSWORD=SecretSource("here", env="PASSWORD"))
    place(rt, Order(wanting.package))
    monkeypatch.delenv("PASSWORD")

    with pytest.raises(SecretUnavailable, match="PASSWORD is not set"):
        starting.restart_one(rt, wanting.instance("web"))

    assert wanting.instance("web").state is State.RUNNING
    assert [name for name, _ in wanting.alive()] == ["elm"], "the run that was there is there"
    monkeypatch.setenv("PASSWORD", SENTINEL)
    assert starting.restart_one(rt, wanting.instance("web")).begin is Begin.DONE
    rt.ledger.close()


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        pytest.param(b"x", 0o640, "open to others", id="its group can read it"),
        pytest.param(b"x", 0o604, "open to others", id="anybody can read it"),
        pytest.param(b"", 0o600, "empty", id="it is empty"),
        pytest.param(b"a\0b", 0o600, "NUL", id="it has a NUL byte"),
        pytest.param(b"\xff", 0o600, "not UTF-8", id="it is no text"),
        pytest.param(b"x" * (secrets.MAX_BYTES + 1), 0o600, "longer than", id="it is too long"),
    ],
)
def test_a_file_that_cannot_be_a_secret_is_refused_without_showing_it(
    wanting: Setting, tmp_path: Path, content: bytes, mode: int, why: str
) -> None:
    file = tmp_path / "password"
    file.write_bytes(content)
    file.chmod(mode)
    rt = runtime(wanting, P=SecretSource("here", file=str(file)))

    with pytest.raises(SecretUnavailable, match=why):
        secrets.resolve(rt, ["P"], {})


def test_the_longest_secret_there_may_be_is_one(wanting: Setting, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_bytes(b"x" * secrets.MAX_BYTES)
    file.chmod(0o600)
    rt = runtime(wanting, P=SecretSource("here", file=str(file)))

    ((_, value),) = secrets.resolve(rt, ["P"], {})

    assert len(value) == secrets.MAX_BYTES


@pytest.mark.parametrize(
    ("command", "why"),
    [
        pytest.param(("/bin/false",), "ended with status 1", id="it fails"),
        pytest.param(("/nonexistent/tool",), "No such file", id="it is not there"),
        pytest.param(("/bin/true",), "empty", id="it prints nothing"),
    ],
)
def test_a_command_that_gives_no_secret_is_named_by_its_program_alone(
    wanting: Setting, command: tuple[str, ...], why: str
) -> None:
    rt = runtime(wanting, P=SecretSource("here", command=(*command, "--token=s3ntinel")))

    with pytest.raises(SecretUnavailable, match=why) as failure:
        secrets.resolve(rt, ["P"], {})
    assert "s3ntinel" not in failure.value.message


def test_a_command_gives_what_it_prints_without_its_last_newline(wanting: Setting) -> None:
    rt = runtime(wanting, P=SecretSource("here", command=("/usr/bin/printf", r"a\n\nb\n")))

    assert secrets.resolve(rt, ["P"], {}) == (("P", "a\n\nb"),)


def test_a_variable_that_is_not_set_is_no_secret(wanting: Setting) -> None:
    assert "NOT_SET_HERE" not in os.environ
    rt = runtime(wanting, P=SecretSource("here", env="NOT_SET_HERE"))

    with pytest.raises(SecretUnavailable, match="NOT_SET_HERE is not set"):
        secrets.resolve(rt, ["P"], {})
