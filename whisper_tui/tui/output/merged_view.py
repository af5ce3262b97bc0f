"""A view of both streams of a run as one text: whole rows, ordered by the arrival of their first bytes."""

from collections.abc import Mapping

from whisper_tui.model.run import Stream
from whisper_tui.tui.output.output_view import DRAWN, Measure, ScrolledOutput, ShownRow, one_line
from whisper_tui.tui.output.stream_reader import CHUNK, STREAMS, ReadOutput, Row, StreamReader, TimeIndex, Window

BLOCKS_AT_ONCE = 2
"""Blocks of the time index read in one poll, so that keys and drawing get their turn."""

Cursor = dict[Stream, int]
"""A position between two rows: an offset in each stream."""


class MergedView(ScrolledOutput):
    """A view of two streams; the time index says which row is next."""

    def __init__(
        self,
        reads: Mapping[Stream, ReadOutput],
        index: TimeIndex,
        height: int = 1,
        *,
        measure: Measure = one_line,
    ) -> None:
        super().__init__(height, measure)
        self._readers = {stream: StreamReader(reads[stream], Window()) for stream in STREAMS}
        self._index = index
        self.top: Cursor = {"out": 0, "err": 0}
        self._bottom: Cursor = {"out": 0, "err": 0}
        self._shown: list[ShownRow] = []
        self.index_is_read = False
        """True while the time index is read up to its present end."""
        self.covers_both = False
        """True once rows of both streams can be shown in order."""

    @property
    def size(self) -> int:
        """Bytes of both streams so far."""
        return sum(reader.size for reader in self._readers.values())

    @property
    def ended(self) -> bool:
        """True once neither stream can grow."""
        return all(reader.ended for reader in self._readers.values())

    @property
    def complete(self) -> bool:
        """True once polling can no longer change the view."""
        return self.ended and self.index_is_read and (self._at_end(self._bottom) or not self.following)

    @property
    def dropped_before_top(self) -> bool:
        """True if bytes of either stream directly before the screen were dropped."""
        return any(
            reader.window.first and self.top[stream] == reader.window.start > 0
            for stream, reader in self._readers.items()
        )

    @property
    def extent(self) -> tuple[int, int]:
        """Return the bytes of both streams before the top of the screen, and those before its end."""
        return sum(self.top.values()), sum(self._bottom.values())

    @property
    def place(self) -> dict[Stream, int]:
        """Return the offset of the top of the screen in each stream."""
        return dict(self.top)

    def shown(self) -> list[ShownRow]:
        """Return the rows on the screen."""
        return self._shown

    def before(self, stream: Stream) -> bytes:
        """Return some bytes of a stream before the screen."""
        window = self._readers[stream].window
        return window.slice(max(window.start, self.top[stream] - CHUNK), self.top[stream])

    async def poll(self) -> bool:
        """Read new output. Return True if the screen may have changed."""
        async with self._lock:
            before = self._state()
            for _ in range(BLOCKS_AT_ONCE):
                more = await self._index.advance()
                if not more:
                    break
            for reader in self._readers.values():
                await reader.look()
            # The end of a run is noticed before its last rows; one more poll without news proves that the index is
            # complete.
            self.index_is_read = not more and (not self.ended or before == self._state())
            whole = self.ended and self.index_is_read
            self.covers_both = self.covers_both or whole or (not more and all(map(self._index.end, STREAMS)))
            if self.following:
                await self._show_end()
            else:
                await self._fill()
            return before != self._state()

    def _state(self) -> object:
        return (self.size, self.ended, self._index.count, self._shown, self.skip, self.index_is_read)

    async def to_start(self) -> None:
        """Show the beginning."""
        async with self._lock:
            self.following = False
            await self._settle({"out": 0, "err": 0}, 0)

    async def to_end(self) -> None:
        """Show the end, and follow it."""
        async with self._lock:
            self.following = True
            await self._show_end()

    async def _at_fraction(self, fraction: float) -> Cursor:
        number = int(self._index.count * fraction)
        return {s: await self._align(s, self._index.offset(s, number)) for s in STREAMS}

    async def to_offset(self, stream: Stream, offset: int) -> ShownRow | None:
        """Stop following, with the row of a byte as far up as the end allows. Return that row."""
        async with self._lock:
            reader = self._readers[stream]
            found = await reader.go_to(offset)
            above = await reader.row_above(found + 1)
            start = above.start if above is not None else found
            row = await reader.row_at(start)
            other: Stream = "err" if stream == "out" else "out"
            beside = await self._align(other, self._index.offset(other, self._index.number(stream, start)))
            self.following = False
            await self._settle({stream: start, other: beside}, 0)
            self.following = False
            return self._as_shown(stream, row) if row is not None else None

    async def continue_from(self, view: ScrolledOutput) -> None:
        """Show the rows that a view of one of the streams shows, with the rows of the other stream between them."""
        async with self._lock:
            self.height = view.height
            if view.following:
                await self._show_end()
                return
            ((stream, top),) = view.place.items()
            other: Stream = "err" if stream == "out" else "out"
            beside = await self._align(other, self._index.offset(other, self._index.number(stream, top)))
            await self._settle({stream: top, other: beside}, view.skip)
            self.following = False

    def _limit(self, stream: Stream) -> int:
        """The end of what can be shown: as far as times are known, or all once the index is complete."""
        if self.ended and self.index_is_read:
            return self._readers[stream].size
        return self._index.end(stream)

    def _at_end(self, cursor: Cursor) -> bool:
        return all(cursor[stream] >= self._limit(stream) for stream in STREAMS)

    async def _reach(self, stream: Stream, offset: int) -> int:
        """Bring an offset into the window. Return it, or the first kept byte after it."""
        window = self._readers[stream].window
        if window.start <= offset <= window.end and window.end > window.start:
            return offset
        return await self._readers[stream].go_to(offset)

    async def _align(self, stream: Stream, offset: int) -> int:
        """The end of the row of the byte before an offset."""
        if offset == 0:
            return 0
        offset = await self._reach(stream, offset)
        row = await self._readers[stream].row_above(offset)
        whole = await self._readers[stream].row_at(row.start) if row is not None else None
        return max(offset, whole.end) if whole is not None else offset

    def _as_shown(self, stream: Stream, row: Row) -> ShownRow:
        window = self._readers[stream].window
        return ShownRow(stream, row, window.slice(max(row.start, row.end - DRAWN), row.end), row.end == window.end)

    async def next_row(self, cursor: Cursor) -> ShownRow | None:
        """Return the row at a cursor, and move the cursor behind it."""
        while True:
            waiting = [(self._index.number(s, cursor[s]), s) for s in STREAMS if cursor[s] < self._limit(s)]
            if not waiting:
                return None
            stream = min(waiting)[1]
            cursor[stream] = await self._reach(stream, cursor[stream])
            row = await self._readers[stream].row_at(cursor[stream])
            if row is None:
                cursor[stream] = max(cursor[stream], self._limit(stream))
                continue
            cursor[stream] = row.end
            return self._as_shown(stream, row)

    async def _above(self, stream: Stream, offset: int) -> tuple[int, Row] | None:
        if offset == 0:
            return None
        await self._reach(stream, offset)
        row = await self._readers[stream].row_above(offset)
        return (self._index.number(stream, row.start), row) if row is not None else None

    async def _lines_up(self, place: Cursor, count: int) -> tuple[Cursor, int]:
        cursor = dict(place)
        above = {stream: await self._above(stream, cursor[stream]) for stream in STREAMS}
        while count > 0:
            nearest = max(((found[0], stream) for stream, found in above.items() if found is not None), default=None)
            if nearest is None:
                return cursor, 0
            stream = nearest[1]
            found = above[stream]
            if found is None:
                return cursor, 0
            count -= self.measure(self._as_shown(stream, found[1]))
            cursor[stream] = found[1].start
            above[stream] = await self._above(stream, cursor[stream])
        return cursor, -count

    async def _lines_down(self, place: Cursor, count: int) -> tuple[Cursor, int]:
        cursor = place
        while True:
            after = dict(cursor)
            shown = await self.next_row(after)
            if shown is None:
                return cursor, 0
            lines = self.measure(shown)
            if count < lines or self._at_end(after):
                return cursor, min(count, lines - 1)
            cursor, count = after, count - lines

    async def _show_end(self) -> None:
        end = {stream: await self._align(stream, self._limit(stream)) for stream in STREAMS}
        self.top, self.skip = await self._lines_up(end, self.height)
        await self._fill()

    async def _fill(self) -> int:
        """Read the rows of the screen. Return the number of lines that stay empty."""
        cursor = dict(self.top)
        shown: list[ShownRow] = []
        spare = self.height + self.skip
        while spare > 0 and (found := await self.next_row(cursor)) is not None:
            shown.append(found)
            spare -= self.measure(found)
        self._shown, self._bottom = shown, cursor
        for stream, reader in self._readers.items():
            reader.trim(self.top[stream], max(cursor[stream], self.top[stream]))
        return spare

    async def _settle(self, top: Cursor, skip: int) -> None:
        self.top, self.skip = dict(top), skip
        spare = await self._fill()
        scrolled = any(top.values()) or skip > 0
        self.following = self.following or (self._at_end(self._bottom) and (spare > 0 or (spare == 0 and scrolled)))
        if spare > 0:
            await self._show_end()
