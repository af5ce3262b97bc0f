"""Figures over time in one line of text."""

from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int, *, most: float | None = None) -> str:
    """The last `width` values as bars, the newest on the right. `most`: what the highest bar means at least."""
    shown = values[-width:] if width > 0 else ()
    top = max([*shown, most or 0.0])
    if top <= 0:
        return BARS[0] * len(shown)
    return "".join(BARS[min(len(BARS) - 1, int(value / top * len(BARS)))] for value in shown)
