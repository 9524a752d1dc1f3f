import pytest

from wlctl.ledger import site

MOUNTINFO = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /home/ann/shared\\040disk rw,nosuid shared:5 master:2 - fuse.sshfs ann@elm: rw
122 22 0:44 / /mnt rw - nfs4 elm:/export rw,vers=4.2
31 22 0:27 / /odd rw - tmpfs
"""


@pytest.mark.parametrize(
    ("kind", "shared"),
    [
        pytest.param("ext4", False, id="a local disk"),
        pytest.param("xfs", False, id="another"),
        pytest.param("btrfs", False, id="another yet"),
        pytest.param("zfs", False, id="zfs"),
        pytest.param("tmpfs", False, id="memory"),
        pytest.param("overlay", False, id="a container's"),
        pytest.param("fuseblk", False, id="a local disk through FUSE"),
        pytest.param("fuse.ntfs-3g", False, id="another"),
        pytest.param("fuse.fuse-overlayfs", False, id="a rootless container's"),
        pytest.param("nfs", True, id="NFS"),
        pytest.param("nfs4", True, id="NFS 4"),
        pytest.param("cifs", True, id="SMB"),
        pytest.param("smb3", True, id="SMB 3"),
        pytest.param("ceph", True, id="Ceph"),
        pytest.param("lustre", True, id="Lustre"),
        pytest.param("ocfs2", True, id="a disk that machines share"),
        pytest.param("9p", True, id="the host's, in a VM"),
        pytest.param("fuse.sshfs", True, id="sshfs"),
        pytest.param("fuse.glusterfs", True, id="Gluster"),
        pytest.param("fuse.rclone", True, id="an object store"),
        pytest.param("fuse.whatever", True, id="FUSE that nobody knows"),
        pytest.param("fuse", True, id="FUSE that does not say"),
        pytest.param("fuse.", True, id="FUSE with an empty name"),
        pytest.param("nfsd", False, id="only the whole name counts"),
    ],
)
def test_other_machines_may_write_to(kind: str, shared: bool) -> None:
    assert site.is_shared(kind) is shared


@pytest.mark.parametrize(
    ("mount", "kind"),
    [
        pytest.param("22", "ext4", id="no optional fields matter"),
        pytest.param("30", "fuse.sshfs", id="two of them, and a space in the path"),
        pytest.param("122", "nfs4", id="none"),
        pytest.param("31", "tmpfs", id="nothing after the kind"),
        pytest.param("2", None, id="the whole number counts"),
        pytest.param("", None, id="a kernel that does not name the mount"),
    ],
)
def test_the_kind_of_a_mount_is_read_from_its_line(mount: str, kind: str | None) -> None:
    assert site.kind_of_mount(MOUNTINFO, mount) == kind


def test_nothing_is_read_where_nothing_is_told() -> None:
    assert site.kind_of_mount("", "22") is None
