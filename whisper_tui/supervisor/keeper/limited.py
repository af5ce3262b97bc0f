"""Starting a command that may use only so much: its limits are set between the fork and the exec."""

import errno
import os
import resource
import signal
import sys
from typing import Any, NamedTuple

from whisper_tui.supervisor.keeper.group import RunGroup

_ALL_SIGNALS = tuple(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
_MEMORY = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
"""Linux counts what a process can write to and shares with nobody; elsewhere it is its whole address space."""
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
) -> int:
    """What `os.posix_spawn` does with a new session, and limits. Raises `OSError` and `ValueError` as it does."""
    reader, writer = os.pipe()
    pid = 0
    try:
        pid = os.fork()
        if not pid:
            _become(writer, program, argv, environment, files=files, limits=limits, group=group)
        os.close(writer)
        writer = -1
        told = os.read(reader, 16)
    finally:
        os.close(reader)
        if writer >= 0:
            os.close(writer)
    if told:
        os.waitpid(pid, 0)
        raise _problem(int(told))
    return pid


def _become(
    writer: int,
    program: str,
    argv: list[str],
    environment: dict[str, str],
    *,
    files: list[tuple[Any, ...]],
    limits: Limits,
    group: RunGroup,
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
        os.execve(program, argv, environment)
    except OSError as error:
        number = error.errno or errno.EIO
    except MemoryError:
        number = errno.ENOMEM
    except ValueError:
        number = errno.EINVAL
    finally:
        os.write(writer, str(number).encode())
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
