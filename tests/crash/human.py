"""A human: looks at what everybody sees, decides about whatever waits, and stops the world now and then."""

import asyncio
import time
from contextlib import suppress

from tests.crash.field import AGAIN_S, Field
from tests.crash.work import Work
from whisper_tui.model.call import Shell
from whisper_tui.model.decision import Approve, Decider, Decision, Deny
from whisper_tui.model.errors import Refused, WhisperError
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.wire.client import SupervisorClient

HUMAN = Decider(surface="library", who="crash test")
LOOKS_EVERY_S = 0.02
HESITATES_S = 0.4
"""How long the human thinks about every seventh command."""
PAUSES_EVERY_S = 20.0
PAUSE_S = 0.3


async def human(field: Field, everything_is_over: asyncio.Event) -> None:
    """Decide for as long as anything comes."""
    watching = asyncio.create_task(_watch(field))
    pausing = asyncio.create_task(_pause_at_times(field))
    door = await field.door()
    while not everything_is_over.is_set():
        for call_id in tuple(field.board.waiting):
            record = field.board.calls[call_id]
            if not _thinks_about(record):
                with suppress(Refused):
                    await _decide(field, door, record)
        await asyncio.sleep(LOOKS_EVERY_S)
    await pausing
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
    number = Work.found_in(record.call.spec.command.text).number
    state = record.state
    return number % 7 == 0 and isinstance(state, Waiting) and time.time() < state.since + HESITATES_S


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
    work = Work.found_in(record.call.spec.command.text)
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
