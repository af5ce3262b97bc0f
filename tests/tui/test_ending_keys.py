"""Keys that signal what runs, and end it."""

import pytest

from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.scenes import Scenario, long_output
from whisper_tui.model.ending import Signalled
from whisper_tui.model.state import Ended
from whisper_tui.model.verdict import Risk


async def test_x_sends_the_chosen_signal_to_its_target() -> None:
    async with open_cockpit(long_output()) as cockpit:
        await cockpit.press("x")
        await cockpit.sees("End call 1", "everything that it started")
        await cockpit.press("down", "down")
        await cockpit.sees("SIGTERM", "the command itself")
        await cockpit.press("tab")
        await cockpit.sees("process group")
        await cockpit.press("down", "enter")
        await cockpit.until(lambda: cockpit.record("1").signals == (15,))
        await cockpit.sees("Sent SIGTERM to call 1.")
        assert cockpit.record("1").state.ending == Signalled(number=15, by_us=True)


async def killed(cockpit: Cockpit, *keys: str) -> tuple[int, ...]:
    await cockpit.press("x")
    await cockpit.sees("End call 1")
    await cockpit.press(*keys)
    await cockpit.until(lambda: len(cockpit.app.screen_stack) == 1)
    await cockpit.until(lambda: isinstance(cockpit.record("1").state, Ended))
    return cockpit.record("1").signals


async def test_x_confirms_and_ends_everything_with_term() -> None:
    async with open_cockpit(long_output()) as cockpit:
        assert await killed(cockpit, "enter") == (15,)


@pytest.mark.slow
async def test_the_second_row_kills_at_once() -> None:
    async with open_cockpit(long_output()) as cockpit:
        assert await killed(cockpit, "down", "enter") == (9,)


async def test_the_end_of_a_run_with_a_severe_risk_is_asked_for_twice() -> None:
    scenario = Scenario.begin()
    call_id = scenario.ask("build", Risk(id="destructive", sentence="Deletes recursively"))
    scenario.approve(call_id)
    async with open_cockpit(scenario) as cockpit:
        await cockpit.select(call_id)
        await cockpit.press("x", "enter")
        await cockpit.sees("Enter again to end it.")
        assert cockpit.record(call_id).signals == ()
        await cockpit.press("enter")
        await cockpit.until(lambda: cockpit.record(call_id).signals == (15,))


async def test_x_and_escape_ends_nothing() -> None:
    async with open_cockpit(long_output()) as cockpit:
        await cockpit.press("x", "escape")
        await cockpit.until(lambda: len(cockpit.app.screen_stack) == 1)
        assert cockpit.record("1").signals == ()


async def test_processes_that_ignore_term_are_killed_after_the_grace_period(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.in_memory.supervisor.DEADLY", frozenset({9}))
    scenario = long_output()
    record = scenario.supervisor.board.calls["1"]
    call = record.call.model_copy(update={"spec": record.call.spec.model_copy(update={"grace_s": 0.05})})
    scenario.supervisor.events[2] = scenario.supervisor.events[2].model_copy(update={"call": call})
    async with open_cockpit(scenario) as cockpit:
        await cockpit.press("x", "enter")
        await cockpit.until(lambda: cockpit.record("1").signals == (15, 9))
