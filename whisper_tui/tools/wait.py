"""`wait`: goes on waiting for a call whose answer was that it still waits or runs."""

import asyncio
from collections.abc import Callable
from typing import Any

from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.tools.ai_tool import AITool
from whisper_tui.tools.context import ToolContext
from whisper_tui.tools.failure import ToolFailure
from whisper_tui.tools.pending import own_call, pending, pending_text, request_of
from whisper_tui.tools.prompt_text import prompt_block
from whisper_tui.tools.supervised_tool import SupervisedTool

WAIT = "wait"
LONGEST_WAIT_S = 86_400


class WaitTool(AITool):
    """Answers in the shape of the tool whose call it waited for."""

    def __init__(self, context: ToolContext, tool_of: Callable[[str], AITool]) -> None:
        """`tool_of`: the session's tool of a name."""
        self._context = context
        self._tool_of = tool_of

    @property
    def name(self) -> str:
        """The tool's identifier."""
        return WAIT

    @property
    def description(self) -> str:
        """What the tool does."""
        return (
            "Wait for the result of a call that was answered with `pending_approval`, `approved` or `running` and a "
            "`ticket`. Returns the result of that call as its own tool would, or says again that it is not there yet."
        )

    @property
    def category(self) -> str:
        """The kind of tool."""
        return "System Execution"

    @property
    def tags(self) -> list[str]:
        """Words to find the tool by."""
        return ["wait", "ticket", "approval", "system"]

    @property
    def read_only(self) -> bool:
        """It changes nothing."""
        return True

    @property
    def parameters_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {
                "ticket": {"type": "string", "description": "The ticket that the call was answered with."},
                "wait_s": {
                    "type": "number",
                    "description": "Seconds to wait at most. Defaults to as long as the agent's program can wait.",
                    "minimum": 0,
                    "maximum": LONGEST_WAIT_S,
                },
            },
            "required": ["ticket"],
            "additionalProperties": False,
        }

    def get_ai_prompt_instructions(self) -> str:
        """When and how to use the tool."""
        return prompt_block(
            self,
            purpose="Use this tool when a call was answered with a ticket, because a human has not decided about it or "
            "it still runs. Waiting changes nothing; repeat it until the result is there.",
            expected_output="The result of the call, in the shape of the tool that was called; or again an object with "
            '"status" (pending_approval, approved or running), "ticket", "message" and "next".',
            examples=(("go on waiting for ticket 17", '`ticket="17"`'),),
        )

    def text(self, result: Any) -> str:
        """As the tool whose result it is would say it, where the result names that tool."""
        match result:
            case {"status": _, "ticket": _, "message": _, "next": _}:
                return pending_text(result)
            case {"tool_name": str(name)}:
                return self._tool_of(name).text(result)
            case _:
                return super().text(result)

    async def needs_approval(self, arguments: dict[str, Any]) -> bool:
        """An agent may always wait for what is its own."""
        return False

    async def execute(self, **kwargs: Any) -> Any:
        """The result of the call, or where it stands. Raises `WhisperError` where there is no result."""
        record = await own_call(self._context, kwargs["ticket"])
        tool = self._tool_of(record.call.tool)
        if not isinstance(tool, SupervisedTool):
            raise ToolFailure(f"Call {record.id} is not one that can be waited for.")
        record = await self._ended(record, kwargs.get("wait_s"))
        if not isinstance(record.state, Ended):
            return pending(record)
        return (await tool.follow(request_of(record.call), record.id)).result

    async def _ended(self, record: CallRecord, seconds: float | None) -> CallRecord:
        """The record at its ending, or when the time is over."""
        outcome = asyncio.ensure_future(self._context.supervision.outcome(record.id))
        try:
            done, _ = await asyncio.wait({outcome}, timeout=seconds)
            return await outcome if done else await self._context.supervision.record(record.id)
        finally:
            outcome.cancel()
