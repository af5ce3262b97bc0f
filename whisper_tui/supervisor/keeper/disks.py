"""The file systems that may hang: a process that touches one waits, however long that takes."""

import os
from typing import Any

from whisper_tui.system.processes import kernel_file

_MAY_HANG = frozenset(b"nfs nfs4 cifs smb3 smbfs 9p ceph afs autofs glusterfs lustre beegfs gpfs".split())


def may_hang(spec: dict[str, Any], environment: dict[str, str]) -> bool:
    """True if the start of a command may wait for a disk that does not respond."""
    points = _mount_points()
    if not points:
        return False
    paths = [spec["cwd"], spec["real_cwd"], spec["program"], *spec["files"]]
    if (sandbox := spec.get("sandbox")) is not None:
        paths += [*sandbox["read"], *sandbox["execute"], *sandbox["write"], environment.get("HOME")]
    return any(f"{path}/".startswith(f"{point}/") for path in paths if path is not None for point in points)


def _mount_points() -> list[str]:
    found = []
    for line in kernel_file("/proc/self/mountinfo").splitlines():
        before, _, after = line.partition(b" - ")
        kind = after.split(b" ", 1)[0]
        if kind in _MAY_HANG or kind.startswith(b"fuse"):
            found.append(os.fsdecode(before.split()[4]).rstrip("/"))
    return found
