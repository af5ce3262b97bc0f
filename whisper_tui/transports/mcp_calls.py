"""The calls of one agent, followed to their answers whether or not a request of the agent waits for them."""

import asyncio
import json
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from whisper_tui.model.call import CallRequest
from whisper_tui.model.command import digest
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import Ended, Running, Starting
from whisper_tui.tools import Answer, SupervisedTool, ToolContext, ToolFailure, ToolRegistry
from whisper_tui.tools.pending import own_call, request_of

RETURNS_WITHIN_S = 60.0
"""Seconds that an agent has to come back for an answer before its call is marked as left."""

KEPT_S = 900.0
"""Seconds that an answer is kept for an agent that went away."""

NOT_BACK = "the agent did not come back for the answer"


@dataclass(eq=False)
class Followed:
    """One call on its way to its answer."""

    tool: SupervisedTool
    request: CallRequest
    call_id: str
    same: str
    """What it has in common with a request for the same."""
    answer: asyncio.Task[Answer]
    listeners: int = 0
    """Requests of the agent that wait for the answer now."""
    gone: str | None = None
    """Why the agent does not want to hear of it any more. None: it does."""
    timer: asyncio.TimerHandle | None = None


class Calls:
    """Hands calls in, follows them, and gives them back to an agent that asks for the same, or for their ticket."""

    def __init__(self, context: ToolContext, registry: ToolRegistry) -> None:
        self._context = context
        self._supervision = context.supervision
        self._registry = registry
        self._followed: dict[Followed, None] = {}
        """Those whose answer the agent has not been given, oldest first."""
        self._leaving: set[asyncio.Task[None]] = set()

    async def submit(
        self, tool: SupervisedTool, arguments: Mapping[str, Any], key: str, *, asker: str = ""
    ) -> Followed:
        """A new call, or the one for the same that nobody listens to. Raises `WhisperError`; then nothing is done."""
        request = tool.request(dict(arguments), key=key)
        same = digest(f"{tool.name}\n{json.dumps(arguments, sort_keys=True)}")
        for call in self._followed:
            if call.same == same and not call.listeners:
                await self._welcome(call)
                return call
        # A command that is to be started once more does not take the place of one that was left.
        rejoin = request.twin is None or request.join_twin
        request = request.model_copy(update={"twin": request.twin or same, "rejoin": rejoin, "asker": asker})
        call_id = await self._supervision.submit(request)
        return self._follow(tool, request, call_id, same, tool.follow(request, call_id))

    async def of_ticket(self, ticket: str) -> Followed:
        """The call that a ticket names. Raises `WhisperError` if it is none of this session's."""
        record = await own_call(self._context, ticket)
        call = next((call for call in self._followed if call.call_id == ticket), None)
        if call is None:
            tool = self._registry.get_tool_by_name(record.call.tool)
            if not isinstance(tool, SupervisedTool):
                raise ToolFailure(f"Call {ticket} is not one that can be waited for.")
            request = request_of(record.call)
            answer = tool.follow(request, ticket) if record.function else self._at_its_end(tool, request, ticket)
            call = self._follow(tool, request, ticket, "", answer)
        await self._welcome(call)
        return call

    async def answer(self, call: Followed, seconds: float) -> Answer | None:
        """Wait for the answer. None: the time was over first. Raises `WhisperError` where there is no result."""
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

    async def leave(self, call: Followed, why: str) -> None:
        """The agent does not wait any more: what has not started waits on, marked; what runs is the user's choice."""
        if call.listeners > 1:
            return
        call.gone = why
        if not call.listeners:
            await self._leave(call)

    async def leave_all(self, why: str) -> None:
        """The agent is gone."""
        for call in tuple(self._followed):
            call.gone = why
            await self._leave(call)

    async def close(self) -> None:
        """Follow nothing any more."""
        for call in self._followed:
            _stop(call)
        tasks = [*(call.answer for call in self._followed), *self._leaving]
        self._followed.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _at_its_end(self, tool: SupervisedTool, request: CallRequest, call_id: str) -> Answer:
        """The answer to a call that was answered before with less, as when it went on as a task."""
        await self._supervision.outcome(call_id)
        return await tool.follow(request, call_id)

    def _follow(
        self,
        tool: SupervisedTool,
        request: CallRequest,
        call_id: str,
        same: str,
        answer: Coroutine[Any, Any, Answer],
    ) -> Followed:
        call = Followed(tool, request, call_id, same, asyncio.create_task(answer))
        self._followed[call] = None
        call.answer.add_done_callback(lambda _: self._ended(call))
        return call

    async def _welcome(self, call: Followed) -> None:
        """Take the mark from a call whose agent came back: to ask for the same again is what takes it away."""
        call.gone = None
        record = await self._supervision.record(call.call_id)
        if record.agent_gave_up is None or isinstance(record.state, Ended) or call.request.twin is None:
            return
        # That the same call is open makes it certain that this is not a call of its own.
        again = call.request.model_copy(update={"key": None, "rejoin": True, "join_twin": True})
        await self._supervision.submit(again)

    def _wait_for_return(self, call: Followed) -> None:
        if call.gone is not None:
            self._start(self._leave(call))
        elif call.answer.done():
            self._ended(call)
        else:
            loop = asyncio.get_running_loop()
            call.timer = loop.call_later(RETURNS_WITHIN_S, self._not_back, call)

    def _not_back(self, call: Followed) -> None:
        call.gone = NOT_BACK
        self._start(self._leave(call))

    async def _leave(self, call: Followed) -> None:
        _stop(call)
        record = await self._supervision.record(call.call_id)
        match record.state:
            case Ended():
                pass
            case Starting() | Running():
                await self._supervision.withdraw(call.call_id, call.gone or NOT_BACK)
            case _:
                await self._supervision.leave(call.call_id, call.gone or NOT_BACK)

    def _ended(self, call: Followed) -> None:
        """Keep an answer that nobody hears for a while."""
        if not call.answer.cancelled():
            call.answer.exception()
        if call in self._followed and not call.listeners:
            _stop(call)
            call.timer = asyncio.get_running_loop().call_later(KEPT_S, self._followed.pop, call, None)

    def _start(self, leaving: Coroutine[Any, Any, None]) -> None:
        async def leave() -> None:
            try:
                await leaving
            except WhisperError:
                return  # A supervisor that cannot take note of it cannot do more about the call either.

        task = asyncio.create_task(leave())
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)


def _stop(call: Followed) -> None:
    if call.timer is not None:
        call.timer.cancel()
        call.timer = None
