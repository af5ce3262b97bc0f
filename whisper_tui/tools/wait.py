"""`wait`, and the answer about a call that has not ended when the client's time is over."""

from collections.abc import Callable
from typing import Any, Literal

from whisper_tui.model.call import CallRequest, ToolCall
from whisper_tui.model.errors import UnknownCall
from whisper_tui.model.state import Aside, CallRecord, Ended, Held, Queued, Unjudged, Waiting
from whisper_tui.tools.agent_text import ToolFailure
from whisper_tui.tools.ai_tool import AITool, prompt_block
from whisper_tui.tools.supervised_tool import SupervisedTool, ToolContext

PendingStatus = Literal["pending_approval", "approved", "running"]


def pending(record: CallRecord) -> dict[str, Any]:
    """Return the answer about a call without a result: `status`, `ticket`, `message` and `next`."""
    # No tool's result has these four fields, so `WaitTool.text` can distinguish the two.
    status, message = _status(record)
    wait = f'Call `wait` with ticket "{record.id}" to go on waiting for its result.'
    if record.aside is not None:
        wait = f'Go on with what does not need its result. Call `wait` with ticket "{record.id}" later to get it.'
    end = "Do not send the call again, and do not try another way."
    return {"status": status, "ticket": record.id, "message": message, "next": f"{wait} {end}"}


def pending_text(result: dict[str, Any]) -> str:
    """Return the same as text for a model."""
    return f"{result['message']} Status: {result['status']}, ticket {result['ticket']}. {result['next']}"


def _status(record: CallRecord) -> tuple[PendingStatus, str]:
    match record.state:
        case Waiting(aside=Aside()):
            return "pending_approval", "The human has set it aside: nothing has run, and it is still to be decided."
        case Unjudged() | Waiting():
            return "pending_approval", "Not approved yet, and nothing has run: the call waits for a human's decision."
        case Held() | Queued():
            return "approved", "The call is approved and has not started yet."
        case _:
            return "running", "The call has started and still runs."


async def own_call(context: ToolContext, ticket: str) -> CallRecord:
    """Return the call of this session with that ticket. Raises `ToolFailure`."""
    # Tickets are consecutive numbers, so those of other sessions get the same answer as unknown ones.
    try:
        record = await context.supervision.record(ticket)
    except UnknownCall:
        raise _no_ticket(ticket) from None
    if record.call.session_id != context.session.id:
        raise _no_ticket(ticket)
    return record


def request_of(call: ToolCall) -> CallRequest:
    """Return the request for a call."""
    return CallRequest(**{name: getattr(call, name) for name in CallRequest.model_fields})


def _no_ticket(ticket: str) -> ToolFailure:
    return ToolFailure(
        f"There is no ticket {ticket!r} in this session, so there is nothing to wait for.",
        hint="A ticket is valid only in the session that received it; send the call again if it is still wanted",
    )


WAIT = "wait"
LONGEST_WAIT_S = 86_400


class WaitTool(AITool):
    """Waits for a call, and answers in the format of that call's tool."""

    title = "Wait for a pending call"
    name = WAIT
    description = (
        "Wait for the result of a call that was answered with `pending_approval`, `approved` or `running` and a "
        "`ticket`. Returns the result of that call as its own tool would, or says again that it is not there yet."
    )
    category = "System Execution"
    tags: list[str] = ["wait", "ticket", "approval", "system"]  # noqa: RUF012
    read_only = True
    parameters_schema: dict[str, Any] = {  # noqa: RUF012
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

    def __init__(self, context: ToolContext, tool_of: Callable[[str], AITool]) -> None:
        """`tool_of`: returns the session's tool with a name."""
        self._context = context
        self._tool_of = tool_of

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
        """Return the result as its own tool formats it, if the result names that tool."""
        match result:
            case {"status": _, "ticket": _, "message": _, "next": _}:
                return pending_text(result)
            case {"tool_name": str(name)}:
                return self._tool_of(name).text(result)
            case _:
                return super().text(result)

    async def needs_approval(self, arguments: dict[str, Any]) -> bool:
        """False: an agent may always wait for its own calls."""
        return False

    async def execute(self, **kwargs: Any) -> Any:
        """Return the result of the call, or its state. Raises `WhisperError` if the call ended without a result."""
        record = await own_call(self._context, kwargs["ticket"])
        tool = self._tool_of(record.call.tool)
        if not isinstance(tool, SupervisedTool):
            raise ToolFailure(f"Call {record.id} belongs to a tool that cannot be waited for.")
        record = await self._context.ended_within(record, kwargs.get("wait_s"))
        if not isinstance(record.state, Ended):
            return pending(record)
        return (await tool.follow(request_of(record.call), record.id)).result
