"""The page of what was changed unasked: the calls, the differences of each, and which of them are undone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Button, Static

from whisper_tui.model.call import FileEdits, FileVersions
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.present.command_text import call_line
from whisper_tui.present.preview_text import changed_text, without_renamed
from whisper_tui.present.quantities import clock_time, count
from whisper_tui.present.session_text import session_line
from whisper_tui.present.spans import BLANK, Paragraph, Span, said
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.dialogs.choice_list import ViewedChoiceScreen, differences
from whisper_tui.tui.dialogs.dialog import choice_label

MOST_SHOWN = 20
"""Files of one call whose differences are shown."""
SEEN, UNDO = "Looks good", "Undo chosen"
"""The two answers."""


@dataclass(frozen=True)
class ReviewAnswer:
    """The wish of a person after the review."""

    take_back: tuple[str, ...] = ()
    """Ids of the calls to undo, the newest first."""
    seen_until: float | None = None
    """The end of the newest call, if all of them are marked as seen."""


class ReviewScreen(ViewedChoiceScreen[ReviewAnswer]):
    """Shows what was changed unasked since the last review, by call."""

    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Enter", SEEN, "answer"),
        ("Space", "Choose", "choose"),
        ("a", "All", "choose_all"),
    )
    LEAVE = "Later"

    def __init__(self, cockpit: CockpitContext, records: tuple[CallRecord, ...]) -> None:
        """`records`: the newest first."""
        super().__init__(record.id for record in records)
        self._cockpit = cockpit
        self._records = records

    def compose(self) -> ComposeResult:
        """Build the list of calls beside the differences of the highlighted one."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content("Changed unasked since you last looked")
            yield Static("", id="take-back-note", classes="dialog-note")
            yield from self.body()
            yield from self.buttons()

    def note(self) -> None:
        """Say how many calls there are, and how many are chosen."""
        calls = count(len(self._records), "call")
        chosen = f"{count(len(self.chosen), 'call')} chosen to be undone." if self.chosen else "Space chooses."
        sessions = len({record.call.session_id for record in self._records})
        words = f"{calls} of {count(sessions, 'session')} changed files, and nobody was asked. {chosen}"
        self.query_one("#take-back-note", Static).update(Content(words))
        # As one yes: with a second key for it, what is chosen could be marked as seen by mistake.
        button = self.query_one("#choose-answer", Button)
        button.label = choice_label("Enter", UNDO if self.chosen else SEEN)
        button.refresh(layout=True)

    def words(self, at: int) -> str:
        """Return the number of a call, and what it did."""
        return f"{self._records[at].id} " + "".join(span.text for span in call_line(self._records[at]))

    async def show(self, at: int, width: int) -> Sequence[Paragraph]:
        """Return what a call has changed."""
        record = self._records[at]
        state = record.state
        when = clock_time(state.at) if isinstance(state, Ended) else ""
        session = self._cockpit.board.sessions.get(record.call.session_id)
        head = [Paragraph((*session_line(session, record.call.session_id), Span(f"  {when}", "muted")))]
        head.append(Paragraph(call_line(record), at_words=False))
        if isinstance(state, Ended) and state.changed is not None:
            head.append(Paragraph(said(changed_text(state.changed, record.spec.cwd), "muted"), at_words=False))
        try:
            versions, more = await self._versions(record)
        except WhisperError as error:
            return (*head, BLANK, Paragraph(said(error_text(error), "risk")))
        shown = await differences(versions, record.spec.cwd, width)
        rest = (Paragraph((Span(f"{more:,} more files: whisper-tui undo {record.id} --dry-run", "muted"),)),)
        return (*head, BLANK, *shown, *(rest if more else ()))

    async def _versions(self, record: CallRecord) -> tuple[tuple[FileVersions, ...], int]:
        """Return the contents of the changed files of a call, and how many more there are."""
        supervision = self._cockpit.supervision
        if isinstance(record.spec.command, FileEdits):
            return await supervision.file_versions(record.id), 0
        page = await supervision.preview_page(record.id, 0, MOST_SHOWN)
        compared = [
            each for each in without_renamed(page.changes) if each.kind != "directory" and each.action != "attributes"
        ]
        found = [await supervision.preview_versions(record.id, each.number) for each in compared]
        return tuple(found), max(0, page.total - len(page.changes))

    def action_answer(self) -> None:
        """Take the chosen calls back, or mark all as seen if none is chosen."""
        if self.chosen:
            self.dismiss(ReviewAnswer(take_back=tuple(each.id for each in self._records if each.id in self.chosen)))
            return
        ends = [record.state.at for record in self._records if isinstance(record.state, Ended)]
        self.dismiss(ReviewAnswer(seen_until=max(ends)))
