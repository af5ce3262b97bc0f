"""The end of a process whose input and output are lines that are forwarded."""

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress

from whisper_tui.transports.json_lines import LineWriter

GRACE_S = 1.5
"""Seconds that a started process has to end, first by itself, and again after SIGTERM. Clients kill after two each."""


def awaited_end(terminated: str) -> "tuple[asyncio.Future[str], Callable[[str], None]]":
    """Return the reason for which forwarding ends, and what sets it once, from any thread. A signal ends it, too."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[str] = loop.create_future()

    def end(why: str) -> None:
        def set_result() -> None:
            if not ended.done():
                ended.set_result(why)

        with suppress(RuntimeError):  # The loop is closed, and everything has ended.
            loop.call_soon_threadsafe(set_result)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, end, terminated)
    for descriptor in (0, 1):
        # Whoever started this process may have made them non-blocking.
        os.set_blocking(descriptor, True)
    return ended, end


def end_process(
    process: subprocess.Popen[bytes], writer: LineWriter, reading: threading.Thread, *, at_once: bool
) -> int:
    """End a started process as clients do: close its input, then SIGTERM, then SIGKILL. Return its exit code."""
    if not at_once:
        writer.finish(GRACE_S)
    with suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    steps = (process.terminate, process.kill) if at_once else (lambda: None, process.terminate, process.kill)
    for step in steps:
        step()
        try:
            process.wait(GRACE_S)
            break
        except subprocess.TimeoutExpired:
            continue
    reading.join(GRACE_S)
    code = process.wait()
    return 128 - code if code < 0 else code
