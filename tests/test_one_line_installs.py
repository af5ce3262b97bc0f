"""Each line by which people install or try this program, with uv and pipx themselves and the package index.

It fetches from the index, so it runs only with TEST_INSTALLS: `make test-installs`.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packages import ROOT
from tests.test_packaging import sdist, wheel

__all__ = ["sdist", "wheel"]
pytestmark = pytest.mark.skipif("TEST_INSTALLS" not in os.environ, reason="it needs the package index: TEST_INSTALLS=1")
UV = Path(sys.executable).with_name("uv")
UVX = (UV, "tool", "run")
PIPX = (*UVX, "pipx")
SOURCES = ("checkout", "sdist", "wheel")


@pytest.fixture
def source(request: pytest.FixtureRequest) -> Path:
    """What is installed."""
    return ROOT if request.param == "checkout" else request.getfixturevalue(request.param)


def run(home: Path, *words: object) -> "subprocess.CompletedProcess[str]":
    """Run it as somebody whose home has nothing yet."""
    home.mkdir(exist_ok=True)
    said = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "PIPX_", "VIRTUAL_ENV"))}
    environment = {**said, "HOME": str(home), "PIPX_DEFAULT_PYTHON": sys.executable}
    command = [str(word) for word in words]
    return subprocess.run(
        command, cwd=home, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("source", SOURCES, indirect=True)
@pytest.mark.parametrize("tool", [(UV, "tool"), PIPX], ids=["uv", "pipx"])
def test_an_installation_by_one_line_connects_a_client(tool: tuple[object, ...], source: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    installed = run(home, *tool, "install", source)
    assert installed.returncode == 0, installed.stderr
    whisper_tui = home / ".local" / "bin" / "whisper-tui"
    demo = run(home, whisper_tui, "demo")
    assert "Everything happened as the story says" in demo.stdout, demo.stderr
    connected = run(home, whisper_tui, "install", "claude", "--yes")
    assert connected.returncode == 0, connected.stderr
    settings = json.loads((home / ".claude" / "settings.json").read_text())
    program = shlex.split(settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"])[:3]
    assert Path(program[0]).is_relative_to(home / ".local" / "share")
    # What was fetched may be thrown away, and the program may be installed again.
    assert run(home, UV, "cache", "clean").returncode == 0
    assert run(home, *program, "--version").stdout.startswith("whisper-tui ")
    assert run(home, *tool, "install", "--force", source).returncode == 0
    assert run(home, *program, "--version").stdout.startswith("whisper-tui ")


@pytest.mark.parametrize("source", SOURCES, indirect=True)
@pytest.mark.parametrize("tool", [(*UVX, "--from"), (*PIPX, "run", "--spec")], ids=["uvx", "pipx"])
def test_one_line_shows_the_demo_and_says_how_to_install(
    tool: tuple[object, ...], source: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    demo = run(home, *tool, source, "whisper-tui", "demo")
    assert "Everything happened as the story says" in demo.stdout, demo.stderr
    refused = run(home, *tool, source, "whisper-tui", "install", "claude", "--yes")
    assert refused.returncode == 2
    assert f"uv tool install {source}   or: pipx install {source}" in refused.stderr
    assert not (home / ".claude").exists()
