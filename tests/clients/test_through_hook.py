"""Each real client's own shell tool goes through the hook and `exec`: the human decides, and its model is told."""

import re
from pathlib import Path

import pytest

from tests.clients.conversation import Played, play
from tests.clients.model.script import Call
from tests.clients.programs import Program
from tests.clients.scenes import (
    ALL,
    ANOTHER,
    AS_IT_IS,
    FAILING,
    GOING,
    GONE,
    KILLED,
    LATE,
    LEAVING,
    LONG,
    NO,
    UNHEARD,
    Scene,
)
from tests.clients.stage import Stage
from whisper_tui.model.ending import Denied, Exited, Signalled
from whisper_tui.model.state import Ended, Waiting

SHORT_S = 3
"""Seconds that an impatient hook waits for the human."""

SAVED = re.compile(r"(?:[Ss]aved to|full output see): (\S+)")
"""How clients name the file that holds what is too long for the model."""


def ask_for(program: Program, scene: Scene) -> Call:
    """The model calls the client's own shell tool."""
    return program.shell(scene.command)


def set_up(stage: Stage) -> None:
    """The client's shell tool is caught, and whisper_tui's tools are not offered."""
    stage.whisper_tui("install", stage.program.name, "--yes", "--no-mcp")


def set_up_impatient(stage: Stage) -> None:
    """The same with a hook that has to answer soon."""
    set_up(stage)
    stage.change_settings(r'(--deadline(?: |", "))86100', rf"\g<1>{SHORT_S}")
    stage.options = stage.program.untrusted_too


@pytest.fixture(scope="session")
def played(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """A conversation of every scene, one after the other, in one run of the client."""
    return play(program, ALL, tmp_path_factory.mktemp(f"{program.name}-hook"), ask_for=ask_for, set_up=set_up)


@pytest.fixture(scope="session")
def impatient(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """The hook's deadline passes twice; the first command is asked for again, and the human has agreed by then."""
    directory = tmp_path_factory.mktemp(f"{program.name}-hook-impatient")
    return play(program, (LATE, LATE, UNHEARD), directory, ask_for=ask_for, set_up=set_up_impatient)


@pytest.fixture(scope="session")
def going(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """One command changes the directory, and the next one asks where it is."""
    return play(
        program, (GOING, GONE), tmp_path_factory.mktemp(f"{program.name}-going"), ask_for=ask_for, set_up=set_up
    )


@pytest.fixture(scope="session")
def interrupted(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """A conversation that the user breaks off while the human at the cockpit has not decided yet."""
    directory = tmp_path_factory.mktemp(f"{program.name}-hook-interrupted")
    return play(program, (UNHEARD,), directory, ask_for=ask_for, set_up=set_up, interrupt=True)


def test_the_client_comes_to_its_end_and_its_name_is_in_the_queue(program, played):
    assert played.exit_code == 0, played.written
    client = played.session(AS_IT_IS).client
    assert client is not None
    assert program.name in client.name


def test_an_approved_command_runs_in_the_workspace_and_its_output_is_the_tools_own(program, played):
    shown = program.shell_shows(f"approved in {played.workspace}\n", 0)
    assert program.shell_said(played.answer(AS_IT_IS).result) == shown
    assert played.record(AS_IT_IS).state.ending == Exited(code=0)
    assert played.record(AS_IT_IS).call.spec.cwd == str(played.workspace)


def test_after_an_edit_the_model_sees_the_output_and_a_note(program, played):
    answer = played.answer(ANOTHER)
    assert "as edited" in program.shell_said(answer.result)
    assert "changed the command" in answer.everything
    assert "echo as edited" in answer.everything
    assert "as asked" not in answer.everything
    assert played.record(ANOTHER).edited


def test_the_reason_of_a_denial_reaches_the_model_verbatim_and_nothing_ran(program, played):
    assert NO.human.reason in program.shell_said(played.answer(NO).result)
    state = played.record(NO).state
    assert isinstance(state, Ended) and isinstance(state.ending, Denied) and state.attempt is None
    assert not (played.workspace / "denied-ran").exists()


def test_an_exit_code_and_what_was_written_to_standard_error_are_shown_as_the_client_shows_them(program, played):
    said = program.shell_said(played.answer(FAILING).result)
    assert said in {program.shell_shows(output, 7) for output in ("before\nwrong\n", "wrong\nbefore\n")}
    assert played.record(FAILING).state.ending == Exited(code=7)


def test_a_command_that_the_human_ended_by_a_signal_ends_for_the_client_too(program, played):
    said = program.shell_said(played.answer(KILLED).result)
    assert "begun" in said
    assert played.record(KILLED).state.ending == Signalled(number=15, by_us=True)


def test_a_background_process_does_not_hold_the_client_up_and_stays_under_supervision(program, played):
    said = program.shell_said(played.answer(LEAVING).result)
    assert said == program.shell_shows("left one behind\n", 0)
    (left,) = played.record(LEAVING).background
    assert left.command == "tail -f /dev/null"


def test_the_client_gets_every_byte_of_a_hundred_kilobytes(program, played):
    numbers = "".join(f"{number}\n" for number in range(1, 20_001))
    state = played.record(LONG).state
    assert isinstance(state, Ended)
    assert state.output.out == len(numbers)
    said = played.answer(LONG).result
    if program.name == "copilot":
        assert "1\n2\n3\n" in said and "(106.3 KB). Saved to: /" in said, "it removes the file when it ends"
    elif saved := SAVED.search(said):
        assert numbers.strip() in Path(saved[1]).read_text()
    else:
        assert "1\n2\n3\n" in said and "19999\n20000\n" in said


def test_a_command_that_nobody_decided_about_in_time_is_refused_by_the_hook_itself_and_did_not_run(program, impatient):
    said = program.shell_said(impatient.answers[0].result)
    assert "Not approved yet, and nothing ran" in said
    assert "Run the same command again" in said


def test_asking_again_for_what_was_approved_meanwhile_runs_it_once(program, impatient):
    shown = program.shell_shows("it ran\n", 0)
    assert program.shell_said(impatient.answers[1].result) == shown
    assert impatient.record(LATE).state.ending == Exited(code=0)
    assert (impatient.workspace / "late-ran").read_text() == "it ran\n"


def test_the_next_command_runs_and_was_shown_where_the_clients_own_shell_would_be(program, going):
    kept = going.workspace / "a build" if program.name == "claude" else going.workspace
    assert program.shell_said(going.answer(GONE).result) == program.shell_shows(f"{kept}\n", 0)
    assert going.record(GONE).call.spec.cwd == str(kept)
    assert (kept / "gone-ran").exists()


def test_undecided_calls_never_ran(program, impatient):
    assert "Not approved yet, and nothing ran" in program.shell_said(impatient.answer(UNHEARD).result)
    assert impatient.record(UNHEARD).attempt is None
    assert not (impatient.workspace / "unheard-ran").exists()


def test_waiting_calls_of_an_interrupted_client_stay_marked_in_the_queue(interrupted):
    record = interrupted.record(UNHEARD)
    assert interrupted.exit_code is not None, interrupted.written
    assert isinstance(record.state, Waiting)
    assert record.agent_gave_up is not None
    assert interrupted.session(UNHEARD).closed_because is not None
    assert not (interrupted.workspace / "unheard-ran").exists()
