"""Undo of what was done here last; an approval is held back for its undo window before it is sent."""

import math
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from textual.timer import Timer

from whisper_tui.model.decision import Approve
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.masking import masked_command
from whisper_tui.model.shown_rules import SAVED_WITH, RuleDraft, RuleList, ShownRule
from whisper_tui.model.state import CallRecord, Ended, Held, Queued
from whisper_tui.model.text import visible
from whisper_tui.model.verdict import is_grave
from whisper_tui.present.command_text import one_line
from whisper_tui.present.quantities import count
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import Command, can_take_back, in_force
from whisper_tui.tui.commands.change_taker import ChangeTaker

COMMANDS: tuple[Command, ...] = (
    Command(
        "undo",
        "u",
        "Undo",
        "Undo what was done here last: an approval and what it allows later, its changes, a move, a level, a review.",
        "Decide",
        also="revoke withdraw take back bring back",
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


Outcome = Literal["undone", "stays", "nothing"]
"""How an attempt to undo ended: it is undone, it is asked about or more of it is left, or there is nothing left."""
Deed = Callable[[], Awaitable[Outcome]]
MOST_DEEDS = 20

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
        self._taker = ChangeTaker(cockpit)
        self._deeds: list[Deed] = []
        """How what was done here is undone, the newest last."""

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {"undo": self.undo}

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

    def remember(self, deed: Deed) -> None:
        """Remember how something is undone that was done now."""
        self._deeds = [*self._deeds[1 - MOST_DEEDS :], deed]

    def approved(self, call_id: str, decision: Approve) -> None:
        """Remember an approval that was sent."""
        self.remember(lambda: self._undo_approval(call_id, decision))

    async def undo(self) -> None:
        """Cancel the latest pending approval, else withdraw a phone's yes, else undo what was done last."""
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
        try:
            while self._deeds:
                outcome = await self._deeds[-1]()
                if outcome != "stays":
                    self._deeds.pop()
                if outcome != "nothing":
                    return
            if record is not None and isinstance(record.state, Held | Queued):
                await self._withdraw(record.id)
            else:
                key = in_force(self._cockpit.screen.app).by_id("rules").key_name
                self._cockpit.tell(f"Nothing was done here that could be undone; {key} lists approvals and rules.")
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="warning")

    async def _withdraw(self, call_id: str) -> None:
        await self._cockpit.supervision.withdraw(call_id, WITHDRAWN_REASON)
        self._cockpit.tell(f"Call {call_id} will not run: its approval was withdrawn, and the agent is told.")

    async def _undo_approval(self, call_id: str, decision: Approve) -> Outcome:
        """Undo an approval: what it allows later first, then its run or the changes of it."""
        record = self._cockpit.board.calls.get(call_id)
        if record is None:
            return "nothing"
        if isinstance(record.state, Held | Queued):
            await self._withdraw(call_id)
            await self._revoke(record)
            return "undone"
        if decision.remember is not None and await self._revoke(record):
            # The next key undoes what the call itself has changed.
            return "stays"
        if not isinstance(record.state, Ended):
            ends = in_force(self._cockpit.screen.app).by_id("signal").key_name
            self._cockpit.tell(f"Call {call_id} has started: {ends} ends it, and then its changes can be undone.")
            self._cockpit.screen.query_one(CallList).select(call_id, by_hand=True)
            return "stays"
        if not can_take_back(record) or not record.has_changed:
            return "nothing"
        self._cockpit.screen.query_one(CallList).select(call_id, by_hand=True)
        await self._taker.take_back(record)
        return "stays"

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

    async def _revoke(self, record: CallRecord) -> bool:
        """Revoke what the approval of a call allows later: a standing approval or a rule. False: it is gone."""
        supervision, me = self._cockpit.supervision, self._cockpit.me
        for grant in await supervision.grants():
            if grant.from_call == record.id and grant.revoked_at is None:
                await supervision.revoke(grant.id, me)
                command = "".join(span.text for span in one_line(masked_command(grant.spec.command)))
                self._cockpit.tell(f"Revoked the standing approval of call {record.id}: {command}")
                return True
        for rule, draft in self._saved_rules(await supervision.rule_list(), record.id):
            await supervision.replace_rule(draft, None, me)
            self._cockpit.tell(f"Removed the rule that was saved with call {record.id}: {visible(rule.subject)}")
            return True
        return False

    def _saved_rules(self, listed: RuleList, call_id: str) -> Iterator[tuple[ShownRule, RuleDraft]]:
        """Yield the rules that were saved with the approval of a call."""
        for rule in listed.rules:
            before, _, saved_with = str(rule.definition.get("justification", "")).partition(SAVED_WITH)
            if not before and saved_with == call_id and rule.removable and not rule.disabled:
                yield rule, RuleDraft(effect=rule.effect, definition=rule.definition)

    def _tick(self) -> None:
        for pending in self._window.pop_due():
            self._send(pending.record, pending.decision)
        if not len(self._window) and self._timer is not None:
            self._timer.stop()
            self._timer = None
        # At every tick, for the seconds that the bar counts down.
        self._changed()
