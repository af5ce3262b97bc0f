"""The program `exec`, which runs instead of an approved command: it forwards input, output, signals and exit code."""

import errno
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from whisper_tui.model.errors import WhisperError, error_from
from whisper_tui.model.protocol_version import HELLO_VERSIONS
from whisper_tui.model.text import is_sendable, sendable

if TYPE_CHECKING:
    from _socket import socket as Connection


STDOUT, STDERR, END, INPUT, NOTE = b"o", b"e", b"x", b"p", b"n"
"""From the run: its output; its ending, once, as JSON; the path of its FIFO or nothing when it accepts input; and notes
for people, which are not part of the output."""

STDIN, EOF, SIGNAL = b"i", b"z", b"s"
"""To the run: its input, the end of the input, and the number of a signal."""

HEAD = 5
"""Bytes of a frame's kind and length."""

LARGEST = 1 << 20
"""The largest frame in bytes."""


def frame(kind: bytes, data: bytes = b"") -> bytes:
    """Return one frame: its kind, its length and its data."""
    return kind + len(data).to_bytes(4, "big") + data


class Frames:
    """Splits received bytes into frames."""

    def __init__(self, *, refusable: bool = False) -> None:
        """`refusable`: a line of JSON may arrive instead of a frame, at the end."""
        self._held = bytearray()
        self._refusable = refusable

    @property
    def refusal(self) -> bytes:
        """The line of JSON as far as it was received. Empty while frames arrive."""
        return bytes(self._held) if self._refusable and self._held.startswith(b"{") else b""

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """Return the complete frames. Raises `ValueError` for one that is too long."""
        self._held += data
        found = []
        while len(self._held) >= HEAD and not self.refusal:
            length = int.from_bytes(self._held[1:HEAD], "big")
            if length > LARGEST:
                raise ValueError(f"a frame of {length:,} bytes is longer than {LARGEST:,}")
            if len(self._held) < HEAD + length:
                break
            found.append((bytes(self._held[:1]), bytes(self._held[HEAD : HEAD + length])))
            del self._held[: HEAD + length]
        return found


INPUT_READ = 1 << 16
_OVER = frozenset({errno.ENOENT, errno.ENXIO})
"""Errors of opening the FIFO of a run that accepts no more input."""


class InputForwarder:
    """Forwards descriptor 0 once the run accepts input."""

    def __init__(self) -> None:
        self.open = not _is_null_device(0)
        """True while there may be more input and the run accepts it."""
        self.has_any = self.open
        """True if descriptor 0 could be read at the start."""
        self.ended = False
        """True if all input was read. Every new connection has to report that to the run."""
        self._begun = False
        self._fifo = -1
        self._unwritten = b""

    def begin(self, path: bytes) -> None:
        """Start forwarding. `path`: the run's FIFO. Empty: the input goes through the supervisor."""
        if self._begun:
            return
        self._begun = True
        if not path:
            return
        try:
            # Directly into the run's FIFO, so that a supervisor that dies loses no input (decision 17).
            self._fifo = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            self.open = error.errno not in _OVER

    @property
    def reads(self) -> list[int]:
        """The descriptors to read from."""
        return [0] if self.open and self._begun and not self._unwritten else []

    @property
    def writes(self) -> list[int]:
        """The descriptors to write to."""
        return [self._fifo] if self._unwritten else []

    def read(self) -> bytes:
        """Read, and return a frame for the supervisor: input, its end, or nothing."""
        try:
            data = os.read(0, INPUT_READ)
        except OSError:
            data = b""
        if not data:
            self.ended = True
            self._close()
            return frame(EOF)
        if self._fifo < 0:
            return frame(STDIN, data)
        self._unwritten = data
        self.write()
        return b""

    def write(self) -> None:
        """Write to the FIFO. No more input is read until everything is written."""
        try:
            self._unwritten = self._unwritten[os.write(self._fifo, self._unwritten) :]
        except BlockingIOError:
            return  # The FIFO is full. `select` reports when it accepts more.
        except OSError:
            self._close()

    def _close(self) -> None:
        self.open, self._unwritten = False, b""
        if self._fifo >= 0:
            os.close(self._fifo)
            self._fifo = -1


def _is_null_device(descriptor: int) -> bool:
    """True if a descriptor is closed, or the null device."""
    try:
        about = os.fstat(descriptor)
    except OSError:
        return True
    # A client that gives its commands no input opens the null device. The run gets none either.
    return about.st_rdev == os.stat(os.devnull).st_rdev and about.st_rdev != 0  # noqa: PTH116


CANNOT = 126
"""The exit code if no command ran."""

PASSED_ON = (
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGTERM",
    "SIGUSR1",
    "SIGUSR2",
    "SIGALRM",
    "SIGWINCH",
    "SIGCONT",
    "SIGTSTP",
)
READ = 1 << 16
RETRY_S = 0.3

Reach = Callable[[], "Connection | None"]
"""Connects to the supervisor. None: it was stopped on purpose, and somebody will restart it."""


def run_ticket(ticket: str, reach: Reach) -> int:
    """Run the command of a ticket. Return its exit code, or die of the same signal."""
    standing = CommandProxy(ticket, reach)
    try:
        ending = standing.run()
    except WhisperError as error:
        ending = {"code": CANNOT, "said": error.sentence()}
    if said := ending.get("said"):
        _write(2, f"whisper_tui: {said}\n".encode())
    number = ending.get("signal")
    return _die(int(number)) if number else int(ending.get("code", CANNOT))


class CommandProxy:
    """The proxy of one run, over any number of connections."""

    def __init__(self, ticket: str, reach: Reach) -> None:
        self._ticket = ticket
        self._reach = reach
        self._by = os.urandom(12).hex()
        self._had = {STDOUT: 0, STDERR: 0}
        self._input = InputForwarder()
        self._pending: list[bytes] = []
        """Frames that could not be sent yet."""
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)

    def run(self) -> dict[str, Any]:
        """Return the run's ending. Raises `WhisperError` if the ticket is refused."""
        for name in PASSED_ON:
            signal.signal(getattr(signal, name), self._on_signal)
        started_by, told = _parents(), False
        while True:
            connection = self._reach()
            if connection is None:
                if _parents() != started_by:
                    return {"code": CANNOT, "said": "the supervisor was stopped, and the agent has ended"}
                if not told:
                    _write(
                        2, b"whisper_tui: the supervisor was stopped; this waits until whisper-tui is started again\n"
                    )
                    told = True
            else:
                try:
                    ending = self._serve(connection)
                except OSError:
                    ending = None
                finally:
                    connection.close()
                if ending is not None:
                    return ending
            time.sleep(RETRY_S)

    def _on_signal(self, number: int, _frame: object) -> None:
        # A byte in a pipe wakes `select`. Sending inside a signal handler could split a half-written frame.
        with suppress(OSError):
            os.write(self._wake, bytes((number,)))

    def _hello(self) -> bytes:
        hello = {
            "door": "exec",
            "version": HELLO_VERSIONS["exec"],
            "ticket": self._ticket,
            "by": self._by,
            "cwd": os.getcwd(),  # noqa: PTH109  importing pathlib takes long
            "stdin": self._input.has_any,
            "names": [name for name in os.environ if is_sendable(name)],
            "environment": sendable(os.environ),
            "out": self._had[STDOUT],
            "err": self._had[STDERR],
        }
        return json.dumps(hello).encode() + b"\n"

    def _serve(self, connection: "Connection") -> dict[str, Any] | None:
        """Serve one connection. Return the run's ending. None: the connection was lost before it."""
        connection.settimeout(None)
        connection.sendall(self._hello())
        # Input and signals that the lost connection has not sent.
        again, self._pending = self._pending, []
        for piece in again:
            self._send(connection, piece)
        # A new supervisor does not know that the input has ended.
        if self._input.ended:
            self._send(connection, frame(EOF))
        frames = Frames(refusable=True)
        while True:
            watched = [connection.fileno(), self._woken, *self._input.reads]
            ready, writable, _ = select.select(watched, self._input.writes, [])
            if self._woken in ready:
                self._pass_signals(connection)
            if writable:
                self._input.write()
            if 0 in ready and (piece := self._input.read()):
                self._send(connection, piece)
            if connection.fileno() not in ready:
                continue
            data = connection.recv(READ * 4)
            if not data:
                return None
            ending = self._handle_frames(connection, frames.feed(data))
            if ending is not None:
                return ending
            if frames.refusal.endswith(b"\n"):
                raise _refused(frames.refusal)

    def _handle_frames(self, connection: "Connection", pieces: Sequence[tuple[bytes, bytes]]) -> dict[str, Any] | None:
        for kind, data in pieces:
            if kind == END:
                ending: dict[str, Any] = json.loads(data)
                return ending
            if kind == INPUT:
                self._input.begin(data)
            if kind == NOTE:
                _write(2, b"whisper_tui: " + data + b"\n")
            if kind in self._had:
                self._had[kind] += len(data)
                if not _write(1 if kind == STDOUT else 2, data):
                    # Nobody reads the output any more. Without the proxy, the command would get this signal.
                    self._send(connection, frame(SIGNAL, bytes((signal.SIGPIPE,))))
        return None

    def _pass_signals(self, connection: "Connection") -> None:
        for number in os.read(self._woken, READ):
            self._send(connection, frame(SIGNAL, bytes((number,))))
            if number == signal.SIGTSTP:
                # The handler has replaced the default action, so the proxy must stop itself.
                os.kill(os.getpid(), signal.SIGSTOP)

    def _send(self, connection: "Connection", piece: bytes) -> None:
        """Send a frame, or keep it for the next connection and continue to read from this one."""
        try:
            connection.sendall(piece)
        except OSError:
            self._pending.append(piece)


def _parents() -> tuple[int, int]:
    """Return the process ids of the parent and grandparent: the agent's shell and the agent, or only the agent."""
    # The shell can outlive the agent. Then it has another parent.
    parent = os.getppid()
    try:
        with open(f"/proc/{parent}/stat", "rb") as file:  # noqa: PTH123  importing pathlib takes long
            words = file.read()
        return parent, int(words[words.rindex(b")") + 2 :].split()[1])
    except (OSError, ValueError):
        return parent, 0


def _refused(line: bytes) -> WhisperError:
    try:
        told = json.loads(line)["error"]
        return error_from(str(told["kind"]), str(told["message"]), str(told["hint"]))
    except (ValueError, KeyError, TypeError):
        return WhisperError("the supervisor's answer is invalid", hint="Run whisper-tui doctor")


def _write(descriptor: int, data: bytes) -> bool:
    """Write all of the data. False: nobody reads it any more."""
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            # The agent shares the descriptor and may have made it non-blocking.
            select.select([], [descriptor], [])
        except OSError:
            return False
    return True


def _die(number: int) -> int:
    """Die of a signal. Return the shell's exit code for it if that fails."""
    sys.stdout.flush()
    with suppress(OSError, ValueError):
        # A core dump of the command is useful, but not one of this process.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number not in {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return 128 + number
