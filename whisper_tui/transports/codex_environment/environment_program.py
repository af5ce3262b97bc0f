"""The program that Codex starts as its environment: it answers requests line by line at standard input and output.

Requests about processes are forwarded to the supervisor. Files are read and written here, with the rights of the user
who has started Codex, and only changes of them are asked about (decision 22).
"""

import base64
import json
import os
import platform
import secrets
import shutil
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whisper_tui import __version__
from whisper_tui.model.errors import Unavailable, WhisperError
from whisper_tui.model.protocol_version import HELLO_VERSIONS, LONGEST_REQUEST
from whisper_tui.model.text import sendable, visible
from whisper_tui.transports.codex_environment.environment_files import METHODS, FailedRequest, FileService, uri_of
from whisper_tui.transports.json_lines import (
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
    ConnectAgain = Callable[[], Connection | None]
    """The same after a lost connection. None: the supervisor was stopped on purpose, and somebody will start it."""

METHOD_NOT_FOUND, INTERNAL = -32601, -32603
AGAIN_EVERY_S = 0.3
"""Seconds between two attempts to reach the next supervisor."""
READERS = 4
"""Requests that only read files, carried out at the same time."""
FAREWELL_S = 2.0
FORWARDED = frozenset(f"process/{name}" for name in ("start", "read", "write", "signal", "terminate"))

Message = dict[str, Any]


def report(sentence: str) -> None:
    """Print a message for the people who look at Codex's log."""
    sys.stderr.write(f"whisper-tui executor: {visible(sentence)}\n")
    sys.stderr.flush()


def run_executor(connect: "Connect", connect_again: "ConnectAgain", *, asks_input: bool) -> int:
    """Serve Codex until it closes standard input. Return the exit code.

    Raises `WhisperError` and `OSError` without a connection.
    """
    hello = {
        "door": "executor",
        "version": HELLO_VERSIONS["executor"],
        "pid": os.getppid(),
        "directory": os.getcwd(),
        "environment": sendable(os.environ),
        "nonce": secrets.token_hex(16),
        "asks_input": asks_input,
    }
    return CodexEnvironment(connect(), connect_again, json.dumps(hello).encode() + b"\n").serve()


@dataclass
class BegunCommand:
    """A command that was forwarded to the supervisor and is not over, and what Codex was told about it."""

    request_id: int
    params: Message
    call_id: str | None = None
    """The number of its call. None: not known yet."""
    answered: bool = False
    exited: bool = False
    seq: int = 0
    received: dict[str, int] = field(default_factory=lambda: {"stdout": 0, "stderr": 0, "pty": 0})
    """Bytes of the command's output by stream."""

    def take_notification(self, method: str, params: Message) -> bytes | None:
        """Take a notification into account. Return it as it is for Codex, where it differs."""
        self.seq = int(params["seq"])
        self.exited = self.exited or method == "process/exited"
        if method != "process/output":
            return None
        if params.pop("whisperNote", False):
            return json.dumps({"method": method, "params": params}).encode()
        chunk = str(params["chunk"])
        self.received[str(params["stream"])] += len(chunk) // 4 * 3 - chunk[-2:].count("=")
        return None

    def again(self) -> Message:
        """Return the parameters with which another supervisor goes on with it."""
        if self.call_id is None:
            return self.params
        out, err = self.received["stdout"] + self.received["pty"], self.received["stderr"]
        known = {"callId": self.call_id, "out": out, "err": err, "seq": self.seq, "answered": self.answered}
        return {**self.params, "whisperGoesOn": known}


class CodexEnvironment:
    """One conversation with Codex, and the connection to the supervisor that decides with it."""

    def __init__(self, connection: "Connection", connect_again: "ConnectAgain", hello: bytes) -> None:
        self._connection = connection
        self._connect_again = connect_again
        self._hello = hello
        self._begun: dict[str, BegunCommand] = {}
        """By the id of the process."""
        self._pending: set[int] = set()
        """Other forwarded requests without an answer."""
        self._initialized_once = False
        self._refused = False
        """True if the supervisor does not want this program."""
        self._usable = threading.Event()
        self._usable.set()
        self._sending = threading.Lock()
        self._ended = threading.Event()
        self._code = 0
        self._questions: dict[str, _Question] = {}
        """Our own requests to the supervisor, by their ids."""
        self._to_codex = LineWriter(1, self._ended.set)
        self._readers = ThreadPoolExecutor(READERS, "files")
        self._files = FileService(self._ask)

    def serve(self) -> int:
        """Read both sides until Codex ends. Return the exit code. Raises `OSError` without a connection."""
        self._connection.settimeout(None)
        self._connection.sendall(self._hello)
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
        try:
            while True:
                self._read_connection()
                if self._ended.is_set() or self._refused or not self._reconnected():
                    break
        finally:
            if not self._ended.is_set():
                self._code = 1
                report("the supervisor cannot be used, so this environment ends. Start Codex again")
            self._fail_pending()
            self._ended.set()

    def _read_connection(self) -> None:
        """Pass back what the supervisor says, until its connection ends."""
        with suppress(OSError):
            for line in lines_in(lambda: self._connection.recv(1 << 18)):
                if line is not None:
                    self._pass_back(line)

    def _fail_pending(self) -> None:
        """Answer everything that waits for the lost supervisor, apart from commands: they go on."""
        lost = "the supervisor was stopped or restarted; look whether anything was done before you repeat it"
        for question in tuple(self._questions.values()):
            question.answer({"error": {"code": INTERNAL, "message": lost}})
        self._questions.clear()
        while self._pending:
            self._refuse(self._pending.pop(), INTERNAL, lost)

    def _reconnected(self) -> bool:
        """Connect to the next supervisor, however long that takes. False: Codex has ended."""
        self._usable.clear()
        self._fail_pending()
        report("the supervisor was stopped or restarted; the environment waits for the next one")
        while not self._ended.wait(AGAIN_EVERY_S):
            try:
                connection = self._connect_again()
                if connection is None:
                    continue
                connection.settimeout(None)
                connection.sendall(self._hello)
            except (WhisperError, OSError):
                continue
            with suppress(OSError):
                self._connection.close()
            self._connection = connection
            # In a thread of its own, because this one receives the answers.
            threading.Thread(target=self._go_on, daemon=True).start()
            return True
        return False

    def _go_on(self) -> None:
        """Have the new supervisor go on with the commands, and let Codex's requests pass."""
        with suppress(WhisperError, FailedRequest):
            if self._initialized_once:
                self._ask("initialize", {}, at_once=True)
            for process_id, begun in tuple(self._begun.items()):
                self._send_again(process_id, begun)
        self._usable.set()

    def _send_again(self, process_id: str, begun: BegunCommand) -> None:
        if begun.exited:
            del self._begun[process_id]
            self._to_codex.put(json.dumps(_closed(process_id, begun.seq + 1)).encode())
            return
        # Codex has the answer to the first one already, so that to the second one is for nobody.
        request_id = f"again {begun.request_id}" if begun.answered else begun.request_id
        message = {"id": request_id, "method": "process/start", "params": begun.again()}
        with suppress(OSError), self._sending:
            self._connection.sendall(json.dumps(message).encode() + b"\n")

    def _pass_back(self, line: bytes) -> None:
        """Forward a line of the supervisor, or take it as the answer to a question of our own."""
        message = json.loads(line)
        if "method" in message:
            self._notified(message["method"], message["params"], line)
            return
        request_id = message.get("id")
        question = self._questions.pop(str(request_id), None)
        if question is not None:
            question.answer(message)
        elif request_id is None and "error" in message:
            self._refused = True
            report(str(message["error"].get("message", "")))
        elif isinstance(request_id, int):
            self._pending.discard(request_id)
            self._note_answer(request_id, message)
            self._to_codex.forward(line)
        elif "error" in message:
            self._end_unknown(str(request_id), str(message["error"].get("message", "")))

    def _notified(self, method: str, params: Message, line: bytes) -> None:
        """Forward a notification, and remember what Codex was told."""
        begun = self._begun.get(str(params.get("processId")))
        if method == "whisper/submitted":
            if begun is not None:
                begun.call_id = str(params["callId"])
            return
        changed = begun.take_notification(method, params) if begun is not None else None
        # It waits while Codex does not read, so that a command with much output fills no memory.
        self._to_codex.forward(line if changed is None else changed)
        if method == "process/closed":
            self._begun.pop(str(params["processId"]), None)

    def _note_answer(self, request_id: int, message: Message) -> None:
        for process_id, begun in tuple(self._begun.items()):
            if begun.request_id == request_id:
                begun.answered = True
                if "error" in message:
                    del self._begun[process_id]

    def _end_unknown(self, request_id: str, problem: str) -> None:
        """Tell Codex the end of a command that the new supervisor does not go on with: nothing is known of it."""
        for process_id, begun in tuple(self._begun.items()):
            if request_id == f"again {begun.request_id}":
                del self._begun[process_id]
                text = f"whisper_tui: how the command ended is not known: {problem}\n".encode()
                stream = "pty" if begun.params.get("tty") else "stderr"
                place = {"processId": process_id}
                output = {**place, "seq": begun.seq + 1, "stream": stream, "chunk": base64.b64encode(text).decode()}
                ended = {**place, "seq": begun.seq + 2, "exitCode": 126, "sandboxDenied": False}
                for method, params in (("process/output", output), ("process/exited", ended)):
                    self._to_codex.put(json.dumps({"method": method, "params": params}).encode())
                self._to_codex.put(json.dumps(_closed(process_id, begun.seq + 3)).encode())

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
        elif method in FORWARDED and self._usable.is_set():
            self._forward(request_id, method, params, line)
        elif method in FORWARDED:
            # Meanwhile the end of Codex must be noticed, and files be read.
            threading.Thread(target=self._forward, args=(request_id, method, params, line), daemon=True).start()
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

    def _forward(self, request_id: int, method: str, params: Message, line: bytes) -> None:
        if len(line) >= LONGEST_REQUEST:
            self._refuse(request_id, INVALID_REQUEST, f"the request is longer than {LONGEST_REQUEST:,} bytes")
            return
        self._wait_until_usable()
        process_id = str(params.get("processId"))
        starts = method == "process/start" and process_id not in self._begun
        if starts:
            # Only we may say that it goes on.
            params.pop("whisperGoesOn", None)
            line = json.dumps({"id": request_id, "method": method, "params": params}).encode()
            self._begun[process_id] = BegunCommand(request_id, params)
        else:
            self._pending.add(request_id)
        try:
            with self._sending:
                self._connection.sendall(line + b"\n")
        except OSError:
            # A command is sent again with the next connection.
            if not starts and request_id in self._pending:
                self._pending.discard(request_id)
                self._refuse(request_id, INTERNAL, "the connection to the supervisor was lost, so nothing was done")

    def _wait_until_usable(self) -> None:
        while not self._usable.wait(AGAIN_EVERY_S) and not self._ended.is_set():
            pass

    def _ask(self, method: str, params: Message, *, at_once: bool = False) -> Message:
        """Send a request of our own to the supervisor and return its result. Raises `FailedRequest`."""
        if not at_once:
            self._wait_until_usable()
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
        answer = {**self._ask("initialize", params), "environmentInfo": environment_info()}
        self._initialized_once = True
        return answer


def _closed(process_id: str, seq: int) -> Message:
    return {"method": "process/closed", "params": {"processId": process_id, "seq": seq}}


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
