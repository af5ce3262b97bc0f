"""What can be done with output: shown otherwise, searched, copied, saved, read in a pager."""

import asyncio
import re
import stat
from itertools import pairwise
from pathlib import Path

import pytest
from textual.app import SuspendNotSupported
from textual.widgets import Input

from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.scenes import Scenario
from tests.tui.test_output_pane import running, styles
from whisper_tui.model.run import OutputChunk, Stream
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.dialogs.file_dialogs import PIECE
from whisper_tui.tui.output.output_bars import SearchBar


def rows(cockpit: Cockpit, pane: str = "out") -> list[str]:
    return [strip.text for strip in cockpit.pane(pane).strips]


def two_streams() -> Scenario:
    """Call 1 has written to both streams in turns, a second apart."""
    scenario = running()
    for number in range(5):
        scenario.supervisor.write("1", b"out %d\n" % number)
        scenario.clock.advance(1)
        scenario.supervisor.write("1", b"err %d\n" % number, "err")
        scenario.clock.advance(1)
    return scenario


async def test_w_toggles_the_wrapping_of_long_lines() -> None:
    async with open_cockpit(running(b"a" * 150 + b"THE END\nnext\n")) as cockpit:
        assert rows(cockpit)[-1] == "next" and "THE END" not in cockpit.text()
        await cockpit.press("w")
        await cockpit.sees("THE END", "next")
        assert "".join(rows(cockpit)[:-1]) == "a" * 150 + "THE END"
        await cockpit.press("w")
        await cockpit.until(lambda: len(rows(cockpit)) == 2)


async def test_wrapped_output_is_scrolled_row_by_row_without_losing_any() -> None:
    lines = [f"{number:03d} " + "x" * (number * 7 % 200) + "." for number in range(60)]
    async with open_cockpit(running("".join(f"{line}\n" for line in lines).encode())) as cockpit:
        await cockpit.press("w")
        pane = cockpit.pane("out")
        await pane.move("start")
        height = pane.size.height - 1
        seen = rows(cockpit)
        assert len(seen) == height
        while not (pane.view is not None and pane.view.following):
            await pane.move("rows", 1)
            assert rows(cockpit)[:-1] == seen[-height + 1 :]
            seen.append(rows(cockpit)[-1])
        assert "".join(seen) == "".join(lines)
        for back in range(1, len(seen) - height + 1):
            await pane.move("rows", -1)
            assert rows(cockpit) == seen[len(seen) - height - back : len(seen) - back]


async def test_a_line_of_ten_megabytes_can_be_wrapped() -> None:
    async with open_cockpit(running(b"y" * 10_000_000 + b"\nafter\n")) as cockpit:
        await cockpit.press("w")
        await cockpit.sees("after", "yyyyyyyy")
        await cockpit.pane("out").move("rows", -3)
        await cockpit.until(lambda: "after" not in cockpit.text())


async def test_capital_w_shows_the_time_of_each_line() -> None:
    async with open_cockpit(two_streams()) as cockpit:
        await cockpit.press("W")
        await cockpit.until(lambda: len(re.findall(r"\d\d:\d\d:\d\d\.\d{3} (?:out|err) \d", cockpit.text())) == 10)
        seconds = [int(found) for found in re.findall(r":(\d\d)\.000 out \d", cockpit.text())]
        assert [(later - first) % 60 for first, later in pairwise(seconds)] == [2, 2, 2, 2]
        await cockpit.press("W")
        await cockpit.until(lambda: ".000 out" not in cockpit.text())


async def test_both_streams_are_one_text_in_the_order_of_time_and_capital_z_separates_them() -> None:
    async with open_cockpit(two_streams()) as cockpit:
        expected = [f"{stream} {number}" for number in range(5) for stream in ("out", "err")]
        await cockpit.until(lambda: rows(cockpit, "both") == expected)
        await cockpit.sees("▌err 4", " out 4", "stdout and ▌stderr")
        assert not cockpit.pane("out").display and not cockpit.pane("err").display
        cockpit.scenario.supervisor.write("1", b"last\n", "err")
        await cockpit.sees("▌last")
        await cockpit.press("Z")
        await cockpit.until(lambda: cockpit.pane("out").display and cockpit.pane("err").display)
        await cockpit.sees("last", "stdout 30 B", "stderr 35 B")


@pytest.mark.slow
async def test_a_reader_keeps_the_place_when_the_other_stream_begins() -> None:
    async with open_cockpit(running(b"".join(b"line %d\n" % number for number in range(300)))) as cockpit:
        assert not cockpit.pane("err").display
        await cockpit.press("w", "ctrl+f", *"line 150", "enter")
        await cockpit.sees("1 of 1 “line 150”")
        before = rows(cockpit)
        assert any("line 150" in row for row in before)
        cockpit.scenario.supervisor.write("1", b"first problem\n", "err")
        await cockpit.until(lambda: cockpit.pane("both").display)
        assert rows(cockpit, "both") == before
        await cockpit.sees("1 of 1 “line 150”", "f to follow")
        await cockpit.press("f")
        await cockpit.sees("▌first problem", "line 299")


async def test_separating_and_merging_streams_keeps_the_place_of_the_reader() -> None:
    scenario = running()
    for number in range(200):
        scenario.supervisor.write("1", b"out %d\n" % number)
        scenario.supervisor.write("1", b"err %d\n" % number, "err")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.sees("out 199", "err 199")
        await cockpit.pane("both").move("rows", -200)
        merged = rows(cockpit, "both")
        first = int(merged[0].split()[-1])
        await cockpit.press("Z")
        await cockpit.until(lambda: cockpit.pane("out").display and rows(cockpit, "out")[:1] == [f"out {first}"])
        assert int(rows(cockpit, "err")[0].removeprefix("err ")) in {first, first + 1}
        await cockpit.pane("out").move("rows", 20)
        await cockpit.press("Z")
        await cockpit.until(lambda: cockpit.pane("both").display)
        await cockpit.until(lambda: f"out {first + 20}" in rows(cockpit, "both")[0])
        await cockpit.press("f", "Z")
        await cockpit.until(lambda: cockpit.pane("out").display and rows(cockpit, "out")[-1:] == ["out 199"])
        assert rows(cockpit, "err")[-1] == "err 199"


@pytest.mark.slow
async def test_a_separate_stream_without_output_is_only_a_title_until_its_first_byte() -> None:
    async with open_cockpit(running(b"".join(b"line %d\n" % number for number in range(300)))) as cockpit:
        out, err = cockpit.pane("out"), cockpit.pane("err")
        await cockpit.press("o")
        await cockpit.until(lambda: err.region.height == 1)
        await cockpit.sees("stderr 0 B (no output yet)")
        await out.move("rows", -100)
        top = rows(cockpit)[0]
        cockpit.scenario.supervisor.write("1", b"problem\n", "err")
        await cockpit.until(lambda: err.region.height > 2)
        await cockpit.sees("problem")
        assert rows(cockpit)[0] == top and abs(out.region.height - err.region.height) <= 1


async def test_the_bar_puts_streams_side_by_side_and_stacks_them_again() -> None:
    async with open_cockpit(two_streams()) as cockpit:
        out, err = cockpit.pane("out"), cockpit.pane("err")
        assert out.region.x == err.region.x
        await cockpit.press("vertical_line")
        await cockpit.until(lambda: out.region.y == err.region.y and out.region.x < err.region.x)
        await cockpit.press("vertical_line")
        await cockpit.until(lambda: out.region.x == err.region.x)


async def found(cockpit: Cockpit, words: str) -> None:
    await cockpit.press("ctrl+f")
    await cockpit.until(lambda: isinstance(cockpit.app.focused, SearchBar))
    await cockpit.press(*words, "enter")


async def test_matches_are_counted_and_reachable_in_both_directions() -> None:
    lines = [b"needle %d\n" % number if number % 100 == 0 else b"straw %d\n" % number for number in range(1000)]
    async with open_cockpit(running(b"".join(lines))) as cockpit:
        await found(cockpit, "NEEDLE")
        await cockpit.sees("1 of 10 “NEEDLE”", "needle 0")
        assert isinstance(cockpit.app.focused, CallList)
        await cockpit.press("right_square_bracket")
        await cockpit.sees("2 of 10", "needle 100")
        await cockpit.press("left_square_bracket", "left_square_bracket")
        await cockpit.sees("10 of 10", "needle 900")
        assert cockpit.selected == "1"


async def test_matches_are_marked_and_escape_ends_the_search() -> None:
    async with open_cockpit(running(b"straw \x1b[31mnee\x1b[0mdle straw\n")) as cockpit:
        await found(cockpit, "needle")
        await cockpit.sees("1 of 1")
        await cockpit.until(lambda: any(style.bold and style.underline for style in styles(cockpit, "nee")))
        await cockpit.press("escape")
        await cockpit.until(lambda: "of 1" not in cockpit.text())
        assert not any(style.underline for style in styles(cockpit, "nee"))


@pytest.mark.slow
async def test_a_match_far_to_the_right_is_brought_into_view() -> None:
    async with open_cockpit(running(b"a" * 3000 + b"needle" + b"b" * 3000 + b"\n" + b"straw\n" * 200)) as cockpit:
        await found(cockpit, "needle")
        await cockpit.sees("aneedleb")
        await cockpit.press("w")
        await cockpit.press("right_square_bracket")
        await cockpit.sees("needle")


@pytest.mark.slow
async def test_a_search_continues_in_growing_output() -> None:
    async with open_cockpit(running(b"needle\n")) as cockpit:
        await found(cockpit, "needle")
        await cockpit.sees("1 of 1")
        cockpit.scenario.supervisor.write("1", b"needle\n" * 5)
        await cockpit.sees("1 of 6")


@pytest.mark.slow
async def test_a_search_without_matches_says_so() -> None:
    async with open_cockpit(running(b"straw\n")) as cockpit:
        await found(cockpit, "needle")
        await cockpit.sees("No match in the output.", " 0 “needle”")


@pytest.mark.slow
async def test_matches_of_both_streams_are_ordered_by_time() -> None:
    scenario = running()
    for _ in range(5):
        scenario.supervisor.write("1", b"a line\n")
        scenario.supervisor.write("1", b"a line\n", "err")
    async with open_cockpit(scenario) as cockpit:
        await found(cockpit, "a line")
        await cockpit.sees("1 of 10")
        for rank in range(2, 11):
            await cockpit.press("right_square_bracket")
            await cockpit.sees(f"{rank} of 10")


@pytest.mark.slow
async def test_keys_are_answered_while_much_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = running(b"straw and more straw\n" * 2_000_000)
    read = scenario.supervisor.read_output

    async def held(call_id: str, stream: Stream, offset: int, limit: int) -> OutputChunk:
        if offset in range(10_000_000, 20_000_000):
            await asyncio.Event().wait()
        return await read(call_id, stream, offset, limit)

    monkeypatch.setattr(scenario.supervisor, "read_output", held)
    async with open_cockpit(scenario) as cockpit:
        await found(cockpit, "needle")
        await cockpit.sees("% searched")
        await cockpit.press("question_mark")
        await cockpit.sees("Keys and signs")
        await cockpit.press("escape")
        await cockpit.sees("% searched")
        await cockpit.press("escape")
        await cockpit.until(lambda: "searched" not in cockpit.text())


async def test_a_stream_without_output_is_not_searched_for_ever() -> None:
    async with open_cockpit(running(b"straw\n")) as cockpit:
        await cockpit.press("Z")
        await found(cockpit, "needle")
        await cockpit.until(lambda: cockpit.text().count("0 “needle”") == 2)
        assert "searched" not in next(line for line in cockpit.text().splitlines() if "stderr" in line)


async def test_an_exclamation_mark_goes_to_the_first_error_and_on() -> None:
    out = b"fine\n" * 300
    err = b"note\n" * 300 + b"TypeError: x\n" + b"note\n" * 300 + b"fatal: y\n"
    async with open_cockpit(running(out, err)) as cockpit:
        await cockpit.press("exclamation_mark")
        await cockpit.sees("1 of 2 “errors”", "TypeError: x")
        await cockpit.press("right_square_bracket")
        await cockpit.sees("2 of 2 “errors”", "fatal: y")


@pytest.mark.slow
async def test_binary_output_is_shown_as_such_and_can_be_shown_as_text() -> None:
    async with open_cockpit(running(b"\x7fELF\x02\x01\x01\x00" + bytes(range(24)) * 4)) as cockpit:
        await cockpit.sees("stdout, bytes", "7f 45 4c 46", "·ELF")
        await cockpit.press("number_sign")
        await cockpit.until(lambda: "7f 45" not in cockpit.text() and "ELF" in cockpit.text())
        await cockpit.press("number_sign")
        await cockpit.sees("7f 45 4c 46")


async def test_text_with_a_few_odd_characters_is_text() -> None:
    async with open_cockpit(running(b"a file name\0another file name\0" * 20 + "äöü".encode() + b"\n")) as cockpit:
        await cockpit.sees("a file name␀another file name␀")


async def test_c_copies_the_rows_on_the_screen_in_full_and_plain() -> None:
    async with open_cockpit(running(b"\x1b[31mred\x1b[0m " + b"x" * 300 + b"\nsecond\n")) as cockpit:
        await cockpit.press("c")
        await cockpit.sees("Copied 2 rows of output.")
        assert cockpit.app.clipboard == "red " + "x" * 300 + "\nsecond\n"


async def test_y_copies_the_command() -> None:
    async with open_cockpit(two_streams()) as cockpit:
        await cockpit.press("y")
        await cockpit.sees("Copied the command.")
        assert cockpit.app.clipboard == "./build.sh"


async def saved(cockpit: Cockpit, path: Path, *keys: str) -> None:
    await cockpit.press("S")
    await cockpit.sees("Save the output of call 1")
    await cockpit.press(*keys)
    cockpit.app.screen.query_one(Input).value = str(path)
    await cockpit.press("enter")


async def test_capital_s_saves_a_stream_for_its_owner_alone(tmp_path: Path) -> None:
    data = b"\x1b[31m\xff\x00 line\n" * (PIECE // 5)
    async with open_cockpit(running(data, b"problem\n")) as cockpit:
        await saved(cockpit, tmp_path / "out")
        await cockpit.until((tmp_path / "out").exists)
        await cockpit.sees("of call 1 to")
        assert (tmp_path / "out").read_bytes() == data
        assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o600
        await saved(cockpit, tmp_path / "err", "tab")
        await cockpit.until(lambda: (tmp_path / "err").exists() and (tmp_path / "err").read_bytes() == b"problem\n")


async def test_both_streams_are_saved_in_the_order_of_time(tmp_path: Path) -> None:
    async with open_cockpit(two_streams()) as cockpit:
        await cockpit.until(lambda: cockpit.pane("both").display)
        await saved(cockpit, tmp_path / "both")
        expected = "".join(f"{stream} {number}\n" for number in range(5) for stream in ("out", "err"))
        await cockpit.until(lambda: (tmp_path / "both").exists() and (tmp_path / "both").read_text() == expected)


async def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    async with open_cockpit(two_streams()) as cockpit:
        await saved(cockpit, tmp_path / "out")
        await cockpit.sees("already exists.")
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.slow
async def test_escape_saves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_cockpit(two_streams()) as cockpit:
        await cockpit.press("o", "S")
        await cockpit.sees("call-1-stdout.log")
        await cockpit.press("tab")
        await cockpit.sees("call-1-stderr.log")
        await cockpit.press("escape")
        await cockpit.until(lambda: len(cockpit.app.screen_stack) == 1)
    assert list(tmp_path.iterdir()) == []


async def test_v_opens_the_pager_with_colours_and_no_other_escapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = tmp_path / "pager"
    reader.write_text('#!/bin/sh\ncp -- "$2" "$1"\n')
    reader.chmod(0o700)
    monkeypatch.setenv("PAGER", f"{reader} {tmp_path / 'seen'}")
    async with open_cockpit(running(b"\x1b[31mred\x1b[0m\x1b]52;c;aGk=\x07\x1b[2J\rover\tend\n")) as cockpit:
        monkeypatch.setattr(cockpit.app._driver.__class__, "can_suspend", property(lambda _: True))
        await cockpit.press("v")
        await cockpit.until((tmp_path / "seen").exists)
        await cockpit.until(lambda: (tmp_path / "seen").read_bytes() == b"\x1b[31mred\x1b[0m\nover\tend\n")


async def test_a_missing_pager_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_cockpit(two_streams()) as cockpit:

        def no_terminal() -> None:
            raise SuspendNotSupported("no")

        monkeypatch.setattr(cockpit.app, "suspend", no_terminal)
        await cockpit.press("v")
        await cockpit.sees("There is no terminal here for a pager.")
