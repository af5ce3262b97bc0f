"""One stream of a run: live, scrolled by the offset in the stream, drawn from the rows on the screen alone."""

from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.strip import Strip
from textual.widget import Widget

from whisper_tui.model.errors import WhisperError
from whisper_tui.tui.output.pens import Pens
from whisper_tui.tui.output.rows import CHUNK, Row
from whisper_tui.tui.output.sgr import Pen, pen_after, read_line
from whisper_tui.tui.output.view import OutputView, ReadOutput
from whisper_tui.tui.spans import ROLE_CLASSES, Line, Role, Span, width_of
from whisper_tui.tui.widgets.drawn import base_style, drawn
from whisper_tui.tui.words import size, told

KEPT_LINES = 400
"""Drawn lines that are remembered."""
SIDEWAYS = 8
"""Columns moved by one key."""


class OutputPane(Widget, can_focus=True):
    """A title line, and under it the rows of one stream with a bar that shows where they are."""

    COMPONENT_CLASSES = ROLE_CLASSES | {"role--thumb", "role--focused"}
    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "rows(-1)", "Up", show=False),
        Binding("down", "rows(1)", "Down", show=False),
        Binding("pageup", "pages(-1)", "Page up", show=False),
        Binding("pagedown", "pages(1)", "Page down", show=False),
        Binding("home", "start", "Beginning", show=False),
        Binding("end", "end", "End", show=False),
        Binding("left", "sideways(-1)", "Left", show=False),
        Binding("right", "sideways(1)", "Right", show=False),
    ]

    def __init__(self, title: str, pens: Pens, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.title = title
        self.pens = pens
        self.view: OutputView | None = None
        self.beside = ""
        """What the title says about the stream that is not shown."""
        self.left = 0
        """Columns that are scrolled off to the left."""
        self._problem = ""
        self._strips: list[Strip] = []
        self._bottom = 0
        """Where the last row on the screen ends."""
        self._lines: dict[tuple[Row, Pen], tuple[Strip, Pen]] = {}
        self._busy = False

    def show(self, read: ReadOutput | None) -> None:
        """Show another stream, from its end. None: there is no output."""
        self.view = OutputView(read, max(1, self.size.height - 1)) if read is not None else None
        self.left = 0
        self._problem = ""
        self._lines.clear()
        self._strips = []
        self.refresh()

    @property
    def silent(self) -> bool:
        """Whether there is nothing to show."""
        return self.view is None or (not self.view.size and not self._problem)

    def recolour(self, pens: Pens) -> None:
        """Draw with other colours."""
        self.pens = pens
        self._lines.clear()
        self._draw_rows()

    async def tick(self) -> None:
        """Look for growth; a tick that comes while one is still reading is left out."""
        view = self.view
        if view is None or self._busy or self._problem or view.complete:
            return
        self._busy = True
        try:
            if await view.poll() and view is self.view:
                self._draw_rows()
        except WhisperError as error:
            self._fail(error)
        finally:
            self._busy = False

    async def move(self, to: str, amount: float = 0) -> None:
        """Go somewhere: `rows` down, to the `start`, to the `end`, to a `fraction`, or `hold` still."""
        view = self.view
        if view is None or self._problem:
            return
        try:
            match to:
                case "rows":
                    await view.scroll(int(amount))
                case "start":
                    await view.to_start()
                case "end":
                    await view.to_end()
                case "fraction":
                    await view.to_fraction(amount)
                case _:
                    await view.hold()
        except WhisperError as error:
            self._fail(error)
        else:
            self._draw_rows()

    def _fail(self, error: WhisperError) -> None:
        self._problem = told(error)
        self.refresh()

    async def action_rows(self, count: int) -> None:
        """Move by rows."""
        await self.move("rows", count)

    async def action_pages(self, count: int) -> None:
        """Move by screens, less one row."""
        await self.move("rows", count * max(1, self.size.height - 2))

    async def action_start(self) -> None:
        """Show the beginning."""
        await self.move("start")

    async def action_end(self) -> None:
        """Show the end and follow it."""
        await self.move("end")

    def action_sideways(self, direction: int) -> None:
        """Move in lines that are longer than the pane is wide."""
        longest = max((strip.cell_length for strip in self._strips), default=0)
        furthest = max(0, longest - self._text_width)
        self.left = max(0, min(furthest, self.left + direction * SIDEWAYS))
        self.refresh()

    async def on_resize(self) -> None:
        """Show as many rows as there is room for."""
        if self.view is not None and not self._problem:
            try:
                await self.view.resize(max(1, self.size.height - 1))
            except WhisperError as error:
                self._fail(error)
        self._draw_rows()

    async def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel moves three rows."""
        event.stop()
        await self._wheel(event, -1)

    async def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel moves three rows."""
        event.stop()
        await self._wheel(event, 1)

    async def _wheel(self, event: events.MouseEvent, direction: int) -> None:
        if event.shift:
            self.action_sideways(direction)
        else:
            await self.move("rows", 3 * direction)

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        """A wheel that goes sideways."""
        event.stop()
        self.action_sideways(-1)

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        """A wheel that goes sideways."""
        event.stop()
        self.action_sideways(1)

    async def on_mouse_down(self, event: events.MouseDown) -> None:
        """The bar on the right goes where it is pressed."""
        if event.x == self.size.width - 1 and event.y > 0:
            self.capture_mouse()
            await self._drag(event.y)

    async def on_mouse_move(self, event: events.MouseMove) -> None:
        """The bar follows the mouse."""
        if self.app.mouse_captured is self:
            await self._drag(event.y)

    def on_mouse_up(self) -> None:
        """The bar is let go."""
        self.release_mouse()

    async def _drag(self, y: int) -> None:
        await self.move("fraction", (y - 1) / max(1, self.size.height - 2))

    @property
    def _text_width(self) -> int:
        return max(1, self.size.width - 2)

    def _draw_rows(self) -> None:
        """Read the rows on the screen into strips; rows that have not changed are not read again."""
        if self.view is not None:
            window = self.view.window
            pen = pen_after(window.slice(max(window.start, self.view.top - CHUNK), self.view.top))
            lines: dict[tuple[Row, Pen], tuple[Strip, Pen]] = {}
            rows = self.view.rows()
            self._bottom = rows[-1].end if rows else 0
            for row in rows:
                key = (row, pen)
                if key not in self._lines or row.end == window.end:
                    data = window.slice(max(row.start, row.end - 2 * CHUNK), row.end)
                    runs, after = read_line(data, pen)
                    self._lines[key] = (self.pens.strip(runs, base_style(self)), after)
                lines[key] = self._lines[key]
                pen = lines[key][1]
            self._strips = [strip for strip, _ in lines.values()]
            if len(self._lines) > KEPT_LINES:
                self._lines = lines
        self.refresh()

    def notify_style_update(self) -> None:
        """Colours have changed."""
        super().notify_style_update()
        self._lines.clear()
        if self.is_mounted:
            self._draw_rows()

    def render_line(self, y: int) -> Strip:
        """The title, or one row."""
        width = self.size.width
        if y == 0:
            return self._title(width)
        if (words := self._words()) and y == 1:
            return drawn(self, (Span("  "), words), width)
        base = base_style(self)
        text = self._strips[y - 1] if y <= len(self._strips) else Strip([])
        hidden_right = text.cell_length > self.left + self._text_width
        text = text.crop(self.left, self.left + self._text_width).adjust_cell_length(self._text_width, base)
        edge = drawn(self, (Span("◂" if self.left else " ", "muted"),), 1)
        return Strip.join([edge, text, self._bar(y - 1, hidden_right)])

    def _words(self) -> Span | None:
        """What stands where there is no output. None: there is output."""
        if self._problem:
            return Span(f"The output cannot be read: {self._problem}", "bad")
        if self.view is None or self.view.size:
            return None
        return Span("Nothing was written." if self.view.ended else "Nothing yet.", "muted")

    def _bar(self, y: int, hidden_right: bool) -> Strip:
        view, rows = self.view, max(1, self.size.height - 1)
        if view is None or not view.size or (view.top == 0 and self._bottom >= view.size):
            return drawn(self, (Span("▸" if hidden_right else " ", "muted"),), 1)
        start = int(view.top / view.size * rows)
        end = max(start + 1, round(self._bottom / view.size * rows))
        if view.following:
            start, end = rows - (end - start), rows
        thumb = self.get_component_rich_style("role--thumb")
        return Strip([Segment("█" if start <= y < end else "▸" if hidden_right else " ", thumb)])

    def _title(self, width: int) -> Strip:
        title: Role = "strong" if self.view is not None else "muted"
        amount = f" {size(self.view.size)}" if self.view is not None else ""
        left: Line = (Span("── ", "frame"), Span(self.title, title), Span(f"{amount}{self.beside} ", "muted"))
        right = (*self._state(), Span(" ─", "frame"))
        dashes = Span("─" * max(0, width - width_of(left) - width_of(right)), "frame")
        focused = self.get_component_rich_style("role--focused") if self.has_focus else None
        return drawn(self, (*left, dashes, *right), width, focused)

    def _state(self) -> Line:
        view = self.view
        if view is None or not view.size:
            return ()
        dropped = (Span(" bytes above were not kept ·", "risk"),) if view.dropped_before_top else ()
        if not view.following:
            return (*dropped, Span(f" {view.top * 100 // view.size} % · f follows", "waiting"))
        return (*dropped, Span(" complete" if view.ended else " ● following", "muted" if view.ended else "running"))
