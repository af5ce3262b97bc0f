"""A terminal emulator: the feed of a run's output into it within a time budget, and keys for it (decision 21)."""

import time
from bisect import bisect_right
from collections.abc import Iterator
from enum import IntEnum
from functools import partial
from typing import NamedTuple

from pyte import modes
from pyte.screens import Char
from rich.cells import cell_len
from textual import events

from whisper_tui.export.terminal_screen import ALTERNATE, WHEEL_IS_ARROWS, Screen, TerminalScreen
from whisper_tui.model.api import Supervision
from whisper_tui.model.run import OutputChunk, TerminalSize
from whisper_tui.tui.output.ansi import DEFAULT, DIRECT, PLAIN, Pen, Run

_ARROWS = {"up": "A", "down": "B", "right": "C", "left": "D", "home": "H", "end": "F"}
_TILDES = {"insert": 2, "delete": 3, "pageup": 5, "pagedown": 6}
_TILDES |= {"f5": 15, "f6": 17, "f7": 18, "f8": 19, "f9": 20, "f10": 21, "f11": 23, "f12": 24}
_LETTERS = {"f1": "P", "f2": "Q", "f3": "R", "f4": "S"}
_PLAIN = {"enter": "\r", "tab": "\t", "escape": "\x1b", "backspace": "\x7f", "shift+tab": "\x1b[Z"}
_PLAIN |= {"space": " ", "ctrl+space": "\0", "ctrl+at": "\0", "ctrl+backspace": "\x08", "ctrl+j": "\n"}
_MODIFIERS = {"shift": 1, "alt": 2, "ctrl": 4}


def keystroke(key: str, character: str | None, *, application: bool = False) -> bytes:
    """Return the bytes of a key, by its name and its character; empty if a terminal sends nothing for it.

    `application`: the mode of application cursor keys is on.
    """
    if key in _PLAIN:
        return _PLAIN[key].encode()
    *held, last = key.split("+")
    modifiers = 1 + sum(_MODIFIERS.get(name, 0) for name in held)
    if last in _ARROWS:
        letter = _ARROWS[last]
        if modifiers > 1:
            return f"\x1b[1;{modifiers}{letter}".encode()
        return f"\x1b{'O' if application else '['}{letter}".encode()
    if last in _LETTERS:
        return (f"\x1b[1;{modifiers}{_LETTERS[last]}" if modifiers > 1 else f"\x1bO{_LETTERS[last]}").encode()
    if last in _TILDES:
        return f"\x1b[{_TILDES[last]}{f';{modifiers}' if modifiers > 1 else ''}~".encode()
    if character:
        return (b"\x1b" if "alt" in held else b"") + character.encode("utf-8", "replace")
    if "ctrl" in held and len(last) == 1 and last.isalpha():
        return (b"\x1b" if "alt" in held else b"") + bytes([ord(last.lower()) & 31])
    if "alt" in held and len(last) == 1:
        return b"\x1b" + last.encode()
    return b""


def pasted(text: str, *, bracketed: bool) -> bytes:
    """Return the bytes of pasted text, with line ends as Enter."""
    # Without its escape characters, pasted text cannot end the bracketed paste and go on as if it were typed.
    body = text.replace("\r\n", "\n").replace("\n", "\r").replace("\x1b", "")
    return (f"\x1b[200~{body}\x1b[201~" if bracketed else body).encode("utf-8", "replace")


_WHEELS: dict[type[events.MouseEvent], int] = {
    events.MouseScrollUp: 64,
    events.MouseScrollDown: 65,
    events.MouseScrollLeft: 66,
    events.MouseScrollRight: 67,
}
_MOVED = 32
_RELEASED = 3
"""The code of a released button in the old encoding, and of a move without a button."""
_MOST_CELLS = 223
"""The largest coordinate of the old encoding, one byte minus 32."""
WHEEL_LINES = 3
"""Arrow keys sent for one step of the wheel."""


class Tracking(IntEnum):
    """The mouse tracking that a program has asked for, by the number of its mode; each includes those before it."""

    NOTHING = 0
    PRESSES = 9
    CLICKS = 1000
    """Adds releases, modifiers and the wheel."""
    DRAGS = 1002
    MOVES = 1003


class MouseMode(NamedTuple):
    """The mouse reporting that a program has asked for, and its encoding."""

    tracking: Tracking = Tracking.NOTHING
    sgr: bool = False
    """The SGR encoding, which has no limit of columns and names the released button."""
    wheel_is_arrows: bool = False
    """The program uses the alternate screen without mouse tracking: the wheel sends arrow keys."""


def mouse_report(event: events.MouseEvent, row: int, column: int, mode: MouseMode) -> bytes:
    """Return the bytes of an event in a cell, counted from 0; empty if the program has not asked for it."""
    code = _code(event, mode.tracking)
    if code is None:
        return b""
    if mode.tracking > Tracking.PRESSES:
        code += 4 * event.shift + 8 * event.meta + 16 * event.ctrl
    released = isinstance(event, events.MouseUp)
    if mode.sgr:
        return f"\x1b[<{code};{column + 1};{row + 1}{'m' if released else 'M'}".encode()
    if max(row, column) >= _MOST_CELLS:
        return b""
    return b"\x1b[M" + bytes((32 + (code | _RELEASED if released else code), 33 + column, 33 + row))


def wheel_arrow(event: events.MouseEvent) -> str | None:
    """Return the arrow key that is sent for a step of the wheel."""
    match event:
        case events.MouseScrollUp():
            return "up"
        case events.MouseScrollDown():
            return "down"
        case _:
            return None


def _code(event: events.MouseEvent, tracking: Tracking) -> int | None:
    button = event.button - 1 if event.button else _RELEASED
    match event:
        case events.MouseDown() if tracking >= Tracking.PRESSES:
            return button
        case events.MouseUp() if tracking >= Tracking.CLICKS:
            return button
        case events.MouseMove() if tracking >= (Tracking.DRAGS if event.button else Tracking.MOVES):
            return _MOVED + button
        case _:
            return _WHEELS.get(type(event)) if tracking >= Tracking.CLICKS else None


_COLOURS = ("black", "red", "green", "brown", "blue", "magenta", "cyan", "white")
_NUMBERS = {name: number for number, name in enumerate(_COLOURS)}
_NUMBERS |= {f"bright{name}": number + 8 for number, name in enumerate(_COLOURS)} | {
    "bfightmagenta": 13
}  # the spelling of pyte
_CURSOR_KEYS = 1 << 5
"""Private mode 1, application cursor keys. pyte shifts private modes left by 5."""
_BRACKETED = 2004 << 5
_SGR_MOUSE = 1006 << 5


Cells = dict[int, dict[int, Char]]


class RecordedScreen(Screen):
    """The screen of a recording. Where a full-screen program leaves an empty one, its last screen stays."""

    def __init__(self, columns: int, lines: int) -> None:
        self.holds_last = False
        """True while it shows the last screen of a program that has left it."""
        self._wiped: Cells = {}
        super().__init__(columns, lines)

    def draw(self, data: str) -> None:
        """Put characters on the screen, on an empty one after a program has left it."""
        if self.holds_last:
            self.erase_in_display(2)
        super().draw(data)

    def erase_in_display(self, how: int = 0, *args: int, **kwargs: bool) -> None:
        """Erase a part of the screen or all of it."""
        # Many programs clear the screen just before they leave it.
        if self.kept is not None and (how >= 2 or self.cursor.x == self.cursor.y == 0):
            self._wiped = self._cells() or self._wiped
        self.holds_last = False
        super().erase_in_display(how, *args, **kwargs)

    def set_mode(self, *args: int, **kwargs: bool) -> None:
        """Set modes. A further program gets an empty screen, and leaves one."""
        if self.holds_last and kwargs.get("private") and ALTERNATE.intersection(args):
            self.erase_in_display(2)
        super().set_mode(*args, **kwargs)

    def reset_mode(self, *args: int, **kwargs: bool) -> None:
        """Reset modes. The screen of a program stays if the normal one is empty."""
        before = (self._cells() or self._wiped) if self.kept is not None else {}
        super().reset_mode(*args, **kwargs)
        if self.kept is None and before and not self.text():
            for row, line in before.items():
                if row < self.lines:
                    self.buffer[row].update(line)
            self.holds_last = True
        if self.kept is None:
            self._wiped = {}

    def _cells(self) -> Cells:
        return {row: dict(line) for row, line in self.buffer.items()} if self.text() else {}


class Emulator(TerminalScreen):
    """The screen of a command as rows of runs, and the modes that it has set for keys and mouse."""

    @property
    def cursor(self) -> tuple[int, int] | None:
        """Row and column of the cursor; None if it is hidden."""
        cursor = self._screen.cursor
        return None if cursor.hidden else (cursor.y, min(cursor.x, self._screen.columns - 1))

    @property
    def application_keys(self) -> bool:
        """True in the mode of application cursor keys."""
        return _CURSOR_KEYS in self._screen.mode

    @property
    def brackets_paste(self) -> bool:
        """True in the mode of bracketed paste."""
        return _BRACKETED in self._screen.mode

    @property
    def mouse(self) -> MouseMode:
        """The mouse reporting that the command has asked for."""
        asked = [tracking for tracking in Tracking if tracking and tracking << 5 in self._screen.mode]
        return MouseMode(
            tracking=max(asked, default=Tracking.NOTHING),
            sgr=_SGR_MOUSE in self._screen.mode,
            wheel_is_arrows=not asked and self._screen.kept is not None and WHEEL_IS_ARROWS in self._screen.mode,
        )

    def take_replies(self) -> bytes:
        """Return the replies of the terminal to queries of the command since the last call."""
        replies = "".join(self._screen.replies)
        self._screen.replies.clear()
        return replies.encode()

    def take_dirty(self) -> set[int]:
        """Return the rows that have changed since the last call."""
        dirty = set(self._screen.dirty)
        self._screen.dirty.clear()
        return dirty

    def row(self, number: int) -> tuple[Run, ...]:
        """Return the runs of a row, as wide as the screen."""
        runs: list[Run] = []
        for text, pen in self._cells(number):
            if runs and runs[-1].pen == pen:
                runs[-1] = Run(runs[-1].text + text, pen)
            else:
                runs.append(Run(text, pen))
        return tuple(runs)

    def _cells(self, number: int) -> Iterator[tuple[str, Pen]]:
        line = self._screen.buffer[number]
        inverted = modes.DECSCNM in self._screen.mode
        column = 0
        while column < self._screen.columns:
            cell: Char = line[column]
            wide = column + 1 < self._screen.columns and line[column + 1].data == ""
            width = 2 if wide else 1
            # pyte and Rich disagree about the width of some characters; blanks keep the columns aligned.
            text = cell.data if cell.data and cell_len(cell.data) == width else " " * width
            yield text, _pen(cell, inverted=inverted)
            column += width

    def text(self) -> str:
        """Return the text of the screen without colours and trailing blanks."""
        rows = ("".join(run.text for run in self.row(number)).rstrip() for number in range(self._screen.lines))
        return "\n".join(rows).rstrip("\n") + "\n"


def _pen(cell: Char, *, inverted: bool) -> Pen:
    if cell.fg == cell.bg == "default" and not (cell.bold or cell.italics or cell.underscore or cell.strikethrough):
        reverse = cell.reverse != inverted
        return PLAIN._replace(reverse=True) if reverse else PLAIN
    return Pen(
        foreground=_colour(cell.fg),
        background=_colour(cell.bg),
        bold=cell.bold,
        italic=cell.italics,
        underline=cell.underscore,
        strike=cell.strikethrough,
        reverse=cell.reverse != inverted,
    )


def _colour(name: str) -> int:
    if name == "default":
        return DEFAULT
    if (number := _NUMBERS.get(name)) is not None:
        return number
    try:
        return DIRECT + int(name, 16)
    except ValueError:
        return DEFAULT


LOOKED_BACK = 64 * 1024
"""Bytes before the end that are replayed when a terminal is opened."""
BEHIND = 256 * 1024
"""Backlog in bytes beyond which the feed skips to near the end."""
READ = 16 * 1024
SLICE = 2048
"""Bytes fed between two checks of the time budget."""
BUDGET_S = 0.006
"""Time budget of one step, so that keys are handled at 40 frames a second."""


class TerminalFeed:
    """Feeds the output of one run into an emulator."""

    def __init__(self, supervision: Supervision, call_id: str, size: tuple[int, int], *, recorded: bool) -> None:
        """`size`: lines and columns. `recorded`: use the recorded sizes of the run instead."""
        lines, columns = size
        self._screen = RecordedScreen(columns, lines) if recorded else None
        self.emulator = Emulator(lines, columns, self._screen)
        self.recorded = recorded
        self.live = False
        """True once the backlog is fed: only queries in new output still wait for a reply."""
        self.stream_size = 0
        self.ended = False
        self._read = partial(supervision.read_output, call_id, "out")
        self._read_sizes = partial(supervision.terminal_sizes, call_id)
        self._sizes: tuple[TerminalSize, ...] = ()
        self._offset: int | None = None
        self._answers = b""

    @property
    def begun(self) -> bool:
        """True once anything was read."""
        return self._offset is not None

    @property
    def holds_last(self) -> bool:
        """True while the last screen of a program is shown that has left it empty."""
        return self._screen is not None and self._screen.holds_last

    def resize(self, size: tuple[int, int]) -> None:
        """Resize to lines and columns, unless recorded sizes are used."""
        if not self.recorded:
            self.emulator.resize(*size)

    def take_answers(self) -> bytes:
        """Return the replies to queries of the command since the last call."""
        answers, self._answers = self._answers, b""
        return answers

    async def advance(self) -> bool:
        """Feed new output within the time budget. Return True if anything has changed."""
        if self._offset is None:
            self._offset = max(0, (await self._read(0, 0)).size - LOOKED_BACK)
        if self.recorded and not self.ended:
            self._sizes = await self._read_sizes()
        until = time.perf_counter() + BUDGET_S
        changed = False
        while True:
            chunk = await self._read(self._offset, READ)
            changed = changed or (chunk.size, chunk.ended) != (self.stream_size, self.ended)
            self.stream_size, self.ended = chunk.size, chunk.ended
            # A flood is faster than any emulator; only its end can still be seen.
            if chunk.size - chunk.next_offset > BEHIND:
                self._offset, self.live = chunk.size - LOOKED_BACK, False
                continue
            if not chunk.data:
                self.live = True
                return self._fit(chunk.size) or changed
            self._offset = self._draw(chunk, until)
            changed = True
            if time.perf_counter() >= until:
                return True

    def _draw(self, chunk: OutputChunk, until: float) -> int:
        """Feed from a chunk until a time. Return the offset of the next byte."""
        at = 0
        while at < len(chunk.data) and time.perf_counter() < until:
            self._fit(chunk.start + at)
            step = min(SLICE, self._same_size(chunk.start + at))
            self.emulator.feed(chunk.data[at : at + step])
            at += step
        answers = self.emulator.take_replies()
        # Answering a query of the past would type garbage into the program that runs now.
        if self.live:
            self._answers += answers
        return chunk.start + min(at, len(chunk.data))

    def _fit(self, offset: int) -> bool:
        """Resize to the recorded size at a byte. Return True if that changed the size."""
        sizes = self._sizes[: self._sizes_until(offset)]
        before = self.emulator.size
        if sizes:
            self.emulator.resize(sizes[-1].rows, sizes[-1].columns)
        return before != self.emulator.size

    def _same_size(self, offset: int) -> int:
        """The number of bytes from an offset to the next recorded resize."""
        later = self._sizes[self._sizes_until(offset) :]
        return later[0].start - offset if later else SLICE

    def _sizes_until(self, offset: int) -> int:
        return bisect_right(self._sizes, offset, key=_start)


def _start(size: TerminalSize) -> int:
    return size.start
