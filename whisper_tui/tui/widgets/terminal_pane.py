"""The terminal of a command that has one: drawn by an emulator, and typed into while the person wants that."""

import time
from contextlib import suppress
from functools import partial

from rich.cells import cell_len
from textual import events
from textual.strip import Strip
from textual.widget import Widget
from textual.worker import Worker

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.port import Supervision
from whisper_tui.tui.output.emulator import Emulator
from whisper_tui.tui.output.keystrokes import keystroke, pasted
from whisper_tui.tui.output.pens import Pens
from whisper_tui.tui.output.reader import ReadOutput
from whisper_tui.tui.output.sgr import PLAIN, Run
from whisper_tui.tui.spans import ROLE_CLASSES, Line, Span, width_of
from whisper_tui.tui.widgets.drawn import base_style, drawn
from whisper_tui.tui.words import size, told

WAY_OUT = "ctrl+right_square_bracket"
"""The one key that is never sent: it gives the keys back to the cockpit."""
LOOKED_BACK = 64 * 1024
"""Bytes before the end that are drawn when a terminal is first looked at."""
BEHIND = 256 * 1024
"""Bytes not yet drawn after which the terminal goes on near the end."""
READ = 16 * 1024
SLICE = 2048
"""Bytes drawn between two looks at the clock."""
BUDGET_S = 0.006
"""How long drawing may take before keys get their turn."""


class TerminalPane(Widget, can_focus=True):
    """A title line and the screen of a terminal. With `typing`, every key but one goes to the command."""

    COMPONENT_CLASSES = ROLE_CLASSES | {"role--focused"}
    ALLOW_SELECT = False

    def __init__(self, pens: Pens, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._pens = pens
        self._supervision: Supervision | None = None
        self._call_id = ""
        self._read: ReadOutput | None = None
        self._unsent = b""
        self._emulator = Emulator(1, 1)
        self._offset: int | None = None
        self._live = False
        """Whether what is fed is new, so that a question in it waits for its answer."""
        self._busy = False
        self._problem = ""
        self._runs: list[tuple[Run, ...]] = []
        self.typing = False
        self.stream_size = 0
        self.ended = False

    def show(self, supervision: Supervision | None, call_id: str = "") -> None:
        """Show another command's terminal. None: there is none."""
        self._supervision, self._call_id = supervision, call_id
        self._read = partial(supervision.read_output, call_id, "out") if supervision is not None else None
        self._offset, self._live, self._unsent = None, False, b""
        self._problem, self._runs = "", []
        self.stream_size, self.ended = 0, False
        self._emulator = Emulator(*self._screen_size)
        self.stop_typing()
        self.refresh()

    def recolour(self, pens: Pens) -> None:
        """Draw with other colours."""
        self._pens = pens
        self.refresh()

    def text(self) -> str:
        """What is on the screen, without colours."""
        return self._emulator.text()

    def begin_typing(self) -> None:
        """Send every key to the command from now on."""
        self.focus()
        self.typing = True
        self.screen.refresh_bindings()
        self.refresh()

    def stop_typing(self) -> None:
        """Keys belong to the cockpit again."""
        if self.typing:
            self.typing = False
            self.screen.refresh_bindings()
            self.refresh()

    @property
    def _screen_size(self) -> tuple[int, int]:
        return max(1, self.size.height - 1), max(1, self.size.width - 1)

    def on_resize(self) -> None:
        """The terminal is as large as the pane."""
        if self._read is None or not self.display:
            return
        self._emulator.resize(*self._screen_size)
        self._draw()
        self._tell_size_soon()

    def _tell_size_soon(self) -> None:
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
        if not self.typing:
            return
        event.stop()
        event.prevent_default()
        if event.key == WAY_OUT:
            self.stop_typing()
            return
        data = keystroke(event.key, event.character, application=self._emulator.application_keys)
        if data:
            self._send(data)

    async def _on_paste(self, event: events.Paste) -> None:
        """Pasted text for the command."""
        if self.typing:
            event.stop()
            event.prevent_default()
            self._send(pasted(event.text, bracketed=self._emulator.brackets_paste))

    async def tick(self) -> None:
        """Draw what was written since, as much as there is time for."""
        read = self._read
        if read is None or self._busy or self._problem or not self.size:
            return
        if self._offset is None:
            self._emulator = Emulator(*self._screen_size)
            self._tell_size_soon()
        self._busy = True
        try:
            if await self._feed(read) and read is self._read:
                self._draw()
        except WhisperError as error:
            self._problem = told(error)
            self.refresh()
        finally:
            self._busy = False

    async def _feed(self, read: ReadOutput) -> bool:
        """Whether anything was fed."""
        if self._offset is None:
            self._offset = max(0, (await read(0, 0)).size - LOOKED_BACK)
        until = time.perf_counter() + BUDGET_S
        fed = False
        while read is self._read:
            chunk = await read(self._offset, READ)
            fed = fed or (chunk.size, chunk.ended) != (self.stream_size, self.ended)
            self.stream_size, self.ended = chunk.size, chunk.ended
            if chunk.size - chunk.next_offset > BEHIND:
                self._offset, self._live = chunk.size - LOOKED_BACK, False
                continue
            if not chunk.data:
                self._live = True
                break
            at = 0
            while at < len(chunk.data) and time.perf_counter() < until:
                self._emulator.feed(chunk.data[at : at + SLICE])
                at += SLICE
            self._answer()
            self._offset = chunk.start + min(at, len(chunk.data))
            fed = True
            if time.perf_counter() >= until:
                break
        return fed

    def _answer(self) -> None:
        """What the command asks its terminal is answered while a person types into it, and never twice."""
        replies = self._emulator.take_replies()
        if replies and self._live and self.typing:
            self._send(replies)

    def _draw(self) -> None:
        lines, _ = self._emulator.size
        dirty = self._emulator.take_dirty()
        if len(self._runs) != lines:
            self._runs = [self._emulator.row(number) for number in range(lines)]
        for number in dirty:
            if number < lines:
                self._runs[number] = self._emulator.row(number)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """The title, or one row of the terminal."""
        width = self.size.width
        if y == 0:
            return self._title(width)
        if self._problem and y == 1:
            return drawn(self, (Span(f"  The terminal cannot be read: {self._problem}", "bad"),), width)
        base = base_style(self)
        runs = self._runs[y - 1] if y <= len(self._runs) else ()
        cursor = self._emulator.cursor if not self.ended else None
        if cursor is not None and cursor[0] == y - 1 and (self.typing or self._live):
            runs = _with_cursor(runs, cursor[1])
        return Strip.join([drawn(self, (Span(" "),), 1), self._pens.strip(runs, base)]).adjust_cell_length(width, base)

    def _title(self, width: int) -> Strip:
        left: Line = (Span("── ", "frame"), Span("terminal", "strong"), Span(f" {size(self.stream_size)} ", "muted"))
        if self.typing:
            left = (*left, Span(" your keys go to the command ", "waiting"))
            right: Line = (Span(" Ctrl+] gives them back", "waiting"), Span(" ─", "frame"))
        elif self.ended:
            right = (Span(" ended · o shows its lines", "muted"), Span(" ─", "frame"))
        else:
            right = (Span(" T types into it · o shows its lines", "running"), Span(" ─", "frame"))
        if width_of((*left, *right)) > width:
            right = (Span(" Ctrl+]", "waiting"),) if self.typing else ()
        dashes = Span("─" * max(0, width - width_of(left) - width_of(right)), "frame")
        focused = self.get_component_rich_style("role--focused") if self.has_focus and not self.typing else None
        return drawn(self, (*left, dashes, *right), width, focused)


def _with_cursor(runs: tuple[Run, ...], column: int) -> tuple[Run, ...]:
    """A row with the character under the cursor in reverse. Columns are characters, save for wide ones."""
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
