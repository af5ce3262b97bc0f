"""What an agent starts before every command: passes on the question, waits, and prints the answer.

It starts once for each command, so it imports next to nothing: not even `socket` and `json`, which take longer to load
than Python itself. Whatever goes wrong, the answer is no.
"""

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Connection
    from collections.abc import Callable, Mapping, Sequence

    Connect = Callable[[], Connection]
    """Connects to the supervisor and starts one if none runs. Raises `OSError` and `WhisperError`."""

REFUSED = 2
"""The exit code that every client takes for a refusal."""

USUAL_DEADLINES_S = {"claude": 570.0, "codex": 570.0, "gemini": 50.0, "crush": 25.0, "opencode": 3600.0}
"""Seconds that each client waits for a hook by itself, less a margin. A hook that is late has allowed the command."""

MARGIN_S = 5.0
"""Seconds for the supervisor's own answer at the deadline, before the program says no by itself."""

LONGEST_INPUT = 2 * 1024 * 1024
"""Bytes of a question; no longer call is taken."""

AGAIN_S = 0.5

LOOK_EVERY_S = 2.0
"""Seconds between two looks at whether the shell that the agent put between is still there."""

LATE = "nobody has decided yet. Run the same command again to go on waiting"
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish"})


class Lost(Exception):
    """The supervisor went away before it answered."""


def run_hook(
    client: str,
    connect: "Connect",
    *,
    deadline_s: float,
    agent_runs: bool,
    launcher: "Sequence[str]",
    places: "Sequence[str]",
) -> int:
    """Ask about what stands on standard input. Prints the client's answer and returns its exit code."""
    try:
        hello = _hello(client, _stdin(), deadline_s, agent_runs=agent_runs, launcher=launcher, places=places)
        code, stdout, stderr = _ask(connect, hello, time.monotonic() + deadline_s + MARGIN_S)
    except KeyboardInterrupt:
        return REFUSED
    except Exception as error:  # noqa: BLE001  a hook that fails in any other way lets the command run
        hint = getattr(error, "hint", "")
        reason = f"{error}. {hint}" if hint else str(error) or type(error).__name__
        code, stdout, stderr = REFUSED, b"", f"whisper_tui: the command was not run: {reason}\n".encode()
    _write(1, stdout)
    _write(2, stderr)
    return code


def _ask(connect: "Connect", hello: bytes, deadline: float) -> tuple[int, bytes, bytes]:
    """The answer, over any supervisor's death: asking again is the same question."""
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(LATE)
        try:
            connection = connect()
            try:
                connection.settimeout(left)
                connection.sendall(hello)
                return _answer(connection, deadline)
            finally:
                connection.close()
        except (Lost, ConnectionError):
            time.sleep(min(AGAIN_S, max(left, 0.0)))


def _answer(connection: "Connection", deadline: float) -> tuple[int, bytes, bytes]:
    held = b""
    while b"\n" not in held:
        held += _more(connection, deadline)
    line, rest = held.split(b"\n", 1)
    if line.startswith(b"{"):
        raise ValueError(f"the supervisor refused the question: {line.decode('utf-8', 'replace')}")
    code, first, second = map(int, line.split())
    while len(rest) < first + second:
        rest += _more(connection, deadline)
    return code, rest[:first], rest[first : first + second]


def _more(connection: "Connection", deadline: float) -> bytes:
    """What comes next. Raises `Lost` at its end, and `TimeoutError` when time is over or the agent is gone."""
    parent = os.getppid()
    while True:
        connection.settimeout(min(LOOK_EVERY_S, max(0.01, deadline - time.monotonic())))
        try:
            data = connection.recv(1 << 16)
        except TimeoutError:
            if time.monotonic() > deadline:
                raise TimeoutError(LATE) from None
            if os.getppid() != parent:
                raise TimeoutError("the agent ended") from None
            continue
        if not data:
            raise Lost
        return data


def _hello(
    client: str,
    asked: bytes,
    deadline_s: float,
    *,
    agent_runs: bool,
    launcher: "Sequence[str]",
    places: "Sequence[str]",
) -> bytes:
    """The hello line. Written by hand, for the module that could write it takes too long to load."""
    from _json import encode_basestring_ascii as quoted

    environment = ",".join(f"{quoted(name)}:{quoted(value)}" for name, value in _variables(os.environ))
    members = (
        '"door":"hook","version":1',
        f'"client":{quoted(client)}',
        f'"input":{quoted(asked.decode("utf-8", "replace"))}',
        f'"nonce":"{os.urandom(12).hex()}"',
        f'"pid":{agent_pid(client, os.environ)}',
        f'"environment":{{{environment}}}',
        f'"launcher":[{",".join(map(quoted, launcher))}]',
        f'"places":[{",".join(map(quoted, places))}]',
        f'"deadline_s":{deadline_s}',
        f'"agent_runs":{"true" if agent_runs else "false"}',
    )
    return ("{" + ",".join(members) + "}\n").encode()


def _variables(environ: "Mapping[str, str]") -> list[tuple[str, str]]:
    """The variables that are text; others cannot be sent."""
    found = []
    for name, value in environ.items():
        try:
            (name + value).encode()
        except UnicodeEncodeError:
            continue
        found.append((name, value))
    return found


def agent_pid(client: str, environ: "Mapping[str, str]") -> int:
    """The agent's process: it says so, or is the parent, or the parent of the shell that it put between."""
    said = environ.get("CLAUDE_PID", "") if client == "claude" else ""
    if said.isascii() and said.isdigit():
        return int(said)
    parent = os.getppid()
    try:
        with open(f"/proc/{parent}/stat", "rb") as file:  # noqa: PTH123  pathlib takes longer than Python to load
            words = file.read()
    except OSError:
        return parent
    name = words[words.index(b"(") + 1 : words.rindex(b")")].decode("utf-8", "replace")
    return int(words[words.rindex(b")") + 2 :].split()[1]) if name in SHELLS else parent


def _stdin() -> bytes:
    """All of standard input. Raises `ValueError` if it is too long to be a question."""
    held = bytearray()
    while piece := _piece():
        held += piece
        if len(held) > LONGEST_INPUT:
            raise ValueError(f"the hook's input is longer than {LONGEST_INPUT:,} bytes")
    return bytes(held)


def _piece() -> bytes:
    try:
        return os.read(0, 1 << 16)
    except OSError as error:
        raise OSError(f"standard input, where the question stands, cannot be read: {error.strerror}") from error


def _write(descriptor: int, data: bytes) -> None:
    """Write all of it. An answer that does not arrive whole would let the command run: exits with a refusal."""
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError as error:
        if descriptor == 1:
            _write(
                2, f"whisper_tui: the command was not run: the answer cannot be written: {error.strerror}\n".encode()
            )
        sys.exit(REFUSED)
