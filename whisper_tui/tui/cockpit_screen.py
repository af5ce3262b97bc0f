"""The main screen: the list of calls, the selected call in full, and its output. Other modules draw and decide."""

from collections.abc import Callable
from functools import partial
from inspect import isawaitable

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.notifications import SeverityLevel
from textual.widgets._toast import Toast

from whisper_tui.model.api import Supervision
from whisper_tui.model.board import Board
from whisper_tui.model.decision import Decider, Decision
from whisper_tui.model.packed_calls import Lines
from whisper_tui.model.run import StallNews
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.model.text import visible
from whisper_tui.notify.notifier import Notifier
from whisper_tui.notify.notify_settings import NO_NOTIFICATIONS, NotifySettings
from whisper_tui.present.words import toast_text
from whisper_tui.tui.cockpit.call_card import CallCard
from whisper_tui.tui.cockpit.call_list import CallColumn, CallList, FilterBar, select_next, select_next_waiting
from whisper_tui.tui.cockpit.call_panel import NO_GUIDANCE, ActionBar, CallPanel, Guidance, Nothing
from whisper_tui.tui.cockpit.call_roster import CallRoster
from whisper_tui.tui.cockpit.follower import BoardFollower, Reconnect, StallWatch
from whisper_tui.tui.cockpit.notices import AlarmNotices, BlockedNotices, PhoneNotices, RefusedNotices
from whisper_tui.tui.cockpit.status_bars import (
    Banner,
    Caption,
    DecisionBar,
    HealthBar,
    RecentDecisions,
    StatusBar,
    TooSmall,
)
from whisper_tui.tui.cockpit_context import (
    BoardChanged,
    CallSelected,
    CommandRequested,
    Connected,
    EventsLost,
    Opened,
    SignDecision,
)
from whisper_tui.tui.command_definition import available, why_not
from whisper_tui.tui.commands.all_commands import BY_ID, COMMANDS
from whisper_tui.tui.commands.approve_deny import DecisionCommands
from whisper_tui.tui.commands.aside_commands import AsideCommands
from whisper_tui.tui.commands.change_commands import HunkCommands, PreviewCommands
from whisper_tui.tui.commands.decision_guards import WhenDrawn
from whisper_tui.tui.commands.navigation import ConversationCommands, NavigationCommands, ScreenCommands, conversations
from whisper_tui.tui.commands.output_commands import OutputCommands
from whisper_tui.tui.commands.run_commands import InputCommands, RerunCommands, RetryCommands, SignalCommands
from whisper_tui.tui.commands.several_calls import MarkCommands, SessionDenialCommands
from whisper_tui.tui.commands.unasked_commands import UnaskedCommands
from whisper_tui.tui.commands.undo_approval import NO_UNDO, UndoSettings
from whisper_tui.tui.keyed_screen import KeyedScreen, KeyFooter
from whisper_tui.tui.output.output_area import OutputArea
from whisper_tui.tui.output.output_bars import SearchBar
from whisper_tui.tui.output.painter import Pens
from whisper_tui.tui.output.terminal_pane import TerminalPane
from whisper_tui.tui.pane_zoom import PaneZoom

CALL_SHARE = 0.42
"""The share of the height that the call may take from its output."""
PREVIEW_SHARE = 0.75
"""That of a waiting call, whose output is that of its preview: it is decided by its changes."""
THREE_COLUMNS = 180
"""Least width for the call and its output side by side."""


class CockpitScreen(KeyedScreen):
    """Composes the widgets and the command groups, and passes changes of the board to them."""

    HORIZONTAL_BREAKPOINTS = [(0, "-one"), (100, "-two"), (160, "-wide"), (THREE_COLUMNS, "-three")]  # noqa: RUF012
    BINDINGS = [command.binding() for command in COMMANDS]  # noqa: RUF012
    AUTO_FOCUS = "#calls"

    def __init__(
        self,
        supervision: Supervision,
        *,
        user: str,
        clock: Callable[[], float],
        reconnect: Reconnect | None,
        pens: Pens,
        notifications: NotifySettings = NO_NOTIFICATIONS,
        undo: UndoSettings = NO_UNDO,
        write: Callable[[str], object] = lambda _text: None,
        when_written: WhenDrawn = lambda then: then(),
        guidance: Guidance = NO_GUIDANCE,
        signer: SignDecision | None = None,
    ) -> None:
        """`write` puts text on the real terminal; `when_written` calls a function once all text so far is there."""
        super().__init__()
        self.clock = clock
        self.me = Decider(surface="cockpit", who=user)
        """The person who decides in this cockpit."""
        self.last_input_at = clock()
        """The time of the last key or movement of the mouse."""
        self.pens = pens
        """The colours of output in the current theme."""
        self._when_written = when_written
        self._signer = signer
        self._guidance, self._connected = guidance, True
        self._follower = BoardFollower(supervision, self.post_message, reconnect, partial(_list_calls, self))
        self._roster = CallRoster(self._follower.board)
        self.run_watch = StallWatch(self, self._stands_still)
        """Finds runs that are paused or need input."""
        self.card = CallCard(self, self.refresh_call, self.run_watch.standing_still, self.run_watch.why_queued)
        self.decisions = DecisionCommands(self, undo, self._refresh_decisions, self.card, self.when_drawn)
        """Sends decisions, and holds the approvals that can still be undone."""
        self._aside = AsideCommands(self, self.decisions)
        self._marks = MarkCommands(self, self.decisions, self._aside)
        self._session_denials = SessionDenialCommands(self, self.decisions)
        self.notifier = Notifier(self, notifications, write)
        """Notifies the person of waiting calls."""
        self._refused, self._blocked, self._alarms = RefusedNotices(self), BlockedNotices(self), AlarmNotices(self)
        self._phones = PhoneNotices(self)
        self._output_commands = OutputCommands(self)
        self.does = self._commands()
        """The function of each command, by its id."""

    def _commands(self) -> dict[str, Callable[[], object]]:
        # A waiting call is never hidden: it is decided about by what is seen of it (decision 23).
        self._zoom = PaneZoom(self, ("#call",), "#output", ("#left",), lambda: _waits(self.shown))
        self._input = InputCommands(self, self.decisions, self._zoom)
        groups = (
            self.decisions,
            self._aside,
            self._marks,
            self._session_denials,
            self._input,
            ConversationCommands(self),
            SignalCommands(self),
            *(HunkCommands(self), PreviewCommands(self, self.decisions)),
            UnaskedCommands(self, self.decisions.undoing),
            RetryCommands(self),
            RerunCommands(self, self.decisions, self.card.revealed.conceals),
            NavigationCommands(self, COMMANDS, lambda: self.decisions.undoing.farewell, self._zoom.back),
            ScreenCommands(self, lambda: self.pens),
            self._output_commands,
            self._zoom,
            self.notifier,
            self.card,
        )
        return {id_: do for group in groups for id_, do in group.commands().items()}

    def style_for(self, width: int) -> None:
        """Take the class of a width, without matching styles again."""
        fits = [name for least, name in self.HORIZONTAL_BREAKPOINTS if width >= least]
        self.set_class(True, *fits[-1:], update=False)

    def compose(self) -> ComposeResult:
        """Yield the bars, the list, the call, its output and the footer."""
        yield TooSmall(id="too-small")
        yield from (StatusBar(id="status"), Banner(id="banner"), HealthBar(lambda: self.supervision))
        yield Caption(self._guidance.caption)
        yield DecisionBar(self._guidance.hints, id="decisions")
        with Horizontal(id="cockpit"):
            yield CallColumn(self.clock, id="left")
            with Vertical(id="right"):
                yield CallPanel(id="call")
                yield OutputArea(self.pens, id="output")
        yield RecentDecisions(self, id="recent")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Begin to follow events, and to draw ages every second."""
        self.query_one(OutputArea).display = False
        self.query_one(CallPanel).guidance = self._guidance
        calls = self.query_one(CallList)
        calls.standing_still, calls.need_input = self.run_watch.standing_still, lambda: self.need_input
        calls.show(self._roster)
        self.run_worker(self._follower.run(), name="follow", group="follow")
        self.set_interval(1.0, self._tick)
        self.screen_layout_refresh_signal.subscribe(self, self._make_room_for_toasts)
        self.notifier.begin()
        self.refresh_status()
        self.post_message(Opened())

    def on_screen_suspend(self) -> None:
        """Tell the guard that another screen covers the call."""
        self.decisions.guard.covered()

    def on_screen_resume(self) -> None:
        """Tell the guard that the call is in view again."""
        self.decisions.guard.uncovered()

    async def on_unmount(self) -> None:
        """End notifications."""
        await self.notifier.end()

    @property
    def supervision(self) -> Supervision:
        """The API of the supervisor; another object after a reconnection."""
        return self._follower.supervision

    @property
    def board(self) -> Board:
        """All calls as the cockpit knows them now; another object after a reconnection."""
        return self._follower.board

    @property
    def need_input(self) -> list[str]:
        """The ids of the runs that wait for input."""
        return self.run_watch.need_input

    @property
    def terminal_has_focus(self) -> bool:
        """True while the window of this terminal has the focus."""
        return self.app.app_focus

    @property
    def roster(self) -> CallRoster:
        """The rows of the list."""
        return self._roster

    @property
    def shown(self) -> CallRecord | None:
        """The call as it is on the screen: decisions are about this version and no newer one (decision 23)."""
        return self.query_one(CallPanel).record

    def tell(self, text: str, *, severity: SeverityLevel = "information") -> None:
        """Show a toast: for 4 s, a warning or an error for 10 s."""
        # No markup, because toasts contain text of agents, and square brackets in it are text (decision 21).
        self.notify(toast_text(text), severity=severity, markup=False, timeout=4 if severity == "information" else 10)

    def when_drawn(self, then: Callable[[], object]) -> None:
        """Call a function once what the card shows now is on the terminal; it may be called by another thread."""
        # First the card has to ask for a frame, then the frame has to be made, and then it has to be written.
        written = partial(self._when_written, then)
        self.query_one("#call-detail").call_after_refresh(lambda: self.call_after_refresh(written))

    async def send(self, record: CallRecord, decision: Decision) -> None:
        """Send a decision about a call as it was shown, signed if the user has it signed."""
        proof = () if self._signer is None else (await self._signer(record, decision, self.me, self.tell),)
        # The fingerprint makes the supervisor refuse the decision if the call changed after it was drawn.
        await self.supervision.decide(record.id, decision, self.me, record.seen_digest(), *proof)

    def select_after(self, call_id: str) -> None:
        """Select the next waiting call, after this one was decided."""
        select_next(self.query_one(CallList), self._roster, call_id)

    def refresh_call(self) -> None:
        """Draw the selected call as the board knows it now."""
        call_id = self.query_one(CallList).selected
        record = self.board.calls.get(call_id) if call_id is not None else None
        session = self.board.sessions.get(record.call.session_id) if record is not None else None
        before = self.shown
        self.query_one(ActionBar).has_conversation = bool(conversations(self.board))
        if record is None:
            self.query_one(CallPanel).show(None, None, self.clock(), nothing=self._why_nothing)
        else:
            self.card.draw(record, session, self._roster.beside(record))
        self.query_one(Caption).about(record)
        self.decisions.guard.shows(record, choice=self.query_one(CallList).choice)
        self.query_one(OutputArea).show(self.supervision, record)
        self._zoom.apply()
        self._share_height()
        if _kind(before) != _kind(record):
            self.refresh_bindings()

    @property
    def _why_nothing(self) -> Nothing:
        if not self._follower.complete:
            return "loading"
        return "no-match" if any(self._roster.totals.values()) else "no-call"

    def _stands_still(self, new: dict[str, StallNews]) -> None:
        """Draw the changed set of stalled runs, and notify of those that begin to need input."""
        self.query_one(CallList).refresh()
        self.refresh_call()
        self.refresh_status()
        for news in dict.fromkeys(new.values()):
            self.notifier.stalled([self.board.calls[id_] for id_ in new if new[id_] == news], news)

    def _refresh_decisions(self) -> None:
        """Draw the pending approvals, the marks and the session denials as they are now."""
        marked = self._marks.marked
        self.query_one(DecisionBar).show(self.decisions.undoing.words(), len(marked), self._session_denials.words())
        self.query_one(CallList).show_marks(marked)

    def on_resize(self) -> None:
        """Share the height between the call and its output, or say that the terminal is too small."""
        self.set_class(TooSmall.covers(self.size), "-too-small")
        self._share_height()

    @on(OutputArea.NeedChanged)
    def _share_height(self) -> None:
        """Give the call its share of the height, and what its output does not need."""
        output, height = self.query_one(OutputArea), self.query_one("#right").size.height
        output.set_class(output.is_empty, "-empty")
        room = None
        if self.size.width < THREE_COLUMNS and output.display:
            room = round(height * _share_of(self.shown))
            room = room if output.rows_needed is None else max(room, height - output.rows_needed)
        self.query_one(CallPanel).leave_room(room)

    def _make_room_for_toasts(self, _screen: object) -> None:
        """Let toasts stand where nothing else is: below the list, or below the card where there is one column."""
        regions = [toast.region for toast in self.query(Toast) if toast.region]
        rows = (regions[-1].bottom - regions[0].y) if regions else 0
        below_card = self.has_class("-one")
        self.query_one(CallList).room_lent = 0 if below_card else rows
        self.query_one("#left").styles.padding = (0, 0, 0 if below_card else rows, 0)
        covers_card = below_card and not self.query_one(OutputArea).display
        self.query_one("#right").styles.padding = (0, 0, rows if covers_card else 0, 0)

    async def action_command(self, command_id: str) -> None:
        """Carry out a command from a key, a button or the palette."""
        if not available(BY_ID[command_id], self.shown):
            if command_id == "terminal" and self._input.use_terminal_of_approved():
                return
            self.tell(why_not(BY_ID[command_id], self.shown))
            return
        result = self.does[command_id]()
        if isawaitable(result):
            await result

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """False if a key must not run a command now."""
        if action != "command" or not self.is_mounted:
            return True
        # Nothing may be decided about a call that is not on the screen (decision 23).
        if self.query_one(TerminalPane).typing or (self.has_class("-too-small") and parameters[0] != "quit"):
            return False
        # A key without effect must say why, so its action has to be allowed. The footer, however, lists exactly the
        # allowed actions, so a command in the footer is allowed only if it is available.
        command = BY_ID[str(parameters[0])]
        return available(command, self.shown) or not command.in_footer

    @on(BoardChanged)
    def _board_changed(self) -> None:
        changed = self._follower.take_changes()
        calls = self.query_one(CallList)
        before = self._roster.place_of(calls.selected) if calls.selected is not None else None
        first = not self._roster.count("waiting")
        self._roster.update(changed)
        # Under a dialog the selection stays: the dialog is about the selected call.
        if self.is_active:
            select_next_waiting(calls, self._roster, before, first=first)
        calls.loading_calls = not self._follower.complete
        calls.changed()
        # Under a flood, most changes are about calls that the panel does not show.
        if self.shown is None or not self._drawn_with(self.shown).isdisjoint(changed):
            self.refresh_call()
        decided = [call_id for call_id in changed if call_id not in self.board.waiting]
        for each in (self._blocked, self.query_one(RecentDecisions), self._session_denials):
            each.changed(decided)
        alarmed = self._alarms.changed(decided)
        self.notifier.changed(changed, alarm=self._refused.look())
        self.notifier.alarmed(alarmed)
        self._phones.look()
        self._marks.changed(changed)
        self.refresh_status()

    def _drawn_with(self, record: CallRecord) -> set[str | None]:
        """Return the calls that the panel of a call shows: itself, and the last others of its session."""
        return {self.query_one(CallList).selected, *(each.id for each in self._roster.beside(record))}

    @on(CallSelected)
    def _call_selected(self) -> None:
        self.refresh_call()

    @on(CommandRequested)
    async def _command_wanted(self, message: CommandRequested) -> None:
        await self.action_command(message.command_id)

    @on(EventsLost)
    def _connection_lost(self, message: EventsLost) -> None:
        self._connected = False
        # Sent after a reconnection, they would decide about calls that were out of sight meanwhile (decision 23).
        self.decisions.undoing.drop_all("the connection was lost")
        self.query_one(Banner).lost(message.error, message.retry_in_s)
        self.refresh_status()

    @on(Connected)
    def _connected_again(self) -> None:
        self._connected = True
        self.decisions.guard.lost_sight()
        self.query_one(Banner).back()
        self._roster = CallRoster(self._follower.board, self._roster.grouping)
        self._roster.narrow(self.query_one(FilterBar).value)
        # The panes still read through the old connection.
        self.query_one(OutputArea).forget()
        self.query_one(CallList).loading_calls = True
        self.query_one(CallList).show(self._roster, self.query_one(CallList).selected)
        self.refresh_call()
        self.refresh_status()

    @on(TerminalPane.TypingEnded)
    def _typing_ended(self) -> None:
        self._input.typing_ended()

    @on(SearchBar.SearchRequested)
    def _search_wanted(self, message: SearchBar.SearchRequested) -> None:
        self.query_one(CallList).focus()
        self._output_commands.find(message.words)

    def recolour(self, pens: Pens) -> None:
        """Draw output in the colours of another theme."""
        self.pens = pens
        self.query_one(OutputArea).recolour(pens)

    def _tick(self) -> None:
        """Ask what runs are doing, and draw the ages anew, every second."""
        self.run_watch.look()
        self.notifier.tick()
        if not self.is_active:
            return
        self.query_one(CallList).draw_ages()
        self.query_one(RecentDecisions).look()
        self.query_one(Caption).about(self.shown)
        self.refresh_status()
        if (record := self.shown) is not None and record.is_open:
            self.refresh_call()

    def refresh_status(self) -> None:
        """Draw the status bar as it is now."""
        status, who, hushed = self.query_one(StatusBar), visible(self.me.who), self.notifier.muted_text
        board, need_input = self.board, len(self.run_watch.need_input)
        paused = sum(1 for id_ in board.running if self.run_watch.is_still(board.calls[id_]))
        status.counts(
            self._roster.totals,
            complete=self._follower.complete,
            connected=self._connected,
            who=who,
            hushed=hushed,
            paused=paused,
            need_input=need_input,
            unreviewed=len(board.unreviewed),
        )
        self.title = f"{self._roster.totals['waiting']} waiting" if self._follower.complete else "loading"


def _list_calls(screen: CockpitScreen, board: Board, lines: Lines) -> None:
    """List waiting calls that are about to be drawn. After a reconnection the roster may not be theirs yet."""
    if screen.roster.board is board:
        screen.roster.update(lines)
        screen.notifier.note(lines)


def _kind(record: CallRecord | None) -> tuple[str, bool] | None:
    """Return the facts of a call on which the availability of commands depends."""
    return (record.state.kind, record.is_open) if record is not None else None


def _waits(record: CallRecord | None) -> bool:
    return record is not None and isinstance(record.state, Waiting)


def _share_of(record: CallRecord | None) -> float:
    return PREVIEW_SHARE if _waits(record) else CALL_SHARE
