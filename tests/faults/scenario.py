"""All that people and agents can have journaled, one after the other, and how every call of it has to end."""

from collections import Counter

from tests.faults.breaking import WORDS
from tests.faults.world import HUMAN, World
from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.state import CallRecord, Claim, Ended
from whisper_tui.supervisor.journal.sqlite_file import check_file

TERM = 15
GONE = "it is gone"


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
