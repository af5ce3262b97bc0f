"""The directories of an instance are found by everybody who needs them."""

import json
import os
import stat
import sys
from pathlib import Path

import platformdirs
import pytest

from whisper_tui.config import find_directories, write_pointer
from whisper_tui.model.errors import BadConfiguration
from whisper_tui.system.state_directory import Directories

linux_only = pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no variables that move these directories")


def below(root) -> Directories:
    return Directories(config=root / "config", state=root / "state", runtime=root / "run")


@pytest.fixture
def environ(tmp_path):
    return {"HOME": str(tmp_path / "user")}


@pytest.fixture
def moved(tmp_path, environ):
    return {**environ, "XDG_STATE_HOME": str(tmp_path / "states"), "XDG_CONFIG_HOME": str(tmp_path / "configs")}


def test_an_explicit_home_contains_everything_and_overrides_the_environment(tmp_path):
    assert find_directories(str(tmp_path), {"WHISPER_TUI_HOME": "/elsewhere"}) == below(tmp_path)


def test_the_environment_names_a_home(tmp_path):
    assert find_directories(None, {"WHISPER_TUI_HOME": str(tmp_path)}) == below(tmp_path)


def test_a_relative_home_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_directories("here", {}) == below(tmp_path / "here")


def test_an_empty_home_is_an_error_and_an_empty_variable_is_none(environ):
    with pytest.raises(BadConfiguration):
        find_directories("", environ)
    assert find_directories(None, {**environ, "WHISPER_TUI_HOME": ""}) == find_directories(None, environ)


@linux_only
@pytest.mark.parametrize("variables", [{}, {"XDG_STATE_HOME": "/s"}, {"XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s"}])
def test_without_a_choice_they_are_where_the_system_keeps_such_things(variables, environ, monkeypatch):
    environ = {**environ, **variables}
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    home = find_directories(None, environ)
    assert home.config == platformdirs.user_config_path("whisper_tui")
    assert home.state == platformdirs.user_state_path("whisper_tui")
    assert home.runtime == home.state / "run"


@linux_only
def test_a_program_that_was_not_given_the_variables_finds_the_moved_directories(environ, moved):
    home = find_directories(None, moved)
    write_pointer(home, moved)
    assert find_directories(None, environ) == home
    assert find_directories(None, {**environ, "PATH": "/bin"}) == home


@linux_only
def test_the_pointer_is_private_and_says_nothing_but_directories(tmp_path, moved):
    write_pointer(find_directories(None, moved), moved)
    pointer = tmp_path / "user" / ".local" / "state" / "whisper_tui" / "elsewhere"
    assert stat.S_IMODE(pointer.stat().st_mode) == 0o600
    assert set(json.loads(pointer.read_text())) == {"config", "state", "runtime"}


@linux_only
@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_pointer_that_others_can_change_is_not_followed(tmp_path, environ, moved, mode):
    write_pointer(find_directories(None, moved), moved)
    (tmp_path / "user" / ".local" / "state" / "whisper_tui" / "elsewhere").chmod(mode)
    assert find_directories(None, environ) != find_directories(None, moved)


@linux_only
def test_no_pointer_is_left_to_a_home_that_was_chosen(tmp_path, environ, moved):
    write_pointer(find_directories(str(tmp_path / "mine"), moved), moved)
    assert find_directories(None, environ).state == Path(environ["HOME"]) / ".local" / "state" / "whisper_tui"


@linux_only
def test_the_variables_win_over_a_pointer(tmp_path, environ, moved):
    write_pointer(find_directories(None, moved), moved)
    other = {**environ, "XDG_STATE_HOME": str(tmp_path / "other")}
    assert find_directories(None, other).state == tmp_path / "other" / "whisper_tui"


@linux_only
@pytest.mark.parametrize(
    "content",
    ["", "nonsense", "[]", "{}", '{"config": 1, "state": 2, "runtime": 3}', '{"config":"c","state":"s","runtime":"r"}'],
)
def test_a_pointer_that_says_nothing_usable_is_not_followed(content, environ, moved, tmp_path):
    write_pointer(find_directories(None, moved), moved)
    (tmp_path / "user" / ".local" / "state" / "whisper_tui" / "elsewhere").write_text(content)
    assert find_directories(None, environ).state == Path(environ["HOME"]) / ".local" / "state" / "whisper_tui"


@linux_only
def test_a_pointer_of_another_user_is_not_followed(tmp_path, environ, moved, monkeypatch):
    write_pointer(find_directories(None, moved), moved)
    if os.getuid() == 0:
        os.chown(tmp_path / "user" / ".local" / "state" / "whisper_tui" / "elsewhere", 4711, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 4711)
    assert find_directories(None, environ).state == Path(environ["HOME"]) / ".local" / "state" / "whisper_tui"
