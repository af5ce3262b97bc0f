"""The history is searched and filtered, and read only as far as somebody looks."""

import pytest
from textual.widgets import Button, Input

from tests.tui.cockpit import Cockpit, cockpit
from tests.tui.past import DAY_S, a_month, ask, begin, history, ids, ran
from whisper_tui.tui.commands.all_commands import keymap
from whisper_tui.tui.screens.past_calls import Filters, PastCalls, PastList, first_at_or_after

RECENT = ["2", "3", "4", "5", "6", "7"]


async def words(seat: Cockpit, text: str, end: str) -> None:
    """Type words that are to be found, and the key after them, as soon as there is a place for them."""
    await seat.press("slash")
    await seat.until(lambda: isinstance(seat.app.focused, Input))
    await seat.press(*text, end)


@pytest.mark.slow
async def test_words_are_searched_in_all_calls():
    async with cockpit(a_month()) as seat, history(seat) as screen:
        await words(seat, "make", "enter")
        await seat.until(lambda: ids(screen) == ["4", "3", "1"])
        assert isinstance(seat.app.focused, PastList)
        await words(seat, "nothing like it", "escape")
        await seat.sees("No matching calls.", "No call")
        assert isinstance(seat.app.focused, PastList)
        await seat.press("c")
        await seat.until(lambda: len(ids(screen)) == 7)
        assert screen.query_one(Input).value == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("v", [["2", "4"], ["1", "3", "5", "6", "7"], []]),
        ("x", [["1", "2", "4", "6"], ["3"], ["5"], [], [], ["7"]]),
        ("w", [["1", "3", "5", "6"], ["1", "3", "5", "6"], ["2"], ["4"], ["7"]]),
        ("t", [["6", "7"], ["3", "4", "5", "6", "7"], RECENT, RECENT, ["1"]]),
        ("s", [["5", "7"]]),
    ],
)
async def test_each_filter_goes_through_its_choices_and_back_to_all(key, found):
    async with cockpit(a_month()) as seat, history(seat) as screen:
        for expected in [*found, ["1", "2", "3", "4", "5", "6", "7"]]:
            await seat.press(key)
            await seat.until(lambda: screen._past.ended)
            assert sorted(ids(screen)) == expected, screen.filters


@pytest.mark.slow
async def test_filters_are_buttons_too_and_say_what_is_chosen():
    async with cockpit(a_month()) as seat, history(seat) as screen:
        await seat.click("#chip-history-ending")
        await seat.sees("x ending: exit 0")
        assert screen.query_one("#chip-history-ending", Button).has_class("-chosen")
        await seat.click("#chip-history-ending")
        await seat.sees("x ending: failed")
        await seat.until(lambda: ids(screen) == ["3"])


@pytest.mark.slow
async def test_filters_and_words_are_combined():
    async with cockpit(a_month()) as seat, history(seat) as screen:
        await seat.press("x", "x")
        await words(seat, "make", "enter")
        await seat.until(lambda: ids(screen) == ["3"])


@pytest.mark.slow
async def test_only_visible_calls_are_fetched():
    play = begin()
    for number in range(3000):
        ask(play, "echo", str(number))
    async with cockpit(play) as seat:
        before = play.stage.handed_out
        async with history(seat) as screen:
            await seat.until(lambda: not screen._looking)
            assert play.stage.handed_out - before <= 300
            await seat.sees("so far")
            await seat.press("end")
            await seat.until(lambda: len(ids(screen)) > 100 and not screen._looking)
            assert play.stage.handed_out - before <= 500
            assert ids(screen) == [str(number) for number in range(3000, 3000 - len(ids(screen)), -1)]


@pytest.mark.slow
async def test_a_search_for_a_rare_call_shows_how_far_it_went():
    play = begin()
    ran(play, "false", code=1)
    for number in range(2000):
        ask(play, "echo", str(number))
    async with cockpit(play) as seat, history(seat) as screen:
        await seat.press("x", "x")
        await seat.until(lambda: ids(screen) == ["1"] and screen._past.ended)
        await seat.sees("2,001 calls searched, back to")


async def test_words_are_searched_window_by_window_with_the_reached_date(monkeypatch):
    monkeypatch.setattr("whisper_tui.tui.screens.past_calls.WINDOW", 50)
    play = begin()
    ask(play, "needle", "first")
    for number in range(220):
        ask(play, "echo", str(number))
    ask(play, "needle", "last")
    past = PastCalls(play.stage, Filters(text="needle"), me="me", clock=play.clock)
    seen = [(past.looked_at, [call.id for call in past.found]) async for _ in past.more(10)]
    assert seen == [*((50 * turn, ["222"]) for turn in (1, 2, 3, 4)), (222, ["222", "1"])]
    assert past.ended


async def test_a_search_for_words_stops_where_the_period_begins(monkeypatch):
    monkeypatch.setattr("whisper_tui.tui.screens.past_calls.WINDOW", 50)
    play = begin()
    for number in range(300):
        ask(play, "echo", str(number))
    play.clock.advance(2 * 3600)
    for number in range(60):
        ask(play, "true", str(number))
    past = PastCalls(play.stage, Filters(text="echo", period="last hour"), me="me", clock=play.clock)
    seen = [past.looked_at async for _ in past.more(10)]
    assert (past.found, past.ended, seen) == ([], True, [50, 100])


async def test_the_next_page_begins_after_the_last_call():
    play = begin()
    for number in range(25):
        ask(play, "echo", str(number))
    past = PastCalls(play.stage, Filters(text="echo"), me="me", clock=play.clock, page=10)
    seen = [(past.looked_at, len(past.found)) async for _ in past.more(100)]
    assert seen == [(10, 10), (20, 20), (25, 25)]
    assert [call.id for call in past.found] == [str(number) for number in range(25, 0, -1)]


async def test_a_time_is_found_with_few_queries():
    play = begin()
    for _ in range(1000):
        ask(play, "true")
        play.clock.advance(10)
    start = 1_700_000_000.0
    asked = play.stage.handed_out
    for call in (1, 2, 500, 999, 1000):
        at = start + (call - 1) * 10
        assert await first_at_or_after(play.stage, at) == str(call)
        assert await first_at_or_after(play.stage, at - 1) == str(call)
    assert await first_at_or_after(play.stage, start + 1e6) == "1001"
    assert play.stage.handed_out - asked <= 11 * 14


async def test_earlier_calls_are_found_without_looking_at_the_newer_ones():
    play = begin()
    ask(play, "old")
    play.clock.advance(40 * DAY_S)
    for _ in range(1000):
        ask(play, "true")
    past = PastCalls(play.stage, Filters(period="earlier"), me="me", clock=play.clock)
    async for _ in past.more(10):
        pass
    assert [call.id for call in past.found] == ["1"]
    assert past.looked_at == 1


@pytest.mark.slow
async def test_remapped_keys_are_on_the_buttons_too():
    keys = keymap("default", {"history-verdict": "F5"})
    async with cockpit(a_month(), keys=keys) as seat, history(seat) as screen:
        await seat.sees("F5 Verdict")
        await seat.press("v")
        assert screen.filters == Filters()
        await seat.press("f5")
        await seat.sees("F5 verdict: allowed")
