"""Commands that approve, edit and deny the call on the screen, in the version that is on the screen."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from whisper_tui.model.call import DENY_INSTEAD, NO_CHANGE, CommandSpec, FileEdits
from whisper_tui.model.decision import Approve, Decision
from whisper_tui.model.errors import AlreadyDecided, ChangedSinceSeen, WhisperError
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.present.command_text import shows_only_ends, whole_text
from whisper_tui.present.quantities import count
from whisper_tui.present.scope_words import approved_scope
from whisper_tui.present.security_text import why_not_confined
from whisper_tui.present.session_text import session_words_of
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit.approval_choice import SANDBOXES
from whisper_tui.tui.cockpit.call_card import CallCard
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import Command, in_force
from whisper_tui.tui.commands.decision_guards import SelectionGuard, TypingGuard, WhenDrawn
from whisper_tui.tui.commands.undo_approval import UndoCommands, UndoSettings
from whisper_tui.tui.edit_diff import EditedResult
from whisper_tui.tui.paragraphs_view import ParagraphsView

if TYPE_CHECKING:
    from whisper_tui.tui.dialogs.decision_dialogs import DenyScreen
    from whisper_tui.tui.dialogs.dialog import Dialog

COMMANDS: tuple[Command, ...] = (
    Command(
        "approve",
        "a",
        "Approve",
        "Run the command as shown, in the chosen way, or apply the changes of its preview.",
        "Decide",
        "waiting",
        also="apply preview",
    ),
    Command(
        "approval-reach",
        "F",
        "How long",
        "Choose how long the approval will hold: once, for this session, or always, by the rule that the card offers.",
        "Decide",
        "waiting",
        also="approve for session always allow save rule",
    ),
    Command(
        "approval-way",
        "h",
        "In which way",
        "Choose how it will run: normally, with its changes held back until it ends, or in one of three sandboxes.",
        "Decide",
        "waiting here",
        also="confined read-only network reversible undoable preview for real",
    ),
    Command(
        "approve-scope",
        "A",
        "Approve more…",
        "Approve the call, and choose which similar calls to approve with it; shows which past calls match.",
        "Decide",
        "waiting",
    ),
    Command("edit", "e", "Edit", "Change the command, directory or timeout, then approve.", "Decide", "waiting"),
    Command("deny", "d", "Deny", "Deny the call; the agent receives your reason.", "Decide", "waiting"),
    Command(
        "deny-session",
        "D",
        "Deny all",
        "Deny the call and all other waiting calls of its session.",
        "Decide",
        "waiting",
    ),
)

APPLY = "apply it"
"""The deed of a second key after a preview."""
TYPED = "Nothing was decided: the keys came as fast as typed text. Press one key for one decision."
UNSEEN = "Nothing was decided: the selection had just changed. Press again for this call."
MOST_REASONS = 6


class RecentReasons:
    """The last reasons for denials, each once, offered again by the dialog that denies."""

    def __init__(self) -> None:
        self._given: tuple[str, ...] = ()

    @property
    def recent(self) -> tuple[str, ...]:
        """The newest first."""
        return self._given

    def give(self, reason: str) -> None:
        """Add a reason, unless it is empty."""
        if reason:
            self._given = (reason, *(other for other in self._given if other != reason))[:MOST_REASONS]


class DecisionCommands:
    """Carries out the commands that decide about one call, and sends the decisions."""

    def __init__(
        self,
        cockpit: CockpitContext,
        undo: UndoSettings,
        refresh: Callable[[], None],
        card: CallCard,
        when_drawn: WhenDrawn,
    ) -> None:
        """`refresh` draws the pending approvals, the marks and the session denials as they are now; `card`
        knows the rule on offer, and whether the difference of an edit is known.
        """
        self._cockpit = cockpit
        self.guard = SelectionGuard(cockpit.clock, when_drawn)
        self.typing = TypingGuard()
        self.last_approved: str | None = None
        """The call that was approved here last; while its approval can be undone, it still waits."""
        self._on_their_way: set[str] = set()
        """Calls with a decision that was sent, and is not seen on the board yet."""
        self._approved_by_letter: str | None = None
        """The call whose approval the latest letter began, if it can still be undone."""
        self.reasons = RecentReasons()
        self.undoing = UndoCommands(cockpit, undo, self._send_soon, refresh)
        self.refresh = refresh
        self._card = card
        self._read_past: tuple[str, str, str] | None = None
        """The call, its fingerprint and the deed that the person was warned about: the next key does it unread."""
        self._entered: dict[str, CommandSpec] = {}
        """The edits of calls, until they are sent: after a failure or an undo, the editor starts from them."""

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {
            "approve": self._approve,
            "approval-reach": self._choose_reach,
            "approval-way": self._choose_way,
            "approve-scope": self.approve_scope,
            "edit": self.edit,
            "deny": lambda: self._deny(stop_session=False),
            "deny-session": lambda: self._deny(stop_session=True),
            **self.undoing.commands(),
        }

    def typed(self, at: float) -> None:
        """Register a letter; one that turns out to begin typed text has approved nothing."""
        begun, self._approved_by_letter = self._approved_by_letter, None
        if self.typing.typed(at) and begun is not None and self.undoing.cancel(begun):
            self._cockpit.tell(TYPED, severity="warning")

    def is_guarded(self) -> bool:
        """True if a decision key must be ignored now; then a toast says why."""
        if self.guard.holds:
            self._cockpit.tell(UNSEEN)
        elif self.typing.holds:
            self._cockpit.tell(TYPED)
        return self.guard.holds or self.typing.holds

    def _approve(self) -> None:
        """Approve the call on the screen, as the two choices on its bar say."""
        shown = self._cockpit.shown
        choice = self._card.choices.of(shown) if shown is not None else None
        if shown is None or choice is None:
            return
        applies = choice.way == "as previewed"
        if applies and (conflicts := self._card.previews.conflicts(shown)):
            # Before anything else: to read the rest would not help.
            self._cockpit.tell(
                f"Nothing was decided: {conflicts[0]} changed since the preview. {self._key('preview')} previews it"
                f" again, {self._key('approval-way')} chooses to run it.",
                severity="warning",
            )
        elif (record := self.to_approve(APPLY if applies else "approve")) is None:
            return
        elif applies and self._card.previews.is_missing(record):
            self._cockpit.tell("Nothing was decided: the changes of the preview are still being read. Press again.")
        else:
            self.decide(record, choice.decision(record))

    def _choose_reach(self) -> None:
        """Choose for how long the approval will hold; nothing is decided by it."""
        record = self._cockpit.shown
        # The guard counts here as well: the choice would be for a call that the person has not seen.
        if record is not None and not self.is_guarded():
            self._card.choices.next_reach(record)
            self._cockpit.refresh_call()

    async def _choose_way(self) -> None:
        """Choose how the call will run; nothing is decided by it. Without sandboxes, the usual way comes next."""
        record = self._cockpit.shown
        if record is None or self.is_guarded():
            return
        way = self._card.choices.following_way(record)
        if way in SANDBOXES and (problem := await why_not_confined(self._cockpit.supervision, record)):
            self._cockpit.tell(problem, severity="warning")
            way = self._card.choices.usual_way(record)
        # The supervisor was asked meanwhile, so something else may be on the screen.
        if way is not None and record is self._cockpit.shown:
            self._card.choices.choose_way(record, way)
            self._cockpit.refresh_call()

    def to_approve(self, then: str = "approve") -> CallRecord | None:
        """Return the call on the screen if a key may approve it now, else None after a toast with the reason.

        `then` is what a second key does if parts of the call were not on the screen.
        """
        record = self._cockpit.shown
        if record is None or self.is_guarded() or self.unread(record, then):
            return None
        # A second press must neither send the pending approval early nor start its undo window again.
        if self.undoing.is_pending(record.id):
            self._cockpit.tell(f"{self.undoing.words()}; {self._key('undo')} undoes it.")
            return None
        return record

    def approve_shown(self, record: CallRecord) -> None:
        """Approve a call that the caller knows to be read: it does not count unread rows again."""
        self.decide(record, Approve())

    def approve_scope(self) -> None:
        """Ask which similar calls the approval shall cover, and approve."""
        record = self._cockpit.shown
        if record is not None and not self.is_guarded() and not self.unread(record):
            from whisper_tui.tui.dialogs.scope_dialog import ScopeScreen

            self._ask(lambda record: ScopeScreen(self._cockpit, record))

    def edit(self) -> None:
        """Open the editor, and approve the edited call."""
        record = self._cockpit.shown
        if record is not None and not record.call.takes_change:
            self._cockpit.tell(f"{NO_CHANGE[:1].upper()}{NO_CHANGE[1:]}. {DENY_INSTEAD}.", severity="warning")
            return
        if record is not None and isinstance(record.call.spec.command, FileEdits):
            if not self.is_guarded():
                self._edit_files(record)
            return
        # The editor would show only both ends of it, and the rest would be approved unseen (decision 21).
        if record is not None and shows_only_ends(whole_text(record.call.spec.command)):
            self._cockpit.tell(f"The command is too long to edit here; use whisper-tui approve {record.id} --command.")
        elif not self.is_guarded():
            self._open_editor()

    def _edit_files(self, record: CallRecord) -> None:
        """Open the editor with the content that an edit would leave in the file that the person looks at."""
        versions = self._card.edits.contents(record)
        place = self._cockpit.screen.query_one("#call-detail", ParagraphsView).place
        if not versions or place is None:
            self._cockpit.tell("The files of this edit are not known yet. Press again once they are.")
            return
        try:
            result = EditedResult(record, versions, place.file - 1)
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="warning")
            return
        # The editor shows one file, and what it approves is all of them.
        if len(versions) == 1 or not self.unread(record, then="edit"):
            self._open_editor(result)

    def _open_editor(self, result: EditedResult | None = None) -> None:
        from whisper_tui.tui.dialogs.edit_dialog import EditScreen

        self._ask(lambda record: EditScreen(self._cockpit, record, result, self._entered.get(record.id)))

    def _deny(self, *, stop_session: bool) -> None:
        """Ask for a reason and deny the call, or every waiting call of its session."""
        # The guard counts here as well: the dialog would be about a call that the person did not choose.
        if self.is_guarded():
            return

        from whisper_tui.tui.dialogs.decision_dialogs import DenyScreen

        def screen(record: CallRecord) -> DenyScreen:
            same = len(self._cockpit.board.waiting_in(record.call.session_id))
            others = same - 1 if stop_session else 0
            return DenyScreen(
                f"call {record.id}",
                session_words_of(record, self._cockpit.board),
                others,
                stop_session=stop_session,
                recent=self.reasons.recent,
            )

        self._ask(screen)

    def unread(self, record: CallRecord, then: str = "approve") -> bool:
        """True if rows of the call were never on the screen. A toast warns once; the second key approves anyway."""
        if isinstance(record.spec.command, FileEdits) and self._card.edits.is_missing(record):
            self._cockpit.tell(
                "Nothing was decided: the files of this edit are still being read. Press again once they are."
            )
            return True
        rows = self._cockpit.screen.query_one("#call-detail", ParagraphsView).unseen
        this = (record.id, record.seen_digest(), then)
        if not rows or self._read_past == this:
            return False
        self._read_past = this
        were = "was" if rows == 1 else "were"
        what = "edit" if isinstance(record.spec.command, FileEdits) else "command"
        what = "preview" if then == APPLY else what
        self._cockpit.tell(
            f"{count(rows, 'line')} of the {what} {were} not on the screen yet. {self._key('page-call-down')} scrolls;"
            f" press again to {then} anyway.",
            severity="warning",
        )
        return True

    def _key(self, command_id: str) -> str:
        return in_force(self._cockpit.screen.app).by_id(command_id).key_name

    def _ask(self, make: "Callable[[CallRecord], Dialog[Approve] | DenyScreen]") -> None:
        record = self._cockpit.shown
        if record is None:
            return
        # A dialog about the call replaces an approval that is still in its undo window.
        self.undoing.cancel(record.id)

        def decided(decision: Decision | None) -> None:
            if decision is not None:
                self.decide(record, self._as_chosen(record, decision))

        self._cockpit.screen.app.push_screen(make(record), decided)

    def _as_chosen(self, record: CallRecord, decision: Decision) -> Decision:
        """Return an approval of a dialog in the way that the bar of its call shows, unless the dialog chose another."""
        choice = self._card.choices.of(record)
        chosen = choice.decision(record) if choice is not None else Approve()
        if not isinstance(decision, Approve) or decision.sandbox is not None:
            return decision
        return decision.model_copy(update={"sandbox": chosen.sandbox, "undoable": chosen.undoable})

    def decide(self, record: CallRecord, decision: Decision) -> None:
        """Send a decision about a call as it was on the screen; an approval when its undo window has passed."""
        if isinstance(decision, Approve):
            if decision.edited is not None:
                self._entered[record.id] = decision.edited
            self.last_approved = record.id
            if self.undoing.delay(record, decision):
                self._approved_by_letter = record.id
                self._cockpit.select_after(record.id)
                return
        else:
            self.reasons.give(decision.reason)
        self._send_soon(record, decision)

    def is_on_its_way(self, record: CallRecord) -> bool:
        """True if the approval of a call can be undone yet, or was sent and is not seen on the board."""
        if not isinstance(record.state, Waiting):
            self._on_their_way.discard(record.id)
            return False
        return self.undoing.is_pending(record.id) or record.id in self._on_their_way

    def _send_soon(self, record: CallRecord, decision: Decision) -> None:
        self._on_their_way.add(record.id)
        self._cockpit.screen.run_worker(self._send(record, decision), name="decide")

    async def _send(self, record: CallRecord, decision: Decision) -> None:
        cockpit = self._cockpit
        try:
            await cockpit.send(record, decision)
        except (AlreadyDecided, ChangedSinceSeen) as error:
            self._on_their_way.discard(record.id)
            cockpit.tell(error_text(error), severity="warning")
            cockpit.refresh_call()
        except WhisperError as error:
            self._on_their_way.discard(record.id)
            cockpit.tell(error_text(error), severity="error")
        else:
            self._entered.pop(record.id, None)
            if isinstance(decision, Approve):
                self.undoing.approved(record.id, decision)
            cockpit.tell(_done(record, decision))
            # Only now: after a failure the call still waits, and stays selected for another try.
            cockpit.select_after(record.id)


def _done(record: CallRecord, decision: Decision) -> str:
    if not isinstance(decision, Approve):
        return f"Call {record.id} is denied" + (
            ", with every waiting call of its session." if decision.stop_session else "."
        )
    if decision.preview is not None:
        return f"Call {record.id} is approved as previewed: its changes are made, and it does not run again."
    edited = " as you edited it" if decision.edited is not None else ""
    scope = decision.remember
    remembered = f"; {approved_scope(scope if isinstance(scope, str) else scope.model_dump())}" if scope else ""
    confined = f" in a sandbox ({decision.sandbox.words()})" if decision.sandbox is not None else ""
    held = ", and can be undone after its end" if decision.undoable else ""
    return f"Call {record.id} is approved{confined}{edited}{held}{remembered}."
