"""What connects a command with its keeper: pipes, or a terminal."""

import fcntl
import os
import struct
import termios
from typing import Any, NamedTuple

from whisper_tui.supervisor.keeper import spawn

ROWS, COLUMNS = 24, 80


class Channels(NamedTuple):
    """Descriptors on both sides. Ours are left open, the command's are to be closed once it is started."""

    actions: list[tuple[Any, ...]]
    """File actions for posix_spawn that make the command's side its standard descriptors."""
    sources: tuple[int, ...]
    """Where its output arrives: out and err, or both in one."""
    target: int
    """Where its input goes. -1: it takes none."""
    end_of_input: bytes | None
    """The bytes that mean the end of input to a terminal. None: the target is closed instead."""
    theirs: tuple[int, ...]
    """The command's side."""


def pipes(*, takes_input: bool) -> Channels:
    """Two pipes for its output, and one for its input or /dev/null. Raises `StartFailed`."""
    try:
        out, err = os.pipe(), os.pipe()
        stdin, target = os.pipe() if takes_input else (os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), -1)
    except OSError as error:
        raise spawn.no_channel("pipes", error) from None
    if takes_input:
        os.set_blocking(target, False)
    actions = spawn.three(stdin, out[1], err[1])
    return Channels(actions, (out[0], err[0]), target, None, (stdin, out[1], err[1]))


def terminal() -> Channels:
    """A new terminal of usual size. Raises `StartFailed`."""
    try:
        ours, theirs = os.openpty()
        target = os.dup(ours)
    except OSError as error:
        raise spawn.no_channel("a terminal", error) from None
    set_size(ours, ROWS, COLUMNS)
    end = termios.tcgetattr(theirs)[6][termios.VEOF]
    return Channels(spawn.terminal(os.ttyname(theirs), theirs), (ours,), target, end, (theirs,))


def set_size(fd: int, rows: int, columns: int) -> bool:
    """Set a terminal's size in character cells; its foreground processes are told. Whether it was no nonsense."""
    try:
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    except (OSError, struct.error):
        return False
    return True
