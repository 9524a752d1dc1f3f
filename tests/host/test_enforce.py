"""What `node enforce` puts on a node, what it refuses to do there, and that all of it can go."""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.host.bench import INSTALLATION, Bench, nonce, script, wait_until
from tests.host.enforced import Door, door, enforcement, keygen, package, public
from tests.host.test_supervised import POLICY, await_held, living
from wlctl.errors import AuthFailed, DoorRefused, Indeterminate, ShellFailed, SudoRefused
from wlctl.host import doorkeeper
from wlctl.model.actions import Launched, NodeFacts, PlaceRequest, RefusalCode, Refused
from wlctl.model.enforcement import KeyLines
from wlctl.model.ids import InstallationId
from wlctl.model.upkeep import ChainPoint, Checkpoint

pytestmark = [pytest.mark.root, pytest.mark.sshd]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with door(tmp_path_factory.mktemp("keys")) as found:
        yield found


@pytest.fixture
def house(once: Door) -> Iterator[Door]:
    """A node that is not enforced, and is left so."""
    before = once.authorized_keys.read_bytes()
    settings = once.node.directory / "sshd_config"
    said = settings.read_bytes()
    yield once
    settings.write_bytes(said)
    once.remove()
    once.authorized_keys.write_bytes(before)
    assert not once.etc.exists()


def _tree(door: Door) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in [door.authorized_keys, *door.etc.rglob("*")]
        if path.is_file()
    }


def test_looking_changes_nothing_and_says_what_would_be(house: Door) -> None:
    before = _tree(house)

    with house.administrator() as session:
        seen = session.look(house.holder, house.wanted)

    assert isinstance(seen, KeyLines)
    assert (seen.shut, seen.open) == ((), (str(house.authorized_keys),))
    assert seen.line.startswith('restrict,command="exec env -i ')
    assert seen.files == ()
    assert _tree(house) == before


def test_it_says_everything_that_it_put_there(house: Door) -> None:
    done = house.put(replace(house.wanted, projects=("shop",)))

    there = {str(path) for path in house.own.iterdir()}
    assert {f"{house.node.directory}{path}" for path in done.files} == there
    assert done.line in house.authorized_keys.read_text("ascii").splitlines()
    for path in [house.etc, house.own, *house.own.iterdir()]:
        about = path.stat()
        assert (about.st_uid, about.st_mode & 0o022) == (0, 0)


def test_the_same_again_changes_nothing(house: Door) -> None:
    house.put()
    first = _tree(house)

    done = house.put()

    assert (done.shut, done.open) == ((str(house.authorized_keys),), ())
    assert _tree(house) == first


def test_what_is_taken_away_leaves_the_node_as_it_was(house: Door) -> None:
    before = _tree(house)
    house.put()
    house.put(replace(house.wanted, projects=("shop",)))

    removed = house.remove()

    assert removed == (f"/etc/wlctl/{INSTALLATION}", "/etc/wlctl")
    assert _tree(house) == before
    assert house.remove() == ()


LINES = """# {key} in a comment
from="10.0.0.0/8,127.0.0.0/8",no-pty {key} first
{key}
command="echo \\"hi\\"",expiry-time="20991231" {key} two words
{other} somebody
"""


def test_only_the_lines_of_the_key_change_and_keep_where_from_and_until_when(house: Door) -> None:
    key, other = house.holder.public_key, public(house.admin_key)
    house.authorized_keys.write_text(LINES.format(key=key, other=other), encoding="ascii")
    house.authorized_keys.chmod(0o640)
    os.chown(house.authorized_keys, 1234, 1234)
    before = house.authorized_keys.read_bytes()

    done = house.put()

    shut = f"restrict,{done.line.partition('restrict,')[2].partition(f' {key}')[0]}"
    assert house.authorized_keys.read_text("ascii").splitlines() == [
        f"# {key} in a comment",
        f'from="10.0.0.0/8,127.0.0.0/8",{shut} {key} first',
        f"{shut} {key}",
        f'expiry-time="20991231",{shut} {key} two words',
        f"{other} somebody",
    ]
    about = house.authorized_keys.stat()
    assert (about.st_uid, about.st_gid, about.st_mode & 0o777) == (1234, 1234, 0o640)
    with house.bench() as ours:
        assert isinstance(ours.session.facts(INSTALLATION), NodeFacts)
    house.remove()
    restored = house.authorized_keys.read_bytes().splitlines()
    assert restored[0] == before.splitlines()[0]
    assert all(b"doorkeeper" not in line for line in restored)
    os.chown(house.authorized_keys, 0, 0)
    house.authorized_keys.chmod(0o644)


def test_what_the_login_puts_in_the_place_of_its_new_keys_is_not_written_to(house: Door) -> None:
    """The name of the new file can be seen in the list of processes."""
    victim = house.node.directory / "victim"
    victim.write_bytes(b"root's own\n")
    number, before = nonce(), house.authorized_keys.read_bytes()
    house.authorized_keys.with_name(f"authorized_keys.{number}").symlink_to(victim)

    gone_wrong = pytest.raises(Indeterminate, match="file of keys")
    with house.administrator(number=number) as session, gone_wrong:
        session.put(house.holder, house.wanted)

    assert victim.read_bytes() == b"root's own\n"
    assert house.authorized_keys.read_bytes() == before


def test_a_file_without_a_line_of_the_key_is_not_written(house: Door) -> None:
    """The login may have a link to any file where its keys are looked for."""
    house.put()
    kept = house.authorized_keys.read_bytes().splitlines(keepends=True)
    ours = house.holder.public_key.encode()
    other = b"\0\1\n" + b"".join(line for line in kept if ours not in line).rstrip(b"\n")
    victim = house.node.directory / "victim"
    victim.write_bytes(other)
    about = victim.stat()
    house.authorized_keys.unlink()
    house.authorized_keys.symlink_to(victim)

    house.remove()

    assert victim.read_bytes() == other
    assert victim.stat().st_ino == about.st_ino
    house.authorized_keys.unlink()
    house.authorized_keys.write_bytes(b"".join(kept))


def test_keys_that_somebody_else_keeps_are_left_alone(house: Door) -> None:
    before = house.authorized_keys.read_bytes()

    with house.administrator() as session:
        done = session.put(house.holder, house.wanted, key_line=False)

    assert isinstance(done, KeyLines)
    assert done.open == (str(house.authorized_keys),)
    assert house.authorized_keys.read_bytes() == before


def test_two_installations_keep_out_of_each_others_way(house: Door) -> None:
    theirs = keygen(house.keys / f"theirs-{nonce()}")
    before = house.authorized_keys.read_text("ascii")
    house.authorized_keys.write_text(f"{before}{public(theirs)}\n", encoding="ascii")
    holder = replace(
        house.holder, installation=InstallationId("inst-other"), public_key=public(theirs)
    )
    kept = Checkpoint(ChainPoint(0, 1, "ab" * 32), "a note\n")
    with house.bench() as open_to_all:
        for name in (INSTALLATION, InstallationId("inst-other")):
            assert isinstance(open_to_all.session.facts(name), NodeFacts)
            assert open_to_all.session.checkpoint(name, kept) is None
    house.put()
    with house.administrator() as session:
        assert isinstance(session.put(holder, house.wanted), KeyLines)

    with house.bench() as ours:
        assert ours.session.installations() == {INSTALLATION: kept}
        found = ours.session.facts(InstallationId("inst-other"))
        assert isinstance(found, Refused)
        assert found.code is RefusalCode.UNAUTHORIZED
        assert isinstance(ours.session.facts(INSTALLATION), NodeFacts)
    assert house.remove() == (f"/etc/wlctl/{INSTALLATION}",)
    with house.administrator() as session:
        assert session.remove(holder) == ("/etc/wlctl/inst-other", "/etc/wlctl")


# --- what is refused ---


SETTINGS = [
    pytest.param("AcceptEnv *", "AcceptEnv *", id="any variable"),
    pytest.param("AcceptEnv LANG LC_* GIT_*", "AcceptEnv GIT_*", id="one pattern too many"),
    pytest.param("AcceptEnv LD_PRELOAD", "AcceptEnv LD_PRELOAD", id="the loader's"),
    pytest.param("AcceptEnv L*", "AcceptEnv L*", id="a pattern that is too wide"),
    pytest.param("AcceptEnv LC_*?x", "AcceptEnv LC_*?x", id="an odd pattern of locales"),
    pytest.param("PermitUserEnvironment yes", "PermitUserEnvironment yes", id="a file of them"),
    pytest.param("PermitUserEnvironment LANG", "PermitUserEnvironment LANG", id="a part of such"),
    pytest.param("ForceCommand /bin/sh", "ForceCommand /bin/sh", id="another command"),
    pytest.param(
        "Match user root\nAcceptEnv BASH_ENV", "AcceptEnv BASH_ENV", id="for this login alone"
    ),
    pytest.param(
        "Match address 127.0.0.0/8\nAcceptEnv ENV", "AcceptEnv ENV", id="from where wlctl comes"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("line", "named"), SETTINGS)
def test_an_sshd_that_lets_others_choose_first_is_refused(
    house: Door, line: str, named: str
) -> None:
    _say(house, line)

    refused = house.refuses()

    assert refused.code is RefusalCode.GOVERNANCE
    assert f"sshd says {named} for root" in refused.detail
    assert not house.etc.exists()


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("AcceptEnv LANG LC_*", id="Debian"),
        pytest.param("AcceptEnv LANG LC_* COLORTERM NO_COLOR", id="a newer Debian"),
        pytest.param("AcceptEnv LANG LC_CTYPE LANGUAGE\nAcceptEnv XMODIFIERS", id="RHEL"),
        pytest.param("Match user worker\nAcceptEnv *", id="another login's"),
        pytest.param("Match address 10.0.0.0/8\nAcceptEnv *", id="from elsewhere"),
    ],
)
def test_what_distributions_accept_is_taken(house: Door, line: str) -> None:
    _say(house, line)

    assert house.put().open == ()


def _say(house: Door, line: str) -> None:
    with (house.node.directory / "sshd_config").open("a", encoding="ascii") as file:
        file.write(f"{line}\n")


def test_a_list_of_revoked_keys_that_would_deny_everybody_is_refused(house: Door) -> None:
    refused = house.refuses(replace(house.wanted, revoked="this is no key\n"))

    assert refused.code is RefusalCode.RUNTIME
    assert "would deny every signer" in refused.detail
    assert not house.etc.exists()


def test_a_key_that_was_revoked_there_stays_so_until_all_is_taken_away(house: Door) -> None:
    house.put(replace(house.wanted, revoked=f"{public(house.stranger)}\n"))
    house.put(replace(house.wanted, revoked=f"{public(house.signer)}\n"))
    house.put()

    revoked = (house.own / "revoked_keys").read_text("ascii").splitlines()

    assert sorted(revoked) == sorted([public(house.stranger), public(house.signer)])


@contextlib.contextmanager
def _keygen_is(house: Door, text: str | None) -> Iterator[None]:
    """Another `ssh-keygen` on the node, where `REAL` is the one that was there."""
    there = house.node.directory / f"keygen-{nonce()}"
    real = house.node.directory / "keygen"
    if not real.exists():
        shutil.copy("/usr/bin/ssh-keygen", real)
    there.write_text("" if text is None else text.replace("REAL", str(real)), encoding="ascii")
    there.chmod(0o644 if text is None else 0o755)
    pid = str(house.node.pids()[0])
    enter = ["nsenter", "-t", pid, "-m"]
    subprocess.run([*enter, "mount", "--bind", there, "/usr/bin/ssh-keygen"], check=True)
    try:
        yield
    finally:
        subprocess.run([*enter, "mount", "--bind", real, "/usr/bin/ssh-keygen"], check=True)


OLD = '#!/bin/sh\ncase "$*" in *find-principals*) echo "Too few arguments" >&2; exit 255;; esac\n'
FORGETFUL = """#!/bin/sh
n=$#
while [ "$n" -gt 0 ]; do
	case $1 in -r) shift; n=$((n - 1)) ;; *) set -- "$@" "$1" ;; esac
	shift; n=$((n - 1))
done
exec REAL "$@"
"""


@pytest.mark.parametrize(
    ("program", "said"),
    [
        pytest.param(None, "no ssh-keygen", id="there is none"),
        pytest.param(f'{OLD}exec REAL "$@"\n', "no ssh-keygen", id="one before 8.2"),
        pytest.param(FORGETFUL, "does not refuse revoked keys", id="one that knows no -r"),
    ],
)
def test_a_node_without_a_suitable_ssh_keygen_is_refused(
    house: Door, program: str | None, said: str
) -> None:
    with _keygen_is(house, program):
        refused = house.refuses()

    assert refused.code is RefusalCode.RUNTIME
    assert said in refused.detail
    assert not house.etc.exists()


def test_a_login_that_shares_its_uid_with_what_runs_there_is_refused(house: Door) -> None:
    holder = replace(house.holder, login="worker", sudo=False)

    with house.administrator() as session:
        refused = session.put(holder, house.wanted)

    assert isinstance(refused, Refused)
    assert "neither root nor goes through sudo" in refused.detail


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({"login": "nobody-here"}, RefusalCode.NO_USER, id="a login that is not there"),
        pytest.param({"login": "../x"}, RefusalCode.INVALID_REQUEST, id="a login that is a path"),
        pytest.param(
            {"installation": InstallationId("../x")}, RefusalCode.INVALID_REQUEST, id="a path"
        ),
    ],
)
def test_a_request_that_makes_no_sense_changes_nothing(
    house: Door, change: dict[str, object], code: RefusalCode
) -> None:
    with house.administrator() as session:
        refused = session.put(replace(house.holder, **change), house.wanted)  # type: ignore[arg-type]  # fields of Keyholder

    assert isinstance(refused, Refused)
    assert refused.code is code


def test_wlctls_own_key_does_not_open_the_administrators_way(house: Door) -> None:
    with pytest.raises(AuthFailed):
        doorkeeper.connect(
            house.open_address,
            admin="root",
            not_with=house.node.client_key,
            keys=[house.node.client_key],
            nonce=nonce,
        )


def test_an_administrator_without_sudo_is_told_so(house: Door) -> None:
    (house.node.directory / "sudoers").write_text("root ALL=(ALL) ALL\n", encoding="ascii")

    with house.administrator("worker") as session, pytest.raises(SudoRefused):
        session.look(house.holder, house.wanted)


# --- afterwards ---


def test_a_list_of_another_version_lets_nothing_of_this_one_in_until_it_is_renewed(
    house: Door,
) -> None:
    house.put(replace(house.wanted, actions=f"{'0' * 64} facts\n"))
    with house.bench() as ours, pytest.raises(DoorRefused, match="not on the node's list"):
        ours.session.facts(INSTALLATION)

    house.put()

    with house.bench() as ours:
        assert isinstance(ours.session.facts(INSTALLATION), NodeFacts)


def test_a_ledger_that_does_not_know_that_a_node_is_enforced_is_told_so(house: Door) -> None:
    house.put()
    house.node.address = house.open_address

    with house.bench() as ours, pytest.raises(DoorRefused, match="takes no shell"):
        ours.session.facts(INSTALLATION)


def test_a_ledger_that_takes_a_node_for_enforced_is_told_that_it_is_not(house: Door) -> None:
    house.node.address = replace(house.open_address, enforced=True)

    with house.bench() as ours, pytest.raises(ShellFailed, match="no doorkeeper answered"):
        ours.session.facts(INSTALLATION)


def test_what_was_placed_before_goes_on_and_is_stopped_after(house: Door) -> None:
    """It came without signatures: it is not started again, and can always be stopped."""
    with house.bench() as ours:
        request = ours.run(script("exec sleep 1000"))
        house.put()
        ours.reconnect()
        again = ours.start(request, 3, 2)
        assert isinstance(again, Refused)
        ours.stop(request, 2)
        again = ours.start(request, 4, 2)
        assert isinstance(again, Refused)
        assert again.code is RefusalCode.FETCH


def test_files_that_may_still_run_are_kept_with_their_manifest(house: Door) -> None:
    house.put()
    signed = package(house.keys / f"kept-{nonce()}", house.signer)
    with house.bench() as ours:
        request = house.request(ours, signed)
        ours.place(request)
        ours.session.collect(INSTALLATION, age_min=0)
        ours.stop(request)

        assert (house.node.state / "store" / signed.package).exists()
        assert isinstance(ours.start(request, 3, 2), Launched)


def test_a_signer_who_is_no_longer_on_the_list_starts_nothing(house: Door) -> None:
    house.put()
    signed = package(house.keys / f"gone-{nonce()}", house.signer)
    with house.bench() as ours:
        request = house.request(ours, signed)
        ours.place(request)
        ours.stop(request)
        house.put(enforcement({"bob": house.stranger}))

        refused = ours.start(request, 3, 2)

        assert isinstance(refused, Refused)
        assert refused.code is RefusalCode.VERIFY


def test_what_a_supervisor_begins_again_is_verified_like_all_that_starts(house: Door) -> None:
    house.put()
    signed = package(house.keys / f"again-{nonce()}", house.signer)
    with house.bench() as ours:
        request = house.request(ours, signed, restart=POLICY)
        ours.place(request)
        _kill(ours, request, 1)
        wait_until(lambda: living(ours, request) == [2], "the second run")
        house.put(enforcement({"bob": house.stranger}))

        _kill(ours, request, 2)

        assert await_held(ours, request, "verify").current == 2


def _kill(bench: Bench, request: PlaceRequest, generation: int) -> None:
    for pid in (bench.cgroup(request, generation=generation) / "cgroup.procs").read_text().split():
        os.kill(int(pid), signal.SIGKILL)


def test_all_of_it_works_through_sudo_for_both_logins(tmp_path: Path) -> None:
    with door(tmp_path, shell="busybox", login="sudo") as house:
        house.put(admin="worker")
        signed = package(tmp_path / "package", house.signer)
        with house.bench() as ours:
            assert isinstance(ours.session.place(house.request(ours, signed)), Launched)
        assert house.remove() == (f"/etc/wlctl/{INSTALLATION}", "/etc/wlctl")
