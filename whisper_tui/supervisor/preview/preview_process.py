"""The processes of a preview: a command in namespaces of its own, on a view of the files.

keeper, the *host* (the leader that the keeper watches), the *init* (PID 1 of the view), the command

The host keeps the real view of the files, and writes the report. The init mounts the view, watches the command, and
ends whatever it leaves behind. If one of them is killed, so are all below it, and there is no report: nobody knows how
far the command came, so that its changes are not those of the whole command.
"""

import errno
import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from whisper_tui.changes.file_trees import remove_tree
from whisper_tui.supervisor.keeper.limited_start import PreviewedCommand
from whisper_tui.supervisor.preview import draft_layers
from whisper_tui.supervisor.preview.overlay_mounts import (
    NODEV,
    NOEXEC,
    NOSUID,
    PRIVATE,
    RDONLY,
    REC,
    TERMINAL,
    Layer,
    NoPreview,
    build,
    make_places,
    mount,
    outermost,
    plan_layers,
    prepare,
    save_outside,
    time_of_file_system,
    why_no_namespaces,
    write_layers,
    write_report,
)
from whisper_tui.supervisor.preview.waiting_opens import WaitingOpens
from whisper_tui.supervisor.preview.watched_calls import (
    BlockedTargets,
    CallWatcher,
    MissingDevices,
    NameServer,
    close_network,
    watching_filter,
)
from whisper_tui.system import syscalls

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
SET_PDEATHSIG, _CAPBSET_DROP = 1, 24
_JOIN_SESSION_KEYRING = 1
_KEPT_CAPABILITIES = frozenset({0, 1, 3, 4, 5, 6, 7, 8, 31})
"""Of root in the view: owners, modes, links, signals and users. No mounts, devices, modules or network."""
_MOST_CAPABILITIES = 64
STARTED, _MAP_USERS = b"started", b"map"
WAS_KILLED = "a process of its view was killed"
_ALL_USERS = "0 0 4294967295"
PATIENCE_S = 2.0
"""Seconds after which a command is ended that tried to reach another machine: pip retries for 8 s, npm for minutes."""
CHECK_S = 1.0
"""Seconds between two checks of the time and of the space that a preview takes."""
_BUSY_S, _BUSY_PAUSE_S = 5.0, 0.005
"""Seconds within which the overlays of a draft are free again, and between two tries."""
_LOOKS = 100
"""Looks at a process without words before it counts as one that hides them."""
_MOST_LEFT, _LONGEST_LINE = 50, 200


class PreviewStart(NamedTuple):
    """A command to start in a view of the files."""

    store: str
    """The directory for the view and for what the command changes. It does not exist yet."""
    options: dict[str, Any]
    """As `executor.PreviewOptions` explains them; `instead`: the better ways that do not work, with their reasons."""
    cwd: str
    terminal: str | None
    """The device of its terminal. None: it has none."""
    command: PreviewedCommand
    input: int = -1
    """The keeper's end of its input. -1: it has none."""


def start(order: PreviewStart) -> int:
    """Start a command on overlays of the files. Returns the pid of the host. Raises `NoPreview`, `OSError`."""
    if order.options.get("draft"):
        return _start_in_draft(order)
    first: NoPreview | None = None
    for memory in (False, True):
        try:
            return _start(order, memory=memory)
        except NoPreview as problem:
            remove_tree(order.store)
            first = first or problem
    because = why_no_namespaces()
    raise NoPreview(f"{first} ({because})" if because else str(first))


def _start(order: PreviewStart, *, memory: bool) -> int:
    if memory and os.geteuid() == 0:
        raise NoPreview("root has no view in memory")
    os.mkdir(order.store, 0o700)
    began = time_of_file_system(order.store)
    layers = [] if memory else plan_layers(order.store, order.options["roots"], memory=False)
    prepare(order.store, layers, began, memory=memory)
    return fork_host(lambda connection: _OverlayHost(order, connection, layers, began, memory=memory))


def _start_in_draft(order: PreviewStart) -> int:
    """Start a command on the overlays of a draft, once no other one is on them. Raises as `start`."""
    draft, until = order.options["draft"], time.monotonic() + _BUSY_S
    os.mkdir(order.store, 0o700)
    make_places(order.store)
    # The host and the init of its view have duplicates of it: the kernel lets go when both are gone.
    lock = draft_layers.locked(draft)
    try:
        layers = draft_layers.layers_of(draft, order.options["roots"])
        began = draft_layers.begin(draft, os.path.basename(os.path.dirname(order.store)))
        while True:
            try:
                return fork_host(lambda connection: _OverlayHost(order, connection, layers, began, memory=False))
            except NoPreview as problem:
                # The kernel takes the overlays of the last command down a moment after that has ended.
                if not str(problem).endswith(os.strerror(errno.EBUSY)) or time.monotonic() > until:
                    raise
                time.sleep(_BUSY_PAUSE_S)
    finally:
        os.close(lock)


def fork_host(make: Callable[[socket.socket], "Host"]) -> int:
    """Fork a host, and wait until the command has started. Returns the pid of the host. Raises the command's error.

    `make` is called in the new process, with the connection on which it reports the start.
    """
    ours, theirs = socket.socketpair()
    keeper = os.getpid()
    with ours, theirs:
        pid = os.fork()
        if not pid:
            try:
                ours.close()
                make(theirs).serve(keeper)
            finally:
                os._exit(1)
        theirs.close()
        try:
            _wait_for_start(ours, pid)
        except BaseException:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
    return pid


def _wait_for_start(connection: socket.socket, pid: int) -> None:
    """Wait until the command has started. Raises its error."""
    told = b""
    while piece := connection.recv(65_536):
        told += piece
        if told == _MAP_USERS:
            # Only a process outside of the new user namespace may map all users to themselves.
            for name in ("uid_map", "gid_map"):
                with open(f"/proc/{pid}/{name}", "w", encoding="ascii") as file:
                    file.write(_ALL_USERS)
            connection.send(b"!")
            told = b""
    if told == STARTED:
        return
    try:
        problem = json.loads(told)
    except ValueError:
        raise NoPreview(WAS_KILLED) from None
    if "clause" in problem:
        raise NoPreview(problem["clause"])
    if problem["errno"] is None:
        raise ValueError(problem["text"])
    raise OSError(problem["errno"], os.strerror(problem["errno"]))


class Host:
    """The process that the keeper watches. It sees the real files, and ends as the command has ended."""

    way = ""
    """The way in which it previews, for the report."""

    def __init__(self, order: PreviewStart, connection: socket.socket) -> None:
        self._order = order
        self._store = order.store
        self._options = order.options
        self._connection = connection
        self._began_at = time.monotonic()
        if order.input >= 0:
            # While any process holds it open, the command never finds the end of its input.
            os.close(order.input)
        # Opened before there are namespaces: root's view hides the store, and is read-only around it.
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        self._store_fd = os.open(order.store, flags)
        self._space_fd = os.open(order.options.get("draft") or order.store, flags)

    def serve(self, keeper: int) -> None:
        """Be the host of a keeper. Never returns."""
        status = -int(signal.SIGKILL)  # Without a report, it ends as a command that was killed.
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
                # The command is told; its host has to outlive it.
                signal.signal(number, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            syscalls.prctl(SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != keeper:
                # It was killed before the signal was set, which would never come.
                raise NoPreview(WAS_KILLED)
            report = self._report()
            seconds = time.monotonic() - self._began_at
            report |= {"way": self.way, "seconds": seconds, "instead": self._options.get("instead", ())}
            write_report(f"/proc/self/fd/{self._store_fd}", report)
            status = _status_of(report)
        except BaseException as error:  # noqa: BLE001 (whatever it is, the keeper is told)
            with suppress(OSError):
                self._connection.send(error_message(error))
        finally:
            if status < 0:
                _die_of(-status)
            os._exit(status & 0xFF)

    def _report(self) -> dict[str, Any]:
        """Have the command run to its end. Returns what happened."""
        raise NotImplementedError

    def _over(self) -> str:
        """Return why the command has to be ended now. Empty: it need not."""
        timeout, limit = self._options.get("timeout"), self._options.get("max_bytes")
        if timeout is not None and time.monotonic() - self._began_at > timeout:
            return "time"
        return "space" if limit is not None and bytes_below(f"/proc/self/fd/{self._space_fd}") > limit else ""

    def _init_of(self, pid: int) -> int:
        """Return the pid of the init of the view, by the child of this process that has made it."""
        return pid

    def _wait(self, pid: int, reading: int) -> dict[str, Any]:
        """Wait for the end of the init of the view. Returns its report. Raises `NoPreview` if it was killed."""
        raw, over = b"", ""
        while True:
            if select.select([reading], [], [], CHECK_S)[0]:
                piece = os.read(reading, 65_536)
                if not piece:
                    break
                raw += piece
            elif not over and (over := self._over()):
                with suppress(ProcessLookupError):
                    os.kill(self._init_of(pid), signal.SIGUSR1)
        os.waitpid(pid, 0)
        try:
            report: dict[str, Any] = json.loads(raw)
        except ValueError:
            raise NoPreview(WAS_KILLED) from None
        return {**report, "over": over or report.get("over", "")}


class _OverlayHost(Host):
    """The host of a command on overlays that this process mounts."""

    way = "overlay"

    def __init__(
        self, order: PreviewStart, connection: socket.socket, layers: list[Layer], began: int, *, memory: bool
    ) -> None:
        super().__init__(order, connection)
        self._layers = layers
        self._began = began
        self._memory = memory
        self._uppers: dict[str, str] = {}
        """As `build` returns them, if this process mounts the view."""

    def _report(self) -> dict[str, Any]:
        self._enter_namespaces()
        reading, writing = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(reading)
            Init(self._order, self._connection, writing, self._uppers).serve([] if os.geteuid() == 0 else self._layers)
        os.close(writing)
        self._connection.close()
        report = self._wait(pid, reading)
        if self._memory:
            save_outside(self._store)
        return report

    def _enter_namespaces(self) -> None:
        other = NEWPID | NEWIPC | NEWUTS | (0 if self._options.get("network") else NEWNET)
        if os.geteuid() == 0:
            _unshare(NEWNS)
            mount(None, "/", None, REC | PRIVATE)
            # Root's overlays need trusted attributes, which a user namespace does not have.
            self._uppers = build_for(self._order, self._layers)
            _unshare(NEWUSER | NEWNS | other)
            self._connection.send(_MAP_USERS)
            self._connection.recv(1)
            os.setuid(0)
            os.setgid(0)
            return
        user, group = os.geteuid(), os.getegid()
        _unshare(NEWUSER | NEWNS | other)
        for name, content in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(content)
        mount(None, "/", None, REC | PRIVATE)
        if self._memory:
            os.mkdir(f"{self._store}/t", 0o700)
            mount("tmpfs", f"{self._store}/t", "tmpfs", NOSUID | NODEV, "mode=700")
            self._layers = plan_layers(self._store, outermost(self._options["roots"]), memory=True)
            write_layers(self._store, self._layers, self._began, memory=True)


def build_for(order: PreviewStart, layers: Sequence[Layer]) -> dict[str, str]:
    """Mount the view of a command, and return its upper directories as `build` does. Raises `NoPreview`, `OSError`."""
    hide, draft = order.options.get("hide", ()), order.options.get("draft", "")
    return build(order.store, layers, (*hide, *filter(None, [draft])), order.terminal, lasting=bool(draft))


class Init:
    """PID 1 of the view: nothing outlives it."""

    def __init__(self, order: PreviewStart, connection: socket.socket, result: int, uppers: Mapping[str, str]) -> None:
        """`uppers`: the directories that hold the changes, by those that they cover, if the view is mounted already."""
        self._order = order
        self._uppers = uppers
        self._options = order.options
        self._connection = connection
        self._result = result
        self._targets = BlockedTargets()
        self._ended: int | None = None
        self._over = ""
        """Why the command was ended early. Empty: it was not."""

    def serve(self, layers: Sequence[Layer]) -> None:
        """Be the init. `layers`: those to mount here; none if they are mounted already. Never returns."""
        status = 1
        try:
            report = self._serve(layers)
            os.write(self._result, json.dumps(report).encode())
            status = 0
        except BaseException as error:  # noqa: BLE001 (whatever it is, the keeper is told)
            with suppress(OSError):
                self._connection.send(error_message(error))
        finally:
            os._exit(status)

    def _serve(self, layers: Sequence[Layer]) -> dict[str, Any]:
        syscalls.prctl(SET_PDEATHSIG, signal.SIGKILL)
        if _has_no_reader(self._result):
            raise NoPreview(WAS_KILLED)  # The host was, before the signal was set.
        self._mount(layers)
        self._devices = MissingDevices()
        os.chdir(self._order.cwd)
        server = self._network()
        wake = wakeups()
        pid, listener = self._order.command.start(self._restrict, TERMINAL)
        self._connection.send(STARTED)
        self._connection.close()
        return self._watch(pid, CallWatcher(listener, self._targets, self._uppers), server, wake)

    def _mount(self, layers: Sequence[Layer]) -> None:
        # The host keeps its own /proc, and an ordinary user's host the real files.
        _unshare(NEWNS)
        if layers:
            self._uppers = build_for(self._order, layers)
        flags = NOSUID | NODEV | NOEXEC | (RDONLY if os.geteuid() == 0 else 0)
        # As root even /proc/sys could be written.
        mount("proc", "/proc", "proc", flags)

    def _network(self) -> NameServer | None:
        """Close the network, unless it is open to the command. Returns what answers questions about names."""
        if self._options.get("network"):
            return None
        close_network()
        return NameServer(self._targets)

    def _restrict(self) -> int:
        """Take from the command, in its own process, what it must not have. Returns the descriptor of its calls."""
        syscalls.call("keyctl", _JOIN_SESSION_KEYRING, None)
        if os.geteuid() == 0:
            for capability in range(_MOST_CAPABILITIES):
                if capability not in _KEPT_CAPABILITIES:
                    with suppress(OSError):
                        syscalls.prctl(_CAPBSET_DROP, capability)
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        if os.geteuid() != 0:
            syscalls.drop_capabilities()
        return watching_filter(closed=not self._options.get("network")).install()

    def _watch(self, pid: int, watcher: CallWatcher, server: NameServer | None, wake: int) -> dict[str, Any]:
        poll = select.poll()
        sockets = {each.fileno(): each for each in server.sockets} if server is not None else {}
        for fd in (wake, watcher.listener, *sockets):
            poll.register(fd, select.POLLIN)
        until: float | None = None
        opens = WaitingOpens(watcher)
        while self._ended is None:
            opens.look_if_due()
            if until is None and self._targets.outside and not self._options.get("network"):
                until = time.monotonic() + PATIENCE_S
            if until is not None and time.monotonic() > until:
                self._over, until = "network", float("inf")
                _end_all()
            for fd, event in poll.poll(opens.milliseconds_left()):
                if fd == wake:
                    self._reap(wake, pid)
                elif fd in sockets and server is not None:
                    server.answer(sockets[fd])
                elif event & select.POLLIN:
                    watcher.answer()
                else:
                    poll.unregister(fd)
        return self._report(opens)

    def _reap(self, wake: int, pid: int) -> None:
        with suppress(BlockingIOError):
            if signal.SIGUSR1 in os.read(wake, 4096):
                # The host knows if it was the space instead. The command can send that signal as well.
                self._over = "time"
                _end_all()
        while True:
            try:
                ended, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not ended:
                return
            if ended == pid:
                self._ended = status

    def _report(self, opens: WaitingOpens) -> dict[str, Any]:
        status = self._ended or 0
        # What was ended together with its parent was not left behind.
        left = _command_lines() if not self._over else []
        opens.look()
        _end_all()
        with suppress(ChildProcessError):
            while True:
                os.wait()
        return {
            "code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            "over": self._over,
            "network": self._targets.listed("network"),
            "sockets": self._targets.listed("socket"),
            "devices": self._devices.tried(),
            "left": left,
        }


def _has_no_reader(pipe: int) -> bool:
    poll = select.poll()
    poll.register(pipe, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _status_of(report: dict[str, Any]) -> int:
    """Return the exit code of the command, or the negative number of the signal that ended it."""
    code, number = report.get("code"), report.get("signal")
    return int(code) if code is not None else -int(number or signal.SIGKILL)


def wakeups() -> int:
    """Return a descriptor that has the number of each signal about a child, or about a limit."""
    reading, writing = os.pipe()
    for fd in (reading, writing):
        os.set_blocking(fd, False)
    for number in (signal.SIGCHLD, signal.SIGUSR1):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    return reading


def _die_of(number: int) -> None:
    """End this process by a signal, as the command has ended."""
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)


def _unshare(flags: int) -> None:
    try:
        syscalls.call("unshare", flags)
    except OSError as error:
        raise NoPreview(f"the system gives it no namespaces: {error.strerror}") from None


def error_message(error: BaseException) -> bytes:
    """Return an error as a message for the keeper."""
    if isinstance(error, NoPreview):
        return json.dumps({"clause": str(error)}).encode()
    if isinstance(error, OSError):
        return json.dumps({"errno": error.errno or 5}).encode()
    if isinstance(error, ValueError):
        return json.dumps({"errno": None, "text": str(error)}).encode()
    return json.dumps({"clause": f"{type(error).__name__}: {error}"}).encode()


def _end_all() -> None:
    """Kill every process of this PID namespace but this one."""
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)


def _command_lines() -> list[str]:
    """Return the command lines of the processes that are left."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdecimal() and name != "1")
    return [line for line in map(command_line, pids) if line][:_MOST_LEFT]


def command_line(pid: int) -> str:
    """Return the beginning of the command line of a process, or its name if it shows none. Empty: it has ended."""
    with suppress(OSError):
        for _ in range(_LOOKS):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read(4096).replace(b"\0", b" ").decode(errors="replace").strip()
            if line:
                return line[:_LONGEST_LINE]
            with open(f"/proc/{pid}/stat", "rb") as file:
                # The name of a program may contain anything but ends with the last parenthesis.
                name, _, rest = file.read().partition(b"(")[2].rpartition(b")")
            if rest.split()[:1] in ([b"Z"], [b"X"]):
                return ""
            # A process that becomes another program shows no words for a moment; one can also erase them for good.
            os.sched_yield()
        return f"[{name.decode(errors='replace')}]"
    return ""


def bytes_below(store: str) -> int:
    """Return about how many bytes of the disk the changes take."""
    total, left = 0, [store]
    while left:
        with suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)
    return total
