"""Kilo, which takes OpenCode's plugin: its commands, edits, fetches and tools of other servers wait for the human."""

from pathlib import Path

import pytest

from tests.clients.conversation import Played, play
from tests.clients.install import missing
from tests.clients.model.script import Call
from tests.clients.programs import Program
from tests.clients.programs.kilo import Kilo
from tests.clients.scenes import ANOTHER, AS_IT_IS, FAILING, LATE, NO, Approved, DeniedFor, NotDecided, Rewritten, Scene
from tests.clients.stage import Stage
from tests.clients.test_edits import ASKED, FETCH, OLD, WANTED, edit, fetch, read
from tests.clients.test_one_question import add_server, keep
from tests.clients.test_through_hook import ask_for, set_up, set_up_impatient
from whisper_tui.model.ending import Denied, Exited
from whisper_tui.model.state import Ended

REASON = "No: “leave” this <file> & ask Ada."
EDIT = Scene("asked/asked.txt", Approved())
RESULT = Scene("result/asked.txt", Rewritten(WANTED))
EDIT_DENIED = Scene("denied/asked.txt", DeniedFor(REASON))
OUTSIDE = Scene("outside/asked.txt", Approved())
"""A new file. Kilo asks itself about files outside of the workspace, and without a terminal it denies what it asks."""
KEPT = Scene("kept", DeniedFor(REASON))
BACKGROUND = Scene("touch background-ran")
"""A tool of Kilo alone that starts commands."""
EDITS = (EDIT, RESULT, EDIT_DENIED, OUTSIDE)
SCENES = (AS_IT_IS, ANOTHER, NO, FAILING, *EDITS, FETCH, KEPT, BACKGROUND)


@pytest.fixture(scope="session", params=[Kilo()], ids=["kilo"])
def program(request: pytest.FixtureRequest) -> Program:
    """Kilo, if it is installed."""
    if request.param.name in missing():
        pytest.fail("kilo is not installed: python tests/clients/install.py installs it, or says why")
    chosen: Program = request.param
    return chosen


def path_of(workspace: Path, scene: Scene) -> Path:
    return (workspace.parent if scene is OUTSIDE else workspace) / scene.command


@pytest.fixture(scope="session")
def played(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """One conversation of all scenes; a file is read before it is edited."""
    directory = tmp_path_factory.mktemp("kilo")
    workspace = directory / "workspace"
    scenes = [Scene(f"read {scene.command}", NotDecided()) for scene in EDITS[:3]] + list(SCENES)
    paths = {f"read {scene.command}": path_of(workspace, scene) for scene in EDITS[:3]}

    def call_of(_: Program, scene: Scene) -> Call:
        if scene is OUTSIDE:
            return Call("write", {"filePath": str(path_of(workspace, scene)), "content": ASKED})
        if scene in EDITS:
            return edit(program, str(path_of(workspace, scene)))
        if scene is BACKGROUND:
            return Call("background_process", {"action": "start", "command": scene.command, "description": "a server"})
        if scene.command in paths:
            return read(program, str(paths[scene.command]))
        return fetch(program) if scene is FETCH else keep(program, scene) if scene is KEPT else ask_for(program, scene)

    def prepare(stage: Stage) -> None:
        for path in paths.values():
            path.parent.mkdir()
            path.write_text(OLD)
        path_of(workspace, OUTSIDE).parent.mkdir()
        rules = stage.home / "config" / "rules.toml"
        rules.write_text(rules.read_text() + '[[ask]]\nname = "as the tests want"\npath = "asked.txt"\n')
        add_server(stage)
        set_up(stage)

    return play(program, scenes, directory, ask_for=call_of, set_up=prepare)


@pytest.fixture(scope="session")
def impatient(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """The hook's deadline passes; the command is asked for again, and the human has agreed by then."""
    directory = tmp_path_factory.mktemp("kilo-impatient")
    return play(program, (LATE, LATE), directory, ask_for=ask_for, set_up=set_up_impatient)


def test_it_comes_to_its_end_under_its_own_name(program: Program, played: Played) -> None:
    # It has printed a question that the plugin answered, and counts that as a failure.
    assert played.exit_code == 1 and "auto-rejecting" in played.written, played.written
    client = played.session(AS_IT_IS).client
    assert client is not None and client.name == "kilo"


def test_approved_and_edited_commands_run_and_the_model_has_the_output(program: Program, played: Played) -> None:
    assert played.answer(AS_IT_IS).result == f"approved in {played.workspace}\n", played.written
    assert "as edited" in played.answer(ANOTHER).result and "changed the command" in played.answer(ANOTHER).everything
    assert not (played.workspace / "as-asked-ran").exists()
    assert sorted(played.answer(FAILING).result.split()) == ["before", "wrong"]
    state = played.record(FAILING).state
    assert isinstance(state, Ended) and state.ending == Exited(code=7)


@pytest.mark.parametrize("scene", [NO, EDIT_DENIED, FETCH, KEPT], ids=lambda scene: scene.command[:9])
def test_what_is_denied_is_not_done_and_the_model_reads_the_reason(
    program: Program, played: Played, scene: Scene
) -> None:
    assert isinstance(scene.human, DeniedFor) and scene.human.reason in played.answer(scene).everything
    state = played.record(scene).state
    assert isinstance(state, Ended) and isinstance(state.ending, Denied)
    assert not (played.workspace / "denied-ran").exists()
    assert path_of(played.workspace, EDIT_DENIED).read_text() == OLD


def test_a_tool_that_is_not_known_and_takes_a_command_is_refused(program: Program, played: Played) -> None:
    assert "may run a command" in played.answer(BACKGROUND).everything
    assert played.records[BACKGROUND] == [] and not (played.workspace / "background-ran").exists()


def test_edits_are_made_as_the_human_left_them_and_asked_once(program: Program, played: Played) -> None:
    assert path_of(played.workspace, EDIT).read_text() == ASKED, played.written
    assert path_of(played.workspace, OUTSIDE).read_text() == ASKED, played.answer(OUTSIDE).everything
    assert path_of(played.workspace, RESULT).read_text() == WANTED
    assert "The human changed the edit" in played.answer(RESULT).everything
    assert [len(played.records[scene]) for scene in EDITS] == [1] * 4


def test_a_late_decision_is_kept_for_the_same_call(program: Program, impatient: Played) -> None:
    assert "Not approved yet, and nothing ran" in impatient.answers[0].result, impatient.written
    assert impatient.answers[1].result == "it ran\n"
    assert (impatient.workspace / "late-ran").read_text() == "it ran\n"
