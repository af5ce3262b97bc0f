"""A terminal's screen in memory: what a command in a terminal would have drawn by now."""

import codecs
import re
from collections.abc import Iterator

import pyte
from pyte import modes
from pyte.screens import Char
from rich.cells import cell_len

from whisper_tui.model.text import without_hidden
from whisper_tui.tui.output.mouse import MouseWish, Tracking
from whisper_tui.tui.output.sgr import DEFAULT, DIRECT, PLAIN, Pen, Run

LONGEST_SEQUENCE = 4096
"""Characters after which an escape sequence that does not end is given up."""

_COLOURS = ("black", "red", "green", "brown", "blue", "magenta", "cyan", "white")
_NUMBERS = {name: number for number, name in enumerate(_COLOURS)}
_NUMBERS |= {f"bright{name}": number + 8 for number, name in enumerate(_COLOURS)} | {"bfightmagenta": 13}
_UNREAD = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links, clipboard: nobody here wants them
    r"|\x1b[PX^_][^\x1b]*\x1b\\"  # device control and other strings
    r"|\x1b\[[<=>][0-?]*[ -/]*[@-~]"  # private sequences that pyte takes for public ones
    r"|\x1b\[[0-?]*[ -/]+[@-~]"  # sequences with a second half that pyte would print
    r"|\x1b\[[0-9;]*:[0-9;:]*m"  # colours with colons, which pyte would print
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)?\Z")
_ALTERNATE = frozenset({47, 1047, 1049})
_C1 = dict.fromkeys(range(0x80, 0xA0))
"""Forms of control sequences that pyte obeys, and terminals of today in UTF-8 do not."""
_CURSOR_KEYS = 1 << 5
"""Private mode 1: arrow keys are sent as an application wants them."""
_BRACKETED = 2004 << 5
_SGR_MOUSE = 1006 << 5
_WHEEL_IS_ARROWS = 1007 << 5
"""Set from the beginning: only a program that draws on the whole screen notices it."""


class _Screen(pyte.Screen):
    """With a second screen for programs that draw on all of it and leave the first as it was."""

    def __init__(self, columns: int, lines: int) -> None:
        self.replies: list[str] = []
        self.kept: tuple[dict[int, dict[int, Char]], int, int] | None = None
        super().__init__(columns, lines)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.mode.add(_WHEEL_IS_ARROWS)

    def draw(self, data: str) -> None:
        """Put letters on the screen. What takes no room there is left out, save a few accents on a letter."""
        super().draw(data if data.isascii() else without_hidden(data, printed=True))

    def write_process_input(self, data: str) -> None:
        self.replies.append(data)

    def set_mode(self, *args: int, **kwargs: bool) -> None:
        if kwargs.get("private") and _ALTERNATE.intersection(args) and self.kept is None:
            lines = {row: dict(line) for row, line in self.buffer.items()}
            self.kept = (lines, self.cursor.x, self.cursor.y)
            self.erase_in_display(2)
        super().set_mode(*args, **kwargs)

    def reset_mode(self, *args: int, **kwargs: bool) -> None:
        if kwargs.get("private") and _ALTERNATE.intersection(args) and self.kept is not None:
            lines, column, row = self.kept
            self.kept = None
            self.erase_in_display(2)
            for number, line in lines.items():
                self.buffer[number].update(line)
            self.cursor.x, self.cursor.y = min(column, self.columns - 1), min(row, self.lines - 1)
            self.dirty.update(range(self.lines))
        super().reset_mode(*args, **kwargs)

    def fit(self, lines: int, columns: int) -> None:
        """Have another size. Unlike pyte's own, rows go at the top only as far as the cursor needs the room."""
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
        if not kwargs.get("private"):
            super().select_graphic_rendition(*attrs)


class Emulator:
    """Takes what a command writes, and shows it as rows of runs."""

    def __init__(self, lines: int, columns: int) -> None:
        self._screen = _Screen(columns, lines)
        self._stream = pyte.Stream(self._screen)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    @property
    def size(self) -> tuple[int, int]:
        """Lines and columns."""
        return self._screen.lines, self._screen.columns

    @property
    def cursor(self) -> tuple[int, int] | None:
        """Row and column of the cursor. None: it is hidden."""
        cursor = self._screen.cursor
        return None if cursor.hidden else (cursor.y, min(cursor.x, self._screen.columns - 1))

    @property
    def application_keys(self) -> bool:
        """Whether arrow keys are sent as an application wants them."""
        return _CURSOR_KEYS in self._screen.mode

    @property
    def brackets_paste(self) -> bool:
        """Whether the command wants to know what is pasted and what is typed."""
        return _BRACKETED in self._screen.mode

    @property
    def mouse(self) -> MouseWish:
        """What the command wants to be told of the mouse."""
        asked = [tracking for tracking in Tracking if tracking and tracking << 5 in self._screen.mode]
        return MouseWish(
            tracking=max(asked, default=Tracking.NOTHING),
            sgr=_SGR_MOUSE in self._screen.mode,
            wheel_is_arrows=not asked and self._screen.kept is not None and _WHEEL_IS_ARROWS in self._screen.mode,
        )

    def take_replies(self) -> bytes:
        """What a terminal would have answered to the command since this was asked last."""
        replies = "".join(self._screen.replies)
        self._screen.replies.clear()
        return replies.encode()

    def take_dirty(self) -> set[int]:
        """Rows that have changed since this was asked last."""
        dirty = set(self._screen.dirty)
        self._screen.dirty.clear()
        return dirty

    def resize(self, lines: int, columns: int) -> None:
        """Have another size."""
        if (lines, columns) != self.size:
            self._screen.fit(lines, columns)

    def feed(self, data: bytes) -> None:
        """Draw what was written. Nothing that a command writes is an error."""
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
            # pyte calls its handlers with as many numbers as a sequence has, also where they take fewer.
            self._stream = pyte.Stream(self._screen)

    def row(self, number: int) -> tuple[Run, ...]:
        """The runs of a row, as wide as the screen."""
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
            text = cell.data if cell.data and cell_len(cell.data) == width else " " * width
            yield text, _pen(cell, inverted=inverted)
            column += width

    def text(self) -> str:
        """Everything on the screen, without colours, and without blanks at the ends."""
        rows = ("".join(run.text for run in self.row(number)).rstrip() for number in range(self._screen.lines))
        return "\n".join(rows).rstrip("\n") + "\n"


def _readable(found: re.Match[str]) -> str:
    """A sequence that pyte misreads as one that it reads: colours with semicolons, all else as nothing."""
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
