"""Notes of the changes that an apply has begun to make real, for whoever goes on with it after a kill.

Inodes show if a rename was made, unless somebody has saved the file anew since; a file that is written in place shows
nothing: what differs from its old content may be a half of the new one, or somebody's work since the kill. The notes
are a shared mapping, so they cost no call and survive a kill. They are not flushed: after a power failure they say
nothing, and any change may be begun.
"""

import mmap
import os

from whisper_tui.changes.real_paths import KEPT
from whisper_tui.system.processes import boot_id

_NAME = "begun"
_HEAD = 64
"""Bytes of the boot in which they were made."""


def make_notes(store: str, count: int) -> None:
    """Make empty notes for so many changes. Raises `OSError`."""
    os.makedirs(f"{store}/{KEPT}", exist_ok=True)
    fd = os.open(f"{store}/{KEPT}/{_NAME}", os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, boot_id().encode().ljust(_HEAD, b"\0")[:_HEAD])
        os.ftruncate(fd, _HEAD + count)
    finally:
        os.close(fd)


class StepNotes:
    """The notes of one store, by the number of the change."""

    def __init__(self, store: str) -> None:
        self._notes: mmap.mmap | None = None
        try:
            fd = os.open(f"{store}/{KEPT}/{_NAME}", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return
        try:
            if os.pread(fd, _HEAD, 0).rstrip(b"\0") == boot_id().encode() and os.fstat(fd).st_size > _HEAD:
                self._notes = mmap.mmap(fd, 0)
        finally:
            os.close(fd)

    def may_be_begun(self, number: int) -> bool:
        """True unless they say that nobody has begun a change, or that it was taken back."""
        return self._notes is None or self._notes[_HEAD + number] != 0

    def add(self, number: int) -> None:
        """Note that a change is about to be made real."""
        if self._notes is not None:
            self._notes[_HEAD + number] = 1

    def remove(self, number: int) -> None:
        """Note that a change was taken back."""
        if self._notes is not None:
            self._notes[_HEAD + number] = 0
