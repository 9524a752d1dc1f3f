"""Verifying: in which order, with which code, and that nothing which was touched is kept."""

import os
import socket
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.packages import a_package, a_signer, a_trust, put_signature, with_line
from wlctl.errors import (
    BadSignature,
    FileMissing,
    FileTampered,
    InvalidFile,
    ManifestInvalid,
    MissingSignature,
    RevokedSigner,
    UntrustedSigner,
    WlctlError,
)
from wlctl.package import manifest
from wlctl.package.build import build
from wlctl.package.store import Store
from wlctl.package.verify import check_files, read, verify

GOOD = "{"
"""How every manifest begins, and so what a signature that fits has signed."""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A built package, signed by ann."""
    directory = a_package(
        tmp_path / "package", with_line('files = ["bin/", "data"]'), {"data/x": b"abc"}
    )
    build(directory)
    put_signature(directory, "ann", f"ann {GOOD}")
    return directory


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def stored(store: Store) -> list[str]:
    root = store.path_of("0" * 64).parent
    return sorted(path.name for path in root.iterdir() if path.is_file()) if root.exists() else []


def test_what_was_signed_is_verified_and_stored(package: Path, store: Store) -> None:
    verified = verify(package, a_trust("ann"), store)

    assert verified.signers == (a_signer("ann"),)
    assert verified.signatures == (f"ann {GOOD}",)
    assert stored(store) == sorted({file.sha256 for file in verified.manifest.files})
    for file in verified.manifest.files:
        with store.open(file.sha256) as stream:
            assert stream.read() == (package / file.path).read_bytes()


def test_several_signers_stand_side_by_side(package: Path) -> None:
    put_signature(package, "bob", f"bob {GOOD}")

    verified = verify(package, a_trust("bob", "ann"))

    assert [signer.name for signer in verified.signers] == ["ann", "bob"]
    assert verified.signatures == (f"ann {GOOD}", f"bob {GOOD}")


def test_adding_a_signature_leaves_the_id_alone(package: Path) -> None:
    before = verify(package, a_trust("ann")).manifest.package_id
    put_signature(package, "bob", f"bob {GOOD}")

    assert verify(package, a_trust("bob")).manifest.package_id == before


@pytest.mark.parametrize(
    ("signatures", "accepted", "revoked", "error"),
    [
        pytest.param([], ["ann"], [], MissingSignature, id="nobody signed"),
        pytest.param(["eve {"], ["ann"], [], UntrustedSigner, id="nobody known signed"),
        pytest.param(["eve x"], ["ann"], [], UntrustedSigner, id="an unknown key does not matter"),
        pytest.param(["ann {"], [], [], UntrustedSigner, id="nobody is accepted"),
        pytest.param(["ann x"], ["ann"], [], BadSignature, id="a known key's does not fit"),
        pytest.param(
            ["ann x", "bob {"], ["ann", "bob"], [], BadSignature, id="one good one does not help"
        ),
        pytest.param(["ann {"], ["ann"], ["ann"], RevokedSigner, id="a revoked key signed"),
        pytest.param(["ann {"], [], ["ann"], RevokedSigner, id="a revoked key nobody accepts"),
        pytest.param(["ann {", "eve {"], ["ann"], ["ann"], RevokedSigner, id="revoked weighs more"),
        pytest.param(["ann x"], [], ["ann"], BadSignature, id="a revoked key is known"),
        pytest.param(["nonsense"], ["ann"], [], BadSignature, id="no signature at all"),
        pytest.param(
            ["ann {", "nonsense"], ["ann"], [], BadSignature, id="nonsense beside a good one"
        ),
    ],
)
def test_signatures_are_judged(
    *,
    signatures: list[str],
    accepted: list[str],
    revoked: list[str],
    error: type[WlctlError],
    package: Path,
    store: Store,
) -> None:
    (package / "signatures" / "ann.sig").unlink()
    for number, text in enumerate(signatures):
        put_signature(package, str(number), text)

    with pytest.raises(error):
        verify(package, a_trust(*accepted, revoked=revoked), store)

    assert stored(store) == []


def test_a_revoked_key_beside_an_accepted_one_does_not_matter(package: Path) -> None:
    put_signature(package, "bob", f"bob {GOOD}")

    verified = verify(package, a_trust("ann", "bob", revoked=["bob"]))

    assert [signer.name for signer in verified.signers] == ["ann"]


def _symlinked_signature(package: Path) -> None:
    (package / "signatures/ann.sig").rename(package / "elsewhere")
    (package / "signatures/ann.sig").symlink_to("../elsewhere")


def _endless_signature(package: Path) -> None:
    (package / "signatures/ann.sig").write_text(f"ann {GOOD}" + " " * 16 * 1024)


def _many_signatures(package: Path) -> None:
    for number in range(64):
        put_signature(package, f"s{number}", f"eve{number} {GOOD}")


def _symlinked_directory(package: Path) -> None:
    (package / "signatures").rename(package / "elsewhere")
    (package / "signatures").symlink_to("elsewhere")


@pytest.mark.parametrize(
    "spoil", [_symlinked_signature, _endless_signature, _many_signatures, _symlinked_directory]
)
def test_signatures_are_few_small_plain_files(spoil: Callable[[Path], None], package: Path) -> None:
    spoil(package)

    with pytest.raises(BadSignature):
        verify(package, a_trust("ann"))


def test_files_that_are_no_signatures_are_passed_over(package: Path) -> None:
    (package / "signatures/README").write_text("who signed, and why")

    assert [signer.name for signer in verify(package, a_trust("ann")).signers] == ["ann"]


def _no_manifest(package: Path) -> None:
    (package / "manifest.json").unlink()


def _symlinked_manifest(package: Path) -> None:
    (package / "manifest.json").rename(package / "elsewhere")
    (package / "manifest.json").symlink_to("elsewhere")


def _endless_manifest(package: Path) -> None:
    with (package / "manifest.json").open("wb") as stream:
        stream.truncate(2**30)


def _manifest_of_zeros(package: Path) -> None:
    (package / "manifest.json").unlink()
    (package / "manifest.json").symlink_to("/dev/zero")


def _manifest_pipe(package: Path) -> None:
    (package / "manifest.json").unlink()
    os.mkfifo(package / "manifest.json")


def _manifest_directory(package: Path) -> None:
    (package / "manifest.json").unlink()
    (package / "manifest.json").mkdir()


def _byte_order_mark(package: Path) -> None:
    path = package / "manifest.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())


def _key_twice(package: Path) -> None:
    path = package / "manifest.json"
    path.write_bytes(b'{"kind":"service",' + path.read_bytes()[1:])


@pytest.mark.parametrize(
    "spoil",
    [
        _no_manifest,
        _symlinked_manifest,
        _endless_manifest,
        _manifest_of_zeros,
        _manifest_pipe,
        _manifest_directory,
        _byte_order_mark,
        _key_twice,
    ],
)
def test_a_manifest_is_a_small_plain_file_that_a_build_wrote(
    spoil: Callable[[Path], None], package: Path
) -> None:
    spoil(package)

    with pytest.raises(ManifestInvalid):
        verify(package, a_trust("ann"))


def _other_byte(package: Path) -> None:
    (package / "data/x").write_bytes(b"abd")


def _longer(package: Path) -> None:
    (package / "data/x").write_bytes(b"abcd")


def _executable(package: Path) -> None:
    (package / "data/x").chmod(0o755)


def _not_executable(package: Path) -> None:
    (package / "bin/web").chmod(0o644)


def _link_inside(package: Path) -> None:
    (package / "data/x").rename(package / "data/y")
    (package / "data/x").symlink_to("y")


def _link_on_the_way(package: Path) -> None:
    (package / "data").rename(package / "elsewhere")
    (package / "data").symlink_to("elsewhere")


def _pipe(package: Path) -> None:
    (package / "data/x").unlink()
    os.mkfifo(package / "data/x")


def _socket(package: Path) -> None:
    (package / "data/x").unlink()
    here = Path.cwd()
    os.chdir(package / "data")  # the path of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("x")
    finally:
        os.chdir(here)


def _directory(package: Path) -> None:
    (package / "data/x").unlink()
    (package / "data/x").mkdir()


def _other_sheet(package: Path) -> None:
    path = package / "sheets/any"
    path.write_text(path.read_text().replace("TERM", "KILL"))


@pytest.mark.parametrize(
    "spoil",
    [
        _other_byte,
        _longer,
        _executable,
        _not_executable,
        _link_inside,
        _link_on_the_way,
        _pipe,
        _socket,
        _directory,
        _other_sheet,
    ],
)
def test_a_file_that_was_touched_is_tampered(spoil: Callable[[Path], None], package: Path) -> None:
    spoil(package)

    with pytest.raises(FileTampered):
        verify(package, a_trust("ann"))
    with pytest.raises(FileTampered):
        check_files(package)


def test_a_file_of_another_size_is_not_even_read(package: Path, store: Store) -> None:
    with (package / "data/x").open("wb") as stream:
        stream.truncate(2**40)

    with pytest.raises(FileTampered, match="has 1099511627776 bytes, the manifest states 3"):
        verify(package, a_trust("ann"), store)


def test_a_file_that_is_gone_is_missing(package: Path) -> None:
    (package / "data/x").unlink()

    with pytest.raises(FileMissing, match='"data/x" is listed and not there'):
        verify(package, a_trust("ann"))


def test_a_file_that_is_not_listed_is_not_stored(package: Path, store: Store) -> None:
    (package / "bin/more").write_text("more")

    verify(package, a_trust("ann"), store)

    assert len(stored(store)) == 3


def test_signatures_are_judged_before_any_file_is_opened(package: Path) -> None:
    (package / "data/x").unlink()

    with pytest.raises(UntrustedSigner):
        verify(package, a_trust("bob"))


def test_the_manifest_is_read_before_any_signature(package: Path) -> None:
    put_signature(package, "nonsense", "nonsense")
    _byte_order_mark(package)

    with pytest.raises(ManifestInvalid):
        verify(package, a_trust("ann"))


class Meddled(Store):
    """A store during whose copying somebody changes the file that is being read."""

    def __init__(self, root: Path, meddle: Callable[[], None]) -> None:
        super().__init__(root)
        self._meddle = meddle
        self.longest_bytes = 0

    def put(self, sha256: str, chunks: Iterable[bytes]) -> None:
        rest = iter(chunks)
        first = next(rest, b"")
        self._meddle()
        super().put(sha256, self._counted(chain([first], rest)))

    def _counted(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        seen_bytes = 0
        for chunk in chunks:
            seen_bytes += len(chunk)
            self.longest_bytes = max(self.longest_bytes, seen_bytes)
            yield chunk


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(b"y" * (1 << 20) + b"z" * (2 << 20), id="the rest is another"),
        pytest.param(b"y" * (4 << 20), id="it grows"),
        pytest.param(b"y" * (1 << 20), id="it shrinks"),
    ],
)
def test_a_file_that_changes_while_it_is_read_is_tampered(after: bytes, tmp_path: Path) -> None:
    package = a_package(
        tmp_path / "package", with_line('files = ["bin/", "big"]'), {"big": b"y" * (3 << 20)}
    )
    stated = build(package).manifest
    put_signature(package, "ann", f"ann {GOOD}")

    def change() -> None:
        (package / "big").write_bytes(after)

    store = Meddled(tmp_path / "store", change)

    with pytest.raises(FileTampered):
        verify(package, a_trust("ann"), store)

    [big] = [file for file in stated.files if file.path == "big"]
    assert not store.verify(big.sha256)
    assert store.longest_bytes <= big.size_bytes
    assert list((tmp_path / "store" / "tmp").iterdir()) == []


def test_a_file_that_is_exchanged_while_it_is_read_is_stored_as_it_was(tmp_path: Path) -> None:
    package = a_package(
        tmp_path / "package", with_line('files = ["bin/", "big"]'), {"big": b"y" * (3 << 20)}
    )
    stated = build(package).manifest
    put_signature(package, "ann", f"ann {GOOD}")

    def exchange() -> None:
        (package / "other").write_bytes(b"z" * (3 << 20))
        (package / "other").rename(package / "big")

    with pytest.raises(FileTampered):  # at the next file, or not at all: big is read once
        verify(package, a_trust("ann"), Meddled(tmp_path / "store", exchange))
        verify(package, a_trust("ann"))

    [big] = [file for file in stated.files if file.path == "big"]
    assert Store(tmp_path / "store").verify(big.sha256)


@pytest.mark.parametrize("directory", ["nowhere", "package/manifest.json"])
def test_what_is_no_directory_is_no_package(directory: str, package: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidFile):
        read(tmp_path / directory)


def test_hostile_text_is_shown_short_and_escaped(package: Path) -> None:
    put_signature(package, "x\x1b[2J" + "y" * 150, "nonsense")

    with pytest.raises(BadSignature) as refusal:
        verify(package, a_trust("ann"))

    assert refusal.value.message.isprintable()
    assert len(refusal.value.message) < 200


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(data=st.data())
def test_no_byte_of_any_file_can_change(data: st.DataObject, package: Path) -> None:
    """Whichever byte is changed, nothing is accepted; put back, it is again."""
    stated = read(package).manifest
    put_signature(package, "ann", f"ann {stated.text}")  # of all of it, not of its beginning
    paths = [file.path for file in stated.files] + [manifest.FILE_NAME]
    path = package / data.draw(st.sampled_from(paths))
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    other = data.draw(st.integers(1, 255))
    path.write_bytes(whole[:at] + bytes([whole[at] ^ other]) + whole[at + 1 :])

    def judged() -> str:
        try:
            return verify(package, a_trust("ann")).manifest.package_id
        except WlctlError as refusal:
            return refusal.code

    assert judged() in {
        *("manifest-invalid", "unknown-kind", "bad-signature", "file-tampered", "file-missing"),
    }
    path.write_bytes(whole)
    assert judged() == stated.package_id
