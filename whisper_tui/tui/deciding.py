"""Approving, editing and denying, always about the call as it is on the screen."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from whisper_tui.model.decision import Approve, Decision
from whisper_tui.model.errors import AlreadyDecided, ChangedSinceSeen, WhisperError
from whisper_tui.model.state import CallRecord
from whisper_tui.tui.screens.deny import DenyScreen
from whisper_tui.tui.screens.edit import EditScreen
from whisper_tui.tui.words import told

if TYPE_CHECKING:
    from whisper_tui.tui.screens.cockpit import CockpitScreen

GUARD_S = 0.3
"""How long after the selection moved by itself a key does not approve: the finger was meant for another call."""


class Deciding:
    """The commands of the group *Decide*."""

    def __init__(self, screen: "CockpitScreen") -> None:
        self._screen = screen
        self._moved_at = float("-inf")

    def commands(self) -> dict[str, Callable[[], object]]:
        """What each command does, by its id."""
        return {
            "approve": self.approve,
            "approve-session": self.approve_for_session,
            "edit": self.edit,
            "deny": self.deny,
            "deny-session": self.deny_session,
        }

    def moved(self, *, by_hand: bool) -> None:
        """The selection is another one."""
        self._moved_at = float("-inf") if by_hand else self._screen.clock()

    def approve(self) -> None:
        """Let it run as it is shown."""
        self._approve(Approve())

    def approve_for_session(self) -> None:
        """Let it run, and again in this session."""
        self._approve(Approve(remember="exact_for_session"))

    def _approve(self, decision: Approve) -> None:
        if self._screen.clock() - self._moved_at < GUARD_S:
            self._screen.tell("Nothing was approved: another call came under the key. Press again to approve it.")
            return
        if (record := self._screen.shown) is not None:
            self._decide(record, decision)

    def edit(self) -> None:
        """Change it and approve that."""
        self._ask(EditScreen)

    def deny(self) -> None:
        """Say no, and why."""
        self._ask(lambda record: DenyScreen(record.id, self._session(record), 0, stop_session=False))

    def deny_session(self) -> None:
        """Say no to everything that the session waits for."""

        def screen(record: CallRecord) -> DenyScreen:
            board = self._screen.board
            same = sum(board.calls[id_].call.session_id == record.call.session_id for id_ in board.waiting)
            return DenyScreen(record.id, self._session(record), same - 1, stop_session=True)

        self._ask(screen)

    def _session(self, record: CallRecord) -> str:
        return self._screen.session_name(record)

    def _ask(self, make: Callable[[CallRecord], EditScreen | DenyScreen]) -> None:
        record = self._screen.shown
        if record is None:
            return

        def decided(decision: Decision | None) -> None:
            if decision is not None:
                self._decide(record, decision)

        self._screen.app.push_screen(make(record), decided)

    def _decide(self, record: CallRecord, decision: Decision) -> None:
        self._screen.run_worker(self._send(record, decision), name="decide")

    async def _send(self, record: CallRecord, decision: Decision) -> None:
        screen = self._screen
        try:
            await screen.supervision.decide(record.id, decision, screen.me, record.seen_digest())
        except (AlreadyDecided, ChangedSinceSeen) as error:
            screen.tell(told(error), severity="warning")
            screen.refresh_call()
        except WhisperError as error:
            screen.tell(told(error), severity="error")
        else:
            screen.tell(_done(record, decision))
            screen.leave(record.id)


def _done(record: CallRecord, decision: Decision) -> str:
    if not isinstance(decision, Approve):
        return f"Call {record.id} is denied" + (", with all of its session." if decision.stop_session else ".")
    edited = " as you edited it" if decision.edited is not None else ""
    remembered = "; the same command runs unasked for the rest of the session" if decision.remember else ""
    return f"Call {record.id} is approved{edited}{remembered}."
