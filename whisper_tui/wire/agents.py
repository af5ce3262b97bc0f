"""The programs of connected agents, as processes that cannot be mistaken for others."""

import asyncio
import os
from collections.abc import Mapping

from whisper_tui.model.call import Session
from whisper_tui.supervisor.keeper import mark
from whisper_tui.wire.peers import Look, ProcessSeen, ancestry, look

MOST = 1000
"""Programs that are remembered before those that have ended are forgotten."""


class Agents:
    """Remembers them beyond their sessions: an agent that drops its connection is still an agent."""

    def __init__(self, look_at: Look = look) -> None:
        self._look = look_at
        self._known: dict[tuple[int, str], str] = {}

    @property
    def known(self) -> Mapping[tuple[int, str], str]:
        """What to call each of them, by pid and start."""
        return self._known

    async def note(self, session: Session) -> None:
        """Remember who said that it is the agent of this session.

        An agent is what launched our relay, and has said which program it is, or our hook, whose sessions have a key. A
        program that opens its session with the library is its author's, like all that it starts. Nothing can be meant
        that this very process descends from, init among it: from there the human's own terminals may come, too.
        """
        if session.key is None and session.client is None:
            return
        if session.pid is None or session.pid < 1:
            return
        seen = await asyncio.to_thread(self._agent, session.pid)
        if seen is None:
            return
        self._known[seen.pid, seen.start] = f"{session.name} (session {session.id}, pid {session.pid})"
        mark.put_on_agent(seen.pid)
        if len(self._known) > MOST:
            await asyncio.to_thread(self._forget_ended)

    def _agent(self, pid: int) -> ProcessSeen | None:
        ours = ancestry(os.getpid(), self._look) or ()
        return None if any(seen.pid == pid for seen in ours) else self._look(pid)

    def _forget_ended(self) -> None:
        for pid, start in tuple(self._known):
            seen = self._look(pid)
            if seen is None or seen.start != start:
                del self._known[pid, start]
