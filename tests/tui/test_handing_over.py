"""A supervisor of another version: the cockpit says so, and has one of its own version take over."""

import pytest

from tests.tui.cockpit import open_cockpit
from tests.tui.test_output_pane import running
from whisper_tui import __version__
from whisper_tui.model.errors import OtherVersion, Unavailable
from whisper_tui.tui.cockpit_context import Connected, EventsLost

DIFFERENT = ("The supervisor is whisper_tui stage", f"this cockpit is {__version__}", "V replaces the supervisor")


class Successor:
    """Counts how often it was asked to take over, and fails as long as it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.fails = False

    async def __call__(self) -> None:
        self.asked += 1
        if self.fails:
            raise Unavailable("the journal is of a newer whisper_tui", hint="Install that")


async def test_another_version_is_reported_and_one_key_takes_over() -> None:
    successor = Successor()
    async with open_cockpit(running(), take_over=successor) as cockpit:
        await cockpit.sees(*DIFFERENT)
        await cockpit.press("V")
        await cockpit.sees("commands kept running")
        assert successor.asked == 1


@pytest.mark.slow
async def test_a_failed_takeover_is_reported_with_its_reason() -> None:
    successor = Successor()
    successor.fails = True
    async with open_cockpit(running(), take_over=successor) as cockpit:
        await cockpit.sees(*DIFFERENT)
        await cockpit.choose("Hand over  (V)")
        await cockpit.sees("The journal is of a newer", "Install that")
        assert DIFFERENT[0] in cockpit.text()


async def test_an_incompatible_supervisor_can_be_taken_over_from() -> None:
    successor = Successor()
    async with open_cockpit(running(), take_over=successor) as cockpit:
        await cockpit.sees(DIFFERENT[0])
        cockpit.screen.post_message(EventsLost(OtherVersion("no common protocol", hint="Hand over"), 5.0))
        await cockpit.sees("No common protocol", "the supervisor speaks another protocol", "V replaces the supervisor")
        await cockpit.press("V")
        await cockpit.until(lambda: successor.asked == 1)
        cockpit.screen.post_message(Connected(cockpit.scenario.supervisor))
        await cockpit.sees(DIFFERENT[0])


async def test_no_takeover_is_offered_if_it_is_impossible() -> None:
    async with open_cockpit(running()) as cockpit:
        await cockpit.press("V")
        await cockpit.sees("The supervisor already has the version of this cockpit")
        assert DIFFERENT[0] not in cockpit.text()
