"""Where a previewed command wants to go: its network, in which nothing answers, its watched system calls, its /dev.

Every address of the network is its own and refuses at once; names are given and noted. A seccomp filter tells about the
watched calls (seccomp_unotify(2)). It is no barrier, since a command can change what a call says while it is read: the
namespaces are, and the view, in which no socket and no FIFO of the machine is alive. But what the watcher says was
refused, it has refused by its answer. Directories of the lower layer cannot be renamed in an overlay (EXDEV), so the
watcher copies and removes them, as `mv` does.
"""

import ctypes
import errno
import fcntl
import os
import socket
import stat
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache

from whisper_tui.changes.file_trees import copy_tree, remove_tree
from whisper_tui.supervisor.keeper.limited_start import PASSING
from whisper_tui.supervisor.preview.overlay_mounts import DEVICE_MOUNTS
from whisper_tui.system import syscalls
from whisper_tui.system.bpf import (
    MISSING,
    REFUSED,
    Filter,
    answered,
    elsewhere,
    if_call,
    if_equal,
    unless_bits,
    unless_equal,
    unless_in,
)
from whisper_tui.system.syscalls import AT_FDCWD, RENAME_NOREPLACE, rename

_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_SET_FLAGS, _SYNC_WAKE_UP = 0x40082104, 1
"""Linux 6.6 and later: caller and watcher take turns on one processor, in half the time of waking another one."""
_NOTICE = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")
_CONTINUE = 1
_NO_SUCH_FAMILY = syscalls.RET_ERRNO | errno.EAFNOSUPPORT
_FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: the families of sockets that a network namespace confines, or the view."""
_FOREIGN_SOCKETS = {"x86_64": (102, 359), "aarch64": (281,)}.get(syscalls.MACHINE, ())
"""The numbers of socketcall(2) and socket(2) for 32-bit programs."""
_LONGEST_ADDRESS, _LONGEST_PATH = 128, 4096
_MOST_LINKS = 40
_PAGE = 4096
WATCHED = ("connect", "sendmmsg", "rename", "renameat", "renameat2", "openat2")
_OPENING_FLAGS = {"open": 1, "openat": 2}
"""Calls that open a file, with the index of their flags. Only opens of a FIFO to write that do not wait are watched."""
FILE_NAMES = {"open": (None, 0), "creat": (None, 0), "openat": (0, 1), "openat2": (0, 1)}
"""The indexes of the directory and of the path among their arguments."""
_WRITES = os.O_WRONLY | os.O_RDWR
_GOES_ON = os.O_RDWR | os.O_NONBLOCK
"""A FIFO that is opened with one of these, to write, does not wait for its other side."""
_MAKES = os.O_CREAT | os.O_EXCL
"""Both together: the file does not exist, so it is no FIFO."""
_MESSAGE, _MESSAGES = struct.Struct("=QI"), 64
"""How `struct msghdr` begins, with an address and its size, and the size of `struct mmsghdr`."""
_MOST_MESSAGES = 64
"""Messages of one call whose addresses are looked at."""
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


@cache
def watching_filter(*, closed: bool) -> Filter:
    """Return the filter that tells about the watched calls. io_uring does not exist, since it could not be watched.

    `closed`: neither do sockets of families that a network namespace does not confine, such as those to hypervisors.
    """
    foreign = _FOREIGN_SOCKETS if closed else ()
    found = [*elsewhere(dict.fromkeys(foreign, _NO_SUCH_FAMILY))]
    found += if_call("io_uring_setup", [answered(MISSING)])
    for name in WATCHED:
        found += if_call(name, [answered(syscalls.RET_USER_NOTIF)])
    for name, index in _OPENING_FLAGS.items():
        made = unless_equal(index, _MAKES, syscalls.RET_USER_NOTIF, bits=_MAKES)
        waits = unless_bits(index, _GOES_ON, syscalls.RET_ALLOW)
        found += if_call(name, [*waits, *unless_bits(index, _WRITES, syscalls.RET_ALLOW), *made])
    # The init of the view, which watches the command, has the same user.
    found += if_call("prlimit64", if_equal(0, 1, REFUSED))
    # Only with an address: a message on a connected socket goes where `connect` led.
    found += if_call("sendto", unless_equal(4, 0, syscalls.RET_USER_NOTIF))
    found += if_call("sendmsg", unless_equal(2, PASSING, syscalls.RET_USER_NOTIF))
    if closed:
        found += if_call("socket", unless_in(0, _FAMILIES, _NO_SUCH_FAMILY))
    return Filter([*found, answered(syscalls.RET_ALLOW)])


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
        """Note an address of the network: `struct sockaddr`."""
        family = struct.unpack("=H", raw[:2])[0] if len(raw) >= 2 else -1
        if family in {socket.AF_INET, socket.AF_INET6} and len(raw) >= (8 if family == socket.AF_INET else 24):
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

    def __init__(self, listener: int, targets: BlockedTargets, uppers: Mapping[str, str]) -> None:
        """`uppers`: the directories that hold the changes of the view, by those that they cover."""
        self.listener = listener
        with suppress(OSError):
            fcntl.ioctl(listener, _SET_FLAGS, _SYNC_WAKE_UP)
        self._targets = targets
        self._uppers = uppers

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
                return self._addressed(pid, arguments[1], arguments[2])
            case "sendto":
                return self._addressed(pid, arguments[4], arguments[5])
            case "sendmsg":
                return self._addressed(pid, *_MESSAGE.unpack(_memory(pid, arguments[1], _MESSAGE.size)))
            case "sendmmsg":
                places = [arguments[1] + number * _MESSAGES for number in range(min(arguments[2], _MOST_MESSAGES))]
                heads = (_MESSAGE.unpack(_memory(pid, place, _MESSAGE.size)) for place in places)
                # The call ends at the first message that is refused.
                return next((answer for head in heads if (answer := self._addressed(pid, *head))), None)
            case "open" | "openat" | "openat2":
                return self._opened(pid, name, arguments)
            case "rename":
                return _renamed(pid, (AT_FDCWD, arguments[0]), (AT_FDCWD, arguments[1]), 0)
            case "renameat" | "renameat2":
                flags = arguments[4] if name == "renameat2" else 0
                return _renamed(pid, (arguments[0], arguments[1]), (arguments[2], arguments[3]), flags)
        return None

    def _addressed(self, pid: int, address: int, size: int) -> int | None:
        """Note where a call leads. Returns its negative error if nothing there is part of the view."""
        if not address or not size:
            return None
        raw = _memory(pid, address, min(size, _LONGEST_ADDRESS))
        if struct.unpack("=H", raw[:2])[0] != socket.AF_UNIX:
            self._targets.note_address(raw)
            return None
        name = raw[2:]
        if not name:
            return None
        if name.startswith(b"\0"):
            problem = _unserved(name)
        else:
            name = name.partition(b"\0")[0]
            problem = _unserved(os.fsencode(os.path.join(_directory(pid, AT_FDCWD), os.fsdecode(name))))
        if problem and name != NAME_CACHE:
            self._targets.note("socket", name.replace(b"\0", b"@", 1).decode(errors="replace"))
        return -problem if problem else None

    def _opened(self, pid: int, name: str, arguments: list[int]) -> int | None:
        """Refuse to open a FIFO of the machine for writing. Its reader would be outside of the view."""
        if not opening_flags(pid, name, arguments) & _WRITES or not (path := self.dead_fifo(pid, name, arguments)):
            return None
        self.note_service(path)
        return -errno.EACCES

    def note_service(self, path: str) -> None:
        """Note that the command tried to reach a local service."""
        self._targets.note("socket", path)

    def dead_fifo(self, pid: int, name: str, arguments: Sequence[int]) -> str:
        """Return the path of the FIFO that a call opens. Empty: it opens none, or one that the command has made.

        Raises `OSError`, `ValueError`.
        """
        directory, path = FILE_NAMES[name]
        text = os.fsdecode(_text(pid, arguments[path]))
        start = _start(pid, AT_FDCWD if directory is None else arguments[directory])
        # Nearly all calls end here. Names of descriptors are not the same for us.
        if not text.startswith(("/proc/", "/dev/")) and not stat.S_ISFIFO(os.stat(os.path.join(start, text)).st_mode):
            return ""
        named = text if text.startswith("/") else os.path.join(os.readlink(start), text)
        if not stat.S_ISFIFO(os.stat(real := _resolved(pid, named)).st_mode):
            return ""
        if real.startswith("/proc/"):
            real = os.readlink(real)  # A descriptor of the command; a pipe has no path.
        return "" if not real.startswith("/") or real.startswith("/dev/") or self._is_own(real) else real

    def _is_own(self, path: str) -> bool:
        """True if the command has made this file, or changed it, so that it is not that of the machine."""
        covered = max((each for each in self._uppers if path.startswith(f"{each}/")), key=len, default="")
        return bool(covered) and os.path.lexists(f"{self._uppers[covered]}/{path[len(covered) + 1 :]}")


def opening_flags(pid: int, name: str, arguments: Sequence[int]) -> int:
    """Return the flags with which a call opens a file. Raises `OSError`, `struct.error`."""
    if name == "creat":
        return os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    if name == "openat2":
        return int(struct.unpack("=Q", _memory(pid, arguments[2], 8))[0])
    return arguments[_OPENING_FLAGS[name]]


def _unserved(name: bytes) -> int:
    """Return the error with which a socket of this name refuses. 0: a process in the view has it.

    A datagram socket leaves no trace in one that accepts connections: it is told that the types differ.
    """
    if name.startswith(b"\0"):
        # Looked up by the type as well, in the network namespace of the view.
        with open("/proc/net/unix", "rb") as file:
            is_there = any(line.rstrip(b"\n").endswith(b" " + name.replace(b"\0", b"@")) for line in file)
        return 0 if is_there else errno.ECONNREFUSED
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        try:
            fd = os.open(name, os.O_PATH | os.O_CLOEXEC)
            try:
                probe.connect(f"/proc/self/fd/{fd}")
            finally:
                os.close(fd)
        except OSError as error:
            return 0 if error.errno == errno.EPROTOTYPE else error.errno or errno.ECONNREFUSED
    return 0


def _memory(pid: int, address: int, size: int) -> bytes:
    fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(fd, size, address)
    finally:
        os.close(fd)


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
    return path if path.startswith("/") else os.path.join(_directory(pid, directory), path)


def _directory(pid: int, directory: int) -> str:
    """Return the directory that a relative path starts from."""
    return os.readlink(_start(pid, directory))


def _start(pid: int, directory: int) -> str:
    """Return the link to the directory that a relative path starts from."""
    number = ctypes.c_int(directory & 0xFFFFFFFF).value
    return f"/proc/{pid}/cwd" if number == AT_FDCWD else f"/proc/{pid}/fd/{number}"


def _resolved(pid: int, path: str) -> str:
    """Return a path with its symbolic links resolved as a process does, but the last one in its directory in /proc."""
    own = f"/proc/{os.getpid()}/"
    for _ in range(_MOST_LINKS):
        directory, name = os.path.split(path)
        directory = os.path.realpath(directory)
        if f"{directory}/".startswith(own):
            directory = f"/proc/{pid}/{directory[len(own) :]}"
        path = os.path.join(directory, name)
        if directory.startswith("/proc/") or not os.path.islink(path):
            break
        path = os.path.join(directory, os.readlink(path))
    return path


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
