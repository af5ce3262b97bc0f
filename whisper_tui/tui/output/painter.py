"""Rows of output as strips: in their colours, wrapped or not, as text or as bytes, with matches marked."""

import re
from collections.abc import Iterator

from rich.cells import cell_len
from rich.style import Style
from textual.strip import Strip

from whisper_tui.model.run import Stream
from whisper_tui.tui.output.needle import Needle
from whisper_tui.tui.output.pens import NO_STYLE, Pens
from whisper_tui.tui.output.rows import HEX_ROW, Row
from whisper_tui.tui.output.sgr import PLAIN, Pen, Run, read_line
from whisper_tui.tui.output.shown import DRAWN, Shown

KEPT_LINES = 400
"""Drawn rows that are remembered."""

HEX_HEAD = 9
"""Columns before the first byte of a row of bytes."""

_STRANGE = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f]")
Runs = tuple[Run, ...]
_Key = tuple[Stream, Row, Pen]


def wrapped(runs: Runs, width: int) -> tuple[Runs, ...]:
    """A line as lines of at most `width` columns; at least one."""
    lines: list[Runs] = []
    line: list[Run] = []
    room = width
    for text, pen in runs:
        at = 0
        while at < len(text):
            end = _fitting(text, at, room)
            if end > at:
                line.append(Run(text[at:end], pen))
                room -= cell_len(text[at:end])
            if end < len(text):
                if end == at and room == width:
                    end += 1  # a character that is wider than the pane itself
                lines.append(tuple(line))
                line, room = [], width
            at = end
    if line or not lines:
        lines.append(tuple(line))
    return tuple(lines)


def _fitting(text: str, start: int, room: int) -> int:
    """The end of as much text as fits."""
    end = min(len(text), start + room)
    while end > start and cell_len(text[start:end]) > room:
        end -= max(1, (cell_len(text[start:end]) - room) // 2)
    return max(start, end)


def hex_runs(data: bytes, offset: int) -> Runs:
    """Sixteen bytes as numbers and, where they are letters, as letters."""
    numbers = data.hex(" ").ljust(3 * HEX_ROW - 1)
    letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "·" for byte in data)
    return (
        Run(f"{offset:08x} ", Pen(dim=True)),
        Run(f"{numbers} ", PLAIN),
        Run(letters, Pen(bold=True)),
    )


def looks_binary(data: bytes) -> bool:
    """Whether a piece of output is no text: a tenth of it is neither UTF-8 nor a control that text has."""
    strange = len(_STRANGE.findall(data)) + data.decode("utf-8", "replace").count("\ufffd")
    return strange * 10 > len(data) > 0


class Painter:
    """Paints rows, and remembers those that cannot change."""

    def __init__(self, pens: Pens) -> None:
        self.pens = pens
        self.base = NO_STYLE
        """Plain text on the ground of the pane."""
        self.found: tuple[Style, Style] = (NO_STYLE, NO_STYLE)
        """How a match is drawn, and the match where the search stands."""
        self.width: int | None = None
        """Columns to wrap at. None: rows are not wrapped."""
        self.as_bytes = False
        self.needle: Needle | None = None
        self.standing: tuple[Stream, int] | None = None
        """Where the match begins that the search stands at."""
        self._lines: dict[_Key, tuple[tuple[Strip, ...], Pen]] = {}
        self._heights: dict[tuple[Stream, Row], int] = {}

    def forget(self) -> None:
        """Something has changed that changes how rows look."""
        self._lines.clear()
        self._heights.clear()

    def height(self, shown: Shown) -> int:
        """How many lines a row takes."""
        if self.width is None:
            return 1
        if len(shown.data) <= self.width and b"\t" not in shown.data and shown.data.isascii():
            return 1
        key = (shown.stream, shown.row)
        if shown.grows or key not in self._heights:
            if len(self._heights) > 4 * KEPT_LINES:
                self._heights.clear()
            runs, _ = self._runs(shown, PLAIN)
            self._heights[key] = len(wrapped(runs, self.width))
        return self._heights[key]

    def paint(self, rows: list[Shown], pens: dict[Stream, Pen]) -> Iterator[tuple[Shown, tuple[Strip, ...]]]:
        """The lines of each row. `pens`: the pen of each stream before the first row."""
        pens = dict(pens)
        kept: dict[_Key, tuple[tuple[Strip, ...], Pen]] = {}
        for shown in rows:
            key = (shown.stream, shown.row, pens[shown.stream])
            if key not in self._lines or shown.grows:
                self._lines[key] = self._drawn(shown, pens[shown.stream])
            kept[key] = self._lines[key]
            strips, pens[shown.stream] = kept[key]
            yield shown, strips
        if len(self._lines) > KEPT_LINES:
            self._lines = kept

    def column(self, shown: Shown, offset: int) -> int:
        """The column of a byte in its row, before it is wrapped."""
        start = max(shown.row.start, shown.row.end - DRAWN)
        if self.as_bytes:
            return HEX_HEAD + 3 * max(0, offset - shown.row.start)
        runs, _ = read_line(shown.data[: max(0, offset - start)], PLAIN)
        return sum(cell_len(run.text) for run in runs)

    def text(self, shown: Shown) -> str:
        """A row as plain text."""
        return "".join(run.text for run in self._runs(shown, PLAIN)[0])

    def _runs(self, shown: Shown, pen: Pen) -> tuple[Runs, Pen]:
        if self.as_bytes:
            return hex_runs(shown.data, shown.row.start), PLAIN
        return read_line(shown.data, pen)

    def _drawn(self, shown: Shown, pen: Pen) -> tuple[tuple[Strip, ...], Pen]:
        runs, after = self._runs(shown, pen)
        if self.needle is not None and not self.as_bytes:
            runs = self.needle.mark(runs, self._standing_in(shown, self.needle))
        lines = (runs,) if self.width is None else wrapped(runs, self.width)
        return tuple(self.pens.strip(line, self.base, self.found) for line in lines), after

    def _standing_in(self, shown: Shown, needle: Needle) -> int | None:
        """Which of the matches in a row the search stands at."""
        if self.standing is None or self.standing[0] != shown.stream:
            return None
        offset = self.standing[1] - max(shown.row.start, shown.row.end - DRAWN)
        return next((number for number, start in enumerate(needle.starts(shown.data)) if start == offset), None)
