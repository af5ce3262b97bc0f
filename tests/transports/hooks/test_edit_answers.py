"""The files of an approved edit are compared once more before the agent is answered."""

import os
from pathlib import Path

import pytest

from whisper_tui.effects.edit_results import examine
from whisper_tui.model.call import DeleteFile, EditedFile, FileChange, FileEdits, WriteFile
from whisper_tui.transports.hook.edit_answers import StaleEdit, approved_contents


def approved(tmp_path: Path, *changes: FileChange) -> tuple[FileEdits, tuple[EditedFile, ...]]:
    """An edit with the facts about its files as they are now."""
    return FileEdits(tool="Write", changes=changes), examine(changes, [str(tmp_path)], str(tmp_path))


def test_files_that_are_as_they_were_are_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old\xff")
    edit, files = approved(
        tmp_path,
        WriteFile(path=f"{tmp_path}/a", content="x"),
        WriteFile(path=f"{tmp_path}/new", content="x"),
        DeleteFile(path=f"{tmp_path}/gone"),
    )
    assert approved_contents(edit, files) == {
        f"{tmp_path}/a": b"old\xff",
        f"{tmp_path}/new": None,
        f"{tmp_path}/gone": None,
    }


def changed(path: Path) -> None:
    path.write_text("changed")


def removed(path: Path) -> None:
    path.unlink()


def linked(path: Path) -> None:
    other = path.with_name("other")
    other.write_text("old")
    path.unlink()
    path.symlink_to(other)


def a_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("happen", [changed, removed, linked, a_fifo, a_directory])
def test_a_file_that_is_another_one_by_now_makes_the_approval_void(tmp_path: Path, happen: object) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    edit, files = approved(tmp_path, WriteFile(path=str(path), content="x"))
    assert callable(happen)
    happen(path)
    with pytest.raises(StaleEdit):
        approved_contents(edit, files)


def test_a_file_that_appears_makes_the_approval_of_a_new_one_void(tmp_path: Path) -> None:
    edit, files = approved(tmp_path, WriteFile(path=f"{tmp_path}/a", content="x"))
    (tmp_path / "a").write_text("here")
    with pytest.raises(StaleEdit, match="has changed since"):
        approved_contents(edit, files)


def test_an_edit_whose_files_nobody_has_looked_at_is_void(tmp_path: Path) -> None:
    with pytest.raises(StaleEdit):
        approved_contents(FileEdits(tool="Write", changes=(WriteFile(path=f"{tmp_path}/a", content=""),)), ())


def test_a_file_that_was_too_large_to_be_read_is_left_out(tmp_path: Path) -> None:
    file = EditedFile(action="changes", path=f"{tmp_path}/a", real=f"{tmp_path}/a", unread="it is too large")
    edit = FileEdits(tool="Write", changes=(WriteFile(path=f"{tmp_path}/a", content=""),))
    assert approved_contents(edit, (file,)) == {}
