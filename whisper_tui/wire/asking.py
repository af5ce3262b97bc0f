"""A few short questions to the supervisor, in standard library Python: for commands that must be quick to start."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

from whisper_tui.model.errors import InvalidRequest, Unavailable, WhisperError, error_from
from whisper_tui.model.home import Home
from whisper_tui.wire.protocol import LONGEST_REQUEST
from whisper_tui.wire.rendezvous import connect, reach
from whisper_tui.wire.versions import check_greeting, hello

ANSWER_S = 60.0
"""Seconds in which an answer has to come."""


class Asking:
    """One connection; one question at a time. Values are plain JSON in the shape of the model."""

    def __init__(self, connection: socket.socket) -> None:
        """Say hello. Raises `Unavailable`; `OtherVersion` where nothing can be asked."""
        connection.settimeout(ANSWER_S)
        self._connection = connection
        self._lines = connection.makefile("rb")
        self._last_id = 0
        try:
            self.greeting = self._exchange(hello())
            check_greeting(self.greeting)
        except WhisperError:
            self.close()
            raise

    def ask(self, operation: str, **arguments: Any) -> Any:
        """The answer to one question. Raises what the supervisor raised, or `Unavailable`."""
        self._last_id += 1
        return self._exchange({"id": self._last_id, "op": operation, "args": arguments})["ok"]

    def until_closed(self) -> None:
        """Wait until the supervisor ends the connection."""
        try:
            while self._lines.readline():
                pass
        except OSError:
            return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._lines.close()
        self._connection.close()

    def _exchange(self, content: dict[str, Any]) -> dict[str, Any]:
        line = json.dumps(content).encode() + b"\n"
        if len(line) > LONGEST_REQUEST:
            raise InvalidRequest(
                f"the request is {len(line):,} bytes long, and {LONGEST_REQUEST:,} can be sent at once"
            )
        try:
            with suppress(BrokenPipeError):  # Who is turned away at once hears why.
                self._connection.sendall(line)
            answer = json.loads(self._lines.readline() or b"null")
        except TimeoutError:
            raise _unavailable(f"the supervisor did not answer within {ANSWER_S:g} s") from None
        except OSError as error:
            raise _unavailable(f"the connection to the supervisor was lost ({error.strerror})") from None
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise _unavailable("the connection to the supervisor was lost")
        if "error" in answer:
            raise _error(answer["error"])
        return answer


def _unavailable(message: str) -> WhisperError:
    return Unavailable(message, hint="What runs goes on; try again")


def _error(told: dict[str, Any]) -> WhisperError:
    return error_from(str(told.get("kind", "")), str(told.get("message", "")), str(told.get("hint", "")))


@contextmanager
def asking(home: Home, *, start: bool = True) -> Iterator[Asking]:
    """A connection for a few questions. `start`: whether a supervisor is started when none runs.

    Raises `WhisperError`; `Unavailable` when none runs and none is to be started.
    """
    connection = reach(home) if start else connect(home)
    if connection is None:
        raise Unavailable(f"no supervisor runs for {home.state}", hint="Any other whisper-tui command starts one")
    with Asking(connection) as questions:
        yield questions
