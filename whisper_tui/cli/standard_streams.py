"""The standard streams where some are closed, full or read by nobody, and the end of a program that waits."""

import fcntl
import io
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

FAILS_CLOSED = {"hook": 2, "exec": 126, "gate": 126}
"""The exit codes for any failure of what agents start: every other code of a hook lets the command run."""

if TYPE_CHECKING:
    import asyncio

    from _typeshed import ReadableBuffer

STDIN, STDOUT, STDERR = 0, 1, 2


class OutputLost(OSError):
    """Standard output could not be written."""

    def sentence(self) -> str:
        """The message for people."""
        if is_closed(STDOUT):
            return "standard output is closed, so the output of this command is lost"
        return f"standard output cannot be written: {self.strerror}; the output of this command is lost"


class _Printed(io.FileIO):
    """Standard output, whose failure is told apart from any other `OSError`."""

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputLost(error.errno, error.strerror) from error


class _Said(io.FileIO):
    """Standard error. A message that cannot be written is dropped; the program does not fail because of it."""

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(bytes(data))


def hold_descriptors() -> None:
    """Open the null device in place of each standard descriptor that is closed.

    In the wrong direction for input and output, so that they fail as if closed; messages vanish.
    """
    # Otherwise the next file or socket gets the free number, and output is written into it.
    for number, mode in ((STDIN, os.O_WRONLY), (STDOUT, os.O_RDONLY), (STDERR, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # The lowest number that is free.


def is_closed(number: int) -> bool:
    """True if a standard stream is closed, or cannot be used in its direction."""
    refused = os.O_WRONLY if number == STDIN else os.O_RDONLY
    return fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == refused


def prepare() -> None:
    """Replace Python's streams by ones that escape letters which their encoding lacks."""
    if sys.stdin is None:
        sys.stdin = sys.__stdin__ = open(STDIN, closefd=False)  # type: ignore[misc]  # noqa: SIM115
    if sys.stdout is sys.__stdout__:  # Else somebody catches it, as tests do.
        sys.stdout = sys.__stdout__ = _text(_Printed(STDOUT, "w", closefd=False), sys.stdout)  # type: ignore[misc]
    if sys.stderr is sys.__stderr__:
        sys.stderr = sys.__stderr__ = _text(_Said(STDERR, "w", closefd=False), sys.stderr)  # type: ignore[misc]


def _text(raw: io.FileIO, usual: object) -> io.TextIOWrapper:
    encoding = getattr(usual, "encoding", None) or "utf-8"
    lines = raw.fileno() == STDERR or raw.isatty()
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, "backslashreplace", line_buffering=lines)


def data_on(number: int) -> io.BufferedWriter:
    """A stream for data, which fails where it cannot be written."""
    return io.BufferedWriter(_Printed(number, "w", closefd=False))


def let_go_of_a_still_terminal() -> None:
    """Redirect output and messages to the null device if their terminal takes nothing: who writes to it never ends."""
    import select

    for number in (STDOUT, STDERR):
        if os.isatty(number) and not select.select((), (number,), (), 0)[1]:
            let_go(number)


def let_go(number: int = STDOUT) -> None:
    """Redirect a stream that cannot be written to the null device."""
    # The interpreter flushes at its end; what is left in the buffer would fail once more, with a message of its own.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, number)
    os.close(null)


T = TypeVar("T")

# All programs import this module, hooks with every command, so only those that wait import what waiting takes.


def on_signals(end: Callable[[], object]) -> None:
    """Call `end` for each signal that ends programs."""
    import asyncio
    import signal

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # nohup has its programs ignore SIGHUP; a handler would undo that.
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, end)


async def while_somebody_reads(work: Coroutine[None, None, T], stream: int = STDOUT) -> T:
    """Return the result of `work`. Raises `BrokenPipeError` once the reader, or the terminal, of a stream is gone."""
    import asyncio

    # A program that writes seldom notices a closed pipe late, and SIGHUP comes only with a controlling terminal.
    doing = asyncio.create_task(work)
    gone = asyncio.get_running_loop().create_future()
    _watch(stream, gone)
    try:
        await asyncio.wait({doing, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise BrokenPipeError
        return doing.result()
    finally:
        gone.cancel()
        if not doing.done():
            doing.cancel()
            await asyncio.wait({doing})


def _watch(stream: int, gone: "asyncio.Future[None]") -> None:
    """Resolve a future when a stream has hung up."""
    import asyncio
    import select
    import threading

    # In a thread: epoll, which asyncio uses, refuses ordinary files, and polling would wake an idle program.
    loop = asyncio.get_running_loop()

    def hung_up() -> None:
        if not gone.done():
            gone.set_result(None)

    def wait() -> None:
        poll = select.poll()
        poll.register(stream, 0)
        # Elsewhere than on Linux some devices cannot be waited for, which says nothing about them.
        if any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll()):
            with suppress(RuntimeError):  # The loop has ended.
                loop.call_soon_threadsafe(hung_up)

    threading.Thread(target=wait, name="hang-up", daemon=True).start()
