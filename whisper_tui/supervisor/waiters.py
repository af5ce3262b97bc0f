"""Whoever waits for something to happen to a call."""

import asyncio


class Waiters:
    """Who gives up waiting leaves nothing behind."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    async def wait(self, call_id: str) -> None:
        """Wait until somebody wakes those who wait for this call."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(call_id, set()).add(waiter)
        try:
            await waiter
        finally:
            others = self._waiting.get(call_id, set())
            others.discard(waiter)
            if not others:
                self._waiting.pop(call_id, None)

    def wake(self, call_id: str) -> None:
        """Let them look again."""
        for waiter in self._waiting.pop(call_id, ()):
            if not waiter.done():
                waiter.set_result(None)

    def wake_all(self) -> None:
        """Let all look again, whatever they wait for."""
        for call_id in tuple(self._waiting):
            self.wake(call_id)
