"""Queues for commands, driven by their programs as a person or a script does."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks.peers.install import program
from benchmarks.peers.programs import ANSWER_S, said
from benchmarks.peers.way import Argv, Failed, Way, environment


class _Queue(Way):
    """A program that is given a command, prints the name of its job and is asked about that afterwards."""

    _environ: dict[str, str]
    _last = ""
    """The job that was submitted last."""

    async def run(self, argv: Argv) -> None:
        """Submit it and wait until it is over."""
        await self.wait(await self.submit(argv))

    async def submit(self, argv: Argv, limit_s: float = ANSWER_S) -> str:
        """Put it into the queue."""
        self._last = await said((program(self.name), *argv), self._environ, limit_s)
        return self._last

    async def wait(self, job: str) -> None:
        """Wait until it is over."""
        await said((program(self.name), "-w", job), self._environ)


class TaskSpooler(_Queue):
    """task-spooler: a server in C that starts with the first command, and forgets everything with its end."""

    name = "task-spooler"

    async def open(self, place: Path, at_once: int, commands: Sequence[Argv]) -> None:
        """Start the server."""
        self._environ = environment(place, TS_SOCKET=str(place / "socket"), TS_SLOTS=str(at_once), TS_MAXFINISHED="100")
        self._environ["TMPDIR"] = str(place)
        await self._tsp("-S", str(at_once))

    async def listed(self) -> None:
        """Have it print its list."""
        await self._tsp("-l")

    def kept(self) -> int:
        """The largest file that it has written: that of the only command with output."""
        return max((file.stat().st_size for file in Path(self._environ["TMPDIR"]).glob("ts-out.*")), default=0)

    async def close(self) -> None:
        """End the server."""
        with suppress(Failed):
            await self._tsp("-K")

    async def _tsp(self, *words: str) -> str:
        return await said((program(self.name), *words), self._environ)


class Nq(_Queue):
    """nq: no server; each command is a process that waits until those before it have let go of their files."""

    name = "nq"
    most_at_once = 1

    async def open(self, place: Path, at_once: int, commands: Sequence[Argv]) -> None:
        """Nothing needs to be started."""
        self._environ = environment(place, NQDIR=str(place))
        self._place = place

    def kept(self) -> int:
        """The size of the file less the line with the command."""
        with (self._place / self._last).open("rb") as file:
            return file.seek(0, 2) - (file.seek(0) + len(file.readline()))

    async def close(self) -> None:
        """Nothing was started."""
