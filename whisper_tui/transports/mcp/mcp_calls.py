"""The calls of one MCP client: monitored until they end, its limits, and the messages about progress and answers."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import mcp_types as types

from whisper_tui.agents.known_clients import profile_behind
from whisper_tui.agents.profile import DEFAULT_WAIT, SMALLEST_BUDGET, WaitLimit
from whisper_tui.model.api import Supervision
from whisper_tui.model.board import Board
from whisper_tui.model.call import CallRequest, ClientInfo, digest
from whisper_tui.model.errors import BrokenHistory, WhisperError
from whisper_tui.model.state import (
    WENT_ON,
    Aside,
    CallRecord,
    Ended,
    Held,
    Queued,
    Running,
    Starting,
    Unjudged,
    Waiting,
)
from whisper_tui.tools import AITool, Answer, ArgumentError, SupervisedTool, ToolContext, ToolFailure, ToolRegistry
from whisper_tui.tools.agent_text import OutputBudget, as_json, shortened
from whisper_tui.tools.wait import own_call, pending, pending_text, request_of
from whisper_tui.transports.json_lines import CALL_ID, NOTE_KEY

COUNTED_EVERY_S = 1.0
"""The shortest interval in seconds at which positions in the queue are counted."""

QUEUED = "approved, about to start"
"""The words about a queued call that nothing keeps."""

Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Sends one progress notification: progress, total, message."""


class ProgressReporter:
    """Reports the progress of calls to all connections. It watches the board only while somebody waits."""

    def __init__(self, supervision: Supervision, clock: Callable[[], float] = time.time) -> None:
        self._supervision = supervision
        self._clock = clock
        self._board = Board()
        self._lookers = 0
        self._following: asyncio.Task[None] | None = None
        self._places: dict[str, int] = {}
        self._counted_at = -COUNTED_EVERY_S

    @asynccontextmanager
    async def reporting(self, call_id: str, report: Report, interval_s: float) -> AsyncIterator[None]:
        """Report about a call regularly until the end of the block."""
        self._lookers += 1
        if self._following is None:
            self._board = Board()
            self._following = asyncio.create_task(self._follow())
        reports = asyncio.create_task(self._report(call_id, report, interval_s))
        try:
            yield
        finally:
            reports.cancel()
            self._lookers -= 1
            if self._lookers == 0:
                self._following.cancel()
                self._following = None

    async def _follow(self) -> None:
        async for events in self._supervision.watch():
            self._board.apply_all(events)

    async def _report(self, call_id: str, report: Report, interval_s: float) -> None:
        """Send a report every `interval_s` seconds."""
        # MCP requires growing progress. The time since the submission grows even across a restart of the supervisor.
        record = await self._supervision.record(call_id)
        last = 0.0
        while True:
            last = max(last + 0.001, round(self._clock() - record.call.submitted_at, 3))
            words = self.words(call_id, record)
            if words == QUEUED:
                words = await self._why_queued(record) or words
            await report(last, None, words)
            await asyncio.sleep(interval_s)

    def words(self, call_id: str, otherwise: CallRecord) -> str:
        """Describe the state of a call. `otherwise` is used while the board does not have the call."""
        try:
            record = self._board.record(call_id)
        except BrokenHistory:
            record = otherwise
        match record.state:
            case Unjudged():
                return "received"
            case Waiting(aside=Aside()):
                return "set aside by the human, not decided yet"
            case Waiting():
                return f"waiting for a human ({self._ahead(call_id)} ahead)"
            case Held():
                return "approved, waiting for its ticket"
            case Queued():
                return QUEUED
            case Starting():
                return "starting"
            case Running(process=process):
                seconds = max(0, int(self._clock() - process.started_at))
                return f"running, pid {process.leader.pid}, {seconds} s"
            case Ended():
                return "ended"

    async def _why_queued(self, otherwise: CallRecord) -> str:
        record = self._board.calls.get(otherwise.id) or otherwise
        queue = (await self._supervision.status()).queue
        reason = queue.of(record.call.session_id, by_human=record.decided_by_human, place=record.spec.place)
        return f"queued: {reason.words_for_agents()}" if reason is not None else ""

    def _ahead(self, call_id: str) -> int:
        now = asyncio.get_running_loop().time()
        if now - self._counted_at >= COUNTED_EVERY_S or call_id not in self._places:
            self._places = {waiting: place for place, waiting in enumerate(self._board.waiting)}
            self._counted_at = now
        return self._places.get(call_id, 0)


def declared(tool: AITool) -> types.Tool:
    """Return a tool's entry in the list. It has no output schema (decision 18)."""
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.parameters_schema,
        annotations=types.ToolAnnotations(
            # Clients of the protocol before 2025-06-18 look for it here.
            title=tool.title,
            read_only_hint=tool.read_only,
            destructive_hint=not tool.read_only,
            idempotent_hint=tool.read_only,
            open_world_hint=not tool.read_only,
        ),
        # Claude Code only shows a model the names of other tools until it searches for them.
        meta={"anthropic/alwaysLoad": True},
    )


def answered(answer: Answer, call_id: str, budget: OutputBudget) -> types.CallToolResult:
    """Return the answer to a call with a result, as text and as structured content."""
    meta: dict[str, Any] = {CALL_ID: call_id}
    if answer.told is None:
        return _result(answer.result, answer.text, is_error=answer.failed, meta=meta, budget=budget)
    # Only text: clients that prefer structured content would hide the note from the model (decision 18).
    text = shortened(answer.text, budget.less(answer.told), f"`whisper-tui show {call_id}` shows the call")
    content: list[types.ContentBlock] = [_text(answer.told), _text(text)]
    return types.CallToolResult(content=content, is_error=answer.failed, meta=meta | {NOTE_KEY: answer.told})


def still_open(record: CallRecord) -> types.CallToolResult:
    """Return the answer for a client that cannot wait longer: the state of the call, and its ticket."""
    result = pending(record)
    return _result(result, pending_text(result), is_error=False, meta={CALL_ID: record.id})


def plain(tool: AITool, result: Any, budget: OutputBudget) -> types.CallToolResult:
    """Return the answer of a tool that needs no approval."""
    return _result(result, tool.text(result), is_error=tool.is_error(result), meta=None, budget=budget)


def failed_by(tool: AITool, error: WhisperError, call_id: str | None = None) -> types.CallToolResult:
    """Return the answer to a call without a result, in the tool's own error format if it has one."""
    shaped = tool.error_result(error)
    if shaped is None:
        return failure_shown(error, call_id)
    meta = {CALL_ID: call_id} if call_id is not None else None
    return _result(shaped, tool.text(shaped), is_error=True, meta=meta)


def failure_shown(error: WhisperError, call_id: str | None = None) -> types.CallToolResult:
    """Return the answer to a call without a result."""
    # Some clients drop `isError`, so the text also says that it is an error.
    says_so = isinstance(error, ToolFailure) and not isinstance(error, ArgumentError)
    text = error.sentence() if says_so else f"Error: {error.sentence().rstrip('.')}. Nothing ran."
    meta = {CALL_ID: call_id} if call_id is not None else None
    return types.CallToolResult(content=[_text(text)], is_error=True, meta=meta)


def _result(
    result: Any, text: str, *, is_error: bool, meta: dict[str, Any] | None, budget: OutputBudget | None = None
) -> types.CallToolResult:
    """Return text, and the same facts as structured content if they are an object.

    Tools with much output shorten it themselves. If it is still too long, only text is sent.
    """
    structured = result if isinstance(result, dict) else None
    if budget is not None and budget.filled(text, *([] if structured is None else [as_json(structured)])) > 1.0:
        text, structured = shortened(text, budget), None
    return types.CallToolResult(content=[_text(text)], structured_content=structured, is_error=is_error, meta=meta)


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)


_OTHERS: Mapping[str, WaitLimit] = {
    "goose": WaitLimit(280.0),
    # The official Python library waits for ever by default.
    "mcp": WaitLimit(280.0),
}
"""Clients without a profile, by the prefix of the client's name."""


def output_budget(client: ClientInfo | None) -> OutputBudget:
    """Return how long an answer may be for this client to show it without truncation."""
    profile = profile_behind(client.name) if client is not None else None
    return OutputBudget(*(SMALLEST_BUDGET if profile is None else profile.answer_budget))


def wait_limit(client: ClientInfo | None, *, progress: bool) -> float:
    """Return the seconds within which a call must be answered. `progress`: the client receives progress over stdio."""
    known = _wait_of(client.name.lower()) if client is not None else DEFAULT_WAIT
    if client is None or not progress or known.with_progress_s is None or _version(client.version) < known.since:
        return known.wait_s
    return known.with_progress_s


def _wait_of(name: str) -> WaitLimit:
    if (profile := profile_behind(name)) is not None:
        return profile.wait
    # The library's name must match exactly, because other programs have names that begin with it.
    others = (wait for begin, wait in _OTHERS.items() if name == begin or (begin != "mcp" and name.startswith(begin)))
    return next(others, DEFAULT_WAIT)


def without_added_keys(client: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that the agent's model gave."""
    profile = profile_behind(client)
    added = profile.added_keys if profile is not None and profile.calls_itself(client) else ()
    # A key that is not in the schema would make every call of that client fail.
    return {name: value for name, value in arguments.items() if name not in added}


def model_of(meta: Mapping[str, Any]) -> str:
    """Return the language model behind a request. Empty: the client does not report it."""
    turn = _turn(meta)
    return str(turn["model"]) if isinstance(turn.get("model"), str) else ""


def subagent_of(meta: Mapping[str, Any]) -> str:
    """Return the subagent behind a request: in Codex each one has a thread beside that of the session."""
    thread, session = meta.get("threadId"), meta.get("sessionId")
    told = isinstance(thread, str) and isinstance(session, str) and thread != session
    return f"thread {thread}" if told else ""


def _turn(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return Codex's metadata of its turn, which is an object or an object as text."""
    turn = meta.get("x-codex-turn-metadata")
    if isinstance(turn, str):
        try:
            turn = json.loads(turn)
        except ValueError:
            return {}
    return turn if isinstance(turn, dict) else {}


def _version(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version. The first part that is not a number ends them."""
    numbers: list[int] = []
    for part in text.split("."):
        if not (part.isascii() and part.isdigit()):
            break
        numbers.append(int(part))
    return tuple(numbers)


RETURNS_WITHIN_S = 60.0
"""Seconds that an agent has to return for an answer before its call is marked as abandoned."""

KEPT_S = 900.0
"""Seconds for which an answer is kept for an agent that has disconnected."""

NOT_BACK = "the agent did not come back for the answer"


@dataclass(eq=False)
class FollowedCall:
    """One call whose answer is awaited."""

    tool: SupervisedTool
    request: CallRequest
    call_id: str
    same: str
    """The key by which two requests for the same call are recognized."""
    answer: asyncio.Task[Answer]
    listeners: int = 0
    """How many requests of the agent wait for the answer now."""
    unclaimed: bool = False
    """True if a request has stopped waiting for the answer and no other one has taken its place."""
    gone: str | None = None
    """Why the agent has stopped waiting. None: it waits."""
    timer: asyncio.TimerHandle | None = None
    aside_known: float | None = None
    """Up to this time, its agent knows when it was set aside, in seconds since the epoch. None: not looked up yet."""


class Calls:
    """Submits calls, monitors them, and finds them again for the same request or for a ticket."""

    def __init__(self, context: ToolContext, registry: ToolRegistry) -> None:
        self._context = context
        self._supervision = context.supervision
        self._registry = registry
        self._followed: dict[FollowedCall, None] = {}
        """The calls whose answer the agent has not received, oldest first."""
        self._leaving: set[asyncio.Task[None]] = set()

    async def submit(
        self, tool: SupervisedTool, arguments: Mapping[str, Any], key: str, *, asker: str = ""
    ) -> FollowedCall:
        """Submit a call, or return the same call of an earlier request that stopped waiting.

        Raises `WhisperError` if nothing was submitted.
        """
        request = tool.request(dict(arguments), key=key)
        same = digest(f"{tool.name}\n{json.dumps(arguments, sort_keys=True)}")
        # Clients cancel at their timeout and send the same call again. Without this, a human would be asked twice.
        for call in self._followed:
            if call.same == same and call.unclaimed:
                # Claimed before anything is awaited, because the agent may have sent the same call twice.
                call.unclaimed = False
                try:
                    await self._clear_mark(call)
                except BaseException:
                    call.unclaimed = True
                    raise
                return call
        # A deliberate repetition of a command does not replace an abandoned call.
        rejoin = request.dedup_key is None or request.join_open
        request = request.model_copy(update={"dedup_key": request.dedup_key or same, "rejoin": rejoin, "asker": asker})
        call_id = await self._supervision.submit(request)
        return self._follow(tool, request, call_id, same, tool.follow(request, call_id))

    async def of_ticket(self, ticket: str) -> FollowedCall:
        """Return the call of a ticket. Raises `WhisperError` if the ticket belongs to another session."""
        record = await own_call(self._context, ticket)
        call = next((call for call in self._followed if call.call_id == ticket), None)
        if call is None:
            tool = self._registry.get_tool_by_name(record.call.tool)
            if not isinstance(tool, SupervisedTool):
                raise ToolFailure(f"Call {ticket} belongs to a tool that cannot be waited for.")
            request = request_of(record.call)
            answer = tool.follow(request, ticket) if record.function else self._at_its_end(tool, request, ticket)
            call = self._follow(tool, request, ticket, "", answer)
            # Who asks with the ticket was told.
            call.aside_known = _aside_since(record)
        await self._clear_mark(call)
        return call

    async def answer(self, call: FollowedCall, seconds: float) -> Answer | None:
        """Wait for the answer. None: the time was over, or a human has set the call aside meanwhile.

        Raises `WhisperError` if there is no result.
        """
        call.listeners += 1
        call.unclaimed, call.gone = False, None
        _stop(call)
        aside = asyncio.create_task(self._set_aside(call))
        try:
            await asyncio.wait({call.answer, aside}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if done := call.answer.done():
                self._followed.pop(call, None)
        finally:
            goes_on = aside.done()
            aside.cancel()
            call.listeners -= 1
            if not call.listeners and call in self._followed:
                call.unclaimed = True
                if goes_on and call.gone is None:
                    # It is told to go on, so it is not waited for as one that only asks again.
                    self._start(self._supervision.leave(call.call_id, WENT_ON))
                else:
                    self._wait_for_return(call)
        return call.answer.result() if done else None

    async def _set_aside(self, call: FollowedCall) -> None:
        """Return when a human sets the call aside, or else when there is an answer."""
        with suppress(WhisperError):
            if call.aside_known is None:
                record = await self._supervision.record(call.call_id)
                # A call that this one has joined was set aside before its agent asked again.
                call.aside_known = _aside_since(record) if record.call.key != call.request.key else 0.0
            record = await self._supervision.outcome(call.call_id, aside_after=call.aside_known)
            call.aside_known = max(call.aside_known, _aside_since(record))
            if not isinstance(record.state, Ended):
                return
        await asyncio.wait({call.answer})

    async def leave(self, call: FollowedCall, why: str) -> None:
        """Handle that the agent stopped waiting. A waiting call is marked. Settings decide about a running one."""
        if call.listeners > 1:
            return
        call.gone = why
        if not call.listeners:
            call.unclaimed = True
            await self._leave(call)

    async def leave_all(self, why: str) -> None:
        """Handle the end of the agent."""
        for call in tuple(self._followed):
            call.gone = why
            await self._leave(call)

    async def close(self) -> None:
        """Stop following all calls."""
        for call in self._followed:
            _stop(call)
        tasks = [*(call.answer for call in self._followed), *self._leaving]
        self._followed.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _at_its_end(self, tool: SupervisedTool, request: CallRequest, call_id: str) -> Answer:
        """Return the final answer to a call that was already answered, for example one that became a task."""
        await self._supervision.outcome(call_id)
        return await tool.follow(request, call_id)

    def _follow(
        self,
        tool: SupervisedTool,
        request: CallRequest,
        call_id: str,
        same: str,
        answer: Coroutine[Any, Any, Answer],
    ) -> FollowedCall:
        call = FollowedCall(tool, request, call_id, same, asyncio.create_task(answer))
        self._followed[call] = None
        call.answer.add_done_callback(lambda _: self._ended(call))
        return call

    async def _clear_mark(self, call: FollowedCall) -> None:
        """Remove the mark from a call whose agent has returned, by submitting the same call again."""
        call.gone = None
        record = await self._supervision.record(call.call_id)
        if record.agent_gave_up is None or isinstance(record.state, Ended) or call.request.dedup_key is None:
            return
        # The same call is certainly open, so this does not submit a new one.
        again = call.request.model_copy(update={"key": None, "rejoin": True, "join_open": True})
        await self._supervision.submit(again)

    def _wait_for_return(self, call: FollowedCall) -> None:
        if call.gone is not None:
            self._start(self._leave(call))
        elif call.answer.done():
            self._ended(call)
        else:
            loop = asyncio.get_running_loop()
            call.timer = loop.call_later(RETURNS_WITHIN_S, self._not_back, call)

    def _not_back(self, call: FollowedCall) -> None:
        call.gone = NOT_BACK
        self._start(self._leave(call))

    async def _leave(self, call: FollowedCall) -> None:
        _stop(call)
        record = await self._supervision.record(call.call_id)
        match record.state:
            case Ended():
                pass
            case Starting() | Running():
                await self._supervision.withdraw(call.call_id, call.gone or NOT_BACK)
            case _:
                await self._supervision.leave(call.call_id, call.gone or NOT_BACK)

    def _ended(self, call: FollowedCall) -> None:
        """Keep an unread answer for `KEPT_S`."""
        if not call.answer.cancelled():
            # Retrieved, because otherwise asyncio would log that it never was.
            call.answer.exception()
        if call in self._followed and not call.listeners:
            _stop(call)
            call.timer = asyncio.get_running_loop().call_later(KEPT_S, self._followed.pop, call, None)

    def _start(self, leaving: Coroutine[Any, Any, None]) -> None:
        async def leave() -> None:
            try:
                await leaving
            except WhisperError:
                return  # If the supervisor cannot record it, it cannot do anything else about the call either.

        task = asyncio.create_task(leave())
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)


def _aside_since(record: CallRecord) -> float:
    return record.aside.since if record.aside is not None else 0.0


def _stop(call: FollowedCall) -> None:
    if call.timer is not None:
        call.timer.cancel()
        call.timer = None
