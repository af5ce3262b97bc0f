"""The real subcommand over pipes, before a real supervisor: a raw client in the place of Codex."""

import asyncio
import base64
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.transports.test_end_to_end import PATIENCE_S, Place

Message = dict[str, Any]


def uri(path: object) -> str:
    return Path(str(path)).as_uri()


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class Codex:
    """Sends requests, and keeps every line that the environment writes."""

    def __init__(self, process: asyncio.subprocess.Process, workspace: Path) -> None:
        self.process = process
        self.workspace = workspace
        self.lines: list[Message] = []
        self.session_id = ""
        self._last_id = 0
        self._came = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            async with self._came:
                self.lines.append(json.loads(line))
                self._came.notify_all()
        async with self._came:
            self.lines.append({"method": "the end"})
            self._came.notify_all()

    async def skip(self) -> None:
        """Read everything, and keep nothing."""
        assert self.process.stdout is not None
        while await self.process.stdout.read(1 << 18):
            pass

    async def until(self, holds: Callable[[Message], bool]) -> Message:
        """Wait for a line."""
        async with asyncio.timeout(PATIENCE_S), self._came:
            while True:
                found = next((line for line in self.lines if holds(line)), None)
                if found is not None:
                    return found
                await self._came.wait()

    async def send(self, method: str, params: Message, **more: Any) -> int:
        assert self.process.stdin is not None
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": params, **more}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        await self.process.stdin.drain()
        return self._last_id

    async def notify(self, method: str, params: Message) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"method": method, "params": params}).encode() + b"\n")
        await self.process.stdin.drain()

    async def answer(self, request_id: int) -> Message:
        return await self.until(lambda line: line.get("id") == request_id)

    def has_answer(self, request_id: int) -> bool:
        return any(line.get("id") == request_id for line in self.lines)

    async def ask(self, method: str, **params: Any) -> Message:
        """Send a request and return its answer."""
        return await self.answer(await self.send(method, params))

    async def initialize(self, resume: str | None = None) -> Message:
        answer = await self.ask("initialize", clientName="codex-environment", resumeSessionId=resume)
        if "result" in answer:
            self.session_id = answer["result"]["sessionId"]
        return answer

    async def start(self, name: str, text: str, **more: Any) -> int:
        """Request a command in the form of Codex."""
        params = {
            "processId": name,
            "metadata": {"threadId": "thread-1", "toolCallId": f"call-{name}"},
            "argv": ["/bin/bash", "-c", text],
            "cwd": uri(self.workspace),
            "envPolicy": {"inherit": "all", "ignoreDefaultExcludes": True, "exclude": [], "set": {}, "includeOnly": []},
            "env": {"CODEX_SESSION_ID": "thread-1", "CODEX_TOOL_CALL_ID": f"call-{name}"},
            "tty": False,
            "pipeStdin": False,
            "arg0": None,
            "sandbox": None,
        }
        return await self.send("process/start", params | more)

    async def closed(self, name: str) -> int:
        """Wait until a command is over. Return its exit code."""
        await self.until(lambda line: self._is(line, "process/closed", name))
        ended = await self.until(lambda line: self._is(line, "process/exited", name))
        return int(ended["params"]["exitCode"])

    def _is(self, line: Message, method: str, name: str) -> bool:
        return line.get("method") == method and line["params"]["processId"] == name

    def notes(self, name: str) -> list[Message]:
        """The notifications about a command."""
        return [line for line in self.lines if "method" in line and line.get("params", {}).get("processId") == name]

    def output(self, name: str, *streams: str) -> str:
        """The output of a command so far."""
        pieces = (line["params"] for line in self.notes(name) if line["method"] == "process/output")
        wanted = (piece for piece in pieces if not streams or piece["stream"] in streams)
        return b"".join(base64.b64decode(piece["chunk"]) for piece in wanted).decode()

    async def write_file(self, path: Path, content: str) -> int:
        return await self.send("fs/writeFile", {"path": uri(path), "dataBase64": encoded(content), "sandbox": None})


class ExecutorPlace(Place):
    """An instance, and environments of Codex that belong to it."""

    @asynccontextmanager
    async def codex(
        self, *options: str, resume: str | None = None, through: Sequence[str] = (), begins: bool = True
    ) -> AsyncIterator[Codex]:
        """Start the environment, and initialize it if it `begins`.

        `through`: the words of a program that starts it, such as ssh.
        """
        self.ready()
        # The decisions come from children of this process, so that another one has to be the agent.
        words = ["sh", "-c", '"$@"; exit $?', "agent", *through, sys.executable, "-m", "whisper_tui", "executor"]
        process = await asyncio.create_subprocess_exec(
            *(*words, "--home", str(self.home), *options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self.workspace,
            limit=1 << 22,
        )
        codex = Codex(process, self.workspace)
        try:
            if begins:
                await codex.initialize(resume)
            yield codex
        finally:
            assert process.stdin is not None
            process.stdin.close()
            await asyncio.wait_for(process.wait(), PATIENCE_S)
            await asyncio.wait([codex._reading])

    async def ended(self, call_id: str) -> dict[str, Any]:
        return await self.call(lambda row: row["id"] == call_id and row["ending"] is not None, "history")


@pytest.fixture
async def place(tmp_path: Path, warm: None) -> AsyncIterator[ExecutorPlace]:
    made = ExecutorPlace(tmp_path)
    yield made
    await made.stop()
