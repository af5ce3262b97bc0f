"""System calls without a Python function: Landlock, seccomp, capabilities and files, with their numbers and layouts.

Sources: landlock(7), seccomp(2), seccomp_unotify(2), capget(2), openat2(2), renameat2(2) and the kernel's headers.
Restrictions are those of the calling *thread*: processes that it starts inherit them, other threads stay unrestricted.
"""

import ctypes
import os
import struct
import sys
from collections.abc import Iterable

RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
AT_FDCWD = -100
"""In place of an opened directory: the path begins where this process is, or is absolute."""
_RESOLVE_NO_SYMLINKS = 4
_LONGEST_HANDLE = 128
"""MAX_HANDLE_SZ."""
_AT_EMPTY_PATH, _STATX_MNT_ID = 0x1000, 0x1000
_STATX = struct.Struct("=I132xIIQ104x")
"""`struct statx`: the mask of its valid fields, and far behind it the device and the mount."""
LINUX = sys.platform == "linux"
MACHINE = os.uname().machine

_TABLE = """
open 2 -|openat 257 56|openat2 437 437|creat 85 -|mkdir 83 -|mkdirat 258 34|mknod 133 -|mknodat 259 33|unlink 87 -
unlinkat 263 35|rmdir 84 -|rename 82 -|renameat 264 38|renameat2 316 276|link 86 -|linkat 265 37|symlink 88 -
symlinkat 266 36|truncate 76 45|chmod 90 -|fchmod 91 52|fchmodat 268 53|fchmodat2 452 452|chown 92 -|lchown 94 -
fchown 93 55|fchownat 260 54|utime 132 -|utimes 235 -|futimesat 261 -|utimensat 280 88|setxattr 188 5|lsetxattr 189 6
fsetxattr 190 7|removexattr 197 14|lremovexattr 198 15|fremovexattr 199 16|setxattrat 463 463|removexattrat 466 466
file_setattr 469 469|socket 41 198|clone 56 220|clone3 435 435|ioctl 16 29|prlimit64 302 261|setpriority 141 140
sched_setaffinity 203 122|sched_setscheduler 144 119|sched_setparam 142 118|sched_setattr 314 274|ioprio_set 251 30
kill 62 129|tkill 200 130|tgkill 234 131|pidfd_send_signal 424 424|rt_sigqueueinfo 129 138|rt_tgsigqueueinfo 297 240
ptrace 101 117|process_vm_readv 310 270|process_vm_writev 311 271|process_madvise 440 440|pidfd_getfd 438 438
kcmp 312 272|mount 165 40|umount2 166 39|pivot_root 155 41|chroot 161 51|move_mount 429 429|open_tree 428 428
fsopen 430 430|fsconfig 431 431|fsmount 432 432|fspick 433 433|mount_setattr 442 442|unshare 272 97|setns 308 268
swapon 167 224|swapoff 168 225|reboot 169 142|sethostname 170 161|setdomainname 171 162|init_module 175 105
finit_module 313 273|delete_module 176 106|kexec_load 246 104|kexec_file_load 320 294|bpf 321 280
perf_event_open 298 241|userfaultfd 323 282|add_key 248 217|request_key 249 218|keyctl 250 219
open_by_handle_at 304 265|fanotify_init 300 262|quotactl 179 60|quotactl_fd 443 443|acct 163 89
settimeofday 164 170|clock_settime 227 112|adjtimex 159 171|clock_adjtime 305 266|iopl 172 -|ioperm 173 -
modify_ldt 154 -|vhangup 153 58|lookup_dcookie 212 18|migrate_pages 256 238|move_pages 279 239|shmget 29 194
shmat 30 196|shmctl 31 195|semget 64 190|semop 65 193|semctl 66 191|semtimedop 220 192|msgget 68 186|msgsnd 69 189
msgrcv 70 188|msgctl 71 187|mq_open 240 180|mq_unlink 241 181|io_uring_setup 425 425|io_uring_enter 426 426
io_uring_register 427 427|memfd_create 319 279|memfd_secret 447 447|seccomp 317 277|capset 126 91
connect 42 203|sendto 44 206|syncfs 306 267|landlock_create_ruleset 444 444|landlock_add_rule 445 445
landlock_restrict_self 446 446|chdir 80 49|execve 59 221|name_to_handle_at 303 264|statx 332 291
"""
_COLUMN = {"x86_64": 1, "aarch64": 2}.get(MACHINE, 0) if LINUX else 0


def _numbers() -> dict[str, int]:
    """Return the numbers for this processor. Empty: the table does not cover it."""
    if not _COLUMN:
        return {}
    rows = (entry.split() for line in _TABLE.strip().splitlines() for entry in line.split("|"))
    return {row[0]: int(row[_COLUMN]) for row in rows if row[_COLUMN] != "-"}


NUMBERS = _numbers()
NAMES = {number: name for name, number in NUMBERS.items()}
ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}.get(MACHINE, 0)
"""AUDIT_ARCH_* of this processor: a filter must not confuse the numbers of different ABIs."""

PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 38, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
CAPABILITY_VERSION = 0x20080522

RULESET_VERSION = 1
RULE_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE = (1 << bit for bit in range(6))
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM, REFER, TRUNCATE = (
    1 << bit for bit in range(6, 15)
)
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE
"""Rights that a rule for a single file may grant; the others concern directories."""
TCP_BIND, TCP_CONNECT = 1, 2
SCOPE_ABSTRACT_SOCKETS, SCOPE_SIGNALS = 1, 2
EVERY_RIGHT = (1 << 15) - 1
REFER_ABI, TRUNCATE_ABI, TCP_ABI, SIGNALS_ABI = 2, 3, 4, 6
"""The Landlock versions that introduced moves between directories, truncation, TCP and signals."""

SET_MODE_FILTER = 1
NEW_LISTENER = 8
RET_ALLOW, RET_ERRNO, RET_USER_NOTIF = 0x7FFF0000, 0x00050000, 0x7FC00000

_libc = ctypes.CDLL(None, use_errno=True) if LINUX else None
_NAMES = (sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())


def call(name: str, *arguments: object) -> int:
    """Make a system call by its name. Raises `OSError`, also where this system has no such call."""
    number = NUMBERS.get(name)
    if _libc is None or number is None:
        raise OSError(38, os.strerror(38))
    result = int(_libc.syscall(number, *arguments))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def prctl(option: int, value: int = 0, third: int = 0) -> None:
    """Set an attribute of this thread. Raises `OSError`."""
    if _libc is None:
        raise OSError(38, os.strerror(38))
    if _libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(third), ctypes.c_ulong(0), ctypes.c_ulong(0)) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def landlock_version() -> int:
    """Return the version of the Landlock interface. Raises `OSError` if the kernel has none, or it is disabled."""
    return call("landlock_create_ruleset", None, 0, RULESET_VERSION)


def create_ruleset(rights: int, network: int, scopes: int, version: int) -> int:
    """Create a ruleset that denies these rights unless a rule grants them. Return its descriptor."""
    # An older kernel refuses a structure with unknown fields.
    size = 8 if version < TCP_ABI else 16 if version < SIGNALS_ABI else 24
    attributes = struct.pack("=QQQ", rights, network, scopes)[:size]
    return call("landlock_create_ruleset", attributes, size, 0)


def path_rule(rights: int, fd: int) -> bytes:
    """Return the rule that grants rights beneath an opened directory, or for an opened file."""
    return struct.pack("=Qi", rights, fd)


def add_paths(ruleset: int, rules: Iterable[bytes]) -> None:
    """Add rules to a ruleset. Raises `OSError`."""
    number = NUMBERS.get("landlock_add_rule")
    for rule in rules:
        # Not by `call`: there are two hundred of them before each start.
        if _libc is None or number is None or _libc.syscall(number, ruleset, RULE_PATH_BENEATH, rule, 0) < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))


def drop_capabilities() -> None:
    """Drop all capabilities, so that uid 0 is an ordinary user. Raises `OSError`."""
    # This is only final with no_new_privs. Otherwise the next exec as root would restore them.
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    call("capset", struct.pack("=Ii", CAPABILITY_VERSION, 0), bytes(24))


Place = tuple[int, str]
"""An opened directory, or `AT_FDCWD`, and a path that begins there."""


def rename(source: Place, target: Place, flags: int) -> None:
    """Rename a file by renameat2(2), with `RENAME_NOREPLACE` or `RENAME_EXCHANGE`. Raises `OSError`."""
    call("renameat2", source[0], source[1].encode(*_NAMES), target[0], target[1].encode(*_NAMES), flags)


def mount_of(fd: int) -> tuple[int, int, int]:
    """Return the device and the mount of an open file. Raises `OSError`, also where the kernel does not tell them."""
    made = ctypes.create_string_buffer(_STATX.size)
    call("statx", fd, b"", _AT_EMPTY_PATH, _STATX_MNT_ID, made)
    mask, major, minor, mount = _STATX.unpack(made)
    if not mask & _STATX_MNT_ID:
        raise OSError(38, os.strerror(38))
    return major, minor, mount


def file_handle(path: str) -> bytes:
    """Return the type and the bytes of the handle by which a file system tells its files apart, also deleted ones.

    Empty: it has none. Follows no symbolic link.
    """
    made = ctypes.create_string_buffer(struct.pack("=Ii", _LONGEST_HANDLE, 0), 8 + _LONGEST_HANDLE)
    mount = ctypes.c_int()
    try:
        call("name_to_handle_at", AT_FDCWD, os.fsencode(path), made, ctypes.byref(mount), 0)
    except OSError:
        return b""
    size, kind = struct.unpack_from("=Ii", made)
    return bytes([kind & 0xFF]) + made.raw[8 : 8 + size]


def open_directory(path: str) -> int:
    """Open a directory for lookups. Raises `OSError` if any part of its path is a symbolic link."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
    how = struct.pack("=QQQ", flags, 0, _RESOLVE_NO_SYMLINKS)
    try:
        return call("openat2", AT_FDCWD, os.fsencode(path), how, len(how))
    except OSError as error:
        raise OSError(error.errno, os.strerror(error.errno or 0), path) from None


def flush_file_system(path: str) -> None:
    """Write all of the file system of a directory to its disk, so that it survives a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        call("syncfs", fd)
    finally:
        os.close(fd)
