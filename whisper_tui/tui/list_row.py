"""The lines of the list of calls: what a person needs to tell one call from another at a glance."""

from whisper_tui.model.call import Session
from whisper_tui.model.state import CallRecord, Ended, Queued, Running, Starting, Waiting
from whisper_tui.tui.command_text import one_line
from whisper_tui.tui.roster import Section
from whisper_tui.tui.spans import Line, Role, Span, fitted, said, width_of
from whisper_tui.tui.words import age, ending_word, went_well

TITLES: dict[Section, str] = {
    "waiting": "Waiting for you",
    "queued": "Approved, in the queue",
    "running": "Running",
    "behind": "Left in the background",
    "ended": "Ended",
}
_ROLES: dict[Section, Role] = {
    "waiting": "waiting",
    "queued": "running",
    "running": "running",
    "behind": "behind",
    "ended": "muted",
}


def heading_line(section: Section, shown: int, total: int, width: int) -> Line:
    """The title of a section, with how many calls it has and how many of them a filter shows."""
    number = f"{total:,}" if shown == total else f"{shown:,} of {total:,}"
    title = Span(f" {TITLES[section]}", _ROLES[section] if total else "muted")
    spare = max(1, width - width_of((title,)) - len(number) - 1)
    return fitted((title, Span(" " * spare), Span(number, "muted")), width)


def empty_line(filtered: bool) -> Line:
    """What stands where nothing waits."""
    return (Span("  Nothing that waits matches." if filtered else "  Nothing waits.", "muted"),)


def row_line(record: CallRecord, session: Session | None, part: int, width: int, now: float) -> Line:
    """One line of a row, in exactly `width` columns."""
    if part == 0:
        right = _right(record, now)
        left = (_mark(record), Span(" "), *one_line(record.spec.command))
        return (*fitted(left, width - width_of(right) - 2), Span(" "), *right, Span(" "))
    risks = record.verdict.risks if record.verdict else ()
    name = said(session.name if session else record.call.session_id, "muted")
    risk = (Span("  ▲ ", "risk"), Span(_risk_words(risks[0].id, len(risks)), "risk")) if risks else ()
    again = (Span("  ↺ asked again", "risk"),) if _returned(record) else ()
    gone = (Span("  agent gone", "muted"),) if record.agent_gave_up is not None else ()
    room = max(6, width - 4 - width_of((*risk, *again, *gone)))
    name = fitted(name, room) if width_of(name) > room else name
    return fitted((Span("  "), *name, *again, *risk, *gone), width)


def _risk_words(risk_id: str, number: int) -> str:
    more = f" +{number - 1}" if number > 1 else ""
    return risk_id.replace("-", " ") + more


def _returned(record: CallRecord) -> bool:
    return isinstance(record.state, Waiting) and record.state.returned_because is not None


def _mark(record: CallRecord) -> Span:
    match record.state:
        case Waiting():
            return Span("◆", "waiting")
        case Queued():
            return Span("◇", "running")
        case Starting():
            return Span("▷", "running")
        case Running():
            return Span("▶", "running")
        case Ended(settled=False):
            return Span("●", "behind")
        case Ended(ending=ending):
            return Span("✔", "good") if went_well(ending) else Span("✘", "bad")
        case _:
            return Span("…", "muted")


def _right(record: CallRecord, now: float) -> Line:
    match record.state:
        case Waiting(since=since) | Queued(since=since) | Starting(since=since):
            return (Span(f"{age(now - since):>3}", "muted"),)
        case Running(process=process):
            return (Span(f"{age(now - process.started_at):>3}", "muted"),)
        case Ended(settled=False):
            return (Span(f"{len(record.living_background)} alive", "behind"),)
        case Ended(ending=ending):
            return (Span(ending_word(ending), "muted" if went_well(ending) else "bad"),)
        case _:
            return ()
