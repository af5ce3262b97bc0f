"""Three kinds of agents: over the port, over MCP through the relay, and with a shell whose hook is ours."""

import asyncio
import json
import os
from contextlib import suppress
from typing import Any

from tests.crash import work
from tests.crash.field import AGAIN_S, PROGRAM, Field
from whisper_tui.model.call import CallRequest, SessionHello
from whisper_tui.model.command import CommandSpec, Shell
from whisper_tui.model.ending import Exited
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Ended

PATIENCE_S = 60.0


async def over_the_port(field: Field, name: str) -> None:
    """An agent that asks again, with the same key, whenever the supervisor dies."""
    door = await field.door()
    session: str | None = None
    known = False
    while not field.over.is_set():
        number = next(field.numbers)
        spec = CommandSpec(command=Shell(text=work.text(number, field.root)), cwd=str(field.workspace))
        while True:
            try:
                if not known:
                    root, environment = str(field.workspace), dict(os.environ)
                    hello = SessionHello(name=name, root=root, environment=environment, resume=session)
                    session, known = (await door.open_session(hello)).id, True
                assert session is not None
                request = CallRequest(session_id=session, tool="crash", arguments={}, spec=spec, key=f"k{number}")
                record = await door.outcome(await door.submit(request))
                break
            except WhisperError:
                known = False
                await asyncio.sleep(AGAIN_S)
        await _note(field, door, number, record)
    await door.close()


async def _note(field: Field, door: Any, number: int, record: CallRecord) -> None:
    if isinstance(record.state, Ended) and isinstance(record.state.ending, Exited):
        with suppress(WhisperError):
            chunk = await door.read_output(record.id, "out", 0, 1 << 26)
            field.told[number] = (record.state.ending.code, chunk.data[: record.state.output.out])


async def with_a_hook(field: Field) -> None:
    """An agent whose own shell is supervised. What its killed hook did not answer it asks again."""
    while not field.over.is_set():
        number = next(field.numbers)
        command = await _asked(field, number)
        if command is None:
            continue
        process = await field.start("exec", *command.split(), stdin=asyncio.subprocess.DEVNULL)
        out, _ = await process.communicate()
        field.forget("exec", process)
        if process.returncode is not None and process.returncode >= 0:
            field.told[number] = (process.returncode, out)
        else:
            field.ended_by_agent.add(number)


async def _asked(field: Field, number: int) -> str | None:
    """What the agent is to run instead. None: it was told no."""
    content = {
        "session_id": "crash",
        "cwd": str(field.workspace),
        "tool_name": "Bash",
        "tool_input": {"command": work.text(number, field.root)},
    }
    while True:
        process = await field.start("hook", *PROGRAM, "hook", "claude", "--home", str(field.root))
        with suppress(ConnectionError):
            out, _ = await process.communicate(json.dumps(content).encode())
        field.forget("hook", process)
        if process.returncode == 0:
            decision = json.loads(out)["hookSpecificOutput"]
            if decision["permissionDecision"] == "deny":
                return None
            return str(decision["updatedInput"]["command"])
        await asyncio.sleep(AGAIN_S)


async def over_mcp(field: Field) -> None:
    """An agent that starts its relay again when that was killed, and goes on with something else."""
    while not field.over.is_set():
        process = await field.start("relay", *PROGRAM, "mcp", "--home", str(field.root))
        with suppress(ConnectionError, asyncio.IncompleteReadError, EOFError):
            await _converse(field, process)
        if process.returncode is None:
            process.stdin.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_S):
                    await process.wait()
        field.forget("relay", process)


async def _converse(field: Field, process: asyncio.subprocess.Process) -> None:
    client = {"name": "crash", "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    await _request(process, 0, "initialize", hello)
    _send(process, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    while not field.over.is_set():
        number = next(field.numbers)
        arguments = {"command": work.text(number, field.root), "description": "a numbered command"}
        await _request(process, number, "tools/call", {"name": "run_shell_command", "arguments": arguments})


async def _request(process: asyncio.subprocess.Process, request_id: int, method: str, params: Any) -> Any:
    _send(process, {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
    while True:
        line = await process.stdout.readline()
        if not line:
            raise EOFError
        answer = json.loads(line)
        if answer.get("id") == request_id:
            return answer


def _send(process: asyncio.subprocess.Process, message: Any) -> None:
    process.stdin.write(json.dumps(message).encode() + b"\n")
