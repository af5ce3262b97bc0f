"""What keeps the supervisor from working is a line over everything, for as long as it lasts."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.tui.cockpit import open_cockpit
from tests.tui.live import HUMAN, live
from tests.tui.scenes import Scenario, workday
from tests.tui.test_typing_in import asking
from whisper_tui.model.errors import JournalFailed, Unavailable
from whisper_tui.present.words import error_text
from whisper_tui.supervisor.journal.sqlite_file import not_written
from whisper_tui.tui.cockpit import status_bars
from whisper_tui.tui.cockpit.status_bars import HealthBar

WORDS = "The disk is full. Make room"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A healthy supervisor is asked more often than people need."""
    monkeypatch.setattr(status_bars, "CALM_POLL_S", 0.1)


def troubled() -> Scenario:
    """A day of work on which the disk is full."""
    scenario = workday()
    full = sqlite3.OperationalError("database or disk is full")
    scenario.supervisor.problem = error_text(
        not_written(Path("/home/me/.local/state/whisper_tui/journal.sqlite"), full)
    )
    return scenario


@pytest.mark.slow
async def test_the_health_line_is_shown_only_while_there_is_a_problem() -> None:
    scenario = asking()
    async with open_cockpit(scenario) as cockpit:
        await cockpit.sees("Name of this release")
        assert not cockpit.screen.query_one(HealthBar).display
        scenario.supervisor.problem = f"{WORDS}\x1b[2J"
        await cockpit.sees(f"✘ The supervisor cannot work as it should: {WORDS}")
        assert "\x1b" not in cockpit.text()
        scenario.supervisor.problem = "Another one"
        await cockpit.sees("cannot work as it should: Another one")
        scenario.supervisor.problem = None
        await cockpit.until(lambda: "cannot work" not in cockpit.text())


@pytest.mark.slow
async def test_unguarded_agents_are_reported_unless_there_is_a_worse_problem() -> None:
    scenario = asking()
    async with open_cockpit(scenario) as cockpit:
        scenario.supervisor.unguarded = ("Commands of Codex in /w are not all held\x1b[2J", "Another")
        await cockpit.sees("✘ Commands of Codex in /w are not all held", "(and 1 more: whisper-tui status)")
        assert "\x1b" not in cockpit.text()
        scenario.supervisor.problem = WORDS
        await cockpit.sees(f"cannot work as it should: {WORDS}")
        scenario.supervisor.problem, scenario.supervisor.unguarded = None, ()
        await cockpit.until(lambda: not cockpit.screen.query_one(HealthBar).display)


async def test_a_lost_connection_is_shown_only_in_its_own_line() -> None:
    scenario = asking()
    scenario.supervisor.problem = WORDS
    async with open_cockpit(scenario) as cockpit:
        await cockpit.sees(WORDS)
        scenario.supervisor.broken = Unavailable("the supervisor is gone")
        await cockpit.until(lambda: not cockpit.screen.query_one(HealthBar).display)


@pytest.mark.slow
async def test_a_real_journal_that_accepts_nothing_is_reported_at_once(tmp_path: Path) -> None:
    async with live(tmp_path) as cockpit:
        with closing(sqlite3.connect(tmp_path / "state" / "journal.sqlite", isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            with suppress(JournalFailed):
                await cockpit.supervisor.pause(HUMAN)
            await cockpit.sees("cannot work as it should", "locked")
            other.execute("ROLLBACK")
        await cockpit.supervisor.pause(HUMAN)
        await cockpit.supervisor.resume(HUMAN)
        await cockpit.until(lambda: not cockpit.screen.query_one(HealthBar).display)
