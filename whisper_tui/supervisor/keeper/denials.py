"""Attempts of a sandboxed command to change something: what it tried is noted, and what may be, is allowed.

The filter of the sandbox asks about each such system call on a descriptor (seccomp_unotify(2)). Two kinds of answer:

* *Calls that Landlock judges* (opening, creating, removing, renaming) go on, and Landlock decides. We only note what
  it will refuse, so a race between our look and the kernel's costs a line in a report and nothing else.
* *Calls that Landlock has no right for* (modes, owners, times, extended attributes) never go on: where the command may
  write, we make the change ourselves, on a descriptor that we opened and looked at, so nobody can swap the file.
"""

import fcntl
import os
import stat
import struct
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from whisper_tui.supervisor.keeper import syscalls

MOST_NOTED = 20
"""Different attempts that are reported; the others are counted."""
LONGEST = 300
"""Characters of a path in a report."""
LONGEST_LINE = 300
MOST_LINES = 3
"""Lines of its error output that speak of a refusal and are reported beside the attempts."""
TAIL = 4096
_REFUSALS = (b"permission denied", b"operation not permitted", b"eacces", b"eperm", b"read-only file system")

_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_VALID = 0x40082102
_NOTICE = struct.Struct("=QIIiIQ6Q")
"""`struct seccomp_notif`: id, pid, flags; number, architecture, instruction, arguments."""
_ANSWER = struct.Struct("=QqiI")
_CONTINUE = 1
_EACCES, _EPERM = 13, 1
_HERE = -100
"""AT_FDCWD: relative to the working directory."""
_NOFOLLOW, _EMPTY_PATH = 0x100, 0x1000
_LONGEST_PATH, _LONGEST_VALUE = 4096, 65_536
_NOW, _OMIT = 0x3FFFFFFF, 0x3FFFFFFE
"""UTIME_NOW and UTIME_OMIT, in place of nanoseconds."""


class _Call(NamedTuple):
    """One system call that waits for our answer."""

    id: int
    pid: int
    name: str
    arguments: tuple[int, ...]


class _Place(NamedTuple):
    """Which arguments name a file: a directory's descriptor, a path beneath it, and the flags that say how."""

    directory: int | None
    path: int | None
    flags: int | None = None
    follows: bool = True


_NAMED = {
    "open": (_Place(None, 0),),
    "openat": (_Place(0, 1),),
    "openat2": (_Place(0, 1),),
    "creat": (_Place(None, 0),),
    "mkdir": (_Place(None, 0, follows=False),),
    "mkdirat": (_Place(0, 1, follows=False),),
    "mknod": (_Place(None, 0, follows=False),),
    "mknodat": (_Place(0, 1, follows=False),),
    "unlink": (_Place(None, 0, follows=False),),
    "unlinkat": (_Place(0, 1, follows=False),),
    "rmdir": (_Place(None, 0, follows=False),),
    "rename": (_Place(None, 0, follows=False), _Place(None, 1, follows=False)),
    "renameat": (_Place(0, 1, follows=False), _Place(2, 3, follows=False)),
    "renameat2": (_Place(0, 1, follows=False), _Place(2, 3, follows=False)),
    "link": (_Place(None, 1, follows=False),),
    "linkat": (_Place(2, 3, follows=False),),
    "symlink": (_Place(None, 1, follows=False),),
    "symlinkat": (_Place(1, 2, follows=False),),
}
"""Calls that Landlock judges, and the names that they change."""

_CHANGED = {
    "truncate": _Place(None, 0),
    "chmod": _Place(None, 0),
    "fchmod": _Place(0, None),
    "fchmodat": _Place(0, 1),
    "fchmodat2": _Place(0, 1, 3),
    "chown": _Place(None, 0),
    "lchown": _Place(None, 0, follows=False),
    "fchown": _Place(0, None),
    "fchownat": _Place(0, 1, 4),
    "utime": _Place(None, 0),
    "utimes": _Place(None, 0),
    "futimesat": _Place(0, 1),
    "utimensat": _Place(0, 1, 3),
    "setxattr": _Place(None, 0),
    "lsetxattr": _Place(None, 0, follows=False),
    "fsetxattr": _Place(0, None),
    "removexattr": _Place(None, 0),
    "lremovexattr": _Place(None, 0, follows=False),
    "fremovexattr": _Place(0, None),
}
"""Calls that the keeper carries out itself, or refuses."""


class Denials:
    """Answers the filter of one sandbox, and knows what its command tried in vain."""

    def __init__(self, listener: int, writable: tuple[str, ...]) -> None:
        self.listener = listener
        """Its descriptor. -1: nobody is left to ask."""
        self._writable = tuple(os.path.realpath(path) for path in writable)
        self._noted: dict[tuple[str, str], None] = {}
        self._more = 0

    def answer(self) -> bool:
        """Answer one call. Returns whether there may be another one later."""
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self.listener, _RECEIVE, notice)
        except FileNotFoundError:
            return True  # Its caller was killed while it waited.
        except OSError:
            self.close()
            return False
        call_id, pid, _, number, _, _, *arguments = _NOTICE.unpack(notice)
        call = _Call(call_id, pid, syscalls.NAMES.get(number, ""), tuple(arguments))
        try:
            error, flags = self._judge(call)
        except (OSError, ValueError, OverflowError):
            error, flags = _EACCES, 0  # It ended meanwhile, or names what cannot be looked at.
        try:
            fcntl.ioctl(self.listener, _SEND, _ANSWER.pack(call.id, 0, -error, flags))
        except OSError:
            return True
        return True

    def report(self, error_output: bytes) -> dict[str, Any] | None:
        """What was refused so far. `error_output`: the end of what the command printed. None: nothing."""
        lines = [line.strip() for line in error_output[-TAIL:].splitlines()]
        lines = [line for line in lines if any(word in line.lower() for word in _REFUSALS)]
        if not self._noted and not lines:
            return None
        said = [line[:LONGEST_LINE].decode(errors="backslashreplace") for line in lines[-MOST_LINES:]]
        attempts = [{"what": what, "subject": subject} for what, subject in self._noted]
        return {"attempts": attempts, "more": self._more, "messages": said}

    def close(self) -> None:
        """Answer no more: what still asks is refused by the kernel."""
        if self.listener >= 0:
            os.close(self.listener)
            self.listener = -1

    def _judge(self, call: _Call) -> tuple[int, int]:
        """The error number to answer with, or 0, and the flags of the answer."""
        if call.name == "socket":
            self._note("network", "")
            return _EACCES, 0
        if call.name in _NAMED:
            for place in _NAMED[call.name]:
                path = _path(call, place)
                if not self._may_write(path):
                    self._note("write", path)
            return 0, _CONTINUE
        if call.name in _CHANGED:
            return self._change(call, _CHANGED[call.name]), 0
        return _EACCES, 0

    def _change(self, call: _Call, place: _Place) -> int:
        """Carry out a change of a file's attributes, on the very file that was looked at."""
        fd = _opened(call, place)
        try:
            own = f"/proc/self/fd/{fd}"
            path = os.readlink(own)
            if not self._may_write(path):
                self._note("change", path)
                return _EACCES
            found = os.fstat(fd)
            if found.st_uid != os.geteuid():
                return _EPERM  # As for any process without capabilities; the keeper may have some.
            if not _is_valid(self, call):
                return _EACCES
            if stat.S_ISLNK(found.st_mode):
                return 0 if call.name in {"utimensat", "lchown", "fchownat"} else _EPERM
            return _CARRY_OUT[call.name](call, own)
        except OSError as problem:
            return problem.errno or _EACCES
        finally:
            os.close(fd)

    def _may_write(self, path: str) -> bool:
        return any(path == own or path.startswith(own.rstrip("/") + "/") for own in self._writable)

    def _note(self, what: str, path: str) -> None:
        key = (what, os.fsencode(path)[:LONGEST].decode(errors="backslashreplace"))
        if key in self._noted:
            return
        if len(self._noted) < MOST_NOTED:
            self._noted[key] = None
        else:
            self._more += 1


def _is_valid(denials: Denials, call: _Call) -> bool:
    """Whether the caller still waits, so that what was read belongs to it and not to a later process of its pid."""
    try:
        fcntl.ioctl(denials.listener, _VALID, struct.pack("=Q", call.id))
    except OSError:
        return False
    return True


def _memory(call: _Call, address: int, longest: int) -> bytes:
    """So many bytes of the caller's memory, or as many as there are."""
    fd = os.open(f"/proc/{call.pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            return os.pread(fd, longest, address)
        except OSError:
            first = 4096 - address % 4096  # The text ends before the next page, which is not there.
            return os.pread(fd, min(first, longest), address)
    finally:
        os.close(fd)


def _text(call: _Call, address: int) -> str:
    """A text of C in the caller's memory. Raises `ValueError` if it has no end."""
    raw, end, _ = _memory(call, address, _LONGEST_PATH).partition(b"\0")
    if not end:
        raise ValueError("a path without an end")
    return os.fsdecode(raw)


def _base(call: _Call, place: _Place) -> str:
    """Where a relative path begins, as a name that stands for the caller's own directory."""
    if place.directory is None:
        return f"/proc/{call.pid}/cwd"
    number = struct.unpack("=i", struct.pack("=I", call.arguments[place.directory] & 0xFFFFFFFF))[0]
    return f"/proc/{call.pid}/cwd" if number == _HERE else f"/proc/{call.pid}/fd/{number}"


def _path(call: _Call, place: _Place) -> str:
    """The file that a call is about, with links resolved as the call does it."""
    named = _text(call, call.arguments[place.path]) if place.path is not None else ""
    whole = os.path.join(_base(call, place), named)
    if place.follows:
        return os.path.realpath(whole)
    parent, _, name = whole.rstrip("/").rpartition("/")
    return os.path.join(os.path.realpath(parent or "/"), name)


def _opened(call: _Call, place: _Place) -> int:
    """A descriptor of the file that a call changes; opening it this way needs no right to read it."""
    address = call.arguments[place.path] if place.path is not None else 0
    named = _text(call, address) if address else ""
    flags = call.arguments[place.flags] if place.flags is not None else 0
    follows = place.follows and not flags & _NOFOLLOW
    path = os.path.join(_base(call, place), named) if named else _base(call, place)
    return os.open(path, os.O_PATH | os.O_CLOEXEC | (0 if follows or not named else os.O_NOFOLLOW))


def _mode(call: _Call, own: str) -> int:
    mode = call.arguments[1 if call.name in {"chmod", "fchmod"} else 2] & 0o7777
    if mode & (stat.S_ISUID | stat.S_ISGID):
        return _EPERM  # Nobody shall get the rights of this user from a file that was never asked about.
    os.chmod(own, mode)
    return 0


def _owner(call: _Call, own: str) -> int:
    """A process without capabilities may give nothing away: only what changes nothing is accepted."""
    first = 2 if call.name == "fchownat" else 1
    wanted = [value & 0xFFFFFFFF for value in call.arguments[first : first + 2]]
    kept = ({0xFFFFFFFF, os.geteuid()}, {0xFFFFFFFF, os.getegid(), *os.getgroups()})
    if not all(value in allowed for value, allowed in zip(wanted, kept, strict=True)):
        return _EPERM
    if wanted[1] != 0xFFFFFFFF:
        os.chown(own, -1, wanted[1])
    return 0


def _times(call: _Call, own: str) -> int:
    address = call.arguments[2 if call.name in {"futimesat", "utimensat"} else 1]
    if not address:
        os.utime(own)
        return 0
    before = os.stat(own)
    if call.name == "utime":
        seconds = struct.unpack("=qq", _memory(call, address, 16))
        os.utime(own, ns=(seconds[0] * 10**9, seconds[1] * 10**9))
        return 0
    a_s, a_rest, m_s, m_rest = struct.unpack("=qqqq", _memory(call, address, 32))
    scale = 1 if call.name == "utimensat" else 1000
    now = time.time_ns()
    times = []
    for seconds, rest, known in ((a_s, a_rest, before.st_atime_ns), (m_s, m_rest, before.st_mtime_ns)):
        special = {_NOW: now, _OMIT: known} if scale == 1 else {}
        times.append(special.get(rest, seconds * 10**9 + rest * scale))
    os.utime(own, ns=(times[0], times[1]))
    return 0


def _attribute(call: _Call, own: str) -> int:
    name = _text(call, call.arguments[1])
    if not name.startswith("user."):
        return _EPERM  # Capabilities, ACLs and labels of files belong to the system.
    if "remove" in call.name:
        os.removexattr(own, name)
        return 0
    size = call.arguments[3]
    if size > _LONGEST_VALUE:
        return _EPERM
    os.setxattr(own, name, _memory(call, call.arguments[2], size) if size else b"", call.arguments[4] & 3)
    return 0


def _length(call: _Call, own: str) -> int:
    os.truncate(own, call.arguments[1])
    return 0


_CARRY_OUT: dict[str, Callable[[_Call, str], int]] = {
    "truncate": _length,
    **dict.fromkeys(("chmod", "fchmod", "fchmodat", "fchmodat2"), _mode),
    **dict.fromkeys(("chown", "lchown", "fchown", "fchownat"), _owner),
    **dict.fromkeys(("utime", "utimes", "futimesat", "utimensat"), _times),
    **dict.fromkeys((name for name in _CHANGED if name.endswith("xattr")), _attribute),
}
