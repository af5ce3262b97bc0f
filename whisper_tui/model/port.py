"""The one door: what everybody may ask of the supervisor, wherever it runs."""

from collections.abc import AsyncIterator
from typing import Annotated, Protocol

from pydantic import Field

from whisper_tui.model.call import CallRequest, ClientInfo, Session, SessionHello
from whisper_tui.model.command import CommandSpec
from whisper_tui.model.decision import Coverage, Decider, Decision, Grant, Scope
from whisper_tui.model.event import Event, RulesChanged
from whisper_tui.model.run import OutputChunk, OutputSpan, SignalTarget, Stream, TerminalSize
from whisper_tui.model.state import CallRecord, Claim
from whisper_tui.model.value import Count, Value, Whole

LARGEST_PAGE = 10_000
"""Calls in one answer at most."""

LONGEST_REASON = 16_384
"""Characters of why something was done."""

MOST_CELLS = 2**15 - 1
"""Rows or columns of a terminal."""

Reason = Annotated[str, Field(max_length=LONGEST_REASON)]
Page = Annotated[int, Field(ge=0, le=LARGEST_PAGE)]
Cells = Annotated[int, Field(ge=1, le=MOST_CELLS)]


class HistoryQuery(Value):
    """Which calls to look for, newest first."""

    limit: Page = 50
    before: str | None = Field(default=None, pattern=r"^[0-9]{1,18}$")
    """Only calls with a smaller id than this."""
    after: str | None = Field(default=None, pattern=r"^[0-9]{1,18}$")
    """Only calls with a greater id than this: how far a search for words goes back at once."""
    session_id: str | None = None
    session: str | None = None
    """Only calls of the sessions with this name, which several may share, or this id."""
    text: str = ""
    """Only calls whose command, description or tool holds this text. Empty: any."""
    open_only: bool = False
    """Only calls of which something can still happen."""


class SupervisorStatus(Value):
    """The supervisor about itself."""

    version: str
    pid: int
    started_at: float
    """Seconds since the epoch."""
    workers: int
    waiting: int
    queued: int
    running: int
    home: str
    paused_since: float | None = None
    """Seconds since the epoch. None: nothing is held still."""
    paused_by: Decider | None = None
    problem: str | None = None
    """What keeps it from working, and what to do about that. None: nothing."""
    busy: str = ""
    """What queued commands wait for, as a clause. Empty: it has not said."""
    agents: int = 0
    """Sessions whose agents are connected."""
    keeps: str = ""
    """How much recorded output is kept, as a clause. Empty: it has not said."""
    counts: tuple[str, ...] | None = None
    """What the control group of each run counts. None: runs have no control groups."""
    sandbox: str = ""
    """Which sandbox commands run in that nobody was asked about. Empty: it has not said."""
    sandbox_problem: str | None = None
    """Why there is none, as a clause. None: there is one."""
    unguarded: tuple[str, ...] = ()
    """Whose own commands are not held, where, and why, one sentence each; about the agents that are connected."""


class Pruned(Value):
    """What became of recorded output. Bytes are those that it takes of the disk."""

    runs: int
    bytes: int
    kept_runs: int
    kept_bytes: int


class Supervision(Protocol):
    """Implemented by the supervisor in process and by the socket client. Errors are `WhisperError`s."""

    async def open_session(self, hello: SessionHello) -> Session:
        """Begin, or resume, an agent's session."""
        ...

    async def session(self, session_id: str) -> Session:
        """Any session that the journal knows."""
        ...

    async def describe_session(self, session_id: str, client: ClientInfo) -> None:
        """Say which program the agent is, once it has told."""
        ...

    async def say(self, session_id: str, text: str, by: Decider) -> None:
        """Add to the conversation of an open session: its model's words, or a human's to it.

        `Refused` if a human says it and the agent does not listen; `InvalidRequest` if it is empty or too long.
        """
        ...

    async def close_session(self, session_id: str, why: Reason) -> None:
        """End a session. What runs goes on; what waits goes on waiting, marked."""
        ...

    async def submit(self, request: CallRequest) -> str:
        """Hand in a call. Returns its id once it is journaled, or the id of the call that it joins."""
        ...

    async def decided(self, call_id: str) -> CallRecord:
        """Wait until nobody needs to be asked any more. May take as long as a human takes."""
        ...

    async def claim(self, call_id: str, ticket: str, claim: Claim, names: tuple[str, ...] | None = None) -> CallRecord:
        """Show the ticket of an approved call, which starts it. `Refused` for any but the first claimer.

        `names`: the variables that the claimer has; the session's others are kept from the run. None: it has all.
        """
        ...

    async def hand_over(self, call_id: str, ticket: str) -> CallRecord:
        """Show the ticket of an approved call that its agent runs itself."""
        ...

    async def started(self, call_id: str) -> CallRecord:
        """Wait until the call has a process or its ending. May take as long as a human takes."""
        ...

    async def begin_function(self, call_id: str) -> CallRecord:
        """Wait until a call of the caller's own tool may be carried out, or has its ending.

        One caller alone is let through, once: for every other, and ever after, it is `Refused`.
        """
        ...

    async def end_function(self, call_id: str, problem: Reason | None = None) -> None:
        """Say that the tool of a call that was begun is done, or why it did not return."""
        ...

    async def outcome(self, call_id: str) -> CallRecord:
        """Wait until the call has its ending. May take as long as a human takes."""
        ...

    async def withdraw(self, call_id: str, why: Reason, *, stop_running: bool = False) -> None:
        """The agent no longer wants it: a call that has not started is withdrawn, a running one is stopped if told."""
        ...

    async def leave(self, call_id: str, why: Reason) -> None:
        """The agent stops waiting for the answer: the call goes on as it is, marked, and can be rejoined."""
        ...

    def watch(self, after: Count | None = None) -> AsyncIterator[tuple[Event, ...]]:
        """Numbered events in batches, endless. None: first all events of what a board shows now."""
        ...

    async def decide(self, call_id: str, decision: Decision, by: Decider, seen: str) -> None:
        """Decide about a waiting call. `seen` is its `seen_digest()`; the first decision wins."""
        ...

    async def signal(self, call_id: str, number: Count, target: SignalTarget, by: Decider) -> None:
        """Send a signal to a run, or to what it left behind."""
        ...

    async def pause(self, by: Decider) -> None:
        """Hold every process of every run still and start nothing, until `resume`, whatever restarts meanwhile."""
        ...

    async def resume(self, by: Decider) -> None:
        """Let everything go on."""
        ...

    async def write_stdin(self, call_id: str, data: bytes, *, eof: bool = False) -> None:
        """Write to the command's standard input or terminal; `eof` closes it afterwards."""
        ...

    async def resize(self, call_id: str, rows: Cells, columns: Cells) -> None:
        """Tell the command's terminal its size in character cells."""
        ...

    async def read_output(self, call_id: str, stream: Stream, offset: Whole, limit: Count) -> OutputChunk:
        """At most `limit` bytes of a stream from `offset`. A negative offset counts from the end."""
        ...

    async def output_file(self, call_id: str, stream: Stream) -> str | None:
        """Absolute path of the file that holds all of a stream. None: no file holds all of it."""
        ...

    async def read_timeline(self, call_id: str, after: Count, limit: Count) -> tuple[OutputSpan, ...]:
        """At most `limit` rows of the time index, from row `after`."""
        ...

    async def terminal_sizes(self, call_id: str) -> tuple[TerminalSize, ...]:
        """The sizes that the command's terminal has had, the one that it began with first."""
        ...

    async def record(self, call_id: str) -> CallRecord:
        """Any call that the journal knows."""
        ...

    async def history(self, query: HistoryQuery) -> tuple[CallRecord, ...]:
        """Calls that match, newest first, whatever their state."""
        ...

    async def grants(self, session_id: str | None = None) -> tuple[Grant, ...]:
        """The remembered approvals that hold."""
        ...

    async def would_cover(self, call_id: str, scope: Scope, edited: CommandSpec | None = None) -> Coverage:
        """Which of the newest calls would have been let through, had this one been approved with that scope.

        `Refused` for a scope that may not be given for it, with the reason.
        """
        ...

    async def revoke(self, grant_id: str, by: Decider) -> None:
        """Forget a remembered approval."""
        ...

    async def rule_files(self) -> tuple[RulesChanged, ...]:
        """What the files of rules say, and how much of it is trusted."""
        ...

    async def trust_rules(
        self, path: str, by: Decider, digest: str | None = None, add: tuple[str, ...] = (), remove: tuple[str, ...] = ()
    ) -> None:
        """Let what a file of rules allows hold: all that it says, or entries that are about to be written or removed.

        `digest`: of all that the human has seen in it; `ChangedSinceSeen` if it says something else. None: only the
        entries `add` are trusted besides, and `remove` no longer belong to it.
        """
        ...

    async def prune(self, *, dry_run: bool = False) -> Pruned:
        """Remove recorded output beyond what the user keeps; never that of a run that is not over."""
        ...

    async def status(self) -> SupervisorStatus:
        """How the supervisor is."""
        ...

    async def shutdown(self, *, end_runs: bool = False) -> None:
        """Stop the supervisor. Commands go on under their keepers unless `end_runs`."""
        ...
