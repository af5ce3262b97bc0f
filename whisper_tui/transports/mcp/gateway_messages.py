"""The parts of a gateway: lines that are read strictly and written in threads, held calls, and their session."""

import asyncio
import json
import os
import select
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.text import sendable

# The server is started before the model is loaded, so that both take no longer than the server alone.
if TYPE_CHECKING:
    from whisper_tui.model.api import Supervision
    from whisper_tui.model.call import CallRequest, Session

    class Connection(Supervision, Protocol):
        """A connection to the supervisor. Its sessions are gone with it."""

        @property
        def connected(self) -> bool:
            """True if it can be used."""
            ...

        async def close(self) -> None:
            """End it."""
            ...

    Connect = Callable[[], Awaitable[Connection]]
    """Connects to the supervisor, and starts one if none runs. Raises `WhisperError`."""


LONGEST_LINE = 64 * 1024 * 1024
"""Bytes of one message. A longer one of the client is refused; a longer one of the server ends it."""

QUEUED_LINES = 64
"""Lines that are read ahead of a slow reader on the other side."""

GRACE_S = 1.5
"""Seconds that a started process has to end, first by itself, and again after SIGTERM. Clients kill after two each."""

PARSE_ERROR, INVALID_REQUEST = -32700, -32600

NOTE_KEY = "whisper-tui/told"

Message = dict[str, Any]


class InvalidMessage(ValueError):
    """A line of the client that two programs could read differently."""

    def __init__(self, why: str, code: int = PARSE_ERROR) -> None:
        super().__init__(why)
        self.code = code


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) != len(members):
        raise InvalidMessage("two members of an object have the same name")
    return found


def _no_constant(name: str) -> Any:
    raise InvalidMessage(f"{name} is not valid JSON")


def read_strictly(line: bytes) -> Any:
    """Return the content of a line of the client. Raises `InvalidMessage` if others could read something else in it."""
    # What is forwarded are the bytes, so a server must not find another method or other arguments in them than those
    # that were judged: the first of two members, for example, or a name in other letters, as programs in Go do.
    try:
        content = json.loads(line.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
    except InvalidMessage:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidMessage(f"the message is not valid JSON: {error}") from error
    for message in content if isinstance(content, list) else [content]:
        if not isinstance(message, dict):
            raise InvalidMessage("the message is not an object", INVALID_REQUEST)
        check_letters(message, {"jsonrpc", "id", "method", "params", "result", "error"})
    return content


def check_letters(members: Mapping[str, Any], known: set[str]) -> None:
    """Raise `InvalidMessage` for a name that differs from a known one in its letters only."""
    for name in members:
        if name not in known and name.casefold() in known:
            raise InvalidMessage(f"the member {name!r} must be written {name.casefold()!r}", INVALID_REQUEST)


# Only within strings of JSON can these stand, and there the escape means the same. Some programs end a line at them.
_LINE_ENDS = ((b"\r", b" "), (b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))


def as_one_line(line: bytes) -> bytes:
    """Return the same JSON without characters at which a server could end the line."""
    for end, same in _LINE_ENDS:
        if end in line:
            line = line.replace(end, same)
    return line


def lines_in(read: Callable[[], bytes]) -> Iterator[bytes | None]:
    """Yield lines without their ends, and None for each that is too long. An unfinished last line is left out."""
    held = bytearray()
    skips = False
    while data := read():
        searched = len(held)
        held += data
        while (end := held.find(b"\n", searched)) >= 0:
            line, searched = bytes(held[:end]), 0
            del held[: end + 1]
            if line.strip() and not skips:
                yield line
            skips = False
        if len(held) > LONGEST_LINE:
            held.clear()
            # At once, because a line without an end would be read for ever.
            if not skips:
                yield None
            skips = True


class LineWriter:
    """Writes lines to a pipe or socket: at once where it takes them, else in a thread. A slow reader delays nobody."""

    def __init__(self, descriptor: int, gone: Callable[[], None]) -> None:
        """`gone` is called when nobody reads any more."""
        self._descriptor = descriptor
        self._gone = gone
        self._broken = False
        mode = os.fstat(descriptor).st_mode
        self._socket = socket.socket(fileno=os.dup(descriptor)) if stat.S_ISSOCK(mode) else None
        self._pipe = select.poll() if stat.S_ISFIFO(mode) else None
        if self._pipe is not None:
            self._pipe.register(descriptor, select.POLLOUT)
        self._turn = threading.Lock()
        self._queued = 0
        self._lines: SimpleQueue[tuple[memoryview, bool] | None] = SimpleQueue()
        self._room = threading.Semaphore(QUEUED_LINES)
        self._thread = threading.Thread(target=self._write_all, daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> None:
        """Write or queue a line of our own."""
        self._put(line, forwarded=False)

    def forward(self, line: bytes) -> None:
        """Write or queue a line of the other side; wait while too many are queued."""
        self._room.acquire()
        if not self._put(line, forwarded=True):
            self._room.release()

    def finish(self, seconds: float) -> None:
        """Write what is queued, for so many seconds at most."""
        self._lines.put(None)
        self._thread.join(seconds)

    def _put(self, line: bytes, *, forwarded: bool) -> bool:
        """Return True if the line, or a part of it, had to be queued."""
        left = memoryview(line + b"\n")
        with self._turn:
            if not self._queued:
                # Waking a thread takes longer than all else that happens to a line.
                left = left[self._written(self._write_now, left) :]
            if left:
                self._queued += 1
                self._lines.put((left, forwarded))
            return bool(left)

    def _write_now(self, data: memoryview) -> int:
        """Write what can be written without waiting. Return the number of bytes."""
        if self._socket is not None:
            try:
                return self._socket.send(data, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return 0
        # A pipe that is ready takes so many bytes, and a descriptor of another kind promises nothing.
        if self._pipe is not None and len(data) <= select.PIPE_BUF and self._pipe.poll(0):
            return os.write(self._descriptor, data)
        return 0

    def _write_waiting(self, data: memoryview) -> int:
        return os.write(self._descriptor, data)

    def _written(self, write: Callable[[memoryview], int], data: memoryview) -> int:
        """Return the number of bytes that are done with: all of them once nobody reads."""
        if not self._broken:
            try:
                return write(data)
            except OSError:
                self._broken = True
                self._gone()
        return len(data)

    def _write_all(self) -> None:
        while (item := self._lines.get()) is not None:
            left, forwarded = item
            while left:
                left = left[self._written(self._write_waiting, left) :]
            with self._turn:
                self._queued -= 1
            if forwarded:
                self._room.release()


class LineTooLong(Exception):
    """The server has sent a line that cannot be held in memory."""


def read_in_thread(descriptor: int, take: Callable[[bytes | None], None], done: Callable[[], None]) -> threading.Thread:
    """Pass each line to `take` in a thread, and call `done` at the end."""

    def run() -> None:
        try:
            for line in lines_in(lambda: os.read(descriptor, 1 << 18)):
                take(line)
        except (LineTooLong, OSError, RuntimeError):
            pass  # RuntimeError: the loop is closed.
        finally:
            done()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def end_process(
    process: "subprocess.Popen[bytes]", writer: LineWriter, reading: threading.Thread, *, at_once: bool
) -> int:
    """End a started process as clients do: close its input, then SIGTERM, then SIGKILL. Return its exit code."""
    if not at_once:
        writer.finish(GRACE_S)
    with suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    steps = (process.terminate, process.kill) if at_once else (lambda: None, process.terminate, process.kill)
    for step in steps:
        step()
        try:
            process.wait(GRACE_S)
            break
        except subprocess.TimeoutExpired:
            continue
    reading.join(GRACE_S)
    code = process.wait()
    return 128 - code if code < 0 else code


class HeldCall:
    """One call of a tool, from its request to the server's answer."""

    def __init__(self, message: Message, line: bytes) -> None:
        self.message = message
        self.line = line
        self.call_id: str | None = None
        """Its number in the queue, once it is submitted."""
        self.connection: Connection | None = None
        """The connection over which it was submitted: to others the supervisor refuses it."""
        self.forwarded = False
        """True once the server was sent it."""
        self.note: str | None = None
        """The note for the model beside the result."""
        self.task: asyncio.Task[None] | None = None
        self.began_at = time.monotonic()

    @property
    def params(self) -> Mapping[str, Any]:
        """The parameters of the request."""
        found: Mapping[str, Any] = self.message["params"]
        return found

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as the agent sent them."""
        return dict(self.params.get("arguments") or {})

    @property
    def progress_token(self) -> Any:
        """The token for reports of progress. None: the client wants none."""
        match self.params:
            case {"_meta": {"progressToken": token}}:
                return token
            case _:
                return None

    def edited(self, arguments: dict[str, Any]) -> bytes:
        """Return the request's line with other arguments."""
        message = {**self.message, "params": {**self.params, "arguments": arguments}}
        return json.dumps(message).encode()

    def annotated(self, answer: Message) -> bytes:
        """Return the server's answer with the note for the model."""
        match answer:
            case {"result": {"content": list(content), **rest}}:
                # First, as beside the results of our own tools. What the tool itself said follows unchanged.
                meta: Any = rest["_meta"] if isinstance(rest.get("_meta"), dict) else {}
                result = {**rest, "content": [text_block(self.note), *content], "_meta": {**meta, NOTE_KEY: self.note}}
                return json.dumps({**answer, "result": result}).encode()
            case {"error": {"message": str(text), **rest}}:
                return json.dumps({**answer, "error": {**rest, "message": f"{text} ({self.note})"}}).encode()
            case _:
                return json.dumps(answer).encode()


class ApprovalSession:
    """The session of one gateway with the supervisor. A lost connection is opened anew for the next call."""

    def __init__(self, connect: "Connect", server: str, root: str, name: str | None) -> None:
        self._connect = connect
        self._server = server
        self._root = root
        self._name = name
        self.client: Mapping[str, Any] = {}
        """The client's account of itself."""
        self.descriptions: dict[str, str] = {}
        """By tool: the server's words about it."""
        self._opening = asyncio.Lock()
        self._connection: Connection | None = None
        self._session: Session | None = None

    async def opened(self) -> "tuple[Connection, Session]":
        """Return the connection and the session. Raises `WhisperError`."""
        async with self._opening:
            if self._connection is None or self._session is None or not self._connection.connected:
                if self._connection is not None:
                    await self._connection.close()
                self._session = None
                self._connection = await self._connect()
                self._session = await self._connection.open_session(await asyncio.to_thread(self._hello))
            return self._connection, self._session

    async def close(self, why: str) -> None:
        """End the session, if there is one."""
        if self._connection is not None:
            if self._session is not None and self._connection.connected:
                with suppress(WhisperError):
                    await self._connection.close_session(self._session.id, why)
            await self._connection.close()

    def request(self, call: HeldCall, session: "Session") -> "CallRequest":
        """Return the request for a call. Raises `WhisperError`."""
        from whisper_tui.model.call import CallRequest, CommandSpec, Function

        tool = call.params["name"]
        name = f"mcp__{self._server}__{tool}"
        function = Function(tool=name, arguments=call.arguments, about="server", targets=(self._server, tool))
        return CallRequest(
            session_id=session.id,
            tool=name,
            arguments=call.arguments,
            spec=CommandSpec(command=function, cwd=session.root),
            description=self.descriptions.get(tool, ""),
        )

    def _hello(self) -> Any:
        from whisper_tui.model.call import LONGEST_NAME, ClientInfo, SessionHello

        base = Path(self._root).name or self._root
        name, version = (str(self.client.get(key) or "")[:LONGEST_NAME] for key in ("name", "version"))
        named = self._name or f"{base} ({' → '.join(filter(None, (name, self._server)))})"
        return SessionHello(
            name=named[:LONGEST_NAME],
            root=self._root,
            client=ClientInfo(name=name, version=version) if name else None,
            pid=os.getppid(),
            environment=sendable(os.environ),
            ends_with_connection=True,
        )


def text_block(text: str | None) -> Message:
    """Return a text as content of a result."""
    return {"type": "text", "text": text or ""}


def key_of_id(request_id: Any) -> str:
    """Return an id as text that is equal for equal ids: a server may write 1.0 as 1."""
    if isinstance(request_id, float) and request_id.is_integer():
        request_id = int(request_id)
    return json.dumps(request_id)


def refusal(request_id: Any, code: int, why: str) -> bytes:
    """Return an error as the answer to a request."""
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": why}}).encode()
