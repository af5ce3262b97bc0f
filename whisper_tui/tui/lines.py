"""Lines of spans on the screen: measured, wrapped, drawn; a widget of one line, and a base for those that scroll."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.strip import Strip
from textual.widget import Widget

from whisper_tui.present.spans import GROUNDS, ROLES, Line, Paragraph, Span

ROLE_CLASSES = {f"role--{role}" for role in (*ROLES, *GROUNDS)}


def width_of(line: Line) -> int:
    """Columns that a line takes."""
    return sum(cell_len(span.text) for span in line)


@lru_cache(maxsize=512)
def wrap(paragraph: Paragraph, width: int) -> tuple[Line, ...]:
    """The rows of a paragraph, none wider than `width` as long as the margin leaves room."""
    return rows_of(paragraph, width)


def rows_of(paragraph: Paragraph, width: int) -> tuple[Line, ...]:
    """Return what `wrap` does, for a paragraph that is wrapped once: to remember thousands takes longer."""
    if paragraph.right:
        taken = width_of(paragraph.right)
        first, *rest = rows_of(replace(paragraph, right=()), width - taken)
        return ((*first, Span(" " * (width - taken - width_of(first))), *paragraph.right), *rest)
    margin_width = width_of(paragraph.margin)
    hanging = paragraph.hanging if paragraph.hanging is not None else (Span(" " * margin_width),)
    text = "".join(span.text for span in paragraph.spans)
    ends = _row_ends(text, max(1, width - margin_width), max(1, width - width_of(hanging)), paragraph.at_words)
    rows = [
        (hanging if number else paragraph.margin) + row for number, row in enumerate(_broken(paragraph.spans, ends))
    ]
    return tuple(rows) or (paragraph.margin,)


def _broken(spans: Line, ends: list[int]) -> Iterator[Line]:
    """The rows of spans that end at these characters."""
    start = number = at = 0
    for end in ends:
        row: list[Span] = []
        while start < end:
            text, role, ground = spans[number]
            row.append(Span(text[at : at + end - start], role, ground))
            start += len(row[-1].text)
            at += len(row[-1].text)
            if at == len(text):
                number, at = number + 1, 0
        yield tuple(row)


def _row_ends(text: str, first: int, rest: int, at_words: bool) -> list[int]:
    ends: list[int] = []
    start, width = 0, first
    # ASCII characters have one column each, so nothing has to be measured.
    plain = text.isascii()
    while start < len(text):
        end = min(len(text), start + width) if plain else _fitting(text, start, width)
        if at_words and end < len(text):
            blank = text.rfind(" ", start, end)
            end = blank + 1 if blank > start else end
        ends.append(end)
        start, width = end, rest
    return ends


def _fitting(text: str, start: int, width: int) -> int:
    """The end of as many characters as fit, at least one."""
    used, end = 0, start
    while end < len(text):
        used += cell_len(text[end])
        if used > width and end > start:
            break
        end += 1
    return end


def fitted(line: Line, width: int) -> Line:
    """The line in exactly `width` columns: filled with blanks, or cut with an ellipsis that says so."""
    spare = width - width_of(line)
    if spare >= 0:
        return (*line, Span(" " * spare)) if spare else line
    if width <= 0:
        return ()
    kept: list[Span] = []
    left = width - 1
    for text, role, ground in line:
        cut = text[: _fitting(text, 0, left)] if left > 0 else ""
        cut = cut if cell_len(cut) <= left else ""
        kept.append(Span(cut, role, ground))
        left -= cell_len(cut)
        if len(cut) < len(text):
            break
    return (*kept, Span("…" + " " * left, kept[-1].role))


def base_style(widget: Widget) -> Style:
    """Return the style of plain text on the ground of a widget."""
    # Unlike `Widget.rich_style`, Textual caches a component style until the styles change.
    return widget.get_component_rich_style("role--text")


def drawn(widget: Widget, line: Line, width: int, over: Style | None = None, ground: Style | None = None) -> Strip:
    """A line in exactly `width` columns; `over` replaces the colours of its roles, `ground` lies under them."""
    if width_of(line) > width:
        line = fitted(line, width)
    base = base_style(widget)
    if ground is not None:
        base += ground
    segments = [Segment(span.text, over or base + _style_of(widget, span)) for span in line]
    return Strip(segments).adjust_cell_length(width, over or base)


def _style_of(widget: Widget, span: Span) -> Style:
    style = widget.get_component_rich_style(f"role--{span.role}", partial=True)
    if not span.ground:
        return style
    ground = widget.get_component_rich_style(f"role--{span.ground}", partial=True)
    # The colours of syntax are readable on the card, and not on every tint; hidden characters keep their own ground.
    return ground + style if span.role == "hidden" else style + ground


class LineView(Widget):
    """Shows a line on the left, and another one on the right as far as there is room."""

    COMPONENT_CLASSES = ROLE_CLASSES
    ALLOW_SELECT = False
    left: Line = ()
    right: Line = ()

    def show(self, left: Line, right: Line = ()) -> None:
        """Draw other text."""
        if (left, right) != (self.left, self.right):
            self.left, self.right = left, right
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """The line, filled to the width of the widget."""
        width = self.size.width
        if y > 0:
            return Strip.blank(width, base_style(self))
        spare = width - width_of(self.left) - width_of(self.right)
        if self.right and spare < 1:
            room = max(0, width - width_of(self.right) - 1)
            return Strip.join([drawn(self, self.left, room), drawn(self, (Span(" "), *self.right), width - room)])
        return drawn(self, (*self.left, Span(" " * spare), *self.right), width)


class Scrolled(Widget, can_focus=True):
    """A title line with lines below it. Turns input into moves, which a subclass carries out."""

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

    async def move(self, to: str, amount: float = 0) -> None:
        """Move by `rows`, to the `start`, the `end` or a `fraction`, or `hold` still."""
        raise NotImplementedError

    def action_sideways(self, direction: int) -> None:
        """Scroll horizontally."""
        raise NotImplementedError

    async def action_rows(self, count: int) -> None:
        """Move by rows."""
        await self.move("rows", count)

    async def action_pages(self, count: int) -> None:
        """Move by pages, which overlap by one row."""
        await self.move("rows", count * max(1, self.size.height - 2))

    async def action_start(self) -> None:
        """Show the beginning."""
        await self.move("start")

    async def action_end(self) -> None:
        """Show the end and follow it."""
        await self.move("end")

    async def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up by three rows."""
        event.stop()
        await self._wheel(event, -1)

    async def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down by three rows."""
        event.stop()
        await self._wheel(event, 1)

    async def _wheel(self, event: events.MouseEvent, direction: int) -> None:
        if event.shift:
            self.action_sideways(direction)
        else:
            await self.move("rows", 3 * direction)

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        """Scroll left."""
        event.stop()
        self.action_sideways(-1)

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        """Scroll right."""
        event.stop()
        self.action_sideways(1)

    async def on_mouse_down(self, event: events.MouseDown) -> None:
        """Move the scroll bar to the pressed row, and follow the mouse."""
        if event.x == self.size.width - 1 and event.y > 0:
            self.capture_mouse()
            await self._drag(event.y)

    async def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag the scroll bar."""
        if self.app.mouse_captured is self:
            await self._drag(event.y)

    def on_mouse_up(self) -> None:
        """Stop dragging."""
        self.release_mouse()

    async def _drag(self, y: int) -> None:
        await self.move("fraction", (y - 1) / max(1, self.size.height - 2))
