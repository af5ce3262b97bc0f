"""Dialogs with a list in which some rows are chosen."""

import asyncio
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets.option_list import Option

from whisper_tui.model.call import FileVersions
from whisper_tui.present.spans import Paragraph
from whisper_tui.tui.dialogs.dialog import Dialog, StyleFiles
from whisper_tui.tui.edit_diff import coloured_diffs, laid_out
from whisper_tui.tui.paragraphs_view import ParagraphsView
from whisper_tui.tui.row_list import RowList

Result = TypeVar("Result")


class ChoiceListScreen(Dialog[Result]):
    """Lets a person choose rows of a list, with Space one and with `a` all or none."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "choose", "Choose"),
        Binding("a", "choose_all", "Choose all or none"),
    ]

    def __init__(self, keys: Iterable[Hashable], chosen: Iterable[Hashable] = ()) -> None:
        """`keys`: one for each row, from the top; `chosen`: those that are chosen at first."""
        super().__init__()
        self._keys = tuple(keys)
        self.chosen = set(chosen)

    @property
    def can_choose(self) -> bool:
        """False if all rows go together."""
        return True

    @abstractmethod
    def words(self, at: int) -> str | Content:
        """Return the text of a row, without the mark of those that are chosen."""

    def note(self) -> None:
        """Say what is chosen."""

    def rows(self, id_: str | None = None) -> RowList:
        """Build the list."""
        return RowList(*(Option(self._row(at)) for at in range(len(self._keys))), id=id_)

    def on_mount(self) -> None:
        """Highlight the first row."""
        rows = self.query_one(RowList)
        rows.focus()
        if self._keys:
            rows.highlighted = 0
        self.note()

    def _row(self, at: int) -> Content:
        mark = ("[x] " if self._keys[at] in self.chosen else "[ ] ") if self.can_choose else ""
        return Content.assemble(mark, self.words(at))

    @on(RowList.OptionSelected)
    def action_choose(self) -> None:
        """Choose the highlighted row, or leave it as it is."""
        at = self.query_one(RowList).highlighted
        if at is not None and self.can_choose:
            self.chosen ^= {self._keys[at]}
            self._redraw((at,))

    def action_choose_all(self) -> None:
        """Choose all rows, or none if all are chosen."""
        if self.can_choose:
            self.chosen = set() if self.chosen == set(self._keys) else set(self._keys)
            self._redraw(range(len(self._keys)))

    def _redraw(self, rows: Iterable[int]) -> None:
        for at in rows:
            self.query_one(RowList).replace_option_prompt_at_index(at, self._row(at))
        self.note()


class ViewedChoiceScreen(ChoiceListScreen[Result]):
    """A list beside a view of its highlighted row: the body of dialogs that undo changes."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss", "../styles/take_back.tcss"]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012
    _shown: int | None = None
    _fitted_to = 0
    """The columns for which the highlighted row is laid out."""

    @abstractmethod
    async def show(self, at: int, width: int) -> Sequence[Paragraph]:
        """Return what is behind a row, for a view of so many columns."""

    def body(self) -> ComposeResult:
        """Build the list beside the view of the highlighted row."""
        with Horizontal(id="take-back-body"):
            yield self.rows("take-back-files")
            yield ParagraphsView(id="take-back-diff")

    def on_mount(self) -> None:
        """Lay the view out anew when its width changes."""
        self.query_one(ParagraphsView).resized = self._refit

    @on(RowList.OptionHighlighted)
    def _highlighted(self, event: RowList.OptionHighlighted) -> None:
        self._begin_to_show(event.option_index)

    def _refit(self) -> None:
        """Lay the highlighted row out anew if there are more or fewer columns."""
        if self._shown is not None and self.query_one(ParagraphsView).columns != self._fitted_to:
            self._begin_to_show(self._shown)

    def _begin_to_show(self, at: int) -> None:
        self._shown, self._fitted_to = at, self.query_one(ParagraphsView).columns
        self.run_worker(self._show(at), name="take-back-diff", exclusive=True)

    async def _show(self, at: int) -> None:
        shown = await self.show(at, self._fitted_to)
        # An answer can arrive when the dialog has been left and has no widgets any more.
        for view in self.query(ParagraphsView):
            view.show(tuple(shown), from_top=True)


async def differences(versions: Sequence[FileVersions], root: str, width: int) -> tuple[Paragraph, ...]:
    """Lay out the differences of files, in another thread: they may be long."""
    return await asyncio.to_thread(lambda: laid_out(coloured_diffs(tuple(versions), root, mask=True), width))
