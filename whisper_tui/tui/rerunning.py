"""Running again without a sandbox what one has kept from something: asked again and approved, with one key."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Unjudged, Waiting
from whisper_tui.tui.retrying import LOOK_S, LOOKS, again, why_not
from whisper_tui.tui.widgets.call_list import CallList
from whisper_tui.tui.words import told

if TYPE_CHECKING:
    from whisper_tui.tui.deciding import Deciding
    from whisper_tui.tui.screens.cockpit import CockpitScreen


class Rerunning:
    """The command that does it. What it approves is only what was on the screen, and means the same as then."""

    def __init__(self, screen: "CockpitScreen", deciding: "Deciding", hides: Callable[[CallRecord], bool]) -> None:
        """`hides` says whether a part of a call is not shown, because it is secret."""
        self._screen = screen
        self._deciding = deciding
        self._hides = hides
        self._under_way: set[str] = set()

    def commands(self) -> dict[str, Callable[[], object]]:
        """What each command does, by its id."""
        return {"rerun-unconfined": self.rerun}

    def rerun(self) -> None:
        """Submit it once more and approve that, as if its approval had been asked for here."""
        record = self._screen.shown
        if record is None or self._deciding.under_the_finger() or record.id in self._under_way:
            return
        problem = why_not(record, self._screen.board.sessions.get(record.call.session_id))
        if problem is not None:
            self._screen.tell(problem, severity="warning")
        elif self._hides(record) or not self._deciding.unread(record):
            self._under_way.add(record.id)
            self._screen.run_worker(self._rerun(record, whole=not self._hides(record)), name="rerun")

    async def _rerun(self, record: CallRecord, *, whole: bool) -> None:
        try:
            call_id = await self._screen.supervision.submit(again(record))
            new = await self._judged(call_id)
        except WhisperError as error:
            self._screen.tell(told(error), severity="warning")
            return
        finally:
            self._under_way.discard(record.id)
        if new is None:
            self._screen.tell(f"Call {call_id} asks again for call {record.id}; nothing is decided about it yet.")
            return
        self._screen.query_one(CallList).select(call_id, by_hand=False)
        problem = _why_not_approved(record, new, whole=whole)
        if problem is not None:
            self._screen.tell(f"Call {call_id} asks again for call {record.id}, and {problem}.", severity="warning")
            return
        self._screen.tell(f"Call {call_id} runs call {record.id} again without a sandbox; the agent is not told of it.")
        self._deciding.approve_shown(new)

    async def _judged(self, call_id: str) -> CallRecord | None:
        """The call once the policy has looked at it. None: that takes too long."""
        for _ in range(LOOKS):
            record = self._screen.board.calls.get(call_id)
            if record is not None and not isinstance(record.state, Unjudged):
                return record
            await asyncio.sleep(LOOK_S)
        return None


def _why_not_approved(before: CallRecord, new: CallRecord, *, whole: bool) -> str | None:
    """Why a key that was pressed at the call before does not approve the new one, as a clause. None: it does."""
    if not isinstance(new.state, Waiting):
        return "it was decided without you" if new.decided_by is not None else "it does not wait for you"
    if not whole:
        return "waits for you: secrets of it were not on the screen, so look at it and approve it here"
    if new.spec != before.spec or new.resolved != before.resolved:
        return "waits for you: it means something else now, so look at it and approve it here"
    risks = before.verdict.risks if before.verdict else ()
    if new.verdict is not None and set(new.verdict.risks) - set(risks):
        return "waits for you: it has risks that were not on the screen, so look at it and approve it here"
    return None
