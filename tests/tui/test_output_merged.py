"""Both streams as one text, in the order in which they arrived."""

import random
from typing import Any

from whisper_tui.model.run import OutputChunk, OutputSpan, Stream
from whisper_tui.tui.output.merged_view import MergedView
from whisper_tui.tui.output.stream_reader import TimeIndex


class Run:
    """Two streams and their time index, in memory."""

    def __init__(self) -> None:
        self.data: dict[Stream, bytes] = {"out": b"", "err": b""}
        self.rows: list[OutputSpan] = []
        self.ended = False

    def write(self, stream: Stream, data: bytes) -> None:
        start = len(self.data[stream])
        self.rows.append(OutputSpan(at=100.0 + len(self.rows), stream=stream, start=start, length=len(data)))
        self.data[stream] += data

    async def timeline(self, after: int, limit: int) -> tuple[OutputSpan, ...]:
        return tuple(self.rows[after : after + limit])

    def reader(self, stream: Stream) -> Any:
        async def read(offset: int, limit: int) -> OutputChunk:
            data = self.data[stream]
            start = max(0, len(data) + offset) if offset < 0 else min(offset, len(data))
            return OutputChunk(data=data[start : start + limit], start=start, size=len(data), ended=self.ended)

        return read

    def view(self, height: int) -> MergedView:
        return MergedView({s: self.reader(s) for s in ("out", "err")}, TimeIndex(self.timeline), height)


def texts(view: MergedView) -> list[str]:
    return [f"{shown.stream}:{shown.data.decode().rstrip()}" for shown in view.shown()]


def expected(run: Run) -> list[str]:
    """Every line with the place of its first byte, sorted by the rows of the index."""
    found = []
    for stream, data in run.data.items():
        start = 0
        for line in data.splitlines(keepends=True):
            row = next(
                n for n, r in enumerate(run.rows) if r.stream == stream and r.start <= start < r.start + r.length
            )
            found.append((row, stream, start, line))
            start += len(line)
    return [
        f"{stream}:{line.decode().rstrip()}" for row, stream, start, line in sorted(found, key=lambda f: (f[0], f[2]))
    ]


def busy(lines: int, seed: int) -> Run:
    """Lines of both streams, written in pieces that begin and end in the middle of lines."""
    run, chance = Run(), random.Random(seed)
    left: dict[Stream, bytes] = {
        stream: b"".join(b"%s %d %s\n" % (stream.encode(), n, b"x" * chance.randrange(30)) for n in range(lines))
        for stream in ("out", "err")
    }
    while any(left.values()):
        stream: Stream = chance.choice(["out", "err"])
        count = chance.choice([1, 7, 40, 200])
        if piece := left[stream][:count]:
            run.write(stream, piece)
            left[stream] = left[stream][count:]
    return run


async def test_lines_are_whole_and_ordered_by_their_start() -> None:
    run = Run()
    run.write("out", b"building ")
    run.write("err", b"warning: old\n")
    run.write("out", b"done\nnext\n")
    view = run.view(10)
    await view.poll()
    assert texts(view) == ["out:building done", "err:warning: old", "out:next"]


async def test_the_end_follows_both_streams() -> None:
    run = Run()
    view = run.view(2)
    for number in range(6):
        run.write("out" if number % 2 else "err", b"%d\n" % number)
        await view.poll()
        assert texts(view)[-1].endswith(f":{number}")
    assert texts(view) == ["err:4", "out:5"]
    assert view.following


async def test_every_screen_on_the_way_up_and_down_is_in_order() -> None:
    run = busy(300, seed=7)
    every = expected(run)
    view = run.view(5)
    await view.poll()
    assert texts(view) == every[-5:]
    for top in range(len(every) - 6, -1, -1):
        await view.scroll(-1)
        assert texts(view) == every[top : top + 5]
    for top in range(1, len(every) - 4):
        await view.scroll(1)
        assert texts(view) == every[top : top + 5]
    assert view.following


async def test_the_view_can_jump_to_start_end_and_any_byte() -> None:
    run = busy(500, seed=3)
    every = expected(run)
    view = run.view(4)
    await view.poll()
    await view.to_start()
    assert texts(view) == every[:4] and not view.following
    await view.to_end()
    assert texts(view) == every[-4:] and view.following
    for stream in ("out", "err"):
        offset = run.data[stream].index(b" 250 ")
        found = await view.to_offset(stream, offset)
        assert found is not None and b" 250 " in found.data
        at = every.index(f"{stream}:{found.data.decode().rstrip()}")
        assert texts(view) == every[at : at + 4]
    await view.to_fraction(0.5)
    at = every.index(texts(view)[0])
    assert texts(view) == every[at : at + 4] and 200 < at < 800


async def test_wrapped_rows_are_counted_as_several_lines() -> None:
    run = Run()
    for number in range(9):
        run.write("out" if number % 2 else "err", b"%d\n" % number)
    view = run.view(5)
    view.measure = lambda shown: 3
    await view.poll()
    assert texts(view) == ["out:7", "err:8"] and view.skip == 1
    await view.scroll(-1)
    assert texts(view) == ["out:7", "err:8"] and view.skip == 0
    await view.scroll(-1)
    assert texts(view) == ["err:6", "out:7", "err:8"] and view.skip == 2
    await view.scroll(2)
    assert view.following and view.skip == 1


async def test_a_run_without_times_is_shown_once_it_has_ended() -> None:
    run = Run()
    run.data = {"out": b"one\ntwo\n", "err": b"bad\n"}
    view = run.view(10)
    await view.poll()
    assert texts(view) == []
    run.ended = True
    for _ in range(3):
        await view.poll()
    assert sorted(texts(view)) == ["err:bad", "out:one", "out:two"]
    assert view.complete


async def test_only_visible_parts_of_long_output_are_read() -> None:
    run = Run()
    for number in range(40):
        run.write("out", b"".join(b"line %d.%d\n" % (number, line) for line in range(5000)))
        run.write("err", b"problem %d\n" % number)
    view = run.view(10)
    await view.poll()
    assert texts(view)[-1] == "err:problem 39"
    await view.scroll(-1)
    assert texts(view)[-1] == "out:line 39.4999"
    assert all(len(reader.window.data) < 600_000 for reader in view._readers.values())
