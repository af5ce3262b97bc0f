"""Previews where namespaces are missing, with real keepers: in a copy, read-only, or not at all, as the card says."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.changes.trees import public_directory
from tests.outside import needs_sandbox
from tests.supervisor.conftest import HUMAN
from tests.supervisor.preview.test_preview_ways import as_user_nobody
from tests.supervisor.test_effect_rules import BUILD, rules
from tests.supervisor.test_previews import CHANGES, LiveBench
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import Exited, FailedToStart
from whisper_tui.model.errors import Refused
from whisper_tui.model.preview import PreviewSetting
from whisper_tui.model.state import Ended, Waiting
from whisper_tui.policy.rules.rule import NO_RULES, Rule, Rules
from whisper_tui.supervisor.runs import start_order

Open = Callable[..., Coroutine[Any, Any, LiveBench]]


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Open]:
    """Opens a supervisor that previews in one way."""
    made = LiveBench(tmp_path)
    (made.workspace / "kept.txt").write_text("kept\n")
    (made.workspace / "old.txt").write_text("one\n")

    async def open_(way: PreviewSetting, given: Rules = NO_RULES) -> LiveBench:
        await made.open(given, previews=way)
        return made

    yield open_
    await made.supervisor.close()


async def refused(live: LiveBench, call_id: str) -> str:
    """Why the changes of a preview are not applied, although somebody asks for it."""
    before = live.files()
    report = await live.report(call_id)
    with pytest.raises(Refused) as error:
        await live.decide(call_id, Approve(preview=report.digest))
    record = await live.record(call_id)
    assert isinstance(record.state, Waiting) and record.decision is None
    assert live.files() == before
    return error.value.sentence()


@needs_sandbox
async def test_a_preview_in_a_copy_is_applied_and_taken_back(opened: Open) -> None:
    live = await opened("copy")
    before = live.files()
    call_id = await live.asked(CHANGES)
    report = await live.previewed(call_id)
    assert live.files() == before
    assert report.way == "copy" and report.ending == Exited(code=0) and not report.problem and not report.blocked
    assert (await live.paths(call_id))["kept.txt"] == "deletes"
    numbers = {Path(each.path).name: each.number for each in (await live.supervisor.preview_page(call_id)).changes}
    versions = await live.supervisor.preview_versions(call_id, numbers["old.txt"])
    assert (versions.old, versions.new) == ("one\n", "one\ntwo\n")
    record = await live.apply(call_id)
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=0)
    assert live.files() == {"old.txt": "one\ntwo\n", "new.txt": "new\n", "made/x": "x\n"}
    assert await live.output(call_id) == b"done\n"
    await live.supervisor.undo(call_id, (), "undo", HUMAN)
    assert live.files() == before


@needs_sandbox
async def test_what_a_copy_refused_keeps_its_changes_from_being_applied(opened: Open) -> None:
    live = await opened("copy")
    call_id = await live.asked(f"echo two > old.txt; echo x > {live.workspace}/new.txt 2>/dev/null; true")
    report = await live.previewed(call_id)
    assert [(each.what, each.target) for each in report.blocked] == [("write", f"{live.workspace}/new.txt")]
    assert await live.paths(call_id) == {"old.txt": "changes"}
    assert f"its copy of the workspace kept it from {live.workspace}/new.txt" in await refused(live, call_id)


@needs_sandbox
async def test_a_file_that_names_the_copy_keeps_the_changes_from_being_applied(opened: Open) -> None:
    live = await opened("copy")
    call_id = await live.asked("pwd > where.txt")
    await live.previewed(call_id)
    assert "where.txt has the path of the copy in it" in await refused(live, call_id)


@needs_sandbox
async def test_a_read_only_preview_lists_what_would_be_written_and_is_never_applied(opened: Open) -> None:
    live = await opened("read-only")
    call_id = await live.asked("cat old.txt; echo two >> old.txt; rm kept.txt; true")
    report = await live.previewed(call_id)
    assert report.way == "read-only" and not report.digest
    assert [each.target for each in report.blocked] == [f"{live.workspace}/{name}" for name in ("old.txt", "kept.txt")]
    assert (await live.output(call_id)) == b"one\n"
    assert "it ran without writing" in await refused(live, call_id)


@needs_sandbox
async def test_a_rule_on_effects_leaves_a_preview_in_a_copy_to_the_human(opened: Open) -> None:
    live = await opened("copy", rules(BUILD))
    call_id = await live.asked("mkdir build; echo x > build/x")
    report = await live.report(call_id)
    assert [why for why in report.beyond_rule if "a copy of the workspace" in why]
    assert isinstance((await live.record(call_id)).state, Waiting)


@pytest.mark.parametrize(
    "given",
    [NO_RULES, Rules(ask=(Rule(name="all", anything=True, preview="always"),)), rules(BUILD)],
    ids=["asked for", "always", "effects"],
)
async def test_without_any_way_to_preview_a_call_waits_for_a_human(opened: Open, given: Rules) -> None:
    live = await opened("none", given)
    call_id = await live.asked("mkdir build; echo x > build/x")
    if not given.ask:
        await live.supervisor.preview(call_id, HUMAN)
    report = await live.report(call_id)
    assert isinstance(report.ending, FailedToStart)
    assert "cannot be previewed here" in report.problem and "the configuration says so" in report.problem
    assert not report.is_possible
    assert "cannot be previewed here" in await refused(live, call_id)
    await live.decide(call_id, Approve())
    record = await live.over(call_id)
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=0)
    assert live.files()["build/x"] == "x\n"


@pytest.mark.parametrize("way", ["copy", "none"])
async def test_a_reversible_run_needs_an_exact_way(opened: Open, way: PreviewSetting) -> None:
    live = await opened(way)
    call_id = await live.asked("echo x > new.txt")
    await live.decide(call_id, Approve(undoable=True))
    record = await live.until(call_id, lambda record: isinstance(record.state, Waiting) and record.decision is None)
    assert isinstance(record.state, Waiting) and "Commands cannot run reversibly here" in str(
        record.state.returned_because
    )
    assert "new.txt" not in live.files()


@needs_sandbox
async def test_a_preview_that_takes_too_long_is_ended_and_says_so(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_order, "PREVIEW_TIMEOUT_S", 0.5)
    live = await opened("copy")
    report = await live.previewed(await live.asked("echo two > old.txt; sleep 600"))
    assert report.stopped == "time"


async def test_the_status_says_how_commands_are_previewed(opened: Open) -> None:
    live = await opened("none")
    async with asyncio.timeout(60):
        while not (said := (await live.supervisor.status()).previews):
            await asyncio.sleep(0.01)
    assert said == "not possible (the configuration says so: [supervisor] previews)"


async def works_for_an_ordinary_user(directory: Path, way: PreviewSetting) -> None:
    live = LiveBench(directory)
    (live.workspace / "kept.txt").write_text("kept\n")
    (live.workspace / "old.txt").write_text("one\n")
    await live.open(previews=way)
    try:
        before = live.files()
        call_id = await live.asked(CHANGES)
        report = await live.previewed(call_id)
        assert report.way == way and report.ending == Exited(code=0) and live.files() == before
        await live.apply(call_id)
        assert live.files() == {"old.txt": "one\ntwo\n", "new.txt": "new\n", "made/x": "x\n"}
        assert (live.workspace / "new.txt").stat().st_uid == os.getuid() != 0
        await live.supervisor.undo(call_id, (), "undo", HUMAN)
        assert live.files() == before
    finally:
        await live.supervisor.close()


@needs_sandbox
@pytest.mark.parametrize("way", ["overlay", pytest.param("copy", marks=pytest.mark.slow)])
def test_a_supervisor_of_an_ordinary_user_previews_applies_and_takes_back(
    way: PreviewSetting, request: pytest.FixtureRequest
) -> None:
    if way == "overlay":
        request.getfixturevalue("overlays")
    with public_directory() as directory:
        directory.chmod(0o777)
        if os.getuid() != 0:
            asyncio.run(works_for_an_ordinary_user(directory, way))
            return
        with as_user_nobody() as status:
            if status.child:
                asyncio.run(works_for_an_ordinary_user(directory, way))
        assert status.code == 0
