"""What an agent launches: lines of MCP between it and the supervisor, over any supervisor's death.

Standard library only: agents begin their first turn about a second after they start this program.
"""

import json
import os
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType

from whisper_tui.model.errors import Unavailable, WhisperError, error_from
from whisper_tui.model.sendable import sendable
from whisper_tui.model.text import visible
from whisper_tui.transports.goodbye import heard_before
from whisper_tui.transports.relay_lines import lines_of
from whisper_tui.transports.relay_memory import Memory, Message, client_name, parsed

VERSION = 1
"""Of the hello line and its answer."""

HELLO_S = 20.0
"""Seconds that a supervisor has to answer the hello."""

LOSSES, LOSSES_WITHIN_S = 5, 60.0
"""So many lost or failed connections in so many seconds, and the agent is told instead of trying again."""

LOOK_EVERY_S = 1.0
FAREWELL_S = 1.0
"""Seconds for the supervisor to take note of the end."""

SERVER_ERROR = -32000

Reach = Callable[[], socket.socket]
"""Connects to the supervisor and starts one if none runs. Raises `WhisperError`."""
Say = Callable[[bytes], None]
"""Tells the agent one line. Called by one thread at a time; raises `BrokenPipeError` if the agent is gone."""
Look = Callable[[], socket.socket | None]
"""Connects to the supervisor that runs; None if none does. Raises `WhisperError`."""


def workspace(chosen: str | None, environ: Mapping[str, str]) -> str:
    """Absolute path of the agent's workspace: as chosen, as the client says, or the current directory."""
    said = environ.get("CLAUDE_PROJECT_DIR", "")
    usable = os.path.isdir(said)  # noqa: PTH112  says no, and fails not, where a name is longer than the system takes
    return str(Path(chosen or (said if usable else ".")).absolute())


def run_relay(
    reach: Reach,
    look: Look,
    *,
    root: str,
    name: str | None = None,
    wait_s: float | None = None,
    stdin: int = 0,
    stdout: int = 1,
) -> int:
    """Relay until the agent closes `stdin` or ends this process. Returns the exit code.

    `wait_s`: seconds in which the agent's program must have its answers. None: the supervisor knows the program.
    """
    for descriptor in (stdin, stdout):
        os.set_blocking(descriptor, True)
    lost: list[OSError] = []
    say = partial(_write, stdout, lost)
    relay = Relay(reach, look, say, root=root, name=name, wait_s=wait_s, pid=os.getppid())
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _leave)
    try:
        for line in lines_of(partial(_read, stdin)):
            relay.send(line)
    except (_Leave, BrokenPipeError):
        pass
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    relay.close()
    if lost:
        raise Unavailable(f"standard output, where the agent is answered, cannot be written: {lost[0].strerror}")
    return 0


class _Leave(BaseException):
    """The agent's program told this one to end."""


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise _Leave


class _Link:
    """One connection that has said hello."""

    def __init__(self, connection: socket.socket, lines: Iterator[bytes]) -> None:
        self.connection = connection
        self.lines = lines
        self.swallowed: str | None = None
        """The id of an answer that the agent has had already."""
        self.stopped = False
        """Whether the supervisor said that it stops on purpose."""
        self.sent = 0
        """Lines of the agent that went into the connection."""
        self.heard = 0
        """How many of them a supervisor that stopped on purpose had read."""

    @property
    def let_rest(self) -> bool:
        """Whether nobody needs another supervisor: this one stopped on purpose, and had read all that was sent."""
        return self.stopped and self.sent <= self.heard


class Relay:
    """The agent's side calls `send`; a thread per connection takes what comes back, and says it."""

    def __init__(
        self,
        reach: Reach,
        look: Look,
        say: Say,
        *,
        root: str,
        name: str | None = None,
        wait_s: float | None = None,
        pid: int | None = None,
        over_http: bool = False,
    ) -> None:
        self._reach = reach
        self._look = look
        self._say = say
        self._root = root
        self._name = name
        self._wait_s = wait_s
        self._pid = pid
        self._over_http = over_http
        self._session_id: str | None = None
        self._memory = Memory()
        self._link: _Link | None = None
        self._linking = threading.Lock()
        self._writing = threading.Lock()
        self._closing = threading.Event()
        self._takers: list[threading.Thread] = []
        self._losses: deque[float] = deque(maxlen=LOSSES)

    def send(self, line: bytes) -> None:
        """Pass on a line of the agent. Where there is no supervisor to be had, a request is answered with the error."""
        message = parsed(line)
        with self._linking:
            try:
                link = self._link if self._link is not None and not self._link.stopped else None
                link = link or self._begin(client_name(message))
            except (WhisperError, OSError) as error:
                self._memory.sent(message, line)
                self._answer_all(error)
                return
            self._memory.sent(message, line)
            # A connection that breaks here is noticed by its taker, which sends unanswered requests again.
            link.sent += 1
            with suppress(OSError):
                link.connection.sendall(line + b"\n")

    def close(self) -> None:
        """Let the supervisor know that the agent is gone."""
        self._closing.set()
        if self._link is not None:
            with suppress(OSError):
                self._link.connection.shutdown(socket.SHUT_WR)
        deadline = time.monotonic() + FAREWELL_S
        for taker in self._takers:
            taker.join(max(0.0, deadline - time.monotonic()))

    def _begin(self, client: str | None) -> _Link:
        """Connect, a second time where the supervisor went away in the middle. Raises `WhisperError`, `OSError`."""
        try:
            return self._connect(self._reach(), client)
        except OSError:
            return self._connect(self._reach(), client)

    def _connect(self, connection: socket.socket, client: str | None = None) -> _Link:
        """Say hello and repeat what a new supervisor must know. Raises `WhisperError`, `OSError`."""
        try:
            connection.settimeout(HELLO_S)
            lines = lines_of(lambda: connection.recv(1 << 18))
            with suppress(BrokenPipeError):  # Who is turned away at once hears why.
                connection.sendall(json.dumps(self._hello(client)).encode() + b"\n")
            answer = parsed(next(lines, b"")) or {}
            if not answer.get("ok"):
                raise _refusal(answer.get("error"))
            self._session_id = str(answer["session_id"])
            link = _Link(connection, lines)
            replay, link.swallowed = self._memory.replay()
            connection.settimeout(None)
            link.sent = len(replay)
            connection.sendall(b"".join(line + b"\n" for line in replay))
        except (WhisperError, OSError):
            connection.close()
            raise
        self._link = link
        taker = threading.Thread(target=self._take, args=(link,), daemon=True)
        self._takers = [thread for thread in self._takers if thread.is_alive()] + [taker]
        taker.start()
        return link

    def _hello(self, client: str | None) -> Message:
        base = Path(self._root).name or self._root
        session = {
            "name": self._name or (f"{base} ({client})" if client else base),
            "root": self._root,
            "pid": self._pid,
            "environment": sendable(os.environ),
            "resume": self._session_id,
        }
        how = {"wait_s": self._wait_s, "over_http": self._over_http}
        return {"door": "mcp", "version": VERSION, **how, "session": session}

    def _take(self, link: _Link) -> None:
        """Pass on what comes from the supervisor until the connection ends; then see that the agent is served."""
        try:
            try:
                for line in link.lines:
                    self._pass_on(link, line)
            except ConnectionResetError:
                pass
            link.connection.close()
            if not self._closing.is_set():
                self._come_back(link)
        except BrokenPipeError:
            # Nobody reads what the agent is told: it is gone, and the thread that listens to it must end.
            os.kill(os.getpid(), signal.SIGTERM)

    def _pass_on(self, link: _Link, line: bytes) -> None:
        message = parsed(line)
        heard = heard_before(message)
        if heard is not None:
            link.heard, link.stopped = heard, True
            return
        if link.swallowed is not None and message is not None and json.dumps(message.get("id")) == link.swallowed:
            link.swallowed = None
            return
        self._memory.received(message)
        self._write(line)

    def _come_back(self, lost: _Link) -> None:
        """After a crash start a new supervisor if the agent waits; else follow one that somebody else starts."""
        error: WhisperError | OSError = Unavailable("the supervisor goes away again and again")
        self._losses.append(time.monotonic())
        while not self._closing.is_set():
            with self._linking:
                if self._link is not None and self._link is not lost:
                    return
                self._link = None
                must = self._memory.waits and not lost.let_rest
                if must and self._loses_too_often():
                    self._answer_all(error)
                    continue
                try:
                    connection = self._reach() if must else self._look()
                    if connection is not None:
                        self._connect(connection)
                        return
                except (WhisperError, OSError) as failure:
                    error = failure
                    self._losses.append(time.monotonic())
            self._closing.wait(LOOK_EVERY_S)

    def _loses_too_often(self) -> bool:
        return len(self._losses) == LOSSES and time.monotonic() - self._losses[0] < LOSSES_WITHIN_S

    def _answer_all(self, error: WhisperError | OSError) -> None:
        """Say what is wrong, on stderr and to every request that waits."""
        why = error.sentence() if isinstance(error, WhisperError) else str(error)
        text = f"whisper_tui cannot be reached: {why}"
        sys.stderr.write(f"whisper-tui mcp: {visible(text)}\n")
        for request_id in self._memory.give_up():
            failure = {"code": SERVER_ERROR, "message": text}
            self._write(json.dumps({"jsonrpc": "2.0", "id": request_id, "error": failure}).encode())

    def _write(self, line: bytes) -> None:
        with self._writing:
            self._say(line)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 18)
    except OSError as error:
        raise Unavailable(
            f"standard input, where the agent asks, cannot be read: {error.strerror}",
            hint="An agent starts this program with a pipe for each direction",
        ) from error


def _write(descriptor: int, lost: list[OSError], line: bytes) -> None:
    """Write a line. Raises `BrokenPipeError` where it cannot be, whyever: then no answer reaches the agent."""
    left = memoryview(line + b"\n")
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except BrokenPipeError:
        raise
    except OSError as error:
        lost.append(error)
        raise BrokenPipeError from error


def _refusal(error: object) -> WhisperError | OSError:
    if not isinstance(error, dict):
        return ConnectionResetError("the supervisor did not answer the greeting")
    return error_from(str(error.get("kind", "")), str(error.get("message", "")), str(error.get("hint", "")))
