"""Searching output that may be far larger than memory."""

import random
from typing import Any

from tests.rows import each_row
from whisper_tui.model.run import OutputChunk
from whisper_tui.tui.output.ansi import PLAIN, Pen, Run
from whisper_tui.tui.output.output_search import BLOCK, ERRORS, Finder, Needle, StreamSearch


class Source:
    """A stream in memory; `hole` is a range of bytes that was dropped."""

    def __init__(self, data: bytes, hole: tuple[int, int] | None = None) -> None:
        self.data = data
        self.hole = hole
        self.ended = True

    async def read(self, offset: int, limit: int) -> OutputChunk:
        start, end = min(offset, len(self.data)), min(len(self.data), offset + limit)
        if self.hole and self.hole[0] <= start < self.hole[1]:
            start, end = self.hole[1], min(len(self.data), self.hole[1] + limit)
        elif self.hole and start < self.hole[0]:
            end = min(end, self.hole[0])
        return OutputChunk(data=self.data[start:end], start=start, size=len(self.data), ended=self.ended)


def finder(source: Any, words: str) -> Finder:
    return Finder({"out": source.read}, Needle.of(words), None)


def test_words_are_found_in_any_case_and_through_colours() -> None:
    needle = Needle.of("Error")
    data = b"an ERROR, \x1b[31mer\x1b[0mror and \x1b[1merror\x1b[0m"
    assert list(needle.starts(data)) == [3, data.index(b"er\x1b"), data.rindex(b"error")]
    assert list(Needle.of("[a").starts(b"x[a]")) == [1]


@each_row("line", ["TypeError: x", "FAILED tests", "fatal: no", "thread panicked", "Traceback (most"])
def test_error_lines_are_recognized(line: str) -> None:
    assert list(ERRORS.starts(line.encode()))


@each_row("line", ["0 errors", "no errors", "terrors", "a mirror", "no error here", "0 failed"])
def test_other_lines_are_not_taken_for_errors(line: str) -> None:
    assert not list(ERRORS.starts(line.encode()))


def test_marks_cover_the_match_across_colours_and_nothing_else() -> None:
    red = Pen(foreground=1)
    runs = Needle.of("bcd").mark((Run("abc", PLAIN), Run("de bcd", red)), 1)
    assert "".join(run.text for run in runs) == "abcde bcd"
    assert [(run.text, run.pen.found) for run in runs] == [("a", 0), ("bc", 1), ("d", 1), ("e ", 0), ("bcd", 2)]


async def test_all_matches_are_counted_and_reachable_in_both_directions() -> None:
    chance = random.Random(5)
    data = b"".join(chance.choice([b"abc", b"x" * chance.randrange(900), b"\n"]) for _ in range(2000))
    places = [at for at in range(len(data)) if data.startswith(b"abc", at)]
    assert len(data) > 3 * BLOCK
    search = StreamSearch(Source(data).read, Needle.of("abc"))
    while await search.count_on():
        pass
    assert search.total == len(places) and search.done
    at, seen = 0, []
    while (found := await search.following(at)) is not None:
        seen.append(found)
        assert await search.before(found) == len(seen) - 1
        at = found + 1
    assert seen == places
    at, back = len(data), []
    while (found := await search.preceding(at)) is not None:
        back.append(found)
        at = found
    assert back == places[::-1]


async def test_a_match_across_the_edge_of_two_blocks_is_found_once() -> None:
    data = b"." * (BLOCK - 2) + b"match" + b"." * BLOCK
    search = finder(Source(data), "match")
    await search.count()
    assert search.total == 1
    match = await search.first()
    assert match is not None and match.offset == BLOCK - 2


async def test_matches_in_growing_output_are_counted() -> None:
    source = Source(b"one match\n")
    source.ended = False
    search = StreamSearch(source.read, Needle.of("match"))
    for count in range(1, 40):
        while await search.count_on():
            pass
        assert search.total == count
        source.data += b"." * 7000 + b"match\n"


async def test_dropped_bytes_are_skipped() -> None:
    source = Source(b"match" + b"." * (20 * BLOCK) + b"match", hole=(10, 20 * BLOCK))
    search = finder(source, "match")
    await search.count()
    assert search.total == 2
    first = await search.first()
    second = await search.go(1, {"out": 0})
    assert first is not None and second is not None
    assert (first.offset, second.offset) == (0, len(source.data) - 5)


async def test_the_search_wraps_around_and_knows_the_rank() -> None:
    search = finder(Source(b"a match, a match, a match"), "match")
    await search.count()
    ranks = []
    for direction in (1, 1, 1, 1, -1, -1):
        await search.go(direction, {"out": 0})
        ranks.append(search.rank)
    assert ranks == [1, 2, 3, 1, 3, 2]


async def test_an_empty_stream_has_no_matches() -> None:
    search = finder(Source(b"nothing at all"), "match")
    await search.count()
    assert (search.total, search.done, await search.first()) == (0, True, None)
