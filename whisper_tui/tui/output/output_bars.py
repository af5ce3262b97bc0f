"""The lines around output: titles, the search field, the buttons, and the note about removed output."""

from contextlib import suppress
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input

from whisper_tui.model.api import Supervision, output_was_removed
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord
from whisper_tui.present.quantities import size
from whisper_tui.present.spans import Line, Role, Span
from whisper_tui.present.words import REMOVED
from whisper_tui.tui.command_screen import ButtonBar
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
