"""The program that Codex starts as its environment: it answers requests line by line at standard input and output.

Requests about processes are forwarded to the supervisor. Files are read and written here, with the rights of the user
who has started Codex, and only changes of them are asked about (decision 33).
"""

import json
import os
import platform
import shutil
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whisper_tui import __version__
from whisper_tui.model.errors import Unavailable, WhisperError
from whisper_tui.model.protocol_version import HELLO_VERSIONS, LONGEST_REQUEST
from whisper_tui.model.text import sendable, visible
from whisper_tui.transports.executor.executor_files import METHODS, FailedRequest, FileService, uri_of
from whisper_tui.transports.mcp.gateway_messages import (
    INVALID_REQUEST,
    LONGEST_LINE,
    InvalidMessage,
    LineWriter,
    lines_in,
    read_strictly,
)

if TYPE_CHECKING:
    from _socket import socket as Connection

    Connect = Callable[[], Connection]
    """Connects to the supervisor, and starts one if none runs. Raises `WhisperError` and `OSError`."""

METHOD_NOT_FOUND, INTERNAL = -32601, -32603
READERS = 4
"""Requests that only read files, carried out at the same time."""
FAREWELL_S = 2.0
FORWARDED = frozenset(f"process/{name}" for name in ("start", "read", "write", "signal", "terminate"))

Message = dict[str, Any]


def report(sentence: str) -> None:
    """Print a message for the people who look at Codex's log."""
    sys.stderr.write(f"whisper-tui executor: {visible(sentence)}\n")
    sys.stderr.flush()


def run_executor(connect: "Connect", *, asks_input: bool) -> int:
    """Serve Codex until it closes standard input or the supervisor ends. Return the exit code.

    Raises `WhisperError` and `OSError` without a connection.
    """
    connection = connect()
    connection.settimeout(None)
    hello = {
        "door": "executor",
        "version": HELLO_VERSIONS["executor"],
        "pid": os.getppid(),
        "directory": os.getcwd(),
        "environment": sendable(os.environ),
        "asks_input": asks_input,
    }
    connection.sendall(json.dumps(hello).encode() + b"\n")
    return CodexEnvironment(connection).serve()


class CodexEnvironment:
    """One conversation with Codex, and the connection to the supervisor that decides with it."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._ended = threading.Event()
        self._code = 0
        self._questions: dict[str, _Question] = {}
        """Our own requests to the supervisor, by their ids."""
        self._to_codex = LineWriter(1, self._ended.set)
        self._readers = ThreadPoolExecutor(READERS, "files")
        self._files = FileService(self._ask)

    def serve(self) -> int:
        """Read both sides until one of them ends. Return the exit code."""
        for target in (self._read_codex, self._read_supervisor):
            threading.Thread(target=target, daemon=True).start()
        self._ended.wait()
        self._to_codex.finish(FAREWELL_S)
        with suppress(OSError):
            self._connection.close()
        self._readers.shutdown(wait=False, cancel_futures=True)
        return self._code

    def _read_codex(self) -> None:
        try:
            for line in lines_in(lambda: os.read(0, 1 << 18)):
                self._take(line)
        except OSError as error:
            report(f"standard input cannot be read: {error.strerror}")
        finally:
            self._ended.set()

    def _read_supervisor(self) -> None:
        # Without the supervisor nothing may run, so its end is the end of the environment.
        try:
            for line in lines_in(lambda: self._connection.recv(1 << 18)):
                if line is not None:
                    self._pass_back(line)
        except OSError:
            pass
        finally:
            if not self._ended.is_set():
                self._code = 1
                report("the supervisor was stopped or restarted, so this environment ends. Start Codex again")
            for question in tuple(self._questions.values()):
                question.answer({"error": {"code": INTERNAL, "message": "the connection to the supervisor was lost"}})
            self._ended.set()

    def _pass_back(self, line: bytes) -> None:
        """Forward a line of the supervisor, or take it as the answer to a question of our own."""
        message = json.loads(line)
        question = self._questions.pop(str(message.get("id")), None) if "method" not in message else None
        if question is not None:
            question.answer(message)
        elif "id" not in message and "error" in message:
            report(str(message["error"].get("message", "")))
        elif "method" in message or message.get("id") is not None:
            # It waits while Codex does not read, so that a command with much output fills no memory.
            self._to_codex.forward(line)

    def _take(self, line: bytes | None) -> None:
        if line is None:
            self._refuse(None, INVALID_REQUEST, f"the message is longer than {LONGEST_LINE:,} bytes")
            return
        try:
            message = read_strictly(line)
        except InvalidMessage as error:
            self._refuse(None, error.code, str(error))
            return
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            self._refuse(None, INVALID_REQUEST, "the message is no request")
            return
        params = message.get("params")
        if "id" in message:
            self._request(message["id"], message["method"], params if isinstance(params, dict) else {}, line)

    def _request(self, request_id: Any, method: str, params: Message, line: bytes) -> None:
        if not isinstance(request_id, int) or isinstance(request_id, bool):
            # Our own questions to the supervisor have texts as ids.
            self._refuse(None, INVALID_REQUEST, "the id of a request must be a whole number")
        elif method in FORWARDED:
            self._forward(request_id, line)
        elif method == "initialize":
            self._in_thread(request_id, lambda: self._initialized(params))
        elif method in METHODS and METHODS[method].reads:
            self._readers.submit(self._answer, request_id, lambda: self._files.carry_out(method, params))
        elif method in METHODS:
            # It may wait for a human for hours, so it takes none of the readers.
            self._in_thread(request_id, lambda: self._files.carry_out(method, params))
        elif method == "environmentConfig/read":
            self._answer(request_id, _configuration)
        else:
            self._refuse(request_id, METHOD_NOT_FOUND, f"whisper-tui executor does not know {visible(method)[:100]}")

    def _in_thread(self, request_id: int, work: Callable[[], Message]) -> None:
        threading.Thread(target=self._answer, args=(request_id, work), daemon=True).start()

    def _answer(self, request_id: int, work: Callable[[], Message]) -> None:
        try:
            result = work()
        except FailedRequest as problem:
            self._refuse(request_id, problem.code, str(problem))
        except WhisperError as error:
            self._refuse(request_id, INTERNAL, error.sentence())
        except Exception as error:  # noqa: BLE001  Codex would wait for ever
            self._refuse(request_id, INTERNAL, f"the request was not carried out: {type(error).__name__}")
        else:
            self._to_codex.put(json.dumps({"id": request_id, "result": result}).encode())

    def _refuse(self, request_id: int | None, code: int, message: str) -> None:
        error = {"code": code, "message": message}
        self._to_codex.put(json.dumps({"id": request_id, "error": error}).encode())

    def _forward(self, request_id: int, line: bytes) -> None:
        if len(line) >= LONGEST_REQUEST:
            self._refuse(request_id, INVALID_REQUEST, f"the request is longer than {LONGEST_REQUEST:,} bytes")
            return
        try:
            with self._sending:
                self._connection.sendall(line + b"\n")
        except OSError:
            self._refuse(request_id, INTERNAL, "the connection to the supervisor was lost, so nothing was done")

    def _ask(self, method: str, params: Message) -> Message:
        """Send a request of our own to the supervisor and return its result. Raises `FailedRequest`."""
        question = _Question()
        name = f"whisper {id(question):x}"
        self._questions[name] = question
        line = json.dumps({"id": name, "method": method, "params": params}).encode() + b"\n"
        if len(line) > LONGEST_REQUEST:
            del self._questions[name]
            raise FailedRequest(INVALID_REQUEST, f"the request is longer than {LONGEST_REQUEST:,} bytes")
        try:
            with self._sending:
                self._connection.sendall(line)
        except OSError as error:
            raise Unavailable("the connection to the supervisor was lost", hint="Start Codex again") from error
        return question.result()

    def _initialized(self, params: Message) -> Message:
        """Open or resume a session, and say what this machine is like."""
        return {**self._ask("initialize", params), "environmentInfo": environment_info()}


class _Question:
    """A request of our own, whose answer another thread receives."""

    def __init__(self) -> None:
        self._answered = threading.Event()
        self._content: Message = {}

    def answer(self, content: Message) -> None:
        self._content = content
        self._answered.set()

    def result(self) -> Message:
        """Wait for the answer, for as long as a human takes. Raises `FailedRequest`."""
        self._answered.wait()
        if "error" in self._content:
            error = self._content["error"]
            raise FailedRequest(int(error.get("code", INTERNAL)), str(error.get("message", "")))
        result: Message = self._content["result"]
        return result


CAPABILITIES = (
    "networkProxyLaunch",
    "networkProxyReviewDomains",
    "credentialMasking",
    "credentialMaskingCustomProviders",
    "capabilityDiscoverySandbox",
    "fsWatchMissing",
    "capabilityDiscoveryV2",
    "httpHeaderEnvVars",
    "sandboxedFileStreaming",
    "fileWriteStreaming",
    "shellSnapshotV2",
    "windowsMxc",
    "linuxRootWritePreservesDevices",
    "linuxApprovedRootWritePreservesRestrictions",
)
"""Abilities of Codex's own executor, none of which this one has."""


def environment_info() -> Message:
    """Return what Codex has to know about this machine."""
    shell = next((path for path in ("/bin/bash", "/usr/bin/bash") if os.access(path, os.X_OK)), None)
    shell = shell or shutil.which("bash") or "/bin/sh"
    home = os.path.expanduser("~")
    return {
        "shell": {"name": Path(shell).name, "path": shell},
        "executorVersion": __version__,
        "providerId": "whisper_tui",
        "cwd": uri_of(os.getcwd()),
        "userHomeDir": uri_of(home),
        "platformOs": "macos" if sys.platform == "darwin" else platform.system().lower(),
        "prependPathDirs": [],
        "temporaryDirectories": [],
        "tempDir": uri_of(os.environ.get("TMPDIR") or "/tmp"),  # noqa: S108
        "capabilities": {**dict.fromkeys(CAPABILITIES, False), "environmentConfigRead": True},
    }


def _configuration() -> Message:
    """Return the configuration of Codex on this machine: none beside that which it has read itself."""
    home = os.path.expanduser("~")
    nothing = {"layers": [], "cloudInsertionIndex": 0}
    return {
        "userHomeDir": uri_of(home),
        "codexHomeDir": uri_of(os.environ.get("CODEX_HOME") or f"{home}/.codex"),
        "hostname": platform.node(),
        "config": nothing,
        "requirements": nothing,
    }
