"""The baselines: a command started by this program, without anybody between."""

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
