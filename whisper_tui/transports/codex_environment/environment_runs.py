"""The commands of Codex's environment: what a request to start one means, and its output as numbered messages."""

import asyncio
import base64
import fnmatch
import json
import os
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field

from whisper_tui.model.api import Supervision
from whisper_tui.model.call import LONGEST_NAME, Argv, CallId, ClientInfo, Command, Session, SessionHello, Shell, digest
from whisper_tui.model.ending import Denied, Ending, FailedToStart, HandedOver, Lost, TimedOut, Withdrawn
from whisper_tui.model.errors import InvalidRequest, WhisperError
from whisper_tui.model.run import Stream
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.tools.agent_text import agent_note, failure_of
from whisper_tui.transports.hook.exec_endpoint import LiveOutput, program_end

Message = dict[str, Any]
Notify = Callable[[str, Message], None]
"""Sends a notification to Codex, if it is connected."""
Drain = Callable[[], Awaitable[None]]
"""Waits while Codex does not read."""

BASH = frozenset({"/bin/bash", "/usr/bin/bash"})
"""Shells whose text is read as the text of bash. The model can name any other program, whatever that is called."""

MOST_KEPT = 1 << 20
"""Bytes of the newest output of a command that are kept for a repeated read."""

LONGEST_CHUNK = 1 << 16
"""Bytes of output in one message. The program queues a number of messages for a Codex that does not read."""

LONGEST_READ_S = 30.0

TIMED_OUT, NOT_RUN, NOT_FOUND = 124, 126, 127
"""Exit codes for ends without one: those that shells have for them."""


class _Given(BaseModel):
    """Parameters of Codex. Unknown ones are for programs with other abilities."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class Metadata(_Given):
    """The thread and the call of a tool that a command belongs to."""

    threadId: str = ""
    toolCallId: str = ""


class EnvironmentPolicy(_Given):
    """The choice of the user which variables commands inherit."""

    inherit: str = "all"
    ignoreDefaultExcludes: bool = True
    exclude: tuple[str, ...] = Field(default=(), strict=False)
    set: dict[str, str] = Field(default_factory=dict)
    includeOnly: tuple[str, ...] = Field(default=(), strict=False)


class KnownCommand(_Given):
    """A command that was begun with a supervisor that has ended, and what Codex was told about it."""

    callId: CallId
    out: int = Field(default=0, ge=0)
    """Bytes of standard output that Codex has."""
    err: int = Field(default=0, ge=0)
    seq: int = Field(default=0, ge=0)
    """The number of the last notification."""
    answered: bool = False
    """True if Codex knows that it has started."""


class StartParams(_Given):
    """A request to start a command."""

    processId: str = Field(min_length=1, max_length=500)
    metadata: Metadata | None = None
    argv: tuple[str, ...] = Field(min_length=1, strict=False)
    cwd: str
    envPolicy: EnvironmentPolicy | None = None
    env: dict[str, str] = Field(default_factory=dict)
    tty: bool = False
    pipeStdin: bool = False
    arg0: str | None = None
    sandbox: dict[str, Any] | None = None
    enforceManagedNetwork: bool = False
    managedNetwork: Any = None
    whisperGoesOn: KnownCommand | None = None
    """Set by our own program, after the supervisor was restarted."""

    def check(self) -> None:
        """Raise `InvalidRequest` for what this environment cannot do as it was asked."""
        if self.arg0 is not None and self.arg0 != self.argv[0]:
            raise InvalidRequest("a command with another name than its program's cannot be judged", hint="Leave it out")
        if self.enforceManagedNetwork or self.managedNetwork is not None:
            # Running it without the network policy of Codex would give it more than its user allows.
            raise InvalidRequest(
                "the network of commands is not managed here", hint="Switch the managed network of Codex off"
            )


class OutputRequest(BaseModel):
    """A request for output that was sent before."""

    processId: str
    afterSeq: int | None = None
    waitMs: float | None = None


class TypedInput(BaseModel):
    """A request to type into a command."""

    processId: str
    chunk: str


class SignalToSend(BaseModel):
    """A request to send a signal."""

    processId: str
    signal: str


class ProcessRequest(BaseModel):
    """A request about a command."""

    processId: str


def process_key(nonce: str, process_id: str) -> str:
    """Return the key of a process's call, which only the program that has the nonce can know."""
    return f"executor {digest(json.dumps([nonce, process_id]))}"


def directory_in(uri: str) -> str:
    """Return the directory that a URI means. Raises `InvalidRequest`."""
    parts = urlsplit(uri)
    path = unquote(parts.path)
    if parts.scheme != "file" or parts.netloc or not path.startswith("/") or "\0" in path:
        raise InvalidRequest("a directory must be a file URI with an absolute path", hint="Send file:///…")
    return path


def command_of(argv: tuple[str, ...]) -> Command:
    """Return a command as the policy reads it: the text of bash, or a program with its arguments."""
    match argv:
        case (shell, ("-c" | "-lc") as option, text) if shell in BASH:
            return Shell(text=text, shell=shell, login=option == "-lc")
        case (program, *arguments):
            return Argv(program=program, args=tuple(arguments))
    raise InvalidRequest("a command needs a program", hint="Send its words")


_CORE = frozenset("HOME LANG LC_ALL LC_CTYPE LOGNAME PATH SHELL TEMP TERM TMP TMPDIR USER USERNAME".split())
_SECRET = ("*KEY*", "*SECRET*", "*TOKEN*")
OF_ONE_CALL = "CODEX_TOOL_CALL_ID"
OF_ONE_THREAD, OF_SESSION = "CODEX_THREAD_ID", "CODEX_SESSION_ID"


def environment_for(own: Mapping[str, str], asked: StartParams) -> dict[str, str]:
    """Return the variables of a session's commands: ours as the policy of Codex chooses them, and those that it adds.

    Without the variable that differs from call to call: an environment belongs to a session.
    """
    policy = asked.envPolicy or EnvironmentPolicy()
    match policy.inherit:
        case "all":
            found = dict(own)
        case "core":
            found = {name: value for name, value in own.items() if name in _CORE}
        case _:
            found = {}
    if not policy.ignoreDefaultExcludes:
        found = _without(found, _SECRET)
    found = _without(found, policy.exclude) | policy.set
    if policy.includeOnly:
        found = {name: value for name, value in found.items() if _matches(name, policy.includeOnly)}
    added = {name: value for name, value in asked.env.items() if name != OF_ONE_CALL}
    if added.get(OF_SESSION):
        added[OF_ONE_THREAD] = added[OF_SESSION]
    return found | added


def _without(variables: Mapping[str, str], patterns: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if not _matches(name, patterns)}


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name.upper(), pattern.upper()) for pattern in patterns)


def exit_of(record: CallRecord, ending: Ending) -> tuple[int, str]:
    """Return the exit code for Codex, and the text for its model in place of output. A denial has code 126."""
    match ending:
        case Denied() | Withdrawn() | HandedOver() | Lost():
            return NOT_RUN, failure_of(ending).sentence()
        case FailedToStart(message=message):
            return NOT_FOUND, f"The command was not started: {message}"
        case _:
            end = program_end(record, ending, dies=False)
            return (TIMED_OUT if isinstance(ending, TimedOut) else int(end["code"])), str(end.get("said", ""))


class ProcessRun:
    """One command of Codex: its call, and what Codex was told about it."""

    def __init__(self, supervision: Supervision, asked: StartParams, notify: Notify, drain: Drain) -> None:
        self.process_id = asked.processId
        self.call_id: str | None = None
        """None: it was not submitted yet."""
        self.exit_code: int | None = None
        """None: it has not ended."""
        self.closed = False
        self.ready = asyncio.Event()
        """Set once it has a process or its ending."""
        self.answered = asyncio.Event()
        """Set once Codex has the answer to its request, or is gone."""
        self.writing = asyncio.Lock()
        """Held while input is asked about or written, so that it arrives in its order."""
        self._supervision = supervision
        self._notify = notify
        self._drain = drain
        self._tty = asked.tty
        self._known = asked.whisperGoesOn
        self._seq = 0 if self._known is None else self._known.seq
        self._chunks: deque[Message] = deque()
        self._kept = 0
        self._changed = asyncio.Event()

    async def follow(self, call_id: str) -> None:
        """Wait until the call has started or ended, and send its output and its end."""
        try:
            record = await self._supervision.started(call_id)
            self.ready.set()
            await self.answered.wait()
            known = self._known
            if (known is None or not known.answered) and (note := agent_note(record)) is not None:
                self._say(note)
            if not isinstance(record.state, Ended) or record.state.attempt is not None:
                out, err = (0, 0) if known is None else (known.out, known.err)
                async for stream, data in LiveOutput(self._supervision, call_id, out, err).pieces():
                    for at in range(0, len(data), LONGEST_CHUNK):
                        self._output(stream, data[at : at + LONGEST_CHUNK])
                        await self._drain()
                record = await self._supervision.outcome(call_id)
            code, said = exit_of(record, record.state.ending) if isinstance(record.state, Ended) else (NOT_RUN, "")
        except WhisperError as error:
            code, said = NOT_RUN, error.sentence()
        self.ready.set()
        await self.answered.wait()
        if said:
            self._say(said)
        self.exit_code = code
        self._send("process/exited", {"exitCode": code, "sandboxDenied": False})
        self.closed = True
        self._send("process/closed", {})

    def _say(self, sentence: str) -> None:
        end = "\r\n" if self._tty else "\n"
        self._output("err", f"whisper_tui: {sentence}{end}".encode("utf-8", "replace"), ours=True)

    def _output(self, stream: Stream, data: bytes, *, ours: bool = False) -> None:
        name = "pty" if self._tty else {"out": "stdout", "err": "stderr"}[stream]
        chunk = {"stream": name, "chunk": base64.b64encode(data).decode()}
        # The program counts the command's own output, to go on there with another supervisor.
        self._send("process/output", {**chunk, "whisperNote": True} if ours else chunk)
        self._chunks.append({"seq": self._seq, **chunk})
        self._kept += len(data)
        while self._kept > MOST_KEPT and len(self._chunks) > 1:
            self._kept -= len(self._chunks.popleft()["chunk"]) * 3 // 4

    def _send(self, method: str, content: Message) -> None:
        self._seq += 1
        self._notify(method, {"processId": self.process_id, "seq": self._seq, **content})
        self._changed.set()
        self._changed = asyncio.Event()

    async def read(self, after: int, wait_s: float) -> Message:
        """Return the output after a number, and the true state. If there is nothing new, wait for it, but not long."""
        if self._seq <= after and not self.closed:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(wait_s, LONGEST_READ_S)):
                    await self._changed.wait()
        return {
            "chunks": [chunk for chunk in self._chunks if chunk["seq"] > after],
            "nextSeq": self._seq + 1,
            "exited": self.exit_code is not None,
            "exitCode": self.exit_code,
            "closed": self.closed,
            "failure": None,
        }


CLIENT = ClientInfo(name="codex")


class CodexSessions:
    """Sessions of Codex in the queue: the same that its hooks have."""

    def __init__(
        self, supervision: Supervision, pid: int | None, directory: str, environment: Mapping[str, str]
    ) -> None:
        """`pid` is that of Codex; `directory` and `environment` are those in which the program was started."""
        self._supervision = supervision
        self._pid = pid
        self._directory = directory
        self._environment = dict(environment)
        self._newest: dict[str, Session] = {}
        """By workspace: the session of the newest command there."""

    async def of_command(self, asked: StartParams, thread: str) -> tuple[Session, str]:
        """Return the session of a command, and the name that Codex has for it."""
        environment = environment_for(self._environment, asked)
        name = environment.get(OF_SESSION) or thread
        roots = asked.sandbox.get("workspaceRoots") if asked.sandbox is not None else None
        root = directory_in(roots[0]) if isinstance(roots, list) and roots else self._directory
        return await self._open(root, name, environment), name

    async def newest_in(self, root: str | None) -> Session:
        """Return the session of the newest command in a workspace: requests about files name no thread."""
        place = root or self._directory
        known = self._newest.get(place)
        if known is not None and (await self._supervision.session(known.id)).closed_at is None:
            return known
        return await self._open(place, "", self._environment)

    async def _open(self, root: str, name: str, environment: Mapping[str, str]) -> Session:
        hello = SessionHello(
            name=f"{os.path.basename(root) or root} (codex)"[-LONGEST_NAME:],
            root=root,
            client=CLIENT,
            pid=self._pid,
            environment=dict(environment),
            key=f"codex {name or self._pid}"[:LONGEST_NAME],
        )
        session = await self._supervision.open_session(hello)
        await self._supervision.describe_session(session.id, CLIENT)
        self._newest[root] = session
        return session
