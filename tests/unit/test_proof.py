"""The judgement of a generation's end: every reading that is not enough, one at a time."""

import itertools
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wlctl.lifecycle.proof import judge
from wlctl.model.generation import (
    CgroupEnd,
    Containment,
    Disproven,
    Liveliness,
    Proven,
    Readings,
    Unproven,
)

GONE = Readings(
    generation=1,
    closed=True,
    launched=True,
    recorded=True,
    boot_id="boot-a",
    recorded_boot_id="boot-a",
    containment=Containment.ISOLATED,
    leader=Liveliness.GONE,
    init=Liveliness.GONE,
    ctl=CgroupEnd.REMOVED,
    limit=CgroupEnd.REMOVED,
    cgroup_inode=7,
    uid=61184,
    uid_left=0,
    how="stopped",
    exit_status=143,
    read_at_ms=1000,
)
"""An isolated generation of which nothing is left."""

BY_CGROUP = replace(GONE, containment=Containment.CGROUP, uid=None, uid_left=None)
NEVER = replace(
    GONE,
    launched=False,
    recorded=False,
    recorded_boot_id="",
    containment=None,
    leader=Liveliness.NONE,
    init=Liveliness.NONE,
    ctl=CgroupEnd.NONE,
    limit=CgroupEnd.NONE,
    uid=None,
    uid_left=None,
)
LEADER_ONLY = replace(
    GONE,
    containment=Containment.LEADER_ONLY,
    ctl=CgroupEnd.NONE,
    limit=CgroupEnd.NONE,
    cgroup_inode=None,
)
"""One without a cgroup that had a namespace of its own."""

REBOOTED = replace(
    GONE,
    boot_id="boot-b",
    leader=Liveliness.UNKNOWN,
    init=Liveliness.UNKNOWN,
    ctl=CgroupEnd.MISSING_UNKNOWN,
    limit=CgroupEnd.MISSING_UNKNOWN,
)


@pytest.mark.parametrize(
    "readings",
    [
        pytest.param(GONE, id="isolated and all of it gone"),
        pytest.param(BY_CGROUP, id="by cgroup and all of it gone"),
        pytest.param(replace(BY_CGROUP, init=Liveliness.NONE), id="without a namespace of its own"),
        pytest.param(replace(GONE, ctl=CgroupEnd.MISSING), id="a cgroup that was gone before"),
        pytest.param(replace(GONE, limit=CgroupEnd.MISSING), id="the other that was gone before"),
        pytest.param(
            replace(GONE, ctl=CgroupEnd.UNIT_GONE, limit=CgroupEnd.UNIT_GONE),
            id="both that went with the unit they were below",
        ),
        pytest.param(
            replace(GONE, leader=Liveliness.NONE, init=Liveliness.NONE),
            id="launched and ended before a leader was recorded",
        ),
        pytest.param(replace(GONE, exit_status=None, how=""), id="an end that nobody wrote down"),
        pytest.param(NEVER, id="closed before any launch"),
        pytest.param(LEADER_ONLY, id="without a cgroup, and the init of its namespace gone"),
        pytest.param(
            replace(LEADER_ONLY, uid=None, uid_left=None), id="the same under the login's uid"
        ),
        pytest.param(
            replace(LEADER_ONLY, leader=Liveliness.NONE), id="the same before its leader began"
        ),
    ],
)
def test_it_is_proven(readings: Readings) -> None:
    proof = judge(readings)

    assert isinstance(proof, Proven), proof
    assert proof.evidence is readings


@pytest.mark.parametrize(
    ("readings", "why"),
    [
        pytest.param(replace(GONE, leader=Liveliness.ALIVE), "leader", id="the leader"),
        pytest.param(replace(GONE, init=Liveliness.ALIVE), "init", id="init"),
        pytest.param(replace(GONE, uid_left=1), "uid 61184", id="one process of its uid"),
        pytest.param(replace(GONE, limit=CgroupEnd.OCCUPIED), "cgroup", id="an occupied cgroup"),
        pytest.param(
            replace(GONE, closed=False, leader=Liveliness.ALIVE),
            "leader",
            id="the leader of a run that nobody closed",
        ),
        pytest.param(replace(GONE, ctl=CgroupEnd.OCCUPIED), "cgroup", id="an occupied other one"),
        *(
            pytest.param(
                replace(LEADER_ONLY, **{which: Liveliness.ALIVE}),  # type: ignore[arg-type]  # its field
                which,
                id=f"without a cgroup, the {which}",
            )
            for which in ("leader", "init")
        ),
        pytest.param(
            replace(LEADER_ONLY, uid_left=1), "uid 61184", id="without a cgroup, one of its uid"
        ),
        *(
            pytest.param(
                replace(REBOOTED, **{which: CgroupEnd.OCCUPIED}),  # type: ignore[arg-type]  # a cgroup's field
                "another boot",
                id=f"{which} occupied under another boot",
            )
            for which in ("ctl", "limit")
        ),
    ],
)
def test_what_is_seen_alive_disproves_it(readings: Readings, why: str) -> None:
    proof = judge(readings, boot_began_at_ms=2, last_reading_at_ms=1)

    assert isinstance(proof, Disproven), proof
    assert why in proof.why


@pytest.mark.parametrize(
    ("readings", "why"),
    [
        pytest.param(replace(GONE, closed=False), "not closed", id="it is not closed"),
        pytest.param(replace(NEVER, closed=False), "not closed", id="never launched, not closed"),
        pytest.param(replace(GONE, recorded=False), "torn", id="its record is torn"),
        pytest.param(
            replace(NEVER, limit=CgroupEnd.OCCUPIED), "no launch record", id="a cgroup, no record"
        ),
        pytest.param(
            replace(NEVER, ctl=CgroupEnd.REMOVED), "no launch record", id="a removed one, no record"
        ),
        pytest.param(
            replace(NEVER, uid=61184, uid_left=1),
            "no launch record",
            id="one of its uid, no record",
        ),
        pytest.param(
            replace(GONE, leader=Liveliness.UNKNOWN), "cannot be told", id="a leader not told"
        ),
        pytest.param(replace(GONE, init=Liveliness.UNKNOWN), "cannot be told", id="init not told"),
        *(
            pytest.param(replace(GONE, **{which: end}), f"{end}", id=f"{which} is {end}")  # type: ignore[arg-type]  # a cgroup's field
            for which in ("ctl", "limit")
            for end in (CgroupEnd.FOREIGN, CgroupEnd.MISSING_UNKNOWN, CgroupEnd.NONE)
        ),
        pytest.param(replace(GONE, uid=None), "uid", id="isolated and no uid known"),
        pytest.param(replace(GONE, uid_left=None), "listed", id="its uid was not looked for"),
        pytest.param(
            replace(LEADER_ONLY, init=Liveliness.NONE), "only its leader", id="leader only"
        ),
        pytest.param(
            replace(LEADER_ONLY, init=Liveliness.NONE, leader=Liveliness.NONE),
            "only its leader",
            id="without a cgroup, and of its launch nothing was heard",
        ),
        pytest.param(
            replace(LEADER_ONLY, init=Liveliness.UNKNOWN),
            "told",
            id="without a cgroup, no init told",
        ),
        *(
            pytest.param(
                replace(LEADER_ONLY, **{which: end}),  # type: ignore[arg-type]  # a cgroup's field
                "a cgroup of it",
                id=f"without a cgroup, and {which} is {end}",
            )
            for which in ("ctl", "limit")
            for end in sorted(set(CgroupEnd) - {CgroupEnd.NONE, CgroupEnd.OCCUPIED})
        ),
        pytest.param(
            replace(LEADER_ONLY, uid_left=None), "listed", id="without a cgroup, no uid looked for"
        ),
        pytest.param(replace(BY_CGROUP, containment=None), "leader", id="no containment known"),
    ],
)
def test_what_is_not_known_is_no_proof(readings: Readings, why: str) -> None:
    proof = judge(readings)

    assert isinstance(proof, Unproven), proof
    assert why in proof.why


@pytest.mark.parametrize(
    ("began", "last", "proven"),
    [
        pytest.param(101, 100, True, id="it began after the last reading"),
        pytest.param(100, 100, False, id="it began at the last reading"),
        pytest.param(99, 100, False, id="it began before the last reading: two machines"),
        pytest.param(None, 100, False, id="when it began is not known"),
        pytest.param(101, None, False, id="there was no reading"),
    ],
)
def test_another_boot_is_proof_only_when_it_began_later(
    began: int | None, last: int | None, proven: bool
) -> None:
    proof = judge(REBOOTED, boot_began_at_ms=began, last_reading_at_ms=last)

    assert isinstance(proof, Proven if proven else Unproven)


@pytest.mark.parametrize("field", ["boot_id", "recorded_boot_id"])
def test_a_boot_that_is_not_known_is_no_other_boot(field: str) -> None:
    readings = replace(REBOOTED, **{field: ""})  # type: ignore[arg-type]  # a text field

    assert isinstance(judge(readings, boot_began_at_ms=2, last_reading_at_ms=1), Unproven)


@pytest.mark.parametrize(
    "left",
    [
        pytest.param({}, id="nothing is seen"),
        pytest.param({"uid_left": 2}, id="somebody has its uid there"),
        pytest.param({"ctl": CgroupEnd.OCCUPIED}, id="somebody is in its place there"),
    ],
)
def test_a_later_boot_neither_proves_nor_disproves_what_is_not_closed(
    left: dict[str, object],
) -> None:
    readings = replace(REBOOTED, closed=False, **left)  # type: ignore[arg-type]  # by name

    assert isinstance(judge(readings, boot_began_at_ms=2, last_reading_at_ms=1), Unproven)


VALUES: dict[str, tuple[object, ...]] = {
    "closed": (False, True),
    "launched": (False, True),
    "recorded": (False, True),
    "boot_id": ("", "boot-a", "boot-b"),
    "recorded_boot_id": ("", "boot-a", "boot-b"),
    "containment": (None, *Containment),
    "leader": tuple(Liveliness),
    "init": tuple(Liveliness),
    "ctl": tuple(CgroupEnd),
    "limit": tuple(CgroupEnd),
    "uid": (None, 61184),
    "uid_left": (None, 0, 3),
    "uid_shared": (False, True),
}


@st.composite
def readings_near_a_proof(draw: st.DrawFn) -> Readings:
    """Draw what would be proven, with a few things otherwise: of all there is little is proven."""
    found = draw(st.sampled_from([GONE, BY_CGROUP, NEVER, LEADER_ONLY, REBOOTED]))
    for name in draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=4)):
        found = replace(found, **{name: draw(st.sampled_from(VALUES[name]))})  # type: ignore[arg-type]  # its field
    return found


MOMENTS = st.none() | st.integers(0, 2)


def is_gone(found: Readings, began: int | None, last: int | None) -> bool:
    """The proof once more, as one list of what has to be so."""
    nobody = {Liveliness.GONE, Liveliness.NONE}
    nowhere = {found.ctl, found.limit} == {CgroupEnd.NONE}
    if not found.closed:
        return False
    if not found.launched:
        none = {found.leader, found.init} == {Liveliness.NONE}
        return nowhere and none and found.uid_left in (None, 0)
    if not found.recorded:
        return False
    if found.boot_id != found.recorded_boot_id:
        free = CgroupEnd.OCCUPIED not in {found.ctl, found.limit}
        known = bool(found.boot_id) and bool(found.recorded_boot_id)
        return free and known and began is not None and last is not None and began > last
    ended = {CgroupEnd.REMOVED, CgroupEnd.MISSING, CgroupEnd.UNIT_GONE}
    by_uid = found.uid is None or (
        found.uid_left is not None and (found.uid_left == 0 or found.uid_shared)
    )
    return (
        {found.leader, found.init} <= nobody
        and by_uid
        and {
            None: False,
            Containment.LEADER_ONLY: nowhere and found.init is Liveliness.GONE,
            Containment.CGROUP: {found.ctl, found.limit} <= ended,
            Containment.ISOLATED: {found.ctl, found.limit} <= ended and found.uid is not None,
        }[found.containment]
    )


@settings(max_examples=400, deadline=None)
@given(readings_near_a_proof(), MOMENTS, MOMENTS)
def test_what_is_proven_is_what_a_plain_list_says(
    readings: Readings, began: int | None, last: int | None
) -> None:
    proof = judge(readings, boot_began_at_ms=began, last_reading_at_ms=last)

    assert isinstance(proof, Proven) == is_gone(readings, began, last)
    if isinstance(proof, Disproven):
        alive = Liveliness.ALIVE in {readings.leader, readings.init} or bool(readings.uid_left)
        assert alive or CgroupEnd.OCCUPIED in {readings.ctl, readings.limit}


def test_a_proof_changes_with_each_single_reading_that_matters() -> None:
    """Every field of a proven reading is needed: some value of it takes the proof away."""
    other: dict[str, tuple[object, ...]] = {
        "closed": (False,),
        "recorded": (False,),
        "boot_id": ("other",),
        "recorded_boot_id": ("other",),
        "containment": (Containment.LEADER_ONLY,),
        "leader": tuple(Liveliness),
        "init": tuple(Liveliness),
        "ctl": tuple(CgroupEnd),
        "limit": tuple(CgroupEnd),
        "uid": (None,),
        "uid_left": (None, 1),
        "launched": (False,),
    }
    informative = {"generation", "cgroup_inode", "how", "exit_status", "read_at_ms", "oom_kills"}
    eased = {"uid_shared"}
    assert {field.name for field in fields(Readings)} == other.keys() | informative | eased

    for name, values in other.items():
        proofs = [judge(replace(GONE, **{name: value})) for value in values]  # type: ignore[arg-type]  # its field
        assert any(not isinstance(proof, Proven) for proof in proofs), name


@given(readings_near_a_proof())
def test_without_a_cgroup_nothing_of_this_boot_is_proven_but_by_init(readings: Readings) -> None:
    found = replace(
        readings, containment=Containment.LEADER_ONLY, recorded_boot_id=readings.boot_id
    )

    if isinstance(judge(found), Proven) and found.launched:
        assert found.init is Liveliness.GONE
        assert found.leader in {Liveliness.GONE, Liveliness.NONE}
        assert found.uid is None or found.uid_left == 0 or found.uid_shared


def test_what_a_shared_login_runs_beside_is_not_counted_and_a_uid_of_its_own_is() -> None:
    left = replace(GONE, uid_left=2)

    assert isinstance(judge(left), Disproven)
    assert isinstance(judge(replace(left, uid_shared=True)), Proven)
    assert isinstance(judge(replace(left, uid_shared=True, uid_left=None)), Unproven)
    still = replace(left, uid_shared=True, init=Liveliness.ALIVE)
    assert isinstance(judge(still), Disproven)


@pytest.mark.parametrize("field", ["leader", "init"])
def test_a_process_without_a_launch_record_is_never_proven_gone(field: str) -> None:
    never = replace(
        GONE,
        launched=False,
        leader=Liveliness.NONE,
        init=Liveliness.NONE,
        ctl=CgroupEnd.NONE,
        limit=CgroupEnd.NONE,
        uid=None,
        uid_left=None,
    )

    assert isinstance(judge(never), Proven)
    assert isinstance(judge(replace(never, **{field: Liveliness.ALIVE})), Unproven)  # type: ignore[arg-type]  # its field


def test_both_sides_of_every_life_are_judged() -> None:
    for leader, init in itertools.product(Liveliness, Liveliness):
        proof = judge(replace(GONE, leader=leader, init=init))
        alive = Liveliness.ALIVE in {leader, init}
        told = Liveliness.UNKNOWN not in {leader, init}
        assert isinstance(proof, Disproven if alive else Proven if told else Unproven)
