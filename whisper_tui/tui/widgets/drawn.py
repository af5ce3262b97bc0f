"""Lines of spans as strips of a widget, in the colours of the theme."""

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from whisper_tui.tui.spans import Line, fitted, width_of


def base_style(widget: Widget) -> Style:
    """Plain text on the ground of a widget. Unlike `Widget.rich_style` it is remembered until styles change."""
    return widget.get_component_rich_style("role--text")


def drawn(widget: Widget, line: Line, width: int, over: Style | None = None, ground: Style | None = None) -> Strip:
    """A line in exactly `width` columns; `over` replaces the colours of its roles, `ground` lies under them."""
    if width_of(line) > width:
        line = fitted(line, width)
    base = base_style(widget)
    if ground is not None:
        base += ground
    segments = [
        Segment(span.text, over or base + widget.get_component_rich_style(f"role--{span.role}", partial=True))
        for span in line
    ]
    return Strip(segments).adjust_cell_length(width, over or base)
