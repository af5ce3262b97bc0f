"""An agent over MCP that starts its relay again when that was killed, and goes on with something else."""

import asyncio
import json
from contextlib import suppress
from typing import Any

from tests.crash.field import PROGRAM, Field
from tests.crash.work import OF_ANY_SHELL, Work

PATIENCE_S = 60.0


async def over_mcp(field: Field) -> None:
    """Converse through one relay after the other."""
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
        work = field.numbers.next_of(OF_ANY_SHELL)
        arguments = {"command": work.text(field.root), "description": "a numbered command"}
        params = {"name": "run_shell_command", "arguments": arguments}
        answer = await _request(process, work.number, "tools/call", params)
        _note(field, work, answer.get("result", {}).get("structuredContent") or {})


def _note(field: Field, work: Work, result: dict[str, Any]) -> None:
    if isinstance(code := result.get("exitCode"), int) and work.kind != "long":
        field.told.result(work, code, result["stdout"].encode())


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
