"""Drafts: sessions whose commands run in one private view of the files, which becomes real when a human says so."""

from typing import Annotated

from pydantic import Field

from whisper_tui.model.decision import Decider
from whisper_tui.model.preview import MOST_UNDONE, ChangeCounts, PreviewChange
from whisper_tui.model.value import Count, Value


class SessionDraft(Value):
    """The draft of one session."""

    session_id: str
    name: str
    """The name of the session."""
    root: str
    """The workspace."""
    started_at: float
    """Seconds since the epoch."""
    by: Decider
    version: Count = 0
    """Grows with each command that has ended in it, and with each part of it that was applied."""
    running: str | None = None
    """The call whose command runs in it now. None: none does."""


class DraftChange(Value):
    """One change of a draft, as it would be applied now."""

    change: PreviewChange
    calls: tuple[str, ...] = ()
    """The calls whose commands have made it, oldest first."""
    only_time: bool = False
    """True if nothing but the time of a file differs."""


class DraftPage(Value):
    """A part of the changes of a draft."""

    draft: SessionDraft
    changes: tuple[DraftChange, ...] = ()
    total: Count = 0
    counts: ChangeCounts = ChangeCounts()
    conflicts: tuple[str, ...] = ()
    """Paths that somebody else has changed since a command of the draft touched them: these changes are not applied."""


class DraftApply(Value):
    """An order to make a draft real, or a part of it."""

    session_id: str = ""
    """The session, as `start_draft` takes it. Empty: the only draft."""
    paths: Annotated[tuple[str, ...], Field(max_length=MOST_UNDONE)] = ()
    """Only the changes at these absolute paths and below. Empty: all."""
    all_but: bool = False
    """True if all changes but those at the paths are meant. The draft stays."""
    calls: Annotated[tuple[str, ...], Field(max_length=MOST_UNDONE)] = ()
    """Only what the commands of these calls have changed, with all calls that have changed the same files."""
    seen: Count | None = None
    """The version of the draft that its human has seen. None: any."""
    dry_run: bool = False
    """Only say what would be done."""


class DraftApplied(Value):
    """The result of an apply, or its forecast."""

    call_id: str | None = None
    """The call whose changes these are since then: an undo of it takes them back. None: there was nothing to apply."""
    calls: tuple[str, ...] = ()
    """The calls whose changes have become real with it."""
    paths: tuple[str, ...] = ()
    """The first changed paths."""
    total: Count = 0
    over: bool = False
    """True if all of the draft is real, so that it is over."""
