"""Risks of a call, the sandbox that confines it, refused attempts and changed rules files, as text."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from whisper_tui.model.api import Supervision
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.event import ORDER, READ_ONLY_ENTRY, AttemptRefused, RulesChanged, untrusted_entries
from whisper_tui.model.masking import mask_unless_undecided
from whisper_tui.model.run import Blocked, Sandbox
from whisper_tui.model.secrets import masked
from whisper_tui.model.state import CallRecord
from whisper_tui.model.text import one_line_beginning, visible
from whisper_tui.model.verdict import OwnShell, is_grave
from whisper_tui.present.column_words import REMARKS, gravest_risk, weight
from whisper_tui.present.quantities import count
from whisper_tui.present.spans import Line, Paragraph, Span, labelled, said
from whisper_tui.present.words import decided_by_text, error_text, toast_text

NOT_INSPECTED = "not read"
"""Said of a call that runs code which nobody has read: no word about it may sound harmless."""

LONGEST_IN_ALARM = 200
"""Characters of a command in the sentence of an alarm; the card has all of it."""

MOST_NAMED = 4
"""Pieces of such code that are named."""


def risk_line(record: CallRecord) -> Line:
    """Return the gravest risk in a few words, the number of others, and whether code was not read."""
    risks = [(risk.id, is_grave(risk)) for risk in (record.verdict.risks if record.verdict else ())]
    unread = bool(record.resolved and record.resolved.not_inspected)
    if not risks:
        return (Span(NOT_INSPECTED, "risk"),) if unread else (Span("not flagged", "muted"),)
    id_, grave = min(risks, key=lambda risk: weight(risk[0], grave=risk[1]))
    gravest = Span(gravest_risk(risks), "muted" if id_ in REMARKS else "bad" if grave else "risk")
    return (gravest, Span(f" · {NOT_INSPECTED}", "risk")) if unread else (gravest,)


def not_inspected_sentences(record: CallRecord) -> tuple[str, ...]:
    """Return a sentence for each piece of code that the call runs and that nobody has read."""
    code = record.resolved.not_inspected if record.resolved else ()
    shown = [f"Not read: {each.name}, {each.not_inspected}" for each in code[:MOST_NAMED]]
    return (*shown, f"Not read: {len(code) - MOST_NAMED:,} more") if len(code) > MOST_NAMED else tuple(shown)


def sandbox_paragraphs(record: CallRecord) -> tuple[Paragraph, ...]:
    """Return the sandbox of a call. Empty: it has none, which is the default of an approval."""
    sandbox = record.sandbox
    return (labelled("Sandbox", sandbox_line(sandbox)),) if sandbox is not None else ()


def sandbox_line(sandbox: Sandbox) -> Line:
    """Return a sandbox, with the directories besides the system's whose programs may run in it."""
    also = (Span("; may also run programs in "), *said(", ".join(sandbox.execute))) if sandbox.execute else ()
    return (Span(sandbox.words()), *also)


def blocked_paragraphs(blocked: Blocked | None) -> tuple[Paragraph, ...]:
    """Return the attempts that a sandbox blocked, one per line because paths may be long."""
    if blocked is None:
        return ()
    lines = [said(attempt.words(), "risk") for attempt in blocked.attempts]
    lines = lines or [(Span("said: ", "muted"), *said(line, "risk")) for line in blocked.messages]
    if blocked.more:
        lines.append((Span(f"and {blocked.more:,} more", "muted"),))
    return tuple(labelled("" if number else "Blocked", line) for number, line in enumerate(lines))


async def why_not_confined(supervision: Supervision, record: CallRecord) -> str:
    """Return why a call cannot be approved with a sandbox. Empty: it can."""
    if record.function is not None:
        return "The agent runs this tool itself, so no sandbox can confine it."
    try:
        problem = (await supervision.status()).sandbox_problem
    except WhisperError as error:
        return error_text(error)
    return f"No sandbox is available: {toast_text(problem)}. Nothing was decided." if problem else ""


def blocked_sentence(record: CallRecord) -> str:
    """Return the blocked attempts as a toast. Empty: nothing was blocked."""
    blocked = mask_unless_undecided(record).blocked
    return f"The sandbox blocked call {record.id}: it {blocked.words()}." if blocked is not None else ""


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
        "set_aside": "set call {} aside",
        "withdraw_yes": "withdraw the yes to call {}",
        "start_anyway": "start queued call {}",
        "signal": "send a signal to call {}",
        "pause": "pause everything",
        "resume": "resume everything",
        "write_stdin": "type into call {}",
        "resize": "change the terminal of call {}",
        "revoke": "revoke approval {}",
        "deny_for_session": "deny commands in session {}",
        "lift_denial": "lift denial {}",
        "file_versions": "read the files of edit {}",
        "revert_edit": "undo edit {}",
        "preview": "preview call {}",
        "drop_preview": "drop the preview of call {}",
        "preview_page": "read the changes of call {}",
        "preview_versions": "read the changed files of call {}",
        "undo": "undo call {}",
        "undo_calls": "undo several calls",
        "drafts": "list the drafts",
        "start_draft": "begin a draft of session {}",
        "draft_page": "read the draft of session {}",
        "draft_versions": "read the files of the draft of session {}",
        "apply_draft": "apply a draft",
        "drop_draft": "drop the draft of session {}",
        "set_unasked": "change how much runs unasked",
        "mark_reviewed": "mark changes as seen",
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
        "connect_place": "connect a place or let it go",
        "shutdown": "stop the supervisor",
        "phone_pairing_open": "pair a phone",
        "phone_pairing": "read the code of a pairing",
        "phone_confirm": "confirm a phone",
        "phone_devices": "list the phones",
        "phone_revoke": "revoke a phone",
        "phone_calls": "speak for a phone",
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


def alarm_sentence(record: CallRecord) -> str:
    """Describe the alarm of a call: what was approved, and what ran."""
    alarm = record.alarm
    if alarm is None:
        return ""
    approved = _quoted(alarm.approved)
    if alarm.kind == "missing":
        what = f"call {record.id} was approved and did not come: something else may have run"
        return f"Alarm: {what}. Approved: {approved}."
    what = f"something else ran than what was approved in call {record.id}, outside of whisper_tui"
    return f"Alarm: {what}. Approved: {approved}. What ran: {_quoted(alarm.ran)}."


def _quoted(text: str) -> str:
    return one_line_beginning(masked(text), LONGEST_IN_ALARM)


def alarm_paragraphs(record: CallRecord) -> tuple[Paragraph, ...]:
    """Return the alarm of a call, what was approved, and what its agent's program says that it ran."""
    alarm = record.alarm
    if alarm is None:
        return ()
    found = [
        labelled("ALARM", (Span(f"{alarm.words()[:1].upper()}{alarm.words()[1:]}.", "bad"),), decides=True),
        labelled("Approved", said(masked(alarm.approved), "command"), at_words=False, decides=True),
    ]
    if alarm.ran:
        found.append(labelled("What ran", said(masked(alarm.ran), "bad"), at_words=False, decides=True))
    return tuple(found)


def own_shell_paragraphs(record: CallRecord) -> tuple[Paragraph, ...]:
    """Return the agent's own shell, its profile, and the words of the command that this defines (decision 32)."""
    own = _own_shell(record)
    if own is None:
        return ()
    found: list[Paragraph] = []
    if own.program:
        words = (*said(own.program, "risk"), Span(", not bash: read it as a text of that shell", "risk"))
        found.append(labelled("Shell", words, decides=True))
    if own.profile:
        found.append(labelled("Profile", (Span("with your shell's profile: "), *said(own.profile)), decides=True))
    for number, (word, definition) in enumerate(own.defines.items()):
        line = (*said(word, "strong"), Span(" is ", "muted"), *said(definition, "command"))
        found.append(labelled("" if number else "It defines", line, at_words=False, decides=True))
    return tuple(found)


def _own_shell(record: CallRecord) -> OwnShell | None:
    """Return the agent's own shell, as far as the call runs in it, or would if a human approved it."""
    resolved = record.resolved
    # Commands that nobody is asked about, or that run in a sandbox, run in bash and without a profile.
    decided = record.decided_by is not None and not record.decided_by_human
    return None if resolved is None or decided or record.sandbox is not None else resolved.own_shell
