"""One attempt to run a call, on the supervisor's side: it writes the files, revokes the attempt, and reads results."""

import fcntl
import json
import os
import secrets
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from whisper_tui.supervisor.keeper import run_files
from whisper_tui.supervisor.keeper.run_cgroup import RunCgroup
from whisper_tui.supervisor.runs.executor import RunKey, StartOrder
from whisper_tui.system.processes import boot_id


def attempt_directory(runs: str, key: RunKey) -> str:
    """Return the directory with the files of one attempt."""
    return os.path.join(runs, f"{key.call_id}.{key.attempt}")  # noqa: PTH118 (called 30 times a second)


class BootMark:
    """A file beside the attempts with the id of the boot in which the last command was started."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.now = ""
        """The id of this boot."""
        self.before = ""
        """The id of the boot in which the last command was started. Empty: there was none."""

    def read(self) -> None:
        """Read both ids."""
        self.now = boot_id()
        with suppress(OSError):
            self.before = self._path.read_text().strip()

    def note(self) -> None:
        """Write the id of this boot, unless the file already has it."""
        # Not before the first start, because runs that are attached before it belong to their own boot.
        if self.before != self.now:
            run_files.write_whole(str(self._path), self.now.encode(), durable=True)
            self.before = self.now


AttemptState = Literal["unclaimed", "alive", "gone", "revoked"]
"""Not claimed yet; claimed, and its keeper is alive; claimed, and its keeper is gone; revoked, and never run."""


class Attempt:
    """The files of one attempt."""

    def __init__(self, runs: str, key: RunKey) -> None:
        self.key = key
        self.directory = attempt_directory(runs, key)

    def create(self, order: StartOrder, boot: str, group: dict[str, Any] | None = None) -> None:
        """Write all files that a keeper needs. Raises `OSError` and then leaves no file behind."""
        run_files.make_directory(self.directory)
        try:
            if order.spec.accepts_input or order.spec.tty:
                os.mkfifo(self.path(run_files.INPUT), 0o600)
            run_files.write_new(self.path(run_files.SPEC), json.dumps(self._spec(order, boot, group)).encode())
        except OSError:
            self.discard()
            raise

    def discard(self) -> None:
        """Remove an attempt that no keeper was asked to run."""
        run_files.remove_tree(self.directory)

    def path(self, name: str) -> str:
        """Return the path of one of its files."""
        return f"{self.directory}/{name}"

    def has(self, name: str) -> bool:
        """True if one of its files exists."""
        return os.path.lexists(self.path(name))

    def read(self, name: str) -> Any:
        """Return the value in one of its JSON files. None: missing or broken. Raises `OSError` if it cannot be read."""
        try:
            return run_files.read_json(self.path(name))
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None

    def order_key(self) -> str | None:
        """The key that the keeper expects in every order. None: it expects no key, or the file cannot be read."""
        try:
            return (self.read(run_files.SPEC) or {}).get("order_key")
        except OSError:
            return None

    def state(self) -> AttemptState:
        """Return its state without changing it."""
        claim = run_files.claimed(self.directory)
        if claim is None:
            return "unclaimed"
        if claim == run_files.REVOKED:
            return "revoked"
        # The keeper holds the lock for its whole life, and the kernel releases it on any death.
        return "alive" if self._take_lock(fcntl.LOCK_SH) is None else "gone"

    def revoke(self) -> AttemptState:
        """Revoke it, unless it is already claimed. Return its state, which is never `unclaimed` then.

        Raises `OSError` if the decision cannot be written.
        """
        # A keeper takes the lock before it claims. So nobody can claim while we hold the lock.
        lock = self._take_lock(fcntl.LOCK_EX)
        if lock is None:
            return "alive"
        try:
            revoked = run_files.claim(self.directory, run_files.REVOKED) == run_files.REVOKED
        finally:
            os.close(lock)
        if not revoked:
            return "gone"
        run_files.remove(self.path(run_files.ENVIRONMENT))
        self.finish_records(None)
        return "revoked"

    def group(self) -> RunCgroup:
        """The control group that its keeper was asked to make."""
        asked = (self.read(run_files.SPEC) or {}).get("group")
        return RunCgroup(asked["path"]) if asked else RunCgroup()

    def record_lost(self, because: str | None) -> None:
        """Record that its ending is unknown, and why. None: record nothing."""
        with suppress(OSError):
            self._record_lost(because)

    def finish_records(self, lost_because: str | None) -> None:
        """Write the records that a lost keeper has not written, as far as the disk permits."""
        with suppress(OSError):
            self._record_lost(lost_because)
            if not self.has(run_files.DONE):
                run_files.write_whole(self.path(run_files.DONE), b"")

    def _record_lost(self, because: str | None) -> None:
        if because is not None:
            run_files.write_json(self.path(run_files.EXIT), {"lost": because})

    def _take_lock(self, how: int) -> int | None:
        """Take the lock and return its descriptor. A shared lock is released at once. None: a keeper holds it."""
        fd = os.open(self.path(run_files.LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, how | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        if how == fcntl.LOCK_SH:
            os.close(fd)
        return fd

    def _spec(self, order: StartOrder, boot: str, group: dict[str, Any] | None) -> dict[str, Any]:
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
            "preview": self._preview(order),
            "tells_directory": order.reports_directory,
            "order_key": secrets.token_hex(16),
        }

    def _preview(self, order: StartOrder) -> dict[str, Any] | None:
        """Return the view of a command as the keeper takes it. None: it changes the real files."""
        if order.preview is None:
            return None
        return {**asdict(order.preview), "store": self.path(run_files.PREVIEW)}
