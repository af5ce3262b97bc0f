"""The history plays what a call printed as it came, and as a terminal showed it."""

import pytest

from tests.tui.cockpit import open_cockpit
from tests.tui.past import ROOT, a_month, ask, begin, counting, history
from whisper_tui.model.call import Argv, CallRequest, CommandSpec
from whisper_tui.model.errors import NotRunning
from whisper_tui.model.verdict import Verdict
from whisper_tui.tui.output.output_area import OutputArea
from whisper_tui.tui.screens.replay import ReplayArea, ReplayBar, played


@pytest.mark.slow
async def test_space_plays_the_output_in_real_time():
    async with open_cockpit(a_month()) as cockpit, history(cockpit) as screen:
        await cockpit.press("down")
        await cockpit.sees("step 5 of 5", "1:00 of 1:00", "at the end")
        await cockpit.press("space")
        await cockpit.sees("(no output yet)", "playing")
        assert "step" not in cockpit.text()
        cockpit.scenario.clock.advance(21)
        await cockpit.sees("step 2 of 5", "note 2", "0:21.0 of 1:00")
        assert "step 3" not in cockpit.text()
        await cockpit.press("space")
        await cockpit.sees("paused")
        cockpit.scenario.clock.advance(30)
        await cockpit.pilot.pause(0.2)
        assert "step 3" not in cockpit.text()
        await cockpit.press("space", "plus", "plus")
        await cockpit.sees("speed 4")
        cockpit.scenario.clock.advance(5)
        await cockpit.sees("step 4 of 5", "0:41.0")
        await cockpit.press("minus")
        await cockpit.sees("speed 2")
        cockpit.scenario.clock.advance(100)
        await cockpit.sees("step 5 of 5", "at the end")
        assert not screen.query_one(ReplayArea).player.playing


@pytest.mark.slow
async def test_keys_and_mouse_step_through_the_output():
    async with open_cockpit(a_month()) as cockpit, history(cockpit) as screen:
        await cockpit.press("down")
        await cockpit.sees("step 5 of 5")
        await cockpit.press("0")
        await cockpit.sees("(no output yet)", "0:00.0 of 1:00", "paused")
        await cockpit.press("right_square_bracket", "right_square_bracket")
        await cockpit.sees("step 1 of 5", "0:10.0")
        await cockpit.press("left_square_bracket")
        await cockpit.sees("(no output yet)", "0:05.0")
        await cockpit.press("9")
        await cockpit.sees("step 5 of 5", "at the end")
        bar = screen.query_one(ReplayBar)
        start, room = bar._bar
        await cockpit.click("#past-bar", offset=(start + room // 2, 0))
        await cockpit.sees("step 2 of 5")
        assert "step 4" not in cockpit.text()
        await cockpit.click("#past-bar", offset=(1, 0))
        await cockpit.sees("playing")


async def test_o_shows_each_stream_alone():
    async with open_cockpit(a_month()) as cockpit, history(cockpit):
        await cockpit.press("down")
        await cockpit.sees("step 5", "▌note 5")
        await cockpit.press("o", "o")
        await cockpit.until(lambda: "step 5" in cockpit.text() and "note 5" not in cockpit.text())


@pytest.mark.slow
async def test_a_call_that_never_ran_has_nothing_to_play():
    async with open_cockpit(a_month()) as cockpit, history(cockpit) as screen:
        await cockpit.press("space", "0", "plus")
        assert not screen.query_one(ReplayArea).display
        assert "Play" not in cockpit.text().splitlines()[-1]


@pytest.mark.slow
async def test_an_open_call_is_shown_live():
    scenario = begin()
    call_id = ask(scenario, "make")
    async with open_cockpit(scenario) as cockpit, history(cockpit) as screen:
        scenario.approve(call_id)
        scenario.supervisor.write(call_id, b"building\n")
        await cockpit.sees("building")
        scenario.supervisor.finish(call_id)
        await cockpit.sees("✔ exit 0")
        assert screen.query_one(ReplayArea).player.recording.rows == 1


async def test_a_replay_hides_later_output():
    scenario = begin()
    counting(scenario)
    async with open_cockpit(scenario) as cockpit, history(cockpit) as screen:
        area = screen.query_one(ReplayArea)
        await cockpit.sees("step 5 of 5")
        area.to(25)
        port = played(scenario.supervisor, area.player)
        whole = b"\x1b[32mstep 1\x1b[0m of 5\n\x1b[32mstep 2\x1b[0m of 5\n"
        chunk = await port.read_output("1", "out", 0, 1000)
        assert (chunk.data, chunk.size, chunk.ended) == (whole, len(whole), False)
        assert (await port.read_output("1", "out", -5, 1000)).data == b"of 5\n"
        assert (await port.read_output("1", "out", 1000, 10)).data == b""
        assert len(await port.read_timeline("1", 0, 100)) == 4
        assert await port.output_file("1", "out") is None


@pytest.mark.slow
async def test_a_terminal_is_replayed_with_its_screen():
    scenario = begin()
    request = CallRequest(
        session_id="s1",
        tool="run_in_terminal",
        arguments={},
        spec=CommandSpec(command=Argv(program="dialog"), cwd="/home/me", tty=True, accepts_input=True),
    )
    call_id = scenario.supervisor.ask(request)
    scenario.approve(call_id)
    scenario.clock.advance(10)
    scenario.supervisor.write(call_id, b"first\x1b[2;5Hsecond")
    scenario.clock.advance(10)
    scenario.supervisor.write(call_id, b"\x1b[2J\x1b[3;3Hthird")
    sizes: list[tuple[int, int]] = []

    async def resize(id_: str, rows: int, columns: int) -> None:
        sizes.append((rows, columns))

    async with open_cockpit(scenario) as cockpit, history(cockpit) as screen:
        await cockpit.sees("third")
        scenario.supervisor.resize = resize
        area = screen.query_one(ReplayArea)
        area.to(12)
        await cockpit.sees("first", "    second")
        assert "third" not in cockpit.text()
        await cockpit.press("9")
        await cockpit.sees("third")
        assert "second" not in cockpit.text()
        with pytest.raises(NotRunning):
            await played(scenario.supervisor, area.player).write_stdin(call_id, b"x")
    assert sizes == []


async def test_a_program_that_drew_on_its_screen_is_replayed_as_its_screen_and_others_as_lines():
    scenario = begin()
    for words, output in (("vim", b"\x1b[2J\x1b[3;5Hdrawn here\x1b[1;1Htop"), ("tests", b"one\r\ntwo\r\n")):
        spec = CommandSpec(command=Argv(program=words), cwd=ROOT, tty=True, accepts_input=True)
        request = CallRequest(session_id="s1", tool="run_in_terminal", arguments={}, spec=spec)
        call_id = scenario.supervisor.ask(request, Verdict(kind="ask", reason="new"))
        scenario.approve(call_id)
        scenario.supervisor.write(call_id, output)
        scenario.end(call_id)
    async with open_cockpit(scenario) as cockpit, history(cockpit) as screen:
        await cockpit.sees("Call 2", "one", "two")
        area = screen.query_one(OutputArea)
        assert not area.as_screen
        await cockpit.press("down")
        await cockpit.until(lambda: area.as_screen and area.terminal.display)
        await cockpit.sees("    drawn here", "o shows its lines")
