"""How a call is confined, and what that kept it from, as paragraphs and as words in passing."""

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.masked import as_shown
from whisper_tui.model.port import Supervision
from whisper_tui.model.sandbox import Blocked, Sandbox
from whisper_tui.model.state import CallRecord
from whisper_tui.tui.fields import labelled
from whisper_tui.tui.spans import Line, Paragraph, Span, said
from whisper_tui.tui.words import in_passing, told


def sandbox_paragraphs(record: CallRecord) -> tuple[Paragraph, ...]:
    """How it runs or ran, where the kernel confines it. Nothing where it does not, which is what an approval means."""
    sandbox = record.sandbox
    return (labelled("Sandbox", sandbox_line(sandbox)),) if sandbox is not None else ()


def sandbox_line(sandbox: Sandbox) -> Line:
    """A sandbox with the directories whose programs it may run beside the system's."""
    also = (Span("; it may also run programs in "), *said(", ".join(sandbox.execute))) if sandbox.execute else ()
    return (Span(sandbox.words()), *also)


def blocked_paragraphs(blocked: Blocked | None) -> tuple[Paragraph, ...]:
    """What it was kept from, one attempt a line: a path may be long."""
    if blocked is None:
        return ()
    lines = [said(attempt.words(), "risk") for attempt in blocked.attempts]
    lines = lines or [(Span("said: ", "muted"), *said(line, "risk")) for line in blocked.messages]
    if blocked.more:
        lines.append((Span(f"and {blocked.more:,} more", "muted"),))
    return tuple(labelled("" if number else "Blocked", line) for number, line in enumerate(lines))


async def why_not_confined(supervision: Supervision, record: CallRecord) -> str:
    """Why a call cannot be approved into a sandbox, in sentences. Empty: it can."""
    if record.function is not None:
        return "That is a tool of the agent's own: the agent carries it out, where no sandbox holds it."
    try:
        problem = (await supervision.status()).sandbox_problem
    except WhisperError as error:
        return told(error)
    return f"There is no sandbox: {in_passing(problem)}. Nothing was decided." if problem else ""


def blocked_sentence(record: CallRecord) -> str:
    """What a blocked call was kept from, to be said in passing when it happens. Empty: it was not blocked."""
    blocked = as_shown(record).blocked
    return f"The sandbox blocked call {record.id}: it {blocked.words()}." if blocked is not None else ""
