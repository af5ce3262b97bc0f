"""The words of shell text: quoting, expansions and substitutions, as bash delimits them."""

import re

from whisper_tui.policy.reading.cursor import MOST_PIECES, MOST_WORDS
from whisper_tui.policy.reading.expansions import ExpansionReader
from whisper_tui.policy.reading.patterns import brace_expands, has_glob
from whisper_tui.policy.reading.syntax import Piece, PieceKind, Unreadable, Word

_ORDINARY = re.compile(r"[^ \t\n\\'\"$`;&|()<>]+")
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?\+?=\Z")
_SUBSCRIPTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[")


class WordReader(ExpansionReader):
    """Reads one word after the other."""

    def word(self, *, assignable: bool = False) -> Word | None:
        """The next word. None: an operator or the end comes next."""
        self.peek()
        start, pieces, bare = self.at, list[Piece](), True
        if assignable:
            self._subscript(pieces)
        while character := self.peek():
            if match := _ORDINARY.match(self.text, self.at):
                self.at = match.end()
                pieces.append(Piece("text", match[0], False))
            elif character in " \t\n;&|)":
                break
            elif character in "<>":
                if not self.ahead(character + "("):
                    break
                pieces.append(self.process_substitution())
            elif character == "(":
                if not _is_array_start(pieces):
                    break
                self._array(pieces)
            else:
                bare = False
                self._special(character, pieces)
                if len(pieces) > MOST_PIECES:
                    raise Unreadable(f"a word of it has more than {MOST_PIECES} parts")
        if self.at == start:
            return None
        return self._finished(pieces, start, bare)

    def _finished(self, pieces: list[Piece], start: int, bare: bool) -> Word:
        self.found.words += 1
        if self.found.words > MOST_WORDS:
            raise Unreadable(f"it holds more than {MOST_WORDS:,} words")
        bare = bare and all(piece.kind == "text" for piece in pieces)
        marked = _mark_patterns(pieces)
        return Word(tuple(marked), self.base + start, self.base + self.at, bare)

    def _special(self, character: str, pieces: list[Piece]) -> None:
        match character:
            case "'":
                pieces.append(Piece("text", self.single_quoted(), True))
            case '"':
                self.at += 1
                pieces.append(Piece("text", "", True))
                self.double_quoted(pieces)
            case "\\":
                self.at += 1
                escaped = self.text[self.at : self.at + 1]
                self.at += 1
                pieces.append(Piece("text", escaped or "\\", True))
            case "$":
                self.dollar(pieces, quoted=False)
            case _:
                pieces.append(self.backticks(quoted=False))

    def _subscript(self, pieces: list[Piece]) -> None:
        """`name[…` where an assignment may stand: blanks inside the brackets belong to the word."""
        match = _SUBSCRIPTED.match(self.text, self.at)
        if match is None:
            return
        before, known = self.mark(), len(pieces)
        self.at = match.end()
        pieces.append(Piece("text", match[0], False))
        try:
            self.until("]", pieces, quoted=False)
            assigns = self.ahead("=") or self.ahead("+=")
        except Unreadable:
            assigns = False
        if assigns:
            pieces.append(Piece("text", "]", False))
        else:
            self.rewind(before)
            del pieces[known:]

    def _array(self, pieces: list[Piece]) -> None:
        start = self.at
        self.enter()
        self.at += 1
        while True:
            self._skip_between_elements()
            if self.accept(")"):
                break
            element = self.word(assignable=True)
            if element is None:
                raise Unreadable("an array has no end")
        self.leave()
        pieces.append(Piece("expansion", self.text[start : self.at], False))

    def _skip_between_elements(self) -> None:
        while (character := self.peek()) and character in " \t\n#":
            if character == "#":
                line_end = self.text.find("\n", self.at)
                self.at = self.end if line_end < 0 else line_end
            else:
                self.at += 1


def _is_array_start(pieces: list[Piece]) -> bool:
    literal = "".join(piece.text for piece in pieces if piece.kind == "text" and not piece.quoted)
    return bool(pieces) and _ASSIGNED.fullmatch(literal) is not None


def _mark_patterns(pieces: list[Piece]) -> list[Piece]:
    """Name the parts that bash would expand to something else: braces, a home directory, file names."""
    marked = pieces
    if any(not piece.quoted and "{" in piece.text for piece in pieces) and brace_expands(pieces):
        marked = _renamed(marked, "brace", "{")
    if pieces and not pieces[0].quoted and pieces[0].kind == "text" and pieces[0].text.startswith("~"):
        marked = [Piece("tilde", pieces[0].text, False), *marked[1:]]
    if any(not piece.quoted for piece in pieces) and has_glob(pieces):
        marked = _renamed(marked, "glob", "*?[")
    return marked


def _renamed(pieces: list[Piece], kind: PieceKind, holding: str) -> list[Piece]:
    return [
        Piece(kind, piece.text, False)
        if not piece.quoted and piece.kind == "text" and any(character in piece.text for character in holding)
        else piece
        for piece in pieces
    ]
