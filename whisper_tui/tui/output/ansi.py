"""Parses one line of terminal output into styled runs; every escape sequence but colour is dropped (decision 21)."""

import re
from collections.abc import Iterable
from itertools import repeat
from typing import NamedTuple

from rich.cells import cell_len

from whisper_tui.model.text import visible

DEFAULT = -1
"""The colour of the pane itself."""
DIRECT = 1 << 24
"""Added to a 24-bit colour to tell it from a palette number."""
TAB = 8


class Pen(NamedTuple):
    """The style of text. Colours are `DEFAULT`, a palette number from 0 to 255, or `DIRECT` + 0xRRGGBB."""

    foreground: int = DEFAULT
    background: int = DEFAULT
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False
    strike: bool = False
    found: int = 0
    """1 for a match of the search, 2 for the current match, 0 for other text."""


PLAIN = Pen()


class Run(NamedTuple):
    """Text in one style, free of control characters."""

    text: str
    pen: Pen


_SEQUENCE = re.compile(
    r"\x1b\[([0-?]*)[ -/]*([@-~])"  # control sequence: the only kind with a meaning here
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # operating system command: titles, links, clipboard
    r"|\x1b[PX^_][^\x1b]*\x1b\\"  # device control and other strings
    r"|\x1b[ -/]+[0-~]"  # character sets
    r"|\x1b[0-OQ-WYZ\\`-~]"  # two characters: keypad, cursor, reset
    r"|([\r\b\t])"
)
_MOVES = re.compile(r"[\r\b]|\x1b\[[0-9;]*[GK]")
_SWITCHES: dict[int, dict[str, int | bool]] = {
    1: {"bold": True},
    2: {"dim": True},
    3: {"italic": True},
    4: {"underline": True},
    7: {"reverse": True},
    9: {"strike": True},
    21: {"underline": True},
    22: {"bold": False, "dim": False},
    23: {"italic": False},
    24: {"underline": False},
    27: {"reverse": False},
    29: {"strike": False},
    39: {"foreground": DEFAULT},
    49: {"background": DEFAULT},
}
_SWITCHES |= {30 + n: {"foreground": n} for n in range(8)} | {90 + n: {"foreground": 8 + n} for n in range(8)}
_SWITCHES |= {40 + n: {"background": n} for n in range(8)} | {100 + n: {"background": 8 + n} for n in range(8)}


def read_line(line: bytes, pen: Pen) -> tuple[tuple[Run, ...], Pen]:
    """Return the runs of one line and the pen after it. Invalid UTF-8 becomes U+FFFD."""
    text = line.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")
    # Most lines are plain text; parsing each would make scrolling through a log slow.
    if text.isascii() and text.isprintable():
        return ((Run(text, pen),) if text else ()), pen
    if _MOVES.search(text):
        return _overwritten(text, pen)
    return _in_sequence(text, pen)


def pen_after(text: bytes, pen: Pen = PLAIN) -> Pen:
    """Return the pen after some output."""
    # Nothing before the last reset can still have an effect.
    reset = max(text.rfind(b"\x1b[0m"), text.rfind(b"\x1b[m"))
    if reset >= 0:
        text, pen = text[reset:], PLAIN
    if b"\x1b[" not in text:
        return pen
    for found in _SEQUENCE.finditer(text.decode("utf-8", "replace")):
        if found[2] == "m":
            pen = changed(pen, found[1])
    return pen


def plain_with_colours(data: bytes) -> bytes:
    """Return output for a pager: colours stay, other sequences are dropped, hidden characters are made visible."""
    kept: list[str] = []
    for line in data.decode("utf-8", "replace").splitlines(keepends=True):
        body = line.rstrip("\r\n")
        at = 0
        for found in _SEQUENCE.finditer(body):
            kept.append(visible(body[at : found.start()], printed=True))
            kept.append("\t" if found[3] == "\t" else "\n" if found[3] == "\r" else "")
            kept.append(found[0] if found[2] == "m" else "")
            at = found.end()
        kept.append(visible(body[at:], printed=True))
        kept.append("\n" if line != body else "")
    return "".join(kept).encode("utf-8", "replace")


def _in_sequence(text: str, pen: Pen) -> tuple[tuple[Run, ...], Pen]:
    """Parse a line that never moves the cursor back: the fast path."""
    runs: list[Run] = []
    column = at = 0
    for found in _SEQUENCE.finditer(text):
        if found.start() > at:
            shown = visible(text[at : found.start()], printed=True)
            runs.append(Run(shown, pen))
            column += cell_len(shown)
        at = found.end()
        if found[2] == "m":
            pen = changed(pen, found[1])
        elif found[3] == "\t":
            runs.append(Run(" " * (TAB - column % TAB), pen))
            column += TAB - column % TAB
    if at < len(text):
        runs.append(Run(visible(text[at:], printed=True), pen))
    return tuple(runs), pen


class _Cells:
    """A line as a terminal holds it: one character a column, and the column of the cursor."""

    def __init__(self) -> None:
        self.cells: list[tuple[str, Pen]] = []
        self.column = 0

    def write(self, text: str, pen: Pen) -> None:
        if len(self.cells) < self.column:
            self.cells.extend(repeat((" ", PLAIN), self.column - len(self.cells)))
        written = list(zip(text, repeat(pen), strict=False)) if text.isascii() else list(_columns(text, pen))
        end = self.column + len(written)
        # Overwriting one half of a wide character erases the other half, as in a terminal.
        if self.column < len(self.cells) and self.cells[self.column][0] == "" and self.column:
            self.cells[self.column - 1] = (" ", pen)
        self.cells[self.column : end] = written
        if end < len(self.cells) and self.cells[end][0] == "":
            self.cells[end] = (" ", pen)
        self.column = end

    def move(self, control: str) -> None:
        if control == "\r":
            self.column = 0
        elif control == "\b":
            self.column = max(0, self.column - 1)
        else:
            self.column += TAB - self.column % TAB

    def erase(self, what: str) -> None:
        if what in {"", "0"}:
            del self.cells[self.column :]
        elif what == "1":
            self.cells[: self.column] = repeat((" ", PLAIN), min(self.column, len(self.cells)))
        elif what == "2":
            self.cells.clear()

    def runs(self) -> Iterable[Run]:
        text: list[str] = []
        last = PLAIN
        for character, pen in self.cells:
            if pen != last and text:
                yield Run("".join(text), last)
                text.clear()
            last = pen
            text.append(character)
        if text:
            yield Run("".join(text), last)


def _columns(text: str, pen: Pen) -> Iterable[tuple[str, Pen]]:
    """One entry a column: the second column of a wide character is empty, and a combining mark joins its base."""
    pending = ""
    for character in text:
        width = cell_len(character)
        if width == 0:
            pending += character
            continue
        if pending:
            yield pending, pen
            pending = ""
        pending = character
        if width == 2:
            yield pending, pen
            pending = ""
            yield "", pen
    if pending:
        yield pending, pen


def _overwritten(text: str, pen: Pen) -> tuple[tuple[Run, ...], Pen]:
    """Replay carriage returns, backspaces and erasing, as progress bars use them."""
    line = _Cells()
    at = 0
    for found in _SEQUENCE.finditer(text):
        if found.start() > at:
            line.write(visible(text[at : found.start()], printed=True), pen)
        at = found.end()
        if found[3]:
            line.move(found[3])
        elif found[2] == "m":
            pen = changed(pen, found[1])
        elif found[2] == "K":
            line.erase(found[1])
        elif found[2] == "G" and found[1].isdigit() and len(found[1]) < 5:
            line.column = max(0, int(found[1]) - 1)
        elif found[2] == "G":
            line.column = 0
    if at < len(text):
        line.write(visible(text[at:], printed=True), pen)
    return tuple(line.runs()), pen


def changed(pen: Pen, parameters: str) -> Pen:
    """Return the pen after a colour sequence; unknown codes are ignored."""
    codes = [int(code) if code.isdigit() and len(code) < 6 else 0 for code in parameters.replace(":", ";").split(";")]
    change: dict[str, int | bool] = {}
    at = 0
    while at < len(codes):
        code = codes[at]
        at += 1
        if code == 0:
            pen, change = PLAIN, {}
        elif code in {38, 48}:
            colour, at = _extended(codes, at)
            if colour is not None:
                change["foreground" if code == 38 else "background"] = colour
        else:
            change |= _SWITCHES.get(code, {})
    return pen._replace(**change) if change else pen  # type: ignore[arg-type]


def _extended(codes: list[int], at: int) -> tuple[int | None, int]:
    """Parse a colour of the palette or of 24 bits; return it and the next position."""
    if codes[at : at + 1] == [5] and at + 1 < len(codes):
        number = codes[at + 1]
        return (number if number < 256 else None), at + 2
    if codes[at : at + 1] == [2] and at + 3 < len(codes):
        red, green, blue = (min(255, code) for code in codes[at + 1 : at + 4])
        return DIRECT + (red << 16 | green << 8 | blue), at + 4
    return None, len(codes)
