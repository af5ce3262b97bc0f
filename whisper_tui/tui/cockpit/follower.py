"""Follows a supervisor: applies its events, asks for stalls, reconnects, and replaces one of another version."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import takewhile

from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from whisper_tui import __version__
from whisper_tui.model.api import Supervision
from whisper_tui.model.board import Board
from whisper_tui.model.errors import OtherVersion, WhisperError
from whisper_tui.model.event import (
    Event,
    Finished,
    SessionClosed,
    SessionDescribed,
    SessionOpened,
    SessionResumed,
    Settled,
)
from whisper_tui.model.packed_calls import BoardItem, Lines, PackedCalls, own_packing
from whisper_tui.model.run import NO_STALL, NOT_QUEUED, Stall, StallNews
from whisper_tui.model.state import CallRecord, Queued
from whisper_tui.model.text import visible
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit_context import BoardChanged, CockpitContext, Connected, EventsLost
from whisper_tui.tui.command_definition import Command, in_force

Reconnect = Callable[[], Awaitable[Supervision]]

SLICE_S = 0.008
"""Seconds of applying events before keys and drawing get their turn."""
SHOWN_EVERY_S = 0.25
"""Seconds between two updates of the screen while one batch is applied: each takes as long as a thousand calls."""
RETRIES_S = (0.5, 1.0, 2.0, 5.0)
"""Pauses between attempts to reconnect; the last one repeats."""


class BoardFollower:
    """Owns the board and the connection. Changes are collected until `take_changes` is called."""

    def __init__(
        self,
        supervision: Supervision,
        post: Callable[[Message], object],
        reconnect: Reconnect | None,
        list_calls: Callable[[Board, Lines], object],
    ) -> None:
        """`list_calls` is told at once of waiting calls that make up the board, a few at a time."""
        self.supervision = supervision
        self.board = Board()
        self.complete = False
        """True once all of the present is on the board; until then it may show calls as they were."""
        self._post = post
        self._reconnect = reconnect
        self._list_calls = list_calls
        self._changed: dict[str, None] = {}
        self._posted_at = float("-inf")

    def take_changes(self) -> Lines:
        """Return and forget the changed calls, in the order of their first change.

        None before the board is complete: half of the events of a call show it as it was, waiting, say.
        """
        if not self.complete:
            return {}
        changed = self.board.calls.lines(self._changed)
        self._changed.clear()
        return changed

    async def run(self) -> None:
        """Follow events until cancelled, or until the connection is lost and cannot be restored."""
        attempt = 0
        while True:
            try:
                await self._follow()
                lost = WhisperError("The supervisor has stopped", hint="Commands keep running under their keepers")
            except WhisperError as error:
                lost = error
            while True:
                pause = RETRIES_S[min(attempt, len(RETRIES_S) - 1)] if self._reconnect else None
                self._post(EventsLost(lost, pause))
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
            # The new connection sends the whole state as events, so an old board would count calls twice.
            self.board, self.complete = Board(), False
            self._changed.clear()
            self._post(Connected(self.supervision))

    async def _follow(self) -> None:
        async for items in self.supervision.watch_board(own_packing()):
            await self._fold(items)

    async def _fold(self, items: tuple[BoardItem, ...]) -> None:
        """Apply a batch in slices of time, so that ten thousand events at once do not block the screen."""
        until = time.perf_counter() + SLICE_S
        packed = False
        self.complete = self.complete or not items
        for item in items:
            if packed := isinstance(item, PackedCalls):
                self._add_packed(item)
            else:
                self._apply(item)
            if time.perf_counter() > until:
                self._post_change()
                # One turn of the event loop: keys and drawing.
                await asyncio.sleep(0)
                until = time.perf_counter() + SLICE_S
        # Of a hundred thousand packed calls, each batch is a few milliseconds: drawing each one takes longer.
        self._post_change(last=not packed)
        if packed:
            await asyncio.sleep(0)

    def _add_packed(self, part: PackedCalls) -> None:
        first = not self.board.waiting
        self.board.add_packed(part)
        # Listed here, not with the other changes: a tenth of a second of them would block the screen for a second.
        self._list_calls(self.board, self.board.calls.lines(part.ids))
        self._post_change(last=first)

    def _post_change(self, *, last: bool = False) -> None:
        now = time.perf_counter()
        if last or now - self._posted_at > SHOWN_EVERY_S:
            self._posted_at = now
            self._post(BoardChanged())

    def _apply(self, event: Event) -> None:
        # A board forgets its oldest ended calls when another one ends, without an event of their own: compare.
        settled = tuple(self.board.settled) if isinstance(event, Finished | Settled) else ()
        self.board.apply(event)
        forgotten = takewhile(lambda call_id: call_id not in self.board.calls, settled)
        self._changed.update(dict.fromkeys(forgotten))
        # A change of a session alone is posted, too, but no row has to move.
        if isinstance(event, SessionOpened | SessionDescribed | SessionResumed | SessionClosed):
            return
        if call_id := getattr(event, "call_id", None) or getattr(getattr(event, "call", None), "id", None):
            self._changed[call_id] = None


class StallWatch:
    """Asks the supervisor every second which runs get no further, and why calls are queued."""

    def __init__(self, cockpit: CockpitContext, changed: Callable[[dict[str, StallNews]], object]) -> None:
        """`changed` is told of the calls that began to need input, after every answer that is another one."""
        self._cockpit = cockpit
        self._changed = changed
        self._found: dict[str, Stall] = {}
        self._queue = NOT_QUEUED
        self._busy = False

    def of(self, call_id: str) -> Stall:
        """Why a run gets no further, as far as is known."""
        return self._found.get(call_id, NO_STALL)

    @property
    def need_input(self) -> list[str]:
        """The calls that wait for somebody to type."""
        running = self._cockpit.board.running
        return [id_ for id_, found in self._found.items() if found.silent_since is not None and id_ in running]

    def is_still(self, record: CallRecord) -> bool:
        """True if a run is paused: by a signal, or because everything is paused."""
        return self._cockpit.board.paused is not None or record.paused or self.of(record.id).stopped

    def standing_still(self, record: CallRecord) -> tuple[bool, float | None]:
        """Return True for a paused run, and the time since which it has needed input."""
        return self.is_still(record), self.of(record.id).silent_since

    def why_queued(self, record: CallRecord) -> str:
        """Return why a call is queued, as a clause. Empty: it is not, or the supervisor has not said it yet."""
        if not isinstance(record.state, Queued) or record.function is not None:
            return ""
        reason = self._queue.of(record.call.session_id, by_human=record.decided_by_human, place=record.spec.place)
        return reason.words() if reason is not None else ""

    def look(self) -> None:
        """Ask now, unless an answer is still awaited. Called every second."""
        # Polled, not subscribed: no event says that a command waits for input, so the journal stays small.
        board = self._cockpit.board
        if not self._busy and (board.running or board.queued or self._found):
            self._busy = True
            self._cockpit.screen.run_worker(self._look(), name="stalls")

    async def _look(self) -> None:
        before, found = self._found, self._found
        try:
            with suppress(WhisperError):  # The banner reports a lost connection.
                found = await self._cockpit.supervision.stalls()
                if self._cockpit.board.queued:
                    # The card is drawn every second anyway, and says it then.
                    self._queue = (await self._cockpit.supervision.status()).queue
        finally:
            self._busy = False
        self._found = found
        # The answer may come while the cockpit closes.
        if found != before and self._cockpit.screen.is_attached:
            board = self._cockpit.board
            new = {
                id_: news
                for id_, stall in found.items()
                if id_ in board.running and (news := board.calls[id_].stall_news(before.get(id_, NO_STALL), stall))
            }
            self._changed(new)


TAKEOVER: tuple[Command, ...] = (
    Command(
        "hand-over",
        "V",
        "Hand over",
        "Replace the supervisor by this version; commands keep running.",
        "Cockpit",
    ),
)


class VersionBar(Static):
    """A bar that names both versions and the key that replaces the supervisor."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.display = False

    def say(self, text: str) -> None:
        """Show a text."""
        self.update(Content(f"⇅ {visible(text)}"))
        self.display = True


TakeOver = Callable[[], Awaitable[None]]
"""Replaces the running supervisor by one of this version. Raises `WhisperError`."""


class TakeoverCommands:
    """Compares versions after each connection, and carries out the command `hand-over`."""

    def __init__(self, cockpit: CockpitContext, take_over: TakeOver | None) -> None:
        """`take_over`: None if this cockpit cannot replace its supervisor."""
        self._cockpit = cockpit
        self._take_over = take_over
        self._bar = VersionBar(id="versions")

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {"hand-over": self.hand_over}

    def connected(self) -> None:
        """Compare the version of the supervisor that is connected now."""
        self._bar.display = False
        if self._take_over is not None:
            # exclusive: the answer of a former connection must not be compared after that of the present one.
            self._cockpit.screen.run_worker(self._compare(), group="versions", exclusive=True)

    def lost(self, error: WhisperError) -> None:
        """Offer to replace the supervisor if the connection failed because of its version."""
        if isinstance(error, OtherVersion) and self._take_over is not None:
            # The hello has failed, so the version of the supervisor is not known.
            self._offer(f"This cockpit is whisper_tui {__version__}, and the supervisor speaks another protocol.")

    async def hand_over(self) -> None:
        """Replace the supervisor; the cockpit reconnects by itself."""
        if self._take_over is None or not self._bar.display:
            self._cockpit.tell("The supervisor already has the version of this cockpit.")
            return
        self._cockpit.screen.run_worker(self._hand_over(self._take_over), group="handing over", exclusive=True)

    async def _hand_over(self, take_over: TakeOver) -> None:
        try:
            await take_over()
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="error")
        else:
            self._cockpit.tell(f"The supervisor is now whisper_tui {__version__}; commands kept running.")

    async def _compare(self) -> None:
        try:
            theirs = (await self._cockpit.supervision.status()).version
        except WhisperError:
            return  # BoardFollower reports a lost connection.
        if theirs != __version__:
            self._offer(f"The supervisor is whisper_tui {theirs}, and this cockpit is {__version__}.")

    def _offer(self, difference: str) -> None:
        if not self._bar.is_attached:
            self._cockpit.screen.mount(self._bar, after="#banner")
        key = in_force(self._cockpit.screen.app).by_id("hand-over").key_name or "The command Hand over"
        self._bar.say(f"{difference} {key} replaces the supervisor by {__version__}; commands keep running.")
