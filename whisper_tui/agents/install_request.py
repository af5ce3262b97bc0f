"""Requests to install whisper_tui into a client, and the command lines for clients."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from whisper_tui.agents.client_files import ClientFile

DAY_S = 24 * 60 * 60
"""The timeout in seconds that clients get for a hook or a tool."""

DEADLINE_S = 86_100
"""Seconds after which hook and tools answer without a decision, before the client's own timeout."""

OR_REFUSE = "|| exit 2"
"""Appended to the hook's command line. It turns every failure into the exit code that clients treat as a denial."""

# Without an underscore, because one client does not allow it in the names of servers.
SERVER = "whisper"
"""The name of the MCP server in clients."""

PROGRAM = "whisper-tui"
_MODULE = ["-m", "whisper_tui"]
_EXECUTABLE = re.compile(r"(?:.*/)?whisper-tui")


class Launch(NamedTuple):
    """The command line of this installation and of one of its instances."""

    program: tuple[str, ...]
    """The launcher by its absolute path, or an interpreter and `-m whisper_tui`."""
    home: tuple[str, ...] = ()
    """The options that choose an instance."""

    def hook(self, client: str, *, agent_runs: bool = False, deadline_s: int = DEADLINE_S) -> tuple[str, ...]:
        """Return the hook's command line, which a client runs before each command."""
        runs = ("--agent-runs",) if agent_runs else ()
        return (*self.program, "hook", client, *self.home, "--deadline", str(deadline_s), *runs)

    def hook_text(
        self, client: str, *, agent_runs: bool = False, closed: bool = True, deadline_s: int = DEADLINE_S
    ) -> str:
        """Return the hook's command line for a shell. `closed`: a failing hook denies the command."""
        # Clients run the command when the hook is missing, killed or broken (decision 17).
        words = shlex.join(self.hook(client, agent_runs=agent_runs, deadline_s=deadline_s))
        return f"{words} {OR_REFUSE}" if closed else words

    def server(self) -> tuple[str, ...]:
        """Return the command line of the MCP server."""
        return (*self.program, "mcp", *self.home, "--wait", str(DEADLINE_S))

    def exec(self) -> str:
        """Return the prefix of every approved command line that a client's shell gets."""
        return shlex.join((*self.program, "exec"))


def split(command: Any) -> list[str]:
    """Return the words of a command line; none if it is not valid."""
    try:
        return shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return []


def is_hook(words: Sequence[str], client: str) -> bool:
    """True if a command line is the hook of any installation for this client."""
    return any(
        words[place : place + 2] == ["hook", client] and is_launcher(words[:place]) for place in range(1, len(words))
    )


def is_our_hook(client: str, handler: object) -> bool:
    """True if a handler in a client's settings starts the hook of any installation."""
    return isinstance(handler, dict) and is_hook(split(handler.get("command")), client)


def is_launcher(words: Sequence[str]) -> bool:
    """True if the words of a command line start whisper_tui."""
    return bool(words) and (_EXECUTABLE.fullmatch(words[-1]) is not None or list(words[-2:]) == _MODULE)


def is_approved(pattern: str) -> bool:
    """True if a pattern matches the approved commands of any installation."""
    words = split(pattern)
    return words[-2:] == ["exec", "*"] and is_launcher(words[:-2])


def is_gateway(words: Sequence[str], launch: Launch) -> bool:
    """True if a command line puts another MCP server behind the queue of this instance."""
    return "--through" in _own_words(words) and is_server(words, launch)


def is_server(words: Sequence[str], launch: Launch) -> bool:
    """True if a command line starts the MCP server of this instance, or its gateway."""
    launcher = next((each for each in ((PROGRAM,), launch.program) if tuple(words[: len(each)]) == each), ())
    own, places = _own_words(words)[len(launcher) :], launch.home
    chosen = [at for at, word in enumerate(own) if word.startswith(("--home", "--directories"))]
    # With other directories, another supervisor would be asked: perhaps one of the agent's own.
    same = own[chosen[0] : chosen[0] + len(places)] == list(places) if chosen else not places
    return bool(launcher) and own[:1] == ["mcp"] and len(chosen) <= 1 and same


def _own_words(words: Sequence[str]) -> list[str]:
    """The words of a command line before those of another server."""
    return list(words[: words.index("--") if "--" in words else None])


def launcher_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command line that start whisper_tui."""
    for place in range(1, len(words)):
        if is_launcher(words[:place]):
            return tuple(words[:place])
    return ()


@dataclass(frozen=True)
class InstallRequest:
    """A request to install into one client, for the user or for one project."""

    launch: Launch
    environ: Mapping[str, str]
    project: Path | None = None
    """The project's directory, absolute. None: user-wide."""
    hook: bool = True
    """True if the commands of the client's own shell tool wait in the queue."""
    tools: bool = True
    """True if the hook sees the client's other tools too: edits, the web, other servers, sub-agents."""
    mcp: bool = True
    """True if the client is offered the tools of whisper_tui."""
    agent_runs: bool = False
    """True if the agent runs the approved commands of its shell itself."""
    executor: bool = False
    """True if the client leaves its commands and files to our environment, instead of asking the hook about them."""
    gateway: bool = False
    """True if the MCP servers of others that the client starts are put behind the gateway."""

    @property
    def user_directory(self) -> Path:
        """The user's home directory."""
        return Path(self.environ.get("HOME") or Path.home())


@dataclass(frozen=True)
class InstallPlan:
    """The files of a client with the content that they should have, and notes for the user."""

    files: list[ClientFile]
    notes: list[str] = field(default_factory=list)
    """Sentences about remaining steps and limitations."""
