"""Changes of clients' files shown as differences, and written so that each file is either the old or the new one."""

import difflib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from whisper_tui.install.files import Change, backup_of, read_file
from whisper_tui.model.errors import Refused
from whisper_tui.model.text import visible

PRIVATE, PRIVATE_DIRECTORY = 0o600, 0o700

MADE = frozenset((".claude", ".codex", "rules", ".gemini", "policies", ".opencode", "opencode", "plugin"))
"""Directories that are a client's own, and that are made where they are missing."""


def difference(change: Change) -> Iterator[str]:
    """A unified difference of one file, line by line, with what cannot be seen made visible."""
    names = (
        "/dev/null" if change.before is None else str(change.path),
        "/dev/null" if change.after is None else str(change.path),
    )
    before, after = ((text or "").splitlines(keepends=True) for text in (change.before, change.after))
    for line in difflib.unified_diff(before, after, *names):
        yield visible(line.rstrip("\r\n"), keep_lines=True)
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def carry_out(changes: Sequence[Change]) -> None:
    """Write all changes; if one cannot be written, those before it are undone. Raises `WhisperError`."""
    for change in changes:
        if read_file(change.path) != change.before:
            raise Refused(f"{change.path} was changed meanwhile, so nothing was written", hint="Try again")
    done: list[Change] = []
    try:
        for change in changes:
            if change.backup is not None:
                _write(backup_of(change.path), change.backup, PRIVATE)
            _become(change.path, change.after)
            done.append(change)
    except OSError as error:
        _undo(done)
        raise Refused(
            f"{error.filename or change.path} cannot be written: {error.strerror}, so nothing was changed",
            hint="Check its permissions and the free space",
        ) from error
    for change in changes:
        if change.drops_backup:
            backup_of(change.path).unlink(missing_ok=True)


def _undo(done: Sequence[Change]) -> None:
    for change in reversed(done):
        with suppress(OSError):
            _become(change.path, change.before)
            if change.backup is not None:
                backup_of(change.path).unlink(missing_ok=True)


def _become(path: Path, text: str | None) -> None:
    real = Path(os.path.realpath(path))
    if text is None:
        real.unlink()
        _drop_empty(path.parent)
        return
    mode = stat.S_IMODE(real.stat().st_mode) if real.exists() else PRIVATE
    _write(real, text, mode)


def _write(path: Path, text: str, mode: int) -> None:
    """Replace a file at once; its directories are made where they are missing."""
    path.parent.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def _drop_empty(directory: Path) -> None:
    """Take away directories that were made for nothing but our file."""
    while directory.name in MADE:
        try:
            directory.rmdir()
        except OSError:
            return
        directory = directory.parent
