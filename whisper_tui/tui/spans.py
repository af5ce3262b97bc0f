"""Text with roles instead of colours, broken into rows that fit; themes decide how a role looks."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

from rich.cells import cell_len

from whisper_tui.model.text import pieces

Role = Literal[
    "text", "strong", "muted", "label", "frame",
    "command", "word", "hidden", "marked", "risk", "waiting", "running", "behind", "good", "bad", "edited",
]  # fmt: skip
"""What a piece of text is for. Each role is a component class `role--<name>` of the widgets that draw spans."""
ROLES: tuple[Role, ...] = get_args(Role)
ROLE_CLASSES = {f"role--{role}" for role in ROLES}


class Span(NamedTuple):
    """Text in one role. It holds nothing that a terminal obeys."""

    text: str
    role: Role = "text"


Line = tuple[Span, ...]


@dataclass(frozen=True)
class Paragraph:
    """A text that is broken into rows, each after a margin."""

    spans: Line
    margin: Line = ()
    """Before the first row."""
    hanging: Line | None = None
    """Before the rows that follow. None: blanks as wide as the margin."""
    card: bool = False
    """Whether it stands on a ground of its own."""
    at_words: bool = True
    """Whether rows end between words where they can. Commands do not: a row end must not look like a blank."""
    decides: bool = False
    """Whether nobody should approve who has not had it on the screen."""


BLANK = Paragraph(())


def said(text: str, role: Role = "text") -> Line:
    """Text of an agent as spans: what cannot be seen is shown, in a role of its own."""
    if text.isascii() and text.isprintable():
        return (Span(text, role),) if text else ()
    return tuple(Span(piece.text, "hidden" if piece.hidden else role) for piece in pieces(text))


def width_of(line: Line) -> int:
    """Columns that a line takes."""
    return sum(cell_len(span.text) for span in line)


@lru_cache(maxsize=512)
def wrap(paragraph: Paragraph, width: int) -> tuple[Line, ...]:
    """The rows of a paragraph, none wider than `width` as long as the margin leaves room."""
    margin_width = width_of(paragraph.margin)
    hanging = paragraph.hanging if paragraph.hanging is not None else (Span(" " * margin_width),)
    text = "".join(span.text for span in paragraph.spans)
    rows: list[Line] = []
    start = 0
    ends = _row_ends(text, max(1, width - margin_width), max(1, width - width_of(hanging)), paragraph.at_words)
    for end in ends:
        rows.append((hanging if rows else paragraph.margin) + _between(paragraph.spans, start, end))
        start = end
    return tuple(rows) or (paragraph.margin,)


def _row_ends(text: str, first: int, rest: int, at_words: bool) -> list[int]:
    ends: list[int] = []
    start, width = 0, first
    plain = text.isascii()
    while start < len(text):
        end = min(len(text), start + width) if plain else _fitting(text, start, width)
        if at_words and end < len(text):
            blank = text.rfind(" ", start, end + 1)
            end = min(blank + 1, end) if blank > start else end
        ends.append(end)
        start, width = end, rest
    return ends


def _fitting(text: str, start: int, width: int) -> int:
    """The end of as many characters as fit, at least one."""
    used, end = 0, start
    while end < len(text):
        used += cell_len(text[end])
        if used > width and end > start:
            break
        end += 1
    return end


def _between(spans: Line, start: int, end: int) -> Line:
    kept: list[Span] = []
    at = 0
    for text, role in spans:
        if at >= end:
            break
        if at + len(text) > start:
            kept.append(Span(text[max(0, start - at) : end - at], role))
        at += len(text)
    return tuple(kept)


def fitted(line: Line, width: int) -> Line:
    """The line in exactly `width` columns: filled with blanks, or cut with an ellipsis that says so."""
    spare = width - width_of(line)
    if spare >= 0:
        return (*line, Span(" " * spare)) if spare else line
    if width <= 0:
        return ()
    kept: list[Span] = []
    left = width - 1
    for text, role in line:
        cut = text[: _fitting(text, 0, left)] if left > 0 else ""
        cut = cut if cell_len(cut) <= left else ""
        kept.append(Span(cut, role))
        left -= cell_len(cut)
        if len(cut) < len(text):
            break
    return (*kept, Span("…" + " " * left, kept[-1].role))
