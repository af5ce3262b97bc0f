"""The sections of the list of calls, and the ways to put together what waits."""

from dataclasses import dataclass
from typing import Literal, get_args

from whisper_tui.model.state import CallRecord, Ended, Held, Queued, Running, Starting, Waiting

Section = Literal["waiting", "queued", "running", "behind", "ended"]
SECTIONS: tuple[Section, ...] = get_args(Section)
"""From top to bottom: waits for a human, waits for a worker, runs, has left something behind, is over."""
NEWEST_FIRST: frozenset[Section] = frozenset({"behind", "ended"})

Grouping = Literal["arrival", "session", "likeness"]
GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)
"""How the calls that wait are put together: one after the other, by session, or those that are alike."""


@dataclass(frozen=True)
class Place:
    """A row of the list: which section, and which row of it from its top."""

    section: Section
    row: int


def section_of(record: CallRecord) -> Section | None:
    """Where a call is listed. None: it is not yet judged, so there is nothing to show."""
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
