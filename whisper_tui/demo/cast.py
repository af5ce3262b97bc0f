"""What happens on a stage: agents that ask, commands that run, all of it events that somebody plays."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from whisper_tui.model.board import Board
from whisper_tui.model.call import CallRequest, ClientInfo, Session, ToolCall
from whisper_tui.model.ending import Ending, Exited
from whisper_tui.model.errors import UnknownCall, WhisperError
from whisper_tui.model.event import (
    BackgroundSeen,
    Event,
    Finished,
    Judged,
    SessionOpened,
    Settled,
    Spawned,
    Started,
    Submitted,
)
from whisper_tui.model.run import (
    BackgroundProcess,
    OutputSizes,
    OutputSpan,
    ProcessIdentity,
    RunProcess,
    Stream,
    TerminalSize,
    Usage,
)
from whisper_tui.model.sandbox import Blocked
from whisper_tui.model.state import CallRecord
from whisper_tui.model.verdict import Resolved, Verdict

ASKED = Verdict(kind="ask", reason="no rule and no remembered approval is about this command")


@dataclass
class StageClock:
    """A time that passes only when it is told to."""

    now: float = 1_700_000_000.0
    """Seconds since the epoch."""

    def __call__(self) -> float:
        """The time now."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


@dataclass
class Written:
    """What a run has written so far."""

    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)

    def stream(self, stream: Stream) -> bytearray:
        """The bytes of one stream."""
        return self.out if stream == "out" else self.err


class Cast:
    """A board and the events that made it. Whoever calls the methods plays the agents and the commands."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self.clock = clock or StageClock()
        self.board = Board()
        self.events: list[Event] = []
        self.broken: WhisperError | None = None
        """Why the stage cannot be used. None: it can."""
        self.sandbox_problem: str | None = None
        """Why nothing can be confined. None: it can, as far as anything happens here."""
        self.problem: str | None = None
        """What the supervisor says that it cannot do, and what to do about it."""
        self.unguarded: tuple[str, ...] = ()
        """What the supervisor says about agents whose own commands are not held."""
        self.written: dict[str, Written] = {}
        """What each run has written, by its call."""
        self.spans: dict[str, list[OutputSpan]] = {}
        """When it was written."""
        self.terminals: dict[str, list[TerminalSize]] = {}
        """The sizes of each terminal, the first one first."""
        self._watchers: set[asyncio.Event] = set()
        self._submitted = 0
        self._next_pid = 4100

    def check(self) -> None:
        """Raise what the stage is broken by, if it is."""
        if self.broken is not None:
            raise self.broken

    def happen(self, *events: Event) -> None:
        """Number events, apply them, and let those who watch know."""
        for event in events:
            numbered = event.model_copy(update={"seq": len(self.events) + 1})
            self.board.apply(numbered)
            self.events.append(numbered)
        for watcher in self._watchers:
            watcher.set()

    def open(self, name: str, root: str = "/home/me/project", client: str = "", version: str = "") -> Session:
        """An agent connects."""
        session = Session(
            id=f"s{len(self.board.sessions) + 1}",
            name=name,
            root=root,
            client=ClientInfo(name=client, version=version) if client else None,
            opened_at=self.clock(),
        )
        self.happen(SessionOpened(at=self.clock(), session=session))
        return session

    def ask(self, request: CallRequest, verdict: Verdict = ASKED, resolved: Resolved | None = None) -> str:
        """An agent asks for a command, and the policy has looked at it. Returns the id of the call."""
        self._submitted += 1
        call = ToolCall(id=str(self._submitted), submitted_at=self.clock(), **dict(request))
        words = request.spec.command.words()
        found = resolved or Resolved(program=f"/usr/bin/{words[0]}", cwd=request.spec.cwd)
        self.happen(
            Submitted(at=self.clock(), call=call),
            Judged(at=self.clock(), call_id=call.id, verdict=verdict, resolved=found),
        )
        return call.id

    def start(self, call_id: str) -> None:
        """A worker starts the command of an approved call."""
        record = self.known(call_id)
        self._next_pid += 3
        leader = ProcessIdentity(pid=self._next_pid, start_time=self._next_pid * 10, boot_id="stage")
        process = RunProcess(leader=leader, pgid=leader.pid, keeper_pid=leader.pid - 1, started_at=self.clock())
        self.happen(
            Started(at=self.clock(), call_id=call_id, attempt=1, spec=record.spec),
            Spawned(at=self.clock(), call_id=call_id, attempt=1, process=process),
        )

    def write(self, call_id: str, data: bytes, stream: Stream = "out") -> None:
        """The command writes output."""
        stored = self.written.setdefault(call_id, Written()).stream(stream)
        if data:
            span = OutputSpan(at=self.clock(), stream=stream, start=len(stored), length=len(data))
            self.spans.setdefault(call_id, []).append(span)
        stored.extend(data)

    def leave_behind(self, call_id: str, *commands: str) -> None:
        """The command starts processes that outlive it."""
        record = self.known(call_id)
        processes = list(record.background)
        for command in commands:
            self._next_pid += 1
            identity = ProcessIdentity(pid=self._next_pid, start_time=self._next_pid * 10, boot_id="stage")
            processes.append(BackgroundProcess(identity=identity, pgid=self._next_pid, command=command))
        self.happen(BackgroundSeen(at=self.clock(), call_id=call_id, processes=tuple(processes)))

    def finish(
        self, call_id: str, ending: Ending | None = None, usage: Usage | None = None, blocked: Blocked | None = None
    ) -> None:
        """The leader ends; the call is over unless something was left behind."""
        written = self.written.get(call_id, Written())
        sizes = OutputSizes(out=len(written.out), err=len(written.err))
        ended = Finished(at=self.clock(), call_id=call_id, ending=ending or Exited(code=0), output=sizes, usage=usage)
        self.happen(ended.model_copy(update={"blocked": blocked}))
        if not self.known(call_id).living_background:
            self.settle(call_id)

    def settle(self, call_id: str) -> None:
        """Nothing of the call is alive any more."""
        record = self.known(call_id)
        if record.is_open:
            self.happen(Settled(at=self.clock(), call_id=call_id))

    def known(self, call_id: str) -> CallRecord:
        """A call on the board. Raises `UnknownCall`."""
        if call_id not in self.board.calls:
            raise UnknownCall(f"There is no call {call_id}")
        return self.board.calls[call_id]

    def break_down(self, error: WhisperError) -> None:
        """Whoever watches or asks is told this error from now on."""
        self.broken = error
        for watcher in self._watchers:
            watcher.set()
