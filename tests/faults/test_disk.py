"""The disk is full, or read-only: a small file system of the test's own."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.faults.instance import Instance
from tests.outside import outside_only
from tests.wire.test_federation import DESK, Wire
from whisper_tui.model.board import Board
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import Exited
from whisper_tui.model.errors import JournalFailed
from whisper_tui.model.state import Ended, Waiting
from whisper_tui.wire.federation import Federation


def mount(*words: str) -> bool:
    """Whether the system has done it."""
    return os.geteuid() == 0 and subprocess.run(["mount", *words], capture_output=True, check=False).returncode == 0


@pytest.fixture
def disk(place_for_mounts: Path) -> Iterator[Path]:
    """A file system of 8 MB."""
    path = place_for_mounts / "disk"
    path.mkdir(mode=0o700)
    if not mount("-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", str(path)):
        pytest.skip("only root can mount a file system here")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


@pytest.fixture
async def on_disk(disk: Path, tmp_path: Path) -> AsyncIterator[Instance]:
    """An instance on that file system."""
    made = Instance(disk, tmp_path / "workspace")
    await made.open()
    yield made
    mount("-o", "remount,rw", str(disk))
    await made.close()


def fill(disk: Path) -> Path:
    """Leave no room."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return filler


async def sees_from_another_desk(instance: Instance, waiting: str) -> None:
    """A cockpit over several machines says that this one has a problem, and that a decision was not made."""
    wire = Wire("gpu1", instance.home)
    desk = Federation.of((wire,))
    board, there = Board(), f"gpu1:{waiting}"

    async def follow() -> None:
        async for events in desk.watch():
            board.apply_all(events)

    following = asyncio.create_task(follow())
    try:
        async with asyncio.timeout(60):
            while there not in board.waiting:
                await asyncio.sleep(0.01)
        assert ((await desk.status()).problem or "").startswith("gpu1: ")
        with pytest.raises(JournalFailed):
            await desk.decide(there, Approve(), DESK, board.calls[there].seen_digest())
        assert there in board.waiting
    finally:
        following.cancel()
        await asyncio.wait((following,))
        desk.close()


@pytest.mark.slow
@outside_only
async def test_on_a_full_disk_nothing_is_lost_and_work_resumes_with_free_space(disk: Path, on_disk: Instance) -> None:
    running, waiting = await on_disk.start_long(), await on_disk.submit("touch waited; echo waited")
    filler = fill(disk)
    told = await on_disk.refusal("touch more", tries=200, description="x" * 50_000)
    assert isinstance(told, JournalFailed)
    assert "Nothing was done" in told.hint and "room" in told.hint
    status = on_disk.whisper("status")
    assert "cannot be written" in status.stdout and "room" in status.stdout, status
    await sees_from_another_desk(on_disk, waiting)
    on_disk.may_end.touch()
    await on_disk.until((disk / "state" / "runs" / f"{running}.1" / "done").exists)

    filler.unlink()
    record = await on_disk.door.outcome(running)
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=7)
    assert await on_disk.output(running) == b"begun\ndone\n"
    assert isinstance((await on_disk.door.record(waiting)).state, Waiting)
    await on_disk.approve(waiting)
    await on_disk.door.outcome(waiting)
    assert await on_disk.output(waiting) == b"waited\n"
    assert "cannot be written" not in on_disk.whisper("status").stdout


@pytest.mark.slow
@outside_only
async def test_on_a_read_only_file_system_the_supervisor_says_so_and_everything_is_there_afterwards(
    disk: Path, on_disk: Instance
) -> None:
    waiting = await on_disk.submit("touch waited; echo waited")
    await on_disk.close()
    # The keepers that waited for commands have their log open until they notice that nobody needs them any more.
    await on_disk.until(lambda: mount("-o", "remount,ro", str(disk)))
    refused = on_disk.whisper("list")
    assert refused.returncode == 3, refused
    assert "Read-only file system" in refused.stderr and "Traceback" not in refused.stderr
    assert mount("-o", "remount,rw", str(disk))
    await on_disk.open()
    await on_disk.approve(waiting)
    await on_disk.door.outcome(waiting)
    assert await on_disk.output(waiting) == b"waited\n"
