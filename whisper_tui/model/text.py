"""Text from agents as data: what cannot be seen is made visible, and nothing is left that a terminal obeys."""

import unicodedata

HIDDEN = frozenset(
    [
        *range(0x00, 0x20),  # C0 control characters
        *range(0x7F, 0xA0),  # DEL and C1 control characters
        *(0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x3164, 0xFEFF, 0xFFA0),  # blank fillers
        *range(0x200B, 0x2010),  # zero width, direction marks
        *range(0x2028, 0x202F),  # separators, direction embedding
        *range(0x2060, 0x2070),  # word joiner, direction isolates
        *range(0xFE00, 0xFE10),  # variation selectors
        *range(0xFFF9, 0xFFFC),  # annotations
        *range(0xD800, 0xE000),  # lone surrogates
        *range(0xE0000, 0xE1000),  # tags
    ]
)
"""Code points that show nothing, reorder their neighbours or command a terminal."""

BIDI = frozenset([0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
"""Code points that change the order in which their neighbours are shown."""

PLAIN_CONTROLS = frozenset("\n\t")
"""Control characters that ordinary commands hold: several lines, indentation."""

_CONTROL_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}


def is_hidden(character: str) -> bool:
    """Whether a character would not be seen as what it is."""
    return ord(character) in HIDDEN or (ord(character) > 0x7F and unicodedata.category(character) in {"Cf", "Cc", "Cs"})


def show_character(character: str) -> str:
    """A hidden character as a picture of itself or as its code point in angle brackets."""
    return _CONTROL_PICTURES.get(ord(character)) or f"⟨U+{ord(character):04X}⟩"


def visible(text: str, *, keep_lines: bool = False) -> str:
    """The text with every hidden character shown; with `keep_lines`, line feeds stay and tabs become spaces."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character, keep_lines) for character in text)


def _shown(character: str, keep_lines: bool) -> str:
    if keep_lines and character in PLAIN_CONTROLS:
        return "\n" if character == "\n" else "    "
    return show_character(character) if is_hidden(character) else character
