"""Rows of output: live, scrolled by the offset in the stream, drawn from the rows on the screen alone."""

from itertools import zip_longest

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.run import Stream
from whisper_tui.model.text import visible
from whisper_tui.tui.output.finder import Finder
from whisper_tui.tui.output.painter import Painter
from whisper_tui.tui.output.pens import Pens
from whisper_tui.tui.output.reader import ReadOutput
from whisper_tui.tui.output.sgr import pen_after
from whisper_tui.tui.output.shown import Shown, View
from whisper_tui.tui.output.times import TimeIndex
from whisper_tui.tui.spans import ROLE_CLASSES, Line, Span, width_of
from whisper_tui.tui.widgets.drawn import base_style, drawn
from whisper_tui.tui.widgets.pane_frame import bar, title_line
from whisper_tui.tui.widgets.scrolled import Scrolled
from whisper_tui.tui.words import split_second, told

SIDEWAYS = 8
"""Columns moved by one key."""
NO_TIME = " " * 12
HEADS_KEPT = 200
"""Beginnings of rows that are kept drawn; with times, each has its own."""
NO_LINE: tuple[Strip, Line] = (Strip([]), ())


class RowsPane(Scrolled):
    """A title line, and under it the rows of one stream, or of both, with a bar that shows where they are."""

    COMPONENT_CLASSES = ROLE_CLASSES | {"role--thumb", "role--focused", "role--match", "role--match-now"}

    def __init__(self, title: str, pens: Pens, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.title = title
        self.view: View | None = None
        self.finder: Finder | None = None
        """What is searched for. None: nothing is."""
        self.beside = ""
        """What the title says about the stream that is not shown."""
        self.left = 0
        """Columns that are scrolled off to the left."""
        self.wraps = False
        self.stamps = False
        """Whether the time stands before each row."""
        self._painter = Painter(pens)
        self._heads: dict[tuple[Line, int], Strip] = {}
        self._role_styles: dict[tuple[tuple[str, ...], bool], Style] = {}
        self._reads: dict[Stream, ReadOutput] = {}
        self._index: TimeIndex | None = None
        self._problem = ""
        self._search_problem = ""
        self._lines: list[tuple[Strip, Line]] = []
        self._thumb: range | None = None
        self._drawn_rows: list[Shown] = []
        self._busy = False

    def show(self, reads: dict[Stream, ReadOutput], index: TimeIndex | None = None) -> None:
        """Show another stream, or two, from their end. Empty: there is no output."""
        self._reads, self._index = reads, index
        self.left = 0
        self._problem = ""
        self._open()

    def make_view(self, height: int) -> View | None:
        """A place at the end of what is to be shown. None: there is no output."""
        raise NotImplementedError

    async def grown(self, view: View) -> None:
        """There is more output than there was."""

    def _open(self) -> None:
        self.view = self.make_view(max(1, self.size.height - 1))
        self._painter.forget()
        self._lines, self._thumb, self._drawn_rows = [], None, []
        self.refresh()

    @property
    def silent(self) -> bool:
        """Whether there is nothing to show."""
        return self.view is None or (not self.view.size and not self._problem)

    @property
    def strips(self) -> list[Strip]:
        """The text of each line on the screen."""
        return [strip for strip, _ in self._lines]

    @property
    def streams(self) -> tuple[Stream, ...]:
        """What is shown."""
        return tuple(self._reads)

    def recolour(self, pens: Pens) -> None:
        """Draw with other colours."""
        self._painter.pens = pens
        self._painter.forget()
        self._draw_rows()
        self.refresh()

    async def set_style(self, *, wraps: bool, stamps: bool) -> None:
        """Wrap long rows or not, and say when each came or not."""
        if (wraps, stamps) != (self.wraps, self.stamps):
            self.wraps, self.stamps = wraps, stamps
            self.left = 0
            await self.on_resize()

    async def tick(self) -> None:
        """Look for growth; a tick that comes while one is still reading is left out."""
        view = self.view
        if view is None or self._busy or self._problem or (view.complete and self.finder is None):
            return
        self._busy = True
        try:
            if await view.poll() and view is self.view:
                await self.grown(view)
                self._draw_rows()
            elif self.finder is not None:
                self.refresh()
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

    def redraw(self) -> None:
        """What is known about the rows on the screen has changed, not they themselves."""
        self._draw_rows()

    def _fail(self, error: WhisperError) -> None:
        self._problem = told(error)
        self.refresh()

    def action_sideways(self, direction: int) -> None:
        """Move in lines that are longer than the pane is wide."""
        longest = max((strip.cell_length for strip in self.strips), default=0)
        furthest = max(0, longest - self._text_width)
        self.left = max(0, min(furthest, self.left + direction * SIDEWAYS))
        self.refresh()

    async def on_resize(self) -> None:
        """Show as many rows as there is room for."""
        width = self._text_width if self.wraps else None
        if width != self._painter.width:
            self._painter.width = width
            self._painter.forget()
        if self.view is not None and not self._problem:
            try:
                await self.view.resize(max(1, self.size.height - 1))
            except WhisperError as error:
                self._fail(error)
        self._draw_rows()
        self.refresh()

    @property
    def _text_width(self) -> int:
        return max(1, self.size.width - 2 - (len(NO_TIME) + 1 if self.stamps else 0))

    def _draw_rows(self) -> None:
        """Read the rows on the screen into strips; rows that have not changed are neither read nor drawn again."""
        view = self.view
        if view is None:
            self.refresh()
            return
        self._painter.base = base_style(self)
        self._painter.found = (
            self.get_component_rich_style("role--match"),
            self.get_component_rich_style("role--match-now"),
        )
        rows = view.shown()
        pens = {stream: pen_after(view.before(stream)) for stream in self._reads}
        lines: list[tuple[Strip, Line]] = []
        for shown, strips in self._painter.paint(rows, pens):
            margin = self._margin(shown)
            lines += [(strip, margin if number == 0 else ()) for number, strip in enumerate(strips)]
        self._drawn_rows = rows
        thumb = bar(view, view.extent, max(1, self.size.height - 1))
        self._put(lines[view.skip : view.skip + view.height], thumb)

    def _put(self, lines: list[tuple[Strip, Line]], thumb: range | None) -> None:
        """Have these lines on the screen, and the thumb of the bar there; what is there already stays."""
        changed = {y for y, (old, new) in enumerate(zip_longest(self._lines, lines)) if old != new}
        changed |= set(self._thumb or ()) ^ set(thumb or ())
        self._lines, self._thumb = lines, thumb
        if lines:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in (0, *(y + 1 for y in changed))))
        else:
            self.refresh()

    def _margin(self, shown: Shown) -> Line:
        """What stands before a row: of two streams, which one, and its time."""
        mark = (Span("▌", "bad"),) if len(self._reads) == 2 and shown.stream == "err" else (Span(" "),)
        if not self.stamps or self._index is None:
            return mark
        at = self._index.time(shown.stream, shown.row.start)
        return (*mark, Span(f"{split_second(at) if at is not None else NO_TIME} ", "muted"))

    def notify_style_update(self) -> None:
        """Colours have changed."""
        super().notify_style_update()
        self._heads.clear()
        self._role_styles.clear()
        self._painter.forget()
        if self.is_mounted:
            self._draw_rows()

    def get_component_rich_style(self, *names: str, partial: bool = False, default: Style | None = None) -> Style:
        """As every widget has it, but remembered until styles change and not only for one frame."""
        style = self._role_styles.get((names, partial))
        if style is None:
            style = super().get_component_rich_style(*names, partial=partial, default=default)
            self._role_styles[names, partial] = style
        return style

    def render_line(self, y: int) -> Strip:
        """The title, or one row."""
        width = self.size.width
        if y == 0:
            words = title_line(
                self._full_title,
                self.view,
                width,
                beside=self.beside,
                finder=self.finder,
                problem=self._search_problem,
            )
            focused = self.get_component_rich_style("role--focused") if self.has_focus else None
            return drawn(self, words, width, focused)
        if (nothing := self._words()) and y == 1:
            return drawn(self, (Span("  "), nothing), width)
        text, margin = self._lines[y - 1] if y <= len(self._lines) else NO_LINE
        room = self._text_width
        hidden_right = text.cell_length > self.left + room
        if self.left or hidden_right:
            text = text.crop(self.left, self.left + room)
        edge: Line = (Span("◂", "muted"), *margin[1:]) if self.left else margin
        spare = room - text.cell_length
        blank = [Segment(" " * spare, base_style(self))] if spare else []
        head = self._head(edge, width - 1 - room)
        return Strip([*head, *text, *blank, self._bar(y - 1, hidden_right)], width)

    def _head(self, edge: Line, width: int) -> Strip:
        """What stands before the text of a row; most rows have the same."""
        head = self._heads.get((edge, width))
        if head is None:
            if len(self._heads) >= HEADS_KEPT:
                self._heads.clear()
            blank = Span(" " * (width - width_of(edge)))
            head = self._heads[edge, width] = drawn(self, (*edge, blank), width)
        return head

    def _bar(self, y: int, hidden_right: bool) -> Segment:
        if self._thumb is None:
            style = base_style(self) + self.get_component_rich_style("role--muted", partial=True)
        else:
            style = self.get_component_rich_style("role--thumb")
        in_thumb = self._thumb is not None and y in self._thumb
        return Segment("█" if in_thumb else "▸" if hidden_right else " ", style)

    @property
    def _full_title(self) -> str:
        kind = ", bytes" if self._painter.as_bytes else ""
        return visible(self.title + kind)

    def _words(self) -> Span | None:
        """What stands where there is no output. None: there is output."""
        if self._problem:
            return Span(f"The output cannot be read: {self._problem}", "bad")
        if self.view is None or self.view.size:
            return None
        return Span("(no output)" if self.view.ended else "(no output yet)", "muted")
