"""A ledger that was deleted, set back or copied, told as an operator types it, on real nodes."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.field import ELM, OAK, Fleet, program
from tests.fleet.sample import TIMEOUT_S
from wlctl.errors import ExitCode
from wlctl.flows import node_changes, nodes, signers
from wlctl.flows.ending import End
from wlctl.flows.start_intents import Begin
from wlctl.ledger import instances
from wlctl.model.node import Tier

pytestmark = pytest.mark.timeout(TIMEOUT_S)


def typed(fleet: Fleet, *args: str, code: ExitCode = ExitCode.DONE, db: Path | None = None) -> str:
    """Type a command, see how it ends, and answer what it says."""
    more = {} if db is None else {"WLCTL_DB": str(db)}
    running = program(fleet, *args, WLCTL_YES="1", **more)
    out, err = running.communicate(timeout=120)
    assert running.returncode == code, (args, out, err)
    return out + err


def placed(fleet: Fleet) -> None:
    """A copy on each node."""
    for name, node in (("web", ELM), ("api", OAK)):
        fleet.place(name=name, pin=node)
    assert sorted(fleet.copies()) == [ELM, OAK]


def states(fleet: Fleet) -> dict[str, str]:
    with fleet.runtime() as rt, rt.ledger.read() as tx:
        return {one.name: one.state.value for one in instances.current(tx)}


def ended(fleet: Fleet, *names: str) -> None:
    """Everything can be stopped, proven and unloaded, and every node agrees."""
    typed(fleet, "stop", *names)
    assert typed(fleet, "prove", *names).count("proven") >= len(names)
    for name in names:
        assert fleet.unload(name).end is End.DONE
    assert fleet.copies() == []
    assert "whole" in typed(fleet, "audit", "verify", "--witnesses")


@pytest.fixture
def itself(fleet: Fleet) -> Iterator[Fleet]:
    """The fleet, whose ledger is as good as before afterwards: its signer is accepted."""
    yield fleet
    with fleet.runtime() as rt:
        if "me" not in {one.name for one in signers.ls(rt)}:
            signers.add(rt, "me", (fleet.home / "signer").with_name("signer.pub"))


def test_a_deleted_ledger_is_made_again_from_one_node_and_everything_can_be_ended(
    itself: Fleet,
) -> None:
    fleet = itself
    placed(fleet)
    fleet.stop("api")
    for file in fleet.home.glob("ledger.db*"):
        file.unlink()
    typed(fleet, "ps", code=ExitCode.USAGE)
    oak = fleet.oak.address

    said = typed(fleet, "ledger", "rebuild", f"{oak.user}@{oak.host}", "--port", str(oak.port))

    assert "2 nodes answered" in said
    assert states(fleet) == {"web": "running", "api": "stopping"}
    assert fleet.copies() == [ELM]
    with fleet.runtime() as rt:
        known = [(one.name, one.tier) for one in nodes.ls(rt)]
    assert known == [(ELM, Tier.PAIRED), (OAK, Tier.PAIRED)]
    ended(fleet, "web", "api")


def test_an_old_backup_only_ends_things_until_it_was_rebuilt(itself: Fleet) -> None:
    fleet = itself
    placed(fleet)
    backup = fleet.home / "backup.db"
    typed(fleet, "ledger", "backup", str(backup))
    fleet.stop()
    fleet.start()
    fleet.unload("api")
    fleet.place(name="late", pin=OAK)
    typed(fleet, "ledger", "restore", str(backup), code=ExitCode.USAGE)
    typed(fleet, "ledger", "restore", str(backup), "--replace")

    for refused in (("place", "web", "--name", "more"), ("restart", "web"), ("reconcile",)):
        assert "[ledger-rolled-back]" in typed(fleet, *refused, code=ExitCode.LEDGER)
    assert sorted(fleet.copies()) == [ELM, OAK], "nothing was sent"
    typed(fleet, "node", "cordon", "elm")
    typed(fleet, "stop", "web")
    assert fleet.copies() == [OAK]
    typed(fleet, "ledger", "rebuild")

    assert states(fleet) == {"web": "stopped", "late": "running"}
    with fleet.runtime() as rt:
        node_changes.uncordon(rt, ELM)
    assert fleet.start().begin is Begin.DONE
    ended(fleet, "web", "late")
    backup.unlink()
    for aside in fleet.home.glob("ledger.db.replaced-*"):
        aside.unlink()


def test_a_copied_ledger_that_is_used_on_two_machines_is_found_at_the_first_contact(
    itself: Fleet, tmp_path: Path
) -> None:
    fleet = itself
    placed(fleet)
    shutil.copytree(fleet.home, tmp_path / "other")
    other = tmp_path / "other" / "ledger.db"
    typed(fleet, "place", "web", "--name", "there", "--pin", "elm", "--detach", db=other)

    said = typed(fleet, "place", "web", "--name", "here", "--pin", "elm", code=ExitCode.LEDGER)

    assert "[ledger-forked]" in said or "[ledger-rolled-back]" in said
    assert sorted(fleet.copies()) == [ELM, ELM, OAK], "nothing was sent"
    said = typed(fleet, "audit", "verify", "--witnesses", code=ExitCode.LEDGER)
    assert "elm was told" in said
    typed(fleet, "ledger", "rebuild")
    assert states(fleet).keys() == {"web", "api", "there"}
    typed(fleet, "place", "web", "--name", "more", code=ExitCode.LEDGER, db=other)
    assert sorted(fleet.copies()) == [ELM, ELM, OAK], "the other one is told at once"
    ended(fleet, "web", "api", "there")


def test_what_a_backup_holds_of_keys_is_its_owners_alone(itself: Fleet, tmp_path: Path) -> None:
    fleet = itself
    backup = tmp_path / "backup.db"
    typed(fleet, "ledger", "backup", str(backup))
    secret = (fleet.home / "keys" / "ssh_ed25519").read_bytes().splitlines()[1]

    found = subprocess.run(
        ["grep", "-rlF", secret.decode(), str(fleet.home), str(tmp_path)],
        capture_output=True,
        encoding="utf-8",
        check=False,
    ).stdout.split()

    assert sorted(found) == sorted([str(fleet.home / "keys" / "ssh_ed25519"), str(backup)])
    assert backup.stat().st_mode & 0o777 == 0o600
