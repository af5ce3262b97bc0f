"""Edits of files in the cockpit: their difference, the editor of the result, the keys of a session, taking back."""

from pathlib import Path

import pytest
from textual.widgets import TextArea

from tests.tui.cockpit import cockpit
from tests.tui.scenes import ME, Play
from whisper_tui.model.call import CallRequest, CommandSpec, FileEdits
from whisper_tui.model.decision import Approve
from whisper_tui.model.edits import EditedFile, FileChange, FileVersions, ReplaceText, WriteFile
from whisper_tui.model.ending import HandedOver
from whisper_tui.model.event import Decided, Finished
from whisper_tui.present.diff_text import diff_paragraphs, diff_rows
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


def rows(old: str | None, new: str | None) -> list[str]:
    """A difference as text, with what differs inside of a line in brackets."""
    versions = FileVersions(file=EditedFile(action="changes", path="/w/a", real="/w/a", inside="a"), old=old, new=new)
    marked = {"added", "removed", "hidden"}
    found = []
    for paragraph in diff_paragraphs(versions, diff_rows(versions)):
        text = "".join(f"[{span.text}]" if span.role in marked else span.text for span in paragraph.spans)
        found.append("".join(span.text for span in paragraph.margin) + text)
    return found


def test_only_the_words_that_differ_are_marked() -> None:
    assert rows("total = price * 3\n", "total = price * 4\n") == [
        " 1 − total = price * [3]",
        " 1 + total = price * [4]",
    ]


def test_unchanged_stretches_are_folded() -> None:
    lines = [f"{number}\n" for number in range(1, 31)]
    changed = [*lines[:14], "other\n", *lines[15:]]
    found = rows("".join(lines), "".join(changed))
    assert found[0] == "   ⋯ 11 lines"
    assert found[-1] == "   ⋯ 12 lines"
    assert " 15 − 15" in found
    assert " 15 + other" in found
    assert len(found) == 10


def test_line_ends_and_hidden_characters_are_visible() -> None:
    assert rows("a\n", "a\r\n") == [" 1 − a", " 1 + a[␍]"]
    assert rows("a\n", "a") == [" 1 − a", " 1 + a[ ⏎ missing]"]
    (row,) = rows("", "x\u202ey\n")
    assert "\u202e" not in row


def test_a_difference_never_brings_control_characters_to_the_terminal() -> None:
    assert "\x1b" not in "".join(rows("a\n", "\x1b[2J\x1b]0;title\x07\n"))


def test_a_difference_of_too_many_lines_says_so() -> None:
    (row,) = rows("", "x\n" * 20_001)
    assert "too many to compare" in row


async def test_the_card_of_an_edit_shows_its_difference(file: Path) -> None:
    play = editing(file.parent, ReplaceText(path=str(file), old="line 20\n", new="line twenty\n"))
    async with cockpit(play) as seat:
        await seat.sees("Difference  app.py", "⋯ 16 lines", "− line 20", "+ line twenty")


async def test_a_file_that_changes_while_the_edit_waits_is_told(file: Path) -> None:
    play = editing(file.parent, ReplaceText(path=str(file), old="line 20\n", new="x\n"))
    file.write_text(file.read_text() + "of somebody else\n")
    async with cockpit(play) as seat:
        await seat.sees("The file has changed since the edit was judged")


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


async def test_two_keys_switch_how_the_edits_of_a_session_are_judged(file: Path) -> None:
    play = editing(file.parent, WriteFile(path=str(file), content="x"))
    async with cockpit(play) as seat:
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
