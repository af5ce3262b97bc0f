"""A disk whose power can fail: what is not written by then is lost."""

import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.changes.overlay import NEWNS, PRIVATE_ALL, in_child
from whisper_tui.changes import step_notes
from whisper_tui.system import syscalls


class Disk:
    """An ext4 file system in a file, whose power can fail. It is mounted for this process and its children alone."""

    boots = 1
    _SHUTDOWN, _LOSE_ALL_THAT_IS_NOT_WRITTEN = 0x8004587D, struct.pack("I", 2)
    """EXT4_IOC_SHUTDOWN, and the flag that keeps the journal from being written at last."""

    def __init__(self, directory: Path) -> None:
        self.image, self.top = directory / "image", directory / "disk"
        self.top.mkdir()
        self.image.touch()
        os.truncate(self.image, 32 << 20)
        subprocess.run(["mkfs.ext4", "-q", str(self.image)], check=True)
        syscalls.call("unshare", NEWNS)
        syscalls.call("mount", None, b"/", None, PRIVATE_ALL, None)
        self.mount()

    def mount(self) -> None:
        subprocess.run(["mount", "-o", "loop", str(self.image), str(self.top)], check=True)

    def fail(self) -> None:
        """Lose what was not written yet, and start again."""
        fd = os.open(self.top, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, self._SHUTDOWN, self._LOSE_ALL_THAT_IS_NOT_WRITTEN)
        finally:
            os.close(fd)
        subprocess.run(["umount", str(self.top)], check=True)
        self.mount()
        self.boots += 1
        step_notes.boot_id = lambda: f"boot {self.boots}"


def on_a_disk(directory: Path, work: Callable[[Disk], None]) -> None:
    """Do something with a disk, in a child. Skips where none can be made."""
    if os.getuid() != 0 or shutil.which("mkfs.ext4") is None or not Path("/dev/loop-control").exists():
        pytest.skip("no disk of its own can be made here")

    def child() -> str:
        try:
            disk = Disk(directory)
        except (OSError, subprocess.CalledProcessError) as error:
            return str(error)
        work(disk)
        return ""

    if problem := in_child(child):
        pytest.skip(f"no disk of its own can be mounted here: {problem}")
