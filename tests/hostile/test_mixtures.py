"""Texts put together at random keep their columns and hide nothing, however they are cut and broken."""

from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcwidth

from tests.fuzz.profile import fuzzed
from tests.hostile.texts import TEXTS
from whisper_tui.cli.output_format import cell
from whisper_tui.export.document import in_code
from whisper_tui.model.text import is_hidden, visible
from whisper_tui.notify.delivery import one_safe_line
from whisper_tui.present.spans import Line, Paragraph, said
from whisper_tui.tui.lines import fitted, width_of, wrap
from whisper_tui.tui.output.ansi import PLAIN, read_line
from whisper_tui.tui.output.emulator import Emulator

characters = st.characters(exclude_categories=()) | st.sampled_from("".join(TEXTS.values()))
texts = st.lists(st.sampled_from([*TEXTS.values()]) | st.text(characters, max_size=12), max_size=4).map("".join)
COLUMNS = 40


def joined(line: Line) -> str:
    return "".join(span.text for span in line)


def seen(text: str, *, printed: bool = False) -> bool:
    return not any(is_hidden(character, printed=printed) for character in text)


@fuzzed(100)
@given(texts)
def test_text_on_one_line_has_no_hidden_characters(text: str) -> None:
    for shown in (visible(text), joined(said(text)), in_code(text), one_safe_line(text), cell(visible(text), COLUMNS)):
        assert seen(shown)
    assert joined(said(text)) == visible(text)


@fuzzed(100)
@given(texts, st.booleans())
def test_rows_are_no_wider_than_they_may_be_and_lose_nothing(text: str, at_words: bool) -> None:
    rows = wrap(Paragraph(said(text), at_words=at_words), COLUMNS)
    assert "".join(map(joined, rows)) == visible(text)
    assert all(sum(map(wcwidth, joined(row))) <= COLUMNS for row in rows)
    assert sum(map(wcwidth, joined(fitted(said(text), COLUMNS)))) == COLUMNS == width_of(fitted(said(text), COLUMNS))


@fuzzed(100)
@given(texts)
def test_output_is_shown_without_anything_that_is_obeyed(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    runs, _ = read_line(data, PLAIN)
    assert seen("".join(run.text for run in runs), printed=True)


@fuzzed(50)
@given(texts)
def test_the_picture_of_a_terminal_keeps_its_columns(text: str) -> None:
    emulator = Emulator(4, COLUMNS)
    emulator.feed(text.encode("utf-8", "surrogatepass"))
    for number in range(4):
        row = "".join(run.text for run in emulator.row(number))
        assert seen(row, printed=True)
        assert sum(map(wcwidth, row)) == COLUMNS
