"""The lines above and below the calls: connection, problems, notices, versions, and recent decisions."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.geometry import Size
from textual.widgets import Button, Static
from textual.worker import Worker

from whisper_tui.model.api import Supervision, SupervisorStatus
from whisper_tui.model.call import UnaskedLevel
from whisper_tui.model.decision import Approve
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.preview import NOT_POSSIBLE
from whisper_tui.model.run import Stream
from whisper_tui.model.state import CallRecord, Ended, HostState, PlaceState
from whisper_tui.model.text import one_line_beginning, visible
from whisper_tui.present.call_text import standing
from whisper_tui.present.command_text import call_line
from whisper_tui.present.ending_text import away_text, ending_word, went_well
from whisper_tui.present.quantities import clock_time, count, duration, limit
from whisper_tui.present.spans import Line, Role, Span, said
from whisper_tui.present.unasked_text import level_words
from whisper_tui.present.words import error_text, toast_text
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.cockpit.call_panel import ActionBar
from whisper_tui.tui.cockpit.grouped_rows import Section
from whisper_tui.tui.cockpit.notices import FirstHints
from whisper_tui.tui.cockpit_context import CockpitContext, CommandRequested
from whisper_tui.tui.command_definition import in_force
from whisper_tui.tui.lines import LineView
from whisper_tui.tui.output.ansi import plain_with_colours
from whisper_tui.tui.output.output_search import ERRORS

_WORDS: tuple[tuple[Section, str, str, Role], ...] = (
    ("waiting", "◆", "waiting", "waiting"),
    ("aside", "◈", "set aside", "muted"),
    ("queued", "◇", "in the queue", "running"),
    ("running", "▶", "running", "running"),
    ("behind", "●", "in the background", "behind"),
)


class StatusBar(LineView):
    """Counts of open calls on the left, the connection on the right."""

    hosts: tuple[HostState, ...] = ()
    """The machines, if the cockpit shows several."""
    level: UnaskedLevel | None = None
    """How much runs unasked in sessions for which nothing is said. None: not known."""

    def counts(
        self,
        totals: dict[Section, int],
        *,
        complete: bool,
        connected: bool,
        who: str,
        hushed: str = "",
        paused: int = 0,
        need_input: int = 0,
        unreviewed: int = 0,
    ) -> None:
        """Draw new numbers, which are not all yet unless `complete`.

        `hushed`: why notifications are off, if they are; `paused`: how many runs are paused; `unreviewed`: how many
        calls have changed files unasked that nobody has looked at.
        """
        so_far = f"  {totals['waiting']:,} waiting so far" if totals["waiting"] else ""
        loading = (Span(f"  loading…{so_far}", "muted"),)
        numbers: Line = tuple(_numbers(totals, paused, need_input)) if complete else loading
        if unreviewed and complete:
            numbers = (*numbers, Span("  "), Span(f"✎ {unreviewed:,} to review", "behind"))
        hosts, reached = self.hosts, sum(1 for host in self.hosts if host.reached)
        state: Line = (Span("● connected", "good"),) if connected else (Span("○ not connected", "bad"),)
        if hosts and connected:
            some = (Span(f"○ {reached} of {len(hosts)} machines connected", "bad"),)
            state = (Span(f"● {reached} machines connected", "good"),) if reached == len(hosts) else some
        quiet: Line = (Span(f"{hushed}  ", "behind"),) if hushed else ()
        # The usual level is not said.
        if self.level is not None and self.level.level != "reading":
            quiet = (*quiet, Span(f"{level_words(self.level)}  ", "waiting"))
        self.show((Span(" whisper_tui ", "strong"), *numbers), (*quiet, Span(f"{who}  ", "muted"), *state, Span(" ")))


def _numbers(totals: dict[Section, int], paused: int, need_input: int) -> Iterator[Span]:
    for section, mark, word, role in _WORDS:
        number = totals[section]
        if number or section == "waiting":
            yield from (Span("  "), Span(f"{mark} {number:,} {word}", role if number else "muted"))
        if section == "waiting" and need_input:
            needs = "needs input" if need_input == 1 else "need input"
            yield from (Span("  "), Span(f"◆ {need_input:,} {needs}", "waiting"))
        if section == "running" and paused:
            yield Span(f", {'all' if paused == number else f'{paused:,}'} paused", "waiting")


class Banner(Static):
    """A bar that reports a lost connection, and when the next attempt to reconnect is."""

    def lost(self, error: WhisperError, retry_in_s: float | None) -> None:
        """Show that the connection is lost."""
        quit_ = "Quit with q and start whisper-tui again."
        then = quit_ if retry_in_s is None else f"Trying again in {limit(retry_in_s)}."
        # A hint says what to do, and often that commands keep running.
        comfort = "" if error.hint else "Commands keep running. "
        self.update(Content(f"✘ {error_text(error)} {comfort}{then}"))
        self.display = True

    def back(self) -> None:
        """Hide the bar."""
        self.display = False


LEAST_COLUMNS, LEAST_ROWS = 40, 12
"""The smallest terminal in which a command can be read."""


class TooSmall(Static):
    """Covers the cockpit where a command could not be read."""

    def on_mount(self) -> None:
        """Name the least size."""
        needed = f"{LEAST_COLUMNS} columns and {LEAST_ROWS} rows"
        self.update(Content(f"This terminal is too small: whisper_tui needs {needed}. Enlarge it, or quit with q."))

    @staticmethod
    def covers(terminal: Size) -> bool:
        """True if a terminal of this size is too small."""
        return terminal.width < LEAST_COLUMNS or terminal.height < LEAST_ROWS


POLL_S, CALM_POLL_S = 1.0, 4.0
"""Seconds between two requests for the state: in general, and while nothing is wrong on this machine alone."""


class HealthBar(Static):
    """A bar that shows why the supervisor is not healthy, for as long as that is so."""

    def __init__(self, supervision: Callable[[], Supervision]) -> None:
        """`supervision` returns the current connection."""
        super().__init__()
        self._supervision = supervision
        self._said: str | None = None
        """The sentence that is shown. None: the supervisor is healthy."""
        self._told = ""
        """The problem of notifications that was reported last."""

    def on_mount(self) -> None:
        """Begin to poll."""
        self.display = False
        # Polled, as the journal may be what fails. What shows the machines is composed by the next refresh.
        self.call_after_refresh(self._look)

    def _look(self) -> None:
        _: Worker[None] = self.run_worker(self._ask)

    async def _ask(self) -> None:
        said, calm = None, False
        # The banner reports a lost connection.
        with suppress(WhisperError):
            status = await self._supervision().status()
            said = _health_text(status)
            # How commands can be previewed is not known at once, and the first request has it found out.
            calm = said is None and not status.hosts and not status.places and bool(status.previews)
            for actions in self.screen.query(ActionBar):
                actions.offer_previews(not status.previews.startswith(NOT_POSSIBLE))
            self._tell_of_hosts(status.hosts, status.places, status.level_in())
            self._tell_of_notifications(status.notify_problem)
        self.set_timer(CALM_POLL_S if calm else POLL_S, self._look)
        if said != self._said:
            self._said = said
            self.display = said is not None
            self.update(Content(said or ""))

    def _tell_of_hosts(
        self, hosts: tuple[HostState, ...], places: tuple[PlaceState, ...], level: UnaskedLevel | None
    ) -> None:
        """Show which machines and places are reached, and what runs unasked, once the lines about them are composed."""
        for bar, calls in zip(self.screen.query(StatusBar), self.screen.query(CallList), strict=False):
            bar.level = level
            if hosts != bar.hosts:
                bar.hosts = hosts
                calls.show_hosts(hosts)
            if places != tuple(calls.places.values()):
                calls.show_places(places)

    def _tell_of_notifications(self, problem: str) -> None:
        """Show a toast once: a call that nobody was notified of is in the list all the same."""
        if problem and problem != self._told:
            self.notify(toast_text(f"{problem}."), severity="warning", markup=False, timeout=10)
        self._told = problem


def _health_text(status: SupervisorStatus) -> str | None:
    """Return the sentence about a supervisor that is not healthy. None: it is healthy."""
    if status.problem is not None:
        return f"✘ The supervisor cannot work as it should: {visible(status.problem)}"
    away = [
        f"{host.name} has been unreachable since {clock_time(host.since)}; its calls are as of then. {host.problem}"
        for host in status.hosts
        if host.reached is False
    ]
    # A place that nothing runs at may be away for good reasons.
    away += [f"{away_text(place)}." for place in status.places if place.running and place.is_away]
    if not away and not status.unguarded:
        return None
    first, *others = (*away, *status.unguarded)
    return f"✘ {visible(first)}" + (f" (and {len(others)} more: whisper-tui status)" if others else "")


class Caption(Static):
    """A line that tells somebody new what to try with the selected call; the demo has one."""

    def __init__(self, words: Callable[[CallRecord | None], str] | None) -> None:
        """`words` returns the line about a call, empty for none. None: there are no captions."""
        super().__init__(markup=False)
        self._words = words

    def about(self, record: CallRecord | None) -> None:
        """Show the line about a call."""
        words = self._words(record) if self._words is not None else ""
        self.display = bool(words)
        if words:
            self.update(Content(words))


BUTTONS = ("undo", "review")


class DecisionBar(Horizontal):
    """A bar with pending approvals, the number of marked calls, and session denials; hidden if there are none."""

    def __init__(self, hints: FirstHints, *, id: str) -> None:
        super().__init__(id=id)
        self._hints = hints

    def compose(self) -> ComposeResult:
        """Yield the text, and the buttons for its commands."""
        yield LineView(id="decision-words")
        for command in map(in_force(self.app).by_id, BUTTONS):
            label = Content.assemble((f"{command.key_name} ", "bold"), command.label)
            button = Button(label, id=f"now-{command.id}", compact=True)
            # A click must not take the focus from the list, or the next key would go to the button.
            button.can_focus = False
            button.tooltip = command.help
            yield button

    def on_mount(self) -> None:
        """Begin hidden."""
        self.display = False

    def show(self, pending: str, marked: int, denials: str) -> None:
        """Show the text about pending approvals, the number of marks, and the text about session denials."""
        parts = [part for part in (pending, f"{count(marked, 'call')} marked" if marked else "", denials) if part]
        self.display = bool(parts)
        if pending:
            self._hints.show(self, "undo")
        self.query_one("#now-undo").display = bool(pending)
        self.query_one("#now-review").display = bool(marked)
        self.query_one(LineView).show((Span(" ◆ ", "waiting"), Span(" · ".join(parts), "strong")))

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.post_message(CommandRequested((event.button.id or "").removeprefix("now-")))


MOST_SHOWN = 3
"""Calls in the strip, the last approved ones."""
ROWS_FOR_ALL = 30
"""Rows of a terminal in which the strip has all its lines; in a lower one it has one."""
TAIL = 8_000
"""Bytes of a stream in which its last line, or the line with its error, is looked for."""
_REPEATS_ERROR = re.compile(r"g?make(?:\[\d+\])?: \*\*\* |npm (?:error|ERR!) (?:code|path|command|A complete log)\b")
"""Matches lines that come after the error of another program and tell nothing about it."""
LONGEST_COMMAND, LONGEST_LINE = 40, 200
"""Characters of a command, and of the last line of its output."""


class RecentDecisions(Vertical):
    """One line for each call that was approved last, by a human or without one: its state, its command, its last line.

    The line of a call that has failed is the one with the error, where one is found.
    """

    def __init__(self, cockpit: CockpitContext, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._cockpit = cockpit
        self._opened_at = cockpit.clock()
        self._shown: deque[str] = deque(maxlen=MOST_SHOWN)
        self._last_line: dict[str, str] = {}
        self._complete: set[str] = set()
        """Calls whose last line is known: they had ended when it was read."""
        self._failed: set[str] = set()
        """Calls whose failure was reported."""
        self._reading = False

    def compose(self) -> ComposeResult:
        """Yield the lines, the last decision at the bottom."""
        for _ in range(MOST_SHOWN):
            yield LineView()

    def changed(self, call_ids: Iterable[str]) -> None:
        """Add calls that were approved, and report the failure of one that was approved here and is not shown."""
        touched = False
        for call_id in call_ids:
            record = self._cockpit.board.calls.get(call_id)
            if record is not None and self._is_new(record):
                touched = True
                if call_id not in self._shown:
                    self._shown.append(call_id)
                if record.decided_by == self._cockpit.me:
                    self._report(record)
        if touched:
            self.look()

    def _is_new(self, record: CallRecord) -> bool:
        return isinstance(record.decision, Approve) and (record.decided_at or 0.0) > self._opened_at

    def _report(self, record: CallRecord) -> None:
        """Say once that an approved call failed: its result would otherwise pass unseen below the queue."""
        match record.state:
            case Ended(ending=ending) if not went_well(ending) and record.id not in self._failed:
                self._failed.add(record.id)
                shown = self._cockpit.shown
                if record.blocked is None and (shown is None or shown.id != record.id):
                    text = (
                        f"Call {record.id} failed ({ending_word(ending, record.spec.command)}): {_command_of(record)}"
                    )
                    self._cockpit.tell(text, severity="warning")

    def look(self) -> None:
        """Draw the lines as they are now, and read the last lines of output again."""
        self._draw()
        if self._shown and not self._reading:
            self._reading = True
            _: Worker[None] = self.run_worker(self._read, name="recent decisions")

    def _draw(self) -> None:
        records = [record for id_ in self._shown if (record := self._cockpit.board.calls.get(id_)) is not None]
        most = MOST_SHOWN if self.app.size.height >= ROWS_FOR_ALL else 1
        shown = records[-most:]
        self.display = bool(shown)
        for lines in range(1, MOST_SHOWN + 1):
            # Notifications stand above the lines: they come with the decisions that these are about.
            self.screen.set_class(len(shown) == lines, f"-decisions-{lines}")
        for place, view in enumerate(self.query(LineView)):
            view.display = place < len(shown)
            if view.display:
                view.show(self._line(shown[place]), self._seconds(shown[place]))

    def _line(self, record: CallRecord) -> Line:
        state = standing(record, self._cockpit.clock())
        last = self._last_line.get(record.id, "")
        output: Line = (Span("  "), *said(last, "muted")) if last else ()
        return (Span(" "), *state[:2], Span(f"  {record.id}  ", "muted"), Span(_command_of(record)), *output)

    def _seconds(self, record: CallRecord) -> Line:
        match record.state:
            case Ended(usage=usage) if usage is not None:
                return (Span(f"{duration(usage.wall_s)} ", "muted"),)
            case _:
                return ()

    async def _read(self) -> None:
        try:
            for id_ in tuple(self._shown):
                record = self._cockpit.board.calls.get(id_)
                if record is not None and id_ not in self._complete:
                    self._last_line[id_] = await self._last_line_of(record)
                    self._complete |= {id_} if isinstance(record.state, Ended) else set()
        except WhisperError:
            # The banner reports a lost connection; the strip keeps what it knows.
            return
        finally:
            self._reading = False
        self._last_line = {id_: line for id_, line in self._last_line.items() if id_ in self._shown}
        self._complete &= set(self._shown)
        self._draw()

    async def _last_line_of(self, record: CallRecord) -> str:
        failed = isinstance(record.state, Ended) and not went_well(record.state.ending)
        streams: tuple[Stream, ...] = ("err", "out") if failed else ("out", "err")
        ends = [await self._end_of(record.id, stream) for stream in streams]
        errors = (line for lines in ends for line in reversed(lines) if failed and _is_error(line))
        lasts = (lines[-1] for lines in ends if lines)
        return one_line_beginning(next(errors, None) or next(lasts, ""), LONGEST_LINE)

    async def _end_of(self, call_id: str, stream: Stream) -> list[str]:
        """Return the last lines of a stream, without colours."""
        chunk = await self._cockpit.supervision.read_output(call_id, stream, -TAIL, TAIL)
        text = plain_with_colours(chunk.data).decode("utf-8", "replace").strip()
        return [Text.from_ansi(line).plain for line in text.splitlines()]


def _is_error(line: str) -> bool:
    return ERRORS.drawn.search(line) is not None and _REPEATS_ERROR.match(line) is None


def _command_of(record: CallRecord) -> str:
    text = "".join(span.text for span in call_line(record))
    return one_line_beginning(text, LONGEST_COMMAND)
