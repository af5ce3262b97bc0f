"""Which processes there are below a keeper: read from /proc, or from `ps` where there is no /proc."""

import os
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

LINUX = sys.platform.startswith("linux")
_LSTART_WORDS = 5
_ZOMBIE_STATES = frozenset("ZX")


class Seen(NamedTuple):
    """One living process at one moment."""

    pid: int
    ppid: int
    pgid: int
    start: int
    """Clock ticks after boot; where only `ps` tells, seconds since the epoch."""


def boot_id() -> str:
    """What names this boot of the machine. Empty where the system does not tell."""
    if LINUX:
        return kernel_file("/proc/sys/kernel/random/boot_id").decode().strip()
    return _output("sysctl", "-n", "kern.bootsessionuuid").strip()


def look_at(pid: int, *, dead_too: bool = False) -> Seen | None:
    """A process as it is now. None: there is none, or only its remains, and those were not asked for."""
    if not LINUX:
        return next((seen for seen in _from_ps(dead_too=dead_too) if seen.pid == pid), None)
    text = kernel_file(f"/proc/{pid}/stat")
    after_name = text[text.rfind(b")") + 2 :].split()
    if len(after_name) < 20 or (after_name[0].decode() in _ZOMBIE_STATES and not dead_too):
        return None
    return Seen(pid, int(after_name[1]), int(after_name[2]), int(after_name[19]))


def is_stopped(pid: int) -> bool:
    """Whether a signal or a debugger has stopped it."""
    if not LINUX:
        return _output("ps", "-p", str(pid), "-o", "stat=").strip()[:1] == "T"
    text = kernel_file(f"/proc/{pid}/stat")
    return text[text.rfind(b")") + 2 :][:1] in {b"T", b"t"}


def command_of(pid: int) -> str:
    """Its command line as the system shows it, words joined by spaces."""
    if not LINUX:
        return _output("ps", "-p", str(pid), "-o", "command=").strip()
    words = kernel_file(f"/proc/{pid}/cmdline")
    if words:
        return words.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
    return f"[{kernel_file(f'/proc/{pid}/comm').decode('utf-8', 'replace').strip()}]"


def children_of(pid: int) -> list[int]:
    """Pids of the direct children of a process, the dead and unburied included."""
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        found += map(int, kernel_file(f"/proc/{pid}/task/{thread}/children").split())
    return found


class Descendants:
    """Everything that goes back to one process. Remembers what it saw where the system forgets who came from whom."""

    def __init__(self, root: int, *, adopts: bool) -> None:
        """`adopts`: orphans of this process's tree become its own children."""
        self._root = root
        self.can_hide = not adopts
        """Whether a descendant can live on that is no child of the root, nor of its children."""
        self._groups: set[int] = set()
        self._known: set[tuple[int, int]] = set()
        self._by_children: bool | None = None if adopts and LINUX else False

    def expect_group(self, pgid: int) -> None:
        """Whoever is in this process group counts, should its parent be gone."""
        if self.can_hide:
            self._groups.add(pgid)

    def now(self, *, without: int | None = None) -> list[Seen]:
        """The living descendants at this moment; `without` leaves one child out, and all that goes back to it."""
        if self._by_children is None:
            self._by_children = os.path.exists(f"/proc/self/task/{os.getpid()}/children")
        if self._by_children:
            return self._walk(without)
        return self._select(_from_proc() if LINUX else _from_ps(), without)

    def _walk(self, without: int | None) -> list[Seen]:
        found: list[Seen] = []
        visited = {self._root, without}
        waiting = children_of(self._root)
        while waiting:
            pid = waiting.pop()
            if pid in visited:
                continue
            visited.add(pid)
            waiting += children_of(pid)
            if (seen := look_at(pid)) is not None:
                found.append(seen)
        return found

    def _select(self, everything: list[Seen], without: int | None) -> list[Seen]:
        """By parent; and where orphans leave the family, by group and by having been seen in it before."""
        chosen = _close_over({self._root}, everything, self._belongs)
        if self.can_hide:
            self._groups |= {seen.pgid for seen in chosen.values()} - {os.getpgid(0)}
            self._known = {(seen.pid, seen.start) for seen in chosen.values()}
        if without is not None:
            for pid in _close_over({without}, everything, _is_child):
                chosen.pop(pid, None)
            chosen.pop(without, None)
        return list(chosen.values())

    def _belongs(self, seen: Seen, family: set[int]) -> bool:
        return seen.ppid in family or seen.pgid in self._groups or (seen.pid, seen.start) in self._known


def _is_child(seen: Seen, family: set[int]) -> bool:
    return seen.ppid in family


def _close_over(roots: set[int], everything: list[Seen], belongs: Callable[[Seen, set[int]], bool]) -> dict[int, Seen]:
    """All that belongs to the roots, to what belongs to them, and so on; by pid."""
    family = set(roots)
    chosen: dict[int, Seen] = {}
    grown = True
    while grown:
        grown = False
        for seen in everything:
            if seen.pid not in family and belongs(seen, family):
                chosen[seen.pid] = seen
                family.add(seen.pid)
                grown = True
    return chosen


def _from_proc() -> list[Seen]:
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [seen for pid in pids if (seen := look_at(pid)) is not None]


def _from_ps(*, dead_too: bool = False) -> list[Seen]:
    found: list[Seen] = []
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
        found.append(Seen(int(words[0]), int(words[1]), int(words[2]), int(started)))
    return found


def _is_own_ps(words: list[str]) -> bool:
    """The `ps` that asks is a child of ours, too, but in our own group, where no command ever is."""
    return int(words[1]) == os.getpid() and int(words[2]) == os.getpgid(0)


def _output(*argv: str) -> str:
    """What a small program prints; nothing if it is not there."""
    import subprocess  # not needed, and not small, where there is /proc

    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError:
        return ""
    return done.stdout.decode("utf-8", "replace")


def kernel_file(path: str) -> bytes:
    """A small file of the kernel's; nothing if what it is about is gone."""
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
