"""The output panes: live, in colour, whatever arrives and however much."""

import pytest
from textual.events import MouseScrollDown, MouseScrollUp

from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.scenes import Scenario, workday
from whisper_tui.model.errors import Unavailable
from whisper_tui.tui.app import CockpitApp
from whisper_tui.tui.output.output_area import CALM_FRAMES, FRAMES_PER_S
from whisper_tui.tui.output.stream_reader import KEPT, READ
from whisper_tui.tui.theme import load_themes


def running(out: bytes = b"", err: bytes = b"") -> Scenario:
    """Call 1 runs and has written this."""
    scenario = Scenario.begin()
    call = scenario.ask("build")
    scenario.approve(call)
    scenario.supervisor.write(call, out)
    scenario.supervisor.write(call, err, "err")
    return scenario


def styles(cockpit: Cockpit, text: str) -> list[object]:
    """The styles in which a text is drawn in the pane of stdout."""
    return [segment.style for strip in cockpit.pane("out").strips for segment in strip if text in segment.text]


def fastest(cockpit: Cockpit) -> float:
    """The seconds between two ticks of the fastest timer that is not paused."""
    nodes = (cockpit.app, cockpit.screen, *cockpit.screen.walk_children())
    return min(timer._interval for node in nodes for timer in node._timers if timer._active.is_set())


async def test_a_cockpit_ticks_once_a_second_until_output_is_shown() -> None:
    scenario = Scenario.begin()
    async with open_cockpit(scenario) as cockpit:
        await cockpit.until(lambda: fastest(cockpit) == 1)
        call = scenario.ask("build")
        await cockpit.settled()
        await cockpit.until(lambda: fastest(cockpit) == 1)
        scenario.approve(call)
        scenario.supervisor.write(call, b"built\n")
        await cockpit.sees("built")
        await cockpit.until(lambda: fastest(cockpit) == CALM_FRAMES / FRAMES_PER_S)
        scenario.supervisor.write(call, b"tested\n")
        await cockpit.sees("tested")


@pytest.mark.slow
async def test_output_appears_as_it_is_written() -> None:
    async with open_cockpit(running()) as cockpit:
        await cockpit.sees("(no output yet)")
        for number in range(3):
            cockpit.scenario.supervisor.write("1", b"line %d\n" % number)
            cockpit.scenario.supervisor.write("1", b"problem %d\n" % number, "err")
            await cockpit.sees(f"line {number}", f"problem {number}")


@pytest.mark.slow
async def test_colours_are_those_of_the_theme() -> None:
    async with open_cockpit(running(b"\x1b[31mred\x1b[0m and \x1b[38;2;1;2;3mexact\x1b[0m\n")) as cockpit:
        (style,) = styles(cockpit, "red")
        assert style.color.get_truecolor().hex == load_themes().good["whisper-dark"].terminal[1]
        (style,) = styles(cockpit, "exact")
        assert tuple(style.color.get_truecolor()) == (1, 2, 3)
        await cockpit.press("t")
        (style,) = styles(cockpit, "red")
        assert style.color.get_truecolor().hex == load_themes().good["whisper-light"].terminal[1]


@pytest.mark.slow
async def test_a_progress_bar_is_one_line_that_changes() -> None:
    async with open_cockpit(running(b"start\n")) as cockpit:
        for percent in (10, 50, 100):
            cockpit.scenario.supervisor.write("1", b"\r%3d %% done" % percent)
            await cockpit.sees(f"{percent:>3} % done")
        assert cockpit.text().count("% done") == 1


async def test_a_colour_that_began_far_above_goes_on() -> None:
    async with open_cockpit(running(b"\x1b[32m" + b"green\n" * 300)) as cockpit:
        (style, *_) = styles(cockpit, "green")
        assert style.color.get_truecolor().hex == load_themes().good["whisper-dark"].terminal[2]


async def test_no_escape_sequence_reaches_the_screen() -> None:
    adversarial = b"[bold]a[/bold]\x1b]52;c;aGk=\x07b\x1b[2Jc\x1b[?1049h\xff\x00d\x9b31m \xe2\x80\xaee\n"
    async with open_cockpit(running(adversarial)) as cockpit:
        await cockpit.sees("[bold]a[/bold]bc", "⟨U+202E⟩")
        assert all(
            ord(character) >= 0x20 and not 0x7F <= ord(character) < 0xA0
            for character in cockpit.text().replace("\n", "")
        )


async def test_wide_characters_keep_the_columns_straight() -> None:
    async with open_cockpit(running("日本語\n".encode() * 3)) as cockpit:
        await cockpit.sees("日本語")
        assert {strip.cell_length for strip in cockpit.pane("out").strips} == {6}


async def test_a_flood_keeps_the_pane_small_and_shows_the_end() -> None:
    async with open_cockpit(running()) as cockpit:
        pane = cockpit.pane("out")
        for number in range(5):
            cockpit.scenario.supervisor.write("1", b"%d %s\n" % (number, b"x" * 90) * 50_000 + b"end of %d\n" % number)
            await cockpit.sees(f"end of {number}")
            assert pane.view is not None
            assert len(pane.view.window.data) <= KEPT + READ


async def test_a_line_of_ten_megabytes_is_shown() -> None:
    async with open_cockpit(running(b"y" * 10_000_000 + b"\nafter\n")) as cockpit:
        await cockpit.sees("after", "yyyyyyyy")


async def test_the_wheel_scrolls_and_the_end_follows_again() -> None:
    async with open_cockpit(running(b"".join(b"line %d\n" % n for n in range(200)))) as cockpit:
        pane = cockpit.pane("out")
        await cockpit.sees("line 199")
        await pane.move("rows", -30)
        await cockpit.sees("% · f to follow")
        assert "line 199" not in cockpit.text()
        await pane.move("rows", 100)
        await cockpit.sees("line 199", "following")


async def test_the_mouse_wheel_scrolls_the_pane_under_it() -> None:
    async with open_cockpit(running(b"".join(b"line %d\n" % n for n in range(200)))) as cockpit:
        pane = cockpit.pane("out")
        await cockpit.sees("line 199")
        await cockpit.pilot._post_mouse_events([MouseScrollUp], pane, offset=(5, 5))
        await cockpit.until(lambda: pane.view is not None and not pane.view.following)
        assert "line 196" in cockpit.text() and "line 197" not in cockpit.text()
        await cockpit.pilot._post_mouse_events([MouseScrollDown], pane, offset=(5, 5))
        await cockpit.sees("line 199", "following")


async def test_the_scrollbar_jumps_to_the_click() -> None:
    async with open_cockpit(running(b"".join(b"line %d\n" % n for n in range(2000)))) as cockpit:
        pane = cockpit.pane("out")
        await cockpit.pilot.mouse_down(pane, offset=(pane.size.width - 1, 1))
        await cockpit.pilot.mouse_up(pane, offset=(pane.size.width - 1, 1))
        await cockpit.sees("line 0 ", "0 %")
        await cockpit.pilot.mouse_down(pane, offset=(pane.size.width - 1, pane.size.height // 2))
        await cockpit.pilot.mouse_up(pane, offset=(pane.size.width - 1, pane.size.height // 2))
        await cockpit.until(lambda: pane.view is not None and 30 < pane.view.top * 100 // pane.view.size < 70)


async def test_unreadable_output_is_reported_in_its_pane(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = running(b"x\n")

    async def broken(*_: object) -> None:
        raise Unavailable("The file of the output is gone", hint="Look at the disk")

    monkeypatch.setattr(scenario.supervisor, "read_output", broken)
    app = CockpitApp(scenario.supervisor, user="me", clock=scenario.clock)
    async with app.run_test(size=(120, 40)) as pilot:
        cockpit = Cockpit(app, pilot, scenario)
        await cockpit.sees("The output cannot be read: The file of the output is gone. Look at the disk")


async def test_ended_streams_are_complete_and_empty_ones_say_so() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.select("3")
        await cockpit.sees("complete", "stderr is empty")


@pytest.mark.slow
async def test_a_call_that_never_ran_has_no_output_panes() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.select("8")
        await cockpit.until(lambda: "stdout" not in cockpit.text())
        await cockpit.select("6")
        await cockpit.sees("stdout", "stderr")


@pytest.mark.slow
async def test_the_size_decides_whether_streams_are_side_by_side() -> None:
    async with open_cockpit(running(b"a\n", b"b\n"), size=(170, 60)) as cockpit:
        await cockpit.press("o")
        await cockpit.until(lambda: cockpit.pane("out").region and cockpit.pane("err").region)
        assert cockpit.pane("out").region.y == cockpit.pane("err").region.y
        await cockpit.pilot.resize_terminal(120, 40)
        await cockpit.until(lambda: cockpit.pane("out").region.x == cockpit.pane("err").region.x)
        await cockpit.pilot.resize_terminal(80, 18)
        await cockpit.until(lambda: not cockpit.pane("err").display)
        await cockpit.sees("stderr 2 B (o)")


@pytest.mark.slow
async def test_a_command_in_a_terminal_has_one_pane() -> None:
    scenario = Scenario.begin()
    call = scenario.ask("tag")
    scenario.approve(call)
    scenario.print(call, "tag")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.sees("terminal", "Tagged spring")
        assert not cockpit.pane("err").display
