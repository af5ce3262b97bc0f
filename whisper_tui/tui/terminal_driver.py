"""Textual's driver, for a terminal that may go away, stand still, or be taken from a cockpit that is told to end."""

import os
import select
import signal
import sys
import time
from codecs import getincrementaldecoder
from contextlib import suppress
from types import FrameType
from typing import Any

from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

PIECE = 64 * 1024
"""Bytes read or written at once."""

TICK_S, TICKING_S = 0.1, 1.0
"""How often, and for how long after the last input, the parser is asked whether a lone Esc was meant."""

LAST_WRITE_S = 0.5
"""Seconds that the last words wait for a terminal that stands still (Ctrl+S, a frozen connection)."""

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class TerminalDriver(LinuxDriver):
    """Ends the application when its terminal is gone or a signal says so, and gives the terminal back as it was.

    Textual's own spins when its input has ended, waits for ever for a terminal that takes no more output, and leaves
    the terminal in raw mode after SIGTERM.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._screen = _Screen(self._gone)
        self._stop: tuple[int, int] | None = None
        """A pipe whose closed end tells the thread that reads to stop, so that it need not look again and again."""
        self._handlers: dict[int, Any] = {}

    def start_application_mode(self) -> None:
        """Take the terminal."""
        self._screen = _Screen(self._gone)
        self._file = self._screen  # type: ignore[assignment]
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup sets SIGHUP to be ignored.
                # A handler of the event loop would not run while the loop waits for a terminal that stands still.
                self._handlers[number] = signal.signal(number, self._told_to_end)
        self._stop = os.pipe()
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def disable_input(self) -> None:
        """Read no more."""
        stop, self._stop = self._stop, None
        if stop is not None:
            os.close(stop[1])
        super().disable_input()
        if stop is not None:
            os.close(stop[0])

    def close(self) -> None:
        """Let go of the terminal."""
        self._screen.leaving = True
        super().close()
        self._screen.close()
        while self._handlers:
            signal.signal(*self._handlers.popitem())

    def run_input_thread(self) -> None:
        """Pass on what is typed, until told to stop or until nobody can type any more."""
        stop = self._stop[0] if self._stop is not None else -1
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")("replace").decode
        last_input = time.monotonic()
        try:
            while not self.exit_event.is_set():
                ticking = time.monotonic() - last_input < TICKING_S
                ready, _, _ = select.select([self.fileno, stop], [], [], TICK_S if ticking else None)
                if stop in ready:
                    return
                if ready:
                    last_input = time.monotonic()
                    typed = self._read()
                    if not typed:
                        self._gone()
                        return
                    for message in parser.feed(decode(typed)):
                        self.process_message(message)
                for message in parser.tick():
                    self.process_message(message)
        finally:
            with suppress(EOFError, ParseError):
                list(parser.feed(""))

    def _read(self) -> bytes:
        """Return typed bytes. Empty: the terminal has hung up, or belongs to another process group now."""
        try:
            return os.read(self.fileno, PIECE)
        except OSError:
            return b""

    def _gone(self) -> None:
        self._screen.lost = True
        self._end(signal.SIGHUP)

    def _told_to_end(self, number: int, _frame: FrameType | None) -> None:
        self._screen.leaving = True
        self._end(number)

    def _end(self, number: int) -> None:
        with suppress(RuntimeError):  # The loop has ended already.
            self._loop.call_soon_threadsafe(lambda: self._app.exit(return_code=128 + number))


class _Screen:
    """The terminal as the thread that writes sees it: it never fails, and it waits only while somebody stays."""

    def __init__(self, gone: Any) -> None:
        self._report = gone
        self.lost = False
        self.leaving = False
        self._stands_still = False
        self._own = True
        # The one that checked for a terminal looked at standard output; standard error may be a log. An open
        # description of our own can be non-blocking without the shell's becoming so, too.
        output = sys.__stdout__.fileno() if sys.__stdout__ is not None else 1
        try:
            self._fd = os.open(os.ttyname(output), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError:
            self._fd, self._own = output, False

    def write(self, text: str) -> None:
        """Write it all, unless the terminal is lost, or stands still while we leave."""
        rest = memoryview(text.encode("utf-8", "replace"))
        until = time.monotonic() + LAST_WRITE_S
        while rest and not self.lost:
            try:
                _, writable, _ = select.select([], [self._fd], [], 0 if self._stands_still else TICK_S)
                if writable:
                    rest = rest[os.write(self._fd, rest[:PIECE]) :]
                    self._stands_still = False
                    continue
            except BlockingIOError:
                pass
            except OSError:
                if not self.lost:
                    self._report()
                return
            if not self.leaving:
                until = time.monotonic() + LAST_WRITE_S
            elif self._stands_still or time.monotonic() > until:
                self._stands_still = True
                return

    def flush(self) -> None:
        """Nothing is held back."""

    def fileno(self) -> int:
        """Where it writes."""
        return self._fd

    def close(self) -> None:
        """Close what was opened here."""
        if self._own:
            os.close(self._fd)
