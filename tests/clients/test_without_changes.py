"""Qwen Code and Kimi Code: their calls are approved or denied, never changed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.conversation import Played, play
from tests.clients.install import missing
from tests.clients.model.script import Call
from tests.clients.programs import Program
from tests.clients.programs.kimi import KimiWithPrompt
from tests.clients.programs.qwen import Qwen
from tests.clients.scenes import Approved, DeniedFor, Edited, NotDecided, Scene
from tests.clients.stage import Stage
from tests.clients.test_edits import FETCH as REFUSED_FETCH
from tests.clients.test_edits import edit, fetch, read
from tests.clients.test_one_question import add_server, keep
from whisper_tui.model.ending import Denied, HandedOver
from whisper_tui.model.state import Ended

REASON = "No: “leave” this <file> & ask Ada."
OLD = "all:\n\techo hello\n"
ASKED = OLD.replace("hello", "goodbye")

RUN = Scene("echo approved > run-ran; pwd -P", Approved())
FAILING = Scene("touch failing-ran; exit 7", Approved())
NO = Scene("touch denied-ran", DeniedFor(REASON))
CHANGED = Scene("touch as-asked-ran", Edited("touch as-edited-ran"))
"""The change is refused, so nobody decides."""
UNHEARD = Scene("touch unheard-ran", NotDecided())
EDIT = Scene("asked/asked.txt", Approved())
EDIT_DENIED = Scene("denied/asked.txt", DeniedFor(REASON))
FETCH = Scene(REFUSED_FETCH.command, DeniedFor(REASON))
KEPT = Scene("kept", DeniedFor(REASON))
"""A tool of another server."""


@pytest.fixture(scope="session", params=[Qwen(), KimiWithPrompt()], ids=["qwen", "kimi"])
def program(request: pytest.FixtureRequest) -> Program:
    """Each of them, if it is installed."""
    chosen: Program = request.param
    if chosen.name in missing():
        pytest.fail(f"{chosen.name} is not installed: python tests/clients/install.py installs it, or says why")
    return chosen


def call_of(workspace: Path, program: Program, scene: Scene) -> Call:
    if scene is FETCH:
        return fetch(program)
    if scene is KEPT:
        return keep(program, scene)
    if scene.command.startswith("read "):
        return read(program, str(workspace / scene.command.removeprefix("read ")))
    return (
        edit(program, str(workspace / scene.command)) if scene in {EDIT, EDIT_DENIED} else program.shell(scene.command)
    )


def set_up(stage: Stage) -> None:
    for scene in (EDIT, EDIT_DENIED):
        path = stage.workspace / scene.command
        path.parent.mkdir()
        path.write_text(OLD)
    rules = stage.home / "config" / "rules.toml"
    rules.write_text(rules.read_text() + '[[ask]]\nname = "as the tests want"\npath = "asked.txt"\n')
    stage.whisper_tui("install", stage.program.name, "--yes", "--no-mcp")


def with_server(stage: Stage) -> None:
    add_server(stage)
    set_up(stage)


@pytest.fixture(scope="session")
def played(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Played:
    directory = tmp_path_factory.mktemp(f"{program.name}-hook")
    read = [Scene(f"read {scene.command}", NotDecided()) for scene in (EDIT, EDIT_DENIED)]
    scenes = [RUN, FAILING, NO, *read, EDIT, EDIT_DENIED, FETCH, KEPT]

    def ask_for(chosen: Program, scene: Scene) -> Call:
        return call_of(directory / "workspace", chosen, scene)

    return play(program, scenes, directory, ask_for=ask_for, set_up=with_server)


@pytest.fixture(scope="session")
def impatient(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """The human tries to change one command, says nothing about another, and the hook's deadline passes."""

    def soon(stage: Stage) -> None:
        set_up(stage)
        stage.change_settings(r"(--deadline )\d+", r"\g<1>3")

    directory = tmp_path_factory.mktemp(f"{program.name}-impatient")
    ask_for = lambda chosen, scene: chosen.shell(scene.command)  # noqa: E731
    yield play(program, (CHANGED, UNHEARD), directory, ask_for=ask_for, set_up=soon)


def test_an_approved_command_is_run_by_the_agent_in_the_workspace(program: Program, played: Played) -> None:
    assert (played.workspace / "run-ran").read_text() == "approved\n", played.written
    said = program.shell_said(played.answer(RUN).result)
    assert said == program.shell_shows(f"{played.workspace}\n", 0)
    state = played.record(RUN).state
    assert isinstance(state, Ended) and isinstance(state.ending, HandedOver)
    assert "exit code: 7" in program.shell_said(played.answer(FAILING).result).lower()


@pytest.mark.parametrize("scene", [NO, EDIT_DENIED, FETCH, KEPT], ids=["command", "edit", "fetch", "server"])
def test_a_denied_call_is_not_made_and_the_model_reads_the_reason(
    program: Program, played: Played, scene: Scene
) -> None:
    assert REASON in played.answer(scene).everything
    state = played.record(scene).state
    assert isinstance(state, Ended) and isinstance(state.ending, Denied)
    assert not (played.workspace / "denied-ran").exists()
    assert (played.workspace / EDIT_DENIED.command).read_text() == OLD


def test_an_approved_edit_is_made_as_it_was_asked(program: Program, played: Played) -> None:
    assert (played.workspace / EDIT.command).read_text() == ASKED, played.answer(EDIT).everything


@pytest.mark.parametrize("scene", [CHANGED, UNHEARD], ids=["changed", "unheard"])
def test_what_was_changed_or_not_decided_in_time_does_not_run(
    program: Program, impatient: Played, scene: Scene
) -> None:
    assert "Not approved yet, and nothing ran" in impatient.answer(scene).everything
    assert not list(impatient.workspace.glob("*-ran"))
    assert "takes no change of a call" in impatient.written or scene is UNHEARD
