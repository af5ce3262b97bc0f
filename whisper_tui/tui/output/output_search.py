"""Search in output: matches are found in raw bytes, counted in the background, and visited one by one."""

import asyncio
import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from whisper_tui.model.run import Stream
from whisper_tui.tui.output.ansi import Run
from whisper_tui.tui.output.stream_reader import ReadOutput, TimeIndex

LEAD = 16
"""Bytes read before a block, so that a word boundary at its start is recognised."""
_COLOUR = re.compile(rb"\x1b\[[0-9;:]*[mK]")
_ERRORS = (
    r"(?<!\bno )(?<!\b0 )\b(?:\w*error|fatal|panic(?:ked)?|traceback|\w*exception|failed|failure|fail"
    r"|segmentation fault|core dumped|undefined reference|command not found|no such file or directory"
    r"|permission denied)\b"
)


@dataclass(frozen=True)
class Needle:
    """A search pattern in two forms: over lower-case bytes without colours, and over text as drawn."""

    words: str
    """Its name on the screen."""
    raw: re.Pattern[bytes]
    drawn: re.Pattern[str]
    reach: int
    """The most bytes of a match, with a few colour sequences inside."""

    @classmethod
    def of(cls, words: str) -> "Needle":
        """Return a pattern for literal text that ignores the case of ASCII letters."""
        raw = re.escape(words.encode("utf-8", "replace").lower())
        return cls(words, re.compile(raw), re.compile(re.escape(words), re.IGNORECASE | re.ASCII), len(raw) + 256)

    def starts(self, data: bytes) -> Iterator[int]:
        """Yield the offsets of the matches in a piece of output, in order."""
        plain = data.lower()
        if b"\x1b" not in data:
            yield from (found.start() for found in self.raw.finditer(plain))
            return
        # Programs colour parts of words, so colours are removed for the search and counted back into the offsets.
        colours = [(found.start(), found.end()) for found in _COLOUR.finditer(data)]
        at = removed = 0
        for found in self.raw.finditer(_COLOUR.sub(b"", plain)):
            while at < len(colours) and colours[at][0] - removed <= found.start():
                removed += colours[at][1] - colours[at][0]
                at += 1
            yield found.start() + removed

    def mark(self, runs: tuple[Run, ...], standing: int | None) -> tuple[Run, ...]:
        """Return the runs of a line with its matches marked; `standing` is the number of the current match."""
        text = "".join(run.text for run in runs)
        marks = [(found.start(), found.end()) for found in self.drawn.finditer(text) if found.end() > found.start()]
        if not marks:
            return runs
        done: list[Run] = []
        start = number = 0
        for run in runs:
            end = at = start
            end += len(run.text)
            while at < end:
                while number < len(marks) and marks[number][1] <= at:
                    number += 1
                low, high = marks[number] if number < len(marks) else (end, end)
                inside = low <= at
                stop = min(end, high if inside else low)
                kind = (2 if number == standing else 1) if inside else 0
                done.append(Run(run.text[at - start : stop - start], run.pen._replace(found=kind)))
                at = stop
            start = end
        return tuple(done)


ERRORS = Needle("errors", re.compile(_ERRORS.encode()), re.compile(_ERRORS, re.IGNORECASE | re.ASCII), 256)
"""Words that are usual in lines about failures."""


BLOCK = 64 * 1024
"""Bytes of a stream whose matches are counted together; a match belongs to the block in which it begins."""


class StreamSearch:
    """Counts the matches of each block, four bytes a block; their offsets are found again when needed."""

    def __init__(self, read: ReadOutput, needle: Needle) -> None:
        self._read = read
        self.needle = needle
        self._counts = array("I")
        self._sum = 0
        self._last = 0
        """Matches in the last, incomplete block."""
        self.counted = 0
        """Bytes searched so far."""
        self.size = 0
        """Bytes of the stream at the last read."""
        self.ended = False
        """True once the stream can no longer grow."""

    @property
    def total(self) -> int:
        """Matches found so far."""
        return self._sum + self._last

    @property
    def done(self) -> bool:
        """True once all bytes are searched."""
        return self.counted >= self.size and bool(self.size or self.ended)

    async def count_on(self) -> bool:
        """Search one more block. Return True if there was anything new."""
        number = len(self._counts)
        before = (self.counted, self.size, self.ended)
        starts, next_kept = await self._starts(number)
        full = (number + 1) * BLOCK
        if self.size >= full + self.needle.reach or (self.ended and self.size >= full):
            self._counts.append(len(starts))
            self._sum += len(starts)
            self._last = 0
            while len(self._counts) < next_kept // BLOCK:
                self._counts.append(0)
            self.counted = min(self.size, len(self._counts) * BLOCK)
        else:
            self._last = len(starts)
            self.counted = self.size
        return before != (self.counted, self.size, self.ended)

    async def following(self, offset: int) -> int | None:
        """Return the first match at or after an offset, or None."""
        number = offset // BLOCK
        while number * BLOCK < max(self.size, 1):
            if number >= len(self._counts) or self._counts[number]:
                starts, next_kept = await self._starts(number)
                at = bisect_left(starts, offset)
                if at < len(starts):
                    return starts[at]
                number = max(number, next_kept // BLOCK - 1)
                # Keys and drawing get their turn between blocks.
                await asyncio.sleep(0)
            number += 1
        return None

    async def preceding(self, offset: int) -> int | None:
        """Return the last match before an offset, or None."""
        number = (offset - 1) // BLOCK
        while number >= 0:
            if number >= len(self._counts) or self._counts[number]:
                starts, _ = await self._starts(number)
                if at := bisect_left(starts, offset):
                    return starts[at - 1]
                await asyncio.sleep(0)
            number -= 1
        return None

    async def before(self, offset: int) -> int:
        """Return the number of counted matches before an offset."""
        number = min(offset // BLOCK, len(self._counts))
        starts, _ = await self._starts(number)
        return sum(self._counts[:number]) + bisect_left(starts, offset)

    async def _starts(self, number: int) -> tuple[list[int], int]:
        """The matches of a block, and the offset of the first kept byte, which is beyond a block that was dropped."""
        low, high = number * BLOCK, (number + 1) * BLOCK
        wanted = max(0, low - LEAD)
        chunk = await self._read(wanted, high - wanted + self.needle.reach)
        self.size, self.ended = chunk.size, chunk.ended
        starts = [chunk.start + start for start in self.needle.starts(chunk.data)]
        return [start for start in starts if low <= start < high], chunk.start


PAUSE_S = 0.002
"""Pause after every few blocks, so that counting takes at most half a core."""
BLOCKS_IN_A_ROW = 4
LOOK_S = 0.25
"""Poll interval of a growing stream once all of it is counted."""


class Match(NamedTuple):
    """The offset of a match in its stream."""

    stream: Stream
    offset: int


class Finder:
    """A search over the streams of a pane: counts while `count` runs, and finds the next or previous match."""

    def __init__(self, reads: dict[Stream, ReadOutput], needle: Needle, index: TimeIndex | None) -> None:
        """`index` orders the matches of two streams; one stream needs none."""
        self.needle = needle
        self.searches = {stream: StreamSearch(read, needle) for stream, read in reads.items()}
        self._index = index
        self.standing: Match | None = None
        """The current match."""
        self.rank = 0
        """The number of the current match, from 1."""

    @property
    def total(self) -> int:
        """Matches found so far."""
        return sum(search.total for search in self.searches.values())

    @property
    def done(self) -> bool:
        """True once all streams are searched."""
        return all(search.done for search in self.searches.values())

    @property
    def percent(self) -> int:
        """The searched part of all streams, in percent."""
        size = sum(search.size for search in self.searches.values())
        return 100 * sum(search.counted for search in self.searches.values()) // size if size else 0

    async def count(self) -> None:
        """Count until the streams have ended and all of them is counted. Raises `WhisperError`."""
        while True:
            news = False
            for search in self.searches.values():
                for _ in range(BLOCKS_IN_A_ROW):
                    if not await search.count_on():
                        break
                    news = True
            if not news and all(search.ended for search in self.searches.values()):
                return
            await asyncio.sleep(PAUSE_S if news else LOOK_S)

    async def go(self, direction: int, place: dict[Stream, int]) -> Match | None:
        """Go to the next (1) or previous (-1) match, from the current one or else from a place; wraps around.

        Returns None if there is no match.
        """
        found = await self._from_here(direction, place) or await self._from_the_other_end(direction)
        if found is not None:
            self.standing = found
            self.rank = 1 + sum([await s.before(self._beside(found, stream)) for stream, s in self.searches.items()])
        return found

    async def first(self) -> Match | None:
        """Go to the first match."""
        self.standing = None
        return await self.go(1, dict.fromkeys(self.searches, 0))

    async def _from_here(self, direction: int, place: dict[Stream, int]) -> Match | None:
        found: list[Match] = []
        for stream, search in self.searches.items():
            offset = place[stream] if self.standing is None else self._beside(self.standing, stream)
            if direction > 0:
                own = self.standing is not None and self.standing.stream == stream
                at = await search.following(offset + own)
            else:
                at = await search.preceding(offset)
            if at is not None:
                found.append(Match(stream, at))
        return self._nearest(found, direction)

    async def _from_the_other_end(self, direction: int) -> Match | None:
        found: list[Match] = []
        for stream, search in self.searches.items():
            at = await (search.following(0) if direction > 0 else search.preceding(search.size))
            if at is not None:
                found.append(Match(stream, at))
        return self._nearest(found, direction)

    def _nearest(self, found: list[Match], direction: int) -> Match | None:
        return (min if direction > 0 else max)(found, key=self._order, default=None)

    def _order(self, match: Match) -> tuple[int, int]:
        return (self._index.number(*match) if self._index is not None else 0, match.offset)

    def _beside(self, match: Match, stream: Stream) -> int:
        """The offset in a stream that corresponds in time to a match."""
        if match.stream == stream or self._index is None:
            return match.offset
        return self._index.offset(stream, self._index.number(*match))
