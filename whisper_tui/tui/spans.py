"""Text with roles instead of colours, broken into rows that fit; themes decide how a role looks."""

from collections.abc import Iterator
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

LONGEST_SAID = 4000
"""Characters of a text that are shown; the command line prints all of it."""


def said(text: str, role: Role = "text", *, whole: bool = False) -> Line:
    """Text of an agent as spans: what cannot be seen is shown, in a role of its own.

    Of a text that nobody would read, the beginning, and how much more there is; `whole` where it decides.
    """
    if len(text) > LONGEST_SAID and not whole:
        more = f" … {len(text) - LONGEST_SAID:,} more characters"
        return (*said(text[:LONGEST_SAID], role), Span(more, "risk"))
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
    ends = _row_ends(text, max(1, width - margin_width), max(1, width - width_of(hanging)), paragraph.at_words)
    rows = [
        (hanging if number else paragraph.margin) + row for number, row in enumerate(_broken(paragraph.spans, ends))
    ]
    return tuple(rows) or (paragraph.margin,)


def _broken(spans: Line, ends: list[int]) -> Iterator[Line]:
    """The rows of spans that end at these characters."""
    start = number = at = 0
    for end in ends:
        row: list[Span] = []
        while start < end:
            text, role = spans[number]
            row.append(Span(text[at : at + end - start], role))
            start += len(row[-1].text)
            at += len(row[-1].text)
            if at == len(text):
                number, at = number + 1, 0
        yield tuple(row)


def _row_ends(text: str, first: int, rest: int, at_words: bool) -> list[int]:
    ends: list[int] = []
    start, width = 0, first
    plain = text.isascii()
    while start < len(text):
        end = min(len(text), start + width) if plain else _fitting(text, start, width)
        if at_words and end < len(text):
            blank = text.rfind(" ", start, end)
            end = blank + 1 if blank > start else end
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
