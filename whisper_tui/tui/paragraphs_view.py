"""A text of paragraphs that scrolls, and knows how much of it was never on the screen."""

from bisect import bisect_left
from collections.abc import Hashable
from dataclasses import dataclass

from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from whisper_tui.present.spans import Line, Paragraph, Role
from whisper_tui.tui.lines import ROLE_CLASSES, drawn, wrap


class SeenRows:
    """Counts among the rows that matter those that were never shown. Another text or width begins anew."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._seen = bytearray()
        self._text: Hashable = None
        self.missing = 0
        """Rows that matter and have not been on the screen."""

    def of(self, rows: list[int], text: Hashable) -> None:
        """The rows that matter are these now, in ascending order; what was seen of the same `text` stays seen."""
        if text != self._text or len(rows) != len(self._rows):
            self._seen = bytearray(len(rows))
            self.missing = len(rows)
            self._text = text
        self._rows = rows

    def show(self, first: int, count: int) -> None:
        """So many rows from the first one are on the screen."""
        if not self.missing:
            return
        start, end = bisect_left(self._rows, first), bisect_left(self._rows, first + count)
        self.missing -= self._seen.count(0, start, end)
        self._seen[start:end] = b"\x01" * (end - start)


class ParagraphsView(ScrollView, can_focus=True):
    """Paragraphs, broken into rows of the width there is."""

    COMPONENT_CLASSES = ROLE_CLASSES | {"role--card"}
    ALLOW_SELECT = False

    @dataclass
    class Hidden(Message):
        """So many rows are above and below what is on the screen, of so many in all."""

        above: int
        below: int
        rows: int
        unseen: int
        """Rows of what decides that have not been on the screen at all."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._paragraphs: tuple[Paragraph, ...] = ()
        self._rows: list[tuple[Line, bool]] = []
        """Each row, and whether it stands on a card."""
        self._width = 0
        self._told = (0, 0, 0, 0)
        self._seen = SeenRows()

    def show(self, paragraphs: tuple[Paragraph, ...], *, from_top: bool) -> None:
        """Show other text; `from_top` when it is about another call."""
        if from_top:
            self.scroll_to(y=0, animate=False, immediate=True)
            self._seen = SeenRows()
        if paragraphs != self._paragraphs or from_top:
            self._paragraphs = paragraphs
            self._break()
            self.refresh()
        self.call_after_refresh(self._tell)

    @property
    def unseen(self) -> int:
        """Rows of what decides that have not been on the screen since this text was shown, at this width."""
        self._look()
        return self._seen.missing

    def page(self, direction: int) -> None:
        """Scroll by what fits on the screen, save one row that stays for the eye."""
        by = max(1, self.scrollable_content_region.height - 1)
        self.scroll_to(y=self.scroll_offset.y + direction * by, animate=False, immediate=True)

    def jump_to(self, role: Role) -> bool:
        """Scroll to the next row below the first shown one that has text in a role. Returns False if none has any."""
        wanted = [at for at, (row, _) in enumerate(self._rows) if any(span.role == role for span in row)]
        if not wanted:
            return False
        below = [at for at in wanted if at > self.scroll_offset.y]
        reachable = below and self.scroll_offset.y < self.max_scroll_y
        self.scroll_to(y=below[0] if reachable else wanted[0], animate=False, immediate=True)
        return True

    def on_resize(self) -> None:
        """Break the text anew for another width."""
        if self.scrollable_content_region.width != self._width:
            self._break()
        self.call_after_refresh(self._tell)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Scrolling changes how much is hidden; what was on the screen has been seen."""
        self._seen.show(round(old_value), self.scrollable_content_region.height)
        super().watch_scroll_y(old_value, new_value)
        self._tell()

    def _break(self) -> None:
        self._width = self.scrollable_content_region.width
        width = max(20, self._width - 1)
        broken = [(row, paragraph) for paragraph in self._paragraphs for row in wrap(paragraph, width)]
        self._rows = [(row, paragraph.card) for row, paragraph in broken]
        deciding = [at for at, (_, paragraph) in enumerate(broken) if paragraph.decides]
        self._seen.of(deciding, (width, tuple(paragraph for paragraph in self._paragraphs if paragraph.decides)))
        if len(self._rows) != self.virtual_size.height:
            self.virtual_size = Size(0, len(self._rows))

    def _look(self) -> None:
        if self.is_mounted and self.display:
            self._seen.show(self.scroll_offset.y, self.scrollable_content_region.height)

    def _tell(self) -> None:
        self._look()
        above = min(self.scroll_offset.y, len(self._rows))
        below = max(0, len(self._rows) - above - self.scrollable_content_region.height)
        if (told := (above, below, len(self._rows), self._seen.missing)) != self._told:
            self._told = told
            self.post_message(self.Hidden(*told))

    def render_line(self, y: int) -> Strip:
        """One row of the text."""
        row = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        line, card = self._rows[row] if row < len(self._rows) else ((), False)
        ground = self.get_component_rich_style("role--card", partial=True) if card else None
        return drawn(self, line, width, ground=ground)
