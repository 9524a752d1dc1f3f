"""Bad packages, one by one: each is refused with its code, in a short line, and nothing is sent.

All is signed by the accepted signer wherever the spoiling leaves something to sign: what is refused
is refused for what it is.
"""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from tests.flows.setting import Setting
from wlctl import signing
from wlctl.errors import SignerConflict, UnsafeKey, WlctlError
from wlctl.flows import packages, revocations, signers
from wlctl.flows.signing import KeyChoice
from wlctl.model.revocation import RevocationKind

Spoil = Callable[[Setting], None]

HOSTILE = "\x1b[2J\u202e" + "x" * 5000
"""Text that would clear a screen, turn words around, and fill a log."""


def script(setting: Setting) -> Path:
    return setting.package / "bin" / "run"


def resign(setting: Setting, text: bytes, namespace: str = "wlctl-package") -> None:
    """Put another statement in the place of the manifest, and a true signature of it beside it."""
    (setting.package / "manifest.json").write_bytes(text)
    for path in (setting.package / "signatures").iterdir():
        path.write_text(signing.sign(text, signing.load_private_key(setting.key), namespace))


def stated(setting: Setting) -> dict[str, Any]:
    value = json.loads((setting.package / "manifest.json").read_bytes())
    assert isinstance(value, dict)
    return value


def with_path(path: str) -> Spoil:
    """A manifest that names its script otherwise, signed."""

    def spoil(setting: Setting) -> None:
        text = (setting.package / "manifest.json").read_text().replace("bin/run", path)
        resign(setting, text.encode("utf-8", errors="surrogatepass"))

    return spoil


def as_link(target: str) -> Spoil:
    def spoil(setting: Setting) -> None:
        elsewhere = setting.home / "elsewhere"
        elsewhere.write_bytes(script(setting).read_bytes())
        elsewhere.chmod(0o755)
        script(setting).unlink()
        script(setting).symlink_to(target.replace("ELSEWHERE", str(elsewhere)))

    return spoil


def as_pipe(setting: Setting) -> None:
    script(setting).unlink()
    os.mkfifo(script(setting), 0o755)


def as_socket(setting: Setting) -> None:
    script(setting).unlink()
    here = Path.cwd()
    os.chdir(script(setting).parent)  # the path of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("run")
    finally:
        os.chdir(here)


def as_device(setting: Setting) -> None:
    script(setting).unlink()
    os.mknod(script(setting), 0o20755, os.makedev(1, 5))  # /dev/zero


def changed_after_the_build(setting: Setting) -> None:
    script(setting).write_text("#!/bin/sh\nexec sleep 1001\n")


def gone(setting: Setting) -> None:
    script(setting).unlink()


def two_names_of_one_file(setting: Setting) -> None:
    value = stated(setting)
    twin = {**value["files"][0], "path": "BIN/run"}
    value["files"] = sorted([*value["files"], twin], key=lambda file: str(file["path"]))
    resign(setting, rfc8785.dumps(value))


def key_twice(setting: Setting) -> None:
    text = (setting.package / "manifest.json").read_bytes()
    resign(setting, b'{"kind":"service",' + text[1:])


def a_gigabyte(setting: Setting) -> None:
    with (setting.package / "manifest.json").open("wb") as stream:
        stream.truncate(1 << 30)


def byte_order_mark(setting: Setting) -> None:
    resign(setting, b"\xef\xbb\xbf" + (setting.package / "manifest.json").read_bytes())


def unknown_key(setting: Setting) -> None:
    resign(setting, rfc8785.dumps({**stated(setting), HOSTILE: 1}))


def kind_of_the_future(setting: Setting) -> None:
    resign(setting, rfc8785.dumps({**stated(setting), "kind": HOSTILE}))


def other_namespace(setting: Setting) -> None:
    resign(setting, (setting.package / "manifest.json").read_bytes(), "file")


def hostile_namespace(setting: Setting) -> None:
    resign(setting, (setting.package / "manifest.json").read_bytes(), HOSTILE)


def truncated(setting: Setting) -> None:
    [path] = (setting.package / "signatures").iterdir()
    path.write_text(path.read_text()[:-40])


def nonsense_under_a_hostile_name(setting: Setting) -> None:
    name = b"\xff\x1b[2J\xe2\x80\xae.sig"
    (setting.package / "signatures" / os.fsdecode(name)).write_bytes(b"nonsense")


def unsigned(setting: Setting) -> None:
    for path in (setting.package / "signatures").iterdir():
        path.unlink()


def signer_revoked(setting: Setting) -> None:
    with setting.runtime() as rt:
        revocations.revoke(rt, RevocationKind.KEY, "me", "stolen")


def signer_removed(setting: Setting) -> None:
    with setting.runtime() as rt:
        signers.rm(rt, "me")


def signer_expired(setting: Setting) -> None:
    signer_removed(setting)
    listed = setting.home / "allowed"
    listed.write_text(f'me valid-before="20200101Z" {signing.public_key(setting.key)}\n')
    listed.chmod(0o644)
    with setting.runtime() as rt:
        signers.import_(rt, listed)


def package_revoked(setting: Setting) -> None:
    with setting.runtime() as rt:
        id_ = packages.check(rt, setting.package).manifest.package_id
        revocations.revoke(rt, RevocationKind.PACKAGE, id_, HOSTILE)


BAD = [
    pytest.param(as_link("ELSEWHERE"), "file-tampered", id="a link out of the package"),
    pytest.param(as_link("../../home/elsewhere"), "file-tampered", id="a relative link out of it"),
    pytest.param(as_link("/dev/zero"), "file-tampered", id="a link to a device"),
    pytest.param(with_path("/etc/passwd"), "manifest-invalid", id="an absolute path"),
    pytest.param(with_path("../run"), "manifest-invalid", id="a path out of the package"),
    pytest.param(with_path("bin/../run"), "manifest-invalid", id="a path with dots in the middle"),
    pytest.param(with_path(f"bin/{HOSTILE}"), "manifest-invalid", id="a hostile path"),
    pytest.param(with_path("bin/\udcff"), "manifest-invalid", id="a path that is no UTF-8"),
    pytest.param(two_names_of_one_file, "manifest-invalid", id="names that differ in case"),
    pytest.param(as_device, "file-tampered", id="a device", marks=pytest.mark.root),
    pytest.param(as_pipe, "file-tampered", id="a pipe"),
    pytest.param(as_socket, "file-tampered", id="a socket"),
    pytest.param(changed_after_the_build, "file-tampered", id="a file that changed"),
    pytest.param(gone, "file-missing", id="a file that is gone"),
    pytest.param(key_twice, "manifest-invalid", id="a key twice"),
    pytest.param(a_gigabyte, "manifest-invalid", id="a manifest of a gigabyte"),
    pytest.param(byte_order_mark, "manifest-invalid", id="a byte order mark"),
    pytest.param(unknown_key, "manifest-invalid", id="an unknown key"),
    pytest.param(kind_of_the_future, "unknown-kind", id="an unknown kind"),
    pytest.param(other_namespace, "bad-signature", id="the right bytes for another purpose"),
    pytest.param(hostile_namespace, "bad-signature", id="a hostile namespace"),
    pytest.param(truncated, "bad-signature", id="truncated armor"),
    pytest.param(nonsense_under_a_hostile_name, "bad-signature", id="a hostile file name"),
    pytest.param(unsigned, "missing-signature", id="no signature"),
    pytest.param(signer_revoked, "revoked-signer", id="a revoked signer"),
    pytest.param(signer_expired, "untrusted-signer", id="an expired signer"),
    pytest.param(signer_removed, "untrusted-signer", id="a signer who was removed"),
    pytest.param(package_revoked, "revoked", id="a revoked package"),
]


@pytest.mark.parametrize(("spoil", "code"), BAD)
def test_a_bad_package_is_refused_in_one_short_line_and_nothing_is_sent(
    setting: Setting, spoil: Spoil, code: str
) -> None:
    setting.add_node("elm")
    spoil(setting)
    asked: list[str] = []
    setting.world.hook = lambda step, _moment: asked.append(step)

    for dry_run in (False, True):
        with pytest.raises(WlctlError) as refusal:
            setting.place(dry_run=dry_run)
        assert refusal.value.code == code
        assert refusal.value.message.isprintable()
        assert len(refusal.value.message) < 400

    assert asked == []
    assert setting.holds() == ()
    assert not list((setting.home / "store").glob("*")) or code.startswith("file-")
    assert setting.events("workload.place") == []


@pytest.mark.parametrize("spoil", [signer_revoked, signer_expired, package_revoked])
def test_what_runs_already_goes_on_and_can_be_ended_whatever_was_revoked(
    setting: Setting, spoil: Spoil
) -> None:
    setting.add_node("elm")
    setting.place()
    spoil(setting)

    assert setting.stop("web").code == ""
    assert setting.unload("web").code == ""


def linked_out(setting: Setting) -> None:
    (setting.package / "bin" / "more").symlink_to("/etc/passwd")


def with_pipe(setting: Setting) -> None:
    os.mkfifo(setting.package / "bin" / "more")


def with_device(setting: Setting) -> None:
    os.mknod(setting.package / "bin" / "more", 0o20644, os.makedev(1, 3))


def with_twin(setting: Setting) -> None:
    (setting.package / "bin" / "RUN").write_text("another")


def with_odd_name(setting: Setting) -> None:
    os.close(os.open(os.fsencode(setting.package / "bin") + b"/\xff", os.O_CREAT | os.O_WRONLY))


def with_control(setting: Setting) -> None:
    (setting.package / "bin" / "\x1b[2J").write_text("")


def described(line: str) -> Spoil:
    def spoil(setting: Setting) -> None:
        path = setting.package / "workload.toml"
        path.write_text(path.read_text().replace('files = ["bin/"]', line))

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(linked_out, id="a link out of the package"),
        pytest.param(with_pipe, id="a pipe"),
        pytest.param(with_device, id="a device", marks=pytest.mark.root),
        pytest.param(with_twin, id="names that differ in case"),
        pytest.param(with_odd_name, id="a name that is no UTF-8"),
        pytest.param(with_control, id="a name that would clear the screen"),
        pytest.param(described('files = ["/etc/passwd"]'), id="an absolute path"),
        pytest.param(described('files = ["../home"]'), id="a path out of the package"),
        pytest.param(described('files = ["nothing"]'), id="a path to nothing"),
    ],
)
def test_what_cannot_be_part_of_a_package_is_not_built(setting: Setting, spoil: Spoil) -> None:
    before = (setting.package / "manifest.json").read_bytes()
    spoil(setting)

    with pytest.raises(WlctlError) as refusal:
        packages.build(setting.package)

    assert refusal.value.code == "invalid-file"
    assert refusal.value.message.isprintable()
    assert (setting.package / "manifest.json").read_bytes() == before


@pytest.mark.parametrize("mode", [0o666, 0o646, 0o664], ids=oct)
def test_a_key_file_that_others_can_write_is_taken_for_nothing(setting: Setting, mode: int) -> None:
    public = setting.key.with_name("signer.pub")
    public.chmod(mode)
    setting.key.chmod(mode)

    with setting.runtime() as rt:
        with pytest.raises(UnsafeKey):
            signers.add(rt, "again", public)
        with pytest.raises(UnsafeKey):
            packages.sign(rt, setting.package, KeyChoice(setting.key))
        with pytest.raises(UnsafeKey):
            packages.sign(rt, setting.package, KeyChoice(public))


def test_a_key_has_one_name_however_it_comes(setting: Setting) -> None:
    public = setting.key.with_name("signer.pub")
    listed = setting.home / "allowed"
    listed.write_text(f"you {public.read_text()}")
    listed.chmod(0o644)

    with setting.runtime() as rt:
        with pytest.raises(SignerConflict):
            signers.add(rt, "you", public)
        with pytest.raises(SignerConflict):
            signers.import_(rt, listed)
