"""The strict reading: the small part of the shell's language in which the argv of every command is certain.

Nothing is guessed here. A text is either made of literal words, a few operators and nothing else, or it is
not plain; only what is plain can be allowed by a rule. A wider part, with expansions, serves the read-only list alone
(decision 29).
"""

import re
from dataclasses import dataclass, field, replace

from whisper_tui.policy.shell.syntax import (
    Part,
    ShellStep,
    ShellWord,
    access_of,
    declared,
    is_descriptor,
    literal_value,
    shell_word,
)

# letters beyond ASCII are allowed, and `_unquoted` refuses those that are invisible
_WORD = re.compile(r"(?:[A-Za-z0-9_./,:=@%+^!~#-]|[^\x00-\x7f])+")
# signs that mean nothing to bash where they stand; a bracket only as a word of its own
_INERT = re.compile(r"\{\}|\{[0-9]+\}|\$(?=[ \t\n;&|]|\Z)")
_BRACKET = re.compile(r"[\[\]](?=[ \t\n;&|]|\Z)")
_SINGLE = re.compile(r"'([^'\x00-\x08\x0b-\x1f\x7f]*)'")
# a dollar sign before anything else begins no expansion, as in `"foo$"` and `"a$|b$"`
_DOLLAR = r"\$(?=[ \t\n\"'|)/\\.,:;=%&+^\]}~<>])"
_DOUBLE = re.compile(rf'"((?:[^"\\$`\x00-\x08\x0b-\x1f\x7f]|\\[ -~]|{_DOLLAR})*)"')
_ESCAPED = re.compile(r"\\([ -~])")
_DOUBLE_ESCAPE = re.compile(r'\\(["\\$`])')
_DESCRIPTOR = re.compile(r"[0-9]+(?=[<>])")
_REDIRECTION = re.compile(r"&>>|&>|<<-|<<<|<<|>>|>\||<&|>&|<(?![<>(&])|>(?![>(&|])")
_OPERATOR = re.compile(r"&&|\|\||\|&|[;&|\n]")
# a joined line counts where a blank stands before it: `a\` and `b` on the next line are the word `ab`
_BLANK = re.compile(r"[ \t]+(?:\\\n[ \t]*)*")
_COMMENT = re.compile(r"#[^\n]*")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
# `[[ -f x ]]` runs nothing; only questions about a literal path inside of the directory
_QUESTION = r"(?:![ \t]+)?-[defhnrswxzLS][ \t]+(?!/|\.\.)[A-Za-z0-9_][A-Za-z0-9_./-]*"
TEST = re.compile(
    rf"\[\[[ \t]+{_QUESTION}(?:[ \t]+(?:&&|\|\|)[ \t]+{_QUESTION})*[ \t]+\]\](?=[ \t]*(?:&&|\|\||[;\n]|\Z))"
)
"""A test that the shell makes itself, and that only looks if files are there."""
_TIME = re.compile(r"time[ \t]+(?:-p[ \t]+)?(?=[A-Za-z0-9_./])")
_BODY = re.compile(r"[^\\$`\x00-\x08\x0b-\x1f\x7f]*\Z")

_NAME = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*|\?)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
# a set of other characters may mean one thing to one reader and another thing to bash
_PATTERN = re.compile(r"[*?]|\[[A-Za-z0-9_]+(?:-[A-Za-z0-9_]+)*\]")
_DOUBLE_TEXT = re.compile(rf'(?:[^"\\$`\x00-\x08\x0b-\x1f\x7f]|\\[ -~]|{_DOLLAR})+')
_LOOP = re.compile(r"for[ \t]+([A-Za-z_][A-Za-z0-9_]*)[ \t]+in(?=[ \t])")
_DO = re.compile(r"do(?=[ \t\n])")
_GRAMMAR = re.compile(
    r"(?:if|while|until|then|elif|else|do|\{|!)(?=[ \t\n])|\((?!\()|(?:fi|done|\})(?=[ \t\n;&|<>)]|\Z)|\)"
)
_OPENS = {"if": "then", "while": "do", "until": "do", "{": "}", "(": ")"}
"""By the word that opens a compound command: the word that has to follow its first part."""
_FOLLOWS = {"then": ("elif", "else", "fi"), "elif": ("then",), "else": ("fi",), "do": ("done",)}
"""By the word that begins a further part: those that may follow it."""
_CLOSES = frozenset({"fi", "done", "}", ")"})

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
        """True if it opens a file other than the null device and the output of the command."""
        if self.operator == "<&":
            return not is_descriptor(self.target)
        return access_of(self.operator, self.target) not in {"none", "null"}


@dataclass(frozen=True, slots=True)
class PlainCommand:
    """A simple command with literal words only."""

    argv: tuple[str, ...]
    start: int
    end: int
    assignments: tuple[str, ...] = ()
    """`NAME=value` before the command, value included."""
    redirections: tuple[PlainRedirection, ...] = ()
    after: str = ""
    """The operator behind which it stands; `||` as well where a test of the shell stands between different ones."""
    background: bool = False
    timed: bool = False
    """True if the shell's own `time` measures it."""
    sets: bool = False
    """True if the text has nothing but its assignments, for which `declare` stands as its program."""

    @property
    def piped(self) -> bool:
        """True if it reads what the command before it prints."""
        return self.after in _PIPES


@dataclass(slots=True)
class _Unfinished:
    start: int
    words: list[ShellWord]
    assignments: list[ShellWord]
    redirections: list[PlainRedirection]
    end: int = 0
    inputs: list[ShellWord] = field(default_factory=list)
    """The files of `<`, if words may hold expansions."""


def read_plain(text: str) -> tuple[PlainCommand, ...]:
    """Return all commands of a plain text in order. Raises `NotPlain`."""
    return _PlainReader(text).commands()


def read_steps(text: str) -> tuple[ShellStep, ...]:
    """Return the commands, assignments and loops of a text whose words may hold expansions. Raises `NotPlain`.

    An assignment is certain to have happened before everything that follows it.
    """
    return _PlainReader(text, expands=True).steps()


class _PlainReader:
    def __init__(self, text: str, *, expands: bool = False) -> None:
        self._text = text
        self._expands = expands
        self._at = 0
        self._words_read = 0
        self._documents: list[tuple[str, bool]] = []
        self._inputs: list[ShellStep] = []
        """The files that groups and loops read."""

    def commands(self) -> tuple[PlainCommand, ...]:
        found: list[PlainCommand] = []
        operator, before = "", ""
        while True:
            self._skip(lines=True)
            if self._at >= len(self._text):
                break
            if operator not in _PIPES and (match := TEST.match(self._text, self._at)) and ".." not in match[0]:
                self._at = match.end()
                operator = self._operator()
                before = operator if before in {"", operator} else "||"
                continue
            command = replace(self._command(piped=operator in _PIPES), after=before)
            operator = before = self._operator()
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

    def steps(self) -> tuple[ShellStep, ...]:
        """Read a text with expansions."""
        found: list[ShellStep] = []
        awaited: list[tuple[str, ...]] = []
        operator, is_empty = "", False
        while True:
            self._skip(lines=True)
            if self._at >= len(self._text):
                break
            if match := _LOOP.match(self._text, self._at):
                self._at = match.end()
                found.append(self._loop(match[1]))
                awaited.append(("done", "for"))
                operator, is_empty = ";", True
                continue
            match = _GRAMMAR.match(self._text, self._at)
            if match and match[0] not in _CLOSES:
                self._open(match[0], operator, awaited, is_empty=is_empty)
                self._at = match.end()
                # behind `!` a command has to follow at once
                operator, is_empty = "!" if match[0] == "!" else ";", True
                continue
            if match:
                self._at = match.end()
                self._close(match[0], operator, found, awaited, is_empty=is_empty)
            elif (test := TEST.match(self._text, self._at)) and ".." not in test[0] and operator not in {"|", "|&"}:
                self._at = test.end()
            else:
                found += self._step(operator, is_nested=bool(awaited))
            before, operator, is_empty = operator, self._operator(), False
            if operator == "&":
                raise NotPlain("it contains a background command")
            sets = found and (found[-1].kind == "set" or declared(found[-1]))
            if sets and not (before in _SURELY_AFTER and operator in _SURELY_BEFORE):
                raise NotPlain("it sets a variable in a pipeline or on a condition")
            if operator == "" and self._at >= len(self._text):
                break
        if self._documents or awaited or operator in {"&&", "||", "|", "|&", "!"} or not found:
            raise NotPlain("it is not complete")
        return (*found, *self._inputs)

    @staticmethod
    def _open(word: str, operator: str, awaited: list[tuple[str, ...]], *, is_empty: bool) -> None:
        """Note what has to follow a word that opens a compound command, or a part of one."""
        if operator == "!" or (word == "!" and operator in {"|", "|&"}):
            raise NotPlain("it contains a `!` that negates no pipeline")
        if word in _OPENS:
            awaited.append((_OPENS[word],))
        elif word != "!":
            if is_empty or operator not in {";", "\n"} or not awaited or word not in awaited[-1]:
                raise NotPlain(f"it contains the shell keyword {word!r}")
            awaited[-1] = _FOLLOWS[word]

    def _loop(self, name: str) -> ShellStep:
        """Read the words of a loop, and its `do`."""
        words: list[ShellWord] = []
        while True:
            if match := _BLANK.match(self._text, self._at):
                self._at = match.end()
            word = None if self._text.startswith("#", self._at) else self._word()
            if word is None:
                break
            words.append(word)
        if self._operator() not in {";", "\n"}:
            raise NotPlain("it contains a loop that is not simple")
        self._skip(lines=True)
        match = _DO.match(self._text, self._at)
        if match is None or not words:
            raise NotPlain("it contains a loop that is not simple")
        self._at = match.end()
        return ShellStep("loop", (shell_word([("bare", name)]), *words))

    def _close(
        self, word: str, operator: str, found: list[ShellStep], awaited: list[tuple[str, ...]], *, is_empty: bool
    ) -> None:
        """Read the redirections behind the end of a compound command."""
        ends = {"", ";", "\n"} if word == ")" else {";", "\n"}
        if is_empty or operator not in ends or not awaited or word not in awaited[-1]:
            raise NotPlain("it contains a compound command that is not simple")
        is_loop = awaited.pop()[1:] == ("for",)
        made = _Unfinished(self._at, [], [], [])
        while True:
            if match := _BLANK.match(self._text, self._at):
                self._at = match.end()
            if not self._redirection(made):
                break
        self._inputs += _inputs_of(made)
        if is_loop:
            found.append(ShellStep("done"))

    def _step(self, operator: str, *, is_nested: bool) -> list[ShellStep]:
        """Read a command, or assignments."""
        made = self._words()
        inputs = _inputs_of(made)
        if made.words:
            before = [ShellStep("with", tuple(made.assignments))] if made.assignments else []
            command = ShellStep("run", tuple(made.words))
            if not declared(command):
                return [*before, command, *inputs]
        if made.words and not (made.assignments or made.redirections or is_nested):
            return [command]
        if made.words or not made.assignments or made.redirections or is_nested:
            raise NotPlain("it sets a variable in a loop, on a condition or beside a redirection")
        return [ShellStep("set", tuple(made.assignments))]

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
        if self._at >= len(self._text) or (self._expands and self._text[self._at] == ")"):
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
        if not made.words and (made.redirections or timed or not made.assignments):
            raise NotPlain("it contains a redirection without a command")
        assignments = tuple(map(_text_of, made.assignments))
        return PlainCommand(
            argv=tuple(map(_text_of, made.words)) or ("declare", *assignments),
            start=made.start,
            end=made.end,
            assignments=assignments if made.words else (),
            redirections=tuple(made.redirections),
            timed=timed is not None,
            sets=not made.words,
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

    def _place(self, word: ShellWord, source: str, made: _Unfinished) -> None:
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
        word = self._word()
        if word is not None and self._expands and operator[0] == "<":
            made.inputs.append(word)
            return True
        target = None if word is None or (self._expands and _may_expand(word)) else _text_of(word)
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

    def _word(self) -> ShellWord | None:
        """Read a word, with expansions if they are accepted. Returns None if something else comes next."""
        parts: list[Part] = []
        start = self._at
        while self._at < len(self._text):
            if match := _WORD.match(self._text, self._at):
                parts.append(("bare", self._unquoted(match[0], first=self._at == start)))
            elif match := _SINGLE.match(self._text, self._at):
                parts.append(("quoted", match[1]))
            elif match := _DOUBLE.match(self._text, self._at):
                parts.append(("quoted", _DOUBLE_ESCAPE.sub(r"\1", match[1])))
            elif match := _ESCAPED.match(self._text, self._at):
                parts.append(("quoted", match[1]))
            elif match := self._inert(first=self._at == start):
                parts.append(("bare", match[0]))
            elif self._text[self._at] in (" \t\n;&|<>)" if self._expands else " \t\n;&|<>"):
                break
            elif self._expands and self._expansion(parts):
                continue
            else:
                raise NotPlain(_reason(self._text, self._at))
            self._at = match.end()
        return shell_word(parts) if self._at > start else None

    def _inert(self, *, first: bool) -> re.Match[str] | None:
        """Match a sign that stands for itself."""
        return _INERT.match(self._text, self._at) or (_BRACKET.match(self._text, self._at) if first else None)

    def _expansion(self, parts: list[Part]) -> bool:
        """Read an expansion that `static_expansion` knows. False if there is none."""
        character = self._text[self._at]
        if match := _PATTERN.match(self._text, self._at):
            parts.append(("bare", match[0]))
        elif character in "{}":
            parts.append(("bare", character))
            self._at += 1
            return True
        elif match := _NAME.match(self._text, self._at):
            parts.append(("name", match[1] or match[2]))
        elif character == '"':
            self._at += 1
            self._double_quoted(parts)
            return True
        else:
            return False
        self._at = match.end()
        return True

    def _double_quoted(self, parts: list[Part]) -> None:
        """Read the rest of a text in double quotes that holds variables."""
        parts.append(("quoted", ""))
        while not self._text.startswith('"', self._at):
            if match := _DOUBLE_TEXT.match(self._text, self._at):
                parts.append(("quoted", _DOUBLE_ESCAPE.sub(r"\1", match[0])))
            elif match := _NAME.match(self._text, self._at):
                parts.append(("quoted name", match[1] or match[2]))
            else:
                raise NotPlain("its quotes contain a substitution or a control character")
            self._at = match.end()
        self._at += 1

    def _unquoted(self, part: str, *, first: bool) -> str:
        # bash expands ~ behind `:` and `=` as well, where it takes the word for an assignment
        if (first and part[0] in ("#" if self._expands else "~#")) or ":~" in part or "=~" in part:
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


_PIPES = frozenset({"|", "|&"})


def _in_background(command: PlainCommand) -> PlainCommand:
    return replace(command, background=True)


_SURELY_AFTER = frozenset({"", ";", "\n"})
"""Operators behind which a command runs whatever happened before it."""

_SURELY_BEFORE = frozenset({"", ";", "\n", "&&"})
"""Operators that leave the variables of a command to those behind them."""


def _text_of(word: ShellWord) -> str:
    text = literal_value(word)
    if text is None:
        raise NotPlain("it contains a variable or a substitution")
    return text


def _may_expand(word: ShellWord) -> bool:
    return any(kind in {"name", "quoted name"} or (kind == "bare" and _ACTIVE.search(text)) for kind, text in word)


_ACTIVE = re.compile(r"[*?\[\]{}]|\A~")
"""Characters that make bash expand an unquoted text."""


def _inputs_of(made: _Unfinished) -> list[ShellStep]:
    """Return the files that a command reads by redirection. Raises `NotPlain` if it writes any."""
    if any(redirection.opens_file for redirection in made.redirections):
        raise NotPlain("it redirects to a file")
    return [ShellStep("input", (word,)) for word in made.inputs]


def _reason(text: str, at: int) -> str:
    if (keyword := text[at : at + 2]) in KEYWORDS and not text[at + 2 : at + 3].strip():
        return f"it contains the shell keyword {keyword!r}"
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
