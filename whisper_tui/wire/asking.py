"""A few short questions to the supervisor, in standard library Python: for commands that must be quick to start."""

import json
from contextlib import contextmanager, suppress

from whisper_tui.model.errors import InvalidRequest, Unavailable, WhisperError, error_from
from whisper_tui.wire.protocol import LONGEST_REQUEST
from whisper_tui.wire.versions import check_greeting, hello

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing and socket take as long to load as all else here
    from _socket import socket as Connection
    from collections.abc import Iterator
    from typing import Any, Self

    from whisper_tui.model.home import Home

ANSWER_S = 60.0
"""Seconds in which an answer has to come."""

_AGAIN = "What runs goes on; try again"
_PIECE = 1 << 18
_WRITING = 1  # SHUT_WR


class ConnectionLost(Unavailable):
    """The supervisor went away; it may be there again."""


class Talk:
    """Objects to and fro on one connection, a line each."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self._held = bytearray()

    def say(self, content: "dict[str, Any]") -> None:
        """Send an object. Raises `InvalidRequest` for one that is too long, and `ConnectionLost`."""
        line = json.dumps(content).encode() + b"\n"
        if len(line) > LONGEST_REQUEST:
            raise InvalidRequest(
                f"the request is {len(line):,} bytes long, and {LONGEST_REQUEST:,} can be sent at once"
            )
        try:
            with suppress(BrokenPipeError):  # Who is turned away at once hears why.
                self._connection.sendall(line)
        except OSError as error:
            raise _lost(error) from None

    def hear(self, seconds: float | None = ANSWER_S) -> "dict[str, Any]":
        """The next object. None: however long it takes. Raises what the supervisor raised, `ConnectionLost`, and
        `Unavailable` where it does not answer."""
        try:
            self._connection.settimeout(seconds)
            answer = json.loads(self._line() or b"null")
        except TimeoutError:
            raise Unavailable(f"the supervisor did not answer within {seconds:g} s", hint=_AGAIN) from None
        except OSError as error:
            raise _lost(error) from None
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise _lost()
        if "error" in answer:
            raise _error(answer["error"])
        return answer

    def give_up(self, seconds: float) -> None:
        """Say that nobody waits for an answer any more, and give the supervisor time to act on that."""
        with suppress(OSError):
            self._connection.settimeout(seconds)
            self._connection.shutdown(_WRITING)
            self.until_closed()

    def until_closed(self) -> None:
        """Wait until the supervisor ends the connection."""
        try:
            while self._connection.recv(_PIECE):
                pass
        except OSError:
            return

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def _line(self) -> bytes:
        """One line; what there is of it where the connection ends."""
        searched = 0
        while (end := self._held.find(b"\n", searched)) < 0:
            searched = len(self._held)
            piece = self._connection.recv(_PIECE)
            if not piece:
                end = searched
                break
            self._held += piece
        line = bytes(self._held[:end])
        del self._held[: end + 1]
        return line


class Asking(Talk):
    """One question at a time. Values are plain JSON in the shape of the model."""

    def __init__(self, connection: "Connection") -> None:
        """Say hello. Raises `Unavailable`; `OtherVersion` where nothing can be asked."""
        super().__init__(connection)
        self._last_id = 0
        try:
            self.say(hello())
            self.greeting = self.hear()
            check_greeting(self.greeting)
        except WhisperError:
            self.close()
            raise

    def ask(self, operation: str, **arguments: "Any") -> "Any":
        """The answer to one question. Raises what the supervisor raised, or `Unavailable`."""
        self._last_id += 1
        self.say({"id": self._last_id, "op": operation, "args": arguments})
        return self.hear()["ok"]

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _lost(error: OSError | None = None) -> ConnectionLost:
    why = f" ({error.strerror})" if error is not None else ""
    return ConnectionLost(f"the connection to the supervisor was lost{why}", hint=_AGAIN)


def _error(told: "dict[str, Any]") -> WhisperError:
    return error_from(str(told.get("kind", "")), str(told.get("message", "")), str(told.get("hint", "")))


@contextmanager
def asking(home: "Home", *, start: bool = True) -> "Iterator[Asking]":
    """A connection for a few questions. `start`: whether a supervisor is started when none runs.

    Raises `WhisperError`; `Unavailable` when none runs and none is to be started.
    """
    from whisper_tui.wire.rendezvous import connect, reach

    connection = reach(home) if start else connect(home)
    if connection is None:
        raise Unavailable(f"no supervisor runs for {home.state}", hint="Any other whisper-tui command starts one")
    with Asking(connection) as questions:
        yield questions
