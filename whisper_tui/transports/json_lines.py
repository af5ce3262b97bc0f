"""Messages of JSON-RPC as lines: cut, read strictly, and read and written in threads."""

import json
import os
import select
import socket
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from queue import SimpleQueue
from typing import Any

from whisper_tui.model.strict_json import read_strict_json

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes of one message. A longer one of the client is refused; a longer one of the server ends it."""

QUEUED_LINES = 64
"""Lines that are read ahead of a slow reader on the other side."""

PARSE_ERROR, INVALID_REQUEST = -32700, -32600

CALL_ID, NOTE_KEY = "whisper-tui/call-id", "whisper-tui/told"
"""Keys in the `_meta` of an answer: the number of the call, and what its agent is told beside the result."""

Message = dict[str, Any]


class InvalidMessage(ValueError):
    """A line of the client that two programs could read differently."""

    def __init__(self, why: str, code: int = PARSE_ERROR) -> None:
        super().__init__(why)
        self.code = code


def read_strictly(line: bytes) -> Any:
    """Return the content of a line of the client. Raises `InvalidMessage` if others could read something else in it."""
    # What is forwarded are the bytes, so a server must not find another method or other arguments in them than those
    # that were judged: the first of two members, for example, or a name in other letters, as programs in Go do.
    try:
        content = read_strict_json(line.decode())
    except ValueError as error:
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


class LineCutter:
    """Cuts what is read piece by piece into lines."""

    def __init__(self, longest: int | None = None) -> None:
        """`longest`: bytes of a line at most. None: as many as there are."""
        self._longest = longest
        self._held = bytearray()
        self._skips = False

    def cut(self, data: bytes) -> Iterator[bytes | None]:
        """Yield the lines that a piece completes, without their ends and without empty ones, and None for one too long.

        That is told at once, because a line without an end would be read for ever, and what follows of it is skipped.
        """
        searched = len(self._held)
        self._held += data
        while (end := self._held.find(b"\n", searched)) >= 0:
            line, searched = bytes(self._held[:end]), 0
            del self._held[: end + 1]
            if line.strip() and not self._skips:
                yield line
            self._skips = False
        if self._longest is not None and len(self._held) > self._longest:
            self._held.clear()
            if not self._skips:
                yield None
            self._skips = True


def lines_in(read: Callable[[], bytes], longest: int | None = LONGEST_LINE) -> Iterator[bytes | None]:
    """Yield lines as `LineCutter` does until nothing comes any more. An unfinished last line is left out."""
    cutter = LineCutter(longest)
    while data := read():
        yield from cutter.cut(data)


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


def key_of_id(request_id: Any) -> str:
    """Return an id as text that is equal for equal ids: a server may write 1.0 as 1."""
    if isinstance(request_id, float) and request_id.is_integer():
        request_id = int(request_id)
    return json.dumps(request_id)


def refusal(request_id: Any, code: int, why: str) -> bytes:
    """Return an error as the answer to a request."""
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": why}}).encode()
