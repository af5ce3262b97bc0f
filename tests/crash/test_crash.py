"""A short crash test with every run of the suite; `make crashtest` runs a longer one."""

from pathlib import Path

import pytest

from tests.crash.run import crash, table
from tests.outside import outside_only

KILLS = 12


@outside_only
@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_nothing_is_lost_and_nothing_runs_twice_whatever_is_killed(tmp_path: Path) -> None:
    result = await crash(tmp_path / "crash", KILLS, seed=12)
    assert result.violations == [], table(result)
    assert result.kills.total() == KILLS
    assert result.endings["exited"] > KILLS
