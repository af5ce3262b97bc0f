"""run_shell_command: exact schema, exact result, and a directory that stays inside the project."""

import pytest

from tests.tools.recorded import HUMAN, Recorded, background, ended, session
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.decision import Decider
from whisper_tui.model.ending import Denied, Exited, FailedToStart, Signalled, TimedOut
from whisper_tui.tools import ArgumentError, RunShellCommandTool, ToolContext, ToolFailure

KEYS = ["stdout", "stderr", "exitCode", "signal", "error", "pid", "backgroundPids"]


@pytest.fixture
def root(tmp_path):
    project = tmp_path / "project"
    (project / "sub").mkdir(parents=True)
    (tmp_path / "project-outside").mkdir()
    (project / "link").symlink_to(tmp_path / "project-outside")
    (project / "file").write_text("")
    return project


def tool_over(supervision, root="/"):
    return RunShellCommandTool(ToolContext(supervision, session(str(root))))


async def answer_of(supervision, root="/", **arguments):
    tool = tool_over(supervision, root)
    call_id = await supervision.submit(tool.request(arguments))
    return await tool.answer(await supervision.outcome(call_id))


def test_the_schema_is_the_published_one():
    schema = tool_over(Recorded()).parameters_schema
    assert {name: part["type"] for name, part in schema["properties"].items()} == {
        "command": "string",
        "description": "string",
        "directory": "string",
    }
    assert schema["required"] == ["command"]
    assert schema["additionalProperties"] is False


PLACED = {"command": "make", "place": "gpu1"}


def placed(root, supervision=None, **context):
    made = ToolContext(supervision or Recorded(), session(str(root)), **context)
    return RunShellCommandTool(made, places=("gpu1", "gpu2"))


def test_a_place_is_offered_by_the_names_that_there_are(root):
    argument = placed(root).parameters_schema["properties"]["place"]
    assert (argument["type"], argument["enum"]) == ("string", ["here", "gpu1", "gpu2"])
    assert placed(root).parameters_schema["required"] == ["command"]
    with pytest.raises(ArgumentError, match="place"):
        placed(root).request({"command": "make", "place": "gpu3"})
    with pytest.raises(ArgumentError, match="place"):
        tool_over(Recorded(), root).request(PLACED)


def test_the_command_runs_at_the_place_that_is_named(root):
    assert placed(root).request(PLACED).spec.place == "gpu1"
    assert placed(root).request({"command": "make"}).spec.place == ""
    # A call of the library may name a place beside the arguments, which come first.
    assert placed(root, place=lambda: "gpu2").request({"command": "make"}).spec.place == "gpu2"
    assert placed(root, place=lambda: "gpu2").request(PLACED).spec.place == "gpu1"


def test_a_directory_at_a_place_need_not_exist_here_and_stays_inside_the_project(root):
    assert placed(root).request({**PLACED, "directory": "build/x/.."}).spec.cwd == f"{root}/build"
    for outside in ("..", "sub/../../project-outside", "../project-outside"):
        with pytest.raises(ArgumentError, match="must stay inside the project"):
            placed(root).request({**PLACED, "directory": outside})
    with pytest.raises(ArgumentError, match="must be relative"):
        placed(root).request({**PLACED, "directory": "/tmp"})
    with pytest.raises(ArgumentError, match="must be a directory that exists"):
        placed(root).request({**PLACED, "place": "here", "directory": "build"})


async def test_an_agent_is_told_where_its_command_ran_unless_it_has_said_so(root):
    asked = Recorded()
    tool = placed(root, asked)
    by_itself = tool.request(PLACED)
    moved = by_itself.model_copy(update={"arguments": {"command": "make"}})
    notes = [
        (await tool.answer(await asked.outcome(await asked.submit(request)))).told for request in (by_itself, moved)
    ]
    assert notes == [None, f"It ran at gpu1, in {root}."]


async def test_an_agent_is_told_that_a_human_has_moved_its_command(root):
    here, there = tool_over(Recorded(), root).request({"command": "make"}), placed(root).request(PLACED)
    for request, edited, words in ((here, there.spec, "(at gpu1)"), (there, here.spec, "(on this machine)")):
        changed = Recorded(finish=ended(Exited(code=0), edited=edited))
        told = (await placed(root).answer(await changed.outcome(await changed.submit(request)))).told
        assert told is not None
        assert words in told


def test_the_command_is_a_line_for_bash_marked_for_scripts(root):
    request = tool_over(Recorded(), root).request({"command": "ls | wc -l", "description": "Count"})
    assert request.spec == CommandSpec(
        command=Shell(text="ls | wc -l", shell="bash"), cwd=str(root), environment={"ASIMI_CLI": "1"}
    )
    assert request.description == "Count"


async def test_a_run_is_answered_with_exactly_the_seven_keys():
    supervision = Recorded(
        out=b"hi\n", finish=ended(Exited(code=0), left=(background(77), background(78, alive=False)))
    )
    result = await tool_over(supervision).execute(command="sleep 30 & echo hi")
    assert list(result) == KEYS
    assert result == {
        "stdout": "hi\n",
        "stderr": "",
        "exitCode": 0,
        "signal": None,
        "error": None,
        "pid": 4242,
        "backgroundPids": [77],
    }


async def test_a_signal_has_its_number_and_no_exit_code():
    result = await tool_over(Recorded(finish=ended(Signalled(number=15, by_us=True)))).execute(command="x")
    assert (result["exitCode"], result["signal"], result["error"]) == (None, 15, None)


async def test_a_failed_start_has_a_reason_and_no_pid():
    ending = FailedToStart(problem="program_not_found", subject="bash", message="the program bash was not found")
    answer = await answer_of(Recorded(finish=ended(ending)), command="x")
    assert answer.result == {
        "stdout": "",
        "stderr": "",
        "exitCode": None,
        "signal": None,
        "error": "the program bash was not found",
        "pid": None,
        "backgroundPids": [],
    }
    assert answer.text == "Error: the program bash was not found"


@pytest.mark.parametrize(
    ("out", "err", "ending", "left", "text"),
    [
        (b"hi\n", b"", Exited(code=0), (), "Output: hi\n"),
        (b"hi", b"oh", Exited(code=2), (), "Output: hi\nError: oh\nExit Code: 2"),
        (b"", b"", Signalled(number=9, by_us=False), (), "Signal: 9"),
        (b"hi", b"", Exited(code=0), (background(5), background(6)), "Output: hi\nBackground PIDs: 5, 6"),
        (b"", b"", Exited(code=0), (), "Output: (empty)"),
    ],
)
async def test_the_text_for_the_model_has_only_existing_parts(out, err, ending, left, text):
    supervision = Recorded(out=out, err=err, finish=ended(ending, left=left))
    assert (await answer_of(supervision, command="x")).text == text


async def test_the_humans_time_limit_is_reported_in_a_note(root):
    edited = CommandSpec(command=Shell(text="x"), cwd=str(root), environment={"ASIMI_CLI": "1"}, timeout_s=2)
    answer = await answer_of(Recorded(finish=ended(TimedOut(after_s=2), edited=edited)), root, command="x")
    assert (answer.result["exitCode"], answer.result["signal"]) == (None, None)
    assert "The time limit of 2 seconds was reached" in answer.told


async def test_the_time_limit_of_commands_that_nobody_was_asked_about_is_told(root):
    rule = Decider(surface="rule", who="built-in: only looks")
    answer = await answer_of(Recorded(finish=ended(TimedOut(after_s=600), by=rule)), root, command="tail -f x")
    assert "ended after 600 seconds" in answer.told and "run without a human's approval" in answer.told


async def test_a_denial_fails_the_call_with_the_humans_words():
    with pytest.raises(ToolFailure, match="use the staging cluster"):
        await tool_over(Recorded(finish=ended(Denied(by=HUMAN, reason="use the staging cluster")))).execute(command="x")


@pytest.mark.parametrize(
    ("directory", "below"), [("", ""), (".", ""), ("sub", "/sub"), ("./sub/../sub", "/sub/../sub")]
)
def test_a_directory_inside_the_project_is_accepted(root, directory, below):
    assert tool_over(Recorded(), root).request({"command": "x", "directory": directory}).spec.cwd == f"{root}{below}"


@pytest.mark.parametrize(
    ("directory", "why"),
    [
        ("/etc", "must be relative"),
        ("nowhere", "must be a directory that exists"),
        ("long" * 2000, "must be a directory that exists"),
        ("file", "must be a directory that exists"),
        ("..", "must stay inside the project"),
        ("../project-outside", "must stay inside the project"),
        ("link", "must stay inside the project"),
        ("sub/../../project-outside", "must stay inside the project"),
    ],
)
async def test_a_directory_that_is_absolute_missing_or_outside_is_refused_and_nothing_is_submitted(
    root, directory, why
):
    supervision = Recorded()
    with pytest.raises(ArgumentError, match=why):
        await tool_over(supervision, root).execute(command="x", directory=directory)
    assert supervision.requests == []


def test_on_windows_the_text_follows_the_slash_c_of_its_own_interpreter(tmp_path):
    tool = RunShellCommandTool(ToolContext(Recorded(), session(str(tmp_path))), platform="win32")
    assert tool.request({"command": "dir & echo -"}).spec.command.words() == ("cmd.exe", "/c", "dir & echo -")
    assert "`cmd.exe /c`" in tool.description


async def test_on_windows_no_background_processes_are_named(tmp_path):
    supervision = Recorded(finish=ended(Exited(code=0), left=(background(7),)))
    tool = RunShellCommandTool(ToolContext(supervision, session(str(tmp_path))), platform="win32")
    assert (await tool.execute(command="start /b x"))["backgroundPids"] == []
