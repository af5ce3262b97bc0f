"""What would run: an argv or a line for a shell, where, and with which limits."""

import hashlib
from typing import Annotated, Literal

from pydantic import Field

from whisper_tui.model.value import Value


class Argv(Value):
    """A program and its arguments; no shell ever sees them."""

    kind: Literal["argv"] = "argv"
    program: str
    """The program as asked: a name to look up in PATH, or a path."""
    args: tuple[str, ...] = ()

    def words(self) -> tuple[str, ...]:
        """The argv to execute."""
        return (self.program, *self.args)


class Shell(Value):
    """A line of text that a shell interprets."""

    kind: Literal["shell"] = "shell"
    text: str
    shell: str = "bash"
    """The interpreter as asked: a name to look up in PATH, or a path."""
    login: bool = False
    """Whether the shell reads the user's login files first."""

    def words(self) -> tuple[str, ...]:
        """The argv to execute; `--` keeps a text that starts with a dash from being read as an option."""
        return (self.shell, "-lc" if self.login else "-c", "--", self.text)


Command = Annotated[Argv | Shell, Field(discriminator="kind")]


class CommandSpec(Value):
    """Everything that decides what a run does, apart from the inherited environment."""

    command: Command
    cwd: str
    """Absolute working directory."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Variables added to the session's own; part of what is approved."""
    tty: bool = False
    """Whether the command gets a terminal instead of pipes."""
    accepts_input: bool = False
    """Whether standard input stays open. False: it is /dev/null."""
    timeout_s: float | None = Field(default=None, gt=0)
    """Seconds from the start of the process until it is ended. None: no limit."""
    grace_s: float = Field(default=3.0, ge=0)
    """Seconds between TERM and KILL when the run is ended."""

    def identity(self) -> str:
        """A digest of what makes two runs the same to a person: limits of time do not count."""
        same = self.model_copy(update={"timeout_s": None, "grace_s": 0.0})
        return digest(same.canonical())

    def canonical(self) -> str:
        """This specification as text that is equal exactly when the specification is."""
        environment = dict(sorted(self.environment.items()))
        return self.model_copy(update={"environment": environment}).model_dump_json()


def digest(text: str) -> str:
    """A short fingerprint of a text: 32 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
