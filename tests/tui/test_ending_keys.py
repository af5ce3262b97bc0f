"""Keys that signal what runs, and end it."""

import pytest

from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.scenes import long_output
from whisper_tui.model.ending import Signalled
from whisper_tui.model.state import Ended


async def test_x_sends_the_chosen_signal_to_its_target() -> None:
    async with open_cockpit(long_output()) as cockpit:
        await cockpit.press("x")
        await cockpit.sees("Signal to call 1", "SIGTERM", "the command itself")
        await cockpit.press("tab")
        await cockpit.sees("process group")
        await cockpit.press("down", "enter")
        await cockpit.until(lambda: cockpit.record("1").signals == (15,))
        await cockpit.sees("Sent SIGTERM to call 1.")
        assert cockpit.record("1").state.ending == Signalled(number=15, by_us=True)


async def killed(cockpit: Cockpit, *keys: str) -> tuple[int, ...]:
    await cockpit.press("k")
    await cockpit.sees("End call 1")
    await cockpit.press(*keys)
    await cockpit.until(lambda: len(cockpit.app.screen_stack) == 1)
    await cockpit.until(lambda: isinstance(cockpit.record("1").state, Ended))
    return cockpit.record("1").signals


async def test_k_confirms_and_ends_everything_with_term() -> None:
    async with open_cockpit(long_output()) as cockpit:
        assert await killed(cockpit, "enter") == (15,)


@pytest.mark.slow
async def test_k_twice_kills_at_once() -> None:
    async with open_cockpit(long_output()) as cockpit:
        assert await killed(cockpit, "k") == (9,)


async def test_k_and_escape_ends_nothing() -> None:
    async with open_cockpit(long_output()) as cockpit:
        await cockpit.press("k", "escape")
        await cockpit.until(lambda: len(cockpit.app.screen_stack) == 1)
        assert cockpit.record("1").signals == ()


async def test_processes_that_ignore_term_are_killed_after_the_grace_period(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.in_memory.supervisor.DEADLY", frozenset({9}))
    scenario = long_output()
    record = scenario.supervisor.board.calls["1"]
    call = record.call.model_copy(update={"spec": record.call.spec.model_copy(update={"grace_s": 0.05})})
    scenario.supervisor.events[2] = scenario.supervisor.events[2].model_copy(update={"call": call})
    async with open_cockpit(scenario) as cockpit:
        await cockpit.press("k", "enter")
        await cockpit.until(lambda: cockpit.record("1").signals == (15, 9))
