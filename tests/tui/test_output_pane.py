"""The output panes: live, in colour, whatever arrives and however much."""

import pytest
from textual.events import MouseScrollDown, MouseScrollUp

from tests.tui.cockpit import Cockpit, cockpit
from tests.tui.scenes import Play, workday
from whisper_tui.model.errors import Unavailable
from whisper_tui.tui.app import CockpitApp
from whisper_tui.tui.output.stream_reader import KEPT, READ
from whisper_tui.tui.theme import load_themes


def running(out: bytes = b"", err: bytes = b"") -> Play:
    """Call 1 runs and has written this."""
    play = Play.begin()
    call = play.ask("build")
    play.approve(call)
    play.stage.write(call, out)
    play.stage.write(call, err, "err")
    return play


def styles(seat: Cockpit, text: str) -> list[object]:
    """The styles in which a text is drawn in the pane of stdout."""
    return [segment.style for strip in seat.pane("out").strips for segment in strip if text in segment.text]


@pytest.mark.slow
async def test_output_appears_as_it_is_written() -> None:
    async with cockpit(running()) as seat:
        await seat.sees("(no output yet)")
        for number in range(3):
            seat.play.stage.write("1", b"line %d\n" % number)
            seat.play.stage.write("1", b"problem %d\n" % number, "err")
            await seat.sees(f"line {number}", f"problem {number}")


@pytest.mark.slow
async def test_colours_are_those_of_the_theme() -> None:
    async with cockpit(running(b"\x1b[31mred\x1b[0m and \x1b[38;2;1;2;3mexact\x1b[0m\n")) as seat:
        (style,) = styles(seat, "red")
        assert style.color.get_truecolor().hex == load_themes().good["whisper-dark"].terminal[1]
        (style,) = styles(seat, "exact")
        assert tuple(style.color.get_truecolor()) == (1, 2, 3)
        await seat.press("t")
        (style,) = styles(seat, "red")
        assert style.color.get_truecolor().hex == load_themes().good["whisper-light"].terminal[1]


async def test_a_progress_bar_is_one_line_that_changes() -> None:
    async with cockpit(running(b"start\n")) as seat:
        for percent in (10, 50, 100):
            seat.play.stage.write("1", b"\r%3d %% done" % percent)
            await seat.sees(f"{percent:>3} % done")
        assert seat.text().count("% done") == 1


async def test_a_colour_that_began_far_above_goes_on() -> None:
    async with cockpit(running(b"\x1b[32m" + b"green\n" * 300)) as seat:
        (style, *_) = styles(seat, "green")
        assert style.color.get_truecolor().hex == load_themes().good["whisper-dark"].terminal[2]


async def test_no_escape_sequence_reaches_the_screen() -> None:
    adversarial = b"[bold]a[/bold]\x1b]52;c;aGk=\x07b\x1b[2Jc\x1b[?1049h\xff\x00d\x9b31m \xe2\x80\xaee\n"
    async with cockpit(running(adversarial)) as seat:
        await seat.sees("[bold]a[/bold]bc", "⟨U+202E⟩")
        assert all(
            ord(character) >= 0x20 and not 0x7F <= ord(character) < 0xA0 for character in seat.text().replace("\n", "")
        )


async def test_wide_characters_keep_the_columns_straight() -> None:
    async with cockpit(running("日本語\n".encode() * 3)) as seat:
        await seat.sees("日本語")
        assert {strip.cell_length for strip in seat.pane("out").strips} == {6}


async def test_a_flood_keeps_the_pane_small_and_shows_the_end() -> None:
    async with cockpit(running()) as seat:
        pane = seat.pane("out")
        for number in range(5):
            seat.play.stage.write("1", b"%d %s\n" % (number, b"x" * 90) * 50_000 + b"end of %d\n" % number)
            await seat.sees(f"end of {number}")
            assert pane.view is not None
            assert len(pane.view.window.data) <= KEPT + READ


async def test_a_line_of_ten_megabytes_is_shown() -> None:
    async with cockpit(running(b"y" * 10_000_000 + b"\nafter\n")) as seat:
        await seat.sees("after", "yyyyyyyy")


async def test_the_wheel_scrolls_and_the_end_follows_again() -> None:
    async with cockpit(running(b"".join(b"line %d\n" % n for n in range(200)))) as seat:
        pane = seat.pane("out")
        await seat.sees("line 199")
        await pane.move("rows", -30)
        await seat.sees("% · f to follow")
        assert "line 199" not in seat.text()
        await pane.move("rows", 100)
        await seat.sees("line 199", "following")


async def test_the_mouse_wheel_scrolls_the_pane_under_it() -> None:
    async with cockpit(running(b"".join(b"line %d\n" % n for n in range(200)))) as seat:
        pane = seat.pane("out")
        await seat.sees("line 199")
        await seat.pilot._post_mouse_events([MouseScrollUp], pane, offset=(5, 5))
        await seat.until(lambda: pane.view is not None and not pane.view.following)
        assert "line 196" in seat.text() and "line 197" not in seat.text()
        await seat.pilot._post_mouse_events([MouseScrollDown], pane, offset=(5, 5))
        await seat.sees("line 199", "following")


async def test_the_scrollbar_jumps_to_the_click() -> None:
    async with cockpit(running(b"".join(b"line %d\n" % n for n in range(2000)))) as seat:
        pane = seat.pane("out")
        await seat.pilot.mouse_down(pane, offset=(pane.size.width - 1, 1))
        await seat.pilot.mouse_up(pane, offset=(pane.size.width - 1, 1))
        await seat.sees("line 0 ", "0 %")
        await seat.pilot.mouse_down(pane, offset=(pane.size.width - 1, pane.size.height // 2))
        await seat.pilot.mouse_up(pane, offset=(pane.size.width - 1, pane.size.height // 2))
        await seat.until(lambda: pane.view is not None and 30 < pane.view.top * 100 // pane.view.size < 70)


async def test_unreadable_output_is_reported_in_its_pane(monkeypatch: pytest.MonkeyPatch) -> None:
    play = running(b"x\n")

    async def broken(*_: object) -> None:
        raise Unavailable("The file of the output is gone", hint="Look at the disk")

    monkeypatch.setattr(play.stage, "read_output", broken)
    app = CockpitApp(play.stage, user="me", clock=play.clock)
    async with app.run_test(size=(120, 40)) as pilot:
        seat = Cockpit(app, pilot, play)
        await seat.sees("The output cannot be read: The file of the output is gone. Look at the disk")


async def test_ended_streams_are_complete_and_empty_ones_say_so() -> None:
    async with cockpit(workday()) as seat:
        await seat.select("3")
        await seat.sees("complete", "stderr is empty")


async def test_a_call_that_never_ran_has_no_output_panes() -> None:
    async with cockpit(workday()) as seat:
        await seat.select("8")
        await seat.until(lambda: "stdout" not in seat.text())
        await seat.select("6")
        await seat.sees("stdout", "stderr")


async def test_the_size_decides_whether_streams_are_side_by_side() -> None:
    async with cockpit(running(b"a\n", b"b\n"), size=(170, 60)) as seat:
        await seat.press("o")
        await seat.until(lambda: seat.pane("out").region and seat.pane("err").region)
        assert seat.pane("out").region.y == seat.pane("err").region.y
        await seat.pilot.resize_terminal(120, 40)
        await seat.until(lambda: seat.pane("out").region.x == seat.pane("err").region.x)
        await seat.pilot.resize_terminal(80, 18)
        await seat.until(lambda: not seat.pane("err").display)
        await seat.sees("stderr 2 B (o)")


async def test_a_command_in_a_terminal_has_one_pane() -> None:
    play = Play.begin()
    call = play.ask("tag")
    play.approve(call)
    play.print(call, "tag")
    async with cockpit(play) as seat:
        await seat.sees("terminal", "Tagged spring")
        assert not seat.pane("err").display
