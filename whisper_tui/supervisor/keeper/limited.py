"""Starting a command that may use only so much: its limits are set between the fork and the exec."""

import errno
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from whisper_tui.supervisor.keeper.group import RunGroup

_ALL_SIGNALS = tuple(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
_MEMORY = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
"""Linux counts what a process can write to and shares with nobody; elsewhere it is its whole address space."""
_LISTENS = b"L"
"""Said with the descriptor of a sandbox; a number is a problem."""
LAST_CPU_S = 5
"""Seconds of processor time between the signal that can be handled and the one that cannot."""


class Limits(NamedTuple):
    """What the system itself enforces for each process of a run. None: no limit."""

    cpu_s: int | None
    memory_bytes: int | None


def of(spec: dict[str, Any]) -> Limits | None:
    """The limits of an attempt. None: there are none for the system to enforce."""
    limits = Limits(spec["cpu"], spec["memory"])
    return None if limits == (None, None) else limits


def spawn(
    program: str,
    argv: list[str],
    environment: dict[str, str],
    *,
    files: list[tuple[Any, ...]],
    limits: Limits,
    group: RunGroup,
    restrict: Callable[[], int] | None = None,
) -> tuple[int, int]:
    """What `os.posix_spawn` does with a new session, and limits. Raises `OSError` and `ValueError` as it does.

    `restrict` puts the child into its sandbox. Returns its pid and the descriptor on which the sandbox asks, or -1.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs:
        pid = os.fork()
        if not pid:
            _become(theirs, program, argv, environment, files=files, limits=limits, group=group, restrict=restrict)
        theirs.close()
        told, passed = b"", [-1]
        while piece := _receive(ours, passed):
            told += piece
    problem = told.replace(_LISTENS, b"")
    if problem:
        os.waitpid(pid, 0)
        if passed[0] >= 0:
            os.close(passed[0])
        raise _problem(int(problem))
    return pid, passed[0]


def _receive(ours: socket.socket, passed: list[int]) -> bytes:
    """What the child says next, with the descriptor that may come along."""
    piece, descriptors, _, _ = socket.recv_fds(ours, 16, 1)
    if descriptors:
        passed[0] = descriptors[0]
        os.set_inheritable(passed[0], False)
    return piece


def _become(
    teller: socket.socket,
    program: str,
    argv: list[str],
    environment: dict[str, str],
    *,
    files: list[tuple[Any, ...]],
    limits: Limits,
    group: RunGroup,
    restrict: Callable[[], int] | None,
) -> None:
    """The child, up to its exec. Never returns: what goes wrong is told by its number."""
    number = 0
    try:
        os.setsid()
        group.take(0)
        for action in files:
            _arrange(action)
        signal.set_wakeup_fd(-1)
        for each in _ALL_SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if limits.cpu_s is not None:
            _set(resource.RLIMIT_CPU, limits.cpu_s, limits.cpu_s + LAST_CPU_S)
        if limits.memory_bytes is not None:
            _set(_MEMORY, limits.memory_bytes, limits.memory_bytes)
        if restrict is not None:
            socket.send_fds(teller, [_LISTENS], [restrict()])
        os.execve(program, argv, environment)
    except OSError as error:
        number = error.errno or errno.EIO
    except MemoryError:
        number = errno.ENOMEM
    except ValueError:
        number = errno.EINVAL
    finally:
        teller.send(str(number).encode())
        os._exit(127)


def _arrange(action: tuple[Any, ...]) -> None:
    """Carry out one file action of posix_spawn."""
    if action[0] == os.POSIX_SPAWN_DUP2:
        os.dup2(action[1], action[2])
        return
    _, target, path, flags, mode = action
    fd = os.open(path, flags, mode)
    os.dup2(fd, target)
    if fd != target:
        os.close(fd)


def _set(kind: int, soft: int, hard: int) -> None:
    """A limit that was lower before stays as low."""
    _, most = resource.getrlimit(kind)
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    resource.setrlimit(kind, (soft, hard))


def _problem(number: int) -> OSError | ValueError:
    if number == errno.EINVAL:
        return ValueError("an argument or a variable holds what no program can be given")
    return OSError(number, os.strerror(number))
