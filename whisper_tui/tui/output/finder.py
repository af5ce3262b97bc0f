"""A search in what one pane shows: one stream, or both in the order of their arrival."""

import asyncio
from typing import NamedTuple

from whisper_tui.model.run import Stream
from whisper_tui.tui.output.needle import Needle
from whisper_tui.tui.output.reader import ReadOutput
from whisper_tui.tui.output.search import StreamSearch
from whisper_tui.tui.output.times import TimeIndex

PAUSE_S = 0.002
"""After each few blocks, so that counting takes half of one core at most."""
BLOCKS_IN_A_ROW = 4
LOOK_S = 0.25
"""How often a stream that grows is looked at once all of it is counted."""


class Match(NamedTuple):
    """Where a match begins."""

    stream: Stream
    offset: int


class Finder:
    """Counts in the background as long as `count` runs, and finds the match after or before a place."""

    def __init__(self, reads: dict[Stream, ReadOutput], needle: Needle, index: TimeIndex | None) -> None:
        """`index`: gives the order of two streams; one stream needs none."""
        self.needle = needle
        self.searches = {stream: StreamSearch(read, needle) for stream, read in reads.items()}
        self._index = index
        self.standing: Match | None = None
        """The match that was gone to last."""
        self.rank = 0
        """Which one that is, from 1."""

    @property
    def total(self) -> int:
        """Matches found so far."""
        return sum(search.total for search in self.searches.values())

    @property
    def done(self) -> bool:
        """Whether everything there is has been looked through."""
        return all(search.done for search in self.searches.values())

    @property
    def percent(self) -> int:
        """How much has been looked through."""
        size = sum(search.size for search in self.searches.values())
        return 100 * sum(search.counted for search in self.searches.values()) // size if size else 0

    async def count(self) -> None:
        """Count until the streams can no longer grow and all is counted. Raises `WhisperError`."""
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
        """The next match (1) or the one before (-1), from the last one or else from a place; then it stands there.

        From the last match on to the first, and back. None: there is no match.
        """
        found = await self._from_here(direction, place) or await self._from_the_other_end(direction)
        if found is not None:
            self.standing = found
            self.rank = 1 + sum([await s.before(self._beside(found, stream)) for stream, s in self.searches.items()])
        return found

    async def first(self) -> Match | None:
        """The first match of all."""
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
        """How much of a stream comes before a match."""
        if match.stream == stream or self._index is None:
            return match.offset
        return self._index.offset(stream, self._index.number(*match))
