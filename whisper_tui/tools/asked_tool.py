"""A wrapper that puts any tool behind the approval queue: the call is submitted, decided, and then run here."""

import uuid
from typing import Any

from whisper_tui.model.call import CallRequest, CommandSpec, Function
from whisper_tui.model.ending import Denied, HandedOver, Lost, Withdrawn
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.tools.agent_notes import ToolFailure, agent_note, failure_of
from whisper_tui.tools.ai_tool import AITool, run_tool
from whisper_tui.tools.arguments import check_arguments
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
        record = await self._context.supervision.begin_function(call_id)
        if isinstance(record.state, Ended):
            raise failure_without_result(record, record.state)
        function = record.function
        # This covers every exception that is not one of our errors, including a cancellation.
        problem: str | None = "it did not return"
        try:
            # The human may have edited the arguments, so they are checked again.
            asked = function.arguments if isinstance(function, Function) else request.arguments
            result = await run_tool(self._tool, check_arguments(self.name, self.parameters_schema, asked))
            problem = None
        except WhisperError as error:
            problem = error.sentence()
            raise
        finally:
            await self._context.supervision.end_function(call_id, problem)
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


def failure_without_result(record: CallRecord, state: Ended) -> WhisperError:
    """Return the failure of a call that has ended before its tool could be carried out."""
    if isinstance(state.ending, Denied | Withdrawn | HandedOver | Lost):
        return failure_of(state.ending)
    # The journal records that a function ran, but not its result.
    return ToolFailure(f"Call {record.id} ran before, and its result was not kept.", cause="lost")
