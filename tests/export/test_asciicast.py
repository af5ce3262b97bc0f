"""Recordings: what came when, in the two versions of asciicast, and nothing in them that leaves the screen."""

import json

import pytest

from tests.outside import outside_only
from whisper_tui.export.asciicast import asciicast
from whisper_tui.export.playable import Playable
from whisper_tui.model.errors import InvalidRequest

pytestmark = outside_only

SLOWLY = "printf 'one\\n'; sleep 0.4; printf 'two\\n' >&2; sleep 0.4; printf 'three\\n'; exit 3"


async def lines(desk, record, version):
    return [json.loads(line) async for line in asciicast(desk.port, record, desk.session, version)]


async def test_version_2_tells_times_since_the_start(desk):
    record = await desk.run(text=SLOWLY)
    header, *events = await lines(desk, record, 2)
    assert header["version"] == 2
    assert (header["width"], header["height"]) == (80, 24)
    assert header["command"] == SLOWLY
    assert header["timestamp"] == int(record.process.started_at)
    assert [event[1:] for event in events] == [["o", "one\r\n"], ["o", "two\r\n"], ["o", "three\r\n"]]
    times = [event[0] for event in events]
    assert times == sorted(times)
    assert times[1] - times[0] >= 0.35 and times[2] - times[1] >= 0.35
    assert header["duration"] >= times[-1]


async def test_version_3_tells_times_since_the_event_before_and_the_exit_status(desk):
    record = await desk.run(text=SLOWLY)
    header, *events = await lines(desk, record, 3)
    assert header["version"] == 3
    assert header["term"] == {"cols": 80, "rows": 24, "type": "xterm-256color"}
    assert [event[1:] for event in events] == [["o", "one\r\n"], ["o", "two\r\n"], ["o", "three\r\n"], ["x", "3"]]
    assert all(event[0] >= 0 for event in events)
    two = (await lines(desk, record, 2))[1:]
    assert sum(event[0] for event in events[:3]) == pytest.approx(two[-1][0], abs=0.001)


async def test_the_output_of_a_terminal_is_kept_as_the_terminal_got_it(desk):
    record = await desk.run(text="printf '\\033[31mred\\033[0m\\n'", tty=True)
    _header, *events = await lines(desk, record, 2)
    assert "".join(text for _, _, text in events) == "\x1b[31mred\x1b[0m\r\n"


async def test_a_call_that_never_ran_cannot_be_played(desk):
    record = await desk.port.record(await desk.submit("true"))
    with pytest.raises(InvalidRequest, match="never ran"):
        await lines(desk, record, 2)


async def test_a_long_output_is_whole(desk):
    record = await desk.run(text="seq 1 200000")
    text = "".join(event[2] for event in (await lines(desk, record, 2))[1:])
    assert text == "".join(f"{number}\r\n" for number in range(1, 200001))


ROUGH = (
    "a\x1b]52;c;b3duZWQ=\x07b\x1b]0;title\x1b\\c\x1b[6nd\x1b[ce\x1b[21tf"
    "\x1bPq#0\x1b\\g\x07h\x1b[?25hi\x1b[2Jjü\x1b[?1$pk"
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_what_leaves_the_screen_is_left_out_however_the_output_is_cut(size):
    data = ROUGH.encode()
    shown = Playable(terminal=True)
    text = "".join(shown.feed(data[at : at + size]) for at in range(0, len(data), size)) + shown.feed(b"", last=True)
    assert text == "abcdefgh\x1b[?25hi\x1b[2Jjük"


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_line_feeds_go_back_to_the_left_where_no_terminal_did_it(cut):
    data = b"a\nb\r\nc"
    shown = Playable(terminal=False)
    assert shown.feed(data[:cut]) + shown.feed(data[cut:], last=True) == "a\r\nb\r\nc"
