"""What the benchmarks of the engine share: an executor in a temporary directory, and tables with ratios."""

import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from whisper_tui.model.call import Argv, CommandSpec
from whisper_tui.supervisor.runs.executor import HasEnded, HasSettled, PreviewOptions, RunKey, StartOrder
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.system.state_directory import Directories


class Runner:
    """Runs one command after the other under keepers."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.executor = LocalExecutor(directory / "runs")
        self._reports = self.executor.reports()
        self._next = 0

    async def start(self, argv: Sequence[str], cwd: str = "", preview: PreviewOptions | None = None) -> RunKey:
        """Ask for a start, or for a preview."""
        self._next += 1
        key = RunKey(str(self._next), 1)
        spec = CommandSpec(command=Argv(program=argv[0], args=tuple(argv[1:])), cwd=cwd or str(self.directory))
        order = StartOrder(
            key=key, spec=spec, program=shutil.which(argv[0]), environment=dict(os.environ), preview=preview
        )
        await self.executor.start(order)
        return key

    @property
    def attempt(self) -> Path:
        """The directory of the last run."""
        return self.directory / "runs" / f"{self._next}.1"

    async def seconds(self, argv: Sequence[str], cwd: str = "", preview: PreviewOptions | None = None) -> float:
        """From the request to the report of the exit; then waits until all is over."""
        begin = time.perf_counter()
        await self.start(argv, cwd, preview)
        elapsed = 0.0
        async for reports in self._reports:
            kinds = set(map(type, reports))
            if HasEnded in kinds:
                elapsed = time.perf_counter() - begin
            if HasSettled in kinds:
                return elapsed
        raise AssertionError("reports never end")

    def output_size(self) -> int:
        """Bytes that the last run printed to standard output, as its file has them."""
        return (self.attempt / "out").stat().st_size

    def forget(self) -> None:
        """Remove the files of the last run."""
        for path in self.attempt.iterdir():
            path.unlink()


def serial_popen_seconds(command: Sequence[str], count: int) -> float:
    """Seconds to start so many commands, which stay, one after the other."""
    begin = time.perf_counter()
    started = [subprocess.Popen(command, stdin=subprocess.DEVNULL) for _ in range(count)]
    elapsed = time.perf_counter() - begin
    for each in started:
        each.kill()
        each.wait()
    return elapsed


SAVER = """
import os, select
poll = select.poll()
poll.register(0, select.POLLIN)
os.write(2, b"!")
while poll.poll() and (data := os.read(0, 65536)):
    os.write(1, data)
"""


def least_seconds(command: str, files: Sequence[Path]) -> float:
    """Seconds until the output of one such command a file is saved by programs that do nothing else, in Python."""
    savers, pipes = [], []
    for file in files:
        with file.open("wb") as out:
            pipe, end = os.pipe()
            program = [sys.executable, "-I", "-S", "-c", SAVER]
            saver = subprocess.Popen(program, stdin=pipe, stdout=out, stderr=subprocess.PIPE)
            assert saver.stderr is not None
            saver.stderr.read(1)
            saver.stderr.close()
            os.close(pipe)
            savers.append(saver)
            pipes.append(end)
    begin = time.perf_counter()
    commands = [subprocess.Popen(["bash", "-c", command], stdout=end) for end in pipes]
    for end in pipes:
        os.close(end)
    for process in (*commands, *savers):
        process.wait()
    return time.perf_counter() - begin


@asynccontextmanager
async def runner() -> AsyncIterator[Runner]:
    """A runner in a temporary directory of the current disk."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIRECTORY")) as directory:
        runner = Runner(Path(directory))
        await runner.executor.open()
        try:
            await asyncio.sleep(0.5)  # the keepers get ready
            yield runner
        finally:
            await runner.executor.close()


def directories(place: Path) -> Directories:
    """The directories of a supervisor of its own."""
    return Directories(config=place / "config", state=place / "state", runtime=place / "run")


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which that share of the values lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table in Markdown."""
    print(f"\n{title}\n")
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")


median = statistics.median
