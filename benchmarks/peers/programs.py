"""Programs that are run for what they print."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks.peers.way import Failed

ANSWER_S = 60.0
"""Seconds that a program has, where nothing else is said."""


async def said(argv: Sequence[str], environ: Mapping[str, str], limit_s: float = ANSWER_S) -> str:
    """What a program prints. Raises `Failed` if it fails, or does not end in time."""
    process = await asyncio.create_subprocess_exec(
        *argv, env=dict(environ), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    program = Path(argv[0]).name
    try:
        out, err = await asyncio.wait_for(process.communicate(), limit_s)
    except TimeoutError:
        raise Failed(f"{program} hangs for more than {limit_s:.0f} s") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        raise Failed(err.decode(errors="replace").strip() or f"{program}: exit code {process.returncode}")
    return out.decode().strip()
