"""Captured output becomes text: whole, decoded across pieces, and cut only with a mark."""

import pytest

from tests.tools.recorded import Recorded
from tests.tools.test_execute_command import tool_over
from whisper_tui.tools import agent_text
from whisper_tui.tools.agent_text import captured_texts


async def captured(supervision, limit=10_000, stream="out"):
    call_id = await supervision.submit(tool_over(supervision).request({"command": "x"}))
    texts = await captured_texts(supervision, await supervision.outcome(call_id), limit)
    return texts[("out", "err").index(stream)]


@pytest.mark.parametrize("piece", [1, 2, 3, 7])
async def test_a_character_on_the_border_of_two_pieces_is_whole(monkeypatch, piece):
    monkeypatch.setattr(agent_text, "PIECE", piece)
    text = "añ€😀" * 5
    assert await captured(Recorded(out=text.encode())) == text


async def test_bytes_that_are_not_text_are_replaced_and_nothing_else_is_lost():
    assert await captured(Recorded(out=b"a\xffb\xc3")) == "a\ufffdb\ufffd"


async def test_only_what_had_been_captured_when_the_leader_ended_is_shown():
    supervision = Recorded(out=b"first")
    call_id = await supervision.submit(tool_over(supervision).request({"command": "x"}))
    record = await supervision.outcome(call_id)
    supervision.streams["out"] += b" and later"
    assert (await captured_texts(supervision, record, 100))[0] == "first"


async def test_a_long_stream_keeps_its_head_and_its_tail_and_says_where_the_rest_is():
    text = await captured(Recorded(err=b"H" * 500 + b"-" * 9_000 + b"T" * 500), limit=1000, stream="err")
    assert text == (
        "H" * 500 + "\n[whisper_tui: 9,000 bytes are left out here; all of it is in /runs/1/err]\n" + "T" * 500
    )


async def test_without_a_whole_file_the_answer_names_the_command_for_the_rest():
    supervision = Recorded(out=b"x" * 10_000)
    supervision.gaps["out"] = (4_000, 5_000)
    assert "9,000 bytes are left out here; `whisper-tui logs 1 --stream out` prints the kept output]" in (
        await captured(supervision, limit=1000)
    )


async def test_a_cut_never_breaks_a_character():
    text = await captured(Recorded(out="€".encode() * 1000), limit=1000)
    assert "\ufffd" not in text
    assert text.startswith("€" * 166 + "\n[")
    assert text.endswith("]\n" + "€" * 166)


async def test_bytes_dropped_at_capture_are_marked_where_they_are_missing():
    supervision = Recorded(out=b"begin" + b"x" * 100 + b"end")
    supervision.gaps["out"] = (5, 105)
    assert await captured(supervision) == (
        "begin\n[whisper_tui: 100 bytes were dropped here when the output was captured]\nend"
    )


async def test_removed_output_is_reported():
    supervision = Recorded(out=b"all of it")
    call_id = await supervision.submit(tool_over(supervision).request({"command": "x"}))
    record = await supervision.outcome(call_id)
    supervision.streams["out"] = b"all"
    assert "6 bytes were dropped" in (await captured_texts(supervision, record, 100))[0]


async def test_one_stream_may_use_the_unused_budget_of_the_other():
    supervision = Recorded(out=b"o" * 100, err=b"e" * 9_000)
    assert len(await captured(supervision, limit=1000)) == 100
    assert (await captured(supervision, limit=1000, stream="err")).startswith("e" * 450 + "\n[whisper_tui: 8,100 bytes")


async def test_without_a_limit_both_streams_are_whole():
    supervision = Recorded(out=b"o" * 20_000_000, err=b"e" * 5)
    assert [len(await captured(supervision, limit=None, stream=stream)) for stream in ("out", "err")] == [20_000_000, 5]


FETCHING = b"".join(b"fetch %d%%\r" % part for part in range(100)) + b"fetch 100%\ndone\n"


async def shown(supervision, limit=10_000):
    call_id = await supervision.submit(tool_over(supervision).request({"command": "x"}))
    return (await captured_texts(supervision, await supervision.outcome(call_id), limit, frames=False))[0]


async def test_a_line_that_was_written_over_is_shown_as_it_was_left_and_the_rest_is_named():
    note = "\n[whisper_tui: 100 earlier states of overwritten lines are left out; all of it is in /runs/1/out]\n"
    assert await shown(Recorded(out=b"begin\n" + FETCHING)) == "begin\nfetch 100%\ndone\n" + note
    assert await captured(Recorded(out=FETCHING)) == FETCHING.decode()


async def test_progress_leaves_room_for_what_was_printed_before_and_after_it():
    text = await shown(Recorded(out=b"begin\n" + FETCHING * 200 + b"end\n"), limit=4000)
    assert text.startswith("begin\nfetch 100%\ndone\n") and "\nend\n" in text
    assert text.count("fetch 100%") == 200


@pytest.mark.parametrize(
    "out",
    [b"one\r\ntwo\r\n", b"one\r\r\n", b"menu\r\x1b[2Aup\n", b"no frames\n", b"\r\n\r\n"],
    ids=["line ends", "doubled ends", "moved cursor", "none", "empty lines"],
)
async def test_what_is_no_progress_is_shown_whole(out):
    assert await shown(Recorded(out=out)) == out.decode()


async def test_coloured_progress_is_progress():
    assert (await shown(Recorded(out=b"\x1b[32m1/2\x1b[0m\x1b[K\r\x1b[32m2/2\x1b[0m\n"))).startswith(
        "\x1b[32m2/2\x1b[0m\n\n["
    )
