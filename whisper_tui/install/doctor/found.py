"""What stands in a client's files about whisper_tui, in one shape for all clients."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from whisper_tui.install.doctor.report import Check, bad
from whisper_tui.install.documents import value_at
from whisper_tui.install.files import Opener, plain_of
from whisper_tui.install.launch import Launch
from whisper_tui.install.wish import Wish
from whisper_tui.model.errors import BadConfiguration


@dataclass(frozen=True)
class Scene:
    """Where the doctor looks: an environment, a project's directory, and the installation that it belongs to."""

    launch: Launch
    environ: Mapping[str, str]
    project: Path
    canary_s: float = 10.0
    """Seconds that a gate has to stop a canary."""

    def wishes(self) -> tuple[Wish, Wish]:
        """The places of the user and of the project."""
        return (Wish(self.launch, self.environ), Wish(self.launch, self.environ, project=self.project))


@dataclass(frozen=True)
class FoundHook:
    """A hook of ours in a client's file."""

    path: Path
    words: list[str]
    """Its command line."""
    timeout_s: float | None
    """Seconds that the client waits for it. None: it waits without end."""
    problems: list[Check] = field(default_factory=list)
    """What the client is told that weakens it."""
    prove: Callable[[], str | None] = lambda: None
    """Sends the canary. None: it was stopped; otherwise what happened instead."""


@dataclass(frozen=True)
class FoundServer:
    """Our MCP server in a client's file."""

    path: Path
    words: list[str]
    timeout_s: float | None
    """Seconds that a call may take. None: what the client takes when it is told nothing."""
    asks_again: str | None
    """How to keep the client from asking a second time about each call. None: it does not ask."""


@dataclass(frozen=True)
class Looked:
    """All that was found for one client."""

    hooks: list[FoundHook] = field(default_factory=list)
    servers: list[FoundServer] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    """What concerns the client as a whole."""
    shut: list[Path] = field(default_factory=list)
    """Files that switch the client's own shell tool off, so that it needs no hook."""

    def read(self, path: Path, opener: Opener) -> Any:
        """What a file says; `{}` for one that is not there or cannot be read, and a check that says so."""
        try:
            return plain_of(path, opener)
        except BadConfiguration as error:
            if all(check.sentence != error.message for check in self.checks):
                self.checks.append(bad("file", error.message, "The client does not read it either. Correct it first"))
            return {}


def among(plain: Any, path: tuple[str, ...], word: str) -> bool:
    """Whether a list in a file holds a word."""
    found = value_at(plain, path)
    return isinstance(found, list) and word in found


def words_of(command: Any, args: Any) -> list[str]:
    """A program and its arguments as one list; empty if they are none."""
    listed = [command, *args] if isinstance(args, list) else [command]
    return listed if all(isinstance(word, str) for word in listed) else []


def seconds(value: Any, per_second: float = 1.0) -> float | None:
    """A duration of a file in seconds. None: there is none."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value / per_second if number else None
