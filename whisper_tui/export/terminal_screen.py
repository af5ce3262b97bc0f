"""An emulated terminal screen, and the last screen of a recorded run."""

import asyncio
import codecs
import re
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import pyte
from pyte.screens import Char

from whisper_tui.model.api import Supervision
from whisper_tui.model.run import TerminalSize
from whisper_tui.model.text import without_hidden

LONGEST_SEQUENCE = 4096
"""The longest unfinished escape sequence in characters. A longer one is passed on."""

_UNREAD = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links, clipboard: not part of the screen
    r"|\x1b[PX^_][^\x1b]*\x1b\\"  # device control and other strings
    r"|\x1b\[[<=>][0-?]*[ -/]*[@-~]"  # private sequences that pyte confuses with standard ones
    r"|\x1b\[[0-?]*[ -/]+[@-~]"  # sequences with intermediate bytes, which pyte would print
    r"|\x1b\[[0-9;]*:[0-9;:]*m"  # colours with colons, which pyte would print
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)?\Z")
ALTERNATE = frozenset({47, 1047, 1049})
"""The private modes of the alternate screen."""
_C1 = dict.fromkeys(range(0x80, 0xA0))
"""Control characters that pyte executes, but that terminals in UTF-8 ignore."""
WHEEL_IS_ARROWS = 1007 << 5
"""A private mode that is set initially. It only affects full-screen programs."""


class Screen(pyte.Screen):
    """A screen with an alternate screen, which pyte lacks. A full-screen program leaves the normal one unchanged."""

    def __init__(self, columns: int, lines: int) -> None:
        self.replies: list[str] = []
        self.kept: tuple[dict[int, dict[int, Char]], int, int] | None = None
        super().__init__(columns, lines)
        self.reset()

    def reset(self) -> None:
        """Reset to the initial state of a terminal."""
        super().reset()
        self.mode.add(WHEEL_IS_ARROWS)

    def draw(self, data: str) -> None:
        """Put characters on the screen. Those without width are omitted, except for a few accents on a letter."""
        super().draw(data if data.isascii() else without_hidden(data, printed=True))

    def write_process_input(self, data: str) -> None:
        """Keep the terminal's answer to a query."""
        self.replies.append(data)

    def set_mode(self, *args: int, **kwargs: bool) -> None:
        """Set modes. A program that switches to the alternate screen gets an empty one."""
        if kwargs.get("private") and ALTERNATE.intersection(args) and self.kept is None:
            lines = {row: dict(line) for row, line in self.buffer.items()}
            self.kept = (lines, self.cursor.x, self.cursor.y)
            self.erase_in_display(2)
        super().set_mode(*args, **kwargs)

    def reset_mode(self, *args: int, **kwargs: bool) -> None:
        """Reset modes. The normal screen is restored when a program leaves the alternate one."""
        if kwargs.get("private") and ALTERNATE.intersection(args) and self.kept is not None:
            lines, column, row = self.kept
            self.kept = None
            self.erase_in_display(2)
            for number, line in lines.items():
                self.buffer[number].update(line)
            self.cursor.x, self.cursor.y = min(column, self.columns - 1), min(row, self.lines - 1)
            self.dirty.update(range(self.lines))
        super().reset_mode(*args, **kwargs)

    def text(self) -> str:
        """Return its rows without trailing spaces, and without empty rows at the bottom."""
        rows = ("".join(self.buffer[row][column].data for column in range(self.columns)) for row in range(self.lines))
        return "\n".join(row.rstrip() for row in rows).rstrip("\n")

    def fit(self, lines: int, columns: int) -> None:
        """Change the size."""
        # pyte's own resize() drops too many rows at the top. A terminal only drops as many as the cursor needs.
        gone = max(0, self.cursor.y + 1 - lines)
        rows = {row - gone: line for row, line in self.buffer.items() if gone <= row < gone + lines}
        self.buffer.clear()
        self.buffer.update(rows)
        self.cursor.y -= gone
        self.lines = lines
        self.resize(lines, columns)
        self.margins = None
        self.cursor.x = min(self.cursor.x, columns - 1)
        self.dirty.update(range(lines))

    def select_graphic_rendition(self, *attrs: int, **kwargs: bool) -> None:
        """Set colours."""
        # pyte confuses the private sequence for keys with colours.
        if not kwargs.get("private"):
            super().select_graphic_rendition(*attrs)


class TerminalScreen:
    """Draws the output of a command on a screen."""

    def __init__(self, lines: int, columns: int, screen: Screen | None = None) -> None:
        """`screen`: a screen of that size to draw on, which the caller examines."""
        self._screen = screen or Screen(columns, lines)
        self._stream = pyte.Stream(self._screen)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    @property
    def size(self) -> tuple[int, int]:
        """Lines and columns."""
        return self._screen.lines, self._screen.columns

    def resize(self, lines: int, columns: int) -> None:
        """Change the size."""
        if (lines, columns) != self.size:
            self._screen.fit(lines, columns)

    def feed(self, data: bytes) -> None:
        """Draw output. Invalid output raises no error."""
        text = self._rest + self._decoder.decode(data)
        unfinished = _UNFINISHED.search(text)
        at = unfinished.start() if unfinished and len(text) - unfinished.start() < LONGEST_SEQUENCE else len(text)
        text, self._rest = text[:at], text[at:]
        text = _UNREAD.sub(_readable, text)
        if not text.isascii():
            text = text.translate(_C1)
        try:
            self._stream.feed(text)
        except (TypeError, ValueError, IndexError, KeyError, AttributeError):
            # pyte calls its handlers with all numbers of a sequence, even if they accept fewer.
            self._stream = pyte.Stream(self._screen)


def _readable(found: re.Match[str]) -> str:
    """Return a sequence in a form that pyte supports: colours with semicolons, and nothing for all others."""
    sequence = found[0]
    if not sequence.endswith("m") or ":" not in sequence or sequence[2:3] in "<=>":
        return ""
    parts = []
    for part in sequence[2:-1].split(";"):
        numbers = part.split(":")
        if numbers[0] in {"38", "48"} and numbers[1:2] == ["2"]:
            parts.append(";".join((numbers[0], "2", *numbers[-3:])))
        elif numbers[0] in {"38", "48"}:
            parts.append(";".join(numbers))
        else:
            parts.append("24" if part == "4:0" else numbers[0])
    return f"\x1b[{';'.join(parts)}m"


MOST_REPLAYED = 512 * 1024
"""How many bytes at the end of the output are replayed, because pyte reads less than a megabyte per second."""
MOST_SECONDS = 3.0
"""The time limit for drawing in seconds, because some sequences take very long."""
MOST_CELLS = 1000
"""The most rows and columns. Real terminals have fewer, and each one costs time."""
_HEAD = 64 * 1024
"""How many bytes at the beginning are searched for the alternate screen, if not everything is replayed."""
_SLICE = 4096
"""Bytes drawn between two checks of the time, and between two turns of the event loop."""

_SWITCH = re.compile(rb"\x1b\[\?(?:[0-9]+;)*(?:47|1047|1049)(?:;[0-9]+)*([hl])")
_DRAWS = re.compile(
    _SWITCH.pattern  # the alternate screen
    + rb"|\x1b\[[0-9;]*[AFHfd]"  # the cursor moves up, or to a position
    + rb"|\x1b\[[23]J|\x1bM"
)


class LastScreen(NamedTuple):
    """The contents of a terminal as text."""

    columns: int
    rows: int
    text: str
    """The terminal's ordinary screen."""
    program: str | None
    """The last alternate screen, of a full-screen program. None: there was none."""
    replayed: int
    """How many bytes at the end of the output were replayed."""


class TooSlow(Exception):
    """Drawing took longer than `MOST_SECONDS`."""


class _Recorded(Screen):
    """A screen that keeps the alternate screen when a full-screen program leaves it."""

    def __init__(self, columns: int, lines: int) -> None:
        self.program: str | None = None
        self._wiped = ""
        super().__init__(columns, lines)

    def erase_in_display(self, how: int = 0, *args: int, **kwargs: bool) -> None:
        # Many programs clear the alternate screen just before they leave it, so the previous contents are kept.
        if self.kept is not None and (how >= 2 or self.cursor.x == self.cursor.y == 0):
            self._wiped = self.text() or self._wiped
        super().erase_in_display(how, *args, **kwargs)

    def set_mode(self, *args: int, **kwargs: bool) -> None:
        before = self.kept
        super().set_mode(*args, **kwargs)
        if before is None:
            self._wiped = ""

    def reset_mode(self, *args: int, **kwargs: bool) -> None:
        shown = self.of_program() if self.kept is not None else None
        super().reset_mode(*args, **kwargs)
        if self.kept is None:
            self.program = shown or self.program

    def of_program(self) -> str:
        """Return the alternate screen, or its contents before it was cleared."""
        return self.text() or self._wiped


async def last_screen(supervision: Supervision, call_id: str) -> LastScreen | None:
    """Return the last screen of a run with a terminal. None: it only wrote lines.

    Raises `TooSlow`.
    """
    size = (await supervision.read_output(call_id, "out", 0, 0)).size
    data, start = await _end_of(supervision, call_id, size)
    if _DRAWS.search(data) is None:
        return None
    until = time.perf_counter() + MOST_SECONDS
    sizes = await supervision.terminal_sizes(call_id)
    rows, columns = _cells(sizes[_size_at(sizes, start)])
    screen = _Recorded(columns, rows)
    replay = TerminalScreen(rows, columns, screen)
    if start and await _began_within_program(supervision, call_id, data):
        replay.feed(b"\x1b[?1049h")
    for at, end in _slices(data, start, sizes):
        replay.resize(*_cells(sizes[_size_at(sizes, start + at)]))
        replay.feed(data[at:end])
        if time.perf_counter() > until:
            raise TooSlow
        await asyncio.sleep(0)
    if screen.kept is not None:
        screen.reset_mode(1049, private=True)
    return LastScreen(screen.columns, screen.lines, screen.text(), screen.program, len(data))


async def _end_of(supervision: Supervision, call_id: str, size: int) -> tuple[bytes, int]:
    """Return the contiguous bytes to replay, and the offset of the first."""
    start = at = max(0, size - MOST_REPLAYED)
    data = bytearray()
    while at < size:
        chunk = await supervision.read_output(call_id, "out", at, size - at)
        if not chunk.data:
            break
        if chunk.start != at:
            data.clear()
            start = chunk.start
        data += chunk.data
        at = chunk.next_offset
    return bytes(data), start


async def _began_within_program(supervision: Supervision, call_id: str, data: bytes) -> bool:
    """True if a program was on the alternate screen before the first of these bytes."""
    if (first := _SWITCH.search(data)) is not None:
        return first[1] == b"l"
    head = (await supervision.read_output(call_id, "out", 0, _HEAD)).data
    switches = _SWITCH.findall(head)
    return bool(switches) and switches[-1] == b"h"


def _slices(data: bytes, start: int, sizes: Sequence[TerminalSize]) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each slice. The terminal has one size within a slice."""
    edges = {size.start - start for size in sizes if start < size.start < start + len(data)}
    return pairwise(sorted({*range(0, len(data), _SLICE), *edges, len(data)}))


def _size_at(sizes: Sequence[TerminalSize], offset: int) -> int:
    """Return the index of the terminal's size at a byte offset."""
    return max(0, bisect_right(sizes, offset, key=lambda size: size.start) - 1)


def _cells(size: TerminalSize) -> tuple[int, int]:
    return min(size.rows, MOST_CELLS), min(size.columns, MOST_CELLS)
