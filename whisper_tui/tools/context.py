"""What a tool works with: the way to the supervisor, the session it belongs to, and its limits."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

from whisper_tui.model.call import Session
from whisper_tui.model.port import Supervision
from whisper_tui.tools.room import Room

KNOWN_SHELLS = frozenset({"bash", "zsh", "sh"})


def whole() -> None:
    """No bound: answers hold all output."""


@dataclass(frozen=True)
class ToolContext:
    """Shared by the tools of one session."""

    supervision: Supervision
    session: Session
    room: Callable[[], Room | None] = whole
    """Tells how much of an answer is shown to whoever asks. None: all, however long; else its middle is left out."""
    inline: int | None = None
    """Bytes of output that a result may hold; of more, marks stand in its place, and whoever asked reads it for itself.
    None: any number."""
    clock: Callable[[], float] = time.time
    """Seconds since the epoch, as the supervisor counts them."""
    shell: str = field(default_factory=lambda: shell_of(os.environ))
    """The shell for calls that name none."""


def shell_of(environment: Mapping[str, str]) -> str:
    """The user's own shell where it is one that reads what a model writes; else `sh`."""
    name = PurePath(environment.get("SHELL", "")).name
    return name if name in KNOWN_SHELLS else "sh"
