"""The files of runs: a tree is removed whole and a file is read, whatever a command has left there."""

import os
from pathlib import Path

import pytest

from whisper_tui.system.run_files import read_json, remove_tree


def test_directories_without_permissions_are_removed(tmp_path: Path) -> None:
    top, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    for inside in ("closed/in/deep", "read-only/x", "kept"):
        (top / inside).mkdir(parents=True)
        (top / inside / "file").touch()
    elsewhere.mkdir(mode=0o500)
    (top / "closed" / "link").symlink_to(elsewhere)
    for inside, mode in (("closed/in", 0), ("closed", 0), ("read-only/x", 0o500), ("", 0o300)):
        (top / inside).chmod(mode)
    remove_tree(str(top))
    assert not top.exists()
    assert elsewhere.stat().st_mode & 0o777 == 0o500


def test_a_link_to_a_tree_is_removed_alone_and_one_that_is_gone_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "real" / "kept").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    remove_tree(str(tmp_path / "none"))
    remove_tree(str(tmp_path / "link"))
    assert (tmp_path / "real" / "kept").is_dir() and not (tmp_path / "link").is_symlink()


def test_a_pipe_in_the_place_of_a_file_is_a_broken_one_and_nobody_waits_for_its_writer(tmp_path: Path) -> None:
    path = str(tmp_path / "exit")
    os.mkfifo(path)
    with pytest.raises(ValueError):
        read_json(path)
    writer = os.open(path, os.O_RDWR)
    try:
        with pytest.raises(ValueError, match="is a pipe"):
            read_json(path)
    finally:
        os.close(writer)
