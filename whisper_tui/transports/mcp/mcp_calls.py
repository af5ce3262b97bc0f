"""The calls of one agent, monitored until they end even without a waiting request, and the limits of its client."""

import asyncio
import json
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from whisper_tui.agents.known_clients import profile_behind
from whisper_tui.agents.profile import DEFAULT_WAIT, SMALLEST_BUDGET, WaitLimit
from whisper_tui.model.call import CallRequest, ClientInfo, digest
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import Ended, Running, Starting
from whisper_tui.tools import Answer, SupervisedTool, ToolContext, ToolFailure, ToolRegistry
from whisper_tui.tools.agent_text import OutputBudget
from whisper_tui.tools.wait import own_call, request_of

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
    gone: str | None = None
    """Why the agent has stopped waiting. None: it waits."""
    timer: asyncio.TimerHandle | None = None


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
            if call.same == same and not call.listeners:
                await self._clear_mark(call)
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
        await self._clear_mark(call)
        return call

    async def answer(self, call: FollowedCall, seconds: float) -> Answer | None:
        """Wait for the answer. None: the time was over. Raises `WhisperError` if there is no result."""
        call.listeners += 1
        call.gone = None
        _stop(call)
        try:
            done, _ = await asyncio.wait({call.answer}, timeout=seconds)
            if done:
                self._followed.pop(call, None)
        finally:
            call.listeners -= 1
            if not call.listeners and call in self._followed:
                self._wait_for_return(call)
        return call.answer.result() if done else None

    async def leave(self, call: FollowedCall, why: str) -> None:
        """Handle that the agent stopped waiting. A waiting call is marked. Settings decide about a running one."""
        if call.listeners > 1:
            return
        call.gone = why
        if not call.listeners:
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


def _stop(call: FollowedCall) -> None:
    if call.timer is not None:
        call.timer.cancel()
        call.timer = None
