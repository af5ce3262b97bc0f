"""Whether a process sits in the kernel reading its input, and whether its terminal shows it. Linux tells this."""

import os
import platform
import termios
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

Waits = Literal["reads", "perhaps"]
"""It reads its input and there is none; or it looks like that, but the system does not let us see for sure."""

Echo = Literal["shows", "hides", "raw"]
"""What a terminal does with typed letters: it shows them; it hides them, as for a password; or it leaves showing them
to the program, which may do either."""


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
        return "reads" if _is(pid, first, source) else None
    if number in numbers.select:
        return "reads" if first == 1 and _is(pid, 0, source) else None
    if number in numbers.poll:
        return "perhaps" if second == 1 and _link(pid, 0) == source else None
    return None


def echo_of(leader: int) -> Echo | None:
    """What the terminal of a run does with what is typed. None: it has none, or that cannot be seen from here."""
    if not (input_of(leader) or "").startswith(("/dev/pts/", "/dev/tty")):
        return None
    with suppress(OSError, termios.error):
        terminal = os.open(f"/proc/{leader}/fd/0", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            flags = termios.tcgetattr(terminal)[3]
        finally:
            os.close(terminal)
        if flags & termios.ECHO:
            return "shows"
        return "hides" if flags & termios.ICANON else "raw"
    return None


def _is(pid: int, descriptor: int, source: str) -> bool:
    """Whether a descriptor is the input of the run, also by the name that every process has for its own terminal."""
    found = _link(pid, descriptor)
    return found == source or (found == "/dev/tty" and source.startswith("/dev/"))


def _read(pid: int, name: str) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_text(encoding="ascii", errors="replace")
    return ""


def _link(pid: int, descriptor: int) -> str | None:
    with suppress(OSError):
        return str(Path(f"/proc/{pid}/fd/{descriptor}").readlink())
    return None
