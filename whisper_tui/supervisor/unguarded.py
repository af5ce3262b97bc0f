"""Agents whose own shell is not held where it should be: a project can switch a client's hooks off.

Such a client still starts whisper_tui's tools, which is when this is looked at: no hook would come to tell.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from whisper_tui.model.board import Board
from whisper_tui.model.call import Session
from whisper_tui.model.errors import WhisperError
from whisper_tui.supervisor.environments import Environments

_log = logging.getLogger(__name__)

Gaps = Callable[[str, str, Mapping[str, str]], Sequence[str]]
"""From the name of a client, its workspace and its environment to sentences about what its hooks let pass there. It
reads files, in a thread."""

NAMED = 5
"""Sentences about one session."""


class Unguarded:
    """What was found about the sessions that are open."""

    def __init__(self, gaps: Gaps | None, board: Board, environments: Environments) -> None:
        self._gaps = gaps
        self._board = board
        self._environments = environments
        self._found: dict[str, tuple[str, ...]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def look(self, session: Session) -> None:
        """Look at the workspace of a session that came for the tools; one that comes by a hook is held by it."""
        if self._gaps is None or session.client is None or session.key is not None:
            return
        task = asyncio.create_task(self._look(self._gaps, session, session.client.name))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def sentences(self) -> tuple[str, ...]:
        """What holds now, about every session that is open, once."""
        sessions = self._board.sessions
        for session_id in tuple(self._found):
            session = sessions.get(session_id)
            if session is None or session.closed_at is not None:
                del self._found[session_id]
        return tuple(dict.fromkeys(sentence for said in self._found.values() for sentence in said))

    def close(self) -> None:
        """Look no more."""
        for task in self._tasks:
            task.cancel()

    async def _look(self, gaps: Gaps, session: Session, client: str) -> None:
        try:
            environment = self._environments.of(session.id)
            found = await asyncio.to_thread(gaps, client, session.root, environment)
        except (OSError, ValueError, WhisperError):  # The agent is served all the same.
            _log.exception("whether the hooks of %s work in %s is not known", client, session.root)
            return
        for sentence in found:
            _log.warning("%s", sentence)
        self._found[session.id] = tuple(found[:NAMED])
