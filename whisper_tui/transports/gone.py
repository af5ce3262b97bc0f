"""Waiting for something on behalf of whoever is at the other end of a connection, for as long as they are there."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def unless_gone(work: Coroutine[Any, Any, T], reader: asyncio.StreamReader) -> T | None:
    """What the work gives. None: the connection ended first, and the work was given up."""
    answer = asyncio.ensure_future(work)
    end = asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait({answer, end}, return_when=asyncio.FIRST_COMPLETED)
        return await answer if answer.done() else None
    finally:
        for task in (answer, end):
            task.cancel()
        await asyncio.gather(answer, end, return_exceptions=True)
