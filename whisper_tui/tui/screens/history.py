"""The history: every call ever on the left, the selected one in full on the right, its output played again."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Footer, Input

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord
from whisper_tui.tui.commands.history import HISTORY
from whisper_tui.tui.describe import describe, heading
from whisper_tui.tui.history.chips import Chips
from whisper_tui.tui.history.filters import NEXT, Filters
from whisper_tui.tui.history.past_calls import AHEAD, PastCalls
from whisper_tui.tui.history.past_list import PastList
from whisper_tui.tui.history.past_sessions import know_session
from whisper_tui.tui.history.replay_area import BUTTONS, ReplayArea
from whisper_tui.tui.history.times import day_time
from whisper_tui.tui.keymap import in_force
from whisper_tui.tui.retrying import again, why_not
from whisper_tui.tui.screens.command_screen import CommandScreen
from whisper_tui.tui.screens.export import ask_for_export
from whisper_tui.tui.screens.help import HelpScreen
from whisper_tui.tui.screens.statistics import StatisticsScreen
from whisper_tui.tui.spans import Line, Span, said
from whisper_tui.tui.unmasking import Unmasking
from whisper_tui.tui.widgets.line_view import LineView
from whisper_tui.tui.widgets.output_area import OutputArea
from whisper_tui.tui.widgets.paragraphs_view import ParagraphsView
from whisper_tui.tui.words import called, count, told

if TYPE_CHECKING:
    from whisper_tui.tui.screens.cockpit import CockpitScreen

REVEAL = next(command for command in HISTORY if command.id == "history-reveal")
SKIP_S = 5.0
"""Seconds that one key goes back or on."""
TYPING_S = 0.25
"""Seconds after the last letter until it is looked for."""
ON_A_CALL = frozenset({"history-session", "history-again", "history-reveal", "history-figures", "history-export"})


class SearchBox(Input):
    """Where words are typed; Esc and Enter give the focus back to the list."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,down", "done", "To the list", show=False)]

    def action_done(self) -> None:
        """Look at what was found."""
        self.screen.query_one(PastList).focus()


class HistoryScreen(CommandScreen):
    """Routes between the search, the list, the call and the player."""

    TABLE = HISTORY
    BINDINGS = [command.binding() for command in HISTORY]  # noqa: RUF012
    CSS_PATH = "history.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (160, "-wide")]  # noqa: RUF012
    AUTO_FOCUS = "#past"

    def __init__(self, cockpit: "CockpitScreen") -> None:
        super().__init__()
        self._cockpit = cockpit
        self.filters = Filters()
        self.record: CallRecord | None = None
        """The call as it is on the screen."""
        self._past = self._new_past()
        self._looking = False
        self._problem = ""
        self._unmasking = Unmasking(self, lambda: self._show_record(self.record, from_top=False))
        self.does = self._what_is_done()

    def _what_is_done(self) -> dict[str, Callable[[], object]]:
        """What each command does, by its id."""
        found: dict[str, Callable[[], object]] = {
            "history-search": lambda: self.set_focus(self.query_one(SearchBox)),
            "history-session": self._only_session,
            "history-clear": self._clear,
            "history-reload": lambda: self.look(self.filters),
            "history-play": self._play,
            "history-faster": lambda: self._replay.faster(1),
            "history-slower": lambda: self._replay.faster(-1),
            "history-back": lambda: self._replay.skip(-SKIP_S),
            "history-ahead": lambda: self._replay.skip(SKIP_S),
            "history-begin": lambda: self._replay.to(0),
            "history-finish": lambda: self._replay.to(float("inf")),
            "history-layout": lambda: self.query_one(OutputArea).choose_next(),
            "history-again": self._run_again,
            "history-reveal": self._reveal,
            "history-figures": self._figures,
            "history-export": self._export,
            "history-help": lambda: self.app.push_screen(HelpScreen(HISTORY)),
            "history-leave": lambda: self.dismiss(None),
        }
        return found | {f"history-{name}": partial(self._choose, name) for name in NEXT}

    def _choose(self, name: str) -> None:
        """The next choice of a filter."""
        self.look(NEXT[name](self.filters))

    def compose(self) -> ComposeResult:
        """Search and filters, the list, the call, its output, keys."""
        yield LineView(id="past-status")
        yield SearchBox(placeholder="words in any call ever: press /", compact=True, id="past-search")
        yield Chips(id="past-filters")
        with Horizontal(id="past-body"):
            yield PastList(self._cockpit.clock, id="past")
            with Vertical(id="past-call"):
                yield LineView(id="past-heading")
                yield ParagraphsView(id="past-detail")
                yield ReplayArea(self._cockpit.pens, self._cockpit.clock, id="past-replay")
        yield Footer()

    def on_mount(self) -> None:
        """Look for the newest calls."""
        self.query_one(SearchBox).cursor_blink = False
        self.run_worker(self._show(None), name="show", group="show", exclusive=True)
        self.set_interval(1.0, self._tick)
        self.look(self.filters)

    def means_something(self, command_id: str) -> bool:
        """Some commands need a call, some one that ran."""
        if command_id in ON_A_CALL:
            return self.record is not None
        ran = self.record is not None and self.record.process is not None
        return ran or command_id not in BUTTONS

    def _play(self) -> None:
        self._replay.toggle()

    @property
    def _replay(self) -> ReplayArea:
        return self.query_one(ReplayArea)

    def look(self, filters: Filters) -> None:
        """Look for other calls, the newest first."""
        self.filters = filters
        self._past = self._new_past()
        self._problem = ""
        self.query_one(Chips).show(filters, self._session_name(filters.session_id or ""))
        self._draw_list(anew=True)
        self._look_on()

    def _new_past(self) -> PastCalls:
        cockpit = self._cockpit
        return PastCalls(cockpit.supervision, self.filters, me=cockpit.me.who, clock=cockpit.clock)

    def _look_on(self) -> None:
        self._looking = True
        self.run_worker(self._look(self._past), name="look", group="look", exclusive=True)

    async def _look(self, past: PastCalls) -> None:
        try:
            async for _ in past.more(len(past.found) + AHEAD):
                self._draw_list()
        except WhisperError as error:
            self._problem = told(error)
        self._looking = False
        self._draw_list()

    @on(PastList.Wanted)
    def _more_wanted(self) -> None:
        if not self._looking and not self._past.ended and not self._problem:
            self._look_on()

    def _draw_list(self, *, anew: bool = False) -> None:
        past = self._past
        looked = f"looked at {past.looked_at:,} back to {day_time(past.back_to)}" if past.back_to is not None else ""
        self.query_one(PastList).show(past.found, self._last_line(past, looked), anew=anew)
        number = count(len(past.found), "call") + ("" if past.ended else " so far")
        left: Line = (Span(" whisper_tui ", "strong"), Span("  history  ", "running"), Span(number, "text"))
        self.query_one("#past-status", LineView).show(left, (Span(looked + " ", "muted"),))

    def _last_line(self, past: PastCalls, looked: str) -> Line:
        if self._problem:
            return said(self._problem, "bad")
        if self._looking:
            return (Span("… " + (looked or "looking"), "muted"),)
        if not past.found:
            return (Span("Nothing was found.", "muted"),)
        return (Span("That is all.", "muted"),) if past.ended else (Span("… and older ones", "muted"),)

    @on(Input.Changed, "#past-search")
    def _typed(self, event: Input.Changed) -> None:
        text = event.value
        self.set_timer(TYPING_S, lambda: self._look_for(text))

    def _look_for(self, text: str) -> None:
        if self.query_one(SearchBox).value == text != self.filters.text:
            self.look(replace(self.filters, text=text))

    def _clear(self) -> None:
        self.query_one(SearchBox).value = ""
        self.look(Filters())

    def _only_session(self) -> None:
        if self.filters.session_id is not None:
            self.look(replace(self.filters, session_id=None))
        elif self.record is not None:
            self.look(replace(self.filters, session_id=self.record.call.session_id))

    def _session_name(self, session_id: str) -> str:
        session = self._cockpit.board.sessions.get(session_id)
        return called(session, session_id)

    @on(PastList.Selected)
    def _selected(self, message: PastList.Selected) -> None:
        self.run_worker(self._show(message.call_id), name="show", group="show", exclusive=True)

    async def _show(self, call_id: str | None) -> None:
        supervision = self._cockpit.supervision
        try:
            record = await supervision.record(call_id) if call_id is not None else None
            if record is not None:
                await know_session(record.call.session_id, self._cockpit.board, supervision)
            self._show_record(record, from_top=True)
            self.refresh_bindings()
            await self.query_one(ReplayArea).show(supervision, record)
        except WhisperError as error:
            self._cockpit.tell(told(error), severity="warning")

    def _show_record(self, record: CallRecord | None, *, from_top: bool) -> None:
        self.record = record
        if record is None:
            self.query_one("#past-heading", LineView).show((Span(" No call", "strong"),))
            self.query_one("#past-detail", ParagraphsView).show((), from_top=True)
            return
        session, now = self._cockpit.board.sessions.get(record.call.session_id), self._cockpit.clock()
        self.query_one("#past-heading", LineView).show((Span(" "), *heading(record, now)))
        key = in_force(self.app).command(REVEAL).key_name
        note, shown = self._unmasking.note(record, key), self._unmasking.shown(record)
        paragraphs = (*note, *describe(shown, session, now))
        self.query_one("#past-detail", ParagraphsView).show(paragraphs, from_top=from_top)

    async def _tick(self) -> None:
        """A second has passed: what is still open may have gone on."""
        record = self.record
        if record is None or not record.is_open or self.app.screen is not self:
            return
        with suppress(WhisperError):
            newer = await self._cockpit.supervision.record(record.id)
            if self.record is not record:
                return
            if record.process is None and newer.process is not None:
                await self._show(record.id)
                return
            self._show_record(newer, from_top=False)
            await self.query_one(ReplayArea).grown(newer)

    async def _run_again(self) -> None:
        record = self.record
        if record is None:
            return
        session = self._cockpit.board.sessions.get(record.call.session_id)
        if (problem := why_not(record, session)) is not None:
            self._cockpit.tell(problem, severity="warning")
            return
        try:
            call_id = await self._cockpit.supervision.submit(again(record))
        except WhisperError as error:
            self._cockpit.tell(told(error), severity="warning")
        else:
            self._cockpit.tell(f"Call {call_id} asks for it once more; the policy judges it like any other.")

    def _reveal(self) -> None:
        if self.record is not None:
            self._cockpit.tell(self._unmasking.reveal(self.record))

    def _figures(self) -> None:
        if self.record is not None:
            session_id = self.record.call.session_id
            name = self._session_name(session_id)
            self.app.push_screen(StatisticsScreen(self._cockpit.supervision, session_id, name))

    def _export(self) -> None:
        if self.record is not None:
            ask_for_export(self._cockpit, self.record)
