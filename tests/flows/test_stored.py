"""The controller's store: what it has lost comes back, what nobody needs goes, and nothing else."""

import itertools
import os
import shutil
from pathlib import Path

import pytest

from tests.flows.conftest import write_package
from tests.flows.setting import Setting
from tests.world import FakeNode
from wlctl.errors import ConnectionLost, FileMissing, UnknownName, UntrustedSigner
from wlctl.flows import packages, signers, stored
from wlctl.flows.signing import KeyChoice
from wlctl.flows.stored import COLLECT_AGE_MS
from wlctl.package.store import Store
from wlctl.package.verify import read

DAY_S = 86_400


@pytest.fixture
def placed(setting: Setting) -> Setting:
    """`web` runs on `elm`, and its build directory is gone."""
    setting.add_node("elm")
    setting.place()
    shutil.rmtree(setting.package)
    return setting


def root(setting: Setting) -> Path:
    return setting.home / "store"


def held(setting: Setting) -> set[str]:
    return {path.name for path in root(setting).iterdir() if path.is_file()}


def lose(setting: Setting, *, keep: int = 0) -> set[str]:
    """Empty the store, but for so many files; return what is lost."""
    lost = sorted(held(setting))[keep:]
    for name in lost:
        (root(setting) / name).unlink()
    return set(lost)


def elm(setting: Setting) -> FakeNode:
    return setting.world.nodes["elm"]


def fetch(setting: Setting, words: str = "web@1.0.0", *, node: str = "") -> stored.Restored:
    with setting.runtime() as rt:
        return stored.fetch(rt, words, node=node)


def gc(setting: Setting, *, dry_run: bool = False) -> stored.Collected:
    with setting.runtime() as rt:
        return stored.gc(rt, dry_run=dry_run)


def ls(setting: Setting) -> dict[str, stored.Listed]:
    with setting.runtime() as rt:
        return {one.package.version: one for one in stored.ls(rt)}


def admit(setting: Setting, package: Path | str) -> packages.Admitted:
    """Admit and record a package, as `place` and its dry run do."""
    with setting.runtime() as rt:
        admitted = packages.admit(rt, Path(package))
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            packages.record(tx, admitted)
        return admitted


def make(setting: Setting, version: str) -> Path:
    """Build and sign another version of `web`, whose script is another, too."""
    directory = setting.home / f"web-{version}"
    write_package(directory)
    described = directory / "workload.toml"
    described.write_text(described.read_text().replace("1.0.0", version))
    run = directory / "bin" / "run"
    run.write_text(f"#!/bin/sh\nexec sleep {version.replace('.', '')}\n")
    with setting.runtime() as rt:
        packages.build(directory)
        packages.sign(rt, directory, KeyChoice(setting.key))
    return directory


def grow_old(setting: Setting) -> None:
    """Let every file of the store look a day older than the clock of the setting."""
    now_s = next(setting.clock) / 1000
    for path in root(setting).iterdir():
        if path.is_file():
            os.utime(path, (now_s - DAY_S, now_s - DAY_S))


def test_what_the_store_has_lost_is_fetched_from_who_runs_it(placed: Setting) -> None:
    lost = lose(placed)

    done = fetch(placed)

    assert {one.file.sha256 for one in done.fetched} == lost == held(placed)
    assert {one.node for one in done.fetched} == {"elm"}
    assert fetch(placed).fetched == ()
    assert admit(placed, "web@1.0.0").signers == ("me",)


def test_a_stored_package_is_placed_though_the_store_has_lost_its_files(placed: Setting) -> None:
    placed.add_node("ash")
    lost = lose(placed, keep=1)
    placed.package = Path("web@1.0.0")

    assert placed.place(name="again", pin="ash").attempt is not None

    assert lost <= set(placed.world.nodes["ash"].store)


def test_a_file_that_has_rotted_in_the_store_is_fetched_too(placed: Setting) -> None:
    [first, *_] = sorted(held(placed))
    path = root(placed) / first
    path.chmod(0o644)
    path.write_bytes(b"rot")

    assert [one.file.sha256 for one in fetch(placed).fetched] == [first]
    assert Store(root(placed)).verify(first)


def test_what_a_node_sends_is_taken_only_when_it_is_what_was_signed(placed: Setting) -> None:
    """Of the right size, and another content: a node that is hostile, or a disk that rots."""
    lost = lose(placed)
    for name, content in elm(placed).store.items():
        elm(placed).store[name] = bytes(len(content))

    with pytest.raises(FileMissing, match=r"elm: what it sent as [0-9a-f]{12} is something else"):
        fetch(placed)

    assert not held(placed) & lost
    assert not any((root(placed) / "tmp").iterdir())


@pytest.mark.parametrize("spoil", ["longer", "gone", "down", "foreign", "lost"])
def test_who_cannot_give_a_file_is_named_with_the_reason(placed: Setting, spoil: str) -> None:
    node = elm(placed)
    match spoil:
        case "longer":
            node.store = {name: content + b"x" for name, content in node.store.items()}
            said = "bytes, not"
        case "gone":
            node.store.clear()
            said = "it has none of them"
        case "down":
            node.up = False
            said = "elm"
        case "foreign":
            node.node_id = "f" * 32
            said = "elm"
        case _:
            placed.world.hook = _lose_the_connection
            said = "elm"
    lost = lose(placed)

    with pytest.raises(FileMissing, match=said):
        fetch(placed)
    assert not held(placed) & lost


def _lose_the_connection(step: str, moment: str) -> None:
    if step == "fetch":
        raise ConnectionLost("the connection ended before the answer did")


def test_the_node_that_is_named_is_asked_whatever_the_ledger_says(placed: Setting) -> None:
    placed.add_node("ash")
    placed.world.nodes["ash"].store.update(elm(placed).store)
    lose(placed)

    assert {one.node for one in fetch(placed, node="ash").fetched} == {"ash"}
    with pytest.raises(UnknownName):
        lose(placed)
        fetch(placed, node="oak")


def test_a_second_node_gives_what_the_first_cannot(placed: Setting) -> None:
    placed.add_node("ash")
    placed.package = Path("web@1.0.0")
    placed.place(name="again", pin="ash")
    lose(placed)
    placed.world.nodes["ash"].store.clear()

    assert {one.node for one in fetch(placed).fetched} == {"elm"}


def test_nobody_is_asked_for_a_package_that_is_not_vouched_for(placed: Setting) -> None:
    lose(placed)
    with placed.runtime() as rt:
        signers.rm(rt, "me")
    asked: list[str] = []
    placed.world.hook = lambda step, _moment: asked.append(step)

    with pytest.raises(UntrustedSigner):
        admit(placed, "web@1.0.0")

    assert asked == []


def test_the_store_keeps_what_a_copy_has_and_had_before_and_lets_go_of_the_rest(
    setting: Setting,
) -> None:
    setting.add_node("elm")
    versions = ["1.1.0", "1.2.0", "1.3.0"]
    for version in versions:
        setting.package = make(setting, version)
        setting.place(name="web")
        if version != versions[-1]:
            setting.unload("web")
    admit(setting, make(setting, "2.0.0"))
    setting.clock = itertools.count(next(setting.clock) + 2 * COLLECT_AGE_MS, 1000)
    grow_old(setting)
    listed = ls(setting)
    assert listed["1.3.0"].used_by == ("web",)
    assert listed["1.2.0"].previous_of == ("web",)
    before = held(setting)

    tried = gc(setting, dry_run=True)
    assert held(setting) == before
    done = gc(setting)

    assert tried == done
    assert done.kept == 2
    assert [one.version for one in done.forgotten] == ["2.0.0"]
    listed = ls(setting)
    assert {version: one.missing > 0 for version, one in listed.items()} == {
        "1.1.0": True,
        "1.2.0": False,
        "1.3.0": False,
    }
    assert {name for name, _ in done.files} == before - held(setting)
    assert done.size_bytes == sum(size for _, size in done.files)
    assert gc(setting).files == ()


def test_what_came_within_the_hour_stays_since_somebody_may_be_placing_it(
    setting: Setting,
) -> None:
    admit(setting, setting.package)
    grow_old(setting)
    admitted = admit(setting, setting.package)  # what `place` does before it records anything
    now_s = next(setting.clock) / 1000
    for file in admitted.manifest.files:
        path = root(setting) / file.sha256
        assert path.stat().st_mtime > now_s, "it was touched, by the real clock"

    assert gc(setting).files == ()
    grow_old(setting)
    assert len(gc(setting).files) == 2


def test_a_copy_that_is_placed_while_the_store_is_collected_keeps_its_files(
    setting: Setting,
) -> None:
    setting.add_node("elm")
    admit(setting, setting.package)
    grow_old(setting)

    def collect_at_the_worst_moment(step: str, moment: str) -> None:
        if (step, moment) == ("offer", "before"):
            grow_old(setting)
            gc(setting)

    setting.world.hook = collect_at_the_worst_moment
    assert setting.place().attempt is not None
    assert setting.instance("web").state.value == "running"


def test_a_store_that_is_not_there_has_nothing_to_collect(setting: Setting) -> None:
    assert gc(setting).files == ()
    assert not root(setting).exists()


def test_files_that_are_not_wlctls_are_left_alone(setting: Setting) -> None:
    admit(setting, setting.package)
    (root(setting) / "README").write_text("mine")
    grow_old(setting)

    gc(setting)

    assert held(setting) == {"README"}


def test_a_package_is_listed_with_what_the_store_lacks_of_it(placed: Setting) -> None:
    assert ls(placed)["1.0.0"].missing == 0
    lose(placed, keep=1)

    [one] = ls(placed).values()

    assert (one.files, one.missing, one.used_by, one.previous_of) == (2, 1, ("web",), ())
    assert one.size_bytes > 0


def test_a_file_of_another_package_is_fetched_from_where_that_one_ran(setting: Setting) -> None:
    """The same script in two packages: who has the one has what the other needs."""
    setting.add_node("elm")
    setting.place()
    other = setting.home / "other"
    write_package(other, name="other")
    with setting.runtime() as rt:
        packages.build(other)
        packages.sign(rt, other, KeyChoice(setting.key))
    admit(setting, other)
    [script] = [one for one in read(other).manifest.files if one.path == "bin/run"]
    (root(setting) / script.sha256).unlink()

    [one] = fetch(setting, "other@1.0.0").fetched
    assert (one.file.sha256, one.node) == (script.sha256, "elm")
