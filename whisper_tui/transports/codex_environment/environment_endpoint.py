"""The supervisor's end of Codex's environment: commands, typed input and edits become calls in the queue.

The answer to a request is held until a human has decided: Codex waits for it without a limit (decision 22).
"""

import asyncio
import base64
import binascii
import json
import os
import secrets
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from whisper_tui.model.api import Supervision
from whisper_tui.model.call import (
    LARGEST_PID,
    LONGEST_NAME,
    LONGEST_PATH,
    Argv,
    CallRequest,
    CommandSpec,
    DeleteFile,
    FileChange,
    FileEdits,
    WriteFile,
)
from whisper_tui.model.decision import Decider
from whisper_tui.model.ending import Denied, Exited, HandedOver, Lost, Withdrawn
from whisper_tui.model.errors import InvalidRequest, NotRunning, Refused, WhisperError
from whisper_tui.model.state import CallRecord, Ended, Held, Unjudged, Waiting
from whisper_tui.model.value import Value
from whisper_tui.tools.agent_text import failure_of
from whisper_tui.transports.codex_environment.environment_runs import (
    CodexSessions,
    OutputRequest,
    ProcessRequest,
    ProcessRun,
    SignalToSend,
    StartParams,
    TypedInput,
    command_of,
    directory_in,
    exit_of,
    process_key,
)
from whisper_tui.transports.hook.hook_endpoint import CANARY
from whisper_tui.transports.typed_input import type_once_approved

INVALID_PARAMS, UNKNOWN_METHOD, FAILED = -32602, -32601, -32603

RESUMED_WITHIN_S = 30.0
"""Seconds for which the commands of a lost connection are kept for Codex to come back."""
INPUT_S = 30.0
"""Seconds that a program has to read what was typed."""
MOST_RUNS = 2000
"""Commands of one session that are remembered; the oldest that has ended is forgotten."""

SIGNALS = {"interrupt": signal.SIGINT, "terminate": signal.SIGTERM, "kill": signal.SIGKILL, "hangup": signal.SIGHUP}
AGENT = Decider(surface="agent")
GONE = "Codex has lost its environment, or has ended"

Message = dict[str, Any]


class ExecutorHello(Value):
    """The hello of the program: who has started it, where, and with which variables."""

    door: str
    version: int
    pid: int | None = Field(default=None, ge=0, le=LARGEST_PID)
    directory: str = Field(max_length=LONGEST_PATH)
    environment: dict[str, str]
    nonce: str = Field(min_length=16, max_length=100)
    """Chosen by the program and secret: it proves to another supervisor that a command is its own."""
    asks_input: bool = True
    """True if each typed text is asked about, False if the approval of the command covers it."""


class ExecutorState:
    """The commands of one session of Codex, which survive a lost connection."""

    def __init__(self) -> None:
        self.id = f"whisper-{secrets.token_hex(16)}"
        self.runs: dict[str, ProcessRun] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.send: Callable[[Message], None] | None = None
        """Sends a message to Codex. None: it is not connected."""
        self.writer: asyncio.StreamWriter | None = None
        self.expiry: asyncio.TimerHandle | None = None

    def notify(self, method: str, params: Message) -> None:
        """Send a notification, if Codex is connected."""
        if self.send is not None:
            self.send({"method": method, "params": params})

    async def drain(self) -> None:
        """Wait while Codex is connected and does not read."""
        if self.writer is not None:
            with suppress(ConnectionError):
                await self.writer.drain()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task that belongs to the session and not to the connection."""
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def make_room(self) -> None:
        """Forget the oldest command that has ended, if there are many. Raises `Refused` if all of them run."""
        if len(self.runs) < MOST_RUNS:
            return
        ended = next((name for name, run in self.runs.items() if run.closed), None)
        if ended is None:
            raise Refused(f"{MOST_RUNS:,} commands run already", hint="Wait until one has ended")
        del self.runs[ended]


class ExecutorEndpoint:
    """Serves the environments of Codex over one supervision."""

    def __init__(self, supervision: Supervision) -> None:
        self._supervision = supervision
        self._states: dict[str, ExecutorState] = {}

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: Message) -> None:
        """Serve one connection. After its end, Codex may come back to its commands for a while."""
        try:
            said = ExecutorHello.model_validate(hello)
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            raise InvalidRequest(f"the hello of executor is wrong: {problem['loc']}: {problem['msg']}") from error
        connection = _CodexConnection(self._supervision, said, writer, self._attach)
        try:
            await connection.serve(reader)
        finally:
            self._detach(connection)

    def _attach(self, resumed: object) -> ExecutorState:
        """Return a new session, or the one that Codex names. Raises `Refused`."""
        if resumed is None:
            state = ExecutorState()
            self._states[state.id] = state
            return state
        found = self._states.get(resumed) if isinstance(resumed, str) else None
        if found is None:
            raise Refused("there is no such session of this environment", hint="Begin a new one")
        if found.send is not None:
            raise Refused("this session is connected already", hint="Begin a new one")
        if found.expiry is not None:
            found.expiry.cancel()
        return found

    def _detach(self, connection: "_CodexConnection") -> None:
        state = connection.state
        if state is None:
            return
        state.send = state.writer = None
        # At once, because Codex seldom comes back, and a human should know for whom they decide.
        state.start(self._mark(state))
        state.expiry = asyncio.get_running_loop().call_later(RESUMED_WITHIN_S, self._expire, state)

    def _expire(self, state: ExecutorState) -> None:
        self._states.pop(state.id, None)
        state.start(self._give_up(state))

    async def _mark(self, state: ExecutorState) -> None:
        """Mark the calls that wait: their agent is not there."""
        for run in tuple(state.runs.values()):
            if run.call_id is not None and not run.ready.is_set():
                with suppress(WhisperError):
                    await self._supervision.leave(run.call_id, GONE)

    async def _give_up(self, state: ExecutorState) -> None:
        """Withdraw the calls that wait. Commands that run go on, as those of other agents do."""
        for run in tuple(state.runs.values()):
            if run.call_id is not None and not run.closed:
                with suppress(WhisperError):
                    await self._supervision.withdraw(run.call_id, GONE)
        for task in tuple(state.tasks):
            if task is not asyncio.current_task():
                task.cancel()


class _EditParams(BaseModel):
    path: str
    content: str | None
    root: str | None


class _RunParams(BaseModel):
    argv: tuple[str, ...] = Field(min_length=1)
    root: str | None


class _CodexConnection:
    """One connection of the program."""

    def __init__(
        self,
        supervision: Supervision,
        said: ExecutorHello,
        writer: asyncio.StreamWriter,
        attach: Callable[[object], ExecutorState],
    ) -> None:
        self.state: ExecutorState | None = None
        self._supervision = supervision
        self._said = said
        self._writer = writer
        self._attach = attach
        self._requests: set[asyncio.Task[None]] = set()
        self._sessions = CodexSessions(supervision, said.pid, said.directory, said.environment)
        self._methods: dict[str, Callable[[Message], Coroutine[Any, Any, Message]]] = {
            "initialize": self._initialize,
            "process/start": self._start,
            "process/read": self._read,
            "process/write": self._write,
            "process/signal": self._signal,
            "process/terminate": self._terminate,
            "whisper/edit": self._edit,
            "whisper/run": self._run,
        }

    async def serve(self, reader: asyncio.StreamReader) -> None:
        """Answer requests until the connection ends."""
        try:
            while (line := await reader.readline()).endswith(b"\n"):
                task = asyncio.create_task(self._answer(json.loads(line)))
                self._requests.add(task)
                task.add_done_callback(self._requests.discard)
        except ValueError:
            raise InvalidRequest("the program has sent an invalid line") from None
        finally:
            for task in tuple(self._requests):
                task.cancel()
            await asyncio.gather(*self._requests, return_exceptions=True)

    def _send(self, message: Message) -> None:
        self._writer.write(json.dumps(message).encode() + b"\n")

    async def _answer(self, message: Message) -> None:
        request_id, method, params = message.get("id"), message.get("method"), message.get("params")
        act = self._methods.get(method) if isinstance(method, str) else None
        try:
            if act is None or (self.state is None and method != "initialize"):
                raise InvalidRequest(f"{method} cannot be requested now", hint="Send initialize first")
            result = await act(params if isinstance(params, dict) else {})
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, problem["loc"]))
            self._send(_error(request_id, INVALID_PARAMS, f"{method}: {where}: {problem['msg']}"))
        except WhisperError as error:
            self._send(_error(request_id, FAILED, error.sentence()))
        else:
            self._send({"id": request_id, "result": result})

    async def _initialize(self, params: Message) -> Message:
        if self.state is not None:
            raise InvalidRequest("the environment was initialized before", hint="Start another one")
        self.state = self._attach(params.get("resumeSessionId"))
        self.state.send, self.state.writer = self._send, self._writer
        return {"sessionId": self.state.id}

    @property
    def _runs(self) -> dict[str, ProcessRun]:
        assert self.state is not None  # noqa: S101  no other request is answered before
        return self.state.runs

    def _known(self, process_id: str) -> ProcessRun:
        run = self._runs.get(process_id)
        if run is None or run.call_id is None:
            raise Refused(f"there is no process {process_id}", hint="Start it first")
        return run

    async def _start(self, params: Message) -> Message:
        """Submit a command, and answer once it has started or was denied."""
        state, asked = self.state, StartParams.model_validate(params)
        assert state is not None  # noqa: S101
        asked.check()
        if (canary := CANARY.search(" ".join(asked.argv))) is not None:
            raise Refused(f"whisper_tui: the gate is live (canary {canary[0]})")
        if asked.processId in state.runs:
            raise InvalidRequest(f"there is a process {asked.processId} already", hint="Choose another id")
        state.make_room()
        run = ProcessRun(self._supervision, asked, state.notify, state.drain)
        state.runs[asked.processId] = run
        try:
            run.call_id = await self._call(asked)
        except WhisperError:
            del state.runs[asked.processId]
            raise
        self._send({"method": "whisper/submitted", "params": {"processId": asked.processId, "callId": run.call_id}})
        # It belongs to the session: after a lost connection, Codex may come back to it.
        state.start(run.follow(run.call_id))
        try:
            await run.ready.wait()
        finally:
            # Set before the answer is written, and noticed after it: output must not come first.
            run.answered.set()
        return {"processId": asked.processId, "sandboxType": "none"}

    async def _call(self, asked: StartParams) -> str:
        """Submit a command, or return the call of one that goes on after another supervisor has ended."""
        if (known := asked.whisperGoesOn) is not None:
            record = await self._supervision.record(known.callId)
            if record.call.key != process_key(self._said.nonce, asked.processId):
                raise Refused(f"call {known.callId} is not this process", hint="Start it again")
            if not isinstance(record.state, Unjudged | Waiting):
                return record.id
        return await self._supervision.submit(await self._command_request(asked))

    async def _command_request(self, asked: StartParams) -> CallRequest:
        thread = asked.metadata.threadId if asked.metadata is not None else ""
        session, codex_session = await self._sessions.of_command(asked, thread)
        cwd, command = directory_in(asked.cwd), command_of(asked.argv)
        return CallRequest(
            session_id=session.id,
            tool="exec_command",
            arguments={"argv": list(asked.argv), "tty": asked.tty},
            spec=CommandSpec(command=command, cwd=cwd, tty=asked.tty, accepts_input=asked.tty or asked.pipeStdin),
            key=process_key(self._said.nonce, asked.processId),
            rejoin=True,
            # Sub-agents have a thread of their own in the session of the agent that has started them.
            asker="" if thread in {"", codex_session} else f"sub-agent {thread}"[:LONGEST_NAME],
        )

    async def _read(self, params: Message) -> Message:
        asked = OutputRequest.model_validate(params)
        return await self._known(asked.processId).read(asked.afterSeq or 0, (asked.waitMs or 0.0) / 1000)

    async def _write(self, params: Message) -> Message:
        """Type into a command, if that is approved."""
        asked = TypedInput.model_validate(params)
        run = self._runs.get(asked.processId)
        if run is None or run.call_id is None:
            return {"status": "unknownProcess"}
        if run.closed:
            return {"status": "stdinClosed"}
        try:
            data = base64.b64decode(asked.chunk, validate=True)
        except binascii.Error as error:
            raise InvalidRequest("the input is no valid base64", hint="Encode it") from error
        call_id, write = run.call_id, partial(self._type, run.call_id)
        async with run.writing:
            try:
                if self._said.asks_input:
                    await type_once_approved(self._supervision, call_id, data, write, gone=GONE)
                else:
                    await write(data)
            except NotRunning:
                return {"status": "stdinClosed"}
        return {"status": "accepted"}

    async def _type(self, call_id: str, data: bytes) -> None:
        try:
            # If the program does not read, the pipe is full and the write would block for ever.
            async with asyncio.timeout(INPUT_S):
                await self._supervision.write_stdin(call_id, data)
        except TimeoutError as error:
            raise Refused(f"call {call_id} does not read its input", hint="Look at its output first") from error

    async def _signal(self, params: Message) -> Message:
        asked = SignalToSend.model_validate(params)
        number = SIGNALS.get(asked.signal.lower())
        if number is None:
            raise InvalidRequest("this signal is not known", hint=f"Send {', '.join(SIGNALS)}")
        run = self._known(asked.processId)
        if run.call_id is not None:
            await self._supervision.signal(run.call_id, number, "group", AGENT)
        return {}

    async def _terminate(self, params: Message) -> Message:
        run = self._runs.get(ProcessRequest.model_validate(params).processId)
        if run is None or run.call_id is None or run.closed:
            return {"running": False}
        await self._supervision.withdraw(run.call_id, "Codex ended it", stop_running=True)
        return {"running": True}

    async def _edit(self, params: Message) -> Message:
        """Have a change of one file decided, and hand what was approved to the program, which makes it."""
        asked = _EditParams.model_validate(params)
        session = await self._sessions.newest_in(asked.root)
        content = asked.content
        change: FileChange = (
            DeleteFile(path=asked.path) if content is None else WriteFile(path=asked.path, content=content)
        )
        ticket = secrets.token_hex(8)
        request = CallRequest(
            session_id=session.id,
            tool="apply_patch",
            arguments={},
            spec=CommandSpec(command=FileEdits(tool="apply_patch", changes=(change,)), cwd=session.root),
            key=f"executor edit {ticket}",
            ticket=ticket,
            by_agent=True,
        )
        record = await self._handed_over(await self._supervision.submit(request), ticket)
        command, files = record.spec.command, record.resolved.edits if record.resolved is not None else ()
        if not isinstance(command, FileEdits):
            raise Refused(f"call {record.id} is no edit any more", hint="Make it again")
        changes = []
        for each in command.changes:
            if not isinstance(each, WriteFile | DeleteFile):
                raise Refused("the human's result cannot be written here", hint="Make the edit again")
            changes.append({"path": each.path, "content": each.content if isinstance(each, WriteFile) else None})
        return {"changes": changes, "files": [file.model_dump(include={"real", "before", "unread"}) for file in files]}

    @asynccontextmanager
    async def _withdrawn_if_cancelled(self, call_id: str) -> AsyncIterator[None]:
        """Withdraw a call if the program that waits for it goes away."""
        try:
            yield
        except asyncio.CancelledError:
            with suppress(WhisperError):
                await self._supervision.withdraw(call_id, GONE)
            raise

    async def _handed_over(self, call_id: str, ticket: str) -> CallRecord:
        """Return an approved call once the program may carry it out. Raises `WhisperError` if it may not."""
        async with self._withdrawn_if_cancelled(call_id):
            while True:
                record = await self._supervision.decided(call_id)
                if isinstance(record.state, Held):
                    record = await self._supervision.hand_over(call_id, ticket)
                # At the hand-over a file may be another one than at the approval; then a human is asked again.
                if not isinstance(record.state, Unjudged | Waiting):
                    break
        match record.state:
            case Ended(ending=HandedOver()):
                return record
            case Ended(ending=Denied() | Withdrawn() | Lost() as ending):
                raise failure_of(ending, "edits")
        raise Refused(f"edit {call_id} was carried out before", hint="Make it again")

    async def _run(self, params: Message) -> Message:
        """Run a command that stands for a request about directories. Raises `WhisperError` unless it succeeds."""
        asked = _RunParams.model_validate(params)
        session = await self._sessions.newest_in(asked.root)
        program, *arguments = asked.argv
        request = CallRequest(
            session_id=session.id,
            tool="apply_patch",
            arguments={"argv": list(asked.argv)},
            spec=CommandSpec(command=Argv(program=program, args=tuple(arguments)), cwd=session.root),
            key=f"executor run {secrets.token_hex(8)}",
        )
        call_id = await self._supervision.submit(request)
        async with self._withdrawn_if_cancelled(call_id):
            record = await self._supervision.outcome(call_id)
        if isinstance(record.state, Ended) and record.state.ending != Exited(code=0):
            code, said = exit_of(record, record.state.ending)
            output = (await self._supervision.read_output(call_id, "err", 0, 1000)).data.decode("utf-8", "replace")
            raise Refused(said or f"{os.path.basename(program)} has failed with exit code {code}: {output.strip()}")
        return {}


def _error(request_id: Any, code: int, message: str) -> Message:
    return {"id": request_id, "error": {"code": code, "message": message}}
