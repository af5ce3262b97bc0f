"""The hook program, which an agent starts before every command: it forwards the request and prints the answer.

It imports neither `socket` nor `pathlib`, which take longer to load than Python itself. Every failure denies
(decision 17).
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from whisper_tui.agents.known_clients import KNOWN
from whisper_tui.model.protocol_version import HELLO_VERSIONS, LONGEST_REQUEST
from whisper_tui.model.text import sendable

if TYPE_CHECKING:
    from _socket import socket as Connection

    Connect = Callable[[], Connection]
    """Connects to the supervisor and starts one if none runs. Raises `OSError` and `WhisperError`."""

REFUSED = 2
"""The exit code that every client treats as a denial."""

MARGIN_S = 5.0
"""Seconds that the supervisor may take after the deadline before the program itself denies."""

LONGEST_INPUT = 12 * 1024 * 1024
"""The longest input in bytes: clients send the old and the new text of a file with an edit."""

RETRY_S = 0.5
"""Seconds before the request is repeated after a lost connection."""

CHECK_EVERY_S = 2.0
"""Seconds between two checks whether the parent, the agent or its shell, is still running."""

STILL_WAITING = "nobody has decided yet. Run the same command again to keep waiting"
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish"})


class ConnectionClosed(Exception):
    """The supervisor closed the connection before it answered."""


def run_hook(
    client: str,
    connect: "Connect",
    *,
    deadline_s: float,
    agent_runs: bool,
    launcher: Sequence[str],
    places: Sequence[str],
    after: bool = False,
) -> int:
    """Ask about the input on descriptor 0. Print the answer in the client's format and return its exit code.

    `after`: the input is of an event after a tool. Then every failure is silent, because nothing can be held any more.
    """
    try:
        hello = _hello(client, _stdin(), deadline_s, agent_runs=agent_runs, launcher=launcher, places=places)
        code, stdout, stderr = ask(connect, hello, time.monotonic() + deadline_s + MARGIN_S)
    except KeyboardInterrupt:
        return 0 if after else REFUSED  # An interrupted hook must not let the command run.
    except Exception as error:  # noqa: BLE001  after any other failure the client would run the command
        hint = getattr(error, "hint", "")
        reason = f"{error}. {hint}" if hint else str(error) or type(error).__name__
        code, stdout, stderr = REFUSED, b"", f"whisper_tui: the command was not run: {reason}\n".encode()
    if after and code != 0:
        return 0
    _write(1, stdout)
    _write(2, stderr)
    return code


def ask(connect: "Connect", hello: bytes, deadline: float) -> tuple[int, bytes, bytes]:
    """Ask until there is an answer."""
    # A supervisor may be replaced while a human decides. With the same nonce it is the same call.
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(STILL_WAITING)
        try:
            connection = connect()
            try:
                connection.settimeout(left)
                connection.sendall(hello)
                return _answer(connection, deadline)
            finally:
                connection.close()
        except (ConnectionClosed, ConnectionError):
            time.sleep(min(RETRY_S, max(left, 0.0)))


def _answer(connection: "Connection", deadline: float) -> tuple[int, bytes, bytes]:
    held = b""
    while b"\n" not in held:
        held += _receive(connection, deadline)
    line, rest = held.split(b"\n", 1)
    if line.startswith(b"{"):
        raise ValueError(f"the supervisor refused the request: {line.decode('utf-8', 'replace')}")
    code, first, second = map(int, line.split())
    while len(rest) < first + second:
        rest += _receive(connection, deadline)
    return code, rest[:first], rest[first : first + second]


def _receive(connection: "Connection", deadline: float) -> bytes:
    """Receive data. Raises `ConnectionClosed` at the end, and `TimeoutError` after the deadline or the agent's end."""
    # Agents do not always end their hooks when they end, and nobody would wait for the decision.
    starter = _starter()
    while True:
        connection.settimeout(min(CHECK_EVERY_S, max(0.01, deadline - time.monotonic())))
        try:
            data = connection.recv(1 << 16)
        except TimeoutError:
            if time.monotonic() > deadline:
                raise TimeoutError(STILL_WAITING) from None
            if _starter() != starter:
                raise TimeoutError("the agent ended") from None
            continue
        if not data:
            raise ConnectionClosed
        return data


def _hello(
    client: str,
    asked: bytes,
    deadline_s: float,
    *,
    agent_runs: bool,
    launcher: Sequence[str],
    places: Sequence[str],
) -> bytes:
    """Return the hello line."""
    hello = {
        "door": "hook",
        "version": HELLO_VERSIONS["hook"],
        "client": client,
        "input": asked.decode("utf-8", "replace"),
        "nonce": os.urandom(12).hex(),
        "pid": agent_pid(client, os.environ),
        "environment": sendable(os.environ),
        "launcher": list(launcher),
        "places": list(places),
        "deadline_s": deadline_s,
        "agent_runs": agent_runs,
    }
    line = json.dumps(hello, ensure_ascii=False).encode() + b"\n"
    if len(line) > LONGEST_REQUEST:
        raise ValueError(f"the request is {len(line):,} bytes long, and {LONGEST_REQUEST:,} can be sent at once")
    return line


def agent_pid(client: str, environ: Mapping[str, str]) -> int:
    """Return the agent's process id: as it reports it, or that of the process that started the hook."""
    said = environ.get(KNOWN[client].pid_variable, "")
    return int(said) if said.isascii() and said.isdigit() else _starter()


def _starter() -> int:
    """Return the process id of the parent, or of the parent of a shell in between."""
    parent = os.getppid()
    try:
        with open(f"/proc/{parent}/stat", "rb") as file:  # noqa: PTH123  pathlib takes longer than Python to load
            words = file.read()
    except OSError:
        return parent
    # Some clients start the hook through `sh -c`. That shell is then between the agent and the hook.
    name = words[words.index(b"(") + 1 : words.rindex(b")")].decode("utf-8", "replace")
    return int(words[words.rindex(b")") + 2 :].split()[1]) if name in SHELLS else parent


def _stdin() -> bytes:
    """Return all of standard input. Raises `ValueError` if it is too long."""
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
        raise OSError(f"standard input with the request cannot be read: {error.strerror}") from error


def _write(descriptor: int, data: bytes) -> None:
    """Write all of the data, or exit with a denial."""
    # After half an answer, clients would run the command.
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
