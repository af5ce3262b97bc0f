"""Aligned columns that fit the terminal."""

import os
import sys
from collections.abc import Iterable, Sequence

from whisper_tui.model.text import columns

GAP = "  "
NARROWEST = 8
"""Columns of a terminal to which a column is cut at most."""

PIPED = 200
"""Columns of a row where no terminal says how many there are: one script must not make every row as wide as it is."""


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under headings; the widest columns are cut, with …, until a row fits the terminal, or 200 columns."""
    lines = [tuple(headings), *(tuple(row) for row in rows)]
    widths = [max(width_of(line[column]) for line in lines) for column in range(len(headings))]
    fit(widths, os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else PIPED)
    for line in lines:
        sys.stdout.write(GAP.join(map(cell, line, widths)).rstrip() + "\n")


def fit(widths: list[int], available: int) -> None:
    """Narrow the widest columns, in place, until all fit or none can be narrower."""
    while sum(widths) + len(GAP) * (len(widths) - 1) > available:
        widest = max(range(len(widths)), key=widths.__getitem__)
        if widths[widest] <= NARROWEST:
            return
        widths[widest] -= 1


def cell(text: str, width: int) -> str:
    """The text in exactly so many columns of a terminal."""
    return cut(text, width) + " " * max(0, width - width_of(cut(text, width)))


def cut(text: str, width: int) -> str:
    """The text in at most so many columns; where something is left out, it ends with …"""
    if width_of(text) <= width:
        return text
    kept, used = [], 1
    for character in text:
        used += columns(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept) + "…"


def width_of(text: str) -> int:
    """Columns that a text takes on a terminal."""
    return len(text) if text.isascii() else sum(map(columns, text))
