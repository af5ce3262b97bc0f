"""A short crash test with every run of the suite; `make crashtest` runs a longer one."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from tests.crash.drafts import DraftKills
from tests.crash.held_back import HeldBackKills
from tests.crash.previews import PreviewKills
from tests.crash.run import crash, table
from tests.outside import outside_only

KILLS = 12


Outcome = tuple[list[str], bool]
"""Every contradiction; True if as much has happened as was to happen."""


def crashed(root: Path) -> Outcome:
    result = asyncio.run(crash(root, KILLS, seed=12))
    print(table(result))
    return result.violations, result.kills.total() == KILLS and result.endings["exited"] > KILLS


def previewed(root: Path) -> Outcome:
    result = asyncio.run(PreviewKills(root, KILLS, seed=12).go())
    return result.violations, result.kills.total() >= KILLS


def held_back(root: Path) -> Outcome:
    result = asyncio.run(HeldBackKills(root, 8, seed=12).go())
    return result.violations, bool(result.kills and result.edits and result.outcomes["ran, decided by nobody"])


def drafts(root: Path) -> Outcome:
    result = asyncio.run(DraftKills(root, 6, seed=12).go())
    return result.violations, bool(result.kills and result.edits and result.outcomes["calls that ran"])


@outside_only
@pytest.mark.slow
@pytest.mark.parametrize("play", [crashed, previewed, held_back, drafts])
def test_nothing_is_lost_and_nothing_happens_twice_or_in_part_whatever_is_killed(
    request: pytest.FixtureRequest, tmp_path: Path, play: Callable[[Path], Outcome]
) -> None:
    if play is not crashed:
        request.getfixturevalue("overlays")
    # In a process of its own, for that plays the agents.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        assert process.submit(play, tmp_path / "crash").result() == ([], True)
