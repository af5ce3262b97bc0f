"""The history: any call ever is found, shown in full, played again in time, run again, and counted."""

import json

import pytest
from textual.widgets import Button, Input

from tests.tui.cockpit import cockpit
from tests.tui.past import DAY_S, a_month, ask, begin, counting, history, ran
from whisper_tui.model.call import CallRequest
from whisper_tui.model.command import Argv, CommandSpec
from whisper_tui.model.errors import NotRunning, Unavailable
from whisper_tui.model.event import SessionClosed
from whisper_tui.model.port import HistoryQuery
from whisper_tui.model.state import Waiting
from whisper_tui.tui.commands.history import HISTORY
from whisper_tui.tui.history.filters import Filters
from whisper_tui.tui.history.past_calls import PastCalls, first_at_or_after
from whisper_tui.tui.history.past_list import PastList
from whisper_tui.tui.history.playing import played
from whisper_tui.tui.history.replay_area import ReplayArea
from whisper_tui.tui.history.replay_bar import ReplayBar
from whisper_tui.tui.keymap import keymap
from whisper_tui.tui.screens.cockpit import CockpitScreen
from whisper_tui.tui.screens.history import HistoryScreen

RECENT = ["2", "3", "4", "5", "6", "7"]


def ids(screen: HistoryScreen) -> list[str]:
    return [past.id for past in screen.query_one(PastList)._found]


async def test_every_command_of_the_table_is_done_and_no_other():
    async with cockpit(a_month()) as seat, history(seat) as screen:
        assert set(screen.does) == {command.id for command in HISTORY}
        assert len({key for command in HISTORY for key in command.key.split(",")}) == sum(
            len(command.key.split(",")) for command in HISTORY
        )


async def test_capital_h_lists_every_call_newest_first_and_shows_the_selected_one():
    async with cockpit(a_month()) as seat, history(seat) as screen:
        assert ids(screen) == ["7", "6", "5", "4", "3", "2", "1"]
        await seat.sees("Call 7", "git push", "That is all.", "7 calls")
        await seat.press("down")
        await seat.sees("Call 6", "./count.sh", "step 5 of 5")
        await seat.press("end")
        await seat.sees("Call 1", "make old")
        await seat.press("home")
        await seat.sees("Call 7")
        await seat.press("pagedown", "pageup", "j", "k")
        assert screen.query_one(PastList).row == 0


async def test_the_session_of_an_old_call_is_named_though_the_board_has_forgotten_it():
    async with cockpit(a_month()) as seat:
        gone = seat.record("7").call.session_id
        name = seat.screen.board.sessions.pop(gone).name
        async with history(seat) as screen:
            await seat.until(lambda: screen.record is not None and screen.record.id == "7")
            assert seat.screen.board.sessions[gone].name == name
            await seat.sees(name)


async def test_a_call_is_selected_with_the_mouse():
    async with cockpit(a_month()) as seat, history(seat) as screen:
        await seat.click("#past", offset=(5, 2))
        await seat.until(lambda: screen.record is not None and screen.record.id == "5")
        await seat.sees("Denied by me in the cockpit: keep it")


async def test_words_are_looked_for_in_all_calls():
    async with cockpit(a_month()) as seat, history(seat) as screen:
        await seat.press("slash", *"make", "enter")
        await seat.until(lambda: ids(screen) == ["4", "3", "1"])
        assert isinstance(seat.app.focused, PastList)
        await seat.press("slash", *"nothing like it", "escape")
        await seat.sees("Nothing was found.", "No call")
        assert isinstance(seat.app.focused, PastList)
        await seat.press("c")
        await seat.until(lambda: len(ids(screen)) == 7)
        assert screen.query_one(Input).value == ""


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


async def test_filters_are_buttons_too_and_say_what_is_chosen():
    async with cockpit(a_month()) as seat, history(seat) as screen:
        await seat.click("#chip-history-ending")
        await seat.sees("x ending: exit 0")
        assert screen.query_one("#chip-history-ending", Button).has_class("-chosen")
        await seat.click("#chip-history-ending")
        await seat.sees("x ending: failed")
        await seat.until(lambda: ids(screen) == ["3"])


async def test_filters_and_words_are_combined():
    async with cockpit(a_month()) as seat, history(seat) as screen:
        await seat.press("x", "x", "slash", *"make", "enter")
        await seat.until(lambda: ids(screen) == ["3"])


async def test_only_as_many_calls_are_fetched_as_somebody_looks_at():
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


async def test_a_rare_call_is_found_far_back_and_says_how_far_it_looked():
    play = begin()
    ran(play, "false", code=1)
    for number in range(2000):
        ask(play, "echo", str(number))
    async with cockpit(play) as seat, history(seat) as screen:
        await seat.press("x", "x")
        await seat.until(lambda: ids(screen) == ["1"] and screen._past.ended)
        await seat.sees("looked at 2,001 back to")


async def test_words_are_looked_for_a_window_at_a_time_and_it_says_how_far_back_it_looked(monkeypatch):
    monkeypatch.setattr("whisper_tui.tui.history.past_calls.WINDOW", 50)
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
    monkeypatch.setattr("whisper_tui.tui.history.past_calls.WINDOW", 50)
    play = begin()
    for number in range(300):
        ask(play, "echo", str(number))
    play.clock.advance(2 * 3600)
    for number in range(60):
        ask(play, "true", str(number))
    past = PastCalls(play.stage, Filters(text="echo", period="last hour"), me="me", clock=play.clock)
    seen = [past.looked_at async for _ in past.more(10)]
    assert (past.found, past.ended, seen) == ([], True, [50, 100])


async def test_a_page_that_is_full_is_gone_on_from_its_last_call():
    play = begin()
    for number in range(25):
        ask(play, "echo", str(number))
    past = PastCalls(play.stage, Filters(text="echo"), me="me", clock=play.clock, page=10)
    seen = [(past.looked_at, len(past.found)) async for _ in past.more(100)]
    assert seen == [(10, 10), (20, 20), (25, 25)]
    assert [call.id for call in past.found] == [str(number) for number in range(25, 0, -1)]


async def test_a_time_is_found_in_a_few_questions():
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


async def test_space_plays_the_output_as_it_came():
    async with cockpit(a_month()) as seat, history(seat) as screen:
        await seat.press("down")
        await seat.sees("step 5 of 5", "1:00 of 1:00", "all of it")
        await seat.press("space")
        await seat.sees("Nothing yet.", "playing")
        assert "step" not in seat.text()
        seat.play.clock.advance(21)
        await seat.sees("step 2 of 5", "note 2", "0:21.0 of 1:00")
        assert "step 3" not in seat.text()
        await seat.press("space")
        await seat.sees("paused")
        seat.play.clock.advance(30)
        await seat.pilot.pause(0.2)
        assert "step 3" not in seat.text()
        await seat.press("space", "plus", "plus")
        await seat.sees("speed 4")
        seat.play.clock.advance(5)
        await seat.sees("step 4 of 5", "0:41.0")
        await seat.press("minus")
        await seat.sees("speed 2")
        seat.play.clock.advance(100)
        await seat.sees("step 5 of 5", "all of it")
        assert not screen.query_one(ReplayArea).player.playing


async def test_the_output_is_gone_through_by_keys_and_by_mouse():
    async with cockpit(a_month()) as seat, history(seat) as screen:
        await seat.press("down")
        await seat.sees("step 5 of 5")
        await seat.press("0")
        await seat.sees("Nothing yet.", "0:00.0 of 1:00", "paused")
        await seat.press("right_square_bracket", "right_square_bracket")
        await seat.sees("step 1 of 5", "0:10.0")
        await seat.press("left_square_bracket")
        await seat.sees("Nothing yet.", "0:05.0")
        await seat.press("9")
        await seat.sees("step 5 of 5", "all of it")
        bar = screen.query_one(ReplayBar)
        start, room = bar._bar
        await seat.click("#past-bar", offset=(start + room // 2, 0))
        await seat.sees("step 2 of 5")
        assert "step 4" not in seat.text()
        await seat.click("#past-bar", offset=(1, 0))
        await seat.sees("playing")


async def test_o_shows_each_stream_alone():
    async with cockpit(a_month()) as seat, history(seat):
        await seat.press("down")
        await seat.sees("step 5", "note 5")
        await seat.press("o")
        await seat.until(lambda: "note 5" not in seat.text())


async def test_a_call_that_never_ran_has_nothing_to_play():
    async with cockpit(a_month()) as seat, history(seat) as screen:
        await seat.press("space", "0", "plus")
        assert not screen.query_one(ReplayArea).display
        assert "Play" not in seat.text().splitlines()[-1]


async def test_r_asks_for_it_once_more_in_its_session():
    async with cockpit(a_month()) as seat, history(seat):
        await seat.press("down", "r")
        await seat.sees("Call 8 asks for it once more")
        record = seat.record("8")
        assert isinstance(record.state, Waiting)
        assert record.call.spec == seat.record("6").call.spec
        assert record.call.session_id == "s1"
        assert record.call.description == "Run ./count.sh"


async def test_r_says_why_a_call_of_a_closed_session_cannot_be_run_again():
    play = a_month()
    play.stage.happen(SessionClosed(at=play.clock(), session_id="s1", why="the agent left"))
    async with cockpit(play) as seat, history(seat):
        await seat.press("down", "r")
        await seat.sees("Its session is closed")
        assert len(play.stage.board.calls) == 7


async def test_i_shows_what_the_session_comes_to():
    async with cockpit(a_month()) as seat, history(seat):
        await seat.press("down", "i")
        await seat.sees("Session site builder in figures", "Median time to decide")
        lines = {line.strip(" │")[:24].strip(): line for line in seat.text().splitlines()}
        assert "5" in lines["Calls"] and "3" in lines["A human was asked"]
        assert "1" in lines["Allowed by memory"] and "3.0 s" in lines["Median time to decide"]
        assert "3.0 s" in lines["Time saved by memory"]
        await seat.press("escape")
        await seat.until(lambda: isinstance(seat.app.screen, HistoryScreen))


async def test_capital_e_writes_what_is_chosen_to_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with cockpit(a_month()) as seat, history(seat):
        await seat.press("down", "E")
        await seat.sees("Call 6 as JSON", "asciicast 3", "A report of the session site builder")
        await seat.press("down", "down", "enter")
        await seat.sees("were written to")
        header, *events = map(json.loads, (tmp_path / "call-6.cast").read_text().splitlines())
        assert header["version"] == 2 and events[0] == [10.0, "o", "\x1b[32mstep 1\x1b[0m of 5\r\n"]


async def test_an_export_into_a_directory_that_is_not_there_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with cockpit(a_month()) as seat:
        await seat.press("E", "tab")
        await seat.sees("Export")
        field = seat.app.screen.query_one(Input)
        assert field.has_focus
        field.value = "none/calls.jsonl"
        await seat.press("enter")
        await seat.until(lambda: any("cannot be written" in toast.message for toast in seat.app._notifications))
        (told,) = (toast.message for toast in seat.app._notifications)
        assert told.startswith(f"{tmp_path}/none/calls.jsonl cannot be written: No such file or directory")
        assert told.endswith("Name another file.")
        assert not list(tmp_path.iterdir())


async def test_escape_h_and_q_go_back_to_the_cockpit():
    async with cockpit(a_month()) as seat:
        for key in ("escape", "H", "q"):
            async with history(seat):
                await seat.press(key)
                await seat.until(lambda: isinstance(seat.app.screen, CockpitScreen))


async def test_the_palette_and_the_help_are_those_of_the_history():
    async with cockpit(a_month(), size=(120, 60)) as seat, history(seat) as screen:
        await seat.press("question_mark")
        await seat.sees("Play the recorded output in time, or pause.")
        await seat.press("escape")
        await seat.until(lambda: seat.app.screen is screen)
        await seat.press("ctrl+p")
        await seat.sees("Run again  (r)")
        await seat.press(*"decided", "enter")
        await seat.sees("w decided by: a human")


async def test_an_open_call_is_shown_as_it_goes_on():
    play = begin()
    call_id = ask(play, "make")
    async with cockpit(play) as seat, history(seat) as screen:
        play.approve(call_id)
        play.stage.write(call_id, b"building\n")
        await seat.sees("building")
        play.stage.finish(call_id)
        await seat.sees("✔ exit 0")
        assert screen.query_one(ReplayArea).player.recording.rows == 1


async def test_text_of_agents_is_shown_as_text():
    play = begin()
    ask(play, "[red]\x1b[2J", "[/]")
    async with cockpit(play) as seat, history(seat):
        await seat.sees("[red]␛[2J")


async def test_what_cannot_be_asked_is_said_in_the_list():
    async with cockpit(a_month()) as seat, history(seat) as screen:

        async def fails(query: HistoryQuery):
            raise Unavailable("the journal is gone")

        seat.play.stage.history = fails
        await seat.press("n")
        await seat.sees("The journal is gone.")
        assert not screen._looking


async def test_the_played_port_hides_what_came_later():
    play = begin()
    counting(play)
    async with cockpit(play) as seat, history(seat) as screen:
        area = screen.query_one(ReplayArea)
        await seat.sees("step 5 of 5")
        area.to(25)
        port = played(play.stage, area.player)
        whole = b"\x1b[32mstep 1\x1b[0m of 5\n\x1b[32mstep 2\x1b[0m of 5\n"
        chunk = await port.read_output("1", "out", 0, 1000)
        assert (chunk.data, chunk.size, chunk.ended) == (whole, len(whole), False)
        assert (await port.read_output("1", "out", -5, 1000)).data == b"of 5\n"
        assert (await port.read_output("1", "out", 1000, 10)).data == b""
        assert len(await port.read_timeline("1", 0, 100)) == 4
        assert await port.output_file("1", "out") is None


async def test_keys_that_the_user_has_changed_are_those_of_the_buttons_too():
    keys = keymap("default", {"history-verdict": "F5"})
    async with cockpit(a_month(), keys=keys) as seat, history(seat) as screen:
        await seat.sees("F5 Verdict")
        await seat.press("v")
        assert screen.filters == Filters()
        await seat.press("f5")
        await seat.sees("F5 verdict: allowed")


async def test_a_terminal_is_played_as_it_was_and_left_as_it_is():
    play = begin()
    request = CallRequest(
        session_id="s1",
        tool="run_in_terminal",
        arguments={},
        spec=CommandSpec(command=Argv(program="dialog"), cwd="/home/me", tty=True, accepts_input=True),
    )
    call_id = play.stage.ask(request)
    play.approve(call_id)
    play.clock.advance(10)
    play.stage.write(call_id, b"first\x1b[2;5Hsecond")
    play.clock.advance(10)
    play.stage.write(call_id, b"\x1b[2J\x1b[3;3Hthird")
    sizes: list[tuple[int, int]] = []

    async def resize(id_: str, rows: int, columns: int) -> None:
        sizes.append((rows, columns))

    async with cockpit(play) as seat, history(seat) as screen:
        await seat.sees("third")
        play.stage.resize = resize
        area = screen.query_one(ReplayArea)
        area.to(12)
        await seat.sees("first", "    second")
        assert "third" not in seat.text()
        await seat.press("9")
        await seat.sees("third")
        assert "second" not in seat.text()
        with pytest.raises(NotRunning):
            await played(play.stage, area.player).write_stdin(call_id, b"x")
    assert sizes == []
