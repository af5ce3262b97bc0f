"""Output at a place that nobody asks for any more is removed; running commands and the facts about ended ones stay."""

import os
import shutil
import time
from pathlib import Path

from tests.supervisor.engine.conftest import until
from tests.supervisor.places.conftest import PlaceEngine
from whisper_tui.model.ending import Exited
from whisper_tui.supervisor.places import far_runs
from whisper_tui.supervisor.runs.executor import RunKey

LONG_AGO = time.time() - far_runs.OLD_S - 60


def _grows_old(attempt: Path) -> None:
    for path in (attempt, *attempt.iterdir()):
        os.utime(path, (LONG_AGO, LONG_AGO), follow_symlinks=False)


async def _left_there(engine: PlaceEngine, name: str) -> Path:
    """An ended attempt whose output the place still has, as if this supervisor had gone before it came."""
    key = await engine.run("echo kept; exit 5")
    await until(lambda: not engine.attempt_there(key).exists())
    left = engine.directory / "runs" / name
    shutil.copytree(engine.runs / f"{key.call_id}.1", left, symlinks=True)
    return left


async def test_old_output_is_removed_and_how_it_ended_is_told_to_who_comes_back(engine: PlaceEngine) -> None:
    old = await _left_there(engine, "901.1")
    recent = await _left_there(engine, "902.1")
    wanted = await _left_there(engine, "903.1")
    outside = engine.workspace / "outside"
    outside.mkdir()
    (outside / "file").touch()
    (old / "link").symlink_to(outside)
    _grows_old(old)
    _grows_old(wanted)
    far_runs.remove_old(str(engine.directory / "runs"), {"903.1"})
    assert not (old / "out").exists() and not (old / "link").is_symlink() and (outside / "file").exists()
    assert (recent / "out").read_bytes() == (wanted / "out").read_bytes() == b"kept\n"
    key = RunKey("901", 1)
    await engine.executor.attach(key)
    assert await engine.ended(key) == Exited(code=5), "neither never started nor started again"
    await engine.settled(key)


async def test_what_still_runs_is_never_old(engine: PlaceEngine) -> None:
    key = await engine.start("echo begun; until test -e go; do sleep 0.02; done; exit 6")
    await until(lambda: engine.out(key) == b"begun\n")
    _grows_old(engine.attempt_there(key))
    far_runs.remove_old(str(engine.directory / "runs"), ())
    assert (engine.attempt_there(key) / "out").read_bytes() == b"begun\n"
    (engine.workspace / "go").touch()
    assert await engine.ended(key) == Exited(code=6)
    await engine.settled(key)


async def test_old_output_of_supervisors_that_are_gone_is_removed_too(engine: PlaceEngine) -> None:
    left = await _left_there(engine, "904.1")
    _grows_old(left)
    directory = engine.directory
    gone, served = (directory.with_name(name) for name in ("gone", "served"))
    gone.mkdir(0o700)
    (gone / "host.lock").touch()
    (gone / "runs").mkdir()
    left.rename(gone / "runs" / "1.1")
    mine = shutil.copytree(gone / "runs" / "1.1", directory / "runs" / "905.1", symlinks=True)
    _grows_old(mine)
    # As seen by the host process of another supervisor: this one here is served, the other one is not.
    served.mkdir(0o700)
    far_runs.remove_old_of_others(str(served), "host.lock")
    assert not (gone / "runs" / "1.1" / "out").exists() and (gone / "runs" / "1.1" / "exit").exists()
    assert (mine / "out").exists(), "the host process there decides"
