"""The system calls of a previewed command that are watched: connections, which are named, and renames of directories.

A seccomp filter tells about them (seccomp_unotify(2)). It is no barrier: the namespaces are. Directories of the lower
layer cannot be renamed in an overlay (EXDEV), so the watcher copies and removes them, as `mv` does.
"""

import ctypes
import errno
import fcntl
import os
import socket
import stat
import struct
from collections.abc import Callable
from contextlib import suppress

from whisper_tui.supervisor.keeper import syscalls
from whisper_tui.supervisor.keeper.syscalls import Filter, Instruction
from whisper_tui.supervisor.preview.file_trees import RENAME_NOREPLACE, copy_tree, remove_tree, rename

_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_NOTICE = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")
_CONTINUE = 1
_AT_FDCWD = -100
_LONGEST_ADDRESS, _LONGEST_PATH = 128, 4096
_PAGE = 4096
WATCHED = ("connect", "rename", "renameat", "renameat2")
MOST_NOTED = 200
"""Different targets that are noted; further ones are counted."""
DNS, ANY_PORT = 53, 0
NAME_CACHE = b"/var/run/nscd/socket"
"""The cache of names, which the C library asks before every look-up whether it runs or not."""


def watching_filter() -> Filter:
    """Return the filter that tells about the watched calls. io_uring does not exist, since it could not be watched."""
    found = [
        Instruction(_LOAD, 0, 0, _ARCH),
        Instruction(_EQUAL, 1, 0, syscalls.ARCHITECTURE),
        Instruction(_RETURN, 0, 0, syscalls.RET_ALLOW),
        Instruction(_LOAD, 0, 0, _NUMBER),
    ]
    answers = {"io_uring_setup": syscalls.RET_ERRNO | errno.ENOSYS}
    answers |= dict.fromkeys(WATCHED, syscalls.RET_USER_NOTIF)
    for name, answer in answers.items():
        number = syscalls.NUMBERS.get(name)
        if number is not None:
            found += [Instruction(_EQUAL, 0, 1, number), Instruction(_RETURN, 0, 0, answer)]
    number = syscalls.NUMBERS.get("sendto")
    if number is not None:
        # Only with an address: a message on a connected socket goes where `connect` led.
        found += [
            Instruction(_EQUAL, 0, 4, number),
            Instruction(_LOAD, 0, 0, _ARGUMENTS + 8 * 4),
            Instruction(_EQUAL, 1, 0, 0),
            Instruction(_RETURN, 0, 0, syscalls.RET_USER_NOTIF),
            Instruction(_RETURN, 0, 0, syscalls.RET_ALLOW),
        ]
    return Filter([*found, Instruction(_RETURN, 0, 0, syscalls.RET_ALLOW)])


class BlockedTargets:
    """Targets outside of its view that a command tried to reach, with how often. Bounded."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        """The name for which each made-up address was given out."""
        self.outside = False
        """True once it tried to reach another machine."""
        self._noted: dict[tuple[str, str], int] = {}

    def note(self, what: str, target: str) -> None:
        """Count one try."""
        key = (what, target[:300])
        if key in self._noted or len(self._noted) < MOST_NOTED:
            self._noted[key] = self._noted.get(key, 0) + 1

    def listed(self, what: str) -> list[tuple[str, int]]:
        """Return the targets of one kind and how often each was tried."""
        return [(target, times) for (kind, target), times in self._noted.items() if kind == what]

    def note_address(self, raw: bytes) -> None:
        """Note the address of a `connect` or `sendto`: `struct sockaddr`."""
        family = struct.unpack("=H", raw[:2])[0] if len(raw) >= 2 else -1
        if family == socket.AF_UNIX:
            path = raw[2:]
            name = b"@" + path[1:] if path[:1] == b"\0" else path.split(b"\0")[0]
            if name != NAME_CACHE:
                self.note("socket", name.decode(errors="replace"))
        elif family in {socket.AF_INET, socket.AF_INET6} and len(raw) >= (8 if family == socket.AF_INET else 24):
            port = struct.unpack("!H", raw[2:4])[0]
            packed = raw[4:8] if family == socket.AF_INET else raw[8:24]
            self._note_host(socket.inet_ntop(family, packed), port)

    def _note_host(self, host: str, port: int) -> None:
        # The name server notes the questions; getaddrinfo connects to port 0 only to sort addresses.
        if port in {DNS, ANY_PORT} or host.startswith(("127.", "0.")) or host in {"::", "::1"}:
            return
        self.outside = True
        self.note("network", f"{self.names.get(host, host)}:{port}")


class CallWatcher:
    """Answers the watched calls of one command."""

    def __init__(self, listener: int, targets: BlockedTargets) -> None:
        self.listener = listener
        self._targets = targets

    def answer(self) -> None:
        """Answer one call. The command never waits for an error of ours."""
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self.listener, _RECEIVE, notice)
        except OSError:
            return  # The caller was killed while it waited.
        call_id, pid, _, number, _, _, *arguments = _NOTICE.unpack(notice)
        result: int | None = None
        with suppress(OSError, ValueError, struct.error):
            result = self._handle(pid, syscalls.NAMES.get(number, ""), arguments)
        if result is None:
            packed = _ANSWER.pack(call_id, 0, 0, _CONTINUE)
        else:
            packed = _ANSWER.pack(call_id, 0, min(result, 0), 0)
        with suppress(OSError):
            fcntl.ioctl(self.listener, _SEND, packed)

    def _handle(self, pid: int, name: str, arguments: list[int]) -> int | None:
        """Return the result of a call that was carried out here, or its negative error. None: it goes on."""
        match name:
            case "connect":
                self._targets.note_address(_memory(pid, arguments[1], min(arguments[2], _LONGEST_ADDRESS)))
            case "sendto":
                self._targets.note_address(_memory(pid, arguments[4], min(arguments[5], _LONGEST_ADDRESS)))
            case "rename":
                return _renamed(pid, (_AT_FDCWD, arguments[0]), (_AT_FDCWD, arguments[1]), 0)
            case "renameat" | "renameat2":
                flags = arguments[4] if name == "renameat2" else 0
                return _renamed(pid, (arguments[0], arguments[1]), (arguments[2], arguments[3]), flags)
        return None


def _memory(pid: int, address: int, size: int) -> bytes:
    with open(f"/proc/{pid}/mem", "rb", 0) as file:
        file.seek(address)
        return file.read(size)


def _text(pid: int, address: int) -> bytes:
    """Read a string that ends with a zero byte, page by page, since the next page may not exist."""
    found = b""
    while len(found) < _LONGEST_PATH:
        at = address + len(found)
        piece = _memory(pid, at, _PAGE - at % _PAGE)
        if b"\0" in piece:
            return found + piece.partition(b"\0")[0]
        found += piece
    raise ValueError("a path is too long")


def _path(pid: int, directory: int, address: int) -> str:
    path = os.fsdecode(_text(pid, address))
    if path.startswith("/"):
        return path
    number = ctypes.c_int(directory & 0xFFFFFFFF).value
    base = f"/proc/{pid}/cwd" if number == _AT_FDCWD else f"/proc/{pid}/fd/{number}"
    return os.path.join(os.readlink(base), path)


def _renamed(pid: int, old: tuple[int, int], new: tuple[int, int], flags: int) -> int | None:
    """Rename a directory. None: it is none, so the call goes on."""
    if flags & ~RENAME_NOREPLACE:
        return None
    source, target = _path(pid, *old), _path(pid, *new)
    if not stat.S_ISDIR(os.lstat(source).st_mode):
        return None
    try:
        rename(source, target, flags)
    except OSError as error:
        if error.errno != errno.EXDEV:
            return -(error.errno or errno.EIO)
    else:
        return 0
    return _moved(os.path.normpath(source), os.path.normpath(target), flags)


def _moved(source: str, target: str, flags: int) -> int:
    """Copy and remove a directory that an overlay cannot rename. Returns 0, or the negative error of rename(2)."""
    if f"{target}/".startswith(f"{source}/"):
        return -errno.EINVAL
    if os.path.lexists(target):
        if flags & RENAME_NOREPLACE:
            return -errno.EEXIST
        if not os.path.isdir(target) or os.path.islink(target):
            return -errno.ENOTDIR
    part = os.path.join(os.path.dirname(target), f".{os.path.basename(target)[:200]}.{os.getpid()}~")
    return _tried(lambda: _copy_over(source, part, target))


def _copy_over(source: str, part: str, target: str) -> None:
    if os.path.lexists(target):
        os.rmdir(target)
    copy_tree(source, part)
    rename(part, target, 0)
    remove_tree(source)


def _tried(work: Callable[[], None]) -> int:
    try:
        work()
    except OSError as error:
        return -(error.errno or errno.EIO)
    return 0
