"""Only output goes that is too old or too much, and only of runs that are over; the facts stay."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from whisper_tui.model.run import OutputSizes
from whisper_tui.supervisor.runs.executor import RunKey
from whisper_tui.supervisor.runs.output_files import OutputFiles
from whisper_tui.supervisor.runs.retention import DAY_S, FRESH_S, GIGABYTE, Retention
from whisper_tui.supervisor.settings import RetentionSettings, TakeBackSettings

NOW = 2_000_000_000.0
BLOCKS = 64 * 1024


def attempt(runs: Path, name: str, *, age_s: float | None) -> Path:
    """The files of a run that was over so many seconds ago; None: it is not over."""
    directory = runs / name
    directory.mkdir(parents=True)
    (directory / "out").write_bytes(b"x" * BLOCKS)
    (directory / "spec").write_text("{}")
    if age_s is not None:
        (directory / "done").touch()
        os.utime(directory / "done", (NOW - age_s, NOW - age_s))
    return directory


def retention(
    runs: Path,
    *opened: str,
    days: float | None = None,
    gigabytes: float | None = None,
    files: float | None = None,
) -> Retention:
    settings = RetentionSettings(days=days, gigabytes=gigabytes, files=files)
    return Retention(runs, settings, lambda call_id: call_id in opened, lambda: NOW)


async def test_output_older_than_the_limit_is_removed(tmp_path: Path) -> None:
    old, young = attempt(tmp_path, "1.1", age_s=8 * DAY_S), attempt(tmp_path, "2.1", age_s=6 * DAY_S)
    told = await retention(tmp_path, days=7).prune(dry_run=False)
    assert (old.exists(), young.exists()) == (False, True)
    assert (told.runs, told.kept_runs) == (1, 1)
    assert told.bytes >= BLOCKS and told.kept_bytes >= BLOCKS


async def test_the_oldest_output_is_removed_until_the_rest_fits(tmp_path: Path) -> None:
    kept = [attempt(tmp_path, f"{number}.1", age_s=(10 - number) * DAY_S) for number in range(1, 5)]
    told = await retention(tmp_path, gigabytes=2.5 * BLOCKS / GIGABYTE).prune(dry_run=False)
    assert [directory.exists() for directory in kept] == [False, False, True, True]
    assert (told.runs, told.kept_runs) == (2, 2)


async def test_the_oldest_output_is_removed_until_few_enough_files_are_left(tmp_path: Path) -> None:
    kept = [attempt(tmp_path, f"{number}.1", age_s=(10 - number) * DAY_S) for number in range(1, 5)]
    told = await retention(tmp_path, gigabytes=1, files=7).prune(dry_run=False)
    assert [directory.exists() for directory in kept] == [False, False, True, True]
    assert (told.runs, told.kept_runs) == (2, 2)


@pytest.mark.parametrize("limit", [{"days": 0.001}, {"gigabytes": 0}, {"files": 0}])
async def test_output_of_open_runs_is_kept(tmp_path: Path, limit: dict[str, float]) -> None:
    running = attempt(tmp_path, "1.1", age_s=None)
    unsettled = attempt(tmp_path, "2.1", age_s=100 * DAY_S)
    earlier_attempt = attempt(tmp_path, "3.1", age_s=100 * DAY_S)
    just_over = attempt(tmp_path, "4.1", age_s=FRESH_S / 2)
    over = attempt(tmp_path, "5.1", age_s=100 * DAY_S)
    told = await retention(tmp_path, "2", "3", **limit).prune(dry_run=False)
    assert all(directory.exists() for directory in (running, unsettled, earlier_attempt, just_over))
    assert (told.runs, over.exists()) == (1, False)


async def test_a_dry_run_says_the_same_and_removes_nothing(tmp_path: Path) -> None:
    old = attempt(tmp_path, "1.1", age_s=8 * DAY_S)
    said = await retention(tmp_path, days=7).prune(dry_run=True)
    assert old.exists() and said.runs == 1
    assert await retention(tmp_path, days=7).prune(dry_run=False) == said


async def test_a_stop_breaks_a_long_look_at_the_disk_off(tmp_path: Path) -> None:
    directories = [attempt(tmp_path, f"{number}.1", age_s=8 * DAY_S) for number in (1, 2)]
    asked: list[str] = []
    looking, closed = threading.Event(), threading.Event()

    def is_open(call_id: str) -> bool:
        asked.append(call_id)
        looking.set()
        closed.wait(30)
        return False

    kept = Retention(tmp_path, RetentionSettings(days=7), is_open, lambda: NOW)
    kept.open()
    await asyncio.to_thread(looking.wait, 30)
    await kept.close()
    closed.set()
    await asyncio.get_running_loop().shutdown_default_executor()
    assert len(asked) == 1 and all(directory.exists() for directory in directories)


async def test_without_settings_everything_is_kept(tmp_path: Path) -> None:
    old = attempt(tmp_path, "1.1", age_s=10_000 * DAY_S)
    assert (await retention(tmp_path).prune(dry_run=False)).runs == 0
    assert old.exists()


async def test_other_files_are_kept_and_links_are_not_followed(tmp_path: Path) -> None:
    runs, elsewhere = tmp_path / "runs", attempt(tmp_path / "elsewhere", "9.1", age_s=100 * DAY_S)
    attempt(runs, "rehearsal", age_s=100 * DAY_S)
    (runs / "7.1").symlink_to(elsewhere)
    inside = attempt(runs, "8.1", age_s=100 * DAY_S)
    (inside / "link").symlink_to(elsewhere / "out")
    told = await retention(runs, days=1).prune(dry_run=False)
    assert told.runs == 1 and not inside.exists()
    assert (elsewhere / "out").exists() and (runs / "rehearsal" / "out").exists()


async def test_output_that_was_removed_is_empty_and_at_its_end(tmp_path: Path) -> None:
    files, key = OutputFiles(tmp_path), RunKey("1", 1)
    attempt(tmp_path, "1.1", age_s=8 * DAY_S)
    assert files.sizes(key) == OutputSizes(out=BLOCKS)
    await retention(tmp_path, days=7).prune(dry_run=False)
    chunk = files.read_output(key, "out", 0, 100)
    assert (chunk.data, chunk.size, chunk.ended) == (b"", 0, True)


async def test_recovery_files_are_removed_after_the_end_and_output_stays(tmp_path: Path) -> None:
    over, open_, fresh = (
        attempt(tmp_path, "1.1", age_s=FRESH_S * 2),
        attempt(tmp_path, "2.1", age_s=FRESH_S * 2),
        attempt(tmp_path, "3.1", age_s=FRESH_S / 2),
    )
    for directory in (over, open_, fresh):
        (directory / "exit").write_text("{}")
        (directory / "claim").symlink_to("run")
    await retention(tmp_path, "2").prune(dry_run=True)
    assert (over / "spec").exists()
    await retention(tmp_path, "2").prune(dry_run=False)
    assert sorted(path.name for path in over.iterdir()) == ["done", "out"]
    for directory in (open_, fresh):
        assert sorted(path.name for path in directory.iterdir()) == ["claim", "done", "exit", "out", "spec"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (RetentionSettings(), "for 30 days and up to 5 GB"),
        (RetentionSettings(days=2.5, gigabytes=None), "for 2.5 days"),
        (RetentionSettings(days=float("inf"), gigabytes=1), "up to 1 GB"),
        (RetentionSettings(days=float("inf"), gigabytes=float("inf")), "for ever"),
    ],
)
def test_the_limits_of_retention_are_described(tmp_path: Path, settings: RetentionSettings, words: str) -> None:
    kept = Retention(tmp_path, settings, lambda _: False, lambda: NOW)
    assert kept.words == f"the output of runs is kept {words}, and what can be undone for 7 days and up to 5 GB"


def undoable(runs: Path, name: str, *, age_s: float) -> Path:
    """The files of a run that can be undone."""
    directory = attempt(runs, name, age_s=age_s)
    (directory / "preview" / "kept").mkdir(parents=True)
    (directory / "preview" / "kept" / "0").write_bytes(b"x" * BLOCKS)
    return directory / "preview"


@pytest.mark.parametrize(
    ("limits", "left"), [({"days": 7}, [False, True]), ({"days": None, "gigabytes": BLOCKS / GIGABYTE}, [False, False])]
)
async def test_what_can_be_taken_back_has_limits_of_its_own_and_the_output_stays(
    tmp_path: Path, limits: dict[str, float], left: list[bool]
) -> None:
    kept = [undoable(tmp_path, "1.1", age_s=8 * DAY_S), undoable(tmp_path, "2.1", age_s=6 * DAY_S)]
    made = Retention(tmp_path, RetentionSettings(), lambda _: False, lambda: NOW, TakeBackSettings(**limits))
    dry = await made.prune(dry_run=True)
    assert all(each.exists() for each in kept)
    told = await made.prune(dry_run=False)
    assert [each.exists() for each in kept] == left and (tmp_path / "1.1" / "out").exists()
    assert (told.undos, told.kept_undos) == (left.count(False), left.count(True)) == (dry.undos, dry.kept_undos)
    assert told.undo_bytes == dry.undo_bytes >= BLOCKS and told.runs == 0 and told.kept_runs == 2


async def test_what_has_just_been_kept_stays_whatever_its_size(tmp_path: Path) -> None:
    kept = undoable(tmp_path, "1.1", age_s=FRESH_S / 2)
    settings = TakeBackSettings(gigabytes=0)
    told = await Retention(tmp_path, None, lambda _: False, lambda: NOW, settings).prune(dry_run=False)
    assert kept.exists() and told.undos == 0


async def test_without_a_configuration_thirty_days_and_five_gigabytes_are_kept(tmp_path: Path) -> None:
    old, young = attempt(tmp_path, "1.1", age_s=31 * DAY_S), attempt(tmp_path, "2.1", age_s=29 * DAY_S)
    await Retention(tmp_path, RetentionSettings(), lambda _: False, lambda: NOW).prune(dry_run=False)
    assert (old.exists(), young.exists()) == (False, True)
