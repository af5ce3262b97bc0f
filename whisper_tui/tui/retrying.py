"""Asking again for what has ended, in the session that it came from and by the same way."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from whisper_tui.model.call import CallRequest, Session
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord
from whisper_tui.tui.widgets.call_list import CallList
from whisper_tui.tui.words import told

if TYPE_CHECKING:
    from whisper_tui.tui.screens.cockpit import CockpitScreen

LOOKS = 100
LOOK_S = 0.05
"""How long the list is looked at for the new call, and how often."""


class Retrying:
    """The command that asks again."""

    def __init__(self, screen: "CockpitScreen") -> None:
        self._screen = screen

    def commands(self) -> dict[str, Callable[[], object]]:
        """What each command does, by its id."""
        return {"retry": self.retry}

    def retry(self) -> None:
        """Hand in what ran, or would have run, as a new call; the policy judges it like any other."""
        record = self._screen.shown
        if record is None:
            return
        problem = why_not(record, self._screen.board.sessions.get(record.call.session_id))
        if problem is not None:
            self._screen.tell(problem, severity="warning")
            return
        self._screen.run_worker(self._submit(record), name="retry")

    async def _submit(self, record: CallRecord) -> None:
        screen = self._screen
        try:
            call_id = await screen.supervision.submit(again(record))
        except WhisperError as error:
            screen.tell(told(error), severity="warning")
            return
        screen.tell(f"Call {call_id} asks again for what call {record.id} was; the agent is not told of it.")
        for _ in range(LOOKS):
            if screen.roster.place_of(call_id) is not None:
                screen.query_one(CallList).select(call_id, by_hand=False)
                return
            await asyncio.sleep(LOOK_S)


def why_not(record: CallRecord, session: Session | None) -> str | None:
    """Why a call cannot be asked for again, in a sentence. None: it can."""
    if record.function is not None:
        return "That was a tool of the agent's own: only the agent can carry it out again."
    if session is None or session.closed_at is not None:
        return "Its session is closed, and approvals and environment with it: only its agent can ask again."
    return None


def again(record: CallRecord) -> CallRequest:
    """The same request; what a human edited stays edited."""
    call = record.call
    return CallRequest(
        session_id=call.session_id,
        tool=call.tool,
        arguments=call.arguments,
        spec=record.spec,
        description=call.description,
    )
