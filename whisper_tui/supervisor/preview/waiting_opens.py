"""Opens of the machine's FIFOs in which a previewed command waits: found by a look at its threads, and refused.

Such a FIFO is dead in a view, so an open that waits for the other side would wait until the preview is ended. A look
at what every thread waits for costs nothing for the files that are opened meanwhile. To ask about each of them, as
seccomp could, costs more than all the rest of a preview that makes many files.

An open that has ended before the next look is not seen. It has reached nothing either.
"""

import ctypes
import errno
import os
import signal
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

from whisper_tui.supervisor.preview.watched_calls import FILE_NAMES, CallWatcher, opening_flags
from whisper_tui.system import syscalls

EVERY_S = 0.1
_SHARE = 20
"""A look is as long ago as this many looks take, if that is longer: many threads do not make it a load."""
_SEIZE, _INTERRUPT, _DETACH, _GET_REGISTERS, _SET_REGISTERS, _GENERAL = 0x4206, 0x4207, 17, 0x4204, 0x4205, 1
_WALL = 0x40000000
"""Threads are waited for as well."""
_STOP_S, _PAUSE_S = 0.05, 0.0005
"""Seconds that a thread has to stop: one that waits for a FIFO does so at once."""
_REGISTERS = struct.Struct("=27Q")
_RESULT, _SECOND, _FIRST, _NUMBER = 10, 13, 14, 15
"""`struct user_regs_struct` of x86-64, and where it has rax, rsi, rdi and orig_rax."""
_WILL_RESTART = -512 & 0xFFFFFFFFFFFFFFFF
"""ERESTARTSYS: the call was interrupted, and its thread is about to make it again."""


class WaitingOpens:
    """Looks at the threads of the view now and then."""

    def __init__(self, watcher: CallWatcher) -> None:
        self._watcher = watcher
        self._due = time.monotonic() + EVERY_S

    def milliseconds_left(self) -> int:
        """Return when the next look is due."""
        return max(0, int((self._due - time.monotonic()) * 1000) + 1)

    def look_if_due(self) -> None:
        """Look, if it is time."""
        if time.monotonic() >= self._due:
            self.look()

    def look(self) -> None:
        """Note each FIFO of the machine for which a thread waits, and end the wait."""
        began = time.monotonic()
        for process, thread in _threads():
            with suppress(OSError, ValueError, struct.error):
                number, *arguments = _call_of(process, thread)
                if path := self._waited_for(thread, syscalls.NAMES.get(number, ""), arguments):
                    self._watcher.note_service(path)
                    _refuse(process, thread, (number, *arguments))
        ended = time.monotonic()
        self._due = ended + max(EVERY_S, _SHARE * (ended - began))

    def _waited_for(self, thread: int, name: str, arguments: Sequence[int]) -> str:
        """Return the FIFO of the machine for which a call waits. Empty: it waits for something else."""
        if name not in FILE_NAMES or not _waits(opening_flags(thread, name, arguments)):
            return ""
        return self._watcher.dead_fifo(thread, name, arguments)


def _threads() -> Iterator[tuple[int, int]]:
    """Yield every process of this PID namespace but this one, with each of its threads."""
    for name in os.listdir("/proc"):
        if name.isdecimal() and name != "1":
            with suppress(OSError):
                for thread in os.listdir(f"/proc/{name}/task"):
                    yield int(name), int(thread)


def _call_of(process: int, thread: int) -> list[int]:
    """Return the number and the arguments of the call in which a thread waits. Raises `ValueError` if it does not."""
    with open(f"/proc/{process}/task/{thread}/syscall", "rb", buffering=0) as file:
        words = file.read(256).split()
    return [int(word, 0) for word in words[:7]]


def _waits(flags: int) -> bool:
    return not flags & (os.O_NONBLOCK | os.O_PATH) and flags & os.O_ACCMODE != os.O_RDWR


def _refuse(process: int, thread: int, call: Sequence[int]) -> None:
    """Make a call fail in which a thread waits. Where that cannot be done, its process is ended."""
    try:
        syscalls.call("ptrace", _SEIZE, thread, None, None)
        syscalls.call("ptrace", _INTERRUPT, thread, None, None)
        sent = _stop(thread)
        _fail(thread, call)
        syscalls.call("ptrace", _DETACH, thread, None, ctypes.c_ulong(sent))
    except OSError:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _stop(thread: int) -> int:
    """Wait until a thread has stopped. Returns the signal that it was about to get, or 0. Raises `OSError`."""
    until = time.monotonic() + _STOP_S
    # Its end is not taken: that of the command is waited for elsewhere.
    while (found := os.waitid(os.P_PID, thread, os.WSTOPPED | os.WNOHANG | _WALL)) is None:
        if time.monotonic() > until:
            raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        time.sleep(_PAUSE_S)
    return found.si_status if found.si_status <= 0xFF else 0  # Above that it is a stop without a signal.


def _fail(thread: int, call: Sequence[int]) -> None:
    """Have a stopped thread find that its call was refused, if it is still in it. Raises `OSError`."""
    if syscalls.MACHINE != "x86_64":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    raw = ctypes.create_string_buffer(_REGISTERS.size)
    part = struct.pack("=QQ", ctypes.addressof(raw), len(raw))
    # `part` is written to: it says how much there is. A process of 32 bits has less, and is ended.
    vector = ctypes.create_string_buffer(part, len(part))
    syscalls.call("ptrace", _GET_REGISTERS, thread, ctypes.c_ulong(_GENERAL), vector)
    if struct.unpack("=QQ", vector.raw)[1] != len(raw):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    registers = list(_REGISTERS.unpack(raw))
    if [registers[at] for at in (_RESULT, _NUMBER, _FIRST, _SECOND)] == [_WILL_RESTART, *call[:3]]:
        registers[_RESULT] = -errno.EACCES & 0xFFFFFFFFFFFFFFFF
        raw.raw = _REGISTERS.pack(*registers)
        syscalls.call("ptrace", _SET_REGISTERS, thread, ctypes.c_ulong(_GENERAL), vector)
