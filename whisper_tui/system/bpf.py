"""Seccomp filters: programs of classic BPF over system calls, built from small parts.

They are for processors in little-endian order, on which the low word of an argument comes first: both that are known.
"""

import ctypes
import errno
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from whisper_tui.system import syscalls

_LOAD = 0x20
"""BPF_LD | BPF_W | BPF_ABS: load a word of `struct seccomp_data`."""
_EQUAL, _AT_LEAST, _HAS_BIT, _RETURN = 0x15, 0x35, 0x45, 0x06
_KEEP_BITS = 0x54
"""BPF_ALU | BPF_AND | BPF_K."""
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_X32 = 0x40000000
"""Numbers from here on are those of the x32 ABI."""

REFUSED = syscalls.RET_ERRNO | errno.EPERM
MISSING = syscalls.RET_ERRNO | errno.ENOSYS
"""The answer of a kernel that has no such call, so that programs fall back."""
CLOSED = syscalls.RET_ERRNO | errno.EACCES


class Instruction(NamedTuple):
    """One instruction of classic BPF: `struct sock_filter`."""

    code: int
    if_true: int
    if_false: int
    value: int


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


class Filter:
    """A seccomp filter, packed once and used for every start."""

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        packed = b"".join(struct.pack("=HBBI", *each) for each in instructions)
        self._bytes = ctypes.create_string_buffer(packed, len(packed))
        self._program = _Program(len(instructions), ctypes.addressof(self._bytes))

    def install(self, *, listening: bool = True) -> int:
        """Filter this thread's system calls. Raises `OSError`.

        `listening`: return the descriptor of its notifications. Otherwise 0.
        """
        flags = syscalls.NEW_LISTENER if listening else 0
        return syscalls.call("seccomp", syscalls.SET_MODE_FILTER, flags, ctypes.byref(self._program))


def only_own_abi() -> list[Instruction]:
    """Begin a filter: calls by the numbers of another ABI do not exist. The number is loaded."""
    found = [
        Instruction(_LOAD, 0, 0, _ARCH),
        Instruction(_EQUAL, 1, 0, syscalls.ARCHITECTURE),
        Instruction(_RETURN, 0, 0, MISSING),
        Instruction(_LOAD, 0, 0, _NUMBER),
    ]
    # The kernel shows calls of x32 as those of x86-64.
    if syscalls.MACHINE == "x86_64":
        found += [Instruction(_AT_LEAST, 0, 1, _X32), Instruction(_RETURN, 0, 0, MISSING)]
    return found


def elsewhere(answers: Mapping[int, int]) -> list[Instruction]:
    """Begin a filter: calls by the numbers of another ABI are allowed, except for these. The number is loaded."""
    each = [
        part for number, answer in answers.items() for part in (Instruction(_EQUAL, 0, 1, number), answered(answer))
    ]
    return [
        Instruction(_LOAD, 0, 0, _ARCH),
        Instruction(_EQUAL, len(each) + 2, 0, syscalls.ARCHITECTURE),
        Instruction(_LOAD, 0, 0, _NUMBER),
        *each,
        answered(syscalls.RET_ALLOW),
        Instruction(_LOAD, 0, 0, _NUMBER),
    ]


def answered(value: int) -> Instruction:
    """End a filter with an answer."""
    return Instruction(_RETURN, 0, 0, value)


def if_call(name: str, then: list[Instruction]) -> list[Instruction]:
    """Apply instructions to one system call. If they do not decide, it is allowed."""
    number = syscalls.NUMBERS.get(name)
    if number is None:
        return []
    if then[-1].code != _RETURN or len(then) > 1:
        then = [*then, answered(syscalls.RET_ALLOW)]
    return [Instruction(_EQUAL, 0, len(then), number), *then]


def answers_to(answers: Mapping[int, int], other: int) -> list[Instruction]:
    """End a filter with an answer for each number that is loaded. `other`: that to all numbers above the highest one.

    Numbers below it must all have an answer. Successive numbers with the same answer share their instructions.
    """
    found = []
    last = max(answers) + 1
    starts = [number for number in range(1, last) if answers[number] != answers[number - 1]]
    for start, answer in ((last, other), *((start, answers[start]) for start in reversed(starts))):
        found += [Instruction(_AT_LEAST, 0, 1, start), answered(answer)]
    return [*found, answered(answers[0])]


def argument(index: int) -> Instruction:
    """Load the low word of an argument: flags, families and pids have 32 bits."""
    return Instruction(_LOAD, 0, 0, _ARGUMENTS + 8 * index)


def if_bits(index: int, bits: int, answer: int) -> list[Instruction]:
    """Answer if an argument has one of these bits."""
    return [argument(index), Instruction(_HAS_BIT, 0, 1, bits), answered(answer)]


def unless_bits(index: int, bits: int, answer: int) -> list[Instruction]:
    """Answer if an argument has none of these bits."""
    return [argument(index), Instruction(_HAS_BIT, 1, 0, bits), answered(answer)]


def when_equal(index: int, value: int, then: Sequence[Instruction]) -> list[Instruction]:
    """Apply instructions if an argument has this value."""
    return [argument(index), Instruction(_EQUAL, 0, len(then), value), *then]


def if_equal(index: int, value: int, answer: int) -> list[Instruction]:
    """Answer if an argument has this value."""
    return when_equal(index, value, [answered(answer)])


def unless_in(index: int, values: Sequence[int], answer: int, *, bits: int = 0xFFFFFFFF) -> list[Instruction]:
    """Answer if an argument has none of these values. `bits`: those of it that count."""
    # A jump passes at most 255 instructions.
    each = [Instruction(_EQUAL, len(values) - at, 0, value) for at, value in enumerate(values)]
    return [argument(index), Instruction(_KEEP_BITS, 0, 0, bits), *each, answered(answer)]


def unless_equal(index: int, value: int, answer: int, *, bits: int = 0xFFFFFFFF) -> list[Instruction]:
    """Answer if an argument has another value. `bits`: those of it that count."""
    return unless_in(index, (value,), answer, bits=bits)
