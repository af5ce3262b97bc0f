"""What commands with severe risks change can be taken back, with real keepers; no command is kept from working."""

import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.supervisor.conftest import HUMAN
from tests.supervisor.test_previews import LiveBench
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import Exited
from whisper_tui.model.errors import Refused
from whisper_tui.model.preview import UndoDirection
from whisper_tui.model.run import Sandbox
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.model.verdict import UndoPlan
from whisper_tui.policy.rules.rule import Rule, Rules


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[LiveBench]:
    made = LiveBench(tmp_path)
    (made.workspace / "build").mkdir()
    (made.workspace / "build" / "x.o").write_text("object\n")
    (made.workspace / "notes.txt").write_text("one\n")
    await made.open()
    yield made
    await made.supervisor.close()


async def run(live: LiveBench, text: str, **approval: object) -> CallRecord:
    """Approve a command, and return its record when it is over."""
    call_id = await live.asked(text)
    await live.decide(call_id, Approve.model_validate(approval))
    return await live.over(call_id)


async def take_back(live: LiveBench, record: CallRecord, direction: UndoDirection = "undo") -> None:
    await live.supervisor.undo(record.id, (), direction, HUMAN)


async def test_what_a_severe_command_deletes_can_be_taken_back_and_deleted_again(live: LiveBench) -> None:
    before, inode = live.files(), (live.workspace / "build" / "x.o").stat().st_ino
    record = await run(live, "rm -rf build; echo gone")
    assert record.keeps == "copies" and record.undoable
    assert await live.output(record.id) == b"gone\n" and "build/x.o" not in live.files()
    assert await live.paths(record.id) == {"build": "deletes", "build/x.o": "deletes"}
    await take_back(live, record)
    assert live.files() == before and (live.workspace / "build" / "x.o").stat().st_ino == inode
    await take_back(live, record, "redo")
    assert "build/x.o" not in live.files()


async def test_files_that_are_overwritten_and_moved_come_back_as_they_were(live: LiveBench) -> None:
    before = live.files()
    record = await run(live, "mv notes.txt build/x.o; cp build/x.o new; echo two >> new; rm -rf none")
    assert live.files() == {"build/x.o": "one\n", "new": "one\ntwo\n"}
    await take_back(live, record)
    assert live.files() == before


async def test_an_undo_names_what_changed_since_and_does_nothing(live: LiveBench) -> None:
    record = await run(live, "rm -rf build")
    (live.workspace / "build").write_text("somebody else\n")
    with pytest.raises(Refused, match="build changed since"):
        await take_back(live, record)
    assert live.files()["build"] == "somebody else\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rm -rf build; make", "make may change more than the files that are named"),
        ("sudo rm -rf build", "sudo runs with the rights of another user"),
        ("docker system prune --force", "docker acts on more than files"),
        ("rm -rf build & true", "a part of it goes on in the background"),
        ("shred -u notes.txt; rm -rf build", "shred destroys on purpose"),
        ("git push --force", "git push may change more than the files of its work tree"),
    ],
)
async def test_the_card_says_before_the_approval_what_cannot_be_taken_back(
    live: LiveBench, text: str, why: str
) -> None:
    verdict = (await live.record(await live.asked(text))).verdict
    assert verdict is not None and verdict.undo == UndoPlan(how="none", why=why)


@pytest.mark.parametrize("text", ["ls", "echo one > notes.txt", "cat ~/.ssh/id_rsa"])
async def test_nothing_is_kept_of_commands_without_a_severe_risk_or_without_changes(live: LiveBench, text: str) -> None:
    verdict = (await live.record(await live.asked(text))).verdict
    assert verdict is not None and verdict.undo is None


async def test_a_command_whose_files_are_not_known_runs_and_says_that_nothing_is_kept(live: LiveBench) -> None:
    record = await run(live, "find . -name '*.o' -delete; rm -rf nothing")
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=0)
    assert "build/x.o" not in live.files()
    assert not record.undoable and "directories named *.o" in record.state.unkept
    with pytest.raises(Refused, match="directories named"):
        await take_back(live, record)


async def test_an_approval_can_leave_it_out(live: LiveBench) -> None:
    record = await run(live, "rm -rf build", undoable=False)
    assert record.keeps == "" and not record.undoable and "build/x.o" not in live.files()


async def test_a_rule_says_for_its_commands_if_they_are_kept(live: LiveBench) -> None:
    never = Rule(name="space", prefix=("rm",), undo=False)
    always = Rule(name="notes", prefix=("truncate",), undo=True)
    await live.restart(Rules(ask=(never, always)))
    assert not (await run(live, "rm -rf build")).undoable
    record = await run(live, "truncate -s 0 notes.txt")
    assert record.undoable and live.files() == {"notes.txt": ""}
    await take_back(live, record)
    assert live.files() == {"notes.txt": "one\n"}


async def test_a_rule_of_a_project_does_not_switch_it_off(live: LiveBench) -> None:
    rule = Rule(name="project: space", prefix=("rm",), undo=False)
    await live.restart(Rules(ask=(rule,)))
    assert (await run(live, "rm -rf build")).undoable


async def test_a_command_that_a_rule_allows_is_kept_as_well(live: LiveBench) -> None:
    before = live.files()
    rule = Rule(name="clean", text="rm -rf build", sandbox=False)
    await live.restart(Rules(allow=(rule,)))
    record = await live.over(await live.asked("rm -rf build"))
    assert record.decided_by is not None and record.decided_by.surface == "rule"
    assert "build/x.o" not in live.files()
    await take_back(live, record)
    assert live.files() == before


def repository(live: LiveBench) -> None:
    for command in ("init -q", "add notes.txt", "-c user.name=a -c user.email=a@b commit -qm one"):
        subprocess.run(["git", *command.split()], cwd=live.workspace, check=True)


async def test_git_runs_in_a_view_and_its_changes_can_be_taken_back(live: LiveBench) -> None:
    repository(live)
    (live.workspace / "notes.txt").write_text("work\n")
    record = await run(live, "git reset -q --hard; git clean -qfd; cat notes.txt")
    assert record.keeps == "view", record.state
    assert await live.output(record.id) == b"one\n"
    assert (live.workspace / "notes.txt").read_text() == "one\n" and not (live.workspace / "build").exists()
    await take_back(live, record)
    assert (live.workspace / "notes.txt").read_text() == "work\n" and (live.workspace / "build" / "x.o").exists()


async def test_a_view_that_cannot_become_real_is_replaced_by_a_plain_run(live: LiveBench) -> None:
    repository(live)
    changes = live.supervisor._parts.pool.previews.changes
    apply = changes._apply

    def disturbed(directory: str) -> None:
        (live.workspace / "notes.txt").write_text("somebody else\n")
        apply(directory)

    changes._apply = disturbed  # type: ignore[method-assign]
    (live.workspace / "notes.txt").write_text("work\n")
    record = await run(live, "git checkout -q -- notes.txt && echo done")
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=0)
    assert (live.workspace / "notes.txt").read_text() == "one\n"
    assert await live.output(record.id) == b"done\n"
    assert record.keeps == "" and not record.undoable and "changed while it ran" in record.state.unkept


async def test_a_call_says_when_what_was_kept_of_it_is_gone(live: LiveBench) -> None:
    record = await run(live, "rm -rf build")
    shutil.rmtree(Path(live.home.state) / "runs" / f"{record.id}.1" / "preview")
    with pytest.raises(Refused, match="cannot be taken back any more"):
        await take_back(live, record)


async def test_what_was_kept_is_taken_over_by_the_next_supervisor(live: LiveBench) -> None:
    before = live.files()
    call_id = await live.asked("rm -rf build; sleep 0.7")
    await live.approve(call_id)
    await live.until(call_id, lambda record: record.process is not None)
    await live.restart()
    record = await live.over(call_id)
    await take_back(live, record)
    assert live.files() == before


async def test_a_reversible_run_in_a_sandbox_is_refused(live: LiveBench) -> None:
    call_id = await live.asked("rm -rf build")
    with pytest.raises(Refused, match="but not both"):
        await live.decide(call_id, Approve(undoable=True, sandbox=Sandbox(kind="workspace")))
