"""Rows are whole, in order, and none is lost that could be written later."""

import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import Struct

import pytest

from whisper_tui.supervisor.keeper.capture import RowFile, Timeline
from whisper_tui.system import run_files

ROW = Struct("<QQ")


def rows(*numbers: int) -> list[bytes]:
    return [ROW.pack(number, number) for number in numbers]


def read(path: Path) -> list[int]:
    return [first for first, _ in ROW.iter_unpack(path.read_bytes()[: path.stat().st_size // ROW.size * ROW.size])]


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """A disk on which no file can have more bytes."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


def test_there_is_no_file_without_a_row_and_then_one_for_this_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    file = RowFile(str(path), ROW)
    file.close()
    assert not path.exists()
    assert file.append(rows(1, 2)) == 2
    assert (read(path), stat.S_IMODE(path.stat().st_mode)) == ([1, 2], 0o600)
    file.close()


def test_a_partly_written_row_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    file = RowFile(str(path), ROW)
    with room_for(2 * ROW.size + 5):
        assert file.append(rows(1, 2, 3)) == 2
        assert file.append(rows(3)) == 0
    with room_for(2 * ROW.size), pytest.raises(OSError, match="large"):
        file.append(rows(3))
    assert file.count == 2
    assert file.append(rows(3, 4)) == 2
    assert read(path) == [1, 2, 3, 4]
    file.drop_last()
    file.append(rows(5))
    assert read(path) == [1, 2, 3, 5]
    file.close()


def test_a_time_index_is_written_again_only_with_new_bytes(tmp_path: Path) -> None:
    path = tmp_path / "idx"
    timeline = Timeline(str(path))
    assert not timeline.fresh
    timeline.note(0, 5)
    assert timeline.fresh
    with room_for(0):
        timeline.flush()
    assert not timeline.fresh
    timeline.note(0, 7)
    assert timeline.fresh
    timeline.flush()
    assert not timeline.fresh
    timeline.close()
    assert sum(size for _, _, size in run_files.INDEX_ROW.iter_unpack(path.read_bytes())) == 12
