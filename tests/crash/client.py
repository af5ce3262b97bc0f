"""A client of an agent as the crash test holds it: a process that can be killed, with what it has started."""

import asyncio
import base64
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from tests.crash.field import Field

PROGRAM = (sys.executable, "-I", "-S", str(Path(__file__).with_name("client_program.py")))
PATIENCE_S = 60.0
"""Seconds in which what it has started ends once its input does."""


class ClientGone(Exception):
    """The client, or the server that it had started, was killed."""


class Client:
    """One process of it. What it starts are its children, which the killer may find as well."""

    def __init__(self, field: Field, kind: str, process: asyncio.subprocess.Process) -> None:
        self._field = field
        self._kind = kind
        self._process = process
        self._child: tuple[str, int] | None = None
        self.last = 0
        """The pid of what it has started last."""

    @classmethod
    async def start(cls, field: Field, kind: str) -> Self:
        """Start one. `kind` names it for the killer."""
        process = await asyncio.create_subprocess_exec(
            *PROGRAM,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=field.workspace,
            limit=1 << 26,
        )
        field.born(kind, process.pid)
        return cls(field, kind, process)

    async def run(self, kind: str, words: tuple[str, ...], given: str | None = None) -> tuple[int, bytes]:
        """Have it run a program. Returns the exit code and the output. Raises `ClientGone`."""
        await self._begin(kind, {"words": words} | ({} if given is None else {"input": given}))
        ended = await self._answer()
        self._forget_child()
        return ended["code"], base64.b64decode(ended["out"])

    async def serve(self, kind: str, words: tuple[str, ...]) -> None:
        """Have it start a server, to which it speaks from now on. Raises `ClientGone`."""
        await self._begin(kind, {"words": words, "stays": True})

    async def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a message to the server, and return the answer with its id, if it has one. Raises `ClientGone`."""
        await self._send(request)
        while "id" in request:
            answer = await self._answer()
            if answer.get("id") == request["id"]:
                return answer
        return {}

    async def end(self) -> None:
        """Close its input, so that it ends with what it has started; it may be gone already."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await self._process.wait()
        self._forget_child()
        self._field.died(self._kind, self._process.pid)

    async def _begin(self, kind: str, order: dict[str, Any]) -> None:
        await self._send(order)
        self.last = (await self._answer())["pid"]
        self._child = (kind, self.last)
        self._field.born(kind, self.last)

    async def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        try:
            await self._process.stdin.drain()
        except ConnectionError:
            raise ClientGone from None

    async def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line.endswith(b"\n"):
            raise ClientGone
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _forget_child(self) -> None:
        if self._child is not None:
            self._field.died(*self._child)
            self._child = None
