"""The conversation of a session as its agent takes part in it: what it says is shown, what a human says is heard."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import Unavailable, WhisperError
from whisper_tui.model.event import LONGEST_SAID, SessionSaid
from whisper_tui.model.port import Supervision

OWN_SURFACES = frozenset({"agent", "command line"})
"""Where what is said comes from the agent's own process: its model, and the task that it was started with."""


class SessionTalk:
    """One agent's end of a conversation."""

    def __init__(self, supervision: Supervision, session_id: str, model: str) -> None:
        self._supervision = supervision
        self._session_id = session_id
        self._model = Decider(surface="agent", who=model)
        self._heard: asyncio.Queue[str] = asyncio.Queue()
        self._listening: asyncio.Task[None] | None = None

    async def task(self, text: str) -> None:
        """Show what the agent was started for."""
        await self._say(text, Decider(surface="command line"))

    async def said(self, text: str) -> None:
        """Show what the model said."""
        await self._say(text, self._model)

    async def _say(self, text: str, by: Decider) -> None:
        """What cannot be shown is not: the work goes on without it."""
        with suppress(WhisperError):
            await self._supervision.say(self._session_id, bounded(text), by)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Hear what a human says from now on, also while the model works."""
        self._listening = asyncio.create_task(self._listen(), name="listening")
        try:
            yield
        finally:
            self._listening.cancel()
            await asyncio.wait([self._listening])

    async def heard(self) -> str:
        """The next thing that a human says, for as long as that takes. Raises `WhisperError` if nobody can any more."""
        if self._listening is None:
            raise RuntimeError("nobody listens")
        hearing = asyncio.create_task(self._heard.get())
        await asyncio.wait([hearing, self._listening], return_when=asyncio.FIRST_COMPLETED)
        if not hearing.done():
            hearing.cancel()
            self._listening.result()
            raise Unavailable("the supervisor has stopped, so nothing more can be heard", hint="Start the agent again")
        return hearing.result()

    async def _listen(self) -> None:
        async for events in self._supervision.watch():
            for event in events:
                if (
                    isinstance(event, SessionSaid)
                    and event.session_id == self._session_id
                    and event.by.surface not in OWN_SURFACES
                ):
                    self._heard.put_nowait(event.text)


def bounded(text: str) -> str:
    """The text, or as much of its beginning as may be said, with how much is missing."""
    if len(text) <= LONGEST_SAID:
        return text
    kept = LONGEST_SAID - 64
    return f"{text[:kept]}\n… {len(text) - kept:,} more characters stand in the agent's terminal"
