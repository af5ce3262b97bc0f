"""Taking approvals back: before they are sent, or as long as the call has not started."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.timer import Timer

from whisper_tui.model.decision import Approve
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Held, Queued
from whisper_tui.tui.grace import Grace
from whisper_tui.tui.held_back import HeldBack, Promise, seconds_of
from whisper_tui.tui.widgets.call_list import CallList
from whisper_tui.tui.words import count, told

if TYPE_CHECKING:
    from whisper_tui.tui.screens.cockpit import CockpitScreen

BEAT_S = 0.1
"""How often it is looked whether the time of an approval has come."""
WHY = "The human took the approval back before the command started."
"""What the agent is told about a call that was approved and had not started."""


class Undoing:
    """Holds approvals back, sends them when their time has come, and takes back what can be."""

    def __init__(
        self,
        screen: "CockpitScreen",
        grace: Grace,
        send: Callable[[CallRecord, Approve], object],
        changed: Callable[[], object],
    ) -> None:
        """`changed` is called when other approvals are held back, and while time passes."""
        self._screen = screen
        self._changed = changed
        self._grace = grace
        self._send = send
        self._held_back = HeldBack(screen.clock)
        self._timer: Timer | None = None

    def commands(self) -> dict[str, Callable[[], object]]:
        """What each command does, by its id."""
        return {"undo": self.undo}

    @property
    def farewell(self) -> str:
        """What is said on the terminal about approvals that are not sent any more. Empty: there are none."""
        number = len(self._held_back)
        return f"{count(number, 'approval')} not sent: what it was about still waits. " if number else ""

    def words(self) -> str:
        """What will be sent next, and when. Empty: nothing is held back."""
        newest = self._held_back.newest()
        if newest is None:
            return ""
        left = self._held_back.left(newest.record.id) or 0.0
        more = f", and {count(len(self._held_back) - 1, 'other')}" if len(self._held_back) > 1 else ""
        return f"Call {newest.record.id} is approved in {math.ceil(left)} s{more}"

    def hold_back(self, record: CallRecord, decision: Approve) -> bool:
        """Keep an approval for its grace period. Returns False for one that has none."""
        seconds = seconds_of(self._grace, record)
        if not seconds:
            return False
        self._held_back.keep(record, decision, seconds)
        if self._timer is None:
            self._timer = self._screen.set_interval(BEAT_S, self._beat)
        self._changed()
        return True

    def is_promised(self, call_id: str) -> bool:
        """Whether the approval of a call is about to be sent."""
        return self._held_back.left(call_id) is not None

    def take_back(self, call_id: str) -> bool:
        """Approve a call no more, if its approval is not sent yet. Returns whether there was one."""
        taken = self._held_back.take_back(call_id)
        if taken:
            self._changed()
        return taken

    def drop_all(self, why: str) -> None:
        """Send nothing of what is held back: nobody would see what becomes of it."""
        if dropped := self._held_back.drop_all():
            self._screen.tell(f"{count(dropped, 'approval')} not sent: {why}. Nothing was decided.", severity="warning")
            self._changed()

    async def undo(self) -> None:
        """Take the newest approval back, or else the one of the selected call if it has not started."""
        newest = self._held_back.newest()
        if newest is not None:
            self._held_back.take_back(newest.record.id)
            self._screen.query_one(CallList).select(newest.record.id, by_hand=False)
            self._screen.tell(f"Call {newest.record.id} is not approved; it waits for you as before.")
            self._changed()
            return
        record = self._screen.shown
        if record is None or not isinstance(record.state, Held | Queued):
            self._screen.tell(
                "There is nothing to take back: no approval is unsent, and this call is not in the queue."
            )
            return
        try:
            await self._screen.supervision.withdraw(record.id, WHY)
        except WhisperError as error:
            self._screen.tell(told(error), severity="warning")
        else:
            self._screen.tell(f"Call {record.id} will not run; its agent is told that you took the approval back.")

    def _beat(self) -> None:
        for promise in self._held_back.take_due():
            self._keep_word(promise)
        if not len(self._held_back) and self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._changed()

    def _keep_word(self, promise: Promise) -> None:
        self._send(promise.record, promise.decision)
