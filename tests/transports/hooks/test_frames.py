"""The pieces between a run and the program that stands for it: whole ones come out, endless ones are refused."""

import pytest

from whisper_tui.transports.hook.exec_program import EOF, LARGEST, STDIN, Frames, frame


def test_pieces_come_out_whole_however_they_are_cut() -> None:
    sent = frame(STDIN, b"some input") + frame(STDIN) + frame(EOF)
    frames = Frames()
    found = [piece for byte in sent for piece in frames.feed(bytes([byte]))]
    assert found == Frames().feed(sent) == [(STDIN, b"some input"), (STDIN, b""), (EOF, b"")]


def test_a_piece_that_is_too_long_is_refused_before_it_is_held() -> None:
    assert Frames().feed(frame(STDIN, b"x" * LARGEST)) == [(STDIN, b"x" * LARGEST)]
    with pytest.raises(ValueError, match="longer than"):
        Frames().feed(STDIN + (LARGEST + 1).to_bytes(4, "big"))


def test_a_line_in_place_of_a_piece_is_a_refusal_and_a_brace_within_one_is_not() -> None:
    frames = Frames(refusable=True)
    assert frames.feed(frame(STDIN, b"{" * 2000)[:1000]) == []
    assert frames.feed(b"{" * 1005 + b'{"error": ') == [(STDIN, b"{" * 2000)]
    assert frames.refusal == b'{"error": '
    assert frames.feed(b'"no"}\n') == []
    assert frames.refusal == b'{"error": "no"}\n'


def test_json_is_a_piece_that_is_too_long_where_refusals_are_not_allowed() -> None:
    frames = Frames()
    with pytest.raises(ValueError, match="longer than"):
        frames.feed(b'{"error": "no"}\n')
    assert not frames.refusal
