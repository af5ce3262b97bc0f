"""Attempts to decide by those who may not, as sentences."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from whisper_tui.model.event import AttemptRefused, RulesChanged
from whisper_tui.model.masking import masked
from whisper_tui.model.rule_entries import LOOKS, untrusted
from whisper_tui.model.text import visible
from whisper_tui.tui.words import count, decider

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
        "trust_rules": "change what is allowed by rules",
        "prune": "remove recorded output",
        "shutdown": "stop the supervisor",
    }
)
"""What somebody tried who asked for an operation that is kept from them."""


def rules_sentence(changed: RulesChanged) -> str | None:
    """What a file of rules says else, and whether that holds. None: nothing that anybody has to know."""
    waits = len(untrusted(changed))
    added = [mark for mark in changed.added if mark != LOOKS]
    removed = [mark for mark in changed.removed if mark != LOOKS]
    if not (added or removed or waits or changed.by):
        return None
    file = visible(changed.path)
    parts = [f"{file} was changed" if added or removed else file]
    parts += [f"{word} {_entries(marks)}" for word, marks in (("added", added), ("removed", removed)) if marks]
    if changed.left_out:
        parts.append(f"{count(changed.left_out, 'other entry', 'other entries')} changed")
    if changed.why:
        parts.append(changed.why)
    if changed.by is not None:
        parts.append(f"what it allows was trusted {decider(changed.by)}")
    if waits:
        parts.append(
            f"{count(waits, 'entry', 'entries')} that would allow something do not hold: whisper-tui rules trust"
        )
    return f"Rules: {'; '.join(parts)}."


def _entries(marks: Sequence[str]) -> str:
    return ", ".join(visible(masked(mark.rpartition(" #")[0] or mark)) for mark in marks)


def refused_sentence(attempt: AttemptRefused) -> str:
    """Who tried what, and why it was refused."""
    program = f" ({visible(attempt.program)})" if attempt.program else ""
    inside = f" inside call {attempt.from_call}" if attempt.from_call else ""
    tried = TRIED.get(attempt.operation, attempt.operation).format(visible(attempt.about or "?"))
    others = f" {count(attempt.left_out, 'other')} before it went unrecorded." if attempt.left_out else ""
    return f"Refused: pid {attempt.pid}{program}{inside} tried to {tried}; {visible(attempt.why)}.{others}"
