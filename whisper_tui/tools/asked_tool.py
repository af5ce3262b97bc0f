"""Any tool behind the approval queue: its call is handed in, decided about, and carried out here once it may be."""

import uuid
from typing import Any

from whisper_tui.model.call import CallRequest
from whisper_tui.model.command import CommandSpec, Function
from whisper_tui.model.ending import Denied, HandedOver, Lost, Withdrawn
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.tools.ai_tool import AITool
from whisper_tui.tools.answer import Answer
from whisper_tui.tools.arguments import check_arguments
from whisper_tui.tools.context import ToolContext
from whisper_tui.tools.failure import ToolFailure, failure_of
from whisper_tui.tools.running import run_tool
from whisper_tui.tools.supervised_tool import SupervisedTool
from whisper_tui.tools.told import told


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
        """What the tool does."""
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
        """Words to find the tool by."""
        return self._tool.tags

    def get_ai_prompt_instructions(self) -> str:
        """When and how to use the tool."""
        return self._tool.get_ai_prompt_instructions()

    def get_openrouter_tool_definition(self) -> dict[str, Any]:
        """The tool as chat completion APIs want it declared."""
        return self._tool.get_openrouter_tool_definition()

    def text(self, result: Any) -> str:
        """A result for a model that reads text."""
        return self._tool.text(result)

    def is_error(self, result: Any) -> bool:
        """Whether a result tells of a failure."""
        return self._tool.is_error(result)

    def error_result(self, error: WhisperError) -> Any | None:
        """A failure as a result in the tool's own shape."""
        return self._tool.error_result(error)

    @property
    def read_only(self) -> bool:
        """Whether no call of it changes anything."""
        return self._tool.read_only

    async def is_asked(self, arguments: object) -> bool:
        """Whether this call goes through the queue. Raises `ArgumentError`."""
        return await self._tool.needs_approval(check_arguments(self.name, self.parameters_schema, arguments))

    def request(self, arguments: object, *, key: str | None = None) -> CallRequest:
        """Check the arguments and make a request that shows them as they are."""
        checked = check_arguments(self.name, self.parameters_schema, arguments)
        return CallRequest(
            session_id=self._context.session.id,
            tool=self.name,
            arguments=checked,
            spec=CommandSpec(command=Function(tool=self.name, arguments=checked), cwd=self._context.session.root),
            description=self._tool.approval_description(checked),
            key=key or uuid.uuid4().hex,
        )

    async def follow(self, request: CallRequest, call_id: str) -> Answer:
        """Wait for the decision, then carry the tool out and say how that went."""
        record = await self._context.supervision.begin_function(call_id)
        if isinstance(record.state, Ended):
            raise _failure(record, record.state)
        function = record.function
        problem: str | None = "it did not return"
        try:
            asked = function.arguments if function is not None else request.arguments
            result = await run_tool(self._tool, check_arguments(self.name, self.parameters_schema, asked))
            problem = None
        except WhisperError as error:
            problem = error.sentence()
            raise
        finally:
            await self._context.supervision.end_function(call_id, problem)
        return Answer(result, self.text(result), told(record), failed=self.is_error(result))

    async def execute(self, **kwargs: Any) -> Any:
        """Ask where that is needed, and return what the wrapped tool returns."""
        try:
            if not await self.is_asked(kwargs):
                return await run_tool(self._tool, kwargs)
            return await super().execute(**kwargs)
        except WhisperError as error:
            shaped = self.error_result(error)
            if shaped is None:
                raise
            return shaped


def _failure(record: CallRecord, state: Ended) -> WhisperError:
    if isinstance(state.ending, Denied | Withdrawn | HandedOver | Lost):
        return failure_of(state.ending)
    return ToolFailure(f"Call {record.id} was carried out before, and its result is not kept.", cause="lost")
