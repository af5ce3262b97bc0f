"""What can be looked at on a stage: output, calls, remembered approvals, figures."""

from whisper_tui.demo.cast import Cast, Written
from whisper_tui.model.command import CommandSpec, Shell
from whisper_tui.model.decision import Coverage, Grant, Scope
from whisper_tui.model.errors import Refused
from whisper_tui.model.port import HistoryQuery, SupervisorStatus
from whisper_tui.model.run import OutputChunk, OutputSpan, Stream, TerminalSize
from whisper_tui.model.state import CallRecord


class StageLooking(Cast):
    """What the port tells without changing anything."""

    async def read_output(self, call_id: str, stream: Stream, offset: int, limit: int) -> OutputChunk:
        """At most `limit` bytes of a stream from `offset`; a negative offset counts from the end."""
        self.check()
        data = self.written.get(call_id, Written()).stream(stream)
        start = max(0, len(data) + offset) if offset < 0 else min(offset, len(data))
        piece = bytes(data[start : start + limit])
        return OutputChunk(data=piece, start=start, size=len(data), ended=not self.known(call_id).is_open)

    async def output_file(self, call_id: str, stream: Stream) -> str | None:
        """The stage keeps output in memory."""
        self.check()
        return None

    async def read_timeline(self, call_id: str, after: int, limit: int) -> tuple[OutputSpan, ...]:
        """When what was written was written."""
        self.check()
        return tuple(self.spans.get(call_id, ())[after : after + limit])

    async def terminal_sizes(self, call_id: str) -> tuple[TerminalSize, ...]:
        """Which sizes a terminal was given."""
        self.check()
        return tuple(self.terminals.get(call_id, (TerminalSize(),)))

    async def record(self, call_id: str) -> CallRecord:
        """A call on the board."""
        self.check()
        return self.known(call_id)

    async def history(self, query: HistoryQuery) -> tuple[CallRecord, ...]:
        """Calls that match, newest first."""
        self.check()
        newest_first = (self.board.calls[call_id] for call_id in reversed(self.board.calls))
        found = (record for record in newest_first if self._called(record, query.session) and _matches(record, query))
        return tuple(record for _, record in zip(range(query.limit), found, strict=False))

    def _called(self, record: CallRecord, session: str | None) -> bool:
        """Whether a call is of a session with that name or id. None: any."""
        session_id = record.call.session_id
        return session in {None, session_id, self.board.sessions[session_id].name}

    async def grants(self, session_id: str | None = None) -> tuple[Grant, ...]:
        """The remembered approvals that hold."""
        self.check()
        grants = self.board.grants.values()
        return tuple(g for g in grants if g.revoked_at is None and session_id in {None, g.session_id})

    async def would_cover(self, call_id: str, scope: Scope, edited: CommandSpec | None = None) -> Coverage:
        """On the stage a scope covers the calls of the same command, or that begin with the same words."""
        self.check()
        record = self.known(call_id)
        words = getattr(scope, "words", None)
        if words is not None and len(words) < 2:
            raise Refused(f"this cannot be remembered like that: {words[0]!r} is too short", hint="Add a word")
        begins = " ".join(words) if words else None
        same = [
            other.id
            for other in (self.board.calls[id_] for id_ in reversed(self.board.calls))
            if (
                " ".join(_words_of(other)).startswith(begins)
                if begins
                else other.call.spec.identity() == (edited or record.call.spec).identity()
            )
        ]
        return Coverage(looked_at=len(self.board.calls), calls=tuple(same))

    async def status(self) -> SupervisorStatus:
        """How many calls there are of each kind."""
        self.check()
        board = self.board
        return SupervisorStatus(
            version="stage",
            pid=1,
            started_at=self.clock(),
            workers=1,
            waiting=len(board.waiting),
            queued=len(board.queued),
            running=len(board.running),
            home="stage",
            paused_since=board.paused.at if board.paused else None,
            paused_by=board.paused.by if board.paused else None,
            problem=self.problem,
            sandbox_problem=self.sandbox_problem,
            unguarded=self.unguarded,
        )


def _matches(record: CallRecord, query: HistoryQuery) -> bool:
    if query.session_id is not None and record.call.session_id != query.session_id:
        return False
    if query.before is not None and int(record.id) >= int(query.before):
        return False
    if query.after is not None and int(record.id) <= int(query.after):
        return False
    if query.open_only and not record.is_open:
        return False
    words = f"{record.call.tool} {record.call.description} {' '.join(record.spec.command.words())}"
    return query.text.casefold() in words.casefold()


def _words_of(record: CallRecord) -> tuple[str, ...]:
    """The words of a command, without the shell around them."""
    command = record.call.spec.command
    return (command.text,) if isinstance(command, Shell) else command.words()
