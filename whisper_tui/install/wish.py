"""What somebody wants installed, and where."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from whisper_tui.install.files import ClientFile
from whisper_tui.install.launch import Launch


@dataclass(frozen=True)
class Wish:
    """One client, for all of a user's work or for one project."""

    launch: Launch
    environ: Mapping[str, str]
    project: Path | None = None
    """The project's directory, absolute. None: user-wide."""
    hook: bool = True
    """Whether the client's own shell tool is to go through the queue."""
    mcp: bool = True
    """Whether the client is offered our tools."""
    agent_runs: bool = False
    """Whether approved commands of its shell are left to the agent to run."""

    @property
    def user_directory(self) -> Path:
        """Where the user's files are."""
        return Path(self.environ.get("HOME") or Path.home())


@dataclass(frozen=True)
class Fulfilment:
    """The files of a client as they are wanted, and what there is to say beyond them."""

    files: list[ClientFile]
    notes: list[str] = field(default_factory=list)
    """Sentences for the user: what is left to do, and what will not work."""
