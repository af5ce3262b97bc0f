"""The sessions of agents on a stage."""

from whisper_tui.demo.cast import Cast
from whisper_tui.model.call import ClientInfo, Session, SessionHello
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.model.event import SessionClosed, SessionDescribed, SessionResumed, SessionSaid


class StageSessions(Cast):
    """What the port says about sessions."""

    async def open_session(self, hello: SessionHello) -> Session:
        """Begin, or resume, an agent's session."""
        self.check()
        if hello.resume is not None and hello.resume in self.board.sessions:
            self.happen(SessionResumed(at=self.clock(), session_id=hello.resume, pid=hello.pid))
            return self.board.sessions[hello.resume]
        client = hello.client
        return self.open(hello.name, hello.root, client.name if client else "", client.version if client else "")

    async def session(self, session_id: str) -> Session:
        """Any session of the stage."""
        self.check()
        if session_id not in self.board.sessions:
            raise InvalidRequest(f"There is no session {session_id}")
        return self.board.sessions[session_id]

    async def describe_session(self, session_id: str, client: ClientInfo) -> None:
        """Say which program the agent is, once it has told."""
        self.check()
        self.happen(SessionDescribed(at=self.clock(), session_id=session_id, client=client))

    async def say(self, session_id: str, text: str, by: Decider) -> None:
        """Add to the conversation of a session."""
        self.check()
        self.happen(SessionSaid(at=self.clock(), session_id=session_id, text=text, by=by))

    async def close_session(self, session_id: str, why: str) -> None:
        """End a session."""
        self.check()
        self.happen(SessionClosed(at=self.clock(), session_id=session_id, why=why))
