"""An agent over MCP that goes on with something else, over a new relay, when its relay or its client was killed."""

import asyncio
import re
from contextlib import suppress
from typing import Any

from tests.crash.client import Client, ClientGone
from tests.crash.field import AGAIN_S, PROGRAM, Field
from tests.crash.work import OF_MCP, REFUSED, Work


async def over_mcp(field: Field) -> None:
    """Converse through one relay after the other."""
    while not field.over.is_set():
        client = await Client.start(field, "MCP client")
        with suppress(ClientGone):
            await _Conversation(field, client).go()
        await client.end()


class _Conversation:
    """What is said over one relay."""

    def __init__(self, field: Field, client: Client) -> None:
        self._field = field
        self._client = client
        self._last_id = 0

    async def go(self) -> None:
        """Ask for one command after the other. Raises `ClientGone`."""
        await self._client.serve("relay", (*PROGRAM, "mcp", "--home", str(self._field.root)))
        who = {"name": "crash", "version": "1"}
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": who}
        await self._request("initialize", hello)
        await self._client.ask({"jsonrpc": "2.0", "method": "notifications/initialized"})
        while not self._field.over.is_set():
            work = self._field.numbers.next_of(OF_MCP)
            if work.kind == "task":
                await self._task(work)
            else:
                await self._command(work)

    async def _command(self, work: Work) -> None:
        arguments = {"command": work.text(self._field.root), "description": "a numbered command"}
        result = await self._tool("run_shell_command", arguments)
        if isinstance(code := result.get("exitCode"), int) and work.kind != "long":
            self._field.told.result(work, code, result["stdout"].encode())

    async def _task(self, work: Work) -> None:
        """Start a command in a terminal, and type into it once it asks: what the human refuses, then what counts."""
        started = await self._exec("ExecCommand", cmd=work.text(self._field.root), tty=True, yield_time_ms=0)
        task = started.get("task_handle", {}).get("task_id")
        shown: dict[str, Any] = started
        while task and "ready" not in shown.get("output", ""):
            shown = await self._exec("TaskOutput", task_id=task, block=False)
            if self._field.over.is_set():
                return
            if shown.get("retrieval_status") == "success":
                break
            # Nothing is typed after an error either: before the command has asked, its terminal would echo it.
            await asyncio.sleep(AGAIN_S)
        if not task:
            return
        if work.number % 2:
            await self._exec("TaskInput", task_id=task, text=REFUSED)
        await self._exec("TaskInput", task_id=task, text=f"{work.word}\n")
        ended = await self._exec("TaskOutput", task_id=task)
        if ended.get("retrieval_status") == "success":
            code = ended["task"]["exit_status"]
            if isinstance(code, int):
                self._field.told.result(work, code, re.sub(r"\r*\n", "\r\n", ended["output"]).encode())

    async def _exec(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self._tool(tool, arguments)
        result: dict[str, Any] = answer.get("result") or {}
        return result

    async def _tool(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        answer = await self._request("tools/call", {"name": tool, "arguments": arguments})
        result: dict[str, Any] = answer.get("result", {}).get("structuredContent") or {}
        return result

    async def _request(self, method: str, params: Any) -> dict[str, Any]:
        self._last_id += 1
        return await self._client.ask({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
