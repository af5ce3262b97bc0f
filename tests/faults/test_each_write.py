"""Every write of the journal fails, in one instance each: what people and agents do is done in the end, and once."""

import asyncio
import os
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.breaking import WORDS, BrokenFrom, facts
from tests.faults.world import HUMAN, World
from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.state import CallRecord, Claim, Ended
from whisper_tui.supervisor.chain import check_file

TERM = 15
GONE = "it is gone"
EVERY = 1 if os.environ.get("WHISPER_FAULTS") == "all" else 3
"""Of which writes the failure is followed by a restart, too."""


async def everything(world: World) -> dict[str, CallRecord]:
    """All that people and agents can have journaled. Returns the calls by what they are about, each at its end."""
    agent = await world.session("agent", hears=True)
    calls = {"first": await world.submit(agent, "true", "1", key="k1")}
    await world.decide(calls["first"], Approve(remember="exact_for_session"))
    await world.settled(calls["first"])
    calls["from memory"] = await world.submit(agent, "true", "1", key="k2")
    calls["stopped"] = await world.submit(agent, "true", "2")
    calls["stopped with it"] = await world.submit(agent, "true", "3")
    await world.decide(calls["stopped"], Deny(reason="no", stop_session=True))
    await world.do(lambda supervisor: supervisor.pause(HUMAN))
    calls["paused"] = await world.submit(agent, "true", "4")
    await world.decide(calls["paused"])
    await world.do(lambda supervisor: supervisor.resume(HUMAN))
    calls["withdrawn"] = await world.submit(agent, "true", "5")
    await world.do(lambda supervisor: supervisor.withdraw(calls["withdrawn"], "not needed"))
    calls["signalled"] = await world.submit(agent, "sleep", "60")
    await world.decide(calls["signalled"])
    await world.do(lambda supervisor: supervisor.started(calls["signalled"]))
    await world.do(lambda supervisor: supervisor.signal(calls["signalled"], TERM, "leader", HUMAN))
    calls["with a ticket"] = await world.submit(agent, "true", "6", ticket="ticket")
    await world.decide(calls["with a ticket"])
    claim = Claim(by="me")
    await world.do(lambda supervisor: supervisor.claim(calls["with a ticket"], "ticket", claim))
    other = await world.session("other")
    calls |= await _what_its_end_ends(world, other)
    await world.do(lambda supervisor: supervisor.say(agent, "hello", HUMAN))
    await world.do(lambda supervisor: supervisor.revoke("g1", HUMAN))
    # A supervisor that ended before it could journal that has forgotten it: the connection of an agent ends again.
    await world.do(lambda supervisor: supervisor.close_session(other, GONE))
    return {about: await world.settled(call_id) for about, call_id in calls.items()}


async def _what_its_end_ends(world: World, other: str) -> dict[str, str]:
    calls = {"tool": await world.submit_function(other, "mend")}
    await world.decide(calls["tool"])
    await world.do(lambda supervisor: supervisor.begin_function(calls["tool"]))
    calls["tool that waits"] = await world.submit_function(other, "paint")
    calls["held"] = await world.submit(other, "true", "7", ticket="ticket")
    await world.decide(calls["held"])
    await world.do(lambda supervisor: supervisor.close_session(other, GONE))
    return calls


ENDINGS = {
    "first": "exited",
    "from memory": "exited",
    "stopped": "denied",
    "stopped with it": "denied",
    "paused": "exited",
    "withdrawn": "withdrawn",
    "signalled": "signalled",
    "with a ticket": "exited",
    "tool": "lost",
    "tool that waits": "withdrawn",
    "held": "withdrawn",
}


def ending(record: CallRecord) -> str:
    assert isinstance(record.state, Ended)
    return record.state.ending.kind


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


def problems(world: World, calls: dict[str, CallRecord]) -> list[str]:
    """What may never be, whatever fails."""
    found = [f"{about} call: {ending(calls[about])}" for about in ENDINGS if ending(calls[about]) != ENDINGS[about]]
    found += [f"{key} was run before it was journaled" for key in world.machine.too_early]
    ran = {record.id for record in calls.values() if ending(record) in {"exited", "signalled"}}
    if world.machine.ran != Counter(dict.fromkeys(ran, 1)):
        found.append(f"these ran: {world.machine.ran}, and these were to run once: {ran}")
    if broken := check_file(world.journal).problem:
        found.append(broken)
    found += [f"this was no help: {error.sentence()}" for error in world.told if "Nothing was done" not in error.hint]
    found += [f"this does not say what is wrong: {trouble}" for trouble in world.troubles if WORDS not in trouble]
    return found


async def board_problems(world: World) -> list[str]:
    """The picture that everybody has been given has to be the one that the disk gives."""
    given = world.supervisor.board
    before = {call_id: given.calls[call_id] for call_id in given.calls}, dict(given.grants), dict(given.sessions)
    await world.replace()
    again = world.supervisor.board
    now = {call_id: again.calls[call_id] for call_id in again.calls}, dict(again.grants), dict(again.sessions)
    return [] if before == now else ["the picture after a restart is another one"]


@pytest.mark.slow
async def test_whatever_write_fails_is_done_in_the_end_once_and_as_if_nothing_had_failed(tmp_path: Path) -> None:
    undisturbed, _ = await after(tmp_path / "undisturbed", None)
    written = facts(undisturbed.journal)
    usual = {str(number): undisturbed.facts_of(str(number)) for number in range(1, len(ENDINGS) + 1)}
    await undisturbed.supervisor.close()

    async def with_failure(seq: int) -> list[str]:
        world, calls = await after(tmp_path / f"{seq}", seq)
        found = problems(world, calls) + await board_problems(world)
        found += [f"call {each}: {world.facts_of(each)}" for each in usual if world.facts_of(each) != usual[each]]
        await world.supervisor.close()
        return [f"write {seq} failed ({written[seq - 1]['kind']}): {problem}" for problem in found]

    found = await asyncio.gather(*map(with_failure, range(1, len(written) + 1)))
    assert [problem for each in found for problem in each] == []


@pytest.mark.slow
async def test_whatever_write_fails_the_next_supervisor_does_what_is_left(tmp_path: Path) -> None:
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
