"""Signers come, go, lapse and are exchanged as lists; what is revoked is vouched for by nobody."""

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.flows.policed import apply, run_by, tamper
from tests.flows.setting import Setting
from wlctl import signing
from wlctl.errors import (
    ApprovalRefused,
    BadSignature,
    GateDenied,
    InvalidFile,
    Revoked,
    RevokedSigner,
    SignerConflict,
    UnknownName,
    UntrustedSigner,
    UsageError,
    WlctlError,
)
from wlctl.flows import doctor, gate, init, packages, policy, signers, starting, stored
from wlctl.flows.doctor import Health
from wlctl.flows.runtime import Runtime
from wlctl.flows.signing import KeyChoice
from wlctl.flows.start_intents import Begin, Beginning
from wlctl.gate.work import work_of
from wlctl.ledger import approvals, instances, revocations
from wlctl.ledger.verify import Verified
from wlctl.model.fleet import Ruling
from wlctl.model.instance import Instance
from wlctl.model.package import Signer
from wlctl.model.policy import GateRequest
from wlctl.model.revocation import RevocationKind
from wlctl.package.verify import read

NOW_MS = 1_700_000_000_000
"""When the clock of a setting begins; it ticks a second a look."""


def a_key(setting: Setting, name: str) -> str:
    """Make a key; return its public half."""
    signing.generate_key(setting.home / name, comment=name)
    return signing.public_key(setting.home / name)


def listed(setting: Setting) -> dict[str, Signer]:
    with setting.runtime() as rt:
        return {signer.name: signer for signer in signers.ls(rt)}


def imported(setting: Setting, text: str) -> signers.Imported:
    path = setting.home / "allowed_signers"
    path.write_text(text)
    path.chmod(0o644)
    with setting.runtime() as rt:
        return signers.import_(rt, path)


def sign(setting: Setting, key: Path) -> None:
    with setting.runtime() as rt:
        packages.sign(rt, setting.package, KeyChoice(key))


def verify(setting: Setting) -> tuple[str, ...]:
    with setting.runtime() as rt:
        return tuple(signer.name for signer in packages.check(rt, setting.package).signers)


def rm(setting: Setting, name: str, *, dry_run: bool = False) -> signers.Removed:
    with setting.runtime() as rt:
        return signers.rm(rt, name, dry_run=dry_run)


def revoke(setting: Setting, kind: RevocationKind, ref: str) -> None:
    with setting.runtime() as rt, rt.ledger.write(rt.now_ms(), rt.author) as tx:
        revocations.revoke(tx, kind, ref, "leaked")


def own_key(setting: Setting) -> str:
    return signing.fingerprint(signing.public_key(setting.key))


def test_a_signer_who_was_removed_vouches_for_nothing_more(setting: Setting) -> None:
    assert verify(setting) == ("me",)

    assert rm(setting, "me").signer.name == "me"

    with pytest.raises(UntrustedSigner):
        verify(setting)
    assert [event.payload["signer"] for event in setting.events("signer.rm")] == ["me"]
    assert isinstance(setting.verified(), Verified)
    with pytest.raises(UnknownName):
        rm(setting, "me")


def test_removing_a_signer_names_the_copies_that_nobody_else_vouches_for(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place()
    for name in ("ann", "bob"):
        a_key(setting, name)
        with setting.runtime() as rt:
            signers.add(rt, name, setting.home / f"{name}.pub")

    assert rm(setting, "bob").orphaned == ()
    assert [one.name for one in rm(setting, "me", dry_run=True).orphaned] == ["web"]
    assert "me" in listed(setting), "a dry run removes nobody"
    sign(setting, setting.home / "ann")
    setting.unload("web")
    setting.place()
    assert rm(setting, "me").orphaned == ()
    assert [one.name for one in rm(setting, "ann").orphaned] == ["web"]
    assert setting.instance("web").state.value == "running", "what runs goes on"


@pytest.mark.parametrize("actions", ['["signer.add"]', '["policy.apply"]'])
def test_only_who_may_removes_a_signer(setting: Setting, actions: str) -> None:
    owner = '[[permit]]\nid = "o"\nactions = ["policy.apply"]\nprincipals = ["tester"]\n'
    apply(setting, f'{owner}[[permit]]\nid = "x"\nactions = {actions}\nprincipals = ["eve"]\n')

    with run_by(setting, "eve") as rt, pytest.raises(GateDenied):
        signers.rm(rt, "me")

    assert "me" in listed(setting)
    assert setting.events("policy.gate")[-1].payload["action"] == "signer.rm"


def test_a_list_is_taken_with_its_times(setting: Setting) -> None:
    ann, bob, git = (a_key(setting, name) for name in ("ann", "bob", "git"))

    done = imported(
        setting,
        f'ann valid-after="20200101Z" {ann}\nme {signing.public_key(setting.key)}\n'
        f'bob namespaces="wlctl-*",valid-before="20300101Z" {bob}\ngit namespaces="git" {git}\n',
    )

    assert [one.name for one in done.added] == ["ann", "bob"]
    assert [one.name for one in done.known] == ["me"]
    assert [one.line for one in done.passed_over] == [4]
    assert listed(setting)["bob"].valid_before_ms == 1_893_456_000_000
    assert "git" not in listed(setting)
    assert len(setting.events("signer.add")) == 3
    assert isinstance(setting.verified(), Verified)


@pytest.mark.parametrize(
    ("line", "error", "said"),
    [
        pytest.param("x cert-authority {other}", InvalidFile, "line 3: cert-auth", id="a CA"),
        pytest.param("* {other}", InvalidFile, "line 3: its first word", id="a pattern"),
        pytest.param("me {other}", SignerConflict, "line 3: signer me has", id="another key"),
        pytest.param("rob {me}", SignerConflict, "line 3: this key is signer me", id="a name more"),
        pytest.param(
            'me valid-before="20300101Z" {me}', SignerConflict, "line 3", id="other times"
        ),
    ],
)
def test_a_list_is_taken_whole_or_not_at_all(
    setting: Setting, line: str, error: type[WlctlError], said: str
) -> None:
    keys = {"other": a_key(setting, "other"), "me": signing.public_key(setting.key)}
    before = listed(setting), len(setting.events("signer.add"))

    with pytest.raises(error, match=said):
        imported(setting, f"# new\nann {a_key(setting, 'ann')}\n{line.format(**keys)}\n")

    assert (listed(setting), len(setting.events("signer.add"))) == before


def test_a_list_without_anybody_for_packages_is_a_mistake(setting: Setting) -> None:
    with pytest.raises(InvalidFile, match="lists nobody who signs packages"):
        imported(setting, f'ann namespaces="git" {a_key(setting, "ann")}\n')


def test_a_dry_run_of_an_import_says_who_would_be_new_and_accepts_nobody(setting: Setting) -> None:
    path = setting.home / "allowed_signers"
    path.write_text(f"me {signing.public_key(setting.key)}\nann {a_key(setting, 'ann')}\n")
    path.chmod(0o644)
    with setting.runtime() as rt:
        before = signers.ls(rt)
        said = signers.import_(rt, path, dry_run=True)
        assert signers.ls(rt) == before
        done = signers.import_(rt, path)

    assert [one.name for one in said.added] == ["ann"] == [one.name for one in done.added]
    assert said.known == done.known
    assert said.added[0].added_at_ms > 0


def test_ssh_keygen_accepts_by_an_exported_list_and_we_by_an_imported_one(
    setting: Setting, tmp_path: Path
) -> None:
    imported(setting, f'ann valid-before="20300101Z" {a_key(setting, "ann")}\n')
    with setting.runtime() as rt:
        (tmp_path / "allowed").write_text(signers.export(rt))
    [signature] = (setting.package / "signatures").iterdir()
    command = ["ssh-keygen", "-Y", "verify", "-f", str(tmp_path / "allowed"), "-I", "me"]
    command += ["-n", "wlctl-package", "-s", str(signature)]
    manifest = (setting.package / "manifest.json").read_bytes()
    subprocess.run(command, input=manifest, check=True, capture_output=True)

    home = tmp_path / "another"
    home.mkdir()
    other = Setting(home, setting.world, setting.clock, setting.package, setting.key)
    with other.runtime() as rt:
        init.init(rt)
        signers.import_(rt, tmp_path / "allowed")
        assert signers.export(rt) == (tmp_path / "allowed").read_text()
    assert verify(other) == ("me",)


@pytest.mark.parametrize(
    ("option", "is_accepted"),
    [
        pytest.param('valid-before="20231114Z"', False, id="expired"),
        pytest.param('valid-before="20231115Z"', True, id="not yet expired"),
        pytest.param('valid-after="20231115Z"', False, id="not yet"),
        pytest.param('valid-after="20231114Z"', True, id="already"),
    ],
)
def test_a_signer_counts_within_its_time_when_a_package_is_verified_and_placed(
    setting: Setting, option: str, is_accepted: bool
) -> None:
    """The clock of a setting begins on 2023-11-14, in the evening."""
    setting.add_node("elm")
    ann = a_key(setting, "ann")
    shutil.rmtree(setting.package / "signatures")
    sign(setting, setting.home / "ann")
    imported(setting, f"ann {option} {ann}\n")

    if is_accepted:
        assert verify(setting) == ("ann",)
        assert setting.place().attempt is not None
        return
    with pytest.raises(UntrustedSigner, match="ann, who is accepted"):
        verify(setting)
    with pytest.raises(UntrustedSigner):
        setting.place()
    assert not setting.world.nodes["elm"].store, "nothing was sent"


def test_a_bad_signature_by_who_is_accepted_no_longer_is_still_bad(setting: Setting) -> None:
    ann = a_key(setting, "ann")
    sign(setting, setting.home / "ann")
    imported(setting, f'ann valid-before="20231114Z" {ann}\n')
    assert verify(setting) == ("me",)
    names = {path.read_bytes(): path for path in (setting.package / "signatures").iterdir()}
    manifest = setting.package / "manifest.json"
    key = signing.load_private_key(setting.home / "ann")
    of_ann = signing.sign(manifest.read_bytes(), key).encode()
    names[of_ann].write_text(signing.sign(b"something else", key))

    with pytest.raises(BadSignature):
        verify(setting)


def test_a_package_whose_key_is_revoked_is_refused_unless_another_signed_it(
    setting: Setting,
) -> None:
    setting.add_node("elm")
    revoke(setting, RevocationKind.KEY, own_key(setting))

    with pytest.raises(RevokedSigner):
        verify(setting)
    with pytest.raises(RevokedSigner):
        setting.place()
    assert not setting.world.nodes["elm"].store, "nothing was sent"

    a_key(setting, "ann")
    with setting.runtime() as rt:
        signers.add(rt, "ann", setting.home / "ann.pub")
    sign(setting, setting.home / "ann")
    assert verify(setting) == ("ann",)
    assert setting.place().attempt is not None


@pytest.mark.parametrize("kind", [RevocationKind.PACKAGE, RevocationKind.ARTIFACT])
def test_a_revoked_package_and_a_package_with_a_revoked_file_are_refused(
    setting: Setting, kind: RevocationKind
) -> None:
    setting.add_node("elm")
    stated = read(setting.package).manifest
    [script] = [file for file in stated.files if file.path == "bin/run"]
    ref = stated.package_id if kind is RevocationKind.PACKAGE else script.sha256
    revoke(setting, kind, ref)

    with pytest.raises(Revoked, match=ref):
        verify(setting)
    with pytest.raises(Revoked):
        setting.place()
    assert not setting.world.nodes["elm"].store, "nothing was sent"


def test_what_was_revoked_after_it_was_stored_is_refused_from_the_store_too(
    setting: Setting,
) -> None:
    setting.add_node("elm")
    setting.place()
    setting.unload("web")
    assert [one.signers for one in _ls(setting)] == [("me",)]
    revoke(setting, RevocationKind.KEY, own_key(setting))

    assert [one.signers for one in _ls(setting)] == [()]
    with setting.runtime() as rt, pytest.raises(RevokedSigner):
        packages.admit(rt, Path("web@1.0.0"))


def _ls(setting: Setting) -> list[stored.Listed]:
    with setting.runtime() as rt:
        return stored.ls(rt)


def test_the_gate_denies_what_is_revoked_whoever_asks_it(setting: Setting) -> None:
    """Between verifying and deciding somebody may have revoked it: the gate is asked last."""
    setting.add_node("elm")
    stated = read(setting.package).manifest
    with setting.runtime() as rt:
        trial = policy.try_out(rt, setting.package, "elm")
        assert trial.answer.verdict.ruling is Ruling.ALLOWED
        admitted = packages.admit(rt, setting.package)
    revoke(setting, RevocationKind.PACKAGE, stated.package_id)
    with setting.runtime() as rt:
        trial = policy.try_out(rt, setting.package, "elm")
        assert (trial.answer.verdict.ruling, trial.answer.verdict.rule) == (
            Ruling.DENIED,
            "revoked",
        )
    with setting.runtime() as rt, rt.ledger.read() as tx:
        verdict = gate.placing(rt, tx, work_of(admitted.spec))(setting.node("elm"))
    assert (verdict.ruling, verdict.rule) == (Ruling.DENIED, "revoked")


def test_a_revocation_list_that_cannot_be_read_denies_everything_but_teardown(
    setting: Setting,
) -> None:
    setting.add_node("elm")
    setting.place()
    revoke(setting, RevocationKind.PACKAGE, "a" * 64)
    tamper(setting, "DELETE FROM revocations")

    with pytest.raises(GateDenied, match="revocations-unreadable"):
        verify(setting)
    with pytest.raises(GateDenied, match="revocations-unreadable"):
        setting.place(name="b")
    with pytest.raises(GateDenied, match="revocations-unreadable"):
        rm(setting, "me")
    assert [one.signers for one in _ls(setting)] == [()]
    assert len(setting.world.nodes["elm"].alive) == 1
    assert setting.stop("web").code == ""
    assert setting.unload("web").code == ""


def start(setting: Setting) -> Beginning:
    with setting.runtime() as rt:
        return starting.start(rt, "web")


@pytest.fixture
def stopped(setting: Setting) -> Setting:
    """`web`, signed by `me` alone, lies on `elm` and does not run."""
    setting.add_node("elm")
    setting.place()
    setting.stop("web")
    return setting


def lose_the_list(setting: Setting) -> None:
    revoke(setting, RevocationKind.PACKAGE, "a" * 64)
    tamper(setting, "DELETE FROM revocations")


def lapse(setting: Setting) -> None:
    rm(setting, "me")
    public = signing.public_key(setting.key)
    imported(setting, f'me valid-before="20231114Z" {public}\n')


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        pytest.param(lambda s: rm(s, "me"), "untrusted-signer", id="removed"),
        pytest.param(lapse, "untrusted-signer", id="expired"),
        pytest.param(
            lambda s: revoke(s, RevocationKind.KEY, own_key(s)), "revoked-signer", id="revoked"
        ),
        pytest.param(
            lambda s: revoke(s, RevocationKind.PACKAGE, read(s.package).manifest.package_id),
            "gate-denied",
            id="the package is revoked",
        ),
        pytest.param(lose_the_list, "gate-denied", id="nobody can read what is revoked"),
    ],
)
def test_a_copy_is_not_started_again_once_nobody_vouches_for_it(
    stopped: Setting, spoil: Callable[[Setting], object], code: str
) -> None:
    spoil(stopped)
    asked: list[str] = []
    stopped.world.hook = lambda step, _moment: asked.append(step)

    done = start(stopped)

    assert (done.begin, done.code) == (Begin.DENIED, code)
    assert "start" not in asked
    assert stopped.instance("web").state.value == "stopped"


def test_a_restart_that_could_not_start_again_stops_nothing(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place()
    rm(setting, "me")

    with setting.runtime() as rt:
        [copy] = [one for one in _current(rt) if one.name == "web"]
        done = starting.restart_one(rt, copy)

    assert (done.begin, done.code) == (Begin.DENIED, "untrusted-signer")
    assert setting.instance("web").state.value == "running"
    assert len(setting.world.nodes["elm"].alive) == 1


def _current(rt: Runtime) -> list[Instance]:
    with rt.ledger.read() as tx:
        return instances.current(tx)


def test_a_copy_is_started_while_another_signer_vouches_for_it(setting: Setting) -> None:
    a_key(setting, "ann")
    with setting.runtime() as rt:
        signers.add(rt, "ann", setting.home / "ann.pub")
    sign(setting, setting.home / "ann")
    setting.add_node("elm")
    setting.place()
    setting.stop("web")
    revoke(setting, RevocationKind.KEY, own_key(setting))

    assert start(setting).begin is Begin.DONE


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        pytest.param("mee", "did you mean me? `wlctl signer ls` lists them", id="a slip"),
        pytest.param("zoe", "`wlctl signer ls` lists them", id="nothing like it"),
    ],
)
def test_who_mistypes_a_name_is_told_which_was_meant(
    setting: Setting, word: str, hint: str
) -> None:
    with setting.runtime() as rt, pytest.raises(UnknownName) as raised:
        signers.rm(rt, word)
    assert raised.value.hint == hint


def findings(setting: Setting) -> dict[str, tuple[Health, str]]:
    with setting.runtime() as rt:
        return {one.about: (one.health, one.text) for one in doctor.examine(rt)}


def test_the_doctor_counts_who_is_accepted_now_and_sees_a_list_that_cannot_be_read(
    setting: Setting,
) -> None:
    assert findings(setting)["signers"] == (Health.GOOD, "1 accepted")
    assert findings(setting)["revocations"] == (Health.GOOD, "0 revoked")
    lapse(setting)
    assert findings(setting)["signers"][0] is Health.NOTE
    lose_the_list(setting)
    assert findings(setting)["revocations"][0] is Health.BAD


def test_an_approver_whose_key_is_revoked_approves_nothing(setting: Setting) -> None:
    ann = a_key(setting, "ann")
    apply(
        setting,
        '[[permit]]\nid = "o"\nactions = ["policy.apply", "approve"]\nprincipals = ["tester"]\n'
        '[[permit]]\nid = "x"\nactions = ["place"]\nprincipals = ["*"]\n'
        f'[effect]\nceiling = 0.01\nhuman_approval = true\n[[approver]]\nprincipal = "ann"\n'
        f'key = "{ann}"\n',
    )
    with setting.runtime() as rt, rt.ledger.write(rt.now_ms(), rt.author) as tx:
        asked = gate.request_json(GateRequest("start", "bob"), rt.ledger.installation)
        waiting = approvals.defer(tx, "a" * 32, rt.ledger.installation, asked)
    revoke(setting, RevocationKind.KEY, signing.fingerprint(ann))

    with setting.runtime() as rt, pytest.raises(ApprovalRefused, match="is revoked"):
        policy.approve(rt, waiting.id, choice=KeyChoice(setting.home / "ann"))


def test_init_accepts_the_signer_it_is_given_and_may_be_repeated(
    setting: Setting, tmp_path: Path
) -> None:
    home = tmp_path / "new"
    home.mkdir()
    other = Setting(home, setting.world, setting.clock)
    key = setting.key.with_name("signer.pub")

    with other.runtime() as rt:
        done = init.init(rt, key)
        assert done.signer is not None
        assert (done.signer.name, done.signer.public_key) == (
            "tester",
            signing.load_public_key(key),
        )
        assert init.init(rt, key).made == ()
    assert set(listed(other)) == {"tester"}
    with other.runtime() as rt:
        rt.author = replace(rt.author, actor="two words@x")
        with pytest.raises(UsageError):
            init.init(rt, key)
