"""Previews with real keepers: nothing changes before approval, what was seen becomes real, and it can be undone."""

import asyncio
import errno
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.outside import needs_overlays
from tests.supervisor.conftest import HUMAN, Bench
from whisper_tui.changes.change_records import FileChange, Plan, Result, load_plan
from whisper_tui.changes.change_steps import ChangeSteps
from whisper_tui.changes.file_trees import Stamp
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import Denied, Exited, Signalled
from whisper_tui.model.errors import ChangedSinceSeen, Refused
from whisper_tui.model.preview import PreviewReport, PreviewSetting, PreviewSupport
from whisper_tui.model.state import CallRecord, Ended, Waiting
from whisper_tui.policy.rules.rule import NO_RULES, Rule, Rules
from whisper_tui.present.preview_text import without_renamed
from whisper_tui.supervisor.preview.preview_process import WAS_KILLED
from whisper_tui.supervisor.runs import preview_changes
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.supervisor.runs.preview_probe import TOOK_TOO_LONG, PreviewProbe, preview_support
from whisper_tui.supervisor.settings import SupervisorSettings
from whisper_tui.supervisor.supervisor import Supervisor
from whisper_tui.system.processes import children_of
from whisper_tui.system.run_files import PREVIEW
from whisper_tui.tools.agent_text import agent_note

pytestmark = needs_overlays

PATIENCE_S = 60.0


class LiveBench(Bench):
    """A supervisor with real keepers."""

    held_back_s = 60.0

    async def open(self, rules: Rules = NO_RULES, workers: int = 4, previews: PreviewSetting = "auto") -> None:
        settings = SupervisorSettings(workers=workers, previews=previews, held_back_s=self.held_back_s)
        executor = LocalExecutor(Path(self.home.state) / "runs")
        self.supervisor = Supervisor(self.home, executor, rules=rules, settings=settings)
        await self.supervisor.open()

    async def asked(self, text: str) -> str:
        return await self.submit(await self.session(), text=text)

    async def until(self, call_id: str, holds: Callable[[CallRecord], bool]) -> CallRecord:
        async with asyncio.timeout(PATIENCE_S):
            while not holds(record := await self.record(call_id)):
                await asyncio.sleep(0.01)
        return record

    async def previewed(self, call_id: str) -> PreviewReport:
        await self.supervisor.preview(call_id, HUMAN)
        return await self.report(call_id)

    async def report(self, call_id: str) -> PreviewReport:
        record = await self.until(
            call_id, lambda record: record.preview is not None and record.preview.report is not None
        )
        assert record.preview is not None and record.preview.report is not None
        return record.preview.report

    async def apply(self, call_id: str) -> CallRecord:
        report = await self.report(call_id)
        await self.decide(call_id, Approve(preview=report.digest))
        return await self.over(call_id)

    async def over(self, call_id: str) -> CallRecord:
        return await self.until(call_id, lambda record: not record.is_open)

    async def output(self, call_id: str) -> bytes:
        return (await self.supervisor.read_output(call_id, "out", 0, 10_000)).data

    async def paths(self, call_id: str) -> dict[str, str]:
        """What is done to each changed path, from the workspace on."""
        page = await self.supervisor.preview_page(call_id)
        return {os.path.relpath(change.path, self.workspace): change.action for change in page.changes}

    def files(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.workspace)): path.read_text(errors="replace")
            for path in sorted(self.workspace.rglob("*"))
            if path.is_file()
        }


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[LiveBench]:
    made = LiveBench(tmp_path)
    (made.workspace / "kept.txt").write_text("kept\n")
    (made.workspace / "old.txt").write_text("one\n")
    await made.open()
    yield made
    await made.supervisor.close()


CHANGES = "echo two >> old.txt; echo new > new.txt; rm kept.txt; mkdir made; echo x > made/x; echo done"


async def test_a_preview_shows_what_a_command_changes_and_changes_nothing(live: LiveBench) -> None:
    before = live.files()
    call_id = await live.asked(CHANGES)
    report = await live.previewed(call_id)
    assert live.files() == before
    assert report.ending == Exited(code=0) and not report.problem
    assert await live.output(call_id) == b"done\n"
    assert await live.paths(call_id) == {
        "old.txt": "changes",
        "new.txt": "creates",
        "kept.txt": "deletes",
        "made": "creates",
        "made/x": "creates",
    }
    assert (report.counts.created, report.counts.changed, report.counts.deleted) == (3, 1, 1)
    assert isinstance((await live.record(call_id)).state, Waiting)


async def test_applying_makes_the_changes_that_were_seen_and_runs_nothing_again(live: LiveBench) -> None:
    call_id = await live.asked("cat /proc/sys/kernel/random/uuid | tee uuid; exit 3")
    await live.previewed(call_id)
    seen = await live.output(call_id)
    record = await live.apply(call_id)
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=3)
    assert (live.workspace / "uuid").read_bytes() == seen == await live.output(call_id)
    assert record.undoable and not record.state.discarded
    assert "exactly the file changes" in (agent_note(record) or "")


async def test_a_file_that_changed_since_the_preview_keeps_it_from_being_applied(live: LiveBench) -> None:
    call_id = await live.asked(CHANGES)
    report = await live.previewed(call_id)
    (live.workspace / "old.txt").write_text("someone else\n")
    before = live.files()
    await live.decide(call_id, Approve(preview=report.digest))
    record = await live.until(call_id, lambda record: isinstance(record.state, Waiting) and record.decision is None)
    assert isinstance(record.state, Waiting) and record.state.returned_because is not None
    assert "old.txt" in record.state.returned_because and "changed since the preview" in record.state.returned_because
    assert live.files() == before


async def test_only_the_preview_that_was_shown_can_be_approved(live: LiveBench) -> None:
    call_id = await live.asked("date +%N > now")
    first = await live.previewed(call_id)
    await live.supervisor.drop_preview(call_id, HUMAN)
    with pytest.raises(Refused, match="no preview that could be applied"):
        await live.decide(call_id, Approve(preview=first.digest))
    second = await live.previewed(call_id)
    assert second.digest != first.digest
    with pytest.raises(ChangedSinceSeen):
        await live.decide(call_id, Approve(preview=first.digest))
    await live.apply(call_id)
    assert (live.workspace / "now").exists()


async def test_a_previewed_call_that_is_approved_to_run_runs_for_real(live: LiveBench) -> None:
    call_id = await live.asked("cat /proc/sys/kernel/random/uuid | tee uuid")
    await live.previewed(call_id)
    seen = await live.output(call_id)
    await live.approve(call_id)
    record = await live.over(call_id)
    assert (live.workspace / "uuid").read_bytes() == await live.output(call_id) != seen
    assert record.preview is not None and record.preview.dropped and not record.undoable
    with pytest.raises(Refused, match="it ran normally, not held back"):
        await live.supervisor.undo(call_id, (), "undo", HUMAN)


async def test_a_previewed_call_that_is_denied_changes_nothing_and_keeps_no_files(live: LiveBench) -> None:
    before = live.files()
    call_id = await live.asked(CHANGES)
    await live.previewed(call_id)
    await live.deny(call_id, "not now")
    record = await live.until(call_id, lambda record: record.preview is not None and record.preview.dropped)
    assert isinstance(record.state, Ended) and isinstance(record.state.ending, Denied)
    assert live.files() == before
    directory = Path(live.home.state) / "runs" / f"{call_id}.1" / "preview"
    async with asyncio.timeout(PATIENCE_S):
        while directory.exists():
            await asyncio.sleep(0.01)
    assert await live.output(call_id) == b""


async def test_applied_changes_can_be_undone_and_redone(live: LiveBench) -> None:
    before = live.files()
    call_id = await live.asked(CHANGES)
    await live.previewed(call_id)
    await live.apply(call_id)
    after = live.files()
    assert after != before
    page = await live.supervisor.preview_page(call_id)
    number = next(change.number for change in page.changes if change.path.endswith("/old.txt"))
    versions = await live.supervisor.preview_versions(call_id, number)
    assert (versions.old, versions.new) == ("one\n", "one\ntwo\n")
    await live.supervisor.undo(call_id, (), "undo", HUMAN)
    assert live.files() == before
    record = await live.record(call_id)
    assert record.undo is not None and record.undo.done and record.undo.direction == "undo"
    await live.supervisor.undo(call_id, (), "redo", HUMAN)
    assert live.files() == after


async def test_changes_are_listed_in_the_order_of_their_paths(live: LiveBench) -> None:
    await live.open()
    call_id = await live.asked("mkdir b a; echo x | tee a/2 a/1 b/1 a.txt c > /dev/null; rm kept.txt")
    await live.previewed(call_id)
    assert list(await live.paths(call_id)) == ["a", "a/1", "a/2", "a.txt", "b", "b/1", "c", "kept.txt"]


async def test_pages_and_files_that_follow_each_other_are_read_from_the_disk_once(live: LiveBench, monkeypatch) -> None:
    loaded: list[str] = []

    def load(directory: str) -> Plan:
        loaded.append(directory)
        return load_plan(directory)

    monkeypatch.setattr(preview_changes, "load_plan", load)
    await live.open()
    call_id = await live.asked("echo more >> kept.txt; echo new > new.txt")
    await live.previewed(call_id)
    loaded.clear()
    for number in range(2):
        page = await live.supervisor.preview_page(call_id, number, 1)
        assert (page.total, page.counts.created, page.counts.changed) == (2, 1, 1)
        await live.supervisor.preview_versions(call_id, number)
    assert len(loaded) == 1
    await live.apply(call_id)
    await live.supervisor.undo(call_id, (), "undo", HUMAN)
    assert all(change.taken_back for change in (await live.supervisor.preview_page(call_id)).changes)


async def test_what_is_undone_is_not_undone_again_and_a_part_can_be_redone(live: LiveBench) -> None:
    call_id = await live.asked(CHANGES)
    await live.previewed(call_id)
    await live.apply(call_id)
    with pytest.raises(Refused, match="not undone"):
        await live.supervisor.undo(call_id, (), "redo", HUMAN)
    await live.supervisor.undo(call_id, (str(live.workspace / "kept.txt"),), "undo", HUMAN)
    page = await live.supervisor.preview_page(call_id)
    taken_back = {os.path.basename(change.path) for change in page.changes if change.taken_back}
    assert taken_back == {"kept.txt"}
    assert "kept.txt" in live.files()
    await live.supervisor.undo(call_id, (), "redo", HUMAN)
    assert "kept.txt" not in live.files()
    await live.supervisor.undo(call_id, (), "undo", HUMAN)
    assert all(change.taken_back for change in (await live.supervisor.preview_page(call_id)).changes)
    with pytest.raises(Refused, match="undone already"):
        await live.supervisor.undo(call_id, (), "undo", HUMAN)
    undo = (await live.record(call_id)).undo
    assert undo is not None and undo.done and not undo.problem and undo.direction == "undo"


async def test_an_undo_is_refused_where_a_file_is_not_as_the_command_left_it(live: LiveBench) -> None:
    call_id = await live.asked(CHANGES)
    await live.previewed(call_id)
    await live.apply(call_id)
    (live.workspace / "new.txt").write_text("work of a day\n")
    after = live.files()
    with pytest.raises(Refused, match=r"new\.txt"):
        await live.supervisor.undo(call_id, (), "undo", HUMAN)
    assert live.files() == after
    await live.supervisor.undo(call_id, (str(live.workspace / "kept.txt"),), "undo", HUMAN)
    assert live.files() == after | {"kept.txt": "kept\n"}


async def test_an_undoable_run_is_real_when_it_ends_and_can_be_taken_back(live: LiveBench) -> None:
    before = live.files()
    call_id = await live.asked(CHANGES)
    await live.decide(call_id, Approve(undoable=True))
    record = await live.over(call_id)
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=0) and not record.state.discarded
    assert live.files()["old.txt"] == "one\ntwo\n" and "kept.txt" not in live.files()
    assert await live.output(call_id) == b"done\n"
    await live.supervisor.undo(call_id, (), "undo", HUMAN)
    assert live.files() == before


async def test_the_changes_of_an_undoable_run_are_dropped_if_a_file_changed_meanwhile(live: LiveBench) -> None:
    os.mkfifo(live.workspace / "go")
    call_id = await live.asked("echo begun; cat /dev/null > started; sleep 0.5; echo two >> old.txt")
    await live.decide(call_id, Approve(undoable=True))
    await live.until(call_id, lambda record: record.process is not None)
    async with asyncio.timeout(PATIENCE_S):
        while await live.output(call_id) != b"begun\n":
            await asyncio.sleep(0.01)
    (live.workspace / "old.txt").write_text("someone else\n")
    record = await live.over(call_id)
    assert isinstance(record.state, Ended)
    assert "old.txt" in record.state.discarded
    assert "file changes of this command did not become real" in (agent_note(record) or "")
    assert (live.workspace / "old.txt").read_text() == "someone else\n"
    assert not (live.workspace / "started").exists()


async def test_a_preview_continues_under_the_next_supervisor(live: LiveBench) -> None:
    call_id = await live.asked("sleep 1; echo late > late.txt")
    await live.supervisor.preview(call_id, HUMAN)
    await live.restart()
    report = await live.report(call_id)
    assert report.ending == Exited(code=0) and report.counts.created == 1
    await live.apply(call_id)
    assert (live.workspace / "late.txt").read_text() == "late\n"


async def test_the_next_supervisor_finishes_what_was_being_applied(live: LiveBench) -> None:
    call_id = await live.asked("echo x > x")
    report = await live.previewed(call_id)

    # The journal has the start, and nothing was done yet: as after a kill at this moment.
    live.supervisor._parts.pool.previews.changes.apply = lambda record: asyncio.sleep(3600)  # type: ignore[method-assign, assignment]
    await live.decide(call_id, Approve(preview=report.digest))
    await live.until(call_id, lambda record: record.state.kind == "starting")
    assert not (live.workspace / "x").exists()
    await live.restart()
    record = await live.over(call_id)
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=0)
    assert (live.workspace / "x").read_text() == "x\n"


async def test_the_next_supervisor_finishes_what_was_being_taken_back(live: LiveBench) -> None:
    before = live.files()
    call_id = await live.asked("echo x > x; rm kept.txt")
    await live.previewed(call_id)
    await live.apply(call_id)

    # The journal has the undo, and nothing was done yet: as after a kill at this moment.
    live.supervisor._parts.pool.previews.changes._move = lambda *given: asyncio.sleep(0)  # type: ignore[method-assign, assignment]
    await live.supervisor.undo(call_id, (), "undo", HUMAN)
    assert (live.workspace / "x").exists()
    await live.restart()
    record = await live.until(call_id, lambda record: record.undo is not None and record.undo.done)
    assert record.undo is not None and record.undo.by == HUMAN
    assert live.files() == before


async def test_an_edited_command_is_previewed_and_applied_as_it_was_edited(live: LiveBench) -> None:
    call_id = await live.asked("rm -r .")
    record = await live.record(call_id)
    command = record.call.spec.command.model_copy(update={"text": "rm old.txt"})
    edited = record.call.spec.model_copy(update={"command": command})
    await live.supervisor.preview(call_id, HUMAN, edited)
    await live.report(call_id)
    assert await live.paths(call_id) == {"old.txt": "deletes"}
    record = await live.apply(call_id)
    assert record.spec == edited and record.edited
    assert live.files() == {"kept.txt": "kept\n"}


async def test_what_a_preview_tries_to_reach_is_refused_and_named(live: LiveBench) -> None:
    call_id = await live.asked("exec 3<>/dev/tcp/example.org/443 || echo refused")
    report = await live.previewed(call_id)
    assert [(each.what, each.target) for each in report.blocked] == [("network", "example.org:443")]
    assert await live.output(call_id) == b"refused\n"


async def test_a_device_that_a_preview_does_not_write_to_is_named_and_keeps_it_from_being_applied(
    live: LiveBench,
) -> None:
    before = live.files()
    call_id = await live.asked("echo two >> old.txt; echo x > /dev/sdx; echo x > /dev/null")
    report = await live.previewed(call_id)
    assert [(each.what, each.target) for each in report.blocked] == [("device", "/dev/sdx")]
    with pytest.raises(Refused, match="a real run may write to /dev/sdx"):
        await live.decide(call_id, Approve(preview=report.digest))
    assert isinstance((await live.record(call_id)).state, Waiting) and live.files() == before


async def test_a_moved_file_names_its_old_path(live: LiveBench) -> None:
    (live.workspace / "other.txt").write_text("oth\n")
    text = "mkdir there; mv kept.txt there/a; cp -p old.txt b; rm old.txt; echo OTH > c; touch -r other.txt c"
    call_id = await live.asked(f"{text}; rm other.txt")
    await live.previewed(call_id)
    page = await live.supervisor.preview_page(call_id)
    found = {os.path.relpath(each.path, live.workspace): each.moved_from for each in page.changes if each.moved_from}
    # Another content with the same size and time was not moved.
    assert found == {"there/a": f"{live.workspace}/kept.txt", "b": f"{live.workspace}/old.txt"}
    await live.apply(call_id)
    page = await live.supervisor.preview_page(call_id)
    assert {each.moved_from for each in page.changes if each.moved_from} == set(found.values())


async def test_a_renamed_directory_is_one_row_with_the_edited_files_in_it(live: LiveBench) -> None:
    lines = "".join(f"line {number}\n" for number in range(50))
    for name in ("a.py", "b.py", "sub/c.py"):
        (live.workspace / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (live.workspace / "src" / name).write_text(f"# {name}\n{lines}")
    (live.workspace / "src" / "empty").touch()
    call_id = await live.asked("mv src lib; sed -i 's/line 7$/seven/' lib/b.py")
    report = await live.previewed(call_id)
    assert (report.counts.renamed, report.counts.created, report.counts.deleted) == (6, 0, 0)
    before = live.files()
    for _ in range(2):
        page = await live.supervisor.preview_page(call_id)
        found = {os.path.relpath(each.path, live.workspace): each for each in page.changes}
        assert [os.path.relpath(each.path, live.workspace) for each in without_renamed(page.changes)] == [
            "lib",
            "lib/b.py",
        ]
        renamed = found["lib"]
        assert (renamed.moved_from, renamed.below) == (f"{live.workspace}/src", 5)
        edited = found["lib/b.py"]
        assert edited.moved_from == f"{live.workspace}/src/b.py" and 90 < (edited.alike or 0) < 100
        assert (edited.size_before, edited.size_after) == (len(f"# b.py\n{lines}"), len(f"# b.py\n{lines}") - 1)
        shown = await live.supervisor.preview_versions(call_id, edited.number)
        assert (shown.file.action, shown.file.moved_from) == ("moves", f"{live.workspace}/src/b.py")
        assert (shown.old, shown.new) == (f"# b.py\n{lines}", f"# b.py\n{lines}".replace("line 7\n", "seven\n"))
        if not (live.workspace / "lib").exists():
            record = await live.apply(call_id)
    assert isinstance(record.state, Ended) and record.state.changed is not None
    assert (record.state.changed.added, record.state.changed.removed) == (1, 1)
    await live.supervisor.undo(call_id, (), "undo", HUMAN)
    assert live.files() == before


async def test_a_directory_of_which_only_a_part_was_renamed_is_none(live: LiveBench) -> None:
    (live.workspace / "src").mkdir()
    (live.workspace / "src" / "a").write_text("a\n")
    (live.workspace / "src" / "b").write_text("b\n")
    call_id = await live.asked("mv src lib; rm lib/b; echo c > lib/c")
    await live.previewed(call_id)
    page = await live.supervisor.preview_page(call_id)
    rows = {os.path.relpath(each.path, live.workspace): each for each in page.changes}
    assert {name: each.moved_from for name, each in rows.items() if each.moved_from} == {
        "lib/a": f"{live.workspace}/src/a"
    }
    assert [os.path.relpath(each.path, live.workspace) for each in without_renamed(page.changes)] == [
        "lib",
        "lib/a",
        "lib/c",
        "src",
        "src/b",
    ]


async def test_a_rule_previews_its_commands_automatically(live: LiveBench) -> None:
    rule = Rule(name="look first", program="rm", preview="always")
    await live.restart(Rules(ask=(rule,)))
    call_id = await live.asked("rm old.txt")
    report = await live.report(call_id)
    assert report.counts.deleted == 1
    assert (live.workspace / "old.txt").exists()
    record = await live.record(call_id)
    assert record.preview is not None and record.preview.by.who == "look first"


async def test_a_rule_forbids_previews(live: LiveBench) -> None:
    rule = Rule(name="never here", program="rm", preview="never")
    await live.restart(Rules(ask=(rule,)))
    with pytest.raises(Refused, match="never previewed"):
        await live.supervisor.preview(await live.asked("rm old.txt"), HUMAN)


async def test_a_call_that_does_not_wait_cannot_be_previewed(live: LiveBench) -> None:
    call_id = await live.asked("true")
    await live.supervisor.preview(call_id, HUMAN)
    with pytest.raises(Refused, match="is running"):
        await live.supervisor.preview(call_id, HUMAN)
    await live.deny(call_id, "no")
    with pytest.raises(Refused, match="does not wait"):
        await live.supervisor.preview(call_id, HUMAN)


async def test_how_commands_are_previewed_is_found_out_again_after_a_failure_that_may_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good, told = PreviewSupport(ways=("overlay",)), deque[PreviewSupport]()

    async def probe() -> PreviewSupport:
        return told.popleft()

    found = PreviewProbe(probe)
    monkeypatch.setattr("whisper_tui.supervisor.runs.preview_probe.PROBE_AGAIN_S", 0.0)

    async def until(support: PreviewSupport) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while found.support != support:
                await asyncio.sleep(0.01)

    full = PreviewSupport(refused=(("overlay", os.strerror(errno.ENOSPC)),))
    killed = PreviewSupport(ways=("read-only",), refused=(("overlay", WAS_KILLED),))
    too_slow, never = PreviewSupport(problem=f"the probe failed: {TOOK_TOO_LONG}"), PreviewSupport(problem="no")
    told.extend((full, killed, too_slow, good))
    await until(good)
    assert not told
    told.append(good)
    assert found.support == good and len(told) == 1
    found = PreviewProbe(probe)
    told.clear()
    told.append(never)
    await until(never)
    assert found.support == never


async def test_a_preview_of_which_a_process_was_killed_cannot_be_applied(live: LiveBench) -> None:
    call_id = await live.asked("echo new > begun; while :; do sleep 1; done")
    await live.supervisor.preview(call_id, HUMAN)
    below = f"{live.home.state}/runs/{call_id}.1/{PREVIEW}"

    def made() -> bool:
        return any("begun" in names for _, _, names in os.walk(below))

    async with asyncio.timeout(PATIENCE_S):
        while not made():
            await asyncio.sleep(0.01)
    # the init of its view, the only one of these processes that is the first of a namespace
    inits = [pid for pid in _all_below(os.getpid()) if _pids_in_namespaces(pid)[1:] == [1]]
    assert len(inits) == 1
    os.kill(inits[0], signal.SIGKILL)
    report = await live.report(call_id)
    assert isinstance(report.ending, Signalled)
    assert report.problem == f"{WAS_KILLED}, so how far it came is not known"
    record = await live.record(call_id)
    assert record.preview is not None and not record.preview.can_be_applied


def _all_below(pid: int) -> list[int]:
    return [found for child in children_of(pid) for found in (child, *_all_below(child))]


def _pids_in_namespaces(pid: int) -> list[int]:
    """The pids of a process, from the outermost namespace to its own."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return []
    return [int(each) for each in status.partition("NSpid:")[2].partition("\n")[0].split()]


async def test_a_probe_that_is_stopped_leaves_no_process(tmp_path: Path) -> None:
    before = set(children_of(os.getpid()))
    found = PreviewProbe(lambda: preview_support(str(tmp_path), str(tmp_path)))
    assert found.support is None
    async with asyncio.timeout(PATIENCE_S):
        while not set(children_of(os.getpid())) - before:
            await asyncio.sleep(0)
    await found.close()
    assert not set(children_of(os.getpid())) - before


async def test_the_reason_of_a_failed_probe_is_the_systems_and_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "no directory").touch()
    found = await preview_support(str(tmp_path / "no directory"), str(tmp_path))
    assert found.problem.startswith(f"the probe failed: Not a directory: '{tmp_path}/no directory/")
    assert "Error" not in found.problem and ", line" not in found.problem


async def test_a_change_that_somebody_has_worked_on_stays_and_is_told_and_the_call_does_not_run_again(
    live: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        (live.workspace / name).write_text("begin\n")
    call_id = await live.asked("for f in a b c; do echo mine >> $f; done")
    report = await live.previewed(call_id)
    make_real = ChangeSteps.make_real

    def edited_after_the_first(steps: ChangeSteps, number: int, change: FileChange) -> Stamp | None:
        if number == 1:
            for name in ("a", "b"):
                with (live.workspace / name).open("a") as file:
                    file.write("theirs\n")
        return make_real(steps, number, change)

    monkeypatch.setattr(ChangeSteps, "make_real", edited_after_the_first)
    await live.decide(call_id, Approve(preview=report.digest))
    record = await live.over(call_id)
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=0)
    assert {name: (live.workspace / name).read_text() for name in ("a", "b", "c")} == {
        "a": "begin\nmine\ntheirs\n",
        "b": "begin\ntheirs\n",
        "c": "begin\n",
    }
    told = agent_note(record) or ""
    assert f"what it did to {live.workspace / 'a'} stays" in told and f"{live.workspace / 'b'} changed" in told


async def test_an_undo_leaves_what_somebody_works_on_meanwhile_and_says_so(
    live: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        (live.workspace / name).write_text("begin\n")
    call_id = await live.asked("for f in a b c; do cp $f new; echo mine >> new; mv new $f; done")
    await live.previewed(call_id)
    await live.apply(call_id)
    take_back = ChangeSteps.take_back

    def edited_after_the_first(steps: ChangeSteps, number: int, change: FileChange, made: Result) -> Stamp | None:
        if number == 1:
            with (live.workspace / "b").open("a") as file:
                file.write("theirs\n")
        return take_back(steps, number, change, made)

    with monkeypatch.context() as patched, pytest.raises(Refused, match=r"what it did to \S+/b stays") as refused:
        patched.setattr(ChangeSteps, "take_back", edited_after_the_first)
        await live.supervisor.undo(call_id, (), "undo", HUMAN)
    assert "Everything else is undone" in (refused.value.hint or "")
    assert {name: (live.workspace / name).read_text() for name in ("a", "b", "c")} == {
        "a": "begin\n",
        "b": "begin\nmine\ntheirs\n",
        "c": "begin\n",
    }
    with pytest.raises(Refused, match="/b changed since"):
        await live.supervisor.undo(call_id, (), "undo", HUMAN)
