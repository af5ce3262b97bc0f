"""The command lines that clients are given, and how they are told again."""

import re
import shlex
from collections.abc import Sequence
from typing import Any, NamedTuple

DAY_S = 24 * 60 * 60
"""Seconds that a client is told to wait for a hook or a tool."""

DEADLINE_S = 86_100
"""Seconds after which hook and tools answer by themselves: before the client would go on without them."""

OR_REFUSE = "|| exit 2"
"""What turns every end of a hook but a good one into the one that all clients take for a refusal."""

SERVER = "whisper"
"""The name of the MCP server in clients; without an underscore, which one of them does not allow."""

PROGRAM = "whisper-tui"
_MODULE = ["-m", "whisper_tui"]
_EXECUTABLE = re.compile(r"(?:.*/)?whisper-tui")


class Launch(NamedTuple):
    """How this installation is started, and which of its instances."""

    program: tuple[str, ...]
    """The launcher by its absolute path, or an interpreter and `-m whisper_tui`."""
    home: tuple[str, ...] = ()
    """The options that choose an instance."""

    def hook(self, client: str, *, agent_runs: bool = False) -> tuple[str, ...]:
        """What a client starts before each of its commands."""
        runs = ("--agent-runs",) if agent_runs else ()
        return (*self.program, "hook", client, *self.home, "--deadline", str(DEADLINE_S), *runs)

    def hook_text(self, client: str, *, agent_runs: bool = False, closed: bool = True) -> str:
        """The same for a shell. `closed`: a hook that is missing, killed or broken refuses, for clients let it pass."""
        words = shlex.join(self.hook(client, agent_runs=agent_runs))
        return f"{words} {OR_REFUSE}" if closed else words

    def server(self) -> tuple[str, ...]:
        """What a client starts as MCP server."""
        return (*self.program, "mcp", *self.home, "--wait", str(DEADLINE_S))

    def exec(self) -> str:
        """How every approved command begins, as a client's shell is given it."""
        return shlex.join((*self.program, "exec"))


def split(command: Any) -> list[str]:
    """The words of a command line; none if it is none."""
    try:
        return shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return []


def is_hook(words: Sequence[str], client: str) -> bool:
    """Whether a command line is our hook for this client, of whatever installation."""
    return any(
        words[place : place + 2] == ["hook", client] and is_launcher(words[:place]) for place in range(1, len(words))
    )


def is_launcher(words: Sequence[str]) -> bool:
    """Whether words start whisper_tui."""
    return bool(words) and (_EXECUTABLE.fullmatch(words[-1]) is not None or list(words[-2:]) == _MODULE)


def is_approved(pattern: str) -> bool:
    """Whether a pattern is for commands that were approved, in whatever installation."""
    words = split(pattern)
    return words[-2:] == ["exec", "*"] and is_launcher(words[:-2])


def launcher_of(words: Sequence[str]) -> tuple[str, ...]:
    """The words that start whisper_tui in one of its command lines."""
    for place in range(1, len(words)):
        if is_launcher(words[:place]):
            return tuple(words[:place])
    return ()
