"""A disk that fills while a command runs, at the place or here: the true end arrives, and what is wrong is said."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.supervisor.engine.conftest import until
from tests.supervisor.places.conftest import PlaceEngine, end_place
from whisper_tui.model.ending import Exited
from whisper_tui.supervisor.runs.executor import HasEnded

MEBIBYTE = 1 << 20


@contextmanager
def small_disk(directory: Path, mebibytes: int) -> Iterator[None]:
    """A file system of its own with so much room. Skips without the rights."""
    directory.mkdir(mode=0o700, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,mode=700", "tmpfs", str(directory)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user mounts no file systems")
    try:
        yield
    finally:
        # A process of the place may be about to end.
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


def resize(directory: Path, mebibytes: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={mebibytes}m", str(directory)], check=True)


async def test_a_disk_that_fills_here_is_said_and_everything_comes_once_there_is_room(place_for_mounts: Path) -> None:
    engine = PlaceEngine(place_for_mounts)
    with small_disk(engine.runs, 2):
        await engine.open()
        try:
            key = await engine.start(f"head -c {6 * MEBIBYTE} /dev/zero | tr '\\0' x; exit 7")
            await until(lambda: "cannot be written here: No space left on device" in (engine.executor.problem or ""))
            assert "Make room on the disk" in (engine.executor.problem or "")
            assert (engine.attempt_there(key)).exists(), "what is not whole here is kept there"
            assert not any(isinstance(report, HasEnded) for report in engine.of(key))
            resize(engine.runs, 16)
            assert await engine.ended(key) == Exited(code=7)
            await engine.settled(key)
            assert engine.out(key) == b"x" * (6 * MEBIBYTE)
            await until(lambda: engine.executor.problem is None)
        finally:
            await end_place(engine)


async def test_a_disk_that_fills_there_fails_the_command_and_its_true_exit_code_arrives(place_for_mounts: Path) -> None:
    engine = PlaceEngine(place_for_mounts)
    with small_disk(engine.there, 3):
        await engine.open()
        try:
            key = await engine.start(f"head -c {6 * MEBIBYTE} /dev/zero; echo code $? >&2; exit 7")
            assert await engine.ended(key) == Exited(code=7)
            await engine.settled(key)
            told = (await engine.seen(key, HasEnded)).output
            kept = engine.out(key)
            assert told.out == 6 * MEBIBYTE > len(kept) and kept == bytes(len(kept)), "what is missing is counted"
            await until(lambda: not engine.attempt_there(key).exists())
            filler = engine.there / "filler"
            with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
                while True:
                    file.write(bytes(4096))
            said = getattr(await engine.ended(await engine.run("touch ran")), "message", "")
            assert "Nothing was started" in said and "No space left" in said
            assert not (engine.workspace / "ran").exists()
            filler.unlink()
            assert await engine.ended(await engine.run("exit 1")) == Exited(code=1)
        finally:
            await end_place(engine)
