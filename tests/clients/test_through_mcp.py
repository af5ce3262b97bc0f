"""Each real client comes through MCP: what the human decides is what happens, and what its model is told."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conversation import Played, play
from tests.clients.model.script import Call
from tests.clients.programs import Program
from tests.clients.scenes import (
    ALL,
    ANOTHER,
    AS_IT_IS,
    FAILING,
    KILLED,
    LATE,
    LEAVING,
    LONG,
    NO,
    STILL_WAITING,
    UNHEARD,
    Scene,
)
from tests.clients.stage import Stage
from whisper_tui.model.ending import Denied, Exited, Signalled
from whisper_tui.model.state import Ended, Waiting

SHORT_S = 3
"""Seconds in which an impatient server answers."""


def ask_for(program: Program, scene: Scene) -> Call:
    """The model calls the tool that runs a line of bash, or the one that waits."""
    if scene.ticket is not None:
        return program.mcp("wait", {"ticket": scene.ticket})
    return program.mcp("run_shell_command", {"command": scene.command, "description": "Do as the script says"})


def set_up(stage: Stage) -> None:
    """The client is offered whisper_tui's tools, and its own shell tool is left alone."""
    stage.whisper_tui("install", stage.program.name, "--yes", "--no-hook")


def set_up_impatient(stage: Stage) -> None:
    """The same with a server that has to answer soon."""
    set_up(stage)
    stage.change_settings(r'("--wait",\s*)"86100"', rf'\g<1>"{SHORT_S}"')


@pytest.fixture(scope="session")
def played(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """A conversation of every scene, one after the other, in one run of the client."""
    return play(program, ALL, tmp_path_factory.mktemp(f"{program.name}-mcp"), ask_for=ask_for, set_up=set_up)


@pytest.fixture(scope="session")
def impatient(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """The human thinks for longer than the client waits, about the first command; about the last one for ever."""
    directory = tmp_path_factory.mktemp(f"{program.name}-mcp-impatient")
    return play(program, (LATE, STILL_WAITING, UNHEARD), directory, ask_for=ask_for, set_up=set_up_impatient)


@pytest.fixture(scope="session")
def interrupted(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """A conversation that the user breaks off while the human at the cockpit has not decided yet."""
    directory = tmp_path_factory.mktemp(f"{program.name}-mcp-interrupted")
    return play(program, (UNHEARD,), directory, ask_for=ask_for, set_up=set_up, interrupt=True)


def assert_told(program: Program, result: str, facts: dict[str, Any], text: str) -> None:
    """The model was told these facts, in the one of the two forms that the client shows it, and nothing else."""
    said = program.mcp_said(result)
    if program.prefers_structured:
        told = json.loads(said[said.index("{") :])
        assert {name: told[name] for name in facts} == facts
    else:
        assert said == text


def test_the_client_comes_to_its_end_and_its_name_and_version_are_in_the_queue(program, played):
    assert played.exit_code == 0, played.written
    client = played.session(AS_IT_IS).client
    assert client is not None
    assert client.name.startswith(program.client_name)
    assert client.version[:1].isdigit()


def test_an_approved_command_runs_in_the_workspace_and_its_output_is_the_answer(program, played):
    output = f"approved in {played.workspace}\n"
    facts = {"stdout": output, "stderr": "", "exitCode": 0, "signal": None, "error": None, "backgroundPids": []}
    assert_told(program, played.answer(AS_IT_IS).result, facts, f"Output: {output}")
    assert not played.record(AS_IT_IS).edited


def test_after_an_edit_the_model_sees_a_note_and_the_output(program, played):
    said = program.mcp_said(played.answer(ANOTHER).result)
    assert "The human changed the command before it ran. What ran: echo as edited." in said
    assert said.endswith("Output: as edited\n")
    assert "as asked" not in said
    assert played.record(ANOTHER).state.ending == Exited(code=0)


def test_the_reason_of_a_denial_reaches_the_model_verbatim_and_nothing_ran(program, played):
    said = program.mcp_said(played.answer(NO).result)
    assert said.endswith(f"Denied by the human. Nothing ran. Reason: {NO.human.reason}")
    state = played.record(NO).state
    assert isinstance(state, Ended) and isinstance(state.ending, Denied) and state.attempt is None
    assert not (played.workspace / "denied-ran").exists()


def test_an_exit_code_and_standard_error_are_reported(program, played):
    facts = {"stdout": "before\n", "stderr": "wrong\n", "exitCode": 7, "signal": None}
    text = "Output: before\n\nError: wrong\n\nExit Code: 7"
    assert_told(program, played.answer(FAILING).result, facts, text)
    assert played.record(FAILING).state.ending == Exited(code=7)


def test_a_command_ended_by_the_humans_signal_is_reported_as_such(program, played):
    facts = {"stdout": "begun\n", "exitCode": None, "signal": 15}
    assert_told(program, played.answer(KILLED).result, facts, "Output: begun\n\nSignal: 15")
    assert played.record(KILLED).state.ending == Signalled(number=15, by_us=True)


def test_a_background_process_is_named_and_does_not_hold_the_answer_back(program, played):
    (left,) = played.record(LEAVING).background
    pid = left.identity.pid
    facts = {"stdout": "left one behind\n", "exitCode": 0, "backgroundPids": [pid]}
    text = f"Output: left one behind\n\nBackground PIDs: {pid}"
    assert_told(program, played.answer(LEAVING).result, facts, text)
    assert left.command == "tail -f /dev/null"


def test_the_model_sees_both_ends_of_long_output_and_the_file_with_all_of_it(program, played):
    numbers = "".join(f"{number}\n" for number in range(1, 20_001))
    said = program.mcp_said(played.answer(LONG).result)
    shown = json.loads(said[said.index("{") :])["stdout"] if program.prefers_structured else said
    assert "1\n2\n3\n" in shown[:100]
    assert shown.endswith("19999\n20000\n")
    left_out = re.search(r"\[whisper_tui: [\d,]+ bytes are left out here; all of it is in (\S+)\]", shown)
    assert left_out is not None
    assert Path(left_out[1]).read_text() == numbers


def test_a_command_that_nobody_decided_about_in_time_did_not_run_and_the_model_gets_a_ticket_for_it(program, impatient):
    said = program.mcp_said(impatient.answer(LATE).result)
    assert "Not approved yet, and nothing has run" in said
    assert "pending_approval" in said
    assert STILL_WAITING.ticket == impatient.record(LATE).id
    assert f'Call `wait` with ticket "{STILL_WAITING.ticket}"' in said.replace('\\"', '"')


def test_waiting_for_the_ticket_brings_the_answer_of_the_command_which_ran_once(program, impatient):
    facts = {"stdout": "it ran\n", "stderr": "", "exitCode": 0}
    assert_told(program, impatient.answer(STILL_WAITING).result, facts, "Output: it ran\n")
    assert impatient.record(LATE).state.ending == Exited(code=0)
    assert (impatient.workspace / "late-ran").read_text() == "it ran\n"


def test_undecided_calls_never_ran(program, impatient):
    assert "Not approved yet, and nothing has run" in program.mcp_said(impatient.answer(UNHEARD).result)
    assert impatient.record(UNHEARD).attempt is None
    assert not (impatient.workspace / "unheard-ran").exists()


def test_waiting_calls_of_an_interrupted_client_stay_marked_in_the_queue(interrupted):
    record = interrupted.record(UNHEARD)
    assert interrupted.exit_code is not None, interrupted.written
    assert interrupted.session(UNHEARD).closed_because is not None
    assert isinstance(record.state, Waiting)
    assert record.agent_gave_up is not None
    assert not (interrupted.workspace / "unheard-ran").exists()
