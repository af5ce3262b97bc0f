"""The start of a command with limits of the system for each of its processes, by a fork instead of posix_spawn.

posix_spawn cannot set limits. The commands of previews start in the same way, since what restricts them has to be
called in the new process. Limits of a whole run belong to its control group (decision 14).
"""

import errno
import fcntl
import os
import resource
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from whisper_tui.supervisor.keeper.run_cgroup import RunCgroup

ALL_SIGNALS = tuple(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
"""The signals whose handlers the keeper may have changed, and the command must not inherit."""
_MEMORY = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
"""Linux counts private writable memory. Elsewhere it is the address space, of which garbage collectors reserve more."""
PASSING = socket.MSG_DONTROUTE | socket.MSG_EOR
"""Flags without effect on a local socket. A filter that asks about sendmsg(2) lets a message with both pass: nobody can
answer before its descriptor has been passed in one."""
_LISTENER_PASSED = b"L"
"""The message that passes a sandbox's descriptor. A message of digits is an error number."""
LAST_CPU_S = 5
"""Seconds of processor time between the signal that can be handled and the one that cannot."""


_files_of_commands: list[tuple[int, int]] = []
"""The limit of open files that commands have, if that of this process was raised."""


def raise_file_limit() -> None:
    """Raise the limit of open files of this process, which may keep many runs, but not that of its commands."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        _files_of_commands[:] = [(soft, hard)]


@contextmanager
def limited_as_commands() -> Iterator[None]:
    """Have the limit of open files that commands inherit."""
    if not _files_of_commands:
        yield
        return
    soft, hard = _files_of_commands[0]
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class ProcessLimits(NamedTuple):
    """The limits that the system enforces for each process of a run. None: no limit."""

    cpu_s: int | None
    memory_bytes: int | None


def fork_limited(
    program: str,
    argv: list[str],
    environment: dict[str, str],
    *,
    files: list[tuple[Any, ...]],
    limits: ProcessLimits,
    group: RunCgroup,
    restrict: Callable[[], int] | None = None,
    answer: Callable[[int], object] | None = None,
) -> tuple[int, int]:
    """Start a process like `os.posix_spawn` with a new session and with limits. Raises `OSError` and `ValueError`.

    `restrict` puts the child into its sandbox, and `answer` answers one notification: a filter may ask about the exec.
    Returns its pid and the descriptor of the notifications, or -1.
    """
    # posix_spawn cannot set limits, and the keeper could not raise its own again. The socket closes at the
    # exec. An error number on it means that the exec failed.
    ours, theirs = socket.socketpair()
    with ours, theirs:
        pid = os.fork()
        if not pid:
            # With both ends it would keep alive what it sends, and not notice that its maker is gone.
            ours.close()
            _exec(theirs, program, argv, environment, files=files, limits=limits, group=group, restrict=restrict)
        theirs.close()
        told, passed = b"", [-1]
        while piece := _receive(ours, passed, answer):
            told += piece
    problem = told.replace(_LISTENER_PASSED, b"")
    if problem:
        os.waitpid(pid, 0)
        if passed[0] >= 0:
            os.close(passed[0])
        raise _error_of(int(problem))
    return pid, passed[0]


def _receive(ours: socket.socket, passed: list[int], answer: Callable[[int], object] | None) -> bytes:
    """Receive the child's next message, and the descriptor that may be attached to it."""
    while (
        answer is not None
        and passed[0] >= 0
        and ours.fileno() not in select.select([ours.fileno(), passed[0]], [], [])[0]
    ):
        answer(passed[0])
    piece, descriptors, _, _ = socket.recv_fds(ours, 16, 1)
    if descriptors:
        passed[0] = descriptors[0]
        os.set_inheritable(passed[0], False)
    return piece


def _exec(
    connection: socket.socket,
    program: str,
    argv: list[str],
    environment: dict[str, str],
    *,
    files: list[tuple[Any, ...]],
    limits: ProcessLimits,
    group: RunCgroup,
    restrict: Callable[[], int] | None,
) -> None:
    """Become the command, in the forked child. Never returns: errors are sent as their numbers."""
    number = 0
    try:
        os.setsid()
        group.take(0)
        # A file action whose target has its number would close it, as if the command had started.
        target = max((action[2 if action[0] == os.POSIX_SPAWN_DUP2 else 1] for action in files), default=0)
        connection = socket.socket(fileno=fcntl.fcntl(connection, fcntl.F_DUPFD_CLOEXEC, target + 1))
        for action in files:
            _apply_file_action(action)
        _reset_signals()
        _apply_limits(limits)
        if restrict is not None:
            listener = restrict()
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, listener.to_bytes(4, sys.byteorder))
            connection.sendmsg([_LISTENER_PASSED], [rights], PASSING)
            # With a descriptor of its own it would wait for ever for an answer about its exec after a kill of the
            # process that answers; now the call fails.
            os.close(listener)
        os.execve(program, argv, environment)
    except OSError as error:
        number = error.errno or errno.EIO
    except MemoryError:
        number = errno.ENOMEM
    except ValueError:
        number = errno.EINVAL
    finally:
        try:
            connection.send(str(number).encode())
        finally:
            os._exit(127)


def _reset_signals() -> None:
    # A signal before the exec must not wake the keeper through the shared descriptor.
    signal.set_wakeup_fd(-1)
    for each in ALL_SIGNALS:
        signal.signal(each, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _apply_limits(limits: ProcessLimits) -> None:
    if _files_of_commands:
        resource.setrlimit(resource.RLIMIT_NOFILE, _files_of_commands[0])
    if limits.cpu_s is not None:
        _set(resource.RLIMIT_CPU, limits.cpu_s, limits.cpu_s + LAST_CPU_S)
    if limits.memory_bytes is not None:
        _set(_MEMORY, limits.memory_bytes, limits.memory_bytes)


def _apply_file_action(action: tuple[Any, ...]) -> None:
    """Apply one file action as posix_spawn does."""
    if action[0] == os.POSIX_SPAWN_DUP2:
        os.dup2(action[1], action[2])
        return
    _, target, path, flags, mode = action
    fd = os.open(path, flags, mode)
    os.dup2(fd, target)
    if fd != target:
        os.close(fd)


def _set(kind: int, soft: int, hard: int) -> None:
    """Set a limit, unless it is lower already."""
    # A process may lower its hard limit, but not raise it again.
    _, most = resource.getrlimit(kind)
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    resource.setrlimit(kind, (soft, hard))


def _error_of(number: int) -> OSError | ValueError:
    if number == errno.EINVAL:
        return ValueError("an argument or a variable contains a null byte")
    return OSError(number, os.strerror(number))


class PreviewedCommand(NamedTuple):
    """The command of a preview, as the keeper would start it."""

    program: str
    argv: Sequence[str]
    environment: dict[str, str]
    files: Sequence[Sequence[Any]]
    """File actions for posix_spawn."""
    limits: ProcessLimits = ProcessLimits(None, None)

    def start(
        self, restrict: Callable[[], int], console: str | None = None, answer: Callable[[int], object] | None = None
    ) -> tuple[int, int]:
        """Start the command; `restrict` is called in the new process just before, and returns a descriptor to pass.

        `console`: where it finds its terminal; `answer` answers one call that a filter tells about until it has
        started. Returns the pid and that descriptor. Raises `OSError`, `ValueError`.
        """
        files = [_opened_at(action, console) for action in self.files]
        return fork_limited(
            self.program,
            list(self.argv),
            self.environment,
            files=files,
            limits=self.limits,
            group=RunCgroup(),
            restrict=restrict,
            answer=answer,
        )


def _opened_at(action: Sequence[Any], console: str | None) -> tuple[Any, ...]:
    """Return a file action that opens the terminal under its name in the view."""
    if action[0] != os.POSIX_SPAWN_OPEN or console is None:
        return tuple(action)
    return (*action[:2], console, *action[3:])
