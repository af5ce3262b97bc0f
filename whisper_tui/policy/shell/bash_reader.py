"""The wide reading (decision 9): every simple command that bash could run, in lists, pipelines and here-documents."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from whisper_tui.policy.shell.bash_grammar import CompoundReader, WordReader
from whisper_tui.policy.shell.expansions import ExpansionReader, TextCursor
from whisper_tui.policy.shell.syntax import (
    Block,
    Compound,
    PartKind,
    Redirection,
    Script,
    ShellStep,
    ShellStepKind,
    ShellWord,
    SimpleCommand,
    Unreadable,
    Word,
    WordPiece,
    compounds,
    shell_word,
)

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


class HereDocuments:
    """The here-documents of a text: announced on a line, their bodies read where that line has ended."""

    def __init__(self, cursor: TextCursor, read_body: Callable[[str, int], list[WordPiece]]) -> None:
        self._cursor = cursor
        self._read_body = read_body
        self._awaited: list[_HereDocument] = []

    def expect(self, redirection: Redirection) -> None:
        """Remember a here-document whose body begins after this line."""
        target = redirection.target
        base = self._cursor.base
        source = self._cursor.text[target.start - base : target.end - base]
        quoted = any(character in source for character in "'\"\\")
        value = target.value
        delimiter = value if value is not None else "".join(piece.text for piece in target.pieces)
        # bash does not expand the delimiter: `<<$END` ends at a line with those four characters
        if value is None and not quoted:
            delimiter = source
        self._awaited.append(_HereDocument(redirection, delimiter, redirection.operator == "<<-", not quoted))

    def finish(self) -> None:
        """Read the bodies of the here-documents whose line has just ended."""
        awaited, self._awaited = self._awaited, []
        for document in awaited:
            self._finish_one(document)

    def _finish_one(self, document: _HereDocument) -> None:
        start = self._cursor.at
        lines: list[str] = []
        while self._cursor.at < self._cursor.end:
            line = self._line(joins=document.expands)
            bare = line.lstrip("\t") if document.strips_tabs else line
            if bare == document.delimiter:
                break
            lines.append(bare)
        body = "".join(line + "\n" for line in lines)
        if not document.expands:
            document.redirection.body = body
            return
        pieces = self._read_body(body, start)
        literal = all(piece.kind == "text" for piece in pieces)
        document.redirection.body = "".join(piece.text for piece in pieces) if literal else None

    def _line(self, *, joins: bool) -> str:
        """Pass one line; with `joins`, a backslash at its end continues it, unless that is itself escaped."""
        cursor, line = self._cursor, ""
        while True:
            line_end = cursor.text.find("\n", cursor.at)
            line_end = cursor.end if line_end < 0 else line_end
            part = cursor.text[cursor.at : line_end]
            cursor.at = min(line_end + 1, cursor.end)
            slashes = len(part) - len(part.rstrip("\\"))
            if not joins or slashes % 2 == 0 or line_end >= cursor.end:
                return line + part
            line += part[:-1]


class ScriptReader:
    """Reads a whole text and keeps every simple command that it holds."""

    def __init__(self, text: str, found: Script, *, base: int = 0, depth: int = 0, substitutions: int = 0) -> None:
        self._cursor = TextCursor(text, found, base=base, depth=depth)
        self._expansions = ExpansionReader(self._cursor, self)
        self._words = WordReader(self._cursor, self._expansions)
        self._compounds = CompoundReader(self._cursor, self._words, self._expansions, self)
        self._here_documents = self._no_here_documents()
        self._substitutions = substitutions
        """How many substitutions are open around the place that is read."""

    def _no_here_documents(self) -> HereDocuments:
        return HereDocuments(self._cursor, self._read_here_document)

    def read_all(self) -> None:
        """Read to the end. Raises `Unreadable` if the text is not valid."""
        self.read_list(frozenset(), self._cursor.block)
        self._cursor.skip_blank()
        if self._cursor.at < self._cursor.end and self._cursor.peek():
            raise Unreadable(f"{self._cursor.peek()!r} is not expected")
        self._here_documents.finish()

    def read_list(self, closers: frozenset[str], into: Block) -> str:
        """Read commands up to a closing word, which is passed and returned, or a closing operator, which is not."""
        self._cursor.enter()
        outer, self._cursor.block = self._cursor.block, into
        while True:
            self.skip_lines()
            if (closer := self._compounds.closing_word(closers)) is not None or self._at_list_end():
                self._cursor.leave()
                self._cursor.block = outer
                return closer or ""
            first = len(self._cursor.found.commands)
            self._and_or()
            self._separator(first)

    def _at_list_end(self) -> bool:
        return self._cursor.peek() in {"", ")"} or self._cursor.ahead(";;") or self._cursor.ahead(";&")

    def _separator(self, first: int) -> None:
        self._cursor.skip_blank()
        character = self._cursor.peek()
        if character == ";" and not (self._cursor.ahead(";;") or self._cursor.ahead(";&")):
            self._cursor.take()
            self._cursor.block.append(";")
        elif character == "&":
            self._cursor.take()
            self._cursor.block.append("&")
            for command in self._cursor.found.commands[first:]:
                command.background = True
        elif character in {"\n", "#"}:
            self._cursor.block.append(";")
        elif not self._at_list_end():
            raise Unreadable(f"{character!r} is not expected")

    def skip_lines(self) -> None:
        """Pass blanks, line ends and comments, and read the here-documents that begin after a line end."""
        while True:
            self._cursor.skip_blank()
            character = self._cursor.peek()
            if character == "#":
                line_end = self._cursor.text.find("\n", self._cursor.at)
                self._cursor.at = self._cursor.end if line_end < 0 else line_end
            elif character == "\n":
                self._cursor.take()
                self._here_documents.finish()
            else:
                return

    def _and_or(self) -> None:
        while True:
            self._pipeline()
            self._cursor.skip_blank()
            if not self._operator("&&", "||"):
                return
            self.skip_lines()
            if self._at_list_end():
                raise Unreadable("a command is missing after && or ||")

    def _pipeline(self) -> None:
        piped = False
        self._prefixes()
        while True:
            first = len(self._cursor.found.commands)
            self._compounds.read_command()
            if piped:
                for command in self._cursor.found.commands[first:]:
                    # a substitution in a pipeline does not read from the pipe
                    command.piped = not command.nested
            self._cursor.skip_blank()
            if self._cursor.ahead("||") or not self._operator("|&", "|"):
                return
            piped = True
            self.skip_lines()
            self._prefixes()

    def _operator(self, *operators: str) -> bool:
        """Pass and keep one of these operators if it comes next."""
        found = next(filter(self._cursor.accept, operators), None)
        if found is not None:
            self._cursor.block.append(found)
        return found is not None

    def _prefixes(self) -> None:
        """Pass `!` and `time` before a pipeline."""
        while True:
            self._cursor.skip_blank()
            word = self._cursor.keyword()
            if word not in {"!", "time"}:
                return
            self._cursor.accept(word)
            if word == "time":
                self._time_options()

    def _time_options(self) -> None:
        for option in ("-p", "--"):
            self._cursor.skip_blank()
            before = self._cursor.mark()
            word = self._words.word()
            if word is None or word.value != option:
                self._cursor.rewind(before)

    def read_simple(self) -> None:
        """Read assignments, words and redirections up to an operator."""
        words: list[Word] = []
        assignments: list[Word] = []
        redirections: list[Redirection] = []
        slot, place = len(self._cursor.found.commands), len(self._cursor.block)
        while True:
            self._cursor.skip_blank()
            if (redirection := self.redirection()) is not None:
                redirections.append(redirection)
                continue
            if self._cursor.peek() == "#":
                break
            before = len(self._cursor.block)
            word = self._words.word(assignable=not words)
            if word is None:
                break
            if not words and _is_assignment(word):
                assignments.append(word)
            else:
                place = place if words else before
                words.append(word)
            if len(words) == 1 and self._function(words, assignments):
                return
        if not (words or assignments or redirections):
            raise Unreadable(f"{self._cursor.peek() or 'the end'!r} is not expected where a command begins")
        simple = SimpleCommand(tuple(words), tuple(assignments), tuple(redirections), nested=self._substitutions > 0)
        # substitutions in its words have been read before it, and are listed after it
        self._cursor.found.commands.insert(slot, simple)
        self._cursor.block.insert(place, simple)
        if len(self._cursor.found.commands) > MOST_COMMANDS:
            raise Unreadable(f"it contains more than {MOST_COMMANDS} commands")

    def _function(self, words: list[Word], assignments: list[Word]) -> bool:
        """Read the definition `name () …` if parentheses follow the first word."""
        self._cursor.skip_blank()
        if self._cursor.peek() != "(":
            return False
        before = self._cursor.at
        self._cursor.take()
        self._cursor.skip_blank()
        if assignments or not self._cursor.accept(")"):
            self._cursor.at = before
            raise Unreadable("'(' is not expected after a word")
        self._compounds.define_function(words[0].value)
        return True

    def redirection(self) -> Redirection | None:
        """Read the next redirection. Returns None if something else comes next."""
        if (first := self._cursor.peek()) and first not in "<>&{0123456789":
            return None
        before = self._cursor.at
        if match := _DESCRIPTOR.match(self._cursor.text, self._cursor.at):
            self._cursor.at = match.end()
        operator = next((operator for operator in _OPERATORS if self._cursor.accept(operator)), None)
        if operator is None or (operator in {"<", ">"} and self._cursor.peek() == "("):
            self._cursor.at = before
            return None
        # `2&>f` is a word `2` and a redirection `&>f`
        if operator.startswith("&") and match is not None:
            self._cursor.at = before
            return None
        self._cursor.skip_blank()
        # the dash is a word of its own: in `>&-x` the command gets the argument `x`
        target = self._closing() if operator in {"<&", ">&"} and self._cursor.peek() == "-" else self._words.word()
        if target is None:
            raise Unreadable(f"{operator} has no target")
        redirection = Redirection(operator, target, descriptor=match[0] if match is not None else "")
        if operator == "<<<":
            redirection.body = target.value
        elif operator in {"<<", "<<-"}:
            self._here_documents.expect(redirection)
        self._cursor.found.redirections.append(redirection)
        return redirection

    def _closing(self) -> Word:
        """Read the dash of `>&-`."""
        start = self._cursor.at
        self._cursor.at += 1
        return Word(
            (WordPiece("text", "-", False),), self._cursor.base + start, self._cursor.base + self._cursor.at, True
        )

    def read_commands_until_parenthesis(self) -> None:
        """Read the inside of a substitution, and pass its closing parenthesis."""
        # a here-document that is announced inside `$(…)` ends inside, too
        outer, self._here_documents = self._here_documents, self._no_here_documents()
        self._substitutions += 1
        self.read_list(frozenset(), self._substituted())
        self.skip_lines()
        if not self._cursor.accept(")"):
            raise Unreadable("a parenthesis is not closed")
        self._here_documents.finish()
        self._substitutions -= 1
        self._here_documents = outer

    def read_inner(self, text: str, start: int) -> None:
        """Read the text between backticks as commands."""
        inner = self._inside(text, start, substitutions=self._substitutions + 1)
        inner._cursor.enter()
        inner._cursor.block = self._substituted()
        inner.read_all()

    def _substituted(self) -> Block:
        """Return the list of a substitution that begins here."""
        made = Compound("$(")
        self._cursor.block.append(made)
        return made.part()

    def _read_here_document(self, body: str, start: int) -> list[WordPiece]:
        return self._inside(body, start)._expansions.expandable()

    def _inside(self, text: str, start: int, *, substitutions: int = 0) -> "ScriptReader":
        """Return a reader of a text that stands inside this one; what it finds is kept in the same place."""
        cursor = self._cursor
        made = ScriptReader(
            text, cursor.found, base=cursor.base + start, depth=cursor.depth, substitutions=substitutions
        )
        made._cursor.block = cursor.block
        return made


def _is_assignment(word: Word) -> bool:
    literal = ""
    for piece in word.pieces:
        if piece.quoted or (piece.kind == "substitution" and "[" not in literal):
            break
        literal += piece.text
        if "=" in piece.text:
            break
    return _ASSIGNMENT.match(literal) is not None


# One call has its text read several times, by readers that do not know of each other. Nobody changes a script.
@lru_cache(maxsize=32)
def read_script(text: str) -> Script:
    """Read a text as bash would. If a part cannot be read, `problem` says why, and everything before it is kept."""
    found = Script()
    reader = ScriptReader(text, found)
    try:
        reader.read_all()
    except Unreadable as error:
        found.problem = str(error)
    # the limit of nesting counts constructs, not Python frames
    except RecursionError:
        found.problem = "it is nested too deeply"
    return found


def steps_of(script: Script) -> tuple[ShellStep, ...] | None:
    """Return the commands, assignments and loops of a script, or None if a word of it holds another expansion.

    Other constructs leave no trace here; the strict reader refuses them.
    """
    if not all(command.words or command.assignments for command in script.commands):
        return None
    groups = [each for group in compounds(script.tree) for each in _inputs(group.redirections)]
    steps = []
    for kind, words in (*_steps(script.tree), *groups):
        parts = [parts_of(word) for word in words]
        if None in parts:
            return None
        steps.append(ShellStep(kind, tuple(word for word in parts if word is not None)))
    return tuple(steps)


def _steps(block: Block) -> Iterator[tuple[ShellStepKind, Sequence[Word]]]:
    for node in block:
        if isinstance(node, SimpleCommand):
            if node.assignments:
                yield ("with" if node.words else "set"), node.assignments
            if node.words:
                yield "run", node.words
            yield from _inputs(node.redirections)
        elif isinstance(node, Compound):
            if node.words:
                yield "loop", node.words
            for part in node.parts:
                yield from _steps(part)
            if node.words:
                yield "done", ()


def _inputs(redirections: Iterable[Redirection]) -> Iterator[tuple[ShellStepKind, Sequence[Word]]]:
    yield from (("input", (each.target,)) for each in redirections if each.operator == "<")


def parts_of(word: Word) -> ShellWord | None:
    """Return the parts of a word, or None if bash alone can expand one."""
    if any(piece.kind in {"expansion", "substitution", "arithmetic"} for piece in word.pieces):
        return None
    return shell_word((_part_kind(piece), piece.text) for piece in word.pieces)


def _part_kind(piece: WordPiece) -> PartKind:
    if piece.kind == "variable":
        return "quoted name" if piece.quoted else "name"
    return "quoted" if piece.quoted else "bare"
