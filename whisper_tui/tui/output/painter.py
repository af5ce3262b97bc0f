"""Draws rows of output as strips: with their colours, wrapped or not, as text or hex, with matches marked."""

import re
from collections.abc import Iterator
from functools import lru_cache

from rich.cells import cell_len
from rich.color import Color
from rich.palette import Palette
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from whisper_tui.model.run import Stream
from whisper_tui.tui.output.ansi import DEFAULT, DIRECT, PLAIN, Pen, Run, read_line
from whisper_tui.tui.output.output_search import Needle
from whisper_tui.tui.output.output_view import DRAWN, ShownRow
from whisper_tui.tui.output.stream_reader import HEX_ROW, Row
from whisper_tui.tui.theme import contrast

NO_STYLE = Style()
LEAST_READ = 2.5
"""The contrast below which text on a background of its own is drawn in black or white."""
BLACK_AND_WHITE = (Color.parse("#000000"), Color.parse("#ffffff"))
_CUBE = (0, 95, 135, 175, 215, 255)


def _beyond_sixteen(number: int) -> tuple[int, int, int]:
    """The standard colours 16 to 255: a cube of six levels a channel, then greys."""
    if number >= 232:
        grey = 8 + 10 * (number - 232)
        return grey, grey, grey
    number -= 16
    return _CUBE[number // 36], _CUBE[number // 6 % 6], _CUBE[number % 6]


def _hex(color: Color) -> str:
    return color.get_truecolor().hex


class Pens:
    """Turns runs into strips."""

    def __init__(self, sixteen: tuple[str, ...]) -> None:
        basic = [tuple(int(color[at : at + 2], 16) for at in (1, 3, 5)) for color in sixteen]
        self._palette = Palette([*basic, *map(_beyond_sixteen, range(16, 256))])  # type: ignore[list-item]
        self._style = lru_cache(maxsize=1024)(self._make_style)

    def strip(self, runs: tuple[Run, ...], base: Style, found: tuple[Style, Style] = (NO_STYLE, NO_STYLE)) -> Strip:
        """Return a line, as wide as its text. `found`: the styles of a match and of the current match."""
        return Strip(
            [Segment(text, base + (found[pen.found - 1] if pen.found else self._style(pen))) for text, pen in runs]
        )

    def _make_style(self, pen: Pen) -> Style:
        return Style(
            color=self._readable(pen),
            bgcolor=self._color(pen.background),
            bold=pen.bold or None,
            dim=pen.dim or None,
            italic=pen.italic or None,
            underline=pen.underline or None,
            reverse=pen.reverse or None,
            strike=pen.strike or None,
        )

    def _readable(self, pen: Pen) -> Color | None:
        """The text colour, replaced where it could not be read on its own background."""
        text, ground = self._color(pen.foreground), self._color(pen.background)
        # Themes assure the contrast on the pane's own background only.
        if ground is None or (text is None and pen.reverse):
            return text
        if text is not None and contrast(_hex(text), _hex(ground)) >= LEAST_READ:
            return text
        return max(BLACK_AND_WHITE, key=lambda color: contrast(_hex(color), _hex(ground)))

    def _color(self, color: int) -> Color | None:
        if color == DEFAULT:
            return None
        if color >= DIRECT:
            return Color.from_rgb(color >> 16 & 255, color >> 8 & 255, color & 255)
        return Color.from_triplet(self._palette[color])


KEPT_LINES = 400
"""Rows in the cache of drawn rows."""

HEX_HEAD = 9
"""Columns before the first byte of a hex row."""

_STRANGE = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f]")
Runs = tuple[Run, ...]
_Key = tuple[Stream, Row, Pen]


def wrapped(runs: Runs, width: int) -> tuple[Runs, ...]:
    """Wrap a line into lines of at most `width` columns; at least one."""
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
                    end += 1  # a character wider than the pane, which would otherwise loop for ever
                lines.append(tuple(line))
                line, room = [], width
            at = end
    if line or not lines:
        lines.append(tuple(line))
    return tuple(lines)


def _fitting(text: str, start: int, room: int) -> int:
    """The end of the text that fits into `room` columns."""
    end = min(len(text), start + room)
    while end > start and cell_len(text[start:end]) > room:
        end -= max(1, (cell_len(text[start:end]) - room) // 2)
    return max(start, end)


def hex_runs(data: bytes, offset: int) -> Runs:
    """Return sixteen bytes as hex numbers and as ASCII."""
    numbers = data.hex(" ").ljust(3 * HEX_ROW - 1)
    letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "·" for byte in data)
    return (
        Run(f"{offset:08x} ", Pen(dim=True)),
        Run(f"{numbers} ", PLAIN),
        Run(letters, Pen(bold=True)),
    )


def looks_binary(data: bytes) -> bool:
    """True if more than a tenth of a piece of output is invalid UTF-8 or control characters that text does not hold."""
    strange = len(_STRANGE.findall(data)) + data.decode("utf-8", "replace").count("\ufffd")
    return strange * 10 > len(data) > 0


class Painter:
    """Draws rows, with a cache of those that cannot change."""

    def __init__(self, pens: Pens) -> None:
        self.pens = pens
        self.base = NO_STYLE
        """The style of plain text in the pane."""
        self.found: tuple[Style, Style] = (NO_STYLE, NO_STYLE)
        """The styles of a match and of the current match."""
        self.width: int | None = None
        """Columns to wrap at; None without wrapping."""
        self.as_bytes = False
        self.needle: Needle | None = None
        self.standing: tuple[Stream, int] | None = None
        """The offset of the current match."""
        self._lines: dict[_Key, tuple[tuple[Strip, ...], Pen]] = {}
        self._heights: dict[tuple[Stream, Row], int] = {}

    def forget(self) -> None:
        """Clear the caches after a change of style, width or search."""
        self._lines.clear()
        self._heights.clear()

    def height(self, shown: ShownRow) -> int:
        """Return the number of lines of a row."""
        if self.width is None:
            return 1
        # ASCII without tabs is at most as wide as its bytes; this spares the parsing of almost every row.
        if len(shown.data) <= self.width and b"\t" not in shown.data and shown.data.isascii():
            return 1
        key = (shown.stream, shown.row)
        if shown.grows or key not in self._heights:
            if len(self._heights) > 4 * KEPT_LINES:
                self._heights.clear()
            runs, _ = self._runs(shown, PLAIN)
            self._heights[key] = len(wrapped(runs, self.width))
        return self._heights[key]

    def paint(self, rows: list[ShownRow], pens: dict[Stream, Pen]) -> Iterator[tuple[ShownRow, tuple[Strip, ...]]]:
        """Yield each row with its lines. `pens`: the pen of each stream before the first row."""
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

    def column(self, shown: ShownRow, offset: int) -> int:
        """Return the column of a byte in its row before wrapping."""
        start = max(shown.row.start, shown.row.end - DRAWN)
        if self.as_bytes:
            return HEX_HEAD + 3 * max(0, offset - shown.row.start)
        runs, _ = read_line(shown.data[: max(0, offset - start)], PLAIN)
        return sum(cell_len(run.text) for run in runs)

    def text(self, shown: ShownRow) -> str:
        """Return a row as plain text."""
        return "".join(run.text for run in self._runs(shown, PLAIN)[0])

    def _runs(self, shown: ShownRow, pen: Pen) -> tuple[Runs, Pen]:
        if self.as_bytes:
            return hex_runs(shown.data, shown.row.start), PLAIN
        return read_line(shown.data, pen)

    def _drawn(self, shown: ShownRow, pen: Pen) -> tuple[tuple[Strip, ...], Pen]:
        runs, after = self._runs(shown, pen)
        if self.needle is not None and not self.as_bytes:
            runs = self.needle.mark(runs, self._standing_in(shown, self.needle))
        lines = (runs,) if self.width is None else wrapped(runs, self.width)
        return tuple(self.pens.strip(line, self.base, self.found) for line in lines), after

    def _standing_in(self, shown: ShownRow, needle: Needle) -> int | None:
        """The number of the current match among those of a row."""
        if self.standing is None or self.standing[0] != shown.stream:
            return None
        offset = self.standing[1] - max(shown.row.start, shown.row.end - DRAWN)
        return next((number for number, start in enumerate(needle.starts(shown.data)) if start == offset), None)
