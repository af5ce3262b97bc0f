"""A base for widgets that scroll by lines and have a scroll bar: keys, wheel and mouse."""

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.widget import Widget


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
