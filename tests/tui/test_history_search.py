"""The history is searched and filtered, and read only as far as somebody looks."""

import pytest
from textual.widgets import Button, Input

from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.past import DAY_S, a_month, ask, begin, history, ids, ran
from whisper_tui.tui.commands.all_commands import keymap
from whisper_tui.tui.screens.past_calls import PastList
from whisper_tui.tui.screens.past_search import Filters, PastCalls, first_at_or_after

RECENT = ["2", "3", "4", "5", "6", "7"]


async def words(cockpit: Cockpit, text: str, end: str) -> None:
    """Type words that are to be found, and the key after them, as soon as there is a place for them."""
    await cockpit.press("slash")
    await cockpit.until(lambda: isinstance(cockpit.app.focused, Input))
    await cockpit.press(*text, end)


@pytest.mark.slow
async def test_words_are_searched_in_all_calls():
    async with open_cockpit(a_month()) as cockpit, history(cockpit) as screen:
        await words(cockpit, "make", "enter")
        await cockpit.until(lambda: ids(screen) == ["4", "3", "1"])
        assert isinstance(cockpit.app.focused, PastList)
        await words(cockpit, "nothing like it", "escape")
        await cockpit.sees("No matching calls.", "No call")
        assert isinstance(cockpit.app.focused, PastList)
        await cockpit.press("c")
        await cockpit.until(lambda: len(ids(screen)) == 7)
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
    async with open_cockpit(a_month()) as cockpit, history(cockpit) as screen:
        for expected in [*found, ["1", "2", "3", "4", "5", "6", "7"]]:
            await cockpit.press(key)
            await cockpit.until(lambda: screen._past.ended)
            assert sorted(ids(screen)) == expected, screen.filters


@pytest.mark.slow
async def test_filters_are_buttons_too_and_say_what_is_chosen():
    async with open_cockpit(a_month()) as cockpit, history(cockpit) as screen:
        await cockpit.click("#chip-history-ending")
        await cockpit.sees("x ending: exit 0")
        assert screen.query_one("#chip-history-ending", Button).has_class("-chosen")
        await cockpit.click("#chip-history-ending")
        await cockpit.sees("x ending: failed")
        await cockpit.until(lambda: ids(screen) == ["3"])


@pytest.mark.slow
async def test_filters_and_words_are_combined():
    async with open_cockpit(a_month()) as cockpit, history(cockpit) as screen:
        await cockpit.press("x", "x")
        await words(cockpit, "make", "enter")
        await cockpit.until(lambda: ids(screen) == ["3"])


@pytest.mark.slow
async def test_only_visible_calls_are_fetched():
    scenario = begin()
    for number in range(3000):
        ask(scenario, "echo", str(number))
    async with open_cockpit(scenario) as cockpit:
        before = scenario.supervisor.handed_out
        async with history(cockpit) as screen:
            await cockpit.until(lambda: not screen._loading)
            assert scenario.supervisor.handed_out - before <= 300
            await cockpit.sees("so far")
            await cockpit.press("end")
            await cockpit.until(lambda: len(ids(screen)) > 100 and not screen._loading)
            assert scenario.supervisor.handed_out - before <= 500
            assert ids(screen) == [str(number) for number in range(3000, 3000 - len(ids(screen)), -1)]


@pytest.mark.slow
async def test_a_search_for_a_rare_call_shows_how_far_it_went():
    scenario = begin()
    ran(scenario, "false", code=1)
    for number in range(2000):
        ask(scenario, "echo", str(number))
    async with open_cockpit(scenario) as cockpit, history(cockpit) as screen:
        await cockpit.press("x", "x")
        await cockpit.until(lambda: ids(screen) == ["1"] and screen._past.ended)
        await cockpit.sees("2,001 calls searched, back to")


async def test_words_are_searched_window_by_window_with_the_reached_date(monkeypatch):
    monkeypatch.setattr("whisper_tui.tui.screens.past_search.WINDOW", 50)
    scenario = begin()
    ask(scenario, "needle", "first")
    for number in range(220):
        ask(scenario, "echo", str(number))
    ask(scenario, "needle", "last")
    past = PastCalls(scenario.supervisor, Filters(text="needle"), me="me", clock=scenario.clock)
    seen = [(past.looked_at, [call.id for call in past.found]) async for _ in past.more(10)]
    assert seen == [*((50 * turn, ["222"]) for turn in (1, 2, 3, 4)), (222, ["222", "1"])]
    assert past.ended


async def test_a_search_for_words_stops_where_the_period_begins(monkeypatch):
    monkeypatch.setattr("whisper_tui.tui.screens.past_search.WINDOW", 50)
    scenario = begin()
    for number in range(300):
        ask(scenario, "echo", str(number))
    scenario.clock.advance(2 * 3600)
    for number in range(60):
        ask(scenario, "true", str(number))
    past = PastCalls(scenario.supervisor, Filters(text="echo", period="last hour"), me="me", clock=scenario.clock)
    seen = [past.looked_at async for _ in past.more(10)]
    assert (past.found, past.ended, seen) == ([], True, [50, 100])


async def test_the_next_page_begins_after_the_last_call():
    scenario = begin()
    for number in range(25):
        ask(scenario, "echo", str(number))
    past = PastCalls(scenario.supervisor, Filters(text="echo"), me="me", clock=scenario.clock, page=10)
    seen = [(past.looked_at, len(past.found)) async for _ in past.more(100)]
    assert seen == [(10, 10), (20, 20), (25, 25)]
    assert [call.id for call in past.found] == [str(number) for number in range(25, 0, -1)]


async def test_a_time_is_found_with_few_queries():
    scenario = begin()
    for _ in range(1000):
        ask(scenario, "true")
        scenario.clock.advance(10)
    start = 1_700_000_000.0
    asked = scenario.supervisor.handed_out
    for call in (1, 2, 500, 999, 1000):
        at = start + (call - 1) * 10
        assert await first_at_or_after(scenario.supervisor, at) == str(call)
        assert await first_at_or_after(scenario.supervisor, at - 1) == str(call)
    assert await first_at_or_after(scenario.supervisor, start + 1e6) == "1001"
    assert scenario.supervisor.handed_out - asked <= 11 * 14


async def test_earlier_calls_are_found_without_looking_at_the_newer_ones():
    scenario = begin()
    ask(scenario, "old")
    scenario.clock.advance(40 * DAY_S)
    for _ in range(1000):
        ask(scenario, "true")
    past = PastCalls(scenario.supervisor, Filters(period="earlier"), me="me", clock=scenario.clock)
    async for _ in past.more(10):
        pass
    assert [call.id for call in past.found] == ["1"]
    assert past.looked_at == 1


@pytest.mark.slow
async def test_remapped_keys_are_on_the_buttons_too():
    keys = keymap("default", {"history-verdict": "F5"})
    async with open_cockpit(a_month(), keys=keys) as cockpit, history(cockpit) as screen:
        await cockpit.sees("F5 Verdict")
        await cockpit.press("v")
        assert screen.filters == Filters()
        await cockpit.press("f5")
        await cockpit.sees("F5 verdict: allowed")
