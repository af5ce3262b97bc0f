"""Edits that agents make once they are approved: judged by the files as they are, kept, and undone."""

import codecs
import errno
import hashlib
import os
import shutil
import stat
from pathlib import Path

import pytest

from tests.supervisor.conftest import HUMAN, Bench
from whisper_tui.export.document import session_report
from whisper_tui.export.session_story import SessionStory
from whisper_tui.model.call import (
    CallRequest,
    CarriedOut,
    CommandSpec,
    DeleteFile,
    FileChange,
    FileEdits,
    Function,
    Hunk,
    PatchFile,
    ReplaceText,
    WriteFile,
)
from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.ending import HandedOver
from whisper_tui.model.errors import ChangedSinceSeen, Refused
from whisper_tui.model.state import CallRecord, Ended, Held, Waiting

TICKET = "0123456789abcdef"


@pytest.fixture
async def session(bench: Bench) -> str:
    """A session in which every edit needs approval."""
    opened = await bench.session()
    await bench.supervisor.set_unasked("reading", HUMAN, opened)
    return opened


@pytest.fixture
def file(bench: Bench) -> Path:
    path = bench.workspace / "app.py"
    path.write_text("one\ntwo\n")
    return path


def edit(*changes: FileChange, cwd: Path) -> CommandSpec:
    return CommandSpec(command=FileEdits(tool="Edit", changes=changes), cwd=str(cwd))


async def submit(bench: Bench, session: str, *changes: FileChange) -> str:
    spec = edit(*changes, cwd=bench.workspace)
    return await bench.supervisor.submit(
        CallRequest(session_id=session, tool="Edit", arguments={}, spec=spec, ticket=TICKET, by_agent=True)
    )


async def make(bench: Bench, call_id: str, *changes: FileChange) -> CallRecord:
    """Approve an edit, and make it as the agent does."""
    await bench.approve(call_id)
    record = await bench.supervisor.hand_over(call_id, TICKET)
    assert isinstance(record.state, Ended) and record.state.ending == HandedOver()
    for change in changes:
        assert isinstance(change, WriteFile)
        Path(change.path).write_text(change.content)
    return record


async def test_an_edit_is_judged_by_its_files(bench: Bench, session: str, file: Path) -> None:
    record = await bench.record(await submit(bench, session, ReplaceText(path=str(file), old="two", new="2\n3")))
    assert record.state.kind == "waiting"
    assert record.resolved is not None
    (found,) = record.resolved.edits
    assert (found.action, found.real, found.added, found.removed) == ("changes", str(file), 2, 1)


async def test_a_stale_approval_never_lands(bench: Bench, session: str, file: Path) -> None:
    call_id = await submit(bench, session, ReplaceText(path=str(file), old="two", new="2"))
    await bench.approve(call_id)
    file.write_text("one\ntwo\nand a line of somebody else\n")
    record = await bench.supervisor.hand_over(call_id, TICKET)
    assert record.state.kind == "waiting"
    assert record.verdict is not None
    assert record.verdict.reason == (
        f"what it would start has changed since it was approved: {file} has another content"
    )


async def test_a_whole_file_that_has_changed_meanwhile_is_not_overwritten(
    bench: Bench, session: str, file: Path
) -> None:
    call_id = await submit(bench, session, WriteFile(path=str(file), content="mine"))
    await bench.approve(call_id)
    file.write_text("ONE\nTWO\n")
    assert (await bench.supervisor.hand_over(call_id, TICKET)).state.kind == "waiting"


async def test_a_file_that_came_into_being_meanwhile_is_not_overwritten(bench: Bench, session: str) -> None:
    new = bench.workspace / "new.txt"
    call_id = await submit(bench, session, WriteFile(path=str(new), content="mine"))
    await bench.approve(call_id)
    new.write_text("somebody else's")
    assert (await bench.supervisor.hand_over(call_id, TICKET)).state.kind == "waiting"


async def test_a_humans_result_is_refused_if_the_file_has_changed_since_it_was_judged(
    bench: Bench, session: str, file: Path
) -> None:
    call_id = await submit(bench, session, ReplaceText(path=str(file), old="two", new="2"))
    record = await bench.record(call_id)
    result = edit(WriteFile(path=str(file), content="mine\n"), cwd=bench.workspace)
    file.write_text("one\ntwo\nand a line of somebody else\n")
    with pytest.raises(ChangedSinceSeen, match=r"app\.py has changed since the edit was judged"):
        await bench.supervisor.decide(call_id, Approve(edited=result), HUMAN, record.seen_digest())
    assert (await bench.record(call_id)).state.kind == "waiting"
    file.write_text("one\ntwo\n")
    await bench.supervisor.decide(call_id, Approve(edited=result), HUMAN, record.seen_digest())
    assert (await bench.record(call_id)).state.kind == "held"


async def test_a_link_that_was_put_there_meanwhile_is_not_followed(
    bench: Bench, session: str, file: Path, tmp_path: Path
) -> None:
    call_id = await submit(bench, session, WriteFile(path=str(file), content="x"))
    await bench.approve(call_id)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("one\ntwo\n")
    file.unlink()
    file.symlink_to(elsewhere)
    assert (await bench.supervisor.hand_over(call_id, TICKET)).state.kind == "waiting"


async def test_the_contents_are_shown_before_and_after_the_edit(bench: Bench, session: str, file: Path) -> None:
    change = WriteFile(path=str(file), content="one\n2\n")
    call_id = await submit(bench, session, change)
    (before,) = await bench.supervisor.file_versions(call_id)
    assert (before.old, before.new) == ("one\ntwo\n", "one\n2\n")
    await make(bench, call_id, change)
    file.write_text("later")
    (after,) = await bench.supervisor.file_versions(call_id)
    assert (after.old, after.new) == ("one\ntwo\n", "one\n2\n")


async def test_the_disk_says_whether_an_approved_edit_was_made(bench: Bench, session: str, file: Path) -> None:
    change = WriteFile(path=str(file), content="one\n2\n")
    (bench.workspace / "gone.txt").write_text("x")
    call_id = await submit(bench, session, change, DeleteFile(path=str(bench.workspace / "gone.txt")))
    assert [each.now for each in await bench.supervisor.file_versions(call_id)] == ["", ""]
    await make(bench, call_id)
    assert [each.now for each in await bench.supervisor.file_versions(call_id)] == ["as_before", "as_before"]
    file.write_text(change.content)
    (bench.workspace / "gone.txt").unlink()
    assert [each.now for each in await bench.supervisor.file_versions(call_id)] == ["as_approved", "as_approved"]
    file.write_text("of somebody else")
    (bench.workspace / "gone.txt").mkdir()
    assert [each.now for each in await bench.supervisor.file_versions(call_id)] == ["differs", "differs"]


async def test_the_contents_are_the_users_alone(bench: Bench, session: str, file: Path) -> None:
    call_id = await submit(bench, session, change := WriteFile(path=str(file), content="x"))
    await make(bench, call_id, change)
    kept = Path(bench.home.state) / "edits" / call_id
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in kept.iterdir()} == {0o600}
    assert len(list(kept.iterdir())) == 2


async def test_an_edit_is_taken_back_while_the_file_is_as_it_left_it(bench: Bench, session: str, file: Path) -> None:
    file.chmod(0o640)
    call_id = await submit(bench, session, change := WriteFile(path=str(file), content="x"))
    await make(bench, call_id, change)
    await bench.supervisor.revert_edit(call_id, HUMAN)
    assert file.read_text() == "one\ntwo\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert (await bench.record(call_id)).reverted_by == HUMAN
    with pytest.raises(Refused, match="undone before"):
        await bench.supervisor.revert_edit(call_id, HUMAN)


async def test_an_edit_is_taken_back_after_a_restart(bench: Bench, session: str, file: Path) -> None:
    call_id = await submit(bench, session, change := WriteFile(path=str(file), content="x"))
    await make(bench, call_id, change)
    await bench.restart()
    await bench.supervisor.revert_edit(call_id, HUMAN)
    assert file.read_text() == "one\ntwo\n"
    await bench.restart()
    assert (await bench.record(call_id)).reverted_by == HUMAN


async def test_a_file_that_was_changed_since_is_left_alone(bench: Bench, session: str, file: Path) -> None:
    call_id = await submit(bench, session, change := WriteFile(path=str(file), content="x"))
    await make(bench, call_id, change)
    file.write_text("work of a person")
    with pytest.raises(Refused, match=r"app\.py is not as the edit left it"):
        await bench.supervisor.revert_edit(call_id, HUMAN)
    assert file.read_text() == "work of a person"


async def test_an_edit_of_several_files_is_taken_back_whole_or_not_at_all(
    bench: Bench, session: str, file: Path
) -> None:
    new = bench.workspace / "new.txt"
    changes = (WriteFile(path=str(new), content="n"), WriteFile(path=str(file), content="x"))
    call_id = await submit(bench, session, *changes)
    await make(bench, call_id, *changes)
    file.write_text("another")
    with pytest.raises(Refused):
        await bench.supervisor.revert_edit(call_id, HUMAN)
    assert new.read_text() == "n"
    file.write_text("x")
    await bench.supervisor.revert_edit(call_id, HUMAN)
    assert not new.exists()
    assert file.read_text() == "one\ntwo\n"


OLD, NEW = "straße\r\nzwei\r\n", "straße\r\n2 größer\r\n"
LE, BE = codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE
PROGRAMS = {
    "keeps UTF-16": (LE + OLD.encode("utf-16-le"), LE + NEW.encode("utf-16-le")),
    "keeps UTF-16, big-endian": (BE + OLD.encode("utf-16-be"), BE + NEW.encode("utf-16-be")),
    "keeps Latin-1": (OLD.encode("latin-1"), NEW.encode("latin-1")),
    "writes UTF-8": (LE + OLD.encode("utf-16-le"), NEW.encode()),
    "writes Latin-1 as UTF-8": (OLD.encode("latin-1"), NEW.encode()),
    "loses letters": (OLD.encode("latin-1"), "stra\ufffde\r\n2 größer\r\n".encode()),
}
"""What an agent's program makes of a file that is not in UTF-8."""


@pytest.mark.parametrize("program", PROGRAMS)
async def test_an_edit_of_a_file_in_another_encoding_is_undone_to_the_byte(
    bench: Bench, session: str, file: Path, program: str
) -> None:
    before, after = PROGRAMS[program]
    file.write_bytes(before)
    call_id = await submit(bench, session, ReplaceText(path=str(file), old="zwei", new="2 größer"))
    await make(bench, call_id)
    (shown,) = await bench.supervisor.file_versions(call_id)
    assert shown.now == "as_before"
    file.write_bytes(after)
    (shown,) = await bench.supervisor.file_versions(call_id)
    assert (shown.old, shown.new, shown.now) == (OLD, NEW, "as_approved")
    file.write_bytes(after + b"x")
    with pytest.raises(Refused, match="not as the edit left it"):
        await bench.supervisor.revert_edit(call_id, HUMAN)
    file.write_bytes(after)
    await bench.supervisor.revert_edit(call_id, HUMAN)
    assert file.read_bytes() == before


@pytest.mark.parametrize("after", [LE + NEW.encode("utf-16-le"), NEW.encode("utf-16-le"), NEW.encode()])
async def test_a_whole_new_content_of_a_file_in_another_encoding_is_undone_to_the_byte(
    bench: Bench, session: str, file: Path, after: bytes
) -> None:
    before = LE + OLD.encode("utf-16-le")
    file.write_bytes(before)
    call_id = await submit(bench, session, WriteFile(path=str(file), content=NEW))
    await make(bench, call_id)
    file.write_bytes(after)
    await bench.supervisor.revert_edit(call_id, HUMAN)
    assert file.read_bytes() == before


async def test_an_edit_of_what_is_no_text_is_undone_where_its_program_reads_it_as_utf_8(
    bench: Bench, session: str, file: Path
) -> None:
    before = b"a\0\xff two"
    file.write_bytes(before)
    call_id = await submit(bench, session, ReplaceText(path=str(file), old="two", new="2"))
    await make(bench, call_id)
    file.write_bytes("a\0\ufffd 2".encode())
    await bench.supervisor.revert_edit(call_id, HUMAN)
    assert file.read_bytes() == before


async def test_an_undo_for_which_there_is_no_room_leaves_all_as_it_is_and_can_be_tried_again(
    bench: Bench, session: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = bench.workspace / "sub" / "deep" / "gone.txt"
    gone.parent.mkdir(parents=True)
    gone.write_text("gone")
    change = WriteFile(path=str(file), content="x")
    call_id = await submit(bench, session, change, DeleteFile(path=str(gone)))
    await make(bench, call_id, change)
    shutil.rmtree(bench.workspace / "sub")

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    written: list[int] = []
    fchmod = os.fchmod

    def second_is_full(descriptor: int, mode: int) -> None:
        written.append(mode)
        if len(written) == 2:
            full()
        fchmod(descriptor, mode)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fchmod", second_is_full)
        with pytest.raises(Refused, match=r"not undone: .*gone\.txt could not be written: No space left") as refused:
            await bench.supervisor.revert_edit(call_id, HUMAN)
    assert "make room" in (refused.value.hint or "")
    assert os.listdir(bench.workspace) == ["app.py"] and file.read_text() == "x"
    await bench.supervisor.revert_edit(call_id, HUMAN)
    assert (file.read_text(), gone.read_text()) == ("one\ntwo\n", "gone")


async def test_a_deleted_file_comes_back(bench: Bench, session: str, file: Path) -> None:
    call_id = await submit(bench, session, DeleteFile(path=str(file)))
    await make(bench, call_id)
    file.unlink()
    await bench.supervisor.revert_edit(call_id, HUMAN)
    assert file.read_text() == "one\ntwo\n"


async def test_an_edit_that_was_not_made_cannot_be_taken_back(bench: Bench, session: str, file: Path) -> None:
    call_id = await submit(bench, session, WriteFile(path=str(file), content="x"))
    with pytest.raises(Refused, match="was not made"):
        await bench.supervisor.revert_edit(call_id, HUMAN)


async def test_the_text_of_a_human_is_judged_and_kept(bench: Bench, session: str, file: Path) -> None:
    call_id = await submit(bench, session, WriteFile(path=str(file), content="of the agent"))
    edited = edit(change := WriteFile(path=str(file), content="of the human"), cwd=bench.workspace)
    await bench.decide(call_id, Approve(edited=edited))
    record = await bench.supervisor.hand_over(call_id, TICKET)
    assert isinstance(record.state, Ended)
    Path(change.path).write_text(change.content)
    (shown,) = await bench.supervisor.file_versions(call_id)
    assert shown.new == "of the human"
    await bench.supervisor.revert_edit(call_id, HUMAN)
    assert file.read_text() == "one\ntwo\n"


async def test_an_edit_cannot_become_a_command(bench: Bench, session: str, file: Path) -> None:
    call_id = await submit(bench, session, WriteFile(path=str(file), content="x"))
    spec = (await bench.record(await bench.submit(session, "ls"))).spec
    with pytest.raises(Refused, match="another kind of call"):
        await bench.decide(call_id, Approve(edited=spec))


async def told(bench: Bench, session: str, *, diffs: bool = False) -> str:
    opened = await bench.supervisor.session(session)
    return "".join([line async for line in SessionStory(bench.supervisor, opened, diffs=diffs).lines()])


async def test_the_story_of_a_session_names_files_digests_and_differences(
    bench: Bench, session: str, file: Path
) -> None:
    call_id = await submit(bench, session, change := WriteFile(path=str(file), content="one\n2\n"))
    await make(bench, call_id, change)
    story = await told(bench, session, diffs=True)
    assert f"{call_id}  edit app.py +1 −1  [done by the agent, " in story
    before, after = (hashlib.sha256(text).hexdigest()[:10] for text in (b"one\ntwo\n", b"one\n2\n"))
    assert f"changes app.py +1 −1  {before} → {after}" in story
    assert "-two\n" in story
    assert "+2\n" in story


async def test_the_story_names_both_places_of_a_moved_file_once(bench: Bench, session: str, file: Path) -> None:
    change = PatchFile(
        path=str(file), move_to=str(file.with_name("new.py")), hunks=(Hunk(lines=(" one", "-two", "+2")),)
    )
    call_id = await submit(bench, session, change)
    await bench.decide(call_id, Approve())
    await bench.supervisor.hand_over(call_id, TICKET)
    story = await told(bench, session)
    assert "moves new.py from app.py +1 −1  no file → " in story
    assert "deletes" not in story


async def test_the_story_says_where_something_else_has_changed_a_file(bench: Bench, session: str, file: Path) -> None:
    first = await submit(bench, session, change := WriteFile(path=str(file), content="a"))
    await make(bench, first, change)
    file.write_text("by a command")
    second = await submit(bench, session, change := WriteFile(path=str(file), content="b"))
    await make(bench, second, change)
    third = await submit(bench, session, change := WriteFile(path=str(file), content="c"))
    await make(bench, third, change)
    story = await told(bench, session)
    assert f"! app.py was changed by something else after edit {first}" in story
    assert f"after edit {second}" not in story


async def test_the_story_tells_what_was_taken_back_denied_and_not_made(bench: Bench, session: str, file: Path) -> None:
    made = await submit(bench, session, change := WriteFile(path=str(file), content="a"))
    await make(bench, made, change)
    await bench.supervisor.revert_edit(made, HUMAN)
    denied = await submit(bench, session, WriteFile(path=str(file), content="d"))
    await bench.deny(denied, "no")
    story = await told(bench, session)
    assert "[undone, " in story
    assert "[denied, " in story
    assert "changed by something else" not in story


async def test_a_report_of_a_session_has_the_differences_of_its_edits(bench: Bench, session: str, file: Path) -> None:
    call_id = await submit(bench, session, change := WriteFile(path=str(file), content="one\n2\n"))
    await make(bench, call_id, change)
    opened = await bench.supervisor.session(session)
    report = "".join([part async for part in session_report(bench.supervisor, opened)])
    assert f"### Call {call_id}: done by the agent\n\n`edit app.py +1 −1`\n\n* Asked " in report
    assert "```diff" in report
    assert "-two\n+2" in report


async def told_of(bench: Bench, session: str, command: CarriedOut, decision: Approve | Deny) -> tuple[str, str]:
    """The story and the report of a session with one such call."""
    spec = CommandSpec(command=command, cwd=str(bench.workspace))
    request = CallRequest(session_id=session, tool=command.tool, arguments={}, spec=spec, ticket=TICKET, by_agent=True)
    call_id = await bench.supervisor.submit(request)
    if isinstance((await bench.supervisor.record(call_id)).state, Waiting):
        await bench.decide(call_id, decision)
    if isinstance((await bench.supervisor.record(call_id)).state, Held):
        await bench.supervisor.hand_over(call_id, TICKET)
    report = session_report(bench.supervisor, await bench.supervisor.session(session))
    return await told(bench, session), "".join([part async for part in report])


@pytest.mark.parametrize(
    ("command", "line", "outcome"),
    [
        (
            Function(tool="WebFetch", arguments={"url": "https://a.org/x"}, about="web", targets=("a.org",)),
            "fetch a.org/x",
            "done by the agent",
        ),
        (
            Function(tool="mcp__gh__list", arguments={"page": 2}, about="server", targets=("gh", "list")),
            "gh · list {page: 2}",
            "done by the agent",
        ),
        (
            Function(tool="Agent", arguments={"prompt": "Review it"}, about="subagent", targets=("reviewer",)),
            "start reviewer: Review it",
            "started by the agent",
        ),
    ],
)
async def test_story_and_report_say_in_words_what_the_agent_has_carried_out(
    bench: Bench, session: str, command: Function, line: str, outcome: str
) -> None:
    story, report = await told_of(bench, session, command, Approve())
    assert f"  {line}  [{outcome}, " in story
    assert f": {outcome}\n\n`{line}`\n\n```json\n" in report
    assert "its agent runs it itself" not in report


async def test_a_denied_edit_is_told_as_what_it_would_have_done(bench: Bench, session: str, file: Path) -> None:
    command = edit(ReplaceText(path=str(file), old="two", new="2"), cwd=bench.workspace).command
    assert isinstance(command, FileEdits)
    story, report = await told_of(bench, session, command, Deny(reason="no"))
    assert "would change app.py +1 −1\n" in story
    assert "→" not in story
    assert '"old": "two"' in report and "SHA-256" not in report


async def test_secrets_are_masked_in_the_differences(bench: Bench, session: str, file: Path) -> None:
    secret = "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    call_id = await submit(bench, session, change := WriteFile(path=str(file), content=secret))
    await make(bench, call_id, change)
    assert "wJalrXUtnFEMI" not in await told(bench, session, diffs=True)
