"""Output that was removed to save room is told as removed, not shown as if nothing had been printed."""

import pytest

from tests.tui.cockpit import open_cockpit
from tests.tui.past import begin, counting, history
from tests.tui.scenes import Scenario
from whisper_tui.tui.output.output_bars import RemovedLine

GONE = "Some or all of this output was removed from the disk"


def removed() -> Scenario:
    """Call 1 has printed something, which is no longer there; call 2 still has what it has printed."""
    scenario = begin()
    counting(scenario)
    del scenario.supervisor.written["1"], scenario.supervisor.spans["1"]
    counting(scenario)
    return scenario


@pytest.mark.slow
async def test_the_cockpit_reports_removed_output_above_the_panes() -> None:
    async with open_cockpit(removed()) as cockpit:
        line = cockpit.screen.query_one(RemovedLine)
        await cockpit.select("1")
        await cockpit.sees(GONE)
        await cockpit.select("2")
        await cockpit.sees("step 5 of 5")
        await cockpit.until(lambda: not line.display)


async def test_the_history_reports_removed_output_instead_of_playing() -> None:
    async with open_cockpit(removed()) as cockpit, history(cockpit):
        await cockpit.sees("step 5 of 5")
        assert GONE not in cockpit.text()
        await cockpit.press("0")
        await cockpit.sees("0:00.0 of 1:00")
        assert GONE not in cockpit.text()
        await cockpit.press("down")
        await cockpit.sees("Call 1", GONE)
