"""The retention of output and of what can be undone: files are removed, oldest first. Facts stay (decision 2)."""

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from math import isinf
from pathlib import Path
from typing import NamedTuple

from whisper_tui.changes.file_trees import remove_tree
from whisper_tui.model.api import Pruned
from whisper_tui.model.errors import Unavailable
from whisper_tui.supervisor.settings import RetentionSettings, TakeBackSettings
from whisper_tui.system import run_files

DAY_S = 86_400.0
GIGABYTE = 1_000_000_000
EVERY_S = 3600.0
"""Seconds between two checks of the disk."""
FRESH_S = 600.0
"""Seconds for which a finished run is kept, whatever its size, because somebody may still be reading its output."""
_BLOCK = 512
RECOVERY_FILES = frozenset(
    {
        run_files.SPEC,
        run_files.EXIT,
        run_files.LOCK,
        run_files.CLAIM,
        run_files.PID,
        run_files.BACKGROUND,
        run_files.CONTROL,
        run_files.INPUT,
    }
)
"""Files that only recovery needs. After the end the journal has their content, and each uses a disk block."""

_log = logging.getLogger(__name__)


class _Kept(NamedTuple):
    """The files of one attempt."""

    settled_at: float
    """Seconds since the epoch. 0: it is not over."""
    bytes: int
    """The disk space that they use."""
    files: int
    path: str


class Retention:
    """Removes the files of finished runs that are too old, or that use too much space."""

    def __init__(
        self,
        runs: Path,
        settings: RetentionSettings | None,
        is_open: Callable[[str], bool],
        clock: Callable[[], float],
        undo: TakeBackSettings | None = None,
    ) -> None:
        """`is_open`: true while a call can still change. It is called from another thread."""
        self._runs = runs
        self._settings = settings or RetentionSettings()
        self.undo = undo or TakeBackSettings()
        self._is_open = is_open
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    def open(self) -> None:
        """Prune now, and then every hour."""
        self._task = asyncio.create_task(self._prune_every_hour())

    async def close(self) -> None:
        """Stop, and interrupt pruning in another thread."""
        self._closing = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    @property
    def words(self) -> str:
        """Describe the limits, in a few words."""
        output = _limits(self._settings.days, self._settings.gigabytes) or "for ever"
        undo = _limits(self.undo.days, self.undo.gigabytes) or "as long"
        return f"the output of runs is kept {output}, and what can be undone {undo}"

    async def prune(self, *, dry_run: bool) -> Pruned:
        """Remove output beyond the limits, and return how much. `dry_run`: only count it."""
        return await asyncio.to_thread(self._prune, dry_run)

    async def _prune_every_hour(self) -> None:
        while True:
            pruned = await self.prune(dry_run=False)
            if pruned.runs or pruned.undos:
                bytes_, undo_bytes = pruned.bytes, pruned.undo_bytes
                _log.info("removed the output of %d runs, %d bytes", pruned.runs, bytes_)
                _log.info("removed what %d calls could be undone with, %d bytes", pruned.undos, undo_bytes)
            await asyncio.sleep(EVERY_S)

    def _prune(self, dry_run: bool) -> Pruned:
        # First: what it frees does not count as output any more.
        undos = self._prune_undos(dry_run)
        attempts = sorted(self._attempts())
        if dry_run:
            attempts = [each._replace(bytes=each.bytes - undos.freed.get(each.path, 0)) for each in attempts]
        left, removed, freed = sum(each.bytes for each in attempts), 0, 0
        files = sum(each.files for each in attempts)
        for each in attempts:
            self._check_open()
            if not self._is_due(each, left, files):
                if not dry_run and self._is_long_over(each):
                    _remove_recovery_files(each.path)
                continue
            if not dry_run and not _remove(each.path):
                continue
            removed += 1
            freed += each.bytes
            left -= each.bytes
            files -= each.files
        return Pruned(
            runs=removed,
            bytes=freed,
            kept_runs=len(attempts) - removed,
            kept_bytes=left,
            undos=len(undos.freed),
            undo_bytes=sum(undos.freed.values()),
            kept_undos=undos.kept,
            kept_undo_bytes=undos.kept_bytes,
        )

    def _prune_undos(self, dry_run: bool) -> "_PrunedUndos":
        """Remove what can be undone beyond its own limits; the output of these runs stays."""
        kept = sorted(each for each in self._attempts(run_files.PREVIEW) if each.bytes)
        left, freed = sum(each.bytes for each in kept), dict[str, int]()
        days, gigabytes = self.undo.days, self.undo.gigabytes
        for each in kept:
            if not self._is_long_over(each):
                continue
            is_old = days is not None and self._clock() - each.settled_at > days * DAY_S
            if not is_old and (gigabytes is None or left <= gigabytes * GIGABYTE):
                continue
            if not dry_run:
                remove_tree(f"{each.path}/{run_files.PREVIEW}")
            freed[each.path] = each.bytes
            left -= each.bytes
        return _PrunedUndos(freed, len(kept) - len(freed), left)

    def _check_open(self) -> None:
        if self._closing:
            raise Unavailable("the supervisor is stopping, so some output may not have been removed")

    def _is_due(self, attempt: _Kept, left: int, files: int) -> bool:
        days, gigabytes, age = self._settings.days, self._settings.gigabytes, self._clock() - attempt.settled_at
        if not self._is_long_over(attempt):
            return False
        if self._settings.files is not None and files > self._settings.files:
            return True
        return (days is not None and age > days * DAY_S) or (gigabytes is not None and left > gigabytes * GIGABYTE)

    def _is_long_over(self, attempt: _Kept) -> bool:
        return bool(attempt.settled_at) and self._clock() - attempt.settled_at >= FRESH_S

    def _attempts(self, part: str = "") -> Iterator[_Kept]:
        """Yield the attempts, with the space that they use, or that a part of them uses."""
        try:
            entries = list(os.scandir(self._runs))
        except OSError:
            return
        for entry in entries:
            self._check_open()
            call_id, _, attempt = entry.name.rpartition(".")
            if not attempt.isdecimal() or not call_id.isdecimal() or not entry.is_dir(follow_symlinks=False):
                continue
            settled_at = 0.0 if self._is_open(call_id) else _settled_at(entry.path)
            yield _Kept(settled_at, *_usage_of(f"{entry.path}/{part}" if part else entry.path), entry.path)


class _PrunedUndos(NamedTuple):
    """Result of a pass over what can be undone."""

    freed: dict[str, int]
    """Bytes by the directory of the attempt."""
    kept: int
    kept_bytes: int


def _limits(days: float | None, gigabytes: float | None) -> str:
    """Describe limits of time and space. Empty: there are none."""
    limits = [f"{days:g} days"] if days is not None and not isinf(days) else []
    limits += [f"up to {gigabytes:g} GB"] if gigabytes is not None and not isinf(gigabytes) else []
    return f"for {' and '.join(limits)}" if len(limits) == 2 or (limits and "days" in limits[0]) else "".join(limits)


def _settled_at(directory: str) -> float:
    found = run_files.status(f"{directory}/{run_files.DONE}")
    return 0.0 if found is None else found.st_mtime_ns / 1e9


def _remove_recovery_files(directory: str) -> None:
    """Remove the files that only recovery needs."""
    try:
        for entry in list(os.scandir(directory)):
            if entry.name in RECOVERY_FILES:
                run_files.remove(entry.path)
    except OSError as error:
        _log.warning("the recovery files in %s cannot be removed: %s", directory, error.strerror)


def _usage_of(directory: str) -> tuple[int, int]:
    """Return the disk space and the number of files below a directory."""
    total, files, left = 0, 0, [directory]
    while left:
        try:
            for entry in os.scandir(left.pop()):
                total += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                files += 1
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)  # the view of a preview, and what an undo puts back
        except OSError:
            continue
    return total, files


def _remove(directory: str) -> bool:
    """Remove the directory of a run. Return whether it is gone."""
    try:
        # DONE is removed last: while it exists, an interrupted removal is completed the next time.
        for entry in sorted(os.scandir(directory), key=lambda entry: entry.name == run_files.DONE):
            if entry.is_dir(follow_symlinks=False):
                remove_tree(entry.path)
            else:
                run_files.remove(entry.path)
        Path(directory).rmdir()
    except OSError as error:
        _log.warning("the output in %s cannot be removed: %s", directory, error.strerror)
        return False
    return True
