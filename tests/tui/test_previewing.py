"""Previews in the cockpit: the changes of a waiting command are shown, and are what an approval makes real."""

import re

import pytest
from textual.widgets import OptionList, TextArea

from tests.tui.cockpit import Cockpit, open_cockpit, toast_text
from tests.tui.edit_scenes import GARDEN, one_edit
from tests.tui.preview_scenes import (
    CHANGES,
    REPORT,
    applied,
    at_its_time_limit,
    begin_preview,
    by_bubblewrap,
    cannot_be_applied,
    change,
    end_preview,
    not_available,
    previewed,
    previewing,
    tidying,
    versions,
)
from tests.tui.scenes import Scenario
from tests.tui.test_buttons import buttons
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import FailedToStart
from whisper_tui.model.event import SessionClosed
from whisper_tui.model.preview import ChangeCounts, PreviewReport
from whisper_tui.model.state import Ended, Waiting
from whisper_tui.model.verdict import Resolved, Verdict
from whisper_tui.tui.cockpit import status_bars
from whisper_tui.tui.dialogs.edit_dialog import EditScreen
from whisper_tui.tui.dialogs.take_back_dialog import TakeBackScreen
from whisper_tui.tui.output.output_area import OutputArea

TALL = (140, 110)


async def decide(cockpit: Cockpit, key: str) -> None:
    """Press a key some time after the selection has changed."""
    await cockpit.settled()
    await cockpit.can_be_seen()
    cockpit.scenario.clock.advance(30)
    await cockpit.press(key)


async def test_a_key_previews_a_waiting_call_and_the_card_shows_what_it_changed() -> None:
    scenario, call_id = tidying()
    async with open_cockpit(scenario, size=TALL) as cockpit:
        await decide(cockpit, "s")
        await cockpit.until(lambda: "Preview  running for" in cockpit.text())
        end_preview(scenario, call_id)
        await cockpit.until(lambda: "hunk 1" in cockpit.text())
        text = cockpit.text()
    assert "3 created, 1 changed, 1 deleted, 1 with other attributes" in text
    assert "exit 0 after 0.40 s" in text
    assert "M settings.py" in text
    assert "A pages/  with 1 entry" in text
    assert "D old.txt" in text
    assert "P tidy.sh  mode 644 → 755  ! it is executable" in text
    assert "1 change outside the workspace." in text
    assert '"pages": 20' in text
    assert isinstance(scenario.supervisor.known(call_id).state, Waiting)


@pytest.mark.slow
async def test_a_renamed_file_is_one_line_and_only_its_edits_are_shown() -> None:
    lines = "".join(f"line {number}\n" for number in range(300))
    edited = lines.replace("line 150\n", "line one hundred and fifty\n")
    names = {"moved_from": f"{GARDEN}/old/a.txt", "alike": 100}
    both = {"size_before": len(lines), "size_after": len(lines)}
    changes = (
        change(0, "deletes", "old/a.txt", len(lines), moved_to=f"{GARDEN}/new/a.txt"),
        change(1, "deletes", "old/b.txt", len(lines), moved_to=f"{GARDEN}/new/b.txt"),
        change(2, "creates", "new/a.txt", **names, **both),
        change(3, "creates", "new/b.txt", moved_from=f"{GARDEN}/old/b.txt", alike=98, **both),
        change(4, "creates", "moss/", moved_from=f"{GARDEN}/lawn", alike=100, below=2),
        change(5, "creates", "moss/c.txt", **{**names, "moved_from": f"{GARDEN}/lawn/c.txt"}, **both),
    )
    report = REPORT.model_copy(update={"counts": ChangeCounts(renamed=4)})
    scenario, call_id = tidying()
    begin_preview(scenario, call_id)
    end_preview(scenario, call_id, report, changes)
    shown = versions("moves", f"{GARDEN}/new/b.txt", lines, edited)
    moved = shown.file.model_copy(update={"moved_from": f"{GARDEN}/old/b.txt"})
    scenario.supervisor.previewed_contents[call_id, 3] = shown.model_copy(update={"file": moved})
    async with open_cockpit(scenario, size=TALL) as cockpit:
        await cockpit.until(lambda: "line one hundred and fifty" in cockpit.text())
        text = cockpit.text()
        await decide(cockpit, "a")
        await cockpit.until(lambda: scenario.supervisor.known("1").decision is not None)
    assert "4 renamed" in text
    assert "R renamed old/a.txt → new/a.txt" in text
    assert "R renamed old/b.txt → new/b.txt  2.6 kB · 98% the same" in text
    assert "R renamed lawn → moss/  with 2 entries" in text
    assert "D old" not in text and "moss/c.txt" not in text
    assert "line 140" not in text and "line 200" not in text


async def test_the_key_ends_a_preview_that_runs() -> None:
    scenario = previewing()
    async with open_cockpit(scenario, size=TALL) as cockpit:
        await cockpit.until(lambda: "Preview  running for" in cockpit.text())
        await decide(cockpit, "s")
        await cockpit.until(lambda: "was ended" in toast_text(cockpit.app))
        await cockpit.until(lambda: "running for" not in cockpit.text())
    preview = scenario.supervisor.known("1").preview
    assert preview is not None
    assert preview.dropped


async def test_the_card_of_a_terminal_that_is_previewed_offers_nobody_to_type() -> None:
    scenario = Scenario.begin()
    session = scenario.supervisor.open("garden agent", str(GARDEN))
    spec = CommandSpec(command=Shell(text="python3"), cwd=str(GARDEN), tty=True)
    request = CallRequest(session_id=session.id, tool="ExecCommand", arguments={}, spec=spec)
    call_id = scenario.supervisor.ask(request, resolved=Resolved(cwd=str(GARDEN)))
    begin_preview(scenario, call_id)
    scenario.supervisor.write(call_id, b">>> ")
    async with open_cockpit(scenario, size=(120, 40)) as cockpit:
        await cockpit.sees("nobody can type into it", "s ends it", "o shows its lines")
        assert "T types into it" not in cockpit.text()


async def test_apply_approves_exactly_the_preview_that_is_on_the_screen() -> None:
    scenario = previewed()
    async with open_cockpit(scenario, size=TALL) as cockpit:
        await cockpit.until(lambda: "apply exactly these changes" in cockpit.text())
        await cockpit.until(lambda: not cockpit.screen.card.previews.asking)
        await decide(cockpit, "a")
        await cockpit.until(lambda: isinstance(scenario.supervisor.known("1").state, Ended))
        await cockpit.until(lambda: "as previewed" in toast_text(cockpit.app))
    assert scenario.supervisor.known("1").decision == Approve(preview=REPORT.digest)


async def test_it_can_be_chosen_to_run_a_command_for_real_although_there_is_a_preview() -> None:
    scenario = previewed()
    async with open_cockpit(scenario, size=TALL) as cockpit:
        await cockpit.until(lambda: "run it for real" in cockpit.text())
        await cockpit.until(lambda: not cockpit.screen.card.previews.asking)
        await decide(cockpit, "h")
        await cockpit.sees("runs it for real, whatever the preview has shown")
        await decide(cockpit, "a")
        await cockpit.until(lambda: scenario.supervisor.known("1").decision is not None)
    assert scenario.supervisor.known("1").decision == Approve()


async def test_changes_that_were_not_on_the_screen_are_applied_at_the_second_key_only() -> None:
    scenario = previewed()
    async with open_cockpit(scenario, size=(80, 24)) as cockpit:
        await cockpit.until(lambda: "not seen yet" in cockpit.text())
        await decide(cockpit, "a")
        await cockpit.until(lambda: "lines of the preview were not on the screen" in toast_text(cockpit.app))
        assert "press again to apply it anyway" in toast_text(cockpit.app)
        assert scenario.supervisor.known("1").decision is None
        await decide(cockpit, "a")
        await cockpit.until(lambda: scenario.supervisor.known("1").decision is not None)


async def test_what_changed_since_the_preview_is_named_and_prevents_the_application() -> None:
    scenario = cannot_be_applied()
    async with open_cockpit(scenario, size=TALL) as cockpit:
        await cockpit.until(lambda: "Changed since the preview" in cockpit.text())
        await cockpit.settled()
        text = cockpit.text()
        await decide(cockpit, "a")
        await cockpit.until(lambda: "Nothing was decided" in toast_text(cockpit.app))
    assert scenario.supervisor.known("1").decision is None
    assert "apply exactly these changes" not in text
    assert "It tried to reach stats.example.net:443 (3 times), over the network: refused." in text
    assert "It left a process behind, which ended with the preview: ./watch.sh garden" in text
    assert "It waited for a refused connection" in text


async def test_a_preview_that_cannot_be_made_says_why_and_cannot_be_applied() -> None:
    scenario, call_id = tidying()
    async with open_cockpit(scenario, size=TALL) as cockpit:
        await decide(cockpit, "s")
        await cockpit.until(lambda: scenario.supervisor.known(call_id).preview is not None)
        failed = FailedToStart(problem="other", subject="sh", message="The system gives it no namespaces.")
        report = PreviewReport(ending=failed, problem="the system gives it no namespaces", counts=ChangeCounts())
        end_preview(scenario, call_id, report, ())
        await cockpit.until(lambda: "It was not previewed: the system gives it no namespaces." in cockpit.text())
        assert "Apply changes" not in cockpit.text()


async def test_a_system_without_any_way_to_preview_says_what_each_of_them_lacks() -> None:
    async with open_cockpit(not_available(), size=(120, 40)) as cockpit:
        await cockpit.sees("It was not previewed: commands cannot be previewed here.", "no preview")
        await cockpit.sees("Not with namespaces and overlayfs: ", "Not with bubblewrap: it is not installed.")
        await cockpit.sees("run it for real")
        assert "preview again" not in cockpit.text()


async def test_the_outcome_and_the_differences_stand_before_what_the_command_expands_to() -> None:
    async with open_cockpit(by_bubblewrap(), size=TALL) as cockpit:
        await cockpit.sees("edit settings.py")
        text = cockpit.text()
    places = [
        text.index(words)
        for words in ("make -s pages", "Preview  3 created", "M settings.py", "edit settings.py", "Runs")
    ]
    assert places == sorted(places)


async def test_a_preview_that_was_ended_at_its_time_limit_says_so_in_a_small_terminal() -> None:
    async with open_cockpit(at_its_time_limit(), size=(80, 24)) as cockpit:
        await cockpit.sees("2 created, 1 changed, 1 deleted", "SIGKILL", "It was ended at its time limit")


async def test_a_preview_that_never_began_takes_no_room_for_output() -> None:
    async with open_cockpit(not_available(), size=(120, 40)) as cockpit:
        await cockpit.sees("It was not previewed")
        assert not cockpit.screen.query_one(OutputArea).display
    async with open_cockpit(by_bubblewrap(), size=(120, 40)) as cockpit:
        await cockpit.sees("2 files left alone")
        assert cockpit.screen.query_one(OutputArea).display


async def test_a_button_for_previews_is_there_only_while_the_machine_can_make_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(status_bars, "CALM_POLL_S", 0.1)
    scenario, call_id = tidying()
    scenario.supervisor.previews = ""
    async with open_cockpit(scenario, size=TALL) as cockpit:
        await cockpit.until(lambda: {"approve", "preview"} <= buttons(cockpit))
        scenario.supervisor.previews = "not possible (previews need Linux)"
        await cockpit.until(lambda: "preview" not in buttons(cockpit))
        assert "approve" in buttons(cockpit)
        # The key still asks for one: its answer is what the card says.
        await decide(cockpit, "s")
        await cockpit.until(lambda: scenario.supervisor.known(call_id).preview is not None)
        scenario.supervisor.previews = "with bubblewrap"
        await cockpit.until(lambda: "preview" in buttons(cockpit))


async def test_no_preview_is_offered_of_a_command_with_a_rule_that_forbids_it() -> None:
    scenario = Scenario.begin()
    spec = CommandSpec(command=Shell(text="make"), cwd=str(GARDEN))
    request = CallRequest(session_id="s1", tool="run_shell_command", arguments={"command": "make"}, spec=spec)
    verdict = Verdict(kind="ask", reason="It is asked about", rule="builds", preview="never")
    call_id = scenario.supervisor.ask(request, verdict, Resolved(program="/usr/bin/make", cwd=str(GARDEN)))
    async with open_cockpit(scenario, size=TALL) as cockpit:
        await cockpit.until(lambda: "approve" in buttons(cockpit))
        assert "preview" not in buttons(cockpit)
        await decide(cockpit, "s")
        await cockpit.until(lambda: "a rule that says that it is never previewed" in toast_text(cockpit.app))
    assert scenario.supervisor.known(call_id).preview is None


@pytest.mark.slow
async def test_no_preview_is_offered_of_an_edit() -> None:
    async with open_cockpit(one_edit(), size=TALL) as cockpit:
        await cockpit.until(lambda: "approve" in buttons(cockpit))
        assert "preview" not in buttons(cockpit)
        await decide(cockpit, "s")
        await cockpit.until(lambda: "is no command: its agent runs it itself" in toast_text(cockpit.app))


async def test_a_supervisor_that_cannot_preview_is_quoted() -> None:
    scenario, call_id = tidying()
    scenario.supervisor.preview_problem = "the system gives a process no namespaces"
    async with open_cockpit(scenario, size=TALL) as cockpit:
        await decide(cockpit, "s")
        await cockpit.until(lambda: "the system gives a process no namespaces" in toast_text(cockpit.app))
    assert scenario.supervisor.known(call_id).preview is None


async def test_the_editor_previews_the_edited_command_and_begins_with_it_the_next_time() -> None:
    scenario, call_id = tidying()
    async with open_cockpit(scenario, size=(80, 24)) as cockpit:
        await decide(cockpit, "e")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, EditScreen))
        cockpit.app.screen.query_one(TextArea).text = "./tidy.sh pages"
        await cockpit.press("ctrl+l")
        await cockpit.until(lambda: scenario.supervisor.known(call_id).preview is not None)
        preview = scenario.supervisor.known(call_id).preview
        assert preview is not None and preview.edited is not None
        assert preview.edited.command == Shell(text="./tidy.sh pages")
        await cockpit.until(lambda: "Preview  of the edited command" in cockpit.text())
        end_preview(scenario, call_id)
        await decide(cockpit, "e")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, EditScreen))
        assert cockpit.app.screen.query_one(TextArea).text == "./tidy.sh pages"
        await cockpit.press("escape")
        await cockpit.until(lambda: not isinstance(cockpit.app.screen, EditScreen))
    assert scenario.supervisor.known(call_id).decision is None


async def test_the_editor_says_why_an_edited_command_is_not_previewed() -> None:
    scenario, call_id = tidying()
    scenario.supervisor.preview_problem = "the system gives a process no namespaces"
    async with open_cockpit(scenario, size=TALL) as cockpit:
        await decide(cockpit, "e")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, EditScreen))
        await cockpit.press("ctrl+l")
        await cockpit.until(lambda: "the system gives a process no namespaces" in cockpit.text())
        assert isinstance(cockpit.app.screen, EditScreen)
        cockpit.app.screen.query_one(TextArea).text = ""
        await cockpit.press("ctrl+l")
        await cockpit.until(lambda: "There is no command." in cockpit.text())
    assert scenario.supervisor.known(call_id).preview is None


async def test_a_key_approves_a_call_so_that_it_can_be_taken_back() -> None:
    scenario, call_id = tidying()
    async with open_cockpit(scenario, size=TALL) as cockpit:
        await decide(cockpit, "h")
        await cockpit.sees("its changes are held back until it ends")
        await decide(cockpit, "a")
        await cockpit.until(lambda: scenario.supervisor.known(call_id).decision is not None)
        await cockpit.until(lambda: "can be undone after its end" in toast_text(cockpit.app))
    assert scenario.supervisor.known(call_id).decision == Approve(undoable=True)


@pytest.mark.slow
async def test_a_row_says_that_its_call_was_previewed_or_taken_back() -> None:
    scenario = previewed()
    async with open_cockpit(scenario, size=(120, 30)) as cockpit:
        await cockpit.until(lambda: re.search(r"--all +previewed", cockpit.text()))
    scenario = applied()
    async with open_cockpit(scenario, size=(120, 30)) as cockpit:
        assert "undone" not in cockpit.text()
        await decide(cockpit, "J")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, TakeBackScreen))
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: "undone" in cockpit.text())


@pytest.mark.slow
async def test_taking_back_shows_the_reverse_difference_first_and_then_all_of_it() -> None:
    scenario = applied()
    async with open_cockpit(scenario, size=TALL) as cockpit:
        await cockpit.until(lambda: "undoes them" in cockpit.text())
        await decide(cockpit, "J")
        await cockpit.until(lambda: '"pages": 20' in cockpit.text() and isinstance(cockpit.app.screen, TakeBackScreen))
        assert "Undo the changes of call 1" in cockpit.text()
        assert scenario.supervisor.known("1").undo is None
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: scenario.supervisor.known("1").undo is not None)
        await cockpit.until(lambda: "redoes them" in cockpit.text())
        undo = scenario.supervisor.known("1").undo
        assert undo is not None
        assert (undo.direction, undo.paths, undo.done) == ("undo", (), True)
        await decide(cockpit, "J")
        await cockpit.until(lambda: "Redo the changes of call 1" in cockpit.text())
        await cockpit.press("ctrl+s")
        await cockpit.until(
            lambda: (now := scenario.supervisor.known("1").undo) is not None and now.direction == "redo"
        )


def has_files(cockpit: Cockpit) -> bool:
    """Whether the dialog is there, and the keys go to its list."""
    focused = cockpit.app.screen.focused
    return isinstance(cockpit.app.screen, TakeBackScreen) and focused is not None and focused.id == "take-back-files"


@pytest.mark.slow
async def test_single_files_can_be_taken_back() -> None:
    scenario = applied()
    async with open_cockpit(scenario, size=TALL) as cockpit:
        await decide(cockpit, "J")
        await cockpit.until(lambda: has_files(cockpit))
        await cockpit.press("a", "ctrl+s")
        await cockpit.until(lambda: "Nothing is chosen" in toast_text(cockpit.app))
        await cockpit.press("down", "down", "space", "ctrl+s")
        await cockpit.until(lambda: scenario.supervisor.known("1").undo is not None)
        await cockpit.sees("partly undone")
        await cockpit.until(lambda: "The chosen changes of call 1 are undone" in toast_text(cockpit.app))
        await cockpit.until(lambda: not isinstance(cockpit.app.screen, TakeBackScreen))
        await decide(cockpit, "J")
        await cockpit.until(lambda: bool(cockpit.app.screen.query("#take-back-files")))
        files = cockpit.app.screen.query_one("#take-back-files", OptionList)
        rows = [str(files.get_option_at_index(at).prompt) for at in range(files.option_count)]
    undo = scenario.supervisor.known("1").undo
    assert undo is not None
    assert undo.paths == (CHANGES[3].path,)
    assert len(rows) == 4 and not any("old.txt" in row for row in rows)


@pytest.mark.slow
async def test_what_changed_since_is_left_out_and_the_rest_is_taken_back_with_one_key() -> None:
    scenario = applied()
    page = scenario.supervisor.preview_pages["1"]
    other = CHANGES[3].path
    scenario.supervisor.preview_pages["1"] = page.model_copy(update={"conflicts": (other,)})
    async with open_cockpit(scenario, size=TALL) as cockpit:
        await decide(cockpit, "J")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, TakeBackScreen))
        await cockpit.sees("Changed since, and left out", "changed since")
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: scenario.supervisor.known("1").undo is not None)
    undo = scenario.supervisor.known("1").undo
    assert undo is not None and undo.paths and other not in undo.paths


@pytest.mark.slow
async def test_the_dialog_says_of_each_change_what_takes_it_back() -> None:
    """Its letter, its modes and the entries of a directory, like the difference beside it."""
    async with open_cockpit(applied(), size=TALL) as cockpit:
        await decide(cockpit, "J")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, TakeBackScreen))
        await cockpit.sees("M settings.py", "D pages/ with 1 entry", "A old.txt", "P tidy.sh")
        await cockpit.press("down")
        await cockpit.sees("D pages/moss.md")
        await cockpit.press("down", "down")
        await cockpit.sees("mode 755 → 644")
        assert "executable" not in cockpit.text()


@pytest.mark.slow
async def test_a_conflict_is_named_before_what_is_not_on_the_screen() -> None:
    scenario = cannot_be_applied()
    async with open_cockpit(scenario, size=(80, 24)) as cockpit:
        await cockpit.until(lambda: bool(cockpit.screen.card.previews.conflicts(scenario.supervisor.known("1"))))
        await decide(cockpit, "a")
        await cockpit.until(lambda: "settings.py changed since the preview" in toast_text(cockpit.app))
        assert "not on the screen" not in toast_text(cockpit.app)
    assert scenario.supervisor.known("1").decision is None


@pytest.mark.slow
async def test_the_agent_is_told_unless_a_key_says_no_or_it_is_gone() -> None:
    scenario = applied()
    async with open_cockpit(scenario, size=TALL) as cockpit:
        await decide(cockpit, "J")
        await cockpit.sees("The agent is told with its next call.")
        await cockpit.press("t")
        await cockpit.sees("The agent is not told.")
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: "Its agent is not told." in toast_text(cockpit.app))
        await decide(cockpit, "J")
        await cockpit.sees("The agent is told with its next call.")
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: "Its agent is told." in toast_text(cockpit.app))
        session = scenario.supervisor.known("1").call.session_id
        scenario.supervisor.happen(SessionClosed(at=scenario.clock(), session_id=session, why="it ended"))
        await cockpit.until(lambda: cockpit.screen.board.sessions[session].closed_at is not None)
        await decide(cockpit, "J")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, TakeBackScreen))
        assert "The agent" not in cockpit.text()
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: len(scenario.supervisor.told) == 3)
    assert scenario.supervisor.told == [("1", False), ("1", True), ("1", False)]


async def test_leaving_the_dialog_takes_nothing_back() -> None:
    scenario = applied()
    async with open_cockpit(scenario, size=TALL) as cockpit:
        await decide(cockpit, "J")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, TakeBackScreen))
        await cockpit.press("escape")
        await cockpit.until(lambda: not isinstance(cockpit.app.screen, TakeBackScreen))
    assert scenario.supervisor.known("1").undo is None


async def test_a_refused_undo_is_said_with_the_paths() -> None:
    scenario = applied()
    page = scenario.supervisor.preview_pages["1"]
    async with open_cockpit(scenario, size=TALL) as cockpit:
        await decide(cockpit, "J")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, TakeBackScreen))
        scenario.supervisor.preview_pages["1"] = page.model_copy(update={"conflicts": (CHANGES[0].path,)})
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: CHANGES[0].path in toast_text(cockpit.app))
    assert scenario.supervisor.known("1").undo is None


async def test_the_output_of_a_preview_is_shown_while_the_call_waits() -> None:
    async with open_cockpit(previewed(), size=TALL) as cockpit:
        await cockpit.until(lambda: "nobody uses it" in cockpit.text())


@pytest.mark.slow
async def test_the_history_shows_what_was_previewed_and_taken_back_and_takes_it_back() -> None:
    scenario = applied()
    async with open_cockpit(scenario, size=TALL) as cockpit:
        await cockpit.press("H")
        await cockpit.sees("Previewed   at", "by me in the cockpit: exit 0.", "applied from its preview")
        await cockpit.sees("M settings.py", '"pages": 20', "J undoes them")
        await cockpit.press("J")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, TakeBackScreen))
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: (undo := scenario.supervisor.known("1").undo) is not None and undo.done)
        await cockpit.sees("Since then", "undone at", "redoes them")
        await cockpit.press("J")
        await cockpit.sees("Redo the changes of call 1")
        await cockpit.press("ctrl+s")
        await cockpit.sees("redone at", "undone at")
    assert scenario.supervisor.known("1").earlier_undos


@pytest.mark.slow
async def test_the_history_does_not_take_back_what_was_not_kept() -> None:
    scenario = previewed()
    scenario.approve("1")
    scenario.end("1")
    async with open_cockpit(scenario, size=TALL) as cockpit:
        await cockpit.press("H")
        await cockpit.sees("Previewed", "3 created")
        assert "applied" not in cockpit.text()
        await cockpit.press("J")
        await cockpit.sees("Previewed")
        assert not isinstance(cockpit.app.screen, TakeBackScreen)
