"""A cockpit on a terminal of its own, opened again whenever it was killed."""

import asyncio
import os
import pty
from contextlib import suppress

from tests.crash.field import PROGRAM, Field


async def cockpit(field: Field) -> None:
    """Keep one open."""
    while not field.over.is_set():
        ours, theirs = pty.openpty()
        process = await asyncio.create_subprocess_exec(
            *PROGRAM, "--home", str(field.root), stdin=theirs, stdout=theirs, stderr=theirs, env=_terminal()
        )
        os.close(theirs)
        field.processes.setdefault("cockpit", set()).add(process)
        loop = asyncio.get_running_loop()
        loop.add_reader(ours, _drain, ours)
        waiting = asyncio.create_task(process.wait())
        over = asyncio.create_task(field.over.wait())
        await asyncio.wait({waiting, over}, return_when=asyncio.FIRST_COMPLETED)
        if process.returncode is None:
            process.kill()
            await process.wait()
        over.cancel()
        loop.remove_reader(ours)
        os.close(ours)
        field.forget("cockpit", process)


def _terminal() -> dict[str, str]:
    return {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}


def _drain(descriptor: int) -> None:
    with suppress(OSError):
        os.read(descriptor, 1 << 16)
