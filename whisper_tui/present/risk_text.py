"""Risks of a call, and the sandbox that confines it, as text."""

from whisper_tui.model.api import Supervision
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.masked_calls import mask_unless_undecided
from whisper_tui.model.run import Blocked, Sandbox
from whisper_tui.model.state import CallRecord
from whisper_tui.model.verdict import GRAVE, Risk, is_grave
from whisper_tui.present.spans import Line, Paragraph, Role, Span, labelled, said
from whisper_tui.present.words import error_text, toast_text

__all__ = ["GRAVE", "is_grave", "not_inspected_sentences", "risk_line", "risk_role", "risk_sign"]

NOT_INSPECTED = "not inspected"
"""Said of a call that runs code which nobody has read: no word about it may sound harmless."""

MOST_NAMED = 4
"""Pieces of such code that are named."""


def risk_role(risk: Risk) -> Role:
    """Return the role of a risk."""
    return "bad" if is_grave(risk) else "risk"


def risk_sign(risk: Risk) -> str:
    """Return two triangles for a grave risk and one for any other, so that it is visible without colours."""
    return "▲▲" if is_grave(risk) else "▲"


def risk_line(record: CallRecord) -> Line:
    """Return the gravest risk in a few words, the number of others, and whether code was not inspected."""
    risks = record.verdict.risks if record.verdict else ()
    unread = bool(record.resolved and record.resolved.not_inspected)
    if not risks:
        return (Span(NOT_INSPECTED, "risk"),) if unread else (Span("not flagged", "muted"),)
    first = next((risk for risk in risks if is_grave(risk)), risks[0])
    more = f" +{len(risks) - 1}" if len(risks) > 1 else ""
    gravest = Span(f"{risk_sign(first)} {first.id.replace('-', ' ')}{more}", risk_role(first))
    return (gravest, Span(f" · {NOT_INSPECTED}", "risk")) if unread else (gravest,)


def not_inspected_sentences(record: CallRecord) -> tuple[str, ...]:
    """Return a sentence for each piece of code that the call runs and that nobody has read."""
    code = record.resolved.not_inspected if record.resolved else ()
    shown = [f"Not inspected: {each.name}, {each.not_inspected}" for each in code[:MOST_NAMED]]
    return (*shown, f"Not inspected: {len(code) - MOST_NAMED:,} more") if len(code) > MOST_NAMED else tuple(shown)


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
