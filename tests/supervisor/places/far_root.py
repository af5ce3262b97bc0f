"""Places for tests: this machine as one, and a process that has a directory as its root."""

import asyncio
import os
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from whisper_tui.model.errors import Unavailable
from whisper_tui.supervisor.places import far_files
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


class SamePlace:
    """The connection to a place that has the files of this machine."""

    def __init__(self, name: str = "gpu1", user: User | None = None) -> None:
        self.name = name
        self.hello: User | None = user or User(home=str(Path.home()), environment=dict(os.environ))
        self.asked = 0
        self.gate = asyncio.Event()
        """Set while it answers."""
        self.gate.set()

    async def reach(self) -> "User | None":
        return self.hello

    def unreached(self) -> Unavailable:
        return Unavailable(f"{self.name} is unreachable: the test says so", hint="none")

    async def ask(self, do: str, payload: bytes = b"") -> Frame:
        assert do == "files"
        self.asked += 1
        await self.gate.wait()
        if self.hello is None:
            raise self.unreached()
        return Frame({}, await self.answer(payload))

    async def answer(self, payload: bytes) -> bytes:
        return far_files.answer(payload)


class FarRoot(SamePlace):
    """The connection to a process with another root directory."""

    def __init__(self, root: Path | str = "/", user: User | None = None) -> None:
        super().__init__(user=user or User())
        self._root = str(root)
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

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

    async def answer(self, payload: bytes) -> bytes:
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        async with self._turn:
            process.stdin.write(struct.pack(">I", len(payload)) + payload)
            (size,) = struct.unpack(">I", await process.stdout.readexactly(4))
            return await process.stdout.readexactly(size)
