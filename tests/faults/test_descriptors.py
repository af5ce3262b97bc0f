"""The supervisor may open no more files."""

import asyncio
import os
import resource
import sys
from collections import deque
from itertools import count
from pathlib import Path

import pytest

from tests.faults.instance import AGAIN_S, PATIENCE_S, Instance
from tests.outside import outside_only
from whisper_tui.model.ending import Exited
from whisper_tui.model.state import Ended

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of others are set on Linux only")


def lowest_free(pid: int) -> int:
    """The number that the next file of a process would get."""
    taken = set(map(int, os.listdir(f"/proc/{pid}/fd")))
    return next(number for number in count() if number not in taken)


async def nothing_under_way(instance: Instance, pid: int) -> None:
    """Wait until a process opens and closes nothing: what is closed later would be free to use again."""
    looks: deque[list[str]] = deque(maxlen=10)

    def the_same() -> bool:
        looks.append(sorted(os.listdir(f"/proc/{pid}/fd")))
        return len(looks) == looks.maxlen and all(look == looks[0] for look in looks)

    await instance.until(the_same)


@pytest.mark.slow
@outside_only
async def test_a_lack_of_file_descriptors_loses_no_run(
    instance: Instance,
) -> None:
    pid = instance.pid()
    running, waiting = await instance.start_long(), await instance.submit("touch waited; echo waited")
    await nothing_under_way(instance, pid)
    usual = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest_free(pid), usual[1]))
    instance.may_end.touch()
    done = Path(instance.home.state) / "runs" / f"{running}.1" / "done"
    await instance.until(done.exists)
    async with asyncio.timeout(PATIENCE_S):
        while (problem := (await instance.door.status()).problem) is None:
            await asyncio.sleep(AGAIN_S)
    assert "Too many open files" in problem
    assert (await instance.door.record(running)).state.kind == "running"

    resource.prlimit(pid, resource.RLIMIT_NOFILE, usual)
    record = await instance.door.outcome(running)
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=7)
    assert await instance.output(running) == b"begun\ndone\n"
    await instance.approve(waiting)
    await instance.door.outcome(waiting)
    assert await instance.output(waiting) == b"waited\n"
    await instance.works_again()
    assert instance.pid() == pid
