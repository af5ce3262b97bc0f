"""Marks of processes that all descendants inherit and cannot remove: a hard limit that can only be lowered."""

import resource
import sys
from contextlib import suppress
from typing import Literal

FILE_LOCKS = 10
"""The number of RLIMIT_LOCKS. Linux children inherit it, but since 2.4.25 it has no other effect."""

COMMANDS = int.from_bytes(b"whisper")
"""The limit of processes that a keeper starts, minus one for each supervisor inside a supervised command."""

AGENTS = COMMANDS << 8
"""The limit of processes that a connected agent starts, minus one if an agent has started the supervisor."""

_LINUX = sys.platform == "linux"


def mark_supervised() -> None:
    """Mark this process and all its future descendants as supervised commands.

    Only a privileged process can raise such a limit again.
    """
    if _LINUX:
        with suppress(OSError, ValueError):
            _lower_limit(0, _available_mark(COMMANDS))


# An agent with a shell could otherwise run `whisper-tui approve` (decision 13).
def mark_agent(pid: int) -> None:
    """Mark an agent and all processes that it will start."""
    if _LINUX:
        with suppress(OSError, ValueError):
            _lower_limit(pid, _available_mark(AGENTS))


def mark_in_limits(limits: bytes) -> Literal["command", "agent"] | None:
    """Return the mark of a process, from its limits in /proc. None: no mark."""
    shown = _limit_in(limits)
    if shown is None or not shown < _as_number(_hard_limit(0)) or shown > AGENTS:
        return None
    return "command" if shown <= COMMANDS else "agent"


def is_supervised_here() -> bool:
    """True if this process descends from a supervised command."""
    return _LINUX and _hard_limit(0) <= COMMANDS and _hard_limit(0) != resource.RLIM_INFINITY


def _available_mark(mark: int) -> int:
    own = _as_number(_hard_limit(0))
    return mark if own > mark else max(0, int(own) - 1)


def _lower_limit(pid: int, limit: int) -> None:
    if _as_number(_hard_limit(pid)) > limit:
        resource.prlimit(pid, FILE_LOCKS, (limit, limit))


def _hard_limit(pid: int) -> int:
    return resource.prlimit(pid, FILE_LOCKS)[1]


def _as_number(limit: int) -> float | int:
    return float("inf") if limit == resource.RLIM_INFINITY else limit


def _limit_in(limits: bytes) -> int | None:
    """Return the hard limit. None: there is none, or the system does not show it."""
    for line in limits.splitlines():
        if line.startswith(b"Max file locks"):
            hard = line.split()[4]
            return int(hard) if hard.isdigit() else None
    return None
