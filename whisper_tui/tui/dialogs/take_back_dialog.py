"""The dialog that undoes what a call changed, or makes it again: its files, and the difference of each."""

import asyncio
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from whisper_tui.model.call import EditAction, FileVersions
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.preview import ChangeAction, PreviewChange, PreviewPage, UndoDirection
from whisper_tui.model.state import CallRecord
from whisper_tui.model.text import visible
from whisper_tui.present.preview_text import SIGNS, change_line
from whisper_tui.present.quantities import count
from whisper_tui.present.spans import Paragraph, Span, said
from whisper_tui.present.tool_text import short_path
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit.edit_diff import coloured_diffs, laid_out
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.dialogs.dialog import Dialog, StyleFiles
from whisper_tui.tui.paragraphs_view import ParagraphsView

MOST_LISTED = 1000
"""Changes that can be chosen one by one; with more of them, all are undone."""


class UndoChoice(NamedTuple):
    """The result of the dialog."""

    paths: tuple[str, ...]
    """The chosen paths. Empty: all of them."""
    tell: bool
    """True if the agent is told."""


_REVERSED: dict[EditAction, EditAction] = {"creates": "deletes", "deletes": "creates"}
_UNDONE: dict[ChangeAction, ChangeAction] = {"creates": "deletes", "links": "deletes", "deletes": "creates"}


def reversed_versions(versions: FileVersions) -> FileVersions:
    """Return the contents of a file with what would be undone as the change."""
    if versions.file.action == "moves":
        # Both names are rows of their own here, because each can be undone alone.
        file = versions.file.model_copy(update={"action": "creates", "size": None, "mode": None, "moved_from": ""})
        versions = versions.model_copy(update={"file": file, "old": None})
    file, new = versions.file, versions.new
    action = _REVERSED.get(file.action, file.action)
    size = len(new.encode(errors="surrogatepass")) if new is not None else file.size or 0
    turned = file.model_copy(update={"action": action, "size": None if action == "creates" else size})
    return versions.model_copy(update={"file": turned, "old": versions.new, "new": versions.old})


def reversed_change(change: PreviewChange) -> PreviewChange:
    """Return what takes a change back, as a change."""
    swapped = {
        "action": _UNDONE.get(change.action, change.action),
        "size_before": change.size_after,
        "size_after": None if change.moved_from else change.size_before,
        "mode_before": change.mode_after,
        "mode_after": None if change.moved_from else change.mode_before,
        "moved_from": "",
        "moved_to": "",
        "alike": None,
        "flags": (),
    }
    return change.model_copy(update=swapped)


class TakeBackScreen(Dialog[UndoChoice]):
    """Asks which of the changes of an ended call are undone; a redo makes all of them again."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss", "../styles/take_back.tcss"]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "take_back", "Undo", priority=True),
        Binding("space", "choose", "Choose"),
        Binding("a", "choose_all", "Choose all or none"),
        Binding("t", "tell", "Tell the agent, or not"),
    ]

    def __init__(
        self,
        cockpit: CockpitContext,
        record: CallRecord,
        page: PreviewPage,
        direction: UndoDirection,
        *,
        hears: bool = False,
    ) -> None:
        """`page` has the changes of the call; `hears`: its agent can be told, and is unless the person says no."""
        super().__init__()
        self._hears = self._tells = hears
        self._cockpit = cockpit
        self._record = record
        self._page = page
        self._direction: UndoDirection = direction
        session = cockpit.board.sessions.get(record.call.session_id)
        self._root = session.root if session is not None else record.spec.cwd
        # What a directory was created or deleted with goes with it.
        undo = direction == "undo"
        self._changes = [change for change in page.changes if change.taken_back != undo and not self._is_below(change)]
        self._chosen = {change.number for change in self._changes if not (self._can_choose and self._is_other(change))}
        self._shown: PreviewChange | None = None
        self._fitted_to = 0
        """The columns for which its difference is laid out."""

    def _is_below(self, change: PreviewChange) -> bool:
        return any(self._is_in(change, tree) for tree in self._page.changes if tree.below)

    @staticmethod
    def _is_in(change: PreviewChange, tree: PreviewChange) -> bool:
        return change.action == tree.action and change.path.startswith(f"{tree.path}/")

    def _is_other(self, change: PreviewChange) -> bool:
        """True if a file is no longer as the command left it: it is chosen by hand only."""
        return any(path == change.path or path.startswith(f"{change.path}/") for path in self._page.conflicts)

    @property
    def _can_choose(self) -> bool:
        return self._direction == "undo" and self._page.total <= len(self._page.changes)

    def compose(self) -> ComposeResult:
        """Build the list of files beside the difference of the highlighted one."""
        undo = self._direction == "undo"
        with Vertical(classes="dialog") as dialog:
            word = "Undo" if undo else "Redo"
            dialog.border_title = Content(f"{word} the changes of call {self._record.id}")
            yield Static("", id="take-back-note", classes="dialog-note")
            with Horizontal(id="take-back-body"):
                yield OptionList(*(Option(self._row(change)) for change in self._changes), id="take-back-files")
                yield ParagraphsView(id="take-back-diff")
            yield Static("", id="take-back-told", classes="dialog-note")
            yield Static(Content(self._conflict_text()), id="take-back-problem", classes="dialog-problem")
            yield from self.buttons()

    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Ctrl+S", "Confirm", "take_back"),
        ("Space", "Choose", "choose"),
        ("a", "All or none", "choose_all"),
        ("t", "Tell or not", "tell"),
    )

    def on_mount(self) -> None:
        """Highlight the first file."""
        self.query_one(ParagraphsView).resized = self._refit
        files = self.query_one(OptionList)
        files.focus()
        if self._changes:
            files.highlighted = 0
        for id_ in ("#choose-choose", "#choose-choose_all"):
            self.query_one(id_).display = self._can_choose
        self.query_one("#choose-tell").display = self._hears
        self.query_one("#take-back-problem").display = bool(self._conflict_text())
        self._note()

    def _conflict_text(self) -> str:
        conflicts = self._page.conflicts
        left_out = ", and left out" if self._can_choose else ""
        return f"Changed since{left_out}: {', '.join(map(visible, conflicts[:3]))}." if conflicts else ""

    def _note(self) -> None:
        undo = self._direction == "undo"
        number = len(self._chosen) if self._can_choose or self._page.total <= MOST_LISTED else self._page.total
        what = count(number, "change")
        words = f"{what} will be {'undone' if undo else 'redone'}. "
        words += (
            "If one of these files is no longer as the command left it, nothing is done."
            if undo
            else "The command does not run again."
        )
        self.query_one("#take-back-note", Static).update(Content(words))
        told = self.query_one("#take-back-told", Static)
        told.display = self._hears
        told.update(Content("The agent is told with its next call." if self._tells else "The agent is not told."))

    def _row(self, change: PreviewChange) -> Content:
        letter, _ = SIGNS[self._turned(change).action]
        mark = ("[x] " if change.number in self._chosen else "[ ] ") if self._can_choose else ""
        name = visible(short_path(change.path, self._root)) + ("/" if change.kind == "directory" else "")
        entries = f" with {count(change.below, 'entry', 'entries')}" if change.below else ""
        since = "  ! changed since" if self._is_other(change) else ""
        return Content(f"{mark}{letter} {name}{entries}{since}")

    def _turned(self, change: PreviewChange) -> PreviewChange:
        return reversed_change(change) if self._direction == "undo" else change

    def _listed(self, change: PreviewChange) -> Iterator[Paragraph]:
        """Yield a change without a content to compare, with what is created or deleted with it."""
        within = (each for each in self._page.changes if self._is_in(each, change)) if change.below else ()
        for each in (change, *within):
            letter, role = SIGNS[self._turned(each).action]
            line = (Span(f"{letter} ", role), *change_line(self._turned(each), self._root))
            yield Paragraph(line, margin=(Span(" "),), hanging=(Span("   "),), at_words=False)

    @on(OptionList.OptionHighlighted)
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        self._shown = self._changes[event.option_index]
        self._begin_to_show(self._shown)

    def _refit(self) -> None:
        """Lay the difference out anew if there are more or fewer columns."""
        if self._shown is not None and self.query_one(ParagraphsView).columns != self._fitted_to:
            self._begin_to_show(self._shown)

    def _begin_to_show(self, change: PreviewChange) -> None:
        self.run_worker(self._show(change), name="take-back-diff", exclusive=True)

    async def _show(self, change: PreviewChange) -> None:
        """Show what would become of a file."""
        view = self.query_one(ParagraphsView)
        width = self._fitted_to = view.columns
        if change.kind == "directory" or change.action == "attributes":
            view.show(tuple(self._listed(change)), from_top=True)
            return
        try:
            versions = await self._cockpit.supervision.preview_versions(self._record.id, change.number)
        except WhisperError as error:
            view.show((Paragraph(said(error_text(error), "risk")),), from_top=True)
            return
        turned = reversed_versions(versions) if self._direction == "undo" else versions

        def rows() -> tuple[Paragraph, ...]:
            return laid_out(coloured_diffs((turned,), self._root, mask=True), width)

        shown = await asyncio.to_thread(rows)
        flags = tuple(Paragraph((Span(visible(flag), "risk"),), margin=(Span(" ! ", "risk"),)) for flag in change.flags)
        # An answer can arrive when the dialog has been left and has no widgets any more.
        for each in self.query(ParagraphsView):
            each.show((*flags, *shown), from_top=True)

    @on(OptionList.OptionSelected)
    def action_choose(self) -> None:
        """Choose the highlighted file, or leave it as it is."""
        at = self.query_one(OptionList).highlighted
        if at is not None and self._can_choose:
            self._chosen ^= {self._changes[at].number}
            self._redraw(at)

    def action_choose_all(self) -> None:
        """Choose all files, or none if all are chosen."""
        if self._can_choose:
            every = {change.number for change in self._changes}
            self._chosen = set() if self._chosen == every else every
            for at in range(len(self._changes)):
                self._redraw(at)

    def action_tell(self) -> None:
        """Tell the agent about it, or do not."""
        if self._hears:
            self._tells = not self._tells
            self._note()

    def _redraw(self, at: int) -> None:
        self.query_one(OptionList).replace_option_prompt_at_index(at, self._row(self._changes[at]))
        self._note()

    def action_take_back(self) -> None:
        """Take the chosen changes back."""
        if not self._chosen:
            self.notify("Nothing is chosen: Space chooses a file.", markup=False)
            self.app.bell()
            return
        every = len(self._chosen) == len(self._changes)
        chosen = () if every else tuple(each.path for each in self._changes if each.number in self._chosen)
        self.dismiss(UndoChoice(chosen, self._tells))
