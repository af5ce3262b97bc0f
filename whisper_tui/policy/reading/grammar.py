"""The grammar of bash: lists, pipelines, simple commands, redirections and here-documents."""

import re
from typing import NamedTuple

from whisper_tui.policy.reading.compound import CompoundReader
from whisper_tui.policy.reading.syntax import Piece, Redirection, Simple, Unreadable, Word

_OPERATORS = ("<<-", "<<<", "&>>", "<<", ">>", "<&", ">&", ">|", "<>", "&>", "<", ">")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[.*\])?\+?=", re.DOTALL)
_DESCRIPTOR = re.compile(r"(?:\d+|\{[A-Za-z_][A-Za-z0-9_]*\})(?=[<>])")


MOST_COMMANDS = 200
"""Commands of one text that are read."""


class _HereDocument(NamedTuple):
    redirection: Redirection
    delimiter: str
    strips_tabs: bool
    expands: bool


class ScriptReader(CompoundReader):
    """Reads a whole text and keeps every simple command that it holds."""

    def read_all(self) -> None:
        """Read to the end. Raises `Unreadable` where the text is not shell text."""
        self.read_list(frozenset())
        self.skip_blank()
        if self.at < self.end and self.peek():
            raise Unreadable(f"{self.peek()!r} is not expected")
        self.finish_here_documents()

    def read_list(self, closers: frozenset[str]) -> str:
        """Read commands up to a closing word, which is passed and returned, or a closing operator, which is not."""
        self.enter()
        while True:
            self.skip_lines()
            if (closer := self.closing_word(closers)) is not None:
                self.leave()
                return closer
            if self._at_list_end():
                self.leave()
                return ""
            first = len(self.found.commands)
            self._and_or()
            self._separator(first)

    def _at_list_end(self) -> bool:
        return self.peek() in {"", ")"} or self.ahead(";;") or self.ahead(";&")

    def _separator(self, first: int) -> None:
        self.skip_blank()
        character = self.peek()
        if character == ";" and not (self.ahead(";;") or self.ahead(";&")):
            self.take()
        elif character == "&":
            self.take()
            for command in self.found.commands[first:]:
                command.background = True
        elif character not in {"\n", ""} and not self._at_list_end() and character != "#":
            raise Unreadable(f"{character!r} is not expected")

    def skip_lines(self) -> None:
        """Pass blanks, line ends and comments; here-documents begin after a line end."""
        while True:
            self.skip_blank()
            character = self.peek()
            if character == "#":
                line_end = self.text.find("\n", self.at)
                self.at = self.end if line_end < 0 else line_end
            elif character == "\n":
                self.take()
                self.finish_here_documents()
            else:
                return

    def _and_or(self) -> None:
        while True:
            self._pipeline()
            self.skip_blank()
            if not (self.accept("&&") or self.accept("||")):
                return
            self.skip_lines()
            if self._at_list_end():
                raise Unreadable("a command is missing after && or ||")

    def _pipeline(self) -> None:
        piped = False
        self._prefixes()
        while True:
            first = len(self.found.commands)
            self.read_command()
            if piped:
                for command in self.found.commands[first:]:
                    command.piped = not command.nested
            self.skip_blank()
            if self.ahead("||") or not (self.accept("|&") or self.accept("|")):
                return
            piped = True
            self.skip_lines()
            self._prefixes()

    def _prefixes(self) -> None:
        """`!` and `time` before a pipeline: nothing of them runs."""
        while True:
            self.skip_blank()
            word = self.keyword()
            if word not in {"!", "time"}:
                return
            self.accept(word)
            if word == "time":
                self._time_options()

    def _time_options(self) -> None:
        for option in ("-p", "--"):
            self.skip_blank()
            before = self.mark()
            word = self.word()
            if word is None or word.value != option:
                self.rewind(before)

    def read_simple(self) -> None:
        """Read assignments, words and redirections up to an operator."""
        words: list[Word] = []
        assignments: list[Word] = []
        redirections: list[Redirection] = []
        slot = len(self.found.commands)
        while True:
            self.skip_blank()
            if (redirection := self.redirection()) is not None:
                redirections.append(redirection)
                continue
            if self.peek() == "#":
                break
            word = self.word(assignable=not words)
            if word is None:
                break
            if not words and _is_assignment(word):
                assignments.append(word)
            else:
                words.append(word)
            if len(words) == 1 and self._function(words, assignments):
                return
        if not (words or assignments or redirections):
            raise Unreadable(f"{self.peek() or 'the end'!r} is not expected where a command begins")
        simple = Simple(tuple(words), tuple(assignments), tuple(redirections), nested=self.in_substitution > 0)
        self.found.commands.insert(slot, simple)
        if len(self.found.commands) > MOST_COMMANDS:
            raise Unreadable(f"it holds more than {MOST_COMMANDS} commands")

    def _function(self, words: list[Word], assignments: list[Word]) -> bool:
        """`name () …`: a definition, if parentheses follow the first word."""
        self.skip_blank()
        if self.peek() != "(":
            return False
        before = self.at
        self.take()
        self.skip_blank()
        if assignments or not self.accept(")"):
            self.at = before
            raise Unreadable("'(' is not expected after a word")
        self.define_function(words[0].value)
        return True

    def redirection(self) -> Redirection | None:
        """The next redirection. None: something else comes next."""
        if (first := self.peek()) and first not in "<>&{0123456789":
            return None
        before = self.at
        if match := _DESCRIPTOR.match(self.text, self.at):
            self.at = match.end()
        operator = next((operator for operator in _OPERATORS if self.accept(operator)), None)
        if operator is None or (operator in {"<", ">"} and self.peek() == "("):
            self.at = before
            return None
        if operator.startswith("&") and match is not None:
            self.at = before
            return None
        self.skip_blank()
        target = self._closing() if operator in {"<&", ">&"} and self.peek() == "-" else self.word()
        if target is None:
            raise Unreadable(f"{operator} has no target")
        redirection = Redirection(operator, target)
        if operator == "<<<":
            redirection.body = target.value
        elif operator in {"<<", "<<-"}:
            self._expect_here_document(redirection)
        self.found.redirections.append(redirection)
        return redirection

    def _closing(self) -> Word:
        """The dash that closes a descriptor is a word of its own, whatever follows it."""
        start = self.at
        self.at += 1
        return Word((Piece("text", "-", False),), self.base + start, self.base + self.at, True)

    def _expect_here_document(self, redirection: Redirection) -> None:
        target = redirection.target
        source = self.text[target.start - self.base : target.end - self.base]
        quoted = any(character in source for character in "'\"\\")
        value = target.value
        delimiter = value if value is not None else "".join(piece.text for piece in target.pieces)
        if value is None and not quoted:
            delimiter = source
        self.awaited.append(_HereDocument(redirection, delimiter, redirection.operator == "<<-", not quoted))

    def finish_here_documents(self) -> None:
        """Read the bodies of the here-documents whose line has just ended."""
        awaited, self.awaited = self.awaited, []
        for document in awaited:
            self._here_document(document)

    def _here_document(self, document: _HereDocument) -> None:
        start = self.at
        lines: list[str] = []
        while self.at < self.end:
            line = self._document_line(joins=document.expands)
            bare = line.lstrip("\t") if document.strips_tabs else line
            if bare == document.delimiter:
                break
            lines.append(bare)
        body = "".join(line + "\n" for line in lines)
        if not document.expands:
            document.redirection.body = body
            return
        inner = self.inside(body, start)
        pieces = inner.expandable()
        literal = all(piece.kind == "text" for piece in pieces)
        document.redirection.body = "".join(piece.text for piece in pieces) if literal else None

    def _document_line(self, *, joins: bool) -> str:
        """One line, passed; with `joins`, a backslash at its end continues it, unless that is itself escaped."""
        line = ""
        while True:
            line_end = self.text.find("\n", self.at)
            line_end = self.end if line_end < 0 else line_end
            part = self.text[self.at : line_end]
            self.at = min(line_end + 1, self.end)
            slashes = len(part) - len(part.rstrip("\\"))
            if not joins or slashes % 2 == 0 or line_end >= self.end:
                return line + part
            line += part[:-1]

    def read_commands_until_parenthesis(self) -> None:
        """Read the inside of a substitution, and pass its closing parenthesis."""
        waiting, self.awaited = self.awaited, []
        self.in_substitution += 1
        self.read_list(frozenset())
        self.skip_lines()
        if not self.accept(")"):
            raise Unreadable("a parenthesis is not closed")
        self.finish_here_documents()
        self.in_substitution -= 1
        self.awaited = waiting

    def read_inner(self, text: str, start: int) -> None:
        """Read the text between backticks as commands."""
        inner = self.inside(text, start)
        inner.in_substitution = self.in_substitution + 1
        inner.enter()
        inner.read_all()

    def inside(self, text: str, start: int) -> "ScriptReader":
        """A reader of a text that stands inside this one."""
        return ScriptReader(text, self.found, base=self.base + start, depth=self.depth)


def _is_assignment(word: Word) -> bool:
    literal = ""
    for piece in word.pieces:
        if piece.quoted or (piece.kind == "substitution" and "[" not in literal):
            break
        literal += piece.text
        if "=" in piece.text:
            break
    return _ASSIGNMENT.match(literal) is not None
