"""A small client of MCP over standard input and output: the same for every server that is compared."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.peers.way import Failed

_LONGEST_LINE = 1 << 31
_OPEN_S = 60.0
_CLOSE_S = 10.0
_HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}


class Server:
    """A server that was started, with any number of requests under way."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._next = 0
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, argv: Sequence[str], environ: Mapping[str, str], place: Path) -> "Server":
        """Start one and say hello. Raises `Failed`."""
        log = (place / "server.log").open("wb")
        try:
            process = await asyncio.create_subprocess_exec(
                *argv, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log, env=dict(environ),
                cwd=place, limit=_LONGEST_LINE,
            )  # fmt: skip
        except OSError as error:
            raise Failed(f"does not start: {error.strerror}") from error
        finally:
            log.close()
        server = cls(process)
        try:
            await asyncio.wait_for(server.ask("initialize", _HELLO), _OPEN_S)
        except (TimeoutError, Failed) as error:
            await server.close()
            raise Failed(str(error) or f"did not answer within {_OPEN_S:.0f} s of its start") from None
        server._send({"method": "notifications/initialized"})
        return server

    async def ask(self, method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """One request and its result. Raises `Failed` for an error and when the server is gone."""
        self._next += 1
        number = self._next
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        if self._reading.done():
            raise Failed("the server has ended")
        self._send({"id": number, "method": method, "params": parameters})
        try:
            message = await answer
        finally:
            self._answers.pop(number, None)
        if "error" in message:
            raise Failed(str(message["error"].get("message", "an error without a message")))
        result: dict[str, Any] = message["result"]
        return result

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool. Raises `Failed` for a result that is an error."""
        result = await self.ask("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            parts = (part.get("text", "").strip() for part in result["content"])
            said = next(filter(None, parts), "an error without words")
            raise Failed(said.splitlines()[0])
        return result

    async def close(self) -> None:
        """End its input, as clients do, and end it if that does not."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _CLOSE_S)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        self._reading.cancel()
        with suppress(asyncio.CancelledError):
            await self._reading

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            while line := await self._process.stdout.readline():
                message = json.loads(line)
                waiting = self._answers.get(message.get("id")) if "method" not in message else None
                if waiting is not None and not waiting.done():
                    waiting.set_result(message)
        finally:
            for waiting in self._answers.values():
                if not waiting.done():
                    waiting.set_exception(Failed("the server ended without an answer"))


def text_of(result: Mapping[str, Any]) -> str:
    """The text of a tool's result."""
    return "".join(part.get("text", "") for part in result.get("content", ()))
