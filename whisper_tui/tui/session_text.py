"""Who asks: the session of a call, how far it is trusted, and what it asked for lately."""

from whisper_tui.model.call import Session, Trust
from whisper_tui.model.state import CallRecord, Ended, Waiting
from whisper_tui.tui.command_text import one_line
from whisper_tui.tui.fields import labelled
from whisper_tui.tui.spans import Line, Paragraph, Role, Span, fitted, said, width_of
from whisper_tui.tui.unmasking import listed_command
from whisper_tui.tui.words import age, ending_word, went_well

COLUMNS = 60
"""Columns of an earlier command; more of it is in the list."""

TRUST: dict[Trust, tuple[str, Role]] = {
    "trusted_operator": ("trusted as an operator", "good"),
    "trusted_system": ("trusted as a part of the system", "good"),
    "trusted_integration": ("trusted as an integration", "good"),
    "untrusted_external": ("not trusted: it comes from outside", "text"),
}


def session_paragraphs(session: Session) -> tuple[Paragraph, ...]:
    """Which agent it is, where it works, and how far it is trusted."""
    client = f"{session.client.name} {session.client.version}".strip() if session.client else "unknown agent"
    pid = f" · pid {session.pid}" if session.pid is not None else ""
    closed = f" · closed: {session.closed_because}" if session.closed_at is not None else ""
    words, role = TRUST[session.trust]
    return (
        labelled("Session", (*said(session.name, "strong"), *said(f" · {client}{pid}{closed}"))),
        labelled("Trust", (Span(words, role),)),
        labelled("Workspace", said(session.root), at_words=False),
    )


def recent_paragraphs(recent: tuple[CallRecord, ...], now: float) -> tuple[Paragraph, ...]:
    """The last other calls of the session, the newest first, each with what became of it."""
    return tuple(
        labelled("Last calls" if number == 0 else "", _recent(record, now)) for number, record in enumerate(recent)
    )


def _recent(record: CallRecord, now: float) -> Line:
    command = one_line(listed_command(record))
    if width_of(command) > COLUMNS:
        command = fitted(command, COLUMNS)
    since = Span(f"  {age(now - record.call.submitted_at)} ago", "muted")
    return (*_became(record), Span("  "), *command, since)


def _became(record: CallRecord) -> Line:
    match record.state:
        case Ended(ending=ending):
            good = went_well(ending)
            return (Span(f"{'✔' if good else '✘'} {ending_word(ending)}", "good" if good else "bad"),)
        case Waiting():
            return (Span("◆ waits", "waiting"),)
        case _:
            return (Span("▶ running", "running"),)
