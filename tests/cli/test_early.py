"""`hook` and `exec` are started with every command: they import little, and find what the others find."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rows import each_row
from whisper_tui.cli import main
from whisper_tui.cli.commands.agent_entry import launcher
from whisper_tui.config import find_directories
from whisper_tui.wire.light_client import quick_runtime

LATE = {"socket", "pathlib", "asyncio", "dataclasses", "pydantic", "subprocess", "whisper_tui.wire.rendezvous"}

SHOWS_IMPORTS = """
import sys
from whisper_tui.cli import main
code = main(["hook", "claude", "--home", sys.argv[1]])
sys.stderr.write(" ".join(sys.modules))
"""


@pytest.mark.slow
def test_a_hook_imports_next_to_nothing(instance):
    assert instance.run("restart").returncode == 0
    content = {
        "session_id": "s",
        "cwd": str(instance.workspace),
        "tool_name": "Bash",
        "tool_input": {"command": "touch whisper-tui-canary-0123456789"},
    }
    words = [sys.executable, "-c", SHOWS_IMPORTS, str(instance.root)]
    ran = subprocess.run(words, input=json.dumps(content), capture_output=True, check=True, text=True, timeout=90)
    assert "the gate is live" in ran.stdout
    bare = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"],
        capture_output=True,
        check=True,
        text=True,
        timeout=90,
    )
    assert set(ran.stderr.split()) & LATE <= set(bare.stdout.split())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"WHISPER_TUI_HOME": "/somewhere/else"},
        {"WHISPER_TUI_HOME": "relative"},
        {"XDG_STATE_HOME": "/var/state"},
        {"XDG_STATE_HOME": "relative"},
        {"XDG_CONFIG_HOME": "/etc/mine"},
        {"HOME": ""},
        {"WHISPER_TUI_HOME": ""},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "chosen", [[], ["--home", "/opt/w"], ["--home", ""], ["--directories", "/a", "/b", "/c"]], ids=str
)
@pytest.mark.parametrize("pointed", [False, True], ids=["usual", "pointed elsewhere"])
def test_the_quick_way_finds_the_directory_that_the_long_way_finds(changes, chosen, pointed, tmp_path):
    environ = {"HOME": str(tmp_path), **changes}
    if pointed:
        usual = tmp_path / ".local/state/whisper_tui"
        usual.mkdir(parents=True)
        elsewhere = {name: str(tmp_path / "else" / name) for name in ("config", "state", "runtime")}
        (usual / "elsewhere").write_text(json.dumps(elsewhere))
    quick = quick_runtime(chosen, environ)
    if len(chosen) == 4:
        assert quick == "/c"
    elif chosen == ["--home", ""]:
        assert quick is None
    elif quick is not None or (environ["HOME"] and sys.platform != "darwin"):
        assert quick == str(find_directories(chosen[1] if chosen else None, environ).runtime)


@each_row(
    "words",
    [
        ["hook"],
        ["hook", "nobody"],
        ["hook", "claude", "codex"],
        ["hook", "claude", "--deadline", "soon"],
        ["hook", "claude", "--deadline", "-1"],
        ["hook", "claude", "--deadline"],
        ["hook", "claude", "--home"],
        ["exec"],
        ["exec", "1-a", "--deadline", "5"],
        ["exec", "1-a", "--agent-runs"],
    ],
    ids=" ".join,
)
def test_words_that_are_not_understood_let_no_command_run(words):
    """A hook's exit code 2 refuses; a shell takes 126 for a command that could not be run."""
    asked = subprocess.run(
        [sys.executable, "-m", "whisper_tui", *words], capture_output=True, check=False, text=True, timeout=90
    )
    assert asked.returncode == {"hook": 2, "exec": 126}[words[0]]
    assert "error: " in asked.stderr and not asked.stdout


@pytest.mark.parametrize(("verb", "code"), [("hook", 2), ("exec", 126)])
def test_a_defect_of_this_program_lets_no_command_run(verb, code, monkeypatch, capfd):
    def broken(*_):
        raise ZeroDivisionError("of this program")

    monkeypatch.setattr("whisper_tui.cli.commands.agent_entry.home_options", broken)
    assert main([verb, "claude"]) == code
    assert "he command was not run" in capfd.readouterr().err


@pytest.mark.parametrize(("verb", "code"), [("hook", 2), ("exec", 126)])
def test_an_installation_that_cannot_be_loaded_lets_no_command_run(verb, code, monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "whisper_tui.cli.dispatch", None)
    assert main([verb, "claude"]) == code
    assert "he command was not run" in capfd.readouterr().err


def test_the_launcher_is_found_again_from_anywhere(monkeypatch, tmp_path):
    script = tmp_path / "whisper-tui"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(script), "hook"])
    assert launcher() == [str(script)]
    monkeypatch.setattr(sys, "argv", [str(Path(os.sep, "lib", "whisper_tui", "__main__.py")), "hook"])
    assert launcher() == [sys.executable, "-m", "whisper_tui"]
