"""What a run plants where actions look, and what grows for years: harmless, and bounded."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.bench import nonce
from wlctl.host.local import LocalTransport
from wlctl.host.node import NodeSession
from wlctl.host.transport import Deadlines
from wlctl.model.actions import LogTail
from wlctl.model.ids import InstallationId, InstanceId
from wlctl.model.upkeep import Collected

INSTALLATION = InstallationId("inst-test")
MINE = InstanceId("i-mine")

SHELLS = [("dash",), ("bash", "--posix"), ("busybox", "ash")]

OLD_S = 10 * 86_400

REMEMBERED = 256
"""As `gc.sh` has it."""


class Place:
    """A state directory by itself, and actions that are run on it by one shell."""

    def __init__(self, state: Path, shell: tuple[str, ...]) -> None:
        self.state = state
        self.home = state / INSTALLATION
        way = LocalTransport(shell=shell)
        self.session = NodeSession(way, nonce=nonce, deadlines=Deadlines())
        self.write("node_id", f"{'0' * 32} .\n")
        (state / "store").mkdir()

    def write(self, path: str, text: str = "", *, old: bool = False) -> Path:
        file = self.state / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        if old:
            grown_old(file)
        return file

    def run(self, instance: str, number: int) -> Path:
        """The directory of a run that ended long ago, with its output, and is not the last."""
        below = f"{INSTALLATION}/instances/{instance}"
        self.write(f"{below}/current", f"{number + 1} .\n")
        self.write(f"{below}/g{number}/out", "what it said\n")
        return self.write(f"{below}/g{number}/ended", "1 .\n", old=True).parent

    def collect(self) -> Collected:
        found = self.session.collect(INSTALLATION)
        assert isinstance(found, Collected), found
        return found


def grown_old(*files: Path) -> None:
    then = time.time() - OLD_S
    for file in files:
        os.utime(file, (then, then))


@pytest.fixture(params=SHELLS, ids=lambda argv: argv[0])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    state = tmp_path / "state"
    state.mkdir()
    monkeypatch.setenv("WLCTL_NODE_STATE", str(state))
    place = Place(state, request.param)
    with contextlib.closing(place.session):
        yield place


def test_a_run_has_nothing_collected_by_what_it_plants_in_its_data(place: Place) -> None:
    place.run("i-mine", 1)
    other = place.run("i-other", 7)
    data = f"{INSTALLATION}/instances/{MINE}/data"
    mine = place.write(f"{data}/deep/out", "its own")
    place.write(f"{data}/current", "9 .\n")
    place.write(f"{data}/ended", old=True)
    place.write(f"{data}/deep/ended", old=True)
    # read as words, each of these would name somebody else's run
    place.write(f"{data}/of {other}/ended", old=True)
    place.write(f"{data}/of\n{other}/ended", old=True)
    (place.state / data / "link").symlink_to(other)
    place.write(f"{data}/by {place.state / data}/link/ended", old=True)
    place.write(f"{data}/out", "its own")
    (place.state / data / "g1").symlink_to(other)
    grown_old(other / "out")
    (other / "ended").unlink()  # nothing was proven of it

    assert place.collect().logs == 1, "that of its own earlier run"

    assert (other / "out").exists()
    assert mine.exists()
    assert (place.state / data / "out").exists()
    assert not (place.home / "instances/i-mine/g1/out").exists()


def test_what_is_remembered_of_the_departed_is_bounded_but_for_what_may_be_asked(
    place: Place,
) -> None:
    gone = [
        place.write(f"{INSTALLATION}/departed/i-{number}", f"{number}\n-\nend\n", old=number < 300)
        for number in range(1, 301)
    ]
    claims = [
        place.write(f"{INSTALLATION}/decisions/d-{number}", f"{what} .\n", old=True)
        for number in range(1, 301)
        for what in [f"placed i-{number} 1" if number % 2 else "cancelled"]
    ]
    for number, file in enumerate(claims):  # one after the other, long ago
        os.utime(file, (number, number))
    place.write(f"{INSTALLATION}/instances/i-3/opnum", "1 place running .\n")
    torn = place.write(f"{INSTALLATION}/decisions/d-torn", old=True)
    os.utime(torn, (0, 0))

    place.collect()

    left = {file for file in claims if file.exists()}
    assert claims[2] in left, "what it is about is here"
    assert torn.exists(), "what it is about is not known"
    assert left >= set(claims[-REMEMBERED + 2 :]), "the newest stay, however old they are"
    assert len(left) < REMEMBERED + 3
    # those that are of one moment are all newer than none of the others
    assert gone[-1].exists()
    assert not gone[0].exists()

    for file in gone[:2]:
        file.write_text("1\n-\nend\n", encoding="ascii")
    place.collect()
    assert gone[0].exists(), "what happened of late may still be asked for"


@pytest.mark.parametrize("size", [1 << 20, 1 << 40], ids=["a megabyte", "a terabyte"])
def test_an_output_without_a_line_and_of_any_length_is_read_at_its_end(
    place: Place, size: int
) -> None:
    run = place.run("i-mine", 1)
    place.write(f"{INSTALLATION}/instances/i-mine/current", "1 .\n")
    with (run / "out").open("wb") as file:
        file.truncate(size)
        file.seek(size)
        file.write(b"\nlast but one\nlast")
    size += 18

    last = place.session.logs(INSTALLATION, MINE, lines=2)
    some = place.session.logs(INSTALLATION, MINE, lines=10, max_bytes=4096)
    rest = place.session.logs(INSTALLATION, MINE, after=size - 4)

    assert isinstance(last, LogTail)
    assert isinstance(some, LogTail)
    assert isinstance(rest, LogTail)
    assert (last.text, last.size_bytes, last.next_byte) == ("last but one\nlast", size, size)
    assert some.text.strip("\0") == "\nlast but one\nlast"
    assert len(some.text) == 4096
    assert (rest.text, rest.next_byte) == ("last", size)


def test_the_end_of_an_output_goes_on_from_what_was_before_it_was_bounded(place: Place) -> None:
    run = place.run("i-mine", 1)
    place.write(f"{INSTALLATION}/instances/i-mine/current", "1 .\n")
    (run / "out.1").write_text("a\nb\nc\n", encoding="ascii")
    (run / "out").write_text("d\ne\n", encoding="ascii")

    said = [
        place.session.logs(INSTALLATION, MINE, lines=lines, max_bytes=most)
        for lines, most in [(9, 99), (3, 99), (9, 5), (1, 99), (9, 3)]
    ]

    texts = [one.text for one in said if isinstance(one, LogTail)]
    assert texts == ["a\nb\nc\nd\ne\n", "c\nd\ne\n", "\nd\ne\n", "e\n", "\ne\n"]
