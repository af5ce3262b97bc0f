"""No supervisor's death is the agent's business."""

import asyncio
from pathlib import Path

import pytest

from tests.transports.relay_ends import INITIALIZE, INITIALIZED, OPENING, answer, call, conversation, relay
from whisper_tui.transports.mcp.relay import goodbye


async def test_a_supervisors_crash_is_not_noticed_by_the_agent(supervisor):
    async with conversation(supervisor) as (agent, connection):
        agent.send(call(1), call(2))
        assert [await connection.receive(), await connection.receive()] == [call(1), call(2)]
        connection.send(answer(1))
        assert await agent.receive() == answer(1)
        connection.writer.write(b'{"jsonrpc": "2.0", "id": 2, "resu')
        await connection.writer.drain()
        await connection.crash()
        again = await supervisor.connection()
        assert again.hello["session"]["resume"] == "s1"
        assert [await again.receive() for _ in range(3)] == [INITIALIZE, INITIALIZED, call(2)]
        again.send(answer(0), answer(2))
        assert await agent.receive() == answer(2)


async def test_an_unanswered_initialize_is_sent_again_and_its_answer_reaches_the_agent(supervisor):
    await supervisor.start()
    async with relay(supervisor) as agent:
        agent.send(INITIALIZE)
        await (await supervisor.connection()).crash()
        again = await supervisor.connection()
        assert await again.receive() == INITIALIZE
        again.send(answer(0))
        assert await agent.receive() == answer(0)


async def test_a_cancelled_request_is_not_sent_again(supervisor):
    async with conversation(supervisor) as (agent, connection):
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        agent.send(call(1), call(2), cancel)
        for _ in range(3):
            await connection.receive()
        await connection.crash()
        again = await supervisor.connection()
        assert [await again.receive() for _ in range(3)] == [INITIALIZE, INITIALIZED, call(2)]


async def test_a_new_supervisor_is_started_for_an_agent_that_waits(supervisor):
    async with conversation(supervisor) as (agent, connection):
        agent.send(call(1))
        await connection.receive()
        supervisor.stop()
        await connection.crash()
        async with asyncio.timeout(60):
            while not Path(f"{supervisor.path}.asked").exists():
                await asyncio.sleep(0.02)
        await supervisor.start()
        again = await supervisor.connection()
        assert [await again.receive() for _ in range(3)] == [INITIALIZE, INITIALIZED, call(1)]


@pytest.mark.slow
async def test_a_supervisor_that_said_goodbye_is_not_started_again_but_followed(supervisor):
    async with conversation(supervisor) as (agent, connection):
        agent.send(call(1))
        await connection.receive()
        supervisor.stop()
        connection.writer.write(goodbye(3))
        connection.writer.close()
        await asyncio.sleep(1.5)  # long enough for a relay that does not keep still to be caught
        assert not Path(f"{supervisor.path}.asked").exists()
        await supervisor.start()
        again = await supervisor.connection()
        assert [await again.receive() for _ in range(3)] == [INITIALIZE, INITIALIZED, call(1)]
        again.send(answer(0), answer(1))
        assert await agent.receive() == answer(1)


async def test_a_new_request_starts_the_supervisor_that_was_stopped(supervisor):
    async with conversation(supervisor) as (agent, connection):
        supervisor.stop()
        connection.writer.write(goodbye(2))
        await connection.writer.drain()
        connection.writer.close()
        agent.send(call(1))
        async with asyncio.timeout(60):
            while not Path(f"{supervisor.path}.asked").exists():
                await asyncio.sleep(0.02)
        await supervisor.start()
        again = await supervisor.connection()
        assert [await again.receive() for _ in range(3)] == [INITIALIZE, INITIALIZED, call(1)]


async def test_where_no_supervisor_can_be_had_the_request_is_answered_with_the_reason(supervisor):
    Path(f"{supervisor.path}.hopeless").touch()
    async with relay(supervisor) as agent:
        agent.send(INITIALIZE)
        error = (await agent.receive())["error"]
        assert error["message"] == "whisper_tui cannot be reached: the supervisor cannot be started. Look into its log"
        code, out, err = await agent.end()
    assert (code, out) == (0, b"")
    assert b"the supervisor cannot be started" in err


async def test_initialize_is_answered_while_a_supervisor_starts_which_is_told_of_it_once_it_runs(supervisor):
    async with relay(supervisor) as agent:
        agent.send(OPENING)
        assert (await agent.receive())["result"]["protocolVersion"] == "2025-06-18"
        agent.send(INITIALIZED, call(1))
        await supervisor.start()
        connection = await supervisor.connection()
        assert connection.hello["session"]["name"].endswith("(codex-mcp-client)")
        assert [await connection.receive() for _ in range(3)] == [OPENING, INITIALIZED, call(1)]
        connection.send(answer(0), answer(1))
        assert await agent.receive() == answer(1)


async def test_where_no_supervisor_can_be_started_the_request_after_initialize_is_answered_with_the_reason(supervisor):
    Path(f"{supervisor.path}.hopeless").touch()
    async with relay(supervisor) as agent:
        agent.send(OPENING)
        assert "result" in await agent.receive()
        agent.send(INITIALIZED, call(1))
        error = await agent.receive()
        assert error["id"] == 1
        assert error["error"]["message"].endswith("the supervisor cannot be started. Look into its log")
        await supervisor.start()
        agent.send(call(2))
        connection = await supervisor.connection()
        assert connection.hello["session"]["name"].endswith("(codex-mcp-client)")
        assert [await connection.receive() for _ in range(3)] == [OPENING, INITIALIZED, call(2)]


async def test_initialize_is_left_to_a_supervisor_that_runs(supervisor):
    async with conversation(supervisor, OPENING):
        pass


async def test_a_refused_hello_is_the_answer_to_the_request(supervisor):
    supervisor.greeting = {"error": {"kind": "invalid_request", "message": "the workspace is gone", "hint": "Choose"}}
    await supervisor.start()
    async with relay(supervisor) as agent:
        agent.send(INITIALIZE)
        assert "the workspace is gone. Choose" in (await agent.receive())["error"]["message"]


@pytest.mark.slow
async def test_a_request_that_kills_every_supervisor_is_given_up(supervisor):
    async with conversation(supervisor) as (agent, connection):
        agent.send(call(1))
        await connection.receive()
        await connection.crash()
        refusal = asyncio.create_task(agent.receive())
        while not refusal.done():
            arrival = asyncio.create_task(supervisor.connection())
            await asyncio.wait((refusal, arrival), return_when=asyncio.FIRST_COMPLETED)
            if arrival.done():
                await arrival.result().crash()
            arrival.cancel()
        assert refusal.result()["id"] == 1
        assert "whisper_tui cannot be reached" in refusal.result()["error"]["message"]
