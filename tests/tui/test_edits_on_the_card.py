"""Edits of files in the cockpit: their difference, the editor of the result, the keys of a session, undoing."""

from pathlib import Path

import pytest
from textual.widgets import TextArea

from tests.tui.cockpit import open_cockpit
from tests.tui.scenes import ME, Scenario
from whisper_tui.model.call import (
    CallRequest,
    CommandSpec,
    DeleteFile,
    FileChange,
    FileEdits,
    Hunk,
    PatchFile,
    ReplaceText,
    Shell,
    WriteFile,
)
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import HandedOver
from whisper_tui.model.event import Decided, Finished
from whisper_tui.tui.commands.undo_approval import NO_UNDO


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "app.py"
    path.write_text("".join(f"line {number}\n" for number in range(1, 41)))
    return path


def editing(root: Path, *changes: FileChange, takes_result: bool = True) -> Scenario:
    """An agent asks for an edit in a workspace of its own."""
    scenario = Scenario.begin()
    session = scenario.supervisor.open("editor agent", str(root), "claude-code", "2.1.330")
    edits = FileEdits(tool="Edit", changes=changes, takes_result=takes_result)
    spec = CommandSpec(command=edits, cwd=str(root))
    scenario.supervisor.ask(
        CallRequest(session_id=session.id, tool="Edit", arguments={}, spec=spec, ticket="t", by_agent=True)
    )
    return scenario


async def test_the_card_of_an_edit_shows_its_difference(file: Path) -> None:
    scenario = editing(file.parent, ReplaceText(path=str(file), old="line 20\n", new="line twenty\n"))
    async with open_cockpit(scenario) as cockpit:
        await cockpit.sees("edit app.py +1", "⋯ 16 lines", "− line 20", "+ line twenty")


async def test_a_file_that_changes_while_the_edit_waits_is_told(file: Path) -> None:
    scenario = editing(file.parent, ReplaceText(path=str(file), old="line 20\n", new="x\n"))
    file.write_text(file.read_text() + "of somebody else\n")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.sees("The file has changed since the edit was judged")


@pytest.mark.slow
async def test_the_result_is_edited_and_line_ends_of_windows_stay(file: Path) -> None:
    file.write_bytes(b"one\r\ntwo\r\n")
    scenario = editing(file.parent, ReplaceText(path=str(file), old="two", new="2"))
    async with open_cockpit(scenario, undo=NO_UNDO) as cockpit:
        await cockpit.select("1")
        await cockpit.until(lambda: cockpit.screen.card.edits.contents(cockpit.shown))
        await cockpit.press("e")
        await cockpit.sees("Content of")
        area = cockpit.app.screen.query_one("#text", TextArea)
        assert area.text.splitlines() == ["one", "2"]
        area.text = "one\nzwei\n"
        await cockpit.press("ctrl+s")
        call_id = cockpit.shown.id
        await cockpit.until(lambda: cockpit.record(call_id).decision is not None)
        decision = cockpit.record(call_id).decision
        assert isinstance(decision, Approve) and decision.edited is not None
        assert isinstance(decision.edited.command, FileEdits)
        assert decision.edited.command.changes == (WriteFile(path=str(file), content="one\r\nzwei\r\n"),)


def a_patch(root: Path) -> Scenario:
    """Three files of a patch: one deleted, one changed, one new."""
    (root / "old.txt").write_text("old\n")
    (root / "notes.txt").write_text("one\ntwo\n")
    hunk = Hunk(lines=(" one", "-two", "+zwei"))
    return editing(
        root,
        DeleteFile(path=str(root / "old.txt")),
        PatchFile(path=str(root / "notes.txt"), hunks=(hunk,)),
        WriteFile(path=str(root / "new.txt"), content="new\n"),
    )


async def test_editing_several_files_changes_the_one_in_view_and_keeps_the_others(tmp_path: Path) -> None:
    async with open_cockpit(a_patch(tmp_path), undo=NO_UNDO, size=(170, 60)) as cockpit:
        await cockpit.select("1")
        await cockpit.sees("file 1 of 3")
        await cockpit.press("greater_than_sign", "e")
        await cockpit.sees(
            "Edit file 2 of 3 of call 1: notes.txt", "Will be made: as asked", "delete old.txt", "create new.txt"
        )
        area = cockpit.app.screen.query_one("#text", TextArea)
        assert area.text == "one\nzwei\n"
        area.text = "one\ndeux\n"
        await cockpit.sees("Will be made: edited", "− zwei", "+ deux")
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: cockpit.record("1").decision is not None)
        decision = cockpit.record("1").decision
        assert isinstance(decision, Approve) and decision.edited is not None
        assert isinstance(decision.edited.command, FileEdits)
        assert decision.edited.command.changes == (
            DeleteFile(path=str(tmp_path / "old.txt")),
            WriteFile(path=str(tmp_path / "notes.txt"), content="one\ndeux\n"),
            WriteFile(path=str(tmp_path / "new.txt"), content="new\n"),
        )


async def test_a_file_that_an_edit_deletes_has_nothing_to_edit(tmp_path: Path) -> None:
    async with open_cockpit(a_patch(tmp_path), size=(170, 60)) as cockpit:
        await cockpit.select("1")
        await cockpit.sees("file 1 of 3")
        await cockpit.press("e")
        await cockpit.sees("deletes old.txt, so there is no content to edit")


async def test_files_that_were_never_on_the_screen_are_no_part_of_an_edited_result(tmp_path: Path) -> None:
    scenario = editing(
        tmp_path,
        WriteFile(path=str(tmp_path / "short.txt"), content="short\n"),
        WriteFile(path=str(tmp_path / "long.txt"), content="long\n" * 100),
    )
    async with open_cockpit(scenario, size=(120, 30)) as cockpit:
        await cockpit.select("1")
        await cockpit.sees("not seen yet")
        await cockpit.press("e")
        await cockpit.sees("press again to edit anyway")
        await cockpit.press("e")
        await cockpit.sees("Edit file 1 of 2 of call 1: short.txt")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ((PatchFile(path="w.txt", hunks=(Hunk(lines=("-b", "+c")),)),), "has line ends of Windows"),
        pytest.param(
            (PatchFile(path="a.txt", hunks=(Hunk(lines=("-a", "+b")),), move_to="c.txt"),),
            "The edit moves",
            marks=pytest.mark.slow,
        ),
        pytest.param((ReplaceText(path="a.txt", old="not there", new="b"),), "is not known", marks=pytest.mark.slow),
    ],
)
async def test_a_result_that_could_not_be_handed_on_is_refused_before_typing(
    tmp_path: Path, changes: tuple[FileChange, ...], words: str
) -> None:
    (tmp_path / "w.txt").write_bytes(b"a\r\nb\n")
    (tmp_path / "a.txt").write_bytes(b"a\n")
    there = [
        change.model_copy(
            update={
                name: str(tmp_path / path)
                for name in ("path", "move_to")
                if (path := getattr(change, name, None)) is not None
            }
        )
        for change in changes
    ]
    async with open_cockpit(editing(tmp_path, *there), size=(120, 60)) as cockpit:
        await cockpit.select("1")
        await cockpit.until(lambda: cockpit.screen.card.edits.contents(cockpit.shown))
        await cockpit.press("e", "e")
        await cockpit.sees(words)


async def test_a_result_that_changes_nothing_is_not_approved(file: Path) -> None:
    scenario = editing(file.parent, ReplaceText(path=str(file), old="line 20\n", new="x\n"))
    async with open_cockpit(scenario) as cockpit:
        await cockpit.select("1")
        await cockpit.until(lambda: cockpit.screen.card.edits.contents(cockpit.shown))
        await cockpit.press("e")
        await cockpit.sees("Content of")
        cockpit.app.screen.query_one("#text", TextArea).text = file.read_text()
        await cockpit.press("ctrl+s")
        await cockpit.sees("This leaves every file as it is")
        assert cockpit.record("1").decision is None


async def test_before_typing_it_is_said_that_an_agent_takes_no_other_result(file: Path) -> None:
    scenario = editing(file.parent, WriteFile(path=str(file), content="x"), takes_result=False)
    async with open_cockpit(scenario) as cockpit:
        await cockpit.select("1")
        await cockpit.until(lambda: cockpit.screen.card.edits.contents(cockpit.shown))
        await cockpit.press("e")
        await cockpit.sees("This agent takes no other result")


async def test_before_typing_it_is_said_that_an_agent_takes_no_change_of_a_command(tmp_path: Path) -> None:
    scenario = Scenario.begin()
    session = scenario.supervisor.open("an agent", str(tmp_path), "qwen-code", "0.24.4")
    spec = CommandSpec(command=Shell(text="touch x"), cwd=str(tmp_path))
    request = CallRequest(session_id=session.id, tool="run_shell_command", arguments={}, spec=spec, ticket="t")
    scenario.supervisor.ask(request.model_copy(update={"by_agent": True, "takes_change": False}))
    async with open_cockpit(scenario) as cockpit:
        await cockpit.select("1")
        await cockpit.press("e")
        await cockpit.sees("This agent's program takes no change of a call. Deny it")
        assert not cockpit.app.screen.query("TextArea")


@pytest.mark.slow
async def test_an_edit_is_taken_back_with_a_second_key(file: Path) -> None:
    scenario = editing(file.parent, WriteFile(path=str(file), content="x"))
    at = scenario.clock()
    call_id = next(iter(scenario.supervisor.board.waiting))

    scenario.supervisor.happen(
        Decided(at=at, call_id=call_id, decision=Approve(), by=ME),
        Finished(at=at, call_id=call_id, ending=HandedOver()),
    )
    async with open_cockpit(scenario) as cockpit:
        await cockpit.select(call_id)
        await cockpit.press("J")
        await cockpit.sees("Press again to undo edit")
        assert cockpit.record(call_id).reverted_by is None
        await cockpit.press("J")
        await cockpit.until(lambda: cockpit.record(call_id).reverted_by is not None)
