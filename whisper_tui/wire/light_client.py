"""A small synchronous client of the supervisor for commands that must start quickly. Standard library only."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

from whisper_tui import __version__
from whisper_tui.model.errors import InvalidRequest, OtherVersion, Unavailable, WhisperError, error_from
from whisper_tui.model.protocol_version import LONGEST_REQUEST, VERSION
from whisper_tui.system.processes import may_be_of_command, peer_process
from whisper_tui.wire.protocol import HAND_OVER, check_greeting, hello

if TYPE_CHECKING:
    # Importing `socket` and `pathlib` takes as long as everything else here.
    from _socket import socket as Connection

    from whisper_tui.system.state_directory import Directories

ANSWER_S = 60.0
"""Seconds within which an answer must arrive."""

NOTICE_S = 5.0
"""Seconds after which somebody who waits for an answer is told so."""

_GREETING_S = 5.0
"""The same for a greeting that one can do without."""
_ANY_NEWER = 1_000_000
"""A version of the protocol that no program will have."""

_AGAIN = "Running commands continue; try again"
_PIECE = 1 << 18
_WRITING = 1  # SHUT_WR


class SupervisorLost(Unavailable):
    """The connection to the supervisor was lost; it may be running again."""


class JsonLines:
    """JSON objects in both directions on one connection, one per line."""

    def __init__(self, connection: "Connection", waiting: "Callable[[], None] | None" = None) -> None:
        """`waiting` is called once an answer has not come for `NOTICE_S`."""
        self._connection = connection
        self._waiting = waiting
        self._held = bytearray()

    def send(self, content: dict[str, Any]) -> None:
        """Send an object. Raises `InvalidRequest` for one that is too long, and `ConnectionLost`."""
        line = json.dumps(content).encode() + b"\n"
        if len(line) > LONGEST_REQUEST:
            raise InvalidRequest(
                f"the request is {len(line):,} bytes long, and {LONGEST_REQUEST:,} can be sent at once"
            )
        try:
            # A full server refuses and closes before it reads. Its reason can still be received.
            with suppress(BrokenPipeError):
                self._connection.sendall(line)
        except OSError as error:
            raise _lost(error) from None

    def receive(self, seconds: float | None = ANSWER_S) -> dict[str, Any]:
        """Return the next object. `seconds` None: wait without a limit.

        Raises the supervisor's error, `SupervisorLost`, and `Unavailable` if no answer arrives in time.
        """
        try:
            answer = json.loads(self._line_within(seconds) or b"null")
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

    def fileno(self) -> int:
        """Return the descriptor of the connection, so that a caller can wait for several."""
        return self._connection.fileno()

    @property
    def has_line(self) -> bool:
        """True if the next object was already received. Then the descriptor may stay silent."""
        return b"\n" in self._held

    def give_up(self, seconds: float) -> None:
        """Close the sending half, and give the supervisor time to withdraw the request."""
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

    def _line_within(self, seconds: float | None) -> bytes:
        if self._waiting is None or (seconds is not None and seconds <= NOTICE_S):
            self._connection.settimeout(seconds)
            return self._line()
        self._connection.settimeout(NOTICE_S)
        try:
            return self._line()
        except TimeoutError:
            self._waiting()
            self._waiting = None
        self._connection.settimeout(None if seconds is None else seconds - NOTICE_S)
        return self._line()

    def _line(self) -> bytes:
        """Return one line, or an unfinished line at the end of the connection."""
        searched = 0
        while (end := self._held.find(b"\n", searched)) < 0:
            # Searching only the new part keeps an answer of 100 MB linear instead of quadratic.
            searched = len(self._held)
            piece = self._connection.recv(_PIECE)
            if not piece:
                end = searched
                break
            self._held += piece
        line = bytes(self._held[:end])
        del self._held[: end + 1]
        return line


class LightClient(JsonLines):
    """A client for one request at a time. Values are plain JSON with the structure of the model."""

    def __init__(self, connection: "Connection", waiting: "Callable[[], None] | None" = None) -> None:
        """Send the hello. Raises `Unavailable`, or `OtherVersion` if the versions do not fit."""
        super().__init__(connection, waiting)
        self._last_id = 0
        try:
            self.send(hello())
            self.greeting = self.receive()
            check_greeting(self.greeting)
        except WhisperError:
            self.close()
            raise

    def ask(self, operation: str, **arguments: Any) -> Any:
        """Send a request and return its answer. Raises the supervisor's error, or `Unavailable`."""
        self._request(operation, arguments)
        return self._answer()

    def ask_each(self, operation: str, parts: Iterable[dict[str, Any]]) -> Iterator[Any]:
        """Yield the answers to requests with these arguments; the supervisor works on the next one meanwhile."""
        asked = False
        for arguments in parts:
            answer = self._answer() if asked else None
            self._request(operation, arguments)
            if asked:
                yield answer
            asked = True
        if asked:
            yield self._answer()

    def _request(self, operation: str, arguments: dict[str, Any]) -> None:
        self._last_id += 1
        self.send({"id": self._last_id, "op": operation, "args": arguments})

    def _answer(self) -> Any:
        try:
            return self.receive()["ok"]
        except InvalidRequest as error:
            # Releases may add operations without a new version of the protocol.
            if error.message.startswith("there is no operation"):
                raise OtherVersion("the running supervisor is older than this program", hint=HAND_OVER) from error
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _lost(error: OSError | None = None) -> SupervisorLost:
    why = f" ({error.strerror})" if error is not None else ""
    return SupervisorLost(f"the connection to the supervisor was lost{why}", hint=_AGAIN)


def _error(told: dict[str, Any]) -> WhisperError:
    return error_from(str(told.get("kind", "")), str(told.get("message", "")), str(told.get("hint", "")))


def check_not_newer(home: "Directories") -> None:
    """Raise `OtherVersion` if a supervisor runs that speaks a newer protocol than this program."""
    from whisper_tui.wire.rendezvous import connect

    connection = connect(home)
    if connection is None:
        return
    lines = JsonLines(connection)
    try:
        # Only a supervisor that speaks a newer version accepts this.
        lines.send({**hello(), "version": _ANY_NEWER, "oldest": VERSION + 1})
        told = lines.receive(_GREETING_S)
    except WhisperError:
        return
    finally:
        lines.close()
    raise OtherVersion(
        f"the supervisor (whisper_tui {told.get('supervisor')}, pid {told.get('pid')}) is newer than this program: it "
        f"speaks version {told.get('version')} of the protocol, and this whisper_tui {__version__} version {VERSION}",
        hint="It was not stopped. To go back to this version, first run whisper-tui stop with the newer one",
    )


@contextmanager
def light_client(
    home: "Directories", *, start: bool = True, waiting: "Callable[[], None] | None" = None
) -> Iterator[LightClient]:
    """Connect for a few requests. `start`: start a supervisor if none runs; `waiting`: see `JsonLines`.

    Raises `WhisperError`, and `Unavailable` if none runs and `start` is false.
    """
    from whisper_tui.wire.rendezvous import connect, reach

    connection = reach(home) if start else connect(home)
    if connection is None:
        raise Unavailable(f"no supervisor runs for {home.state}", hint="Any other whisper-tui command starts one")
    with LightClient(connection, waiting) as questions:
        yield questions


# macOS allows 104 bytes for the path of a socket, with the final null. Linux allows 108.
_LONGEST_ADDRESS = 103


def connect_quickly(runtime: str) -> "Connection | None":
    """Connect to the socket in a runtime directory. None: the full check is necessary."""
    path = f"{runtime}/supervisor.sock"
    if not sys.platform.startswith("linux") or len(os.fsencode(path)) > _LONGEST_ADDRESS:
        return None
    # `socket` imports selectors and enum, which takes longer than the whole request.
    import _socket

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.connect(path)
        pid, uid = peer_process(connection)
    except OSError:
        connection.close()
        return None
    if uid != os.geteuid() or _may_be_supervised(pid):
        connection.close()
        return None
    return connection


def _may_be_supervised(pid: int) -> bool:
    """Return True if a process may be a supervised command. Then the full check decides."""
    try:
        with open(f"/proc/{pid}/limits", "rb") as file:  # noqa: PTH123
            return may_be_of_command(file.read())
    except OSError:
        return True


def quick_runtime(chosen: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """Return the runtime directory for these options and variables. None: `find_directories` has to decide.

    `chosen` is empty, `--home DIR` or `--directories CONFIG STATE RUNTIME`.
    """
    if len(chosen) == 4:
        return chosen[3]
    if len(chosen) == 2 and not chosen[1]:
        return None
    home = chosen[1] if len(chosen) == 2 else environ.get("WHISPER_TUI_HOME", "")
    if home:
        return os.path.join(os.path.abspath(home), "run")  # noqa: PTH100, PTH118
    user = environ.get("HOME")
    if sys.platform == "darwin" or not user:
        return None
    state, config = environ.get("XDG_STATE_HOME", ""), environ.get("XDG_CONFIG_HOME", "")
    usual = os.path.join(user, ".local/state")  # noqa: PTH118
    if state.startswith("/") or config.startswith("/"):  # With one of them, no pointer file counts.
        return os.path.join(state if state.startswith("/") else usual, "whisper_tui", "run")  # noqa: PTH118
    pointer = os.path.join(usual, "whisper_tui", "elsewhere")  # noqa: PTH118
    if os.path.lexists(pointer):
        from whisper_tui.system.state_directory import read_pointer

        if (pointed := read_pointer(pointer)) is not None:
            return pointed["runtime"]
    return os.path.join(usual, "whisper_tui", "run")  # noqa: PTH118


def usual_directories(environ: Mapping[str, str]) -> tuple[str, str, str] | None:
    """Return the default directories below the home directory. None: `find_directories` has to decide."""
    home = environ.get("HOME")
    if sys.platform == "darwin" or not home:
        return None
    state = os.path.join(home, ".local/state/whisper_tui")  # noqa: PTH118
    if os.path.lexists(os.path.join(state, "elsewhere")):  # noqa: PTH118
        return None
    return os.path.join(home, ".config/whisper_tui"), state, os.path.join(state, "run")  # noqa: PTH118
