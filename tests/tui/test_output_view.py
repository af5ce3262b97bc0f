"""Looking at a stream that may be far larger than memory."""

import random
import re

import pytest

from whisper_tui.model.run import OutputChunk
from whisper_tui.tui.output.output_view import OutputView
from whisper_tui.tui.output.stream_reader import CHUNK, KEPT, READ, SPAN, Window


class Source:
    """A stream in memory that counts what is read; `hole` is a range of bytes that was dropped."""

    def __init__(self, data: bytes, hole: tuple[int, int] | None = None) -> None:
        self.data = data
        self.hole = hole
        self.bytes_read = 0
        self.ended = False

    async def read(self, offset: int, limit: int) -> OutputChunk:
        start = max(0, len(self.data) + offset) if offset < 0 else min(offset, len(self.data))
        end = min(len(self.data), start + limit)
        if self.hole and self.hole[0] <= start < self.hole[1]:
            start, end = self.hole[1], min(len(self.data), self.hole[1] + limit)
        elif self.hole and start < self.hole[0]:
            end = min(end, self.hole[0])
        self.bytes_read += end - start
        return OutputChunk(data=self.data[start:end], start=start, size=len(self.data), ended=self.ended)


def shown(view: OutputView) -> list[bytes]:
    return [view.window.slice(row.start, row.end) for row in view.rows()]


def numbered(count: int) -> bytes:
    return b"".join(b"line %d\n" % number for number in range(count))


async def test_the_end_is_shown_first_and_follows_the_growth() -> None:
    source = Source(numbered(1000))
    view = OutputView(source.read, 3)
    await view.poll()
    assert shown(view) == [b"line 997\n", b"line 998\n", b"line 999\n"]
    source.data += b"more\n"
    assert await view.poll()
    assert shown(view) == [b"line 998\n", b"line 999\n", b"more\n"]


async def test_a_short_stream_is_shown_from_its_first_line() -> None:
    view = OutputView(Source(b"one\ntwo\nthr").read, 10)
    await view.poll()
    assert shown(view) == [b"one\n", b"two\n", b"thr"]
    await view.scroll(-5)
    assert shown(view) == [b"one\n", b"two\n", b"thr"]
    assert view.following


async def test_scrolling_back_stays_where_it_is_while_the_stream_grows() -> None:
    source = Source(numbered(100))
    view = OutputView(source.read, 2)
    await view.poll()
    await view.scroll(-10)
    assert shown(view) == [b"line 88\n", b"line 89\n"]
    source.data += numbered(50)
    await view.poll()
    assert shown(view) == [b"line 88\n", b"line 89\n"]
    assert not view.following
    assert view.size == len(source.data)


async def test_scrolling_down_to_the_end_follows_again() -> None:
    source = Source(numbered(100))
    view = OutputView(source.read, 2)
    await view.poll()
    await view.scroll(-10)
    await view.scroll(4)
    assert shown(view) == [b"line 92\n", b"line 93\n"]
    await view.scroll(400)
    assert shown(view) == [b"line 98\n", b"line 99\n"]
    assert view.following


async def test_jumping_in_a_huge_stream_reads_only_around_the_offset() -> None:
    line = b"x" * 99 + b"\n"
    source = Source(line * 500_000)
    view = OutputView(source.read, 50)
    await view.poll()
    for jump in (view.to_start, view.to_end, lambda: view.to_fraction(0.5), lambda: view.to_fraction(0.999)):
        source.bytes_read = 0
        await jump()
        assert shown(view) == [line] * 50
        assert source.bytes_read <= 4 * READ
        assert len(view.window.data) <= KEPT + READ


async def test_following_a_flood_skips_unreadably_fast_output() -> None:
    source = Source(b"")
    view = OutputView(source.read, 5)
    for _ in range(10):
        source.data += numbered(100_000)
        source.bytes_read = 0
        await view.poll()
        assert source.bytes_read <= 3 * READ
        assert shown(view)[-1] == b"line 99999\n"


async def test_rows_are_the_same_from_above_and_from_below() -> None:
    chance = random.Random(7)
    pieces = [b"\n", b"\r", b"ab\n", b"c" * 300, b"d" * CHUNK, b"e" * 40_000, b"\rprogress" * 3000]
    data = b"".join(chance.choice(pieces) for _ in range(400))
    window = Window(data, 0, True)
    down, at = [], 0
    while at < len(data):
        down.append(at)
        at = window.row_end(at) or len(data)
    up, at = [], len(data)
    while at > 0:
        at = window.row_before(at)
        up.append(at)
    assert up[::-1] == down


async def test_a_line_of_ten_megabytes_is_shown_in_pieces_of_bounded_size() -> None:
    source = Source(b"first\n" + b"z" * 10_000_000 + b"\nlast\n")
    view = OutputView(source.read, 20)
    await view.poll()
    assert shown(view)[-1] == b"last\n"
    assert max(len(row) for row in shown(view)) <= 2 * CHUNK
    assert source.bytes_read < 1_000_000
    await view.scroll(-1)
    await view.to_start()
    assert shown(view)[0] == b"first\n"


async def test_a_progress_bar_of_many_updates_is_one_row() -> None:
    bar = b"".join(b"\r%3d %%" % (n // 100) for n in range(10_000))
    view = OutputView(Source(b"start\n" + bar).read, 20)
    await view.poll()
    assert len(shown(view)) == 2
    assert shown(view)[1] == bar
    assert len(bar) < SPAN


async def test_any_sequence_of_scrolls_shows_whole_lines() -> None:
    chance = random.Random(3)
    source = Source(b"".join(b"%d:%s\n" % (n, b"x" * chance.randrange(400)) for n in range(5000)))
    view = OutputView(source.read, 13)
    await view.poll()
    lines = source.data.splitlines(keepends=True)
    for _ in range(300):
        step = chance.choice([-1, 1, -13, 13, -200, 200, 0])
        await (view.scroll(step) if step else view.to_fraction(chance.random()))
        rows = shown(view)
        first = int(re.match(rb"\d+", rows[0])[0])
        assert rows == lines[first : first + 13]


async def test_dropped_bytes_are_crossed_in_both_directions() -> None:
    data = numbered(20_000)
    hole = (1000, len(data) - 1000)
    view = OutputView(Source(data, hole).read, 4)
    await view.poll()
    assert shown(view)[-1] == b"line 19999\n"
    await view.scroll(-500)
    while view.top > hole[0]:
        await view.scroll(-4)
    assert view.window.end == hole[0]
    await view.to_start()
    assert shown(view)[0] == b"line 0\n"
    for _ in range(200):
        await view.scroll(4)
    assert shown(view)[-1] == b"line 19999\n"
    assert view.following


async def test_output_after_dropped_bytes_is_marked() -> None:
    data = numbered(1000)
    view = OutputView(Source(data, (10, len(data) - 30)).read, 40)
    await view.poll()
    assert view.dropped_before_top
    assert view.top == len(data) - 30


@pytest.mark.parametrize("height", [1, 7, 30])
async def test_a_resized_view_keeps_the_end_at_the_bottom(height: int) -> None:
    view = OutputView(Source(numbered(100)).read, 10)
    await view.poll()
    await view.resize(height)
    assert len(shown(view)) == height
    assert shown(view)[-1] == b"line 99\n"
