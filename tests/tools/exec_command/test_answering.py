"""What ExecCommand answers: completed, promoted, or an error of a known kind, to the line."""

import pytest

from tests.tools.exec_command.conftest import Shop
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.ending import Exited, FailedToStart, Lost, Signalled, TimedOut
from whisper_tui.model.errors import Refused, Unavailable
from whisper_tui.policy.rules.rule import ExactRule, Rules
from whisper_tui.tools import UnknownTool
from whisper_tui.tools.task_tools import TaskOutputTool


async def test_a_short_command_is_answered_with_its_exit_status_and_both_previews(shop: Shop):
    answer, key = await shop.started()
    shop.bench.executor.write(key, b"line one\nline two")
    shop.bench.executor.write(key, b"careful\n", "err")
    shop.bench.executor.finish(key, Exited(code=0))
    assert await answer == {
        "tool_name": "ExecCommand",
        "status": "success",
        "summary_text": "command exited with status 0",
        "result": {
            "disposition": "completed",
            "exit_status": 0,
            "stdout_preview": "line one\nline two",
            "stderr_preview": "careful\n",
            "truncated": False,
        },
    }
    assert shop.tool.text(await answer) == (
        "Process exited with code 0\n\nstdout:\nline one\nline two\n\nstderr:\ncareful\n"
    )


async def test_progress_is_shown_as_it_was_left_in_the_preview_and_to_who_reads_on(shop: Shop):
    answer, key = await shop.started()
    shop.bench.executor.write(key, b"1%\r50%\r100%\nbuilt\n")
    shop.bench.executor.finish(key, Exited(code=0))
    preview = (await answer)["result"]["stdout_preview"]
    assert preview.startswith("100%\nbuilt\n\n[whisper_tui: 2 earlier states of overwritten lines are left out; ")
    later = await TaskOutputTool(shop.context).execute(task_id=key.call_id)
    assert later["result"]["output"].startswith("100%\nbuilt\n\n[whisper_tui: 2 earlier states")
    assert later["result"]["next_offset"] == 18


async def test_a_non_zero_exit_is_a_success_of_the_tool(shop: Shop):
    answer, key = await shop.started()
    shop.bench.executor.write(key, b"  \n")
    shop.bench.executor.finish(key, Exited(code=3))
    envelope = await answer
    assert (envelope["status"], envelope["result"]["exit_status"]) == ("success", 3)
    assert envelope["result"]["stderr_preview"] is None
    assert shop.tool.text(envelope) == "Process exited with code 3"


@pytest.mark.parametrize(
    ("ending", "summary"),
    [
        (Signalled(number=9, by_us=False), "command was ended by signal 9"),
        (TimedOut(after_s=2), "command was ended because its time limit of 2 seconds was reached"),
    ],
)
async def test_an_end_without_an_exit_status_has_none(shop: Shop, ending, summary):
    answer, key = await shop.started()
    shop.bench.executor.write(key, b"x")
    shop.bench.executor.finish(key, ending)
    envelope = await answer
    assert (envelope["result"]["exit_status"], envelope["summary_text"]) == (None, summary)
    assert shop.tool.text(envelope) == "Process exited\n\nstdout:\nx"


async def test_the_window_begins_with_the_process_and_not_with_the_human(shop: Shop):
    answer = shop.call(yield_time_ms=0)
    record = await shop.submitted()
    assert not answer.done()
    await shop.bench.approve(record.id)
    key = await shop.bench.ordered(record.id)
    assert not answer.done()
    shop.bench.executor.write(key, b"booting")
    shop.bench.executor.spawn(key)
    assert await answer == {
        "tool_name": "ExecCommand",
        "status": "success",
        "summary_text": "command promoted to a managed task",
        "result": {
            "disposition": "promoted_to_task",
            "task_handle": {"task_id": record.id, "task_kind": "command_task", "status": "running"},
            "initial_output_preview": "booting",
            "initial_output_truncated": False,
        },
    }
    assert shop.tool.text(await answer) == (
        f"Command promoted to background task\nTask: {record.id}\n\nInitial output:\nbooting"
    )


async def test_a_promoted_task_is_the_same_process_without_a_time_limit(shop: Shop):
    key = await shop.task()
    assert list(shop.bench.executor.orders) == [key]
    assert shop.bench.executor.orders[key].spec.timeout_s is None
    assert shop.bench.executor.signals == shop.bench.executor.ended == []


async def test_a_task_without_output_says_so(shop: Shop):
    answer, key = await shop.started(yield_time_ms=0)
    assert "initial_output_preview" not in (await answer)["result"]
    assert shop.tool.text(await answer) == (
        f"Command promoted to background task\nTask: {key.call_id}\n\nInitial output:\n(none captured before promotion)"
    )


async def test_a_duplicate_is_rendered_to_the_line(shop: Shop):
    _, key = await shop.started(shell="sh")
    envelope = await shop.tool.execute(cmd="make", shell="sh")
    assert shop.tool.text(envelope) == "\n".join(
        (
            "Command is already running",
            f"Task: {key.call_id}",
            "Status: Running",
            "Task summary: It runs as process 4242.",
            "Command: make",
            f"workdir={shop.context.session.root}",
            "shell=sh",
            "",
            'Set duplicate_policy="start_new" to start another instance.',
        )
    )


async def test_a_denial_carries_the_humans_words(shop: Shop):
    answer = shop.call()
    await shop.bench.deny((await shop.submitted()).id, "not on a Friday")
    envelope = await answer
    assert envelope["error"]["kind"] == "approval_denied"
    assert "not on a Friday" in envelope["error"]["message"]
    rendered = shop.tool.text(envelope)
    assert rendered.startswith("Command failed\napproval_denied: ") and rendered.endswith("\n")


async def test_a_rule_of_the_user_is_a_refusal_of_the_policy(shop: Shop):
    shop.bench.supervisor.rules = Rules(deny=(ExactRule(name="no-make", text="make"),))
    assert (await shop.tool.execute(cmd="make"))["error"]["kind"] == "policy_refused"


@pytest.mark.parametrize(
    ("ending", "kind", "retryable"),
    [
        (
            FailedToStart(problem="program_not_found", subject="zsh", message="zsh is not there"),
            "command_spawn_failed",
            0,
        ),
        (FailedToStart(problem="cwd_not_found", subject="/x", message="/x is gone"), "workdir_not_found", 0),
        (Lost(why="the machine restarted"), "tool_execution_failed", 0),
    ],
)
async def test_calls_without_a_result_are_errors_of_their_kind(shop: Shop, ending, kind, retryable):
    envelope = await shop.ended(ending)
    assert envelope["status"] == "error"
    assert envelope["error"]["kind"] == kind
    assert envelope["error"]["retryable"] is bool(retryable)
    assert envelope["error"]["recovery_hint"]


async def test_a_withdrawn_call_has_failed(shop: Shop):
    answer = shop.call()
    await shop.bench.supervisor.withdraw((await shop.submitted()).id, "the agent left")
    assert (await answer)["error"]["details"] == {"cause": "withdrawn"}


async def test_an_edit_is_reported_beside_the_envelope(shop: Shop):
    request = shop.tool.request({"cmd": "make"})
    call_id = await shop.bench.supervisor.submit(request)
    edited = CommandSpec(command=Shell(text="make -n", shell="bash", login=True), cwd=request.spec.cwd)
    await shop.bench.approve(call_id, edited=edited)
    key = await shop.bench.ordered(call_id)
    shop.bench.executor.finish(key)
    answer = await shop.tool.follow(request, call_id)
    assert "What ran: make -n" in answer.told
    assert not answer.failed


async def test_a_stream_beyond_its_budget_is_cut_in_the_middle_and_named_as_a_file(shop: Shop):
    answer, key = await shop.started(max_output_tokens=5)
    shop.bench.executor.write(key, b"a" * 50 + b"b" * 50)
    shop.bench.executor.files[key, "out"] = "/runs/1.1/out"
    shop.bench.executor.finish(key)
    result = (await answer)["result"]
    head, marker, tail = result["stdout_preview"].split("\n")
    assert (head, tail) == ("a" * 10, "b" * 10)
    assert "100 bytes in all" in marker and "/runs/1.1/out" in marker
    assert result["truncated"] is True
    assert result["artifacts"] == [{"path": "/runs/1.1/out", "stream": "stdout", "bytes": 100}]
    assert result["stdout_artifact"] == 0 and "stderr_artifact" not in result
    assert shop.tool.text(await answer).endswith("\n\nArtifacts:\n/runs/1.1/out")


async def test_the_budget_is_shared_and_what_one_stream_does_not_need_is_the_others(shop: Shop):
    answer, key = await shop.started(max_output_tokens=5)
    shop.bench.executor.write(key, b"1234")
    shop.bench.executor.write(key, b"e" * 16, "err")
    shop.bench.executor.finish(key)
    result = (await answer)["result"]
    assert (result["stdout_preview"], result["stderr_preview"], result["truncated"]) == ("1234", "e" * 16, False)


async def test_both_streams_can_be_cut_and_each_has_its_file(shop: Shop):
    answer, key = await shop.started(max_output_tokens=2)
    for stream, name in (("out", "/o"), ("err", "/e")):
        shop.bench.executor.write(key, b"x" * 100, stream)
        shop.bench.executor.files[key, stream] = name
    shop.bench.executor.finish(key)
    result = (await answer)["result"]
    assert (result["stdout_artifact"], result["stderr_artifact"]) == (0, 1)
    assert [artifact["path"] for artifact in result["artifacts"]] == ["/o", "/e"]
    for name in ("stdout_preview", "stderr_preview"):
        assert result[name].count("x") == 4


async def test_a_budget_of_nothing_shows_nothing_but_that_there_was_something(shop: Shop):
    answer, key = await shop.started(max_output_tokens=0)
    shop.bench.executor.write(key, b"secret")
    shop.bench.executor.finish(key)
    result = (await answer)["result"]
    assert "secret" not in result["stdout_preview"] and "6 bytes" in result["stdout_preview"]


async def test_a_cut_never_divides_a_character(shop: Shop):
    answer, key = await shop.started(max_output_tokens=1)
    shop.bench.executor.write(key, "öäü€".encode() * 100)
    shop.bench.executor.finish(key)
    head, _, tail = (await answer)["result"]["stdout_preview"].split("\n")
    assert (head, tail) == ("öä", "ü€")


async def test_a_cut_stream_without_a_file_names_the_command_that_prints_it(shop: Shop):
    answer, key = await shop.started(max_output_tokens=1)
    shop.bench.executor.write(key, b"x" * 100)
    shop.bench.executor.finish(key)
    result = (await answer)["result"]
    assert f"whisper-tui logs {key.call_id}" in result["stdout_preview"]
    assert "artifacts" not in result and "stdout_artifact" not in result


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        (UnknownTool("there is no tool 'x'", hint="There are: y"), "unknown_tool", False),
        (Unavailable("the supervisor is gone"), "tool_execution_failed", True),
        (Refused("session s1 is closed", hint="Open a new one"), "tool_execution_failed", False),
    ],
)
def test_every_other_error_is_reported_by_its_kind(shop: Shop, error, kind, retryable):
    envelope = shop.tool.error_result(error)
    assert (envelope["tool_name"], envelope["status"]) == ("ExecCommand", "error")
    assert (envelope["error"]["kind"], envelope["error"]["retryable"]) == (kind, retryable)
    assert envelope["error"]["message"] == error.message and envelope["error"]["recovery_hint"]
    assert shop.tool.text(envelope).startswith(f"Command failed\n{kind}: {error.message}\n")
