"""Long output, from file to file: every byte in its place, whatever is full, cut off, killed or of another version."""

import errno
import os
import random
import signal
import socket
import threading
from pathlib import Path

import pytest

from tests.supervisor.engine.conftest import until
from tests.supervisor.places.conftest import PlaceEngine
from whisper_tui.supervisor.places import incoming_frames
from whisper_tui.supervisor.places.far_news import FilePart, Outbox
from whisper_tui.supervisor.places.frames import LONG, FrameReader, encoded
from whisper_tui.supervisor.places.incoming_frames import LongFrame

DATA = random.Random(5).randbytes(3 * LONG + 77)


def _long_frame(first: int) -> tuple[LongFrame, int]:
    """A frame of which so many bytes were read, and the rest is in a pipe; and the end of the pipe to close."""
    pipe, end = os.pipe()
    os.set_blocking(pipe, False)
    whole = encoded({"of": "1.1", "file": "out", "at": 0}, DATA)
    reader = FrameReader()
    begun_with = len(whole) - len(DATA) + first
    assert list(reader.feed(whole[:begun_with])) == []
    begun = reader.take_begun()
    assert begun is not None
    threading.Thread(target=os.write, args=(end, whole[begun_with:]), daemon=True).start()
    return LongFrame(begun, pipe), end


def _pour_all(frame: LongFrame, target: int) -> None:
    while not frame.is_over:
        frame.pour(target, 10)


@pytest.mark.parametrize("splices", [True, False])
def test_a_long_piece_is_written_where_it_belongs_and_nothing_is_lost_while_there_is_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, splices: bool
) -> None:
    if not splices:
        monkeypatch.delattr(incoming_frames.os, "splice", raising=False)
    frame, _ = _long_frame(first=1000)
    for _ in range(3):
        full = os.open("/dev/full", os.O_WRONLY)
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            _pour_all(frame, full)
        os.close(full)
    with (tmp_path / "out").open("wb") as file:
        _pour_all(frame, file.fileno())
    assert (tmp_path / "out").read_bytes() == bytes(10) + DATA


def test_the_end_of_the_connection_within_a_long_piece_is_no_end_of_the_piece(tmp_path: Path) -> None:
    pipe, end = os.pipe()
    reader = FrameReader()
    assert list(reader.feed(encoded({"file": "out", "at": 0}, DATA)[:5000])) == []
    begun = reader.take_begun()
    assert begun is not None
    os.close(end)
    with (tmp_path / "out").open("wb") as file, pytest.raises(EOFError):
        _pour_all(LongFrame(begun, pipe), file.fileno())
    written = (tmp_path / "out").read_bytes()[10:]
    assert written and DATA.startswith(written), "what came is kept, and the rest is asked for from there"


def test_an_answer_is_read_however_long_it_is() -> None:
    reader = FrameReader()
    whole = encoded({"re": 7}, DATA)
    assert list(reader.feed(whole[:5000])) == [] and reader.take_begun() is None
    (answer,) = reader.feed(whole[5000:])
    assert answer.header == {"re": 7} and answer.payload == DATA


def test_texts_and_parts_of_files_leave_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(DATA)
    outbox, sent = Outbox(), b""
    expected = b""
    for position in range(0, len(DATA), LONG):
        count = min(LONG, len(DATA) - position)
        outbox.add(b"head", b"", b"er", FilePart(os.open(tmp_path / "out", os.O_RDONLY), position, count))
        outbox.add(b"small", b"frame")
        expected += b"header" + DATA[position : position + count] + b"smallframe"
    pipe, end = os.pipe()
    os.set_blocking(end, False)
    while outbox.waiting:
        try:
            outbox.send(end)
        except BlockingIOError:
            sent += os.read(pipe, 3000)
    os.close(end)
    while data := os.read(pipe, 1 << 16):
        sent += data
    assert sent == expected


def test_a_file_that_was_cut_off_ends_the_connection_and_adds_no_bytes(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"x" * 10)
    outbox = Outbox()
    outbox.add(FilePart(os.open(tmp_path / "out", os.O_RDONLY), 0, 20))
    pipe, end = os.pipe()
    outbox.send(end)
    with pytest.raises(OSError, match="cut off"):
        outbox.send(end)
    assert os.read(pipe, 100) == b"x" * 10


@pytest.mark.slow
async def test_long_output_is_exact_over_killed_bridges_and_hosts(engine: PlaceEngine) -> None:
    source = engine.workspace / "source"
    source.write_bytes(random.Random(6).randbytes(24_000_000))
    key = await engine.start(f"for i in 1 2 3; do cat {source}; done; exit 4")
    for kill in (engine.bridge_pids, engine.host_pids, engine.bridge_pids):
        before = len(engine.out(key))
        await until(lambda before=before: len(engine.out(key)) > before or "1.1" in _over(engine))  # type: ignore[misc]
        for pid in kill():
            os.kill(pid, signal.SIGKILL)
    await engine.settled(key)
    assert engine.out(key) == source.read_bytes() * 3


def _over(engine: PlaceEngine) -> list[str]:
    return [path.parent.name for path in engine.runs.glob("*/done")]


async def test_a_bridge_of_an_earlier_version_is_greeted_over_its_socket(engine: PlaceEngine) -> None:
    greeting = await _greeting(engine, [])
    assert b'"hello"' in greeting


async def test_the_host_process_writes_to_no_file_that_a_bridge_hands_over(engine: PlaceEngine, tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        greeting = await _greeting(engine, [file.fileno()])
    assert b'"hello"' in greeting and (tmp_path / "file").read_bytes() == b""


async def _greeting(engine: PlaceEngine, handed_over: list[int]) -> bytes:
    """Connect as a bridge, and return the beginning of what comes over the socket."""
    await engine.close()  # it would take the place back
    directory = os.open(engine.directory, os.O_RDONLY)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(f"/proc/self/fd/{directory}/host.sock")
        if handed_over:
            socket.send_fds(connection, [encoded({"do": "output", "id": 0})], handed_over)
        connection.setblocking(False)
        found = list[bytes]()

        def has_come() -> bool:
            try:
                found.append(connection.recv(1 << 16))
            except BlockingIOError:
                return False
            return True

        await until(has_come)
        return b"".join(found)
    finally:
        connection.close()
        os.close(directory)
