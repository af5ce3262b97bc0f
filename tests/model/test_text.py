"""Text from agents: nothing is hidden, nothing commands a terminal."""

import sys

from rich.cells import cell_len
from wcwidth import wcwidth

from tests.rows import each_row
from whisper_tui.model.text import BIDI, BLANKS, HIDDEN, MOST_MARKS, is_hidden, pieces, visible, without_hidden

ACUTE = "\u0301"


@each_row(
    ("text", "shown"),
    [
        ("git status", "git status"),
        ("naïve 日本 ⏳", "naïve 日本 ⏳"),
        ("a\x1b[31mb", "a␛[31mb"),
        ("a\x00b\x7f", "a␀b␡"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("a\u200bb", "a⟨U+200B⟩b"),
        ("a\u009bb", "a⟨U+009B⟩b"),
        ("a\u00adb", "a⟨U+00AD⟩b"),
        ("\U000e0041", "⟨U+E0041⟩"),
        ("\ud800", "⟨U+D800⟩"),
        ("one\ntwo\tthree\r", "one␊two␉three␍"),
        ("a\u00a0b\u2800c\u3000", "a⟨U+00A0⟩b⟨U+2800⟩c⟨U+3000⟩"),
        ("r\u0336m\u20dd", "r⟨U+0336⟩m⟨U+20DD⟩"),
        ("\U0001f1e9\U0001f44d\U0001f3fd", "⟨U+1F1E9⟩👍⟨U+1F3FD⟩"),
        ("\ue0b0\U0010ffff", "⟨U+E0B0⟩⟨U+10FFFF⟩"),
    ],
)
def test_invisible_characters_are_made_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_lines_can_be_kept_and_nothing_else_with_them() -> None:
    assert visible("one\ntwo\tthree\r\x1b", keep_lines=True) == "one\ntwo    three␍␛"


def test_visible_text_contains_no_hidden_characters() -> None:
    everything = "".join(map(chr, (*range(0x20000), *range(0xE0000, 0xE0200), sys.maxunicode)))
    assert not any(map(is_hidden, set(visible(everything))))


def test_every_character_that_reorders_its_neighbours_counts_as_hidden() -> None:
    assert BIDI <= HIDDEN


def test_markup_is_only_text() -> None:
    assert visible("[bold red]x[/] [@click=app.quit]y[/]") == "[bold red]x[/] [@click=app.quit]y[/]"


def test_marks_stay_on_a_letter_as_long_as_they_are_few() -> None:
    assert visible("e" + ACUTE * MOST_MARKS + "x") == "e" + ACUTE * MOST_MARKS + "x"
    assert visible("e" + ACUTE * (MOST_MARKS + 2) + "x") == "e" + ACUTE * MOST_MARKS + "⟨U+0301⟩⟨U+0301⟩x"
    assert visible("한글ที่") == "한글ที่"


@each_row("before", ["", "\u200b", "\n"])
def test_a_combining_mark_without_a_letter_is_shown(before: str) -> None:
    assert visible(before + ACUTE + "x").endswith("⟨U+0301⟩x")


def test_blanks_of_other_widths_and_icons_have_their_place_in_output() -> None:
    assert visible("a\u3000\u2800\xa0\ue0b0\u202e", printed=True) == "a\u3000\u2800\xa0\ue0b0⟨U+202E⟩"


def test_only_real_spaces_count_as_spaces() -> None:
    assert all(is_hidden(chr(code)) and not is_hidden(chr(code), printed=True) for code in BLANKS)


def test_pieces_tell_what_is_seen_from_what_is_shown() -> None:
    text = f"\x00é\u202e\u200bx{ACUTE * 5}"
    found = list(pieces(text))
    assert "".join(piece.text for piece in found) == visible(text)
    assert [piece.hidden for piece in found] == [True, False, True, False, True]
    assert without_hidden(text) == "".join(piece.text for piece in found if not piece.hidden)


def test_terminals_and_the_cockpit_agree_about_the_columns_of_what_is_shown() -> None:
    shown = (chr(code) for code in range(0x20000) if not is_hidden(chr(code)))
    assert [ascii(character) for character in shown if cell_len(character) != wcwidth(character)] == []
