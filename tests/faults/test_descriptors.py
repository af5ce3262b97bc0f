"""The supervisor may open no more files."""

import asyncio
import resource
import sys
from pathlib import Path

import pytest

from tests.faults.instance import AGAIN_S, PATIENCE_S, Instance
from tests.outside import outside_only
from whisper_tui.model.ending import Exited
from whisper_tui.model.state import Ended

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of others are set on Linux only")

NOTHING_FREE = 3
"""As a limit: only the numbers of the standard streams are below it, and what is open already stays open."""


@pytest.mark.slow
@outside_only
async def test_a_lack_of_file_descriptors_loses_no_run(
    instance: Instance,
) -> None:
    pid = instance.pid()
    running, waiting = await instance.start_long(), await instance.submit("touch waited; echo waited")
    usual = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (NOTHING_FREE, usual[1]))
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
