"""A million of anything is shown by its ends, at once, in little room."""

import pytest

from tests.fuzz.profile import LONG
from tests.hostile.adversarial import Adversary, cockpit_of
from tests.hostile.screen import check, missing, read_through
from tests.hostile.texts import HUGE, each_of
from tests.rows import each_row
from tests.tui.scenes import Scenario
from whisper_tui.model.call import Argv, Command, Shell
from whisper_tui.present.call_text import describe
from whisper_tui.present.command_text import MOST_CHARACTERS, MOST_LINES, head_and_tail
from whisper_tui.present.spans import Line
from whisper_tui.tui.cockpit.call_row import row_line
from whisper_tui.tui.lines import wrap
from whisper_tui.tui.paragraphs_view import ParagraphsView

MOST_SPANS = 120_000
"""Pieces of text that a call is drawn of at most, at ten fields or so of a million characters each."""


def drawn(scenario: Scenario, call_id: str) -> list[Line]:
    board = scenario.supervisor.board
    record, session = board.calls[call_id], board.sessions["s1"]
    rows = [row_line(record, session, part, 100, scenario.clock(), whole=False) for part in (0, 1)]
    return rows + [row for paragraph in describe(record, session, scenario.clock()) for row in wrap(paragraph, 100)]


@pytest.mark.slow
@each_of(HUGE)
def test_a_call_with_a_million_of_everything_is_drawn_in_bounded_pieces(text: str, adversary: Adversary) -> None:
    rows = drawn(adversary.scenario, adversary.ask(Argv(program="ls", args=(text,))))
    assert sum(map(len, rows)) < MOST_SPANS
    assert any("END" in span.text for row in rows for span in row)


@each_of(HUGE)
@each_row("argv", [False, True])
def test_the_end_of_a_command_is_shown_however_long_it_is(text: str, argv: bool) -> None:
    adversary = Adversary("x")
    command: Command = Argv(program="ls", args=(text,)) if argv else Shell(text=text)
    shown = ["".join(span.text for span in row) for row in drawn(adversary.scenario, adversary.ask(command))]
    assert missing(shown, ["END"]) == []
    assert any("characters not shown" in row for row in shown)


def test_both_ends_are_parts_of_the_text_and_do_not_overlap() -> None:
    for text in (
        "x" * (MOST_CHARACTERS + 1),
        "\n" * MOST_LINES,
        "a\n" * MOST_CHARACTERS,
        "x" * MOST_CHARACTERS + "\ny",
    ):
        head, tail = head_and_tail(text)
        assert text.startswith(head.text)
        assert text[tail.start :] == tail.text
        assert head.start == 0
        assert len(head.text) <= tail.start


@pytest.mark.slow
async def test_the_cockpit_shows_and_scrolls_a_call_of_a_million_characters() -> None:
    adversary = Adversary(HUGE["a million lines"] if LONG else "y\n" * 2000 + "END")
    adversary.talk()
    call_id = adversary.ask(Shell(text="y\n" * 500_000 + "END"))
    async with cockpit_of(adversary, (120, 40)) as cockpit:
        await cockpit.select(call_id)
        check(cockpit)
        view = cockpit.screen.query_one("#call-detail", ParagraphsView)
        if LONG:
            assert missing(await read_through(cockpit, view), ["END"]) == []
        view.scroll_end(animate=False, immediate=True)
        await cockpit.pilot.pause()
        check(cockpit)
        await cockpit.press("e")
        await cockpit.sees("too long to edit here")
        check(cockpit)
