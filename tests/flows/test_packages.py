"""Packages from their directory into the controller's store, with real keys and a real ledger."""

import shutil
import sqlite3
import stat
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.flows.conftest import write_package
from tests.flows.setting import Setting
from wlctl import signing
from wlctl.errors import (
    AmbiguousName,
    BadSignature,
    FileMissing,
    FileTampered,
    InvalidFile,
    MissingSignature,
    SignerConflict,
    UnknownName,
    UntrustedSigner,
    UsageError,
    WlctlError,
)
from wlctl.flows import packages, signers
from wlctl.flows import stored as listing
from wlctl.flows.packages import Admitted
from wlctl.flows.signing import KeyChoice
from wlctl.model.package import Signer


def admit(setting: Setting, package: Path | str, *, record: bool = False) -> Admitted:
    with setting.runtime() as rt:
        admitted = packages.admit(rt, Path(package))
        if record:
            with rt.ledger.write(rt.now_ms(), rt.author) as tx:
                packages.record(tx, admitted)
        return admitted


def stored(setting: Setting) -> set[str]:
    with setting.runtime() as rt:
        root = rt.home.store
    return {path.name for path in root.iterdir() if path.is_file()} if root.exists() else set()


def new_key(setting: Setting, name: str, *, accept: bool = True) -> Path:
    key = setting.home / name
    signing.generate_key(key, comment=name)
    if accept:
        with setting.runtime() as rt:
            signers.add(rt, name, key.with_name(f"{name}.pub"))
    return key


def sign(setting: Setting, package: Path, key: Path) -> packages.Signed:
    with setting.runtime() as rt:
        return packages.sign(rt, package, KeyChoice(key))


def test_an_admitted_package_has_all_a_placement_needs(setting: Setting) -> None:
    admitted = admit(setting, setting.package)

    assert admitted.spec.name == "web"
    assert admitted.signers == ("me",)
    [variant] = admitted.variants
    assert variant == admitted.variant("any")
    assert [file.path for file in variant.files] == ["sheets/any", "bin/run"]
    assert variant.sheet == variant.files[0].sha256
    for file in variant.files:
        with admitted.store.open(file.sha256) as stream:
            assert stream.read() == (setting.package / file.path).read_bytes()
    assert admitted.package_id in admitted.spec.revocable_refs
    assert signing.public_key(setting.key)


def test_a_revocation_can_name_the_signer_of_an_admitted_package(setting: Setting) -> None:
    fingerprint = signing.fingerprint(signing.public_key(setting.key))

    assert fingerprint in admit(setting, setting.package).spec.revocable_refs


def test_a_description_that_changed_after_the_build_is_told_of(setting: Setting) -> None:
    assert not admit(setting, setting.package, record=True).is_stale
    path = setting.package / "workload.toml"
    path.write_text(path.read_text().replace("256MiB", "512MiB"))

    assert admit(setting, setting.package).is_stale
    assert not admit(setting, "web@1.0.0").is_stale


def test_the_store_is_its_owners_alone(setting: Setting) -> None:
    admit(setting, setting.package)

    with setting.runtime() as rt:
        root = rt.home.store
    assert stat.S_IMODE(root.stat().st_mode) & 0o077 == 0


def test_several_signers_are_named(setting: Setting) -> None:
    sign(setting, setting.package, new_key(setting, "bob"))

    admitted = admit(setting, setting.package)

    assert admitted.signers == ("bob", "me")
    assert len(admitted.signatures) == 2


def test_what_ssh_keygen_signed_is_admitted(setting: Setting) -> None:
    manifest = setting.package / "manifest.json"
    shutil.rmtree(setting.package / "signatures")
    with pytest.raises(MissingSignature):
        admit(setting, setting.package)

    command = ["ssh-keygen", "-q", "-Y", "sign", "-f", str(setting.key), "-n", "wlctl-package"]
    subprocess.run([*command, str(manifest)], check=True)
    (setting.package / "signatures").mkdir()
    manifest.with_name("manifest.json.sig").rename(setting.package / "signatures" / "me.sig")

    assert admit(setting, setting.package).signers == ("me",)


def test_a_signature_for_another_purpose_is_bad(setting: Setting) -> None:
    manifest = setting.package / "manifest.json"
    [signature] = (setting.package / "signatures").iterdir()
    command = ["ssh-keygen", "-q", "-Y", "sign", "-f", str(setting.key), "-n", "file"]
    subprocess.run([*command, str(manifest)], check=True)
    manifest.with_name("manifest.json.sig").rename(signature)

    with pytest.raises(BadSignature, match='by me: made for the namespace "file"'):
        admit(setting, setting.package)


def test_a_signature_of_another_build_is_bad(setting: Setting) -> None:
    [signature] = (setting.package / "signatures").iterdir()
    before = signature.read_bytes()
    (setting.package / "bin/run").write_text("#!/bin/sh\nexec sleep 2000\n")
    packages.build(setting.package)
    signature.write_bytes(before)

    with pytest.raises(BadSignature, match="by me: it does not fit"):
        admit(setting, setting.package)


def test_nothing_of_a_refused_package_is_stored(setting: Setting) -> None:
    shutil.rmtree(setting.package / "signatures")
    sign(setting, setting.package, new_key(setting, "eve", accept=False))

    with pytest.raises(UntrustedSigner):
        admit(setting, setting.package)

    assert stored(setting) == set()


def test_a_file_that_changed_after_the_build_is_not_signed(setting: Setting) -> None:
    (setting.package / "bin/run").write_text("#!/bin/sh\nexec sleep 2000\n")

    with pytest.raises(FileTampered):
        sign(setting, setting.package, setting.key)


def test_a_description_that_changed_after_the_build_is_not_signed(setting: Setting) -> None:
    path = setting.package / "workload.toml"
    path.write_text(path.read_text().replace("256MiB", "512MiB"))

    with pytest.raises(InvalidFile, match="was changed after the build"):
        sign(setting, setting.package, setting.key)


def test_signing_says_whether_the_key_is_accepted(setting: Setting) -> None:
    assert sign(setting, setting.package, setting.key).signer == "me"
    unknown = new_key(setting, "eve", accept=False)
    assert sign(setting, setting.package, unknown).signer is None


def test_a_package_that_was_admitted_is_found_without_its_directory(setting: Setting) -> None:
    first = admit(setting, setting.package, record=True)
    shutil.rmtree(setting.package)

    for words in ("web@1.0.0", first.package_id[:8], first.package_id):
        again = admit(setting, words)
        assert (again.manifest, again.signers) == (first.manifest, ("me",))
        assert again.variants == first.variants


@pytest.mark.parametrize(
    ("words", "error"),
    [
        pytest.param("web@9", UnknownName, id="a version that was never admitted"),
        pytest.param("ffff", UnknownName, id="an id that was never admitted"),
        pytest.param("nowhere", InvalidFile, id="a directory that is not there"),
    ],
)
def test_a_package_that_is_nowhere_is_unknown(
    words: str, error: type[WlctlError], setting: Setting
) -> None:
    with pytest.raises(error):
        admit(setting, words)


def test_two_builds_of_one_version_are_told_apart(setting: Setting) -> None:
    first = admit(setting, setting.package, record=True)
    (setting.package / "bin/run").write_text("#!/bin/sh\nexec sleep 2000\n")
    packages.build(setting.package)
    sign(setting, setting.package, setting.key)
    second = admit(setting, setting.package, record=True)
    assert first.package_id != second.package_id

    with pytest.raises(AmbiguousName, match="fits 2 packages"):
        admit(setting, "web@1.0.0")

    assert admit(setting, first.package_id[:16]).package_id == first.package_id


def test_a_stored_package_is_judged_by_the_signers_of_now(setting: Setting) -> None:
    admitted = admit(setting, setting.package, record=True)
    with setting.runtime() as rt:
        _forget_all_signers(rt.home.ledger)

    with pytest.raises(UntrustedSigner):
        admit(setting, admitted.package_id)


def _forget_all_signers(ledger: Path) -> None:
    with closing(sqlite3.connect(ledger, isolation_level=None)) as conn:
        conn.execute("DELETE FROM signers")


def test_a_stored_file_that_rotted_is_missing(setting: Setting) -> None:
    admitted = admit(setting, setting.package, record=True)
    path = admitted.store.path_of(admitted.variants[0].sheet)
    path.chmod(0o644)
    path.write_text("rot")

    with pytest.raises(FileMissing, match="are in no store"):
        admit(setting, admitted.package_id)

    assert admit(setting, setting.package).package_id == admitted.package_id
    assert admit(setting, admitted.package_id).package_id == admitted.package_id


def test_admitting_again_records_the_new_signature(setting: Setting) -> None:
    first = admit(setting, setting.package, record=True)
    sign(setting, setting.package, new_key(setting, "bob"))

    second = admit(setting, setting.package, record=True)

    assert second.package_id == first.package_id
    with setting.runtime() as rt:
        [listed] = listing.ls(rt)
    assert listed.signers == ("bob", "me")


def test_a_package_is_shown_whoever_signed_it(setting: Setting) -> None:
    sign(setting, setting.package, new_key(setting, "eve", accept=False))
    (setting.package / "signatures" / "x.sig").write_text("nonsense")

    with setting.runtime() as rt:
        shown = packages.show(rt, setting.package)

    names = sorted(signer or "-" for _, _, signer in shown.signatures)
    assert names == ["-", "-", "me"]
    assert [reading.fault for _, reading, signer in shown.signatures if signer] == [None]
    assert not shown.is_stale


def test_a_package_is_shown_and_signed_where_there_is_no_ledger(
    setting: Setting, tmp_path: Path
) -> None:
    with setting.runtime() as rt:
        rt.home.ledger.unlink()
    with setting.runtime() as rt:
        assert packages.show(rt, setting.package).manifest.workload.name == "web"
        assert packages.sign(rt, setting.package, KeyChoice(setting.key)).signer is None
    assert not list(tmp_path.rglob("ledger.db"))


def test_a_signer_is_added_once(setting: Setting) -> None:
    key = new_key(setting, "bob", accept=False).with_name("bob.pub")

    with setting.runtime() as rt:
        signer, is_new = signers.add(rt, "bob", key)
        assert is_new
        assert isinstance(signer, Signer)
        assert signers.add(rt, "bob", key) == (signer, False)
        with pytest.raises(SignerConflict):
            signers.add(rt, "rob", key)
        assert [signer.name for signer in signers.ls(rt)] == ["bob", "me"]


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a b",
        "*",
        "a,b",
        "!ann",
        "-ann",
        "a" * 129,
        "ann\n",
        'a"b',
        "\N{CYRILLIC SMALL LETTER A}",
    ],
)
def test_a_signers_name_is_one_plain_word(name: str, setting: Setting) -> None:
    key = setting.key.with_name("signer.pub")

    with setting.runtime() as rt, pytest.raises(UsageError):
        signers.add(rt, name, key)


def test_a_starter_builds_and_is_admitted(setting: Setting, tmp_path: Path) -> None:
    package = tmp_path / "My First App"

    assert packages.init(package) == ("bin/run", "workload.toml")
    built = packages.build(package)
    sign(setting, package, setting.key)

    assert built.manifest.workload.name == "my-first-app"
    assert admit(setting, package).spec.name == "my-first-app"


def test_a_starter_overwrites_nothing(tmp_path: Path) -> None:
    write_package(tmp_path / "web")
    before = (tmp_path / "web" / "workload.toml").read_text()

    with pytest.raises(InvalidFile, match="is already there"):
        packages.init(tmp_path / "web")

    assert (tmp_path / "web" / "workload.toml").read_text() == before
