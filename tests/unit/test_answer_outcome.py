"""Reading what the actions on instances answer: typed values, or a named error."""

import re
from collections.abc import Callable

import pytest

from wlctl.errors import GarbledAnswer
from wlctl.host import outcome
from wlctl.host.answer import Answer, parse
from wlctl.model.actions import (
    Begun,
    Launched,
    Placed,
    RefusalCode,
    Refused,
    Restarts,
    SettleOutcome,
)
from wlctl.model.generation import CgroupEnd, Containment, Liveliness
from wlctl.model.upkeep import ChainPoint, ListName

NONCE = "ef" * 16

LAUNCHED = (
    "launched 3 already=no boot=b-1 containment=isolated way=cgroupfs pid=77 start=1234"
    " uid=61184 cgroup=/sys/fs/cgroup/wlctl/i/i-1/limit/g3 inode=99"
)
GIVEN = "given data=/var/lib/x unenforced=cpu unenforced=disk port=http:20000 port=admin:20001"
ENDED = (
    "generation 3 closed=yes record=whole boot=b-1 recorded_boot=b-1 containment=isolated"
    " leader=gone init=gone ctl=removed limit=missing inode=99 uid=61184 shared=no left=0"
    " how=stopped exit=143 oom=2 at=5000"
)
NEVER = (
    "generation 4 closed=yes record=none boot=b-1 recorded_boot=- containment=- leader=none"
    " init=none ctl=none limit=none inode=- uid=- shared=no left=- how=- exit=- oom=-"
    " at=5000"
)
INSTANCE = "instance i-1 desired=running number=5 current=3 name=web package=abc supervisor=gone"
RUN = (
    "generation i-1 3 closed=no record=whole boot=b-1 leader=alive populated=1 exit=- pid=77"
    " uid=61184 oom=0 health=unhealthy misses=4"
)
RESTARTS = "restarts i-1 kind=always max=3 window=600000 within=2 held=- why=-"
AGAIN = "and it is to be begun again"
HEAD = ("node_id n", "boot_id b-1", "uptime_ms 9")


def _answer(*lines: str) -> Answer:
    return parse("".join(f"{line}\n" for line in (*lines, f"end {NONCE} ok")).encode(), NONCE)


def test_a_launch_is_read() -> None:
    assert outcome.placed(_answer(LAUNCHED, GIVEN)) == Launched(
        already=False,
        generation=3,
        boot_id="b-1",
        containment=Containment.ISOLATED,
        way="cgroupfs",
        pid=77,
        start_ticks=1234,
        uid=61184,
        cgroup="/sys/fs/cgroup/wlctl/i/i-1/limit/g3",
        cgroup_inode=99,
        ports=(("http", 20000), ("admin", 20001)),
        unenforced=("cpu", "disk"),
        data_dir="/var/lib/x",
    )


def test_a_launch_without_a_cgroup_has_none() -> None:
    words = {"containment=isolated": "containment=leader-only", "way=cgroupfs": "way=none"}
    said = " ".join(words.get(word, word) for word in LAUNCHED.split())
    said = re.sub("cgroup=[^ ]*", "cgroup=-", re.sub("inode=[^ ]*", "inode=-", said))

    found = outcome.launched(_answer(said, GIVEN))

    assert found.containment is Containment.LEADER_ONLY
    assert (found.way, found.cgroup, found.cgroup_inode) == ("none", "", None)


def test_a_login_s_uid_is_none_of_its_own() -> None:
    found = outcome.launched(_answer(LAUNCHED.replace("uid=61184", "uid=-"), GIVEN))

    assert found.uid is None


@pytest.mark.parametrize("word", ["yes", "no"])
def test_a_staging_is_read(word: str) -> None:
    assert outcome.placed(_answer(f"staged already={word}")) == Placed(already=word == "yes")


def test_readings_are_read() -> None:
    found = outcome.stopped(_answer("node_id n", ENDED, NEVER))

    first, second = found.readings
    assert found.node_id == "n"
    assert (first.launched, first.recorded, first.closed) == (True, True, True)
    assert (first.ctl, first.limit) == (CgroupEnd.REMOVED, CgroupEnd.MISSING)
    assert (first.uid, first.uid_left, first.exit_status) == (61184, 0, 143)
    assert (second.launched, second.recorded, second.containment) == (False, False, None)
    assert (second.leader, second.recorded_boot_id, second.how) == (Liveliness.NONE, "", "")
    assert (second.uid, second.uid_left, second.exit_status) == (None, None, None)
    assert (first.oom_kills, second.oom_kills, first.uid_shared) == (2, None, False)


def test_a_login_that_is_shared_is_said_to_be() -> None:
    found = outcome.stopped(_answer("node_id n", ENDED.replace("shared=no", "shared=yes")))

    assert found.readings[0].uid_shared


def test_health_is_read_and_may_not_be_asked_for() -> None:
    unasked = RUN.replace("health=unhealthy misses=4", "health=- misses=0")
    for line, health in ((RUN, ("unhealthy", 4)), (unasked, ("", 0))):
        (instance,) = outcome.status(_answer(*HEAD, INSTANCE, line)).instances

        assert (instance.generations[0].health, instance.generations[0].misses) == health


def test_what_a_node_keeps_for_its_ledger_is_in_its_status() -> None:
    bare = outcome.status(_answer(*HEAD))
    damaged = outcome.status(_answer(*HEAD, "revocations -"))
    kept = outcome.status(_answer(*HEAD, "revocations 1 2 ab", "checkpoint 3 4 cd"))

    assert (bare.revocations, bare.checkpoint, damaged.revocations) == (None, None, None)
    assert kept.revocations == ListName(1, 2, "ab")
    assert kept.checkpoint == ChainPoint(3, 4, "cd")


@pytest.mark.parametrize("line", ["revocations 1", "revocations 1 x ab", "checkpoint - 1 a"])
def test_a_name_of_a_list_that_is_none_is_garbled(line: str) -> None:
    with pytest.raises(GarbledAnswer):
        outcome.status(_answer(*HEAD, line))


@pytest.mark.parametrize("word", list(SettleOutcome))
def test_what_became_of_a_decision_is_read(word: SettleOutcome) -> None:
    refused = ("refused port 20777%20is%20taken",) if word is SettleOutcome.REFUSED else ()

    found = outcome.settled(_answer("node_id n", *refused, ENDED, f"outcome {word}"))

    assert (found.node_id, found.outcome, len(found.readings)) == ("n", word, 1)
    wanted = Refused(RefusalCode.PORT, "20777 is taken") if refused else None
    assert found.refused == wanted


def test_a_torn_record_is_launched_and_not_recorded() -> None:
    (found,) = outcome.stopped(_answer("node_id n", ENDED.replace("whole", "torn"))).readings

    assert (found.launched, found.recorded) == (True, False)


@pytest.mark.parametrize(
    ("lines", "removed", "kept"),
    [
        pytest.param(("removed yes",), True, "", id="all of it"),
        pytest.param(("removed no",), False, "", id="nothing"),
        pytest.param(("kept /var/lib/a%20b", "removed yes"), True, "/var/lib/a b", id="not data"),
    ],
)
def test_an_unload_is_read(lines: tuple[str, ...], removed: bool, kept: str) -> None:
    found = outcome.unloaded(_answer("node_id n", ENDED, *lines))

    assert (found.removed, found.kept_data) == (removed, kept)
    assert len(found.readings) == 1


def test_a_status_is_read() -> None:
    later = RUN.replace("i-1 3", "i-1 12")
    other = "instance i-2 desired=- number=- current=- name=- package=- supervisor=none"

    found = outcome.status(_answer(*HEAD, INSTANCE, later, RUN, other, "departed i-3 7"))

    first, second = found.instances
    assert [one.number for one in first.generations] == [3, 12]
    assert first.generations[0].leader is Liveliness.ALIVE
    assert first.generations[0].populated is True
    assert (first.number, first.current, first.desired) == (5, 3, "running")
    assert (second.number, second.current, second.desired, second.name) == (None, None, "", "")
    assert found.departed == {"i-3": 7}


@pytest.mark.parametrize(
    ("old", "new", "unsupervised"),
    [
        pytest.param("supervisor=gone", "supervisor=gone", True, id="it died"),
        pytest.param("supervisor=gone", "supervisor=none", True, id="it never was"),
        pytest.param("supervisor=gone", "supervisor=unknown", True, id="it was of another boot"),
        pytest.param("supervisor=gone", "supervisor=alive", False, id="it looks"),
        pytest.param("leader=alive", "leader=gone", False, id="nothing runs that it could look at"),
        pytest.param("closed=no", "closed=yes", False, id="what runs is being ended"),
        pytest.param("closed=no", f"closed=yes {AGAIN}", True, id="to be begun again"),
        pytest.param("leader=alive", f"leader=gone {AGAIN}", True, id="what ended is to be, too"),
        pytest.param(
            "leader=alive", f"leader=unknown {AGAIN}", False, id="nothing is after a reboot"
        ),
        pytest.param("leader=alive", f"leader=gone {AGAIN} held=exhausted", False, id="it is held"),
        pytest.param("exit=-", f"exit=0 {AGAIN} kind=once", True, id="it lives"),
        pytest.param("current=3", "current=4", False, id="what runs is not the current one"),
        pytest.param("current=3", "current=-", False, id="which is current is not known"),
    ],
)
def test_what_runs_and_has_no_supervisor_that_lives_is_to_be_given_one(
    old: str, new: str, unsupervised: bool
) -> None:
    new, again, more = new.partition(AGAIN)
    lines = [line.replace(old, new.strip()) for line in (INSTANCE, RUN)]
    restarts = [f"{RESTARTS}{more}"] if again else []

    (instance,) = outcome.status(_answer(*HEAD, *lines, *restarts)).instances

    assert instance.unsupervised is unsupervised


def test_what_a_supervisor_did_by_itself_is_read() -> None:
    second = RUN.replace("i-1 3", "i-1 4")
    reading = (
        "3 closed=yes record=whole boot=b-1 recorded_boot=b-1 containment=isolated leader=gone"
        " init=gone ctl=removed limit=removed inode=7 uid=61184 shared=no left=0 how=exited exit=3"
        " oom=- at=5"
    )
    (instance,) = outcome.status(
        _answer(
            *HEAD,
            INSTANCE.replace("current=3", "current=4"),
            f"{RESTARTS} held=exhausted why=enough%20of%20it",
            "pruned i-1 2",
            RUN,
            second,
            "restarted i-1 4 from=3 at=6 why=g3%20ended",
            f"ended i-1 {reading}",
        )
    ).instances

    first, last = instance.generations
    assert (first.begun, last.begun) == (None, Begun(after=3, age_ms=3, why="g3 ended"))
    assert first.ended is not None
    assert (first.ended.generation, first.ended.exit_status, last.ended) == (3, 3, None)
    assert instance.restarts == Restarts(
        once=False, most=3, window_ms=600000, within=2, held="exhausted", why="enough of it"
    )
    assert instance.pruned == 2


def test_how_long_ago_a_run_of_another_boot_was_begun_is_not_known() -> None:
    begun = "restarted i-1 3 from=2 at=6 why=-"

    (instance,) = outcome.status(
        _answer(*HEAD, INSTANCE, RUN.replace("boot=b-1", "boot=b-0"), begun)
    ).instances

    assert instance.generations[0].begun == Begun(after=2, age_ms=None, why="")


def test_the_launch_of_a_run_is_in_the_status_with_what_it_was_given() -> None:
    launch, given = LAUNCHED.replace(" 3 ", " i-1 3 "), GIVEN.replace("given", "given i-1 3")
    later = RUN.replace("i-1 3", "i-1 12")

    (instance,) = outcome.status(_answer(*HEAD, INSTANCE, RUN, launch, given, later)).instances

    assert [one.launch for one in instance.generations] == [
        outcome.launched(_answer(LAUNCHED, GIVEN)),
        None,
    ]


def test_a_launch_of_which_is_not_said_what_it_was_given_is_garbled() -> None:
    launch, given = LAUNCHED.replace(" 3 ", " i-1 3 "), GIVEN.replace("given", "given i-2 3")

    with pytest.raises(GarbledAnswer, match="what i-1 was given"):
        outcome.status(_answer(*HEAD, INSTANCE, RUN, launch, given))


@pytest.mark.parametrize(("value", "populated"), [("1", True), ("0", False), ("-", None)])
def test_an_unreadable_cgroup_is_neither_empty_nor_full(value: str, populated: bool | None) -> None:
    line = RUN.replace("populated=1", f"populated={value}")

    (instance,) = outcome.status(_answer(*HEAD, INSTANCE, line)).instances

    assert instance.generations[0].populated is populated


def test_an_offer_is_read_in_the_order_asked() -> None:
    found = outcome.offered(
        _answer("node_id n", "uptime_ms 3", "missing b", "missing a", "missing z"), ["a", "b", "c"]
    )

    assert (found.node_id, found.uptime_ms, found.missing) == ("n", 3, ("a", "b"))


def test_the_end_of_a_log_is_read() -> None:
    found = outcome.log_tail(_answer("log 3 size=100 to=90 over=no", "text a%0Ab%ff"))

    assert (found.generation, found.size_bytes, found.text) == (3, 100, "a\nb\ufffd")
    assert (found.next_byte, found.is_over) == (90, False)


def test_a_refusal_is_read() -> None:
    found = outcome.refusal(_answer("code no_user", "detail no%20such"))

    assert found == Refused(RefusalCode.NO_USER, "no such")


Read = Callable[[Answer], object]


@pytest.mark.parametrize(
    ("read", "lines"),
    [
        pytest.param(outcome.status, (*HEAD, INSTANCE, INSTANCE), id="an instance"),
        pytest.param(outcome.status, (*HEAD, INSTANCE, RUN, RUN), id="a run of one"),
        pytest.param(outcome.stopped, ("node_id n", ENDED, ENDED), id="how a run ended"),
    ],
)
def test_an_answer_that_says_something_of_one_thing_twice_is_none(
    read: Read, lines: tuple[str, ...]
) -> None:
    """The ledger keeps each once, and would end whatever looks at the other nodes, too."""
    assert read(_answer(*lines[:-1]))
    with pytest.raises(GarbledAnswer, match="twice"):
        read(_answer(*lines))


@pytest.mark.parametrize(
    ("read", "lines"),
    [
        *(
            pytest.param(
                outcome.launched, (LAUNCHED.replace(f" {word}", ""), GIVEN), id=f"no {word}"
            )
            for word in LAUNCHED.split()[2:]
        ),
        *(
            pytest.param(
                outcome.stopped, ("node_id n", ENDED.replace(f" {word}", "")), id=f"no {word}"
            )
            for word in ENDED.split()[2:]
        ),
        *(
            pytest.param(outcome.status, (*HEAD, INSTANCE.replace(f" {word}", "")), id=f"no {word}")
            for word in INSTANCE.split()[2:]
        ),
        *(
            pytest.param(
                outcome.status, (*HEAD, RUN.replace(f" {word}", "")), id=f"a run: no {word}"
            )
            for word in RUN.split()[3:]
        ),
        pytest.param(outcome.placed, (), id="neither staged nor launched"),
        pytest.param(outcome.launched, (LAUNCHED,), id="nothing given"),
        pytest.param(outcome.launched, (LAUNCHED, GIVEN, GIVEN), id="given twice"),
        pytest.param(outcome.launched, (LAUNCHED, "given port=http"), id="a port without number"),
        pytest.param(outcome.launched, ("launched", GIVEN), id="no generation"),
        pytest.param(outcome.launched, (LAUNCHED.replace("pid=77", "pid=-7"), GIVEN), id="a pid"),
        pytest.param(outcome.stopped, (ENDED,), id="nobody says who read it"),
        pytest.param(
            outcome.stopped, ("node_id n", ENDED.replace("gone", "ill")), id="an unknown life"
        ),
        pytest.param(
            outcome.stopped, ("node_id n", ENDED.replace("removed", "lost")), id="an unknown end"
        ),
        pytest.param(
            outcome.stopped, ("node_id n", ENDED.replace("whole", "half")), id="half a record"
        ),
        pytest.param(
            outcome.stopped, ("node_id n", ENDED.replace("yes", "true")), id="true for yes"
        ),
        pytest.param(outcome.unloaded, ("node_id n", ENDED), id="nobody says whether it is gone"),
        pytest.param(outcome.status, (*HEAD, "instance ../x desired=-"), id="an id with a slash"),
        pytest.param(outcome.status, (*HEAD, "departed i-1"), id="departed without a number"),
        pytest.param(outcome.log_tail, ("log 3 size=1",), id="a log without text"),
        pytest.param(outcome.refusal, ("code shy", "detail x"), id="an unknown refusal"),
        pytest.param(outcome.refusal, ("code busy",), id="a refusal without a word"),
    ],
)
def test_what_is_missing_or_wrong_is_an_error(read: Read, lines: tuple[str, ...]) -> None:
    with pytest.raises(GarbledAnswer):
        read(_answer(*lines))
