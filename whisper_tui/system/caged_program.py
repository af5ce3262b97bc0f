"""The cage of a program that only looks: it reads what it was given, changes nothing, starts nothing, reaches nobody.

Landlock opens the system and the given paths for reading; a seccomp filter refuses to start processes and to open
sockets, so that code which the program finds where it looks, in settings for example, has nothing to run it. The
program is started by a thread that confines itself, as the keeper starts commands (decision 7).
"""

import ctypes
import fcntl
import os
import queue
import select
import signal
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from typing import NamedTuple

from whisper_tui.system import processes, syscalls
from whisper_tui.system.bpf import (
    MISSING,
    REFUSED,
    Filter,
    Instruction,
    answers_to,
    if_call,
    only_own_abi,
    unless_bits,
    unless_equal,
)
from whisper_tui.system.confinement import begin_in_a_thread, confine, probe
from whisper_tui.system.landlock_rules import READ, SystemRules

_PERMITTED = frozenset(
    # files, which Landlock checks when they are opened
    "read readv pread64 preadv preadv2 write writev close close_range lseek open openat access faccessat faccessat2 "
    "stat fstat lstat newfstatat statx statfs fstatfs readlink readlinkat getdents getdents64 getcwd chdir fchdir "
    "dup dup2 dup3 fcntl fadvise64 readahead pipe pipe2 umask execve "
    # memory
    "brk mmap munmap mremap mprotect msync mincore madvise mlock munlock membarrier pkey_mprotect pkey_alloc pkey_free "
    "map_shadow_stack mseal "
    # the process itself and its threads
    "exit exit_group wait4 waitid getpid getppid gettid getuid geteuid getgid getegid getresuid getresgid getgroups "
    "getpgid getpgrp getsid setsid prctl arch_prctl set_tid_address set_robust_list get_robust_list rseq futex "
    "futex_waitv futex_wake futex_wait futex_requeue getrlimit getrusage times uname sysinfo getcpu getrandom "
    "sched_yield sched_getaffinity sched_getscheduler sched_getparam sched_get_priority_max sched_get_priority_min "
    # time and events
    "rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait sigaltstack restart_syscall "
    "pause alarm getitimer setitimer nanosleep clock_gettime clock_getres clock_nanosleep gettimeofday time poll ppoll "
    "select pselect6".split()
)
"""Calls that are allowed. Others are refused, and those that are newer than our table do not exist."""
_ABSENT = frozenset("clone3 io_uring_setup io_uring_enter io_uring_register memfd_create memfd_secret".split())
"""Calls that fail as if they did not exist, so that programs fall back: a filter cannot look into their arguments."""
_CLONE_FS, _CLONE_THREAD = 0x200, 0x10000

_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_NOTICE_SIZE, _ANSWER = 80, struct.Struct("=QqiI")
"""The size of `struct seccomp_notif`, which begins with the id of the call, and `struct seccomp_notif_resp`."""
_CONTINUE = 1

_SETSIGDEF, _SETSIGMASK, _SETSID = 0x04, 0x08, 0x80
"""Flags of posix_spawnattr_setflags(3)."""
_LARGEST = 1024
"""Bytes that hold any structure of posix_spawn(3), and any set of signals."""
_PIECE = 65_536


class Looked(NamedTuple):
    """The answer of a caged program."""

    output: bytes | None
    """All of its output. None: it failed, its output was too long, or it was late."""
    was_late: bool = False
    """True if it was killed because its time was over."""


@cache
def cage_problem() -> str:
    """Return why programs cannot be caged on this machine, as a clause. Empty: they can."""
    return probe().problem


def look(
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    directory: str,
    read: Sequence[str],
    timeout_s: float,
    most_bytes: int,
) -> Looked:
    """Run a program in the cage. `argv[0]` is its path; `read`: the real paths that it may read beside the system.

    Raises `OSError` if it cannot be caged or started.
    """
    deadline = time.monotonic() + timeout_s
    out, told = os.pipe()
    with ExitStack() as opened:
        opened.callback(os.close, out)
        try:
            pid = _cage().start(argv, environment, directory=directory, read=read, out=told)
        finally:
            os.close(told)
        said = b""
        try:
            said = _read(out, deadline, most_bytes)
            if len(said) <= most_bytes:
                _wait(pid, deadline)
        finally:
            # What has closed its output has nothing more to say.
            was_late = _kill(pid) and len(said) <= most_bytes
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return Looked(said if code == 0 and len(said) <= most_bytes else None, was_late)


class _Cage:
    """The parts that all cages share: the rules for the system with their files opened, and the filter."""

    def __init__(self) -> None:
        self._system = SystemRules(probe().version, for_programs_alone=True)
        self._filter = Filter(_instructions())
        self._lock = threading.Lock()

    def start(
        self, argv: Sequence[str], environment: Mapping[str, str], *, directory: str, read: Sequence[str], out: int
    ) -> int:
        """Start a program that writes to a descriptor. Return its pid. Raises `OSError`."""
        with self._lock:
            rules = self._system.ruleset()
        try:
            for path in read:
                self._system.permit(rules, path, READ)
            return self._start(rules, argv, {**environment, processes.INSIDE: "look"}, directory, out)
        finally:
            os.close(rules)

    def _start(self, rules: int, argv: Sequence[str], environment: Mapping[str, str], directory: str, out: int) -> int:
        listeners: queue.SimpleQueue[int | None] = queue.SimpleQueue()

        def confined() -> int:
            try:
                # The directory of this thread, and of no other.
                syscalls.call("unshare", _CLONE_FS)
                os.chdir(directory)
                listeners.put(confine(rules, self._filter))
            finally:
                listeners.put(None)
            return _spawn(argv, environment, out)

        finish = begin_in_a_thread(confined)
        listener = listeners.get()
        if listener is not None:
            try:
                _permit_one_start(listener)
            finally:
                # From now on the kernel refuses every other start.
                os.close(listener)
        pid = finish()
        processes.mark_supervised(pid)
        return pid


@cache
def _cage() -> _Cage:
    return _Cage()


def _instructions() -> list[Instruction]:
    """Return the filter. To start a process takes our consent, which is given once: to the start of the program."""
    numbers = syscalls.NUMBERS
    answers = dict.fromkeys(range(max(numbers.values()) + 1), REFUSED)
    answers |= {number: syscalls.RET_ALLOW for name, number in numbers.items() if name in _PERMITTED}
    answers |= {number: MISSING for name, number in numbers.items() if name in _ABSENT}
    return [
        *only_own_abi(),
        *if_call("clone", unless_bits(0, _CLONE_THREAD, syscalls.RET_USER_NOTIF)),
        # Libraries ask for the limits of their own process when it starts.
        *if_call("prlimit64", unless_equal(0, 0, REFUSED)),
        *answers_to(answers, MISSING),
    ]


def _permit_one_start(listener: int) -> None:
    """Let the confined thread start its program. Returns as well if that thread ends without trying to."""
    waiting = select.poll()
    waiting.register(listener, select.POLLIN)
    ((_, events),) = waiting.poll()
    if not events & select.POLLIN:
        return
    notice = bytearray(_NOTICE_SIZE)
    fcntl.ioctl(listener, _RECEIVE, notice)
    fcntl.ioctl(listener, _SEND, _ANSWER.pack(int.from_bytes(notice[:8], "little"), 0, 0, _CONTINUE))


def _spawn(argv: Sequence[str], environment: Mapping[str, str], out: int) -> int:
    """Call posix_spawn(3). Return the pid. Raises `OSError`."""
    # Not `os.posix_spawn`: that keeps the interpreter's lock, and another thread has to answer the filter meanwhile.
    libc = ctypes.CDLL(None)
    actions, attributes, signals = (ctypes.create_string_buffer(_LARGEST) for _ in range(3))
    words = (ctypes.c_char_p * (len(argv) + 1))(*map(os.fsencode, argv), None)
    variables = [os.fsencode(f"{name}={value}") for name, value in environment.items()]
    inherited = (ctypes.c_char_p * (len(variables) + 1))(*variables, None)
    pid = ctypes.c_int()
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        libc.posix_spawn_file_actions_init(actions)
        for fd, target in ((null, 0), (out, 1), (null, 2)):
            libc.posix_spawn_file_actions_adddup2(actions, fd, target)
        libc.posix_spawnattr_init(attributes)
        libc.posix_spawnattr_setflags(attributes, ctypes.c_short(_SETSIGDEF | _SETSIGMASK | _SETSID))
        libc.sigemptyset(signals)
        libc.posix_spawnattr_setsigmask(attributes, signals)
        libc.sigfillset(signals)
        libc.posix_spawnattr_setsigdefault(attributes, signals)
        error = libc.posix_spawn(ctypes.byref(pid), words[0], actions, attributes, words, inherited)
        libc.posix_spawn_file_actions_destroy(actions)
        libc.posix_spawnattr_destroy(attributes)
    finally:
        os.close(null)
    if error:
        raise OSError(error, os.strerror(error), argv[0])
    return pid.value


def _read(out: int, deadline: float, most_bytes: int) -> bytes:
    """Return what a program writes until it closes its output, its time is over, or it has written too much."""
    pieces, size = [], 0
    waiting = select.poll()
    waiting.register(out, select.POLLIN)
    while size <= most_bytes and waiting.poll(max(0.0, deadline - time.monotonic()) * 1000):
        piece = os.read(out, _PIECE)
        if not piece:
            break
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def _wait(pid: int, deadline: float) -> None:
    """Wait until a child has ended, or its time is over."""
    about = os.pidfd_open(pid)
    try:
        waiting = select.poll()
        waiting.register(about, select.POLLIN)
        waiting.poll(max(0.0, deadline - time.monotonic()) * 1000)
    finally:
        os.close(about)


def _kill(pid: int) -> bool:
    """Kill a child that was not waited for. Return whether it was still running."""
    if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
        return False
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return True
