"""The terminals that an agent has: each is a command in the queue, and its output is read from the supervisor."""

import asyncio
import codecs
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePath
from secrets import token_hex
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, Field

from whisper_tui.model.call import Argv, CallRequest, CommandSpec, Shell
from whisper_tui.model.ending import (
    Denied,
    Exited,
    FailedToStart,
    HandedOver,
    Lost,
    Signalled,
    TimedOut,
    Withdrawn,
    signal_name,
)
from whisper_tui.model.errors import Unavailable, UnknownCall, WhisperError
from whisper_tui.model.run import Stream
from whisper_tui.model.state import CallRecord, Ended, Queued, Running
from whisper_tui.model.value import Count
from whisper_tui.tools.agent_text import (
    PIECE,
    agent_note,
    command_line,
    failure_of,
    limit_note,
    sandbox_note,
    whole_start,
)
from whisper_tui.tools.supervised_tool import KNOWN_SHELLS, shell_of
from whisper_tui.transports.acp.acp_sessions import (
    INVALID_PARAMS,
    KEY_IN_EDITOR,
    MOST_SESSIONS,
    NOT_FOUND,
    AgentSessions,
    Message,
    Params,
    RequestFailed,
    checked,
)

if TYPE_CHECKING:
    from whisper_tui.transports.mcp.gateway_session import Connection

MOST_TERMINALS = 500
"""Terminals of one agent that were not released."""

MOST_RELEASED = 1000
"""Released terminals whose text the editor can still be shown."""

MOST_OUTPUT = 1 << 20
"""Bytes of output in an answer, however many the agent allows."""

MOST_SHOWN = 8000
"""Characters of output that the editor is shown."""

LOST_CODE, NOT_RUN, NOT_FOUND_CODE, TIMED_OUT = 1, 126, 127, 124
"""Exit codes for endings without one, as shells use them."""

TRIES, TRY_EVERY_S = 60, 1.0
"""How often the supervisor is asked again about a command after the connection was lost."""

_SHELL_OPTION = re.compile(r"-(l?)c")


class Variable(BaseModel):
    """A variable that a terminal adds."""

    name: str = Field(min_length=1)
    value: str


class CreateParams(Params):
    """The request for a terminal."""

    command: str = Field(min_length=1)
    args: tuple[str, ...] | None = None
    env: tuple[Variable, ...] | None = None
    cwd: str | None = None
    output_byte_limit: Count | None = None


class TerminalParams(Params):
    """A request about a terminal."""

    terminal_id: str


def command_of(program: str, args: tuple[str, ...], shell: str) -> Argv | Shell:
    """Return the command of a terminal. `shell`: what reads a whole line."""
    match args:
        case ():
            # Some agents send a whole line here, and editors have a shell read it.
            return Shell(text=program, shell=shell)
        case (str(option), str(text)) if (found := _SHELL_OPTION.fullmatch(option)) and PurePath(
            program
        ).name in KNOWN_SHELLS:
            # So that its text is judged, and shown, like that of any other shell command.
            return Shell(text=text, shell=program, login=bool(found[1]))
        case _:
            return Argv(program=program, args=args)


@dataclass
class _ReadStream:
    """How far a stream was read."""

    offset: int = 0
    decoder: codecs.IncrementalDecoder | None = None


class AgentTerminal:
    """One terminal: a command in the queue."""

    def __init__(self, call_id: str, session_id: str, connection: "Connection", spec: CommandSpec, limit: int) -> None:
        self.id = f"whisper-tui-{call_id}"
        self.call_id = call_id
        self.session_id = session_id
        self.connection = connection
        """The connection over which it was submitted: only that one may withdraw it."""
        self.limit = limit
        self.ended: asyncio.Task[CallRecord] | None = None
        self.shown = f"Waits for a human in whisper_tui (call {call_id}).\n$ {command_line(spec)}"
        """The text that the editor is shown in place of the terminal."""
        self.tool_call = ""
        """The agent's tool call that shows it. Empty: not known yet."""
        self.streams: dict[Stream, _ReadStream] = {"out": _ReadStream(), "err": _ReadStream()}
        self.collecting = asyncio.Lock()
        self.noted = self.complete = self.cut = False
        """True if the note at its beginning, all of it, or only a part of it is in the text."""
        self._text = ""

    def add(self, text: str) -> None:
        """Append to the text. Of a long one only the end is kept."""
        self._text += text
        if len(self._text) > 2 * MOST_OUTPUT:
            self._text, self.cut = self._text[-MOST_OUTPUT:], True

    def newest(self, limit: int) -> tuple[str, bool]:
        """Return the end of the text, in so many bytes at most, and True if its beginning is left out."""
        data = self._text.encode()
        if len(data) <= limit:
            return self._text, self.cut
        # The protocol cuts at the front, and at the boundary of a character.
        return whole_start(data[len(data) - limit :]).decode(), True

    def content(self) -> list[Message]:
        """Return the text for the editor as the content of a tool call."""
        return [{"type": "content", "content": {"type": "text", "text": self.shown}}]


Show = Callable[[str, Message], None]
"""Sends the editor an update of a session."""


class Terminals:
    """Serves the methods `terminal/*`. The editor gets no terminal of its own to run."""

    def __init__(self, sessions: AgentSessions, show: Show) -> None:
        self._sessions = sessions
        self._show = show
        self._shell = shell_of(sessions.environment)
        self._open: dict[str, AgentTerminal] = {}
        self._released: dict[str, AgentTerminal] = {}
        self._announced: dict[str, tuple[str, str]] = {}
        """By session: the newest tool call with a command, and the command."""

    def linked(self, terminal_id: str, tool_call: str) -> AgentTerminal | None:
        """Return a terminal that the agent shows in a tool call. None: it is none of ours."""
        terminal = self._open.get(terminal_id) or self._released.get(terminal_id)
        if terminal is not None and tool_call:
            terminal.tool_call = tool_call
        return terminal

    def announce(self, session_id: str, update: Message) -> None:
        """Take a tool call of the agent: before its terminal is there, only this tells that it is about to run."""
        match update:
            case {"toolCallId": str(tool_call), "rawInput": {"command": str(command)}} if command.strip():
                self._announced.pop(session_id, None)
                self._announced[session_id] = tool_call, command
                if len(self._announced) > MOST_SESSIONS:
                    del self._announced[next(iter(self._announced))]

    async def create(self, params: object) -> Message:
        """Submit a command, and return the id of its terminal once it is decided.

        Agents count the time of a command from this answer on: one that waits for a human would be given up.
        """
        said = checked(CreateParams, params)
        if len(self._open) >= MOST_TERMINALS:
            raise RequestFailed(f"there are {MOST_TERMINALS} terminals already: release those that are not needed")
        connection, session = await self._sessions.opened(said.session_id)
        spec = self._spec(said, session.root)
        request = CallRequest(
            session_id=session.id,
            tool="terminal",
            arguments=said.model_dump(exclude={"session_id"}, exclude_none=True, mode="json"),
            spec=spec,
            key=f"{KEY_IN_EDITOR}{token_hex(16)}",
        )
        call_id = await connection.submit(request)
        limit = min(said.output_byte_limit if said.output_byte_limit is not None else MOST_OUTPUT, MOST_OUTPUT)
        terminal = AgentTerminal(call_id, said.session_id, connection, spec, limit)
        self._open[terminal.id] = terminal
        tool_call, command = self._announced.get(said.session_id, ("", ""))
        if command and command in spec.command.text:
            terminal.tool_call = tool_call
            self._tell(terminal, terminal.shown)
        terminal.ended = asyncio.create_task(self._follow(terminal))
        # Its error is for those who ask about the terminal; without them nobody has to read it.
        terminal.ended.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            await self._asked(lambda reader: reader.decided(call_id))
        except asyncio.CancelledError:
            await self._end(terminal, "the agent no longer waits for the answer")
            self._open.pop(terminal.id, None)
            raise
        return {"terminalId": terminal.id}

    def _spec(self, said: CreateParams, root: str) -> CommandSpec:
        cwd = root if said.cwd is None else said.cwd
        if not PurePath(cwd).is_absolute():
            raise RequestFailed(f"the directory {cwd!r} is not absolute", INVALID_PARAMS)
        known = self._sessions.environment
        added = {each.name: each.value for each in said.env or () if known.get(each.name) != each.value}
        return CommandSpec(command=command_of(said.command, said.args or (), self._shell), cwd=cwd, environment=added)

    async def _follow(self, terminal: AgentTerminal) -> CallRecord:
        """Tell the editor about the command until it has ended."""
        started = await self._asked(lambda reader: reader.started(terminal.call_id))
        if isinstance(started.state, Running):
            self._tell(terminal, f"Runs in whisper_tui (call {terminal.call_id}).\n$ {command_line(started.spec)}")
        record = await self._asked(lambda reader: reader.outcome(terminal.call_id))
        if not isinstance(record.state, Ended):
            raise Unavailable(f"call {terminal.call_id} has no ending")
        await self._text(terminal, record)
        text, _ = terminal.newest(MOST_SHOWN)
        ran = "" if words_without_output(record.state) else f"$ {command_line(record.spec)}\n"
        self._tell(terminal, f"{ran}{text}\n[{_said(record.state)}; call {terminal.call_id} in whisper_tui]")
        return record

    def _tell(self, terminal: AgentTerminal, text: str) -> None:
        terminal.shown = text
        if terminal.tool_call:
            update = {"sessionUpdate": "tool_call_update", "toolCallId": terminal.tool_call}
            self._show(terminal.session_id, {**update, "content": terminal.content()})

    async def _asked(self, ask: "Callable[[Connection], Any]") -> CallRecord:
        """Ask the supervisor, and again if it was restarted meanwhile: the command runs on. Raises `WhisperError`."""
        for left in range(TRIES, -1, -1):
            try:
                record: CallRecord = await ask(await self._sessions.reader())
                return record
            except UnknownCall:
                raise
            except Unavailable:
                if not left:
                    raise
                await asyncio.sleep(TRY_EVERY_S)
        raise AssertionError("unreachable")

    async def output(self, params: object) -> Message:
        """Return the output so far."""
        terminal = self._terminal(params)
        if terminal.ended is not None and terminal.ended.done():
            record = terminal.ended.result()
        else:
            record = await self._asked(lambda reader: reader.record(terminal.call_id))
        await self._text(terminal, record)
        text, truncated = terminal.newest(terminal.limit)
        status = {"exitStatus": exit_of(record.state)} if isinstance(record.state, Ended) else {}
        return {"output": text, "truncated": truncated, **status}

    async def wait_for_exit(self, params: object) -> Message:
        """Wait for the end, as long as a human and the command take."""
        terminal = self._terminal(params)
        assert terminal.ended is not None  # noqa: S101  set when it was created
        # Shielded: the next request about the same terminal waits for it as well.
        record = await asyncio.shield(terminal.ended)
        return exit_of(record.state)

    async def kill(self, params: object) -> Message:
        """End the command. The terminal stays."""
        await self._end(self._terminal(params), "the agent ended it")
        return {}

    async def release(self, params: object) -> Message:
        """End the command if it still runs, and forget the terminal."""
        terminal = self._terminal(params)
        await self._end(terminal, "the agent released its terminal")
        self._open.pop(terminal.id, None)
        self._released[terminal.id] = terminal
        if len(self._released) > MOST_RELEASED:
            del self._released[next(iter(self._released))]
        return {}

    async def cancel(self, session_id: str) -> None:
        """Withdraw the commands of a session that have not started: its human has ended the turn in the editor."""
        for terminal in tuple(self._open.values()):
            if terminal.session_id == session_id:
                await self._end(terminal, "the turn was cancelled in the editor", stop_running=False)

    async def close(self) -> None:
        """End all commands, as an editor does that closes."""
        for terminal in tuple(self._open.values()):
            await self._end(terminal, "the editor or the agent has ended")
            if terminal.ended is not None:
                terminal.ended.cancel()
        self._open.clear()

    async def _end(self, terminal: AgentTerminal, why: str, *, stop_running: bool = True) -> None:
        if terminal.ended is not None and terminal.ended.done():
            return
        with suppress(WhisperError):  # It may have ended in this moment.
            await terminal.connection.withdraw(terminal.call_id, why, stop_running=stop_running)

    def _terminal(self, params: object) -> AgentTerminal:
        said = checked(TerminalParams, params)
        if (terminal := self._open.get(said.terminal_id)) is None:
            raise RequestFailed("there is no such terminal", NOT_FOUND)
        return terminal

    async def _text(self, terminal: AgentTerminal, record: CallRecord) -> None:
        """Add to the text of a terminal what is new."""
        state = record.state
        async with terminal.collecting:
            if terminal.complete or not isinstance(state, Running | Ended):
                return
            terminal.complete = isinstance(state, Ended)
            if isinstance(state, Ended) and (words := words_without_output(state)):
                terminal.add(words)
                return
            if not terminal.noted:
                terminal.noted = True
                # Only what is known from the start: the text before must stay as it was, because agents read it in
                # pieces, by the length that they have read.
                terminal.add(_line(agent_note(record.model_copy(update={"state": Queued(since=0.0)}))))
            sizes = state.output if isinstance(state, Ended) else None
            for stream in get_args(Stream):
                await self._add_new(terminal, stream, getattr(sizes, stream, None))
            if isinstance(state, Ended):
                lost = failure_of(state.ending).message if isinstance(state.ending, Lost) else None
                terminal.add(_line(limit_note(record)) + _line(sandbox_note(record)) + _line(lost))

    async def _add_new(self, terminal: AgentTerminal, stream: Stream, end: int | None) -> None:
        """Add the new output of a stream, up to `end`: background processes may write on."""
        reader, output = await self._sessions.reader(), terminal.streams[stream]
        decode = codecs.getincrementaldecoder("utf-8")("replace") if output.decoder is None else output.decoder
        output.decoder = decode
        while end is None or output.offset < end:
            try:
                chunk = await reader.read_output(terminal.call_id, stream, output.offset, PIECE)
            except Unavailable:
                raise
            except WhisperError:
                break  # Its output was removed, or is not there yet.
            if chunk.size - output.offset > MOST_OUTPUT and chunk.start <= output.offset:
                # More than is ever answered: only the newest part is read.
                output.offset, terminal.cut = chunk.size - MOST_OUTPUT, True
                decode.reset()
                continue
            data = chunk.data if end is None else chunk.data[: max(end - chunk.start, 0)]
            if not data:
                break
            terminal.cut |= chunk.start > output.offset
            output.offset = chunk.start + len(data)
            terminal.add(decode.decode(data))
        if end is not None:
            terminal.add(decode.decode(b"", final=True))


def _line(note: str | None) -> str:
    return f"[whisper_tui: {note}]\n" if note else ""


def words_without_output(state: Ended) -> str:
    """Return the words for the model about a command that did not run. Empty: it did, or may have."""
    match state.ending:
        case Denied() | Withdrawn() | HandedOver() as ending:
            return f"{failure_of(ending).message}\n"
        case FailedToStart(message=message):
            return f"{message}\n"
        case _:
            return ""


def exit_of(state: Any) -> Message:
    """Return how a terminal ended."""
    code, name = _code_and_signal(state)
    return {"exitCode": code, "signal": name}


def _code_and_signal(state: Any) -> tuple[int | None, str | None]:
    ending = state.ending if isinstance(state, Ended) else None
    match ending:
        case Exited(code=code):
            return code, None
        case Signalled(number=number):
            return None, signal_name(number)
        case TimedOut():
            return TIMED_OUT, None
        case FailedToStart(problem="program_not_found"):
            return NOT_FOUND_CODE, None
        case Lost():
            return LOST_CODE, None
        case _:
            return NOT_RUN, None


def _said(state: Ended) -> str:
    code, name = _code_and_signal(state)
    return f"ended by {name}" if name else f"exit code {code}"
