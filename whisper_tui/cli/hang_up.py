"""When a program that waits has to end: nobody reads it any more, or a signal says so."""

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
    """Call `end` for each signal that ends programs, but not for one that whoever started us had us ignore (nohup)."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, end)


async def while_somebody_reads(work: Coroutine[None, None, T], stream: int = STDOUT) -> T:
    """What `work` returns. Raises `BrokenPipeError` once the reader, or the terminal, of a stream is gone.

    Who writes seldom would notice it too late: no signal comes without a controlling terminal, or behind a pipe.
    """
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
    """Resolve a future when a stream has hung up. A thread waits for that, so that nobody has to poll."""
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
