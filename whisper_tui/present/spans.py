"""Text with roles instead of colours. Themes define how a role looks."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from whisper_tui.model.text import pieces

Role = Literal[
    "text", "strong", "muted", "label", "frame",
    "command", "word", "hidden", "marked", "risk", "waiting", "running", "behind", "good", "bad", "edited",
    "keyword", "string", "comment", "number", "name", "hunk", "file",
    "severe", "careful", "not-flagged",
]  # fmt: skip
"""The purpose of a piece of text. Widgets that draw spans have a component class `role--<name>` for each."""
ROLES: tuple[Role, ...] = get_args(Role)


Ground = Literal["", "added", "removed", "added-part", "removed-part"]
"""The ground under text of a diff: of a line, or of the part of it that differs. Empty: that of the widget."""
GROUNDS: tuple[Ground, ...] = get_args(Ground)[1:]


class Span(NamedTuple):
    """Text in one role, free of control characters (decision 21)."""

    text: str
    role: Role = "text"
    ground: Ground = ""


Line = tuple[Span, ...]


class HunkPlace(NamedTuple):
    """A place in a difference that keys go to: one of its files, or a hunk of that file."""

    file: int
    """From 1 on."""
    hunk: int = 0
    """From 1 on. 0: the heading of the file."""
    listed: bool = False
    """True for the row of the file in a list above the differences."""


@dataclass(frozen=True)
class Paragraph:
    """A text that is wrapped into rows, each with a margin."""

    spans: Line
    margin: Line = ()
    """The margin of the first row."""
    hanging: Line | None = None
    """The margin of further rows. None: spaces as wide as the first margin."""
    card: bool = False
    """True for a block with a background of its own."""
    at_words: bool = True
    """True if rows break between words. False for commands, where the end of a row must not look like a space."""
    decides: bool = False
    """True if this must have been on the screen before an approval (decision 23)."""
    place: HunkPlace | None = None
    """The place in a difference that begins here."""
    columns: int = 0
    """The columns for which it was made as one row. 0: it is wrapped."""
    right: Line = ()
    """Stands at the right end of the first row; in no row does the text reach the columns that it takes."""


BLANK = Paragraph(())

LONGEST_TEXT = 4000
"""How many characters of a text are shown. The command line prints all of it."""


def said(text: str, role: Role = "text", *, whole: bool = False) -> Line:
    """Return an agent's text as spans, with hidden characters made visible in their own role.

    A very long text is truncated, and the rest counted. `whole`: keep all of it, because a decision depends on it.
    """
    if len(text) > LONGEST_TEXT and not whole:
        more = f" … {len(text) - LONGEST_TEXT:,} more characters"
        return (*said(text[:LONGEST_TEXT], role), Span(more, "risk"))
    # Most text is plain ASCII, and checking each character is slow.
    if text.isascii() and text.isprintable():
        return (Span(text, role),) if text else ()
    return tuple(Span(piece.text, "hidden" if piece.hidden else role) for piece in pieces(text))


LABEL = 13
"""The width of a label in columns."""


def labelled(label: str, value: Line, *, at_words: bool = True, decides: bool = False, right: Line = ()) -> Paragraph:
    """Return a value with a label before its first row."""
    margin = (Span(f" {label:<{LABEL - 1}}", "label"),)
    return Paragraph(value, margin=margin, at_words=at_words, decides=decides, right=right)
