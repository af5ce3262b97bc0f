"""The pieces between a run and the program that stands for it: whole ones come out, endless ones are refused."""

import pytest

from whisper_tui.transports.hooks.frames import EOF, LARGEST, STDIN, Frames, frame


def test_pieces_come_out_whole_however_they_are_cut() -> None:
    sent = frame(STDIN, b"some input") + frame(STDIN) + frame(EOF)
    frames = Frames()
    found = [piece for byte in sent for piece in frames.feed(bytes([byte]))]
    assert found == Frames().feed(sent) == [(STDIN, b"some input"), (STDIN, b""), (EOF, b"")]


def test_a_piece_that_is_too_long_is_refused_before_it_is_held() -> None:
    assert Frames().feed(frame(STDIN, b"x" * LARGEST)) == [(STDIN, b"x" * LARGEST)]
    with pytest.raises(ValueError, match="longer than"):
        Frames().feed(STDIN + (LARGEST + 1).to_bytes(4, "big"))
