"""GitHub Copilot CLI alone: patches as its models of OpenAI write them, and its own questions."""

from pathlib import Path

import pytest

from tests.clients.conversation import Played, play
from tests.clients.install import missing
from tests.clients.model.chat import FREE_FORM
from tests.clients.model.script import Call
from tests.clients.programs import Program
from tests.clients.programs.copilot import Copilot, CopilotWithPatches
from tests.clients.scenes import Approved, DeniedFor, Rewritten, Scene
from tests.clients.stage import Stage
from whisper_tui.model.ending import Denied
from whisper_tui.model.state import Ended

OLD = "all:\n\techo hello\n\techo twice\n"
ASKED = OLD.replace("hello", "goodbye")
WANTED = "# by the human\n" + OLD.replace("hello", "bye")
REASON = "No: “leave” this <file> & ask Ada."

AS_ASKED = Scene("asked/asked.txt", Approved())
NO = Scene("denied/asked.txt", DeniedFor(REASON))
RESULT = Scene("result/asked.txt", Rewritten(WANTED))
THROUGH = Scene("echo held | tee held-ran", Approved())


class Asking(Copilot):
    """Nothing is allowed by an option: what Copilot would ask about itself, it denies without a terminal."""

    def arguments(self, prompt: str) -> list[str]:
        """The same without the option."""
        return [each for each in super().arguments(prompt) if not each.startswith("--allow-tool")]


@pytest.fixture(scope="session", params=[CopilotWithPatches()], ids=["copilot"])
def program(request: pytest.FixtureRequest) -> Program:
    """Copilot with such a model."""
    if "copilot" in missing():
        pytest.fail("copilot is not installed: python tests/clients/install.py installs it, or says why")
    chosen: Program = request.param
    return chosen


def patch(_: Program, scene: Scene) -> Call:
    """The model replaces one word of a file, which it names as it stands in the workspace."""
    lines = (f"*** Update File: {scene.command}", "@@", " all:", "-\techo hello", "+\techo goodbye")
    return Call("apply_patch", {"input": "\n".join(("*** Begin Patch", *lines, "*** End Patch"))}, FREE_FORM)


def set_up(stage: Stage) -> None:
    for scene in (AS_ASKED, NO, RESULT):
        path = stage.workspace / scene.command
        path.parent.mkdir()
        path.write_text(OLD)
    rules = stage.home / "config" / "rules.toml"
    rules.write_text(rules.read_text() + '[[ask]]\nname = "as the tests want"\npath = "asked.txt"\n')
    stage.whisper_tui("install", "copilot", "--yes", "--no-mcp")


@pytest.fixture(scope="session")
def edited(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """A patch of every file, one after the other."""
    directory = tmp_path_factory.mktemp("copilot-patches")
    return play(program, (AS_ASKED, NO, RESULT), directory, ask_for=patch, set_up=set_up)


def test_an_approved_patch_is_applied_as_it_was_asked(edited: Played) -> None:
    assert (edited.workspace / AS_ASKED.command).read_text() == ASKED, edited.answer(AS_ASKED).everything


def test_a_denied_patch_is_not_applied_and_the_model_reads_the_reason(edited: Played) -> None:
    assert (edited.workspace / NO.command).read_text() == OLD
    assert REASON in edited.answer(NO).everything
    state = edited.record(NO).state
    assert isinstance(state, Ended) and isinstance(state.ending, Denied)


def test_the_result_of_the_human_is_what_the_file_holds_and_the_model_is_told(edited: Played) -> None:
    assert (edited.workspace / RESULT.command).read_text() == WANTED, edited.answer(RESULT).everything
    assert "The human changed the edit" in edited.answer(RESULT).everything


def call_of_our_tool(directory: Path, *options: str) -> Played:
    def ask_for(chosen: Program, scene: Scene) -> Call:
        return chosen.mcp("run_shell_command", {"command": scene.command, "description": "Do as the script says"})

    def install(stage: Stage) -> None:
        stage.whisper_tui("install", "copilot", "--yes", *options)
        if not options:
            stage.change_settings(r',\s*"--own-shell"', "")

    return play(Asking(), [THROUGH], directory, ask_for=ask_for, set_up=install)


@pytest.mark.parametrize("program", [Asking()], ids=["copilot"])
def test_the_hook_answers_for_our_own_tools_which_ask_themselves(program: Program, tmp_path: Path) -> None:
    played = call_of_our_tool(tmp_path)
    assert (played.workspace / "held-ran").exists(), played.answer(THROUGH).everything
    assert [call.call.tool for call in played.calls] == ["run_shell_command"], "one question"


@pytest.mark.parametrize("program", [Asking()], ids=["copilot"])
def test_without_the_hook_copilot_asks_about_our_tools_itself(program: Program, tmp_path: Path) -> None:
    played = call_of_our_tool(tmp_path, "--no-hook")
    assert "Permission denied" in played.answer(THROUGH).everything
    assert played.calls == []
