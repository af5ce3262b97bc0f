"""Approving, editing and denying, always about the call as it is on the screen."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from whisper_tui.model.decision import Approve, Decision, Scope
from whisper_tui.model.errors import AlreadyDecided, ChangedSinceSeen, WhisperError
from whisper_tui.model.sandbox import Sandbox
from whisper_tui.model.state import CallRecord
from whisper_tui.tui.batching import Batching
from whisper_tui.tui.command_text import whole_text
from whisper_tui.tui.commands import BY_ID
from whisper_tui.tui.ends import is_endless
from whisper_tui.tui.grace import Grace
from whisper_tui.tui.guard import Guard
from whisper_tui.tui.keymap import in_force
from whisper_tui.tui.reasons import Reasons
from whisper_tui.tui.refusing import Refusing
from whisper_tui.tui.sandbox_text import why_not_confined
from whisper_tui.tui.scope_text import scope_sentence
from whisper_tui.tui.screens.deny import DenyScreen
from whisper_tui.tui.screens.dialog import Dialog
from whisper_tui.tui.screens.edit import EditScreen
from whisper_tui.tui.screens.scope import ScopeScreen
from whisper_tui.tui.undoing import Undoing
from whisper_tui.tui.widgets.call_list import CallList
from whisper_tui.tui.widgets.call_panel import CallPanel
from whisper_tui.tui.widgets.decision_bar import DecisionBar
from whisper_tui.tui.words import count, told

if TYPE_CHECKING:
    from whisper_tui.tui.screens.cockpit import CockpitScreen


class Deciding:
    """The commands of the group *Decide*."""

    def __init__(self, screen: "CockpitScreen", grace: Grace) -> None:
        self._screen = screen
        self.guard = Guard(screen.clock)
        self.reasons = Reasons()
        self.undoing = Undoing(screen, grace, self._send_later, self.refresh)
        self._batching = Batching(screen, self)
        self._refusing = Refusing(screen, self)
        self._read_past: tuple[str, str] | None = None
        """The call that was to be approved before all of it had been on the screen, and its fingerprint."""

    def commands(self) -> dict[str, Callable[[], object]]:
        """What each command does, by its id."""
        return {
            "approve": lambda: self._approve(None),
            "approve-session": lambda: self._approve("exact_for_session"),
            "approve-scope": self.approve_scope,
            "approve-read-only": lambda: self._approve_into(Sandbox()),
            "approve-confined": lambda: self._approve_into(Sandbox(kind="workspace")),
            "approve-confined-network": lambda: self._approve_into(Sandbox(kind="workspace", network=True)),
            "edit": self.edit,
            "deny": lambda: self._deny(stop_session=False),
            "deny-session": lambda: self._deny(stop_session=True),
            **self.undoing.commands(),
            **self._batching.commands(),
            **self._refusing.commands(),
        }

    def changed(self, ids: tuple[str, ...]) -> None:
        """Something happened to these calls."""
        self._batching.changed(ids)
        self._refusing.changed(ids)

    def refresh(self) -> None:
        """Draw what is to be sent, what is marked and what is refused as it is now."""
        marked = self._batching.marked
        self._screen.query_one(DecisionBar).show(self.undoing.words(), len(marked), self._refusing.words())
        self._screen.query_one(CallList).show_marks(marked)

    def under_the_finger(self) -> bool:
        """Whether the call on the screen came there by itself just now, which is told."""
        if self.guard.holds:
            self._screen.tell("Nothing was decided: another call came under the key. Press again for this one.")
        return self.guard.holds

    def _approve(self, remember: Scope | None) -> None:
        if (record := self._to_approve()) is not None:
            self._decide(record, Approve(remember=remember))

    def _to_approve(self) -> CallRecord | None:
        """The call on the screen, if a key may approve it now. None: it is said why not, or there is none."""
        record = self._screen.shown
        if record is None or self.under_the_finger() or self.unread(record):
            return None
        if self.undoing.is_promised(record.id):
            self._screen.tell(f"{self.undoing.words()}; {self._key('undo')} takes it back.")
            return None
        return record

    async def _approve_into(self, sandbox: Sandbox) -> None:
        """Let it run in a sandbox, where there is one."""
        record = self._to_approve()
        if record is None:
            return
        problem = await why_not_confined(self._screen.supervision, record)
        if problem:
            self._screen.tell(problem, severity="warning")
        elif self.undoing.is_promised(record.id):
            self._screen.tell(f"{self.undoing.words()}; {self._key('undo')} takes it back.")
        else:
            self._decide(record, Approve(sandbox=sandbox))

    def approve_shown(self, record: CallRecord) -> None:
        """Approve a call of which all was on the screen when the key was pressed."""
        self._decide(record, Approve())

    def approve_scope(self) -> None:
        """Let it run, and choose what else that answers for."""
        record = self._screen.shown
        if record is not None and not self.under_the_finger() and not self.unread(record):
            self._ask(lambda record: ScopeScreen(self._screen, record))

    def edit(self) -> None:
        """Change it and approve that."""
        record = self._screen.shown
        if record is not None and is_endless(whole_text(record.call.spec.command)):
            self._screen.tell(f"It is too long to be edited here. whisper-tui approve {record.id} --command does it.")
        elif not self.under_the_finger():
            self._ask(lambda record: EditScreen(self._screen, record))

    def _deny(self, *, stop_session: bool) -> None:
        """Say no and why, to this call or to everything that its session waits for."""
        if self.under_the_finger():
            return

        def screen(record: CallRecord) -> DenyScreen:
            same = len(self._screen.board.waiting_in(record.call.session_id))
            others = same - 1 if stop_session else 0
            return DenyScreen(
                f"call {record.id}",
                self._screen.session_name(record),
                others,
                stop_session=stop_session,
                recent=self.reasons.recent,
            )

        self._ask(screen)

    def unread(self, record: CallRecord) -> bool:
        """Whether some of the call was never on the screen, which is told once; the second key approves it unread."""
        rows = self._screen.query_one(CallPanel).unseen
        this = (record.id, record.seen_digest())
        if not rows or self._read_past == this:
            return False
        self._read_past = this
        were = "has" if rows == 1 else "have"
        self._screen.tell(
            f"{count(rows, 'line')} of the command {were} not been on the screen. {self._key('page-call-down')} shows"
            " more of it; press again to approve it all the same.",
            severity="warning",
        )
        return True

    def _key(self, command_id: str) -> str:
        return in_force(self._screen.app).command(BY_ID[command_id]).key_name

    def _ask(self, make: Callable[[CallRecord], Dialog[Approve] | DenyScreen]) -> None:
        record = self._screen.shown
        if record is None:
            return
        self.undoing.take_back(record.id)

        def decided(decision: Decision | None) -> None:
            if decision is not None:
                self._decide(record, decision)

        self._screen.app.push_screen(make(record), decided)

    def _decide(self, record: CallRecord, decision: Decision) -> None:
        if isinstance(decision, Approve):
            if self.undoing.hold_back(record, decision):
                self._screen.leave(record.id)
                return
        else:
            self.reasons.give(decision.reason)
        self._screen.run_worker(self._send(record, decision), name="decide")

    def _send_later(self, record: CallRecord, decision: Approve) -> None:
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
    remembered = f"; {scope_sentence(decision.remember)}" if decision.remember else ""
    confined = f" into a sandbox ({decision.sandbox.words()})" if decision.sandbox is not None else ""
    return f"Call {record.id} is approved{confined}{edited}{remembered}."
