"""Which panes of output are displayed, and how they stand to each other."""

from typing import Literal, NamedTuple

from textual.geometry import Size

WIDE = 100
"""Columns from which the streams stand side by side."""
HIGH = 12
"""Rows from which the streams stand one above the other."""

Choice = Literal["both", "out", "err"]
NEXT: dict[Choice, Choice] = {"both": "out", "out": "err", "err": "both"}


class Arrangement(NamedTuple):
    """Which panes are displayed."""

    out: bool
    err: bool
    both: bool
    screen: bool
    """Whether a terminal is shown as the screen that it is."""
    side: bool
    """Whether the streams stand side by side."""


def arrangement(
    choice: Choice, size: Size, side: bool | None, terminal: bool, as_screen: bool, *, merged: bool
) -> Arrangement:
    """What fits, and what the person has chosen. `side`: None where the room decides."""
    merged, screen = merged and not terminal, terminal and as_screen
    beside = size.width >= WIDE if side is None else side
    single = choice == "both" and side is None and not beside and size.height < HIGH
    out = not screen and ((choice != "err" and not merged) or terminal)
    err = not (terminal or merged or choice == "out" or single)
    return Arrangement(out, err, merged, screen, beside)
