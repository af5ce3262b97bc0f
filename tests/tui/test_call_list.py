"""The list of calls: sections, very many rows, what stays under the eye."""

import asyncio
import random
from collections.abc import AsyncIterator
from functools import partial

import pytest

from tests.in_memory.supervisor import InMemorySupervisor
from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.scenes import ME, ROOT, Scenario, workday
from whisper_tui.model.api import Supervision
from whisper_tui.model.board import Board
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.event import Decided
from whisper_tui.model.packed_calls import FIRST_PACKED, PACKED_AT_ONCE, BoardItem, PackedCalls
from whisper_tui.present.quantities import clock_time
from whisper_tui.tui.app import CockpitApp
from whisper_tui.tui.cockpit.call_list import CallList, ListLayout
from whisper_tui.tui.cockpit.call_roster import FOUND, SECTIONS, CallRoster, RowPlace
from whisper_tui.tui.cockpit.grouped_rows import OrderedTickets


def many(count: int) -> Scenario:
    """So many calls wait."""
    scenario = Scenario.begin()
    for number in range(count):
        asked(scenario, f"echo {number}")
    return scenario


def asked(scenario: Scenario, text: str) -> str:
    """Somebody asks for a line of a shell."""
    spec = CommandSpec(command=Shell(text=text), cwd=ROOT)
    return scenario.supervisor.ask(CallRequest(session_id="s1", tool="run_shell_command", arguments={}, spec=spec))


def test_ordered_tickets_agree_with_a_plain_list() -> None:
    chance = random.Random(5)
    plain: list[int] = []
    ordered = OrderedTickets()
    for _ in range(2000):
        if plain and chance.random() < 0.4:
            gone = chance.choice(plain)
            plain.remove(gone)
            ordered.discard(gone)
            ordered.discard(gone)
        else:
            ticket = chance.randrange(3000)
            plain = sorted({*plain, ticket})
            ordered.add(ticket)
    assert list(ordered) == plain
    assert [ordered.position(ticket) for ticket in plain] == list(range(len(plain)))
    assert all(ordered[at] == ticket for at, ticket in enumerate(plain))
    assert [ticket in ordered for ticket in range(3000)] == [ticket in plain for ticket in range(3000)]
    with pytest.raises(KeyError):
        ordered.position(3001)


def test_an_updated_roster_equals_a_rebuilt_one() -> None:
    supervisor = workday().supervisor
    board = Board()
    roster = CallRoster(board)
    for event in supervisor.events:
        board.apply(event)
        if call_id := getattr(event, "call_id", None) or getattr(getattr(event, "call", None), "id", None):
            roster.update(roster.board.calls.lines([call_id]))
    fresh = CallRoster(supervisor.board)
    for section in SECTIONS:
        count = fresh.count(section)
        assert roster.count(section) == count == fresh.totals[section] == roster.totals[section]
        for row in range(count):
            assert roster.id_at(RowPlace(section, row)) == fresh.id_at(RowPlace(section, row))


def test_every_row_has_one_position_and_every_position_one_row() -> None:
    roster = CallRoster(workday().supervisor.board)
    total = sum(roster.count(section) for section in SECTIONS)
    ids = [roster.flat(row) for row in range(total)]
    assert len(set(ids)) == total == 9
    for id_ in ids:
        place = roster.place_of(id_)
        assert place is not None and roster.id_at(place) == id_
    assert roster.flat(-5) == ids[0]
    assert roster.flat(99) == ids[-1]


def test_each_line_of_the_list_belongs_to_one_row() -> None:
    roster = CallRoster(workday().supervisor.board)
    layout = ListLayout(roster)
    rows = [layout.at(line) for line in range(layout.height)]
    places = [line.place for line in rows if line is not None and line.place is not None]
    assert len(places) == 3 * 2 + 1 + 1 + 4
    for place in places:
        assert layout.at(layout.line_of(place)).place == place
    assert layout.at(layout.height + 5) is None


def test_a_filter_finds_words_of_the_command_the_description_and_the_session() -> None:
    roster = CallRoster(workday().supervisor.board)
    for words, ids in (("CRAWL", {"6"}), ("fresh build", {"7"}), ("release agent", {"3", "6", "9"}), ("zzz", set())):
        roster.narrow(words)
        found = {roster.flat(row) for row in range(sum(roster.count(section) for section in SECTIONS))} - {None}
        assert found == ids


def test_a_filter_applies_to_calls_that_arrive_and_change() -> None:
    scenario = many(10)
    roster = CallRoster(scenario.supervisor.board)
    roster.narrow("echo 3")
    scenario.ask("build")
    roster.update(roster.board.calls.lines(["11"]))
    assert roster.count("waiting") == 1
    assert roster.totals["waiting"] == 11
    roster.narrow("")
    assert roster.count("waiting") == 11


def test_a_search_through_very_many_calls_runs_in_slices() -> None:
    scenario = many(150)
    roster = CallRoster(scenario.supervisor.board, work=100)
    roster.narrow("echo 14")
    assert (roster.searching, roster.count("waiting")) == (True, 1)
    assert roster.passes("141")
    roster.narrow("echo 141")
    late = asked(scenario, "echo 1415")
    roster.update(roster.board.calls.lines([late]))
    assert (roster.searching, roster.count("waiting")) == (True, 1)
    roster.search_on()
    assert (roster.searching, roster.count("waiting")) == (False, 2)
    assert [roster.id_at(RowPlace("waiting", row)) for row in range(2)] == ["142", late]
    roster.narrow("")
    assert (roster.count("waiting"), roster.searching) == (151, False)


def test_matches_count_towards_the_length_of_a_slice() -> None:
    roster = CallRoster(many(100).supervisor.board, work=10 * FOUND)
    roster.narrow("echo")
    assert roster.searching
    assert 0 < roster.count("waiting") <= 10
    while roster.searching:
        roster.search_on()
    assert [roster.id_at(RowPlace("waiting", row)) for row in range(100)] == [str(number) for number in range(1, 101)]


def test_calls_that_are_removed_during_a_search_are_not_found() -> None:
    scenario = many(150)
    roster = CallRoster(scenario.supervisor.board, work=100)
    roster.narrow("echo 120")
    gone = "121"
    scenario.supervisor.happen(Decided(at=scenario.clock(), call_id=gone, decision=Approve(), by=ME))
    roster.update(roster.board.calls.lines([gone]))
    roster.search_on()
    assert not roster.searching
    assert roster.count("waiting") == 0
    assert roster.id_at(RowPlace("queued", 0)) == gone


def test_a_filter_finds_words_at_the_end_of_a_long_call() -> None:
    scenario = many(3)
    long = asked(scenario, "cat <<END\n" + "filler " * 1000 + "\nNeedle\nEND")
    roster = CallRoster(scenario.supervisor.board)
    roster.narrow("needle")
    assert roster.id_at(RowPlace("waiting", 0)) == long
    assert roster.count("waiting") == 1


async def test_sections_show_waiting_running_background_and_ended_calls() -> None:
    async with open_cockpit(workday()) as cockpit:
        text = cockpit.text()
        for words in ("Waiting for you", "Running", "Left in the background", "Ended"):
            assert words in text
        assert "▲ destructive" in text
        assert "1 alive" in text
        assert "exit 1" in text
        assert "denied" in text


@pytest.mark.slow
async def test_very_many_waiting_calls_can_be_reached() -> None:
    scenario = many(10_000)
    async with open_cockpit(scenario) as cockpit:
        await cockpit.sees("10,000 waiting", "echo 0")
        await cockpit.press("end")
        await cockpit.sees("echo 9999")
        await cockpit.press("home")
        await cockpit.sees("echo 0")


@pytest.mark.slow
async def test_a_filter_over_several_slices_keeps_the_screen_responsive() -> None:
    async with open_cockpit(many(600)) as cockpit:
        cockpit.screen._roster._work = 50
        await cockpit.press("slash", *"echo 5")
        await cockpit.sees("111 of 600")
        assert not cockpit.screen.roster.searching
        await cockpit.press("escape")
        await cockpit.sees("echo 6 ")


async def test_only_the_rows_on_the_screen_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: set[int] = set()
    original = CallList.render_line
    monkeypatch.setattr(CallList, "render_line", lambda self, y: drawn.add(y) or original(self, y))
    async with open_cockpit(many(1000)) as cockpit:
        await cockpit.sees("1,000 waiting")
        assert max(drawn) < cockpit.app.size.height


async def test_rows_removed_above_do_not_move_the_selected_row() -> None:
    scenario = many(200)
    async with open_cockpit(scenario) as cockpit:
        calls = cockpit.screen.query_one(CallList)
        await cockpit.select("100")
        row = next(y for y, line in enumerate(cockpit.text().splitlines()) if "▌◆" in line)
        for call_id in ("3", "50", "99"):
            scenario.supervisor.happen(
                Decided(at=scenario.clock(), call_id=call_id, decision=Approve(), by=cockpit.screen.me)
            )
        await cockpit.until(lambda: len(cockpit.screen.board.waiting) == 197)
        await cockpit.pilot.pause()
        assert calls.selected == "100"
        assert "▌◆ s1  echo 99 " in cockpit.text().splitlines()[row]


async def test_the_last_waiting_call_is_followed_into_its_next_section() -> None:
    scenario = many(1)
    async with open_cockpit(scenario) as cockpit:
        scenario.approve("1")
        await cockpit.sees("Call 1  ▶ running")
        assert cockpit.selected == "1"


async def test_the_selection_stays_in_the_queue_when_a_call_is_decided_elsewhere() -> None:
    scenario = many(5)
    async with open_cockpit(scenario) as cockpit:
        await cockpit.select("3")
        scenario.approve("3")
        await cockpit.until(lambda: cockpit.selected == "4")
        await cockpit.sees("Call 4  bash  ◆ waiting for you")


async def test_the_selected_call_stays_in_view_when_a_filter_is_cleared() -> None:
    scenario = many(100)
    async with open_cockpit(scenario, size=(80, 24)) as cockpit:
        await cockpit.press("slash", *"echo 77", "enter")
        await cockpit.until(lambda: cockpit.selected == "78" and cockpit.screen.roster.count("waiting") == 1)
        await cockpit.press("escape")
        await cockpit.until(lambda: cockpit.screen.roster.count("waiting") == 100)
        await cockpit.until(
            lambda: any(line.startswith("▌") and "echo 77" in line for line in cockpit.text().splitlines())
        )


async def test_the_selected_call_stays_in_view_when_it_moves_to_another_section() -> None:
    scenario = many(100)
    scenario.approve("1")
    async with open_cockpit(scenario, size=(80, 24)) as cockpit:
        await cockpit.select("1")
        for call_id in range(2, 60):
            scenario.approve(str(call_id))
        scenario.end("1")
        await cockpit.until(
            lambda: cockpit.record("1").state.kind == "ended" and len(cockpit.screen.board.running) == 58
        )
        await cockpit.until(
            lambda: any(line.startswith("▌") and "echo 0" in line for line in cockpit.text().splitlines())
        )


async def test_a_click_selects_a_call() -> None:
    async with open_cockpit(workday()) as cockpit:
        lines = cockpit.text().splitlines()
        y = next(y for y, line in enumerate(lines) if "./test.sh" in line)
        await cockpit.click("#calls", offset=(6, y - 1))
        await cockpit.until(lambda: cockpit.selected == "2")


async def test_a_filter_that_hides_the_selected_call_selects_the_first_one_left() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.select("8")
        await cockpit.press("slash", *"serve")
        await cockpit.until(lambda: cockpit.selected == "4")


async def test_ages_follow_the_clock() -> None:
    async with open_cockpit(workday()) as cockpit:
        cockpit.scenario.clock.advance(3600)
        await cockpit.sees(" 1h", "for 1 h 00 min")


async def test_a_denied_call_is_listed_as_denied() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.scenario.supervisor.decide(
            "8", Deny(reason="no"), cockpit.screen.me, cockpit.record("8").seen_digest()
        )
        await cockpit.until(lambda: cockpit.screen.roster.count("waiting") == 2)
        await cockpit.until(lambda: sum("denied" in line[:38] for line in cockpit.text().splitlines()) == 2)


@pytest.mark.slow
async def test_the_heading_of_a_section_stays_on_top_while_its_rows_scroll() -> None:
    async with open_cockpit(many(100), size=(80, 24)) as cockpit:
        calls = cockpit.screen.query_one(CallList)
        await cockpit.select("60")
        await cockpit.until(lambda: calls.scroll_offset.y > 40)
        assert "Waiting for you" in calls.render_line(0).text and " 100" in calls.render_line(0).text
        for _ in range(12):
            await cockpit.press("up")
            shown = [calls.render_line(y).text for y in range(calls.size.height)]
            assert any(line.startswith("▌◆ s1  echo") for line in shown[1:]) and shown[0].startswith(" Waiting for you")
        await cockpit.click("#calls", offset=(6, 0))
        await cockpit.until(lambda: cockpit.screen.roster.grouping == "session")


async def test_an_ended_row_has_its_number_and_the_time_of_its_end() -> None:
    scenario = many(2)
    for call_id, code in (("1", 0), ("2", 3)):
        scenario.approve(call_id)
        scenario.end(call_id, code)
    async with open_cockpit(scenario) as cockpit:
        ended = clock_time(scenario.clock())[:5]

        def rows() -> list[list[str]]:
            return [line[:38].split() for line in cockpit.text().splitlines() if " echo " in line[:38]]

        await cockpit.sees("✔ s1  1 echo 0", "✘ s1  2 echo 1")
        await cockpit.until(lambda: [row[-3:] for row in rows()] == [["exit", "3", ended], ["echo", "0", ended]])


@pytest.mark.slow
async def test_an_ended_call_stays_in_view_when_a_filter_is_cleared() -> None:
    scenario = many(60)
    scenario.approve("7")
    scenario.end("7")
    async with open_cockpit(scenario, size=(120, 30)) as cockpit:
        await cockpit.press("slash", *"echo 6", "enter", "end")
        await cockpit.until(lambda: cockpit.selected == "7")
        await cockpit.press("escape")
        await cockpit.until(lambda: cockpit.screen.roster.count("waiting") == 59)
        await cockpit.until(lambda: any(line.startswith("▌✔ s1  7 echo 6") for line in cockpit.text().splitlines()))


@pytest.mark.slow
async def test_a_cockpit_that_is_sent_packed_calls_shows_and_finds_what_events_would_have_shown() -> None:
    texts = []
    for as_events in (False, True):
        scenario = many(FIRST_PACKED + PACKED_AT_ONCE + 3)
        if as_events:
            scenario.supervisor.watch_board = partial(Supervision.watch_board, scenario.supervisor)
        seen = []
        async with open_cockpit(scenario) as cockpit:
            seen.append(cockpit.text())
            for keys in (("end",), ("ctrl+g",), ("ctrl+g",), ("/", *"echo 55"), ("enter", "home")):
                await cockpit.press(*keys)
                await cockpit.until(lambda cockpit=cockpit: not cockpit.screen.roster.searching)
                seen.append(cockpit.text())
        texts.append(seen)
    assert texts[0] == texts[1]
    assert "echo 552" in texts[0][1] and "echo 550" in texts[0][-1]


async def test_calls_that_change_while_the_others_are_sent_are_shown_as_they_became() -> None:
    scenario = many(FIRST_PACKED + 2 * PACKED_AT_ONCE)
    supervisor, go_on = scenario.supervisor, asyncio.Event()
    whole = supervisor.watch_board

    async def slowly(packing: str) -> AsyncIterator[tuple[BoardItem, ...]]:
        sent = 0
        async for items in whole(packing):
            yield items
            sent += sum(len(item.ids) for item in items if isinstance(item, PackedCalls))
            if sent == FIRST_PACKED + PACKED_AT_ONCE:
                await go_on.wait()

    supervisor.watch_board = slowly
    app = CockpitApp(supervisor, user="me", clock=scenario.clock)
    async with app.run_test(size=(120, 40)) as pilot:
        cockpit = Cockpit(app, pilot, scenario)
        await cockpit.sees("echo 0", f"{FIRST_PACKED + PACKED_AT_ONCE:,} waiting")
        await cockpit.select("2")
        await cockpit.can_be_seen()
        scenario.clock.advance(30)
        await cockpit.press("a")
        await cockpit.until(lambda: "2" not in supervisor.board.waiting)
        last = str(FIRST_PACKED + 2 * PACKED_AT_ONCE)
        supervisor.happen(Decided(at=scenario.clock(), call_id=last, decision=Approve(), by=ME))
        go_on.set()
        await cockpit.sees(f"{FIRST_PACKED + 2 * PACKED_AT_ONCE - 2:,} waiting")
        await cockpit.until(lambda: cockpit.screen.board.calls.get(last) == supervisor.board.calls[last])
        assert cockpit.screen.board.calls["2"] == supervisor.board.calls["2"]
        assert [*cockpit.screen.board.waiting] == [*supervisor.board.waiting]


def opens_slowly(supervisor: InMemorySupervisor) -> asyncio.Event:
    """Have all of the present be sent, one event after the other, and the end of it once the event is set."""
    whole, go_on = supervisor.watch, asyncio.Event()

    async def slowly(_packing: str) -> AsyncIterator[tuple[BoardItem, ...]]:
        async for events in whole(None):
            for event in events:
                yield (event,)
                await asyncio.sleep(0)
            if not events:
                await go_on.wait()
            yield events

    supervisor.watch_board = slowly
    return go_on


async def test_before_all_of_the_present_has_come_the_cockpit_says_that_it_loads() -> None:
    scenario = workday()
    go_on = opens_slowly(scenario.supervisor)
    app = CockpitApp(scenario.supervisor, user="me", clock=scenario.clock)
    async with app.run_test(size=(120, 40)) as pilot:
        cockpit = Cockpit(app, pilot, scenario)
        await cockpit.until(lambda: len(cockpit.screen.board.calls) == len(scenario.supervisor.board.calls))
        await pilot.pause()
        screen = cockpit.text()
        assert screen.count("oading…") == 3
        for false in ("◆", "▶", "No call", "submitted", "Approve"):
            assert false not in screen, screen
        go_on.set()
        await cockpit.sees("◆ 3 waiting", "Approve")
        assert "oading" not in cockpit.text()


async def test_a_search_without_a_match_says_so_and_not_that_there_is_no_call() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.press("slash", *"zzzz")
        await cockpit.sees("No waiting call matches.", "No call matches", "No call in the list matches.")
        assert "No agent has submitted" not in cockpit.text()
        await cockpit.press("escape")
        await cockpit.sees("Call 7")
