"""The relay that an agent launches: it passes MCP lines to the supervisor and back, across its restarts."""

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
from typing import Any

from whisper_tui.agents.known_clients import KNOWN
from whisper_tui.model.errors import Unavailable, WhisperError, error_from
from whisper_tui.model.protocol_version import HELLO_VERSIONS
from whisper_tui.model.text import sendable, visible


def lines_of(read: Callable[[], bytes]) -> Iterator[bytes]:
    """Lines without their ends; an unfinished last one and empty ones are left out."""
    held = bytearray()
    while data := read():
        searched = len(held)
        held += data
        while (end := held.find(b"\n", searched)) >= 0:
            line, searched = bytes(held[:end]), 0
            del held[: end + 1]
            if line.strip():
                yield line


GOODBYE_METHOD = "notifications/whisper-tui/goodbye"


class Heard:
    """How many lines of an agent a supervisor has read on one connection."""

    def __init__(self) -> None:
        self.lines = 0


def goodbye(heard: int) -> bytes:
    """Return the line with which a supervisor stops; `heard` is the number of lines that it has read."""
    return json.dumps({"jsonrpc": "2.0", "method": GOODBYE_METHOD, "params": {"heard": heard}}).encode() + b"\n"


def heard_before(message: dict[str, Any] | None) -> int | None:
    """Return the number of lines that a goodbye says were read. None: the message is no goodbye."""
    match message:
        case {"method": "notifications/whisper-tui/goodbye", "params": {"heard": int(heard)}}:
            return heard
        case _:
            return None


Message = dict[str, Any]


def parsed(line: bytes) -> Message | None:
    """The JSON-RPC message of a line. None: it is not one."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def client_name(message: Message | None) -> str | None:
    """Return the name that the client gives itself in its first message, in either era of the protocol."""
    match message:
        case {"params": {"clientInfo": {"name": str(name)}}}:
            return name
        case {"params": {"_meta": {"io.modelcontextprotocol/clientInfo": {"name": str(name)}}}}:
            return name
        case _:
            return None


class RelayState:
    """The requests that are not answered and the lines that began the conversation."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._unanswered: dict[str, tuple[str, bytes]] = {}
        """By request id as JSON: method and line, in the order of sending."""
        self._opening: bytes | None = None
        """The `initialize` request, once it was answered well."""
        self._initialized: bytes | None = None

    def sent(self, message: Message | None, line: bytes) -> None:
        """Take note of a line that goes to the supervisor."""
        match message:
            case {"method": str(method), "id": request_id} if request_id is not None:
                with self._lock:
                    self._unanswered[json.dumps(request_id)] = (method, line)
            case {"method": "notifications/initialized"}:
                self._initialized = line
            case {"method": "notifications/cancelled", "params": {"requestId": request_id}}:
                with self._lock:
                    self._unanswered.pop(json.dumps(request_id), None)
            case _:
                pass

    def received(self, message: Message | None) -> None:
        """Take note of a line that came from the supervisor."""
        if message is None or "method" in message or "id" not in message:
            return
        with self._lock:
            method, line = self._unanswered.pop(json.dumps(message["id"]), ("", b""))
        if method == "initialize" and "result" in message:
            self._opening = line

    def replay(self) -> tuple[list[bytes], str | None]:
        """Return the lines to repeat to a new supervisor, and the id of an answer that the agent already has."""
        lines, swallowed = [], None
        if self._opening is not None:
            # The new supervisor answers `initialize` too, and a second answer would confuse the client.
            lines.append(self._opening)
            swallowed = json.dumps((parsed(self._opening) or {}).get("id"))
        if self._initialized is not None:
            lines.append(self._initialized)
        with self._lock:
            return lines + [line for _, line in self._unanswered.values()], swallowed

    @property
    def waits(self) -> bool:
        """True if the agent waits for any answer."""
        with self._lock:
            return bool(self._unanswered)

    def give_up(self) -> list[Any]:
        """Forget all unanswered requests. Returns their ids."""
        with self._lock:
            ids = [json.loads(request_id) for request_id in self._unanswered]
            self._unanswered.clear()
        return ids


HELLO_S = 20.0
"""Seconds that a supervisor has to answer the hello."""

LOSSES, LOSSES_WITHIN_S = 5, 60.0
"""Connections lost within so many seconds after which requests are answered with an error."""

LOOK_EVERY_S = 1.0
FAREWELL_S = 1.0
"""Seconds in which the supervisor can close the session."""

SERVER_ERROR = -32000

Reach = Callable[[], socket.socket]
"""Connects to the supervisor and starts one if none runs. Raises `WhisperError`."""
Say = Callable[[bytes], None]
"""Writes one line to the agent. Called by one thread at a time; raises `BrokenPipeError` if the agent is gone."""
Look = Callable[[], socket.socket | None]
"""Connects to the supervisor that runs; None if none does. Raises `WhisperError`."""


def workspace(chosen: str | None, environ: Mapping[str, str]) -> str:
    """Absolute path of the agent's workspace: as chosen, as the client says, or the current directory."""
    said = next((said for known in KNOWN.values() if (said := environ.get(known.project_variable, ""))), "")
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
        # The flag belongs to the open file, which the agent's program shares and may have set.
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
        """True if the supervisor said that it stops on purpose."""
        self.sent = 0
        """Lines of the agent that went into the connection."""
        self.heard = 0
        """How many of them a supervisor that stopped on purpose had read."""

    @property
    def let_rest(self) -> bool:
        """True if no other supervisor is needed: this one stopped on purpose, and had read all that was sent."""
        return self.stopped and self.sent <= self.heard


class Relay:
    """Connects an agent with the supervisor. A thread for each connection forwards what comes back."""

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
        self._memory = RelayState()
        self._link: _Link | None = None
        self._linking = threading.Lock()
        self._writing = threading.Lock()
        self._closing = threading.Event()
        self._takers: list[threading.Thread] = []
        self._losses: deque[float] = deque(maxlen=LOSSES)

    def send(self, line: bytes) -> None:
        """Forward a line of the agent. If no supervisor can be reached, requests are answered with an error."""
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
        """Connect. Raises `WhisperError` and `OSError`."""
        try:
            return self._connect(self._reach(), client)
        except OSError:
            # The supervisor went away during the hello; the next one answers.
            return self._connect(self._reach(), client)

    def _connect(self, connection: socket.socket, client: str | None = None) -> _Link:
        """Say hello and repeat what a new supervisor must know. Raises `WhisperError`, `OSError`."""
        try:
            connection.settimeout(HELLO_S)
            lines = lines_of(lambda: connection.recv(1 << 18))
            # A full server refuses and closes before it reads; its reason can still be received.
            with suppress(BrokenPipeError):
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
        return {"door": "mcp", "version": HELLO_VERSIONS["mcp"], **how, "session": session}

    def _take(self, link: _Link) -> None:
        """Forward the supervisor's lines until the connection ends, and then connect again."""
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
        """Connect again. Start a supervisor only if the agent waits and the last one was not stopped on purpose."""
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
        """Report an error on stderr, and as the answer to every pending request."""
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
    """Write a line. Raises `BrokenPipeError` for every failure, because no answer reaches the agent then."""
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
