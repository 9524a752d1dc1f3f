"""What a copy has printed, and goes on to print."""

from collections.abc import Iterator

import pytest

from tests.flows.setting import Setting
from tests.world import FakeNode
from wlctl.errors import ConnectFailed, NoOutput, UsageError
from wlctl.flows import listing, logs, starting, targets
from wlctl.flows.targets import Targets


@pytest.fixture
def elm(setting: Setting) -> FakeNode:
    setting.add_node("elm")
    setting.place()
    return setting.world.nodes["elm"]


def run_of(setting: Setting, **how: object) -> int:
    with setting.runtime() as rt:
        return logs.run_of(rt, setting.instance("web"), **how)  # type: ignore[arg-type]  # by name


def test_which_run_is_meant(setting: Setting, elm: FakeNode) -> None:
    assert run_of(setting) == logs.NEWEST
    with pytest.raises(NoOutput, match="only once"):
        run_of(setting, previous=True)
    with setting.runtime() as rt:
        starting.restart_one(rt, setting.instance("web"))

    assert elm.alive
    assert (run_of(setting), run_of(setting, previous=True)) == (logs.NEWEST, 1)
    assert run_of(setting, generation=1) == 1
    with pytest.raises(UsageError, match="two runs"):
        run_of(setting, previous=True, generation=1)


def test_the_newest_run_is_the_one_that_its_node_says(setting: Setting, elm: FakeNode) -> None:
    elm.begin_again(setting.instance("web").id)

    with setting.runtime() as rt:
        found = logs.logs(rt, "web", lines=10)

    assert (found.generation, found.is_over) == (2, False)


def test_the_run_before_the_newest_is_known_of_one_that_was_begun_again_by_itself(
    setting: Setting, elm: FakeNode
) -> None:
    elm.begin_again(setting.instance("web").id)

    assert run_of(setting, previous=True) == 1, "the ledger knows of one run, its node of two"


def test_what_never_ran_has_no_output(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place(start=False)

    with pytest.raises(NoOutput, match="never ran"):
        run_of(setting)


def followed(setting: Setting, *, lines: int = 100) -> Iterator[str]:
    with setting.runtime() as rt:
        yield from logs.follow(rt, setting.instance("web"), 1, lines=lines)


def test_following_goes_on_with_what_is_printed_until_the_run_is_over(
    setting: Setting, elm: FakeNode
) -> None:
    iid = setting.instance("web").id
    elm.output[iid] = "one\ntwo\n"
    looks = [0]

    def print_more(step: str, _moment: str) -> None:
        if step == "logs":
            looks[0] += 1
            if looks[0] in (2, 4):
                elm.output[iid] += f"look {looks[0]}\n"
            if looks[0] == 5:
                elm.exit(iid, 0)

    setting.world.hook = print_more

    assert list(followed(setting, lines=1)) == ["two", "look 2", "look 4"]


def test_a_node_that_is_gone_for_a_while_is_asked_again_where_it_was_left(
    setting: Setting, elm: FakeNode
) -> None:
    iid = setting.instance("web").id
    elm.output[iid] = "one\n"
    looks = [0]

    def fail(step: str, _moment: str) -> None:
        if step == "logs":
            looks[0] += 1
            if looks[0] == 2:
                elm.output[iid] += "two\n"
                raise ConnectFailed("gone")
            if looks[0] == 4:
                elm.exit(iid, 0)

    setting.world.hook = fail

    assert list(followed(setting)) == ["one", "two"]


def test_a_node_that_never_answered_is_a_failure(setting: Setting, elm: FakeNode) -> None:
    elm.up = False

    with pytest.raises(ConnectFailed):
        next(followed(setting))


def test_nobody_who_does_not_want_more_gets_more(setting: Setting, elm: FakeNode) -> None:
    assert elm.alive
    with setting.runtime() as rt:
        found = logs.follow(rt, setting.instance("web"), 1, lines=9, go_on=lambda: False)
        assert list(found) == ["one", "two"]


def test_ps_lists_the_current_copies_or_those_that_are_meant(
    setting: Setting, elm: FakeNode
) -> None:
    setting.place(name="api")
    with setting.runtime() as rt:
        starting.restart_one(rt, setting.instance("web"))
        everything = listing.ps(rt)
        some = listing.ps(rt, targets.find(rt, Targets(("web",))))

    assert [(one.instance.name, one.restarts, one.ports) for one in everything] == [
        ("api", 0, (("http", 20000),)),
        ("web", 1, (("http", 20000),)),
    ]
    assert some == [everything[1]]
    setting.unload("api")
    with setting.runtime() as rt:
        assert [one.instance.name for one in listing.ps(rt)] == ["web"]
