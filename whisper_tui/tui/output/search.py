"""Searching a whole stream: counted block by block in the background, gone to from match to match."""

import asyncio
from array import array
from bisect import bisect_left

from whisper_tui.tui.output.needle import LEAD, Needle
from whisper_tui.tui.output.reader import ReadOutput

BLOCK = 64 * 1024
"""Bytes of a stream whose matches are counted together; a match belongs to the block that it begins in."""


class StreamSearch:
    """Knows how many matches each block has, four bytes a block; where they are is looked up again when it matters."""

    def __init__(self, read: ReadOutput, needle: Needle) -> None:
        self._read = read
        self.needle = needle
        self._counts = array("I")
        self._sum = 0
        self._last = 0
        """Matches in the block that still grows."""
        self.counted = 0
        """Bytes that have been looked through."""
        self.size = 0
        """Bytes of the stream when it was read last."""
        self.ended = False
        """Whether the stream can no longer grow."""

    @property
    def total(self) -> int:
        """Matches found so far."""
        return self._sum + self._last

    @property
    def done(self) -> bool:
        """Whether all that there is has been looked through."""
        return self.counted >= self.size and bool(self.size or self.ended)

    async def count_on(self) -> bool:
        """Look through one more block. Whether there was anything new."""
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
        """The first match at or after an offset. None: there is none."""
        number = offset // BLOCK
        while number * BLOCK < max(self.size, 1):
            if number >= len(self._counts) or self._counts[number]:
                starts, next_kept = await self._starts(number)
                at = bisect_left(starts, offset)
                if at < len(starts):
                    return starts[at]
                number = max(number, next_kept // BLOCK - 1)
                await asyncio.sleep(0)
            number += 1
        return None

    async def preceding(self, offset: int) -> int | None:
        """The last match before an offset. None: there is none."""
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
        """How many matches begin before an offset, as far as they are counted."""
        number = min(offset // BLOCK, len(self._counts))
        starts, _ = await self._starts(number)
        return sum(self._counts[:number]) + bisect_left(starts, offset)

    async def _starts(self, number: int) -> tuple[list[int], int]:
        """Where the matches of a block begin, and where what was kept begins if nothing of the block was."""
        low, high = number * BLOCK, (number + 1) * BLOCK
        wanted = max(0, low - LEAD)
        chunk = await self._read(wanted, high - wanted + self.needle.reach)
        self.size, self.ended = chunk.size, chunk.ended
        starts = [chunk.start + start for start in self.needle.starts(chunk.data)]
        return [start for start in starts if low <= start < high], chunk.start
