"""Following the events of a supervisor, and coming back when it was away."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.in_memory.supervisor import InMemorySupervisor
from tests.tui.cockpit import open_cockpit
from tests.tui.scenes import ROOT, Scenario, workday
from whisper_tui.model.board import ENDED_KEPT, Board
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.errors import Unavailable
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.cockpit.call_roster import CallRoster, RowPlace
from whisper_tui.tui.cockpit.status_bars import Banner

GONE = Unavailable("The supervisor cannot be reached", hint="Start it with whisper-tui")


def back_to(
    scenario: Scenario, failures: int = 0, *, after: asyncio.Event | None = None
) -> Callable[[], Awaitable[InMemorySupervisor]]:
    """Reconnects to another supervisor, after so many failures, and not before the test has seen that it is cut off."""
    left = [GONE] * failures

    async def reconnect() -> InMemorySupervisor:
        if left:
            raise left.pop()
        if after is not None:
            await after.wait()
        return scenario.supervisor

    return reconnect


async def test_a_lost_connection_is_reported_with_advice() -> None:
    async with open_cockpit(workday(), size=(200, 60)) as cockpit:
        cockpit.scenario.supervisor.break_down(GONE)
        await cockpit.sees(
            "The supervisor cannot be reached. Start it with whisper-tui. Quit with q",
            "not connected",
        )


async def test_a_stopped_supervisor_is_reported_with_its_running_commands() -> None:
    async with open_cockpit(workday(), size=(200, 60)) as cockpit:
        cockpit.scenario.supervisor.break_down(Unavailable("the supervisor has stopped"))
        await cockpit.sees("The supervisor has stopped. Commands keep running. Quit with q")


async def test_a_reconnection_shows_the_current_board() -> None:
    later = workday()
    later.ask("build")
    seen = asyncio.Event()
    async with open_cockpit(workday(), reconnect=back_to(later, after=seen)) as cockpit:
        await cockpit.select("8")
        cockpit.scenario.supervisor.break_down(GONE)
        await cockpit.sees("Trying again in")
        seen.set()
        await cockpit.sees("4 waiting", "● connected")
        assert not cockpit.screen.query_one(Banner).display
        assert cockpit.selected == "8"
        await cockpit.can_be_seen()
        cockpit.scenario.clock.advance(30)
        await cockpit.press("a")
        await cockpit.until(lambda: "8" in later.supervisor.board.running)


async def test_the_selected_call_is_selected_again_when_it_comes_after_others() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.select("8")
        calls, roster = cockpit.screen.query_one(CallList), cockpit.screen.query_one(CallList).roster
        calls.show(CallRoster(Board()), "8")
        assert calls.selected is None
        calls.roster = roster
        calls.changed()
        assert calls.selected == "8"
        calls.show(CallRoster(Board()), "8")
        calls.roster = roster
        calls.select("7", by_hand=True)
        calls.changed()
        assert calls.selected == "7"


@pytest.mark.slow
async def test_reconnecting_is_retried_until_it_succeeds() -> None:
    later = workday()
    seen = asyncio.Event()
    async with open_cockpit(workday(), reconnect=back_to(later, failures=1, after=seen)) as cockpit:
        cockpit.scenario.supervisor.break_down(GONE)
        await cockpit.sees("Trying again in")
        seen.set()
        await cockpit.until(lambda: cockpit.screen.supervision is later.supervisor)
        await cockpit.sees("● connected")


async def test_a_decision_without_a_connection_is_reported_in_one_sentence() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.select("8")
        cockpit.scenario.supervisor.broken = GONE
        await cockpit.press("a")
        await cockpit.sees("Start it with whisper-tui")
        assert cockpit.selected == "8"


async def test_ended_calls_that_the_board_drops_leave_the_list() -> None:
    scenario = Scenario.begin()
    for _ in range(ENDED_KEPT + 5):
        scenario.deny(scenario.ask("build"), "no")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.until(lambda: cockpit.screen.roster.count("ended") == ENDED_KEPT)
        scenario.deny(scenario.ask("build"), "no")
        await cockpit.until(lambda: cockpit.screen.roster.place_of(str(ENDED_KEPT + 6)) is not None)
        assert cockpit.screen.roster.count("ended") == ENDED_KEPT
        assert cockpit.screen.roster.place_of("6") is None


async def test_several_calls_that_the_board_drops_at_once_leave_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whisper_tui.model.board.ENDED_LARGEST", 100_000)
    scenario = Scenario.begin()
    small = [scenario.ask("build") for _ in range(3)]
    spec = CommandSpec(command=Shell(text="echo " + "x" * 200_000), cwd=ROOT)
    large = scenario.supervisor.ask(CallRequest(session_id="s1", tool="run_shell_command", arguments={}, spec=spec))
    async with open_cockpit(scenario) as cockpit:
        for call in small:
            scenario.deny(call, "no")
        await cockpit.until(lambda: cockpit.screen.roster.count("ended") == 3)
        scenario.deny(large, "no")
        await cockpit.until(lambda: cockpit.screen.roster.count("waiting") == 0)
        assert cockpit.screen.roster.id_at(RowPlace("ended", 0)) == large
        assert cockpit.screen.roster.count("ended") == len(cockpit.screen.board.settled) == 1
