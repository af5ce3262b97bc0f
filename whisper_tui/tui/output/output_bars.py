"""The lines around output: titles, the use of the run, the search field, the buttons, and what was removed."""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input

from whisper_tui.model.api import Supervision, output_was_removed
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.run import UsageSample
from whisper_tui.model.state import CallRecord
from whisper_tui.present.quantities import count, limit, size
from whisper_tui.present.spans import Line, Role, Span
from whisper_tui.present.words import REMOVED
from whisper_tui.tui.button_bar import ButtonBar
from whisper_tui.tui.lines import LineView, width_of
from whisper_tui.tui.output.output_search import Finder
from whisper_tui.tui.output.output_view import ScrolledOutput


def title_line(
    title: str, view: ScrolledOutput | None, width: int, *, beside: str, finder: Finder | None, problem: str
) -> Line:
    """Return the title in `width` columns. `beside`: a note on a hidden stream; `problem`: why the search stopped."""
    role: Role = "strong" if view is not None else "muted"
    amount = f" {size(view.size)}" if view is not None else ""
    before, sign, after = title.partition("▌")
    name = (Span(before, role), Span(sign, "bad"), Span(after, role))
    left: Line = (Span("── ", "frame"), *(span for span in name if span.text), Span(f"{amount}{beside} ", "muted"))
    found, state = _found(finder, view, problem), _state(view)
    between = (Span(" ·", found[-1].role),) if found and state else ()
    end = Span(" ─" if found or state else "─", "frame")
    right = (*found, *between, *state, end)
    return (*left, Span("─" * max(0, width - width_of(left) - width_of(right)), "frame"), *right)


def _state(view: ScrolledOutput | None) -> Line:
    if view is None or not view.size:
        return ()
    dropped = (Span(" bytes above were dropped ·", "risk"),) if view.dropped_before_top else ()
    if not view.following:
        return (*dropped, Span(f" {view.extent[0] * 100 // view.size} % · f to follow", "waiting"))
    return (*dropped, Span(" complete" if view.ended else " ● following", "muted" if view.ended else "running"))


def _found(finder: Finder | None, view: ScrolledOutput | None, problem: str) -> Line:
    if finder is None:
        return ()
    if problem:
        return (Span(f" search failed: {problem}", "bad"),)
    words = finder.needle.words
    name = words if len(words) <= 16 else words[:15] + "…"
    rank = f"{finder.rank:,} of " if finder.standing is not None else ""
    empty = view is None or not view.size
    counting = "" if finder.done or empty else f", {finder.percent} % searched"
    return (Span(f" {rank}{finder.total:,} “{name}”{counting}", "edited"),)


def bar(view: ScrolledOutput | None, extent: tuple[int, int], rows: int) -> range | None:
    """Return the rows of the scroll bar's thumb; None if everything is on the screen. `extent`: that of the view."""
    top, bottom = extent
    if view is None or not view.size or (top == 0 and not view.skip and bottom >= view.size):
        return None
    start = int(top / view.size * rows)
    end = max(start + 1, round(bottom / view.size * rows))
    return range(rows - (end - start), rows) if view.following else range(start, end)


class SearchBar(Input):
    """The search field, shown while typing. Enter searches, Esc ends the search."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", "End the search", show=False)]

    class SearchRequested(Message):
        """Search for these words; empty ends the search."""

        def __init__(self, words: str) -> None:
            super().__init__()
            self.words = words

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(placeholder="search the output: Enter searches, ] and [ go to matches", compact=True, id=id)
        self.cursor_blink = False

    def open(self) -> None:
        """Show the field with the last search."""
        self.display = True
        self.select_all()
        self.screen.set_focus(self)

    def action_give_up(self) -> None:
        """End the search."""
        self.display = False
        self.post_message(self.SearchRequested(""))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.display = False
        self.post_message(self.SearchRequested(event.value))

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()


BUTTONS = (
    *("search", "next-match", "previous-match", "errors", "follow", "layout", "zoom", "wrap", "interleave"),
    *("save", "copy", "pager", "timestamps", "arrange", "bytes"),
)


class OutputBar(ButtonBar):
    """The buttons below the panes, where there is room."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(BUTTONS, id=id)


class RemovedLine(LineView):
    """The note that output was removed; hidden while all of it is there."""

    def of(self, supervision: Supervision, record: CallRecord | None) -> None:
        """Check whether the output of a call is still on the disk; None hides the note."""
        self.display = False
        self.workers.cancel_group(self, "look")
        if record is not None:
            self.run_worker(self._look(supervision, record), group="look")

    async def _look(self, supervision: Supervision, record: CallRecord) -> None:
        with suppress(WhisperError):
            self.display = await output_was_removed(supervision, record)
            self.show((Span(f" {REMOVED}", "risk"),))


BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int, *, most: float | None = None) -> str:
    """The last `width` values as bars, the newest on the right. `most`: what the highest bar means at least."""
    shown = values[-width:] if width > 0 else ()
    top = max([*shown, most or 0.0])
    if top <= 0:
        return BARS[0] * len(shown)
    return "".join(BARS[min(len(BARS) - 1, int(value / top * len(BARS)))] for value in shown)


EVERY_S = 1.0
SILENT_S = 3.0
"""How long nothing must have been written before it is said that a command waits for input."""
KEPT = 60
SPARKLINE_COLUMNS = 16


class UsageLine(LineView):
    """Not displayed where nothing is known, as for a run that has ended."""

    def __init__(
        self, quiet_s: Callable[[], float], ask_when_written: Callable[[], Awaitable[None]], *, id: str | None = None
    ) -> None:
        """`quiet_s`: for how long the run has written nothing, in seconds. `ask_when_written` finds that out."""
        super().__init__(id=id)
        self._quiet_s = quiet_s
        self._ask_when_written = ask_when_written
        self._timer: Timer | None = None
        self._supervision: Supervision | None = None
        self._record: CallRecord | None = None
        self._busy = False
        self._cpu: deque[float] = deque(maxlen=KEPT)
        self._memory: deque[float] = deque(maxlen=KEPT)
        self.sample: UsageSample | None = None
        """The last look. None: nothing is known."""

    def on_mount(self) -> None:
        """Look once a second, at what is shown and at nothing else."""
        self._timer = self.set_interval(EVERY_S, self.look)

    def of(self, supervision: Supervision, record: CallRecord | None) -> None:
        """Show what this run uses."""
        self._supervision = supervision
        before, self._record = self._record, record
        if self._timer is not None and record is not None and record.is_open:
            self._timer.resume()
        if (before.id, before.attempt) != (record.id, record.attempt) if before and record else before is not record:
            self.sample = None
            self._cpu.clear()
            self._memory.clear()
            self._draw()
            self.call_after_refresh(self.look)
        elif record is not None and not record.is_open and self.sample is not None:
            self.sample = None
            self._draw()

    def look(self) -> None:
        """Look now; a look that comes while one is still going on is left out."""
        record, supervision = self._record, self._supervision
        if record is not None and record.process is not None and record.is_open and not self._busy and supervision:
            self._busy = True
            self.run_worker(self._look(supervision, record), name="look")
        elif self._timer is not None and (record is None or not record.is_open):
            self._timer.pause()

    async def _look(self, supervision: Supervision, record: CallRecord) -> None:
        try:
            sample = (await supervision.usage((record.id,))).get(record.id)
        except WhisperError:
            # A lost connection has its own bar; nothing is known meanwhile.
            sample = None
        finally:
            self._busy = False
        if self.sample is not None:
            await self._ask_when_written()
        if self._record is None or (self._record.id, self._record.attempt) != (record.id, record.attempt):
            return
        if sample is not None and self.sample is not None and sample.at == self.sample.at:
            # The supervisor measures once a second for all who watch: this sample is known.
            self._draw()
            return
        if sample is not None and self.sample is not None:
            self._cpu.append(cpu_percent(self.sample, sample))
        if sample is not None:
            self._memory.append(float(sample.memory))
        self.sample = sample
        self._draw()

    def on_resize(self) -> None:
        """More or less fits."""
        self._draw()

    def _draw(self) -> None:
        sample = self.sample
        self.display = sample is not None
        if sample is not None and self._record is not None:
            right = _run_state(sample, self._record, self._quiet_s())
            room = self.size.width - width_of(right) - 2
            self.show(figures(sample, list(self._cpu), list(self._memory), room), right)


def cpu_percent(before: UsageSample, now: UsageSample) -> float:
    """How much of one core was used between two looks, in percent."""
    spent = sum(seconds - before.cpu_s.get(pid, 0.0) for pid, seconds in now.cpu_s.items() if pid in before.cpu_s)
    spent += sum(min(seconds, now.at - before.at) for pid, seconds in now.cpu_s.items() if pid not in before.cpu_s)
    return max(0.0, 100 * spent / max(1e-3, now.at - before.at))


def figures(sample: UsageSample, cpu: list[float], memory: list[float], room: int) -> Line:
    """As much as fits, the most telling first."""
    used = f"{cpu[-1]:.0f} %" if cpu else "…"
    parts: list[tuple[Line, Line]] = [
        (
            (Span("  CPU ", "muted"), Span(used)),
            (Span(" "), Span(sparkline(cpu, SPARKLINE_COLUMNS, most=100), "running")),
        ),
        (
            (Span("  memory ", "muted"), Span(size(sample.memory))),
            (Span(" "), Span(sparkline(memory, SPARKLINE_COLUMNS), "behind")),
        ),
    ]
    if sample.ports:
        parts.append(((Span("  listens on ", "muted"), Span(", ".join(sample.ports), "strong")), ()))
    threads = f"  {count(sample.processes, 'process', 'processes')}, {count(sample.threads, 'thread')}"
    parts.append(((Span(threads, "muted"),), ()))
    kept: list[tuple[Line, Line]] = []
    for words, bars in parts:
        if width_of(words) <= room:
            kept.append((words, bars))
            room -= width_of(words)
    line: Line = ()
    for words, bars in kept:
        fits = width_of(bars) <= room
        room -= width_of(bars) if fits else 0
        line = (*line, *words, *(bars if fits else ()))
    return line


def _run_state(sample: UsageSample, record: CallRecord, quiet_s: float) -> Line:
    """Return the text for a run that is paused or waits for input."""
    if sample.paused:
        return (Span("‖ paused · p continues ", "waiting"),)
    if sample.waits is None or quiet_s < SILENT_S:
        return ()
    key = "T" if record.spec.tty else "i"
    sure = "waits for input" if sample.waits == "reads" else "may wait for input"
    return (Span(f"◆ {sure} · silent for {limit(int(quiet_s))} · {key} types ", "waiting"),)
