"""Where a previewed command wants to go: its network, in which nothing answers, its watched system calls, its /dev.

Every address of the network is its own and refuses at once; names are given and noted. A seccomp filter tells about the
watched calls (seccomp_unotify(2)). It is no barrier: the namespaces are. Directories of the lower layer cannot be
renamed in an overlay (EXDEV), so the watcher copies and removes them, as `mv` does.
"""

import ctypes
import errno
import fcntl
import os
import socket
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress

from whisper_tui.supervisor.preview.file_trees import copy_tree, remove_tree
from whisper_tui.supervisor.preview.overlay_mounts import DEVICE_MOUNTS
from whisper_tui.system import syscalls
from whisper_tui.system.bpf import Filter, Instruction
from whisper_tui.system.syscalls import AT_FDCWD, RENAME_NOREPLACE, rename

_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_NOTICE = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")
_CONTINUE = 1
_NO_SUCH_FAMILY = syscalls.RET_ERRNO | errno.EAFNOSUPPORT
_FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: the families of sockets that a network namespace confines, or the view."""
_FOREIGN_SOCKETS = {"x86_64": (102, 359), "aarch64": (281,)}.get(syscalls.MACHINE, ())
"""The numbers of socketcall(2) and socket(2) for 32-bit programs."""
_LONGEST_ADDRESS, _LONGEST_PATH = 128, 4096
_PAGE = 4096
WATCHED = ("connect", "rename", "renameat", "renameat2")
MOST_NOTED = 200
"""Different targets that are noted; further ones are counted."""
_MOST_DEVICES = 1000
"""Names in /dev that are looked at; one of overlays cannot have so many."""
DNS, ANY_PORT = 53, 0
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1
_RTM_NEWROUTE = 24
_NLM_F_REQUEST_CREATE = 0x405
_RT_TABLE_LOCAL, _RTPROT_BOOT, _SCOPE_HOST, _SCOPE_UNIVERSE, _RTN_LOCAL = 255, 3, 254, 0, 2
_RTA_OIF, _LOOPBACK = 4, 1
_IP_PKTINFO, _IPV6_RECVPKTINFO, _IPV6_PKTINFO = 8, 49, 50
_TYPE_A, _TYPE_AAAA, _CLASS_IN = 1, 28, 1
_HEADER = 12
_LONGEST_QUESTION = 4096
NAME_CACHE = b"/var/run/nscd/socket"
"""The cache of names, which the C library asks before every look-up whether it runs or not."""


def watching_filter(*, closed: bool) -> Filter:
    """Return the filter that tells about the watched calls. io_uring does not exist, since it could not be watched.

    `closed`: neither do sockets of families that a network namespace does not confine, such as those to hypervisors.
    """
    foreign = _answers(dict.fromkeys(_FOREIGN_SOCKETS, _NO_SUCH_FAMILY) if closed else {})
    found = [
        Instruction(_LOAD, 0, 0, _ARCH),
        Instruction(_EQUAL, len(foreign) + 2, 0, syscalls.ARCHITECTURE),
        Instruction(_LOAD, 0, 0, _NUMBER),
        *foreign,
        Instruction(_RETURN, 0, 0, syscalls.RET_ALLOW),
        Instruction(_LOAD, 0, 0, _NUMBER),
    ]
    answers = {"io_uring_setup": syscalls.RET_ERRNO | errno.ENOSYS}
    answers |= dict.fromkeys(WATCHED, syscalls.RET_USER_NOTIF)
    found += _answers({syscalls.NUMBERS[name]: answer for name, answer in answers.items() if name in syscalls.NUMBERS})
    number = syscalls.NUMBERS.get("socket")
    if number is not None and closed:
        families = [Instruction(_EQUAL, len(_FAMILIES) - at, 0, family) for at, family in enumerate(_FAMILIES)]
        found += [
            Instruction(_EQUAL, 0, len(families) + 3, number),
            Instruction(_LOAD, 0, 0, _ARGUMENTS),
            *families,
            Instruction(_RETURN, 0, 0, _NO_SUCH_FAMILY),
            Instruction(_RETURN, 0, 0, syscalls.RET_ALLOW),
        ]
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


def _answers(answers: dict[int, int]) -> list[Instruction]:
    """Return instructions that answer calls by their number, which is loaded."""
    return [
        each
        for number, answer in answers.items()
        for each in (Instruction(_EQUAL, 0, 1, number), Instruction(_RETURN, 0, 0, answer))
    ]


class BlockedTargets:
    """Targets outside of its view that a command tried to reach, with how often. Bounded."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        """The name for which each made-up address was given out."""
        self.answers_names = True
        """False: names are asked of servers outside, in vain, so that only those are known."""
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
        if (
            port == ANY_PORT
            or (port == DNS and self.answers_names)
            or host.startswith(("127.", "0."))
            or host in {"::", "::1"}
        ):
            return
        self.outside = True
        self.note("network", f"{self.names.get(host, host)}:{port}")


class MissingDevices:
    """Devices that a view does not have, and that its command tries to write to: new names in its private /dev.

    Devices that it opens without making a file are not known: watching every open costs more than it tells.
    """

    def __init__(self) -> None:
        """Note what is there before the command starts."""
        self._before = _device_names()

    def tried(self) -> list[str]:
        """Return the paths that are new since then, and the directories of those that the command has removed again."""
        before, after = self._before, _device_names()
        found = {path for path, now in after.items() if before.get(path, now)[0] != now[0] or path not in before}
        touched = (path for path, now in after.items() if path in before and before[path] != now)
        found |= {path for path in touched if not any(other.startswith(f"{path}/") for other in found)}
        return sorted(found)[:MOST_NOTED]


_DeviceName = tuple[tuple[int, int, int], int]
"""Device, inode and mode tell a file from another one of its name; of a directory, its time tells of removed names."""


def _device_names() -> dict[str, _DeviceName]:
    """Return what is in /dev now."""
    found: dict[str, _DeviceName] = {}
    pending = ["/dev"]
    while pending and len(found) < _MOST_DEVICES:
        path = pending.pop()
        with suppress(OSError):
            status = os.lstat(path)
            enters = stat.S_ISDIR(status.st_mode) and path not in DEVICE_MOUNTS
            found[path] = (status.st_dev, status.st_ino, status.st_mode), status.st_ctime_ns if enters else 0
            if enters:
                pending += (os.path.join(path, name) for name in os.listdir(path))
    return found


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
                return _renamed(pid, (AT_FDCWD, arguments[0]), (AT_FDCWD, arguments[1]), 0)
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
    base = f"/proc/{pid}/cwd" if number == AT_FDCWD else f"/proc/{pid}/fd/{number}"
    return os.path.join(os.readlink(base), path)


def _renamed(pid: int, old: tuple[int, int], new: tuple[int, int], flags: int) -> int | None:
    """Rename a directory. None: it is none, so the call goes on."""
    if flags & ~RENAME_NOREPLACE:
        return None
    source, target = _path(pid, *old), _path(pid, *new)
    if not stat.S_ISDIR(os.lstat(source).st_mode):
        return None
    try:
        rename((AT_FDCWD, source), (AT_FDCWD, target), flags)
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
    rename((AT_FDCWD, part), (AT_FDCWD, target), 0)
    remove_tree(source)


def _tried(work: Callable[[], None]) -> int:
    try:
        work()
    except OSError as error:
        return -(error.errno or errno.EIO)
    return 0


def close_network() -> None:
    """Make every address one of this machine in a network namespace of its own: nothing leaves, nothing hangs."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as routes:
        for family in (socket.AF_INET, socket.AF_INET6):
            scope = _SCOPE_HOST if family == socket.AF_INET else _SCOPE_UNIVERSE
            body = struct.pack("BBBBBBBBI", family, 0, 0, 0, _RT_TABLE_LOCAL, _RTPROT_BOOT, scope, _RTN_LOCAL, 0)
            body += struct.pack("=HHI", 8, _RTA_OIF, _LOOPBACK)
            routes.send(struct.pack("=IHHII", 16 + len(body), _RTM_NEWROUTE, _NLM_F_REQUEST_CREATE, 1, 0) + body)
            routes.recv(_LONGEST_QUESTION)


class NameServer:
    """Gives each name an address of 198.18.0.0/15, which belongs to nobody, and remembers which name that was."""

    def __init__(self, targets: BlockedTargets) -> None:
        self._targets = targets
        self._addresses: dict[str, str] = {}
        self.sockets = list(_listening())
        """Sockets that answer questions; none if this user may not open the port."""

    def answer(self, at: socket.socket) -> None:
        """Answer one question."""
        with suppress(OSError, IndexError, struct.error):
            data, passed, _, sender = at.recvmsg(_LONGEST_QUESTION, 256)
            name, kind, end = _question(data)
            record = b""
            if kind in {_TYPE_A, _TYPE_AAAA}:
                address = self._address_of(name)
                if kind == _TYPE_A:
                    record = b"\xc0\x0c" + struct.pack("!HHIH", _TYPE_A, _CLASS_IN, 1, 4) + socket.inet_aton(address)
            header = data[:2] + struct.pack("!HHHHH", 0x8180, 1, 1 if record else 0, 0, 0)
            at.sendmsg([header + data[_HEADER:end] + record], list(_same_source(passed)), 0, sender)

    def _address_of(self, name: str) -> str:
        if name not in self._addresses:
            number = len(self._addresses) + 1
            self._addresses[name] = f"198.18.{number >> 8 & 255}.{number & 255}"
            self._targets.names[self._addresses[name]] = name
        return self._addresses[name]


def _listening() -> Iterator[socket.socket]:
    for family, anywhere, level, option in (
        (socket.AF_INET, "", socket.IPPROTO_IP, _IP_PKTINFO),
        (socket.AF_INET6, "::", socket.IPPROTO_IPV6, _IPV6_RECVPKTINFO),
    ):
        with suppress(OSError):
            made = socket.socket(family, socket.SOCK_DGRAM)
            if family == socket.AF_INET6:
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            made.setsockopt(level, option, 1)
            made.bind((anywhere, DNS))
            made.setblocking(False)
            yield made


def _question(data: bytes) -> tuple[str, int, int]:
    """Return the name and the type of the first question, and where it ends."""
    labels, at = [], _HEADER
    while data[at]:
        length = data[at]
        labels.append(data[at + 1 : at + 1 + length].decode(errors="replace"))
        at += length + 1
    return ".".join(labels), struct.unpack("!H", data[at + 1 : at + 3])[0], at + 5


def _same_source(passed: list[tuple[int, int, bytes]]) -> Iterator[tuple[int, int, bytes]]:
    """Yield the control message that has an answer come from the address that was asked."""
    for level, kind, raw in passed:
        if level == socket.IPPROTO_IP and kind == _IP_PKTINFO:
            yield level, kind, struct.pack("=i", 0) + raw[8:12] + bytes(4)
        elif level == socket.IPPROTO_IPV6 and kind == _IPV6_PKTINFO:
            yield level, kind, raw[:16] + struct.pack("=i", 0)
