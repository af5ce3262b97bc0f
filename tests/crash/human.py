"""A human: looks at what everybody sees, decides about whatever waits, and stops the world now and then."""

import asyncio
import time
from contextlib import suppress

from tests.crash.field import AGAIN_S, Field
from tests.crash.work import BY_HAND, REFUSED, Work, typed_input
from whisper_tui.model.call import Shell
from whisper_tui.model.decision import Approve, Decider, Decision, Deny
from whisper_tui.model.errors import Refused, WhisperError
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.wire.client import SupervisorClient

HUMAN = Decider(surface="library", who="crash test")
LOOKS_EVERY_S = 0.02
LEAVES_S = 30.0
"""Seconds for which the human leaves to the cockpit, and to agents that type, what is theirs."""
HESITATES_S = 0.4
"""How long the human thinks about every seventh command."""
PAUSES_EVERY_S = 20.0
PAUSE_S = 0.3


async def human(field: Field, everything_is_over: asyncio.Event) -> None:
    """Decide for as long as anything comes."""
    watching = asyncio.create_task(_watch(field))
    pausing = asyncio.create_task(_pause_at_times(field))
    typing = asyncio.create_task(_type_by_hand(field, everything_is_over))
    door = await field.door()
    while not everything_is_over.is_set():
        for call_id in tuple(field.board.waiting):
            record = field.board.calls[call_id]
            if not _thinks_about(record) and not _is_left_to_keys(field, record):
                with suppress(Refused):
                    await _decide(field, door, record)
        await asyncio.sleep(LOOKS_EVERY_S)
    await pausing
    await typing
    watching.cancel()
    await asyncio.wait([watching])
    await door.close()


async def _watch(field: Field) -> None:
    door = await field.door()
    while True:
        with suppress(WhisperError):
            async for batch in door.watch(field.board.seq):
                field.board.apply_all(batch)
        await asyncio.sleep(AGAIN_S)


def _thinks_about(record: CallRecord) -> bool:
    if typed_input(record.call.spec.command) is not None:
        return False
    return Work.asked_by(record).number % 7 == 0 and _waits_since(record) > time.time() - HESITATES_S


def _is_left_to_keys(field: Field, record: CallRecord) -> bool:
    if typed_input(record.call.spec.command) is not None or Work.asked_by(record).kind != "keyed":
        return False
    return not field.over.is_set() and _waits_since(record) > time.time() - LEAVES_S


def _waits_since(record: CallRecord) -> float:
    return record.state.since if isinstance(record.state, Waiting) else 0.0


async def _type_by_hand(field: Field, everything_is_over: asyncio.Event) -> None:
    """Answer in the terminals of commands that have waited for long: their agents or cockpits were killed."""
    door = await field.door()
    while not everything_is_over.is_set():
        for record in [field.board.calls[call_id] for call_id in tuple(field.board.running)]:
            began = record.process.started_at if record.process else time.time()
            if Work.asked_by(record).kind in {"keyed", "task"} and time.time() - began > LEAVES_S:
                with suppress(WhisperError):
                    await _answer(door, record)
        await asyncio.sleep(1.0)
    await door.close()


async def _answer(door: SupervisorClient, record: CallRecord) -> None:
    if b"ready" in (await door.read_output(record.id, "out", 0, 100)).data:
        await door.write_stdin(record.id, BY_HAND.encode())


async def _decide(field: Field, door: SupervisorClient, record: CallRecord) -> None:
    decision = _decision(field, record)
    try:
        await door.decide(record.id, decision, HUMAN, record.seen_digest())
    except Refused:
        raise
    except WhisperError:
        await asyncio.sleep(AGAIN_S)
    else:
        field.told.decision(record.id, decision.kind)


def _decision(field: Field, record: CallRecord) -> Decision:
    if (typed := typed_input(record.call.spec.command)) is not None:
        return Deny(reason="that is not to be typed") if typed == REFUSED else Approve()
    work = Work.asked_by(record)
    match work.kind:
        case "denied":
            return Deny(reason="such commands are denied")
        case "asked":
            other = Shell(text=work.edited().text(field.root))
            return Approve(edited=record.call.spec.model_copy(update={"command": other}))
        case "again":
            return Approve(remember="exact_for_session")
        case _:
            return Approve()


async def _pause_at_times(field: Field) -> None:
    door = await field.door()
    while not field.over.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(field.over.wait(), PAUSES_EVERY_S)
        with suppress(WhisperError):
            await door.pause(HUMAN)
            await asyncio.sleep(PAUSE_S)
        await _resume(door)
    await door.close()


async def _resume(door: SupervisorClient) -> None:
    while True:
        try:
            return await door.resume(HUMAN)
        except WhisperError:
            await asyncio.sleep(AGAIN_S)
