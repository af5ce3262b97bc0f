"""What the list keeps at hand about each call, so that neither grouping nor filtering needs the call itself."""

from sys import intern
from typing import NamedTuple

from whisper_tui.model.command import Argv
from whisper_tui.model.state import CallRecord
from whisper_tui.tui.likeness import likeness
from whisper_tui.tui.sections import Section

LONGEST = 2000
"""Characters of words that are kept at hand; a call with more is asked itself."""


class Listed(NamedTuple):
    """A call in a section of the list."""

    id: str
    section: Section
    session_id: str
    likeness: str
    """What it is grouped by while it waits; empty afterwards."""
    words: str | None
    """What a filter is compared with. None: too long to be kept."""


def listed(record: CallRecord, section: Section) -> Listed:
    """What is kept about a call."""
    words = searched_words(record)
    return Listed(
        id=record.id,
        section=section,
        session_id=intern(record.call.session_id),
        likeness=intern(likeness(record)) if section == "waiting" else "",
        words=words if len(words) <= LONGEST else None,
    )


def searched_words(record: CallRecord) -> str:
    """The words by which a filter finds a call, in one case; those of its session are not among them."""
    command = record.spec.command
    text = " ".join(command.words()) if isinstance(command, Argv) else command.text
    return f"{text}\n{record.call.description}\n{record.id} {record.call.tool}".casefold()
