"""The terminal of a command that has one: drawn by an emulator, and typed into while the person wants that."""

import time
from contextlib import suppress

from textual import events
from textual.strip import Strip
from textual.widget import Widget
from textual.worker import Worker

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.port import Supervision
from whisper_tui.model.state import CallRecord
from whisper_tui.tui.output.cursor import with_cursor
from whisper_tui.tui.output.keystrokes import keystroke, pasted
from whisper_tui.tui.output.mouse import WHEEL_LINES, mouse_report, wheel_arrow
from whisper_tui.tui.output.pens import Pens
from whisper_tui.tui.output.sgr import Run
from whisper_tui.tui.output.terminal_feed import TerminalFeed
from whisper_tui.tui.spans import ROLE_CLASSES, Line, Span, width_of
from whisper_tui.tui.widgets.drawn import base_style, drawn
from whisper_tui.tui.words import size, told

WAY_OUT = "ctrl+right_square_bracket"
"""The one key that is never sent: it gives the keys back to the cockpit."""
TYPED_AHEAD_S = 0.3
"""Keys that come so soon after the end of a command, or after one another since then, were meant for the command."""


class TerminalPane(Widget, can_focus=True):
    """A title line and the screen of a terminal. With `typing`, every key but one goes to the command."""

    COMPONENT_CLASSES = ROLE_CLASSES | {"role--focused"}
    ALLOW_SELECT = False

    def __init__(self, pens: Pens, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._pens = pens
        self._supervision: Supervision | None = None
        self._call_id = ""
        self._feed: TerminalFeed | None = None
        self._unsent = b""
        self._busy = False
        self._problem = ""
        self._runs: list[tuple[Run, ...]] = []
        self._mouse_at: tuple[int, int] | None = None
        """The cell of which the command was told last."""
        self.typing = False
        self._last_lost = 0.0
        """When the command had ended, or when a key came since that was meant for it."""

    def show(self, supervision: Supervision, record: CallRecord | None, *, recorded: bool) -> None:
        """Show another command's terminal, `recorded`: in the sizes that it had. None: there is none."""
        self._supervision = supervision
        self._call_id = record.id if record is not None else ""
        self._problem, self._runs, self._unsent = "", [], b""
        self._feed = None
        if record is not None:
            self._feed = TerminalFeed(supervision, record.id, self._screen_size, recorded=recorded)
        self.stop_typing()
        self.refresh()

    def recolour(self, pens: Pens) -> None:
        """Draw with other colours."""
        self._pens = pens
        self.refresh()

    def text(self) -> str:
        """What is on the screen, without colours."""
        return self._feed.emulator.text() if self._feed is not None else ""

    def begin_typing(self) -> None:
        """Send every key to the command from now on."""
        self.screen.set_focus(self)
        self.typing = True
        self.screen.refresh_bindings()
        self.refresh()

    def stop_typing(self) -> None:
        """Keys belong to the cockpit again."""
        if self.typing:
            self.typing = False
            self.release_mouse()
            self.screen.refresh_bindings()
            self.refresh()

    @property
    def _screen_size(self) -> tuple[int, int]:
        return max(1, self.size.height - 1), max(1, self.size.width - 1)

    def on_resize(self) -> None:
        """The terminal is as large as the pane."""
        if self._feed is None or not self.display:
            return
        self._feed.resize(self._screen_size)
        self._draw(self._feed)
        self._tell_size_soon(self._feed)

    def _tell_size_soon(self, feed: TerminalFeed) -> None:
        if not feed.recorded:
            _: Worker[None] = self.run_worker(self._tell_size, group="size", exclusive=True)

    async def _tell_size(self) -> None:
        """A command that has ended meanwhile has no use for it."""
        if self._supervision is not None:
            with suppress(WhisperError):
                await self._supervision.resize(self._call_id, *self._screen_size)

    def _send(self, data: bytes) -> None:
        """Send this after everything before it; what comes while something is sent goes together."""
        self._unsent += data
        if self._unsent == data:
            self.run_worker(self._send_all(self._supervision, self._call_id), group="send")

    async def _send_all(self, supervision: Supervision | None, call_id: str) -> None:
        while supervision is not None and self._unsent and call_id == self._call_id:
            data = self._unsent
            try:
                await supervision.write_stdin(call_id, data)
            except WhisperError as error:
                self._unsent = b""
                self.stop_typing()
                self.notify(told(error), severity="warning", markup=False)
                return
            if call_id == self._call_id:
                self._unsent = self._unsent[len(data) :]

    def on_blur(self) -> None:
        """Keys go where the focus is."""
        self.stop_typing()

    def on_click(self, event: events.Click) -> None:
        """A click on the title gives the keys back."""
        if event.y == 0:
            self.stop_typing()

    async def _on_key(self, event: events.Key) -> None:
        """A key for the command, or the way out."""
        if not self.typing or self._feed is None:
            return
        event.stop()
        event.prevent_default()
        if event.key == WAY_OUT:
            self.stop_typing()
            return
        if self._ended:
            self._key_after_end()
            return
        data = keystroke(event.key, event.character, application=self._feed.emulator.application_keys)
        if data:
            self._send(data)

    def _key_after_end(self) -> None:
        """No key goes to a command that has ended, and the first that was not typed ahead gives the keys back."""
        now = time.monotonic()
        if now - self._last_lost >= TYPED_AHEAD_S:
            self.stop_typing()
        self._last_lost = now

    async def _on_paste(self, event: events.Paste) -> None:
        """Pasted text for the command."""
        if self.typing and self._feed is not None:
            event.stop()
            event.prevent_default()
            if not self._ended:
                self._send(pasted(event.text, bracketed=self._feed.emulator.brackets_paste))

    async def on_event(self, event: events.Event) -> None:
        """While a person types, the command has the mouse as far as it has asked for it, save on the title."""
        if not (isinstance(event, events.MouseEvent) and self.typing and self._mouse_goes_on(event)):
            await super().on_event(event)

    def _mouse_goes_on(self, event: events.MouseEvent) -> bool:
        """Whether an event was for the command. A button that was pressed here is followed until it is let go."""
        held = self.app.mouse_captured is self
        if self._feed is None or (event.y < 1 and not held):
            return False
        emulator = self._feed.emulator
        wish = emulator.mouse
        if wish.wheel_is_arrows and (key := wheel_arrow(event)) is not None:
            self._send(keystroke(key, None, application=emulator.application_keys) * WHEEL_LINES)
            return True
        row, column = (
            max(0, min(at - 1, most - 1)) for at, most in zip((event.y, event.x), emulator.size, strict=True)
        )
        data = mouse_report(event, row, column, wish)
        if isinstance(event, events.MouseUp):
            self.release_mouse()
        if not data or (isinstance(event, events.MouseMove) and (row, column) == self._mouse_at):
            return bool(data)
        self._mouse_at = row, column
        if isinstance(event, events.MouseDown):
            self.capture_mouse()
        self._send(data)
        return True

    async def tick(self) -> None:
        """Draw what was written since, as much as there is time for."""
        feed = self._feed
        if feed is None or self._busy or self._problem or not self.size:
            return
        if not feed.begun:
            feed.resize(self._screen_size)
            self._tell_size_soon(feed)
        self._busy = True
        ended = feed.ended
        try:
            changed = await feed.advance()
        except WhisperError as error:
            if feed is self._feed:
                self._problem = told(error)
                self.refresh()
            return
        finally:
            self._busy = False
        if feed.ended and not ended:
            self._last_lost = time.monotonic()
        if changed and feed is self._feed:
            answers = feed.take_answers()
            if answers and self.typing:
                self._send(answers)
            self._draw(feed)

    def _draw(self, feed: TerminalFeed) -> None:
        lines, _ = feed.emulator.size
        dirty = feed.emulator.take_dirty()
        if len(self._runs) != lines:
            self._runs = [feed.emulator.row(number) for number in range(lines)]
        for number in dirty:
            if number < lines:
                self._runs[number] = feed.emulator.row(number)
        self.refresh()

    @property
    def stream_size(self) -> int:
        """Bytes of output that are known."""
        return self._feed.stream_size if self._feed is not None else 0

    @property
    def live(self) -> bool:
        """Whether everything that there is was drawn."""
        return self._feed is not None and self._feed.live

    @property
    def _ended(self) -> bool:
        return self._feed is not None and self._feed.ended

    @property
    def _cursor(self) -> tuple[int, int] | None:
        return self._feed.emulator.cursor if self._feed is not None else None

    @property
    def _top(self) -> int:
        """The first row that is shown: a terminal of the past may have more than there is room for."""
        room = max(1, self.size.height - 1)
        row = self._cursor[0] if self._cursor is not None else 0
        return max(0, min(row + 1, len(self._runs)) - room)

    def render_line(self, y: int) -> Strip:
        """The title, or one row of the terminal."""
        width = self.size.width
        if y == 0:
            return self._title(width)
        if self._problem and y == 1:
            return drawn(self, (Span(f"  The terminal cannot be read: {self._problem}", "bad"),), width)
        base = base_style(self)
        row = self._top + y - 1
        runs = self._runs[row] if row < len(self._runs) else ()
        cursor = self._cursor if not self._ended else None
        if cursor is not None and cursor[0] == row and (self.typing or self.live):
            runs = with_cursor(runs, cursor[1])
        return Strip.join([drawn(self, (Span(" "),), 1), self._pens.strip(runs, base)]).adjust_cell_length(width, base)

    def _title(self, width: int) -> Strip:
        left: Line = (Span("── ", "frame"), Span("terminal", "strong"), Span(f" {size(self.stream_size)} ", "muted"))
        if self.typing and self._ended:
            right: Line = (Span(" ended · any key returns", "waiting"), Span(" ─", "frame"))
        elif self.typing:
            left = (*left, Span(" your keys go to the command ", "waiting"))
            right = (Span(" Ctrl+] gives them back", "waiting"), Span(" ─", "frame"))
        elif self._feed is not None and self._feed.recorded:
            left = (*left, Span(f"{self._extent} ", "muted"))
            right = (Span(" o shows its lines", "muted"), Span(" ─", "frame"))
        elif self._ended:
            right = (Span(" ended · o shows its lines", "muted"), Span(" ─", "frame"))
        else:
            right = (Span(" T types into it · o shows its lines", "running"), Span(" ─", "frame"))
        if width_of((*left, *right)) > width:
            way_out = " any key returns" if self._ended else " Ctrl+]"
            right = (Span(way_out, "waiting"),) if self.typing else ()
        dashes = Span("─" * max(0, width - width_of(left) - width_of(right)), "frame")
        focused = self.get_component_rich_style("role--focused") if self.has_focus and not self.typing else None
        return drawn(self, (*left, dashes, *right), width, focused)

    @property
    def _extent(self) -> str:
        """The size of a terminal of the past, and whether all of it is seen."""
        lines, columns = self._feed.emulator.size if self._feed is not None else (0, 0)
        room_lines, room_columns = self._screen_size
        cut = ", a part of it" if lines > room_lines or columns > room_columns else ""
        return f"· {columns} by {lines}{cut}"
