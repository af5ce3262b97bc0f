"""execute_command: exact schema, exact result, and every way of not running told apart."""

import json

import pytest

from tests.rows import each_row
from tests.tools.recorded import HUMAN, Recorded, ended, session
from whisper_tui.model.call import Argv, CommandSpec
from whisper_tui.model.decision import Decider
from whisper_tui.model.ending import Denied, Exited, FailedToStart, Lost, Signalled, TimedOut, Withdrawn
from whisper_tui.model.run import Limits
from whisper_tui.tools import ArgumentError, ExecuteCommandTool, ToolContext, ToolFailure

KEYS = ["stdout", "stderr", "return_code", "timed_out"]


def tool_over(supervision, root="/ws", **settings):
    return ExecuteCommandTool(ToolContext(supervision, session(root)), **settings)


async def answer_of(supervision, **arguments):
    tool = tool_over(supervision)
    call_id = await supervision.submit(tool.request(arguments))
    return await tool.answer(await supervision.outcome(call_id))


def test_the_schema_is_the_published_one():
    schema = tool_over(Recorded()).parameters_schema
    rules = {
        name: {key: value for key, value in part.items() if key != "description"}
        for name, part in schema["properties"].items()
    }
    assert rules == {
        "command": {"type": "string"},
        "args": {"type": "array", "items": {"type": "string"}, "default": []},
        "cwd": {"type": "string"},
        "timeout": {"type": "integer", "default": 60, "minimum": 1, "maximum": 120},
    }
    assert schema["required"] == ["command"]


def test_name_category_and_tags_are_the_published_ones():
    tool = tool_over(Recorded())
    assert (tool.name, tool.category) == ("execute_command", "System Execution")
    assert tool.tags == ["command", "shell", "execute", "process", "system"]


async def test_a_run_is_answered_with_exactly_the_four_keys_in_order():
    supervision = Recorded(out=b"out\n", err=b"err\n", finish=ended(Exited(code=3)))
    result = await tool_over(supervision).execute(command="sh", args=["-c", "exit 3"])
    assert list(result) == KEYS
    assert result == {"stdout": "out\n", "stderr": "err\n", "return_code": 3, "timed_out": False}


async def test_a_signal_is_minus_its_number():
    result = await tool_over(Recorded(finish=ended(Signalled(number=9, by_us=True)))).execute(command="x")
    assert result["return_code"] == -9


async def test_a_timeout_keeps_the_partial_output_and_has_no_return_code():
    supervision = Recorded(out=b"half", finish=ended(TimedOut(after_s=1)))
    result = await tool_over(supervision).execute(command="x", timeout=1)
    assert result == {"stdout": "half", "stderr": "", "return_code": None, "timed_out": True}


@pytest.mark.parametrize(
    ("problem", "subject", "stderr"),
    [
        ("program_not_found", "nope", "Error: Command not found: nope"),
        ("permission_denied", "/etc/hosts", "Error: Permission denied: /etc/hosts"),
        ("cwd_not_found", "/no/where", "Error: Working directory not found: /no/where"),
        ("not_executable", "./a", "Error: ./a cannot be executed"),
        ("other", "x", "Error: x cannot be executed"),
    ],
)
async def test_every_reason_for_not_starting_is_distinguishable(problem, subject, stderr):
    ending = FailedToStart(problem=problem, subject=subject, message=f"{subject} cannot be executed")
    result = await tool_over(Recorded(finish=ended(ending))).execute(command="nope")
    assert result == {"stdout": "", "stderr": stderr, "return_code": None, "timed_out": False}


async def test_a_missing_program_with_spaces_in_its_name_gets_the_hint_to_use_args():
    ending = FailedToStart(problem="program_not_found", subject="ls -l a", message="not found")
    result = await tool_over(Recorded(finish=ended(ending))).execute(command="ls -l a")
    first, hint = result["stderr"].split("\n")
    assert first == "Error: Command not found: ls -l a"
    assert 'command="ls"' in hint
    assert "['-l', 'a']" in hint


@pytest.mark.parametrize("text", ["sleep 1 & sleep 2", "(cd a; ls)", "ls | wc", "echo 'a b'", "cat $X", "ls *.py"])
async def test_a_missing_program_that_is_shell_text_gets_the_hint_to_use_a_shell(text: str):
    ending = FailedToStart(problem="program_not_found", subject=text, message="not found")
    hint = (await tool_over(Recorded(finish=ended(ending))).execute(command=text))["stderr"].split("\n")[1]
    assert 'command="bash"' in hint
    assert f"{['-c', text]}" in hint


@pytest.mark.parametrize(
    ("ending", "cause", "words"),
    [
        (Denied(by=HUMAN, reason='not on "prod" — ask me first'), "denied", 'not on "prod" — ask me first'),
        (Denied(by=HUMAN, reason=""), "denied", "Denied by the human, without a reason. Nothing ran."),
        (Denied(by=Decider(surface="rule", who="no-rm"), reason="x"), "refused", "Refused by the user's rule no-rm."),
        (Denied(by=Decider(surface="rule"), reason="x"), "refused", "Refused by the user's rule. Nothing ran."),
        (Denied(by=Decider(surface="rule", who="project: a"), reason="x"), "refused", "by the project's rule a."),
        (Denied(by=Decider(surface="rule", who="strict"), reason="x"), "refused", "by the built-in rule strict."),
        (Withdrawn(why="the agent cancelled it"), "withdrawn", "Nothing ran. The agent cancelled it"),
        (Lost(why="the machine restarted"), "lost", "may have run"),
    ],
)
async def test_a_command_that_never_ran_is_a_failure_and_never_a_return_code(ending, cause, words):
    with pytest.raises(ToolFailure) as raised:
        await tool_over(Recorded(finish=ended(ending))).execute(command="x")
    assert raised.value.cause == cause
    assert words in raised.value.message


async def test_the_call_is_submitted_as_argv_with_the_arguments_as_sent():
    supervision = Recorded()
    await tool_over(supervision).execute(command="echo hi; ls", args=["$HOME", "*"], timeout=5)
    (request,) = supervision.requests
    assert request.spec.command == Argv(program="echo hi; ls", args=("$HOME", "*"))
    assert request.spec.timeout_s == 5
    assert request.arguments == {"command": "echo hi; ls", "args": ["$HOME", "*"], "timeout": 5}
    assert request.tool == "execute_command"


@each_row(
    ("cwd", "expected"),
    [(None, "/ws"), (".", "/ws"), ("", "/ws"), ("a/./b", "/ws/a/b"), ("../x", "/ws/../x"), ("/etc", "/etc")],
)
def test_the_directory_starts_at_the_workspace_and_may_be_absolute(cwd, expected):
    arguments = {"command": "ls"} | ({} if cwd is None else {"cwd": cwd})
    assert tool_over(Recorded()).request(arguments).spec.cwd == expected


def test_the_default_time_is_sixty_seconds():
    assert tool_over(Recorded()).request({"command": "ls"}).spec.timeout_s == 60


def test_the_longest_time_is_a_setting():
    tool = tool_over(Recorded(), longest_timeout_s=600)
    assert tool.request({"command": "ls", "timeout": 600}).spec.timeout_s == 600
    with pytest.raises(ArgumentError, match="from 1 to 600"):
        tool.request({"command": "ls", "timeout": 601})


def test_a_bound_below_the_default_lowers_the_default():
    assert tool_over(Recorded(), longest_timeout_s=10).request({"command": "ls"}).spec.timeout_s == 10


async def test_an_unknown_argument_is_refused_and_nothing_is_submitted():
    supervision = Recorded()
    with pytest.raises(ArgumentError, match="'workdir'"):
        await tool_over(supervision).execute(command="ls", workdir="/")
    assert supervision.requests == []


async def test_an_edited_command_is_reported_beside_the_exact_result():
    edited = CommandSpec(command=Argv(program="echo", args=("not rm", "x")), cwd="/ws/sub", timeout_s=60)
    answer = await answer_of(Recorded(out=b"not rm\n", finish=ended(Exited(code=0), edited=edited)), command="rm")
    assert list(answer.result) == KEYS
    assert answer.told == ("The human changed the command before it ran. What ran: echo 'not rm' x (in /ws/sub).")


async def test_an_edited_time_limit_is_reported():
    edited = CommandSpec(command=Argv(program="x"), cwd="/ws", timeout_s=1)
    answer = await answer_of(Recorded(finish=ended(TimedOut(after_s=1), edited=edited)), command="x")
    assert "with a time limit of 1 seconds" in answer.told
    assert "The time limit of 1 seconds was reached" in answer.told


async def test_a_limit_that_ended_a_command_is_reported():
    finish = ended(Signalled(number=9, by_us=False, limit="memory"))
    limited = Recorded(finish=lambda record: finish(record.model_copy(update={"limits": Limits(memory_bytes=1 << 30)})))
    answer = await answer_of(limited, command="x")
    assert answer.told == (
        "It was ended, because its processes together reached the memory limit of 1,073,741,824 bytes."
    )


async def test_a_remembered_approval_is_reported():
    memory = Decider(surface="memory", who="g1")
    answer = await answer_of(Recorded(finish=ended(Exited(code=0), by=memory)), command="x")
    assert "No human was asked this time" in answer.told


async def test_an_approval_as_it_was_asked_is_nothing_to_tell():
    assert (await answer_of(Recorded(), command="x")).told is None


async def test_the_text_is_the_result_as_json():
    answer = await answer_of(Recorded(out="größe\n".encode(), finish=ended(Exited(code=1))), command="x")
    assert json.loads(answer.text) == answer.result
    assert "größe" in answer.text
