"""The preview of a call on the card: its changes and their differences, asked for and laid out beside the keys."""

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

from whisper_tui.model.call import FileVersions
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.preview import PreviewChange, PreviewPage
from whisper_tui.model.state import CallRecord, Ended, Waiting
from whisper_tui.present.preview_text import (
    MOST_ROWS,
    change_rows,
    choice_paragraph,
    conflict_paragraphs,
    kept_paragraphs,
    preview_paragraphs,
    without_renamed,
)
from whisper_tui.present.spans import BLANK, Paragraph, Span, said
from whisper_tui.present.words import error_text
from whisper_tui.tui.asked_facts import AskedFacts
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.edit_diff import ColouredDiff, coloured_diffs, laid_out

MOST_DIFFS = 30
"""Files whose contents are compared; the list has all others as well."""
MOST_COMPARED = 2 * 1024 * 1024
"""Bytes, before and after, of all compared files."""
FRESH_S, FRESH_LARGE_S = 2.0, 30.0
"""Seconds after which a waiting preview is looked at again, for files that were changed since it ran."""
LARGE = 1000
"""Changes from which on that takes long."""

Version = tuple[str, int, str, bool]
"""The id of a call, the attempt with the changes, what became of them, and whether secrets are masked."""


class ChangeText(NamedTuple):
    """The changes of a preview as text: the list of files, and the differences of their contents."""

    listed: tuple[Paragraph, ...] = ()
    differences: tuple[Paragraph, ...] = ()


NO_TEXT = ChangeText()


class PreviewedChanges(NamedTuple):
    """The changes of a preview, as the card shows them."""

    page: PreviewPage = PreviewPage()
    contents: tuple[tuple[int, FileVersions], ...] = ()
    """The contents of files before and after, by the number of the change."""
    diffs: tuple[ColouredDiff, ...] = ()
    problem: str = ""
    """Why the changes are not known, as a sentence. Empty: they are."""

    def text(self, root: str, width: int, *, decides: bool) -> ChangeText:
        """Return the list of the changes and their differences for a width.

        `decides`: True if the list must have been on the screen before the changes are made real.
        """
        if self.problem:
            return ChangeText((Paragraph(said(self.problem, "risk"), margin=(Span(" ? ", "risk"),)),))
        places = {number: place for place, (number, _) in enumerate(self.contents, 1)}
        listed = tuple(change_rows(self.page.changes, self.page.total, root, places, decides=decides))
        diffs = laid_out(self.diffs, width, listed=False)
        return ChangeText(listed, (BLANK, *diffs) if diffs else ())


class PreviewFacts(AskedFacts):
    """Asks for the changes of the preview, or of the undoable run, on the screen."""

    def __init__(self, cockpit: CockpitContext, changed: Callable[[], object]) -> None:
        super().__init__(cockpit, changed)
        self._version: Version | None = None
        self._found = PreviewedChanges()
        self._width = 0
        self._text = NO_TEXT

    def paragraphs(self, record: CallRecord, width: int, keys: Mapping[str, str], *, mask: bool) -> ChangeText:
        """Return the preview of a call, or its changes that can be undone, for a width. Empty: it has none.

        The outcome stands before the list. `keys` has the keys of commands by their ids; `mask`: without the secrets in
        the files.
        """
        version = version_of(record, mask=mask)
        if version is None:
            return NO_TEXT
        now = self._cockpit.clock()
        preview = record.preview
        if isinstance(record.state, Ended):
            head = kept_paragraphs(record, keys.get("revert-edit", ""))
            if not record.undoable:
                return ChangeText(head)
        elif preview is None or preview.report is None:
            if preview is None:
                return NO_TEXT
            spec = preview.edited or record.spec
            typed = spec.tty or spec.accepts_input
            return ChangeText((BLANK, *preview_paragraphs(preview, now, keys.get("preview", ""), typed=typed)))
        else:
            head = (BLANK, *preview_paragraphs(preview, now))
            if not preview.report.digest:
                # Nothing was written that could be shown.
                return ChangeText((*head, choice_paragraph(keys, applies=False, again=preview.report.is_possible)))
        self._width = width
        self._look(record, version)
        text = self._text if self._version == version else ChangeText((_READING,))
        conflicts = self.conflicts(record)
        applies = preview is not None and preview.can_be_applied and not conflicts
        edited = preview is not None and preview.edited is not None
        choices = () if isinstance(record.state, Ended) else (choice_paragraph(keys, applies=applies, edited=edited),)
        return ChangeText((*head, *conflict_paragraphs(conflicts), *choices, *text.listed), text.differences)

    def conflicts(self, record: CallRecord) -> tuple[str, ...]:
        """Return the paths that have changed since the preview, as far as they are known."""
        version = self._version
        known = version is not None and version[0] == record.id and isinstance(record.state, Waiting)
        return self._found.page.conflicts if known else ()

    def is_missing(self, record: CallRecord) -> bool:
        """True if the changes that an approval would make real are not on the screen yet."""
        return self._version is None or self._version[:3] != (version_of(record, mask=False) or ())[:3]

    def _look(self, record: CallRecord, version: Version) -> None:
        waits = isinstance(record.state, Waiting)
        fresh_s = FRESH_LARGE_S if self._found.page.total > LARGE else FRESH_S
        fresh = not waits or self._cockpit.clock() - self._asked_at < fresh_s
        if self.asking or (self._version == version and fresh and self._laid_out_for == self._width):
            return
        self.asking = True
        self._cockpit.screen.run_worker(self._ask(record, version), name="preview")

    _laid_out_for = 0
    """The width for which the changes are laid out."""

    async def _ask(self, record: CallRecord, version: Version) -> None:
        before, width = self._found, self._width
        session = self._cockpit.board.sessions.get(record.call.session_id)
        root = session.root if session is not None else record.spec.cwd
        try:
            found = await self._changes(record, before if version == self._version else PreviewedChanges())
            decides = isinstance(record.state, Waiting)

            def prepare() -> tuple[PreviewedChanges, ChangeText]:
                same = found.contents == before.contents and version == self._version
                texts = tuple(each for _, each in found.contents)
                diffs = before.diffs if same else _plain(coloured_diffs(texts, root, mask=version[3]))
                made = found._replace(diffs=diffs)
                return made, made.text(root, width, decides=decides)

            found, text = await asyncio.to_thread(prepare)
        except WhisperError as error:
            found = PreviewedChanges(problem=error_text(error))
            text = found.text(root, width, decides=False)
        finally:
            self._answered()
        same = version == self._version and text == self._text and found.page.conflicts == before.page.conflicts
        self._version, self._found, self._text, self._laid_out_for = version, found, text, width
        if not same:
            self._draw()

    async def _changes(self, record: CallRecord, before: PreviewedChanges) -> PreviewedChanges:
        """Return the changes as they are now; the contents of files are asked for once."""
        supervision = self._cockpit.supervision
        page = await supervision.preview_page(record.id, 0, MOST_ROWS)
        if page.changes == before.page.changes:
            return before._replace(page=page)
        contents = []
        for change in compared(page.changes):
            contents.append((change.number, await supervision.preview_versions(record.id, change.number)))
        return PreviewedChanges(page, tuple(contents))


_READING = Paragraph((Span("Reading the changes …", "waiting"),), margin=(Span("  "),), decides=True)


def version_of(record: CallRecord, *, mask: bool) -> Version | None:
    """Return the version of the changes that a call has now. None: it has none."""
    preview = record.preview
    if isinstance(record.state, Ended):
        undo = record.undo
        stage = f"ended {undo.direction} {undo.at} {undo.done} {undo.problem}" if undo is not None else "ended"
        if not record.undoable:
            stage = "unkept"
        known = record.undoable or record.not_kept_because
        return (record.id, record.state.attempt or 0, stage, mask) if known else None
    if preview is None or preview.dropped or not isinstance(record.state, Waiting):
        return None
    return record.id, preview.attempt, "running" if preview.report is None else "over", mask


def compared(changes: tuple[PreviewChange, ...]) -> list[PreviewChange]:
    """Return the changes whose contents are compared: of files, as many as can be shown without delay."""
    found: list[PreviewChange] = []
    left = MOST_COMPARED
    for change in without_renamed(changes):
        if change.kind not in {"file", "link"} or change.action in {"attributes", "links"} or change.alike == 100:
            continue
        left -= (change.size_before or 0) + (change.size_after or 0)
        if left < 0 or len(found) == MOST_DIFFS:
            break
        found.append(change)
    return found


def _plain(diffs: tuple[ColouredDiff, ...]) -> tuple[ColouredDiff, ...]:
    """Return differences without the facts that the list of changes has; why one is not shown stays."""
    return tuple(each._replace(diff=each.diff._replace(facts=each.diff.facts[1:])) for each in diffs)
