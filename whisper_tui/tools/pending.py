"""What an agent is told that stops waiting for a call which goes on: where it stands, and how to come back to it."""

from typing import Any, Literal

from whisper_tui.model.call import CallRequest, ToolCall
from whisper_tui.model.errors import UnknownCall
from whisper_tui.model.state import CallRecord, Held, Queued, Unjudged, Waiting
from whisper_tui.tools.context import ToolContext
from whisper_tui.tools.failure import ToolFailure

Standing = Literal["pending_approval", "approved", "running"]


def pending(record: CallRecord) -> dict[str, Any]:
    """A result of its own, which no result of any tool can be taken for: `status`, `ticket`, `message` and `next`."""
    status, message = _standing(record)
    return {
        "status": status,
        "ticket": record.id,
        "message": message,
        "next": f'Call `wait` with ticket "{record.id}" to go on waiting for its result. Do not send the call again, '
        "and do not try another way.",
    }


def pending_text(result: dict[str, Any]) -> str:
    """The same for a model that reads text."""
    return f"{result['message']} Status: {result['status']}, ticket {result['ticket']}. {result['next']}"


def _standing(record: CallRecord) -> tuple[Standing, str]:
    match record.state:
        case Unjudged() | Waiting():
            return "pending_approval", "Not approved yet, and nothing has run: no human has decided about it so far."
        case Held() | Queued():
            return "approved", "It is approved and has not started yet: there is no result so far."
        case _:
            return "running", "It has started and has not ended: there is no result so far."


async def own_call(context: ToolContext, ticket: str) -> CallRecord:
    """The call of this session that a ticket names. Raises `ToolFailure`; the calls of others are not found either."""
    try:
        record = await context.supervision.record(ticket)
    except UnknownCall:
        raise _no_ticket(ticket) from None
    if record.call.session_id != context.session.id:
        raise _no_ticket(ticket)
    return record


def request_of(call: ToolCall) -> CallRequest:
    """The request that a call was made of."""
    return CallRequest(**{name: getattr(call, name) for name in CallRequest.model_fields})


def _no_ticket(ticket: str) -> ToolFailure:
    return ToolFailure(
        f"There is no ticket {ticket!r} in this session, so there is nothing to wait for.",
        hint="A ticket is good only in the session that was given it; send the call again if it is still wanted",
    )
