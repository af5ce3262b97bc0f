"""What keeps the supervisor from working is a line over everything, for as long as it lasts."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.tui.cockpit import cockpit
from tests.tui.live import HUMAN, live
from tests.tui.scenes import Play, workday
from tests.tui.test_typing_in import asking
from whisper_tui.model.errors import JournalFailed, Unavailable
from whisper_tui.present.words import error_text
from whisper_tui.supervisor.journal.sqlite_file import not_written
from whisper_tui.tui.cockpit.status_bars import HealthBar

WORDS = "The disk is full. Make room"


def troubled() -> Play:
    """A day of work on which the disk is full."""
    play = workday()
    full = sqlite3.OperationalError("database or disk is full")
    play.stage.problem = error_text(not_written(Path("/home/me/.local/state/whisper_tui/journal.sqlite"), full))
    return play


@pytest.mark.slow
async def test_the_health_line_is_shown_only_while_there_is_a_problem() -> None:
    play = asking()
    async with cockpit(play) as seat:
        await seat.sees("Name of this release")
        assert not seat.screen.query_one(HealthBar).display
        play.stage.problem = f"{WORDS}\x1b[2J"
        await seat.sees(f"✘ The supervisor cannot work as it should: {WORDS}")
        assert "\x1b" not in seat.text()
        play.stage.problem = "Another one"
        await seat.sees("cannot work as it should: Another one")
        play.stage.problem = None
        await seat.until(lambda: "cannot work" not in seat.text())


@pytest.mark.slow
async def test_unguarded_agents_are_reported_unless_there_is_a_worse_problem() -> None:
    play = asking()
    async with cockpit(play) as seat:
        play.stage.unguarded = ("Commands of Codex in /w are not all held\x1b[2J", "Another")
        await seat.sees("✘ Commands of Codex in /w are not all held", "(and 1 more: whisper-tui status)")
        assert "\x1b" not in seat.text()
        play.stage.problem = WORDS
        await seat.sees(f"cannot work as it should: {WORDS}")
        play.stage.problem, play.stage.unguarded = None, ()
        await seat.until(lambda: not seat.screen.query_one(HealthBar).display)


async def test_a_lost_connection_is_shown_only_in_its_own_line() -> None:
    play = asking()
    play.stage.problem = WORDS
    async with cockpit(play) as seat:
        await seat.sees(WORDS)
        play.stage.broken = Unavailable("the supervisor is gone")
        await seat.until(lambda: not seat.screen.query_one(HealthBar).display)


@pytest.mark.slow
async def test_a_real_journal_that_accepts_nothing_is_reported_at_once(tmp_path: Path) -> None:
    async with live(tmp_path) as seat:
        with closing(sqlite3.connect(tmp_path / "state" / "journal.sqlite", isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            with suppress(JournalFailed):
                await seat.supervisor.pause(HUMAN)
            await seat.sees("cannot work as it should", "locked")
            other.execute("ROLLBACK")
        await seat.supervisor.pause(HUMAN)
        await seat.supervisor.resume(HUMAN)
        await seat.until(lambda: not seat.screen.query_one(HealthBar).display)
