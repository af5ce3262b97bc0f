"""What can be done with output: shown otherwise, searched, copied, saved, read in a pager."""

import asyncio
import re
import stat
from itertools import pairwise
from pathlib import Path

import pytest
from textual.app import SuspendNotSupported
from textual.widgets import Input

from tests.tui.cockpit import Cockpit, cockpit
from tests.tui.scenes import Play
from tests.tui.test_output_pane import running, styles
from whisper_tui.model.run import OutputChunk, Stream
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.dialogs.file_dialogs import PIECE
from whisper_tui.tui.output.output_bars import SearchBar


def rows(seat: Cockpit, pane: str = "out") -> list[str]:
    return [strip.text for strip in seat.pane(pane).strips]


def two_streams() -> Play:
    """Call 1 has written to both streams in turns, a second apart."""
    play = running()
    for number in range(5):
        play.stage.write("1", b"out %d\n" % number)
        play.clock.advance(1)
        play.stage.write("1", b"err %d\n" % number, "err")
        play.clock.advance(1)
    return play


async def test_w_toggles_the_wrapping_of_long_lines() -> None:
    async with cockpit(running(b"a" * 150 + b"THE END\nnext\n")) as seat:
        assert rows(seat)[-1] == "next" and "THE END" not in seat.text()
        await seat.press("w")
        await seat.sees("THE END", "next")
        assert "".join(rows(seat)[:-1]) == "a" * 150 + "THE END"
        await seat.press("w")
        await seat.until(lambda: len(rows(seat)) == 2)


async def test_wrapped_output_is_scrolled_row_by_row_without_losing_any() -> None:
    lines = [f"{number:03d} " + "x" * (number * 7 % 200) + "." for number in range(60)]
    async with cockpit(running("".join(f"{line}\n" for line in lines).encode())) as seat:
        await seat.press("w")
        pane = seat.pane("out")
        await pane.move("start")
        height = pane.size.height - 1
        seen = rows(seat)
        assert len(seen) == height
        while not (pane.view is not None and pane.view.following):
            await pane.move("rows", 1)
            assert rows(seat)[:-1] == seen[-height + 1 :]
            seen.append(rows(seat)[-1])
        assert "".join(seen) == "".join(lines)
        for back in range(1, len(seen) - height + 1):
            await pane.move("rows", -1)
            assert rows(seat) == seen[len(seen) - height - back : len(seen) - back]


async def test_a_line_of_ten_megabytes_can_be_wrapped() -> None:
    async with cockpit(running(b"y" * 10_000_000 + b"\nafter\n")) as seat:
        await seat.press("w")
        await seat.sees("after", "yyyyyyyy")
        await seat.pane("out").move("rows", -3)
        await seat.until(lambda: "after" not in seat.text())


async def test_capital_w_shows_the_time_of_each_line() -> None:
    async with cockpit(two_streams()) as seat:
        await seat.press("W")
        await seat.until(lambda: len(re.findall(r"\d\d:\d\d:\d\d\.\d{3} (?:out|err) \d", seat.text())) == 10)
        seconds = [int(found) for found in re.findall(r":(\d\d)\.000 out \d", seat.text())]
        assert [(later - first) % 60 for first, later in pairwise(seconds)] == [2, 2, 2, 2]
        await seat.press("W")
        await seat.until(lambda: ".000 out" not in seat.text())


async def test_both_streams_are_one_text_in_the_order_of_time_and_capital_z_separates_them() -> None:
    async with cockpit(two_streams()) as seat:
        expected = [f"{stream} {number}" for number in range(5) for stream in ("out", "err")]
        await seat.until(lambda: rows(seat, "both") == expected)
        await seat.sees("▌err 4", " out 4", "stdout and ▌stderr")
        assert not seat.pane("out").display and not seat.pane("err").display
        seat.play.stage.write("1", b"last\n", "err")
        await seat.sees("▌last")
        await seat.press("Z")
        await seat.until(lambda: seat.pane("out").display and seat.pane("err").display)
        await seat.sees("last", "stdout 30 B", "stderr 35 B")


@pytest.mark.slow
async def test_a_reader_keeps_the_place_when_the_other_stream_begins() -> None:
    async with cockpit(running(b"".join(b"line %d\n" % number for number in range(300)))) as seat:
        assert not seat.pane("err").display
        await seat.press("w", "ctrl+f", *"line 150", "enter")
        await seat.sees("1 of 1 “line 150”")
        before = rows(seat)
        assert any("line 150" in row for row in before)
        seat.play.stage.write("1", b"first problem\n", "err")
        await seat.until(lambda: seat.pane("both").display)
        assert rows(seat, "both") == before
        await seat.sees("1 of 1 “line 150”", "f to follow")
        await seat.press("f")
        await seat.sees("▌first problem", "line 299")


async def test_separating_and_merging_streams_keeps_the_place_of_the_reader() -> None:
    play = running()
    for number in range(200):
        play.stage.write("1", b"out %d\n" % number)
        play.stage.write("1", b"err %d\n" % number, "err")
    async with cockpit(play) as seat:
        await seat.sees("out 199", "err 199")
        await seat.pane("both").move("rows", -200)
        merged = rows(seat, "both")
        first = int(merged[0].split()[-1])
        await seat.press("Z")
        await seat.until(lambda: seat.pane("out").display and rows(seat, "out")[:1] == [f"out {first}"])
        assert int(rows(seat, "err")[0].removeprefix("err ")) in {first, first + 1}
        await seat.pane("out").move("rows", 20)
        await seat.press("Z")
        await seat.until(lambda: seat.pane("both").display)
        await seat.until(lambda: f"out {first + 20}" in rows(seat, "both")[0])
        await seat.press("f", "Z")
        await seat.until(lambda: seat.pane("out").display and rows(seat, "out")[-1:] == ["out 199"])
        assert rows(seat, "err")[-1] == "err 199"


@pytest.mark.slow
async def test_a_separate_stream_without_output_is_only_a_title_until_its_first_byte() -> None:
    async with cockpit(running(b"".join(b"line %d\n" % number for number in range(300)))) as seat:
        out, err = seat.pane("out"), seat.pane("err")
        await seat.press("o")
        await seat.until(lambda: err.region.height == 1)
        await seat.sees("stderr 0 B (no output yet)")
        await out.move("rows", -100)
        top = rows(seat)[0]
        seat.play.stage.write("1", b"problem\n", "err")
        await seat.until(lambda: err.region.height > 2)
        await seat.sees("problem")
        assert rows(seat)[0] == top and abs(out.region.height - err.region.height) <= 1


async def test_the_bar_puts_streams_side_by_side_and_stacks_them_again() -> None:
    async with cockpit(two_streams()) as seat:
        out, err = seat.pane("out"), seat.pane("err")
        assert out.region.x == err.region.x
        await seat.press("vertical_line")
        await seat.until(lambda: out.region.y == err.region.y and out.region.x < err.region.x)
        await seat.press("vertical_line")
        await seat.until(lambda: out.region.x == err.region.x)


async def found(seat: Cockpit, words: str) -> None:
    await seat.press("ctrl+f")
    await seat.until(lambda: isinstance(seat.app.focused, SearchBar))
    await seat.press(*words, "enter")


async def test_matches_are_counted_and_reachable_in_both_directions() -> None:
    lines = [b"needle %d\n" % number if number % 100 == 0 else b"straw %d\n" % number for number in range(1000)]
    async with cockpit(running(b"".join(lines))) as seat:
        await found(seat, "NEEDLE")
        await seat.sees("1 of 10 “NEEDLE”", "needle 0")
        assert isinstance(seat.app.focused, CallList)
        await seat.press("right_square_bracket")
        await seat.sees("2 of 10", "needle 100")
        await seat.press("left_square_bracket", "left_square_bracket")
        await seat.sees("10 of 10", "needle 900")
        assert seat.selected == "1"


async def test_matches_are_marked_and_escape_ends_the_search() -> None:
    async with cockpit(running(b"straw \x1b[31mnee\x1b[0mdle straw\n")) as seat:
        await found(seat, "needle")
        await seat.sees("1 of 1")
        await seat.until(lambda: any(style.bold and style.underline for style in styles(seat, "nee")))
        await seat.press("escape")
        await seat.until(lambda: "of 1" not in seat.text())
        assert not any(style.underline for style in styles(seat, "nee"))


@pytest.mark.slow
async def test_a_match_far_to_the_right_is_brought_into_view() -> None:
    async with cockpit(running(b"a" * 3000 + b"needle" + b"b" * 3000 + b"\n" + b"straw\n" * 200)) as seat:
        await found(seat, "needle")
        await seat.sees("aneedleb")
        await seat.press("w")
        await seat.press("right_square_bracket")
        await seat.sees("needle")


@pytest.mark.slow
async def test_a_search_continues_in_growing_output() -> None:
    async with cockpit(running(b"needle\n")) as seat:
        await found(seat, "needle")
        await seat.sees("1 of 1")
        seat.play.stage.write("1", b"needle\n" * 5)
        await seat.sees("1 of 6")


@pytest.mark.slow
async def test_a_search_without_matches_says_so() -> None:
    async with cockpit(running(b"straw\n")) as seat:
        await found(seat, "needle")
        await seat.sees("No match in the output.", " 0 “needle”")


@pytest.mark.slow
async def test_matches_of_both_streams_are_ordered_by_time() -> None:
    play = running()
    for _ in range(5):
        play.stage.write("1", b"a line\n")
        play.stage.write("1", b"a line\n", "err")
    async with cockpit(play) as seat:
        await found(seat, "a line")
        await seat.sees("1 of 10")
        for rank in range(2, 11):
            await seat.press("right_square_bracket")
            await seat.sees(f"{rank} of 10")


@pytest.mark.slow
async def test_keys_are_answered_while_much_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    play = running(b"straw and more straw\n" * 2_000_000)
    read = play.stage.read_output

    async def held(call_id: str, stream: Stream, offset: int, limit: int) -> OutputChunk:
        if offset in range(10_000_000, 20_000_000):
            await asyncio.Event().wait()
        return await read(call_id, stream, offset, limit)

    monkeypatch.setattr(play.stage, "read_output", held)
    async with cockpit(play) as seat:
        await found(seat, "needle")
        await seat.sees("% searched")
        await seat.press("question_mark")
        await seat.sees("Keys and signs")
        await seat.press("escape")
        await seat.sees("% searched")
        await seat.press("escape")
        await seat.until(lambda: "searched" not in seat.text())


async def test_a_stream_without_output_is_not_searched_for_ever() -> None:
    async with cockpit(running(b"straw\n")) as seat:
        await seat.press("Z")
        await found(seat, "needle")
        await seat.until(lambda: seat.text().count("0 “needle”") == 2)
        assert "searched" not in next(line for line in seat.text().splitlines() if "stderr" in line)


async def test_an_exclamation_mark_goes_to_the_first_error_and_on() -> None:
    out = b"fine\n" * 300
    err = b"note\n" * 300 + b"TypeError: x\n" + b"note\n" * 300 + b"fatal: y\n"
    async with cockpit(running(out, err)) as seat:
        await seat.press("exclamation_mark")
        await seat.sees("1 of 2 “errors”", "TypeError: x")
        await seat.press("right_square_bracket")
        await seat.sees("2 of 2 “errors”", "fatal: y")


async def test_binary_output_is_shown_as_such_and_can_be_shown_as_text() -> None:
    async with cockpit(running(b"\x7fELF\x02\x01\x01\x00" + bytes(range(24)) * 4)) as seat:
        await seat.sees("stdout, bytes", "7f 45 4c 46", "·ELF")
        await seat.press("number_sign")
        await seat.until(lambda: "7f 45" not in seat.text() and "ELF" in seat.text())
        await seat.press("number_sign")
        await seat.sees("7f 45 4c 46")


async def test_text_with_a_few_odd_characters_is_text() -> None:
    async with cockpit(running(b"a file name\0another file name\0" * 20 + "äöü".encode() + b"\n")) as seat:
        await seat.sees("a file name␀another file name␀")


async def test_c_copies_the_rows_on_the_screen_in_full_and_plain() -> None:
    async with cockpit(running(b"\x1b[31mred\x1b[0m " + b"x" * 300 + b"\nsecond\n")) as seat:
        await seat.press("c")
        await seat.sees("Copied 2 rows of output.")
        assert seat.app.clipboard == "red " + "x" * 300 + "\nsecond\n"


async def test_y_copies_the_command() -> None:
    async with cockpit(two_streams()) as seat:
        await seat.press("y")
        await seat.sees("Copied the command.")
        assert seat.app.clipboard == "./build.sh"


async def saved(seat: Cockpit, path: Path, *keys: str) -> None:
    await seat.press("S")
    await seat.sees("Save the output of call 1")
    await seat.press(*keys)
    seat.app.screen.query_one(Input).value = str(path)
    await seat.press("enter")


async def test_capital_s_saves_a_stream_for_its_owner_alone(tmp_path: Path) -> None:
    data = b"\x1b[31m\xff\x00 line\n" * (PIECE // 5)
    async with cockpit(running(data, b"problem\n")) as seat:
        await saved(seat, tmp_path / "out")
        await seat.until((tmp_path / "out").exists)
        await seat.sees("of call 1 to")
        assert (tmp_path / "out").read_bytes() == data
        assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o600
        await saved(seat, tmp_path / "err", "tab")
        await seat.until(lambda: (tmp_path / "err").exists() and (tmp_path / "err").read_bytes() == b"problem\n")


async def test_both_streams_are_saved_in_the_order_of_time(tmp_path: Path) -> None:
    async with cockpit(two_streams()) as seat:
        await seat.until(lambda: seat.pane("both").display)
        await saved(seat, tmp_path / "both")
        expected = "".join(f"{stream} {number}\n" for number in range(5) for stream in ("out", "err"))
        await seat.until(lambda: (tmp_path / "both").exists() and (tmp_path / "both").read_text() == expected)


async def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    async with cockpit(two_streams()) as seat:
        await saved(seat, tmp_path / "out")
        await seat.sees("already exists.")
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.slow
async def test_escape_saves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with cockpit(two_streams()) as seat:
        await seat.press("o", "S")
        await seat.sees("call-1-stdout.log")
        await seat.press("tab")
        await seat.sees("call-1-stderr.log")
        await seat.press("escape")
        await seat.until(lambda: len(seat.app.screen_stack) == 1)
    assert list(tmp_path.iterdir()) == []


async def test_v_opens_the_pager_with_colours_and_no_other_escapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = tmp_path / "pager"
    reader.write_text('#!/bin/sh\ncp -- "$2" "$1"\n')
    reader.chmod(0o700)
    monkeypatch.setenv("PAGER", f"{reader} {tmp_path / 'seen'}")
    async with cockpit(running(b"\x1b[31mred\x1b[0m\x1b]52;c;aGk=\x07\x1b[2J\rover\tend\n")) as seat:
        monkeypatch.setattr(seat.app._driver.__class__, "can_suspend", property(lambda _: True))
        await seat.press("v")
        await seat.until((tmp_path / "seen").exists)
        await seat.until(lambda: (tmp_path / "seen").read_bytes() == b"\x1b[31mred\x1b[0m\nover\tend\n")


async def test_a_missing_pager_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    async with cockpit(two_streams()) as seat:

        def no_terminal() -> None:
            raise SuspendNotSupported("no")

        monkeypatch.setattr(seat.app, "suspend", no_terminal)
        await seat.press("v")
        await seat.sees("There is no terminal here for a pager.")
