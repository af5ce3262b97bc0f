"""Previews without namespaces: the command runs in a sandbox, in a copy of its workspace or without writing at all.

The sandbox is that of unasked commands: Landlock refuses all writes but those in the copy, and the filter names what
was refused. A copy has another path, so what a command does by absolute paths into its workspace is refused and named.
"""

import os
import re
import select
import signal
import socket
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from whisper_tui.changes.change_records import Plan, load_plan, save_plan
from whisper_tui.changes.file_trees import (
    Links,
    PreviewTooLarge,
    Stamp,
    TreeEntry,
    copy_node,
    make_alike,
    open_file,
    remove_tree,
    stamp,
    stamps_inside,
)
from whisper_tui.changes.meanings import save_meanings
from whisper_tui.changes.overlay_diff import ChangeReader, entries_of, present_stamp
from whisper_tui.supervisor.keeper.sandbox import Profile, Sandboxes
from whisper_tui.supervisor.keeper.seccomp import SeccompNotifications
from whisper_tui.supervisor.preview.overlay_mounts import NoPreview, time_of_file_system
from whisper_tui.supervisor.preview.preview_process import (
    CHECK_S,
    STARTED,
    Host,
    PreviewStart,
    bytes_below,
    command_line,
    fork_host,
    wakeups,
)
from whisper_tui.system import run_files, syscalls

COPY, BASE, LEAKS = "copy", "base.json", "leaks.json"
"""The copy of the workspace in a store, what was in it when the command started, and the files that name the copy."""
MOST_COPIED = 50_000
"""Files and directories of a workspace that is copied."""
MOST_COPIED_BYTES = 2 << 30
LONGEST_COPY_S = 20.0
_SET_CHILD_SUBREAPER = 36
SETTLE_S = 0.05
_MOST_LEFT = 50
_CHUNK = 1 << 20


def start(order: PreviewStart, sandboxes: Sandboxes, *, copies: bool) -> int:
    """Start a command in a sandbox. Returns the pid of the host. Raises `NoPreview`, `OSError`, `ValueError`.

    `copies`: it may write in a copy of its workspace, in which it runs.
    """
    if sandboxes.support.problem:
        raise NoPreview(f"there is no sandbox: {sandboxes.support.problem}")
    if order.options.get("network"):
        raise NoPreview("a sandbox cannot hold changes back")
    os.mkdir(order.store, 0o700)
    try:
        os.mkdir(os.path.join(order.store, "tmp"), 0o700)
        if copies:
            order = _in_copy(order)
        environment = {**order.command.environment, "TMPDIR": os.path.join(order.store, "tmp")}
        order = order._replace(command=order.command._replace(environment=environment))
        return fork_host(lambda connection: _ConfinedHost(order, connection, sandboxes, copies=copies))
    except BaseException:
        remove_tree(order.store)
        raise


def _in_copy(order: PreviewStart) -> PreviewStart:
    """Copy the workspace. Returns the order to start in the copy. Raises `NoPreview`."""
    workspace: str = order.options["workspace"]
    copy = os.path.join(order.store, COPY)
    if order.cwd != workspace and not order.cwd.startswith(f"{workspace}/"):
        raise NoPreview("its working directory is outside the workspace")
    apart = {os.path.realpath(path) for path in (*order.options.get("hide", ()), order.store)}
    began = time_of_file_system(order.store)
    try:
        copy_workspace(workspace, copy, apart)
        base = stamps_inside(copy)
    except (OSError, PreviewTooLarge) as error:
        raise NoPreview(f"the workspace cannot be copied: {error}") from None
    content = {"workspace": workspace, "began_ns": began, "base": base, "apart": sorted(apart)}
    run_files.write_json(os.path.join(order.store, BASE), content)
    at_border = re.compile(re.escape(workspace) + r"(?=[/:\n]|$)")

    def moved(text: str) -> str:
        return at_border.sub(lambda _: copy, text)

    command = order.command
    # Not the arguments: they may be text that only looks like a path.
    environment = {name: moved(value) for name, value in command.environment.items()}
    command = command._replace(program=moved(command.program), environment=environment)
    most = order.options.get("max_bytes")
    options = {**order.options, "max_bytes": None if most is None else most + bytes_below(copy)}
    return order._replace(cwd=moved(order.cwd), command=command, options=options)


def copy_workspace(source: str, target: str, apart: Iterable[str]) -> None:
    """Copy a tree, with shared blocks where the file system can, but not what is `apart`. Raises `NoPreview`."""
    copying = _Copying(source, target, frozenset(apart))
    copying.copy()


class _Copying:
    """One copy of a workspace, with its limits. Nothing about the original changes, unlike with `copy_tree`."""

    def __init__(self, source: str, target: str, apart: frozenset[str]) -> None:
        self._source = source
        self._target = target
        self._apart = apart
        self._until = time.monotonic() + LONGEST_COPY_S
        self._files = self._bytes = 0
        self._links: Links = {}

    def copy(self) -> None:
        make_alike(self._source, self._target, self._copy_file, is_wanted=self._is_wanted)

    def _is_wanted(self, entry: TreeEntry) -> bool:
        path = os.path.join(self._source, entry.name)
        if path in self._apart:
            return False
        self._count(path)
        return True

    def _copy_file(self, entry: TreeEntry) -> None:
        path, found = os.path.join(self._source, entry.name), os.lstat(entry.source)
        self._bytes += found.st_size if stat.S_ISREG(found.st_mode) else 0
        if self._bytes > MOST_COPIED_BYTES:
            raise NoPreview(f"the workspace has more than {MOST_COPIED_BYTES >> 30} GiB to copy")
        if stat.S_ISREG(found.st_mode) and not os.access(entry.source, os.R_OK):
            # Copying it anyway would need a change of its mode.
            raise NoPreview(f"the workspace cannot be copied: {path} cannot be read")
        if stat.S_ISBLK(found.st_mode) or stat.S_ISCHR(found.st_mode):
            raise NoPreview(f"the workspace cannot be copied: {path} is a device")
        copy_node(entry.source, entry.target, self._links, os.path.join(self._target, entry.name))

    def _count(self, path: str) -> None:
        self._files += 1
        if self._files > MOST_COPIED:
            raise NoPreview(f"the workspace has more than {MOST_COPIED:,} files to copy")
        if time.monotonic() > self._until:
            raise NoPreview(f"copying the workspace takes more than {LONGEST_COPY_S:.0f} seconds (it came to {path})")


class _ConfinedHost(Host):
    """The host of a command in a sandbox. Whatever the command leaves behind becomes its child, and is ended."""

    def __init__(self, order: PreviewStart, connection: socket.socket, sandboxes: Sandboxes, *, copies: bool) -> None:
        super().__init__(order, connection)
        self.way = "copy" if copies else "read-only"
        self._sandboxes = sandboxes
        self._copies = copies
        self._ended: int | None = None

    def _report(self) -> dict[str, Any]:
        syscalls.prctl(_SET_CHILD_SUBREAPER, 1)
        # The host's own directory, not that of its maker: this outlives the copy.
        os.chdir(self._order.cwd)
        readable = (*self._options["readable"], *(() if self._copies else self._options["inside"]))
        terminal = (self._order.terminal, "/dev/tty") if self._order.terminal is not None else ()
        store = os.path.realpath(self._store)
        own = (os.path.join(store, "tmp"), *((os.path.join(store, COPY),) if self._copies else ()))
        profile = Profile(readable, (*readable, *own), (*own, *terminal), network=False, processes=True)
        restrict = self._sandboxes.restriction(profile, watched=self._copies)
        wake = wakeups()
        apart = self._options["workspace"] if self._copies else None
        told = SeccompNotifications(-1, (*profile.write, os.devnull, "/dev/tty"), apart=apart)

        def answer(listener: int) -> None:
            told.listener = listener
            told.answer()

        pid, told.listener = self._order.command.start(restrict, answer=answer)
        self._connection.send(STARTED)
        self._connection.close()
        return self._watch(pid, told, wake)

    def _watch(self, pid: int, told: SeccompNotifications, wake: int) -> dict[str, Any]:
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        poll.register(told.listener, select.POLLIN)
        over, check_at = "", time.monotonic() + CHECK_S
        while self._ended is None:
            for fd, event in poll.poll(100):
                if fd == wake:
                    self._reap(wake, pid)
                elif not (event & select.POLLIN and told.answer()):
                    poll.unregister(fd)
            if not over and time.monotonic() > check_at:
                over, check_at = self._over(), time.monotonic() + CHECK_S
            if over:
                _end_children()
        return self._made(over, told)

    def _reap(self, wake: int, pid: int) -> None:
        with suppress(BlockingIOError):
            os.read(wake, 4096)
        with suppress(ChildProcessError):
            while True:
                ended, status = os.waitpid(-1, os.WNOHANG)
                if not ended:
                    return
                if ended == pid:
                    self._ended = status

    def _made(self, over: str, told: SeccompNotifications) -> dict[str, Any]:
        _answer_for(SETTLE_S, told)
        left = [line for line in map(command_line, _children()) if line][:_MOST_LEFT] if not over else []
        with suppress(ChildProcessError):
            while True:
                _end_children()
                os.waitpid(-1, 0)
        status = self._ended or 0
        found = told.report(b"") or {"attempts": [], "more": 0}
        refused = [(each["what"], each["subject"]) for each in found["attempts"]]
        return {
            "code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            "over": over,
            "refused": refused,
            "more_refused": found["more"],
            "left": left,
        }


def _answer_for(seconds: float, told: SeccompNotifications) -> None:
    """Let processes that were just forked become the programs that they start, to name them."""
    until, poll = time.monotonic() + seconds, select.poll()
    poll.register(told.listener, select.POLLIN)
    while _children() and (left := until - time.monotonic()) > 0:
        if poll.poll(int(left * 1000) + 1) and not told.answer():
            return


def _children() -> list[int]:
    """Return the pids of the children of this process."""
    found, own = [], os.getpid()
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                # The name of a program may contain anything but ends with the last parenthesis.
                if int(file.read().rpartition(b")")[2].split()[1]) == own:
                    found.append(int(name))
    return found


def _end_children() -> None:
    for pid in _children():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def is_copy(store: str) -> bool:
    """True if the command of a preview ran in a copy of its workspace."""
    return os.path.exists(os.path.join(store, BASE))


def read_copy(store: str) -> Plan:
    """Return what the command changed in its copy, and write it into the store. The second time it is only loaded.

    Raises `PreviewTooLarge`, or `OSError` and `ValueError` if it cannot be read.
    """
    if os.path.exists(os.path.join(store, "plan.json")):
        return load_plan(store)
    found = run_files.read_json(os.path.join(store, BASE))
    reader = _CopyReader({name: Stamp(*each) for name, each in found["base"].items()}, found["apart"])
    reader.read_copy(os.path.join(store, COPY), found["workspace"])
    plan = reader.plan(int(found["began_ns"]))
    leaks = [path for path, new in _new_files(plan) if _names_copy(new, os.fsencode(os.path.join(store, COPY)))]
    run_files.write_json(os.path.join(store, LEAKS), leaks)
    save_meanings(store, plan)
    save_plan(store, plan)
    return plan


def leaks_of(store: str) -> list[str]:
    """Return the changed files that have the path of the copy in them, where a real run would write another path."""
    found: list[str] = run_files.read_json(os.path.join(store, LEAKS)) if is_copy(store) else []
    return found


def _new_files(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield the paths of new and changed files, each with the place of its content."""
    for change in plan.changes:
        if change.content and change.new_inside is None:
            yield change.path, change.content
        for name in change.new_inside or {}:
            yield os.path.join(change.path, name), os.path.join(change.content, name)


def _names_copy(path: str, copy: bytes) -> bool:
    """True if a file has this path in it, or a symbolic link leads there."""
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        return copy in os.fsencode(os.readlink(path))
    if not stat.S_ISREG(mode):
        return False
    with open(open_file(path, os.O_RDONLY), "rb") as file:
        before = b""
        while piece := file.read(_CHUNK):
            if copy in before + piece:
                return True
            before = piece[-len(copy) :]
    return False


class _CopyReader(ChangeReader):
    """Compares a copy with what was in it when the command started: only that can be a change of the command."""

    def __init__(self, base: dict[str, Stamp], apart: Iterable[str]) -> None:
        super().__init__()
        self._base = base
        self._apart = frozenset(apart)
        self._names_in: dict[str, list[str]] = {}
        for name in base:
            directory, _, own = name.rpartition("/")
            self._names_in.setdefault(directory, []).append(own)

    def read_copy(self, copy: str, workspace: str) -> None:
        """Read the whole copy."""
        pending = [""]
        while pending:
            below = pending.pop()
            new, real = os.path.join(copy, below).rstrip("/"), os.path.join(workspace, below).rstrip("/")
            if not self._read_state(new, real, is_top=False):
                continue
            names = set()
            for entry in entries_of(new):
                names.add(entry.name)
                inside = f"{below}/{entry.name}" if below else entry.name
                if self._entry(entry.path, os.path.join(real, entry.name), self._base.get(inside)):
                    pending.append(inside)
            for name in sorted(set(self._names_in.get(below, ())) - names):
                path = os.path.join(real, name)
                if (before := stamp(path)) is not None:
                    self._delete(path, before)

    def _entry(self, new: str, real: str, known: Stamp | None) -> bool:
        """Note how one entry changed. True: it is a directory as before, and what is in it is compared."""
        after, before = present_stamp(new), stamp(real)
        if real in self._apart:
            raise ValueError(f"it made {real}, which its copy leaves out")
        if before is not None and before.is_directory and after.is_directory:
            return True
        if after == known:
            return False
        is_same = known is not None and known.inode == after.inode
        if is_same and before is not None and known is not None and known[1:3] == after[1:3]:
            # The copy of a file of somebody else belongs to this user, who has not changed that.
            after = after._replace(uid=before.uid, gid=before.gid)
        self._file(new, real, before, after, copied_up=is_same)
        return False
