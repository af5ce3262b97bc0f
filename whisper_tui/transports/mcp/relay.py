"""The relay that an agent starts: it forwards MCP lines to the supervisor and back, across restarts."""

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

from whisper_tui import __version__
from whisper_tui.agents.known_clients import KNOWN
from whisper_tui.agents.model_instructions import INSTRUCTIONS, OWN_SHELL_INSTRUCTIONS
from whisper_tui.model.errors import Unavailable, WhisperError, error_from
from whisper_tui.model.protocol_version import HELLO_VERSIONS
from whisper_tui.model.text import is_sendable, sendable, visible
from whisper_tui.transports.json_lines import lines_in


def lines_of(read: Callable[[], bytes]) -> Iterator[bytes]:
    """Yield lines without their ends. Empty lines and an unfinished last line are omitted."""
    return (line for line in lines_in(read, longest=None) if line is not None)


GOODBYE_METHOD = "notifications/whisper-tui/goodbye"


class LineCount:
    """The number of an agent's lines that a supervisor has read on one connection."""

    def __init__(self) -> None:
        self.lines = 0


def goodbye(heard: int) -> bytes:
    """Return the line that a supervisor sends when it stops. `heard` is the number of lines that it has read."""
    return json.dumps({"jsonrpc": "2.0", "method": GOODBYE_METHOD, "params": {"heard": heard}}).encode() + b"\n"


def heard_before(message: dict[str, Any] | None) -> int | None:
    """Return the number of read lines in a goodbye. None: the message is not a goodbye."""
    match message:
        case {"method": "notifications/whisper-tui/goodbye", "params": {"heard": int(heard)}}:
            return heard
        case _:
            return None


Message = dict[str, Any]


def parsed(line: bytes) -> Message | None:
    """Return the JSON-RPC message in a line. None: there is none."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def client_name(message: Message | None) -> str | None:
    """Return the name that the client gives itself in its first message, in old and new versions of the protocol."""
    match message:
        case {"params": {"clientInfo": {"name": str(name)}}}:
            return name
        case {"params": {"_meta": {"io.modelcontextprotocol/clientInfo": {"name": str(name)}}}}:
            return name
        case _:
            return None


SERVER_NAME = "whisper_tui"

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The versions of the protocol that begin with `initialize`, the newest last."""


def initialize_answer(message: Message | None, *, own_shell: bool) -> bytes | None:
    """Return the line that a supervisor of this version answers to `initialize`. None: it has to answer itself.

    A test compares it with the supervisor's.
    """
    match message:
        case {
            "jsonrpc": "2.0",
            "id": str() | int() as id_,
            "method": "initialize",
            "params": {
                "protocolVersion": str(wanted),
                "capabilities": dict(capabilities),
                "clientInfo": {"name": str(), "version": str()},
            },
        } if not isinstance(id_, bool) and all(isinstance(each, dict) for each in capabilities.values()):
            pass
        case _:
            return None
    result = {
        "capabilities": {"tools": {"listChanged": False}},
        "instructions": OWN_SHELL_INSTRUCTIONS if own_shell else INSTRUCTIONS,
        "protocolVersion": wanted if wanted in HANDSHAKES else HANDSHAKES[-1],
        "serverInfo": {"name": SERVER_NAME, "version": __version__},
    }
    answer = {"jsonrpc": "2.0", "id": id_, "result": result}
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return text.encode() if is_sendable(text) else None


class RelayState:
    """The pending requests, and the lines that opened the session."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._unanswered: dict[str, tuple[str, bytes]] = {}
        """By request id as JSON: method and line, in the order of sending."""
        self.opening: bytes | None = None
        """The `initialize` request, once it has been answered."""
        self._initialized: bytes | None = None

    def sent(self, message: Message | None, line: bytes) -> None:
        """Record a line that goes to the supervisor."""
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
        """Record a line that came from the supervisor."""
        if message is None or "method" in message or "id" not in message:
            return
        with self._lock:
            method, line = self._unanswered.pop(json.dumps(message["id"]), ("", b""))
        if method == "initialize" and "result" in message:
            self.opening = line

    def replay(self) -> tuple[list[bytes], str | None]:
        """Return the lines to repeat to a new supervisor, and the id of an answer that the agent already has."""
        lines, swallowed = [], None
        if self.opening is not None:
            # The new supervisor answers `initialize` too, but a second answer would confuse the client.
            lines.append(self.opening)
            swallowed = json.dumps((parsed(self.opening) or {}).get("id"))
        if self._initialized is not None:
            lines.append(self._initialized)
        with self._lock:
            return lines + [line for _, line in self._unanswered.values()], swallowed

    @property
    def has_pending(self) -> bool:
        """True if the agent waits for any answer."""
        with self._lock:
            return bool(self._unanswered)

    def give_up(self) -> list[Any]:
        """Forget all pending requests. Return their ids."""
        with self._lock:
            ids = [json.loads(request_id) for request_id in self._unanswered]
            self._unanswered.clear()
        return ids


HELLO_S = 20.0
"""Seconds that a supervisor has to answer the hello."""

LOSSES, LOSSES_WITHIN_S = 5, 60.0
"""After so many lost connections within so many seconds, requests are answered with an error."""

CHECK_EVERY_S = 1.0
FAREWELL_S = 1.0
"""Seconds that the supervisor has to close the session."""

SERVER_ERROR = -32000

Reach = Callable[[Callable[[], None]], socket.socket]
"""Connects to the supervisor. If none runs it calls the function, and starts one. Raises `WhisperError`."""
WriteLine = Callable[[bytes], None]
"""Writes one line to the agent, from one thread at a time. Raises `BrokenPipeError` if the agent is gone."""
ConnectIfRunning = Callable[[], socket.socket | None]
"""Connects to the running supervisor. None: there is none. Raises `WhisperError`."""


def workspace(chosen: str | None, environ: Mapping[str, str]) -> str:
    """Return the path of the agent's workspace: as chosen, as the client reports it, or the current directory."""
    said = next((said for known in KNOWN.values() if (said := environ.get(known.project_variable, ""))), "")
    usable = os.path.isdir(said)  # noqa: PTH112  returns False for a name that is too long
    return str(Path(chosen or (said if usable else ".")).absolute())


def run_relay(
    reach: Reach,
    look: ConnectIfRunning,
    *,
    root: str,
    name: str | None = None,
    wait_s: float | None = None,
    own_shell: bool = False,
    environment: Mapping[str, str] = os.environ,
    stdin: int = 0,
    stdout: int = 1,
) -> int:
    """Relay until the agent closes `stdin` or ends this process. Return the exit code.

    `wait_s`: seconds within which the agent's program needs answers. None: the supervisor decides by its name.
    `own_shell`: the agent's own shell is supervised, so it is offered no tools that run commands.
    `environment`: that of its commands.
    """
    for descriptor in (stdin, stdout):
        # The agent's program shares the open file, and may have made it non-blocking.
        os.set_blocking(descriptor, True)
    lost: list[OSError] = []
    about: Message = {"root": root, "name": name, "wait_s": wait_s, "own_shell": own_shell, "environment": environment}
    relay = Relay(reach, look, partial(_write, stdout, lost), pid=os.getppid(), **about)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _leave)
    try:
        for line in lines_of(partial(_read, stdin)):
            relay.send(line)
    except (_Terminated, BrokenPipeError):
        pass
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    relay.close()
    if lost:
        raise Unavailable(f"standard output to the agent cannot be written: {lost[0].strerror}")
    return 0


class _Terminated(BaseException):
    """The agent's program has asked this one to end."""


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise _Terminated


class _Link:
    """One connection after its hello."""

    def __init__(self, connection: socket.socket, lines: Iterator[bytes]) -> None:
        self.connection = connection
        self.lines = lines
        self.swallowed: str | None = None
        """The id of an answer that the agent has already received."""
        self.stopped = False
        """True if the supervisor reported that it stops on purpose."""
        self.sent = 0
        """How many lines of the agent were sent on the connection."""
        self.heard = 0
        """How many of them the supervisor had read when it stopped on purpose."""

    @property
    def ended_cleanly(self) -> bool:
        """True if no other supervisor is needed: this one stopped on purpose and had read all lines."""
        return self.stopped and self.sent <= self.heard


class Relay:
    """Connects an agent with the supervisor. A thread for each connection forwards the answers."""

    def __init__(
        self,
        reach: Reach,
        look: ConnectIfRunning,
        write_line: WriteLine,
        *,
        root: str,
        name: str | None = None,
        wait_s: float | None = None,
        own_shell: bool = False,
        pid: int | None = None,
        over_http: bool = False,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._reach = reach
        self._look = look
        self._write_line = write_line
        self._root = root
        self._name = name
        self._wait_s = wait_s
        self._own_shell = own_shell
        self._pid = pid
        self._over_http = over_http
        self._environment = environment
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
                link = link or self._begin(message, line)
            except (WhisperError, OSError) as error:
                if self._memory.opening is not line:
                    self._memory.sent(message, line)
                self._fail_pending(error)
                return
            if self._memory.opening is line:
                return
            self._memory.sent(message, line)
            # The reading thread notices a broken connection, and sends pending requests again.
            link.sent += 1
            with suppress(OSError):
                link.connection.sendall(line + b"\n")

    def close(self) -> None:
        """Tell the supervisor that the agent is gone."""
        self._closing.set()
        if self._link is not None:
            with suppress(OSError):
                self._link.connection.shutdown(socket.SHUT_WR)
        deadline = time.monotonic() + FAREWELL_S
        for taker in self._takers:
            taker.join(max(0.0, deadline - time.monotonic()))

    def _begin(self, message: Message | None, line: bytes) -> _Link:
        """Connect, for this line of the agent. Raises `WhisperError` and `OSError`."""
        opening = parsed(self._memory.opening) if self._memory.opening is not None else message
        starting = partial(self._answer_early, message, line)
        try:
            return self._connect(self._reach(starting), client_name(opening))
        except OSError:
            # The supervisor ended during the hello. The next one answers.
            return self._connect(self._reach(starting), client_name(opening))

    def _answer_early(self, message: Message | None, line: bytes) -> None:
        """Answer `initialize` while a supervisor starts, which takes as long as some agents wait for a server.

        The supervisor is told of it as after a restart; if it cannot start, the next request is answered by the error.
        """
        if self._memory.opening is None and (answer := initialize_answer(message, own_shell=self._own_shell)):
            self._memory.opening = line
            self._write(answer)

    def _connect(self, connection: socket.socket, client: str | None = None) -> _Link:
        """Send the hello, and repeat the lines that a new supervisor needs. Raises `WhisperError`, `OSError`."""
        try:
            connection.settimeout(HELLO_S)
            lines = lines_of(lambda: connection.recv(1 << 18))
            # A full server refuses and closes before it reads. Its reason can still be received.
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
        taker = threading.Thread(target=self._forward_answers, args=(link,), daemon=True)
        self._takers = [thread for thread in self._takers if thread.is_alive()] + [taker]
        taker.start()
        return link

    def _hello(self, client: str | None) -> Message:
        base = Path(self._root).name or self._root
        session = {
            "name": self._name or (f"{base} ({client})" if client else base),
            "root": self._root,
            "pid": self._pid,
            "environment": sendable(self._environment),
            "resume": self._session_id,
        }
        how = {"wait_s": self._wait_s, "over_http": self._over_http, "own_shell": self._own_shell}
        return {"door": "mcp", "version": HELLO_VERSIONS["mcp"], **how, "session": session}

    def _forward_answers(self, link: _Link) -> None:
        """Forward the supervisor's lines until the connection ends, then reconnect."""
        try:
            try:
                for line in link.lines:
                    self._forward(link, line)
            except ConnectionResetError:
                pass
            link.connection.close()
            if not self._closing.is_set():
                self._reconnect(link)
        except BrokenPipeError:
            # The agent is gone and reads no answers. The thread that reads from it must end.
            os.kill(os.getpid(), signal.SIGTERM)

    def _forward(self, link: _Link, line: bytes) -> None:
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

    def _reconnect(self, lost: _Link) -> None:
        """Reconnect. Start a supervisor only if requests are pending and the last one was not stopped on purpose."""
        error: WhisperError | OSError = Unavailable("the connection to the supervisor was lost repeatedly")
        self._losses.append(time.monotonic())
        while not self._closing.is_set():
            with self._linking:
                if self._link is not None and self._link is not lost:
                    return
                self._link = None
                must = self._memory.has_pending and not lost.ended_cleanly
                if must and self._lost_too_often():
                    self._fail_pending(error)
                    continue
                try:
                    connection = self._reach(_nothing) if must else self._look()
                    if connection is not None:
                        self._connect(connection)
                        return
                except (WhisperError, OSError) as failure:
                    error = failure
                    self._losses.append(time.monotonic())
            self._closing.wait(CHECK_EVERY_S)

    def _lost_too_often(self) -> bool:
        return len(self._losses) == LOSSES and time.monotonic() - self._losses[0] < LOSSES_WITHIN_S

    def _fail_pending(self, error: WhisperError | OSError) -> None:
        """Report an error on stderr, and as the answer to every pending request."""
        why = error.sentence() if isinstance(error, WhisperError) else str(error)
        text = f"whisper_tui cannot be reached: {why}"
        sys.stderr.write(f"whisper-tui mcp: {visible(text)}\n")
        for request_id in self._memory.give_up():
            failure = {"code": SERVER_ERROR, "message": text}
            self._write(json.dumps({"jsonrpc": "2.0", "id": request_id, "error": failure}).encode())

    def _write(self, line: bytes) -> None:
        with self._writing:
            self._write_line(line)


def _nothing() -> None:
    pass


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 18)
    except OSError as error:
        raise Unavailable(
            f"standard input from the agent cannot be read: {error.strerror}",
            hint="An agent starts this program with a pipe for each direction",
        ) from error


def _write(descriptor: int, lost: list[OSError], line: bytes) -> None:
    """Write a line. Raises `BrokenPipeError` for every failure, because then no answer reaches the agent."""
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
        return ConnectionResetError("the supervisor did not answer the hello")
    return error_from(str(error.get("kind", "")), str(error.get("message", "")), str(error.get("hint", "")))
