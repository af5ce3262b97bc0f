"""One watch of the text mode: lines out, answers in, and a supervisor that may go and come back."""

import asyncio
import os
import sys

from whisper_tui.cli.deciding import decider
from whisper_tui.cli.watch_answers import Desk
from whisper_tui.cli.watch_words import happened
from whisper_tui.model.board import Board
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.home import Home
from whisper_tui.model.port import HistoryQuery, Supervision
from whisper_tui.tui.words import count, told
from whisper_tui.wire.autostart import ensure_supervisor
from whisper_tui.wire.client import RemoteSupervision
from whisper_tui.wire.rendezvous import was_stopped

RETRY_S = 2.0
"""Seconds between attempts to reach a supervisor that is gone."""


class Watch:
    """One watch: lines out, and answers in where somebody can give them."""

    def __init__(self, home: Home, *, asks: bool) -> None:
        self._home = home
        self._asks = asks
        self._desk = Desk(self._say, Decider.model_validate(decider()))
        self._prompted = False

    async def run(self) -> None:
        """Go on until the person leaves."""
        supervision = await RemoteSupervision.connect(self._home)
        following = asyncio.create_task(self._follow(supervision), name="follow")
        answering = asyncio.create_task(self._answer(), name="answer") if self._asks else None
        tasks = [task for task in (following, answering) if task is not None]
        done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in rest:
            task.cancel()
        await asyncio.wait(tasks)
        for task in done:
            task.result()

    async def _follow(self, supervision: RemoteSupervision) -> None:
        while True:
            try:
                self._desk.supervision = supervision
                await self._tell(supervision)
                problem = "The supervisor has stopped. Commands that run go on under their keepers."
            except WhisperError as error:
                problem = told(error)
            finally:
                await supervision.close()
            self._desk.supervision = None
            self._say(f"{problem} Watching for it to come back.")
            while self._desk.supervision is None:
                await asyncio.sleep(RETRY_S)
                try:
                    if not was_stopped(self._home):
                        await ensure_supervisor(self._home)
                    supervision = await RemoteSupervision.connect(self._home, start=False)
                    self._desk.supervision = supervision
                except WhisperError:
                    continue

    async def _tell(self, supervision: Supervision) -> None:
        """Say what happens from now on; what was before is said in one line."""
        newest = await supervision.history(HistoryQuery(limit=1))
        board = self._desk.board = Board()
        before = bool(newest)
        if not before:
            self._say("Connected. No call yet.")
        async for events in supervision.watch(None):
            for event in events:
                board.apply(event)
                if not before and (line := happened(event, board)) is not None:
                    self._say(line)
            if before and newest[0].id in board.calls:
                before = False
                self._say(f"Connected. {count(len(board.waiting), 'call')} waiting, {len(board.running)} running.")
            if not before:
                self._look()

    def _look(self) -> None:
        """After news: mention that the call on the desk is gone, or put the next one there."""
        desk = self._desk
        if not self._asks:
            return
        if desk.shown is not None and desk.gone():
            self._say(f"Call {desk.shown.id} no longer waits as it was read out. Press Enter for the next.")
            desk.forget()
        else:
            desk.news()
        self._prompt()

    async def _answer(self) -> None:
        """Take answers, one line after the other, until the end of input."""
        lines = _Lines(sys.stdin.fileno())
        self._say("Type help for what can be answered.")
        self._prompt()
        try:
            while not self._desk.left and (line := await lines.next()) is not None:
                self._prompted = False
                await self._desk.answer(line)
                self._prompt()
        finally:
            lines.close()
            self._prompted = False

    def _say(self, text: str) -> None:
        """A line of its own, also where a prompt stands."""
        sys.stdout.write(("\n" if self._prompted else "") + text + "\n")
        sys.stdout.flush()
        self._prompted = False

    def _prompt(self) -> None:
        if self._asks and not self._prompted and not self._desk.left:
            sys.stdout.write(self._desk.prompt)
            sys.stdout.flush()
            self._prompted = True


class _Lines:
    """Lines of a terminal, read without a thread that could not be ended."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._data = b""
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        asyncio.get_running_loop().add_reader(fd, self._read)

    async def next(self) -> str | None:
        """The next line. None: the input has ended."""
        return await self._lines.get()

    def close(self) -> None:
        """Read no more."""
        asyncio.get_running_loop().remove_reader(self._fd)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, 65_536)
        except OSError:
            data = b""
        *lines, self._data = (self._data + data).split(b"\n")
        for line in lines:
            self._lines.put_nowait(line.decode("utf-8", "replace"))
        if not data:
            self.close()
            self._lines.put_nowait(None)
