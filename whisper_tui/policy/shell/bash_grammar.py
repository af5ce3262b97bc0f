"""The grammar of bash: words, with the braces and patterns in them, and commands that are made of other commands."""

import re
from collections.abc import Callable, Sequence
from typing import Protocol

from whisper_tui.policy.shell.expansions import MOST_PIECES, MOST_WORDS, ExpansionReader, TextCursor
from whisper_tui.policy.shell.syntax import (
    Block,
    Compound,
    CompoundKind,
    PieceKind,
    Redirection,
    Unreadable,
    Word,
    WordPiece,
)

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
        marked = mark_patterns(pieces)
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


def mark_patterns(pieces: list[WordPiece]) -> list[WordPiece]:
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


_CLOSERS = frozenset("then do done elif else fi esac }".split())
_COMPOUND = frozenset("if while until for select case { [[ function coproc".split())


class ListedCommands(Protocol):
    """The reader of commands, as far as compound commands need it."""

    def read_list(self, closers: frozenset[str], into: Block) -> str:
        """Read commands up to a closing word, passed and returned, or a closing operator."""
        ...

    def read_simple(self) -> None:
        """Read a simple command."""
        ...

    def redirection(self) -> Redirection | None:
        """Return the next redirection, or None if something else comes next."""
        ...

    def skip_lines(self) -> None:
        """Pass blanks, line ends and comments."""
        ...


class CompoundReader:
    """Reads commands that are made of other commands."""

    def __init__(
        self, cursor: TextCursor, words: WordReader, expansions: ExpansionReader, commands: ListedCommands
    ) -> None:
        self._cursor = cursor
        self._words = words
        self._expansions = expansions
        self._commands = commands

    def closing_word(self, closers: frozenset[str]) -> str | None:
        """Pass and return a closing word if one comes next. Raises `Unreadable` for one that closes nothing."""
        value = self._cursor.keyword()
        if value in closers:
            self._cursor.accept(value)
            return value
        if value in _CLOSERS:
            raise Unreadable(f"{value!r} is not expected")
        return None

    def read_command(self) -> None:
        """Read one command of any kind, with its redirections."""
        self._cursor.skip_blank()
        if self._cursor.peek() == "(":
            self._cursor.enter()
            compound = self._parenthesis()
            self._cursor.leave()
            self._redirections(compound)
            return
        keyword = self._cursor.keyword()
        if keyword not in _COMPOUND:
            self._commands.read_simple()
            return
        self._cursor.accept(keyword)
        self._cursor.enter()
        compound = self._compound(keyword)
        self._cursor.leave()
        # the body of these two is a command that has read its redirections itself
        if compound.kind not in {"function", "coproc"}:
            self._redirections(compound)

    def _begun(self, kind: CompoundKind, words: tuple[Word, ...] = ()) -> Compound:
        made = Compound(kind, words=words)
        self._cursor.block.append(made)
        return made

    def _redirections(self, compound: Compound) -> None:
        while True:
            self._cursor.skip_blank()
            redirection = self._commands.redirection()
            if redirection is None:
                return
            compound.redirections.append(redirection)

    def _parenthesis(self) -> Compound:
        """`((…))`, or commands in a subshell."""
        if self._cursor.ahead("(("):
            # `((` may also open two subshells: `((cd a; ls) | wc)`
            before, start = self._cursor.mark(), self._cursor.at
            try:
                self._cursor.accept("((")
                self._expansions.arithmetic(start, ")", False)
                if self._cursor.accept(")"):
                    return self._begun("((")
            except Unreadable:
                pass
            self._cursor.rewind(before)
        self._cursor.accept("(")
        compound = self._begun("(")
        self._commands.read_list(frozenset(), compound.part())
        self._commands.skip_lines()
        if not self._cursor.accept(")"):
            raise Unreadable("a parenthesis is not closed")
        return compound

    def _compound(self, keyword: str) -> Compound:
        match keyword:
            case "if":
                return self._branches(self._begun("if"))
            case "while" | "until":
                compound = self._begun(keyword)
                self._list_to(compound, "do")
                self._list_to(compound, "done")
                return compound
            case "for" | "select":
                return self._loop(keyword)
            case "case":
                return self._case()
            case "{":
                compound = self._begun("{")
                self._list_to(compound, "}")
                return compound
            case "[[":
                self._test()
                return self._begun("[[")
            case "function":
                return self._named_function()
            case _:
                return self._coprocess()

    def _list_to(self, compound: Compound, *closers: str) -> str:
        closer = self._commands.read_list(frozenset(closers), compound.part())
        if closer not in closers:
            raise Unreadable(f"{closers[0]!r} is missing")
        return closer

    def _branches(self, compound: Compound) -> Compound:
        closer = "elif"
        while closer == "elif":
            self._list_to(compound, "then")
            closer = self._list_to(compound, "elif", "else", "fi")
        if closer == "else":
            self._list_to(compound, "fi")
        return compound

    def _loop(self, kind: CompoundKind) -> Compound:
        head: tuple[Word, ...] = ()
        self._cursor.skip_blank()
        if self._cursor.ahead("(("):
            start = self._cursor.at
            self._cursor.accept("((")
            self._expansions.arithmetic(start, ")", False)
            if not self._cursor.accept(")"):
                raise Unreadable("arithmetic is not closed")
        else:
            head = self._loop_words()
        self._cursor.skip_blank()
        self._cursor.accept(";")
        self._commands.skip_lines()
        closer = self.closing_word(frozenset({"do", "{"}))
        if closer is None:
            raise Unreadable("'do' is missing")
        compound = self._begun(kind, head)
        self._list_to(compound, "done" if closer == "do" else "}")
        return compound

    def _loop_words(self) -> tuple[Word, ...]:
        """Read `NAME in WORD …`, and return the name and the words. Empty without `in`."""
        name = self._words.word()
        if name is None:
            raise Unreadable("the loop has no variable")
        self._cursor.found.loop_variables.add(name.value or "")
        self._commands.skip_lines()
        if not self.closing_word(frozenset({"in"})):
            return ()
        words = [name]
        while True:
            self._cursor.skip_blank()
            word = self._words.word()
            if word is None:
                return tuple(words)
            words.append(word)

    def _case(self) -> Compound:
        self._cursor.skip_blank()
        if self._words.word() is None:
            raise Unreadable("'case' has no word")
        self._commands.skip_lines()
        if self.closing_word(frozenset({"in"})) is None:
            raise Unreadable("'in' is missing")
        compound = self._begun("case")
        while True:
            self._commands.skip_lines()
            if self.closing_word(frozenset({"esac"})) is not None:
                return compound
            part = compound.part()
            self._read_into(part, self._pattern)
            if self._commands.read_list(frozenset({"esac"}), part) == "esac":
                return compound
            if not (self._cursor.accept(";;&") or self._cursor.accept(";;") or self._cursor.accept(";&")):
                raise Unreadable("'esac' is missing")

    def _pattern(self) -> None:
        self._cursor.accept("(")
        while True:
            self._cursor.skip_blank()
            if self._words.word() is None:
                raise Unreadable("a pattern is missing")
            self._cursor.skip_blank()
            if self._cursor.accept(")"):
                return
            if not self._cursor.accept("|"):
                raise Unreadable("')' is missing after a pattern")

    def _test(self) -> None:
        """`[[ … ]]`, with operators of its own."""
        start, values = self._cursor.at, list[str]()
        while True:
            while (character := self._cursor.peek()) and character in " \t\n":
                self._cursor.take()
            word = self._words.word()
            if word is not None:
                if word.bare and word.value == "]]":
                    break
                values.append("".join(piece.text for piece in word.pieces))
            elif character and character in "<>()&|!;":
                self._cursor.take()
            else:
                raise Unreadable("']]' is missing")
        # these operators evaluate their operands as arithmetic, and `-v` evaluates a subscript: both can run code
        numeric = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"} & set(values)
        if (numeric or "-v" in values) and any("[" in value for value in values):
            self._cursor.found.evaluations.append(self._cursor.place(start))

    def _named_function(self) -> Compound:
        self._cursor.skip_blank()
        name = self._words.word()
        if name is None:
            raise Unreadable("a function has no name")
        self._cursor.skip_blank()
        if self._cursor.accept("("):
            self._cursor.skip_blank()
            if not self._cursor.accept(")"):
                raise Unreadable("')' is missing after a function's name")
        return self.define_function(name.value)

    def define_function(self, name: str | None) -> Compound:
        """Read the body of a function whose name has been read."""
        self._cursor.found.functions.add(name or "")
        self._commands.skip_lines()
        if self._cursor.peek() != "(" and self._cursor.keyword() not in _COMPOUND:
            raise Unreadable("a function has no body")
        compound = self._begun("function")
        self._read_into(compound.part(), self.read_command)
        self._redirections(compound)
        return compound

    def _read_into(self, block: Block, read: Callable[[], None]) -> None:
        outer, self._cursor.block = self._cursor.block, block
        read()
        self._cursor.block = outer

    def _coprocess(self) -> Compound:
        """`coproc [NAME] compound`, or `coproc` and a simple command."""
        self._cursor.skip_blank()
        if self._cursor.peek() != "(" and self._cursor.keyword() not in _COMPOUND:
            before = self._cursor.mark()
            name = self._words.word()
            self._cursor.skip_blank()
            if self._cursor.peek() != "(" and self._cursor.keyword() not in _COMPOUND:
                self._cursor.rewind(before)
            elif name is not None and name.value:
                self._cursor.found.loop_variables |= {name.value, f"{name.value}_PID"}
        compound = self._begun("coproc")
        self._read_into(compound.part(), self.read_command)
        return compound
