"""Contrast of colours, and the nearest readable ones in the palette of a terminal of 256 colours."""

from collections.abc import Mapping
from functools import cache, lru_cache

from rich.color import Color, ColorSystem
from rich.console import Console
from textual import constants

LEAST = 4.5
"""The contrast that text of ordinary size needs (WCAG 2, level AA)."""
NUMBERS = tuple(number for number in range(16, 256) if number not in {59, 102, 145, 188})
"""Without those below, which are whatever the user has set, and the four greys that Rich never draws."""


def contrast(one: str, other: str) -> float:
    """The contrast of two colours like #1a2b3c, from 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: str) -> float:
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def has_indexed_colours() -> bool:
    """True if the terminal is known to show the 256 colours of the standard palette, and no others."""
    return Console(color_system=constants.COLOR_SYSTEM, force_terminal=True).color_system == "256"  # type: ignore[arg-type]


def indexed(
    colors: Mapping[str, str], picked: Mapping[str, int], readable_on: Mapping[str, tuple[str, ...]]
) -> dict[str, str]:
    """Return colours for a terminal with the palette: the picked numbers, and for others the nearest that there is.

    `readable_on` names the grounds on which a text stays as readable as themes have to be.
    """
    grounds = {name for names in readable_on.values() for name in names}
    numbers = {name: picked.get(name) or nearest(colors[name]) for name in grounds}
    for name in colors.keys() - grounds:
        under = tuple(palette_color(numbers[ground]) for ground in readable_on.get(name, ()))
        numbers[name] = picked.get(name) or nearest(colors[name], under)
    return {name: carrier(numbers[name]) for name in colors}


def palette_color(number: int) -> str:
    """The colour that a terminal shows for a number from 16 to 255."""
    return Color.from_ansi(number).get_truecolor().hex


@cache
def carrier(number: int) -> str:
    """Return a colour that is drawn with this number of the palette."""
    # Rich reduces what Textual draws, and rounds light greys to the one beside them: #eeeeee becomes #e4e4e4. So a
    # number cannot always be had by its own colour.
    own = palette_color(number)
    greys = (f"#{level:02x}{level:02x}{level:02x}" for level in range(256))
    return next(color for color in (own, *greys) if drawn_as(color) == own)


def drawn_as(color: str) -> str:
    """Return the colour of the palette that a terminal is told to show for a colour."""
    return Color.parse(color).downgrade(ColorSystem.EIGHT_BIT).get_truecolor().hex


@lru_cache(maxsize=1024)
def nearest(color: str, grounds: tuple[str, ...] = ()) -> int:
    """Return the number of the colour that looks most like another one, and can be read on some grounds."""
    wanted = _oklab(color)
    readable = [n for n in NUMBERS if all(contrast(palette_color(n), ground) >= LEAST for ground in grounds)]
    return min(
        readable or NUMBERS,
        key=lambda number: sum((a - b) ** 2 for a, b in zip(wanted, _oklab(palette_color(number)), strict=True)),
    )


@lru_cache(maxsize=1024)
def _oklab(color: str) -> tuple[float, float, float]:
    """The lightness and the two hues of a colour in a space where equal distances look equal."""
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    middle = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    )
