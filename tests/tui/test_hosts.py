"""One cockpit over several machines, on the screen."""

import asyncio

import pytest

from tests.tui.cockpit import Cockpit, open_cockpit, toast_text
from tests.tui.host_scenes import NO_WAY, one_away, three_machines
from whisper_tui.model.state import HostState, Running, Waiting
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.cockpit.call_row import empty_line
from whisper_tui.tui.screens.past_calls import PastList
from whisper_tui.wire import federation


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(federation, "RETRIES_S", (0.02,))


def row_of(cockpit: Cockpit, words: str) -> str:
    """The line of the list that holds these words."""
    return next(line[:38] for line in cockpit.text().splitlines() if words in line[:38])


def hosts_of(cockpit: Cockpit) -> dict[str, HostState]:
    return cockpit.screen.query_one(CallList).hosts


async def test_each_row_and_the_card_name_the_machine_and_a_decision_reaches_it():
    scenario = three_machines()
    async with open_cockpit(scenario) as cockpit:
        await cockpit.sees("● 3 machines", "Call gpu1:7")
        assert "gpu2 " in row_of(cockpit, "./release.sh") and "ci-runner" in row_of(cockpit, "npm install")
        await cockpit.select("gpu2:2")
        await cockpit.sees("Call gpu2:2")
        await cockpit.press("a")
        await cockpit.sees("Call gpu2:2 is approved")
        states = {name: each.supervisor.board.calls["2"].state for name, each in scenario.supervisor.machines.items()}
        assert isinstance(states["gpu2"], Running) and isinstance(states["ci-runner"], Waiting)


async def test_the_filter_finds_calls_by_their_machine():
    async with open_cockpit(three_machines()) as cockpit:
        await cockpit.sees("3 machines", "ci-runner")
        await cockpit.press("slash", *"gpu2:", "enter")
        await cockpit.sees("1 of 13")
        assert "ci-runner" not in cockpit.text()


async def test_a_machine_that_is_away_is_grey_with_its_last_calls_and_comes_back_by_itself():
    scenario = three_machines()
    async with open_cockpit(scenario) as cockpit:
        await cockpit.sees("3 machines")
        supervisor = scenario.supervisor.machines["gpu2"].supervisor
        supervisor.break_down(NO_WAY)
        await cockpit.sees("○ 2 of 3 machines", "gpu2 has been unreachable since", "Try: ssh gpu2 true")
        assert row_of(cockpit, "./release.sh").lstrip(" ▌▏").startswith("○ gpu2")
        assert row_of(cockpit, "./tag.sh").lstrip(" ▌▏").startswith("◆ gpu1")
        await cockpit.select("gpu2:2")
        await cockpit.press("a")
        await cockpit.until(lambda: "machine gpu2 cannot be reached, so nothing was done" in toast_text(cockpit.app))
        assert isinstance(supervisor.board.calls["2"].state, Waiting)
        supervisor.broken = None
        await cockpit.sees("● 3 machines")
        assert not [host for host in hosts_of(cockpit).values() if not host.reached]


def test_an_empty_queue_says_which_machines_are_not_known():
    (span,) = empty_line(filtered=False, unreached=["gpu2"])
    assert "gpu2 unreachable" in span.text
    assert "No call is waiting" not in span.text


async def test_a_machine_that_answers_nothing_delays_no_key_and_no_other_machine():
    scenario = three_machines()
    async with open_cockpit(scenario) as cockpit:
        await cockpit.sees("● 3 machines", "Call gpu1:7")
        asked = asyncio.Event()

        async def never(*_, **__):
            asked.set()
            await asyncio.Event().wait()

        supervisor = scenario.supervisor.machines["gpu2"].supervisor
        for operation in ("decide", "status", "stalls", "usage", "record", "grants", "denials"):
            setattr(supervisor, operation, never)
        await cockpit.select("gpu2:2")
        await cockpit.press("a")
        await cockpit.until(asked.is_set)
        await cockpit.select("gpu1:7")
        await cockpit.press("a")
        await cockpit.sees("Call gpu1:7 is approved")
        assert isinstance(supervisor.board.calls["2"].state, Waiting)


@pytest.mark.slow
async def test_the_history_of_all_machines_is_one_list_in_the_order_of_our_time():
    async with open_cockpit(three_machines()) as cockpit:
        await cockpit.sees("● 3 machines", "Call gpu1:7")
        await cockpit.press("H")
        await cockpit.sees("history of 3 machines")
        past = cockpit.app.screen.query_one(PastList)
        await cockpit.until(lambda: past._last[0].text == "End of the history.")
        times = [call.at for call in past._found]
        assert times == sorted(times, reverse=True) and times[0] > 1_700_007_000
        machines = cockpit.scenario.supervisor.machines
        every = {f"{name}:{id_}" for name, each in machines.items() for id_ in each.supervisor.board.calls}
        assert {call.id for call in past._found} == every and len(past._found) == len(every)
        assert all(f" {name} " in cockpit.text() for name in ("gpu1", "gpu2", "ci-runner"))
        selected = past.selected
        await cockpit.press("m")
        await cockpit.sees(f"history of {selected.host}", "End of the history")
        assert {call.host for call in past._found} == {selected.host}
        await cockpit.press("m")
        await cockpit.sees("history of 3 machines")


async def test_the_history_of_several_machines_says_that_one_is_away_and_what_it_lacks():
    async with open_cockpit(one_away()) as cockpit:
        await cockpit.sees("○ 2 of 3 machines")
        await cockpit.press("H")
        await cockpit.sees("history of 3 machines", "Not all calls of gpu2: ")
        past = cockpit.app.screen.query_one(PastList)
        assert {call.host for call in past._found} == {"gpu1", "ci-runner"}
        assert "End of the history" not in cockpit.text()


async def test_an_approval_for_a_session_holds_on_its_machine_alone_and_is_taken_back_there():
    scenario = three_machines()
    machines = scenario.supervisor.machines
    async with open_cockpit(scenario) as cockpit:
        await cockpit.sees("● 3 machines", "Call gpu1:7")
        await cockpit.select("gpu2:2")
        await cockpit.sees("Call gpu2:2")
        await cockpit.press("F", "a")
        await cockpit.until(lambda: "for the rest of the session" in toast_text(cockpit.app))
        given = {name: await each.supervisor.grants() for name, each in machines.items()}
        assert {name: [grant.id for grant in grants] for name, grants in given.items() if grants} == {"gpu2": ["g1"]}
        assert given["gpu2"][0].from_call == "2"
        await cockpit.press("L")
        await cockpit.sees("1 approval", "↻ gpu2 ./release.sh production", "Standing approval gpu2:g1")
        # Nothing is said of rules: each machine has its own.
        assert "Rules that" not in cockpit.text() and "rules list --host NAME" in cockpit.text()
        await cockpit.press("x")
        await cockpit.sees("Standing approval gpu2:g1", "revoked")
        assert not any([await each.supervisor.grants() for each in machines.values()])


async def test_a_standing_approval_of_one_machine_is_chosen_in_the_dialog_by_its_own_past_calls():
    scenario = three_machines()
    async with open_cockpit(scenario) as cockpit:
        await cockpit.sees("● 3 machines", "Call gpu1:7")
        await cockpit.select("ci-runner:3")
        await cockpit.sees("Call ci-runner:3")
        await cockpit.press("A")
        await cockpit.sees("npm install")
        await cockpit.press("ctrl+s")
        there = scenario.supervisor.machines["ci-runner"].supervisor
        await cockpit.until(lambda: there.board.grants)
        others = [each for name, each in scenario.supervisor.machines.items() if name != "ci-runner"]
        assert not any(each.supervisor.board.grants for each in others)
