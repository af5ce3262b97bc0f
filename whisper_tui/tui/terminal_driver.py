"""Textual's driver, for a terminal that may go away or stand still, and the question for the terminal's background."""

import os
import re
import select
import signal
import sys
import termios
import time
from codecs import getincrementaldecoder
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Self

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


QUESTION = b"\x1b]11;?\x1b\\\x1b[c"
"""OSC 11 asks for the background. DA1, which terminals answer in order and always have answered, is the fence behind
it: whatever comes after the answer to DA1 was typed."""
ANSWER_S = 0.1
"""Seconds that the start of the cockpit waits for answers."""
SPLIT_S = 5.0
"""Seconds after which the rest of an answer that was cut in two is not expected any more."""
LONGEST = 256
"""Bytes of an answer; what is longer is none."""
_COLOUR = re.compile(rb"\x1b\]11;([^\x07\x1b]*)(?:\x07|\x1b\\)")
_FENCE = re.compile(rb"\x1b\[\?[0-9;]*c")
_BEGUN = re.compile(rb"\x1b(?:\](?:1(?:1(?:;[^\x07\x1b]*\x1b?)?)?)?|\[(?:\?[0-9;]*)?)?")
_SURE = re.compile(rb"\x1b\]11;|\x1b\[\?")
"""No key of a keyboard sends this."""
_RGB = re.compile(rb"rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})")
MUTE_TERMS = frozenset({"", "dumb", "linux", "unknown"})
"""Values of TERM for terminals that do not know the question."""


class AnswerFilter:
    """Takes the answers to `QUESTION` out of the input of a terminal, also those that come late or in pieces.

    As keys, the answer `rgb:1a1a/...` would approve a call.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.done = False
        """True once the fence has come: all that follows was typed."""
        self.dark: bool | None = None
        """True for a dark background, None as long as it is unknown."""
        self._begun = b""
        """Bytes that may be the beginning of an answer."""
        self._passed = 0
        """Bytes of it that were passed on, because they may also be a key."""
        self._since = 0.0

    def feed(self, data: bytes) -> bytes:
        """Return what was typed of some input."""
        if self.done:
            return data
        if self._begun and self._clock() - self._since > SPLIT_S:
            self._begun, self._passed = b"" if _SURE.match(self._begun) else self._begun[self._passed :], 0
        data, passed = self._begun + data, self._passed
        self._begun, self._passed = b"", 0
        typed = bytearray()
        at = 0
        while at < len(data) and not self.done:
            end, is_answer = self._next(data, at)
            if end is None:
                self._begun, self._passed, self._since = data[at:], max(0, passed - at), self._clock()
                if self._begun == b"\x1b":
                    # The key Esc, most likely, and nobody waits for it.
                    typed += self.flush()
                return bytes(typed)
            if not is_answer:
                typed += data[max(at, min(passed, end)) : end]
            at = end
        return bytes(typed + data[max(at, passed) :])

    def _next(self, data: bytes, at: int) -> tuple[int | None, bool]:
        """Return the end of the next answer or of what was typed before it; None: nobody can know yet."""
        if data[at] != 0x1B:
            escape = data.find(b"\x1b", at)
            return (len(data) if escape < 0 else escape), False
        if found := _COLOUR.match(data, at):
            self.dark = is_dark(found[1])
            return found.end(), True
        if found := _FENCE.match(data, at):
            self.done = True
            return found.end(), True
        begun = _BEGUN.match(data, at)
        if begun is not None and begun.end() == len(data) and begun.end() - at <= LONGEST:
            return None, False
        if data.startswith(b"\x1b]11;", at):
            # An answer without its end: another sequence has begun, or it is too long to be one.
            escape = data.find(b"\x1b", at + 1)
            return (len(data) if escape < 0 else escape), True
        return at + 1, False

    def flush(self) -> bytes:
        """Return what may be a key and has waited long enough for the rest of an answer."""
        if _SURE.match(self._begun):
            return b""
        typed = self._begun[self._passed :]
        self._passed = len(self._begun)
        return typed


def is_dark(colour: bytes) -> bool | None:
    """True for a colour as terminals name it that is dark; None: it is no colour."""
    # `rgba` ends with the opacity.
    found = _RGB.fullmatch(b"/".join(colour.split(b"/")[:3]))
    if found is None:
        return None
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in found.groups())
    return bool(0.299 * red + 0.587 * green + 0.114 * blue < 0.5)


_NO_ANSWERS = AnswerFilter()
_NO_ANSWERS.done = True


class TerminalQuestion:
    """Asks a terminal for its background, and keeps what was typed meanwhile."""

    def __init__(self, *, asks: bool = True, wait_s: float = ANSWER_S) -> None:
        """Ask, where that is wanted and safe. `wait_s`: how long the answers are worth waiting for."""
        self.answers = AnswerFilter()
        self.dark: bool | None = None
        """True for a dark background, None if the terminal has not told it in time."""
        self.typed = b""
        """Input that is no answer; the driver reads it first."""
        self._before: list[Any] | None = None
        """The modes of the terminal, to be restored."""
        self._fd = sys.__stdin__.fileno() if sys.__stdin__ is not None else -1
        self._until = time.monotonic() + wait_s
        if asks and can_ask():
            self._ask()
        else:
            self.answers.done = True

    def __enter__(self) -> Self:
        """Return the question: the application is started in this block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the modes of the terminal, if the application did not come to that."""
        self.release()

    def _ask(self) -> None:
        output = sys.__stdout__.fileno() if sys.__stdout__ is not None else 1
        try:
            self._before = termios.tcgetattr(self._fd)
            quiet = termios.tcgetattr(self._fd)
            quiet[0] &= ~termios.ICRNL  # As the driver does: Enter is Enter and not Ctrl+J.
            quiet[3] &= ~(termios.ECHO | termios.ICANON)
            termios.tcsetattr(self._fd, termios.TCSANOW, quiet)
            # A terminal that was stopped by Ctrl+S takes nothing, and a write would wait for it.
            if not select.select([], [output], [], 0)[1]:
                self.answers.done = True
                return
            os.write(output, QUESTION)
        except (OSError, termios.error):
            self.answers.done = True
        finally:
            if self.answers.done:
                self.release()

    def wait(self) -> None:
        """Wait for the answers, as long as they are worth it. A later answer decides nothing."""
        if self.answers.done:
            return
        with suppress(OSError):
            while not self.answers.done:
                # What has come meanwhile is read in any case.
                if not select.select([self._fd], [], [], max(0.0, self._until - time.monotonic()))[0]:
                    break
                if not (data := os.read(self._fd, PIECE)):
                    break
                self.typed += self.answers.feed(data)
        self.dark = self.answers.dark
        # Without the fence an answer is still to come, and it must not be echoed on the screen of the shell.
        if self.answers.done:
            self.release()

    def release(self) -> None:
        """Restore the modes of the terminal."""
        before, self._before = self._before, None
        if before is not None:
            with suppress(OSError, termios.error):
                termios.tcsetattr(self._fd, termios.TCSANOW, before)


DEFAULT_THEME, LIGHT_THEME = "whisper-dark", "whisper-light"
AUTOMATIC = "auto"
"""The name for the default theme of the terminal's kind, dark or light."""


def asks_for_theme(named: str | None) -> bool:
    """True if the terminal decides about the theme, and not the configuration."""
    return named is None or named == AUTOMATIC


def theme_of(named: str | None, question: TerminalQuestion) -> str | None:
    """Return the configured theme, or the default one for the background that the terminal has told in time."""
    if named is not None and not asks_for_theme(named):
        return named
    question.wait()
    return LIGHT_THEME if question.dark is False else DEFAULT_THEME


def can_ask() -> bool:
    """True if standard input and output are one terminal that may answer, and belong to this process now."""
    if os.environ.get("TERM", "") in MUTE_TERMS or "TEXTUAL_DRIVER" in os.environ:
        return False
    try:
        reads, writes = sys.__stdin__.fileno(), sys.__stdout__.fileno()  # type: ignore[union-attr]
        # A process in the background would be stopped for changing the modes.
        return os.ttyname(reads) == os.ttyname(writes) and os.tcgetpgrp(reads) == os.getpgrp()
    except (AttributeError, OSError, ValueError):
        return False


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
        self._question: TerminalQuestion | None = getattr(self._app, "question", None)
        self._answers = self._question.answers if self._question is not None else _NO_ANSWERS

    def start_application_mode(self) -> None:
        """Take the terminal."""
        self._screen = _Screen(self._gone)
        self._file = self._screen  # type: ignore[assignment]
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup sets SIGHUP to be ignored.
                # A handler of the event loop would not run while the loop waits for a terminal that stands still.
                self._handlers[number] = signal.signal(number, self._told_to_end)
        self._stop = os.pipe()
        if self._question is not None:
            self._question.release()
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def when_written(self, then: Callable[[], object]) -> None:
        """Have the thread that writes call a function once all before this is written."""
        self.write(_Mark(then))

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

        def pass_on(typed: bytes) -> None:
            # To the parser, an empty text is the end of all input.
            if text := decode(typed):
                for message in parser.feed(text):
                    self.process_message(message)

        try:
            pass_on(self._typed_ahead())
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
                    pass_on(self._answers.feed(typed))
                else:
                    pass_on(self._answers.flush())
                for message in parser.tick():
                    self.process_message(message)
        finally:
            with suppress(EOFError, ParseError):
                list(parser.feed(""))

    def _typed_ahead(self) -> bytes:
        """Return once what was typed while the terminal was asked."""
        if self._question is None:
            return b""
        typed, self._question.typed = self._question.typed, b""
        return typed

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


class _Mark(str):
    """A place in what is written, which is empty; a function is called once all before it is written."""

    __slots__ = ("reached",)

    def __new__(cls, reached: Callable[[], object]) -> Self:
        """Make one for a function."""
        mark = super().__new__(cls)
        mark.reached = reached
        return mark

    reached: Callable[[], object]


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
        if isinstance(text, _Mark):
            text.reached()
            return
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
