"""The sandbox of a command: what the kernel lets it read, write, execute and reach, whatever its words say.

Landlock holds files, TCP, signals and abstract sockets; a seccomp filter refuses what Landlock has no right for
(sockets, ptrace, mounts, namespaces, io_uring, keys, TIOCSTI) and reports attempts to change something; no_new_privs
and dropped capabilities keep a program from getting more than it was started with. No root and no helper is needed.

All of it is set on a thread of the keeper that does nothing else than start the command: Linux keeps these
restrictions per thread and passes them on to children, so the keeper itself stays free, and the start needs no fork.
`docs/sandbox.md` says what is not stopped.
"""

import _thread
import errno
import os
import stat
from collections.abc import Callable
from typing import Any, NamedTuple

from whisper_tui.supervisor.keeper import syscalls
from whisper_tui.supervisor.keeper.syscalls import Filter, Instruction

TMP = "tmp"
"""In the directory of an attempt: the private TMPDIR of its command."""

_ROOTS = (
    "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /opt /nix/store /gnu/store /snap "
    "/run/current-system /sys/devices /sys/class /sys/block /sys/bus /sys/fs/cgroup "
    "/var/lib/dpkg /var/lib/apt /var/lib/rpm /var/lib/pacman /var/log /var/cache/man /var/cache/ldconfig "
    "/run/systemd/resolve /run/utmp".split()
)
"""The system: read by everybody, written by its administrator."""
_MAY_HOLD_PRIVATE = ("/etc", "/var/log", "/var/cache/man", "/var/lib/apt")
"""Parts of the system with files that only root may read."""
_PROGRAMS = "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /opt /nix/store /gnu/store /snap /run/current-system".split()
"""Where programs of the system are. No user's directory is among them."""
_KERNEL = (
    "cpuinfo meminfo stat loadavg version uptime filesystems partitions diskstats swaps modules devices "
    "interrupts vmstat slabinfo buddyinfo zoneinfo cmdline consoles crypto mdstat misc sys".split()
)
"""What /proc says about the machine as a whole, and not about processes."""
_READABLE_DEVICES = ("/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_WALKED = 20_000
"""Entries of the system that are looked at to leave out what only root may read."""

_READ = syscalls.READ_FILE | syscalls.READ_DIR
_WRITE = _READ | (
    syscalls.WRITE_FILE
    | syscalls.REMOVE_DIR
    | syscalls.REMOVE_FILE
    | syscalls.MAKE_DIR
    | syscalls.MAKE_REG
    | syscalls.MAKE_SOCK
    | syscalls.MAKE_FIFO
    | syscalls.MAKE_SYM
    | syscalls.REFER
    | syscalls.TRUNCATE
)


class Support(NamedTuple):
    """What this system offers."""

    version: int
    """Of Landlock's interface. 0: no sandbox."""
    problem: str
    """Why there is none, as a clause. Empty: there is one."""


class Profile(NamedTuple):
    """What one command may do beyond reading the system."""

    read: tuple[str, ...]
    execute: tuple[str, ...]
    write: tuple[str, ...]
    network: bool
    processes: bool
    """Whether it may read what /proc says about processes; the kernel keeps their memory and environment closed."""


class Started(NamedTuple):
    """A command in its sandbox."""

    pid: int
    listener: int
    """The descriptor on which its filter asks about attempts."""


def of(spec: dict[str, Any]) -> Profile | None:
    """The profile of an attempt. None: it runs without a sandbox."""
    asked = spec.get("sandbox")
    if asked is None:
        return None
    read, execute, write = (tuple(asked[name]) for name in ("read", "execute", "write"))
    return Profile(read, execute, write, network=bool(asked["network"]), processes=bool(asked["processes"]))


def probe() -> Support:
    """Whether commands can be sandboxed here. Changes nothing."""
    if not syscalls.LINUX:
        return Support(0, "Landlock exists on Linux only")
    if not syscalls.NUMBERS:
        return Support(0, f"it is not written for processors of type {syscalls.MACHINE}")
    try:
        version = syscalls.landlock_version()
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            return Support(0, "Landlock is switched off: the kernel was started without it in its lsm= parameter")
        return Support(0, "this kernel has no Landlock, or a container keeps it away (Linux 5.13 has it)")
    try:
        syscalls.call("seccomp", syscalls.SET_MODE_FILTER, syscalls.NEW_LISTENER, None)
    except OSError as error:
        if error.errno != errno.EFAULT:
            return Support(0, f"the kernel takes no seccomp filter: {os.strerror(error.errno or 0)}")
    return Support(version, "")


class Sandboxes:
    """Makes sandboxes; what all of them have in common is prepared while nobody waits."""

    def __init__(self) -> None:
        self.support = probe()
        self._system = _system_rules() if self.support.version else ()
        self._filters: dict[bool, Filter] = {}
        self._ready = -1

    def prepare(self) -> None:
        """Have the rules about the system ready for the next command that has no network."""
        if self.support.version and self._ready < 0:
            try:
                self._ready = self._ruleset(network=False)
            except OSError:
                self._ready = -1

    def start(self, profile: Profile, spawn: Callable[[], int]) -> Started:
        """Run `spawn`, which starts a process and returns its pid, inside of a sandbox. Raises what it raises."""
        rules = self._rules_for(profile)
        try:
            return _in_a_thread(lambda: self._restricted(rules, profile, spawn))
        finally:
            os.close(rules)

    def restriction(self, profile: Profile) -> Callable[[], int]:
        """What a forked child calls to restrict itself; it returns the descriptor on which its filter asks."""
        rules, listening = self._rules_for(profile), self._filter(network=profile.network)
        return lambda: _restrict(rules, listening)

    def _restricted(self, rules: int, profile: Profile, spawn: Callable[[], int]) -> Started:
        listener = _restrict(rules, self._filter(network=profile.network))
        try:
            return Started(spawn(), listener)
        except BaseException:
            os.close(listener)
            raise

    def _filter(self, *, network: bool) -> Filter:
        if network not in self._filters:
            self._filters[network] = Filter(_instructions(network=network, version=self.support.version))
        return self._filters[network]

    def _rules_for(self, profile: Profile) -> int:
        if self._ready >= 0 and not profile.network:
            rules, self._ready = self._ready, -1
        else:
            rules = self._ruleset(network=profile.network)
        try:
            for paths, rights in (
                (profile.read, _READ),
                (profile.execute, _READ | syscalls.EXECUTE),
                (profile.write, _WRITE),
                (("/proc",) if profile.processes else (), _READ),
            ):
                for path in paths:
                    self._permit(rules, path, rights)
        except BaseException:
            os.close(rules)
            raise
        return rules

    def _ruleset(self, *, network: bool) -> int:
        version = self.support.version
        tcp = 0 if network or version < syscalls.TCP_ABI else syscalls.TCP_BIND | syscalls.TCP_CONNECT
        scopes = syscalls.SCOPE_ABSTRACT_SOCKETS | syscalls.SCOPE_SIGNALS if version >= syscalls.SIGNALS_ABI else 0
        rules = syscalls.create_ruleset(self._known(syscalls.EVERY_RIGHT), tcp, scopes, version)
        try:
            for path, rights in self._system:
                self._permit(rules, path, rights)
        except BaseException:
            os.close(rules)
            raise
        return rules

    def _permit(self, rules: int, path: str, rights: int) -> None:
        """Give rights back beneath a path. One that is not there, or not ours to look at, needs none."""
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return
        try:
            rights = self._known(rights)
            syscalls.add_path(rules, rights if stat.S_ISDIR(os.fstat(fd).st_mode) else rights & syscalls.OF_FILES, fd)
        finally:
            os.close(fd)

    def _known(self, rights: int) -> int:
        """Without those that this version of Landlock does not know."""
        if self.support.version < syscalls.REFER_ABI:
            rights &= ~syscalls.REFER
        if self.support.version < syscalls.TRUNCATE_ABI:
            rights &= ~syscalls.TRUNCATE
        return rights


def _restrict(rules: int, listening: Filter) -> int:
    """Restrict this thread, for ever. The filter comes last: it would refuse what the other steps need."""
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    syscalls.drop_capabilities()
    syscalls.call("landlock_restrict_self", rules, 0)
    return listening.install()


def _in_a_thread(work: Callable[[], Started]) -> Started:
    """Do something in a thread of its own, which ends with it. Raises what it raises."""
    done, results, problems = _thread.allocate_lock(), [], []

    def body() -> None:
        try:
            results.append(work())
        except BaseException as problem:  # noqa: BLE001 - handed over to the caller, whatever it is
            problems.append(problem)
        finally:
            done.release()

    done.acquire()
    _thread.start_new_thread(body, ())
    done.acquire()
    if problems:
        raise problems[0]
    return results[0]


def _system_rules() -> tuple[tuple[str, int], ...]:
    """What every sandbox may read and execute: the system, without what only its administrator may read."""
    rules = [(path, _READ | syscalls.EXECUTE if path in _PROGRAMS else _READ) for path in _trees()]
    rules += [(path, _READ) for path in _READABLE_DEVICES]
    rules += [("/etc", syscalls.READ_DIR)]  # What is in it may be seen, also where what is in that may not.
    rules += [("/dev/null", syscalls.READ_FILE | syscalls.WRITE_FILE | syscalls.TRUNCATE)]
    rules += [(f"/proc/{name}", _READ) for name in _KERNEL]
    return tuple(rule for rule in rules if os.path.exists(rule[0]))


def _trees() -> list[str]:
    seen, trees = set(), []
    for path in _ROOTS:
        real = os.path.realpath(path)
        if real in seen or not os.path.exists(real):
            continue
        seen.add(real)
        trees += [path] if os.getuid() or path not in _MAY_HOLD_PRIVATE else _public(path)
    return trees


def _public(top: str) -> list[str]:
    """The largest parts of a tree in which nothing is closed to other users.

    An ordinary user cannot read the rest anyway. Root could, and a rule of Landlock cannot leave anything out.
    """
    looked_at = 0

    def parts(path: str) -> tuple[bool, list[str]]:
        nonlocal looked_at
        looked_at += 1
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return True, []
        if not mode & stat.S_IROTH or looked_at > _WALKED:
            return False, []
        if not stat.S_ISDIR(mode):
            return True, [path]
        below = [parts(os.path.join(path, name)) for name in sorted(os.listdir(path))]
        if mode & stat.S_IXOTH and all(whole for whole, _ in below):
            return True, [path]
        return False, [each for _, found in below for each in found]

    try:
        return parts(top)[1]
    except OSError:
        return []


_LOAD = 0x20
"""BPF_LD | BPF_W | BPF_ABS: load a word of `struct seccomp_data`."""
_EQUAL, _AT_LEAST, _HAS_BIT, _RETURN = 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_REFUSED = syscalls.RET_ERRNO | errno.EPERM
_MISSING = syscalls.RET_ERRNO | errno.ENOSYS
_CLOSED = syscalls.RET_ERRNO | errno.EACCES

_NEVER = (
    "ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp mount umount2 pivot_root chroot "
    "move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr unshare setns swapon swapoff reboot sethostname "
    "setdomainname init_module finit_module delete_module kexec_load kexec_file_load bpf perf_event_open userfaultfd "
    "add_key request_key keyctl open_by_handle_at fanotify_init quotactl quotactl_fd acct settimeofday clock_settime "
    "adjtimex clock_adjtime iopl ioperm modify_ldt vhangup lookup_dcookie migrate_pages move_pages shmget shmat shmctl "
    "semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink setxattrat removexattrat "
    "file_setattr".split()
)
"""What no command needs that only looks or builds, and what reaches beyond files: refused."""
_ABSENT = "io_uring_setup io_uring_enter io_uring_register memfd_create memfd_secret clone3".split()
"""Programs find another way where the kernel lacks these. A filter cannot see what io_uring and clone3 would do."""
_SIGNALS = "kill tkill tgkill pidfd_send_signal rt_sigqueueinfo rt_tgsigqueueinfo".split()
"""Refused altogether where Landlock does not keep them inside."""
_OWN_ONLY = {
    "prlimit64": 0,
    "sched_setaffinity": 0,
    "sched_setscheduler": 0,
    "sched_setparam": 0,
    "sched_setattr": 0,
    "setpriority": 1,
    "ioprio_set": 1,
}
"""Calls about a process, and which argument names it; 0 is the caller."""
TOLD = (
    "creat openat2 mkdir mkdirat mknod mknodat unlink unlinkat rmdir rename renameat renameat2 link linkat symlink "
    "symlinkat truncate chmod fchmod fchmodat fchmodat2 chown lchown fchown fchownat utime utimes futimesat utimensat "
    "setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr".split()
)
"""Calls that change something: the keeper is asked about each."""
_OPENING = {"open": 1, "openat": 2}
"""Calls that change something with certain flags, and which argument holds those."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_NAMESPACES = 0x7E020000
"""The CLONE_NEW* flags of clone()."""
_TERMINAL_TRICKS = (0x5412, 0x541C, 0x5423, 0x4B4C)
"""TIOCSTI, TIOCLINUX, TIOCSETD, KDSETKEYCODE... : typing for others, and changing their terminal."""
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
NETLINK_ROUTE, NETLINK_SOCK_DIAG = 0, 4


def _instructions(*, network: bool, version: int) -> list[Instruction]:
    """The filter. What it does not name is allowed: files are Landlock's to hold."""
    found = [
        Instruction(_LOAD, 0, 0, _ARCH),
        Instruction(_EQUAL, 1, 0, syscalls.ARCHITECTURE),
        Instruction(_RETURN, 0, 0, _MISSING),
        Instruction(_LOAD, 0, 0, _NUMBER),
    ]
    if syscalls.MACHINE == "x86_64":
        found += [Instruction(_AT_LEAST, 0, 1, 0x40000000), Instruction(_RETURN, 0, 0, _MISSING)]
    for name, place in _OPENING.items():
        found += _if_call(name, _if_bits(place, _WRITING, syscalls.RET_USER_NOTIF))
    found += _if_call("clone", _if_bits(0, _NAMESPACES, _REFUSED))
    found += _if_call("ioctl", [each for trick in _TERMINAL_TRICKS for each in _if_equal(1, trick, _REFUSED)])
    for name, place in _OWN_ONLY.items():
        found += _if_call(name, _unless_equal(place, 0, _REFUSED))
    found += _if_call("socket", _sockets(network=network))
    answers = dict.fromkeys(TOLD, syscalls.RET_USER_NOTIF) | dict.fromkeys(_NEVER, _REFUSED)
    answers |= dict.fromkeys(_ABSENT, _MISSING)
    if version < syscalls.SIGNALS_ABI:
        answers |= dict.fromkeys(_SIGNALS, _REFUSED)
    for name, answer in answers.items():
        found += _if_call(name, [Instruction(_RETURN, 0, 0, answer)])
    return [*found, Instruction(_RETURN, 0, 0, syscalls.RET_ALLOW)]


def _sockets(*, network: bool) -> list[Instruction]:
    """Sockets of the internet families are told, and refused by the keeper, or allowed; local ones are closed.

    By path, a local socket reaches docker, D-Bus, the user's agents for keys and this program's own supervisor.
    """
    open_families = (AF_INET, AF_INET6, AF_NETLINK) if network else ()
    found = [each for family in open_families for each in _if_equal(0, family, syscalls.RET_ALLOW)]
    # Without capabilities these two kinds of netlink only tell about addresses and sockets, which `ip` and `ss` show.
    told = [each for kind in (NETLINK_ROUTE, NETLINK_SOCK_DIAG) for each in _if_equal(2, kind, syscalls.RET_ALLOW)]
    found += [_argument(0), Instruction(_EQUAL, 0, len(told), AF_NETLINK), *told]
    for family in () if network else (AF_INET, AF_INET6):
        found += _if_equal(0, family, syscalls.RET_USER_NOTIF)
    return [*found, Instruction(_RETURN, 0, 0, _CLOSED)]


def _if_call(name: str, then: list[Instruction]) -> list[Instruction]:
    """These instructions for one system call. Those that fall through allow it."""
    number = syscalls.NUMBERS.get(name)
    if number is None:
        return []
    if then[-1].code != _RETURN or len(then) > 1:
        then = [*then, Instruction(_RETURN, 0, 0, syscalls.RET_ALLOW)]
    return [Instruction(_EQUAL, 0, len(then), number), *then]


def _argument(place: int) -> Instruction:
    """Load the low word of an argument: flags, families and pids are no longer. Both machines are little-endian."""
    return Instruction(_LOAD, 0, 0, _ARGUMENTS + 8 * place)


def _if_bits(place: int, bits: int, answer: int) -> list[Instruction]:
    return [_argument(place), Instruction(_HAS_BIT, 0, 1, bits), Instruction(_RETURN, 0, 0, answer)]


def _if_equal(place: int, value: int, answer: int) -> list[Instruction]:
    return [_argument(place), Instruction(_EQUAL, 0, 1, value), Instruction(_RETURN, 0, 0, answer)]


def _unless_equal(place: int, value: int, answer: int) -> list[Instruction]:
    return [_argument(place), Instruction(_EQUAL, 1, 0, value), Instruction(_RETURN, 0, 0, answer)]
