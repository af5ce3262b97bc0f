"""execute_command_line: the older tool that takes a whole line."""

import pytest

from tests.tools.recorded import Recorded, ended, session
from whisper_tui.model.call import Shell
from whisper_tui.model.ending import Exited, FailedToStart, Signalled, TimedOut
from whisper_tui.tools import ArgumentError, ExecuteCommandLineTool, ToolContext


def tool_over(supervision, **settings):
    return ExecuteCommandLineTool(ToolContext(supervision, session("/ws")), **settings)


def test_the_schema_is_the_published_one():
    schema = tool_over(Recorded()).parameters_schema
    assert {name: part["type"] for name, part in schema["properties"].items()} == {"command": "string", "cwd": "string"}
    assert (schema["required"], schema["properties"]["cwd"]["default"]) == (["command"], ".")


def test_the_approver_sees_a_shell_line_and_never_an_argv():
    spec = tool_over(Recorded()).request({"command": "ls | wc -l", "cwd": "src"}).spec
    assert (spec.command, spec.cwd, spec.timeout_s) == (Shell(text="ls | wc -l", shell="sh"), "/ws/src", None)
    assert tool_over(Recorded()).request({"command": "ls"}).spec.cwd == "/ws"


async def test_a_run_is_answered_with_exactly_three_keys():
    supervision = Recorded(out=b"out", err=b"err", finish=ended(Exited(code=3)))
    assert await tool_over(supervision).execute(command="x") == {"stdout": "out", "stderr": "err", "returncode": 3}


@pytest.mark.parametrize(
    ("ending", "returncode", "stderr"),
    [
        (Signalled(number=9, by_us=True), -9, ""),
        (TimedOut(after_s=1), None, ""),
        (FailedToStart(problem="program_not_found", subject="sh", message=""), 127, "Error: Command not found: sh"),
        (FailedToStart(problem="permission_denied", subject="sh", message=""), 126, "Error: Permission denied: sh"),
        (FailedToStart(problem="cwd_not_found", subject="/x", message=""), 1, "Error: Working directory not found: /x"),
        (FailedToStart(problem="other", subject="sh", message="no"), 1, "Error executing command: no"),
    ],
)
async def test_every_other_end_has_its_code(ending, returncode, stderr):
    result = await tool_over(Recorded(finish=ended(ending))).execute(command="x")
    assert result == {"stdout": "", "stderr": stderr, "returncode": returncode}


@pytest.mark.parametrize(
    "arguments", [{}, {"command": ["ls"]}, {"command": "ls", "cwd": 1}, {"command": "ls", "args": []}]
)
async def test_wrong_arguments_start_nothing(arguments):
    supervision = Recorded()
    with pytest.raises(ArgumentError):
        await tool_over(supervision).execute(**arguments)
    assert supervision.requests == []


def test_the_older_tool_can_have_the_newer_name():
    assert tool_over(Recorded()).name == "execute_command_line"
    assert tool_over(Recorded(), name="execute_command").name == "execute_command"
