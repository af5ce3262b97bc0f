"""Which text stands on which ground, and how well it can be read there, as WCAG 2 counts it."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

LEAST = 4.5
"""The contrast that text of ordinary size needs (WCAG 2, level AA)."""

GROUNDS = ("background", "surface", "panel")
"""Where text of every role may stand."""
TEXTS = ("foreground", "muted", "primary", "success", "error", "waiting", "running", "behind", "risk", "edited")
"""The colours of roles."""
OTHERS = (
    ("foreground", "word-back"), ("foreground", "row-idle-back"), ("muted", "row-idle-back"),
    ("row-text", "row-back"), ("hidden-text", "hidden-back"), ("button-text", "button-back"), ("background", "error"),
    ("background", "foreground"), ("warning", "surface"), ("warning", "panel"), ("warning", "background"),
)  # fmt: skip
"""Text that stands on a ground of its own."""


class Pair(NamedTuple):
    """A text and the ground under it, as #rrggbb."""

    what: str
    """Their names."""
    text: str
    ground: str


def pairs(colors: Mapping[str, str], terminal: tuple[str, ...]) -> Iterator[Pair]:
    """Everything that a theme puts on something. Output of commands has the ground of the cockpit."""
    for text, ground in (*((text, ground) for text in TEXTS for ground in GROUNDS), *OTHERS):
        yield Pair(f"{text} on {ground}", colors[text], colors[ground])
    for number, color in enumerate(terminal):
        yield Pair(f"terminal colour {number} on background", color, colors["background"])


def contrast(one: str, other: str) -> float:
    """The contrast of two colours like #1a2b3c, from 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: str) -> float:
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
