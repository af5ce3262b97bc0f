"""The processes of a preview: a command in namespaces of its own, on a view of the files.

keeper, the *host* (the leader that the keeper watches), the *init* (PID 1 of the view), the command

The host keeps the real view of the files, and writes the report. The init mounts the view, watches the command, and
ends whatever it leaves behind. If one of them is killed, so are all below it.
"""

import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from whisper_tui.supervisor.keeper import syscalls
from whisper_tui.supervisor.preview.file_trees import remove_tree
from whisper_tui.supervisor.preview.overlay_diff import save_outside
from whisper_tui.supervisor.preview.overlay_mounts import (
    NODEV,
    NOEXEC,
    NOSUID,
    PRIVATE,
    RDONLY,
    REC,
    Layer,
    NoPreview,
    build,
    mount,
    outermost,
    plan_layers,
    prepare,
    time_of_file_system,
    write_layers,
    write_report,
)
from whisper_tui.supervisor.preview.watched_calls import (
    BlockedTargets,
    CallWatcher,
    NameServer,
    close_network,
    watching_filter,
)

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_SET_PDEATHSIG, _CAPBSET_DROP = 1, 24
_JOIN_SESSION_KEYRING = 1
_KEPT_CAPABILITIES = frozenset({0, 1, 3, 4, 5, 6, 7, 8, 31})
"""Of root in the view: owners, modes, links, signals and users. No mounts, devices, modules or network."""
_MOST_CAPABILITIES = 64
_STARTED, _MAP_USERS = b"started", b"map"
_ALL_USERS = "0 0 4294967295"
PATIENCE_S = 2.0
"""Seconds after which a command is ended that tried to reach another machine: pip retries for 8 s, npm for minutes."""
_SIZE_CHECK_S = 1.0
_MOST_LEFT, _LONGEST_LINE = 50, 200

Run = Callable[[Callable[[], int]], tuple[int, int]]
"""Starts the command; its argument is called in the new process just before, and returns a descriptor to pass back.

Returns the pid and that descriptor. Raises `OSError`, `ValueError`.
"""


class PreviewStart(NamedTuple):
    """A command to start in a view of the files."""

    store: str
    """The directory for the view and for what the command changes. It does not exist yet."""
    options: dict[str, Any]
    """`roots`, `hide`, `network` and `max_bytes`, as `executor.PreviewOptions` explains them."""
    cwd: str
    terminal: str | None
    """The device of its terminal. None: it has none."""
    run: Run


def start(order: PreviewStart) -> int:
    """Start a command in a view of the files. Returns the pid of the host. Raises `NoPreview`, `OSError`."""
    first: NoPreview | None = None
    for memory in (False, True):
        try:
            return _start(order, memory=memory)
        except NoPreview as problem:
            remove_tree(order.store)
            first = first or problem
    raise first or NoPreview("it was not tried")


def _start(order: PreviewStart, *, memory: bool) -> int:
    if memory and os.geteuid() == 0:
        raise NoPreview("root has no view in memory")
    os.mkdir(order.store, 0o700)
    began = time_of_file_system(order.store)
    layers = [] if memory else plan_layers(order.store, order.options["roots"], memory=False)
    prepare(order.store, layers, began, memory=memory)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        pid = os.fork()
        if not pid:
            ours.close()
            _Host(order, theirs, layers, began, memory=memory).serve()
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
    if told == _STARTED:
        return
    try:
        problem = json.loads(told)
    except ValueError:
        raise NoPreview("the process that makes its view has ended") from None
    if "clause" in problem:
        raise NoPreview(problem["clause"])
    if problem["errno"] is None:
        raise ValueError(problem["text"])
    raise OSError(problem["errno"], os.strerror(problem["errno"]))


class _Host:
    """The process that the keeper watches. It sees the real files, and ends as the command has ended."""

    def __init__(
        self, order: PreviewStart, connection: socket.socket, layers: list[Layer], began: int, *, memory: bool
    ) -> None:
        self._order = order
        self._store = order.store
        self._options = order.options
        self._connection = connection
        self._layers = layers
        self._began = began
        self._memory = memory
        # Opened before there are namespaces: root's view hides the store, and is read-only around it.
        self._store_fd = os.open(order.store, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def serve(self) -> None:
        """Be the host. Never returns."""
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
                # The command is told; its host has to outlive it.
                signal.signal(number, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            syscalls.prctl(_SET_PDEATHSIG, signal.SIGKILL)
            status = self._serve()
        except BaseException as error:  # noqa: BLE001 (whatever it is, the keeper is told)
            with suppress(OSError):
                self._connection.send(_told(error))
        finally:
            if status < 0:
                _die_of(-status)
            os._exit(status & 0xFF)

    def _serve(self) -> int:
        began = time.monotonic()
        self._enter_namespaces()
        reading, writing = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(reading)
            _Init(self._order, self._connection, writing).serve([] if os.geteuid() == 0 else self._layers)
        os.close(writing)
        self._connection.close()
        report, over = self._wait(pid, reading)
        if self._memory:
            save_outside(self._store)
        report |= {"seconds": time.monotonic() - began, "over": over or report.get("over", "")}
        write_report(f"/proc/self/fd/{self._store_fd}", report)
        code, number = report.get("code"), report.get("signal")
        return int(code) if code is not None else -int(number or signal.SIGKILL)

    def _enter_namespaces(self) -> None:
        other = NEWPID | NEWIPC | NEWUTS | (0 if self._options.get("network") else NEWNET)
        if os.geteuid() == 0:
            _unshare(NEWNS)
            mount(None, "/", None, REC | PRIVATE)
            # Root's overlays need trusted attributes, which a user namespace does not have.
            build(self._store, self._layers, self._options.get("hide", ()), self._order.terminal)
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

    def _wait(self, pid: int, reading: int) -> tuple[dict[str, Any], str]:
        """Wait for the end of the view. Returns its report, and why it was ended early."""
        raw, over, limit = b"", "", self._options.get("max_bytes")
        while True:
            if select.select([reading], [], [], _SIZE_CHECK_S)[0]:
                piece = os.read(reading, 65_536)
                if not piece:
                    break
                raw += piece
            elif limit is not None and not over and _bytes_below(f"/proc/self/fd/{self._store_fd}") > limit:
                over = "space"
                os.kill(pid, signal.SIGUSR1)
        os.waitpid(pid, 0)
        try:
            return json.loads(raw), over
        except ValueError:
            return {"code": None, "signal": int(signal.SIGKILL)}, over


class _Init:
    """PID 1 of the view: nothing outlives it."""

    def __init__(self, order: PreviewStart, connection: socket.socket, result: int) -> None:
        self._order = order
        self._options = order.options
        self._connection = connection
        self._result = result
        self._targets = BlockedTargets()
        self._ended: int | None = None
        self._stopped = False

    def serve(self, layers: Sequence[Layer]) -> None:
        """Be the init. `layers`: those to mount here; none if they are mounted already. Never returns."""
        status = 1
        try:
            report = self._serve(layers)
            os.write(self._result, json.dumps(report).encode())
            status = 0
        except BaseException as error:  # noqa: BLE001 (whatever it is, the keeper is told)
            with suppress(OSError):
                self._connection.send(_told(error))
        finally:
            os._exit(status)

    def _serve(self, layers: Sequence[Layer]) -> dict[str, Any]:
        syscalls.prctl(_SET_PDEATHSIG, signal.SIGKILL)
        # The host keeps its own /proc, and an ordinary user's host the real files.
        _unshare(NEWNS)
        if layers:
            build(self._order.store, layers, self._options.get("hide", ()), self._order.terminal)
        flags = NOSUID | NODEV | NOEXEC | (RDONLY if os.geteuid() == 0 else 0)
        # As root even /proc/sys could be written.
        mount("proc", "/proc", "proc", flags)
        os.chdir(self._order.cwd)
        server = None
        if not self._options.get("network"):
            close_network()
            server = NameServer(self._targets)
        wake = self._wake()
        pid, listener = self._order.run(self._restrict)
        self._connection.send(_STARTED)
        self._connection.close()
        return self._watch(pid, CallWatcher(listener, self._targets), server, wake)

    def _wake(self) -> int:
        """Return a descriptor that has the number of each signal."""
        reading, writing = os.pipe()
        for fd in (reading, writing):
            os.set_blocking(fd, False)
        for number in (signal.SIGCHLD, signal.SIGUSR1):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        return reading

    def _restrict(self) -> int:
        """Take from the command, in its own process, what it must not have. Returns the descriptor of its calls."""
        syscalls.call("keyctl", _JOIN_SESSION_KEYRING, None)
        if os.geteuid() == 0:
            for capability in range(_MOST_CAPABILITIES):
                if capability not in _KEPT_CAPABILITIES:
                    with suppress(OSError):
                        syscalls.prctl(_CAPBSET_DROP, capability)
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        return watching_filter().install()

    def _watch(self, pid: int, watcher: CallWatcher, server: NameServer | None, wake: int) -> dict[str, Any]:
        poll = select.poll()
        sockets = {each.fileno(): each for each in server.sockets} if server is not None else {}
        for fd in (wake, watcher.listener, *sockets):
            poll.register(fd, select.POLLIN)
        until: float | None = None
        over = ""
        while self._ended is None:
            if until is None and self._targets.outside and server is not None:
                until = time.monotonic() + PATIENCE_S
            if until is not None and time.monotonic() > until:
                over, until = "network", float("inf")
                _end_all()
            for fd, event in poll.poll(None if until is None else 100):
                if fd == wake:
                    self._reap(wake, pid)
                elif fd in sockets and server is not None:
                    server.answer(sockets[fd])
                elif event & select.POLLIN:
                    watcher.answer()
                else:
                    poll.unregister(fd)
        return self._report(over)

    def _reap(self, wake: int, pid: int) -> None:
        with suppress(BlockingIOError):
            if signal.SIGUSR1 in os.read(wake, 4096):
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

    def _report(self, over: str) -> dict[str, Any]:
        status = self._ended or 0
        left = _command_lines()
        _end_all()
        with suppress(ChildProcessError):
            while True:
                os.wait()
        return {
            "code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            "over": over,
            "network": self._targets.listed("network"),
            "sockets": self._targets.listed("socket"),
            "left": left,
        }


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


def _told(error: BaseException) -> bytes:
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
    found: list[str] = []
    for name in os.listdir("/proc"):
        if name.isdecimal() and name != "1" and len(found) < _MOST_LEFT:
            with suppress(OSError), open(f"/proc/{name}/cmdline", "rb") as file:
                line = file.read(4096).replace(b"\0", b" ").decode(errors="replace").strip()
                if line:
                    found.append(line[:_LONGEST_LINE])
    return found


def _bytes_below(store: str) -> int:
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
