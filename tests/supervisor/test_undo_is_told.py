"""An agent is told what a human has undone: with its next approved call, once, or at once if it listens."""

from tests.model.build import a_call, a_spec
from tests.supervisor.conftest import HUMAN, Bench
from whisper_tui.model.call import CallRequest, CommandSpec, FileEdits, ReplaceText
from whisper_tui.model.ending import Exited
from whisper_tui.model.preview import ChangeCounts, ChangedFiles
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.supervisor.agent_messages import undo_message
from whisper_tui.tools.agent_text import agent_note

TICKET = "0123456789abcdef"
SAID = "The human has undone the changes of edit 1: app.py is as it was before it. Look at the files before you go on."


async def edited(bench: Bench, session: str, old: str, new: str) -> CallRecord:
    """An agent edits a file of the workspace, without asking."""
    await bench.supervisor.set_unasked("workspace", HUMAN, session)
    path = bench.workspace / "app.py"
    change = ReplaceText(path=str(path), old=old, new=new)
    spec = CommandSpec(command=FileEdits(tool="Edit", changes=(change,)), cwd=str(bench.workspace))
    call_id = await bench.supervisor.submit(
        CallRequest(session_id=session, tool="Edit", arguments={}, spec=spec, ticket=TICKET, by_agent=True)
    )
    record = await bench.supervisor.hand_over(call_id, TICKET)
    path.write_text(path.read_text().replace(old, new))
    return record


async def test_the_next_answer_says_what_was_undone_and_no_later_one(bench: Bench) -> None:
    (bench.workspace / "app.py").write_text("one\n")
    session = await bench.session()
    assert agent_note(await edited(bench, session, "one", "two")) is None
    await bench.supervisor.undo("1", (), "undo", HUMAN)
    assert (bench.workspace / "app.py").read_text() == "one\n"
    assert agent_note(await edited(bench, session, "one", "three")) == SAID
    assert agent_note(await edited(bench, session, "three", "four")) is None


async def test_the_human_may_say_nothing(bench: Bench) -> None:
    (bench.workspace / "app.py").write_text("one\n")
    session = await bench.session()
    await edited(bench, session, "one", "two")
    await bench.supervisor.undo("1", (), "undo", HUMAN, tell=False)
    assert agent_note(await edited(bench, session, "one", "three")) is None


async def test_a_denied_call_leaves_the_message_to_the_next_one(bench: Bench) -> None:
    (bench.workspace / "app.py").write_text("one\n")
    session, other = await bench.session(), await bench.session("another")
    await edited(bench, session, "one", "two")
    await bench.supervisor.revert_edit("1", HUMAN)
    await bench.deny(await bench.submit(session, "touch", "x"), "no")
    assert agent_note(await edited(bench, other, "one", "other")) is None
    approved = await bench.submit(session, "touch", "x")
    await bench.approve(approved)
    assert agent_note(await bench.record(approved)) == SAID


async def test_the_message_outlives_a_supervisor_that_is_killed(bench: Bench) -> None:
    (bench.workspace / "app.py").write_text("one\n")
    session = await bench.session(key="claude 1")
    await edited(bench, session, "one", "two")
    await bench.supervisor.undo("1", (), "undo", HUMAN)
    await bench.kill()
    assert agent_note(await edited(bench, session, "one", "three")) == SAID
    await bench.restart()
    assert agent_note(await edited(bench, session, "three", "four")) is None


async def test_an_agent_that_is_gone_is_told_nothing(bench: Bench) -> None:
    (bench.workspace / "app.py").write_text("one\n")
    session = await bench.session()
    await edited(bench, session, "one", "two")
    await bench.supervisor.close_session(session, "it ended")
    await bench.supervisor.undo("1", (), "undo", HUMAN)
    assert session not in bench.supervisor.board.said


async def test_an_agent_that_listens_is_told_at_once(bench: Bench) -> None:
    (bench.workspace / "app.py").write_text("one\n")
    session = await bench.session(hears=True)
    await edited(bench, session, "one", "two")
    await bench.supervisor.undo("1", (), "undo", HUMAN)
    assert [said.text for said in bench.supervisor.board.said[session] if said.is_to_agent] == [SAID]
    assert agent_note(await edited(bench, session, "one", "three")) is None


def over(*paths: str, files: int) -> CallRecord:
    """A command that has changed files."""
    changed = ChangedFiles(counts=ChangeCounts(changed=files), paths=tuple(f"/ws/{path}" for path in paths))
    call = a_call("12", a_spec(cwd="/ws"))
    return CallRecord(call=call, state=Ended(at=1.0, ending=Exited(code=0), changed=changed))


def test_the_message_names_the_files() -> None:
    both = "The human has undone the changes of call 12 (`git status`): a.py, b.py are as they were before it."
    assert undo_message(over("a.py", "b.py", files=2)) == f"{both} Look at the files before you go on."
    assert ": a.py, b.py, 7 more are as they were before it." in undo_message(over("a.py", "b.py", files=9))
    some = undo_message(over("a.py", "b.py", files=2), "undo", ("/ws/a.py",))
    assert some.startswith(
        "The human has undone some of the changes of call 12 (`git status`): a.py is as it was before it."
    )
    rest = undo_message(over("a.py", "b.py", files=2), "undo", ("a.py",), all_but=True)
    assert rest.startswith(
        "The human has undone some of the changes of call 12 (`git status`): b.py is as it was before it."
    )
    again = undo_message(over("a.py", files=1), "redo")
    assert again == "The human has made the changes of call 12 (`git status`) again: a.py is as it was after it."
    assert undo_message(over(files=0)).startswith("The human has undone the changes of call 12 (`git status`). Look")
