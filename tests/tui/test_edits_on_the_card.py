"""Edits of files in the cockpit: their difference, the editor of the result, the keys of a session, taking back."""

from pathlib import Path

import pytest
from textual.widgets import TextArea

from tests.tui.cockpit import cockpit
from tests.tui.scenes import ME, Play
from whisper_tui.model.call import CallRequest, CommandSpec, FileEdits
from whisper_tui.model.decision import Approve
from whisper_tui.model.edits import FileChange, ReplaceText, WriteFile
from whisper_tui.model.ending import HandedOver
from whisper_tui.model.event import Decided, Finished
from whisper_tui.tui.commands.undo_approval import NO_UNDO


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "app.py"
    path.write_text("".join(f"line {number}\n" for number in range(1, 41)))
    return path


def editing(root: Path, *changes: FileChange, takes_result: bool = True) -> Play:
    """An agent asks for an edit in a workspace of its own."""
    play = Play.begin()
    session = play.stage.open("editor agent", str(root), "claude-code", "2.1.330")
    edits = FileEdits(tool="Edit", changes=changes, takes_result=takes_result)
    spec = CommandSpec(command=edits, cwd=str(root))
    play.stage.ask(CallRequest(session_id=session.id, tool="Edit", arguments={}, spec=spec, ticket="t", by_agent=True))
    return play


async def test_the_card_of_an_edit_shows_its_difference(file: Path) -> None:
    play = editing(file.parent, ReplaceText(path=str(file), old="line 20\n", new="line twenty\n"))
    async with cockpit(play) as seat:
        await seat.sees("edit app.py +1", "⋯ 16 lines", "− line 20", "+ line twenty")


async def test_a_file_that_changes_while_the_edit_waits_is_told(file: Path) -> None:
    play = editing(file.parent, ReplaceText(path=str(file), old="line 20\n", new="x\n"))
    file.write_text(file.read_text() + "of somebody else\n")
    async with cockpit(play) as seat:
        await seat.sees("The file has changed since the edit was judged")


@pytest.mark.slow
async def test_the_result_is_edited_and_line_ends_of_windows_stay(file: Path) -> None:
    file.write_bytes(b"one\r\ntwo\r\n")
    play = editing(file.parent, ReplaceText(path=str(file), old="two", new="2"))
    async with cockpit(play, undo=NO_UNDO) as seat:
        await seat.select("1")
        await seat.press("e")
        await seat.sees("Content of")
        area = seat.app.screen.query_one("#text", TextArea)
        assert area.text.splitlines() == ["one", "2"]
        area.text = "one\nzwei\n"
        await seat.press("ctrl+s")
        call_id = seat.shown.id
        await seat.until(lambda: seat.record(call_id).decision is not None)
        decision = seat.record(call_id).decision
        assert isinstance(decision, Approve) and decision.edited is not None
        assert isinstance(decision.edited.command, FileEdits)
        assert decision.edited.command.changes == (WriteFile(path=str(file), content="one\r\nzwei\r\n"),)


async def test_before_typing_it_is_said_that_an_agent_takes_no_other_result(file: Path) -> None:
    play = editing(file.parent, WriteFile(path=str(file), content="x"), takes_result=False)
    async with cockpit(play) as seat:
        await seat.select("1")
        await seat.press("e")
        await seat.sees("This agent takes no other result")


@pytest.mark.slow
async def test_two_keys_switch_how_the_edits_of_a_session_are_judged(file: Path) -> None:
    play = editing(file.parent, WriteFile(path=str(file), content="x"))
    async with cockpit(play) as seat:
        await seat.select("1")
        session = seat.shown.call.session_id
        for key, mode, words in (
            ("left_parenthesis", "ask", "every edit is asked"),
            ("right_parenthesis", "allow", "edits are allowed"),
            ("right_parenthesis", "rules", "judged by the rules again"),
        ):
            await seat.press(key)
            await seat.until(lambda mode=mode: play.stage.board.sessions[session].edits == mode)
            await seat.sees(words)


async def test_an_edit_is_taken_back_with_a_second_key(file: Path) -> None:
    play = editing(file.parent, WriteFile(path=str(file), content="x"))
    at = play.clock()
    call_id = next(iter(play.stage.board.waiting))

    play.stage.happen(
        Decided(at=at, call_id=call_id, decision=Approve(), by=ME),
        Finished(at=at, call_id=call_id, ending=HandedOver()),
    )
    async with cockpit(play) as seat:
        await seat.select(call_id)
        await seat.press("J")
        await seat.sees("Press again to take edit")
        assert seat.record(call_id).reverted_by is None
        await seat.press("J")
        await seat.until(lambda: seat.record(call_id).reverted_by is not None)
