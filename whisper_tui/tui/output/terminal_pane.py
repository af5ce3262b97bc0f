"""The terminal of a command that has one: drawn by an emulator, with a mode in which keys go to the command."""

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.worker import Worker

from whisper_tui.model.api import Supervision
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.present.quantities import size
from whisper_tui.present.spans import Line, Span
from whisper_tui.present.words import error_text
from whisper_tui.tui.lines import ROLE_CLASSES, base_style, drawn, width_of
from whisper_tui.tui.output.ansi import PLAIN, Run
from whisper_tui.tui.output.painter import Pens

if TYPE_CHECKING:
    # It loads pyte, and most calls run in no terminal.
    from whisper_tui.tui.output.emulator import TerminalFeed


def with_cursor(runs: tuple[Run, ...], column: int) -> tuple[Run, ...]:
    """Return a row with the character under the cursor reversed."""
    text = "".join(run.text for run in runs)
    at = _index_of(text, column)
    done: list[Run] = []
    start = 0
    for run in runs:
        here = at - start
        if 0 <= here < len(run.text):
            pen = run.pen._replace(reverse=not run.pen.reverse)
            done += [Run(run.text[:here], run.pen), Run(run.text[here], pen), Run(run.text[here + 1 :], run.pen)]
        else:
            done.append(run)
        start += len(run.text)
    if at >= start:
        done.append(Run(" ", PLAIN._replace(reverse=True)))
    return tuple(run for run in done if run.text)


def _index_of(text: str, column: int) -> int:
    if text.isascii():
        return column
    used = 0
    for index, character in enumerate(text):
        if used >= column:
            return index
        used += cell_len(character)
    return len(text)


WAY_OUT = "ctrl+right_square_bracket"
"""The key that leaves terminal mode, and so the only one that is never sent."""
TYPED_AHEAD_S = 0.3
"""Keys within this time after the end of a command, or after one another since, were meant for the command."""


class TerminalPane(Widget, can_focus=True):
    """A title line and the screen of a terminal. While `typing`, every key but one goes to the command."""

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
        self._previewed = False
        """True if the command runs in a preview, where nobody can type."""
        self._runs: list[tuple[Run, ...]] = []
        self._mouse_at: tuple[int, int] | None = None
        """The cell of the last mouse report."""
        self.typing = False
        self._last_lost = 0.0
        """The time at which the command ended, or of the last key since that was meant for it."""

    def show(self, supervision: Supervision, record: CallRecord | None, *, recorded: bool) -> None:
        """Show the terminal of a call, or nothing. `recorded`: in the sizes that it had."""
        self._supervision = supervision
        self._call_id = record.id if record is not None else ""
        self._problem, self._runs, self._unsent = "", [], b""
        self._feed = None
        self._previewed = record is not None and isinstance(record.state, Waiting)
        if record is not None:
            from whisper_tui.tui.output.emulator import TerminalFeed

            self._feed = TerminalFeed(supervision, record.id, self._screen_size, recorded=recorded)
        self.stop_typing()
        self.refresh()

    def recolour(self, pens: Pens) -> None:
        """Draw with other colours."""
        self._pens = pens
        self.refresh()

    def text(self) -> str:
        """Return the text of the screen without colours."""
        return self._feed.emulator.text() if self._feed is not None else ""

    class TypingEnded(Message):
        """Keys go to the cockpit again."""

    def begin_typing(self) -> None:
        """Enter terminal mode: every key goes to the command."""
        self.screen.set_focus(self)
        self.typing = True
        self.screen.refresh_bindings()
        self.refresh()

    def stop_typing(self) -> None:
        """Leave terminal mode."""
        if self.typing:
            self.typing = False
            self.post_message(self.TypingEnded())
            self.release_mouse()
            self.screen.refresh_bindings()
            self.refresh()

    @property
    def _screen_size(self) -> tuple[int, int]:
        return max(1, self.size.height - 1), max(1, self.size.width - 1)

    def on_resize(self) -> None:
        """Resize the terminal with the pane."""
        if self._feed is None or not self.display:
            return
        self._feed.resize(self._screen_size)
        self._draw(self._feed)
        self._tell_size_soon(self._feed)

    def _tell_size_soon(self, feed: "TerminalFeed") -> None:
        if not feed.recorded:
            _: Worker[None] = self.run_worker(self._tell_size, group="size", exclusive=True)

    async def _tell_size(self) -> None:
        """Tell the supervisor the size; a command may have ended meanwhile, so errors do not matter."""
        if self._supervision is not None:
            with suppress(WhisperError):
                await self._supervision.resize(self._call_id, *self._screen_size)

    def _send(self, data: bytes) -> None:
        """Queue bytes for the command; those queued during a send go together in the next one, in order."""
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
                self.notify(error_text(error), severity="warning", markup=False)
                return
            if call_id == self._call_id:
                self._unsent = self._unsent[len(data) :]

    def on_blur(self) -> None:
        """Leave terminal mode when the focus goes elsewhere."""
        self.stop_typing()

    def on_click(self, event: events.Click) -> None:
        """Leave terminal mode on a click on the title."""
        if event.y == 0:
            self.stop_typing()

    async def _on_key(self, event: events.Key) -> None:
        """Send a key to the command, or leave terminal mode."""
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
        from whisper_tui.tui.output.emulator import keystroke

        data = keystroke(event.key, event.character, application=self._feed.emulator.application_keys)
        if data:
            self._send(data)

    def _key_after_end(self) -> None:
        """Drop a key after the end of the command; the first one that was not typed ahead leaves terminal mode."""
        # A key typed ahead for the command must not become a key of the cockpit, where it could approve a call.
        now = time.monotonic()
        if now - self._last_lost >= TYPED_AHEAD_S:
            self.stop_typing()
        self._last_lost = now

    async def _on_paste(self, event: events.Paste) -> None:
        """Send pasted text to the command."""
        if self.typing and self._feed is not None:
            event.stop()
            event.prevent_default()
            if not self._ended:
                from whisper_tui.tui.output.emulator import pasted

                self._send(pasted(event.text, bracketed=self._feed.emulator.brackets_paste))

    async def on_event(self, event: events.Event) -> None:
        """In terminal mode, send mouse events below the title to a command that has asked for them."""
        if not (isinstance(event, events.MouseEvent) and self.typing and self._mouse_goes_on(event)):
            await super().on_event(event)

    def _mouse_goes_on(self, event: events.MouseEvent) -> bool:
        """Send a mouse event to the command. Return False if it has not asked for it."""
        # A drag that began in the pane is followed outside it, up to its release.
        held = self.app.mouse_captured is self
        if self._feed is None or (event.y < 1 and not held):
            return False
        from whisper_tui.tui.output.emulator import WHEEL_LINES, keystroke, mouse_report, wheel_arrow

        emulator = self._feed.emulator
        mode = emulator.mouse
        if mode.wheel_is_arrows and (key := wheel_arrow(event)) is not None:
            self._send(keystroke(key, None, application=emulator.application_keys) * WHEEL_LINES)
            return True
        row, column = (
            max(0, min(at - 1, most - 1)) for at, most in zip((event.y, event.x), emulator.size, strict=True)
        )
        data = mouse_report(event, row, column, mode)
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
        """Draw new output within the time budget."""
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
                self._problem = error_text(error)
                self.refresh()
            return
        finally:
            self._busy = False
        if feed.ended and not ended:
            self._last_lost = time.monotonic()
        if changed and feed is self._feed:
            answers = feed.take_answers()
            # Only a person who has entered terminal mode writes to the command; a glance at it must change nothing.
            if answers and self.typing:
                self._send(answers)
            self._draw(feed)

    def _draw(self, feed: "TerminalFeed") -> None:
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
        """Bytes of output known so far."""
        return self._feed.stream_size if self._feed is not None else 0

    @property
    def live(self) -> bool:
        """True once all output is drawn."""
        return self._feed is not None and self._feed.live

    @property
    def _ended(self) -> bool:
        return self._feed is not None and self._feed.ended

    @property
    def _cursor(self) -> tuple[int, int] | None:
        return self._feed.emulator.cursor if self._feed is not None else None

    @property
    def _top(self) -> int:
        """The first row on the screen: a recorded terminal may be higher than the pane."""
        room = max(1, self.size.height - 1)
        row = self._cursor[0] if self._cursor is not None else 0
        return max(0, min(row + 1, len(self._runs)) - room)

    def render_line(self, y: int) -> Strip:
        """Draw the title or a row of the terminal."""
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
            left = (*left, Span(" TERMINAL MODE ", "waiting"))
            right = (Span(" Ctrl+] exits", "waiting"), Span(" ─", "frame"))
        elif self._feed is not None and self._feed.recorded:
            left = (*left, Span(f"{self._extent} ", "muted"))
            right = (Span(" o shows its lines", "muted"), Span(" ─", "frame"))
        elif self._ended:
            right = (Span(" ended · o shows its lines", "muted"), Span(" ─", "frame"))
        else:
            hint = " o shows its lines" if self._previewed else " T types into it · o shows its lines"
            right = (Span(hint, "running"), Span(" ─", "frame"))
        if width_of((*left, *right)) > width:
            way_out = " any key returns" if self._ended else " Ctrl+]"
            right = (Span(way_out, "waiting"),) if self.typing else ()
        dashes = Span("─" * max(0, width - width_of(left) - width_of(right)), "frame")
        focused = self.get_component_rich_style("role--focused") if self.has_focus and not self.typing else None
        return drawn(self, (*left, dashes, *right), width, focused)

    @property
    def _extent(self) -> str:
        """The size of a recorded terminal, and a note if it does not fit."""
        lines, columns = self._feed.emulator.size if self._feed is not None else (0, 0)
        room_lines, room_columns = self._screen_size
        cut = ", a part of it" if lines > room_lines or columns > room_columns else ""
        last = " · last screen" if self._feed is not None and self._feed.holds_last else ""
        return f"· {columns} by {lines}{cut}{last}"
