"""The gateway in front of another MCP server: it forwards every line, and holds calls of tools until a human decides.

Lines are forwarded as they are, by threads: of the client's lines only the method is read, of the server's only the
answers to calls and to `tools/list` (decision 5). What talks to the supervisor runs on the event loop.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from whisper_tui.model.errors import Unavailable, WhisperError
from whisper_tui.model.text import is_sendable, visible
from whisper_tui.transports.child_process import GRACE_S, awaited_end, end_process
from whisper_tui.transports.json_lines import (
    CALL_ID,
    INVALID_REQUEST,
    LONGEST_LINE,
    InvalidMessage,
    LineTooLong,
    LineWriter,
    Message,
    as_one_line,
    check_letters,
    key_of_id,
    read_in_thread,
    read_strictly,
    refusal,
)
from whisper_tui.transports.mcp.gateway_session import ApprovalSession, HeldCall, text_block

# The server is started before the model is loaded, so that both take no longer than the server alone.
if TYPE_CHECKING:
    from whisper_tui.model.call import CallRequest
    from whisper_tui.model.state import CallRecord
    from whisper_tui.transports.mcp.gateway_session import Connect, Connection

LONGEST_DESCRIPTION = 500
"""Characters of the server's own words about a tool that the human is shown."""

PROGRESS_AFTER_S, PROGRESS_EVERY_S = 1.0, 10.0
PROGRESS_STEP = 1e-6
"""The increase with each report. So small that the first report of the server itself is still an increase."""

FAREWELL_S = 2.0
"""Seconds that the supervisor has to record the end of calls."""

INVALID_PARAMS = -32602


def _report(sentence: str) -> None:
    sys.stderr.write(f"whisper-tui mcp: {visible(sentence)}\n")
    sys.stderr.flush()


class Gateway:
    """Forwards between one client and one server. Its methods for lines are called by the threads that read them."""

    def __init__(
        self,
        session: ApprovalSession,
        server: str,
        to_server: LineWriter,
        to_client: LineWriter,
        *,
        progress_s: tuple[float, float] = (PROGRESS_AFTER_S, PROGRESS_EVERY_S),
    ) -> None:
        """`progress_s`: seconds until the first report of a waiting call, and between further ones."""
        self._session = session
        self._server = server
        self._to_server = to_server
        self._to_client = to_client
        self._progress_s = progress_s
        self._loop = asyncio.get_running_loop()
        self._calls: dict[str, HeldCall] = {}
        """By request id as JSON: the calls without an answer."""
        self._listings: set[str] = set()
        """The ids of requests for the list of tools."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._met = False

    def client_line(self, line: bytes | None) -> None:
        """Forward a line of the client, or hold it if it calls a tool."""
        if line is None:
            self._to_client.put(refusal(None, INVALID_REQUEST, f"the message is longer than {LONGEST_LINE:,} bytes"))
            return
        try:
            content = read_strictly(line)
        except InvalidMessage as error:
            self._to_client.put(refusal(None, error.code, str(error)))
            return
        if isinstance(content, list):
            # Only old versions of MCP have batches. Each message is answered for itself.
            for message in content:
                self._client_message(message, json.dumps(message).encode())
        else:
            self._client_message(content, as_one_line(line))

    def _client_message(self, message: Message, line: bytes) -> None:
        self._meet(message)
        match message:
            case {"method": "tools/call"}:
                self._hold(message, line)
            case {"method": "notifications/cancelled", "params": {"requestId": request_id}} if (
                call := self._calls.get(key_of_id(request_id))
            ) is not None:
                self._loop.call_soon_threadsafe(self._cancel, key_of_id(request_id), call, line)
            case {"method": "notifications/cancelled", "params": {"requestId": request_id}}:
                self._listings.discard(key_of_id(request_id))
                self._to_server.forward(line)
            case {"method": "tools/list", "id": request_id}:
                self._listings.add(key_of_id(request_id))
                self._to_server.forward(line)
            case _:
                self._to_server.forward(line)

    def _meet(self, message: Message) -> None:
        """Open the session when the client has said who it is, so that the first call need not wait for that."""
        if self._met:
            return
        self._met = True
        match message:
            case {"params": {"clientInfo": dict(info)}} | {
                "params": {"_meta": {"io.modelcontextprotocol/clientInfo": dict(info)}}
            }:
                self._session.client = info
        self._loop.call_soon_threadsafe(self._start, self._open())

    async def _open(self) -> None:
        try:
            await self._session.opened()
        except WhisperError as error:
            _report(f"calls of tools are refused while whisper_tui cannot be reached: {error.sentence()}")

    def _hold(self, message: Message, line: bytes) -> None:
        """Hold a call, unless it is no valid one."""
        if (request_id := message.get("id")) is None:
            # A server might carry it out all the same.
            _report("a call of a tool without an id was not forwarded")
            return
        if (problem := self._problem(message, request_id, line)) is not None:
            self._to_client.put(refusal(request_id, INVALID_PARAMS, problem))
            return
        call = self._calls[key_of_id(request_id)] = HeldCall(message, line)
        self._loop.call_soon_threadsafe(self._ask, call)

    def _problem(self, message: Message, request_id: Any, line: bytes) -> str | None:
        """Return why a call cannot be held. None: it can."""
        if not isinstance(request_id, str | int | float) or isinstance(request_id, bool):
            return "the id of a call must be a text or a number"
        if key_of_id(request_id) in self._calls:
            return f"request {request_id} is still waiting for its answer"
        params = message.get("params")
        if not isinstance(params, dict) or not isinstance(params.get("name"), str):
            return "a call must name its tool"
        if not isinstance(params.get("arguments"), dict | None):
            return "the arguments of a call must be an object"
        # Only an escape can spell it: the line itself is valid UTF-8.
        if b"\\u" in line and not is_sendable(json.dumps(params, ensure_ascii=False)):
            return "the call holds half of a surrogate pair, which is not valid text"
        try:
            check_letters(params, {"name", "arguments"})
        except InvalidMessage as error:
            return str(error)
        return None

    def _ask(self, call: HeldCall) -> None:
        call.task = self._start(self._decided(call))

    def _start(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _decided(self, call: HeldCall) -> None:
        """Have a call decided; forward it if it is approved, and answer it otherwise."""
        from whisper_tui.model.call import Function
        from whisper_tui.model.state import Ended
        from whisper_tui.tools.agent_text import agent_note
        from whisper_tui.tools.supervised_tool import failure_without_result

        try:
            connection, session = await self._session.opened()
            call.connection = connection
            record = await self._approved(call, connection, self._session.request(call, session))
            if record is not None and isinstance(record.state, Ended):
                raise failure_without_result(record, record.state)
        except WhisperError as error:
            self._refuse(call, error)
            return
        if record is not None and record.edited and isinstance(record.function, Function):
            call.note = agent_note(record)
            call.line = call.edited(record.function.arguments)
        call.forwarded = True
        self._to_server.put(call.line)

    async def _approved(self, call: HeldCall, connection: "Connection", request: "CallRequest") -> "CallRecord | None":
        """Submit a call, and return its record once it may run or has ended. If cancelled, withdraw it.

        None: it was allowed as it was submitted, so that nobody has changed it.
        """
        # A cancelled submission would leave a call in the queue whose number nobody knows, so it runs to its end.
        submitted = asyncio.ensure_future(connection.submit_and_begin(request))
        try:
            submission = await asyncio.shield(submitted)
            call.call_id = submission.call_id
            if submission.begun:
                return None
            begun = asyncio.ensure_future(connection.begin_function(call.call_id))
            try:
                await self._with_progress(call, begun)
                return begun.result()
            finally:
                begun.cancel()
        except asyncio.CancelledError:
            with suppress(WhisperError):
                call.call_id = (await submitted).call_id
                await connection.withdraw(call.call_id, "the agent cancelled it")
                # It may have been approved in this moment; then it counts as begun, though nobody was sent it.
                await connection.end_function(call.call_id, "the agent cancelled it before it was sent to the server")
            raise

    async def _with_progress(self, call: HeldCall, begun: "asyncio.Future[CallRecord]") -> None:
        """Wait for a decision, and report progress meanwhile, which keeps clients from giving up."""
        seconds, reports = self._progress_s[0], 0
        while not (await asyncio.wait({begun}, timeout=seconds))[0]:
            seconds, reports = self._progress_s[1], reports + 1
            if call.progress_token is None:
                continue
            params = {
                "progressToken": call.progress_token,
                "progress": reports * PROGRESS_STEP,
                "message": f"{await self._waits(call)} in whisper_tui, {time.monotonic() - call.began_at:.0f} s",
            }
            message = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            self._to_client.put(json.dumps(message).encode())

    async def _waits(self, call: HeldCall) -> str:
        """Return what a call waits for, as the beginning of a sentence."""
        with suppress(WhisperError):
            if call.connection is not None and call.call_id is not None:
                record = await call.connection.record(call.call_id)
                if record.aside is not None:
                    return "set aside by a human, and still to be decided,"
        return "waiting for a human"

    def _refuse(self, call: HeldCall, error: WhisperError) -> None:
        """Answer a call that was not forwarded."""
        from whisper_tui.tools.agent_text import ToolFailure

        says_so = isinstance(error, ToolFailure)
        text = error.sentence() if says_so else f"Error: {error.sentence().rstrip('.')}. Nothing ran."
        result: Message = {"content": [text_block(text)], "isError": True}
        if call.call_id is not None:
            result["_meta"] = {CALL_ID: call.call_id}
        if self._calls.pop(key_of_id(call.message["id"]), None) is not None:
            self._to_client.put(json.dumps({"jsonrpc": "2.0", "id": call.message["id"], "result": result}).encode())

    def _cancel(self, key: str, call: HeldCall, line: bytes) -> None:
        """Withdraw a waiting call, or forward the cancellation of one that runs."""
        if self._calls.pop(key, None) is None:
            return
        if call.forwarded:
            self._to_server.put(line)
            self._start(self._end(call, "the agent cancelled it"))
        elif call.task is not None:
            call.task.cancel()

    async def _end(self, call: HeldCall, problem: str | None) -> None:
        if call.connection is not None and call.call_id is not None and call.connection.connected:
            with suppress(WhisperError):
                await call.connection.end_function(call.call_id, problem)

    def server_line(self, line: bytes) -> None:
        """Forward a line of the server."""
        # Reading an answer takes longer than forwarding it, so nothing is read while nothing is expected.
        content = _parsed(line) if self._calls or self._listings else None
        if isinstance(content, list):
            for message in content:
                self._server_message(message, json.dumps(message).encode())
        else:
            self._server_message(content, line)

    def _server_message(self, message: Any, line: bytes) -> None:
        key = (
            key_of_id(message["id"])
            if isinstance(message, dict) and "id" in message and "method" not in message
            else ""
        )
        if key in self._listings:
            self._listings.discard(key)
            self._learn(message)
        call = self._calls.get(key)
        if call is None:
            self._to_client.forward(line)
            return
        if not call.forwarded:
            _report(f"{self._server} answered request {key} before it was sent it, so the answer was dropped")
            return
        if self._calls.pop(key, None) is not None:
            self._to_client.forward(line if call.note is None else call.annotated(message))
            problem = "the server answered with an error" if _is_error(message) else None
            # After the answer: the record of the end is not what the agent waits for.
            self._loop.call_soon_threadsafe(lambda: self._start(self._end(call, problem)))

    def _learn(self, message: Message) -> None:
        """Keep the server's words about its tools for the human."""
        match message:
            case {"result": {"tools": list(tools)}}:
                for tool in tools:
                    match tool:
                        case {"name": str(name), "description": str(words)} if is_sendable(name + words):
                            self._session.descriptions[name] = words[:LONGEST_DESCRIPTION]

    async def close(self, why: str) -> None:
        """Withdraw the calls that wait, record the end of those that run, and end the session."""
        calls, self._calls = dict(self._calls), {}
        for key, call in calls.items():
            if call.forwarded:
                self._start(self._end(call, why))
                continue
            if call.task is not None:
                call.task.cancel()
            result = {"content": [text_block(f"The call was withdrawn, because {why}. Nothing ran.")], "isError": True}
            self._to_client.put(json.dumps({"jsonrpc": "2.0", "id": json.loads(key), "result": result}).encode())
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=FAREWELL_S)
            for task in late:
                task.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_S):
                await self._session.close(why)


def _is_error(answer: Message) -> bool:
    result = answer.get("result")
    return "error" in answer or (isinstance(result, dict) and result.get("isError") is True)


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def run_gateway(
    server: str,
    words: Sequence[str],
    connect: "Connect",
    *,
    root: str,
    name: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> int:
    """Start the server and serve the client at standard input and output until one of them ends. Return the exit code.

    `name` is the session's name in the queue. `environment` is added to the server's. Raises `Unavailable`.
    """
    try:
        process = subprocess.Popen(
            [*words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **(environment or {})}
        )
    except OSError as error:
        raise Unavailable(
            f"the MCP server {server!r} cannot be started: {words[0]}: {error.strerror or error}",
            hint="Check its command line",
        ) from error
    return asyncio.run(_serve(server, process, partial(ApprovalSession, connect, server, root, name)))


async def _serve(server: str, process: "subprocess.Popen[bytes]", session: Callable[[], ApprovalSession]) -> int:
    assert process.stdin is not None and process.stdout is not None  # noqa: S101  both are pipes
    ended, end = awaited_end(TERMINATED)
    to_client = LineWriter(1, partial(end, CLIENT_GONE))
    # A server that reads no more may still answer. It has ended when its output ends.
    to_server = LineWriter(process.stdin.fileno(), lambda: None)
    gateway = Gateway(session(), server, to_server, to_client)
    server_gone = f"the MCP server {server} has ended"
    read_in_thread(0, gateway.client_line, partial(end, CLIENT_GONE))
    reading = read_in_thread(process.stdout.fileno(), partial(_from_server, gateway, server), partial(end, server_gone))
    why = await ended
    await gateway.close(why)
    code = await asyncio.to_thread(end_process, process, to_server, reading, at_once=why == TERMINATED)
    await asyncio.to_thread(to_client.finish, GRACE_S)
    return code if why == server_gone else 0


CLIENT_GONE, TERMINATED = "the agent disconnected", "the agent ended the gateway"


def _from_server(gateway: Gateway, server: str, line: bytes | None) -> None:
    if line is None:
        # Its request would never be answered, and nobody could tell which one that is.
        _report(f"{server} sent a message of more than {LONGEST_LINE:,} bytes, so it is ended")
        raise LineTooLong
    gateway.server_line(line)
