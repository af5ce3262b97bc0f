"""The history: any call ever is found, shown in full, run again, counted and exported."""

import asyncio
import json

import pytest
from textual.widgets import Input

from tests.tui.cockpit import open_cockpit
from tests.tui.past import a_month, ask, begin, history, ids
from tests.tui.preview_scenes import undone
from whisper_tui.model.api import HistoryQuery
from whisper_tui.model.errors import Unavailable
from whisper_tui.model.event import SessionClosed
from whisper_tui.model.state import Waiting
from whisper_tui.present.ending_text import AgentAnswer, AnswerPart
from whisper_tui.tui.cockpit_screen import CockpitScreen
from whisper_tui.tui.paragraphs_view import ParagraphsView
from whisper_tui.tui.screens.history_screen import HISTORY, HistoryScreen
from whisper_tui.tui.screens.past_calls import PastList


async def test_every_command_of_the_table_is_done_and_no_other():
    async with open_cockpit(a_month()) as cockpit, history(cockpit) as screen:
        assert set(screen.does) == {command.id for command in HISTORY}
        assert len({key for command in HISTORY for key in command.key.split(",")}) == sum(
            len(command.key.split(",")) for command in HISTORY
        )


@pytest.mark.slow
async def test_capital_h_lists_every_call_newest_first_and_shows_the_selected_one():
    async with open_cockpit(a_month()) as cockpit, history(cockpit) as screen:
        assert ids(screen) == ["7", "6", "5", "4", "3", "2", "1"]
        await cockpit.sees("Call 7", "git push", "End of the history.", "7 calls")
        await cockpit.press("down")
        await cockpit.sees("Call 6", "./count.sh", "step 5 of 5")
        await cockpit.press("end")
        await cockpit.sees("Call 1", "make old")
        await cockpit.press("home")
        await cockpit.sees("Call 7")
        await cockpit.press("pagedown", "pageup", "j", "k")
        assert screen.query_one(PastList).row == 0


async def test_a_past_call_shows_what_its_agent_was_told_or_why_that_is_not_known():
    async def answer_of(_supervision, record):
        if record.id == "5":
            raise Unavailable("the output cannot be read")
        return AgentAnswer((AnswerPart("text", f"answer {record.id}"),))

    async with open_cockpit(a_month(), size=(120, 70)) as cockpit:
        cockpit.app.answer_of = answer_of
        async with history(cockpit):
            await cockpit.press("down")
            await cockpit.sees("What the agent was told", "answer 6")
            await cockpit.press("down")
            await cockpit.sees("The answer cannot be reproduced: the output cannot be read")


async def test_the_session_of_an_old_call_is_named_though_the_board_has_forgotten_it():
    async with open_cockpit(a_month()) as cockpit:
        gone = cockpit.record("7").call.session_id
        name = cockpit.screen.board.sessions.pop(gone).name
        async with history(cockpit) as screen:
            await cockpit.until(lambda: screen.record is not None and screen.record.id == "7")
            assert cockpit.screen.board.sessions[gone].name == name
            await cockpit.sees(name)


async def test_a_call_is_selected_with_the_mouse():
    async with open_cockpit(a_month()) as cockpit, history(cockpit) as screen:
        await cockpit.click("#past", offset=(5, 2))
        await cockpit.until(lambda: screen.record is not None and screen.record.id == "5")
        await cockpit.sees("Denied by me in the cockpit: keep it")


async def test_r_reruns_the_call_in_its_session():
    async with open_cockpit(a_month()) as cockpit, history(cockpit):
        await cockpit.press("down", "r")
        await cockpit.sees("Call 8 requests the same command")
        record = cockpit.record("8")
        assert isinstance(record.state, Waiting)
        assert record.call.spec == cockpit.record("6").call.spec
        assert record.call.session_id == "s1"
        assert record.call.description == "Run ./count.sh"


async def test_r_says_why_a_call_of_a_closed_session_cannot_be_run_again():
    scenario = a_month()
    scenario.supervisor.happen(SessionClosed(at=scenario.clock(), session_id="s1", why="the agent left"))
    async with open_cockpit(scenario) as cockpit, history(cockpit):
        await cockpit.press("down", "r")
        await cockpit.sees("Its session is closed")
        assert len(scenario.supervisor.board.calls) == 7


async def test_i_shows_the_statistics_of_the_session():
    async with open_cockpit(a_month()) as cockpit, history(cockpit):
        await cockpit.press("down", "i")
        await cockpit.sees("Statistics of session s1 site builder", "Median time to decide")
        lines = {line.strip(" │")[:24].strip(): line for line in cockpit.text().splitlines()}
        assert "5" in lines["Calls"] and "3" in lines["A human was asked"]
        assert "1" in lines["Allowed by approvals"] and "3.0 s" in lines["Median time to decide"]
        assert "3.0 s" in lines["Saved by approvals"]
        await cockpit.press("escape")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, HistoryScreen))


@pytest.mark.slow
async def test_capital_e_exports_the_selection_to_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with open_cockpit(a_month()) as cockpit, history(cockpit):
        await cockpit.press("down", "E")
        await cockpit.sees("Call 6 as JSON", "asciicast 3", "A report of the session s1 site builder")
        await cockpit.press("down", "down", "enter")
        await cockpit.sees("Wrote ")
        header, *events = map(json.loads, (tmp_path / "call-6.cast").read_text().splitlines())
        assert header["version"] == 2 and events[0] == [10.0, "o", "\x1b[32mstep 1\x1b[0m of 5\r\n"]


@pytest.mark.slow
async def test_an_export_into_a_missing_directory_reports_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with open_cockpit(a_month()) as cockpit:
        await cockpit.press("E", "tab")
        await cockpit.sees("Export")
        field = cockpit.app.screen.query_one(Input)
        assert field.has_focus
        field.value = "none/calls.jsonl"
        await cockpit.press("enter")
        await cockpit.until(lambda: any("cannot be written" in toast.message for toast in cockpit.app._notifications))
        (told,) = (toast.message for toast in cockpit.app._notifications)
        assert told.startswith(f"{tmp_path}/none/calls.jsonl cannot be written: No such file or directory")
        assert told.endswith("Name another file.")
        assert not list(tmp_path.iterdir())


@pytest.mark.slow
async def test_escape_h_and_q_go_back_to_the_cockpit():
    async with open_cockpit(a_month()) as cockpit:
        for key in ("escape", "H", "q"):
            async with history(cockpit):
                await cockpit.press(key)
                await cockpit.until(lambda: isinstance(cockpit.app.screen, CockpitScreen))


@pytest.mark.slow
async def test_the_palette_and_the_help_are_those_of_the_history():
    async with open_cockpit(a_month(), size=(120, 60)) as cockpit, history(cockpit) as screen:
        await cockpit.press("question_mark")
        await cockpit.sees("Here: the history", "Show why it was allowed, asked or denied.")
        await cockpit.press(*"recorded")
        await cockpit.sees("Play the recorded output at its original speed, or pause.")
        await cockpit.press("escape")
        await cockpit.until(lambda: cockpit.app.screen is screen)
        await cockpit.press("ctrl+p")
        await cockpit.sees("Run again  (r)")
        await cockpit.press(*"decided", "enter")
        await cockpit.sees("w decided by: a human")


async def test_text_of_agents_is_shown_as_text():
    scenario = begin()
    ask(scenario, "[red]\x1b[2J", "[/]")
    async with open_cockpit(scenario) as cockpit, history(cockpit):
        await cockpit.sees("[red]␛[2J")


async def test_a_failed_query_is_reported_in_the_list():
    async with open_cockpit(a_month()) as cockpit, history(cockpit) as screen:

        async def fails(query: HistoryQuery):
            raise Unavailable("the journal is gone")

        cockpit.scenario.supervisor.history = fails
        await cockpit.press("n")
        await cockpit.sees("The journal is gone.")
        assert not screen._loading


async def test_a_search_that_ends_while_the_screen_closes_is_no_error():
    async with open_cockpit(a_month()) as cockpit, history(cockpit) as screen:
        await cockpit.until(lambda: not screen._loading)
        answer = asyncio.Event()
        supervisor = cockpit.scenario.supervisor
        at_once = supervisor.history

        async def late(query: HistoryQuery):
            await answer.wait()
            return await at_once(query)

        supervisor.history = late
        await cockpit.press("n")
        await cockpit.until(lambda: screen._loading)
        # A screen that closes removes its widgets one after the other before it cancels what it waits for.
        await screen.query_one("#past-status").remove()
        answer.set()
        await cockpit.until(lambda: all(worker.is_finished for worker in cockpit.app.workers if worker.node is screen))
        await cockpit.press("escape")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, CockpitScreen))


@pytest.mark.slow
async def test_differences_are_laid_out_for_the_width_that_there_is():
    async with open_cockpit(undone(), size=(200, 60)) as cockpit, history(cockpit) as screen:
        view = screen.query_one("#past-detail", ParagraphsView)

        def widths() -> set[int]:
            return {paragraph.columns for paragraph in view._paragraphs if paragraph.columns}

        await cockpit.until(lambda: widths() == {view.columns})
        wide = view.columns
        await cockpit.pilot.resize_terminal(120, 40)
        await cockpit.until(lambda: view.columns != wide and widths() == {view.columns})
