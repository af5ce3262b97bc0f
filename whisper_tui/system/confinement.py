"""Confinement of a process by the kernel: its support here, and the thread that takes it upon itself to pass it on.

Linux keeps these restrictions per thread, and children inherit them. So a thread that only restricts itself and starts
a process leaves all others of its program unrestricted (decision 7).
"""

import _thread
import errno
import os
from collections.abc import Callable
from typing import NamedTuple, TypeVar

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
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    syscalls.drop_capabilities()
    syscalls.call("landlock_restrict_self", rules, 0)
    # The filter is last: it would refuse the system calls of the other steps.
    return calls.install(listening=listening)


def begin_in_a_thread(work: Callable[[], _Result]) -> Callable[[], _Result]:
    """Begin `work` in a new thread, which ends with it. Return what waits for it: returns its result or raises."""
    done, results, problems = _thread.allocate_lock(), [], []

    def body() -> None:
        try:
            results.append(work())
        except BaseException as problem:  # noqa: BLE001 - passed to the caller
            problems.append(problem)
        finally:
            done.release()

    def finish() -> _Result:
        done.acquire()
        if problems:
            raise problems[0]
        return results[0]

    done.acquire()
    _thread.start_new_thread(body, ())
    return finish


def in_a_thread(work: Callable[[], _Result]) -> _Result:
    """Call `work` in a new thread. Return its result, or raise its error."""
    return begin_in_a_thread(work)()
