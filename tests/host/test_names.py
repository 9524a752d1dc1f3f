"""Where a run is found by its name: one link for as long as its instance is there."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.bench import Bench, script
from wlctl.model.actions import Launched
from wlctl.model.ids import InstallationId

SOME = [("dash", "root"), ("bash", "sudo"), ("busybox", "plain")]
ONE = [("dash", "root")]

WORK = script('umask 027; echo "$WLCTL_INSTANCE" >"$WLCTL_RUN_DIR/who"; echo up; exec sleep 1000')
OTHER = InstallationId("inst-other")


def names(bench: Bench) -> Path:
    """The directory of the names on the node, as this side sees it."""
    if bench.node.address.user != "root" and not bench.node.address.sudo:
        return bench.node.state / "run/by-name"
    return Path(f"/proc/{bench.node.insider()}/root/run/wlctl/by-name")


@pytest.mark.kinds(SOME)
def test_a_run_is_found_by_its_name_and_the_next_one_by_the_same_link(bench: Bench) -> None:
    request = bench.run(WORK)
    bench.await_log(request, "up")
    link = names(bench) / "web"
    target = link.readlink()
    assert (link / "who").read_text("ascii") == f"{request.instance}\n"

    bench.stop(request)
    assert link.readlink() == target
    assert not link.exists(), "no run, nothing to reach"

    assert isinstance(bench.start(request, 3, 2), Launched)
    bench.await_log(request, "up")
    assert link.readlink() == target
    assert (link / "who").read_text("ascii") == f"{request.instance}\n"

    bench.clear()
    assert list(names(bench).iterdir()) == []


@pytest.mark.kinds(SOME)
def test_a_name_that_two_ledgers_use_is_found_as_whoever_came_first(bench: Bench) -> None:
    first = bench.run(WORK)
    bench.await_log(first, "up")
    link = names(bench) / "web"

    second = bench.run(WORK, installation=OTHER)
    bench.await_log(second, "up")
    assert (link / "who").read_text("ascii") == f"{first.instance}\n"
    bench.stop(second)
    bench.unload(second)
    assert (link / "who").read_text("ascii") == f"{first.instance}\n", "it was not its own to take"

    third = bench.run(WORK, installation=OTHER)
    bench.stop(first)
    assert not link.exists(), "a stop gives no name away"
    bench.unload(first)
    assert not link.is_symlink()
    bench.stop(third)
    assert isinstance(bench.start(third, 3, 2), Launched)
    bench.await_log(third, "up")
    assert (link / "who").read_text("ascii") == f"{third.instance}\n"


@pytest.mark.kinds(ONE)
def test_no_name_is_in_the_way_of_another_whatever_it_is(bench: Bench) -> None:
    other = bench.run(WORK, name="web.new")
    bench.await_log(other, "up")
    request = bench.run(WORK)
    bench.await_log(request, "up")

    for link, behind in (("web", request), ("web.new", other)):
        assert (names(bench) / link / "who").read_text("ascii") == f"{behind.instance}\n"
    assert len(list(names(bench).iterdir())) == 2


@pytest.mark.kinds(ONE)
def test_a_link_that_no_instance_is_behind_is_nobodys(bench: Bench) -> None:
    """What a node that lost its state left behind."""
    bench.clear()
    names(bench).mkdir(parents=True, exist_ok=True)
    link = names(bench) / "web"
    link.symlink_to("../0123abcd/current")

    request = bench.run(WORK)
    bench.await_log(request, "up")

    assert (link / "who").read_text("ascii") == f"{request.instance}\n"


@pytest.fixture
def proxys_group(bench: Bench) -> Iterator[int]:
    """Have the node a group `wlctl`."""
    file = bench.node.directory / "group"
    before = file.read_text("ascii")
    file.write_text(f"{before}wlctl:x:4321:\n", encoding="ascii")  # in place: it is bound there
    yield 4321
    file.write_text(before, encoding="ascii")


def read_as(bench: Bench, path: str, *groups: int) -> int:
    who = ["--reuid=65534", "--regid=65534"]
    who.append(f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups")
    enter = ["nsenter", "-t", str(bench.node.insider()), "-p", "-m", "setpriv", *who]
    return subprocess.run([*enter, "cat", path], capture_output=True, check=False).returncode


@pytest.mark.kinds([("dash", "root"), ("bash", "sudo"), ("busybox", "root")])
def test_the_group_of_proxies_and_nobody_else_may_look_into_a_run(
    bench: Bench, proxys_group: int
) -> None:
    request = bench.run(WORK)
    bench.await_log(request, "up")

    path = "/run/wlctl/by-name/web/who"
    assert read_as(bench, path, proxys_group) == 0
    assert read_as(bench, path) != 0
    listing = names(bench).stat()
    assert (listing.st_mode & 0o7777, listing.st_gid) == (0o751, proxys_group)


@pytest.mark.kinds(ONE)
def test_without_such_a_group_nobody_may(bench: Bench) -> None:
    request = bench.run(WORK)
    bench.await_log(request, "up")

    assert read_as(bench, "/run/wlctl/by-name/web/who", 4321) != 0
