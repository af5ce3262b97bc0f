"""Attempts to decide by those who may not, as sentences."""

from collections.abc import Mapping
from types import MappingProxyType

from whisper_tui.model.event import AttemptRefused
from whisper_tui.model.text import visible
from whisper_tui.tui.words import count

TRIED: Mapping[str, str] = MappingProxyType(
    {
        "open_session": "take over a session",
        "describe_session": "speak for session {}",
        "say": "speak in session {}",
        "close_session": "close session {}",
        "submit": "submit a call for another session",
        "claim": "start call {}",
        "hand_over": "take call {} for itself",
        "begin_function": "carry out call {}",
        "end_function": "end call {}",
        "withdraw": "withdraw call {}",
        "leave": "leave call {}",
        "decide": "decide about call {}",
        "signal": "send a signal to call {}",
        "pause": "pause everything",
        "resume": "let everything go on",
        "write_stdin": "type into call {}",
        "resize": "change the terminal of call {}",
        "revoke": "revoke approval {}",
        "prune": "remove recorded output",
        "shutdown": "stop the supervisor",
    }
)
"""What somebody tried who asked for an operation that is kept from them."""


def refused_sentence(attempt: AttemptRefused) -> str:
    """Who tried what, and why it was refused."""
    program = f" ({visible(attempt.program)})" if attempt.program else ""
    inside = f" inside call {attempt.from_call}" if attempt.from_call else ""
    tried = TRIED.get(attempt.operation, attempt.operation).format(visible(attempt.about or "?"))
    others = f" {count(attempt.left_out, 'other')} before it went unrecorded." if attempt.left_out else ""
    return f"Refused: pid {attempt.pid}{program}{inside} tried to {tried}; {visible(attempt.why)}.{others}"
