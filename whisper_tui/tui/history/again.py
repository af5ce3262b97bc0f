"""Running a call of the past once more: it is asked for anew, and judged like any other."""

from whisper_tui.model.call import CallRequest, Session
from whisper_tui.model.state import CallRecord


def why_not_again(record: CallRecord, session: Session | None) -> str | None:
    """Why a call cannot be run once more, in a sentence. None: it can."""
    if record.function is not None:
        return f"Call {record.id} cannot be run again from here: its agent carries it out itself."
    if session is None or session.closed_at is not None:
        because = f" ({session.closed_because})" if session is not None and session.closed_because else ""
        return f"Call {record.id} cannot be run again: its session is closed{because}, and its environment is gone."
    return None


def again(record: CallRecord) -> CallRequest:
    """The same command in the same session: as it ran, where a human had changed it."""
    call = record.call
    description = f"Once more, from the history (call {call.id})" + (f": {call.description}" * bool(call.description))
    return CallRequest(
        session_id=call.session_id,
        tool=call.tool,
        arguments=call.arguments,
        spec=record.spec,
        description=description,
    )
