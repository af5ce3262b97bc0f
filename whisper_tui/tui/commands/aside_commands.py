"""Setting waiting calls aside without an answer, bringing them back, and taking either back."""

from collections.abc import Callable, Sequence

from whisper_tui.model.errors import AlreadyDecided, WhisperError
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.present.quantities import count
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import Command
from whisper_tui.tui.commands.approve_deny import DecisionCommands
from whisper_tui.tui.commands.undo_approval import Outcome

COMMANDS: tuple[Command, ...] = (
    Command(
        "set-aside",
        "z",
        "Set aside",
        "Move the call out of the way without an answer, or bring it back; its agent is told that it is pending.",
        "Decide",
        "waiting",
        also="later postpone defer snooze not now skip bring back",
    ),
)


class AsideCommands:
    """Moves calls out of the way and back."""

    def __init__(self, cockpit: CockpitContext, decisions: DecisionCommands) -> None:
        self._cockpit = cockpit
        self._decisions = decisions

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {"set-aside": self.set_aside}

    async def set_aside(self) -> None:
        """Set the call on the screen aside, or bring it back."""
        record = self._cockpit.shown
        if record is not None and not self._decisions.is_guarded():
            await self.move((record,))

    async def move(self, records: Sequence[CallRecord]) -> None:
        """Set calls aside; if all of them are, bring them back."""
        back = all(record.aside is not None for record in records)
        for record in records:
            # A call that is set aside must not be approved by a key that was pressed before.
            self._decisions.undoing.cancel(record.id)
        moved = await self._send([record.id for record in records], back=back)
        if moved:
            calls = tuple(moved)
            self._decisions.undoing.remember(lambda: self._undo(calls, back=back))
        if not back:
            for call_id in moved:
                self._cockpit.select_after(call_id)

    async def _undo(self, moved: tuple[str, ...], *, back: bool) -> Outcome:
        """Take back a move of this cockpit, as far as its calls still wait."""
        calls = self._cockpit.board.calls
        found = [calls[id_] for id_ in moved if id_ in calls]
        waiting = [record for record in found if isinstance(record.state, Waiting)]
        there = [record.id for record in waiting if (record.aside is None) == back]
        if not there:
            return "nothing"
        await self._send(there, back=not back)
        self._cockpit.screen.query_one(CallList).select(there[0], by_hand=True)
        return "undone"

    async def _send(self, call_ids: Sequence[str], *, back: bool) -> list[str]:
        """Move calls, and tell of it. Returns those that were moved."""
        supervision, me, moved, failed = self._cockpit.supervision, self._cockpit.me, list[str](), ""
        for call_id in call_ids:
            try:
                await supervision.set_aside(call_id, me, back=back)
            except AlreadyDecided as error:
                # It fails alone: another person, or a rule, was faster.
                failed = error_text(error)
            except WhisperError as error:
                failed = error_text(error)
                break
            else:
                moved.append(call_id)
        which = f"Call {moved[0]}" if len(moved) == 1 else count(len(moved), "call")
        if moved and back:
            self._cockpit.tell(f"{which} {'waits' if len(moved) == 1 else 'wait'} for you again.")
        elif moved:
            it = "It still waits" if len(moved) == 1 else "They still wait"
            self._cockpit.tell(f"{which} set aside. {it}, below the others.")
        if failed:
            self._cockpit.tell(failed, severity="warning")
        return moved
