"""What was decided is listed, and explained from what was stored."""

import pytest
from sqlalchemy import update

from tests.flows.setting import Setting
from wlctl.cli import placed
from wlctl.errors import AmbiguousName, UnknownName, UsageError
from wlctl.flows import decisions as flow
from wlctl.flows.decisions import Explained
from wlctl.ledger.schema import decisions as table
from wlctl.placement import explain


def explained(setting: Setting, word: str = "", **how: bool) -> list[Explained]:
    with setting.runtime() as rt:
        return flow.explain(rt, word, **how)


def listed(setting: Setting, **only: object) -> list[str]:
    with setting.runtime() as rt:
        return [one.name for one in flow.ls(rt, **only)]  # type: ignore[arg-type]  # by name


@pytest.fixture
def decided(setting: Setting) -> Setting:
    """`p` was tried dry and placed on elm, `q` placed on oak, and `r` fitted nowhere."""
    setting.add_node("elm")
    setting.add_node("oak", memory_bytes=300 << 20)
    setting.place(name="p", pin="elm", dry_run=True)
    setting.place(name="p", pin="elm")
    setting.place(name="q", pin="oak")
    setting.place(name="r", pin="oak")
    return setting


@pytest.mark.parametrize("everything", [False, True])
def test_the_text_is_the_dry_run_s(setting: Setting, everything: bool) -> None:
    setting.add_node("elm")
    setting.add_node("oak", memory_bytes=1 << 20)
    dry = setting.place(dry_run=True)
    assert dry.document is not None
    at_the_time = list(placed.lines(dry, {}, why=(), everything=everything))
    setting.world.nodes["elm"].memory_bytes = 1
    setting.place()

    (found,) = explained(setting, str(dry.decision))

    text = list(placed.explained(found.document, why=(), everything=everything))
    assert [*text, f"decision {found.stored.id}"] == at_the_time
    assert "\n".join(text) + "\n" == explain.explain(dry.document, everything=everything)


def test_a_name_means_its_newest_decision_and_all_of_them_on_demand(decided: Setting) -> None:
    (newest,) = explained(decided, "p")
    both = explained(decided, "p", everything=True)

    assert not newest.stored.dry_run
    assert [one.stored.dry_run for one in both] == [False, True]
    assert both[0] == newest


def test_the_last_one_is_whatever_it_was_about(decided: Setting) -> None:
    (last,) = explained(decided, last=True)

    assert last.stored.name == "r"
    assert last.stored.node is None
    assert last.document["outcome"] == "unplaceable"


def test_a_decision_is_found_by_the_beginning_of_its_id_or_a_copy_that_came_of_it(
    decided: Setting,
) -> None:
    (known,) = explained(decided, "q")

    assert explained(decided, known.stored.id[:16]) == [known]
    assert explained(decided, decided.instance("q").id) == [known]


def test_copies_of_one_order_have_one_decision(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place(count=2)

    assert explained(setting, "web.2") == explained(setting, "web")


@pytest.mark.parametrize(
    ("word", "how"),
    [
        pytest.param("", {}, id="nothing"),
        pytest.param("p", {"last": True}, id="a name and the last one"),
        pytest.param("", {"last": True, "everything": True}, id="all of the last one"),
        pytest.param("", {"everything": True}, id="all of nothing"),
    ],
)
def test_which_one_has_to_be_said(decided: Setting, word: str, how: dict[str, bool]) -> None:
    with pytest.raises(UsageError, match="which decision"):
        explained(decided, word, **how)


def test_what_is_not_there_is_said(setting: Setting, decided: Setting) -> None:
    with pytest.raises(UnknownName, match="no decision zzz"):
        explained(decided, "zzz")
    with decided.runtime() as rt, rt.ledger.write(rt.now_ms(), rt.author) as tx:
        tx.conn.execute(update(table).where(table.c.name == "r").values(document=None))
    with pytest.raises(UnknownName, match="are not kept any more"):
        explained(decided, "r")


def test_before_the_first_there_is_no_last_one(setting: Setting) -> None:
    with pytest.raises(UnknownName, match="nothing was decided so far"):
        explained(setting, last=True)


def test_too_short_an_id_is_ambiguous(decided: Setting) -> None:
    with decided.runtime() as rt:
        ids = [one.id for one in flow.ls(rt)]
    shared = next((i[0] for i in ids if sum(o.startswith(i[0]) for o in ids) > 1), None)
    for _ in range(16):
        if shared is not None:
            break
        decided.place(name="x", pin="elm", dry_run=True)
        with decided.runtime() as rt:
            ids = [one.id for one in flow.ls(rt)]
        shared = next((i[0] for i in ids if sum(o.startswith(i[0]) for o in ids) > 1), None)
    assert shared is not None

    with pytest.raises(AmbiguousName):
        explained(decided, shared)


def test_decisions_are_listed_oldest_first_and_by_what_they_are(decided: Setting) -> None:
    with decided.runtime() as rt:
        moment_ms = flow.ls(rt)[2].at_ms

    assert listed(decided) == ["p", "p", "q", "r"]
    assert listed(decided, node="elm") == ["p", "p"]
    assert listed(decided, node="oak", workload="web") == ["q"]
    assert listed(decided, workload="other") == []
    assert listed(decided, since_ms=moment_ms) == ["q", "r"]
    assert listed(decided, since_ms=moment_ms + 1) == ["r"]
