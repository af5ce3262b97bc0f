"""How many commands run at once, and which of them count: short ones take turns, long ones hold nobody up.

A worker is a place for a command that somebody waits for. A server, or what its agent has put into the background,
would keep its place for ever; so a run that has gone on for long, or that nobody waits for, has none. What a human
approved does not wait for what was allowed without one.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from whisper_tui.model.board import Board
from whisper_tui.model.state import CallRecord

LONG_S = 10.0
"""Seconds after which a run gives its place to another."""

MOST = 8
"""Times as many unasked commands as there are workers run at once, long ones included: nobody sees them start."""


class _Run(NamedTuple):
    """What counts about a run."""

    began: float
    """Monotonic seconds."""
    by_human: bool
    background: bool


def by_human(record: CallRecord) -> bool:
    """Whether a human approved this very call, or its edited form."""
    return record.decided_by is not None and record.decided_by.surface not in {"rule", "memory"}


class Workers:
    """Knows the commands that are starting or running; tools that their callers carry out need no worker."""

    def __init__(self, board: Board, workers: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._board = board
        self._workers = workers
        self._clock = clock
        self._runs: dict[str, _Run] = {}

    def __bool__(self) -> bool:
        """Whether anything runs."""
        return bool(self._runs)

    def take(self, record: CallRecord) -> None:
        """A command starts."""
        self._runs.setdefault(record.id, _Run(self._clock(), by_human(record), record.call.background))

    def free(self, call_id: str) -> None:
        """A command has ended."""
        self._runs.pop(call_id, None)

    def has_room(self, taken: int, *, for_human: bool) -> bool:
        """Whether one more may start, beside `taken` that are as good as started."""
        if not for_human and len(self._runs) + taken >= MOST * self._workers:
            return False
        since = self._clock() - LONG_S
        counted = sum(
            run.began > since and not run.background and (run.by_human or not for_human) for run in self._runs.values()
        )
        return counted + taken < self._workers

    @property
    def sentence(self) -> str:
        """What keeps a command waiting, for people: how many run, and which of them for longest."""
        count = len(self._runs)
        oldest = min(self._runs, key=lambda call_id: self._runs[call_id].began, default=None)
        record = self._board.calls.get(oldest) if oldest is not None else None
        running = f"{_count(count, 'command')} {'runs' if count == 1 else 'run'} on {_count(self._workers, 'worker')}"
        if record is None:
            return running
        return f"{running}; longest: call {record.id}, for {_age(self._clock() - self._runs[record.id].began)}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _age(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min" if whole < 3600 else f"{whole // 3600} h"
