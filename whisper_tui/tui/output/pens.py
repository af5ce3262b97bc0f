"""The styles of terminal output: pens as Rich styles, with the sixteen colours of the theme."""

from functools import lru_cache

from rich.color import Color
from rich.palette import Palette
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from whisper_tui.tui.contrast import contrast
from whisper_tui.tui.output.sgr import DEFAULT, DIRECT, Pen, Run

NO_STYLE = Style()
LEAST_READ = 2.5
"""The contrast below which letters on a ground of their own are drawn in black or white."""
BLACK_AND_WHITE = (Color.parse("#000000"), Color.parse("#ffffff"))
_CUBE = (0, 95, 135, 175, 215, 255)


def _beyond_sixteen(number: int) -> tuple[int, int, int]:
    """The colours 16 to 255, as every terminal has them: a cube of six, then greys."""
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
        """A line, as wide as its text. `found`: what was searched for, and where the search stands."""
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
        """The colour of the letters. On a ground of its own, the ground of the cockpit says nothing about them."""
        text, ground = self._color(pen.foreground), self._color(pen.background)
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
