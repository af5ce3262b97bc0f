"""Processes: find, identify and signal them, safely even if pids are reused, and marks that descendants inherit.

A mark is a hard limit that can only be lowered. Standard library only.
"""

import os
import resource
import signal
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from _socket import socket as Connection

LINUX = sys.platform.startswith("linux")
INSIDE = "WHISPER_TUI_CALL_ID"
"""Set in the environment of every supervised command."""
_LSTART_WORDS = 5
_ZOMBIE_STATES = frozenset("ZX")


class ProcessEntry(NamedTuple):
    """One living process at one moment."""

    pid: int
    ppid: int
    pgid: int
    start: int
    """Clock ticks after boot. With `ps`: seconds since the epoch."""


def peer_process(connection: "Connection") -> tuple[int, int]:
    """Return the pid (0 if it is unknown) and uid of the process at the other end of a local socket. Raises `OSError`.

    For one that listens, it is the process that called listen().
    """
    # `socket` imports selectors and enum, which takes longer than the whole request of a hook.
    import _socket

    if LINUX:
        # pid, uid and gid, as three native integers
        about = memoryview(connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)).cast("i")
        return about[0], about[1]
    # Python has no names for these constants.
    local, peer_credentials, peer_pid = 0, 1, 2  # SOL_LOCAL, LOCAL_PEERCRED and LOCAL_PEERPID of macOS
    uid = memoryview(connection.getsockopt(local, peer_credentials, 76)).cast("I")[1]
    return memoryview(connection.getsockopt(local, peer_pid, 4)).cast("i")[0], uid


def boot_id() -> str:
    """Return the id of this boot of the machine. Empty: the system has none."""
    if LINUX:
        return kernel_file("/proc/sys/kernel/random/boot_id").decode().strip()
    return _output("sysctl", "-n", "kern.bootsessionuuid").strip()


def find_process(pid: int, *, dead_too: bool = False) -> ProcessEntry | None:
    """Return a process. None: it does not exist, or it is a zombie and `dead_too` is false."""
    if not LINUX:
        return next((seen for seen in _from_ps(dead_too=dead_too) if seen.pid == pid), None)
    text = kernel_file(f"/proc/{pid}/stat")
    # The name of a process may contain spaces and parentheses, so fields are counted from the last `)`.
    after_name = text[text.rfind(b")") + 2 :].split()
    if len(after_name) < 20 or (after_name[0].decode() in _ZOMBIE_STATES and not dead_too):
        return None
    return ProcessEntry(pid, int(after_name[1]), int(after_name[2]), int(after_name[19]))


def is_process(pid: int, start: int | None) -> bool:
    """True if the process with this pid exists and started then. None: whenever that was."""
    seen = find_process(pid)
    return seen is not None and start in {None, seen.start}


def is_stopped(pid: int) -> bool:
    """True if a signal or a debugger has stopped it."""
    if not LINUX:
        return _output("ps", "-p", str(pid), "-o", "stat=").strip()[:1] == "T"
    text = kernel_file(f"/proc/{pid}/stat")
    return text[text.rfind(b")") + 2 :][:1] in {b"T", b"t"}


def command_of(pid: int) -> str:
    """Return the command line of a process, with spaces between its words."""
    if not LINUX:
        return _output("ps", "-p", str(pid), "-o", "command=").strip()
    words = kernel_file(f"/proc/{pid}/cmdline")
    if words:
        return words.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
    # Kernel threads, and processes that have overwritten their arguments, have an empty command line.
    return f"[{kernel_file(f'/proc/{pid}/comm').decode('utf-8', 'replace').strip()}]"


def children_of(pid: int) -> list[int]:
    """Return the pids of the children of a process, including zombies."""
    found: list[int] = []
    try:
        # The kernel lists children per thread.
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        found += map(int, kernel_file(f"/proc/{pid}/task/{thread}/children").split())
    if not found and not _lists_children():
        return [seen.pid for seen in _from_proc(dead_too=True) if seen.ppid == pid]
    return found


@cache
def _lists_children() -> bool:
    """True if the kernel lists the children of a process (CONFIG_PROC_CHILDREN)."""
    return os.path.exists(f"/proc/self/task/{os.getpid()}/children")


class OpenPipe(NamedTuple):
    """A pipe that a process has open."""

    inode: int
    reads: bool
    writes: bool


def pipes_of(pid: int) -> list[OpenPipe]:
    """Return the pipes that a process has open. Empty without /proc, and for a process of another user."""
    directory = f"/proc/{pid}/fd"
    found: list[OpenPipe] = []
    try:
        names = os.listdir(directory)
    except OSError:
        return found
    for name in names:
        path = f"{directory}/{name}"
        # It may be closed in this moment.
        with suppress(OSError):
            target = os.readlink(path)
            if target.startswith("pipe:["):
                # The permissions of the link are those with which the descriptor was opened.
                mode = os.lstat(path).st_mode
                found.append(OpenPipe(int(target[6:-1]), bool(mode & stat.S_IRUSR), bool(mode & stat.S_IWUSR)))
    return found


class Descendants:
    """The descendants of one process. Known ones are remembered on systems that lose track of parents."""

    def __init__(self, root: int, *, adopts: bool, heads: Callable[[], list[int]] | None = None) -> None:
        """`adopts`: orphans of this process's tree become its own children.

        `heads` returns the pids of the children that are meant, with their descendants. None: all are.
        """
        self._root = root
        self._heads = heads
        self.can_hide = not adopts
        """True if a descendant may survive its parents and leave the tree of the root."""
        self._groups: set[int] = set()
        self._known: set[tuple[int, int]] = set()
        self._by_children: bool | None = None if adopts and LINUX else False

    def expect_group(self, pgid: int) -> None:
        """Count members of this process group as descendants, even if their parents are gone."""
        if self.can_hide:
            self._groups.add(pgid)

    def now(self, *, without: int | None = None) -> list[ProcessEntry]:
        """Return the living descendants. `without`: leave out one child and its descendants."""
        if self._by_children is None:
            self._by_children = _lists_children()
        if self._by_children:
            return self._walk(without)
        return self._select(_from_proc() if LINUX else _from_ps(), without)

    def _walk(self, without: int | None) -> list[ProcessEntry]:
        found: list[ProcessEntry] = []
        visited = {self._root, without}
        waiting = children_of(self._root) if self._heads is None else self._heads()
        while waiting:
            pid = waiting.pop()
            if pid in visited:
                continue
            visited.add(pid)
            waiting += children_of(pid)
            if (seen := find_process(pid)) is not None:
                found.append(seen)
        return found

    def _select(self, everything: list[ProcessEntry], without: int | None) -> list[ProcessEntry]:
        """Select descendants by parent and, if orphans are not adopted, by group and by earlier results."""
        heads = None if self._heads is None else set(self._heads())
        chosen = _close_over({self._root}, everything, lambda seen, family: self._belongs(seen, family, heads))
        if self.can_hide:
            # With our own group, every process of the supervisor would be a descendant.
            self._groups |= {seen.pgid for seen in chosen.values()} - {os.getpgid(0)}
            self._known = {(seen.pid, seen.start) for seen in chosen.values()}
        if without is not None:
            for pid in _close_over({without}, everything, _is_child):
                chosen.pop(pid, None)
            chosen.pop(without, None)
        return list(chosen.values())

    def _belongs(self, seen: ProcessEntry, family: set[int], heads: set[int] | None) -> bool:
        if seen.pgid in self._groups or (seen.pid, seen.start) in self._known:
            return True
        if heads is not None and (seen.ppid == self._root or seen.pid in heads):
            return seen.pid in heads
        return seen.ppid in family


def _is_child(seen: ProcessEntry, family: set[int]) -> bool:
    return seen.ppid in family


def _close_over(
    roots: set[int], everything: list[ProcessEntry], belongs: Callable[[ProcessEntry, set[int]], bool]
) -> dict[int, ProcessEntry]:
    """Return the transitive closure of the roots under `belongs`, by pid."""
    family = set(roots)
    chosen: dict[int, ProcessEntry] = {}
    grown = True
    while grown:
        grown = False
        for seen in everything:
            if seen.pid not in family and belongs(seen, family):
                chosen[seen.pid] = seen
                family.add(seen.pid)
                grown = True
    return chosen


def _from_proc(*, dead_too: bool = False) -> list[ProcessEntry]:
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [seen for pid in pids if (seen := find_process(pid, dead_too=dead_too)) is not None]


def _from_ps(*, dead_too: bool = False) -> list[ProcessEntry]:
    found: list[ProcessEntry] = []
    for line in _output("ps", "-A", "-o", "pid=,ppid=,pgid=,stat=,lstart=").splitlines():
        words = line.split()
        if len(words) < 4 + _LSTART_WORDS or _is_own_ps(words):
            continue
        if words[3][0] in _ZOMBIE_STATES and not dead_too:
            continue
        try:
            started = time.mktime(time.strptime(" ".join(words[4 : 4 + _LSTART_WORDS]), "%a %b %d %H:%M:%S %Y"))
        except ValueError:
            started = 0.0
        found.append(ProcessEntry(int(words[0]), int(words[1]), int(words[2]), int(started)))
    return found


def _is_own_ps(words: list[str]) -> bool:
    """True for our own `ps`, which is our child too, but in our own group, unlike commands."""
    return int(words[1]) == os.getpid() and int(words[2]) == os.getpgid(0)


def _output(*argv: str) -> str:
    """Return the output of a small program. Empty: it is not installed."""
    import subprocess  # large, and not needed with /proc

    # The format of `lstart` depends on the locale, and it is parsed below.
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError:
        return ""
    return done.stdout.decode("utf-8", "replace")


def kernel_file(path: str) -> bytes:
    """Return the content of a small kernel file. Empty: its process is gone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        pieces = []
        while piece := os.read(fd, 65_536):
            pieces.append(piece)
    except OSError:
        return b""
    finally:
        os.close(fd)
    return b"".join(pieces)


BURST_S = 0.05
"""The longest burst of SIGKILLs in seconds, because the keeper has other work too."""


def send_to(seen: ProcessEntry, number: int) -> bool:
    """Signal one process if its pid was not reused. Return whether the signal was sent."""
    if hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal"):
        return _send_by_pidfd(seen, number)
    now = find_process(seen.pid)
    return now is not None and now.start == seen.start and _quietly(os.kill, seen.pid, number)


def send_to_group(pgid: int, number: int) -> bool:
    """Signal a process group of which a member was just found. Return whether it exists."""
    # kill(0) and kill(-1) would reach our own group and every process of the user.
    if pgid <= 1 or pgid == os.getpgid(0):
        return False
    return _quietly(os.killpg, pgid, number)


def send_to_all(family: list[ProcessEntry], *numbers: int) -> None:
    """Send each signal to every process of a list."""
    for number in numbers:
        for seen in family:
            send_to(seen, number)


def kill_burst(descendants: Descendants, nothing_left: Callable[[], bool]) -> bool:
    """Kill all descendants again and again, until none is left or the burst is over. Return whether none is left.

    One pass is not enough, because a process may fork between the check and the signal. A whole group is killed in one
    step, so forks inside cannot escape. The loop catches processes that change their group.
    """
    deadline = time.monotonic() + BURST_S
    while not nothing_left():
        if time.monotonic() >= deadline:
            return False
        family = descendants.now()
        # The kernel signals a group atomically, so a fork in it cannot escape.
        for pgid in {seen.pgid for seen in family}:
            send_to_group(pgid, signal.SIGKILL)
        send_to_all(family, signal.SIGKILL)
    return True


def _send_by_pidfd(seen: ProcessEntry, number: int) -> bool:
    try:
        fd = os.pidfd_open(seen.pid)
    except ProcessLookupError:
        return False
    except OSError:
        return _quietly(os.kill, seen.pid, number)
    try:
        now = find_process(seen.pid)
        # The descriptor pins the current owner of the pid. Only the start time shows whether that is the right process.
        if now is None or now.start != seen.start:
            return False
        signal.pidfd_send_signal(fd, number)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(fd)
    return True


def _quietly(send: Callable[[int, int], None], pid: int, number: int) -> bool:
    """Return True if the signal was sent, False if the process is gone or belongs to another user now."""
    try:
        send(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


FILE_LOCKS = 10
"""The number of RLIMIT_LOCKS. Linux children inherit it, but since 2.4.25 it has no other effect."""

COMMANDS = int.from_bytes(b"whisper")
"""The limit of processes that a keeper starts, minus one for each supervisor inside a supervised command."""

AGENTS = COMMANDS << 8
"""The limit of processes that a connected agent starts, minus one if an agent has started the supervisor."""


SUPERVISORS = AGENTS | 0xFF
"""The limit of a supervisor, and so of all that it starts, minus one if an agent has started the supervisor."""

NO_LIMIT = resource.RLIM_INFINITY

Mark = Literal["command", "agent", "supervisor"]

_limits_of_supervisors: dict[int, float] = {}
"""The limit of this process by its pid, if it has marked itself as a supervisor. Any process of the user can lower it
later, a supervised command as well, so what the kernel says then decides nothing."""


# A program that the supervisor starts for itself, such as the user's for notifications, must not decide (decision 13).
def mark_supervisor() -> None:
    """Mark this process as a supervisor, and what it will start as started by one."""
    if LINUX:
        with suppress(OSError, ValueError):
            _lower_limit(0, _available_mark(SUPERVISORS))
            _limits_of_supervisors[os.getpid()] = _as_number(_hard_limit(0))


def mark_supervised(pid: int = 0) -> None:
    """Mark a process, this one if none is named, and all its future descendants as supervised commands.

    Only a privileged process can raise such a limit again.
    """
    if LINUX:
        with suppress(OSError, ValueError):
            _lower_limit(pid, _available_mark(COMMANDS))


# An agent with a shell could otherwise run `whisper-tui approve` (decision 13).
def mark_agent(pid: int) -> None:
    """Mark an agent and all processes that it will start."""
    if LINUX:
        with suppress(OSError, ValueError):
            _lower_limit(pid, _available_mark(AGENTS))


def mark_in_limits(limits: bytes) -> Mark | None:
    """Return the mark of a process, from its limits in /proc. None: no mark."""
    shown, own = _limit_in(limits), _own_limit()
    if shown is None or shown > own or shown > SUPERVISORS:
        return None
    if shown == own:
        return "supervisor" if os.getpid() in _limits_of_supervisors else None
    return _mark_of(shown)


def may_be_of_command(limits: bytes) -> bool:
    """True if a process may be a supervised command, whatever the limit of this process is.

    A supervised command can lower that of the program that asks, but not raise its own.
    """
    shown = _limit_in(limits)
    return shown is not None and shown <= COMMANDS


def inherited_limit() -> int:
    """Return the limit that what this process starts will inherit. `NO_LIMIT`: there is none."""
    return _hard_limit(0) if LINUX else NO_LIMIT


def is_marked_below(limit: int) -> bool:
    """True if this process has a mark by its own limit alone, and that is lower than a limit (or `NO_LIMIT`)."""
    own = _as_number(inherited_limit())
    return own <= SUPERVISORS and own < _as_number(limit)


def is_supervised_here() -> bool:
    """True if this process descends from a supervised command."""
    return _as_number(inherited_limit()) <= COMMANDS


def _mark_of(limit: float) -> Mark:
    return "command" if limit <= COMMANDS else "agent" if limit <= AGENTS else "supervisor"


def _available_mark(mark: int) -> int:
    own = _own_limit()
    return mark if own > mark else max(0, int(own) - 1)


def _own_limit() -> float:
    return _limits_of_supervisors.get(os.getpid(), _as_number(_hard_limit(0)))


def mark_run(number: int) -> None:
    """Mark this process, and all that it will start, with the number of a run; it replaces the number before."""
    # Below the marks of supervised processes, which are hard limits and stay.
    if LINUX:
        with suppress(OSError, ValueError):
            resource.prlimit(0, FILE_LOCKS, (number, _hard_limit(0)))


def run_mark(pid: int) -> int | None:
    """Return the number of the run that a process was marked with. None: it has none, or is gone."""
    # Everybody may read it in /proc, also of a process that has another user's rights.
    soft = _limit_in(kernel_file(f"/proc/{pid}/limits"), _SOFT) if LINUX else None
    return soft if soft is not None and soft < COMMANDS >> 8 else None


def _lower_limit(pid: int, limit: int) -> None:
    soft, hard = resource.prlimit(pid, FILE_LOCKS)
    if _as_number(hard) > limit:
        resource.prlimit(pid, FILE_LOCKS, (soft if 0 <= soft < limit else limit, limit))


def _hard_limit(pid: int) -> int:
    return resource.prlimit(pid, FILE_LOCKS)[1]


def _as_number(limit: int) -> float | int:
    return float("inf") if limit == NO_LIMIT else limit


_SOFT, _HARD = 3, 4


def _limit_in(limits: bytes, which: int = _HARD) -> int | None:
    """Return a limit of file locks. None: there is none, or the system does not show it."""
    for line in limits.splitlines():
        if line.startswith(b"Max file locks"):
            limit = line.split()[which]
            return int(limit) if limit.isdigit() else None
    return None
