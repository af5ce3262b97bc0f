"""Codex with a model that writes scripts: the commands in them go through the hook one by one."""

import json

import pytest

from tests.clients.conversation import Played, play
from tests.clients.model.script import Call
from tests.clients.programs.codex import CodexInCodeMode
from tests.clients.scenes import Approved, DeniedFor, Edited, Scene
from tests.clients.stage import Stage
from whisper_tui.model.ending import Denied, Exited
from whisper_tui.model.state import Ended

PROGRAM = CodexInCodeMode()
pytestmark = pytest.mark.parametrize("program", [PROGRAM], indirect=True, ids=["codex"])

AS_IT_IS = Scene("echo approved | tee approved-ran", Approved())
ANOTHER = Scene("echo as asked | tee as-asked-ran", Edited("echo as edited"))
NO = Scene("touch denied-ran", DeniedFor("Use `make test`, not this."))
FIRST, SECOND = Scene("echo one | tee one-ran"), Scene("echo two | tee two-ran", DeniedFor("Not the second"))
"""In one script, at once."""


def ask_for(program: CodexInCodeMode, scene: Scene) -> Call:
    if scene is not FIRST:
        return program.shell(scene.command)
    commands = json.dumps([FIRST.command, SECOND.command])
    return program.script(
        f"const asked = {commands}.map((cmd) => tools.exec_command({{cmd, yield_time_ms: 30000}}));"
        "for (const each of await Promise.allSettled(asked)) "
        "text(each.status === 'fulfilled' ? each.value.output : 'refused: ' + each.reason);"
    )


def set_up(stage: Stage) -> None:
    stage.whisper_tui("install", "codex", "--yes", "--no-mcp")


@pytest.fixture(scope="session")
def played(program: CodexInCodeMode, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """A script for each scene; the last one has two commands."""
    directory = tmp_path_factory.mktemp("codex-code-mode")
    return play(program, (AS_IT_IS, ANOTHER, NO, FIRST), directory, ask_for=ask_for, set_up=set_up, also=(SECOND,))


def test_an_approved_command_of_a_script_runs_and_the_script_has_its_output(played):
    assert "approved" in played.answer(AS_IT_IS).result, played.written
    assert played.record(AS_IT_IS).state.ending == Exited(code=0)


def test_after_an_edit_the_script_gets_the_output_and_the_model_a_note(played):
    assert "as edited" in played.answer(ANOTHER).result
    assert "changed the command" in played.answer(ANOTHER).everything
    assert not (played.workspace / "as-asked-ran").exists()


def test_a_denied_command_ends_the_script_and_the_model_reads_the_reason(played):
    assert NO.human.reason in played.answer(NO).result
    state = played.record(NO).state
    assert isinstance(state, Ended) and isinstance(state.ending, Denied)
    assert not (played.workspace / "denied-ran").exists()


def test_commands_that_a_script_runs_at_once_are_decided_one_by_one(played):
    assert "one" in played.answer(FIRST).result
    assert "refused: " in played.answer(FIRST).result and "Not the second" in played.answer(FIRST).result
    assert (played.workspace / "one-ran").exists()
    assert not (played.workspace / "two-ran").exists()
