"""Reports of runs that drew on their terminal: the screen as a person would have seen it, and not the bytes."""

import asyncio
import os
import shutil

import pytest

from tests.export.test_documents import text_of
from tests.outside import outside_only
from whisper_tui.export import terminal_screen as last_screens
from whisper_tui.export.document import ExportSelection
from whisper_tui.export.terminal_screen import TerminalScreen
from whisper_tui.model.decision import Approve

pytestmark = outside_only

TAKE, GIVE_BACK = r"\033[?1049h\033[H", r"\033[?1049l"


async def report(harness, text, **spec):
    record = await harness.run(text=text, tty=True, **spec)
    return await text_of(harness, ExportSelection(calls=(record.id,)), "markdown")


@pytest.mark.skipif(shutil.which("vim") is None, reason="vim is not installed")
async def test_an_editor_is_reported_as_the_last_screen_that_it_drew(harness):
    with open(os.path.join(harness.session.root, "app.py"), "w") as file:
        file.write("def price(net):\n    return net * 1.19\n")
    call_id = await harness.submit(
        "vim", "-u", "NONE", "-n", "app.py", tty=True, environment={"TERM": "xterm-256color"}
    )
    await harness.decide(call_id, Approve())
    await harness.until(call_id, "running")
    async with asyncio.timeout(60):
        while b"1.19" not in (await harness.api.read_output(call_id, "out", 0, 1 << 16)).data:
            await asyncio.sleep(0.01)
    await harness.api.resize(call_id, 12, 60)
    await harness.api.write_stdin(call_id, b"ggx:q!\r")
    await harness.api.outcome(call_id)
    text = await text_of(harness, ExportSelection(calls=(call_id,)), "markdown")
    assert (
        "The last screen of its full-screen program, 60x12:\n\n```text\nef price(net):\n    return net * 1.19\n~\n~"
        in text
    )
    assert "␛" not in text and "[?" not in text


async def test_output_around_a_full_screen_program_is_separate(harness):
    text = await report(harness, rf"echo before; printf '{TAKE}in the program{GIVE_BACK}'; echo after")
    assert "full-screen program, 80x24:\n\n```text\nin the program\n```" in text
    assert "Output, as the last screen of its terminal, 80x24:\n\n```text\nbefore\nafter\n```" in text


async def test_a_program_that_wipes_its_screen_before_it_goes_is_shown_as_it_was(harness):
    text = await report(harness, rf"printf '{TAKE}one\033[H\033[2Jtwo\033[2J{GIVE_BACK}'")
    assert "```text\ntwo\n```" in text and "one" not in text.partition("full-screen program")[2]


async def test_a_program_that_was_ended_in_the_midst_is_shown_as_it_was(harness):
    text = await report(harness, rf"printf '{TAKE}busy'; kill -9 $$")
    assert "full-screen program, 80x24:\n\n```text\nbusy\n```" in text


async def test_a_progress_display_that_goes_up_again_is_shown_as_it_was_left(harness):
    text = await report(harness, r"printf 'a 10%%\nb 10%%\n\033[2Aa done\nb done\n'")
    assert "Output, as the last screen of its terminal, 80x24:\n\n```text\na done\nb done\n```" in text


async def test_lines_with_colours_are_shown_as_lines_however_many(harness):
    text = await report(harness, r"seq 100; printf '\033[31mred\033[0m\n'")
    assert "the end of" in text and "\n99\n100\nred\n```" in text and "screen" not in text


async def test_only_the_end_of_a_long_run_is_drawn_with_a_note(harness, monkeypatch):
    monkeypatch.setattr(last_screens, "MOST_REPLAYED", 3000)
    text = await report(
        harness, rf"printf '{TAKE}'; for n in $(seq 500); do printf '\033[Hround %s  ' $n; done; printf end"
    )
    assert "drawn from the end of" in text and "```text\nround 500  end\n```" in text
    assert "The last screen of its full-screen program" in text


async def test_a_screen_that_takes_too_long_is_omitted_with_a_note(harness, monkeypatch):
    monkeypatch.setattr(last_screens, "MOST_SECONDS", 0.0)
    text = await report(harness, rf"printf '{TAKE}x'")
    assert "drawing it took too long. An export as `asciicast` plays it" in text


async def test_output_of_a_program_cannot_leave_its_block(harness):
    text = await report(harness, rf"printf '{TAKE}```\r\n# heading\342\200\256\033]0;title\007'")
    assert "\x1b" not in text and "\u202e" not in text and "title" not in text.partition("full-screen")[2]
    assert "````text\n```\n# heading\n````" in text


def test_a_screen_knows_its_text_without_blanks_at_the_ends():
    screen = TerminalScreen(4, 20)
    screen.feed("a   \r\n日本 x\r\n".encode())
    assert screen._screen.text() == "a\n日本 x"
