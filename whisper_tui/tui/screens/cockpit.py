"""The one screen: calls on the left, the selected call in full, its output; it routes, others draw and decide."""

from collections.abc import Callable
from inspect import isawaitable

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.notifications import SeverityLevel
from textual.widgets import Footer, Static

from whisper_tui.model.board import Board
from whisper_tui.model.decision import Decider
from whisper_tui.model.port import Supervision
from whisper_tui.model.state import CallRecord
from whisper_tui.model.text import visible
from whisper_tui.tui.calling.caller import Caller
from whisper_tui.tui.calling.settings import NEVER, CallingSettings
from whisper_tui.tui.commands import BY_ID, COMMANDS, available, why_not
from whisper_tui.tui.deciding import Deciding
from whisper_tui.tui.follow import Follower, Reconnect
from whisper_tui.tui.going_on import go_on, stay_with_the_queue
from whisper_tui.tui.grace import NO_GRACE, Grace
from whisper_tui.tui.keymap import in_force
from whisper_tui.tui.looking_back import LookingBack
from whisper_tui.tui.messages import (
    BoardChanged,
    CallSelected,
    CommandWanted,
    Connected,
    ConnectionLost,
    FilterChanged,
    FilterLeft,
    Opened,
)
from whisper_tui.tui.output.pens import Pens
from whisper_tui.tui.rerunning import Rerunning
from whisper_tui.tui.retrying import Retrying
from whisper_tui.tui.roster import Roster
from whisper_tui.tui.rule_book import RuleBook
from whisper_tui.tui.run_watch import RunWatch
from whisper_tui.tui.screens.keyed import KeyedScreen
from whisper_tui.tui.showing import Showing
from whisper_tui.tui.signalling import Signalling
from whisper_tui.tui.talking import Talking
from whisper_tui.tui.typing_in import TypingIn
from whisper_tui.tui.unmasking import Unmasking
from whisper_tui.tui.viewing import Viewing
from whisper_tui.tui.widgets.banner import Banner
from whisper_tui.tui.widgets.call_list import CallList
from whisper_tui.tui.widgets.call_panel import CallPanel
from whisper_tui.tui.widgets.decision_bar import DecisionBar
from whisper_tui.tui.widgets.filter_bar import FilterBar
from whisper_tui.tui.widgets.output_area import OutputArea
from whisper_tui.tui.widgets.search_bar import SearchBar
from whisper_tui.tui.widgets.status_bar import StatusBar
from whisper_tui.tui.widgets.trouble_bar import TroubleBar
from whisper_tui.tui.words import called, in_passing

CALL_SHARE = 0.42
"""The part of the height that a call may take from its output."""
LEAST_COLUMNS, LEAST_ROWS = 30, 10
"""Below this no command can be read."""
THREE_COLUMNS = 180
"""Columns from which a call and its output stand side by side."""


class CockpitScreen(KeyedScreen):
    """Holds what is selected and passes on what changed."""

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
        rule_book: RuleBook | None = None,
        calling: CallingSettings = NEVER,
        grace: Grace = NO_GRACE,
        write: Callable[[str], object] = lambda _text: None,
    ) -> None:
        """`write` puts text on the real terminal."""
        super().__init__()
        self.clock = clock
        self.me = Decider(surface="cockpit", who=user)
        """Who decides here."""
        self.pens = pens
        """How output is coloured now."""
        self.rule_book = rule_book
        """The rules that decide without a human. None: they cannot be read from here."""
        self._connected = True
        self._follower = Follower(supervision, self.post_message, reconnect)
        self._roster = Roster(self._follower.board)
        self.deciding = Deciding(self, grace)
        """Decides about calls, and knows what is not sent yet."""
        self.caller = Caller(self, calling, write)
        """Calls whoever sits here when something waits."""
        self._showing = Showing(self)
        self._unmasking = Unmasking(self, self.refresh_call)
        self.run_watch = RunWatch(self, self._stands_still)
        """Which runs are paused or need input."""
        groups = (
            self.deciding,
            TypingIn(self),
            Talking(self),
            Signalling(self),
            Retrying(self),
            Rerunning(self, self.deciding, self._unmasking.conceals),
            Viewing(self),
            LookingBack(self),
            self._showing,
            self.caller,
        )
        self.does: dict[str, Callable[[], object]] = {
            id_: do for group in groups for id_, do in group.commands().items()
        }
        """What each command does, by its id."""
        self.does["reveal"] = self._reveal

    def compose(self) -> ComposeResult:
        """Status, list, call, output, keys."""
        yield Static(id="too-small")
        yield from (StatusBar(id="status"), Banner(id="banner"), TroubleBar(lambda: self.supervision))
        yield DecisionBar(id="decisions")
        with Horizontal(id="cockpit"):
            with Vertical(id="left"):
                yield FilterBar(id="filter")
                yield CallList(self.clock, id="calls")
            with Vertical(id="right"):
                yield CallPanel(id="call")
                yield OutputArea(self.pens, id="output")
        yield Footer()

    def on_mount(self) -> None:
        """Follow the events, and let ages grow."""
        self.query_one(OutputArea).display = False
        calls = self.query_one(CallList)
        calls.standing_still = self.run_watch.standing_still
        calls.show(self._roster)
        self.run_watch.begin()
        self.run_worker(self._follower.run(), name="follow", group="follow")
        self.set_interval(1.0, self._tick)
        self.caller.begin()
        self.refresh_status()
        self.post_message(Opened())

    def on_screen_suspend(self) -> None:
        """Something lies over the calls."""
        self.deciding.guard.covered()

    def on_screen_resume(self) -> None:
        """The calls are in view again."""
        self.deciding.guard.uncovered()

    def on_unmount(self) -> None:
        """Nobody is called any more."""
        self.caller.end()

    @property
    def supervision(self) -> Supervision:
        """Whom to ask; another one after a reconnection."""
        return self._follower.supervision

    @property
    def board(self) -> Board:
        """Everything as it is now."""
        return self._follower.board

    @property
    def roster(self) -> Roster:
        """The calls as they are listed."""
        return self._roster

    @property
    def shown(self) -> CallRecord | None:
        """The call as it is on the screen; decisions are about this and nothing newer."""
        return self.query_one(CallPanel).record

    def session_name(self, record: CallRecord) -> str:
        """The name of the session that a call belongs to, fit to be shown."""
        return called(self.board.sessions.get(record.call.session_id), record.call.session_id)

    def tell(self, text: str, *, severity: SeverityLevel = "information") -> None:
        """Say something in passing."""
        self.notify(in_passing(text), severity=severity, markup=False, timeout=4 if severity == "information" else 10)

    def leave(self, call_id: str) -> None:
        """This call is decided: go on to the next one that waits."""
        go_on(self.query_one(CallList), self._roster, call_id)

    def refresh_call(self) -> None:
        """Show the selected call as the board knows it now."""
        call_id = self.query_one(CallList).selected
        record = self.board.calls.get(call_id) if call_id is not None else None
        session = self.board.sessions.get(record.call.session_id) if record is not None else None
        before = self.shown
        recent = self._roster.beside(record) if record is not None else ()
        if record is None:
            self.query_one(CallPanel).show(None, None, self.clock())
        else:
            still, silent = self.run_watch.standing_still(record)
            drawn, note = self._unmasking.shown(record), self._unmasking.note(record, self._key_of("reveal"))
            self.query_one(CallPanel).show(
                record, session, self.clock(), recent, drawn=drawn, note=note, still=still, silent_since=silent
            )
        self.deciding.guard.shows(record, choice=self.query_one(CallList).choice)
        output = self.query_one(OutputArea)
        output.show(self.supervision, record)
        self._share_height()
        if _kind(before) != _kind(record):
            self.refresh_bindings()

    def _stands_still(self, need_input: list[CallRecord]) -> None:
        """Other runs stand still than before; these have begun to need input."""
        self.query_one(CallList).refresh()
        self.refresh_call()
        self.refresh_status()
        self.caller.need_input(need_input)

    def _key_of(self, command_id: str) -> str:
        return in_force(self.app).command(BY_ID[command_id]).key_name

    def _reveal(self) -> None:
        if (record := self.shown) is not None:
            self.tell(self._unmasking.reveal(record))

    def on_resize(self) -> None:
        """The call and its output share what there is, if it is enough to read a command."""
        columns, rows = self.size
        too_small = columns < LEAST_COLUMNS or rows < LEAST_ROWS
        self.set_class(too_small, "-too-small")
        if too_small:
            least = f"{LEAST_COLUMNS} columns and {LEAST_ROWS} rows"
            self.query_one("#too-small", Static).update(Content(f"Too small: whisper_tui needs {least}."))
        self._share_height()

    def _share_height(self) -> None:
        beside = self.size.width >= THREE_COLUMNS or not self.query_one(OutputArea).display
        room = None if beside else round(self.query_one("#right").size.height * CALL_SHARE)
        self.query_one(CallPanel).leave_room(room)

    async def action_command(self, command_id: str) -> None:
        """Do what a key, a button or the palette asks for."""
        if not available(BY_ID[command_id], self.shown):
            self.tell(why_not(BY_ID[command_id], self.shown))
            return
        result = self.does[command_id]()
        if isawaitable(result):
            await result

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a person types into a terminal no key is a command; one that means nothing now says why.

        The footer is an exception: it lists what means something.
        """
        if action != "command" or not self.is_mounted:
            return True
        if self.query_one(OutputArea).terminal.typing:
            return False
        command = BY_ID[str(parameters[0])]
        return available(command, self.shown) or not command.in_footer

    @on(BoardChanged)
    def _board_changed(self) -> None:
        changed = self._follower.take_changes()
        calls = self.query_one(CallList)
        before = self._roster.place_of(calls.selected) if calls.selected is not None else None
        self._roster.update(changed)
        if self.app.screen is self:
            stay_with_the_queue(calls, self._roster, before)
        calls.changed()
        if self.shown is None or not self._told_of(self.shown).isdisjoint(changed):
            self.refresh_call()
        self.caller.changed(changed)
        self.deciding.changed(changed)
        self.refresh_status()

    def _told_of(self, record: CallRecord) -> set[str | None]:
        """The calls of which something is said beside a call: itself, and the last others of its session."""
        return {self.query_one(CallList).selected, *(each.id for each in self._roster.beside(record))}

    @on(CallSelected)
    def _call_selected(self) -> None:
        self.refresh_call()

    @on(CommandWanted)
    async def _command_wanted(self, message: CommandWanted) -> None:
        await self.action_command(message.command_id)

    @on(ConnectionLost)
    def _connection_lost(self, message: ConnectionLost) -> None:
        self._connected = False
        self.deciding.undoing.drop_all("the connection was lost")
        self.query_one(Banner).lost(message.error, message.retry_in_s)
        self.refresh_status()

    @on(Connected)
    def _connected_again(self) -> None:
        self._connected = True
        self.deciding.guard.lost_sight()
        self.query_one(Banner).back()
        self._roster = Roster(self._follower.board, self._roster.grouping)
        self._roster.narrow(self.query_one(FilterBar).value)
        self.query_one(OutputArea).forget()
        self.query_one(CallList).show(self._roster, self.query_one(CallList).selected)
        self.refresh_call()
        self.refresh_status()

    @on(FilterChanged)
    def _filter_changed(self, message: FilterChanged) -> None:
        self._roster.narrow(message.text)
        calls = self.query_one(CallList)
        if calls.selected is None or not self._roster.passes(calls.selected):
            calls.select(self._roster.first(), by_hand=False)
        calls.regroup()

    @on(SearchBar.Wanted)
    def _search_wanted(self, message: SearchBar.Wanted) -> None:
        self.query_one(CallList).focus()
        self._showing.find(message.words)

    @on(FilterLeft)
    def _filter_left(self) -> None:
        self.query_one(CallList).focus()

    def recolour(self, pens: Pens) -> None:
        """Draw output in the colours of another theme."""
        self.pens = pens
        self.query_one(OutputArea).recolour(pens)

    def _tick(self) -> None:
        """A second has passed: ages are another."""
        if self.app.screen is not self:
            return
        self.query_one(CallList).refresh()
        self.refresh_status()
        if (record := self.shown) is not None and record.is_open:
            self.refresh_call()

    def refresh_status(self) -> None:
        """Draw the numbers of the first line as they are now."""
        status, who, hushed = self.query_one(StatusBar), visible(self.me.who), self.caller.hushed
        board, need_input = self.board, len(self.run_watch.need_input)
        paused = sum(1 for id_ in board.running if self.run_watch.is_still(board.calls[id_]))
        status.counts(
            self._roster.totals,
            connected=self._connected,
            who=who,
            hushed=hushed,
            paused=paused,
            need_input=need_input,
        )
        self.title = Content(f"{self._roster.totals['waiting']} waiting").plain


def _kind(record: CallRecord | None) -> tuple[str, bool] | None:
    """What decides which commands mean anything."""
    return (record.state.kind, record.is_open) if record is not None else None
