"""Output that was removed to save room is told as removed, not shown as if nothing had been printed."""

from tests.tui.cockpit import cockpit
from tests.tui.past import begin, counting, history
from tests.tui.scenes import Play
from whisper_tui.tui.output.output_bars import RemovedLine

GONE = "Some or all of this output was removed from the disk"


def removed() -> Play:
    """Call 1 has printed something, which is no longer there; call 2 still has what it has printed."""
    play = begin()
    counting(play)
    del play.stage.written["1"], play.stage.spans["1"]
    counting(play)
    return play


async def test_the_cockpit_reports_removed_output_above_the_panes() -> None:
    async with cockpit(removed()) as seat:
        line = seat.screen.query_one(RemovedLine)
        await seat.select("1")
        await seat.sees(GONE)
        await seat.select("2")
        await seat.sees("step 5 of 5")
        await seat.until(lambda: not line.display)


async def test_the_history_reports_removed_output_instead_of_playing() -> None:
    async with cockpit(removed()) as seat, history(seat):
        await seat.sees("step 5 of 5")
        assert GONE not in seat.text()
        await seat.press("0")
        await seat.sees("0:00.0 of 1:00")
        assert GONE not in seat.text()
        await seat.press("down")
        await seat.sees("Call 1", GONE)
