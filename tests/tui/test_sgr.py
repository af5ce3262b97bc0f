"""Reading the colours of terminal output, and dropping everything else that a terminal would obey."""

from tests.rows import each_row
from whisper_tui.tui.output.ansi import DIRECT, PLAIN, Pen, Run, pen_after, read_line
from whisper_tui.tui.output.painter import Pens
from whisper_tui.tui.theme import PLACES, contrast, load_themes


def text_of(line: bytes) -> str:
    return "".join(run.text for run in read_line(line, PLAIN)[0])


def test_plain_text_is_one_run() -> None:
    assert read_line(b"hello world\r\n", PLAIN) == ((Run("hello world", PLAIN),), PLAIN)


def test_colours_and_attributes_are_kept() -> None:
    runs, pen = read_line(b"\x1b[1;31mred\x1b[0m \x1b[3;4;7;9;2mall\x1b[m", PLAIN)
    assert runs == (
        Run("red", Pen(foreground=1, bold=True)),
        Run(" ", PLAIN),
        Run("all", Pen(dim=True, italic=True, underline=True, reverse=True, strike=True)),
    )
    assert pen == PLAIN


@each_row(
    ("sequence", "pen"),
    [
        (b"38;5;208", Pen(foreground=208)),
        (b"48;5;17", Pen(background=17)),
        (b"38;2;1;2;3", Pen(foreground=DIRECT + 0x010203)),
        (b"48;2;255;0;16", Pen(background=DIRECT + 0xFF0010)),
        (b"97;104", Pen(foreground=15, background=12)),
        (b"31;39", PLAIN),
        (b"38;5", PLAIN),
        (b"38;2;1", PLAIN),
        (b"38;5;999", PLAIN),
        (b"1;22", PLAIN),
        (b"99999999999999999999", PLAIN),
    ],
)
def test_each_kind_of_colour_sequence_sets_the_pen(sequence: bytes, pen: Pen) -> None:
    assert read_line(b"\x1b[" + sequence + b"mx", PLAIN)[0] == (Run("x", pen),)


def test_a_colour_continues_in_the_next_line() -> None:
    _, pen = read_line(b"\x1b[32mgreen\n", PLAIN)
    assert read_line(b"still", pen)[0] == (Run("still", Pen(foreground=2)),)
    assert pen_after(b"\x1b[31mred\x1b[0m\n\x1b[32mgreen\n") == Pen(foreground=2)


@each_row(
    "sequence",
    [
        b"\x1b[2J",
        b"\x1b[10;10H",
        b"\x1b[?1049h",
        b"\x1b]0;title\x07",
        b"\x1b]52;c;aGVsbG8=\x1b\\",
        b"\x1b]8;;http://x\x1b\\",
        b"\x1bPq#0\x1b\\",
        b"\x1b_hidden\x1b\\",
        b"\x1b(B",
        b"\x1bc",
        b"\x1b=",
        b"\x1b[6n",
        b"\x1b[>0c",
    ],
)
def test_every_other_sequence_is_dropped(sequence: bytes) -> None:
    assert text_of(b"a" + sequence + b"b") == "ab"


def test_an_unfinished_sequence_is_shown_and_hides_nothing() -> None:
    assert text_of(b"\x1b]0;rm -rf / is hidden") == "␛]0;rm -rf / is hidden"


def test_control_and_direction_characters_are_shown() -> None:
    assert text_of("a\x07\u202eb\u200b".encode()) == "a␇⟨U+202E⟩b⟨U+200B⟩"
    assert text_of(b"\xc2\x9b31m") == "⟨U+009B⟩31m"


def test_invalid_bytes_are_replaced() -> None:
    assert text_of(b"\xff\xfe\x00ok") == "\ufffd\ufffd␀ok"


def test_tabs_stop_at_multiples_of_eight() -> None:
    assert text_of(b"a\tb") == "a       b"
    assert text_of("日\tb".encode()) == "日      b"


@each_row(
    ("line", "text"),
    [
        (b"10 %\r20 %\r30 %", "30 %"),
        (b"long text\rab", "abng text"),
        (b"long text\r\x1b[Kab", "ab"),
        (b"long text\x1b[2K\rab", "ab"),
        (b"long text\x1b[5G\x1b[1K", "     text"),
        (b"abc\b\bX", "aXc"),
        (b"done\r\n", "done"),
        (b"abc\x1b[1GX", "Xbc"),
        (b"\x1b[Gabc", "abc"),
        ("日本\rx".encode(), "x 本"),
        (b"a\r\tb", "a       b"),
    ],
)
def test_a_line_that_goes_back_is_drawn_as_the_terminal_leaves_it(line: bytes, text: str) -> None:
    assert text_of(line) == text


def test_overwritten_text_keeps_the_colour_of_what_is_seen() -> None:
    runs, _ = read_line(b"\x1b[31mredred\r\x1b[32mgr", PLAIN)
    assert runs == (Run("gr", Pen(foreground=2)), Run("dred", Pen(foreground=1)))


def test_a_very_far_column_costs_nothing() -> None:
    assert len(text_of(b"\x1b[999999999Gx")) == 1


def test_text_on_its_own_background_is_readable() -> None:
    for theme in load_themes(PLACES).good.values():
        pens, palette = Pens(theme.terminal), theme.terminal
        for number, ground in enumerate(palette):
            style = pens._make_style(PLAIN._replace(background=number))
            assert style.color is not None
            assert contrast(style.color.get_truecolor().hex, ground) >= 4.5
            same = pens._make_style(PLAIN._replace(foreground=number, background=number))
            assert same.color is not None and contrast(same.color.get_truecolor().hex, ground) >= 4.5
