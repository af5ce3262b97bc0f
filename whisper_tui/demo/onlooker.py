"""The eyes of the scripted human: everything that happens, folded, and waiting for something to happen."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from whisper_tui.model.board import Board
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.port import Supervision
from whisper_tui.model.state import CallRecord

PATIENCE_S = 60.0
"""Seconds after which something that has not happened is taken not to happen."""
LOOK_S = 0.02
"""Seconds between two looks at a command's output, which is no event."""


class StoryBroke(WhisperError):
    """The demo did not come out as its story says."""

    kind = "story_broke"


class Onlooker:
    """Sees what every cockpit sees."""

    def __init__(self, supervision: Supervision) -> None:
        self.board = Board()
        self._supervision = supervision
        self._news = asyncio.Condition()

    async def see(self, call_id: str, wanted: Callable[[CallRecord], bool], what: str) -> CallRecord:
        """The record of a call once it is as wanted. Raises `StoryBroke` if that takes too long."""
        await self._until(
            lambda: call_id in self.board.calls and wanted(self.board.calls[call_id]), f"call {call_id} {what}"
        )
        return self.board.calls[call_id]

    async def see_quiet(self) -> None:
        """Wait until nothing waits, nothing runs and nothing is left behind. Raises `StoryBroke`."""
        board = self.board
        await self._until(
            lambda: not (board.waiting or board.held or board.queued or board.running or board.unsettled),
            "everything to be over",
        )

    async def read(self, call_id: str, text: str) -> None:
        """Wait until a command's standard output holds this text. Raises `StoryBroke` if that takes too long."""
        wanted = text.encode()
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    chunk = await self._supervision.read_output(call_id, "out", 0, 65_536)
                    if wanted in chunk.data:
                        return
                    if chunk.ended:
                        raise StoryBroke(f"call {call_id} ended without writing this: {text}")
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            raise StoryBroke(f"call {call_id} did not write this within {PATIENCE_S:g} s: {text}") from None

    async def _until(self, holds: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S), self._news:
                await self._news.wait_for(holds)
        except TimeoutError:
            raise StoryBroke(f"this did not happen within {PATIENCE_S:g} s: {what}") from None

    async def _watch(self) -> None:
        async for events in self._supervision.watch():
            async with self._news:
                self.board.apply_all(events)
                self._news.notify_all()


@asynccontextmanager
async def looking_on(supervision: Supervision) -> AsyncIterator[Onlooker]:
    """An onlooker that watches until the end of the block."""
    onlooker = Onlooker(supervision)
    watching = asyncio.create_task(onlooker._watch(), name="the scripted human watches")
    try:
        yield onlooker
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
