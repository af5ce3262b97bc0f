"""A program with the Claude Agent SDK asks the supervisor, without a hook in the settings of Claude Code."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.conversation import Played, play
from tests.clients.install import directories
from tests.clients.model.script import Call
from tests.clients.programs import Program
from tests.clients.programs.claude import Claude
from tests.clients.scenes import ANOTHER, AS_IT_IS, LATE, NO, Approved, Scene
from tests.clients.stage import LAUNCHER, Stage
from whisper_tui.model.ending import Denied, Exited
from whisper_tui.model.state import Ended

pytest.importorskip("claude_agent_sdk", reason="pip install '.[claude-agent]'")
AGENT = Path(__file__).with_name("claude_agent_program.py")
WRITTEN = Scene("Makefile", Approved())
"""A file that may run code later, so a human is asked."""


class ClaudeInSdk(Claude):
    """Claude Code, started by the SDK in the process of a program."""

    home = ""

    def arguments(self, prompt: str) -> list[str]:
        claude = next(place / "claude" for place in directories() if (place / "claude").exists())
        return [sys.executable, str(AGENT), prompt, str(claude), self.home]


pytestmark = pytest.mark.parametrize("program", [ClaudeInSdk()], indirect=True, ids=["claude"])


def ask_for(program: Program, scene: Scene) -> Call:
    """The model writes a file, or calls the shell."""
    if scene is WRITTEN:
        return Call("Write", {"file_path": scene.command, "content": "all:\n\techo hello\n"})
    return program.shell(scene.command)


def set_up(stage: Stage) -> None:
    assert isinstance(stage.program, ClaudeInSdk)
    stage.program.home = str(stage.home)
    stage.variables = {"PYTHONPATH": str(AGENT.parent.parent.parent)}
    (stage.home / "config" / "rules.toml").write_text("read_only = false\n")


@pytest.fixture(scope="session")
def played(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Played:
    directory = tmp_path_factory.mktemp("claude-agent-sdk")
    return play(program, (AS_IT_IS, ANOTHER, NO, WRITTEN), directory, ask_for=ask_for, set_up=set_up)


def test_an_approved_command_runs_under_supervision_and_the_model_gets_its_output(program, played):
    assert program.shell_said(played.answer(AS_IT_IS).result) == f"approved in {played.workspace}"
    assert played.record(AS_IT_IS).state.ending == Exited(code=0)


def test_a_changed_command_runs_and_the_model_is_told(program, played):
    assert "as edited" in program.shell_said(played.answer(ANOTHER).result)
    assert "changed the command" in played.answer(ANOTHER).everything
    assert "as asked" not in played.answer(ANOTHER).everything


def test_a_denial_reaches_the_model_with_its_reason_and_nothing_ran(program, played):
    assert NO.human.reason in program.shell_said(played.answer(NO).result)
    state = played.record(NO).state
    assert isinstance(state, Ended) and isinstance(state.ending, Denied)
    assert not (played.workspace / "denied-ran").exists()


def test_an_approved_edit_is_made_and_is_undone_by_the_id_of_its_call(program, played):
    assert (played.workspace / "Makefile").read_text() == "all:\n\techo hello\n", played.written
    home = played.workspace.parent / "whisper"
    for words in (("restart",), ("revert", played.record(WRITTEN).id), ("stop",)):
        subprocess.run([LAUNCHER, *words, "--home", home], check=True, timeout=60, capture_output=True)
    assert not (played.workspace / "Makefile").exists()


def test_a_pending_call_keeps_the_agent_waiting_until_it_is_decided(program, tmp_path):
    """The user breaks the program off while its call waits: the call is marked, and did not run."""
    played = play(program, (LATE,), tmp_path, ask_for=ask_for, set_up=set_up, interrupt=True)
    assert played.record(LATE).attempt is None
    assert played.record(LATE).agent_gave_up is not None
