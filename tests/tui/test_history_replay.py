"""The history plays what a call printed as it came, and as a terminal showed it."""

import pytest

from tests.tui.cockpit import cockpit
from tests.tui.past import ROOT, a_month, ask, begin, counting, history
from whisper_tui.model.call import Argv, CallRequest, CommandSpec
from whisper_tui.model.errors import NotRunning
from whisper_tui.model.verdict import Verdict
from whisper_tui.tui.output.output_area import OutputArea
from whisper_tui.tui.screens.replay import ReplayArea, ReplayBar, played


@pytest.mark.slow
async def test_space_plays_the_output_in_real_time():
    async with cockpit(a_month()) as seat, history(seat) as screen:
        await seat.press("down")
        await seat.sees("step 5 of 5", "1:00 of 1:00", "at the end")
        await seat.press("space")
        await seat.sees("(no output yet)", "playing")
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
        await seat.sees("step 5 of 5", "at the end")
        assert not screen.query_one(ReplayArea).player.playing


@pytest.mark.slow
async def test_keys_and_mouse_step_through_the_output():
    async with cockpit(a_month()) as seat, history(seat) as screen:
        await seat.press("down")
        await seat.sees("step 5 of 5")
        await seat.press("0")
        await seat.sees("(no output yet)", "0:00.0 of 1:00", "paused")
        await seat.press("right_square_bracket", "right_square_bracket")
        await seat.sees("step 1 of 5", "0:10.0")
        await seat.press("left_square_bracket")
        await seat.sees("(no output yet)", "0:05.0")
        await seat.press("9")
        await seat.sees("step 5 of 5", "at the end")
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
        await seat.sees("step 5", "▌note 5")
        await seat.press("o", "o")
        await seat.until(lambda: "step 5" in seat.text() and "note 5" not in seat.text())


@pytest.mark.slow
async def test_a_call_that_never_ran_has_nothing_to_play():
    async with cockpit(a_month()) as seat, history(seat) as screen:
        await seat.press("space", "0", "plus")
        assert not screen.query_one(ReplayArea).display
        assert "Play" not in seat.text().splitlines()[-1]


@pytest.mark.slow
async def test_an_open_call_is_shown_live():
    play = begin()
    call_id = ask(play, "make")
    async with cockpit(play) as seat, history(seat) as screen:
        play.approve(call_id)
        play.stage.write(call_id, b"building\n")
        await seat.sees("building")
        play.stage.finish(call_id)
        await seat.sees("✔ exit 0")
        assert screen.query_one(ReplayArea).player.recording.rows == 1


async def test_a_replay_hides_later_output():
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


@pytest.mark.slow
async def test_a_terminal_is_replayed_with_its_screen():
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


async def test_a_program_that_drew_on_its_screen_is_replayed_as_its_screen_and_others_as_lines():
    play = begin()
    for words, output in (("vim", b"\x1b[2J\x1b[3;5Hdrawn here\x1b[1;1Htop"), ("tests", b"one\r\ntwo\r\n")):
        spec = CommandSpec(command=Argv(program=words), cwd=ROOT, tty=True, accepts_input=True)
        request = CallRequest(session_id="s1", tool="run_in_terminal", arguments={}, spec=spec)
        call_id = play.stage.ask(request, Verdict(kind="ask", reason="new"))
        play.approve(call_id)
        play.stage.write(call_id, output)
        play.end(call_id)
    async with cockpit(play) as seat, history(seat) as screen:
        await seat.sees("Call 2", "one", "two")
        area = screen.query_one(OutputArea)
        assert not area.as_screen
        await seat.press("down")
        await seat.until(lambda: area.as_screen and area.terminal.display)
        await seat.sees("    drawn here", "o shows its lines")
