"""Confinement of a process by the kernel: its support here, and the thread that takes it upon itself to pass it on.

Linux keeps these restrictions per thread, and children inherit them. So a thread that only restricts itself and starts
a process leaves all others of its program unrestricted (decision 7).
"""

import _thread
import errno
import os
from collections.abc import Callable
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from whisper_tui.system import syscalls
from whisper_tui.system.bpf import Filter

_Result = TypeVar("_Result")


class Support(NamedTuple):
    """The support of this system."""

    version: int
    """Version of the Landlock interface. 0: no process can be confined."""
    problem: str
    """The reason for that, as a clause. Empty: processes can be confined."""


def probe() -> Support:
    """Determine whether processes can be confined on this system. Changes nothing."""
    if not syscalls.LINUX:
        return Support(0, "Landlock exists on Linux only")
    if not syscalls.NUMBERS:
        return Support(0, f"it does not support processors of type {syscalls.MACHINE}")
    try:
        version = syscalls.landlock_version()
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            return Support(0, "Landlock is disabled: the kernel was started without it in its lsm= parameter")
        return Support(0, "this kernel has no Landlock (it needs Linux 5.13), or a container blocks it")
    try:
        syscalls.call("seccomp", syscalls.SET_MODE_FILTER, syscalls.NEW_LISTENER, None)
    except OSError as error:
        # EFAULT: the kernel supports filters, and has tried to read our null pointer.
        if error.errno != errno.EFAULT:
            return Support(0, f"the kernel accepts no seccomp filter: {os.strerror(error.errno or 0)}")
    return Support(version, "")


def confine(rules: int, calls: Filter, *, listening: bool = True) -> int:
    """Confine this thread irrevocably to a ruleset and a filter of system calls. Raises `OSError`.

    `listening`: return the descriptor of the filter's notifications. Otherwise 0.
    """
    _drop_rights()
    restrict(rules)
    # The filter is last: it may refuse the system calls of the other steps.
    return calls.install(listening=listening)


def restrict(rules: int) -> None:
    """Restrict this thread irrevocably to a ruleset. Raises `OSError`."""
    syscalls.call("landlock_restrict_self", rules, 0)


def _drop_rights() -> None:
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    syscalls.drop_capabilities()


class _Outcome(Generic[_Result]):
    """The result of work that another thread does, or its error."""

    def __init__(self) -> None:
        self._done, self._results = _thread.allocate_lock(), list[_Result]()
        self._done.acquire()
        self.problem: BaseException | None = None

    def of(self, work: Callable[[], _Result]) -> None:
        """Do the work."""
        try:
            self._results.append(work())
        except BaseException as problem:  # noqa: BLE001 - passed to who waits
            self.problem = problem
        finally:
            self._done.release()

    def wait(self) -> _Result:
        """Wait for the work. Return its result, or raise its error."""
        self._done.acquire()
        if self.problem is not None:
            raise self.problem
        return self._results[0]


def begin_in_a_thread(work: Callable[[], _Result]) -> Callable[[], _Result]:
    """Begin `work` in a new thread, which ends with it. Return what waits for it: returns its result or raises."""
    outcome = _Outcome[_Result]()
    _thread.start_new_thread(outcome.of, (work,))
    return outcome.wait


def _in_a_thread(work: Callable[[], _Result]) -> _Result:
    return begin_in_a_thread(work)()


class FilteredThread:
    """A thread without rights, whose system calls are filtered. It has work done in other threads, which inherit that.

    Installing a filter takes longer than all else that confines a command, and is the same for all commands.

    Only the thread that starts a command enters its Landlock domain. If this one was in it, the command could send it
    signals, and read the memory of the whole program in its `/proc/PID/task/TID/mem`.
    """

    def __init__(self, calls: Filter) -> None:
        """Start it. `calls` permits threads, and to be restricted further. Raises `OSError`."""
        self._asked = _thread.allocate_lock()
        self._asked.acquire()
        self._next: Callable[[], None] | None = None
        installed = _Outcome[int]()
        _thread.start_new_thread(self._run, (calls, installed))
        self._listener = installed.wait()

    def call(self, work: Callable[[], _Result]) -> _Result:
        """Call `work` in a new filtered thread. Return its result, or raise its error."""
        outcome = _Outcome[_Result]()
        # Within `of`: that the system allows no further thread is an outcome as well.
        self._next = lambda: outcome.of(partial(_in_a_thread, work))
        self._asked.release()
        return outcome.wait()

    def listener(self) -> int:
        """Return a new descriptor of the filter's notifications. Raises `OSError`."""
        return os.dup(self._listener)

    def close(self) -> None:
        """End the thread. What it has started goes on."""
        self._next = None
        self._asked.release()
        os.close(self._listener)

    def _run(self, calls: Filter, installed: _Outcome[int]) -> None:
        def install() -> int:
            _drop_rights()
            return calls.install()

        installed.of(install)
        while installed.problem is None:
            self._asked.acquire()
            if self._next is None:
                return
            self._next()
