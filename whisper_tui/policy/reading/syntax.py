"""What a reading of shell text consists of: words, redirections and simple commands, as values."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

PieceKind = Literal["text", "variable", "expansion", "substitution", "arithmetic", "glob", "tilde", "brace"]

Access = Literal["none", "read", "null", "write", "net"]
"""What a redirection opens, from the most harmless to the least."""

RANKED: tuple[Access, ...] = ("none", "null", "read", "write", "net")


class Unreadable(Exception):
    """The text is not shell text, or goes deeper than is worth following. Never leaves the policy."""


class Piece(NamedTuple):
    """A part of a word."""

    kind: PieceKind
    text: str
    """Literal text after quote removal, or the source of an expansion."""
    quoted: bool


class Word(NamedTuple):
    """One word of a command."""

    pieces: tuple[Piece, ...]
    start: int
    """Where it starts in the whole text, in characters."""
    end: int
    bare: bool
    """Whether it is literal text without any quoting: only such a word can be a keyword."""

    @property
    def value(self) -> str | None:
        """The word as the program gets it. None: that is not known before it runs."""
        if any(piece.kind != "text" for piece in self.pieces):
            return None
        return "".join(piece.text for piece in self.pieces)


@dataclass(slots=True)
class Redirection:
    """One redirection: the operator and what it points to."""

    operator: str
    target: Word
    body: str | None = None
    """The text of a here-document or here-string, where it is known. None: it is not, or there is none."""

    @property
    def access(self) -> Access:
        """What it opens. A target that is only known at run time counts as a file."""
        if self.operator in {"<<", "<<-", "<<<"}:
            return "none"
        name = self.target.value
        if self.operator in {"<&", ">&"} and name is not None and _is_descriptor(name):
            return "none"
        if self.operator == "<&":
            return "none"  # bash calls anything else ambiguous and opens nothing
        if name is not None and name.startswith(("/dev/tcp/", "/dev/udp/")):
            return "net"
        if name == "/dev/null":
            return "null"
        return "read" if self.operator == "<" else "write"


def _is_descriptor(name: str) -> bool:
    return name == "-" or name.removesuffix("-").isdecimal()


@dataclass(slots=True)
class Simple:
    """A simple command wherever it stands: in a list, a branch, a function, a substitution."""

    words: tuple[Word, ...]
    assignments: tuple[Word, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    background: bool = False
    piped: bool = False
    """Whether its standard input comes from another command."""
    nested: bool = False
    """Whether it stands inside a substitution."""

    @property
    def argv(self) -> tuple[str | None, ...]:
        """The words as values."""
        return tuple(word.value for word in self.words)

    @property
    def span(self) -> tuple[int, int]:
        """Where it stands in the whole text; end exclusive. Without words, where its variables and targets stand."""
        parts = self.words or (*self.assignments, *(each.target for each in self.redirections))
        return (min(part.start for part in parts), max(part.end for part in parts)) if parts else (0, 0)


@dataclass(slots=True)
class Script:
    """Everything found in a text, in the order in which it stands there."""

    commands: list[Simple] = field(default_factory=list)
    redirections: list[Redirection] = field(default_factory=list)
    """All of them, those of compound commands included."""
    substitutions: list[tuple[int, int]] = field(default_factory=list)
    """Where something runs, or is opened, while words are expanded."""
    evaluations: list[tuple[int, int]] = field(default_factory=list)
    """Where a value may be read as code again: arithmetic with names, `${x@P}`."""
    variables: set[str] = field(default_factory=set)
    """Names that the text expands."""
    loop_variables: set[str] = field(default_factory=set)
    """Names that loops of the text set."""
    functions: set[str] = field(default_factory=set)
    """Names that the text defines as functions."""
    words: int = 0
    """How many words were read."""
    retries: int = 0
    """How often a part was read again as something else."""
    problem: str | None = None
    """Why the rest of the text could not be read. None: all of it was."""
