"""The relay passes lines both ways, and ends with its agent."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from tests.transports.relay_ends import INITIALIZE, answer, call, conversation, relay


async def test_the_hello_names_the_session_and_brings_the_environment(supervisor):
    await supervisor.start()
    async with relay(supervisor, environment={"MARK": "grün"}) as agent:
        agent.send(INITIALIZE)
        hello = (await supervisor.connection()).hello
    assert (hello["door"], hello["version"]) == ("mcp", 1)
    session = hello["session"]
    assert session["name"] == f"{supervisor.path.parent.name} (codex-mcp-client)"
    assert session["root"] == str(supervisor.path.parent)
    assert session["pid"] == os.getpid()
    assert session["environment"]["MARK"] == "grün"
    assert session["resume"] is None


async def test_a_chosen_name_is_the_sessions_name(supervisor):
    await supervisor.start()
    async with relay(supervisor, name="night shift") as agent:
        agent.send(INITIALIZE)
        assert (await supervisor.connection()).hello["session"]["name"] == "night shift"


async def test_lines_of_any_length_pass_both_ways_unchanged(supervisor):
    async with conversation(supervisor) as (agent, connection):
        long = call(1) | {"params": {"text": "ä" * 3_000_000}}
        agent.send(long)
        assert await connection.receive() == long
        back = answer(1, "ö" * 3_000_000)
        connection.send(back)
        assert await agent.receive() == back


async def test_the_end_of_stdin_ends_the_connection_and_the_relay(supervisor):
    async with conversation(supervisor) as (agent, connection):
        agent.process.stdin.close()
        async with asyncio.timeout(60):
            assert await connection.reader.read() == b""
        connection.writer.close()
        code, _, err = await agent.end()
    assert (code, err) == (0, b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_ends_the_connection_and_the_relay(supervisor, number):
    async with conversation(supervisor) as (agent, connection):
        agent.process.send_signal(number)
        async with asyncio.timeout(60):
            assert await connection.reader.read() == b""
        connection.writer.close()
        code, out, err = await agent.end()
    assert (code, out, err) == (0, b"", b"")


async def test_an_agent_that_no_longer_reads_ends_the_relay(supervisor):
    async with conversation(supervisor) as (agent, connection):
        agent.process._transport.get_pipe_transport(1).close()
        async with asyncio.timeout(60):
            while agent.process.returncode is None:
                connection.send(answer(1, "x" * 100_000))
                await asyncio.sleep(0.02)
    assert agent.process.returncode == 0


async def test_a_supervisor_that_does_not_answer_the_end_does_not_hold_the_relay(supervisor):
    async with conversation(supervisor) as (agent, _connection):
        agent.process.stdin.close()
        assert (await agent.end())[0] == 0


def test_the_relay_is_standard_library_only_and_light():
    code = "import sys, whisper_tui.transports.mcp.relay; print(*sys.modules)"
    modules = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert not modules & {"pydantic", "mcp", "mcp_types", "asyncio", "jsonschema", "textual", "anyio"}
