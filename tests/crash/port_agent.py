"""An agent over the port, with many calls at once, that asks again with the same keys whenever the supervisor dies."""

import asyncio
import os
import signal
from contextlib import suppress

from tests.crash.field import AGAIN_S, Field
from tests.crash.work import OF_KEYS, OF_THE_PORT, Kind, Work
from whisper_tui.model.call import CallRequest, SessionHello
from whisper_tui.model.decision import Decider
from whisper_tui.model.ending import Exited
from whisper_tui.model.errors import NotRunning, WhisperError
from whisper_tui.model.state import CallRecord, Ended, Running
from whisper_tui.wire.client import SupervisorClient

LANES = 3
"""What one agent does at the same time."""
BURST = 24
"""Calls that are made at once now and then."""
BURST_EVERY = 12
LEAD_AGAIN_S = 0.3


class PortAgent:
    """One session, in which several things go on."""

    def __init__(self, field: Field, name: str) -> None:
        self._field = field
        self._name = name
        self._session: str | None = None
        self._known = asyncio.Lock()
        self._is_known = False
        self._door: SupervisorClient

    async def work(self) -> None:
        """Ask for one command after the other in every lane."""
        self._door = await self._field.door()
        async with asyncio.TaskGroup() as lanes:
            for number in range(LANES):
                lanes.create_task(self._lane(OF_THE_PORT, bursts=number == 0))
            lanes.create_task(self._lane(OF_KEYS))
        await self._door.close()

    async def _lane(self, kinds: tuple[Kind, ...], *, bursts: bool = False) -> None:
        rounds = 0
        while not self._field.over.is_set():
            rounds += 1
            size = BURST if bursts and rounds % BURST_EVERY == 0 else 1
            await asyncio.gather(*(self._ask(self._field.numbers.next_of(kinds)) for _ in range(size)))

    async def _ask(self, work: Work) -> None:
        await self._carry_out(work, f"{work.number}")
        await asyncio.gather(*(self._carry_out(work, f"{work.number}.{time}") for time in range(1, work.times)))

    async def _carry_out(self, work: Work, key: str) -> None:
        while True:
            try:
                await self._open_session()
                call_id = await self._submit(work, key)
                record = await self._lead(call_id, work)
                return await self._note(record)
            except WhisperError:
                self._is_known = False
                await asyncio.sleep(AGAIN_S)

    async def _open_session(self) -> None:
        async with self._known:
            if not self._is_known:
                root, environment = str(self._field.workspace), dict(os.environ)
                hello = SessionHello(name=self._name, root=root, environment=environment, resume=self._session)
                self._session = (await self._door.open_session(hello)).id
                self._is_known = True

    async def _submit(self, work: Work, key: str) -> str:
        assert self._session is not None
        spec = work.spec(self._field.root, self._field.workspace)
        request = CallRequest(session_id=self._session, tool="crash", arguments={}, spec=spec, key=key)
        call_id = await self._door.submit(request)
        self._field.told.submission(call_id, work)
        return call_id

    async def _lead(self, call_id: str, work: Work) -> CallRecord:
        """Do what the command needs to come to its end, as often as that takes, and wait for it."""
        if work.kind == "withdrawn":
            await self._door.withdraw(call_id, "the agent has changed its mind")
        if work.kind in {"input", "typed", "signalled"}:
            while isinstance((await self._door.started(call_id)).state, Running):
                with suppress(NotRunning):
                    await self._push(call_id, work)
                with suppress(TimeoutError):
                    return await asyncio.wait_for(self._door.outcome(call_id), LEAD_AGAIN_S)
        return await self._door.outcome(call_id)

    async def _push(self, call_id: str, work: Work) -> None:
        if work.kind != "input" and b"ready" not in (await self._door.read_output(call_id, "out", 0, 100)).data:
            return
        if work.kind in {"input", "typed"}:
            await self._door.write_stdin(call_id, f"{work.word}\n".encode())
        else:
            await self._door.signal(call_id, signal.SIGUSR1, "leader", Decider(surface="agent", who=self._name))

    async def _note(self, record: CallRecord) -> None:
        if isinstance(record.state, Ended) and isinstance(record.state.ending, Exited):
            chunk = await self._door.read_output(record.id, "out", 0, 1 << 26)
            ran = Work.found_in(record.spec.command.text)
            self._field.told.result(ran, record.state.ending.code, chunk.data[: record.state.output.out])
