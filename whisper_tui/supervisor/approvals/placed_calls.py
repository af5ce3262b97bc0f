"""Calls at places whose files are looked at again: before they start, once their place is reached, after an edit.

The event loop waits for no place. So each look is a task, and what it has found is used a moment later.
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from whisper_tui.model.call import CommandSpec
from whisper_tui.model.decision import Approve, Decision
from whisper_tui.model.errors import Unavailable
from whisper_tui.model.event import Judged
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.supervisor.approvals.approval_queue import ApprovalQueue
from whisper_tui.supervisor.approvals.judge import is_unknown
from whisper_tui.supervisor.approvals.resolve import Examined, Looked
from whisper_tui.supervisor.journal.store import Store

USABLE_S = 2.0
"""Seconds for which the result of a look may start a command. The keeper looks once more, just before the start."""


class _Found(NamedTuple):
    """The result of a look."""

    at: float
    """Monotonic seconds."""
    spec: CommandSpec
    examined: Callable[[], Examined]


class PlacedCalls:
    """Looks at the calls of places again, and has them judged by what it finds."""

    def __init__(self, store: Store, queue: ApprovalQueue) -> None:
        self.when_ready: Callable[[], object] = lambda: None
        """Called when a call may have become ready to start."""
        self._store = store
        self._judge = queue.judge
        self._examinations = queue.examinations
        self._queue = queue
        self._found: dict[str, _Found] = {}
        self._looking: dict[str, asyncio.Task[None]] = {}
        """By call, or by place if it was reached."""

    async def close(self) -> None:
        """Look no more."""
        for task in self._looking.values():
            task.cancel()
        await asyncio.gather(*self._looking.values(), return_exceptions=True)

    def is_ready(self, record: CallRecord) -> bool:
        """True if what a queued call would start was looked at just now, as nobody has to on this machine."""
        if not record.spec.place or self._usable(record) is not None:
            return True
        if record.id not in self._looking:
            self._begin(record.id, record)
        return False

    def examined(self, record: CallRecord) -> Looked:
        """Return what was found for a call that starts. None: it runs on this machine, or nobody has looked."""
        found = self._usable(record)
        self._found.pop(record.id, None)
        return None if found is None else found.examined

    async def look(self, record: CallRecord) -> None:
        """Look at what a call would start at its place now. Raises `Unavailable`."""
        if record.spec.place:
            examined = await self._examinations.there(record.call.session_id, record.spec)
            self._found[record.id] = _Found(time.monotonic(), record.spec, examined)

    async def judge_before_restart(self, record: CallRecord, *, doubted: bool) -> Judged | None:
        """Look once more at a call whose attempt never ran. None: the next attempt may start.

        `doubted`: the supervisor was killed meanwhile. A place may have been away for days.
        """
        if not record.spec.place:
            return self._judge.judge_after_kill(record) if doubted else None
        async with self._examinations.of(record.call.session_id, record.spec) as examined:
            judge = self._judge.judge_after_kill if doubted else self._judge.judge_again
            return judge(record, examined)

    async def examined_edit(self, call_id: str, decision: Decision) -> Looked:
        """Examine what a human has made of a call at a place. None: that runs on this machine, or is no edit."""
        edited = decision.edited if isinstance(decision, Approve) else None
        if edited is None or edited.place not in self._judge.placement.names:
            return None
        async with self._examinations.of(self._store.call(call_id).call.session_id, edited) as examined:
            return examined

    def on_reached(self, place: str) -> None:
        """Start what waits for a place that is reached now, and judge its calls of which nothing was known."""
        self.when_ready()
        if place not in self._looking:
            self._begin(place, None)

    def _begin(self, key: str, record: CallRecord | None) -> None:
        look = self._look_again(key) if record is None else self._look_quietly(record)
        self._looking[key] = task = asyncio.create_task(look)
        task.add_done_callback(lambda _: self._looking.pop(key, None))

    async def _look_quietly(self, record: CallRecord) -> None:
        try:
            await self.look(record)
        except Unavailable:
            return  # The queue asks again, and says why the place is away.
        self.when_ready()

    async def _look_again(self, place: str) -> None:
        """Judge the waiting calls that were judged while their place did not answer."""
        board = self._store.board
        for call_id in (*board.waiting, *board.aside):
            line = board.calls.line(call_id)
            record = board.calls.get(call_id) if line is not None and line.place == place else None
            if record is None or not is_unknown(record.resolved):
                continue
            async with self._examinations.of(record.call.session_id, record.call.spec) as examined:
                self._store.retry_until_journaled(partial(self._judge_known, call_id, examined))

    def _judge_known(self, call_id: str, examined: Callable[[], Examined]) -> None:
        record = self._store.board.calls.get(call_id)
        # It may have been decided, withdrawn or judged meanwhile.
        if record is None or not isinstance(record.state, Waiting) or not is_unknown(record.resolved):
            return
        judged = self._judge.judge(record.call, record.call.spec, examined=examined)
        if not is_unknown(judged.resolved):
            self._queue.record_judged(record.call, judged)

    def _usable(self, record: CallRecord) -> _Found | None:
        found = self._found.get(record.id)
        if found is None or found.spec != record.spec or time.monotonic() - found.at > USABLE_S:
            self._found.pop(record.id, None)
            return None
        return found
