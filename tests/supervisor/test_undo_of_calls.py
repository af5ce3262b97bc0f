"""What one of two agents did is undone as if its calls had not run, but for what is named; and redone."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.outside import EXHAUSTIVE, needs_overlays
from tests.supervisor import random_undos
from tests.supervisor.conftest import HUMAN
from tests.supervisor.test_previews import LiveBench
from whisper_tui.model.decision import Approve
from whisper_tui.model.errors import Refused
from whisper_tui.model.preview import UndoOrder
from whisper_tui.supervisor.runs.kept_changes import PENDING
from whisper_tui.tools.agent_text import agent_note

pytestmark = needs_overlays


SEQUENCES = [range(6), pytest.param(random_undos.fresh(300) if EXHAUSTIVE else range(6, 18), marks=pytest.mark.slow)]


@pytest.mark.parametrize("seeds", SEQUENCES, ids=["few", "many"])
async def test_random_sequences_of_two_agents_and_a_human(seeds: Sequence[int]) -> None:
    assert await random_undos.failures(seeds) == []


async def run(live: LiveBench, session: str, text: str) -> str:
    call_id = await live.submit(session, text=text)
    await live.decide(call_id, Approve(undoable=True))
    await live.over(call_id)
    return call_id


@pytest.fixture
async def live(tmp_path: Path):
    made = LiveBench(tmp_path)
    await made.open()
    yield made
    await made.supervisor.close()


async def test_each_agent_is_told_once_what_was_undone_and_what_stays(live: LiveBench) -> None:
    session = await live.session()
    ids = [await run(live, session, text) for text in ("echo 1 > a", "echo 2 > b", "echo 3 > c")]
    (live.workspace / "b").write_text("mine\n")
    done = await live.supervisor.undo_calls(UndoOrder(call_ids=tuple(ids), direction="undo"), HUMAN)
    assert done.calls == ("3", "1")
    assert [(each.call_id, each.paths, each.why) for each in done.left_out] == [
        ("2", (str(live.workspace / "b"),), "changed since")
    ]
    assert live.files() == {"b": "mine\n"}
    told = agent_note(await live.record(await run(live, session, "true")))
    assert told is not None and told.endswith(
        "The human has undone the changes of 2 calls: 1, 3. Left as they are, since they were changed by others: b. "
        "Look at the files before you go on."
    )
    again = agent_note(await live.record(await run(live, session, "true")))
    assert again is None or "undone" not in again


async def test_what_a_killed_supervisor_has_begun_is_finished_by_the_next(live: LiveBench) -> None:
    session = await live.session()
    ids = [await run(live, session, text) for text in ("echo 1 > a", "echo 2 >> a", "echo 3 > c")]
    order = UndoOrder(call_ids=tuple(ids), direction="undo")
    noted = {"order": order.model_dump(mode="json"), "by": HUMAN.model_dump(mode="json"), "at": 0.0}
    # What a kill leaves after the first of them.
    await live.supervisor.undo(ids[2], (), "undo", HUMAN, tell=False)
    marks = Path(live.home.state, "runs", PENDING)
    (marks / "interrupted.json").write_text(json.dumps(noted))
    (marks / "torn.json").write_text("{")
    await live.supervisor.close()
    await live.open()
    async with asyncio.timeout(60):
        while (marks / "interrupted.json").exists():
            await asyncio.sleep(0.01)
    assert live.files() == {} and list(marks.iterdir()) == []


async def test_only_paths_are_undone_and_single_files_are_not_redone(live: LiveBench) -> None:
    session = await live.session()
    ids = [await run(live, session, text) for text in ("echo 1 > a; echo 1 > b", "echo 2 >> a")]
    paths = (str(live.workspace / "a"),)
    order = UndoOrder(call_ids=tuple(ids), paths=paths, direction="undo")
    foretold = order.model_copy(update={"dry_run": True, "with_versions": True})
    plan = await live.supervisor.undo_calls(foretold, HUMAN)
    assert plan.calls == ("2", "1") and live.files() == {"a": "1\n2\n", "b": "1\n"}
    (file,) = plan.files
    assert (file.action, file.removed, file.calls) == ("deletes", 2, ("2", "1"))
    assert file.versions is not None and file.versions.old == "1\n2\n" and file.versions.new is None
    await live.supervisor.undo_calls(order, HUMAN)
    assert live.files() == {"b": "1\n"}
    with pytest.raises(Refused, match="single files"):
        await live.supervisor.undo_calls(order.model_copy(update={"direction": "redo"}), HUMAN)
    await live.supervisor.undo_calls(UndoOrder(call_ids=tuple(ids), direction="redo"), HUMAN)
    assert live.files() == {"a": "1\n2\n", "b": "1\n"}
