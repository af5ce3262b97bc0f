"""Undo of approvals: within the undo window before they are sent, and later until the call has started."""

import math
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from textual.timer import Timer

from whisper_tui.model.decision import Approve
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.masking import masked_command
from whisper_tui.model.shown_rules import SAVED_WITH, RuleDraft, RuleList, ShownRule
from whisper_tui.model.state import CallRecord, Held, Queued
from whisper_tui.model.text import visible
from whisper_tui.model.verdict import is_grave
from whisper_tui.present.command_text import one_line
from whisper_tui.present.quantities import count
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import Command

COMMANDS: tuple[Command, ...] = (
    Command(
        "undo",
        "u",
        "Undo approval",
        "Undo the last approval, while it is pending or its call has not started; else bring back what was set aside.",
        "Decide",
    ),
    Command(
        "revoke-latest",
        "X",
        "Revoke rule",
        "Revoke the latest standing approval, or remove the rule that was saved last.",
        "Decide",
    ),
)

WhichCalls = Literal["grave", "every", "none"]
UNDO_S = 3.0
ORDINARY_S = 1.5
"""Undo window of an approval without a severe risk: long enough to notice a wrong key."""
STANDING_S = 5.0
"""Undo window of an approval that is remembered: it decides about calls that nobody has seen yet."""


@dataclass(frozen=True)
class UndoSettings:
    """The approvals that have an undo window, and its length."""

    which: WhichCalls = "every"
    """All approvals, only those with a severe risk or for later calls too, or none."""
    seconds: float = UNDO_S
    """The window of a call with a severe risk; it bounds that of other calls, too."""


NO_UNDO = UndoSettings("none")


def undo_seconds(settings: UndoSettings, record: CallRecord, decision: Approve) -> float:
    """Return the length of the undo window for the approval of a call; 0 for none."""
    if settings.which == "none":
        return 0.0
    if decision.remember is not None:
        return max(settings.seconds, STANDING_S)
    risks = record.verdict.risks if record.verdict else ()
    if any(map(is_grave, risks)):
        return settings.seconds
    return min(settings.seconds, ORDINARY_S) if settings.which == "every" else 0.0


@dataclass(frozen=True)
class PendingApproval:
    """An approval that will be sent when its undo window has passed. `record` is the version that was on the screen."""

    record: CallRecord
    decision: Approve
    due: float
    """When it is sent, in seconds of the clock."""


class UndoWindow:
    """The pending approvals, oldest first."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._pending: dict[str, PendingApproval] = {}

    def __len__(self) -> int:
        return len(self._pending)

    def keep(self, record: CallRecord, decision: Approve, seconds: float) -> None:
        """Add an approval that is due after some seconds."""
        # The record of this moment: its fingerprint says which version the person has seen.
        self._pending[record.id] = PendingApproval(record, decision, self._clock() + seconds)

    def left(self, call_id: str) -> float | None:
        """Return the seconds until the approval of a call is sent. None: no approval of it is pending."""
        pending = self._pending.get(call_id)
        return None if pending is None else max(0.0, pending.due - self._clock())

    def newest(self) -> PendingApproval | None:
        """Return the latest approval, or None."""
        return next(reversed(self._pending.values()), None)

    def cancel(self, call_id: str) -> bool:
        """Remove the approval of a call. Returns True if there was one."""
        return self._pending.pop(call_id, None) is not None

    def pop_due(self) -> tuple[PendingApproval, ...]:
        """Remove and return the approvals that are due."""
        now = self._clock()
        due = tuple(pending for pending in self._pending.values() if pending.due <= now)
        for pending in due:
            del self._pending[pending.record.id]
        return due

    def drop_all(self) -> int:
        """Remove all approvals. Returns their number."""
        dropped = len(self._pending)
        self._pending.clear()
        return dropped


TICK_S = 0.1
"""Seconds between two looks for due approvals."""
WITHDRAWN_REASON = "The human withdrew the approval before the command started."
"""Sent to the agent of a call whose approval was withdrawn in the queue."""


class UndoCommands:
    """Delays approvals for their undo window, sends them when due, and carries out the command `undo`."""

    def __init__(
        self,
        cockpit: CockpitContext,
        settings: UndoSettings,
        send: Callable[[CallRecord, Approve], object],
        changed: Callable[[], object],
    ) -> None:
        """`changed` is called when the pending approvals change, and every tick while there are any."""
        self._cockpit = cockpit
        self._changed = changed
        self._settings = settings
        self._send = send
        # Here and not in the supervisor, where a command could start after everyone had left (decision 23).
        self._window = UndoWindow(cockpit.clock)
        self._timer: Timer | None = None
        self.undo_move: Callable[[], Awaitable[bool]] | None = None
        """Takes back what was set aside or brought back last; returns False if there is nothing to take back."""

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {"undo": self.undo, "revoke-latest": self.revoke_latest}

    @property
    def farewell(self) -> str:
        """The sentence for the terminal about approvals that quitting drops; empty if there are none."""
        number = len(self._window)
        return f"{count(number, 'approval')} not sent; the calls still wait. " if number else ""

    def words(self) -> str:
        """Return the words of the status bar about the latest pending approval; empty if there is none."""
        newest = self._window.newest()
        if newest is None:
            return ""
        left = self._window.left(newest.record.id) or 0.0
        more = f", and {count(len(self._window) - 1, 'other')}" if len(self._window) > 1 else ""
        return f"Approving call {newest.record.id} in {math.ceil(left)} s{more}"

    def delay(self, record: CallRecord, decision: Approve) -> bool:
        """Delay an approval for its undo window. Returns False if it has none and must be sent now."""
        seconds = undo_seconds(self._settings, record, decision)
        if not seconds:
            return False
        self._window.keep(record, decision, seconds)
        if self._timer is None:
            self._timer = self._cockpit.screen.set_interval(TICK_S, self._tick)
        self._changed()
        return True

    def is_pending(self, call_id: str) -> bool:
        """True if the approval of a call is pending."""
        return self._window.left(call_id) is not None

    def cancel(self, call_id: str) -> bool:
        """Cancel the pending approval of a call. Returns True if there was one."""
        taken = self._window.cancel(call_id)
        if taken:
            self._changed()
        return taken

    def drop_all(self, why: str) -> None:
        """Cancel all pending approvals. `why` completes the toast."""
        if dropped := self._window.drop_all():
            self._cockpit.tell(
                f"{count(dropped, 'approval')} not sent: {why}. Nothing was decided.", severity="warning"
            )
            self._changed()

    async def undo(self) -> None:
        """Cancel the latest pending approval, else withdraw a phone's yes, a queued call, or undo a move."""
        newest = self._window.newest()
        if newest is not None:
            self._window.cancel(newest.record.id)
            self._cockpit.screen.query_one(CallList).select(newest.record.id, by_hand=False)
            self._cockpit.tell(f"Call {newest.record.id} is not approved: it still waits for you.")
            self._changed()
            return
        record = self._cockpit.shown
        if (promised := self._promised(record)) is not None:
            await self._withdraw_yes(promised)
            return
        if record is None or not isinstance(record.state, Held | Queued):
            if self.undo_move is not None and await self.undo_move():
                return
            self._cockpit.tell("Nothing to undo: no approval is pending, and the selected call is not in the queue.")
            return
        try:
            await self._cockpit.supervision.withdraw(record.id, WITHDRAWN_REASON)
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="warning")
        else:
            self._cockpit.tell(f"Call {record.id} will not run: its approval was withdrawn, and the agent is told.")

    def _promised(self, shown: CallRecord | None) -> str | None:
        """Return the call whose yes is withdrawn: the one on the screen, or the newest. None: no phone has said yes."""
        promised = self._cockpit.board.promised
        if shown is not None and shown.id in promised:
            return shown.id
        return next(reversed(promised), None)

    async def _withdraw_yes(self, call_id: str) -> None:
        try:
            await self._cockpit.supervision.withdraw_yes(call_id, self._cockpit.me)
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="warning")
        else:
            self._cockpit.screen.query_one(CallList).select(call_id, by_hand=False)
            self._cockpit.tell(f"The yes of the phone to call {call_id} is withdrawn: it still waits for you.")

    async def revoke_latest(self) -> None:
        """Undo what was allowed for later calls last, in whatever session: a standing approval or a rule."""
        supervision, me = self._cockpit.supervision, self._cockpit.me
        try:
            standing = [grant for grant in await supervision.grants() if grant.revoked_at is None]
            latest = max(standing, key=lambda grant: grant.granted_at, default=None)
            saved = max(self._saved_rules(await supervision.rule_list()), key=lambda each: each[0], default=None)
            if saved is not None and (latest is None or saved[0] > latest.granted_at):
                await supervision.replace_rule(saved[2], None, me)
                told = f"Removed the rule that was saved last: {visible(saved[1].subject)}"
            elif latest is not None:
                await supervision.revoke(latest.id, me)
                command = "".join(span.text for span in one_line(masked_command(latest.spec.command)))
                told = f"Revoked the standing approval of call {latest.from_call}: {command}"
            else:
                told = "No standing approval is left to revoke, and no rule that was saved here."
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="warning")
        else:
            self._cockpit.tell(told)

    def _saved_rules(self, listed: RuleList) -> Iterator[tuple[float, ShownRule, RuleDraft]]:
        """Yield the rules that were saved with approvals of calls on the board, with the times of these."""
        for rule in listed.rules:
            before, _, call_id = str(rule.definition.get("justification", "")).partition(SAVED_WITH)
            record = self._cockpit.board.calls.get(call_id) if not before and call_id else None
            if record is not None and record.decided_at is not None and rule.removable and not rule.disabled:
                yield record.decided_at, rule, RuleDraft(effect=rule.effect, definition=rule.definition)

    def _tick(self) -> None:
        for pending in self._window.pop_due():
            self._send(pending.record, pending.decision)
        if not len(self._window) and self._timer is not None:
            self._timer.stop()
            self._timer = None
        # At every tick, for the seconds that the bar counts down.
        self._changed()
