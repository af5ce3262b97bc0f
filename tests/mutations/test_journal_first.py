"""What is about to happen is on the disk before it happens."""

import asyncio
import sqlite3
from pathlib import Path

from tests.supervisor.hand_executor import HandExecutor
from tests.wire.conftest import waiting_call
from whisper_tui.model.decision import Approve, Decider
from whisper_tui.supervisor.runs.executor import StartOrder
from whisper_tui.supervisor.supervisor import Supervisor
from whisper_tui.system.state_directory import Directories

FLUSHED = 2
"""What SQLite calls a journal that is flushed to the disk with each commit."""


class Witness(HandExecutor):
    """Looks into the journal's file in the moment in which it is told to start something."""

    def __init__(self, journal: Path) -> None:
        super().__init__()
        self._journal = journal
        self.supervisor: Supervisor
        self.seen: list[tuple[int, int]] = []
        """Facts of the file that say so, and how the last one was written."""

    async def start(self, order: StartOrder) -> None:
        with sqlite3.connect(self._journal) as db:
            started = f"""SELECT count(*) FROM events WHERE call_id = {order.key.call_id} AND body LIKE '%"started"%'"""
            (facts,) = db.execute(started).fetchone()
        db.close()
        (how,) = self.supervisor._store.journal._db.execute("PRAGMA synchronous").fetchone()
        self.seen.append((facts, how))
        await super().start(order)


async def test_a_start_is_flushed_to_the_disk_before_the_order_is_given(tmp_path: Path):
    home = Directories(config=tmp_path / "config", state=tmp_path / "state", runtime=tmp_path / "run")
    witness = Witness(tmp_path / "state" / "journal.sqlite")
    witness.supervisor = supervisor = Supervisor(home, witness)
    await supervisor.open()
    try:
        call = await waiting_call(supervisor, tmp_path, "true")
        seen = (await supervisor.record(call)).seen_digest()
        await supervisor.decide(call, Approve(), Decider(surface="library"), seen)
        async with asyncio.timeout(60):
            while not witness.seen:
                await asyncio.sleep(0.01)
    finally:
        await supervisor.close()
    assert witness.seen == [(1, FLUSHED)]
