"""Runs that one keeper process drives do not wait for each other, and several processes share them."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path

import pytest

from tests.supervisor.engine.conftest import PATIENCE_S, Engine, until
from whisper_tui.model.ending import Exited, FailedToStart
from whisper_tui.supervisor.keeper import guardian_start
from whisper_tui.supervisor.keeper.guardian import MOST_KEEPERS
from whisper_tui.supervisor.preview.overlay_mounts import NoPreview, mount
from whisper_tui.supervisor.runs.executor import HasBackground, SandboxProfile
from whisper_tui.system import syscalls
from whisper_tui.system.processes import children_of

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere each run has its own")
WAITS = "until test -e go; do sleep 0.05; done"
_DETACH = 2


@linux_only
async def test_long_runs_are_shared_by_all_keepers(engine: Engine):
    wanted = min(MOST_KEEPERS, os.cpu_count() or 1)
    found = set()
    for _ in range(100):
        # A keeper that still warms up takes none.
        found.add((await engine.spawned(await engine.start(WAITS))).process.keeper_pid)
        if len(found) == wanted:
            break
    assert len(found) == wanted
    (engine.workspace / "go").touch()


@pytest.fixture
def hung(tmp_path: Path) -> Iterator[tuple[Path, FileIO]]:
    """A directory whose file system never answers, and the file that has it answer with errors once closed."""
    directory = tmp_path / "hung"
    directory.mkdir()
    try:
        with FileIO("/dev/fuse", "r+") as fuse:
            options = f"fd={fuse.fileno()},rootmode=40000,user_id=0,group_id=0"
            mount("hung", str(directory), "fuse", 0, options)
            yield directory, fuse
    except (OSError, NoPreview) as error:
        pytest.skip(f"no file system can be mounted: {error}")
    finally:
        with suppress(OSError):
            syscalls.call("umount2", os.fsencode(directory), _DETACH)


@linux_only
async def test_a_call_that_hangs_in_a_sandbox_delays_no_other_run(engine: Engine, hung: tuple[Path, FileIO]):
    directory, fuse = hung
    sandbox = SandboxProfile(read=(str(engine.workspace),), write=(str(engine.workspace),))
    (engine.workspace / "link").symlink_to(directory / "file")
    hanging = [await engine.start("chmod 600 link", sandbox=sandbox) for _ in range(MOST_KEEPERS)]
    for key in hanging:
        await engine.spawned(key)
    for _ in range(2 * MOST_KEEPERS):
        key = await engine.run("echo x > made; chmod 600 made; echo done", sandbox=sandbox)
        assert engine.out(key) == b"done\n"
    fuse.close()
    for key in hanging:
        ending = await engine.ended(key)
        assert isinstance(ending, Exited) and ending.code


@linux_only
async def test_a_run_whose_start_hangs_belongs_to_no_other_run(engine: Engine, hung: tuple[Path, FileIO]):
    directory, fuse = hung
    hanging = [await engine.start("true", cwd=str(directory)) for _ in range(MOST_KEEPERS)]
    for _ in range(2 * MOST_KEEPERS):
        key = await engine.run("echo fine")
        assert engine.out(key) == b"fine\n"
        assert not [told for told in engine.of(key) if isinstance(told, HasBackground)]
    fuse.close()
    for key in hanging:
        assert isinstance(await engine.ended(key), FailedToStart)


async def test_without_subreapers_each_run_has_a_keeper_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on systems in which nobody could go on with the runs of a killed keeper."""
    nobody = """
from whisper_tui.supervisor.keeper import guardian, warm_up
guardian.adoption = lambda: warm_up.OrphanAdoption(None)
main("""
    monkeypatch.setattr(guardian_start, "_PROGRAM", guardian_start._PROGRAM.replace("\nmain(", nobody))
    engine = Engine(tmp_path)
    await engine.open()
    try:
        guardian = engine.executor._keepers._guardian
        assert guardian is not None
        keys = [await engine.start(f"{WAITS}; exit {number}") for number in range(12)]
        found = {(await engine.spawned(key)).process.keeper_pid for key in keys}
        assert len(found) == len(keys)
        assert engine.out(await engine.run("echo fine")) == b"fine\n"
        (engine.workspace / "go").touch()
        for number, key in enumerate(keys):
            assert await engine.ended(key) == Exited(code=number)
            await engine.settled(key)
        await until(lambda: not found & set(children_of(guardian.pid)))
    finally:
        await engine.close()
    guardian.wait(PATIENCE_S)
