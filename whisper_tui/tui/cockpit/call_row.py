"""The lines of the list of calls."""

from collections.abc import Collection

from whisper_tui.model.call import Session
from whisper_tui.model.ending import Exited
from whisper_tui.model.run import Blocked
from whisper_tui.model.state import Aside, CallRecord, Ended, Held, Queued, Running, Starting, Waiting
from whisper_tui.present.command_text import call_line
from whisper_tui.present.ending_text import ending_word, went_well
from whisper_tui.present.preview_text import preview_mark
from whisper_tui.present.quantities import age, history_column
from whisper_tui.present.security_text import NOT_INSPECTED, risk_line
from whisper_tui.present.session_text import LONGEST_NAME
from whisper_tui.present.spans import Line, Role, Span, said
from whisper_tui.tui.cockpit.call_roster import Grouping
from whisper_tui.tui.cockpit.grouped_rows import Section
from whisper_tui.tui.lines import fitted, width_of

TITLES: dict[Section, str] = {
    "waiting": "Waiting for you",
    "aside": "Set aside",
    "queued": "Approved, in the queue",
    "running": "Running",
    "behind": "Left in the background",
    "ended": "Ended",
}
MARKS = frozenset("◆◈◇▷▶●")
"""The marks of calls that go on."""
NARROWEST_NAME = 12
"""Columns that the name of a session gets in a row before words about its risk are cut."""
LEAST_FOR_NAME = 60
"""Columns of a row of one line that has room for the name of a session."""
WIDEST_FACTS = 44
"""Columns for the session and the risk in a row of one line."""
GROUPED: dict[Grouping, str] = {
    "arrival": "",
    "session": ", by session",
    "similarity": ", alike",
    "risk": ", by risk",
}
_ROLES: dict[Section, Role] = {
    "waiting": "waiting",
    "aside": "muted",
    "queued": "running",
    "running": "running",
    "behind": "behind",
    "ended": "muted",
}


def heading_line(
    section: Section, shown: int, total: int, width: int, grouping: Grouping = "arrival", *, searching: bool = False
) -> Line:
    """Return the title of a section with the number of its calls, and of those that match while a filter is set."""
    number = f"{total:,}" if shown == total else f"{shown:,}{'…' if searching else ''} of {total:,}"
    grouped = GROUPED[grouping] if section == "waiting" else ""
    title = Span(f" {TITLES[section]}{grouped}", _ROLES[section] if total else "muted")
    spare = max(1, width - width_of((title,)) - len(number) - 1)
    return fitted((title, Span(" " * spare), Span(number, "muted")), width)


def empty_line(
    *, filtered: bool, searching: bool = False, loading: bool = False, unreached: Collection[str] = ()
) -> Line:
    """Return the line of an empty waiting section. `unreached`: the machines whose calls are not known."""
    if loading:
        return (Span("  Loading…", "muted"),)
    if searching:
        return (Span("  Searching…", "muted"),)
    if unreached:
        # Not one word that could be read as "nothing waits": that is unknown.
        return (Span(f"  {', '.join(unreached)} unreachable; no call waits elsewhere.", "bad"),)
    return (Span("  No waiting call matches." if filtered else "  No call is waiting.", "muted"),)


def group_line(title: str, number: int, width: int, mark: Line = ()) -> Line:
    """Return the heading of a group of waiting calls. `mark`: the number of the session, of one by session."""
    right = (Span(f" {number:,} ", "muted"),)
    # Names of sessions and beginnings of commands are text of agents (decision 21).
    left = (Span(" ┌ ", "frame"), *mark, *said(title[:LONGEST_NAME], "strong"))
    return (*fitted(left, max(0, width - width_of(right))), *right)


WIDEST_HOST = 12
"""Columns for the name of a machine."""
HOST_ROLES: tuple[Role, ...] = ("keyword", "string", "number", "edited", "name", "behind")
"""The colours of machines, in the order in which they were named; more machines begin again."""


def host_column(host: str, hosts: Collection[str]) -> Line:
    """Return the machine of a call, in its colour and as wide as that of every other call."""
    names = list(hosts)
    width = min(WIDEST_HOST, max(map(len, names)))
    role = HOST_ROLES[names.index(host) % len(HOST_ROLES)] if host in names else "muted"
    return (*fitted((Span(host, role),), width), Span(" "))


def in_colour_of_place(line: Line, record: CallRecord, places: Collection[str]) -> Line:
    """Return the line of a call with its place, which stands first, in the colour of that place."""
    if not record.spec.place:
        return line
    names, name = list(places), place_key(record)
    role = HOST_ROLES[names.index(name) % len(HOST_ROLES)] if name in names else "muted"
    return (line[0]._replace(role=role), *line[1:])


def place_key(record: CallRecord) -> str:
    """Return the name by which the status lists the place of a call. Empty: it runs on this machine."""
    place = record.spec.place
    return f"{record.host}:{place}" if place and record.host else place


def greyed(line: Line) -> Line:
    """Return the row of a call whose machine is not reached: it is as it was."""
    return tuple(span._replace(text="○" if span.text in MARKS else span.text, role="muted") for span in line)


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
    origin: Line = (),
    places: Collection[str] = (),
) -> Line:
    """Return one line of a row in exactly `width` columns; `whole` for a row without a second line.

    `still`: True if the run is paused; `silent_since`: the time since which it has needed input; `origin`: its
    machine and its session; `places`: all places, in the order of their colours.
    """
    if part > 0:
        return _second_line(record, session, width)
    right = _standstill(record, now, still=still, silent_since=silent_since) or _right(record, now)
    alarm = (Span(f"{record.alarm.word()} ", "bad"),) if record.alarm is not None else ()
    right = (*alarm, *preview_mark(record), *right)
    if whole and _is_gone(record) and isinstance(record.state, Waiting | Held | Queued):
        right = (Span("agent gone ", "muted"), *right)
    if whole and record.aside is not None and width < LEAST_FOR_NAME:
        right = (*risk_line(record), Span("  "), *right)
    elif whole and isinstance(record.state, Waiting):
        right = (*_facts(record, session, min(WIDEST_FACTS, width // 2)), Span("  "), *right)
    left = (
        Span("‖", "waiting") if _is_held(record, still=still) else _mark(record),
        Span(" "),
        *origin,
        *_number(record),
        *in_colour_of_place(call_line(record, session), record, places),
    )
    return (*fitted(left, width - width_of(right) - 2), Span(" "), *right, Span(" "))


def _facts(record: CallRecord, session: Session | None, width: int) -> Line:
    """Return session and risk in exactly `width` columns, the risk at the right."""
    risk = (*_again(record), *risk_line(record))
    name = fitted(_name(record, session), max(0, width - width_of(risk) - 2))
    return fitted((*name, Span("  "), *risk), width)


def _second_line(record: CallRecord, session: Session | None, width: int) -> Line:
    risk = (Span("  "), *risk_line(record))
    again = (Span("  "), *_again(record)) if _returned(record) else ()
    gone = (Span("  agent gone", "muted"),) if _is_gone(record) else ()
    if width_of((*risk, *again, *gone)) > width - NARROWEST_NAME:
        # Better a question mark than words that are cut: the card says what was not inspected.
        risk = tuple(span._replace(text=span.text.replace(f" · {NOT_INSPECTED}", " ?")) for span in risk)
    name = _name(record, session)
    room = max(6, width - 4 - width_of((*risk, *again, *gone)))
    name = fitted(name, room) if width_of(name) > room else name
    return fitted((Span("  "), *name, *again, *risk, *gone), width)


def _name(record: CallRecord, session: Session | None) -> Line:
    return said((session.name if session else record.call.session_id)[:LONGEST_NAME], "muted")


def _again(record: CallRecord) -> Line:
    return (Span("↺ asked again ", "risk"),) if _returned(record) else ()


def _is_gone(record: CallRecord) -> bool:
    return record.agent_gave_up is not None and not record.agent_went_on


def _returned(record: CallRecord) -> bool:
    return isinstance(record.state, Waiting) and record.state.returned_because is not None


def _mark(record: CallRecord) -> Span:
    if record.alarm is not None:
        return Span("!", "bad")
    match record.state:
        case Waiting() if record.is_held_back:
            return Span("▷", "running")
        case Waiting(aside=Aside()):
            return Span("◈", "muted")
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


def _number(record: CallRecord) -> Line:
    """The id of an ended call; calls that go on are found by their place."""
    over = isinstance(record.state, Ended) and record.state.settled
    return (Span(f"{record.id.rpartition(':')[2]} ", "muted"),) if over else ()


def _ended_at(at: float, now: float) -> Span:
    return Span(f" {history_column(at, now).strip():>5}", "muted")


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
        case (
            Waiting(aside=Aside(since=since))
            | Waiting(since=since)
            | Held(since=since)
            | Queued(since=since)
            | Starting(since=since)
        ):
            return (Span(f"{age(now - since):>3}", "muted"),)
        case Running(process=process):
            return (Span(f"{age(now - process.started_at):>3}", "muted"),)
        case Ended(settled=False):
            return (Span(f"{len(record.living_background)} alive", "behind"),)
        case Ended(ending=ending, at=at, blocked=Blocked()):
            return (Span(f"blocked, {ending_word(ending, record.spec.command)}", "risk"), _ended_at(at, now))
        case Ended(ending=Exited(code=0), at=at):
            return (_ended_at(at, now),)  # its mark has said the rest
        case Ended(at=at) if record.reverted_by is not None:
            return (_ended_at(at, now),)
        case Ended(ending=ending, at=at):
            return (
                Span(ending_word(ending, record.spec.command), "muted" if went_well(ending) else "bad"),
                _ended_at(at, now),
            )
        case _:
            return ()
