"""A wrapper that puts any tool behind the approval queue: the call is submitted, decided, and then run here."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from whisper_tui.model.api import LONGEST_REASON, Supervision
from whisper_tui.model.call import CallRequest, CommandSpec, Function
from whisper_tui.model.ending import Denied, HandedOver, Lost, Withdrawn
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.tools.agent_text import ToolFailure, agent_note, failure_of
from whisper_tui.tools.ai_tool import AITool, check_arguments, run_tool
from whisper_tui.tools.supervised_tool import Answer, SupervisedTool, ToolContext


class AskedTool(SupervisedTool):
    """Looks to a model like the tool that it wraps."""

    def __init__(self, context: ToolContext, tool: AITool) -> None:
        super().__init__(context)
        self._tool = tool

    @property
    def name(self) -> str:
        """The tool's identifier."""
        return self._tool.name

    @property
    def description(self) -> str:
        """The description for the model."""
        return self._tool.description

    @property
    def parameters_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return self._tool.parameters_schema

    @property
    def category(self) -> str | None:
        """The kind of tool."""
        return self._tool.category

    @property
    def tags(self) -> list[str]:
        """Keywords for finding the tool."""
        return self._tool.tags

    def get_ai_prompt_instructions(self) -> str:
        """When and how to use the tool."""
        return self._tool.get_ai_prompt_instructions()

    def get_openrouter_tool_definition(self) -> dict[str, Any]:
        """The tool's declaration for chat completion APIs."""
        return self._tool.get_openrouter_tool_definition()

    def text(self, result: Any) -> str:
        """Return a result as text for a model."""
        return self._tool.text(result)

    def is_error(self, result: Any) -> bool:
        """True if a result is a failure."""
        return self._tool.is_error(result)

    def error_result(self, error: WhisperError) -> Any | None:
        """Return a failure in the tool's own result format."""
        return self._tool.error_result(error)

    @property
    def read_only(self) -> bool:
        """True if no call of it changes anything."""
        return self._tool.read_only

    async def is_asked(self, arguments: object) -> bool:
        """True if this call goes through the queue. Raises `ArgumentError`."""
        return await self._tool.needs_approval(check_arguments(self.name, self.parameters_schema, arguments))

    def request(self, arguments: object, *, key: str | None = None) -> CallRequest:
        """Check the arguments and return a request that shows them unchanged."""
        checked = check_arguments(self.name, self.parameters_schema, arguments)
        return CallRequest(
            session_id=self._context.session.id,
            tool=self.name,
            arguments=checked,
            spec=CommandSpec(command=Function(tool=self.name, arguments=checked), cwd=self._context.session.root),
            description=self._tool.approval_description(checked),
            # With a key, a repeated submission after a lost connection is the same call.
            key=key or uuid.uuid4().hex,
        )

    async def follow(self, request: CallRequest, call_id: str) -> Answer:
        """Wait for the decision, run the tool, and report its end to the supervisor."""
        async with _carried_out(self._context.supervision, call_id) as record:
            function = record.function
            # The human may have edited the arguments, so they are checked again.
            asked = function.arguments if isinstance(function, Function) else request.arguments
            result = await run_tool(self._tool, check_arguments(self.name, self.parameters_schema, asked))
        return Answer(result, self.text(result), agent_note(record), failed=self.is_error(result))

    async def execute(self, **kwargs: Any) -> Any:
        """Ask for approval if the tool needs it, and return the wrapped tool's result."""
        try:
            if not await self.is_asked(kwargs):
                return await run_tool(self._tool, kwargs)
            return await super().execute(**kwargs)
        except WhisperError as error:
            shaped = self.error_result(error)
            if shaped is None:
                raise
            return shaped


class ApprovedArguments(dict[str, Any]):
    """The arguments of an approved call, as the human left them."""

    told: str | None
    """The note for the agent: a human has changed the arguments, or nobody was asked. None: there is nothing to say."""

    def __init__(self, arguments: Mapping[str, Any], told: str | None) -> None:
        super().__init__(arguments)
        self.told = told


@asynccontextmanager
async def approved_call(
    context: ToolContext, tool: str, arguments: Mapping[str, Any], description: str = "", hosts: Iterable[str] = ()
) -> AsyncIterator[ApprovedArguments]:
    """Submit a call of any tool, wait until it may be carried out, and record the end of the block as its end.

    If cancelled while it waits, it is withdrawn. Raises `ToolFailure` if it may not be carried out.
    """
    supervision, session, targets = context.supervision, context.session, tuple(hosts)
    command = Function(tool=tool, arguments=dict(arguments), about="web" if targets else "", targets=targets)
    request = CallRequest(
        session_id=session.id,
        tool=tool,
        arguments=command.arguments,
        spec=CommandSpec(command=command, cwd=session.root),
        description=description,
        key=uuid.uuid4().hex,
    )
    call_id = await supervision.submit(request)
    try:
        async with _carried_out(supervision, call_id) as record:
            function = record.function
            changed = function.arguments if isinstance(function, Function) else command.arguments
            yield ApprovedArguments(changed, agent_note(record))
    except asyncio.CancelledError:
        # Even if the call has already ended, or the supervisor is gone, the cancellation must proceed.
        with suppress(WhisperError):
            await supervision.withdraw(call_id, "the caller gave up")
        raise


@asynccontextmanager
async def _carried_out(supervision: Supervision, call_id: str) -> AsyncIterator[CallRecord]:
    """Wait until a call may be carried out, and report its end to the supervisor when the block ends."""
    record = await supervision.begin_function(call_id)
    if isinstance(record.state, Ended):
        raise failure_without_result(record, record.state)
    # This covers what is no exception of a tool, including a cancellation.
    problem: str | None = "it did not return"
    try:
        yield record
        problem = None
    except WhisperError as error:
        problem = error.sentence()[:LONGEST_REASON]
        raise
    except Exception as error:
        # Only its type: the text of an exception may hold secrets.
        problem = f"it raised {type(error).__name__}"
        raise
    finally:
        await supervision.end_function(call_id, problem)


def failure_without_result(record: CallRecord, state: Ended) -> WhisperError:
    """Return the failure of a call that has ended before its tool could be carried out."""
    if isinstance(state.ending, Denied | Withdrawn | HandedOver | Lost):
        return failure_of(state.ending)
    # The journal records that a function ran, but not its result.
    return ToolFailure(f"Call {record.id} ran before, and its result was not kept.", cause="lost")
