"""The history screen: all calls on the left, the selected one on the right; and the statistics of a session."""

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.css.query import NoMatches
from textual.widgets import Input

from whisper_tui.export.session_story import PAGE, Statistics, newest_first
from whisper_tui.model.api import HistoryQuery, Supervision
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.model.text import visible
from whisper_tui.present.call_text import describe, heading
from whisper_tui.present.preview_text import on_record_paragraphs
from whisper_tui.present.quantities import count, date_and_time, duration
from whisper_tui.present.session_text import session_words
from whisper_tui.present.spans import BLANK, Line, Paragraph, Span
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit.call_card import RevealedSecrets, answer_paragraphs
from whisper_tui.tui.cockpit.preview_card import PreviewFacts
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import can_take_back, in_force
from whisper_tui.tui.commands.change_commands import go_to_place
from whisper_tui.tui.commands.change_taker import ChangeTaker
from whisper_tui.tui.commands.run_commands import request_of, why_not_again
from whisper_tui.tui.dialogs.dialog import Dialog, StyleFiles
from whisper_tui.tui.dialogs.file_dialogs import ask_for_export
from whisper_tui.tui.dialogs.help_dialog import screen_help
from whisper_tui.tui.edit_diff import EditFacts
from whisper_tui.tui.keyed_screen import KeyFooter
from whisper_tui.tui.lines import LineView
from whisper_tui.tui.output.output_area import OutputArea
from whisper_tui.tui.output.painter import Pens
from whisper_tui.tui.pane_zoom import PaneZoom
from whisper_tui.tui.paragraphs_view import ParagraphsView
from whisper_tui.tui.screens.command_screen import HISTORY, CommandScreen
from whisper_tui.tui.screens.past_calls import FilterButtons, PastList, SearchBox, know_session, last_line
from whisper_tui.tui.screens.past_search import AHEAD, NEXT, Filters, MergedPastCalls, PastCalls
from whisper_tui.tui.screens.replay import BUTTONS, ReplayArea
from whisper_tui.tui.screens.rule_dialogs import WhyScreen

LABEL = 24


class StatisticsScreen(Dialog[None]):
    """The statistics of one session."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss", "../styles/statistics.tcss"]
    LEAVE = "Close"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("i,q", "leave", "Close")]

    def __init__(self, supervision: Supervision, session_id: str, name: str) -> None:
        super().__init__()
        self._supervision = supervision
        self._session_id = session_id
        self._called = name
        self.statistics = Statistics()

    def compose(self) -> ComposeResult:
        """The figures and a note about them."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"Statistics of session {visible(self._called)}")
            yield ParagraphsView(id="figures")
            yield from self.buttons()

    def on_mount(self) -> None:
        """Start reading the history."""
        self._show("Reading …")
        self.run_worker(self._read(), name="figures")

    async def _read(self) -> None:
        query = HistoryQuery(limit=PAGE, session_id=self._session_id)
        # Widgets go one after the other when the dialog closes, and this may still be reading then.
        with suppress(NoMatches):
            try:
                async for page in newest_first(self._supervision, query):
                    for record in page:
                        self.statistics.add(record)
                    self._show("Reading …")
            except WhisperError as error:
                self._show(error_text(error))
            else:
                self._show("")

    def _show(self, state: str) -> None:
        view = self.query_one(ParagraphsView)
        view.show(figures_paragraphs(self.statistics, state), from_top=False)


def figures_paragraphs(found: Statistics, state: str) -> tuple[Paragraph, ...]:
    """Return the figures, and a note about how they are computed."""
    wait, saved = found.median_wait_s, found.saved_s
    rows = (
        ("Calls", f"{found.calls:,}"),
        ("A human was asked", f"{found.asked:,}"),
        ("  approved", f"{found.approved:,}" + (f", {found.edited:,} of them edited" if found.edited else "")),
        ("  denied", f"{found.denied:,}"),
        ("  still waiting", f"{found.waiting:,}"),
        ("Allowed by rules", f"{found.allowed_by_rule:,}"),
        ("Refused by rules", f"{found.refused_by_rule:,}"),
        ("Allowed by approvals", f"{found.allowed_by_memory:,}"),
        ("Median time to decide", duration(wait) if wait is not None else "no decision yet"),
        ("Saved by approvals", duration(saved) if saved is not None else "unknown yet"),
    )
    note = (
        "The time to decide runs from a call's arrival to the human's decision. The time saved is that median for"
        " each call that a standing approval let through."
    )
    found_rows = [
        Paragraph((Span(value, "strong"),), margin=(Span(f" {label:<{LABEL}}", "label"),)) for label, value in rows
    ]
    return (*found_rows, BLANK, Paragraph((Span(note, "muted"),), margin=(Span(" "),)), *_state(state))


def _state(state: str) -> tuple[Paragraph, ...]:
    return (BLANK, Paragraph((Span(state, "waiting"),), margin=(Span(" "),))) if state else ()


SKIP_S = 5.0
"""Seconds of one skip."""
TYPING_S = 0.25
"""Debounce: seconds after the last typed letter until the search starts."""
ON_A_CALL = frozenset(
    f"history-{name}" for name in ("session", "machine", "again", "reveal", "figures", "why", "export")
)


class HistoryScreen(CommandScreen):
    """Connects the search, the list, the call and the player."""

    TABLE = HISTORY
    BINDINGS = [command.binding() for command in HISTORY]  # noqa: RUF012
    CSS_PATH = "../styles/history.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (160, "-wide")]  # noqa: RUF012
    AUTO_FOCUS = "#past"

    def __init__(self, cockpit: CockpitContext, pens: Pens, machines: Collection[str] = ()) -> None:
        """`machines`: those of a cockpit over several."""
        super().__init__()
        self._cockpit = cockpit
        self._pens = pens
        self.filters = Filters()
        self._machines = machines
        self.record: CallRecord | None = None
        """The call as shown on the screen."""
        self._told: tuple[Paragraph, ...] = ()
        """The answer that its agent got, once that is known."""
        self._past = self._new_past()
        self._loading = False
        self._problem = ""
        around = ("#past", "#past-search", "#past-filters")
        self._zoom = PaneZoom(self, ("#past-heading", "#past-detail"), "#past-replay", around)
        self._unmasking = RevealedSecrets(self, lambda: self._show_record(self.record, from_top=False))
        self._edits = EditFacts(cockpit, lambda: self._show_record(self.record, from_top=False))
        self._previews = PreviewFacts(cockpit, lambda: self._show_record(self.record, from_top=False))
        self._taker = ChangeTaker(cockpit, self._renew)
        self.does = self._what_is_done()

    def _what_is_done(self) -> dict[str, Callable[[], object]]:
        """The handlers of commands, by command id."""
        found: dict[str, Callable[[], object]] = {
            "history-search": lambda: self.set_focus(self.query_one(SearchBox)),
            "history-session": self._only_session,
            "history-machine": self._only_machine,
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
            "history-next-hunk": lambda: self._go(1, files=False),
            "history-previous-hunk": lambda: self._go(-1, files=False),
            "history-next-file": lambda: self._go(1, files=True),
            "history-previous-file": lambda: self._go(-1, files=True),
            "history-take-back": self._take_back,
            "history-again": self._run_again,
            "history-reveal": self._reveal,
            "history-why": self._why,
            "history-figures": self._figures,
            "history-export": self._export,
            "history-help": lambda: screen_help(self, "history", HISTORY, self.why_not),
            "history-zoom": lambda: self._zoom.step(1),
            "history-leave": self._leave,
        }
        return found | {f"history-{name}": partial(self._choose, name) for name in NEXT}

    def _go(self, direction: int, *, files: bool) -> None:
        go_to_place(self._cockpit, self.query_one("#past-detail", ParagraphsView), direction, files=files)

    def _choose(self, name: str) -> None:
        """Set the next choice of a filter."""
        self.look(NEXT[name](self.filters))

    def compose(self) -> ComposeResult:
        """Search and filters, the list, the call, its output, keys."""
        yield LineView(id="past-status")
        yield SearchBox(placeholder="/ searches all calls", compact=True, id="past-search")
        yield FilterButtons(id="past-filters")
        with Horizontal(id="past-body"):
            yield PastList(self._cockpit.clock, id="past")
            with Vertical(id="past-call"):
                yield LineView(id="past-heading")
                yield ParagraphsView(id="past-detail")
                yield ReplayArea(self._pens, self._cockpit.clock, id="past-replay")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Load the newest calls."""
        self.query_one(SearchBox).cursor_blink = False
        self.query_one("#past-detail", ParagraphsView).resized = self._lay_out
        self.run_worker(self._show(None), name="show", group="show", exclusive=True)
        self.set_interval(1.0, self._tick)
        self.look(self.filters)

    def means_something(self, command_id: str) -> bool:
        """False for commands that need a call, or one that ran, where there is none."""
        if command_id == "history-machine" and not self._machines:
            return False
        if command_id in ON_A_CALL:
            return self.record is not None
        if command_id == "history-take-back":
            return self.record is not None and isinstance(self.record.state, Ended) and can_take_back(self.record)
        ran = self.record is not None and self.record.process is not None
        return ran or command_id not in BUTTONS

    def _play(self) -> None:
        self._replay.toggle()

    @property
    def _replay(self) -> ReplayArea:
        return self.query_one(ReplayArea)

    def look(self, filters: Filters) -> None:
        """Search with other filters, from the newest call."""
        self.filters = filters
        self._past = self._new_past()
        self._problem = ""
        self.query_one(FilterButtons).show(filters, self._session_name(filters.session_id or ""))
        self._draw_list(anew=True)
        self._look_on()

    def _new_past(self) -> PastCalls | MergedPastCalls:
        cockpit = self._cockpit

        def past(filters: Filters) -> PastCalls:
            return PastCalls(cockpit.supervision, filters, me=cockpit.me.who, clock=cockpit.clock)

        if not self._machines or self.filters.machine:
            return past(self.filters)
        return MergedPastCalls({name: past(replace(self.filters, machine=name)) for name in self._machines})

    def _look_on(self) -> None:
        self._loading = True
        self.run_worker(self._look(self._past), name="look", group="look", exclusive=True)

    async def _look(self, past: PastCalls | MergedPastCalls) -> None:
        # Widgets go one after the other when the screen closes, and this may still be searching then.
        with suppress(NoMatches):
            try:
                async for _ in past.more(len(past.found) + AHEAD):
                    self._draw_list()
            except WhisperError as error:
                self._problem = error_text(error)
            self._loading = False
            self._draw_list()

    @on(PastList.MoreNeeded)
    def _more_needed(self) -> None:
        if not self._loading and not self._past.ended and not self._problem:
            self._look_on()

    def _draw_list(self, *, anew: bool = False) -> None:
        past = self._past
        back_to = date_and_time(past.back_to) if past.back_to is not None else ""
        looked = f"{count(past.looked_at, 'call')} searched, back to {back_to}" if back_to else ""
        calls = self.query_one(PastList)
        calls.hosts = () if self.filters.machine else self._machines
        calls.show(past.found, last_line(past, looked, self._problem, loading=self._loading), anew=anew)
        number = count(len(past.found), "call") + ("" if past.ended else " so far")
        of = self.filters.machine or (count(len(self._machines), "machine") if self._machines else "")
        whose = f"  history of {of}  " if of else "  history  "
        left: Line = (Span(" whisper_tui ", "strong"), Span(whose, "running"), Span(number, "text"))
        self.query_one("#past-status", LineView).show(left, (Span(looked + " ", "muted"),))

    @on(Input.Changed, "#past-search")
    def _typed(self, event: Input.Changed) -> None:
        text = event.value
        # Every timer runs out, but only the one whose text is still in the field searches.
        self.set_timer(TYPING_S, lambda: self._look_for(text))

    def _look_for(self, text: str) -> None:
        if self.query_one(SearchBox).value == text != self.filters.text:
            self.look(replace(self.filters, text=text))

    def _clear(self) -> None:
        self.query_one(SearchBox).value = ""
        self.look(Filters())

    def _only_machine(self) -> None:
        if self.record is not None:
            self.look(replace(self.filters, machine="" if self.filters.machine else self.record.host, session_id=None))

    def _only_session(self) -> None:
        if self.filters.session_id is not None:
            self.look(replace(self.filters, session_id=None))
        elif self.record is not None:
            self.look(replace(self.filters, session_id=self.record.call.session_id, machine=self.record.host))

    def _session_name(self, session_id: str) -> str:
        session = self._cockpit.board.sessions.get(session_id)
        return session_words(session, session_id)

    @on(PastList.Selected)
    def _selected(self, message: PastList.Selected) -> None:
        self.run_worker(self._show(message.call_id), name="show", group="show", exclusive=True)

    async def _show(self, call_id: str | None) -> None:
        supervision = self._cockpit.supervision
        try:
            record = await supervision.record(call_id) if call_id is not None else None
            if record is not None:
                await know_session(record.call.session_id, self._cockpit.board, supervision)
            self._told = ()
            self._show_record(record, from_top=True)
            self.refresh_bindings()
            await self.query_one(ReplayArea).show(supervision, record)
            self._zoom.apply()
            if record is not None and (told := await answer_paragraphs(self._cockpit, record)):
                self._told = told
                self._show_record(record, from_top=False)
        except NoMatches:
            # Widgets go one after the other when the screen closes, and this may still be reading then.
            return
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="warning")

    def _show_record(self, record: CallRecord | None, *, from_top: bool) -> None:
        self.record = record
        if record is None:
            self.query_one("#past-heading", LineView).show((Span(" No call", "strong"),))
            self.query_one("#past-detail", ParagraphsView).show((), from_top=True)
            return
        session, now = self._cockpit.board.sessions.get(record.call.session_id), self._cockpit.clock()
        self.query_one("#past-heading", LineView).show((Span(" "), *heading(record, now)))
        key = in_force(self.app).by_id("history-reveal").key_name
        note, shown = self._unmasking.note(record, key), self._unmasking.shown(record)
        view = self.query_one("#past-detail", ParagraphsView)
        diff = self._edits.paragraphs(record, shown, view.columns)
        keys = {"revert-edit": in_force(self.app).by_id("history-take-back").key_name}
        listed, differences = self._previews.paragraphs(record, view.columns, keys, mask=shown is not record)
        preview = (*on_record_paragraphs(record), *listed)
        facts = describe(shown, session, now, told=self._told, diff=diff, preview=preview, changes=differences)
        view.show((*note, *facts), from_top=from_top)

    def _lay_out(self) -> None:
        """Lay out differences for the width that there is now."""
        if self.record is not None:
            self._show_record(self.record, from_top=False)

    async def _tick(self) -> None:
        """Refresh a call that is still open."""
        record = self.record
        if record is None or not record.is_open or not self.is_active:
            return
        with suppress(WhisperError):
            newer = await self._cockpit.supervision.record(record.id)
            # Another call was selected while the supervisor answered.
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
        if (problem := why_not_again(record, session)) is not None:
            self._cockpit.tell(problem, severity="warning")
            return
        try:
            call_id = await self._cockpit.supervision.submit(request_of(record))
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="warning")
        else:
            self._cockpit.tell(f"Call {call_id} requests the same command; the policy judges it like any other.")

    async def _take_back(self) -> None:
        if self.record is not None:
            await self._taker.take_back(self.record)

    def _renew(self) -> None:
        """Show the call as it is now, after its changes were undone."""
        if self.record is not None:
            self.run_worker(self._show(self.record.id), name="show", group="show", exclusive=True)

    def _reveal(self) -> None:
        if self.record is not None:
            self._cockpit.tell(self._unmasking.reveal(self.record))

    def _why(self) -> None:
        if self.record is not None:
            self.app.push_screen(WhyScreen(self._cockpit, self.record))

    def _figures(self) -> None:
        if self.record is not None:
            session_id = self.record.call.session_id
            name = self._session_name(session_id)
            self.app.push_screen(StatisticsScreen(self._cockpit.supervision, session_id, name))

    def _leave(self) -> None:
        if not self._zoom.back():
            self.dismiss(None)

    def _export(self) -> None:
        if self.record is not None:
            ask_for_export(self._cockpit, self.record)
