"""Loading what takes long beside other work."""

import asyncio
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")

TURN_S = 0.0005
"""Seconds that loading may keep whoever has other work waiting for the interpreter, each time."""


async def loaded(load: Callable[[], T]) -> T:
    """What `load` returns, from a thread that nobody waits for who stops, as they would for one of asyncio's own."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(load())
        except Exception as error:  # noqa: BLE001  raised again where it is waited for
            future.set_exception(error)

    usual = sys.getswitchinterval()
    sys.setswitchinterval(TURN_S)
    try:
        threading.Thread(target=run, daemon=True).start()
        return await asyncio.wrap_future(future)
    finally:
        sys.setswitchinterval(usual)
