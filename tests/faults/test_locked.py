"""Another program has the journal locked, or makes a copy of it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.world import HUMAN, World
from whisper_tui.model.call import Argv, CallRequest, CommandSpec
from whisper_tui.model.decision import Approve
from whisper_tui.model.errors import JournalFailed
from whisper_tui.supervisor.journal.sqlite_file import check_file


async def test_while_the_journal_is_locked_nothing_runs_and_it_is_reported(tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    await world.open()
    agent = await world.session("agent")
    approved, waiting = await world.submit(agent, "true", "1"), await world.submit(agent, "true", "2")
    await world.do(lambda supervisor: supervisor.pause(HUMAN))
    await world.decide(approved)
    with closing(sqlite3.connect(world.journal, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        spec = CommandSpec(command=Argv(program="true"), cwd=str(world.workspace))
        with pytest.raises(JournalFailed, match="locked") as told:
            await world.supervisor.submit(CallRequest(session_id=agent, tool="t", arguments={}, spec=spec))
        assert "backup" in told.value.hint and "Nothing was done" in told.value.hint
        seen = (await world.supervisor.record(waiting)).seen_digest()
        with pytest.raises(JournalFailed, match="locked"):
            await world.supervisor.decide(waiting, Approve(), HUMAN, seen)
        assert "locked" in ((await world.supervisor.status()).problem or "")
        assert not world.machine.ran
        other.execute("ROLLBACK")
    await world.do(lambda supervisor: supervisor.resume(HUMAN))
    await world.settled(approved)
    await world.decide(waiting)
    await world.settled(waiting)
    assert (await world.supervisor.status()).problem is None
    assert world.machine.ran == {approved: 1, waiting: 1}
    await world.supervisor.close()


async def test_a_backup_disturbs_nobody_and_contains_whole_facts(tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    await world.open()
    agent = await world.session("agent")
    with closing(sqlite3.connect(world.journal)) as source, closing(sqlite3.connect(tmp_path / "copy")) as copy:
        for number in range(20):
            call_id = await world.submit(agent, "true", str(number))
            await world.decide(call_id)
            await world.settled(call_id)
            source.backup(copy)
    assert world.told == []
    verdict = check_file(tmp_path / "copy")
    assert verdict.problem is None and verdict.events == world.supervisor.board.seq
    await world.supervisor.close()
