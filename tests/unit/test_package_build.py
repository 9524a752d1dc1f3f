"""Building: which files a package takes, and what it leaves alone."""

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.packages import MINIMAL, a_package, put_signature, with_line
from wlctl.errors import FilesUnreadable, InvalidFile
from wlctl.package import manifest, tree
from wlctl.package.build import add_signature, build, describe, is_stale

ALL = with_line('files = ["./"]')
SSHSIG = "-----BEGIN SSH SIGNATURE-----\n"


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def test_a_build_writes_manifest_and_sheets_and_nothing_else(tmp_path: Path) -> None:
    a_package(tmp_path, files={"notes.txt": b"not listed"})
    before = {path.relative_to(tmp_path) for path in tmp_path.rglob("*")}

    built = build(tmp_path)

    written = {path.relative_to(tmp_path) for path in tmp_path.rglob("*")} - before
    assert written == {Path("manifest.json"), Path("sheets"), Path("sheets/any")}
    assert (tmp_path / "manifest.json").read_text() == built.manifest.text
    assert [file.path for file in built.manifest.files] == ["bin/web", "sheets/any"]


def test_a_build_reads_back_as_it_was_made(tmp_path: Path) -> None:
    built = build(a_package(tmp_path))

    assert manifest.read((tmp_path / "manifest.json").read_bytes()) == built.manifest


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077], ids=oct)
def test_the_id_is_the_same_under_every_umask(mask: int, tmp_path: Path) -> None:
    with umask(0o022):
        expected = build(a_package(tmp_path / "a")).manifest.package_id
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    for path in (tmp_path / "b").rglob("*"):
        path.chmod(path.stat().st_mode & 0o777 & ~mask)

    with umask(mask):
        assert build(tmp_path / "b").manifest.package_id == expected


def test_the_id_is_the_same_in_whatever_order_files_were_made(tmp_path: Path) -> None:
    files = {f"assets/{name}": name.encode() for name in "cabed"}
    text = with_line('files = ["bin/", "assets"]')
    first = build(a_package(tmp_path / "a", text, files)).manifest.package_id

    reordered = dict(reversed(files.items()))
    text = with_line('files = ["assets/", "bin/web", "./assets/a"]')

    assert build(a_package(tmp_path / "b", text, reordered)).manifest.package_id == first


def _touch_a_byte(package: Path) -> None:
    (package / "bin/web").write_bytes(b"#!/bin/sh\nexec sleep 1001\n")


def _add_a_byte(package: Path) -> None:
    (package / "bin/web").write_bytes(b"#!/bin/sh\nexec sleep 1000\n\n")


def _add_a_file(package: Path) -> None:
    (package / "bin/more").write_bytes(b"")


def _rename(package: Path) -> None:
    (package / "bin/lib").rename(package / "bin/lob")


def _make_executable(package: Path) -> None:
    (package / "bin/lib").chmod(0o744)


def _next_version(package: Path) -> None:
    path = package / "workload.toml"
    path.write_text(path.read_text().replace("1.4.2", "1.4.3"))


@pytest.mark.parametrize(
    "change",
    [_touch_a_byte, _add_a_byte, _add_a_file, _rename, _make_executable, _next_version],
)
def test_the_id_changes_with_all_that_matters(
    change: Callable[[Path], None], tmp_path: Path
) -> None:
    package = a_package(tmp_path, with_line('files = ["bin/"]'), {"bin/lib": b"x"})
    (package / "bin/lib").chmod(0o644)
    before = build(package).manifest.package_id

    change(package)

    assert build(package).manifest.package_id != before


def test_bits_of_others_do_not_matter(tmp_path: Path) -> None:
    package = a_package(tmp_path, with_line('files = ["bin/"]'), {"bin/lib": b"x"})
    (package / "bin/lib").chmod(0o644)
    before = build(package).manifest.package_id

    (package / "bin/lib").chmod(0o611)

    assert build(package).manifest.package_id == before


def test_comments_in_the_description_do_not_matter(tmp_path: Path) -> None:
    before = build(a_package(tmp_path)).manifest.package_id

    assert build(a_package(tmp_path, f"# why\n{MINIMAL}")).manifest.package_id == before


def test_a_second_build_changes_nothing(tmp_path: Path) -> None:
    build(a_package(tmp_path))
    add_signature(tmp_path, "SHA256:me", SSHSIG)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}

    built = build(tmp_path)

    assert not built.is_new
    assert built.dropped_signatures == ()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_signatures_of_what_it_was_before_are_dropped(tmp_path: Path) -> None:
    build(a_package(tmp_path))
    add_signature(tmp_path, "SHA256:me", SSHSIG)

    built = build(a_package(tmp_path, with_line('version = "2"')))

    assert built.is_new
    assert built.dropped_signatures == ("me.sig",)
    assert list((tmp_path / "signatures").iterdir()) == []


def test_a_signature_lies_under_a_name_that_every_file_system_takes(tmp_path: Path) -> None:
    build(a_package(tmp_path))

    assert add_signature(tmp_path, "SHA256:a/b+c", SSHSIG) == "signatures/a_b-c.sig"
    assert (tmp_path / "signatures/a_b-c.sig").read_text() == SSHSIG


def test_sheets_of_variants_that_are_gone_are_removed(tmp_path: Path) -> None:
    build(a_package(tmp_path, f'{MINIMAL}[[variant]]\nname = "old"\nfiles = ["bin/web"]\n'))
    assert (tmp_path / "sheets/old").exists()

    build(a_package(tmp_path))

    assert [path.name for path in (tmp_path / "sheets").iterdir()] == ["any"]


def test_everything_is_the_package_without_what_is_wlctls_own(tmp_path: Path) -> None:
    a_package(tmp_path, ALL, {"README": b"x", "lib/deep/er": b"y"})
    (tmp_path / ".wlctl-new").write_text("left by a build that was killed")

    expected = ["README", "bin/web", "lib/deep/er", "sheets/any"]
    assert [file.path for file in build(tmp_path).manifest.files] == expected
    put_signature(tmp_path, "me", SSHSIG)
    assert [file.path for file in build(tmp_path).manifest.files] == expected


def _symlink_to_a_file(package: Path) -> None:
    (package / "bin/link").symlink_to("web")


def _symlink_to_a_directory(package: Path) -> None:
    (package / "bin/link").symlink_to("/etc")


def _dangling_symlink(package: Path) -> None:
    (package / "bin/link").symlink_to("nowhere")


def _fifo(package: Path) -> None:
    os.mkfifo(package / "bin/link")


def _socket(package: Path) -> None:
    here = Path.cwd()
    os.chdir(package / "bin")  # the path of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("link")
    finally:
        os.chdir(here)


def _not_utf8(package: Path) -> None:
    os.close(os.open(os.fsencode(package / "bin") + b"/link\xff", os.O_CREAT | os.O_WRONLY))


def _control(package: Path) -> None:
    (package / "bin/link\x1b[31m").touch()


def _twins(package: Path) -> None:
    (package / "bin/Web").touch()


def _twin_directories(package: Path) -> None:
    (package / "bin/a").mkdir()
    (package / "bin/A").mkdir()
    (package / "bin/a/x").touch()
    (package / "bin/A/y").touch()


def _deep(package: Path) -> None:
    inner = package / "bin"
    for _ in range(70):
        inner /= "d"
        inner.mkdir()
    (inner / "x").touch()


def _huge(package: Path) -> None:
    with (package / "bin/huge").open("wb") as stream:
        stream.truncate(manifest.MAX_FILE_BYTES + 1)


@pytest.mark.parametrize(
    ("put", "said"),
    [
        pytest.param(_symlink_to_a_file, "is a symbolic link", id="a link to a file"),
        pytest.param(_symlink_to_a_directory, "is a symbolic link", id="a link to a directory"),
        pytest.param(_dangling_symlink, "is a symbolic link", id="a link to nothing"),
        pytest.param(_fifo, "is a named pipe", id="a pipe"),
        pytest.param(_socket, "is a socket", id="a socket"),
        pytest.param(_not_utf8, r'"bin/link\udcff" is not UTF-8', id="a name that is no text"),
        pytest.param(_control, r'"bin/link\x1b[31m" has characters', id="a name with controls"),
        pytest.param(_twins, "one name on some file systems", id="two names in one"),
        pytest.param(_twin_directories, "one name on some file systems", id="two directories"),
        pytest.param(_deep, "nested deeper than 64", id="directories without end"),
        pytest.param(_huge, "at most 536870912", id="one byte more than a file may have"),
    ],
)
def test_only_plain_files_become_part_of_a_package(
    put: Callable[[Path], None], said: str, tmp_path: Path
) -> None:
    package = a_package(tmp_path / "p", with_line('files = ["bin/"]'))
    put(package)

    with pytest.raises(InvalidFile) as refusal:
        build(package)

    assert said in refusal.value.message
    assert not (package / "manifest.json").exists()
    assert not (package / "sheets").exists()


@pytest.mark.root
def test_a_device_is_no_file(tmp_path: Path) -> None:
    package = a_package(tmp_path, with_line('files = ["bin/"]'))
    os.mknod(package / "bin/null", 0o644 | 0o020000, os.makedev(1, 3))

    with pytest.raises(InvalidFile, match="is a device"):
        build(package)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        pytest.param('["nope"]', 'variant[0].files[0]: "nope" is not there', id="nothing"),
        pytest.param('["bin/web", "empty/"]', 'no file is in "empty"', id="an empty directory"),
        pytest.param('["sheets/"]', "is wlctl's own", id="the sheets"),
        pytest.param('["Manifest.JSON"]', "is wlctl's own", id="the manifest in another case"),
        pytest.param('["bin/web/more"]', '"bin/web" is a file', id="a path through a file"),
        pytest.param('["out/passwd"]', '"out" is a symbolic link', id="a path through a link"),
    ],
)
def test_what_is_listed_must_be_a_file_of_the_package(
    files: str, said: str, tmp_path: Path
) -> None:
    package = a_package(tmp_path, with_line(f"files = {files}"))
    (package / "empty").mkdir()
    (package / "out").symlink_to("/etc")

    with pytest.raises(InvalidFile) as refusal:
        build(package)

    assert said in refusal.value.message


@pytest.mark.parametrize("name", ["sheets", "signatures"])
def test_a_directory_of_wlctls_that_leads_out_is_refused(name: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    package = a_package(tmp_path / "p")
    (package / name).symlink_to(elsewhere)

    with pytest.raises(InvalidFile):
        build(package)
        add_signature(package, "SHA256:me", SSHSIG)

    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("path", ["sheets/budget.ods", "signatures/mine.sig"])
def test_a_file_that_somebody_else_put_there_is_not_removed(path: str, tmp_path: Path) -> None:
    build(a_package(tmp_path))
    package = a_package(tmp_path, with_line('version = "2"'), {path: b"precious"})
    before = {path: path.read_bytes() for path in package.rglob("*") if path.is_file()}

    with pytest.raises(InvalidFile, match="is not wlctl's own"):
        build(package)

    assert {path: path.read_bytes() for path in package.rglob("*") if path.is_file()} == before


def test_a_large_sheet_of_a_variant_that_is_gone_is_removed(tmp_path: Path) -> None:
    files = {f"data/{number:04}": b"" for number in range(1000)}
    old = '[[variant]]\nname = "old"\nfiles = ["bin/web", "data/"]\n'
    build(a_package(tmp_path, MINIMAL + old, files))
    assert (tmp_path / "sheets/old").stat().st_size > 64 * 1024

    build(a_package(tmp_path))

    assert [path.name for path in (tmp_path / "sheets").iterdir()] == ["any"]


def test_what_a_killed_build_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "sheets").mkdir()
    (tmp_path / "sheets" / ".wlctl-new").write_text("half of a sh")

    build(a_package(tmp_path))

    assert [path.name for path in (tmp_path / "sheets").iterdir()] == ["any"]


def test_a_manifest_that_is_a_link_is_replaced_and_its_target_stays(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    package = a_package(tmp_path / "p")
    (package / "manifest.json").symlink_to(target)

    build(package)

    assert target.read_text() == "precious"
    assert not (package / "manifest.json").is_symlink()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(b"\xff", "is not UTF-8: byte 0", id="no text"),
        pytest.param(b"#" * (256 * 1024 + 1), "more than 262144 bytes", id="one byte too many"),
    ],
)
def test_a_description_is_small_text(text: bytes, said: str, tmp_path: Path) -> None:
    (a_package(tmp_path) / "workload.toml").write_bytes(text)

    with pytest.raises(InvalidFile, match=said):
        describe(tmp_path)


def test_a_timezone_is_one_that_is_known(tmp_path: Path) -> None:
    text = with_line('kind = "interval"')
    text += '[schedule]\ncron = "0 0 * * *"\ntimezone = "Europe/Atlantis"\n'

    with pytest.raises(InvalidFile, match='"Europe/Atlantis" is not a timezone'):
        build(a_package(tmp_path, text))


@pytest.mark.parametrize(
    "directory",
    [
        pytest.param("nowhere", id="nothing"),
        pytest.param("workload.toml", id="a file"),
        pytest.param("bin", id="a directory without a description"),
    ],
)
def test_what_is_no_package_is_said_to_be_none(directory: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidFile):
        build(a_package(tmp_path) / directory)


def test_a_package_is_stale_once_its_description_says_something_else(tmp_path: Path) -> None:
    stated = build(a_package(tmp_path)).manifest
    assert not is_stale(tmp_path, stated)

    a_package(tmp_path, f"# only a comment\n{MINIMAL}")
    assert not is_stale(tmp_path, stated)

    a_package(tmp_path, with_line('version = "2"'))
    assert is_stale(tmp_path, stated)

    a_package(tmp_path, "no TOML")
    assert is_stale(tmp_path, stated)

    (tmp_path / "workload.toml").unlink()
    assert not is_stale(tmp_path, stated)


def test_a_directory_that_takes_no_file_is_said_in_one_line(tmp_path: Path) -> None:
    package = a_package(tmp_path)
    (package / "sheets").mkdir()
    (package / "sheets" / "any").mkdir()

    with pytest.raises(FilesUnreadable) as failure:
        build(package)

    assert "\n" not in failure.value.message
    assert not (package / "manifest.json").exists()
    assert list((package / "sheets").iterdir()) == [package / "sheets" / "any"]


def test_what_the_system_does_not_open_is_named_by_its_whole_path(tmp_path: Path) -> None:
    package = a_package(tmp_path)

    with (
        tree.opened(package) as root,
        pytest.raises(FileNotFoundError) as failed,
        tree.opened_file(root, "bin/none"),
    ):
        pass

    assert failed.value.filename == "bin/none", "its name alone would not say where to look"
