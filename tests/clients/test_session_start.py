"""The model of each real client is told once, at the start, that a human decides about its commands."""

import json
import re
from pathlib import Path

import pytest

from tests.clients.conversation import LONGEST_S, PROMPT
from tests.clients.install import missing
from tests.clients.model.script import Say
from tests.clients.model.server import ScriptedModel
from tests.clients.programs import Program
from tests.clients.programs.claude import Claude
from tests.clients.programs.codex import Codex
from tests.clients.programs.copilot import Copilot
from tests.clients.programs.gemini import Gemini
from tests.clients.programs.kimi import KimiWithPrompt
from tests.clients.programs.opencode import OpenCode
from tests.clients.programs.qwen import Qwen
from tests.clients.stage import Stage
from whisper_tui.agents.model_instructions import OWN_SHELL_INSTRUCTIONS

TOLD = OWN_SHELL_INSTRUCTIONS[:60]
"""The beginning of what the model is told."""


ALL = (Claude(), Codex(), Gemini(), Qwen(), OpenCode(), Copilot(), KimiWithPrompt())


@pytest.fixture(scope="session", params=ALL, ids=lambda program: program.name)
def program(request: pytest.FixtureRequest) -> Program:
    """Each client whose model can be told something at the start of a session."""
    chosen: Program = request.param
    if chosen.name in missing():
        pytest.fail(f"{chosen.name} is not installed: python tests/clients/install.py installs it, or says why")
    return chosen


def told(program: Program, tmp_path, *options: str) -> int:
    """Install with these options, say one thing to the model, and count how often it reads it."""
    with ScriptedModel(program.dialect, [Say("Hello.")]) as model:
        stage = Stage(tmp_path, program, model.url)
        before = {path: path.read_bytes() for path in stage.user_home.rglob("*") if path.is_file()}
        stage.whisper_tui("install", program.name, "--yes", *options)
        try:
            client = stage.start_client(PROMPT)
            client.wait(timeout=LONGEST_S)
        finally:
            client.kill()
            client.wait()
            stage.stop()
        assert model.requests, stage.written()
        text = json.dumps(model.requests[0])
        # `uninstall` leaves what the client wrote itself.
        stage.whisper_tui("uninstall", program.name, "--yes")
        for path, content in before.items():
            assert b"whisper" not in content and b"whisper" not in path.read_bytes()
    return text.count(TOLD)


def offered(program: Program, directory: Path, *options: str) -> set[str]:
    """Install with these options, and return which of three tools the client offers to its model."""
    with ScriptedModel(program.dialect, [Say("Hello.")]) as model:
        stage = Stage(directory, program, model.url)
        stage.whisper_tui("install", program.name, "--yes", *options)
        client = stage.start_client(PROMPT)
        try:
            client.wait(timeout=LONGEST_S)
        finally:
            client.kill()
            client.wait()
            stage.stop()
        names = set(
            re.findall(
                r'(?:"name": "|whisper[-_]+)(read_file|ExecCommand|execute_command)\b', json.dumps(model.requests[0])
            )
        )
    return names


def test_without_our_tools_a_hook_tells_the_model_once(program, tmp_path):
    assert told(program, tmp_path, "--no-mcp") == 1


def test_with_our_tools_the_model_is_told_once(program, tmp_path):
    assert told(program, tmp_path) == 1


def test_beside_the_supervised_shell_no_tools_of_ours_are_offered(program, tmp_path):
    own = offered(program, tmp_path / "none", "--no-mcp")
    assert own <= {"read_file"}, "of the client itself"
    assert offered(program, tmp_path / "both") == own
    assert offered(program, tmp_path / "alone", "--no-hook") == {"read_file", "ExecCommand", "execute_command"}
