"""A text of paragraphs that scrolls, and says how much of it is not on the screen."""

from dataclasses import dataclass

from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from whisper_tui.tui.spans import ROLE_CLASSES, Line, Paragraph, wrap
from whisper_tui.tui.widgets.drawn import drawn


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

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._paragraphs: tuple[Paragraph, ...] = ()
        self._rows: list[tuple[Line, bool]] = []
        """Each row, and whether it stands on a card."""
        self._width = 0
        self._told = (0, 0, 0)

    def show(self, paragraphs: tuple[Paragraph, ...], *, from_top: bool) -> None:
        """Show other text; `from_top` when it is about another call."""
        if from_top:
            self.scroll_to(y=0, animate=False, immediate=True)
        if paragraphs != self._paragraphs:
            self._paragraphs = paragraphs
            self._break()
            self.refresh()
        self._tell()

    def on_resize(self) -> None:
        """Break the text anew for another width."""
        if self.scrollable_content_region.width != self._width:
            self._break()
        self.call_after_refresh(self._tell)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Scrolling changes how much is hidden."""
        super().watch_scroll_y(old_value, new_value)
        self._tell()

    def _break(self) -> None:
        self._width = self.scrollable_content_region.width
        width = max(20, self._width - 1)
        self._rows = [(row, paragraph.card) for paragraph in self._paragraphs for row in wrap(paragraph, width)]
        if len(self._rows) != self.virtual_size.height:
            self.virtual_size = Size(0, len(self._rows))

    def _tell(self) -> None:
        above = min(self.scroll_offset.y, len(self._rows))
        below = max(0, len(self._rows) - above - self.scrollable_content_region.height)
        if (told := (above, below, len(self._rows))) != self._told:
            self._told = told
            self.post_message(self.Hidden(*told))

    def render_line(self, y: int) -> Strip:
        """One row of the text."""
        row = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        line, card = self._rows[row] if row < len(self._rows) else ((), False)
        ground = self.get_component_rich_style("role--card", partial=True) if card else None
        return drawn(self, line, width, ground=ground)
