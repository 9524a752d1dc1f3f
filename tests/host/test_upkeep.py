"""What a node keeps for its ledgers, what it never starts again, and what is taken away there."""

import hashlib
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.host.bench import INSTALLATION, PACKAGE, Bench, Work, script, sha256
from wlctl.model.actions import (
    Launched,
    LogTail,
    NodeStatus,
    Offered,
    Placed,
    RefusalCode,
    Refused,
)
from wlctl.model.ids import InstallationId, InstanceId, NodeName, PackageId
from wlctl.model.node import Address, Tier, TransportKind
from wlctl.model.upkeep import (
    ChainPoint,
    Checkpoint,
    Collected,
    Fleet,
    FleetMember,
    ListName,
    Recalled,
    RevocationList,
    Witness,
)

ONE = [("dash", "root")]
SOME = [
    *[("dash", "root"), ("bash", "sudo"), ("busybox", "plain")],
    *[("systemd", "root"), ("systemd", "plain")],
]

SLEEP = script("exec sleep 1000")

DAY_S = 86_400
OLD_S = 10 * DAY_S


def age(path: Path) -> None:
    """Make a file or directory look as if nobody had touched it for ten days."""
    then = time.time() - OLD_S
    os.utime(path, (then, then))


def collect(bench: Bench) -> Collected:
    done = bench.session.collect(INSTALLATION)
    assert isinstance(done, Collected), done
    return done


def stored(bench: Bench) -> set[str]:
    return {path.name for path in (bench.node.state / "store").iterdir()}


def grow_old(bench: Bench) -> None:
    for path in (bench.node.state / "store").iterdir():
        age(path)


@pytest.mark.kinds(SOME)
def test_only_what_nothing_may_still_run_is_collected(bench: Bench) -> None:
    placed = script("exec sleep 1000 # placed")
    staged = script("exec sleep 1000 # staged")
    other = script("exec sleep 1000 # of another installation")
    bench.run(placed)
    bench.session.place(bench.request(staged, start=False))
    foreign = bench.request(other, start=False, installation=InstallationId("inst-other"))
    assert isinstance(bench.session.place(foreign), Placed)
    left = bench.put(b"left over")
    killed = bench.node.state / "store" / f".{'a' * 32}"
    killed.write_bytes(b"half")
    needed = {sha256(work.sheet) for work in (placed, staged, other)}
    needed |= {sha256(work.files["run"]) for work in (placed, staged, other)}
    grow_old(bench)
    fresh = bench.put(b"about to be placed")

    done = collect(bench)
    again = collect(bench)

    assert done.files >= 2
    assert (again.files, again.size_bytes, again.held_by) == (0, 0, ())
    assert needed | {fresh} <= stored(bench)
    assert not {left, killed.name} & stored(bench)


@pytest.mark.kinds(ONE)
def test_what_was_offered_a_moment_ago_is_not_collected(bench: Bench) -> None:
    name = bench.put(b"offered")
    grow_old(bench)

    bench.session.offer(INSTALLATION, [name])
    collect(bench)

    assert name in stored(bench)


@pytest.mark.kinds(ONE)
def test_an_unproven_generation_keeps_what_it_may_run(bench: Bench) -> None:
    """Its record is torn, and a stop that says so leaves its files where they are."""
    work = script("exec sleep 1000 # torn")
    request = bench.run(work)
    record = bench.instance_dir(request) / "g1/record"
    whole = record.read_bytes()
    record.write_bytes(b"")
    bench.stop(request)
    grow_old(bench)

    collect(bench)

    assert {sha256(work.sheet), sha256(work.files["run"])} <= stored(bench)
    record.write_bytes(whole)


@pytest.mark.parametrize("content", [b"", b"name web\nsheet zz\nend\n"])
@pytest.mark.kinds(ONE)
def test_an_instance_that_cannot_be_read_holds_every_file(bench: Bench, content: bytes) -> None:
    request = bench.run(SLEEP)
    left = bench.put(b"left over")
    spec = bench.instance_dir(request) / "spec"
    whole = spec.read_bytes()
    spec.write_bytes(content)
    grow_old(bench)

    assert collect(bench).held_by == (request.instance,)
    assert left in stored(bench)
    spec.write_bytes(whole)
    assert collect(bench).held_by == ()
    assert left not in stored(bench)


@pytest.mark.kinds(SOME)
def test_output_outlives_its_instance_until_it_is_collected(bench: Bench) -> None:
    request = bench.run(script("echo last words"))
    bench.await_log(request, "last words")
    bench.unload(request)

    assert bench.log(request) == "last words\n"
    assert collect(bench).logs == 0
    age(bench.node.state / INSTALLATION / "logs" / request.instance)
    assert collect(bench).logs == 1
    gone = bench.session.logs(INSTALLATION, request.instance)
    assert isinstance(gone, Refused)
    assert gone.code is RefusalCode.UNKNOWN_INSTANCE


@pytest.mark.kinds(ONE)
def test_the_output_of_the_last_run_stays_as_long_as_its_instance(bench: Bench) -> None:
    request = bench.run(script('echo "run $WLCTL_GENERATION"'))
    bench.await_log(request, "run 1")
    bench.stop(request, 2)
    assert isinstance(bench.start(request, 3, 2), Launched)
    bench.await_log(request, "run 2")
    bench.stop(request, 4, generation=2)
    for number in (1, 2):
        age(bench.instance_dir(request) / f"g{number}/ended")

    assert collect(bench).logs == 1
    assert isinstance(bench.session.logs(INSTALLATION, request.instance), LogTail)
    assert isinstance(bench.session.logs(INSTALLATION, request.instance, generation=1), Refused)


def revocations(
    serial: int,
    *,
    epoch: int = 0,
    packages: tuple[str, ...] = (),
    artifacts: tuple[str, ...] = (),
    installation: str = INSTALLATION,
) -> RevocationList:
    name = ListName(epoch, serial, hashlib.sha256(str(serial).encode()).hexdigest())
    ids = tuple(PackageId(package) for package in packages)
    return RevocationList(InstallationId(installation), name, ids, artifacts)


def forget(bench: Bench, installation: str = INSTALLATION) -> None:
    (bench.node.state / installation / "revoked").unlink()


def seen(bench: Bench) -> NodeStatus:
    found = bench.session.status(INSTALLATION)
    assert isinstance(found, NodeStatus)
    return found


Refs = tuple[str, ...]


def refs(work: Work) -> list[tuple[str, Refs, Refs]]:
    """What may be revoked of it: the word for it, packages, artifacts."""
    return [
        ("package", (PACKAGE,), ()),
        ("artifact", (), (sha256(work.files["run"]),)),
        ("artifact", (), (sha256(work.sheet),)),
    ]


@pytest.mark.kinds(SOME)
def test_what_is_revoked_is_not_started_and_what_runs_can_be_stopped(bench: Bench) -> None:
    for installation in (INSTALLATION, "inst-other"):
        for kind, packages, artifacts in refs(SLEEP):
            runs = bench.run(SLEEP)
            revoked = revocations(
                1, installation=installation, packages=packages, artifacts=artifacts
            )
            assert bench.session.revoke(revoked) is None

            refused = bench.refused(bench.request(SLEEP))
            bench.stop(runs, 2)
            again = bench.start(runs, 3, 2)

            assert isinstance(again, Refused)
            for one in (refused, again):
                assert one.code is RefusalCode.REVOKED, one
                assert kind in one.detail
            forget(bench, installation)
    assert isinstance(bench.session.place(bench.request(SLEEP)), Launched)


@pytest.mark.kinds(SOME)
def test_entries_are_only_added_and_the_list_has_a_name(bench: Bench) -> None:
    assert seen(bench).revocations is None
    first = revocations(1, packages=(PACKAGE,))
    second = revocations(2, packages=("cd" * 32,), artifacts=("ef" * 32,))

    assert bench.session.revoke(first) is None
    assert bench.session.revoke(second) is None
    assert bench.session.revoke(second) is None

    assert seen(bench).revocations == second.name
    assert bench.refused(bench.request(SLEEP)).code is RefusalCode.REVOKED
    older = bench.session.revoke(first)
    assert isinstance(older, Refused)
    assert older.code is RefusalCode.SUPERSEDED
    leap = bench.session.revoke(revocations(10_003))
    assert isinstance(leap, Refused)
    assert leap.code is RefusalCode.INVALID_REQUEST
    assert bench.session.revoke(revocations(10_002)) is None
    assert bench.session.revoke(revocations(1, epoch=1)) is None, "after a restore it begins anew"
    assert bench.refused(bench.request(SLEEP)).code is RefusalCode.REVOKED
    forget(bench)


@pytest.mark.parametrize("content", ["", "0 1", "0 1 x\nend\n", "0 1 " + "a" * 64 + "\n"])
@pytest.mark.kinds(ONE)
def test_a_list_that_cannot_be_read_lets_nothing_start(bench: Bench, content: str) -> None:
    runs = bench.run(SLEEP)
    (bench.node.state / INSTALLATION / "revoked").write_text(content, encoding="ascii")

    assert seen(bench).revocations is None
    assert bench.refused(bench.request(SLEEP)).code is RefusalCode.REVOKED
    bench.stop(runs)
    assert bench.session.revoke(revocations(1)) is None
    assert isinstance(bench.session.place(bench.request(SLEEP)), Launched)
    forget(bench)


def checkpoint(seq: int, epoch: int = 0, hashed: str = "") -> Checkpoint:
    digest = hashlib.sha256(f"{epoch}.{seq}{hashed}".encode()).hexdigest()
    return Checkpoint(ChainPoint(epoch, seq, digest), f"wlctl\n{seq}\n{digest}\n\n— key ü\n")


def member(name: str, address: Address) -> FleetMember:
    return FleetMember(NodeName(name), f"id of {name}", address, Tier.PAIRED)


def witness(bench: Bench) -> Witness:
    found = bench.session.witness(INSTALLATION)
    assert isinstance(found, Witness)
    return found


@pytest.mark.kinds(SOME)
def test_a_node_keeps_checkpoints_and_the_fleet_and_goes_only_forward(bench: Bench) -> None:
    fleet = Fleet(
        (
            member("elm", Address(TransportKind.SSH, "10.0.0.5", 22, "root", "ssh-ed25519 AAAA")),
            member("oak", Address(TransportKind.SSH, "fe80::1", 2222, "", "k", enforced=True)),
        ),
        "a note\n\n— key ü\n",
    )
    assert witness(bench).checkpoints == ()
    for seq in (1, 2, 2, 5):
        assert bench.session.checkpoint(INSTALLATION, checkpoint(seq)) is None
    assert bench.session.checkpoint(INSTALLATION, checkpoint(6), fleet) is None
    assert bench.session.checkpoint(INSTALLATION, checkpoint(7)) is None

    kept = witness(bench)

    assert kept.checkpoints == tuple(checkpoint(seq) for seq in (1, 1, 2, 5, 6, 7))
    assert kept.fleet == fleet
    assert seen(bench).checkpoint == checkpoint(7).at
    behind = bench.session.checkpoint(INSTALLATION, checkpoint(6))
    other = bench.session.checkpoint(INSTALLATION, checkpoint(7, hashed="forked"))
    assert isinstance(behind, Refused)
    assert behind.code is RefusalCode.SUPERSEDED
    assert isinstance(other, Refused)
    assert other.code is RefusalCode.VERIFY
    assert bench.session.checkpoint(INSTALLATION, checkpoint(3, epoch=1)) is None
    assert seen(bench).checkpoint == checkpoint(3, epoch=1).at
    _forget_checkpoints(bench)


@pytest.mark.kinds(ONE)
def test_the_last_64_checkpoints_and_one_a_day_are_kept(bench: Bench) -> None:
    for seq in range(1, 68):
        assert bench.session.checkpoint(INSTALLATION, checkpoint(seq)) is None
    daily = bench.node.state / INSTALLATION / "checkpoints.daily"
    today = daily.read_text("ascii")
    yesterday = int(today.split()[0]) - 1
    daily.write_text(f"{yesterday} {today.partition(' ')[2]}", encoding="ascii")

    assert bench.session.checkpoint(INSTALLATION, checkpoint(68)) is None

    kept = [one.at.seq for one in witness(bench).checkpoints]
    assert kept == [1, 68, *range(5, 69)]
    with daily.open("a", encoding="ascii") as file:
        file.write("99999 0 70 abc")
    assert [one.at.seq for one in witness(bench).checkpoints] == kept, "a torn line is none"
    _forget_checkpoints(bench)


@pytest.mark.kinds(ONE)
def test_a_damaged_checkpoint_file_is_said_and_not_written_over(bench: Bench) -> None:
    assert bench.session.checkpoint(INSTALLATION, checkpoint(1)) is None
    kept = bench.node.state / INSTALLATION / "checkpoints"
    kept.write_text("", encoding="ascii")

    for found in (
        bench.session.witness(INSTALLATION),
        bench.session.checkpoint(INSTALLATION, checkpoint(2)),
    ):
        assert isinstance(found, Refused)
        assert found.code is RefusalCode.VERIFY
    assert kept.read_text("ascii") == ""
    _forget_checkpoints(bench)


def _forget_checkpoints(bench: Bench) -> None:
    for name in ("checkpoints", "checkpoints.daily", "fleet"):
        (bench.node.state / INSTALLATION / name).unlink(missing_ok=True)


@pytest.mark.kinds(SOME)
def test_a_node_tells_a_lost_ledger_what_it_was_asked_to_run(bench: Bench) -> None:
    request = replace(
        bench.request(
            script("exec sleep 1000", more=("env_allow FEATURE_%2A",)),
            env=(("FEATURE_A", "ä = 1\n2"),),
        ),
        signatures=("a sig\n",),
    )
    assert isinstance(bench.session.place(request), Launched)
    assert bench.session.revoke(revocations(1, packages=("cd" * 32,))) is None
    assert bench.session.checkpoint(INSTALLATION, checkpoint(4)) is None
    torn = bench.node.state / INSTALLATION / "instances" / "itorn"
    torn.mkdir()
    (torn / "spec").write_text("name web\n")

    recalled = bench.session.recall(INSTALLATION)
    named = bench.session.installations()

    assert isinstance(recalled, Recalled)
    (one,) = (one for one in recalled.instances if one.instance == request.instance)
    assert (one.name, one.node, one.decision) == (request.name, request.node, request.decision)
    assert (one.package, one.sheet) == (request.package, request.sheet)
    assert (one.env, one.args, one.signatures) == (request.env, request.args, ("a sig\n",))
    assert recalled.torn == (InstanceId("itorn"),)
    assert recalled.revoked == (("package", "cd" * 32),)
    assert named == {INSTALLATION: checkpoint(4)}
    shutil.rmtree(torn)
    bench.stop(request)
    forget(bench)
    _forget_checkpoints(bench)


@pytest.mark.kinds(ONE)
def test_a_node_gives_the_newest_checkpoint_with_every_offer(bench: Bench) -> None:
    before = bench.session.offer(INSTALLATION, ())
    assert bench.session.checkpoint(INSTALLATION, checkpoint(4)) is None
    after = bench.session.offer(INSTALLATION, ())

    assert isinstance(before, Offered)
    assert before.checkpoint is None
    assert isinstance(after, Offered)
    assert after.checkpoint == checkpoint(4).at
    _forget_checkpoints(bench)


@pytest.mark.kinds(ONE)
def test_bad_words_are_refused(bench: Bench) -> None:
    bad_list = replace(revocations(1), packages=(PackageId("../up"),))
    bad_point = Checkpoint(ChainPoint(0, 1, "short"), "note")

    for refused in (
        bench.session.revoke(bad_list),
        bench.session.checkpoint(INSTALLATION, bad_point),
        bench.session.collect(InstallationId("../up")),
        bench.session.witness(InstallationId("../up")),
    ):
        assert isinstance(refused, Refused), refused
        assert refused.code is RefusalCode.INVALID_REQUEST
