"""Folds the events of a supervisor into a board, tells when it has changed, and comes back after a lost connection."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import takewhile

from textual.message import Message

from whisper_tui.model.board import Board
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.event import (
    Event,
    Finished,
    SessionClosed,
    SessionDescribed,
    SessionOpened,
    SessionResumed,
    Settled,
)
from whisper_tui.model.port import Supervision
from whisper_tui.tui.messages import BoardChanged, Connected, ConnectionLost

Reconnect = Callable[[], Awaitable[Supervision]]

SLICE_S = 0.008
"""How long events are folded before keys and drawing get their turn."""
NEWS_S = 0.1
"""How often a batch that takes longer than that is shown while it is folded."""
RETRIES_S = (0.5, 1.0, 2.0, 5.0)
"""Pauses between attempts to reconnect; the last one repeats."""


class Follower:
    """Owns the board. `post` takes messages; changes are collected until `take_changes` is called."""

    def __init__(
        self, supervision: Supervision, post: Callable[[Message], object], reconnect: Reconnect | None
    ) -> None:
        self.supervision = supervision
        self.board = Board()
        self._post = post
        self._reconnect = reconnect
        self._changed: dict[str, None] = {}
        self._told_at = float("-inf")

    def take_changes(self) -> tuple[str, ...]:
        """Ids of the calls that changed since this was asked last, in the order of their first change."""
        changed = tuple(self._changed)
        self._changed.clear()
        return changed

    async def run(self) -> None:
        """Follow until cancelled, or until the connection is lost and cannot be had again."""
        attempt = 0
        while True:
            try:
                await self._follow()
                lost = WhisperError("The supervisor has stopped", hint="Commands that run go on under their keepers")
            except WhisperError as error:
                lost = error
            while True:
                pause = RETRIES_S[min(attempt, len(RETRIES_S) - 1)] if self._reconnect else None
                self._post(ConnectionLost(lost, pause))
                if self._reconnect is None or pause is None:
                    return
                await asyncio.sleep(pause)
                attempt += 1
                try:
                    self.supervision = await self._reconnect()
                except WhisperError as error:
                    lost = error
                    continue
                attempt = 0
                break
            self.board = Board()
            self._changed.clear()
            self._post(Connected(self.supervision))

    async def _follow(self) -> None:
        async for events in self.supervision.watch(None):
            await self._fold(events)

    async def _fold(self, events: tuple[Event, ...]) -> None:
        """Apply a batch in slices, so that ten thousand events at once do not stop the screen."""
        until = time.perf_counter() + SLICE_S
        for event in events:
            self._apply(event)
            if time.perf_counter() > until:
                self._tell()
                await asyncio.sleep(0)
                until = time.perf_counter() + SLICE_S
        self._tell(last=True)

    def _tell(self, *, last: bool = False) -> None:
        now = time.perf_counter()
        if last or now - self._told_at > NEWS_S:
            self._told_at = now
            self._post(BoardChanged())

    def _apply(self, event: Event) -> None:
        settled = tuple(self.board.settled) if isinstance(event, Finished | Settled) else ()
        self.board.apply(event)
        forgotten = takewhile(lambda call_id: call_id not in self.board.calls, settled)
        self._changed.update(dict.fromkeys(forgotten))
        if isinstance(event, SessionOpened | SessionDescribed | SessionResumed | SessionClosed):
            return
        if call_id := getattr(event, "call_id", None) or getattr(getattr(event, "call", None), "id", None):
            self._changed[call_id] = None
