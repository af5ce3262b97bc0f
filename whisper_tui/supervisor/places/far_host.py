"""The host process at a place: it starts keepers, answers one near end at a time, and outlives every connection.

It runs there from an archive of this package, with nothing but Python.
"""

import fcntl
import json
import os
import secrets
import selectors
import signal
import socket
import stat
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any, Literal

from whisper_tui.supervisor.places.far_agents import FarAgents, is_ours, listening
from whisper_tui.supervisor.places.far_files import LOGIN_S, LoginEnvironment
from whisper_tui.supervisor.places.far_news import POLL_S, FilePart, FileWatch, NewsOfRun, Outbox, Parts
from whisper_tui.supervisor.places.far_runs import RUNS, Failed, FarLoop, FarRuns, remove_old, remove_old_of_others
from whisper_tui.supervisor.places.frames import BadFrame, FrameReader, FrameView, encoded
from whisper_tui.system import run_files
from whisper_tui.system.processes import boot_id

PROTOCOL = 1
LOCK, SOCKET, INSTANCE = "host.lock", "host.sock", "instance"
LOCKED = 75
"""The exit code if there is another host process for the directory."""
HostMode = Literal["serve", "stay"]
"""How a host process is started: it ends where there is another one, or waits for its end."""
TRIES_S = 1.0
"""Seconds between two attempts to follow another host process."""
IDLE_S = 600.0
"""Seconds without a connection and without a run after which the host ends."""
REMOVES_S = 3600.0
"""Seconds between two looks for output that nobody asks for any more."""
SILENCE_S = 90.0
"""Seconds after which a connection is closed over which nothing comes. The near end speaks every few seconds."""
OUTPUT_S = 1.0
"""Seconds that a bridge has to hand over its standard output. One of an earlier version does not."""
FLOOD_S = 0.005
"""Seconds between two looks at the files of a run that prints much."""
AHEAD = 1 << 19
"""Bytes of frames that wait for a slow connection before no more pieces are read."""
_DESCRIPTOR = struct.Struct("i")
ANSWERERS = {"files": ("whisper_tui.supervisor.places.far_files", "answer")}
"""The functions that answer a request in a thread, bytes for bytes, and their modules, which are loaded when asked."""


class NearEnd:
    """The connection to the near end, through a bridge."""

    def __init__(self, host: "FarHost", connection: socket.socket) -> None:
        self._host = host
        self._socket = connection
        self._reader = FrameReader()
        self._out = Outbox()
        self.target = connection.fileno()
        """Where frames are written: the standard output of the bridge, once it has handed that over."""
        self.told = False
        """True once the bridge has handed over its standard output, if it can."""
        self.greeted = False
        self.begun_at = time.monotonic()
        self._news: dict[str, NewsOfRun] = {}
        self._dirty: dict[str, None] = {}
        """Names of the runs that have news, the one with the oldest first."""
        self._late: set[str] = set()
        """Names of the runs that flood, whose news are gathered."""
        self._frames: dict[str, Iterator[Parts]] = {}
        """News that are being sent."""
        self._heard_at = time.monotonic()
        self._writing = False
        self._full = False
        """True if the connection takes nothing more now."""
        self.closed = False
        connection.setblocking(False)
        host.loop.watch(connection.fileno(), selectors.EVENT_READ, self._ready)

    @property
    def is_silent(self) -> bool:
        """True if nothing has come for so long that nobody is there."""
        return time.monotonic() - self._heard_at > SILENCE_S

    @property
    def followed(self) -> Collection[str]:
        """The names of the runs whose news are sent."""
        return self._news.keys()

    def send(self, *parts: bytes | FilePart) -> None:
        """Send a frame, after those that wait."""
        if self.closed:
            return
        self._out.add(*parts)

    def follow(self, name: str, directory: str, has: dict[str, Any]) -> None:
        """Send the news of a run from now on."""
        self._news[name] = NewsOfRun(name, directory, has)
        self._frames.pop(name, None)
        self._host.files.add(name, directory)
        self.note(name)

    def unfollow(self, name: str) -> None:
        """Send nothing about a run any more."""
        self._news.pop(name, None)
        self._dirty.pop(name, None)
        self._frames.pop(name, None)
        self._host.files.remove(name)

    def note(self, name: str) -> None:
        """Have the news of a run sent: at once, or a moment later while it floods."""
        news = self._news.get(name)
        if news is None or name in self._late:
            return
        if news.floods:
            self._late.add(name)
            self._host.loop.later(FLOOD_S, lambda: self._note_late(name))
        else:
            self._dirty[name] = None

    def _note_late(self, name: str) -> None:
        self._late.discard(name)
        if name in self._news:
            self._dirty[name] = None

    def flush(self) -> None:
        """Send what there is, as far as the connection takes it."""
        if self.closed or self._full:
            return
        try:
            while True:
                self._gather()
                if not self._out.waiting:
                    break
                self._out.send(self.target)
        except BlockingIOError:
            self._full = True
        except OSError:
            self.close()
            return
        if self._writing != bool(self._out.waiting):
            self._writing = bool(self._out.waiting)
            self._watch()

    def close(self) -> None:
        """Close it. What it has not read is void."""
        if self.closed:
            return
        self.closed = True
        self._host.loop.watch(self._socket.fileno(), 0, self._ready)
        if self.target != self._socket.fileno():
            self._host.loop.watch(self.target, 0, self._on_room)
            os.close(self.target)
        self._socket.close()
        self._out.clear()
        for name in tuple(self._news):
            self.unfollow(name)
        self._host.on_closed(self)

    def _gather(self) -> None:
        """Take pieces of the news of each run in turn, until enough of them wait."""
        while self._out.waiting < AHEAD and (self._frames or self._dirty):
            for name in tuple(self._dirty):
                if name not in self._frames:
                    del self._dirty[name]
                    self._frames[name] = self._news[name].frames()
            for name, frames in tuple(self._frames.items()):
                piece = next(frames, None)
                if piece is not None:
                    self.send(*piece)
                    continue
                del self._frames[name]
                if self._news[name].over:
                    self.unfollow(name)

    def _watch(self) -> None:
        """Watch for what comes, and for room while something waits."""
        ready = selectors.EVENT_WRITE if self._writing else 0
        if self.target != self._socket.fileno():
            self._host.loop.watch(self.target, ready, self._on_room)
            ready = 0
        self._host.loop.watch(self._socket.fileno(), selectors.EVENT_READ | ready, self._ready)

    def _on_room(self) -> None:
        self._full = False

    def _received(self) -> int:
        """Read what has come, before the greeting perhaps with a descriptor that frames are written to from now on."""
        room = self._reader.room()
        if self.greeted:
            return self._socket.recv_into(room)
        count, passed, _, _ = self._socket.recvmsg_into([room], socket.CMSG_SPACE(_DESCRIPTOR.size))
        for level, kind, data in passed:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS) and len(data) == _DESCRIPTOR.size:
                self._take_output(*_DESCRIPTOR.unpack(data))
        return count

    def _take_output(self, fd: int) -> None:
        mode = os.fstat(fd).st_mode
        if self.target != self._socket.fileno() or not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            os.close(fd)
            return
        os.set_inheritable(fd, False)
        os.set_blocking(fd, False)
        self.target = fd

    def _ready(self) -> None:
        self._full = False
        try:
            count = self._received()
            if not count:
                self.close()
                return
            self._heard_at = time.monotonic()
            for frame in self._reader.frames(count):
                self._host.on_frame(self, frame)
                if self.closed:
                    return
        except BlockingIOError:
            pass
        except (OSError, BadFrame):
            self.close()


class FarHost:
    """The host process of one directory."""

    def __init__(self, directory: str, package: str, lock: int) -> None:
        """`package`: the archive that this runs from. `lock`: the descriptor of the locked file."""
        self.loop = FarLoop()
        self.files = FileWatch()
        self._lock = lock
        self._package = package
        self._life = secrets.token_hex(8)
        self._boot = boot_id()
        self._instance = _instance(directory)
        self._login = LoginEnvironment()
        self._connection: NearEnd | None = None
        self._last_used = time.monotonic()
        self._answers: deque[Callable[[], None]] = deque()
        self._wake, self._wake_in = os.pipe()
        self.runs = FarRuns(os.path.join(directory, RUNS), package, self.loop, self._on_changed)
        self.agents = FarAgents(self.loop, package, self._send)
        self._listener = listening(SOCKET)
        self._ended = False

    def serve(self) -> None:
        """Serve until nobody has needed this for `IDLE_S`."""
        os.set_blocking(self._wake, False)
        self.loop.watch(self._wake, selectors.EVENT_READ, self._on_answers)
        self.loop.watch(self._listener.fileno(), selectors.EVENT_READ, self._on_connection)
        if self.files.fd >= 0:
            self.loop.watch(self.files.fd, selectors.EVENT_READ, self._on_files)
        self.runs.open()
        self.loop.later(POLL_S, self._poll)
        self.loop.later(1.0, self._check)
        self.loop.later(REMOVES_S, self._remove_old)
        while not self._ended:
            self.loop.run_once()
            if self._connection is not None:
                self._connection.flush()
        self._remove_old()  # nobody came, and perhaps nobody ever comes again
        self._listener.close()
        run_files.remove(SOCKET)
        self.agents.close()
        self.runs.close()

    def on_frame(self, connection: NearEnd, frame: FrameView) -> None:
        """Carry out a request."""
        number = frame.header.get("id")

        def reply(answer: dict[str, Any], payload: bytes = b"") -> None:
            connection.send(encoded({"re": number, **answer}, payload))
            if connection is self._connection:
                connection.flush()

        try:
            self._carry_out(connection, frame, str(frame.header.get("of", "")), reply)
        except Failed as failed:
            reply(failed.answer)
        except OSError as error:
            reply(Failed("unavailable", f"the place cannot do that now: {error.strerror}").answer)
        except (KeyError, TypeError, ValueError) as error:
            reply(Failed("invalid_request", f"a request is wrong: {error!r}").answer)

    def _carry_out(self, connection: NearEnd, frame: FrameView, name: str, reply: Callable[..., None]) -> None:
        match frame.header.get("do"):
            case "start":
                self._start(connection, name, json.loads(bytes(frame.payload)))
                reply({})
            case "attach":
                answer = self.runs.attach(name, str(frame.header["boot"]))
                connection.follow(name, f"{self.runs.directory}/{name}", dict(frame.header["has"]))
                reply(answer)
            case "order":
                self.runs.order(name, json.loads(bytes(frame.payload)), reply)
            case "input":
                self.runs.write(name, int(frame.header["at"]), bytes(frame.payload), reply)
            case "forget":
                connection.unfollow(name)
                self.runs.forget(name)
                reply({})
            case "agent":
                self.agents.take(name, frame.header, bytes(frame.payload), reply)
            case "finished":
                reply({"names": self.runs.finished()})
            case "ping" | "end" as what:
                # What runs is not ended: then this goes on, and ends by itself later.
                self._ended = what == "end" and not self.runs.any_alive
                reply({})
            case "output":
                connection.told = True
                self._greet(connection)
            case "renew":
                self._renew(json.loads(bytes(frame.payload)))
            case str(what) if what in ANSWERERS:
                self._answer_in_thread(what, bytes(frame.payload), reply)
            case what:
                raise Failed("invalid_request", f"the host process there does not know {what!r}")

    def on_closed(self, connection: NearEnd) -> None:
        """Forget a connection that was closed."""
        if connection is self._connection:
            self._connection = None
            self._last_used = time.monotonic()
            self.runs.drop_inputs()
            self.agents.close()

    def _start(self, connection: NearEnd, name: str, order: dict[str, Any]) -> None:
        environment = {**(self._login.variables or {}), **order["environment"]}
        self.runs.start(name, order["spec"], environment)
        connection.follow(name, f"{self.runs.directory}/{name}", {})

    def _on_connection(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        if not is_ours(connection):
            connection.close()
            return
        # The older one is half dead, or its near end was restarted. What it has not read must not start anything.
        if self._connection is not None:
            self._connection.close()
        self._connection = NearEnd(self, connection)
        self._greet(self._connection)

    def _greet(self, connection: NearEnd) -> None:
        """Say who this is, once the environment is known, and the standard output of the bridge."""
        if connection.closed or connection.greeted:
            return
        waited = time.monotonic() - connection.begun_at
        if (self._login.variables is None and waited < LOGIN_S) or (not connection.told and waited < OUTPUT_S):
            self.loop.later(POLL_S, lambda: self._greet(connection))
            return
        connection.greeted = True
        hello = {
            "hello": PROTOCOL,
            "package": os.path.basename(self._package),
            "life": self._life,
            "instance": self._instance,
            "boot": self._boot,
            "now": time.time(),
            "host": os.uname().nodename,
            "uid": os.geteuid(),
            "home": os.path.expanduser("~"),
            "python": sys.version.split()[0],
            "counts": self.runs.counts,
        }
        connection.send(encoded(hello, json.dumps(self._login.variables or dict(os.environ)).encode()))
        connection.flush()

    def _send(self, header: dict[str, Any], payload: bytes) -> None:
        if self._connection is not None:
            self._connection.send(encoded(header, payload))

    def _answer_in_thread(self, what: str, question: bytes, reply: Callable[[dict[str, Any], bytes], None]) -> None:
        def answer() -> None:
            header, payload = dict[str, Any](), b""
            module, function = ANSWERERS[what]
            try:
                payload = getattr(import_module(module), function)(question)
            except Exception as error:  # noqa: BLE001  the near end is told
                header = Failed("unavailable", f"the place cannot answer: {error!r}").answer
            self._answers.append(lambda: reply(header, payload))
            os.write(self._wake_in, b"!")

        threading.Thread(target=answer, daemon=True).start()

    def _on_answers(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._wake, 4096)
        while self._answers:
            self._answers.popleft()()

    def _on_changed(self, name: str) -> None:
        if self._connection is not None:
            self._connection.note(name)

    def _on_files(self) -> None:
        for name in self.files.changed():
            self._on_changed(name)

    def _poll(self) -> None:
        self.loop.later(POLL_S if self.files.polls else 1.0, self._poll)
        if self.files.polls:
            self._on_files()

    def _check(self) -> None:
        self.loop.later(1.0, self._check)
        if self._connection is not None and self._connection.is_silent:
            self._connection.close()
        if self._connection is not None or self.runs.any_alive:
            self._last_used = time.monotonic()
        elif time.monotonic() - self._last_used > IDLE_S:
            self._ended = True

    def _remove_old(self) -> None:
        self.loop.later(REMOVES_S, self._remove_old)
        remove_old(self.runs.directory, self._connection.followed if self._connection is not None else ())
        remove_old_of_others(os.getcwd(), LOCK)

    def _renew(self, argv: list[str]) -> None:
        """Become the host process of another version. The lock is kept, and keepers never notice."""
        if self._connection is not None:
            self._connection.close()
        self.runs.close()
        os.set_inheritable(self._lock, True)
        os.execv(sys.executable, [sys.executable, *argv, str(self._lock)])


def _instance(directory: str) -> str:
    """Return the random name of a directory, which a container made anew does not have."""
    path = os.path.join(directory, INSTANCE)
    with suppress(FileNotFoundError), open(path, encoding="ascii") as file:
        return file.read()
    made = secrets.token_hex(16)
    run_files.write_whole(path, made.encode(), durable=True)
    return made


def serve(directory: str, package: str, lock: int = -1, *, stays: bool = False) -> None:
    """Be the host process of a directory, unless there is one.

    `stays`: then wait for its end, in case it is killed, because what this was started in would end with this.
    """
    if lock < 0:
        lock = os.open(os.path.join(directory, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        _take(lock, os.path.join(directory, SOCKET), stays=stays)
    os.set_inheritable(lock, False)
    for number in (signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    os.chdir(directory)
    FarHost(directory, package, lock).serve()


def _take(lock: int, path: str, *, stays: bool) -> None:
    """Lock the file of the host process, or end. `path`: of the socket of the one that has it."""
    parent, waited = os.getppid(), False
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not stays or os.getppid() != parent:
                sys.exit(LOCKED)
            waited = True
            time.sleep(TRIES_S)
        else:
            break
    if waited and not os.path.lexists(path):
        sys.exit(0)  # The other one was not killed: it has ended, because nobody needs it.
