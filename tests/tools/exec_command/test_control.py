"""TaskInput and TaskStop: asked like commands, and truthful about what they did."""

import asyncio

import pytest

from tests.tools.exec_command.conftest import Shop
from whisper_tui.model.ending import Exited, Signalled
from whisper_tui.model.state import CallRecord
from whisper_tui.tools import AskedTool, TaskInputTool, TaskStopTool, task_tools


def asked(shop: Shop, kind):
    return AskedTool(shop.context, kind(shop.context))


async def approved(shop: Shop, kind, **arguments) -> dict:
    """The envelope of a call that a human agrees to."""
    answer = asyncio.create_task(asked(shop, kind).execute(**arguments))
    await shop.bench.approve((await newest(shop, kind)).id)
    async with asyncio.timeout(60):
        return await answer


async def newest(shop: Shop, kind) -> CallRecord:
    name = kind(shop.context).name
    async with asyncio.timeout(60):
        while True:
            calls = shop.bench.supervisor._store.board.calls.values()
            waiting = [call for call in calls if call.call.tool == name and call.state.kind == "waiting"]
            if waiting:
                return waiting[-1]
            await asyncio.sleep(0.005)


async def test_input_is_asked_with_the_text_shown_and_then_typed_as_it_is(shop: Shop):
    key = await shop.task(accepts_input=True)
    answer = asyncio.create_task(asked(shop, TaskInputTool).execute(task_id=key.call_id, text="yes\n"))
    record = await newest(shop, TaskInputTool)
    assert shop.bench.executor.typed == []
    assert record.spec.command.arguments == {"task_id": key.call_id, "text": "yes\n"}
    await shop.bench.approve(record.id)
    envelope = await answer
    assert shop.bench.executor.typed == [(key, b"yes\n", False)]
    assert envelope["result"]["bytes_written"] == 4 and not envelope["result"]["stdin_closed"]
    assert (await shop.bench.record(record.id)).state.ending == Exited(code=0)


async def test_no_line_feed_is_added_and_the_input_can_be_closed(shop: Shop):
    key = await shop.task(tty=True)
    envelope = await approved(shop, TaskInputTool, task_id=key.call_id, text="ö", close_stdin=True)
    assert shop.bench.executor.typed == [(key, "ö".encode(), True)]
    assert "Sent 2 bytes, and its input was closed" in TaskInputTool(shop.context).text(envelope)


async def test_denied_input_is_not_typed_and_the_words_reach_the_agent(shop: Shop):
    key = await shop.task(accepts_input=True)
    answer = asyncio.create_task(asked(shop, TaskInputTool).execute(task_id=key.call_id, text="yes\n"))
    await shop.bench.deny((await newest(shop, TaskInputTool)).id, "answer no")
    envelope = await answer
    assert envelope["error"]["kind"] == "approval_denied" and "answer no" in envelope["error"]["message"]
    assert shop.bench.executor.typed == []


async def test_input_that_nobody_reads_needs_no_approval(shop: Shop):
    deaf = await shop.task(cmd="deaf")
    over = await shop.task(cmd="over", accepts_input=True)
    shop.bench.executor.finish(over)
    await shop.bench.state(over.call_id, "ended")
    for task_id, kind in (
        (deaf.call_id, "tool_execution_failed"),
        (over.call_id, "tool_execution_failed"),
        ("99", "task_not_found"),
    ):
        envelope = await asked(shop, TaskInputTool).execute(task_id=task_id, text="x")
        assert envelope["error"]["kind"] == kind
    assert shop.bench.supervisor._store.board.waiting == {}


async def test_a_task_that_never_reads_is_reported(shop: Shop, monkeypatch):
    key = await shop.task(accepts_input=True)

    async def stuck(*_args, **_more):
        await asyncio.Event().wait()

    monkeypatch.setattr(shop.bench.executor, "write_stdin", stuck)
    monkeypatch.setattr(task_tools, "INPUT_S", 0.01)
    envelope = await approved(shop, TaskInputTool, task_id=key.call_id, text="x")
    assert "does not read its input" in envelope["error"]["message"]


async def test_a_stop_is_asked_and_ends_the_task_with_a_grace(shop: Shop):
    key = await shop.task()
    answer = asyncio.create_task(asked(shop, TaskStopTool).execute(task_id=key.call_id))
    record = await newest(shop, TaskStopTool)
    assert shop.bench.executor.ended == []
    await shop.bench.approve(record.id)
    async with asyncio.timeout(60):
        while shop.bench.executor.ended != [key]:
            await asyncio.sleep(0.005)
    shop.bench.executor.finish(key, Signalled(number=15, by_us=True))
    result = (await answer)["result"]
    assert (result["outcome"], result["task"]["status"]) == ("stopped", "cancelled")
    assert shop.bench.executor.signals == []


async def test_a_second_stop_forces(shop: Shop, monkeypatch):
    monkeypatch.setattr(task_tools, "AFTER_GRACE_S", -3.0)
    key = await shop.task()
    first = await approved(shop, TaskStopTool, task_id=key.call_id)
    assert (first["result"]["outcome"], first["result"]["task"]["status"]) == ("stopping", "cancelling")
    second = await approved(shop, TaskStopTool, task_id=key.call_id)
    assert shop.bench.executor.signals == [(key, 9, "tree")]
    assert second["result"]["outcome"] == "stopping"
    shop.bench.executor.finish(key, Signalled(number=9, by_us=True))
    await shop.bench.state(key.call_id, "ended")
    third = await asked(shop, TaskStopTool).execute(task_id=key.call_id)
    assert third["result"]["outcome"] == "already_over"


async def test_a_stop_tells_the_truth_about_a_finished_task_without_asking(shop: Shop):
    key = await shop.task()
    shop.bench.executor.finish(key, Exited(code=0))
    await shop.bench.state(key.call_id, "ended")
    envelope = await asked(shop, TaskStopTool).execute(task_id=key.call_id)
    assert envelope["result"]["outcome"] == "already_over"
    assert envelope["result"]["task"]["status"] == "completed"
    assert "completed" in envelope["summary_text"]


async def test_a_waiting_task_is_withdrawn_without_approval(shop: Shop):
    answer = shop.call()
    record = await shop.submitted()
    envelope = await asked(shop, TaskStopTool).execute(task_id=record.id)
    assert (envelope["result"]["outcome"], envelope["result"]["task"]["status"]) == ("withdrawn", "cancelled")
    assert (await answer)["error"]["details"] == {"cause": "withdrawn"}


async def test_a_standing_approval_of_the_session_answers_for_the_same_stop(shop: Shop, monkeypatch):
    monkeypatch.setattr(task_tools, "AFTER_GRACE_S", -3.0)
    key = await shop.task()
    answer = asyncio.create_task(asked(shop, TaskStopTool).execute(task_id=key.call_id))
    await shop.bench.approve((await newest(shop, TaskStopTool)).id, remember="exact_for_session")
    await answer
    async with asyncio.timeout(60):
        await asked(shop, TaskStopTool).execute(task_id=key.call_id)
    assert shop.bench.executor.signals == [(key, 9, "tree")]


@pytest.mark.parametrize(
    ("kind", "arguments", "named"),
    [
        (TaskInputTool, {}, "task_id"),
        (TaskInputTool, {"task_id": 7}, "task_id"),
        (TaskInputTool, {"task_id": "1", "text": None}, "text"),
        (TaskInputTool, {"task_id": "1", "close_stdin": "yes"}, "close_stdin"),
        (TaskInputTool, {"task_id": "1", "newline": True}, "newline"),
        (TaskStopTool, {}, "task_id"),
        (TaskStopTool, {"task_id": ["1"]}, "task_id"),
        (TaskStopTool, {"task_id": "1", "force": True}, "force"),
    ],
)
async def test_a_wrong_argument_is_named_and_asks_nobody(shop: Shop, kind, arguments, named):
    for tool in (asked(shop, kind), kind(shop.context)):
        envelope = await tool.execute(**arguments)
        assert envelope["error"]["kind"] == "invalid_tool_input"
        assert named in envelope["error"]["details"]["parse_error"]
    assert shop.bench.supervisor._store.board.calls == {}
