"""A human at a cockpit, who decides by keys and types into terminals; it is opened again whenever it was killed.

The human looks at what the screen shows, and only decides about calls of the kind `keyed`. Whatever the screen has
confirmed must be in the journal; whatever it has not, the human does again.
"""

import asyncio
import fcntl
import os
import pty
import re
import struct
import termios
import time
from contextlib import suppress

from tests.crash.field import PROGRAM, Field
from tests.crash.work import Work
from whisper_tui.export.terminal_screen import Screen, TerminalScreen
from whisper_tui.model.call import Shell

COLUMNS, ROWS = 120, 40
LOOKS_EVERY_S = 0.05
SEES_S = 10.0
"""Seconds for which the human waits for what a key should show."""
OPENS_S = 60.0
"""Seconds for which the human waits for a dialog: keys for the list would be text in one that opens late."""
FILTER = "k=keyed"
HELP = re.compile("Keys and signs")
WAITING = re.compile(r"Call (\d+)  (?:bash  )?◆ waiting for you")
RUNNING = re.compile(r"Call (\d+)  ▶ running")


class _Closed(Exception):
    """The cockpit was killed, or is needed no more."""


async def cockpit(field: Field) -> None:
    """Keep one open, with a human at it."""
    while not field.over.is_set():
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        process = await asyncio.create_subprocess_exec(
            *PROGRAM, "--home", str(field.root), stdin=theirs, stdout=theirs, stderr=theirs, env=_terminal()
        )
        os.close(theirs)
        os.set_blocking(ours, False)
        field.born("cockpit", process.pid)
        with suppress(_Closed):
            await _Seat(field, ours, process).sit()
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(ours)
        field.died("cockpit", process.pid)


def _terminal() -> dict[str, str]:
    return {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(ROWS)}


class _Seat:
    """The human before one cockpit."""

    def __init__(self, field: Field, terminal: int, process: asyncio.subprocess.Process) -> None:
        self._field = field
        self._terminal = terminal
        self._process = process
        self._screen = Screen(COLUMNS, ROWS)
        self._drawing = TerminalScreen(ROWS, COLUMNS, self._screen)

    async def sit(self) -> None:
        """Decide for as long as it is open. Raises `_Closed`."""
        await self._sees(re.compile("● connected"), seconds=60.0)
        while True:
            self._press("/")
            if await self._sees(re.compile("command, words, session, number"), seconds=OPENS_S):
                self._press(FILTER)
                await self._sees(re.compile(FILTER))
                self._press("\r")
                await self._rest(0.5)
                while FILTER in self._text():
                    await self._decide_or_type()
            self._press("\x1b")
            await self._rest(1.0)

    async def _decide_or_type(self) -> None:
        self._press("n")
        await self._settle()
        if found := WAITING.search(self._text()):
            await self._decide(found[1])
            return
        self._press("2")
        await self._rest(0.5)
        if (found := RUNNING.search(self._text())) and self._keyed(found[1]) is not None:
            await self._type(found[1])

    async def _settle(self) -> None:
        """Wait until all keys so far have had their effect: on a busy machine, the next one would hit another call."""
        self._press("?")
        await self._sees(HELP, seconds=30.0)
        self._press("\x1b")
        while HELP.search(self._text()):
            await self._rest(LOOKS_EVERY_S)

    async def _decide(self, call_id: str) -> None:
        work = self._keyed(call_id)
        if work is None:
            return
        if not work.denied_by_keys:
            self._press("a")
            if await self._sees(re.compile(f"Call {call_id} is approved")):
                self._confirmed(call_id, "approve")
            return
        self._press("d")
        if await self._sees(re.compile(f"Deny call {call_id}"), seconds=OPENS_S):
            self._press(f"no {work.number}")
            await self._sees(re.compile(f"no {work.number} "))
            self._press("\r")
            if await self._sees(re.compile(f"Call {call_id} is denied")):
                self._confirmed(call_id, "deny")

    async def _type(self, call_id: str) -> None:
        work = self._keyed(call_id)
        assert work is not None
        self._press("i")
        if await self._sees(re.compile(f"Type into call {call_id}"), seconds=OPENS_S):
            self._press(work.word)
            await self._rest(0.3)
            self._press("\r")
            if await self._sees(re.compile(f"Sent a line to call {call_id}")):
                self._field.by_keys += 1

    def _confirmed(self, call_id: str, decision: str) -> None:
        self._field.told.decision(call_id, decision)
        self._field.by_keys += 1

    def _keyed(self, call_id: str) -> Work | None:
        """The call, if it is one for the human at this cockpit."""
        record = self._field.board.calls.get(call_id)
        if record is None or not isinstance(record.call.spec.command, Shell):
            return None
        work = Work.asked_by(record)
        return work if work.kind == "keyed" else None

    async def _sees(self, words: re.Pattern[str], seconds: float = SEES_S) -> bool:
        """Look until the words are on the screen. Raises `_Closed`."""
        until = time.monotonic() + seconds
        while not words.search(self._text()):
            if time.monotonic() > until:
                return False
            await self._rest(LOOKS_EVERY_S)
        return True

    async def _rest(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if self._process.returncode is not None or self._field.over.is_set():
            raise _Closed

    def _text(self) -> str:
        """All that the screen shows now."""
        try:
            while data := os.read(self._terminal, 1 << 16):
                self._drawing.feed(data)
        except BlockingIOError:
            pass
        except OSError:
            raise _Closed from None
        return self._screen.text()

    def _press(self, keys: str) -> None:
        try:
            os.write(self._terminal, keys.encode())
        except OSError:
            raise _Closed from None
