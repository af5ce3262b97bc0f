"""Which unquoted characters of a word bash would expand: braces and file name patterns."""

import re
from collections.abc import Sequence

from whisper_tui.policy.reading.syntax import Piece

_OPAQUE = "\x01"
"""Stands for a character that is quoted or comes from an expansion."""

_SEQUENCE = re.compile(r"(?:[+-]?\d+\.\.[+-]?\d+|[A-Za-z]\.\.[A-Za-z])(?:\.\.[+-]?\d+)?\Z")


def _skeleton(pieces: Sequence[Piece]) -> str:
    return "".join(
        piece.text if piece.kind == "text" and not piece.quoted else _OPAQUE * max(1, len(piece.text))
        for piece in pieces
    )


def brace_expands(pieces: Sequence[Piece]) -> bool:
    """Whether the word holds a brace expansion: `{a,b}` or `{1..9}`, but not `{}` or `stash@{0}`."""
    text = _skeleton(pieces)
    opened: list[tuple[int, bool]] = []
    for position, character in enumerate(text):
        if character == "{":
            opened.append((position, False))
        elif character == "," and opened:
            opened[-1] = (opened[-1][0], True)
        elif character == "}" and opened:
            start, comma = opened.pop()
            if comma or _SEQUENCE.match(text[start + 1 : position]):
                return True
    return False


def has_glob(pieces: Sequence[Piece]) -> bool:
    """Whether the word is a pattern that is matched against file names."""
    text = _skeleton(pieces)
    if "*" in text or "?" in text:
        return True
    opening = text.find("[")
    return opening >= 0 and "]" in text[opening + 2 :]
