"""One attempt to run a call on this machine: its order becomes files, and the boot in which it was started is noted."""

import os
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from whisper_tui.supervisor.keeper.attempt_files import AttemptFiles
from whisper_tui.supervisor.runs.executor import RunKey, StartOrder
from whisper_tui.system import run_files
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


class Attempt(AttemptFiles):
    """The files of one attempt that this machine runs."""

    def __init__(self, runs: str, key: RunKey) -> None:
        super().__init__(attempt_directory(runs, key))
        self.key = key

    def create(self, order: StartOrder, boot: str, group: dict[str, Any] | None = None) -> None:
        """Write all files that a keeper needs. Raises `OSError` and then leaves no file behind."""
        self.make(spec_of(order), boot, group, preview=self._preview(order))

    def _preview(self, order: StartOrder) -> dict[str, Any] | None:
        """Return the view of a command as the keeper takes it. None: it changes the real files."""
        if order.preview is None:
            return None
        return {**asdict(order.preview), "store": self.path(run_files.PREVIEW)}


def spec_of(order: StartOrder) -> dict[str, Any]:
    """Return an order as the keeper takes it, without what depends on where its files are."""
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
        "sandbox": asdict(order.sandbox) if order.sandbox is not None else None,
        "tells_directory": order.reports_directory,
    }
