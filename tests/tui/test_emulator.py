"""A terminal's screen in memory, and the keys that are sent to it."""

import random

from tests.rows import each_row
from whisper_tui.tui.output.ansi import DIRECT
from whisper_tui.tui.output.emulator import Emulator, RecordedScreen, keystroke, pasted


def screen(*pieces: bytes, lines: int = 4, columns: int = 20) -> Emulator:
    found = Emulator(lines, columns)
    for piece in pieces:
        found.feed(piece)
    return found


def test_the_cursor_can_draw_anywhere() -> None:
    assert screen(b"one\r\ntwo\x1b[1;1HONE\x1b[3;5Hx").text() == "ONE\ntwo\n    x\n"


def recorded(*pieces: bytes) -> list[str]:
    emulator = Emulator(4, 20, RecordedScreen(20, 4))
    for piece in pieces:
        emulator.feed(piece)
    return emulator.text().rstrip("\n").split("\n")


def test_a_recording_keeps_the_last_screen_of_a_program_that_leaves_an_empty_one() -> None:
    program = (b"\x1b[?1049h\x1b[1;1Hfirst", b"\x1b[2;1Hsecond")
    assert recorded(*program, b"\x1b[?1049l") == ["first", "second"]
    assert recorded(*program, b"\x1b[H\x1b[2J\x1b[?1049l") == ["first", "second"]
    assert recorded(*program, b"\x1b[?1049l", b"and on\r\n") == ["and on"]
    assert recorded(b"before\r\n", *program, b"\x1b[?1049l") == ["before"]
    assert recorded(*program, b"\x1b[?1049l", b"\x1b[?1049h\x1b[1;1Hthird", b"\x1b[?1049l") == ["third"]


def test_leaving_the_alternate_screen_restores_the_normal_one() -> None:
    emulator = screen(b"$ edit\r\n\x1b[?1049h\x1b[Hfull screen")
    assert emulator.text() == "full screen\n"
    emulator.feed(b"\x1b[?1049l$ ")
    assert emulator.text() == "$ edit\n$\n"
    assert emulator.cursor == (1, 2)


@each_row(
    "sequence",
    [
        b"\x1b[>4;2m",
        b"\x1b[>c",
        b"\x1b[?u",
        b"\x1b[=1;1u",
        b"\x1b]0;title\x07",
        b"\x1b]8;;http://x\x1b\\",
        b"\x1b[ q",
        b"\x1b[2 q",
        b"\x1b[!p",
        b"\x1bPq#0\x1b\\",
        b"\x1b_Gx\x1b\\",
        b"\x1b[?2026h",
        b"\x1b[?25$p",
        b"\x1b[?1;2m",
        b"\x1b[4:3m",
    ],
)
def test_sequences_leave_no_letters_and_no_colours_behind(sequence: bytes) -> None:
    for cut in range(len(sequence) + 1):
        emulator = screen(b"a" + sequence[:cut], sequence[cut:] + b"\x1b[0mb")
        assert emulator.text() == "ab\n"
        assert not emulator.row(0)[0].pen.dim


def test_colours_are_read_in_every_notation() -> None:
    for text in (b"\x1b[38;2;1;2;3mx", b"\x1b[38:2::1:2:3mx", b"\x1b[38:2:1:2:3mx"):
        assert screen(text).row(0)[0].pen.foreground == DIRECT + 0x010203
    assert screen(b"\x1b[91mx").row(0)[0].pen.foreground == 9
    assert screen(b"\x1b[33mx").row(0)[0].pen.foreground == 3


def test_wide_and_joined_characters_keep_the_columns() -> None:
    emulator = screen("日本\u200b e\u0301 \U0001f469\u200d\U0001f4bb ok".encode())
    assert "ok" in emulator.text()
    assert all(len("".join(run.text for run in emulator.row(0))) <= 20 for _ in range(1))


def test_a_character_may_arrive_in_two_pieces() -> None:
    data = "ä€日".encode()
    for cut in range(len(data)):
        assert screen(data[:cut], data[cut:]).text() == "ä€日\n"


def test_resizing_keeps_the_rows_around_the_cursor() -> None:
    emulator = screen(b"one\r\ntwo", lines=10)
    emulator.resize(3, 20)
    assert emulator.text() == "one\ntwo\n" and emulator.cursor == (1, 3)
    emulator.resize(1, 20)
    assert emulator.text() == "two\n" and emulator.cursor == (0, 3)
    emulator.resize(5, 2)
    assert emulator.text() == "tw\n"
    emulator.feed(b"\r\nx")
    assert emulator.text() == "tw\nx\n"


def test_queries_are_answered_once() -> None:
    emulator = screen(b"ab\x1b[6n")
    assert emulator.take_replies() == b"\x1b[1;3R"
    assert emulator.take_replies() == b""


def test_no_output_breaks_the_emulator() -> None:
    chance = random.Random(11)
    alphabet = [
        b"\x1b",
        b"[",
        b"]",
        b"?",
        b";",
        b":",
        b"9",
        b"38",
        b"m",
        b"H",
        b"h",
        b"r",
        b"\x07",
        b"\\",
        b"P",
        b"\r\n",
        b"x",
    ]
    alphabet += [bytes([byte]) for byte in range(0x40, 0x7F)] + [b"\xff", "日".encode(), b"\x9b", b"\0"]
    emulator = screen(lines=6, columns=30)
    for _ in range(3000):
        emulator.feed(b"".join(chance.choice(alphabet) for _ in range(chance.randrange(1, 30))))
        if chance.random() < 0.02:
            emulator.resize(chance.randrange(1, 12), chance.randrange(1, 50))
        for number in range(emulator.size[0]):
            shown = "".join(run.text for run in emulator.row(number))
            assert shown.isprintable()
    emulator.feed(b"\x1b\\\x18\x1bc")
    emulator.feed(b"alive")
    assert "alive" in emulator.text()


@each_row(
    ("key", "character", "sent"),
    [
        ("a", "a", b"a"),
        ("A", "A", b"A"),
        ("enter", "\r", b"\r"),
        ("backspace", "\x7f", b"\x7f"),
        ("tab", "\t", b"\t"),
        ("escape", "\x1b", b"\x1b"),
        ("ctrl+c", "\x03", b"\x03"),
        ("ctrl+d", None, b"\x04"),
        ("up", None, b"\x1b[A"),
        ("ctrl+right", None, b"\x1b[1;5C"),
        ("shift+tab", None, b"\x1b[Z"),
        ("f1", None, b"\x1bOP"),
        ("f5", None, b"\x1b[15~"),
        ("delete", None, b"\x1b[3~"),
        ("alt+b", None, b"\x1bb"),
        ("euro_sign", "€", "€".encode()),
        ("ctrl+s", None, b"\x13"),
        ("shift", None, b""),
        ("space", " ", b" "),
        ("ctrl+q", "\x11", b"\x11"),
        ("question_mark", "?", b"?"),
    ],
)
def test_keys_are_sent_as_a_terminal_sends_them(key: str, character: str | None, sent: bytes) -> None:
    assert keystroke(key, character) == sent


def test_arrow_keys_follow_the_application_mode() -> None:
    assert keystroke("up", None, application=screen(b"\x1b[?1h").application_keys) == b"\x1bOA"
    assert not screen(b"\x1b[?1h\x1b[?1l").application_keys


def test_pasted_text_cannot_end_bracketed_paste() -> None:
    assert pasted("one\ntwo\x1b[201~", bracketed=True) == b"\x1b[200~one\rtwo[201~\x1b[201~"
    assert pasted("one\r\ntwo", bracketed=False) == b"one\rtwo"
