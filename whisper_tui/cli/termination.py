"""The end of a program that waits: a signal, or a reader that is gone."""

import asyncio
import select
import signal
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TypeVar

from whisper_tui.cli.standard_streams import STDOUT

T = TypeVar("T")


def on_signals(end: Callable[[], object]) -> None:
    """Call `end` for each signal that ends programs."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # nohup has its programs ignore SIGHUP; a handler would undo that.
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, end)


async def while_somebody_reads(work: Coroutine[None, None, T], stream: int = STDOUT) -> T:
    """Return the result of `work`. Raises `BrokenPipeError` once the reader, or the terminal, of a stream is gone."""
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
    # In a thread: epoll, which asyncio uses, refuses ordinary files, and polling would wake an idle program.
    loop = asyncio.get_running_loop()

    def told() -> None:
        if not gone.done():
            gone.set_result(None)

    def wait() -> None:
        poll = select.poll()
        poll.register(stream, 0)
        # Elsewhere than on Linux some devices cannot be waited for, which says nothing about them.
        if any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll()):
            with suppress(RuntimeError):  # The loop has ended.
                loop.call_soon_threadsafe(told)

    threading.Thread(target=wait, name="hang-up", daemon=True).start()
