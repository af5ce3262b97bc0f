"""Refused attempts and changed rules files, as sentences."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from whisper_tui.model.event import ORDER, READ_ONLY_ENTRY, AttemptRefused, RulesChanged, untrusted_entries
from whisper_tui.model.secrets import masked
from whisper_tui.model.text import visible
from whisper_tui.present.quantities import count
from whisper_tui.present.words import decided_by_text

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
        "submit_and_begin": "carry out a call for another session",
        "end_function": "end call {}",
        "withdraw": "withdraw call {}",
        "leave": "leave call {}",
        "decide": "decide about call {}",
        "effects": "read files through the effects of call {}",
        "signal": "send a signal to call {}",
        "pause": "pause everything",
        "resume": "resume everything",
        "write_stdin": "type into call {}",
        "resize": "change the terminal of call {}",
        "revoke": "revoke approval {}",
        "deny_for_session": "block commands in session {}",
        "lift_denial": "lift denial {}",
        "file_versions": "read the files of edit {}",
        "revert_edit": "take edit {} back",
        "set_edit_mode": "change how the edits of session {} are judged",
        "add_rule": "add a rule",
        "replace_rule": "change a rule",
        "try_rule": "try a rule on past calls",
        "remove_rule": "remove a rule",
        "trust_project": "trust the rules of a project",
        "trust_rules": "change what is allowed by rules",
        "settings": "read the settings",
        "change_setting": "change a setting",
        "prune": "remove recorded output",
        "report_presence": "report a person at a cockpit",
        "shutdown": "stop the supervisor",
    }
)
"""The operations of the API as verbs, for sentences about refused peers."""

_DIRECT_ORDER = "give an order to the keeper of call {} through its FIFO"


def rules_sentence(changed: RulesChanged) -> str | None:
    """Return the changes in a rules file and the entries that are not trusted yet. None: nobody needs to know."""
    waits = len(untrusted_entries(changed))
    added = [mark for mark in changed.added if mark != READ_ONLY_ENTRY]
    removed = [mark for mark in changed.removed if mark != READ_ONLY_ENTRY]
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
        parts.append(f"what it allows was trusted {decided_by_text(changed.by)}")
    if waits:
        parts.append(
            f"{count(waits, 'entry', 'entries')} that would allow commands are not trusted: run whisper-tui rules trust"
        )
    return f"Rules: {'; '.join(parts)}."


def _entries(marks: Sequence[str]) -> str:
    return ", ".join(visible(masked(mark.rpartition(" #")[0] or mark)) for mark in marks)


def refused_sentence(attempt: AttemptRefused) -> str:
    """Describe a refused attempt: the process, the operation, and the reason."""
    program = f" ({visible(attempt.program)})" if attempt.program else ""
    inside = f" inside call {attempt.from_call}" if attempt.from_call else ""
    words = _DIRECT_ORDER if attempt.operation == ORDER else TRIED.get(attempt.operation, attempt.operation)
    tried = words.format(visible(attempt.about or "?"))
    who = f"pid {attempt.pid}{program}{inside}" if attempt.pid else "an unknown process"
    others = f" {count(attempt.left_out, 'other')} before it went unrecorded." if attempt.left_out else ""
    return f"Refused: {who} tried to {tried}; {visible(attempt.why)}.{others}"
