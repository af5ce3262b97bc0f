"""Sessions behind the MCP door: they begin, come back, and end with their connection."""

import asyncio

import pytest

from tests.transports.endpoint_server import ECHO, RESULT
from whisper_tui.transports.mcp.relay import GOODBYE_METHOD


async def test_the_session_learns_which_client_it_is(endpoint, bench):
    async with endpoint.client(name="codex-mcp-client", mode="legacy") as client:
        await client.list_tools()
        (session,) = bench.supervisor._store.board.sessions.values()
        assert (session.client.name, session.client.version) == ("codex-mcp-client", "1.0")


async def test_a_command_longer_than_any_pipe_arrives_whole(endpoint, human, bench):
    text = "echo " + "ä" * 1_000_000
    async with endpoint.lines() as agent:
        await agent.initialize()
        agent.call(1, "run_shell_command", {"command": text})
        await human.waiting()
    assert (await bench.record("1")).call.spec.command.text == text


async def test_a_session_ends_with_its_connection_and_its_waiting_call_waits_on_marked(endpoint, human, bench):
    async with endpoint.lines() as agent:
        await agent.initialize()
        agent.call(1, "execute_command", ECHO)
        await human.waiting()
    sessions = bench.supervisor._store.board.sessions
    async with asyncio.timeout(60):
        while sessions["s1"].closed_at is None:
            await asyncio.sleep(0.01)
    assert sessions["s1"].closed_because == "the agent disconnected"
    record = await bench.record("1")
    assert record.state.kind == "waiting"
    assert record.agent_gave_up == "the agent disconnected"


async def test_an_agent_that_comes_back_and_asks_again_gets_the_answer_of_the_same_call(endpoint, human, bench):
    async with endpoint.lines() as agent:
        await agent.initialize()
        agent.call(1, "execute_command", ECHO)
        await human.waiting()
        session_id = agent.greeting["session_id"]
        async with endpoint.lines(endpoint.hello(resume=session_id)) as again:
            assert again.greeting["session_id"] == session_id
            await again.initialize()
            again.call(1, "execute_command", ECHO)
            await human.approve_and_run()
            assert (await again.receive_answer(1))["result"]["structuredContent"] == RESULT
    assert list(bench.supervisor._store.board.calls) == ["1"]


async def test_the_old_connection_does_not_end_the_session_that_a_new_one_took_over(endpoint, bench):
    async with endpoint.lines() as old, endpoint.lines(endpoint.hello(resume=old.greeting["session_id"])) as new:
        await new.initialize()
        old.writer.close()
        new.request(2, "ping", {})
        await new.receive_answer(2)
        assert bench.supervisor._store.board.sessions["s1"].closed_at is None


async def test_a_reused_request_id_is_a_new_call(endpoint, human, bench):
    async with endpoint.lines() as agent:
        await agent.initialize()
        for call_id in ("1", "2"):
            agent.call(5, "execute_command", ECHO)
            await human.approve_and_run(call_id)
            assert "result" in await agent.receive_answer(5)
    assert set(bench.supervisor._store.board.calls) == {"1", "2"}


async def test_a_supervisor_that_stops_says_goodbye_answers_nothing_and_keeps_the_session(endpoint, human, bench):
    async with endpoint.lines() as agent:
        await agent.initialize()
        agent.call(1, "execute_command", ECHO)
        await human.waiting()
        await endpoint.stop()
        goodbye = await agent.receive()
        assert goodbye["method"] == GOODBYE_METHOD
        assert goodbye["params"] == {"heard": 3}, "initialize, initialized, the call"
        assert await agent.reader.read() == b""
    assert bench.supervisor._store.board.sessions["s1"].closed_at is None


async def test_the_hello_says_how_long_the_agent_waits(endpoint, human):
    async with endpoint.lines(endpoint.hello() | {"wait_s": 0.05}) as agent:
        await agent.initialize()
        agent.call(1, "execute_command", ECHO)
        result = (await agent.receive_answer(1))["result"]
    assert result["structuredContent"]["status"] == "pending_approval"


@pytest.mark.parametrize("wait_s", [0, -1, "long", True, 1e9])
async def test_a_hello_with_an_impossible_wait_is_refused(endpoint, wait_s):
    async with endpoint.lines(endpoint.hello() | {"wait_s": wait_s}) as agent:
        assert "not a valid number of seconds to wait" in agent.greeting["error"]["message"]
