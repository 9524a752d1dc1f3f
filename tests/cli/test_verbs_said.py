"""What `start`, `restart`, `stop` and `unload` say of each outcome, and with which exit code."""

from dataclasses import replace

import pytest

from tests.unit.test_proof import GONE
from tests.unit.test_seen import WEB
from wlctl.cli import ending, reconcile, starting
from wlctl.flows.done import Done
from wlctl.flows.ending import End, Ending
from wlctl.flows.ending import Verb as Ends
from wlctl.flows.reconcile import Pass
from wlctl.flows.start_intents import Begin, Beginning, Verb
from wlctl.lifecycle.proof import judge
from wlctl.lifecycle.table import Act
from wlctl.model.actions import Launched
from wlctl.model.generation import Containment
from wlctl.model.ids import NodeName
from wlctl.model.instance import State

LAUNCHED = Launched(
    already=False,
    generation=2,
    boot_id="b",
    containment=Containment.ISOLATED,
    way="cgroupfs",
    pid=7,
    start_ticks=1,
    uid=61184,
    cgroup="/c",
    cgroup_inode=9,
    ports=(("http", 20000),),
    unenforced=("memory", "cpu"),
    data_dir="/d",
)


def begun(begin: Begin, **given: object) -> Beginning:
    return Beginning(Verb.START, begin, WEB, **given)  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize(
    ("found", "code", "said"),
    [
        (begun(Begin.DONE, launched=LAUNCHED), 0, "started web on elm: g2, http 20000"),
        (begun(Begin.DONE), 0, "web runs on elm: it had been started, and nobody had told"),
        (
            begun(Begin.DONE, launched=replace(LAUNCHED, already=True)),
            0,
            "started web on elm: g2, http 20000: it had been started, and the answer was lost",
        ),
        (begun(Begin.ALREADY), 0, "web runs on elm already: it is running"),
        (
            begun(Begin.FAILED, code="fetch", detail="x"),
            1,
            "web on elm was left as it is (fetch): x",
        ),
        (
            begun(Begin.FAILED, code="fetch", detail="x", proofs=(judge(GONE),)),
            1,
            "web on elm was stopped and not started (fetch): x",
        ),
        (
            begun(Begin.NO_ROOM, detail="memory: x"),
            3,
            "web does not fit on elm any more: memory: x",
        ),
        (begun(Begin.UNPROVEN, detail="g1: x"), 5, "web on elm is not proven gone: g1: x"),
        (
            begun(Begin.UNREACHABLE, code="connect-failed", detail="x"),
            9,
            "elm cannot be reached (connect-failed): x",
        ),
        (begun(Begin.INDETERMINATE, detail="x"), 5, "the answer of elm was lost: x"),
        (begun(Begin.REFUSED, code="busy", detail="x"), 6, "elm refused (busy): x"),
        (begun(Begin.REFUSED, code="runtime", detail="x"), 1, "elm refused (runtime): x"),
        (begun(Begin.REFUSED, code="revoked", detail="x"), 4, "elm refused (revoked): x"),
        (
            begun(Begin.DENIED, code="gate-denied", detail="x"),
            4,
            "web on elm was left as it is (gate-denied): x",
        ),
        (
            begun(Begin.ILLEGAL, code="illegal-step", detail="it is unloaded"),
            4,
            "web on elm was left as it is (illegal-step): it is unloaded",
        ),
        (
            begun(Begin.FAILED, code="file-missing", detail="x"),
            1,
            "web on elm was left as it is (file-missing): x",
        ),
    ],
)
def test_how_a_start_went(found: Beginning, code: int, said: str) -> None:
    assert starting.exit_code(found) == code
    assert next(starting.lines_of(found)) == said
    assert starting.json_of(found)["outcome"] == found.begin.value


def test_every_way_a_start_can_go_has_an_exit_code() -> None:
    for begin in Begin:
        assert starting.exit_code(begun(begin)) in {0, 1, 3, 4, 5, 9}


def test_what_is_said_of_a_restart_names_it_the_limits_and_the_proof() -> None:
    found = replace(begun(Begin.DONE, launched=LAUNCHED, proofs=(judge(GONE),)), verb=Verb.RESTART)

    first, limits, proof = starting.lines_of(found)

    assert first.startswith("restarted web on elm")
    assert limits == "  elm cannot hold it to its limits of memory, cpu"
    assert proof.startswith("  g1 proven: closed, leader gone")


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        (End.DONE, 0, "stopped web on elm: it never ran"),
        (End.ALREADY, 0, "web is stopped already"),
        (End.ASKED, 0, "web on elm was asked to end"),
        (End.UNPROVEN, 5, "web on elm is not proven gone: x"),
        (End.UNREACHABLE, 9, "elm cannot be reached (c): x"),
        (End.INDETERMINATE, 5, "the answer of elm was lost: x"),
        (End.REFUSED, 4, "elm refused (c): x"),
        (End.DENIED, 4, "web on elm was left as it is (c): x"),
    ],
)
def test_how_an_ending_went(end: End, code: int, said: str) -> None:
    found = Ending(Ends.STOP, end, replace(WEB, state=State.STOPPED), code="c", detail="x")

    assert ending._exit_code(found) == code
    assert next(ending._lines(found)) == said
    assert ending._json(found)["outcome"] == end.value


def test_a_dry_run_of_a_pass_says_what_would_be_done_and_never_that_it_was() -> None:
    elm = NodeName("elm")
    came = (Done("web", elm, Act.START_AGAIN, "dry_run"), Done("db", elm, None, "dry_run"))

    assert list(reconcile.lines(Pass(asked=1, done=came), dry_run=True)) == [
        "would start again web on elm",
        "would finish db on elm",
        "1 node; 2 would be brought nearer, 0 not as they should be",
    ]


def test_a_pass_says_what_came_of_each_copy() -> None:
    done = (Done("web", NodeName("elm"), Act.START_AGAIN, "running"),)

    assert list(reconcile.lines(Pass(asked=1, done=done), dry_run=False)) == [
        "web on elm: start again, running",
        "1 node; 1 brought nearer, 0 not as they should be",
    ]
