"""One attempt to run a call, from the supervisor's side: laid out, claimed or revoked, and read back."""

import fcntl
import json
import os
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Literal

from whisper_tui.supervisor.executor import RunKey, StartOrder
from whisper_tui.supervisor.keeper import layout
from whisper_tui.supervisor.keeper.group import RunGroup
from whisper_tui.supervisor.output_files import attempt_directory

Fate = Literal["unclaimed", "alive", "gone", "revoked"]
"""Nobody has decided; its keeper lives; it ran and its keeper is gone; it never ran and never will."""


class Attempt:
    """The directory of one attempt."""

    def __init__(self, runs: str, key: RunKey) -> None:
        self.key = key
        self.directory = attempt_directory(runs, key)

    def create(self, order: StartOrder, boot: str, group: dict[str, Any] | None = None) -> None:
        """Lay out all that a keeper needs. Raises `OSError`, and leaves nothing behind, if that cannot be done."""
        layout.make_directory(self.directory)
        try:
            if order.spec.accepts_input or order.spec.tty:
                os.mkfifo(self.path(layout.INPUT), 0o600)
            layout.write_new(self.path(layout.SPEC), json.dumps(_spec(order, boot, group)).encode())
        except OSError:
            self.discard()
            raise

    def discard(self) -> None:
        """Remove an attempt that nobody was asked to run."""
        layout.remove_directory(self.directory)

    def path(self, name: str) -> str:
        """One of its files."""
        return f"{self.directory}/{name}"

    def has(self, name: str) -> bool:
        """Whether one of its files is there."""
        return os.path.lexists(self.path(name))

    def read(self, name: str) -> Any:
        """The value in one of its JSON files. None: it is missing or broken. Raises `OSError` if nobody can tell."""
        try:
            return layout.read_json(self.path(name))
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None

    def fate(self) -> Fate:
        """Where it stands. Changes nothing."""
        claim = layout.claimed(self.directory)
        if claim is None:
            return "unclaimed"
        if claim == layout.REVOKED:
            return "revoked"
        return "alive" if self._locked(fcntl.LOCK_SH) is None else "gone"

    def revoke(self) -> Fate:
        """Decide that it never runs, unless that is decided already. Returns its fate, which is never unclaimed.

        Raises `OSError` if the decision cannot be written.
        """
        lock = self._locked(fcntl.LOCK_EX)
        if lock is None:
            return "alive"
        try:
            revoked = layout.claim(self.directory, layout.REVOKED) == layout.REVOKED
        finally:
            os.close(lock)
        if not revoked:
            return "gone"
        layout.remove(self.path(layout.ENVIRONMENT))
        self.close_books(None)
        return "revoked"

    def group(self) -> RunGroup:
        """The control group that its keeper was to make."""
        asked = (self.read(layout.SPEC) or {}).get("group")
        return RunGroup(asked["path"]) if asked else RunGroup()

    def lose(self, because: str | None) -> None:
        """Write that nobody knows how it ended, and why, unless it is None."""
        with suppress(OSError):
            self._lose(because)

    def close_books(self, lost_because: str | None) -> None:
        """Write what a keeper that is gone can no longer write, as far as the disk lets us."""
        with suppress(OSError):
            self._lose(lost_because)
            if not self.has(layout.DONE):
                layout.write_whole(self.path(layout.DONE), b"")

    def _lose(self, because: str | None) -> None:
        if because is not None:
            layout.write_json(self.path(layout.EXIT), {"lost": because})

    def _locked(self, how: int) -> int | None:
        """The lock, taken; the caller closes it, except for a shared one, which is let go of at once. None: busy."""
        fd = os.open(self.path(layout.LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, how | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        if how == fcntl.LOCK_SH:
            os.close(fd)
        return fd


def _spec(order: StartOrder, boot: str, group: dict[str, Any] | None) -> dict[str, Any]:
    spec = order.spec
    return {
        "argv": spec.command.words(),
        "program": order.program,
        "cwd": spec.cwd,
        "real_cwd": order.real_cwd,
        "files": dict(order.files),
        "tty": spec.tty,
        "input": spec.accepts_input and not spec.tty,
        "timeout": spec.timeout_s,
        "grace": spec.grace_s,
        "max_bytes": order.max_output_bytes,
        "min_free": order.min_free_bytes,
        "cpu": order.limits.cpu_s,
        "memory": order.limits.memory_bytes,
        "processes": order.limits.processes,
        "group": group,
        "boot": boot,
        "sandbox": asdict(order.sandbox) if order.sandbox is not None else None,
        "tells_directory": order.tells_directory,
    }
