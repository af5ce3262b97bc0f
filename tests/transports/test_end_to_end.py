"""From the official client, over the relay that agents launch, to real commands: decided from the command line."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.warm_process import WarmProcess
from whisper_tui.config import find_directories
from whisper_tui.model.errors import Unavailable
from whisper_tui.wire.client import SupervisorClient
from whisper_tui.wire.light_client import SupervisorLost, light_client

PATIENCE_S = 60
FOUR_KEYS = ["stdout", "stderr", "return_code", "timed_out"]
THREE = {"command": "sh", "args": ["-c", "echo out; echo err >&2; exit 3"]}


class Place:
    """One instance of whisper_tui in directories of its own, and a workspace."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "home"
        self.workspace = directory / "workspace"
        self.workspace.mkdir()
        (self.home / "config").mkdir(parents=True, mode=0o700)
        (self.home / "config" / "rules.toml").write_text("read_only = false\n")

    async def run(self, verb: str, *arguments: str) -> str:
        """Run a subcommand. Returns what it printed."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = WarmProcess([verb, "--home", str(self.home), *arguments], **streams)
        out, err = await asyncio.to_thread(process.communicate, timeout=PATIENCE_S)
        assert process.returncode == 0, err
        return out

    async def rows(self, verb: str, *arguments: str) -> Any:
        return json.loads(await self.run(verb, "--json", *arguments))

    async def call(self, holds: Callable[[dict[str, Any]], bool], verb: str = "list") -> dict[str, Any]:
        """Wait for a row that a listing shows."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                # The one that is asked may just be killed.
                with suppress(SupervisorLost):
                    for row in await asyncio.to_thread(self._seen, verb):
                        if holds(row):
                            return row
                await asyncio.sleep(0.05)

    def _seen(self, kind: str) -> Any:
        """The same rows without a program that has to start: for looking again and again."""
        with light_client(find_directories(str(self.home), {})) as supervisor:
            return supervisor.ask("rows", kind=kind)

    def ready(self) -> None:
        """Have a supervisor run: an agent's program would load one, which takes longer than the rest of most tests."""
        self._seen("list")

    async def waiting(self) -> str:
        """Wait for a call that waits. Returns its id."""
        return (await self.call(lambda row: row["state"] == "waiting"))["id"]

    @asynccontextmanager
    async def agent(self, **settings: Any) -> AsyncIterator[Client]:
        """The official client, which launches the relay as an agent does."""
        arguments = ["-m", "whisper_tui", "mcp", "--home", str(self.home), "--root", str(self.workspace)]
        # What decides here descends from this process, so that another one has to be the agent.
        relay = StdioServerParameters(command="sh", args=["-c", '"$@"; exit $?', "agent", sys.executable, *arguments])
        async with Client(stdio_client(relay), **settings) as client:
            yield client

    async def stop(self) -> None:
        """Stop the supervisor, if one runs, with everything that it runs."""
        with suppress(Unavailable):
            supervision = await SupervisorClient.connect(find_directories(str(self.home), {}), start=False)
            await supervision.shutdown(end_runs=True)
            await supervision.close()


@pytest.fixture
async def place(tmp_path: Path, warm: None) -> AsyncIterator[Place]:
    made = Place(tmp_path)
    yield made
    await made.stop()


async def answer(call: asyncio.Task[Any]) -> Any:
    return await asyncio.wait_for(call, PATIENCE_S)


def asked(client: Client, tool: str, arguments: dict[str, Any], **settings: Any) -> asyncio.Task[Any]:
    return asyncio.create_task(client.call_tool(tool, arguments, **settings))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_call_is_listed_while_it_waits_and_answered_with_the_four_keys_once_approved(place, mode):
    async with place.agent(mode=mode) as client:
        call = asked(client, "execute_command", THREE)
        row = await place.call(lambda row: row["state"] == "waiting")
        assert row["tool"] == "execute_command"
        assert row["command"] == ["sh", "-c", "echo out; echo err >&2; exit 3"]
        assert row["cwd"] == str(place.workspace)
        assert not call.done()
        await place.run("approve", row["id"])
        result = await answer(call)
    assert list(result.structured_content) == FOUR_KEYS
    assert result.structured_content == {"stdout": "out\n", "stderr": "err\n", "return_code": 3, "timed_out": False}
    assert json.loads(result.content[0].text) == result.structured_content


@pytest.mark.slow
async def test_the_reason_of_a_denial_reaches_the_client_word_for_word(place):
    reason = "No: use `make test` instead – and ask “Ada” <first>."  # noqa: RUF001
    async with place.agent() as client:
        call = asked(client, "execute_command", THREE)
        await place.run("deny", await place.waiting(), "--reason", reason)
        result = await answer(call)
    assert result.is_error
    assert reason in result.content[0].text


@pytest.mark.slow
async def test_an_edited_command_is_what_runs_and_the_client_is_told(place):
    async with place.agent() as client:
        call = asked(client, "execute_command", THREE)
        await place.run("approve", await place.waiting(), "--command", "echo 'edited  by' me")
        result = await answer(call)
    told, body = (part.text for part in result.content)
    assert told == "The human changed the command before it ran. What ran: echo 'edited  by' me."
    assert list(json.loads(body)) == FOUR_KEYS
    assert json.loads(body)["stdout"] == "edited  by me\n"


@pytest.mark.slow
async def test_progress_tells_the_client_that_a_human_is_waited_for(place):
    heard = asyncio.Event()

    async def note(_progress: float, _total: float | None, message: str | None) -> None:
        if message == "waiting for a human (0 ahead)":
            heard.set()

    async with place.agent() as client:
        call = asked(client, "execute_command", THREE, progress_callback=note)
        call_id = await place.waiting()
        await asyncio.wait_for(heard.wait(), PATIENCE_S)
        await place.run("deny", call_id, "--reason", "enough")
        await answer(call)


@pytest.mark.slow
async def test_a_cancelled_call_waits_on_marked_and_the_same_request_is_given_its_answer(place):
    async with place.agent() as client:
        call = asked(client, "execute_command", THREE)
        call_id = await place.waiting()
        call.cancel()
        async with asyncio.timeout(PATIENCE_S):
            while (await place.rows("show", call_id))["agent_gave_up"] is None:
                await asyncio.sleep(0.05)
        again = asked(client, "execute_command", THREE)
        await place.run("approve", call_id)
        assert (await answer(again)).structured_content["return_code"] == 3
        assert [row["id"] for row in await place.rows("history")] == [call_id]


@pytest.mark.slow
async def test_a_background_child_does_not_hold_the_answer_back_and_is_named(place):
    async with place.agent() as client:
        call = asked(client, "run_shell_command", {"command": "sleep 300 & echo hi", "description": "Leave one behind"})
        call_id = await place.waiting()
        await place.run("approve", call_id)
        result = (await answer(call)).structured_content
        (pid,) = result["backgroundPids"]
        assert (result["stdout"], result["exitCode"], result["signal"]) == ("hi\n", 0, None)
        os.kill(pid, 0)
        row = await place.call(lambda row: row["id"] == call_id, "ps")
        assert [process["pid"] for process in row["background"]] == [pid]
        await place.run("signal", call_id, "KILL")
        await place.call(lambda row: row["id"] == call_id and not any(p["alive"] for p in row["background"]), "history")


@pytest.mark.slow
async def test_a_killed_supervisor_is_not_noticed_by_the_agent_whose_call_waits(place):
    async with place.agent() as client:
        call = asked(client, "execute_command", THREE)
        call_id = await place.waiting()
        os.kill((await place.rows("status"))["pid"], signal.SIGKILL)
        assert await place.waiting() == call_id
        await place.run("approve", call_id)
        result = await answer(call)
        assert result.structured_content["stdout"] == "out\n"
        assert len(await place.rows("history")) == 1


@pytest.mark.slow
async def test_a_killed_supervisor_is_not_noticed_by_the_agent_whose_command_runs(place):
    async with place.agent(mode="legacy") as client:
        gate = place.workspace / "gate"
        script = f"echo before; while [ ! -e {gate} ]; do sleep 0.1; done; echo after"
        call = asked(client, "execute_command", {"command": "sh", "args": ["-c", script], "timeout": 120})
        call_id = await place.waiting()
        await place.run("approve", call_id)
        await place.call(lambda row: row["id"] == call_id and row["state"] == "running")
        os.kill((await place.rows("status"))["pid"], signal.SIGKILL)
        gate.touch()
        result = await answer(call)
        assert result.structured_content == {
            "stdout": "before\nafter\n",
            "stderr": "",
            "return_code": 0,
            "timed_out": False,
        }
        assert "execute_command" in [tool.name for tool in (await client.list_tools()).tools]


@pytest.mark.slow
async def test_a_stopped_supervisor_leaves_the_call_waiting_until_there_is_one_again(place):
    async with place.agent() as client:
        call = asked(client, "execute_command", THREE)
        call_id = await place.waiting()
        await place.run("stop")
        assert not call.done()
        await place.run("approve", call_id)
        assert (await answer(call)).structured_content["return_code"] == 3


@pytest.mark.slow
async def test_wrong_arguments_are_answered_at_once_and_nothing_is_listed(place):
    async with place.agent() as client:
        result = await client.call_tool("execute_command", {"command": "ls", "timeout": True})
        assert result.is_error
        assert "'timeout'" in result.content[0].text
        assert await place.rows("list") == []


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL, None])
@pytest.mark.slow
@pytest.mark.few(1)
async def test_a_waiting_call_stays_when_its_agent_is_gone(place, agent_process, end):
    words = (sys.executable, "-m", "whisper_tui", "mcp", "--home", str(place.home), "--root", str(place.workspace))
    agent = await asyncio.create_subprocess_exec(
        *agent_process.starts(*words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    info = {"name": "lines", "version": "1"}
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
    messages = (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "execute_command", "arguments": THREE},
        },
    )
    agent.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    call_id = await place.waiting()
    if end is None:
        agent.stdin.close()
    else:
        agent.send_signal(end)
    async with asyncio.timeout(PATIENCE_S):
        assert await agent.wait() == (-9 if end == signal.SIGKILL else 0)
    assert (await place.rows("show", call_id))["state"] == "waiting"
    await place.run("approve", call_id)
    row = await place.call(lambda row: row["id"] == call_id and row["state"] == "ended", "history")
    assert row["exit_code"] == 3
