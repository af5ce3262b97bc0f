"""Sessions are told apart: each has a number in a colour of its own, wherever it is named."""

import itertools

from tests.tui.cockpit import open_cockpit
from tests.tui.scenes import ROOT, Scenario, crowd
from whisper_tui.present.session_text import COLOURS, session_line, session_mark, session_words
from whisper_tui.tui.screens.past_calls import PastList


def test_the_number_of_a_session_has_a_colour_of_its_own() -> None:
    marks = [session_mark(f"s{number}") for number in range(1, 8)]
    assert [mark.text for mark in marks] == ["s1", "s2", "s3", "s4", "s5", "s6", "s7"]
    assert len({mark.role for mark in marks[: len(COLOURS)]}) == len(COLOURS)
    assert all(one.role != following.role for one, following in itertools.pairwise(marks))
    assert session_mark("gpu1:s3") == marks[2]
    assert session_mark("another").role == "muted"


def test_a_session_is_named_by_its_number_and_its_name() -> None:
    session = Scenario.begin().supervisor.open("shop\x1b[31m (claude-code)", ROOT)
    assert session_words(session, "s3") == "s3 shop␛[31m (claude-code)"
    assert "".join(span.text for span in session_line(session, "s3")) == session_words(session, "s3")
    assert session_words(None, "gpu1:s3") == "s3"
    assert session_line(None, "s3") == (session_mark("s3"),)


async def test_every_row_the_card_and_the_filter_know_the_number() -> None:
    async with open_cockpit(crowd(), size=(170, 48)) as cockpit:
        await cockpit.sees("◆ s1  git add", "◆ s2  git push origin release", "◆ s3  curl", " s1 site builder")
        await cockpit.press("ctrl+g")
        await cockpit.sees("┌ s1 site builder", "┌ s3 link checker")
        await cockpit.press("slash", "s", "3", "enter")
        await cockpit.until(lambda: cockpit.screen.roster.count("waiting") == 3)
        await cockpit.press("H")
        await cockpit.until(lambda: cockpit.app.screen.query(PastList))
        await cockpit.sees(" s3  sed -i")


async def test_one_session_alone_needs_no_number_in_the_list() -> None:
    scenario = Scenario.begin()
    scenario.supervisor.board.sessions.pop("s2")
    scenario.supervisor.events = [event for event in scenario.supervisor.events if "s2" not in str(event)]
    scenario.ask("build")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.sees("▌◆ ./build.sh")
