"""What commands with severe risks change can be undone, with real keepers; what cannot be kept does not run."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.supervisor.conftest import HUMAN
from tests.supervisor.test_previews import LiveBench
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import Exited
from whisper_tui.model.errors import Refused
from whisper_tui.model.preview import UndoDirection
from whisper_tui.model.run import Sandbox
from whisper_tui.model.state import CallRecord, Claim, Ended, Waiting
from whisper_tui.model.verdict import UndoPlan
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.supervisor.runs import attempt_ways
from whisper_tui.supervisor.runs.executor import PreviewOptions, RunKey
from whisper_tui.supervisor.runs.local_executor import LocalExecutor


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


async def run_with_ticket(live: LiveBench, text: str, sent: bytes, claim: Claim) -> CallRecord:
    """Approve a command that its agent's shell starts, with input from a pipe or a file, and wait for its end."""
    spec = CommandSpec(command=Shell(text=text), cwd=str(live.workspace))
    request = CallRequest(session_id=await live.session(), tool="Bash", arguments={}, spec=spec, ticket="secret")
    call_id = await live.supervisor.submit(request)
    await live.approve(call_id)
    await live.supervisor.claim(call_id, "secret", claim)
    await live.supervisor.started(call_id)
    if claim.stdin:
        await live.supervisor.write_stdin(call_id, sent, eof=True)
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
        ("rm -rf build; make", "nobody knows beforehand what make changes"),
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


@pytest.mark.parametrize("text", ["ls", "echo one > notes.txt", "cat ~/.ssh/id_rsa", "cat .env"])
async def test_nothing_is_kept_of_commands_without_a_severe_risk_or_without_changes(live: LiveBench, text: str) -> None:
    verdict = (await live.record(await live.asked(text))).verdict
    assert verdict is not None and verdict.undo is None


async def asked_again(live: LiveBench, call_id: str) -> str:
    """Wait until a call waits again, and return the reason."""
    record = await live.until(call_id, lambda record: isinstance(record.state, Waiting) and record.decision is None)
    assert isinstance(record.state, Waiting) and record.state.returned_because is not None
    return record.state.returned_because


UNKNOWN_FILES = "find . -name '*.o' -delete; rm -rf nothing"


async def test_a_command_whose_files_are_not_known_does_not_run_and_waits_again(live: LiveBench) -> None:
    before, call_id = live.files(), await live.asked(UNKNOWN_FILES)
    await live.approve(call_id)
    assert "directories named *.o" in await asked_again(live, call_id)
    verdict = (await live.record(call_id)).verdict
    assert verdict is not None and verdict.undo is not None and verdict.undo.how == "none"
    assert live.files() == before and not (Path(live.home.state) / "runs" / "keeping" / f"{call_id}.1").exists()
    await live.approve(call_id)
    record = await live.over(call_id)
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=0)
    assert "build/x.o" not in live.files()
    assert not record.undoable and "directories named *.o" in record.not_kept_because
    with pytest.raises(Refused, match="directories named"):
        await take_back(live, record)


async def test_a_command_of_a_rule_runs_without_an_undo_and_says_so(live: LiveBench) -> None:
    await live.restart(Rules(allow=(Rule(name="clean", text=UNKNOWN_FILES, sandbox=False),)))
    record = await live.over(await live.asked(UNKNOWN_FILES))
    assert "build/x.o" not in live.files()
    assert not record.undoable and "directories named *.o" in record.not_kept_because


async def test_an_ended_call_says_what_it_changed_and_if_that_is_kept(live: LiveBench) -> None:
    kept = await run(live, "truncate -s 0 notes.txt; rm -rf build")
    assert isinstance(kept.state, Ended) and kept.state.changed is not None
    changed = kept.state.changed
    assert (changed.counts.changed, changed.counts.deleted, changed.added, changed.removed) == (1, 2, 0, 2)
    assert changed.paths == (f"{live.workspace}/build/x.o", f"{live.workspace}/notes.txt")
    plain = await run(live, "echo two > notes.txt")
    assert isinstance(plain.state, Ended) and plain.state.changed is None
    assert plain.not_kept_because == "it ran normally, not held back"
    left_out = await run(live, "rm -rf notes.txt", undoable=False)
    assert left_out.not_kept_because == "its approval left that out"
    never = await live.asked("echo one > notes.txt")
    await live.deny(never, "no")
    assert (await live.over(never)).not_kept_because == ""


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


async def test_a_git_command_with_input_runs_in_a_view_all_the_same(live: LiveBench) -> None:
    repository(live)
    (live.workspace / "notes.txt").write_text("work\n")
    claim = Claim(by="one", stdin=True)
    record = await run_with_ticket(live, "git reset -q --hard; cat", b"from a pipe\n", claim)
    assert record.keeps == "view" and record.undoable
    assert await live.output(record.id) == b"from a pipe\n"
    await take_back(live, record)
    assert (live.workspace / "notes.txt").read_text() == "work\n"


def git(live: LiveBench, *words: str) -> None:
    subprocess.run(["git", *words], cwd=live.workspace, check=True, stdout=subprocess.DEVNULL)


async def test_a_look_at_the_repository_does_not_prevent_an_undo(live: LiveBench) -> None:
    repository(live)
    (live.workspace / "notes.txt").write_text("work\n")
    record = await run(live, "git reset -q --hard")
    index = live.workspace / ".git" / "index"
    before = index.read_bytes()
    os.utime(live.workspace / "notes.txt", (1_000_000_000, 1_000_000_000))
    git(live, "status")
    assert index.read_bytes() != before
    await take_back(live, record)
    assert (live.workspace / "notes.txt").read_text() == "work\n"
    await take_back(live, record, "redo")
    assert (live.workspace / "notes.txt").read_text() == "one\n"
    git(live, "diff", "--exit-code", "HEAD")


async def test_what_was_staged_since_prevents_an_undo(live: LiveBench) -> None:
    repository(live)
    (live.workspace / "notes.txt").write_text("work\n")
    record = await run(live, "git reset -q --hard")
    git(live, "add", "build/x.o")
    with pytest.raises(Refused, match="index changed since"):
        await take_back(live, record)
    assert (live.workspace / "notes.txt").read_text() == "one\n"


CALLS = (
    "truncate -s 1 build/x.o notes.txt",
    "echo new > build/new",
    "mv build/new notes.txt",
    "chmod 600 build/x.o",
    "rm -rf build",
    "rm notes.txt",
)


async def test_calls_about_the_same_files_are_undone_from_the_newest_on(live: LiveBench) -> None:
    await live.restart(Rules(ask=(Rule(name="all", anything=True, undo=True),)))
    states, records = [], []
    for text in CALLS:
        states.append(live.files())
        records.append(await run(live, text))
        assert records[-1].keeps == "copies", (text, records[-1].verdict)
    for record, before in reversed(list(zip(records, states, strict=True))):
        await take_back(live, record)
        assert live.files() == before, record.spec


async def test_a_part_is_named_from_the_directory_of_the_call_or_left_out(live: LiveBench) -> None:
    record = await run(live, "rm -rf build notes.txt")
    await live.supervisor.undo(record.id, ("notes.txt",), "undo", HUMAN)
    assert live.files() == {"notes.txt": "one\n"}
    await take_back(live, record)
    await take_back(live, record, "redo")
    with pytest.raises(Refused, match="is not among its changes"):
        await live.supervisor.undo(record.id, ("build/x.o",), "undo", HUMAN, all_but=True)
    (live.workspace / "notes.txt").write_text("somebody else\n")
    with pytest.raises(Refused, match="changed since"):
        await take_back(live, record)
    page = await live.supervisor.preview_page(record.id)
    assert page.conflicts == (f"{live.workspace}/notes.txt",)
    await live.supervisor.undo(record.id, ("notes.txt",), "undo", HUMAN, all_but=True)
    assert live.files() == {"build/x.o": "object\n", "notes.txt": "somebody else\n"}


async def test_the_agents_shell_follows_a_git_command_that_ran_in_a_view(live: LiveBench) -> None:
    repository(live)
    (live.workspace / "notes.txt").write_text("work\n")
    record = await run_with_ticket(live, "git reset -q --hard; cd build", b"", Claim(by="one", follows=True))
    assert record.keeps == "view"
    last = LocalExecutor(Path(live.home.state) / "runs").last_directory(RunKey(record.id, 1))
    assert last == str(live.workspace / "build")


def disturb(live: LiveBench, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Have somebody write a file while the first of the next runs in a view become real."""
    left, make_real = iter(range(times)), attempt_ways.make_real

    def disturbed(directory: str) -> None:
        if next(left, None) is not None:
            (live.workspace / "notes.txt").write_text("somebody else\n")
        make_real(directory)

    monkeypatch.setattr(attempt_ways, "make_real", disturbed)
    (live.workspace / "notes.txt").write_text("work\n")


CHECKOUT = "git checkout -q -- notes.txt && echo done"


async def test_a_view_that_cannot_become_real_changes_nothing_and_the_call_waits_again(
    live: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(live)
    disturb(live, monkeypatch, 1)
    call_id = await live.asked(CHECKOUT)
    await live.approve(call_id)
    reason = await asked_again(live, call_id)
    assert "it has changed nothing yet" in reason and "notes.txt changed while it ran" in reason
    assert (live.workspace / "notes.txt").read_text() == "somebody else\n"
    await live.approve(call_id)
    record = await live.over(call_id)
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=0) and record.keeps == "view"
    assert (live.workspace / "notes.txt").read_text() == "one\n"
    await take_back(live, record)
    assert (live.workspace / "notes.txt").read_text() == "somebody else\n"


async def test_a_command_with_input_that_cannot_become_real_says_so_and_is_not_repeated(
    live: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(live)
    disturb(live, monkeypatch, 1)
    record = await run_with_ticket(live, f"cat; {CHECKOUT}", b"once\n", Claim(by="one", stdin=True))
    assert isinstance(record.state, Ended) and "notes.txt changed while it ran" in record.state.discarded
    assert record.attempts == 1 and (live.workspace / "notes.txt").read_text() == "somebody else\n"


async def test_a_view_of_a_rule_that_cannot_become_real_is_replaced_by_a_plain_run(
    live: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(live)
    await live.restart(Rules(allow=(Rule(name="checkout", text=CHECKOUT, sandbox=False, undo=True),)))
    disturb(live, monkeypatch, 1)
    record = await live.over(await live.asked(CHECKOUT))
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=0)
    assert (live.workspace / "notes.txt").read_text() == "one\n"
    assert await live.output(record.id) == b"done\n"
    assert record.keeps == "" and not record.undoable and "changed while it ran" in record.state.unkept


async def test_a_view_that_cannot_become_real_is_there_until_the_next_run_is_journaled(
    live: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(live)
    rules = Rules(allow=(Rule(name="checkout", text=CHECKOUT, sandbox=False, undo=True),))
    await live.restart(rules)
    disturb(live, monkeypatch, 1)
    about_to_start_again = asyncio.Event()

    async def killed(*_: object) -> None:
        about_to_start_again.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(live.supervisor._parts.pool, "_start_anew", killed)
    call_id = await live.asked(CHECKOUT)
    async with asyncio.timeout(60):
        await about_to_start_again.wait()
    await live.restart(rules)
    record = await live.over(call_id)
    assert record.attempts == 2 and (live.workspace / "notes.txt").read_text() == "one\n"
    async with asyncio.timeout(60):
        while (Path(live.home.state) / "runs" / f"{call_id}.1" / "preview").exists():
            await asyncio.sleep(0.01)
    assert isinstance(record.state, Ended) and "changed while it ran" in record.state.unkept


async def test_nothing_remains_in_memory_of_runs_that_are_over(
    live: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(live)
    disturbed = Rule(name="checkout", text=CHECKOUT, sandbox=False, undo=True)
    await live.restart(Rules(allow=(disturbed,), ask=(Rule(name="notes", prefix=("truncate",), undo=True),)))
    disturb(live, monkeypatch, 1)
    record = await live.over(await live.asked(CHECKOUT))
    assert record.attempts == 2 and not record.undoable
    for number in range(5):
        for text, keeps in ((f"truncate -s {number} build/x.o", "copies"), (f"{CHECKOUT}; true", "view")):
            record = await run(live, text)
            assert record.keeps == keeps and record.undoable
            await take_back(live, record)
    pool = live.supervisor._parts.pool
    assert not pool._runs and not pool.previews.changes._turns


async def test_where_no_view_can_be_made_the_card_says_so_before_the_approval(live: LiveBench) -> None:
    repository(live)
    await live.supervisor.close()
    await live.open(previews="none")
    async with asyncio.timeout(60):
        while live.supervisor._parts.pool.previews.probe.support is None:
            await asyncio.sleep(0.01)
    verdict = (await live.record(await live.asked("git reset --hard"))).verdict
    assert verdict is not None and verdict.undo is not None and verdict.undo.how == "none"
    assert "no view of the files can be made here" in verdict.undo.why


@pytest.mark.parametrize("approval", [{}, {"undoable": True}])
async def test_a_call_for_which_no_view_can_be_made_waits_again_and_then_runs_without_one(
    live: LiveBench, approval: dict[str, bool]
) -> None:
    repository(live)
    (live.workspace / "notes.txt").write_text("work\n")
    call_id = await live.asked("git reset -q --hard; echo done")
    # Where its changes would be kept there is something else.
    blocking = Path(live.home.state) / "runs" / "blocked"
    orders = live.supervisor._parts.pool._orders
    view = orders._view

    def unmade(*words: Any) -> PreviewOptions:
        return replace(view(*words), roots=(str(blocking / "nowhere"),), ways=("bubblewrap",))

    orders._view = unmade  # type: ignore[method-assign]
    await live.decide(call_id, Approve.model_validate(approval))
    assert "its changes cannot be kept" in await asked_again(live, call_id)
    assert (live.workspace / "notes.txt").read_text() == "work\n"
    await live.approve(call_id)
    record = await live.over(call_id)
    assert await live.output(record.id) == b"done\n" and (live.workspace / "notes.txt").read_text() == "one\n"
    assert not record.undoable and "Commands cannot run reversibly here" in record.not_kept_because


async def test_a_call_says_when_what_was_kept_of_it_is_gone(live: LiveBench) -> None:
    record = await run(live, "rm -rf build")
    shutil.rmtree(Path(live.home.state) / "runs" / f"{record.id}.1" / "preview")
    with pytest.raises(Refused, match="cannot be undone any more"):
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
