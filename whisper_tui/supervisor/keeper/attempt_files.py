"""The files of an attempt for whoever ordered it: made, revoked, and completed after its keeper was killed."""

import fcntl
import json
import os
import secrets
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

from whisper_tui.supervisor.keeper.run_cgroup import RunCgroup
from whisper_tui.supervisor.keeper.run_records import entry_of, is_still_there
from whisper_tui.system import run_files
from whisper_tui.system.processes import find_process, send_to_all

AttemptState = Literal["unclaimed", "alive", "gone", "revoked"]
"""Not claimed yet; claimed, and its keeper is alive; claimed, and its keeper is gone; revoked, and never run."""
RESTARTED_AT_START = "the machine restarted when it was being started; it may have run"


class AttemptFiles:
    """The files of one attempt."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def make(
        self,
        spec: dict[str, Any],
        boot: str,
        group: dict[str, Any] | None = None,
        *,
        preview: dict[str, Any] | None = None,
    ) -> None:
        """Write all files that a keeper needs. Raises `OSError` and then leaves no file behind."""
        run_files.make_directory(self.directory)
        spec = {**spec, "group": group, "boot": boot, "preview": preview, "order_key": secrets.token_hex(16)}
        try:
            if spec["input"] or spec["tty"]:
                os.mkfifo(self.path(run_files.INPUT), 0o600)
            run_files.write_new(self.path(run_files.SPEC), json.dumps(spec).encode())
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


class OrphanedRun:
    """A run whose keeper is gone. Its control group is used to find, signal and kill its processes."""

    def __init__(self, attempt: AttemptFiles) -> None:
        self._attempt = attempt
        self._group = attempt.group()

    @property
    def alive(self) -> bool:
        """True while any process is left."""
        return self._group.populated()

    def update_background(self, boot: str) -> dict[str, Any]:
        """Return the list of background processes, and write its file if it has changed. `boot`: this boot's id."""
        before: dict[str, Any] = self._attempt.read(run_files.BACKGROUND) or {"look": 0, "boot": boot, "processes": []}
        # Pids of an earlier boot belong to other processes by now.
        if before["boot"] != boot:
            return before
        rows = {(each["pid"], each["start"]): each for each in before["processes"]}
        rows = {key: each | {"alive": each["alive"] and is_still_there(*key)} for key, each in rows.items()}
        rows |= {(seen.pid, seen.start): entry_of(seen) for seen in self._group.members()}
        now = list(rows.values())
        if now == before["processes"]:
            return before
        snapshot = {"look": before["look"] + 1, "boot": boot, "processes": now}
        with suppress(OSError):
            run_files.write_json(self._attempt.path(run_files.BACKGROUND), snapshot)
        return snapshot

    def remove(self) -> None:
        """Remove the control group, once no process is left."""
        self._group.remove()

    def execute(self, order: dict[str, Any], later: Callable[[float, Callable[[], None]], object]) -> None:
        """Execute an order instead of the keeper. Input and terminal are lost with it. `later`: calls after seconds."""
        match order:
            case {"do": "signal", "number": signal.SIGKILL, "target": "tree"}:
                self._group.kill()
            case {"do": "signal", "number": number}:
                send_to_all(self._group.members(), number)
            case {"do": "end", "grace": grace}:
                self._group.thaw()
                send_to_all(self._group.members(), signal.SIGTERM, signal.SIGCONT)
                later(grace, self._group.kill)
            case {"do": "freeze"}:
                self._group.freeze()
            case {"do": "thaw"}:
                self._group.thaw()


def why_lost(process: dict[str, Any] | None, boot: str, started_in: str | None, *, held: bool) -> str:
    """Return why the ending of a run is unknown whose keeper is gone.

    `process`: its record. None: there is none. `boot`: the id of this boot; `started_in`: that of the order; `held`: a
    process of its control group is alive.
    """
    if process is None:
        if started_in != boot:
            return RESTARTED_AT_START
        return "its keeper was gone before it could record whether the command was started; it may have run"
    if process["boot"] != boot:
        return "the machine restarted while it ran"
    seen = find_process(process["pid"])
    why = f"its keeper (pid {process['keeper']}) was ended from outside while it ran"
    if seen is not None and seen.start == process["start"]:
        since = "its output is lost since" if held else "unsupervised"
        return f"{why}; the command itself is still alive as pid {process['pid']}, {since}"
    return why
