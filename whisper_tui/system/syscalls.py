"""System calls by their names and numbers, and those without a Python function: Landlock, seccomp, capabilities, files.

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
read 0 63|write 1 64|close 3 57|lseek 8 62|pread64 17 67|pwrite64 18 68|readv 19 65|writev 20 66|preadv 295 69
pwritev 296 70|preadv2 327 286|pwritev2 328 287|access 21 -|faccessat 269 48|faccessat2 439 439|stat 4 -|fstat 5 80
lstat 6 -|newfstatat 262 79|statfs 137 43|fstatfs 138 44|readlink 89 -|readlinkat 267 78|getdents 78 -
getdents64 217 61|getcwd 79 17|fchdir 81 50|dup 32 23|dup2 33 -|dup3 292 24|fcntl 72 25|flock 73 32|fsync 74 82
fdatasync 75 83|sync 162 81|sync_file_range 277 84|fallocate 285 47|ftruncate 77 46|fadvise64 221 223
readahead 187 213|cachestat 451 451|umask 95 166|pipe 22 -|pipe2 293 59|splice 275 76|tee 276 77|vmsplice 278 75
sendfile 40 71|copy_file_range 326 285|close_range 436 436|execveat 322 281|statmount 457 457|listmount 458 458
getxattr 191 8|lgetxattr 192 9|fgetxattr 193 10|listxattr 194 11|llistxattr 195 12|flistxattr 196 13
inotify_init 253 -|inotify_init1 294 26|inotify_add_watch 254 27|inotify_rm_watch 255 28|io_setup 206 0
io_destroy 207 1|io_getevents 208 4|io_pgetevents 333 292|io_submit 209 2|io_cancel 210 3|brk 12 214|mmap 9 222
munmap 11 215|mremap 25 216|mprotect 10 226|msync 26 227|mincore 27 232|madvise 28 233|mlock 149 228|mlock2 325 284
munlock 150 229|mlockall 151 230|munlockall 152 231|remap_file_pages 216 234|mbind 237 235|get_mempolicy 239 236
set_mempolicy 238 237|set_mempolicy_home_node 450 450|pkey_mprotect 329 288|pkey_alloc 330 289|pkey_free 331 290
map_shadow_stack 453 -|mseal 462 462|membarrier 324 283|shmdt 67 197|fork 57 -|vfork 58 -|exit 60 93|exit_group 231 94
wait4 61 260|waitid 247 95|pidfd_open 434 434|getpid 39 172|getppid 110 173|gettid 186 178|getuid 102 174
geteuid 107 175|getgid 104 176|getegid 108 177|getresuid 118 148|getresgid 120 150|getgroups 115 158|setuid 105 146
setgid 106 144|setreuid 113 145|setregid 114 143|setresuid 117 147|setresgid 119 149|setfsuid 122 151|setfsgid 123 152
setgroups 116 159|getpgid 121 155|getpgrp 111 -|getsid 124 156|setpgid 109 154|setsid 112 157|capget 125 90
prctl 157 167|arch_prctl 158 -|set_thread_area 205 -|get_thread_area 211 -|set_tid_address 218 96
set_robust_list 273 99|get_robust_list 274 100|rseq 334 293|futex 202 98|futex_waitv 449 449|futex_wake 454 454
futex_wait 455 455|futex_requeue 456 456|personality 135 92|getrlimit 97 163|setrlimit 160 164|getrusage 98 165
times 100 153|uname 63 160|sysinfo 99 179|syslog 103 116|getcpu 309 168|getrandom 318 278|sched_yield 24 124
sched_getaffinity 204 123|sched_getscheduler 145 120|sched_getparam 143 121|sched_getattr 315 275
sched_get_priority_max 146 125|sched_get_priority_min 147 126|sched_rr_get_interval 148 127|getpriority 140 141
ioprio_get 252 31|rt_sigaction 13 134|rt_sigprocmask 14 135|rt_sigreturn 15 139|rt_sigpending 127 136
rt_sigsuspend 130 133|rt_sigtimedwait 128 137|sigaltstack 131 132|restart_syscall 219 128|pause 34 -|alarm 37 -
getitimer 36 102|setitimer 38 103|nanosleep 35 101|clock_gettime 228 113|clock_getres 229 114|clock_nanosleep 230 115
gettimeofday 96 169|time 201 -|timer_create 222 107|timer_settime 223 110|timer_gettime 224 108
timer_getoverrun 225 109|timer_delete 226 111|timerfd_create 283 85|timerfd_settime 286 86|timerfd_gettime 287 87
signalfd 282 -|signalfd4 289 74|eventfd 284 -|eventfd2 290 19|epoll_create 213 -|epoll_create1 291 20|epoll_ctl 233 21
epoll_wait 232 -|epoll_pwait 281 22|epoll_pwait2 441 441|poll 7 -|ppoll 271 73|select 23 -|pselect6 270 72
accept 43 202|accept4 288 242|bind 49 200|listen 50 201|shutdown 48 210|recvfrom 45 207|sendmsg 46 211|recvmsg 47 212
sendmmsg 307 269|recvmmsg 299 243|getsockname 51 204|getpeername 52 205|setsockopt 54 208|getsockopt 55 209
socketpair 53 199
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
    return open_unlinked(path, os.O_DIRECTORY)


def open_unlinked(path: str, flags: int = 0) -> int:
    """Open a file or directory by its path alone. Raises `OSError` if any part of the path is a symbolic link."""
    flags |= os.O_PATH | os.O_CLOEXEC
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
