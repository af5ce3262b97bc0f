"""What is about to happen is on the disk before it happens."""

import asyncio
import errno
import os
import sqlite3
from pathlib import Path
from unittest.mock import patch

from tests.supervisor.hand_executor import HandExecutor
from tests.wire.conftest import waiting_call
from whisper_tui.model.decision import Approve, Decider, Deny
from whisper_tui.supervisor.runs.executor import StartOrder
from whisper_tui.supervisor.supervisor import Supervisor
from whisper_tui.system.state_directory import Directories


class Witness(HandExecutor):
    """Looks into the journal's file in the moment in which it is told to start something."""

    def __init__(self, journal: Path) -> None:
        super().__init__()
        self._journal = journal
        self.supervisor: Supervisor
        self.flushed = 0
        """Events that were flushed to the disk."""
        self.seen: list[tuple[int, bool]] = []
        """Facts of the file that say so, and True if all of them are flushed."""

    def watch_flushes(self, supervisor: Supervisor) -> None:
        """Note how far the journal was written whenever it is flushed."""
        self.supervisor, journal = supervisor, supervisor._store.journal
        flush = journal.flush

        def noted() -> None:
            flush()
            self.flushed = journal.last_seq

        journal.flush = noted  # type: ignore[method-assign]

    async def start(self, order: StartOrder) -> None:
        with sqlite3.connect(self._journal) as db:
            where = f"""call_id = {order.key.call_id} AND body LIKE '%"started"%'"""
            facts, newest = db.execute(f"SELECT count(*), max(seq) FROM events WHERE {where}").fetchone()
        db.close()
        self.seen.append((facts, newest <= self.flushed))
        await super().start(order)


async def test_a_start_is_flushed_to_the_disk_before_the_order_is_given(tmp_path: Path, home: Directories):
    witness = Witness(tmp_path / "state" / "journal.sqlite")
    supervisor = Supervisor(home, witness)
    witness.watch_flushes(supervisor)
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
    assert witness.seen == [(1, True)]


async def test_decisions_that_are_made_together_share_a_flush(tmp_path: Path, home: Directories):
    supervisor, flushes = Supervisor(home, HandExecutor()), list[int]()
    journal = supervisor._store.journal
    flush = journal.flush

    def noted() -> None:
        flush()
        flushes.append(journal.last_seq)

    journal.flush = noted  # type: ignore[method-assign]
    await supervisor.open()
    try:
        calls = [await waiting_call(supervisor, tmp_path, "true") for _ in range(16)]
        seen = [(await supervisor.record(call)).seen_digest() for call in calls]
        by, before = Decider(surface="library"), len(flushes)

        async def decide(call: str, digest: str) -> None:
            await supervisor.decide(call, Deny(reason="no"), by, digest)
            # The fact may only be announced once it is on the disk.
            newest = max(event.seq for event in journal.events_of_call(call))
            assert flushes[-1] >= newest

        await asyncio.gather(*map(decide, calls, seen))
        assert len(flushes) == before + 1
    finally:
        await supervisor.close()


async def test_after_a_failed_flush_nothing_starts_and_the_supervisor_stops(tmp_path: Path, home: Directories):
    executor = HandExecutor()
    supervisor = Supervisor(home, executor)

    await supervisor.open()
    call = await waiting_call(supervisor, tmp_path, "true")
    seen = (await supervisor.record(call)).seen_digest()
    with patch.object(os, "fdatasync", side_effect=OSError(errno.EIO, "Input/output error")):
        decision = asyncio.create_task(supervisor.decide(call, Approve(), Decider(surface="library"), seen))
        await asyncio.wait_for(supervisor.stopped.wait(), 60)
    assert not decision.done()
    decision.cancel()
    await supervisor.close()
    assert not executor.orders
    # Without the note of a clean end the next supervisor asks about approvals again.
    assert not Supervisor(home, HandExecutor())._store.journal.ended_cleanly
