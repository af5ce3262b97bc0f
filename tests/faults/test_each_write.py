"""Every write of the journal fails, in one instance each: what people and agents do is done in the end, and once."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.faults.breaking import BrokenFrom, facts
from tests.faults.scenario import ENDINGS, everything, problems
from tests.faults.world import World
from whisper_tui.model.state import CallRecord

EVERY = 1 if os.environ.get("WHISPER_FAULTS") == "all" else 6
"""Of which writes the failure is followed by a restart, too."""


async def after(directory: Path, seq: int | None, *, crash: bool = False) -> tuple[World, dict[str, CallRecord]]:
    """A world in which everything was done, though one write failed."""
    world = World(directory)
    await world.open()
    mending: asyncio.Task[None] | None = None
    if seq is not None:
        broken = BrokenFrom(world.journal, seq)
        broken.begin()
        mending = asyncio.create_task(world.broken_once(broken, crash=crash))
    calls = await everything(world)
    if mending is not None:
        await mending
    return world, calls


async def board_problems(world: World) -> list[str]:
    """The picture that everybody has been given has to be the one that the disk gives."""
    given = world.supervisor.board
    before = {call_id: given.calls[call_id] for call_id in given.calls}, dict(given.grants), dict(given.sessions)
    await world.replace()
    again = world.supervisor.board
    now = {call_id: again.calls[call_id] for call_id in again.calls}, dict(again.grants), dict(again.sessions)
    return [] if before == now else ["the picture after a restart is another one"]


@pytest.mark.slow
async def test_any_failed_write_is_eventually_done_exactly_once(tmp_path: Path) -> None:
    undisturbed, _ = await after(tmp_path / "undisturbed", None)
    written = facts(undisturbed.journal)
    usual = {str(number): undisturbed.facts_of(str(number)) for number in range(1, len(ENDINGS) + 1)}
    await undisturbed.supervisor.close()

    async def with_failure(seq: int) -> list[str]:
        world, calls = await after(tmp_path / f"{seq}", seq)
        found = problems(world, calls) + (await board_problems(world) if seq % EVERY == 0 else [])
        found += [f"call {each}: {world.facts_of(each)}" for each in usual if world.facts_of(each) != usual[each]]
        await world.supervisor.close()
        return [f"write {seq} failed ({written[seq - 1]['kind']}): {problem}" for problem in found]

    found = await asyncio.gather(*map(with_failure, range(1, len(written) + 1, min(EVERY, 2))))
    assert [problem for each in found for problem in each] == []


@pytest.mark.slow
async def test_after_any_failed_write_the_next_supervisor_completes_the_work(tmp_path: Path) -> None:
    undisturbed, _ = await after(tmp_path / "undisturbed", None)
    written = facts(undisturbed.journal)
    await undisturbed.supervisor.close()

    async def with_failure(seq: int) -> list[str]:
        world, calls = await after(tmp_path / f"{seq}", seq, crash=True)
        found = problems(world, calls) + await board_problems(world)
        await world.supervisor.close()
        return [f"write {seq} failed ({written[seq - 1]['kind']}): {problem}" for problem in found]

    found = await asyncio.gather(*map(with_failure, range(1, len(written) + 1, EVERY)))
    assert [problem for each in found for problem in each] == []
