"""What a command has written is stored when its end is reported, however busy the machine is."""

import os
import pty
import select
import threading
import tty
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from whisper_tui.supervisor.keeper.capture import Capture

SIZE = 40_000
NO_TIME = 0.0
"""Seconds that are left on a machine that is so busy that all of them are over at once."""


@pytest.fixture
def capture(tmp_path: Path) -> Iterator[Capture]:
    made = Capture(str(tmp_path), {"max_bytes": None, "min_free": 0}, select.poll())
    yield made
    made.close()


def test_all_that_a_pipe_holds_is_stored_even_if_no_time_is_left(capture: Capture, tmp_path: Path) -> None:
    source, target = os.pipe()
    capture.add(source, 1)
    assert os.write(target, b"x" * SIZE) == SIZE
    capture.drain(NO_TIME)
    assert capture.totals == (0, SIZE)
    os.close(target)
    capture.drain(NO_TIME)
    assert capture.at_end
    assert (tmp_path / "err").read_bytes() == b"x" * SIZE


def test_all_that_a_terminal_holds_is_stored_even_if_no_time_is_left(capture: Capture) -> None:
    source, target = pty.openpty()
    tty.setraw(target)
    capture.add(source, 0, is_terminal=True)
    assert os.write(target, b"x" * 2000) == 2000
    os.close(target)
    capture.drain(NO_TIME)
    assert capture.totals == (2000, 0)


def test_a_process_that_goes_on_writing_does_not_keep_the_end_from_being_reported(capture: Capture) -> None:
    source, target = os.pipe()
    capture.add(source, 0)

    def write() -> None:
        with suppress(OSError):
            while True:
                os.write(target, b"x" * 65_536)

    writer = threading.Thread(target=write)
    writer.start()
    capture.drain(NO_TIME)
    assert capture.totals[0] < 4 << 20
    capture.close_sources()
    writer.join()
    os.close(target)
