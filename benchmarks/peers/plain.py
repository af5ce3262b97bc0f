"""The baselines: a command that this program starts itself, and one that it writes to a shell."""

import asyncio
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.way import Argv, Failed, Way


class Subprocess(Way):
    """A process with its output in a file: the floor. `through`: a program that the output passes on its way."""

    def __init__(self, name: str, through: str = "") -> None:
        self.name = name
        self._through = through
        self._place = Path()
        self._number = 0

    async def open(self, place: Path, at_once: int, commands: Sequence[Argv]) -> None:
        """Nothing needs to be started."""
        self._place = place

    async def run(self, argv: Argv) -> None:
        """Start it and wait."""
        self._number += 1
        if self._through:
            argv = ("bash", "-c", f"{shlex.join(argv)} | {self._through}")
        output = os.open(self._place / f"out-{self._number}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            process = await asyncio.create_subprocess_exec(*argv, stdin=asyncio.subprocess.DEVNULL, stdout=output)
        finally:
            os.close(output)
        if code := await process.wait():
            raise Failed(f"exit code {code}")

    def kept(self) -> int:
        """The size of the file."""
        return (self._place / f"out-{self._number}").stat().st_size

    async def close(self) -> None:
        """Nothing was started."""


class Shell(Way):
    """Shells that stay, one for each command under way: what an agent's own shell tool is at its simplest."""

    name = "a shell that stays"

    async def open(self, place: Path, at_once: int, commands: Sequence[Argv]) -> None:
        """Start them."""
        self._shells: list[asyncio.subprocess.Process] = []
        self._idle: asyncio.Queue[asyncio.subprocess.Process] = asyncio.Queue()
        for _ in range(at_once):
            shell = await asyncio.create_subprocess_exec(
                "bash", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, cwd=place
            )
            self._shells.append(shell)
            self._idle.put_nowait(shell)

    async def run(self, argv: Argv) -> None:
        """Write a line to one of them, and read how it went."""
        shell = await self._idle.get()
        assert shell.stdin is not None and shell.stdout is not None
        shell.stdin.write(f"{shlex.join(argv)} < /dev/null > /dev/null; echo $?\n".encode())
        code = (await shell.stdout.readline()).decode().strip()
        if code != "0":
            raise Failed(f"exit code {code}")
        self._idle.put_nowait(shell)

    def kept(self) -> int:
        """Nothing is kept."""
        return 0

    async def close(self) -> None:
        """End them, as the end of their input does."""
        for shell in self._shells:
            assert shell.stdin is not None
            shell.stdin.close()
            await shell.wait()
