"""The tables of the comparison: figures with their ratios to a baseline, and words where a peer gives no figure."""

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

NOTHING = "-"


class Column(NamedTuple):
    """A column of figures."""

    head: str
    digits: int = 1
    ratio: bool = False
    """Whether a column with the ratio to the first row follows."""


class Row(NamedTuple):
    """One way: its figures, None where there is none, and what there is to say about it."""

    name: str
    figures: Sequence[float | None] = ()
    said: str = ""


def table(columns: Sequence[Column], rows: Sequence[Row], first: str = "way") -> str:
    """A table in Markdown. The first row is the baseline of all ratios."""
    told = any(row.said for row in rows)
    head = [first, *_heads(columns), *(["remark"] if told else [])]
    lines = [_line(head), "|" + "---|" * len(head)]
    for row in rows:
        cells = [row.name]
        for number, column in enumerate(columns):
            figure = _figure(row, number)
            cells.append(NOTHING if figure is None else f"{figure:,.{column.digits}f}")
            if column.ratio:
                cells.append(_ratio(figure, _figure(rows[0], number)))
        lines.append(_line([*cells, *([row.said] if told else [])]))
    return "\n".join(lines)


def section(title: str, *parts: str) -> str:
    """A part of the page with its heading. Prose is wrapped like the page; tables have lines already."""
    wrapped = (part if "\n" in part else textwrap.fill(part, 120, break_on_hyphens=False) for part in parts)
    return "\n\n".join((f"### {title}", *wrapped))


def _heads(columns: Sequence[Column]) -> list[str]:
    return [head for column in columns for head in ((column.head, "ratio") if column.ratio else (column.head,))]


def _figure(row: Row, number: int) -> float | None:
    return row.figures[number] if number < len(row.figures) else None


def _ratio(figure: float | None, baseline: float | None) -> str:
    return NOTHING if figure is None or not baseline else f"{figure / baseline:.2f} times"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
