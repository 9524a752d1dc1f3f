"""The store: files by their hash, whole or not there, whoever is killed meanwhile."""

import hashlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from wlctl.errors import FileMissing, FilesUnreadable
from wlctl.package.store import ContentDiffers, Store

DATA = b"abc"
SHA256 = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def left_over(store: Store) -> list[Path]:
    return list((store.path_of(SHA256).parent / "tmp").iterdir())


def test_what_is_put_can_be_opened(store: Store) -> None:
    store.put(SHA256, [b"a", b"", b"bc"])

    with store.open(SHA256) as stream:
        assert stream.read() == DATA
    assert store.verify(SHA256)
    assert store.path_of(SHA256).stat().st_mode & 0o777 == 0o444
    assert left_over(store) == []


def test_what_is_not_there_is_missing(store: Store) -> None:
    assert not store.verify(SHA256)
    with pytest.raises(FileMissing):
        store.open(SHA256)


def test_other_content_is_not_stored(store: Store) -> None:
    with pytest.raises(ContentDiffers):
        store.put(SHA256, [b"abd"])

    assert not store.path_of(SHA256).exists()
    assert left_over(store) == []


def test_a_file_that_is_there_stays_as_it_is(store: Store) -> None:
    store.put(SHA256, [DATA])
    os.utime(store.path_of(SHA256), ns=(0, 0))
    before = store.path_of(SHA256).stat()

    store.put(SHA256, [DATA])

    after = store.path_of(SHA256).stat()
    assert after.st_ino == before.st_ino
    assert after.st_mtime_ns > before.st_mtime_ns, "it is fresh again: somebody relies on it"


def test_other_content_is_refused_even_when_the_file_is_there(store: Store) -> None:
    store.put(SHA256, [DATA])

    with pytest.raises(ContentDiffers):
        store.put(SHA256, [b"abd"])

    assert store.verify(SHA256)


def test_a_file_that_has_rotted_is_seen_and_replaced(store: Store) -> None:
    store.put(SHA256, [DATA])
    store.path_of(SHA256).chmod(0o644)
    store.path_of(SHA256).write_bytes(b"abd")
    assert not store.verify(SHA256)

    store.put(SHA256, [DATA])

    assert store.verify(SHA256)


def test_a_writer_that_was_killed_leaves_nothing_behind(store: Store, tmp_path: Path) -> None:
    other = hashlib.sha256(b"other").hexdigest()
    program = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom wlctl.package.store import Store\n"
        "def chunks():\n    yield b'ot'\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        f"Store(Path(sys.argv[1])).put({other!r}, chunks())\n"
    )
    killed = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "store")],
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert [path.name for path in left_over(store)] == [other]
    assert not store.path_of(other).exists()

    store.put(SHA256, [DATA])

    assert left_over(store) == []


def test_two_writers_of_one_file_both_succeed(store: Store) -> None:
    started, may_end = threading.Event(), threading.Event()
    failures: list[Exception] = []

    def write(slow: bool) -> None:
        def chunks() -> list[bytes]:
            if slow:
                started.set()
                assert may_end.wait(10)
            return [DATA]

        try:
            store.put(SHA256, (chunk for chunk in chunks()))
        except OSError as error:
            failures.append(error)

    first = threading.Thread(target=write, args=(True,))
    second = threading.Thread(target=write, args=(False,))
    first.start()
    assert started.wait(10)
    second.start()
    may_end.set()
    first.join(10)
    second.join(10)

    assert failures == []
    assert store.verify(SHA256)
    assert left_over(store) == []


@pytest.mark.root
def test_a_full_disk_is_said_and_leaves_nothing_half(tmp_path: Path) -> None:
    data = b"x" * (2 << 20)
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mount)], check=True)
    try:
        store = Store(mount / "store")
        with pytest.raises(FilesUnreadable, match="No space left"):
            store.put(hashlib.sha256(data).hexdigest(), [data])
        assert left_over(store) == []
        store.put(SHA256, [DATA])
        assert store.verify(SHA256)
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def test_a_store_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(FilesUnreadable):
        Store(tmp_path / "file" / "store").put(SHA256, [DATA])


def test_a_link_in_the_place_of_a_temporary_is_not_followed(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("precious")
    temporary = store.path_of(SHA256).parent / "tmp"
    temporary.mkdir(parents=True)
    (temporary / SHA256).symlink_to(target)

    with pytest.raises(FilesUnreadable):
        store.put(SHA256, [DATA])

    assert target.read_text() == "precious"


def test_what_is_needed_or_fresh_is_not_collected(store: Store) -> None:
    names = {}
    for content in (b"needed", b"old", b"fresh"):
        name = hashlib.sha256(content).hexdigest()
        store.put(name, [content])
        os.utime(store.path_of(name), ns=(0, 2000 if content == b"fresh" else 1999))
        names[content] = name
    (store.path_of(SHA256).parent / "README").write_text("mine")

    tried = store.collect({names[b"needed"]}, 2000, dry_run=True)
    done = store.collect({names[b"needed"]}, 2000)

    assert tried == done == ((names[b"old"], 3),)
    assert [content for content, name in names.items() if store.verify(name)] == [
        b"needed",
        b"fresh",
    ]
    assert store.collect((), 2001) == tuple(
        sorted((names[content], len(content)) for content in (b"needed", b"fresh"))
    )
    assert (store.path_of(SHA256).parent / "README").exists()


def test_what_is_held_counts_as_fresh_and_is_still_judged(store: Store) -> None:
    assert not store.hold(SHA256)
    store.put(SHA256, [DATA])
    os.utime(store.path_of(SHA256), ns=(0, 0))

    assert store.hold(SHA256)

    assert store.collect((), 1) == ()
    store.path_of(SHA256).chmod(0o644)
    store.path_of(SHA256).write_bytes(b"rot")
    assert not store.hold(SHA256)
    assert store.has(SHA256, 3)
    assert not store.has(SHA256, 4)


def test_who_relies_on_a_file_and_who_collects_wait_for_each_other(store: Store) -> None:
    """A file that was found to be there is touched before anybody can collect it."""
    store.put(SHA256, [DATA])
    os.utime(store.path_of(SHA256), ns=(0, 0))
    order: list[str] = []
    began = threading.Event()

    class Slow(Store):
        def verify(self, sha256: str) -> bool:
            found = super().verify(sha256)
            began.set()
            collector.join(0.2)  # it must still wait then
            order.append("held")
            return found

    def collect() -> None:
        began.wait(30)
        order.append(f"collected {len(store.collect((), 1))}")

    collector = threading.Thread(target=collect)
    collector.start()
    Slow(store.path_of(SHA256).parent).hold(SHA256)
    collector.join(30)

    assert order == ["held", "collected 0"]
