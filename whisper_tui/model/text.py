"""Text from agents as data (decision 21): invisible characters become visible, and no terminal obeys them."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
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
"""Code points that are invisible, cover or reorder their neighbours, have an unknown width, or control a terminal."""

BLANKS = frozenset([0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x2800, 0x3000])
"""Code points that look like a space, but do not end a word in a shell."""

BIDI = frozenset([0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
"""Code points that change the order of their neighbours on the screen."""

PLAIN_CONTROLS = frozenset("\n\t")
"""Control characters of ordinary commands: line feeds and tabs."""

MOST_MARKS = 3
"""Marks, like accents, on one letter; more of them draw over the lines above and below."""

_CONTROL_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}
_PICTURES_OF_A_LINE = _CONTROL_PICTURES | {0x0A: "\n", 0x09: "    "}
_DOUBTFUL = re.compile(r"[^ -~\xa1-\xac\xae-\xff]+")
"""Everything but the letters that are certainly seen as what they are: with more of them it takes long to compile."""

Kind = Literal["seen", "mark", "blank", "hidden"]


class ShownPiece(NamedTuple):
    """A part of a text as it can be shown."""

    text: str
    hidden: bool
    """True if it replaces characters that would be invisible."""


@lru_cache(maxsize=65_536)
def _kind(character: str) -> Kind:
    code = ord(character)
    if code in HIDDEN:
        return "hidden"
    if code < 0x7F:
        return "seen"
    category = unicodedata.category(character)
    # Unassigned code points (Cn) too: a newer terminal may draw them, or give them no width.
    if category in {"Cf", "Cc", "Cs", "Cn", "Me"}:
        return "hidden"
    if category in {"Mn", "Mc"} or 0x1160 <= code < 0x1200 or 0xD7B0 <= code < 0xD800:
        return "mark"  # the middle and the end of Hangul syllables, too, take no columns
    return "blank" if code in BLANKS or category == "Co" else "seen"


def is_hidden(character: str, *, printed: bool = False) -> bool:
    """True if a character would not be seen as what it is.

    `printed`: it is output, in which blanks of other widths and the icons of fonts have their place.
    """
    return _kind(character) in (("hidden",) if printed else ("hidden", "blank"))


def columns(character: str) -> int:
    """Return the columns of a visible character on a terminal."""
    if _kind(character) == "mark":
        return 0
    # Ambiguous width (A) counts as narrow, as in terminals that are not set to a CJK locale.
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def show_characters(characters: str) -> str:
    """Return hidden characters as control pictures, or as their code points in angle brackets."""
    return "".join(_CONTROL_PICTURES.get(ord(each)) or f"⟨U+{ord(each):04X}⟩" for each in characters)


def visible(text: str, *, keep_lines: bool = False, printed: bool = False) -> str:
    """Return a text with its hidden characters made visible. `keep_lines`: line feeds stay, tabs become spaces."""
    # By far the commonest case, and five times faster than the scan below.
    if text.isascii() and text.isprintable():
        return text
    if text.isascii():
        return text.translate(_PICTURES_OF_A_LINE if keep_lines else _CONTROL_PICTURES)
    if not keep_lines:
        return replace_hidden(text, show_characters, printed=printed)
    return replace_hidden(text, show_characters, keep=PLAIN_CONTROLS, printed=printed).replace("\t", "    ")


def one_line_beginning(text: str, most: int) -> str:
    """Return the beginning of a text on one line, with its hidden characters made visible."""
    return visible(text) if len(text) <= most else f"{visible(text[:most])} …"


def without_hidden(text: str, *, keep: frozenset[str] = frozenset(), printed: bool = False) -> str:
    """Return a text without its hidden characters."""
    return replace_hidden(text, lambda _: "", keep=keep, printed=printed)


def replace_hidden(
    text: str, by: Callable[[str], str], *, keep: frozenset[str] = frozenset(), printed: bool = False
) -> str:
    """Return a text with each run of hidden characters replaced; the characters in `keep` stay."""
    kept, at = [], 0
    for start, end in hidden_parts(text, keep=keep, printed=printed):
        kept += [text[at:start], by(text[start:end])]
        at = end
    return "".join((*kept, text[at:]))


def pieces(text: str) -> Iterator[ShownPiece]:
    """Yield a text in pieces: visible ones as they are, and hidden ones made visible."""
    at = 0
    for start, end in hidden_parts(text):
        if start > at:
            yield ShownPiece(text[at:start], False)
        yield ShownPiece(show_characters(text[start:end]), True)
        at = end
    if at < len(text):
        yield ShownPiece(text[at:], False)


def hidden_parts(text: str, *, keep: frozenset[str] = frozenset(), printed: bool = False) -> Iterator[tuple[int, int]]:
    """Yield the spans of the hidden characters, and of combining marks on nothing or on too many others."""
    start = end = 0
    for found in _DOUBTFUL.finditer(text):
        # At the beginning of the text there is no letter that a combining mark could belong to.
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


def is_sendable(text: str) -> bool:
    """True if a text can be encoded: it holds no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def sendable(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that can be encoded, without those whose name or value is no valid text."""
    return {name: value for name, value in environment.items() if is_sendable(name + value)}
