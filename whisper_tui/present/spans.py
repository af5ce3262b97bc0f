"""Text with roles instead of colours; themes decide how a role looks."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from whisper_tui.model.text import pieces

Role = Literal[
    "text", "strong", "muted", "label", "frame",
    "command", "word", "hidden", "marked", "risk", "waiting", "running", "behind", "good", "bad", "edited",
]  # fmt: skip
"""The purpose of a piece of text; the widgets that draw spans have a component class `role--<name>` for each."""
ROLES: tuple[Role, ...] = get_args(Role)


class Span(NamedTuple):
    """Text in one role, free of control characters (decision 27)."""

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
    """True for a block with a background of its own."""
    at_words: bool = True
    """True if rows break between words. False for commands: there a row end must not be taken for a blank."""
    decides: bool = False
    """True if an approval needs this to have been on the screen (decision 29)."""


BLANK = Paragraph(())

LONGEST_SAID = 4000
"""Characters of a text that are shown; the command line prints all of it."""


def said(text: str, role: Role = "text", *, whole: bool = False) -> Line:
    """Return text of an agent as spans, with hidden characters made visible in a role of their own.

    A very long text is cut, and the rest counted; `whole` keeps it, for text that a decision depends on.
    """
    if len(text) > LONGEST_SAID and not whole:
        more = f" … {len(text) - LONGEST_SAID:,} more characters"
        return (*said(text[:LONGEST_SAID], role), Span(more, "risk"))
    # Most text is plain ASCII, and looking for hidden characters one by one is slow.
    if text.isascii() and text.isprintable():
        return (Span(text, role),) if text else ()
    return tuple(Span(piece.text, "hidden" if piece.hidden else role) for piece in pieces(text))


LABEL = 13
"""Columns of a label."""


def labelled(label: str, value: Line, *, at_words: bool = True, decides: bool = False) -> Paragraph:
    """Return a value with a label before its first row."""
    return Paragraph(value, margin=(Span(f" {label:<{LABEL - 1}}", "label"),), at_words=at_words, decides=decides)
