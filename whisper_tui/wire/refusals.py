"""Attempts to decide by those who may not: recorded for the human, but never more than a few a minute."""

import logging
import time
from collections.abc import Callable

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.event import AttemptRefused
from whisper_tui.model.text import visible

Record = Callable[[AttemptRefused], None]
"""Writes it into the journal, from where everybody learns of it. Raises `WhisperError`."""

AT_ONCE = 20
"""So many are recorded however fast they come."""

EVERY_S = 60.0
"""Beyond those, one in so many seconds: a flood does not fill the disk."""

_log = logging.getLogger(__name__)


class Refusals:
    """Counts what it does not record, and says so with the next one that it does."""

    def __init__(self, record: Record | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._record = record
        self._clock = clock
        self._room = float(AT_ONCE)
        self._looked = clock()
        self._left_out = 0

    def note(self, attempt: AttemptRefused) -> None:
        """Take notice of one."""
        now = self._clock()
        self._room = min(float(AT_ONCE), self._room + (now - self._looked) / EVERY_S)
        self._looked = now
        if self._room < 1:
            self._left_out += 1
            return
        self._room -= 1
        attempt = attempt.model_copy(update={"left_out": self._left_out})
        self._left_out = 0
        _log.warning("%r by pid %d was refused because %s", attempt.operation, attempt.pid, visible(attempt.why))
        if self._record is None:
            return
        try:
            self._record(attempt)
        except WhisperError as error:
            _log.warning("that could not be recorded: %s", error.sentence())
