"""Output of a run in a pane: one stream or both, as text or as bytes, and what is searched for in it."""

import asyncio
from collections.abc import Awaitable

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.run import Stream
from whisper_tui.tui.output.finder import Finder, Match
from whisper_tui.tui.output.merged import MergedView
from whisper_tui.tui.output.needle import Needle
from whisper_tui.tui.output.painter import looks_binary
from whisper_tui.tui.output.pens import Pens
from whisper_tui.tui.output.reader import ReadOutput
from whisper_tui.tui.output.rows import ByteWindow
from whisper_tui.tui.output.shown import Shown, View
from whisper_tui.tui.output.times import TimeIndex
from whisper_tui.tui.output.view import OutputView
from whisper_tui.tui.widgets.rows_pane import SIDEWAYS, RowsPane
from whisper_tui.tui.words import told

LOOKED_AT = 4096
"""Bytes at the beginning of a stream that tell whether it is text."""


class OutputPane(RowsPane):
    """Rows that can be searched. What is no text is shown as bytes."""

    def __init__(self, title: str, pens: Pens, *, id: str | None = None) -> None:
        super().__init__(title, pens, id=id)
        self._sniffed = False
        self._has_room = asyncio.Event()
        self._from_start = False

    def show(self, reads: dict[Stream, ReadOutput], index: TimeIndex | None = None) -> None:
        """Show another stream, or two, from their end. Empty: there is no output."""
        self._sniffed = False
        self._painter.as_bytes = False
        super().show(reads, index)
        self.find(None)

    def make_view(self, height: int) -> View | None:
        """A place at the end of what is to be shown."""
        if len(self._reads) == 2 and self._index is not None:
            return MergedView(self._reads, self._index, height, measure=self._painter.height)
        for stream, read in self._reads.items():
            empty = ByteWindow() if self._painter.as_bytes else None
            return OutputView(read, height, stream=stream, measure=self._painter.height, empty=empty)
        return None

    @property
    def as_bytes(self) -> bool:
        """Whether it is shown as the bytes that it is."""
        return self._painter.as_bytes

    def visible_text(self) -> str:
        """The rows on the screen in full, without colours."""
        return "".join(f"{self._painter.text(shown)}\n" for shown in self._drawn_rows)

    def toggle_bytes(self) -> None:
        """Show one stream as bytes, or as text again."""
        self._sniffed = True
        self._painter.as_bytes = not self._painter.as_bytes and len(self._reads) == 1
        self._open()

    async def grown(self, view: View) -> None:
        """Show what is no text as bytes, once its beginning is known."""
        if self._sniffed or not view.size or len(self._reads) != 1:
            return
        self._sniffed = True
        ((_, read),) = self._reads.items()
        if looks_binary((await read(0, LOOKED_AT)).data):
            self.toggle_bytes()
            if self.view is not None:
                await self.view.poll()

    async def on_resize(self) -> None:
        """Show as many rows as there is room for, and what was found before there was any."""
        await super().on_resize()
        if self.size:
            self._has_room.set()

    def find(self, needle: Needle | None) -> None:
        """Search for something from now on, counting in the background. None: for nothing."""
        self.workers.cancel_group(self, "count")
        self._search_problem = ""
        self._from_start = not self._has_room.is_set()
        self.finder = Finder(self._reads, needle, self._index) if needle is not None and self._reads else None
        self._painter.needle, self._painter.standing = needle, None
        self._painter.forget()
        if self.finder is not None:
            self.run_worker(self._count(self.finder), group="count")
        if self.is_mounted:
            self._draw_rows()

    async def _count(self, finder: Finder) -> None:
        try:
            await finder.count()
        except WhisperError as error:
            self._search_problem = told(error)
        self.refresh()

    async def go_to_match(self, direction: int) -> bool:
        """Show the next match, or the one before. Whether there is any.

        A search begins where the output stands; at its beginning where it was never on the screen.
        """
        finder, view = self.finder, self.view
        if finder is None or view is None:
            return False
        place = dict.fromkeys(self._reads, 0) if self._from_start else view.place
        return await self._show(finder.go(direction, place), view)

    async def go_to_first_match(self) -> bool:
        """Show the first match of all. Whether there is any."""
        finder, view = self.finder, self.view
        return finder is not None and view is not None and await self._show(finder.first(), view)

    async def _show(self, finding: Awaitable[Match | None], view: View) -> bool:
        try:
            match = await finding
            await self._has_room.wait()
            if match is None or view is not self.view:
                return False
            self._painter.standing = match
            self._painter.forget()
            shown = await view.to_offset(match.stream, match.offset)
            if shown is not None:
                await self._bring_up(view, shown, self._painter.column(shown, match.offset))
        except WhisperError as error:
            self._search_problem = told(error)
            return False
        self._draw_rows()
        return True

    async def _bring_up(self, view: View, shown: Shown, column: int) -> None:
        """Have a column of the row at the top in the upper third of the pane."""
        line = column // self._text_width if self.wraps else 0
        if not self.wraps:
            self.left = 0 if column < self._text_width - SIDEWAYS else column - self._text_width // 2
        rows = view.shown()
        if rows and rows[0].row == shown.row and view.skip == 0:
            await view.scroll(line - view.height // 3)
        await view.hold()
