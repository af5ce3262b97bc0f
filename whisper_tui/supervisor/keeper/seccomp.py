"""The seccomp filter of a sandbox, and the keeper's answers to it.

The filter allows a list of calls. It refuses those that Landlock cannot restrict, and all that it does not know, and
asks the keeper about the others that change files, over a descriptor (seccomp_unotify(2)). There are two kinds of
answers:

** *Calls that Landlock checks* (opening, creating, removing, renaming) continue, and Landlock decides. The keeper only
  records those that it will refuse: a race between both checks can only cost a line in a report.
** *Calls that Landlock cannot restrict* (modes, owners, times, extended attributes) never continue. Where the command
  may write, the keeper makes the change itself, on a descriptor that it has opened and checked, so that the file
  cannot be swapped meanwhile.
"""

import errno
import fcntl
import os
import signal
import socket
import stat
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from whisper_tui.supervisor.keeper.docker_lists import DockerLists
from whisper_tui.system import syscalls
from whisper_tui.system.bpf import (
    CLOSED,
    MISSING,
    REFUSED,
    Instruction,
    answered,
    answers_to,
    if_bits,
    if_call,
    if_equal,
    only_own_abi,
    unless_equal,
    unless_in,
    when_equal,
)
from whisper_tui.system.processes import ProcessEntry, find_process, is_stopped, kernel_file, send_to

_STOPS_WITHIN_S = 0.1
_PERMITTED = frozenset(
    # files, most of which Landlock checks when they are opened
    "read write close lseek pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 open openat access faccessat "
    "faccessat2 stat fstat lstat newfstatat statx statfs fstatfs readlink readlinkat getdents getdents64 getcwd chdir "
    "fchdir dup dup2 dup3 fcntl flock fsync fdatasync sync syncfs sync_file_range fallocate ftruncate fadvise64 "
    "readahead cachestat umask pipe pipe2 splice tee vmsplice sendfile copy_file_range close_range execve execveat "
    "statmount listmount getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr inotify_init inotify_init1 "
    "inotify_add_watch inotify_rm_watch name_to_handle_at io_setup io_destroy io_getevents io_pgetevents io_submit "
    "io_cancel ioctl "
    # memory
    "brk mmap munmap mremap mprotect msync mincore madvise mlock mlock2 munlock mlockall munlockall remap_file_pages "
    "mbind get_mempolicy set_mempolicy set_mempolicy_home_node pkey_mprotect pkey_alloc pkey_free map_shadow_stack "
    "mseal membarrier shmdt "
    # the process itself and its children, to which no_new_privs gives no rights
    "clone fork vfork exit exit_group wait4 waitid pidfd_open getpid getppid gettid getuid geteuid getgid getegid "
    "getresuid getresgid getgroups setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups "
    "getpgid getpgrp getsid setpgid setsid capget capset prctl arch_prctl set_thread_area get_thread_area "
    "set_tid_address set_robust_list get_robust_list rseq futex futex_waitv futex_wake futex_wait futex_requeue "
    "personality getrlimit setrlimit prlimit64 getrusage times uname sysinfo syslog getcpu getrandom seccomp "
    "landlock_create_ruleset landlock_add_rule landlock_restrict_self sched_yield sched_getaffinity sched_setaffinity "
    "sched_getscheduler sched_setscheduler sched_getparam sched_setparam sched_getattr sched_setattr "
    "sched_get_priority_max sched_get_priority_min sched_rr_get_interval getpriority setpriority ioprio_get ioprio_set "
    # signals, time and events
    "kill tkill tgkill pidfd_send_signal rt_sigqueueinfo rt_tgsigqueueinfo rt_sigaction rt_sigprocmask rt_sigreturn "
    "rt_sigpending rt_sigsuspend rt_sigtimedwait sigaltstack restart_syscall pause alarm getitimer setitimer nanosleep "
    "clock_gettime clock_getres clock_nanosleep gettimeofday time timer_create timer_settime timer_gettime "
    "timer_getoverrun timer_delete timerfd_create timerfd_settime timerfd_gettime signalfd signalfd4 eventfd eventfd2 "
    "epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 poll ppoll select pselect6 "
    # sockets that could be made
    "socket socketpair connect accept accept4 bind listen shutdown sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg "
    "getsockname getpeername setsockopt getsockopt".split()
)
"""Calls that are allowed, some of them with certain arguments only. Every other call is refused or told about."""
_ABSENT = "io_uring_setup io_uring_enter io_uring_register memfd_create memfd_secret clone3".split()
"""Calls that fail as if they did not exist, so that programs fall back: a filter cannot inspect io_uring and clone3."""
_NEWEST = 469
"""The highest number that a call had when the table was made. Newer calls do not exist in a sandbox."""
_SIGNALS = "kill tkill tgkill pidfd_send_signal rt_sigqueueinfo rt_tgsigqueueinfo".split()
"""Calls that send signals: refused if Landlock cannot confine them to the sandbox."""
_OWN_ONLY = dict.fromkeys(
    "prlimit64 sched_setaffinity sched_setscheduler sched_setparam sched_setattr".split(), 0
) | dict.fromkeys(("setpriority", "ioprio_set"), 1)
"""Calls about a process, with the index of the argument that names it. 0 is the caller."""
_KINDS_OF_OWN = {"setpriority": (os.PRIO_PROCESS, os.PRIO_PGRP), "ioprio_set": (1, 2)}
"""Those of them that may also be about all processes of a user, with the values of their first argument that are not:
the process and its process group."""
NOTIFIED = (
    "creat openat2 mkdir mkdirat mknod mknodat unlink unlinkat rmdir rename renameat renameat2 link linkat symlink "
    "symlinkat truncate chmod fchmod fchmodat fchmodat2 chown lchown fchown fchownat utime utimes futimesat utimensat "
    "setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr".split()
)
"""Calls that change files. The filter asks the keeper about each."""
_OPENING_FLAGS = {"open": 1, "openat": 2}
"""Calls that change files with certain flags, with the index of the flags."""
_READING = ("chdir", "execve")
"""Calls that use a file without changing it. Some filters tell about them as well."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_NAMESPACES = 0x7E020000
"""The CLONE_NEW* flags of clone()."""
_REQUESTS = (
    # FIOCLEX, FIONCLEX, FIONBIO, FIOASYNC, FIONREAD, FIOQSIZE, FIBMAP, FIGETBSZ
    *(0x5451, 0x5450, 0x5421, 0x5452, 0x541B, 0x5460, 0x1, 0x2),
    # of terminals: attributes, windows, sessions, breaks and queues, but not TIOCSTI and others that simulate input
    *(0x5401, 0x5402, 0x5403, 0x5404, 0x5405, 0x5406, 0x5407, 0x5408, 0x5409, 0x540A, 0x540B, 0x5411, 0x5425),
    *(0x802C542A, 0x402C542B, 0x402C542C, 0x402C542D, 0x5413, 0x5414, 0x540E, 0x540F, 0x5410, 0x5422, 0x5429),
    # of simulated terminals: TIOCPKT, TIOCGPTN, TIOCSPTLCK, TIOCGPTLCK, TIOCGPTPEER
    *(0x5420, 0x80045430, 0x40045431, 0x80045439, 0x5441),
    # of files, to read: FS_IOC_GETFLAGS, FS_IOC_GETVERSION, FS_IOC_FSGETXATTR, FS_IOC_FIEMAP
    *(0x80086601, 0x80087601, 0x801C581F, 0xC020660B),
    # FICLONE and FICLONERANGE write to a file that has to be open for writing
    *(0x40049409, 0x4020940D),
    # of block devices, to read: BLKROGET, BLKGETSIZE, BLKSSZGET, BLKGETSIZE64
    *(0x125E, 0x1260, 0x1268, 0x80081272),
    # of sockets, to read: SIOCATMARK, SIOCGSTAMP, and what SIOCGIF* tell of interfaces
    *(0x8905, 0x8906, 0x8910, 0x8912, 0x8913, 0x8915, 0x8917, 0x8919, 0x891B, 0x891D, 0x8921, 0x8927, 0x8933, 0x8942),
    *(0x8970,),
    # of namespaces, to read: NS_GET_USERNS to NS_GET_OWNER_UID
    *(0xB701, 0xB702, 0xB703, 0xB704),
)
"""The requests of ioctl(2) that are allowed. Those that change flags of files work on descriptors for reading as well,
and drivers have any number of others."""
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
_STREAM = 1
_CONNECTED = (_STREAM, 5)
"""SOCK_STREAM and SOCK_SEQPACKET: a pair of them is connected for ever. Datagrams can be sent to any path."""
_SOCKET_TYPE = 0xF
NETLINK_ROUTE, NETLINK_SOCK_DIAG = 0, 4


def filter_instructions(
    *, network: bool, version: int, watched: bool = False, docker: bool = False
) -> list[Instruction]:
    """Return the filter. It allows what `_PERMITTED` names, with restrictions; Landlock restricts files.

    `watched`: it also tells about files that are only read, and about directories that are entered. `docker`: it also
    tells about local sockets, in place of which the keeper gives connections of its own.
    """
    # Another ABI has other numbers, so 32-bit calls and x32 calls are refused.
    found = only_own_abi()
    for name, index in () if watched else _OPENING_FLAGS.items():
        found += if_call(name, if_bits(index, _WRITING, syscalls.RET_USER_NOTIF))
    found += if_call("clone", if_bits(0, _NAMESPACES, REFUSED))
    found += if_call("ioctl", unless_in(1, _REQUESTS, REFUSED))
    for name, index in _OWN_ONLY.items():
        kinds = _KINDS_OF_OWN.get(name)
        found += if_call(name, [*(unless_in(0, kinds, REFUSED) if kinds else ()), *unless_equal(index, 0, REFUSED)])
    found += if_call("socket", _sockets(network=network, docker=docker))
    pairs = [*unless_equal(0, AF_UNIX, CLOSED), *unless_in(1, _CONNECTED, CLOSED, bits=_SOCKET_TYPE)]
    found += if_call("socketpair", pairs)
    answers = dict.fromkeys(range(_NEWEST + 1), REFUSED)
    answers |= _numbered(_PERMITTED, syscalls.RET_ALLOW) | _numbered(_ABSENT, MISSING)
    answers |= _numbered(NOTIFIED, syscalls.RET_USER_NOTIF)
    if watched:
        answers |= _numbered((*_OPENING_FLAGS, *_READING), syscalls.RET_USER_NOTIF)
    if version < syscalls.SIGNALS_ABI:
        answers |= _numbered(_SIGNALS, REFUSED)
    return [*found, *answers_to(answers, MISSING)]


def _numbered(names: Iterable[str], answer: int) -> dict[int, int]:
    return {syscalls.NUMBERS[name]: answer for name in names if name in syscalls.NUMBERS}


def _sockets(*, network: bool, docker: bool) -> list[Instruction]:
    """Return the rules for sockets. Internet families are allowed, or the keeper reports and refuses them."""
    # Local sockets are never made: their paths lead to docker, D-Bus, key agents and our own supervisor.
    open_families = (AF_INET, AF_INET6, AF_NETLINK) if network else ()
    found = [each for family in open_families for each in if_equal(0, family, syscalls.RET_ALLOW)]
    # Without capabilities these two kinds of netlink only list addresses and sockets, as `ip` and `ss` do.
    told = [each for kind in (NETLINK_ROUTE, NETLINK_SOCK_DIAG) for each in if_equal(2, kind, syscalls.RET_ALLOW)]
    found += when_equal(0, AF_NETLINK, told)
    for family in () if network else (AF_INET, AF_INET6):
        found += if_equal(0, family, syscalls.RET_USER_NOTIF)
    if docker:
        streams = [*unless_equal(1, _STREAM, CLOSED, bits=_SOCKET_TYPE), answered(syscalls.RET_USER_NOTIF)]
        found += when_equal(0, AF_UNIX, streams)
    return [*found, answered(CLOSED)]


MOST_NOTED = 20
"""How many different attempts are reported. Further ones are counted."""
LONGEST, LONGEST_LINE = 300, 300
"""How many characters of a path, and of a line of output, a report contains."""
MOST_LINES = 3
"""How many lines of the error output about a refusal are reported beside the attempts."""
TAIL = 4096
_REFUSALS = (b"permission denied", b"operation not permitted", b"eacces", b"eperm", b"read-only file system")

_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_VALID = 0x40082102
_NOTICE = struct.Struct("=QIIiIQ6Q")
"""`struct seccomp_notif`: id, pid, flags; number, architecture, instruction, arguments."""
_ANSWER = struct.Struct("=QqiI")
_CONTINUE = 1
_ADD, _ADD_AND_SEND = 0x40182103, 2
"""SECCOMP_IOCTL_NOTIF_ADDFD, and its flag that answers the call with the new descriptor (Linux 5.14)."""
_ADDED = struct.Struct("=QIIII")
_EACCES, _EPERM = errno.EACCES, errno.EPERM
_AT_FDCWD = -100
"""AT_FDCWD: relative to the working directory."""
_NOFOLLOW = 0x100
_LONGEST_PATH, _LONGEST_VALUE = 4096, 65_536
_NOW, _OMIT = 0x3FFFFFFF, 0x3FFFFFFE
"""UTIME_NOW and UTIME_OMIT, in place of nanoseconds."""


class _Call(NamedTuple):
    """One system call that waits for an answer."""

    id: int
    pid: int
    name: str
    arguments: tuple[int, ...]
    is_previewed: bool = False
    """True if what it changes is a copy that only this user reaches."""


class _FileArguments(NamedTuple):
    """The arguments that name a file: a directory's descriptor, a path beneath it, and flags."""

    directory: int | None
    path: int | None
    flags: int | None = None
    follows: bool = True


_NAMED = {
    **dict.fromkeys(("open", "creat", "chdir", "execve"), (_FileArguments(None, 0),)),
    **dict.fromkeys(("openat", "openat2"), (_FileArguments(0, 1),)),
    **dict.fromkeys(("mkdir", "mknod", "unlink", "rmdir"), (_FileArguments(None, 0, follows=False),)),
    **dict.fromkeys(("mkdirat", "mknodat", "unlinkat"), (_FileArguments(0, 1, follows=False),)),
    "rename": (_FileArguments(None, 0, follows=False), _FileArguments(None, 1, follows=False)),
    "renameat": (_FileArguments(0, 1, follows=False), _FileArguments(2, 3, follows=False)),
    "renameat2": (_FileArguments(0, 1, follows=False), _FileArguments(2, 3, follows=False)),
    "link": (_FileArguments(None, 1, follows=False),),
    "linkat": (_FileArguments(2, 3, follows=False),),
    "symlink": (_FileArguments(None, 1, follows=False),),
    "symlinkat": (_FileArguments(1, 2, follows=False),),
}
"""Calls that Landlock checks, and the names that they change or use."""

_CHANGED = {
    "truncate": _FileArguments(None, 0),
    "chmod": _FileArguments(None, 0),
    "fchmod": _FileArguments(0, None),
    "fchmodat": _FileArguments(0, 1),
    "fchmodat2": _FileArguments(0, 1, 3),
    "chown": _FileArguments(None, 0),
    "lchown": _FileArguments(None, 0, follows=False),
    "fchown": _FileArguments(0, None),
    "fchownat": _FileArguments(0, 1, 4),
    "utime": _FileArguments(None, 0),
    "utimes": _FileArguments(None, 0),
    "futimesat": _FileArguments(0, 1),
    "utimensat": _FileArguments(0, 1, 3),
    "setxattr": _FileArguments(None, 0),
    "lsetxattr": _FileArguments(None, 0, follows=False),
    "fsetxattr": _FileArguments(0, None),
    "removexattr": _FileArguments(None, 0),
    "lremovexattr": _FileArguments(None, 0, follows=False),
    "fremovexattr": _FileArguments(0, None),
}
"""Calls that the keeper executes itself, or refuses."""


class SeccompNotifications:
    """Answers the filter of one sandbox, and records the refusals."""

    def __init__(
        self,
        listener: int,
        writable: tuple[str, ...],
        apart: str | None = None,
        docker: DockerLists | None = None,
        *,
        refused: Sequence[Sequence[str]] = (),
        noted: Callable[[list[list[str]]], object] = lambda _: None,
    ) -> None:
        """`apart`: a directory whose files are refused by name, also to readers, except for those that are writable.

        `docker`: what local sockets lead to. `refused`: what was refused before. `noted` is called with all of it.
        """
        self._tell = noted
        self.listener = listener
        """Its descriptor. -1: no process is left to ask."""
        self._writable = tuple(os.path.realpath(path) for path in writable)
        self._apart = apart
        self._docker = docker
        self._noted: dict[tuple[str, str], None] = dict.fromkeys((each[0], each[1]) for each in refused)
        self._more = 0

    def answer(self) -> bool:
        """Answer one call. Return whether there may be another one; if not, it is time to close."""
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self.listener, _RECEIVE, notice)
        except FileNotFoundError:
            return True  # The caller was killed while it waited.
        except OSError:
            return False
        call_id, pid, _, number, _, _, *arguments = _NOTICE.unpack(notice)
        call = _Call(call_id, pid, syscalls.NAMES.get(number, ""), tuple(arguments), self._apart is not None)
        try:
            error, flags = self._judge(call)
        except (OSError, ValueError, OverflowError):
            error, flags = _EACCES, 0  # The caller has ended, or its arguments cannot be read.
        try:
            fcntl.ioctl(self.listener, _SEND, _ANSWER.pack(call.id, 0, -error, flags))
        except OSError:
            return True
        return True

    def report(self, error_output: bytes) -> dict[str, Any] | None:
        """Return the refusals so far. `error_output`: the end of the command's output. None: there were none."""
        lines = [line.strip() for line in error_output[-TAIL:].splitlines()]
        lines = [line for line in lines if any(word in line.lower() for word in _REFUSALS)]
        if not self._noted and not lines:
            return None
        said = [line[:LONGEST_LINE].decode(errors="backslashreplace") for line in lines[-MOST_LINES:]]
        # A copy, in one step: a thread may be answering.
        attempts = [{"what": what, "subject": subject} for what, subject in list(self._noted)]
        return {"attempts": attempts, "more": self._more, "messages": said}

    def close(self) -> None:
        """Stop answering. The kernel then refuses the calls of remaining processes."""
        if self.listener >= 0:
            os.close(self.listener)
            self.listener = -1

    def _judge(self, call: _Call) -> tuple[int, int]:
        """Return the error number to answer with, or 0, and the flags of the answer."""
        if call.name == "socket":
            if self._docker is not None and call.arguments[0] & 0xFFFFFFFF == AF_UNIX:
                self._connect(call, self._docker)
                return _EACCES, 0  # It was answered with the descriptor, unless the kernel is too old for that.
            self._note("network", "")
            return _EACCES, 0
        if call.name in _NAMED:
            for target in _NAMED[call.name]:
                path = _path(call, target)
                if self._is_apart(call, path):
                    return _EACCES, 0
                if self._may_write(path):
                    continue
                # Git asks for it to refresh its index, and goes on without; where it cannot, its error output says so.
                if _writes(call) and path.rpartition("/")[2] != "index.lock":
                    self._note("write", path)
            return 0, _CONTINUE
        if call.name in _CHANGED:
            return self._change(call, _CHANGED[call.name]), 0
        return _EACCES, 0

    def _connect(self, call: _Call, docker: DockerLists) -> None:
        """Give the caller one end of a pair as the socket that it wants to make. Raises `OSError`.

        Such a socket is connected for ever: connect(2) fails with EISCONN, wherever it is to lead.
        """
        kind = call.arguments[1]
        with docker.connection() as theirs:
            theirs.setblocking(not kind & socket.SOCK_NONBLOCK)
            flags = os.O_CLOEXEC if kind & socket.SOCK_CLOEXEC else 0
            fcntl.ioctl(self.listener, _ADD, _ADDED.pack(call.id, _ADD_AND_SEND, theirs.fileno(), 0, flags))

    def _change(self, call: _Call, target: _FileArguments) -> int:
        """Change a file's attributes, on the descriptor that was checked."""
        fd = _open_target(call, target)
        try:
            own = f"/proc/self/fd/{fd}"
            path = os.readlink(own)
            if not self._may_write(path):
                self._note("change", path)
                return _EACCES
            found = os.fstat(fd)
            if found.st_uid != os.geteuid():
                return self._refused(path)  # As for any process without capabilities; the keeper may have some.
            # Checked after the arguments were read, because the pid may have been reused by then.
            if not _is_valid(self, call):
                return _EACCES
            if stat.S_ISLNK(found.st_mode):
                return 0 if call.name in {"utimensat", "lchown", "fchownat"} else _EPERM
            error = _EMULATED[call.name](call, own)
            return self._refused(path) if error == _EPERM else error
        except OSError as problem:
            return problem.errno or _EACCES
        finally:
            os.close(fd)

    def _refused(self, path: str) -> int:
        # In a preview, a refusal that is not named would be taken for what the command does.
        if self._apart is not None:
            self._note("change", path)
        return _EPERM

    def _is_apart(self, call: _Call, path: str) -> bool:
        """True if a call reaches into the directory that is apart, or starts a script whose interpreter is there."""
        if self._apart is None:
            return False
        if self._may_write(path):
            path = _interpreter(path) if call.name == "execve" else ""
        found = f"{path}/".startswith(f"{self._apart.rstrip('/')}/")
        if found:
            self._note("write" if _writes(call) else "reach", path)
        return found

    def _may_write(self, path: str) -> bool:
        return any(path == own or path.startswith(own.rstrip("/") + "/") for own in self._writable)

    def _note(self, what: str, path: str) -> None:
        key = (what, os.fsencode(path)[:LONGEST].decode(errors="backslashreplace"))
        if key in self._noted:
            return
        if len(self._noted) < MOST_NOTED:
            self._noted[key] = None
            self._tell([list(each) for each in self._noted])
        else:
            self._more += 1


def ask_again(family: Iterable[ProcessEntry]) -> None:
    """Have processes that wait for an answer ask again: whoever was asked is gone, and nobody knows the question."""
    # A signal that stops a process interrupts its wait, and makes it repeat the call.
    waiting = [seen for seen in family if _waits_for_answer(seen.pid)]
    for seen in waiting:
        send_to(seen, signal.SIGSTOP)
        until = time.monotonic() + _STOPS_WITHIN_S
        while not is_stopped(seen.pid) and find_process(seen.pid) is not None and time.monotonic() < until:
            time.sleep(_STOPS_WITHIN_S / 100)
        send_to(seen, signal.SIGCONT)


def _waits_for_answer(pid: int) -> bool:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return False
    return any(b"seccomp" in kernel_file(f"/proc/{pid}/task/{thread}/wchan") for thread in threads)


def _interpreter(path: str) -> str:
    """Return the program that the first line of a script names. Empty: it names none."""
    if not os.path.isfile(path):
        return ""
    with open(path, "rb") as file:
        words = file.readline(LONGEST_LINE)[2:].split() if file.peek(2)[:2] == b"#!" else []
    return os.fsdecode(words[0]) if words else ""


def _writes(call: _Call) -> bool:
    """True if a call of `_NAMED` changes what it names."""
    if call.name == "openat2":
        flags = struct.unpack("=Q", _memory(call, call.arguments[2], 8))[0]
    elif call.name in _OPENING_FLAGS:
        flags = call.arguments[_OPENING_FLAGS[call.name]]
    else:
        return call.name not in _READING
    return bool(flags & _WRITING)


def _is_valid(notifications: SeccompNotifications, call: _Call) -> bool:
    """True if the caller still waits, so that its pid was not reused while its memory was read."""
    try:
        fcntl.ioctl(notifications.listener, _VALID, struct.pack("=Q", call.id))
    except OSError:
        return False
    return True


def _memory(call: _Call, address: int, longest: int) -> bytes:
    """Read at most `longest` bytes of the caller's memory."""
    fd = os.open(f"/proc/{call.pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            return os.pread(fd, longest, address)
        except OSError:
            first = 4096 - address % 4096  # The next page is not mapped, so the text ends before it.
            return os.pread(fd, min(first, longest), address)
    finally:
        os.close(fd)


def _text(call: _Call, address: int) -> str:
    """Read a C string from the caller's memory. Raises `ValueError` if it is not terminated."""
    raw, end, _ = _memory(call, address, _LONGEST_PATH).partition(b"\0")
    if not end:
        raise ValueError("a path without an end")
    return os.fsdecode(raw)


def _base(call: _Call, target: _FileArguments) -> str:
    """Return the directory that a relative path starts from, by its name in /proc."""
    if target.directory is None:
        return f"/proc/{call.pid}/cwd"
    number = struct.unpack("=i", struct.pack("=I", call.arguments[target.directory] & 0xFFFFFFFF))[0]
    return f"/proc/{call.pid}/cwd" if number == _AT_FDCWD else f"/proc/{call.pid}/fd/{number}"


def _path(call: _Call, target: _FileArguments) -> str:
    """Return the path that a call names, with links resolved as the call resolves them."""
    named = _text(call, call.arguments[target.path]) if target.path is not None else ""
    whole = os.path.join(_base(call, target), named)
    if target.follows:
        return os.path.realpath(whole)
    parent, _, name = whole.rstrip("/").rpartition("/")
    return os.path.join(os.path.realpath(parent or "/"), name)


def _open_target(call: _Call, target: _FileArguments) -> int:
    """Open the file that a call changes."""
    # O_PATH: the command may own a file that it cannot read.
    address = call.arguments[target.path] if target.path is not None else 0
    named = _text(call, address) if address else ""
    flags = call.arguments[target.flags] if target.flags is not None else 0
    follows = target.follows and not flags & _NOFOLLOW
    path = os.path.join(_base(call, target), named) if named else _base(call, target)
    return os.open(path, os.O_PATH | os.O_CLOEXEC | (0 if follows or not named else os.O_NOFOLLOW))


def _mode(call: _Call, own: str) -> int:
    mode = call.arguments[1 if call.name in {"chmod", "fchmod"} else 2] & 0o7777
    if mode & (stat.S_ISUID | stat.S_ISGID) and not call.is_previewed:
        return _EPERM  # A setuid file would give this user's rights to others. Nobody has approved that.
    os.chmod(own, mode)
    return 0


def _owner(call: _Call, own: str) -> int:
    """Change the group, or nothing: a process without capabilities cannot change the owner of a file."""
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
    if name.startswith("system.posix_acl_") and not call.is_previewed:
        # As on a file system without ACLs: programs that copy modes as ACLs (`cp -p`, `sed -i`) set the mode then.
        return errno.EOPNOTSUPP
    if not name.startswith(("user.", "system.posix_acl_") if call.is_previewed else "user."):
        return _EPERM  # Capabilities and labels of files belong to the system.
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


_EMULATED: dict[str, Callable[[_Call, str], int]] = {
    "truncate": _length,
    **dict.fromkeys(("chmod", "fchmod", "fchmodat", "fchmodat2"), _mode),
    **dict.fromkeys(("chown", "lchown", "fchown", "fchownat"), _owner),
    **dict.fromkeys(("utime", "utimes", "futimesat", "utimensat"), _times),
    **dict.fromkeys((name for name in _CHANGED if name.endswith("xattr")), _attribute),
}
