"""Whether a process sits in the kernel reading its input. Linux tells; elsewhere nothing is said."""

import platform
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

Waits = Literal["reads", "perhaps"]
"""It reads its input and there is none; or it looks like that, but the system does not let us see for sure."""


class _Calls(NamedTuple):
    """Numbers of system calls."""

    read: frozenset[int]
    select: frozenset[int]
    poll: frozenset[int]


_NUMBERS = {
    "x86_64": _Calls(frozenset({0, 19}), frozenset({23, 270}), frozenset({7, 271})),
    "aarch64": _Calls(frozenset({63, 65}), frozenset({72}), frozenset({73})),
}
_SLEEPS = frozenset({"n_tty_read", "wait_woken", "pipe_read", "anon_pipe_read"})
"""Where the kernel says that a process sleeps which reads a terminal or a pipe."""


def input_of(leader: int) -> str | None:
    """What the standard input of a run is: a terminal or a pipe. None: nobody can type into it, or it is not told."""
    found = _link(leader, 0)
    return found if found is not None and found.startswith(("/dev/pts/", "/dev/tty", "pipe:", "socket:")) else None


def waits(pid: int, source: str) -> Waits | None:
    """Whether a process waits for something to come from `source`, as `input_of` gives it. None: it does not."""
    numbers = _NUMBERS.get(platform.machine())
    words = _read(pid, "syscall").split()
    if numbers is None or len(words) < 3 or not words[0].isdigit():
        asleep = _read(pid, "wchan").strip("\0\n ") in _SLEEPS
        return "perhaps" if asleep and words[:1] != ["running"] and _link(pid, 0) == source else None
    number, first, second = int(words[0]), int(words[1], 16), int(words[2], 16)
    if number in numbers.read:
        return "reads" if _link(pid, first) == source else None
    if number in numbers.select:
        return "reads" if first == 1 and _link(pid, 0) == source else None
    if number in numbers.poll:
        return "perhaps" if second == 1 and _link(pid, 0) == source else None
    return None


def _read(pid: int, name: str) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_text(encoding="ascii", errors="replace")
    return ""


def _link(pid: int, descriptor: int) -> str | None:
    with suppress(OSError):
        return str(Path(f"/proc/{pid}/fd/{descriptor}").readlink())
    return None
