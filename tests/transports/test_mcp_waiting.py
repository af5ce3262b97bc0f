"""Calls that take longer than their client waits: a ticket, going on to wait, and asking for the same again."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from tests.supervisor.conftest import HUMAN
from tests.transports.endpoint_server import ECHO, RESULT, EndpointServer
from whisper_tui.model.errors import Unavailable
from whisper_tui.model.event import AgentReturned, Event
from whisper_tui.model.state import WENT_ON, Held, Queued, Starting, Waiting
from whisper_tui.supervisor.settings import SupervisorSettings
from whisper_tui.tools.wait import pending
from whisper_tui.transports.mcp.mcp_calls import Calls
from whisper_tui.transports.mcp.mcp_endpoint import McpEndpoint


@pytest.fixture
def hasty(bench, tmp_path):
    """A door that answers every call in the time that it is told."""

    @asynccontextmanager
    async def opened(seconds):
        door = McpEndpoint(bench.supervisor, wait_s=seconds, progress_interval_s=0.05)
        async with EndpointServer(door, tmp_path / "hasty", bench.workspace).open() as endpoint:
            yield endpoint

    return opened


def status(result):
    return result.structured_content["status"]


def only_call(bench):
    return "".join(bench.supervisor._store.board.calls)


async def test_a_call_that_nobody_decides_about_is_answered_with_a_ticket_and_its_result_fetched_with_it(
    hasty, human, bench
):
    async with hasty(0.05) as endpoint, endpoint.client() as client:
        result = await client.call_tool("execute_command", ECHO)
        assert status(result) == "pending_approval"
        assert result.structured_content["ticket"] == "1"
        assert result.content[0].text.startswith("Not approved yet, and nothing has run")
        assert "return_code" not in json.dumps(result.structured_content)
        again = await client.call_tool("wait", {"ticket": "1"})
        assert status(again) == "pending_approval"
        await human.approve_and_run()
        final = await client.call_tool("wait", {"ticket": "1"})
    assert final.structured_content == RESULT
    assert final.is_error is False
    assert only_call(bench) == "1"


async def test_waiting_for_a_ticket_is_answered_as_soon_as_the_result_is_there(endpoint, human, bench):
    async with endpoint.client() as client:
        first = asyncio.create_task(client.call_tool("execute_command", ECHO))
        await human.waiting()
        waits = asyncio.create_task(client.call_tool("wait", {"ticket": "1"}))
        assert status(await client.call_tool("wait", {"ticket": "1", "wait_s": 0})) == "pending_approval"
        await human.approve_and_run()
        results = [await asyncio.wait_for(task, 60) for task in (first, waits)]
    assert [result.structured_content for result in results] == [RESULT, RESULT]


async def test_a_command_that_runs_on_is_answered_as_running_and_never_as_a_result(hasty, human, bench):
    async with hasty(0.05) as endpoint, endpoint.client() as client:
        await client.call_tool("run_shell_command", {"command": "make"})
        await bench.approve("1")
        key = await bench.ordered("1")
        assert status(await client.call_tool("wait", {"ticket": "1"})) in {"approved", "running"}
        bench.executor.spawn(key)
        await bench.state("1", "running")
        runs = await client.call_tool("wait", {"ticket": "1"})
        assert status(runs) == "running"
        assert "exitCode" not in json.dumps(runs.structured_content)
        bench.executor.finish(key)
        final = await client.call_tool("wait", {"ticket": "1"})
    assert final.structured_content["exitCode"] == 0


async def test_a_denial_is_told_through_the_ticket_word_for_word(hasty, bench):
    async with hasty(0.05) as endpoint, endpoint.client() as client:
        await client.call_tool("execute_command", ECHO)
        await bench.deny("1", "not on a Friday")
        final = await client.call_tool("wait", {"ticket": "1"})
    assert final.is_error is True
    assert "not on a Friday" in final.content[0].text


async def test_an_edit_is_told_through_the_ticket(hasty, human, bench):
    async with hasty(0.05) as endpoint, endpoint.client() as client:
        await client.call_tool("ExecCommand", {"cmd": "make"})
        record = await human.waiting()
        edited = record.spec.model_copy(update={"command": record.spec.command.model_copy(update={"text": "make -n"})})
        await human.approve_and_run(edited=edited)
        final = await client.call_tool("wait", {"ticket": "1"})
    assert "What ran: make -n" in final.content[0].text
    assert final.content[1].text.startswith("Process exited with code 0")


async def test_a_tool_of_its_own_is_carried_out_while_nobody_listens_and_its_result_is_kept(hasty, bench, tmp_path):
    (tmp_path / "outside.txt").write_text("from outside")
    async with hasty(0.05) as endpoint, endpoint.client() as client:
        pending = await client.call_tool("read_file", {"path": str(tmp_path / "outside.txt")})
        assert status(pending) == "pending_approval"
        await bench.approve("1")
        await bench.state("1", "ended")
        final = await client.call_tool("wait", {"ticket": "1"})
    assert final.content[0].text == "from outside"


async def test_an_end_in_the_moment_in_which_the_time_is_over_is_told_as_the_end(endpoint, human, bench, monkeypatch):
    waited = Calls.answer

    async def unlucky(self, call, seconds):
        if seconds == 0:
            await bench.deny(call.call_id, "no")
            return None
        return await waited(self, call, seconds)

    async with endpoint.client() as client:
        first = asyncio.create_task(client.call_tool("execute_command", ECHO))
        await human.waiting()
        monkeypatch.setattr(Calls, "answer", unlucky)
        result = await client.call_tool("wait", {"ticket": "1", "wait_s": 0})
        assert "Denied by the human" in result.content[0].text
        await first


@pytest.mark.parametrize(
    ("state", "status"),
    [
        (Waiting(since=1), "pending_approval"),
        (Held(since=1), "approved"),
        (Queued(since=1), "approved"),
        (Starting(attempt=1, since=1), "running"),
    ],
)
async def test_the_state_of_a_call_is_one_word_and_a_sentence(bench, state, status):
    call_id = await bench.submit(await bench.session(), "true")
    said = pending((await bench.record(call_id)).model_copy(update={"state": state}))
    assert (said["status"], said["ticket"]) == (status, call_id)
    assert said["message"].endswith(".") and "wait" in said["next"]


async def test_a_task_can_be_waited_for_by_its_number(endpoint, human, bench):
    async with endpoint.client() as client:
        call = asyncio.create_task(client.call_tool("ExecCommand", {"cmd": "make", "yield_time_ms": 0}))
        await human.waiting()
        await bench.approve("1")
        key = await bench.ordered("1")
        bench.executor.spawn(key)
        assert (await asyncio.wait_for(call, 60)).structured_content["result"]["disposition"] == "promoted_to_task"
        assert status(await client.call_tool("wait", {"ticket": "1", "wait_s": 0.05})) == "running"
        bench.executor.finish(key)
        final = await client.call_tool("wait", {"ticket": "1"})
    assert final.structured_content["result"]["disposition"] == "completed"


@pytest.mark.parametrize("ticket", ["99", "nonsense", ""])
async def test_an_unknown_ticket_is_an_error_that_says_so(endpoint, ticket):
    async with endpoint.client() as client:
        result = await client.call_tool("wait", {"ticket": ticket})
    assert result.is_error is True
    assert f"There is no ticket {ticket!r} in this session" in result.content[0].text


async def test_the_ticket_of_another_session_is_unknown_here(endpoint, human):
    async with endpoint.client() as first, endpoint.client() as second:
        call = asyncio.create_task(first.call_tool("execute_command", ECHO))
        await human.waiting()
        result = await second.call_tool("wait", {"ticket": "1"})
        assert result.is_error is True
        assert "There is no ticket '1' in this session" in result.content[0].text
        await human.approve_and_run()
        await asyncio.wait_for(call, 60)


@pytest.mark.parametrize("arguments", [{}, {"ticket": 1}, {"ticket": "1", "wait_s": -1}, {"ticket": "1", "x": 1}])
async def test_wrong_arguments_of_wait_are_named(endpoint, arguments):
    async with endpoint.client() as client:
        result = await client.call_tool("wait", arguments)
    assert result.is_error is True
    assert "argument" in result.content[0].text


async def test_the_same_request_after_a_ticket_is_the_same_call(hasty, human, bench):
    async with hasty(0.05) as endpoint, endpoint.client() as client:
        assert status(await client.call_tool("execute_command", ECHO)) == "pending_approval"
        assert status(await client.call_tool("execute_command", ECHO)) == "pending_approval"
        await human.approve_and_run()
        assert (await client.call_tool("execute_command", ECHO)).structured_content == RESULT
        assert only_call(bench) == "1"
        after = await client.call_tool("execute_command", ECHO)
    assert after.structured_content["ticket"] == "2", "what was answered is over: the next is a call of its own"


@pytest.mark.parametrize("policy", ["reuse_running", "start_new"])
async def test_an_exec_command_that_was_cancelled_is_answered_when_it_is_sent_again(endpoint, human, bench, policy):
    arguments = {"cmd": "make", "duplicate_policy": policy}
    async with endpoint.client() as client:
        call = asyncio.create_task(client.call_tool("ExecCommand", arguments))
        await human.waiting()
        call.cancel()
        await human.left()
        again = asyncio.create_task(client.call_tool("ExecCommand", arguments))
        await bench.eventually("1", lambda record: record.agent_gave_up is None)
        await human.approve_and_run()
        result = await asyncio.wait_for(again, 60)
    assert result.structured_content["result"]["disposition"] == "completed"
    assert only_call(bench) == "1"


async def test_a_call_that_was_cancelled_ends_meanwhile_and_its_answer_is_given_to_the_same_request(
    endpoint, human, bench
):
    async with endpoint.lines() as agent:
        await agent.initialize()
        agent.call(1, "execute_command", ECHO)
        await human.waiting()
        agent.cancel(1, "timed out")
        await human.left()
        await human.approve_and_run()
        await bench.state("1", "ended")
        agent.call(2, "execute_command", ECHO)
        assert (await agent.receive_answer(2))["result"]["structuredContent"] == RESULT
    assert only_call(bench) == "1"


async def test_two_equal_requests_at_once_are_two_calls(endpoint, human, bench):
    async with endpoint.client() as client:
        calls = [asyncio.create_task(client.call_tool("execute_command", ECHO)) for _ in range(2)]
        await human.approve_and_run("1")
        await human.approve_and_run("2")
        for call in calls:
            assert (await asyncio.wait_for(call, 60)).structured_content == RESULT


async def test_an_equal_request_is_a_call_of_its_own_though_the_first_was_submitted_a_moment_ago(
    endpoint, human, bench, monkeypatch
):
    waited = Calls.answer

    async def answer_after_both_are_submitted(self, call, seconds):
        await human.submitted("2")
        return await waited(self, call, seconds)

    monkeypatch.setattr(Calls, "answer", answer_after_both_are_submitted)
    async with endpoint.client() as client:
        first = asyncio.create_task(client.call_tool("execute_command", ECHO))
        await human.waiting("1")
        second = asyncio.create_task(client.call_tool("execute_command", ECHO))
        for call_id in ("1", "2"):
            await human.approve_and_run(call_id)
        ids = [(await asyncio.wait_for(call, 60)).meta["whisper-tui/call-id"] for call in (first, second)]
    assert ids == ["1", "2"]


async def test_of_two_equal_requests_after_a_cancelled_one_only_the_first_takes_its_place(endpoint, human, bench):
    async with endpoint.lines() as agent:
        await agent.initialize()
        agent.call(1, "execute_command", ECHO)
        await human.waiting()
        agent.cancel(1)
        await human.left()
        agent.call(2, "execute_command", ECHO)
        agent.call(3, "execute_command", ECHO)
        await human.approve_and_run("2")
        await human.approve_and_run("1")
        ids = [(await agent.receive_answer(n))["result"]["_meta"]["whisper-tui/call-id"] for n in (3, 2)]
    assert ids == ["2", "1"]


async def test_a_call_whose_repetition_failed_can_be_repeated_again(hasty, bench, monkeypatch):
    found, fails = bench.supervisor.record, [Unavailable("the journal cannot be read")]

    async def record(call_id):
        if fails:
            raise fails.pop()
        return await found(call_id)

    async with hasty(0.05) as endpoint, endpoint.client() as client:
        assert status(await client.call_tool("execute_command", ECHO)) == "pending_approval"
        monkeypatch.setattr(bench.supervisor, "record", record)
        failed = await client.call_tool("execute_command", ECHO)
        assert failed.is_error and "the journal cannot be read" in json.dumps(failed.model_dump())
        assert status(await client.call_tool("execute_command", ECHO)) == "pending_approval"
    assert only_call(bench) == "1"


async def test_an_agent_that_does_not_come_back_for_its_ticket_is_marked_and_unmarked_when_it_does(
    hasty, human, bench, monkeypatch
):
    monkeypatch.setattr("whisper_tui.transports.mcp.mcp_calls.RETURNS_WITHIN_S", 0.05)
    async with hasty(0.05) as endpoint, endpoint.client() as client:
        await client.call_tool("execute_command", ECHO)
        assert (await human.left()).agent_gave_up == "the agent did not come back for the answer"
        facts: list[Event] = []
        bench.supervisor._store.listen(facts.append)
        await client.call_tool("wait", {"ticket": "1"})
        assert any(isinstance(fact, AgentReturned) for fact in facts)
        await human.left()
        await human.approve_and_run()
        assert (await client.call_tool("wait", {"ticket": "1"})).structured_content == RESULT
    assert only_call(bench) == "1"


async def test_a_ticket_is_good_after_the_supervisor_stopped_and_came_back(bench, tmp_path, human):
    door = McpEndpoint(bench.supervisor, wait_s=0.05)
    async with EndpointServer(door, tmp_path / "one", bench.workspace).open() as endpoint, endpoint.lines() as agent:
        await agent.initialize()
        agent.call(1, "execute_command", ECHO)
        ticket = (await agent.receive_answer(1))["result"]["structuredContent"]["ticket"]
        session_id = agent.greeting["session_id"]
        await endpoint.stop()
    await bench.restart()
    door = McpEndpoint(bench.supervisor)
    second = EndpointServer(door, tmp_path / "two", bench.workspace)
    async with second.open(), second.lines(second.hello(resume=session_id)) as agent:
        await agent.initialize()
        agent.call(2, "wait", {"ticket": ticket})
        await human.approve_and_run()
        assert (await agent.receive_answer(2))["result"]["structuredContent"] == RESULT


async def test_where_the_user_wants_it_a_run_is_stopped_when_its_agent_cancels(bench, endpoint, human):
    bench.supervisor._settings = SupervisorSettings(when_agent_cancels="stop")
    async with endpoint.lines() as agent:
        await agent.initialize()
        agent.call(1, "execute_command", ECHO)
        await human.waiting()
        await bench.approve("1")
        bench.executor.spawn(await bench.ordered("1"))
        await bench.state("1", "running")
        agent.cancel(1)
        assert (await human.left()).stopping is True


async def test_a_call_that_a_human_sets_aside_is_answered_at_once_and_its_result_fetched_later(endpoint, human, bench):
    async with endpoint.client() as client:
        call = asyncio.create_task(client.call_tool("execute_command", ECHO))
        await human.waiting()
        await bench.supervisor.set_aside("1", HUMAN)
        result = await asyncio.wait_for(call, 60)
        assert status(result) == "pending_approval" and result.structured_content["ticket"] == "1"
        assert "The human has set it aside: nothing has run" in result.content[0].text
        assert "Go on with what does not need its result" in result.content[0].text
        await bench.eventually("1", lambda record: record.agent_gave_up == WENT_ON)
        waits = asyncio.create_task(client.call_tool("wait", {"ticket": "1"}))
        await bench.eventually("1", lambda record: record.agent_gave_up is None)
        assert not waits.done()
        await human.approve_and_run()
        final = await asyncio.wait_for(waits, 60)
    assert final.structured_content == RESULT
    assert only_call(bench) == "1"


async def test_an_agent_that_went_on_learns_with_its_next_answer_that_the_call_was_approved(endpoint, human, bench):
    async with endpoint.client() as client:
        call = asyncio.create_task(client.call_tool("execute_command", ECHO))
        await human.waiting()
        await bench.supervisor.set_aside("1", HUMAN)
        await asyncio.wait_for(call, 60)
        await bench.eventually("1", lambda record: record.agent_gave_up == WENT_ON)
        await human.approve_and_run()
        other = asyncio.create_task(client.call_tool("execute_command", {"command": "other"}))
        await human.waiting("2")
        await bench.approve("2")
        bench.executor.finish(await bench.ordered("2"))
        told = await asyncio.wait_for(other, 60)
        assert "has approved call 1" in told.meta["whisper-tui/told"] and "`wait` with ticket" in told.content[0].text
        assert (await client.call_tool("wait", {"ticket": "1"})).structured_content == RESULT


async def test_the_same_call_sent_again_joins_the_one_that_is_set_aside(endpoint, human, bench):
    async with endpoint.client() as client:
        call = asyncio.create_task(client.call_tool("execute_command", ECHO))
        await human.waiting()
        await bench.supervisor.set_aside("1", HUMAN)
        await asyncio.wait_for(call, 60)
        again = asyncio.create_task(client.call_tool("execute_command", ECHO))
        await bench.eventually("1", lambda record: record.agent_gave_up is None)
        await human.approve_and_run()
        assert (await asyncio.wait_for(again, 60)).structured_content == RESULT
    assert only_call(bench) == "1"


async def test_progress_says_that_a_call_is_set_aside_and_no_longer_counts_it(endpoint, human, bench):
    seen: list[str] = []

    async def note(_progress, _total, message):
        seen.append(message)

    async def said(words):
        async with asyncio.timeout(60):
            while not any(words in message for message in seen):
                await asyncio.sleep(0.01)

    async with endpoint.client() as client:
        first = asyncio.create_task(client.call_tool("execute_command", {"command": "first"}))
        await human.waiting("1")
        second = asyncio.create_task(client.call_tool("execute_command", ECHO, progress_callback=note))
        await human.waiting("2")
        await said("waiting for a human (1 ahead)")
        await bench.supervisor.set_aside("1", HUMAN)
        await asyncio.wait_for(first, 60)
        await said("waiting for a human (0 ahead)")
        await bench.supervisor.set_aside("2", HUMAN)
        await asyncio.wait_for(second, 60)
        waits = asyncio.create_task(client.call_tool("wait", {"ticket": "2"}, progress_callback=note))
        await said("set aside by the human, not decided yet")
        await bench.deny("2", "no")
        await asyncio.wait_for(waits, 60)


async def test_a_task_says_that_it_is_set_aside_and_whoever_waits_for_its_end_is_answered(endpoint, human, bench):
    async with endpoint.client() as client:
        call = asyncio.create_task(client.call_tool("ExecCommand", {"cmd": "make"}))
        await human.waiting()
        reads = asyncio.create_task(client.call_tool("TaskOutput", {"task_id": "1", "timeout_ms": 600_000}))
        shown = await client.call_tool("TaskStatus", {"task_id": "1"})
        assert "It waits for a human's approval" in shown.content[0].text
        await asyncio.sleep(0.1)
        await bench.supervisor.set_aside("1", HUMAN)
        await asyncio.wait_for(call, 60)
        told = (await asyncio.wait_for(reads, 60)).content[0].text
        assert "A human has set it aside" in told and "Retrieval: timeout" in told
