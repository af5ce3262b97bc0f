"""Keys that signal what runs, and end it."""

import pytest

from tests.tui.cockpit import Cockpit, cockpit
from tests.tui.scenes import long_output
from whisper_tui.model.ending import Signalled
from whisper_tui.model.state import Ended


async def test_x_sends_the_chosen_signal_to_its_target() -> None:
    async with cockpit(long_output()) as seat:
        await seat.press("x")
        await seat.sees("Signal to call 1", "SIGTERM", "the command itself")
        await seat.press("tab")
        await seat.sees("process group")
        await seat.press("down", "enter")
        await seat.until(lambda: seat.record("1").signals == (15,))
        await seat.sees("Sent SIGTERM to call 1.")
        assert seat.record("1").state.ending == Signalled(number=15, by_us=True)


async def killed(seat: Cockpit, *keys: str) -> tuple[int, ...]:
    await seat.press("k")
    await seat.sees("End call 1")
    await seat.press(*keys)
    await seat.until(lambda: len(seat.app.screen_stack) == 1)
    await seat.until(lambda: isinstance(seat.record("1").state, Ended))
    return seat.record("1").signals


async def test_k_confirms_and_ends_everything_with_term() -> None:
    async with cockpit(long_output()) as seat:
        assert await killed(seat, "enter") == (15,)


@pytest.mark.slow
async def test_k_twice_kills_at_once() -> None:
    async with cockpit(long_output()) as seat:
        assert await killed(seat, "k") == (9,)


async def test_k_and_escape_ends_nothing() -> None:
    async with cockpit(long_output()) as seat:
        await seat.press("k", "escape")
        await seat.until(lambda: len(seat.app.screen_stack) == 1)
        assert seat.record("1").signals == ()


async def test_processes_that_ignore_term_are_killed_after_the_grace_period(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.in_memory.supervisor.DEADLY", frozenset({9}))
    play = long_output()
    record = play.stage.board.calls["1"]
    call = record.call.model_copy(update={"spec": record.call.spec.model_copy(update={"grace_s": 0.05})})
    play.stage.events[2] = play.stage.events[2].model_copy(update={"call": call})
    async with cockpit(play) as seat:
        await seat.press("k", "enter")
        await seat.until(lambda: seat.record("1").signals == (15, 9))
