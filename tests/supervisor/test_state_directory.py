"""A supervisor works in private directories of its own user, and alone."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from whisper_tui.model.errors import AlreadyRunning, BadStateDirectory
from whisper_tui.system import state_directory
from whisper_tui.system.state_directory import LOCK, Directories, StateDirectoryLock, is_occupied, make_private, prepare


def test_directories_are_created_for_this_user_alone(tmp_path):
    home = Directories(config=tmp_path / "a" / "config", state=tmp_path / "a" / "state", runtime=tmp_path / "a" / "run")
    prepare(home)
    assert stat.S_IMODE((tmp_path / "a" / "state").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a" / "run").stat().st_mode) == 0o700
    assert not (tmp_path / "a" / "config").exists()


@pytest.mark.parametrize("mode", [0o777, 0o755, 0o710, 0o702])
def test_a_directory_that_is_open_to_others_is_refused_and_left_as_it_is(tmp_path, mode):
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(mode)
    with pytest.raises(BadStateDirectory, match="open to other users") as refused:
        make_private(state)
    assert f"chmod 700 {state}" in refused.value.hint
    assert stat.S_IMODE(state.stat().st_mode) == mode


def test_a_directory_of_another_user_is_refused(tmp_path, monkeypatch):
    make_private(tmp_path / "state")
    owner = os.geteuid()
    monkeypatch.setattr(state_directory.os, "geteuid", lambda: owner + 1)
    with pytest.raises(BadStateDirectory, match=f"another user \\(uid {owner}\\)"):
        make_private(tmp_path / "state")


def test_a_path_that_is_no_directory_is_refused(tmp_path):
    (tmp_path / "state").write_text("precious")
    with pytest.raises(BadStateDirectory, match="not a directory"):
        make_private(tmp_path / "state")
    with pytest.raises(BadStateDirectory, match="cannot be created"):
        make_private(tmp_path / "state" / "below")


def test_the_second_supervisor_is_told_who_has_the_directory(tmp_path):
    with StateDirectoryLock(tmp_path):
        assert is_occupied(tmp_path)
        with pytest.raises(AlreadyRunning, match=f"pid {os.getpid()}"):
            StateDirectoryLock(tmp_path)
    assert not is_occupied(tmp_path)
    StateDirectoryLock(tmp_path).release()


def test_the_hold_ends_with_its_process_and_children_do_not_keep_it(tmp_path):
    script = (
        "import os, pathlib, subprocess, sys\n"
        "from whisper_tui.system.state_directory import StateDirectoryLock\n"
        "held = StateDirectoryLock(pathlib.Path(sys.argv[1]))\n"
        "child = subprocess.Popen(['sleep', '300'], close_fds=False)\n"
        "print(child.pid, flush=True)\n"
        "sys.stdin.read()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    child = int(holder.stdout.readline())
    try:
        with pytest.raises(AlreadyRunning, match=f"pid {holder.pid}"):
            StateDirectoryLock(tmp_path)
        holder.stdin.close()
        holder.wait(60)
        assert os.kill(child, 0) is None
        StateDirectoryLock(tmp_path).release()
    finally:
        os.kill(child, 9)
        holder.stdout.close()


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "target").write_text("precious")
    (tmp_path / LOCK).symlink_to(tmp_path / "target")
    with pytest.raises(BadStateDirectory):
        StateDirectoryLock(tmp_path)
    assert (tmp_path / "target").read_text() == "precious"


def test_nobody_else_can_write_above_a_new_directory_whatever_the_umask(tmp_path: Path) -> None:
    earlier = os.umask(0)
    try:
        prepare(Directories(tmp_path / "new/home/config", tmp_path / "new/home/state", tmp_path / "new/home/run"))
    finally:
        os.umask(earlier)
    modes = {each.name: each.stat().st_mode & 0o777 for each in tmp_path.rglob("*")}
    assert modes == {"new": 0o755, "home": 0o755, "state": 0o700, "run": 0o700}
