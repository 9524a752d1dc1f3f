"""Revoking: what it names, whom it hits, who may, and that it is taken back."""

import pytest

from tests.flows.policed import apply, run_by
from tests.flows.setting import Setting
from wlctl import signing
from wlctl.errors import (
    GateDenied,
    Revoked,
    UnknownName,
    UsageError,
    WlctlError,
)
from wlctl.flows import packages, revocations, signers
from wlctl.flows.signing import KeyChoice
from wlctl.ledger.verify import Verified
from wlctl.model.instance import State
from wlctl.model.revocation import RevocationKind
from wlctl.package.verify import read

PACKAGE, KEY, ARTIFACT = RevocationKind


@pytest.fixture
def running(setting: Setting) -> Setting:
    """The package runs on `elm`."""
    setting.add_node("elm")
    setting.place()
    return setting


def revoke(
    setting: Setting, kind: RevocationKind, word: str, *, dry_run: bool = False
) -> revocations.Revoking:
    with setting.runtime() as rt:
        return revocations.revoke(rt, kind, word, "leaked", dry_run=dry_run)


def unrevoke(setting: Setting, kind: RevocationKind, word: str) -> str:
    with setting.runtime() as rt:
        return revocations.unrevoke(rt, kind, word, "by mistake")


def listed(setting: Setting) -> list[tuple[RevocationKind, str]]:
    with setting.runtime() as rt:
        return [(one.kind, one.ref) for one in revocations.ls(rt)]


def package_id(setting: Setting) -> str:
    return read(setting.package).manifest.package_id


def fingerprint(setting: Setting) -> str:
    return signing.fingerprint(signing.public_key(setting.key))


def script(setting: Setting) -> str:
    [found] = [one for one in read(setting.package).manifest.files if one.path == "bin/run"]
    return found.sha256


def words(setting: Setting) -> list[tuple[RevocationKind, str, str]]:
    """Kind, what can be said for it, and what is revoked then."""
    id_, key = package_id(setting), fingerprint(setting)
    return [
        (PACKAGE, id_, id_),
        (PACKAGE, id_[:8], id_),
        (PACKAGE, "web@1.0.0", id_),
        (KEY, key, key),
        (KEY, "me", key),
        (ARTIFACT, script(setting), script(setting)),
    ]


@pytest.mark.parametrize("number", range(6))
def test_what_is_revoked_is_named_hits_its_copies_and_stops_nothing(
    running: Setting, number: int
) -> None:
    kind, word, ref = words(running)[number]

    tried = revoke(running, kind, word, dry_run=True)
    assert listed(running) == []
    done = revoke(running, kind, word)

    assert (done.ref, done.is_new, [one.name for one in done.hits]) == (ref, True, ["web"])
    assert tried == done
    assert listed(running) == [(kind, ref)]
    assert running.instance("web").state is State.RUNNING
    [event] = running.events("workload.revoke")
    assert (event.payload["ref"], event.payload["reason"]) == (ref, "leaked")
    with pytest.raises(WlctlError) as refusal:
        running.place(name="again")
    assert refusal.value.exit_code == 4
    assert isinstance(running.verified(), Verified)


def test_revoking_twice_is_nothing_to_do(running: Setting) -> None:
    revoke(running, PACKAGE, "web@1.0.0")

    assert not revoke(running, PACKAGE, package_id(running)).is_new
    assert len(running.events("workload.revoke")) == 1


def test_a_revoked_key_hits_only_what_nobody_else_vouches_for(running: Setting) -> None:
    signing.generate_key(running.home / "ann", comment="ann")
    with running.runtime() as rt:
        signers.add(rt, "ann", running.home / "ann.pub")
        packages.sign(rt, running.package, KeyChoice(running.home / "ann"))
    running.unload("web")
    running.place()

    assert revoke(running, KEY, "me").hits == ()
    assert [one.name for one in revoke(running, KEY, "ann").hits] == ["web"]


def test_what_was_never_seen_can_be_revoked_by_its_whole_name(setting: Setting) -> None:
    assert revoke(setting, PACKAGE, "a" * 64).hits == ()
    assert revoke(setting, KEY, f"SHA256:{'a' * 43}").hits == ()
    assert revoke(setting, ARTIFACT, "a" * 64).hits == ()
    assert len(listed(setting)) == 3


@pytest.mark.parametrize(
    ("kind", "word", "error"),
    [
        pytest.param(PACKAGE, "web@9", UnknownName, id="a package that is not stored"),
        pytest.param(PACKAGE, "abcd", UnknownName, id="no beginning of an id"),
        pytest.param(KEY, "nobody", UnknownName, id="no signer"),
        pytest.param(KEY, "SHA256:abc", UnknownName, id="a shortened fingerprint"),
        pytest.param(ARTIFACT, "abcd", UsageError, id="a shortened hash"),
        pytest.param(ARTIFACT, "A" * 64, UsageError, id="a hash in capitals"),
    ],
)
def test_a_word_that_names_nothing_revokes_nothing(
    setting: Setting, kind: RevocationKind, word: str, error: type[WlctlError]
) -> None:
    with pytest.raises(error):
        revoke(setting, kind, word)
    assert listed(setting) == []


def test_a_revocation_and_what_takes_it_back_have_reasons(setting: Setting) -> None:
    with setting.runtime() as rt:
        with pytest.raises(UsageError):
            revocations.revoke(rt, KEY, "me", " ")
        with pytest.raises(UsageError):
            revocations.unrevoke(rt, KEY, "me", "")


def test_what_was_revoked_by_mistake_comes_back(running: Setting) -> None:
    revoke(running, PACKAGE, "web@1.0.0")
    with pytest.raises(Revoked):
        running.place(name="again")

    assert unrevoke(running, PACKAGE, "web@1.0.0") == package_id(running)

    assert running.place(name="again").attempt is not None
    assert listed(running) == []
    with pytest.raises(UnknownName, match="is not revoked"):
        unrevoke(running, PACKAGE, "web@1.0.0")
    assert isinstance(running.verified(), Verified)


def test_only_who_may_revokes_and_takes_back(setting: Setting) -> None:
    revoke(setting, KEY, f"SHA256:{'a' * 43}")
    before = listed(setting)
    apply(
        setting,
        '[[permit]]\nid = "o"\nactions = ["policy.apply"]\nprincipals = ["tester"]\n',
    )

    with run_by(setting, "eve") as rt:
        with pytest.raises(GateDenied):
            revocations.revoke(rt, KEY, "me", "spite")
        with pytest.raises(GateDenied):
            revocations.unrevoke(rt, KEY, f"SHA256:{'a' * 43}", "spite")

    assert listed(setting) == before
