"""Output without end: a limit, a low disk or a full one keeps head and tail, counts everything and stops nothing."""

import asyncio
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.interpreter import PYTHON
from tests.supervisor.engine.conftest import Engine
from whisper_tui.model.call import Argv
from whisper_tui.model.ending import Exited
from whisper_tui.model.run import OutputChunk
from whisper_tui.supervisor.keeper.capture import BUFFERED, LATEST, SMALL_RING, StreamFile, Timeline
from whisper_tui.supervisor.runs.executor import HasEnded, RunKey
from whisper_tui.supervisor.runs.output_files import OutputFiles
from whisper_tui.system import run_files

MIB = 1 << 20
COUNTING = """
import os, sys
block = 1 << 16
for start in range(0, int(sys.argv[1]), block):
    data = b"".join(number.to_bytes(8, "big") for number in range(start, start + block, 8))
    while data:
        data = data[os.write(1, data):]
"""
KEY = RunKey("1", 1)


def counted(start: int, length: int) -> bytes:
    """What `COUNTING` prints there: every eight bytes are their own offset."""
    first = start - start % 8
    text = b"".join(number.to_bytes(8, "big") for number in range(first, start + length, 8))
    return text[start - first :][:length]


def counting(size: int) -> Argv:
    return Argv(program=sys.executable, args=("-I", "-S", "-c", COUNTING, str(size)))


def chunks(engine: Engine, key: RunKey) -> Iterator[OutputChunk]:
    offset = 0
    while (chunk := engine.executor.read_output(key, "out", offset, 100_000)).data:
        yield chunk
        offset = chunk.next_offset


async def test_a_limit_keeps_the_head_and_the_tail_and_tells_the_gap(engine: Engine):
    key = await engine.run(counting(8 * MIB), max_output_bytes=2 * MIB)
    ended = await engine.seen(key, HasEnded)
    assert ended.output.out == 8 * MIB
    read = list(chunks(engine, key))
    assert all(chunk.data == counted(chunk.start, len(chunk.data)) for chunk in read)
    assert all(chunk.size == 8 * MIB and chunk.ended for chunk in read)
    gaps = [(one.next_offset, two.start) for one, two in pairwise(read) if two.start != one.next_offset]
    assert gaps == [(MIB, 7 * MIB + run_files.ring_step(MIB))]
    assert read[-1].next_offset == 8 * MIB
    tail = engine.executor.read_output(key, "out", -1000, 1000)
    assert tail.data == counted(8 * MIB - 1000, 1000)
    stored = sum((engine.runs / "1.1" / name).stat().st_size for name in ("out", "out.tail"))
    assert stored == 2 * MIB


async def test_space_for_the_ending_is_reserved_before_output_of_a_short_command_can_fill_the_disk(engine: Engine):
    await engine.run(Argv(program="head", args=("-c", str(MIB), "/dev/zero")))
    assert (engine.runs / "1.1" / run_files.EXIT).stat().st_size == run_files.RESERVED


async def test_output_within_the_limit_is_whole(engine: Engine):
    key = await engine.run(counting(MIB), max_output_bytes=2 * MIB)
    assert engine.out(key) == counted(0, MIB)


async def test_the_smallest_limit_holds(engine: Engine):
    key = await engine.run(counting(MIB), max_output_bytes=65_536)
    read = list(chunks(engine, key))
    assert all(chunk.data == counted(chunk.start, len(chunk.data)) for chunk in read)
    assert read[0].next_offset == 32_768
    assert read[-1].next_offset == MIB


@pytest.mark.slow
async def test_a_reader_never_gets_bytes_of_another_place_while_the_ring_turns(engine: Engine):
    key = await engine.start(counting(48 * MIB), max_output_bytes=MIB)
    reads, jumps, offset = 0, 0, 0
    while True:
        chunk = engine.executor.read_output(key, "out", offset, 50_000)
        assert chunk.data == counted(chunk.start, len(chunk.data))
        jumps += chunk.start > offset
        reads += 1
        offset = chunk.next_offset
        if chunk.ended and not chunk.data:
            break
        if reads % 5 == 0:
            await asyncio.sleep(0)
    assert offset == 48 * MIB
    assert jumps


async def test_on_a_low_disk_only_the_tail_of_what_follows_is_kept(engine: Engine):
    key = await engine.run(counting(4 * MIB), min_free_bytes=1 << 60)
    read = list(chunks(engine, key))
    assert read[0].start == 4 * MIB - SMALL_RING + run_files.ring_step(SMALL_RING)
    assert all(chunk.data == counted(chunk.start, len(chunk.data)) for chunk in read)
    assert read[-1].next_offset == read[-1].size == 4 * MIB


def feed(file: StreamFile, data: bytes, *, is_pipe: bool = True) -> None:
    """Through a pipe, as a command would. `is_pipe`: false if it counts as a terminal."""
    reader, writer = os.pipe()
    try:
        for start in range(0, len(data), 4096):
            os.write(writer, data[start : start + 4096])
            while file.take(reader, is_pipe=is_pipe) < len(data[start : start + 4096]) and holds_bytes(reader):
                pass
    finally:
        os.close(reader)
        os.close(writer)


def holds_bytes(pipe: int) -> bool:
    return bool(select.select([pipe], [], [], 0)[0])


@pytest.mark.parametrize("is_pipe", [True, False])
@pytest.mark.parametrize("size", [0, 10, LATEST, 3 * LATEST, 3 * LATEST + 5000, 20 * LATEST])
@pytest.mark.parametrize("limit", [None, 4 * LATEST, 6 * LATEST])
def test_the_end_of_a_stream_is_read_wherever_it_is(tmp_path: Path, limit: int | None, size: int, *, is_pipe: bool):
    file = StreamFile(str(tmp_path / "out"), limit, 0)
    feed(file, counted(0, size), is_pipe=is_pipe)
    assert file.total == size
    end = min(size, LATEST)
    assert file.latest() == counted(size - end, end)
    assert (tmp_path / "out").exists() == bool(size)
    file.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_continues_after_a_full_disk(tmp_path: Path):
    run = tmp_path / "1.1"
    run.mkdir()
    (run / "out").symlink_to("/dev/full")
    file = StreamFile(str(run / "out"), None, 0)
    feed(file, counted(0, 3 * MIB))
    file.retry()
    file.close()
    assert file.total == 3 * MIB
    assert not file.uncounted
    chunk = OutputFiles(tmp_path).read_output(KEY, "out", 0, 4 * MIB)
    assert chunk.next_offset == chunk.size == 3 * MIB
    assert chunk.start > 0
    assert chunk.data == counted(chunk.start, len(chunk.data))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_on_a_disk_that_takes_nothing_bytes_are_still_counted(tmp_path: Path):
    for name in ("out", "out.tail", "out.ring"):
        (tmp_path / name).symlink_to("/dev/full")
    file = StreamFile(str(tmp_path / "out"), None, 0)
    feed(file, b"x" * MIB)
    file.retry()
    assert (file.total, file.kept, file.uncounted) == (MIB, 0, True)
    for name in ("out.tail", "out.ring"):
        (tmp_path / name).unlink()
    file.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_once_there_is_room_again_the_last_bytes_are_written(tmp_path: Path):
    run = tmp_path / "1.1"
    run.mkdir()
    for name in ("out", "out.ring"):
        (run / name).symlink_to("/dev/full")
    file = StreamFile(str(run / "out"), None, 0)
    feed(file, counted(0, MIB))
    assert file.uncounted
    file._state_file = os.open(run / "room", os.O_RDWR | os.O_CREAT, 0o600)
    file.retry()
    (run / "out.ring").unlink()
    (run / "room").rename(run / "out.ring")
    assert not file.uncounted
    chunk = OutputFiles(tmp_path).read_output(KEY, "out", 0, MIB)
    assert (chunk.start, chunk.size) == (MIB - BUFFERED, MIB)
    assert chunk.data == counted(chunk.start, BUFFERED)


@pytest.fixture
def small_disk(place_for_mounts: Path) -> Iterator[Path]:
    """A disk of two megabytes, where this user may make one."""
    disk = place_for_mounts / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a small disk")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs tmpfs")
async def test_a_full_disk_stops_no_command_and_hides_no_ending(small_disk: Path, tmp_path: Path):
    engine = Engine(tmp_path)
    engine.runs = small_disk / "runs"
    await engine.open()
    try:
        command = f"{PYTHON} -I -S -c '{COUNTING}' {8 * MIB}; echo done >&2; exit 5"
        key = await engine.start(command)
        assert await engine.ended(key) == Exited(code=5)
        await engine.settled(key)
        assert (await engine.seen(key, HasEnded)).output.out == 8 * MIB
        for chunk in chunks(engine, key):
            assert chunk.data == counted(chunk.start, len(chunk.data))
            assert chunk.size == 8 * MIB
    finally:
        await engine.close()


def test_rows_that_cannot_be_written_now_are_written_later(tmp_path: Path):
    run = tmp_path / "1.1"
    run.mkdir()
    (run / "idx").symlink_to("/dev/full")
    timeline = Timeline(str(run / "idx"))
    for _ in range(1000):
        timeline.note(0, 10)
        timeline.note(1, 5)
    timeline.flush()
    timeline.close()
    (run / "idx").unlink()
    timeline.note(0, 1)
    timeline.flush()
    spans = OutputFiles(tmp_path).read_timeline(KEY, 0, 10_000)
    assert sum(span.length for span in spans if span.stream == "out") == 10_001
    assert sum(span.length for span in spans if span.stream == "err") == 5_000


def test_any_row_of_a_long_timeline_knows_its_offset(tmp_path: Path):
    run = tmp_path / "1.1"
    run.mkdir()
    rows = [(number / 1000, number % 3 % 2, number % 17) for number in range(20_000)]
    (run / "idx").write_bytes(b"".join(run_files.INDEX_ROW.pack(*row) for row in rows) + b"half a r")
    files = OutputFiles(tmp_path)
    expected, sums = [], [0, 0]
    for _, stream, length in rows:
        expected.append(sums[stream])
        sums[stream] += length
    for after in (19_990, 0, 4095, 4096, 4097, 12_345, 19_999, 20_000, 99_999):
        got = [span.start for span in files.read_timeline(KEY, after, 500)]
        assert got == expected[after : after + 500]
