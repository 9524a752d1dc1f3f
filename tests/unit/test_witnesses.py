"""How a ledger stands to what a node keeps of it, on both sides of every edge."""

import pytest

from wlctl.lifecycle.witnesses import is_due, judge
from wlctl.model.upkeep import ChainPoint
from wlctl.model.witness import DOUBTFUL, Ours, Standing

OURS, OTHER = "a" * 64, "b" * 64
HEAD = ChainPoint(2, 100, OURS)


@pytest.mark.parametrize(
    ("theirs", "there", "known", "standing"),
    [
        pytest.param(None, "", None, Standing.NONE, id="a node that keeps none says nothing"),
        pytest.param((2, 100, OURS), OURS, None, Standing.AGREES, id="the newest event itself"),
        pytest.param((2, 99, OURS), OURS, None, Standing.AGREES, id="an event before it"),
        pytest.param((2, 99, OTHER), OURS, None, Standing.FORKED, id="another event before it"),
        pytest.param((2, 100, OTHER), OURS, None, Standing.FORKED, id="another newest event"),
        pytest.param((2, 101, OURS), "", None, Standing.ROLLED_BACK, id="one event more"),
        pytest.param((3, 1, OURS), OURS, None, Standing.ROLLED_BACK, id="a later epoch, ever so"),
        pytest.param((1, 49, OURS), OURS, None, Standing.AGREES, id="an event of before a rebuild"),
        pytest.param((1, 50, OTHER), OURS, (1, 50), Standing.SUPERSEDED, id="given up by it"),
        pytest.param(
            (1, 50, OTHER), OURS, (2, 7), Standing.SUPERSEDED, id="given up, and left since"
        ),
        pytest.param(
            (1, 900, OTHER), "", (1, 900), Standing.SUPERSEDED, id="longer than the chain"
        ),
        pytest.param((1, 51, OTHER), OURS, (1, 50), Standing.FORKED, id="more than it gave up"),
        pytest.param((0, 9, OTHER), OURS, None, Standing.FORKED, id="of a node it did not ask"),
    ],
)
def test_a_ledger_is_believed_where_it_has_what_a_node_was_told(
    theirs: tuple[int, int, str] | None,
    there: str,
    known: tuple[int, int] | None,
    standing: Standing,
) -> None:
    point = None if theirs is None else ChainPoint(*theirs)

    assert judge(Ours(HEAD, there, known), point) is standing


def test_only_what_was_rolled_back_or_forked_is_doubted() -> None:
    assert set(DOUBTFUL) == {Standing.ROLLED_BACK, Standing.FORKED}


@pytest.mark.parametrize(
    ("theirs", "left_at_ms", "due"),
    [
        pytest.param(HEAD, None, False, id="it has the newest, whoever left it"),
        pytest.param(None, None, True, id="it has none"),
        pytest.param(None, 999, True, id="it has none any more"),
        pytest.param(ChainPoint(2, 99, OURS), None, True, id="it was never left one by this one"),
        pytest.param(ChainPoint(2, 99, OURS), 501, False, id="it was left one just now"),
        pytest.param(ChainPoint(2, 99, OURS), 500, True, id="long enough ago"),
        pytest.param(ChainPoint(2, 99, OURS), 1001, True, id="the clock was set back since"),
    ],
)
def test_a_checkpoint_is_left_when_something_happened_and_not_too_often(
    theirs: ChainPoint | None, left_at_ms: int | None, due: bool
) -> None:
    assert is_due(HEAD, theirs, left_at_ms=left_at_ms, now_ms=1000, every_ms=500) is due
