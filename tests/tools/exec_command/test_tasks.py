"""Tasks: their states, and the tools that look at them."""

import asyncio

import pytest

from tests.tools.exec_command.conftest import Shop
from tests.tools.recorded import HUMAN
from whisper_tui.model.ending import Denied, Exited, FailedToStart, Lost, Signalled, TimedOut, Withdrawn
from whisper_tui.model.state import Ended
from whisper_tui.tools.task import task_state
from whisper_tui.tools.task_tools import TaskListTool, TaskOutputTool, TaskStatusTool


async def output(shop: Shop, task_id: str, **arguments):
    envelope = await TaskOutputTool(shop.context).execute(task_id=task_id, **arguments)
    assert envelope["status"] == "success", envelope
    return envelope["result"]


@pytest.mark.parametrize(
    ("ending", "stopped", "state"),
    [
        (Exited(code=0), False, "completed"),
        (Exited(code=1), False, "failed"),
        (Exited(code=143), True, "cancelled"),
        (Exited(code=0), True, "completed"),
        (Signalled(number=15, by_us=True), True, "cancelled"),
        (Signalled(number=15, by_us=True), False, "interrupted"),
        (Signalled(number=11, by_us=False), False, "failed"),
        (TimedOut(after_s=1), False, "failed"),
        (FailedToStart(problem="other", subject="x", message="x"), False, "failed"),
        (Denied(by=HUMAN, reason=""), False, "cancelled"),
        (Withdrawn(why=""), False, "cancelled"),
        (Lost(why=""), False, "lost"),
    ],
)
async def test_every_ending_is_one_state(shop: Shop, ending, stopped, state):
    key = await shop.task()
    record = await shop.bench.record(key.call_id)
    over = record.model_copy(update={"state": Ended(at=1.0, ending=ending), "stopping": stopped})
    assert task_state(over) == state


async def test_a_task_goes_from_queued_over_running_and_cancelling_to_its_end(shop: Shop):
    answer = shop.call(yield_time_ms=0)
    call_id = (await shop.submitted()).id
    status = TaskStatusTool(shop.context)

    async def state():
        return (await status.execute(task_id=call_id))["result"]["task"]["status"]

    seen = [await state()]
    await shop.bench.approve(call_id)
    key = await shop.bench.ordered(call_id)
    seen.append(await state())
    shop.bench.executor.spawn(key)
    await answer
    seen.append(await state())
    await shop.bench.supervisor.withdraw(call_id, "stop", stop_running=True)
    seen.append(await state())
    shop.bench.executor.finish(key, Signalled(number=15, by_us=True))
    await shop.bench.state(call_id, "ended")
    seen.append(await state())
    assert seen == ["queued", "queued", "running", "cancelling", "cancelled"]


async def test_the_list_has_active_tasks_newest_first(shop: Shop):
    one, two = await shop.task(cmd="one"), await shop.task(cmd="two")
    over = await shop.task(cmd="over")
    shop.bench.executor.finish(over, settle=False)
    await shop.bench.state(over.call_id, "ended")
    shop.call(cmd="waits")
    waits = await shop.submitted()
    envelope = await TaskListTool(shop.context).execute()
    tasks = envelope["result"]["tasks"]
    assert [task["task_id"] for task in tasks] == [waits.id, two.call_id, one.call_id]
    assert [task["status"] for task in tasks] == ["queued", "running", "running"]
    text = TaskListTool(shop.context).text(envelope)
    assert "Command: two" in text and "Status: Queued" in text


async def test_an_empty_list_says_so(shop: Shop):
    tool = TaskListTool(shop.context)
    assert tool.text(await tool.execute()) == "No active tasks"


async def test_tasks_of_other_sessions_and_other_calls_are_not_found(shop: Shop):
    foreign = await shop.bench.submit(await shop.bench.session("other"), "true")
    own = await shop.bench.submit(shop.context.session.id, "true")
    for task_id in (foreign, own, "999", "no number", ""):
        for tool in (TaskStatusTool(shop.context), TaskOutputTool(shop.context)):
            envelope = await tool.execute(task_id=task_id)
            assert envelope["error"]["kind"] == "task_not_found"
            assert "TaskList" in envelope["error"]["recovery_hint"]


async def test_output_without_waiting_is_not_ready_and_has_the_output_so_far(shop: Shop):
    key = await shop.task()
    shop.bench.executor.write(key, b"one\n")
    shop.bench.executor.write(key, b"two\n", "err")
    shop.bench.executor.write(key, b"three\n")
    result = await output(shop, key.call_id, block=False)
    assert (result["retrieval_status"], result["output"]) == ("not_ready", "one\ntwo\nthree\n")
    assert result["next_offset"] == 14


async def test_reading_on_from_the_next_offset_reads_nothing_twice(shop: Shop):
    key = await shop.task()
    shop.bench.executor.write(key, b"one\n")
    first = await output(shop, key.call_id, block=False)
    shop.bench.executor.write(key, b"two\n", "err")
    second = await output(shop, key.call_id, block=False, offset=first["next_offset"])
    third = await output(shop, key.call_id, block=False, offset=second["next_offset"])
    assert [first["output"], second["output"], third["output"]] == ["one\n", "two\n", ""]


async def test_waiting_ends_with_the_task(shop: Shop):
    key = await shop.task()
    waiting = asyncio.create_task(output(shop, key.call_id, timeout_ms=60_000))
    shop.bench.executor.write(key, b"done")
    shop.bench.executor.finish(key, Exited(code=2))
    result = await waiting
    assert (result["retrieval_status"], result["output"]) == ("success", "done")
    assert (result["task"]["status"], result["task"]["exit_status"]) == ("failed", 2)


async def test_waiting_in_vain_is_a_timeout_with_the_output_so_far(shop: Shop):
    key = await shop.task()
    shop.bench.executor.write(key, b"so far")
    result = await output(shop, key.call_id, timeout_ms=1)
    assert (result["retrieval_status"], result["output"]) == ("timeout", "so far")


async def test_a_character_that_is_still_arriving_is_read_whole_the_next_time(shop: Shop):
    key = await shop.task()
    shop.bench.executor.write(key, b"a\xe2\x82")
    shop.bench.executor.write(key, b"err", "err")
    first = await output(shop, key.call_id, block=False)
    shop.bench.executor.write(key, b"\xac!")
    second = await output(shop, key.call_id, block=False, offset=first["next_offset"])
    assert (first["output"], first["next_offset"]) == ("a", 1)
    assert second["output"].replace("err", "") == "€!"


async def test_half_a_character_at_the_end_of_a_task_is_shown_as_such(shop: Shop):
    key = await shop.task()
    shop.bench.executor.write(key, b"a\xe2\x82")
    shop.bench.executor.finish(key)
    assert (await output(shop, key.call_id))["output"] == "a\ufffd"


async def test_half_a_character_does_not_hold_back_the_other_stream_for_ever(shop: Shop):
    key = await shop.task()
    shop.bench.executor.write(key, b"\xe2", at=-10.0)
    shop.bench.executor.write(key, b"later", "err", at=1.0)
    assert (await output(shop, key.call_id, block=False))["output"] == "later\ufffd"


async def test_long_output_is_cut_in_the_middle_and_its_files_are_named(shop: Shop):
    key = await shop.task()
    shop.bench.executor.write(key, b"a" * 100_000 + b"z" * 200_000)
    shop.bench.executor.files[key, "out"] = "/runs/1.1/out"
    shop.bench.executor.finish(key)
    result = await output(shop, key.call_id)
    assert result["truncated"] and result["next_offset"] == 300_000
    assert len(result["output"]) < 33_000
    assert result["output"].startswith("aaa") and result["output"].endswith("zzz")
    assert result["artifacts"] == [{"path": "/runs/1.1/out", "stream": "stdout"}]
    assert "Artifacts:\n/runs/1.1/out" in TaskOutputTool(shop.context).text(
        {"status": "success", "result": result},
    )


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        (TaskListTool, {"limit": 1}, "limit"),
        (TaskStatusTool, {}, "task_id"),
        (TaskStatusTool, {"task_id": 1}, "task_id"),
        (TaskOutputTool, {"task_id": "1", "block": "no"}, "block"),
        (TaskOutputTool, {"task_id": "1", "timeout_ms": -1}, "timeout_ms"),
        (TaskOutputTool, {"task_id": "1", "timeout_ms": 0.5}, "timeout_ms"),
        (TaskOutputTool, {"task_id": "1", "offset": -1}, "offset"),
        (TaskOutputTool, {"task_id": "1", "wait": True}, "wait"),
    ],
)
async def test_a_wrong_argument_is_named(shop: Shop, tool, arguments, named):
    envelope = await tool(shop.context).execute(**arguments)
    assert envelope["error"]["kind"] == "invalid_tool_input"
    assert named in envelope["error"]["details"]["parse_error"]


@pytest.mark.parametrize("arguments", [{"offset": 1}, {"timeout_ms": 10**400}])
async def test_a_number_that_nothing_can_be_done_with_is_named(shop: Shop, arguments):
    key = await shop.task()
    envelope = await TaskOutputTool(shop.context).execute(task_id=key.call_id, **{"block": False, **arguments})
    if "offset" in arguments:
        assert "at most 0" in envelope["error"]["message"]
    else:
        envelope = await TaskOutputTool(shop.context).execute(task_id=key.call_id, **arguments)
        assert "timeout_ms" in envelope["error"]["message"]
