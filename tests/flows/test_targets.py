"""Which copies a command is about, and one thing done to all of them."""

import threading

import pytest

from tests.flows.setting import Setting
from wlctl.errors import AmbiguousName, ConnectFailed, Interrupted, UnknownName, UsageError
from wlctl.flows import packages, targets
from wlctl.flows.ending import End, stop_one
from wlctl.flows.listing import LATELY_MS
from wlctl.flows.signing import KeyChoice
from wlctl.flows.targets import LANES, Done, Failed, Targets
from wlctl.model.instance import Instance
from wlctl.model.package import RestartPolicy

NOISY = '[policy]\nlabels = ["noisy", "batch"]\n'


@pytest.fixture
def three(setting: Setting) -> Setting:
    """`a` and `b` of the workload web on two nodes, and `c` of the noisy workload loud."""
    setting.busy_timeout_s = 30  # several verbs at once wait for each other
    setting.add_node("elm")
    setting.add_node("oak")
    setting.place(name="a", pin="elm")
    setting.place(name="b", pin="oak")
    described = setting.package / "workload.toml"
    described.write_text(described.read_text().replace('"web"', '"loud"') + NOISY)
    with setting.runtime() as rt:
        packages.build(setting.package)
        packages.sign(rt, setting.package, KeyChoice(setting.key))
    setting.place(name="c", pin="elm")
    return setting


def found(setting: Setting, wanted: Targets, *, gone: bool = False) -> list[str]:
    with setting.runtime() as rt:
        return [one.name for one in targets.find(rt, wanted, gone=gone)]


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        pytest.param(Targets(("b", "a")), ["b", "a"], id="names, in their order"),
        pytest.param(Targets(("a", "a")), ["a"], id="a name that is said twice counts once"),
        pytest.param(Targets(everything=True), ["a", "b", "c"], id="all of them"),
        pytest.param(Targets(workload="web"), ["a", "b"], id="those of a workload"),
        pytest.param(Targets(node="elm"), ["a", "c"], id="those on a node"),
        pytest.param(Targets(labels=("noisy",)), ["c"], id="those that carry a label"),
        pytest.param(Targets(labels=("noisy", "batch")), ["c"], id="those that carry two"),
        pytest.param(Targets(labels=("noisy", "quiet")), [], id="nobody carries both"),
        pytest.param(Targets(workload="web", node="elm"), ["a"], id="what has all properties"),
        pytest.param(Targets(workload="nobody"), [], id="a workload nobody has is no mistake"),
        pytest.param(Targets(workload="web", everything=True), ["a", "b"], id="all narrows none"),
    ],
)
def test_copies_are_chosen_by_name_or_by_what_they_are(
    three: Setting, wanted: Targets, names: list[str]
) -> None:
    assert found(three, wanted) == names


def test_an_id_and_its_beginning_mean_the_copy_and_count_once(three: Setting) -> None:
    iid = three.instance("a").id

    assert found(three, Targets((iid, "a", iid[:12]))) == ["a"]


@pytest.mark.parametrize(
    ("wanted", "failure", "said"),
    [
        pytest.param(Targets(), UsageError, "no copy is named", id="nothing is asked for"),
        pytest.param(
            Targets(("a",), node="elm"), UsageError, "not both", id="by name and by what it is"
        ),
        pytest.param(Targets(("a", "x")), UnknownName, "no instance x", id="one means nothing"),
        pytest.param(Targets(node="ash"), UnknownName, "no node ash", id="no such node"),
    ],
)
def test_a_mistake_is_said_and_nothing_is_chosen(
    three: Setting, wanted: Targets, failure: type[Exception], said: str
) -> None:
    with pytest.raises(failure, match=said):
        found(three, wanted)


def test_what_fits_more_than_one_lists_them(three: Setting) -> None:
    with pytest.raises(AmbiguousName, match=three.instance("b").id):
        found(three, Targets(("i",)))


def test_what_was_unloaded_is_meant_only_where_that_is_wanted(three: Setting) -> None:
    three.unload("a")

    assert found(three, Targets(everything=True)) == ["b", "c"]
    assert found(three, Targets(("a",)), gone=True) == ["a"]
    with pytest.raises(UnknownName):
        found(three, Targets(("a",)))


def test_each_copy_fails_alone_and_the_answers_keep_their_order(three: Setting) -> None:
    three.world.nodes["oak"].up = False

    with three.runtime() as rt:
        chosen = targets.find(rt, Targets(("c", "b", "a")))
        answers = targets.each(rt, chosen, lambda one: stop_one(rt, one).end)

    assert answers == [
        Done(chosen[0], End.DONE),
        Done(chosen[1], End.UNREACHABLE),
        Done(chosen[2], End.DONE),
    ]
    assert three.world.nodes["elm"].alive == {}


def test_a_failure_of_one_is_its_answer(three: Setting) -> None:
    def act(one: Instance) -> str:
        if one.name == "b":
            raise ConnectFailed("no")
        return one.name

    with three.runtime() as rt:
        chosen = targets.find(rt, Targets(everything=True))
        first, second, third = targets.each(rt, chosen, act)

    assert (first, third) == (Done(chosen[0], "a"), Done(chosen[2], "c"))
    assert isinstance(second, Failed)
    assert second.failure.code == "connect-failed"


def test_nothing_more_is_begun_once_it_is_called_off(three: Setting) -> None:
    begun: list[str] = []

    with three.runtime() as rt:
        chosen = targets.find(rt, Targets(everything=True))
        answers = targets.each(rt, chosen, lambda one: begun.append(one.name), go_on=lambda: False)

    assert begun == []
    assert all(isinstance(one, Failed) and isinstance(one.failure, Interrupted) for one in answers)


def test_one_node_is_asked_for_a_few_things_at_once_and_many_nodes_are_asked_together(
    three: Setting,
) -> None:
    with three.runtime() as rt:
        (one,) = targets.find(rt, Targets(("a",)))
        gate = threading.Barrier(LANES)
        at_work, most = set[int](), [0]
        guard = threading.Lock()

        def act(_one: Instance) -> None:
            with guard:
                at_work.add(threading.get_ident())
                most[0] = max(most[0], len(at_work))
            gate.wait(timeout=20)
            with guard:
                at_work.discard(threading.get_ident())

        targets.each(rt, [one] * (2 * LANES), act)

    assert most[0] == LANES


def test_what_counts_as_lately_is_the_window_of_a_policy_that_says_no_other() -> None:
    assert RestartPolicy().window_ms == LATELY_MS
