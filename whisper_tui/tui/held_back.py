"""Approvals that are not sent yet: for a few seconds they can be taken back, and then nothing was decided."""

from collections.abc import Callable
from dataclasses import dataclass

from whisper_tui.model.decision import Approve
from whisper_tui.model.state import CallRecord
from whisper_tui.tui.grace import Grace
from whisper_tui.tui.risk_words import is_grave


def seconds_of(grace: Grace, record: CallRecord) -> float:
    """How long the approval of a call is held back."""
    risks = record.verdict.risks if record.verdict else ()
    wanted = grace.which == "every" or (grace.which == "grave" and any(map(is_grave, risks)))
    return grace.seconds if wanted else 0.0


@dataclass(frozen=True)
class Promise:
    """An approval that will be sent, about the call as it was on the screen."""

    record: CallRecord
    decision: Approve
    due: float
    """In the seconds of the clock."""


class HeldBack:
    """Approvals in the order in which they were made."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._promises: dict[str, Promise] = {}

    def __len__(self) -> int:
        return len(self._promises)

    def keep(self, record: CallRecord, decision: Approve, seconds: float) -> None:
        """Hold an approval back for so long."""
        self._promises[record.id] = Promise(record, decision, self._clock() + seconds)

    def left(self, call_id: str) -> float | None:
        """Seconds until the approval of a call is sent. None: none is held back."""
        promise = self._promises.get(call_id)
        return None if promise is None else max(0.0, promise.due - self._clock())

    def newest(self) -> Promise | None:
        """The approval that was made last."""
        return next(reversed(self._promises.values()), None)

    def take_back(self, call_id: str) -> bool:
        """Forget the approval of a call. Returns whether there was one."""
        return self._promises.pop(call_id, None) is not None

    def take_due(self) -> tuple[Promise, ...]:
        """The approvals whose time has come; they are held back no more."""
        now = self._clock()
        due = tuple(promise for promise in self._promises.values() if promise.due <= now)
        for promise in due:
            del self._promises[promise.record.id]
        return due

    def drop_all(self) -> int:
        """Forget all of them. Returns how many there were."""
        dropped = len(self._promises)
        self._promises.clear()
        return dropped
