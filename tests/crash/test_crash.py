"""A short crash test with every run of the suite; `make crashtest` runs a longer one."""

import asyncio
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from tests.crash.held_back import HeldBackKills
from tests.crash.held_back import Result as HeldBackResult
from tests.crash.previews import PreviewKills
from tests.crash.previews import Result as PreviewResult
from tests.crash.run import Result, crash, table
from tests.outside import needs_overlays, outside_only

KILLS = 12


@outside_only
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_nothing_is_lost_and_nothing_runs_twice_whatever_is_killed(tmp_path: Path) -> None:
    # In a process of its own, for that plays the agents.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        result = process.submit(crashed, tmp_path / "crash").result()
    assert result.violations == [], table(result)
    assert result.kills.total() == KILLS
    assert result.endings["exited"] > KILLS


@outside_only
@pytest.mark.slow
@pytest.mark.timeout(400)
@needs_overlays
def test_previewed_changes_are_real_as_a_whole_or_not_at_all_whatever_is_killed(tmp_path: Path) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        result = process.submit(previewed, tmp_path / "crash").result()
    assert result.violations == []
    assert result.kills.total() >= KILLS


@outside_only
@pytest.mark.slow
@pytest.mark.timeout(400)
@needs_overlays
def test_held_back_commands_have_run_or_not_and_no_edit_of_others_is_lost_whatever_is_killed(tmp_path: Path) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        result = process.submit(held_back, tmp_path / "crash").result()
    assert result.violations == []
    assert result.kills and result.edits and result.outcomes["ran, decided by nobody"]


def held_back(root: Path) -> HeldBackResult:
    return asyncio.run(HeldBackKills(root, 8, seed=12).go())


def previewed(root: Path) -> PreviewResult:
    return asyncio.run(PreviewKills(root, KILLS, seed=12).go())


def crashed(root: Path) -> Result:
    return asyncio.run(crash(root, KILLS, seed=12))
