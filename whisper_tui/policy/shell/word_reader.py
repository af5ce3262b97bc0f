"""The words of shell text as bash delimits them, and the braces and patterns in them that it would expand."""

import re
from collections.abc import Sequence

from whisper_tui.policy.shell.expansions import MOST_PIECES, MOST_WORDS, ExpansionReader, TextCursor
from whisper_tui.policy.shell.syntax import PieceKind, Unreadable, Word, WordPiece

_OPAQUE = "\x01"
"""Placeholder for a character that is quoted or comes from an expansion."""

_SEQUENCE = re.compile(r"(?:[+-]?\d+\.\.[+-]?\d+|[A-Za-z]\.\.[A-Za-z])(?:\.\.[+-]?\d+)?\Z")


def _skeleton(pieces: Sequence[WordPiece]) -> str:
    return "".join(
        piece.text if piece.kind == "text" and not piece.quoted else _OPAQUE * max(1, len(piece.text))
        for piece in pieces
    )


def brace_expands(pieces: Sequence[WordPiece]) -> bool:
    """True if the word holds a brace expansion: `{a,b}` or `{1..9}`, but not `{}` or `stash@{0}`."""
    text = _skeleton(pieces)
    opened: list[tuple[int, bool]] = []
    for position, character in enumerate(text):
        if character == "{":
            opened.append((position, False))
        elif character == "," and opened:
            opened[-1] = (opened[-1][0], True)
        elif character == "}" and opened:
            start, comma = opened.pop()
            # bash leaves `{}` and `stash@{0}` alone: no comma, no sequence
            if comma or _SEQUENCE.match(text[start + 1 : position]):
                return True
    return False


def has_glob(pieces: Sequence[WordPiece]) -> bool:
    """True if the word is a file name pattern."""
    text = _skeleton(pieces)
    if "*" in text or "?" in text:
        return True
    opening = text.find("[")
    # a `]` right behind `[` is a member of the set, so `[]` is no pattern
    return opening >= 0 and "]" in text[opening + 2 :]


_ORDINARY = re.compile(r"[^ \t\n\\'\"$`;&|()<>]+")
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?\+?=\Z")
_SUBSCRIPTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[")


class WordReader:
    """Reads words one by one."""

    def __init__(self, cursor: TextCursor, expansions: ExpansionReader) -> None:
        self._cursor = cursor
        self._expansions = expansions

    def word(self, *, assignable: bool = False) -> Word | None:
        """Read the next word. Returns None if an operator or the end comes next."""
        self._cursor.peek()
        start, pieces, bare = self._cursor.at, list[WordPiece](), True
        if assignable:
            # in `a[1 + 2]=x` the blanks belong to the word; anywhere else a blank ends it
            self._subscript(pieces)
        while character := self._cursor.peek():
            if match := _ORDINARY.match(self._cursor.text, self._cursor.at):
                self._cursor.at = match.end()
                pieces.append(WordPiece("text", match[0], False))
            elif character in " \t\n;&|)":
                break
            elif character in "<>":
                # `<(` and `>(` are part of a word; otherwise this is a redirection
                if not self._cursor.ahead(character + "("):
                    break
                pieces.append(self._expansions.process_substitution())
            elif character == "(":
                # `name=(…)` is an array; behind any other word `(` is an operator
                if not _is_array_start(pieces):
                    break
                self._array(pieces)
            else:
                bare = False
                self._special(character, pieces)
                if len(pieces) > MOST_PIECES:
                    raise Unreadable(f"a word of it has more than {MOST_PIECES} parts")
        if self._cursor.at == start:
            return None
        return self._finished(pieces, start, bare)

    def _finished(self, pieces: list[WordPiece], start: int, bare: bool) -> Word:
        self._cursor.found.words += 1
        if self._cursor.found.words > MOST_WORDS:
            raise Unreadable(f"it contains more than {MOST_WORDS:,} words")
        bare = bare and all(piece.kind == "text" for piece in pieces)
        marked = _mark_patterns(pieces)
        return Word(tuple(marked), self._cursor.base + start, self._cursor.base + self._cursor.at, bare)

    def _special(self, character: str, pieces: list[WordPiece]) -> None:
        match character:
            case "'":
                pieces.append(WordPiece("text", self._expansions.single_quoted(), True))
            case '"':
                self._cursor.at += 1
                pieces.append(WordPiece("text", "", True))
                self._expansions.double_quoted(pieces)
            case "\\":
                self._cursor.at += 1
                escaped = self._cursor.text[self._cursor.at : self._cursor.at + 1]
                self._cursor.at += 1
                pieces.append(WordPiece("text", escaped or "\\", True))
            case "$":
                self._expansions.dollar(pieces, quoted=False)
            case _:
                pieces.append(self._expansions.backticks(quoted=False))

    def _subscript(self, pieces: list[WordPiece]) -> None:
        """Read the subscript of an assignment, `name[…]=`, if one comes next."""
        match = _SUBSCRIPTED.match(self._cursor.text, self._cursor.at)
        if match is None:
            return
        before, known = self._cursor.mark(), len(pieces)
        self._cursor.at = match.end()
        pieces.append(WordPiece("text", match[0], False))
        try:
            self._expansions.until("]", pieces, quoted=False)
            assigns = self._cursor.ahead("=") or self._cursor.ahead("+=")
        except Unreadable:
            assigns = False
        if assigns:
            pieces.append(WordPiece("text", "]", False))
        else:
            self._cursor.rewind(before)
            del pieces[known:]

    def _array(self, pieces: list[WordPiece]) -> None:
        start = self._cursor.at
        self._cursor.enter()
        self._cursor.at += 1
        while True:
            self._skip_between_elements()
            if self._cursor.accept(")"):
                break
            element = self.word(assignable=True)
            if element is None:
                raise Unreadable("an array has no end")
        self._cursor.leave()
        pieces.append(WordPiece("expansion", self._cursor.text[start : self._cursor.at], False))

    def _skip_between_elements(self) -> None:
        while (character := self._cursor.peek()) and character in " \t\n#":
            if character == "#":
                line_end = self._cursor.text.find("\n", self._cursor.at)
                self._cursor.at = self._cursor.end if line_end < 0 else line_end
            else:
                self._cursor.at += 1


def _is_array_start(pieces: list[WordPiece]) -> bool:
    literal = "".join(piece.text for piece in pieces if piece.kind == "text" and not piece.quoted)
    return bool(pieces) and _ASSIGNED.fullmatch(literal) is not None


def _mark_patterns(pieces: list[WordPiece]) -> list[WordPiece]:
    """Mark the pieces that bash would expand: braces, a home directory, file names."""
    marked = pieces
    if any(not piece.quoted and "{" in piece.text for piece in pieces) and brace_expands(pieces):
        marked = _renamed(marked, "brace", "{")
    if pieces and not pieces[0].quoted and pieces[0].kind == "text" and pieces[0].text.startswith("~"):
        marked = [WordPiece("tilde", pieces[0].text, False), *marked[1:]]
    if any(not piece.quoted for piece in pieces) and has_glob(pieces):
        marked = _renamed(marked, "glob", "*?[")
    return marked


def _renamed(pieces: list[WordPiece], kind: PieceKind, holding: str) -> list[WordPiece]:
    return [
        WordPiece(kind, piece.text, False)
        if not piece.quoted and piece.kind == "text" and any(character in piece.text for character in holding)
        else piece
        for piece in pieces
    ]


def brace_words(text: str, most: int) -> list[str] | None:
    """The words of a text with one simple brace expansion. None: it is not that simple, or has more than `most`."""
    match = re.fullmatch(r"([^{}]*)\{([^{}]*)\}([^{}]*)", text, re.DOTALL)
    if match is None:
        return None
    before, inside, after = match.groups()
    if "," in inside:
        return [before + each + after for each in inside.split(",")]
    numbers = re.fullmatch(r"(0|[1-9]\d{0,5})\.\.(0|[1-9]\d{0,5})", inside)
    if numbers is None:
        return None
    first, last = int(numbers[1]), int(numbers[2])
    if abs(first - last) > most:
        return None
    step = 1 if first <= last else -1
    return [f"{before}{number}{after}" for number in range(first, last + step, step)]
