"""The lines of the list of calls: what a person needs to tell one call from another at a glance."""

from whisper_tui.model.call import Session
from whisper_tui.model.sandbox import Blocked
from whisper_tui.model.state import CallRecord, Ended, Held, Queued, Running, Starting, Waiting
from whisper_tui.tui.command_text import one_line
from whisper_tui.tui.risk_words import risk_line
from whisper_tui.tui.sections import Grouping, Section
from whisper_tui.tui.spans import Line, Role, Span, fitted, said, width_of
from whisper_tui.tui.unmasking import listed_command
from whisper_tui.tui.words import LONGEST_NAME, age, ending_word, went_well

TITLES: dict[Section, str] = {
    "waiting": "Waiting for you",
    "queued": "Approved, in the queue",
    "running": "Running",
    "behind": "Left in the background",
    "ended": "Ended",
}
WIDEST_FACTS = 44
"""Columns for who asks and what is risky, in a row of one line."""
GROUPED: dict[Grouping, str] = {"arrival": "", "session": ", by session", "likeness": ", alike"}
_ROLES: dict[Section, Role] = {
    "waiting": "waiting",
    "queued": "running",
    "running": "running",
    "behind": "behind",
    "ended": "muted",
}


def heading_line(
    section: Section, shown: int, total: int, width: int, grouping: Grouping = "arrival", *, searching: bool = False
) -> Line:
    """The title of a section, with how many calls it has and how many of them a filter shows, so far if it searches."""
    number = f"{total:,}" if shown == total else f"{shown:,}{'…' if searching else ''} of {total:,}"
    grouped = GROUPED[grouping] if section == "waiting" else ""
    title = Span(f" {TITLES[section]}{grouped}", _ROLES[section] if total else "muted")
    spare = max(1, width - width_of((title,)) - len(number) - 1)
    return fitted((title, Span(" " * spare), Span(number, "muted")), width)


def empty_line(*, filtered: bool, searching: bool = False) -> Line:
    """What stands where nothing waits, or nothing that a filter has found."""
    if searching:
        return (Span("  Looking…", "muted"),)
    return (Span("  Nothing that waits matches." if filtered else "  Nothing waits.", "muted"),)


def group_line(title: str, number: int, width: int) -> Line:
    """The heading of a group of calls that wait."""
    right = (Span(f" {number:,} ", "muted"),)
    left = (Span(" ┌ ", "frame"), *said(title[:LONGEST_NAME], "strong"))
    return (*fitted(left, max(0, width - width_of(right))), *right)


def row_line(
    record: CallRecord,
    session: Session | None,
    part: int,
    width: int,
    now: float,
    *,
    whole: bool,
    still: bool = False,
    silent_since: float | None = None,
) -> Line:
    """One line of a row, in exactly `width` columns; `whole` for a row that has no second line.

    `still`: whether the run is paused; `silent_since`: since when it needs input.
    """
    if part > 0:
        return _second_line(record, session, width)
    right = _standstill(record, now, still=still, silent_since=silent_since) or _right(record, now)
    if whole and record.agent_gave_up is not None and isinstance(record.state, Waiting | Held | Queued):
        right = (Span("agent gone ", "muted"), *right)
    if whole and isinstance(record.state, Waiting):
        right = (*_facts(record, session, min(WIDEST_FACTS, width // 2)), Span("  "), *right)
    left = (
        Span("‖", "waiting") if _is_held(record, still=still) else _mark(record),
        Span(" "),
        *one_line(listed_command(record)),
    )
    return (*fitted(left, width - width_of(right) - 2), Span(" "), *right, Span(" "))


def _facts(record: CallRecord, session: Session | None, width: int) -> Line:
    """Who asks and what is risky about it, in exactly `width` columns, the risk at the right."""
    risk = (*_again(record), *risk_line(record.verdict.risks if record.verdict else ()))
    name = fitted(_name(record, session), max(0, width - width_of(risk) - 2))
    return fitted((*name, Span("  "), *risk), width)


def _second_line(record: CallRecord, session: Session | None, width: int) -> Line:
    risk = (Span("  "), *risk_line(record.verdict.risks if record.verdict else ()))
    again = (Span("  "), *_again(record)) if _returned(record) else ()
    gone = (Span("  agent gone", "muted"),) if record.agent_gave_up is not None else ()
    name = _name(record, session)
    room = max(6, width - 4 - width_of((*risk, *again, *gone)))
    name = fitted(name, room) if width_of(name) > room else name
    return fitted((Span("  "), *name, *again, *risk, *gone), width)


def _name(record: CallRecord, session: Session | None) -> Line:
    return said((session.name if session else record.call.session_id)[:LONGEST_NAME], "muted")


def _again(record: CallRecord) -> Line:
    return (Span("↺ asked again ", "risk"),) if _returned(record) else ()


def _returned(record: CallRecord) -> bool:
    return isinstance(record.state, Waiting) and record.state.returned_because is not None


def _mark(record: CallRecord) -> Span:
    match record.state:
        case Waiting():
            return Span("◆", "waiting")
        case Held() | Queued():
            return Span("◇", "running")
        case Starting() if record.function is None:
            return Span("▷", "running")
        case Starting():
            return Span("▶", "running")
        case Running():
            return Span("▶", "running")
        case Ended(settled=False):
            return Span("●", "behind")
        case Ended(blocked=Blocked()):
            return Span("⊘", "risk")
        case Ended(ending=ending):
            return Span("✔", "good") if went_well(ending) else Span("✘", "bad")
        case _:
            return Span("…", "muted")


def _is_held(record: CallRecord, *, still: bool) -> bool:
    return still and isinstance(record.state, Running)


def _standstill(record: CallRecord, now: float, *, still: bool, silent_since: float | None) -> Line:
    if _is_held(record, still=still):
        return (Span("paused", "waiting"),)
    if silent_since is None or not isinstance(record.state, Running):
        return ()
    return (Span(f"needs input {age(now - silent_since)}", "waiting"),)


def _right(record: CallRecord, now: float) -> Line:
    match record.state:
        case Waiting(since=since) | Held(since=since) | Queued(since=since) | Starting(since=since):
            return (Span(f"{age(now - since):>3}", "muted"),)
        case Running(process=process):
            return (Span(f"{age(now - process.started_at):>3}", "muted"),)
        case Ended(settled=False):
            return (Span(f"{len(record.living_background)} alive", "behind"),)
        case Ended(ending=ending, blocked=Blocked()):
            return (Span(f"blocked, {ending_word(ending)}", "risk"),)
        case Ended(ending=ending):
            return (Span(ending_word(ending), "muted" if went_well(ending) else "bad"),)
        case _:
            return ()
