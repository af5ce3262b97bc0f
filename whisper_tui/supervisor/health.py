"""Problems that `status` reports: a part that does not work, and agents whose hooks hold nothing."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from whisper_tui.model.board import Board
from whisper_tui.model.call import Session
from whisper_tui.model.errors import WhisperError

_log = logging.getLogger(__name__)


class Health:
    """Health of one part of the supervisor; a problem is logged once and kept until it is over."""

    def __init__(self) -> None:
        self.problem: str | None = None
        """The problem and its remedy, as a sentence. None: it works."""
        self._noted = False

    def note(self, error: WhisperError) -> None:
        """Record a failure."""
        # Whatever failed is retried every half a second: the log takes the first failure alone.
        if self.problem is None:
            _log.error("%s", error.sentence())
        self.problem = error.sentence()
        self._noted = True

    def over(self) -> None:
        """Record a success."""
        if self.problem is not None:
            _log.info("this is over: %s", self.problem)
        self.problem = None
        self._noted = False

    def over_unless_noted(self) -> None:
        """Record a success if no failure was noted since this was called last."""
        if not self._noted:
            self.over()
        self._noted = False


class HookGaps(Protocol):
    """Finds the gaps in the hooks of a client. It reads files, so it is called in a thread."""

    def __call__(self, client: str, root: str, environ: Mapping[str, str], *, by_hook: bool) -> Sequence[str]:
        """Return a sentence about each gap in a workspace, and about each hook that may overrule ours.

        `by_hook`: a hook of ours was called there, so it is not switched off.
        """
        ...


MOST_SENTENCES = 5
"""Limit of sentences that are kept about one session."""


class UnguardedAgents:
    """Agents whose commands bypass approval or may be replaced, because of their client's hooks in their workspace."""

    def __init__(self, gaps: HookGaps | None, board: Board, environment_of: Callable[[str], Mapping[str, str]]) -> None:
        self._gaps = gaps
        self._board = board
        self._environment_of = environment_of
        self._found: dict[str, tuple[str, ...]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def check(self, session: Session) -> None:
        """Check the hooks in the workspace of a session; of one that hooks have opened, once."""
        # A client without working hooks still starts the MCP server, and no hook would come to report it.
        if self._gaps is None or session.client is None or session.relayed:
            return
        if session.key is not None and session.id in self._found:
            return
        self._found[session.id] = ()
        task = asyncio.create_task(self._check(self._gaps, session, session.client.name))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def sentences(self) -> tuple[str, ...]:
        """Return all findings about the open sessions, each once."""
        sessions = self._board.sessions
        for session_id in tuple(self._found):
            session = sessions.get(session_id)
            if session is None or session.closed_at is not None:
                del self._found[session_id]
        return tuple(dict.fromkeys(sentence for said in self._found.values() for sentence in said))

    def close(self) -> None:
        """Cancel the running checks."""
        for task in self._tasks:
            task.cancel()

    async def _check(self, gaps: HookGaps, session: Session, client: str) -> None:
        try:
            environment = self._environment_of(session.id)
            by_hook = session.key is not None
            found = await asyncio.to_thread(partial(gaps, client, session.root, environment, by_hook=by_hook))
        except (OSError, ValueError, WhisperError):  # The agent is served all the same.
            _log.exception("whether the hooks of %s work in %s is not known", client, session.root)
            return
        for sentence in found:
            _log.warning("%s", sentence)
        self._found[session.id] = tuple(found[:MOST_SENTENCES])
