"""Statistics of a session: the number of calls, their decisions, and the time to decide."""

from statistics import median

from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.state import CallRecord, Waiting

AUTOMATIC = frozenset({"rule", "memory", "agent"})
"""Surfaces that decide without a human."""


class Statistics:
    """Counts calls in any order, each of them once."""

    def __init__(self) -> None:
        self.calls = 0
        """Number of calls."""
        self.approved = 0
        """Number of calls that a human approved."""
        self.denied = 0
        """Number of calls that a human denied."""
        self.waiting = 0
        """Number of calls that still wait for a human."""
        self.edited = 0
        """Number of calls that a human edited before approving them."""
        self.allowed_by_rule = 0
        self.refused_by_rule = 0
        self.allowed_by_memory = 0
        """Number of calls that a remembered approval allowed."""
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
        """Number of calls that a human was asked about."""
        return self.approved + self.denied + self.waiting

    @property
    def median_wait_s(self) -> float | None:
        """Median seconds from a call's arrival to the human's decision. None: there was no decision."""
        return median(self._waits) if self._waits else None

    @property
    def saved_s(self) -> float | None:
        """Seconds saved by remembered approvals: their number times the median wait. None: unknown."""
        return self.allowed_by_memory * self.median_wait_s if self.median_wait_s is not None else None
