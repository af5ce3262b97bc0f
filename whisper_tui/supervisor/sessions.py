"""Who is connected: sessions begin, say who they are, go away and come back."""

import os
from collections.abc import Callable, Mapping

from whisper_tui.model.call import ClientInfo, Session, SessionHello
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import InvalidRequest, Refused
from whisper_tui.model.event import (
    LONGEST_SAID,
    GrantRevoked,
    SessionClosed,
    SessionDescribed,
    SessionOpened,
    SessionResumed,
    SessionSaid,
)
from whisper_tui.policy.memory import is_over
from whisper_tui.supervisor.capacity import MOST_SESSIONS
from whisper_tui.supervisor.environments import Environments
from whisper_tui.supervisor.keepable import check_keepable
from whisper_tui.supervisor.keeper.processes import look_at
from whisper_tui.supervisor.ledger import Ledger

LARGEST_ENVIRONMENT = 2 * 1024 * 1024
"""Characters of all names and values; the system lets no program start with more."""


class Sessions:
    """Opens and closes the agents' sessions, and keeps what their commands inherit."""

    def __init__(self, ledger: Ledger, environments: Environments, clock: Callable[[], float]) -> None:
        self._ledger = ledger
        self._environments = environments
        self._clock = clock
        opened = (session for session in ledger.board.sessions.values() if session.closed_at is None)
        self._absent = {session.id for session in opened if session.key is None}
        """Sessions of an earlier supervisor whose agents have not come back yet."""
        self._starts: dict[str, int] = {}
        """When the agents' programs started, by session: a pid can be taken by another program later."""

    def open(self, hello: SessionHello) -> Session:
        """A new session, or the one that the agent had before a supervisor went away."""
        if not os.path.isabs(hello.root) or "\0" in hello.root:  # noqa: PTH117
            raise InvalidRequest(f"the workspace {hello.root} is not an absolute path")
        _check_environment(hello.environment)
        resumed = hello.resume or self._of_key(hello.key)
        if resumed is not None and (session := self._resume(resumed, hello)) is not None:
            return session
        session = Session(
            id=f"s{self._ledger.journal.last_session + 1}",
            name=hello.name,
            root=os.path.realpath(hello.root),
            client=hello.client,
            pid=hello.pid,
            trust=hello.trust,
            key=hello.key,
            hears=hello.hears,
            opened_at=self._clock(),
        )
        check_keepable(session)
        self._check_room()
        self._environments.keep(session.id, hello.environment)
        self._ledger.record(SessionOpened(at=session.opened_at, session=session))
        self._ledger.journal.last_session += 1
        self._note_start(session.id, hello.pid)
        return session

    def describe(self, session_id: str, client: ClientInfo) -> None:
        """Record which program the agent is, where that is news."""
        if self.living(session_id).client != client:
            check_keepable(client)
            self._ledger.record(SessionDescribed(at=self._clock(), session_id=session_id, client=client))

    def say(self, session_id: str, text: str, by: Decider) -> None:
        """Record what was said. Agents say what they were told at their own start, too."""
        session = self.living(session_id)
        if not 0 < len(text) <= LONGEST_SAID:
            raise InvalidRequest(f"what is said must have 1 to {LONGEST_SAID:,} characters, not {len(text):,}")
        if by.surface not in {"agent", "command line"} and not session.hears:
            raise Refused(
                f"the agent of session {session_id} does not listen", hint="Deny one of its calls with a reason instead"
            )
        self._ledger.record(SessionSaid(at=self._clock(), session_id=session_id, text=text, by=by))

    def close(self, session_id: str, why: str) -> None:
        """End a session; its remembered approvals end with it.

        That its agent is gone stays true while the journal takes nothing: it is recorded as soon as that is possible.
        """
        self._absent.discard(session_id)
        self._ledger.see_to(lambda: self._close(session_id, why))

    def _close(self, session_id: str, why: str) -> None:
        session = self._ledger.board.sessions.get(session_id)
        if session is not None and session.closed_at is None:
            self._ledger.record(SessionClosed(at=self._clock(), session_id=session_id, why=why))
            self.tidy(session_id)

    def close_absent(self) -> None:
        """End the sessions whose agents did not come back after the supervisor's restart."""
        for session_id in tuple(self._absent):
            self.close(session_id, "the agent did not come back after the supervisor was restarted")

    def living(self, session_id: str) -> Session:
        """An open session. Raises `Refused`."""
        session = self._ledger.session(session_id)
        if session is None:
            raise Refused(f"there is no session {session_id}", hint="Open a session first")
        if session.closed_at is not None:
            raise Refused(f"session {session_id} is closed: {session.closed_because}", hint="Open a new one")
        return session

    def tidy(self, session_id: str) -> None:
        """Let go of the environment of a closed session that has nothing left to start."""
        board = self._ledger.board
        session = board.sessions.get(session_id)
        if session is None or session.closed_at is None:
            return
        if all(call_id in board.unsettled for call_id in board.open_in.get(session_id, ())):
            self._environments.forget(session_id)

    def close_gone(self) -> None:
        """End the sessions without a connection of their own whose agents have ended."""
        for session in tuple(self._ledger.board.sessions.values()):
            if session.key is not None and session.closed_at is None and not self._is_there(session):
                self.close(session.id, "the agent's program ended")

    def _check_room(self) -> None:
        """Raises `Refused` where more sessions are open than anybody has agents."""
        sessions = self._ledger.board.sessions
        if len(sessions) >= MOST_SESSIONS:
            opened = sum(session.closed_at is None for session in sessions.values())
            if opened >= MOST_SESSIONS:
                raise Refused(
                    f"{opened:,} sessions are open, and no more are opened", hint="End agents, then try again"
                )

    def _is_there(self, session: Session) -> bool:
        """Whether the agent's program still runs. One that cannot be looked at is taken to be there."""
        if session.pid is None:
            return True
        seen = look_at(session.pid)
        return seen is not None and seen.start == self._starts.setdefault(session.id, seen.start)

    def _of_key(self, key: str | None) -> str | None:
        """The newest session that its agent calls by this name."""
        sessions = reversed(self._ledger.board.sessions.values())
        return next((session.id for session in sessions if key is not None and session.key == key), None)

    def _resume(self, session_id: str, hello: SessionHello) -> Session | None:
        session = self._ledger.bring_back(session_id)
        if session is None:
            return None
        self._absent.discard(session.id)
        self._environments.keep(session.id, hello.environment)
        same = self._is_same_process(session, hello.pid)
        self._note_start(session.id, hello.pid)
        if session.closed_at is None and same:
            return session
        resumed = SessionResumed(at=self._clock(), session_id=session.id, pid=hello.pid)
        self._ledger.record(resumed, *(() if same else self._forgotten(session.id)), durable=True)
        return self._ledger.board.sessions[session.id]

    def _is_same_process(self, session: Session, pid: int | None) -> bool:
        """Whether a session is continued by the process that had it. A name of a session is known to many others.

        After a restart of the supervisor it is not known when the process started; then the session is still open.
        """
        if pid is None or session.pid != pid:
            return pid is None and session.pid is None and session.key is None
        seen, start = look_at(pid), self._starts.get(session.id)
        if start is None:
            return session.closed_at is None
        return seen is not None and seen.start == start

    def _note_start(self, session_id: str, pid: int | None) -> None:
        self._starts.pop(session_id, None)
        seen = look_at(pid) if pid is not None else None
        if seen is not None:
            self._starts[session_id] = seen.start
        while len(self._starts) > MOST_SESSIONS:
            del self._starts[next(iter(self._starts))]

    def _forgotten(self, session_id: str) -> tuple[GrantRevoked, ...]:
        """The approvals that another process had been given in this session, as they are taken back."""
        now, by = self._clock(), Decider(surface="rule", who="another process goes on with the session")
        grants = self._ledger.board.grants.values()
        held = (grant for grant in grants if grant.session_id == session_id and not is_over(grant, now))
        return tuple(GrantRevoked(at=now, session_id=session_id, grant_id=grant.id, by=by) for grant in held)


def _check_environment(environment: Mapping[str, str]) -> None:
    size = sum(len(name) + len(value) for name, value in environment.items())
    if size > LARGEST_ENVIRONMENT:
        raise InvalidRequest(
            f"the agent's environment has {size:,} characters, and {LARGEST_ENVIRONMENT:,} can be kept",
            hint="Start the agent with fewer or shorter variables",
        )
