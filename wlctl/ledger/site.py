"""Whether a path is a place for a ledger, asked before SQLite touches anything there."""

import os
import stat
from pathlib import Path

from wlctl.errors import LedgerOnNetwork, LedgerPermissions, NoLedger, NotALedger

SHARED_FILE_SYSTEMS = frozenset(
    {
        "9p",
        "acfs",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "drvfs",
        "fhgfs",
        "gfs",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "orangefs",
        "panfs",
        "prl_fs",
        "pvfs2",
        "smb3",
        "smbfs",
        "vboxsf",
        "vmhgfs",
    }
)
"""Types that several machines may have mounted at once, as the kernel names them."""

LOCAL_FUSE = frozenset(
    {
        "bindfs",
        "encfs",
        "ext4",
        "fuse-overlayfs",
        "gocryptfs",
        "mergerfs",
        "ntfs",
        "ntfs-3g",
        "unionfs",
        "zfs",
    }
)
"""What FUSE serves from this machine alone; of any other FUSE file system nobody knows."""

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def check_file(path: Path) -> None:
    """Make sure that a file lies at `path` which may be a ledger.

    Raises:
        NoLedger: Nothing is there, or its directory is not.
        NotALedger: It is no regular file, or empty.
        LedgerPermissions: It cannot be reached, or is open to others than its owner.
        LedgerOnNetwork: See `check_directory`.
    """
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        missing = "" if path.parent.is_dir() else ", nor its directory"
        raise NoLedger(
            f"there is no ledger {path}{missing}", hint="make one with `wlctl init`"
        ) from error
    except OSError as error:
        raise LedgerPermissions(f"the ledger {path} cannot be reached: {error.strerror}") from error
    if not stat.S_ISREG(found.st_mode):
        kind = "a directory" if stat.S_ISDIR(found.st_mode) else "no regular file"
        raise NotALedger(f"{path} is {kind}, not a ledger", hint="name the ledger file with --db")
    if found.st_size == 0:
        raise NotALedger(f"{path} is empty, not a ledger", hint="name the ledger file with --db")
    if found.st_mode & _OTHERS:
        mode = stat.S_IMODE(found.st_mode)
        raise LedgerPermissions(
            f"{path} is open to others (mode {mode:04o}), as no ledger may be",
            hint=f"name your ledger with --db; if this is it, run `chmod 600 {path}`",
        )
    check_directory(path.parent)


def check_directory(directory: Path) -> None:
    """Make sure that SQLite's locks and shared memory work in `directory`.

    Raises:
        NoLedger: It is not there.
        LedgerPermissions: It cannot be reached.
        LedgerOnNetwork: Other machines may write there too.
    """
    try:
        kind = file_system_of(directory)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NoLedger(f"there is no directory {directory} for a ledger") from error
    except OSError as error:
        raise LedgerPermissions(f"{directory} cannot be reached: {error.strerror}") from error
    if kind is not None and is_shared(kind):
        raise LedgerOnNetwork(
            f"{directory} is on a network file system ({kind}), where a ledger would be torn",
            hint="put it on a local disk: --db or WLCTL_DB names it",
        )


def is_shared(kind: str) -> bool:
    """Answer whether other machines may write to a file system of this kind."""
    family, _, served = kind.partition(".")
    if family == "fuse":
        return served not in LOCAL_FUSE
    return family in SHARED_FILE_SYSTEMS


def file_system_of(directory: Path) -> str | None:
    """Return the kernel's name for the kind of file system of `directory`; None if it does not say.

    The descriptor names the mount itself, so neither mounts over mounts nor devices that several
    mounts share (btrfs) can be mistaken.

    Source: Linux, proc(5), /proc/pid/fdinfo and /proc/pid/mountinfo.
    """
    fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        told = _read(f"/proc/self/fdinfo/{fd}")
    finally:
        os.close(fd)
    mount = next((line.split()[1] for line in told.splitlines() if line.startswith("mnt_id:")), "")
    return kind_of_mount(_read("/proc/self/mountinfo"), mount)


def kind_of_mount(mountinfo: str, mount: str) -> str | None:
    """Return the file system's kind of the mount with the id `mount`; None if it is not listed."""
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        if fields.split(" ", 1)[0] == mount:
            return rest.split(" ", 1)[0] or None
    return None


def _read(path: str) -> str:
    """Read what the kernel tells; nothing where /proc is not mounted."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
