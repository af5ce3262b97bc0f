"""The values that a reading of shell text consists of: words, redirections, and a tree of commands."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeVar

from whisper_tui.system.process_names import is_output

PieceKind = Literal["text", "variable", "expansion", "substitution", "arithmetic", "glob", "tilde", "brace"]

Access = Literal["none", "read", "null", "write", "net"]
"""The access that a redirection opens, from the most harmless to the least."""

ACCESS_RANKS: tuple[Access, ...] = ("none", "null", "read", "write", "net")


DECLARING = frozenset({"export", "declare", "typeset", "readonly"})
"""Builtins that set variables of the shell by their words."""
ONLY_MARKS = re.compile(r"-[rx]+")
"""Their options that leave values as they are."""


class Unreadable(Exception):
    """The text is not valid shell text, or exceeds a limit of the reader. Never leaves the policy."""


class WordPiece(NamedTuple):
    """A part of a word."""

    kind: PieceKind
    text: str
    """Literal text after quote removal, or the source of an expansion."""
    quoted: bool


class Word(NamedTuple):
    """One word of a command."""

    pieces: tuple[WordPiece, ...]
    start: int
    """Its start in the whole text, in characters."""
    end: int
    bare: bool
    """True if it is literal and unquoted: only such a word can be a keyword."""

    @property
    def value(self) -> str | None:
        """The word as the program receives it, or None if that is not known before it runs."""
        if any(piece.kind != "text" for piece in self.pieces):
            return None
        return "".join(piece.text for piece in self.pieces)


PartKind = Literal["bare", "quoted", "name", "quoted name"]

Part = tuple[PartKind, str]
"""A part of a word as all readers tell it: text without quotes, text in quotes, a variable, or one in quotes."""

ShellWord = tuple[Part, ...]
"""A word whose expansions are not done yet."""


ShellStepKind = Literal["run", "set", "with", "input", "loop", "done"]


class ShellStep(NamedTuple):
    """A piece of a text that consists of commands, assignments and loops over words.

    Conditions, groups and other loops leave no trace: whatever they decide, all of their commands have to be harmless.
    """

    kind: ShellStepKind
    words: tuple[ShellWord, ...] = ()
    """Of a command; of assignments, `NAME=value` each, on their own ("set") or for the next command ("with"); the file
    that is read by `<`, behind its command, or behind everything if a group or a loop reads it; of a loop, its variable
    and then its words."""


def declared(step: ShellStep) -> tuple[ShellWord, ...]:
    """Return the assignments of an `export` or a `declare`; there are none in any other command."""
    if step.kind != "run" or literal_value(step.words[0]) not in DECLARING:
        return ()
    return tuple(word for word in step.words[1:] if "=" in word[0][1])


def shell_word(parts: Iterable[Part]) -> ShellWord:
    """Return a word in the one form that readers can be compared by: neighbours of a kind are one part.

    Quotes begin with an empty quoted part, which tells `""~` from `~`.
    """
    found: list[Part] = []
    for kind, text in parts:
        if found and found[-1][0] == kind and kind in {"bare", "quoted"}:
            found[-1] = (kind, found[-1][1] + text)
        else:
            found.append((kind, text))
    return tuple(found)


def literal_value(word: Sequence[Part]) -> str | None:
    """Return the text of a word without its quotes, or None if a variable is a part of it."""
    return "".join(text for _, text in word) if all(kind in {"bare", "quoted"} for kind, _ in word) else None


@dataclass(slots=True)
class Redirection:
    """One redirection: the operator and what it points to."""

    operator: str
    target: Word
    body: str | None = None
    """The text of a here-document or here-string, if it is known."""
    descriptor: str = ""
    """As written; empty: the operator's own. `{NAME}` is one that bash chooses."""

    @property
    def access(self) -> Access:
        """The access that it opens. A target that is not known before run time counts as a file."""
        return access_of(self.operator, self.target.value)


def access_of(operator: str, name: str | None) -> Access:
    """Return the access that an operator opens to a target. None: the target is not known."""
    if operator in {"<<", "<<-", "<<<"}:
        return "none"
    if operator in {"<&", ">&"} and name is not None and is_descriptor(name):
        return "none"
    if operator == "<&":
        return "none"  # bash calls anything else ambiguous and opens nothing
    # bash itself opens a socket for these names; there are no such files
    if name is not None and name.startswith(("/dev/tcp/", "/dev/udp/")):
        return "net"
    if name == "/dev/null":
        return "null"
    # `> /dev/stderr` opens no other file than `>&2` does
    if name is not None and operator.lstrip("&").startswith(">") and is_output(name):
        return "none"
    # an unknown target counts as a file, and `<>` creates a missing one
    return "read" if operator == "<" else "write"


class Redirected(Protocol):
    """A redirection, as far as it tells what it redirects."""

    @property
    def operator(self) -> str:
        """The operator."""

    @property
    def descriptor(self) -> str:
        """As written; empty: the operator's own."""


_Redirected = TypeVar("_Redirected", bound=Redirected)


def input_of_command(redirections: Sequence[_Redirected]) -> _Redirected | None:
    """Return the redirection that standard input comes from: the last one of it. None: it is not redirected."""
    return next((each for each in reversed(redirections) if _is_input(each)), None)


def _is_input(redirection: Redirected) -> bool:
    # `3<<< text` is another input, and `0>&3` is this one
    written = redirection.descriptor
    return int(written) == 0 if written.isdecimal() else not written and redirection.operator.startswith("<")


def is_descriptor(name: str) -> bool:
    """True if the target of `>&` or `<&` is a descriptor, or closes one."""
    # `2>&1-` moves a descriptor: it duplicates it and closes the original
    return name == "-" or name.removesuffix("-").isdecimal()


@dataclass(slots=True)
class SimpleCommand:
    """A simple command wherever it stands: in a list, a branch, a function, a substitution."""

    words: tuple[Word, ...]
    assignments: tuple[Word, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    background: bool = False
    piped: bool = False
    """True if its standard input comes from another command."""
    nested: bool = False
    """True if it stands inside a substitution."""

    @property
    def argv(self) -> tuple[str | None, ...]:
        """The words as values."""
        return tuple(word.value for word in self.words)

    @property
    def span(self) -> tuple[int, int]:
        """Its start and end (exclusive) in the whole text; without words, those of its variables and targets."""
        parts = self.words or (*self.assignments, *(each.target for each in self.redirections))
        return (min(part.start for part in parts), max(part.end for part in parts)) if parts else (0, 0)


CompoundKind = Literal[
    "(", "{", "if", "while", "until", "for", "select", "case", "function", "coproc", "[[", "((", "$("
]
LOOPS: frozenset[CompoundKind] = frozenset({"while", "until", "for", "select"})


@dataclass(slots=True)
class Compound:
    """A command that is made of others. `$(` is any substitution; it follows the command in whose words it stands."""

    kind: CompoundKind
    parts: list["Block"] = field(default_factory=list)
    """Its lists, such as condition and body."""
    redirections: list[Redirection] = field(default_factory=list)
    words: tuple[Word, ...] = ()
    """Of a loop over words, its variable and then the words."""

    def part(self) -> "Block":
        """Return a new list of it."""
        self.parts.append([])
        return self.parts[-1]


Block = list[SimpleCommand | Compound | str]
"""Commands in their order, with the operators between them; `;` stands for a line end, too."""


def compounds(block: Block) -> Iterator[Compound]:
    """Yield all compound commands of a tree in the order of their ends."""
    for node in block:
        if isinstance(node, Compound):
            for part in node.parts:
                yield from compounds(part)
            yield node


@dataclass(slots=True)
class Script:
    """Everything that was found in a text, in textual order."""

    tree: Block = field(default_factory=list)
    """Its commands as they stand in each other."""
    commands: list[SimpleCommand] = field(default_factory=list)
    redirections: list[Redirection] = field(default_factory=list)
    """All of them, those of compound commands included."""
    substitutions: list[tuple[int, int]] = field(default_factory=list)
    """Spans in which something runs, or is opened, while words are expanded."""
    evaluations: list[tuple[int, int]] = field(default_factory=list)
    """Spans in which bash evaluates a value as code: arithmetic with names, `${x@P}`."""
    variables: set[str] = field(default_factory=set)
    """Names that the text expands."""
    loop_variables: set[str] = field(default_factory=set)
    """Names that loops and coprocesses of the text set."""
    functions: set[str] = field(default_factory=set)
    """Names that the text defines as functions."""
    words: int = 0
    """Number of words read."""
    retries: int = 0
    """How often the reader backtracked."""
    problem: str | None = None
    """Why the rest of the text could not be read, or None if all of it was."""
