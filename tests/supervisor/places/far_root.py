"""A process that answers questions about files as a place does, with a directory as its root."""

import asyncio
import os
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from whisper_tui.model.errors import Unavailable
from whisper_tui.supervisor.places.frames import Frame

PROGRAM = """
import os, struct, sys
sys.path.insert(0, sys.argv[2])
from encodings import idna
from whisper_tui.supervisor.places.far_files import answer
if sys.argv[1] != "/":
    os.chroot(sys.argv[1])
os.chdir("/")
while size := sys.stdin.buffer.read(4):
    answered = answer(sys.stdin.buffer.read(struct.unpack(">I", size)[0]))
    sys.stdout.buffer.write(struct.pack(">I", len(answered)) + answered)
    sys.stdout.buffer.flush()
"""
PACKAGE = Path(__file__).parents[3]

another_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a process another root directory")


@dataclass(frozen=True)
class User:
    """The user at a place."""

    host: str = "far"
    uid: int = os.geteuid()
    home: str = "/home/me"
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": "/usr/bin:/bin", "HOME": "/home/me"})


class FarRoot:
    """The connection to such a process."""

    name = "gpu1"

    def __init__(self, root: Path | str = "/", user: User | None = None) -> None:
        self.hello: User | None = user or User()
        self.asked = 0
        self._root = str(root)
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> "FarRoot":
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-c", PROGRAM, self._root, str(PACKAGE)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 24,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    def unreached(self) -> Unavailable:
        return Unavailable(f"{self.name} is unreachable: the test says so", hint="none")

    async def ask(self, do: str, payload: bytes = b"") -> Frame:
        assert do == "files"
        assert self._process is not None and self._process.stdin is not None and self._process.stdout is not None
        self.asked += 1
        self._process.stdin.write(struct.pack(">I", len(payload)) + payload)
        (size,) = struct.unpack(">I", await self._process.stdout.readexactly(4))
        return Frame({}, await self._process.stdout.readexactly(size))
