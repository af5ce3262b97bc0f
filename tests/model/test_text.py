"""Text from agents: nothing is hidden, nothing commands a terminal."""

import sys

import pytest

from whisper_tui.model.text import BIDI, HIDDEN, is_hidden, visible


@pytest.mark.parametrize(
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
    ],
)
def test_what_cannot_be_seen_is_made_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_lines_can_be_kept_and_nothing_else_with_them() -> None:
    assert visible("one\ntwo\tthree\r\x1b", keep_lines=True) == "one\ntwo    three␍␛"


def test_what_is_shown_holds_nothing_that_is_hidden() -> None:
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    assert not any(is_hidden(character) for character in visible(everything))


def test_every_character_that_reorders_its_neighbours_counts_as_hidden() -> None:
    assert BIDI <= HIDDEN


def test_markup_is_only_text() -> None:
    assert visible("[bold red]x[/] [@click=app.quit]y[/]") == "[bold red]x[/] [@click=app.quit]y[/]"
