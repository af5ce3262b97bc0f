"""What an approved command is rewritten to: it stands for the command, and ends as the command ends.

Standard library only. Standard input, both outputs, signals and the exit code pass through byte for byte.
"""

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
from whisper_tui.model.sendable import is_sendable, sendable
from whisper_tui.transports.hooks.frames import END, EOF, INPUT, NOTE, SIGNAL, STDERR, STDOUT, Frames, frame
from whisper_tui.transports.hooks.input_way import InputWay

if TYPE_CHECKING:
    from _socket import socket as Connection

CANNOT = 126
"""The exit code where there is no command to end as."""

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
AGAIN_S = 0.3

AGENTS_OWN = (
    "GIT_EDITOR",
    "PAGER",
    "GIT_PAGER",
    "GH_PAGER",
    "NO_COLOR",
    "TERM",
    "COLORTERM",
    "LC_ALL",
    "LC_CTYPE",
    "CI",
    "CLAUDECODE",
    "CODEX_CI",
    "GEMINI_CLI",
    "OPENCODE",
)
"""Variables that agents set for their commands: these are sent, of all others the names."""

Reach = Callable[[], "Connection | None"]
"""Connects to the supervisor. None: it was stopped on purpose, and somebody will start it again."""


def run_ticket(ticket: str, reach: Reach) -> int:
    """Stand for the command of a ticket. Returns the exit code, or dies of the signal that the command died of."""
    standing = Standing(ticket, reach)
    try:
        ending = standing.stand()
    except WhisperError as error:
        ending = {"code": CANNOT, "said": error.sentence()}
    if said := ending.get("said"):
        _write(2, f"whisper_tui: {said}\n".encode())
    number = ending.get("signal")
    return _die(int(number)) if number else int(ending.get("code", CANNOT))


class Standing:
    """Stands for one run over any number of connections."""

    def __init__(self, ticket: str, reach: Reach) -> None:
        self._ticket = ticket
        self._reach = reach
        self._by = os.urandom(12).hex()
        self._had = {STDOUT: 0, STDERR: 0}
        self._input = InputWay()
        self._pending: list[bytes] = []
        """Pieces that could not be sent yet."""
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)

    def stand(self) -> dict[str, Any]:
        """How the run ended. Raises `WhisperError` where it cannot be had."""
        for name in PASSED_ON:
            signal.signal(getattr(signal, name), self._caught)
        started_by, told = _lineage(), False
        while True:
            connection = self._reach()
            if connection is None:
                if _lineage() != started_by:
                    return {"code": CANNOT, "said": "the supervisor was stopped, and the agent has ended"}
                if not told:
                    _write(
                        2, b"whisper_tui: the supervisor was stopped; this waits until whisper-tui is started again\n"
                    )
                    told = True
            else:
                try:
                    ending = self._join(connection)
                except OSError:
                    ending = None
                finally:
                    connection.close()
                if ending is not None:
                    return ending
            time.sleep(AGAIN_S)

    def _caught(self, number: int, _frame: object) -> None:
        with suppress(OSError):
            os.write(self._wake, bytes((number,)))

    def _hello(self) -> bytes:
        environment = {name: os.environ[name] for name in AGENTS_OWN if name in os.environ}
        hello = {
            "door": "exec",
            "version": 1,
            "ticket": self._ticket,
            "by": self._by,
            "cwd": os.getcwd(),  # noqa: PTH109  pathlib is not needed for anything else here
            "stdin": self._input.has_any,
            "names": [name for name in os.environ if is_sendable(name)],
            "environment": sendable(environment),
            "out": self._had[STDOUT],
            "err": self._had[STDERR],
        }
        return json.dumps(hello).encode() + b"\n"

    def _join(self, connection: "Connection") -> dict[str, Any] | None:
        """Serve one connection. Returns how the run ended; None: the connection was lost before."""
        connection.settimeout(None)
        connection.sendall(self._hello())
        again, self._pending = self._pending, []
        for piece in again:
            self._send(connection, piece)
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
            ending = self._take(connection, frames.feed(data))
            if ending is not None:
                return ending
            if frames.refusal.endswith(b"\n"):
                raise _refused(frames.refusal)

    def _take(self, connection: "Connection", pieces: Sequence[tuple[bytes, bytes]]) -> dict[str, Any] | None:
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
                    # Whoever read the output is gone: the command is told as it would have been.
                    self._send(connection, frame(SIGNAL, bytes((signal.SIGPIPE,))))
        return None

    def _pass_signals(self, connection: "Connection") -> None:
        for number in os.read(self._woken, READ):
            self._send(connection, frame(SIGNAL, bytes((number,))))
            if number == signal.SIGTSTP:
                os.kill(os.getpid(), signal.SIGSTOP)

    def _send(self, connection: "Connection", piece: bytes) -> None:
        """Send a piece, or keep it for another connection: what has come on this one is still to be read."""
        try:
            connection.sendall(piece)
        except OSError:
            self._pending.append(piece)


def _lineage() -> tuple[int, int]:
    """The parent, and its parent: if one of them ends, so has the agent or the shell that it put between."""
    parent = os.getppid()
    try:
        with open(f"/proc/{parent}/stat", "rb") as file:  # noqa: PTH123  pathlib is not needed for anything else here
            words = file.read()
        return parent, int(words[words.rindex(b")") + 2 :].split()[1])
    except (OSError, ValueError):
        return parent, 0


def _refused(line: bytes) -> WhisperError:
    try:
        told = json.loads(line)["error"]
        return error_from(str(told["kind"]), str(told["message"]), str(told["hint"]))
    except (ValueError, KeyError, TypeError):
        return WhisperError("the supervisor's answer is not understood", hint="Run whisper-tui doctor")


def _write(descriptor: int, data: bytes) -> bool:
    """Write all of it. False: nobody reads it any more."""
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
        except OSError:
            return False
    return True


def _die(number: int) -> int:
    """Die of a signal, without a core of our own. Returns the shell's code for it where that cannot be done."""
    sys.stdout.flush()
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number not in {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return 128 + number
