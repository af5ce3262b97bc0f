"""Landlock rulesets that let a process read the system: one set of rules, opened before a command waits."""

import os
import stat
from collections.abc import Iterable, Iterator

from whisper_tui.system import syscalls

_ROOTS = (
    "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /opt /nix/store /gnu/store /snap "
    "/run/current-system /sys/devices /sys/class /sys/block /sys/bus /sys/fs/cgroup "
    "/var/lib/dpkg /var/lib/apt /var/lib/rpm /var/lib/pacman /var/log /var/cache/man /var/cache/ldconfig "
    "/run/systemd/resolve /run/utmp".split()
)
"""System directories: everybody can read them, and only the administrator can write to them."""
_WITH_PRIVATE_FILES = ("/etc", "/var/log", "/var/cache/man", "/var/lib/apt")
"""Directories of the system with files that only root may read."""
PROGRAM_DIRECTORIES = (
    "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /opt /nix/store /gnu/store /snap /run/current-system".split()
)
"""Directories with system programs. None of them belongs to a user."""
_KERNEL = (
    "cpuinfo meminfo stat loadavg version uptime filesystems partitions diskstats swaps modules devices "
    "interrupts vmstat slabinfo buddyinfo zoneinfo cmdline consoles crypto mdstat misc sys".split()
)
"""Files of /proc about the machine as a whole, and not about processes."""
_LINKER = ("/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/localtime", "/sys/devices/system/cpu")
"""Files that the loader and the library of C read for every program."""
_READABLE_DEVICES = ("/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_MOST_EXAMINED = 20_000
"""How many entries are examined for files that only root may read."""

READ = syscalls.READ_FILE | syscalls.READ_DIR
"""The rights to read a file and to list a directory."""
_NULL = syscalls.READ_FILE | syscalls.WRITE_FILE | syscalls.TRUNCATE


def _known_rights(rights: int, version: int) -> int:
    """Remove rights that a version of Landlock does not support."""
    # A single unknown right makes the kernel refuse the ruleset.
    if version < syscalls.REFER_ABI:
        rights &= ~syscalls.REFER
    if version < syscalls.TRUNCATE_ABI:
        rights &= ~syscalls.TRUNCATE
    return rights


def _permit(rules: int, fd: int, rights: int) -> None:
    """Add a rule for an opened file or directory, and close it. Raises `OSError`."""
    try:
        syscalls.add_paths(rules, (syscalls.path_rule(_fitting(rights, fd), fd),))
    finally:
        os.close(fd)


def _fitting(rights: int, fd: int) -> int:
    """Return those of the rights that a rule for this file or directory may grant."""
    return rights if stat.S_ISDIR(os.fstat(fd).st_mode) else rights & syscalls.OF_FILES


class SystemRules:
    """The rules of all sandboxes, with their files opened.

    Root has two hundred of them, because Landlock knows no exceptions. Opening each file for each command would take
    longer than starting the command.
    """

    def __init__(self, version: int, *, for_programs_alone: bool = False) -> None:
        """`version`: that of the kernel's Landlock interface; `for_programs_alone`: what a program needs to start."""
        self._version = version
        rules = _rules_of_programs() if for_programs_alone else _system_rules()
        self._rules = tuple((path, _known_rights(rights, version)) for path, rights in rules)
        self._parents = tuple(dict.fromkeys(parent for path, _ in self._rules for parent in _parents(path)))
        self._opened: list[int] = []
        """The descriptors of files that stay open."""
        self._packed: list[bytes] = []
        """Their rules."""
        self._closed: list[tuple[str, int]] = []
        """The rules whose file is opened each time."""
        self._found: list[tuple[int, ...]] = []
        self._open()

    def ruleset(self, *, network: bool = False) -> int:
        """Return a new ruleset that grants nothing but these. Raises `OSError`."""
        version = self._version
        tcp = 0 if network or version < syscalls.TCP_ABI else syscalls.TCP_BIND | syscalls.TCP_CONNECT
        scopes = syscalls.SCOPE_ABSTRACT_SOCKETS | syscalls.SCOPE_SIGNALS if version >= syscalls.SIGNALS_ABI else 0
        rules = syscalls.create_ruleset(_known_rights(syscalls.EVERY_RIGHT, version), tcp, scopes, version)
        try:
            self._grant(rules)
        except BaseException:
            os.close(rules)
            raise
        return rules

    def permit(self, rules: int, path: str, rights: int) -> None:
        """Grant rights beneath a real path, if it exists and can be opened. Raises `OSError`.

        Nothing is granted if a part of it is a symbolic link by now: it would lead to what nobody has judged.
        """
        try:
            fd = syscalls.open_unlinked(path)
        except OSError:
            return
        _permit(rules, fd, _known_rights(rights, self._version))

    def _grant(self, rules: int) -> None:
        # A file that was replaced, such as /etc/passwd, changes its directory.
        if self._found != self._stamps():
            self._open()
        syscalls.add_paths(rules, self._packed)
        for path, rights in self._closed:
            try:
                fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            _permit(rules, fd, rights)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the files. They are opened again when they are needed."""
        self._found = []
        while self._opened:
            os.close(self._opened.pop())

    def _open(self) -> None:
        self.close()
        self._opened, self._packed, self._closed, self._found = [], [], [], self._stamps()
        device = os.stat("/").st_dev
        for path, rights in self._rules:
            try:
                fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            # What is open keeps its file system mounted. Nobody unmounts that of the root, /proc or /dev.
            if os.fstat(fd).st_dev == device or path.startswith(("/proc/", "/dev/")):
                self._opened.append(fd)
                self._packed.append(syscalls.path_rule(_fitting(rights, fd), fd))
            else:
                os.close(fd)
                self._closed.append((path, rights))

    def _stamps(self) -> list[tuple[int, ...]]:
        return list(map(_stamp, self._parents))


def _parents(path: str) -> Iterator[str]:
    """Yield the directories in which a path and its real path are looked up, except /proc, whose files stay."""
    for each in (path, os.path.realpath(path)):
        parent = os.path.dirname(each)
        while parent != "/" and parent.split("/")[1] != "proc":
            yield parent
            parent = os.path.dirname(parent)
        yield "/"


def _stamp(directory: str) -> tuple[int, ...]:
    try:
        found = os.stat(directory)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def _rules_of_programs() -> tuple[tuple[str, int], ...]:
    """Return the rules without which no program starts: the system's programs and libraries."""
    rules = [(path, READ | syscalls.EXECUTE) for path in _distinct(PROGRAM_DIRECTORIES)]
    rules += [(path, READ) for path in (*_LINKER, *_READABLE_DEVICES)]
    rules += [(os.devnull, _NULL)]
    return tuple(rule for rule in rules if os.path.exists(rule[0]))


def _system_rules() -> tuple[tuple[str, int], ...]:
    """Return the rules of all sandboxes: the system is readable, except for files that only root may read."""
    rules = [(path, READ | syscalls.EXECUTE if path in PROGRAM_DIRECTORIES else READ) for path in _trees()]
    rules += [(path, READ) for path in _READABLE_DEVICES]
    rules += [("/etc", syscalls.READ_DIR)]  # Names may be listed, including those of private files.
    rules += [(os.devnull, _NULL)]
    rules += [(f"/proc/{name}", READ) for name in _KERNEL]
    return tuple(rule for rule in rules if os.path.exists(rule[0]))


def _trees() -> list[str]:
    trees: list[str] = []
    for path in _distinct(_ROOTS):
        trees += [path] if os.getuid() or path not in _WITH_PRIVATE_FILES else _public(path)
    return trees


def _distinct(paths: Iterable[str]) -> list[str]:
    """Return the paths that exist, without those that lead to one before them."""
    found: dict[str, str] = {}
    for path in paths:
        if os.path.exists(path):
            found.setdefault(os.path.realpath(path), path)
    return list(found.values())


def _public(top: str) -> list[str]:
    """Return the largest subtrees in which other users can read all files."""
    # An ordinary user cannot read the rest anyway. Root could, and a Landlock rule has no exceptions.
    looked_at = 0

    def parts(path: str) -> tuple[bool, list[str]]:
        nonlocal looked_at
        looked_at += 1
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return True, []
        if not mode & stat.S_IROTH or looked_at > _MOST_EXAMINED:
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
