"""One line of text that is set from outside."""

from textual.strip import Strip
from textual.widget import Widget

from whisper_tui.tui.spans import ROLE_CLASSES, Line, Span, width_of
from whisper_tui.tui.widgets.drawn import base_style, drawn


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
