"""The system gives no more processes."""

import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.instance import Instance
from tests.outside import outside_only
from whisper_tui.model.ending import FailedToStart
from whisper_tui.model.state import Ended
from whisper_tui.system.processes import children_of

PIDS = Path("/sys/fs/cgroup/pids")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of others are set on Linux only")


@contextmanager
def without_forks(pids: list[int]) -> Iterator[None]:
    """These processes, and nobody else, can start no process."""
    if os.geteuid() == 0:
        with _in_full_group(pids):
            yield
        return
    for pid in pids:
        resource.prlimit(pid, resource.RLIMIT_NPROC, (1, resource.prlimit(pid, resource.RLIMIT_NPROC)[1]))
    yield
    for pid in filter(_is_there, pids):
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NPROC)
        resource.prlimit(pid, resource.RLIMIT_NPROC, (hard if soft == 1 else soft, hard))


@contextmanager
def _in_full_group(pids: list[int]) -> Iterator[None]:
    """For root, whom no limit of processes holds."""
    group = PIDS / f"whisper-tui-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("no limit of processes can be set for root here")
    try:
        for pid in pids:
            (group / "cgroup.procs").write_text(str(pid))
        (group / "pids.max").write_text("1")
        yield
    finally:
        for pid in (group / "cgroup.procs").read_text().split():
            (PIDS / "cgroup.procs").write_text(pid)
        group.rmdir()


def _is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@outside_only
async def test_a_failed_start_is_reported_and_the_next_command_runs(
    instance: Instance,
) -> None:
    await instance.works_again()
    parents = children_of(instance.pid())
    waiting = [pid for parent in parents for pid in children_of(parent)]
    with without_forks([*parents, *waiting]):
        record = await instance.run("touch ran")
    assert isinstance(record.state, Ended) and isinstance(record.state.ending, FailedToStart), record.state
    assert "Resource temporarily unavailable" in record.state.ending.message
    assert not (instance.workspace / "ran").exists()
    await instance.works_again()
