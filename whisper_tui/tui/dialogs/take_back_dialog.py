"""The dialog that undoes what a call changed, or makes it again: its files, and the difference of each."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

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
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.dialogs.choice_list import ViewedChoiceScreen, differences

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


class TakeBackScreen(ViewedChoiceScreen[UndoChoice]):
    """Asks which of the changes of an ended call are undone; a redo makes all of them again."""

    BINDINGS: ClassVar[list[BindingType]] = [
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
        super().__init__(
            [change.number for change in self._changes],
            [change.number for change in self._changes if not (self.can_choose and self._is_other(change))],
        )

    def _is_below(self, change: PreviewChange) -> bool:
        return any(self._is_in(change, tree) for tree in self._page.changes if tree.below)

    @staticmethod
    def _is_in(change: PreviewChange, tree: PreviewChange) -> bool:
        return change.action == tree.action and change.path.startswith(f"{tree.path}/")

    def _is_other(self, change: PreviewChange) -> bool:
        """True if a file is no longer as the command left it: it is chosen by hand only."""
        return any(path == change.path or path.startswith(f"{change.path}/") for path in self._page.conflicts)

    @property
    def can_choose(self) -> bool:
        """False for a redo, and if not all changes are listed: then all are undone."""
        return self._direction == "undo" and self._page.total <= len(self._page.changes)

    def compose(self) -> ComposeResult:
        """Build the list of files beside the difference of the highlighted one."""
        undo = self._direction == "undo"
        with Vertical(classes="dialog") as dialog:
            word = "Undo" if undo else "Redo"
            dialog.border_title = Content(f"{word} the changes of call {self._record.id}")
            yield Static("", id="take-back-note", classes="dialog-note")
            yield from self.body()
            yield Static("", id="take-back-told", classes="dialog-note")
            yield Static(Content(self._conflict_text()), id="take-back-problem", classes="dialog-problem")
            yield from self.buttons()

    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Enter", "Confirm", "take_back"),
        ("Space", "Choose", "choose"),
        ("a", "All", "choose_all"),
        ("t", "Tell or not", "tell"),
    )

    def on_mount(self) -> None:
        """Highlight the first file, and leave out what cannot be chosen."""
        super().on_mount()
        for id_ in ("#choose-choose", "#choose-choose_all"):
            self.query_one(id_).display = self.can_choose
        self.query_one("#choose-tell").display = self._hears
        self.query_one("#take-back-problem").display = bool(self._conflict_text())

    def _conflict_text(self) -> str:
        conflicts = self._page.conflicts
        left_out = ", and left out" if self.can_choose else ""
        return f"Changed since{left_out}: {', '.join(map(visible, conflicts[:3]))}." if conflicts else ""

    def note(self) -> None:
        """Say how many changes will be undone, and whether the agent is told."""
        undo = self._direction == "undo"
        number = len(self.chosen) if self.can_choose or self._page.total <= MOST_LISTED else self._page.total
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

    def words(self, at: int) -> str:
        """Return what would become of a file."""
        change = self._changes[at]
        letter, _ = SIGNS[self._turned(change).action]
        name = visible(short_path(change.path, self._root)) + ("/" if change.kind == "directory" else "")
        entries = f" with {count(change.below, 'entry', 'entries')}" if change.below else ""
        since = "  ! changed since" if self._is_other(change) else ""
        return f"{letter} {name}{entries}{since}"

    def _turned(self, change: PreviewChange) -> PreviewChange:
        return reversed_change(change) if self._direction == "undo" else change

    def _listed(self, change: PreviewChange) -> Iterator[Paragraph]:
        """Yield a change without a content to compare, with what is created or deleted with it."""
        within = (each for each in self._page.changes if self._is_in(each, change)) if change.below else ()
        for each in (change, *within):
            letter, role = SIGNS[self._turned(each).action]
            line = (Span(f"{letter} ", role), *change_line(self._turned(each), self._root))
            yield Paragraph(line, margin=(Span(" "),), hanging=(Span("   "),), at_words=False)

    async def show(self, at: int, width: int) -> Sequence[Paragraph]:
        """Return what would become of a file, with its difference."""
        change = self._changes[at]
        if change.kind == "directory" or change.action == "attributes":
            return tuple(self._listed(change))
        try:
            versions = await self._cockpit.supervision.preview_versions(self._record.id, change.number)
        except WhisperError as error:
            return (Paragraph(said(error_text(error), "risk")),)
        turned = reversed_versions(versions) if self._direction == "undo" else versions
        shown = await differences((turned,), self._root, width)
        flags = tuple(Paragraph((Span(visible(flag), "risk"),), margin=(Span(" ! ", "risk"),)) for flag in change.flags)
        return (*flags, *shown)

    def action_tell(self) -> None:
        """Tell the agent about it, or do not."""
        if self._hears:
            self._tells = not self._tells
            self.note()

    def action_take_back(self) -> None:
        """Take the chosen changes back."""
        if not self.chosen:
            self.notify("Nothing is chosen: Space chooses a file.", markup=False)
            self.app.bell()
            return
        every = len(self.chosen) == len(self._changes)
        chosen = () if every else tuple(each.path for each in self._changes if each.number in self.chosen)
        self.dismiss(UndoChoice(chosen, self._tells))
