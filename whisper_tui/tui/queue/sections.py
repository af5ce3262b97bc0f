"""The sections of the list, and the facts about each call by which it is grouped and filtered."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from sys import intern
from typing import Literal, NamedTuple, get_args

from whisper_tui.model.call import Argv, CarriedOut
from whisper_tui.model.state import CallRecord, Ended, Held, Queued, Running, Starting, Waiting
from whisper_tui.model.verdict import is_grave

Section = Literal["waiting", "queued", "running", "behind", "ended"]
SECTIONS: tuple[Section, ...] = get_args(Section)
"""From top to bottom: waits for a human, waits for a worker, runs, left background processes, ended."""
NEWEST_FIRST: frozenset[Section] = frozenset({"behind", "ended"})

Grouping = Literal["arrival", "session", "likeness", "risk"]
GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)
"""The order of waiting calls: by arrival, by session, similar ones together, or by risk."""
RISK_GROUPS = ("severe risk", "some risk", "not inspected", "not flagged")
"""The groups of calls by their risk, from the top."""


@dataclass(frozen=True)
class RowPlace:
    """A row of the list: its section, and its number within the section."""

    section: Section
    row: int


def section_of(record: CallRecord) -> Section | None:
    """Return the section of a call. None: the policy has not judged it yet."""
    match record.state:
        case Waiting():
            return "waiting"
        case Held() | Queued():
            return "queued"
        case Starting() | Running():
            return "running"
        case Ended(settled=False):
            return "behind"
        case Ended():
            return "ended"
        case _:
            return None


LONGEST_SIMILARITY = 60
"""Most characters of a similarity key; calls that differ after them count as similar."""


def similarity_key(record: CallRecord) -> str:
    """Return the prefixes of a call's commands as the policy reads them, else its first word."""
    if record.verdict is not None and record.verdict.prefixes:
        return " · ".join(dict.fromkeys(" ".join(prefix) for prefix in record.verdict.prefixes))[:LONGEST_SIMILARITY]
    command = record.spec.command
    if isinstance(command, Argv):
        return (PurePosixPath(command.program).name or command.program)[:LONGEST_SIMILARITY]
    if isinstance(command, CarriedOut):
        return command.tool[:LONGEST_SIMILARITY]
    words = command.text.split(maxsplit=1)
    return words[0][:LONGEST_SIMILARITY] if words else "nothing"


LONGEST_SEARCHED = 2000
"""Most characters of searched text that are kept per call; longer text is computed again for each search."""


class ListedCall(NamedTuple):
    """A call in a section of the list."""

    id: str
    section: Section
    session_id: str
    likeness: str
    """The key of its group while it waits; empty afterwards."""
    risk: str
    """One of RISK_GROUPS while it waits; empty afterwards."""
    words: str | None
    """The text that is searched by the filter. None: it is too long to be kept."""


def listed(record: CallRecord, section: Section) -> ListedCall:
    """Return the facts about a call that the list keeps."""
    words = searched_words(record)
    # Interned, because 100,000 waiting calls share a few sessions and similarity keys.
    return ListedCall(
        id=record.id,
        section=section,
        session_id=intern(record.call.session_id),
        likeness=intern(similarity_key(record)) if section == "waiting" else "",
        risk=_risk_group(record) if section == "waiting" else "",
        words=words if len(words) <= LONGEST_SEARCHED else None,
    )


def _risk_group(record: CallRecord) -> str:
    risks = record.verdict.risks if record.verdict is not None else ()
    if risks:
        return RISK_GROUPS[0 if any(map(is_grave, risks)) else 1]
    return RISK_GROUPS[2 if record.resolved is not None and record.resolved.not_inspected else 3]


def searched_words(record: CallRecord) -> str:
    """Return the casefolded text by which a filter finds a call."""
    # Without the session's name, which can change; the roster compares it separately.
    command = record.spec.command
    text = " ".join(command.words()) if isinstance(command, Argv) else command.text
    return f"{text}\n{record.call.description}\n{record.id} {record.call.tool}".casefold()
