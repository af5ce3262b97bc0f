"""Text from agents as data: what cannot be seen is made visible, and nothing is left that a terminal obeys."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

HIDDEN = frozenset(
    [
        *range(0x00, 0x20),  # C0 control characters
        *range(0x7F, 0xA0),  # DEL and C1 control characters
        *(0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x3164, 0xFEFF, 0xFFA0, 0x1D159),  # fillers
        *range(0x180B, 0x1810),  # variation selectors of Mongolian
        *range(0x200B, 0x2010),  # zero width, direction marks
        *range(0x2028, 0x202F),  # separators, direction embedding
        *range(0x2060, 0x2070),  # word joiner, direction isolates
        *range(0xFE00, 0xFE10),  # variation selectors
        *range(0xFFF9, 0xFFFC),  # annotations
        *range(0xD800, 0xE000),  # lone surrogates
        *range(0xE0000, 0xE1000),  # tags
        *range(0x0334, 0x0339),  # lines through the letter before
        *(0x20D2, 0x20D3, *range(0x20D8, 0x20DB), 0x20E5, 0x20E6, 0x20EA, 0x20EB),  # more of them
        *range(0x1F1E6, 0x1F200),  # letters of flags: terminals disagree about their columns
        *range(0x1F3FB, 0x1F400),  # colours of skin: as well
    ]
)
"""Code points that show nothing, cover or reorder their neighbours, take unknown room, or command a terminal."""

BLANKS = frozenset([0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x2800, 0x3000])
"""Code points that look like a space and are none: a shell does not end a word at them."""

BIDI = frozenset([0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
"""Code points that change the order in which their neighbours are shown."""

PLAIN_CONTROLS = frozenset("\n\t")
"""Control characters that ordinary commands hold: several lines, indentation."""

MOST_MARKS = 3
"""Marks, like accents, on one letter; more of them draw over the lines above and below."""

_CONTROL_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}
_PICTURES_OF_A_LINE = _CONTROL_PICTURES | {0x0A: "\n", 0x09: "    "}
_DOUBTFUL = re.compile(r"[^ -~\xa1-\xac\xae-\xff]+")
"""Everything but the letters that are certainly seen as what they are: with more of them it takes long to compile."""

Kind = Literal["seen", "mark", "blank", "hidden"]


class Piece(NamedTuple):
    """Some of a text as it can be shown."""

    text: str
    hidden: bool
    """Whether it stands for characters that would not have been seen."""


@lru_cache(maxsize=65_536)
def _kind(character: str) -> Kind:
    code = ord(character)
    if code in HIDDEN:
        return "hidden"
    if code < 0x7F:
        return "seen"
    category = unicodedata.category(character)
    if category in {"Cf", "Cc", "Cs", "Cn", "Me"}:
        return "hidden"
    if category in {"Mn", "Mc"} or 0x1160 <= code < 0x1200 or 0xD7B0 <= code < 0xD800:
        return "mark"  # the middle and the end of Hangul syllables, too, take no columns
    return "blank" if code in BLANKS or category == "Co" else "seen"


def is_hidden(character: str, *, printed: bool = False) -> bool:
    """Whether a character would not be seen as what it is.

    `printed`: it is output, in which blanks of other widths and the icons of fonts have their place.
    """
    return _kind(character) in (("hidden",) if printed else ("hidden", "blank"))


def columns(character: str) -> int:
    """Columns that a character takes on a terminal, if it is not hidden."""
    if _kind(character) == "mark":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def show_characters(characters: str) -> str:
    """Hidden characters as pictures of themselves, or as their code points in angle brackets."""
    return "".join(_CONTROL_PICTURES.get(ord(each)) or f"⟨U+{ord(each):04X}⟩" for each in characters)


def visible(text: str, *, keep_lines: bool = False, printed: bool = False) -> str:
    """The text with every hidden character shown; with `keep_lines`, line feeds stay and tabs become spaces."""
    if text.isascii() and text.isprintable():
        return text
    if text.isascii():
        return text.translate(_PICTURES_OF_A_LINE if keep_lines else _CONTROL_PICTURES)
    if not keep_lines:
        return replace_hidden(text, show_characters, printed=printed)
    return replace_hidden(text, show_characters, keep=PLAIN_CONTROLS, printed=printed).replace("\t", "    ")


def beginning(text: str, most: int) -> str:
    """As much of a text as fits into a line, on one line, with what is hidden shown."""
    return visible(text) if len(text) <= most else f"{visible(text[:most])} …"


def without_hidden(text: str, *, keep: frozenset[str] = frozenset(), printed: bool = False) -> str:
    """The text without what would not be seen as what it is."""
    return replace_hidden(text, lambda _: "", keep=keep, printed=printed)


def replace_hidden(
    text: str, by: Callable[[str], str], *, keep: frozenset[str] = frozenset(), printed: bool = False
) -> str:
    """The text with other words for each stretch of what would not be seen; the characters in `keep` stay."""
    kept, at = [], 0
    for start, end in hidden_parts(text, keep=keep, printed=printed):
        kept += [text[at:start], by(text[start:end])]
        at = end
    return "".join((*kept, text[at:]))


def pieces(text: str) -> Iterator[Piece]:
    """The text as it can be shown, in pieces that are seen as they are and pieces that had to be shown, in turns."""
    at = 0
    for start, end in hidden_parts(text):
        if start > at:
            yield Piece(text[at:start], False)
        yield Piece(show_characters(text[start:end]), True)
        at = end
    if at < len(text):
        yield Piece(text[at:], False)


def hidden_parts(text: str, *, keep: frozenset[str] = frozenset(), printed: bool = False) -> Iterator[tuple[int, int]]:
    """Where what is hidden begins and ends. Marks that stand on nothing, or on too many others, are hidden, too."""
    start = end = 0
    for found in _DOUBTFUL.finditer(text):
        room = MOST_MARKS if found.start() else 0
        for at, character in enumerate(found[0], found.start()):
            kind = _kind(character)
            if character in keep:
                room = 0
            elif kind == "seen" or (kind == "blank" and printed):
                room = MOST_MARKS
            elif kind == "mark" and room:
                room -= 1
            else:
                room = 0
                if at > end:
                    if end > start:
                        yield start, end
                    start = at
                end = at + 1
    if end > start:
        yield start, end
