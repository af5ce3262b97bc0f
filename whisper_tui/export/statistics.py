"""What a session's calls come to: how many were asked, how they were decided, how long that took."""

from statistics import median

from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.state import CallRecord, Waiting

AUTOMATIC = frozenset({"rule", "memory", "agent"})
"""Who decides without a human."""


class Statistics:
    """Takes in one call after the other, in any order; each of them once."""

    def __init__(self) -> None:
        self.calls = 0
        """How many calls there were."""
        self.approved = 0
        """How many a human let run."""
        self.denied = 0
        """How many a human did not let run."""
        self.waiting = 0
        """How many still wait for a human."""
        self.edited = 0
        """How many a human changed before they ran."""
        self.allowed_by_rule = 0
        self.refused_by_rule = 0
        self.allowed_by_memory = 0
        """How many a remembered approval let run."""
        self._waits: list[float] = []

    def add(self, record: CallRecord) -> None:
        """Count one more call."""
        self.calls += 1
        self.waiting += isinstance(record.state, Waiting)
        by = record.decided_by
        if by is None or record.decision is None:
            return
        if by.surface in AUTOMATIC:
            self._count_automatic(record)
            return
        if isinstance(record.decision, Deny):
            self.denied += 1
        else:
            self.approved += 1
            self.edited += record.edited
        if record.decided_at is not None:
            self._waits.append(max(0.0, record.decided_at - record.call.submitted_at))

    def _count_automatic(self, record: CallRecord) -> None:
        approved = isinstance(record.decision, Approve)
        if record.decided_by is not None and record.decided_by.surface == "memory":
            self.allowed_by_memory += approved
        elif approved:
            self.allowed_by_rule += 1
        else:
            self.refused_by_rule += 1

    @property
    def asked(self) -> int:
        """How many calls a human was asked about."""
        return self.approved + self.denied + self.waiting

    @property
    def median_wait_s(self) -> float | None:
        """Seconds from a call's arrival to the human's decision, in the middle of all. None: nobody decided yet."""
        return median(self._waits) if self._waits else None

    @property
    def saved_s(self) -> float | None:
        """Seconds that remembered approvals saved: their calls, times the median wait. None: it cannot be said."""
        return self.allowed_by_memory * self.median_wait_s if self.median_wait_s is not None else None
