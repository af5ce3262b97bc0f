"""The facts about a call that are not in its record, for the words in which a phone shows it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from whisper_tui.model.call import FileVersions, Session
from whisper_tui.model.effects import Effects
from whisper_tui.model.phone import PhoneCall, PhoneRow
from whisper_tui.model.preview import PreviewChange
from whisper_tui.model.state import CallRecord

NOTHING_LATER: Mapping[str, str] = MappingProxyType({})


class ShownFacts(NamedTuple):
    """Facts about a call that are not in its record."""

    effects: Effects | None = None
    """None: they cannot be stated."""
    later: Mapping[str, str] = NOTHING_LATER
    """Files of these effects that decide what runs later, by path, each with its kind in words."""
    edits: tuple[FileVersions, ...] = ()
    """The files of an edit."""
    changes: tuple[PreviewChange, ...] = ()
    """The first changes of its preview."""
    versions: tuple[FileVersions, ...] = ()
    """The contents of the first changed files."""
    whole: bool = True
    """False if the preview has more changes or contents."""
    problem: str = ""
    """Why the changes cannot be shown, as a clause."""


class PhoneWords(Protocol):
    """Calls in words for phones. Whoever composes the supervisor gives it: words for people are a higher layer's."""

    def row(self, record: CallRecord, session: Session | None) -> PhoneRow:
        """Return the row of a waiting call."""
        ...

    def card(
        self, record: CallRecord, session: Session | None, facts: ShownFacts, seen: str, revision: int
    ) -> PhoneCall:
        """Return a waiting call, without what may be decided about it."""
        ...
