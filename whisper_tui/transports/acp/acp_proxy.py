"""The proxy: it starts the agent, forwards the lines of both sides, and serves what acts on this machine (decision 25).

Lines are forwarded by threads, as they are. The agent's lines are read strictly, so that the editor can find no other
request in them than the proxy; of the editor's lines only a few methods count.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whisper_tui.model.errors import Unavailable, WhisperError
from whisper_tui.model.text import is_sendable, visible
from whisper_tui.transports.acp.acp_questions import Files, PermissionQuestions
from whisper_tui.transports.acp.acp_sessions import (
    FAILED,
    INVALID_PARAMS,
    VERSION,
    AgentSessions,
    KnownAgent,
    Message,
    RequestFailed,
    agent_of,
    why_refused,
    why_unguarded,
)
from whisper_tui.transports.acp.acp_terminals import Terminals
from whisper_tui.transports.child_process import GRACE_S, awaited_end, end_process
from whisper_tui.transports.json_lines import (
    INVALID_REQUEST,
    LONGEST_LINE,
    InvalidMessage,
    LineTooLong,
    LineWriter,
    as_one_line,
    key_of_id,
    read_in_thread,
    read_strictly,
    refusal,
)

if TYPE_CHECKING:
    from whisper_tui.transports.mcp.gateway_session import Connect

UNKNOWN_METHOD, CANCELLED = -32601, -32800

MOST_REQUESTS = 1000
"""Requests of an agent that are served at the same time."""

FAREWELL_S = 3.0
"""Seconds that the supervisor has to withdraw calls and end commands."""

EDITOR_GONE, AGENT_GONE, TERMINATED, REFUSED = (
    "the editor disconnected",
    "the agent has ended",
    "the proxy was ended",
    "the agent was refused",
)

OPENING = frozenset({"session/new", "session/load", "session/resume", "session/fork"})
"""Requests of the editor that name the directory of a session."""

DECIDED = frozenset({"session/request_permission", "fs/write_text_file"})
"""Requests of the agent that wait for a human."""

_CAPABILITIES = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}

Serve = Callable[[object], Awaitable[Message]]


def _report(sentence: str) -> None:
    sys.stderr.write(f"whisper-tui acp: {visible(sentence)}\n")
    sys.stderr.flush()


@dataclass
class _HeldRequest:
    """A request of the agent that is served."""

    id: Any
    method: str
    session_id: str
    task: asyncio.Task[None] | None = None


class Proxy:
    """Stands between one editor and one agent. Its methods for lines are called by the threads that read them."""

    def __init__(
        self,
        sessions: AgentSessions,
        to_agent: LineWriter,
        to_editor: LineWriter,
        refuse: Callable[[], None],
        *,
        allow_unseen: bool,
    ) -> None:
        """`refuse` ends the agent. `allow_unseen`: not because its commands cannot be seen."""
        self._sessions = sessions
        self._to_agent = to_agent
        self._to_editor = to_editor
        self._refuse = refuse
        self._allow_unseen = allow_unseen
        self._loop = asyncio.get_running_loop()
        self._agent: KnownAgent | None = None
        self._terminals = Terminals(sessions, self._show)
        self._permissions = PermissionQuestions(sessions)
        files = Files(sessions, self._show)
        self._served: dict[str, Serve] = {
            "terminal/create": self._terminals.create,
            "terminal/output": self._terminals.output,
            "terminal/wait_for_exit": self._terminals.wait_for_exit,
            "terminal/kill": self._terminals.kill,
            "terminal/release": self._terminals.release,
            "fs/read_text_file": files.read,
            "fs/write_text_file": files.write,
            "session/request_permission": self._permissions.ask,
        }
        self._expected: dict[str, Message] = {}
        """The editor's requests whose answers count, by id."""
        self._held: dict[str, _HeldRequest] = {}
        """The agent's requests that are served, by id."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._refused = False

    # The editor's side

    def editor_line(self, line: bytes | None) -> None:
        """Forward a line of the editor."""
        if self._refused:
            return  # The agent still runs for a moment, and could act on it.
        if line is None:
            self._to_editor.put(refusal(None, INVALID_REQUEST, f"the message is longer than {LONGEST_LINE:,} bytes"))
            return
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if isinstance(message, dict) and (changed := self._from_editor(message, line)) is not None:
            self._to_agent.forward(changed)
        elif not isinstance(message, dict):
            self._to_editor.put(refusal(None, INVALID_REQUEST, "the message is not an object of JSON"))

    def _from_editor(self, message: Message, line: bytes) -> bytes | None:
        """Return the line to forward. None: it was answered here."""
        given = message.get("params")
        params: Message = given if isinstance(given, dict) else {}
        match message.get("method"):
            case "initialize":
                return self._initialize(message, params)
            case str(method) if method in OPENING:
                return self._opening(message, params, line)
            case "session/cancel":
                self._loop.call_soon_threadsafe(self._cancel_turn, str(params.get("sessionId")))
        return line

    def _initialize(self, message: Message, params: Message) -> bytes:
        """Return the request with what the proxy can do in place of what the editor can."""
        info = params.get("clientInfo")
        self._sessions.editor = info if isinstance(info, dict) else {}
        self._expect(message)
        told = params.get("clientCapabilities")
        capabilities = {**(told if isinstance(told, dict) else {}), **_CAPABILITIES}
        # In later versions an agent runs commands itself.
        params = {**params, "protocolVersion": VERSION, "clientCapabilities": capabilities}
        return json.dumps({**message, "params": params}).encode()

    def _opening(self, message: Message, params: Message, line: bytes) -> bytes | None:
        """Refuse a session in whose directory the agent's hook is not installed, and learn the directory of others."""
        root = params.get("cwd")
        if (why := self._objection(root)) is not None:
            self._to_editor.put(refusal(message.get("id"), FAILED, f"whisper_tui: {why}"))
            return None
        if isinstance(root, str) and is_sendable(root):
            if isinstance(params.get("sessionId"), str):
                self._learn(params["sessionId"], root)
            self._expect(message)
        return line

    def _objection(self, root: object) -> str | None:
        """Return why no session may be opened in a directory. None: it may."""
        if self._allow_unseen:
            return None
        if self._agent is None:
            return "the agent has not said yet who it is. Send initialize first"
        if not isinstance(root, str) or not is_sendable(root):
            return "a session must name its directory"
        return why_unguarded(self._agent, Path(root), os.environ)

    def _expect(self, message: Message) -> None:
        if "id" in message and len(self._expected) < MOST_REQUESTS:
            self._expected[key_of_id(message["id"])] = message

    def _learn(self, session_id: str, root: str) -> None:
        self._sessions.learn(session_id, root)
        self._loop.call_soon_threadsafe(self._start, self._open(session_id))

    async def _open(self, session_id: str) -> None:
        """Open the session before its first call, so that the supervisor knows the agent's process at once."""
        try:
            await self._sessions.opened(session_id)
        except WhisperError as error:
            _report(f"commands and writes are refused while whisper_tui cannot be reached: {error.sentence()}")

    def _cancel_turn(self, session_id: str) -> None:
        """Withdraw everything of a session that waits for a human: nobody reads its answer."""
        for held in tuple(self._held.values()):
            if held.session_id == session_id and held.method in DECIDED and held.task is not None:
                held.task.cancel()
        self._start(self._terminals.cancel(session_id))

    # The agent's side

    def agent_line(self, line: bytes | None) -> None:
        """Serve or forward a line of the agent."""
        if line is None:
            # Its request would never be answered, and nobody could tell which one that is.
            _report(f"the agent sent a message of more than {LONGEST_LINE:,} bytes, so it is ended")
            raise LineTooLong
        try:
            message = read_strictly(line)
            if not isinstance(message, dict):
                raise InvalidMessage("batches are no part of this protocol", INVALID_REQUEST)
        except InvalidMessage as error:
            _report(f"a line of the agent was not forwarded: {error}")
            self._to_agent.put(refusal(None, error.code, str(error)))
            return
        method = message.get("method")
        if method is None:
            self._answered(message, line)
        elif not isinstance(method, str):
            self._to_agent.put(refusal(message.get("id"), INVALID_REQUEST, "the method must be a text"))
        elif method == "session/request_permission" and self._permissions.is_choice(message.get("params")):
            self._to_editor.forward(as_one_line(line))
        elif method in self._served:
            self._hold(method, message)
        elif method.startswith(("terminal/", "fs/")):
            # The editor would act on this machine, and nobody would be asked.
            self._to_agent.put(refusal(message.get("id"), UNKNOWN_METHOD, f"whisper_tui does not know {method}"))
        elif method == "$/cancel_request":
            self._cancel(message, line)
        elif method == "session/update":
            self._to_editor.forward(self._updated(message, line))
        else:
            self._to_editor.forward(as_one_line(line))

    def _answered(self, message: Message, line: bytes) -> None:
        """Forward an answer of the agent."""
        asked = self._expected.pop(key_of_id(message.get("id")), None)
        result = message.get("result")
        if asked is not None and isinstance(result, dict):
            if asked["method"] == "initialize" and (why := self._met(result)) is not None:
                _report(why)
                self._to_editor.put(refusal(message.get("id"), FAILED, f"whisper_tui: {why}"))
                self._refused = True
                self._refuse()
                return
            if asked["method"] in OPENING and isinstance(session_id := result.get("sessionId"), str):
                self._learn(session_id, asked["params"]["cwd"])
        self._to_editor.forward(as_one_line(line))

    def _met(self, result: Message) -> str | None:
        """Take the agent's account of itself. Return why it is refused. None: it is not."""
        info = result.get("agentInfo")
        self._sessions.agent = info if isinstance(info, dict) else {}
        self._agent = self._permissions.agent = agent_of(self._sessions.agent)
        if result.get("protocolVersion") != VERSION:
            return (
                f"{self._agent.title} does not speak version {VERSION} of the Agent Client Protocol, the only one that "
                "whisper_tui can read. Update whisper_tui, or use an earlier version of the agent"
            )
        return None if self._allow_unseen else why_refused(self._agent)

    def _updated(self, message: Message, line: bytes) -> bytes:
        """Return an update for the editor, with the text of a terminal in its place: the editor knows none of ours."""
        match message:
            case {"params": {"sessionId": str(session_id), "update": {"toolCallId": str(tool_call), **rest} as update}}:
                self._permissions.note(session_id, update)
                self._terminals.announce(session_id, update)
                content = rest.get("content")
                if not isinstance(content, list) or not any(map(_terminal_in, content)):
                    return as_one_line(line)
                shown = [part for each in content for part in self._shown(each, tool_call)]
                params = {**message["params"], "update": {**update, "content": shown}}
                return json.dumps({**message, "params": params}).encode()
            case _:
                return as_one_line(line)

    def _shown(self, part: Any, tool_call: str) -> list[Any]:
        terminal_id = _terminal_in(part)
        if terminal_id is None:
            return [part]
        terminal = self._terminals.linked(terminal_id, tool_call)
        return terminal.content() if terminal is not None else []

    def _show(self, session_id: str, update: Message) -> None:
        """Send the editor an update of ours."""
        params = {"sessionId": session_id, "update": update}
        self._to_editor.put(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode())

    def _hold(self, method: str, message: Message) -> None:
        """Serve a request of the agent."""
        request_id, params = message.get("id"), message.get("params")
        key = key_of_id(request_id)
        if not isinstance(request_id, str | int | float) or isinstance(request_id, bool):
            why = "the id of a request must be a text or a number"
        elif key in self._held:
            why = f"request {key} is still waiting for its answer"
        elif len(self._held) >= MOST_REQUESTS:
            why = f"there are {MOST_REQUESTS} requests already"
        elif not is_sendable(json.dumps(params, ensure_ascii=False)):
            why = "it holds half of a surrogate pair, which is no valid text"
        else:
            session_id = str(params.get("sessionId")) if isinstance(params, dict) else ""
            held = self._held[key] = _HeldRequest(request_id, method, session_id)
            self._loop.call_soon_threadsafe(self._begin, held, params)
            return
        self._to_agent.put(refusal(request_id, INVALID_PARAMS, why))

    def _begin(self, held: _HeldRequest, params: object) -> None:
        held.task = self._start(self._serve(held, params))

    def _start(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _serve(self, held: _HeldRequest, params: object) -> None:
        """Answer a request of the agent."""
        try:
            answer = _result(held.id, await self._served[held.method](params))
        except RequestFailed as error:
            answer = refusal(held.id, error.code, error.message)
        except WhisperError as error:
            answer = refusal(held.id, FAILED, error.sentence())
        except asyncio.CancelledError:
            # The protocol wants an answer to each question of a cancelled turn.
            if held.method == "session/request_permission":
                answer = _result(held.id, {"outcome": {"outcome": "cancelled"}})
            else:
                answer = refusal(held.id, CANCELLED, "The request was cancelled. Nothing was done.")
        except Exception as error:  # noqa: BLE001  else the agent would wait for ever
            _report(f"this is a defect of whisper_tui: {held.method} failed with {error!r}")
            answer = refusal(held.id, FAILED, "whisper_tui failed at this request. Nothing was done.")
        self._held.pop(key_of_id(held.id), None)
        self._to_agent.put(answer)

    def _cancel(self, message: Message, line: bytes) -> None:
        """Withdraw a request that the agent no longer waits for."""
        match message:
            case {"params": {"requestId": request_id}} if (held := self._held.get(key_of_id(request_id))) is not None:
                self._loop.call_soon_threadsafe(lambda: held.task.cancel() if held.task is not None else None)
            case _:
                self._to_editor.forward(as_one_line(line))

    async def close(self, why: str) -> None:
        """Withdraw what waits, end the commands, and end the sessions."""
        for task in tuple(self._tasks):
            task.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_S):
                await asyncio.gather(*self._tasks, return_exceptions=True)
                await self._terminals.close()
                await self._sessions.close(why)


def _terminal_in(part: Any) -> str | None:
    """Return the id of the terminal that a part of a tool call shows. None: it shows none."""
    match part:
        case {"type": "terminal", "terminalId": str(terminal_id)}:
            return terminal_id
        case _:
            return None


def _result(request_id: Any, result: Message) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "result": result}).encode()


def run_proxy(
    words: Sequence[str], connect: "Connect", *, root: str, name: str | None = None, allow_unseen: bool = False
) -> int:
    """Start the agent and serve the editor at standard input and output until one of them ends. Return the exit code.

    `root`: the workspace of sessions without one. `name`: of the sessions in the queue. Raises `Unavailable`.
    """
    try:
        process = subprocess.Popen([*words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError as error:
        raise Unavailable(
            f"the agent cannot be started: {words[0]}: {error.strerror or error}", hint="Check its command line"
        ) from error
    sessions = partial(AgentSessions, connect, root, name, process.pid)
    return asyncio.run(_serve(process, sessions, allow_unseen=allow_unseen))


async def _serve(
    process: "subprocess.Popen[bytes]", sessions: Callable[[], AgentSessions], *, allow_unseen: bool
) -> int:
    assert process.stdin is not None and process.stdout is not None  # noqa: S101  both are pipes
    ended, end = awaited_end(TERMINATED)
    to_editor = LineWriter(1, partial(end, EDITOR_GONE))
    # An agent that reads no more may still answer. It has ended when its output ends.
    to_agent = LineWriter(process.stdin.fileno(), lambda: None)
    proxy = Proxy(sessions(), to_agent, to_editor, partial(end, REFUSED), allow_unseen=allow_unseen)
    read_in_thread(0, proxy.editor_line, partial(end, EDITOR_GONE))
    reading = read_in_thread(process.stdout.fileno(), proxy.agent_line, partial(end, AGENT_GONE))
    why = await ended
    await proxy.close(why)
    at_once = why in {TERMINATED, REFUSED}
    code = await asyncio.to_thread(end_process, process, to_agent, reading, at_once=at_once)
    await asyncio.to_thread(to_editor.finish, GRACE_S)
    return code if why == AGENT_GONE else int(why == REFUSED)
