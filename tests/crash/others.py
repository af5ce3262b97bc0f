"""Who else is there: a human that decides, a cockpit that looks, and a killer."""

import asyncio
import os
import pty
import random
from contextlib import suppress

from tests.crash import work
from tests.crash.field import AGAIN_S, PROGRAM, Field
from whisper_tui.model.decision import Approve, Decider, Deny
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.port import HistoryQuery
from whisper_tui.model.state import Running, Waiting
from whisper_tui.wire.client import RemoteSupervision

HUMAN = Decider(surface="library", who="crash test")

VICTIMS = {"supervisor": 20, "keeper": 25, "relay": 15, "hook": 25, "exec": 14, "cockpit": 1}
"""What is killed how often, of a hundred."""


async def human(field: Field, everything_is_over: asyncio.Event) -> None:
    """Decide about whatever waits, by the number of the command, for as long as anything comes."""
    door = await field.door()
    while not everything_is_over.is_set():
        with suppress(WhisperError):
            for record in await door.history(HistoryQuery(open_only=True, limit=500)):
                if isinstance(record.state, Waiting):
                    no = work.is_denied(work.number_in(record.call.spec.command.text))
                    decision = Deny(reason="nines are denied") if no else Approve()
                    await door.decide(record.id, decision, HUMAN, record.seen_digest())
        await asyncio.sleep(0.02)
    await door.close()


async def cockpit(field: Field) -> None:
    """A cockpit on a terminal of its own, opened again whenever it was killed."""
    while not field.over.is_set():
        ours, theirs = pty.openpty()
        process = await asyncio.create_subprocess_exec(
            *PROGRAM, "--home", str(field.root), stdin=theirs, stdout=theirs, stderr=theirs, env=_terminal()
        )
        os.close(theirs)
        field.processes.setdefault("cockpit", set()).add(process)
        loop = asyncio.get_running_loop()
        loop.add_reader(ours, _drain, ours)
        waiting = asyncio.create_task(process.wait())
        over = asyncio.create_task(field.over.wait())
        await asyncio.wait({waiting, over}, return_when=asyncio.FIRST_COMPLETED)
        if process.returncode is None:
            process.kill()
            await process.wait()
        over.cancel()
        loop.remove_reader(ours)
        os.close(ours)
        field.forget("cockpit", process)


def _terminal() -> dict[str, str]:
    return {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}


def _drain(descriptor: int) -> None:
    with suppress(OSError):
        os.read(descriptor, 1 << 16)


async def killer(field: Field, kills: int, chance: random.Random) -> None:
    """Kill one thing after the other, at random instants, until it was enough."""
    door = await field.door()
    kinds, weights = list(VICTIMS), list(VICTIMS.values())
    while sum(field.killed.values()) < kills:
        await asyncio.sleep(chance.uniform(0.0, 0.15))
        (kind,) = chance.choices(kinds, weights)
        if kind == "supervisor":
            pid = await asyncio.to_thread(field.supervisor)
            if pid is not None:
                field.kill(kind, pid)
        elif kind == "keeper":
            await _kill_keeper(field, door, chance)
        elif victims := [one for one in field.processes.get(kind, ()) if one.returncode is None]:
            field.kill(kind, chance.choice(victims).pid)
    await door.close()


async def _kill_keeper(field: Field, door: RemoteSupervision, chance: random.Random) -> None:
    try:
        records = await door.history(HistoryQuery(open_only=True, limit=200))
    except WhisperError:
        await asyncio.sleep(AGAIN_S)
        return
    running = [record for record in records if isinstance(record.state, Running)]
    if running:
        record = chance.choice(running)
        field.without_keeper.add(record.id)
        field.kill("keeper", record.state.process.keeper_pid)
