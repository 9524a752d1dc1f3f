"""A disk whose power can be cut: what was not synced by then is gone, and what was is there."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SIZE_BYTES = 48 << 20


@dataclass
class Disk:
    """An ext4 in a file, mounted through a loop device.

    Attributes:
        point: Where it is mounted.
    """

    image: Path
    point: Path

    def cut_power(self) -> None:
        """Have the machine off and on again, at once: only what reached the disk is left.

        The file behind the loop device is the disk. What the kernel keeps of the file system in
        memory does not get there without a sync, or half a minute.
        """
        survived = self.image.with_suffix(".survived")
        shutil.copyfile(self.image, survived)
        self.unmount()
        survived.replace(self.image)
        self.mount()

    def mount(self) -> None:
        _run("mount", "-o", "loop,commit=300", str(self.image), str(self.point))

    def unmount(self) -> None:
        _run("umount", str(self.point))


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True, timeout=60)


@contextlib.contextmanager
def disk(directory: Path) -> Iterator[Disk]:
    """Make one below `directory`, and take it away whatever happens."""
    made = Disk(directory / "disk.img", directory / "disk")
    made.point.mkdir()
    with made.image.open("wb") as file:
        file.truncate(SIZE_BYTES)
    _run("mkfs.ext4", "-q", "-F", str(made.image))
    made.mount()
    try:
        yield made
    finally:
        if made.point.is_mount():
            made.unmount()
        made.image.unlink()
