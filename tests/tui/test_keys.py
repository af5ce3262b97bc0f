"""What each key does, and that the table of commands is the only place that says so."""

from pathlib import Path

import pytest
from textual.widgets import Input

from tests.tui.cockpit import Cockpit, cockpit
from tests.tui.scenes import Play, workday
from whisper_tui.model.ending import Signalled
from whisper_tui.model.state import Ended, Running
from whisper_tui.tui.commands import BY_ID, COMMANDS
from whisper_tui.tui.commands.page import keys_page
from whisper_tui.tui.widgets.call_list import CallList
from whisper_tui.tui.widgets.output_pane import OutputPane
from whisper_tui.tui.widgets.paragraphs_view import ParagraphsView

PAGE = Path(__file__).parents[2] / "docs" / "keys.md"
CRAWL = "6"


def long_output(lines: int = 500) -> Play:
    """Call 1 runs and has written numbered lines to both streams."""
    play = Play.begin()
    call = play.ask("build")
    play.approve(call)
    play.stage.write(call, b"".join(b"out %d\n" % number for number in range(lines)))
    play.stage.write(call, b"".join(b"err %d\n" % number for number in range(lines)), "err")
    return play


def first_row(pane: OutputPane) -> str:
    return pane.strips[0].text


def test_the_page_about_keys_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == keys_page(), "python -m whisper_tui.tui.commands > docs/keys.md"


def test_ids_and_keys_are_unique() -> None:
    keys = [key for command in COMMANDS for key in command.key.split(",")]
    assert len(set(keys)) == len(keys)
    assert len(BY_ID) == len(COMMANDS)


async def test_every_command_does_something_and_nothing_else_is_done() -> None:
    async with cockpit(Play.begin()) as seat:
        assert set(seat.screen.does) == set(BY_ID)


async def test_up_and_down_select_calls() -> None:
    async with cockpit(workday()) as seat:
        assert seat.selected == "7"
        await seat.press("down")
        assert seat.selected == "8"
        await seat.press("down", "down")
        assert seat.selected == CRAWL
        await seat.press("up", "up", "up", "up", "up")
        assert seat.selected == "7"


async def test_pages_and_ends_of_the_list() -> None:
    play = Play.begin()
    for _ in range(100):
        play.ask("build")
    async with cockpit(play) as seat:
        await seat.press("end")
        assert seat.selected == "100"
        await seat.press("pageup")
        assert 75 < int(seat.selected or 0) < 95
        await seat.press("home")
        assert seat.selected == "1"
        await seat.press("pagedown")
        assert 5 < int(seat.selected or 0) < 25
        await seat.press("G")
        assert seat.selected == "100"
        await seat.press("g")
        assert seat.selected == "1"


async def test_n_goes_from_one_waiting_call_to_the_next() -> None:
    async with cockpit(workday()) as seat:
        await seat.select(CRAWL)
        for expected in ("7", "8", "9", "7"):
            await seat.press("n")
            assert seat.selected == expected


async def test_n_says_that_nothing_waits() -> None:
    async with cockpit(long_output()) as seat:
        await seat.press("n")
        await seat.sees("Nothing waits for you.")


async def test_tab_gives_the_focus_around() -> None:
    async with cockpit(long_output()) as seat:
        seen = []
        for _ in range(4):
            seen.append(type(seat.app.focused))
            await seat.press("tab")
        assert seen == [CallList, ParagraphsView, OutputPane, OutputPane]
        await seat.press("shift+tab")
        assert seat.app.focused is seat.pane("err")


async def test_shift_arrows_scroll_the_call_while_the_list_has_the_focus() -> None:
    async with cockpit(workday(), size=(80, 24)) as seat:
        await seat.select("3")
        text = seat.screen.query_one("#call-detail", ParagraphsView)
        await seat.press("shift+down", "shift+down")
        await seat.until(lambda: text.scroll_offset.y == 2)
        await seat.press("shift+up")
        await seat.until(lambda: text.scroll_offset.y == 1)
        assert isinstance(seat.app.focused, CallList)


async def test_g_and_capital_g_move_in_the_pane_that_has_the_focus() -> None:
    async with cockpit(long_output()) as seat:
        pane = seat.pane("out")
        pane.focus()
        await seat.press("g")
        assert first_row(pane) == "out 0"
        await seat.press("G")
        assert pane.strips[-1].text == "out 499"
        assert pane.view is not None and pane.view.following


async def test_arrows_and_pages_scroll_output_that_has_the_focus() -> None:
    async with cockpit(long_output()) as seat:
        pane = seat.pane("err")
        pane.focus()
        await seat.press("home")
        assert first_row(pane) == "err 0"
        await seat.press("down", "down")
        assert first_row(pane) == "err 2"
        await seat.press("up")
        assert first_row(pane) == "err 1"
        await seat.press("pagedown")
        assert first_row(pane) == f"err {1 + pane.size.height - 2}"
        await seat.press("pageup")
        assert first_row(pane) == "err 1"
        await seat.press("end")
        assert pane.strips[-1].text == "err 499"
        assert seat.selected == "1"


async def test_left_and_right_show_the_rest_of_long_lines() -> None:
    play = Play.begin()
    call = play.ask("build")
    play.approve(call)
    play.stage.write(call, b"a" * 200 + b"THE END\n")
    async with cockpit(play) as seat:
        assert "THE END" not in seat.text()
        seat.pane("out").focus()
        await seat.press(*["right"] * 40)
        await seat.sees("THE END")
        await seat.press(*["left"] * 40)
        await seat.until(lambda: seat.pane("out").left == 0)


async def test_f_holds_the_output_still_and_follows_it_again() -> None:
    async with cockpit(long_output()) as seat:
        pane = seat.pane("out")
        await seat.press("f")
        seat.play.stage.write("1", b"new line\n")
        await seat.until(lambda: pane.view is not None and pane.view.size == len(seat.play.stage.written["1"].out))
        assert "new line" not in seat.text()
        await seat.press("f")
        await seat.sees("new line")


async def test_o_shows_both_streams_then_each_alone() -> None:
    async with cockpit(long_output()) as seat:
        out, err = seat.pane("out"), seat.pane("err")
        shown = []
        for _ in range(4):
            shown.append((out.display, err.display))
            await seat.press("o")
        assert shown == [(True, True), (True, False), (False, True), (True, True)]
        await seat.sees("stderr", "(o)")


async def test_slash_filters_and_escape_lists_everything_again() -> None:
    async with cockpit(workday()) as seat:
        await seat.press("slash", *"crawl")
        await seat.until(lambda: seat.selected == CRAWL)
        await seat.sees("0 of 3", "Nothing that waits matches.")
        await seat.press("enter")
        assert isinstance(seat.app.focused, CallList)
        await seat.press("escape")
        await seat.until(lambda: seat.screen.roster.count("waiting") == 3)
        assert "of 3" not in seat.text()
        await seat.press("slash", *"taxx", "escape")
        await seat.until(lambda: seat.screen.roster.filter == "")
        assert isinstance(seat.app.focused, CallList)


async def test_keys_are_letters_while_a_filter_is_typed() -> None:
    async with cockpit(workday()) as seat:
        await seat.press("slash", "a", "k", "q", "D")
        assert seat.screen.query_one(Input).value == "akqD"
        assert len(seat.app.screen_stack) == 1


async def test_t_changes_the_theme_and_back() -> None:
    async with cockpit(long_output()) as seat:
        assert seat.app.theme == "whisper-dark"
        await seat.press("t")
        assert seat.app.theme == "whisper-light"
        await seat.press("t")
        assert seat.app.theme == "whisper-dark"


async def test_question_mark_shows_every_key_and_its_words() -> None:
    async with cockpit(workday(), size=(120, 120)) as seat:
        await seat.press("question_mark")
        await seat.sees("Keys and signs")
        text = seat.text()
        for command in COMMANDS:
            assert command.key_name in text
            assert command.help.split(",")[0][:40] in text
        await seat.press("escape")
        await seat.until(lambda: len(seat.app.screen_stack) == 1)


async def test_the_help_says_how_much_of_it_is_not_shown() -> None:
    async with cockpit(workday(), size=(80, 24)) as seat:
        await seat.press("question_mark")
        await seat.sees("more lines")


@pytest.mark.parametrize("key", ["q", "ctrl+q", "ctrl+c"])
async def test_q_leaves_and_says_that_everything_goes_on(key: str) -> None:
    async with cockpit(long_output()) as seat:
        await seat.press(key)
        await seat.until(lambda: seat.app._exit_renderables)
        assert "every command go on" in str(seat.app._exit_renderables)
        assert isinstance(seat.record("1").state, Running)


async def test_x_sends_the_chosen_signal_to_whom_it_is_for() -> None:
    async with cockpit(long_output()) as seat:
        await seat.press("x")
        await seat.sees("Signal to call 1", "SIGTERM", "the command itself")
        await seat.press("tab")
        await seat.sees("process group")
        await seat.press("down", "enter")
        await seat.until(lambda: seat.record("1").signals == (15,))
        await seat.sees("SIGTERM was sent to call 1.")
        assert seat.record("1").state.ending == Signalled(number=15, by_us=True)


async def killed(seat: Cockpit, *keys: str) -> tuple[int, ...]:
    await seat.press("k")
    await seat.sees("End call 1")
    await seat.press(*keys)
    await seat.until(lambda: len(seat.app.screen_stack) == 1)
    await seat.until(lambda: isinstance(seat.record("1").state, Ended))
    return seat.record("1").signals


async def test_k_asks_and_then_ends_everything_politely() -> None:
    async with cockpit(long_output()) as seat:
        assert await killed(seat, "enter") == (15,)


async def test_k_twice_kills_at_once() -> None:
    async with cockpit(long_output()) as seat:
        assert await killed(seat, "k") == (9,)


async def test_k_and_escape_ends_nothing() -> None:
    async with cockpit(long_output()) as seat:
        await seat.press("k", "escape")
        await seat.until(lambda: len(seat.app.screen_stack) == 1)
        assert seat.record("1").signals == ()


async def test_what_ignores_term_is_killed_after_its_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whisper_tui.demo.stage.DEADLY", frozenset({9}))
    play = long_output()
    record = play.stage.board.calls["1"]
    call = record.call.model_copy(update={"spec": record.call.spec.model_copy(update={"grace_s": 0.05})})
    play.stage.events[2] = play.stage.events[2].model_copy(update={"call": call})
    async with cockpit(play) as seat:
        await seat.press("k", "enter")
        await seat.until(lambda: seat.record("1").signals == (15, 9))


async def test_buttons_and_footer_show_what_means_something_for_the_selected_call() -> None:
    async with cockpit(workday(), size=(80, 24)) as seat:
        await seat.sees("a Approve", "d Deny", "Space Mark", "n Next waiting", "Ctrl+P More")
        assert "k Kill" not in seat.text()
        await seat.select(CRAWL)
        await seat.sees("k Kill", "x Signal", "n Next waiting")
        await seat.until(lambda: "Approve" not in seat.text() and "Space Mark" not in seat.text())


async def test_the_last_key_of_the_footer_opens_the_palette() -> None:
    async with cockpit(workday(), size=(80, 24)) as seat:
        await seat.click("Footer .-command-palette")
        await seat.sees("Approve  (a)")


async def test_the_palette_offers_the_same_commands() -> None:
    async with cockpit(workday()) as seat:
        await seat.press("ctrl+p")
        await seat.sees("Approve  (a)")
        await seat.press(*"light", "enter")
        await seat.until(lambda: seat.app.theme == "whisper-light")
