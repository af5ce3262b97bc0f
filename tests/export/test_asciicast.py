"""Recordings: what came when, in the two versions of asciicast, and nothing in them that leaves the screen."""

import asyncio
import json

import pytest

from tests.outside import outside_only
from tests.rows import each_row
from whisper_tui.export.asciicast import PlayableFilter, asciicast, recorded_output
from whisper_tui.model.decision import Approve
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.model.run import TerminalSize

pytestmark = outside_only

SLOWLY = "printf 'one\\n'; sleep 0.4; printf 'two\\n' >&2; sleep 0.4; printf 'three\\n'; exit 3"


async def lines(harness, record, version):
    return [json.loads(line) async for line in asciicast(harness.api, record, harness.session, version)]


async def test_version_2_tells_times_since_the_start(harness):
    record = await harness.run(text=SLOWLY)
    header, *events = await lines(harness, record, 2)
    assert header["version"] == 2
    assert (header["width"], header["height"]) == (80, 24)
    assert header["command"] == SLOWLY
    assert header["timestamp"] == int(record.process.started_at)
    assert [event[1:] for event in events] == [["o", "one\r\n"], ["o", "two\r\n"], ["o", "three\r\n"]]
    times = [event[0] for event in events]
    assert times == sorted(times)
    assert times[1] - times[0] >= 0.35 and times[2] - times[1] >= 0.35
    assert header["duration"] >= times[-1]


async def test_version_3_tells_times_since_the_event_before_and_the_exit_status(harness):
    record = await harness.run(text=SLOWLY)
    header, *events = await lines(harness, record, 3)
    assert header["version"] == 3
    assert header["term"] == {"cols": 80, "rows": 24, "type": "xterm-256color"}
    assert [event[1:] for event in events] == [["o", "one\r\n"], ["o", "two\r\n"], ["o", "three\r\n"], ["x", "3"]]
    assert all(event[0] >= 0 for event in events)
    two = (await lines(harness, record, 2))[1:]
    assert sum(event[0] for event in events[:3]) == pytest.approx(two[-1][0], abs=0.001)


async def test_the_output_of_a_terminal_is_kept_as_the_terminal_got_it(harness):
    record = await harness.run(text="printf '\\033[31mred\\033[0m\\n'", tty=True)
    _header, *events = await lines(harness, record, 2)
    assert "".join(text for _, _, text in events) == "\x1b[31mred\x1b[0m\r\n"


async def resized(harness):
    """A run whose terminal had 100 columns before it printed anything, and 132 later."""
    call_id = await harness.submit("sh", "-c", "read go; stty size; read go; stty size", tty=True)
    await harness.decide(call_id, Approve())
    await harness.until(call_id, "running")
    await harness.api.resize(call_id, 30, 100)
    await harness.api.write_stdin(call_id, b"\n")
    async with asyncio.timeout(60):
        while b"30 100\r\n" not in (await harness.api.read_output(call_id, "out", 0, 1000)).data:
            await asyncio.sleep(0.01)
    await harness.api.resize(call_id, 50, 132)
    await harness.api.resize(call_id, 50, 132)
    await harness.api.write_stdin(call_id, b"\n")
    return await harness.api.outcome(call_id)


@pytest.mark.parametrize("version", [2, 3])
async def test_a_recording_begins_with_the_first_size_of_its_terminal_and_follows_it(harness, version):
    record = await resized(harness)
    header, *events = await lines(harness, record, version)
    term = header["term"] if version == 3 else {"cols": header["width"], "rows": header["height"]}
    assert (term["cols"], term["rows"]) == (100, 30)
    sizes = [number for number, event in enumerate(events) if event[1] == "r"]
    assert [events[number][2] for number in sizes] == ["132x50"]
    before, after = ("".join(event[2] for event in part) for part in (events[: sizes[0]], events[sizes[0] + 1 :]))
    assert "30 100" in before and "50 132" in after and "50 132" not in before
    times = [event[0] for event in events]
    assert times == sorted(times) if version == 2 else min(times) >= 0


async def test_a_size_in_the_midst_of_bytes_that_came_together_parts_them(harness):
    record = await harness.run(text="printf onetwo", tty=True)
    sizes = (
        TerminalSize(),
        TerminalSize(at=record.process.started_at, start=3, rows=10, columns=20),
        TerminalSize(at=record.process.started_at + 1e6, start=6, rows=11, columns=21),
    )
    told = [
        (getattr(moment, "data", None), getattr(moment, "rows", None))
        async for moment in recorded_output(harness.api, record, sizes)
    ]
    assert told == [(b"one", None), (None, 10), (b"two", None), (None, 11)]


async def test_a_call_that_never_ran_cannot_be_played(harness):
    record = await harness.api.record(await harness.submit("true"))
    with pytest.raises(InvalidRequest, match="never ran"):
        await lines(harness, record, 2)


async def test_a_long_output_is_whole(harness):
    record = await harness.run(text="seq 1 200000")
    text = "".join(event[2] for event in (await lines(harness, record, 2))[1:])
    assert text == "".join(f"{number}\r\n" for number in range(1, 200001))


ROUGH = (
    "a\x1b]52;c;b3duZWQ=\x07b\x1b]0;title\x1b\\c\x1b[6nd\x1b[ce\x1b[21tf"
    "\x1bPq#0\x1b\\g\x07h\x1b[?25hi\x1b[2Jjü\x1b[?1$pk"
)


@each_row("size", [1, 2, 3, 7, 1000])
def test_sequences_beyond_the_screen_are_removed_however_output_is_split(size):
    data = ROUGH.encode()
    shown = PlayableFilter(terminal=True)
    text = "".join(shown.feed(data[at : at + size]) for at in range(0, len(data), size)) + shown.feed(b"", last=True)
    assert text == "abcdefgh\x1b[?25hi\x1b[2Jjük"


@each_row("cut", [1, 2, 3])
def test_line_feeds_go_back_to_the_left_where_no_terminal_did_it(cut):
    data = b"a\nb\r\nc"
    shown = PlayableFilter(terminal=False)
    assert shown.feed(data[:cut]) + shown.feed(data[cut:], last=True) == "a\r\nb\r\nc"


@each_row("escape", ["[x", "[1x", "[?u", "[?1000h", "[?25;1006h", "[?1004h", "[?9l", "[?2004h"])
def test_a_recording_asks_the_terminal_that_plays_it_for_nothing(escape):
    assert PlayableFilter(terminal=True).feed(f"a\x1b{escape}b".encode(), last=True) == "ab"
