"""Marks on a process that all its descendants inherit and cannot remove: a hard limit that can only be lowered."""

import resource
import sys
from contextlib import suppress
from typing import Literal

FILE_LOCKS = 10
"""The number of RLIMIT_LOCKS. Linux passes it on to every child, and has ignored it otherwise since 2.4.25."""

COMMANDS = int.from_bytes(b"whisper")
"""The limit of what a keeper starts; one less for each supervisor inside a supervised command."""

AGENTS = COMMANDS << 8
"""The limit of what a connected agent starts; one less if the supervisor was itself started by an agent."""

_LINUX = sys.platform == "linux"


def mark_supervised() -> None:
    """Mark this process and all that it will ever start as supervised commands.

    Only a privileged process can raise such a limit again.
    """
    if _LINUX:
        with suppress(OSError, ValueError):
            _lower_to(0, _below(COMMANDS))


# An agent with a shell could otherwise run `whisper-tui approve` (decision 18).
def mark_agent(pid: int) -> None:
    """Mark all that an agent will start from now on, and with it the agent itself."""
    if _LINUX:
        with suppress(OSError, ValueError):
            _lower_to(pid, _below(AGENTS))


def mark_in_limits(limits: bytes) -> Literal["command", "agent"] | None:
    """Return the mark of a process, from its limits in /proc. None: no mark."""
    shown = _shown(limits)
    if shown is None or not shown < _known(_hard(0)) or shown > AGENTS:
        return None
    return "command" if shown <= COMMANDS else "agent"


def is_supervised_here() -> bool:
    """True if this process descends from a supervised command."""
    return _LINUX and _hard(0) <= COMMANDS and _hard(0) != resource.RLIM_INFINITY


def _below(mark: int) -> int:
    own = _known(_hard(0))
    return mark if own > mark else max(0, int(own) - 1)


def _lower_to(pid: int, limit: int) -> None:
    if _known(_hard(pid)) > limit:
        resource.prlimit(pid, FILE_LOCKS, (limit, limit))


def _hard(pid: int) -> int:
    return resource.prlimit(pid, FILE_LOCKS)[1]


def _known(limit: int) -> float | int:
    return float("inf") if limit == resource.RLIM_INFINITY else limit


def _shown(limits: bytes) -> int | None:
    """The hard limit. None: there is none, or the system shows none."""
    for line in limits.splitlines():
        if line.startswith(b"Max file locks"):
            hard = line.split()[4]
            return int(hard) if hard.isdigit() else None
    return None
