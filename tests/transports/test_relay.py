"""The relay: lines pass both ways, and no supervisor's death is the agent's business."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from whisper_tui.transports.goodbye import GOODBYE
from whisper_tui.transports.relay import workspace
from whisper_tui.transports.relay_memory import Memory, client_name, parsed

PROGRAM = str(Path(__file__).with_name("relay_program.py"))
INFO = {"name": "codex-mcp-client", "version": "1"}
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"clientInfo": INFO}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(request_id):
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": {"name": "x"}}


def answer(request_id, text="done"):
    return {"jsonrpc": "2.0", "id": request_id, "result": {"text": text}}


class Agent:
    """The relay as the agent's program sees it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    def send(self, *messages) -> None:
        self.process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    async def receive(self):
        async with asyncio.timeout(30):
            return json.loads(await self.process.stdout.readline())

    async def end(self) -> tuple[int, bytes, bytes]:
        self.process.stdin.close()
        async with asyncio.timeout(30):
            out, err = await self.process.communicate()
        return self.process.returncode, out, err


class Connection:
    """One connection as the supervisor sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.hello: dict = {}

    def send(self, *messages) -> None:
        for message in messages:
            self.writer.write(json.dumps(message).encode() + b"\n")

    async def receive(self):
        async with asyncio.timeout(30):
            return json.loads(await self.reader.readline())

    async def crash(self) -> None:
        self.writer.transport.abort()


class Supervisor:
    """Accepts relays, one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.arrived: asyncio.Queue[Connection] = asyncio.Queue()
        self._server: asyncio.Server | None = None
        self.greeting: dict = {"ok": True, "session_id": "s1"}

    async def start(self) -> None:
        self.path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._greet, str(self.path), limit=1 << 28)

    def stop(self) -> None:
        self._server.close()
        self.path.unlink(missing_ok=True)

    async def _greet(self, reader, writer) -> None:
        connection = Connection(reader, writer)
        connection.hello = await connection.receive()
        connection.send(self.greeting)
        self.arrived.put_nowait(connection)

    async def connection(self) -> Connection:
        async with asyncio.timeout(30):
            return await self.arrived.get()


@pytest.fixture
def supervisor(tmp_path):
    return Supervisor(tmp_path / "s")


@asynccontextmanager
async def relay(
    supervisor, *, environment: dict[str, str] | None = None, name: str | None = None
) -> AsyncIterator[Agent]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, PROGRAM, str(supervisor.path), str(supervisor.path.parent), *([name] if name else [])),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | (environment or {}),
        limit=1 << 28,
    )
    try:
        yield Agent(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        process._transport.close()


@asynccontextmanager
async def conversation(supervisor) -> AsyncIterator[tuple[Agent, Connection]]:
    """An agent that has initialized."""
    await supervisor.start()
    async with relay(supervisor) as agent:
        agent.send(INITIALIZE)
        connection = await supervisor.connection()
        assert await connection.receive() == INITIALIZE
        connection.send(answer(0))
        assert await agent.receive() == answer(0)
        agent.send(INITIALIZED)
        assert await connection.receive() == INITIALIZED
        yield agent, connection


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
        async with asyncio.timeout(30):
            while not Path(f"{supervisor.path}.asked").exists():
                await asyncio.sleep(0.02)
        await supervisor.start()
        again = await supervisor.connection()
        assert [await again.receive() for _ in range(3)] == [INITIALIZE, INITIALIZED, call(1)]


async def test_a_supervisor_that_said_goodbye_is_not_started_again_but_followed(supervisor):
    async with conversation(supervisor) as (agent, connection):
        agent.send(call(1))
        await connection.receive()
        supervisor.stop()
        connection.writer.write(GOODBYE)
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
        connection.writer.write(GOODBYE)
        await connection.writer.drain()
        connection.writer.close()
        agent.send(call(1))
        async with asyncio.timeout(30):
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


async def test_a_refused_hello_is_the_answer_to_the_request(supervisor):
    supervisor.greeting = {"error": {"kind": "invalid_request", "message": "the workspace is gone", "hint": "Choose"}}
    await supervisor.start()
    async with relay(supervisor) as agent:
        agent.send(INITIALIZE)
        assert "the workspace is gone. Choose" in (await agent.receive())["error"]["message"]


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


async def test_the_end_of_stdin_ends_the_connection_and_the_relay(supervisor):
    async with conversation(supervisor) as (agent, connection):
        agent.process.stdin.close()
        async with asyncio.timeout(30):
            assert await connection.reader.read() == b""
        connection.writer.close()
        code, _, err = await agent.end()
    assert (code, err) == (0, b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_ends_the_connection_and_the_relay(supervisor, number):
    async with conversation(supervisor) as (agent, connection):
        agent.process.send_signal(number)
        async with asyncio.timeout(30):
            assert await connection.reader.read() == b""
        connection.writer.close()
        code, out, err = await agent.end()
    assert (code, out, err) == (0, b"", b"")


async def test_an_agent_that_no_longer_reads_ends_the_relay(supervisor):
    async with conversation(supervisor) as (agent, connection):
        agent.process._transport.get_pipe_transport(1).close()
        async with asyncio.timeout(30):
            while agent.process.returncode is None:
                connection.send(answer(1, "x" * 100_000))
                await asyncio.sleep(0.02)
    assert agent.process.returncode == 0


async def test_a_supervisor_that_does_not_answer_the_end_does_not_hold_the_relay(supervisor):
    async with conversation(supervisor) as (agent, _connection):
        agent.process.stdin.close()
        assert (await agent.end())[0] == 0


def test_the_relay_is_standard_library_only_and_light():
    code = "import sys, whisper_tui.transports.relay; print(*sys.modules)"
    modules = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert not modules & {"pydantic", "mcp", "mcp_types", "asyncio", "jsonschema", "textual", "anyio"}


@pytest.mark.parametrize(
    ("chosen", "said", "expected"),
    [("/a", "/tmp", "/a"), (None, "/tmp", "/tmp"), (None, "/no/such", None), (None, "", None), ("b", "", "b")],
)
def test_the_workspace_is_the_chosen_one_or_the_clients_or_the_current_directory(chosen, said, expected):
    found = workspace(chosen, {"CLAUDE_PROJECT_DIR": said} if said else {})
    assert found == (os.path.join(os.getcwd(), expected) if expected else os.getcwd())


def test_the_clients_name_is_found_in_both_eras():
    meta = {"io.modelcontextprotocol/clientInfo": {"name": "claude-code", "version": "2"}}
    modern = {"method": "server/discover", "id": 1, "params": {"_meta": meta}}
    assert client_name(modern) == "claude-code"
    assert client_name(INITIALIZE) == "codex-mcp-client"
    assert client_name({"method": "ping", "id": 1}) is None
    assert client_name(None) is None


def test_a_refused_initialize_is_not_repeated_to_a_new_supervisor():
    memory = Memory()
    memory.sent(INITIALIZE, b"initialize")
    memory.received({"jsonrpc": "2.0", "id": 0, "error": {"code": -32022}})
    assert memory.replay() == ([], None)


def test_a_number_and_the_same_digits_as_text_are_two_requests():
    memory = Memory()
    memory.sent(call(1), b"number")
    memory.sent(call("1"), b"text")
    memory.received(answer("1"))
    assert memory.replay()[0] == [b"number"]


@pytest.mark.parametrize("line", [b"no JSON", b"[1]", b"7", b"\xff"])
def test_a_line_that_is_no_message_is_passed_on_and_not_remembered(line):
    memory = Memory()
    memory.sent(parsed(line), line)
    assert not memory.waits
