"""What everything that a way started uses: processor time and memory of all its processes, orphans included.

Linux only. This process adopts what its descendants leave behind, so nothing that was started gets away uncounted.
"""

import asyncio
import ctypes
import os
import resource
import select
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil

_PR_SET_CHILD_SUBREAPER = 36
_SAMPLE_S = 0.1
_END_S = 60.0
MIB = 1 << 20


class Memory(NamedTuple):
    """Bytes."""

    private: int
    """What would be free if these processes ended."""
    proportional: int
    """With their share of what several processes have in common."""


class Peak:
    """The most private memory that was seen."""

    def __init__(self) -> None:
        self.bytes = 0


def adopt_orphans() -> None:
    """From here on everything that is started stays a descendant of this process."""
    if sys.platform != "linux" or ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise SystemExit("This system does not let a process adopt orphans; the comparison needs Linux.")


def descendants() -> list[psutil.Process]:
    """Everything that was started and is not reaped yet."""
    return psutil.Process().children(recursive=True)


def processor_s() -> float:
    """Seconds of processor time that everything started so far has used, by now."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = ended.ru_utime + ended.ru_stime
    for process in descendants():
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def memory(commands: Collection[str] = ()) -> Memory:
    """Of everything that runs, except for the commands of these names, which cost the same everywhere."""
    private = proportional = 0
    for process in descendants():
        with suppress(psutil.Error, OSError):
            if process.name() in commands:
                continue
            sizes = dict(_sizes(process.pid))
            private += sizes["Private_Clean"] + sizes["Private_Dirty"]
            proportional += sizes["Pss"]
    return Memory(private, proportional)


def _sizes(pid: int) -> Iterator[tuple[str, int]]:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, size, _ = line.split()
        yield name.rstrip(":"), int(size) * 1024


@asynccontextmanager
async def peak_memory(commands: Collection[str] = ()) -> AsyncIterator[Peak]:
    """Samples the private memory of everything that runs, for as long as the block lasts."""
    peak = Peak()

    async def sample() -> None:
        while True:
            peak.bytes = max(peak.bytes, (await asyncio.to_thread(memory, commands)).private)
            await asyncio.sleep(_SAMPLE_S)

    sampling = asyncio.create_task(sample())
    try:
        yield peak
    finally:
        sampling.cancel()
        with suppress(asyncio.CancelledError):
            await sampling
        peak.bytes = max(peak.bytes, memory(commands).private)


def kill(pid: int) -> None:
    """Kill a process and wait until it and all its threads are gone."""
    process = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(process, signal.SIGKILL)
        if not select.select([process], [], [], _END_S)[0]:
            raise SystemExit(f"process {pid} does not end")
    finally:
        os.close(process)


async def until(condition: Callable[[], bool], limit_s: float) -> bool:
    """Whether it came true in time."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


def end_all() -> None:
    """End everything that was started, and reap what was adopted."""
    deadline = time.monotonic() + _END_S
    while left := descendants():
        if time.monotonic() > deadline:
            raise SystemExit(f"These processes do not end: {', '.join(str(process.pid) for process in left)}")
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
            with suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)
        time.sleep(0.01)
