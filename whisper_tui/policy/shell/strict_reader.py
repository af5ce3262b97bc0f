"""The strict reading: the small part of the shell's language in which the argv of every command is certain.

Nothing is guessed here. A text is either made of literal words, a few operators and nothing else, or it is
not plain; only what is plain can be allowed by a rule.
"""

import re
from dataclasses import dataclass

# letters beyond ASCII are allowed, and `_unquoted` refuses those that are invisible
_WORD = re.compile(r"(?:[A-Za-z0-9_./,:=@%+^!~#-]|[^\x00-\x7f])+")
_BRACES = re.compile(r"\{\}|\{[0-9]+\}")
_SINGLE = re.compile(r"'([^'\x00-\x08\x0b-\x1f\x7f]*)'")
_DOUBLE = re.compile(r'"((?:[^"\\$`\x00-\x08\x0b-\x1f\x7f]|\\[ -~])*)"')
_ESCAPED = re.compile(r"\\([ -~])")
_DOUBLE_ESCAPE = re.compile(r'\\(["\\$`])')
_DESCRIPTOR = re.compile(r"[0-9]+(?=[<>])")
_REDIRECTION = re.compile(r"&>>|&>|<<-|<<(?!<)|>>|>\||<&|>&|<(?![<>(&])|>(?![>(&|])")
_OPERATOR = re.compile(r"&&|\|\||\|&|[;&|\n]")
_BLANK = re.compile(r"[ \t]+")
_COMMENT = re.compile(r"#[^\n]*")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_TIME = re.compile(r"time[ \t]+(?:-p[ \t]+)?(?=[A-Za-z0-9_./])")
_BODY = re.compile(r"[^\\$`\x00-\x08\x0b-\x1f\x7f]*\Z")

MOST_COMMANDS = 200
"""Commands that a plain text may contain."""

MOST_WORDS = 1000
"""Words that a plain text may contain."""

KEYWORDS = frozenset(
    "! [[ ]] case coproc do done elif else esac fi for function if in select then time until while { }".split()
)
"""Words that are no command names at the beginning of a command."""


class NotPlain(Exception):
    """The text is not plain; the message says why. Never leaves the policy."""


@dataclass(frozen=True, slots=True)
class PlainRedirection:
    """A redirection to a literal target."""

    operator: str
    target: str

    @property
    def opens_file(self) -> bool:
        """True if it opens a file other than the null device."""
        if self.operator in {"<<", "<<-"} or self.target == "/dev/null":
            return False
        return self.operator not in {"<&", ">&"} or not re.fullmatch(r"-|[0-9]+-?", self.target)


@dataclass(frozen=True, slots=True)
class PlainCommand:
    """A simple command with literal words only."""

    argv: tuple[str, ...]
    start: int
    end: int
    assignments: tuple[str, ...] = ()
    """`NAME=value` before the command, value included."""
    redirections: tuple[PlainRedirection, ...] = ()
    piped: bool = False
    background: bool = False
    timed: bool = False
    """True if the shell's own `time` measures it."""


@dataclass(slots=True)
class _Unfinished:
    start: int
    words: list[str]
    assignments: list[str]
    redirections: list[PlainRedirection]
    end: int = 0


def read_plain(text: str) -> tuple[PlainCommand, ...]:
    """Return all commands of a plain text in order. Raises `NotPlain`."""
    return _PlainReader(text).commands()


class _PlainReader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._words_read = 0
        self._documents: list[tuple[str, bool]] = []

    def commands(self) -> tuple[PlainCommand, ...]:
        found: list[PlainCommand] = []
        operator = ""
        while True:
            self._skip(lines=True)
            if self._at >= len(self._text):
                break
            command = self._command(piped=operator in {"|", "|&"})
            operator = self._operator()
            if operator == "&":
                command = _in_background(command)
            found.append(command)
            if len(found) > MOST_COMMANDS:
                raise NotPlain(f"it contains more than {MOST_COMMANDS} commands")
            if operator == "":
                break
        if self._documents:
            raise NotPlain("a here-document is not closed")
        if operator in {"&&", "||", "|", "|&"}:
            raise NotPlain("it ends in the middle of a pipeline or list")
        if not found:
            raise NotPlain("it contains no command")
        return tuple(found)

    def _skip(self, *, lines: bool) -> None:
        while self._at < len(self._text):
            if match := _BLANK.match(self._text, self._at) or _COMMENT.match(self._text, self._at):
                self._at = match.end()
            elif lines and self._text[self._at] == "\n":
                self._at += 1
                self._bodies()
            else:
                return

    def _operator(self) -> str:
        self._skip(lines=False)
        if self._at >= len(self._text):
            return ""
        match = _OPERATOR.match(self._text, self._at)
        if match is None:
            raise NotPlain(_reason(self._text, self._at))
        self._at = match.end()
        if match[0] == "\n":
            self._bodies()
        return match[0]

    def _command(self, *, piped: bool) -> PlainCommand:
        timed = None if piped else _TIME.match(self._text, self._at)  # behind a pipe, `time` is a program to bash
        if timed:
            self._at = timed.end()
        made = self._words()
        if not made.words:
            raise NotPlain(
                "it only sets variables" if made.assignments else "it contains a redirection without a command"
            )
        return PlainCommand(
            argv=tuple(made.words),
            start=made.start,
            end=made.end,
            assignments=tuple(made.assignments),
            redirections=tuple(made.redirections),
            piped=piped,
            timed=timed is not None,
        )

    def _words(self) -> _Unfinished:
        made = _Unfinished(self._at, [], [], [])
        while True:
            made.end = self._at
            if match := _BLANK.match(self._text, self._at):
                self._at = match.end()
            if self._at >= len(self._text) or self._text.startswith("#", self._at):
                return made
            if self._redirection(made):
                continue
            before = self._at
            word = self._word()
            if word is None:
                return made
            self._place(word, self._text[before : self._at], made)

    def _place(self, word: str, source: str, made: _Unfinished) -> None:
        if not made.words and _ASSIGNMENT.match(source):
            made.assignments.append(word)
            return
        if not made.words and source in KEYWORDS:
            raise NotPlain(f"it contains the shell keyword {source!r}")
        made.words.append(word)
        self._words_read += 1
        if self._words_read > MOST_WORDS:
            raise NotPlain(f"it contains more than {MOST_WORDS:,} words")

    def _redirection(self, made: _Unfinished) -> bool:
        start = self._at
        if match := _DESCRIPTOR.match(self._text, self._at):
            self._at = match.end()
        operator = _REDIRECTION.match(self._text, self._at)
        if operator is None:
            self._at = start
            return False
        if operator[0].startswith("&") and match is not None:
            raise NotPlain("a redirection of both outputs has a number")
        self._at = operator.end()
        if blank := _BLANK.match(self._text, self._at):
            self._at = blank.end()
        before = self._at
        target = self._word()
        if target is None:
            raise NotPlain("the target of a redirection is not a literal word")
        # bash reads `>&-x` as `>&-` and a word `x`; a reader that did not would miss an argument
        if operator[0] in {"<&", ">&"} and target.startswith("-") and target != "-":
            raise NotPlain("a word follows a closed descriptor (>&-)")
        if operator[0] in {"<<", "<<-"}:
            quoted = any(character in self._text[before : self._at] for character in "'\"\\")
            self._documents.append((target, quoted))
            if operator[0] == "<<-":
                # bash removes leading tabs from the body and before the delimiter, which this reader does not do
                raise NotPlain("it contains a here-document with <<-")
        made.redirections.append(PlainRedirection(operator[0], target))
        return True

    def _word(self) -> str | None:
        """Read a literal word. Returns None if something else comes next."""
        parts: list[str] = []
        start = self._at
        while self._at < len(self._text):
            if match := _WORD.match(self._text, self._at):
                parts.append(self._unquoted(match[0], first=self._at == start))
            elif match := _SINGLE.match(self._text, self._at):
                parts.append(match[1])
            elif match := _DOUBLE.match(self._text, self._at):
                parts.append(_DOUBLE_ESCAPE.sub(r"\1", match[1]))
            elif match := _ESCAPED.match(self._text, self._at):
                parts.append(match[1])
            elif match := _BRACES.match(self._text, self._at):
                parts.append(match[0])
            elif self._text[self._at] in " \t\n;&|<>":
                break
            else:
                raise NotPlain(_reason(self._text, self._at))
            self._at = match.end()
        return "".join(parts) if self._at > start else None

    def _unquoted(self, part: str, *, first: bool) -> str:
        # bash expands ~ behind `:` and `=` as well, where it takes the word for an assignment
        if (first and part[0] in "~#") or ":~" in part or "=~" in part:
            raise NotPlain("it contains ~, which stands for a home directory")
        if not part.isprintable():
            raise NotPlain("it contains invisible characters")
        return part

    def _bodies(self) -> None:
        """Pass the bodies of the here-documents that begin at this line."""
        documents, self._documents = self._documents, []
        for delimiter, quoted in documents:
            while True:
                if self._at >= len(self._text):
                    raise NotPlain("a here-document is not closed")
                line_end = self._text.find("\n", self._at)
                line_end = len(self._text) if line_end < 0 else line_end
                line = self._text[self._at : line_end]
                self._at = min(line_end + 1, len(self._text))
                if line == delimiter:
                    break
                # bash expands the body of a here-document whose delimiter is not quoted
                if not quoted and not _BODY.match(line):
                    raise NotPlain("a here-document contains a variable, a substitution or a control character")


def _in_background(command: PlainCommand) -> PlainCommand:
    return PlainCommand(
        argv=command.argv,
        start=command.start,
        end=command.end,
        assignments=command.assignments,
        redirections=command.redirections,
        piped=command.piped,
        background=True,
        timed=command.timed,
    )


def _reason(text: str, at: int) -> str:
    if text.startswith("<<<", at):
        return "it contains a here-string (<<<)"
    match character := text[at]:
        case "$" | "`":
            return "it contains a variable or a substitution"
        case "*" | "?" | "[":
            return "it contains a file name pattern (*, ? or [)"
        case "{" | "}":
            return "it contains a brace expansion"
        case "(" | ")":
            return "it contains a subshell or a function"
        case "'" | '"':
            return "its quotes contain a variable, a substitution or a control character"
        case _:
            return f"it contains {character!r}"
