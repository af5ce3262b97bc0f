"""What would run: an argv, a line for a shell or a tool of the asker's own, where, and with which limits."""

import hashlib
import json
from typing import Annotated, Any, Literal

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
        """The argv to execute; `--` keeps a text that starts with a dash from being read as an option.

        The command interpreter of Windows knows neither: its text follows `/c`.
        """
        if self.shell.lower().rpartition("\\")[2] in {"cmd", "cmd.exe"}:
            return (self.shell, "/c", self.text)
        return (self.shell, "-lc" if self.login else "-c", "--", self.text)


class Function(Value):
    """A tool that whoever asked carries out in its own process, once that is approved. No executor ever starts it."""

    kind: Literal["function"] = "function"
    tool: str
    arguments: dict[str, Any]
    """As JSON."""

    def words(self) -> tuple[str, ...]:
        """The tool and its arguments, for people."""
        return (self.tool, json.dumps(self.arguments, ensure_ascii=False, sort_keys=True))

    def ordered(self) -> "Function":
        """The same call with its arguments in the order of their names, at every depth."""
        arguments = json.loads(json.dumps(self.arguments, sort_keys=True))
        return Function(tool=self.tool, arguments=arguments)

    @property
    def text(self) -> str:
        """What is approved, on one line."""
        return " ".join(self.words())


Command = Annotated[Argv | Shell | Function, Field(discriminator="kind")]


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
        same: dict[str, object] = {"environment": dict(sorted(self.environment.items()))}
        if isinstance(self.command, Function):
            same["command"] = self.command.ordered()
        return self.model_copy(update=same).model_dump_json()


def digest(text: str) -> str:
    """A short fingerprint of a text: 32 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
