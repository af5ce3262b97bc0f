"""The world around a supervisor in memory: tests play agents that submit calls, and commands that run."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from whisper_tui.model.api import Presence, ShownSetting
from whisper_tui.model.board import Board
from whisper_tui.model.call import (
    CallRequest,
    ClientInfo,
    CommandSpec,
    EditedFile,
    FileEdits,
    FileState,
    FileVersions,
    Session,
    ToolCall,
)
from whisper_tui.model.decision import Decider, Deny, beginnings
from whisper_tui.model.draft import DraftPage
from whisper_tui.model.ending import Denied, Ending, Exited
from whisper_tui.model.errors import UnknownCall, WhisperError
from whisper_tui.model.event import (
    BackgroundSeen,
    Decided,
    Event,
    Finished,
    Judged,
    PreviewDropped,
    PreviewEnded,
    SessionOpened,
    Settled,
    Spawned,
    Started,
    Submitted,
)
from whisper_tui.model.preview import PreviewPage, PreviewReport
from whisper_tui.model.run import (
    NOT_QUEUED,
    BackgroundProcess,
    Blocked,
    OutputSizes,
    OutputSpan,
    ProcessIdentity,
    RunProcess,
    Stall,
    Stream,
    TerminalSize,
    Usage,
)
from whisper_tui.model.shown_rules import Judgement, ProjectRules, RuleDraft, RuleList, RuleTrial
from whisper_tui.model.state import CallRecord, PlaceState
from whisper_tui.model.verdict import NO_RULE_MATCHES, Resolved, Verdict
from whisper_tui.supervisor.edit_history import current_versions, state_of

HOME = "/root"
"""The home directory of all agents, unless `directories` has another one for it."""
ASKED = Verdict(kind="ask", reason=NO_RULE_MATCHES)


@dataclass
class ManualClock:
    """A clock that only a test advances."""

    now: float = 1_700_000_000.0
    """Seconds since the epoch."""

    def __call__(self) -> float:
        """Return the time."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Advance the clock."""
        self.now += seconds


@dataclass
class RecordedStreams:
    """The output of a run so far."""

    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)

    def stream(self, stream: Stream) -> bytearray:
        """Return the bytes of one stream."""
        return self.out if stream == "out" else self.err


class InMemoryRules(Protocol):
    """The rules that a supervisor in memory shows."""

    def rules(self, roots: Sequence[str] = ()) -> RuleList:
        """Return the present rules, with those of these workspaces."""
        ...

    def judge(self, text: str, directory: str) -> Judgement:
        """Return the verdict on a shell command."""
        ...

    def trust(self, project: ProjectRules, *, trusted: bool) -> None:
        """Trust the rules of a project, or withdraw that trust."""
        ...

    def remove(self, name: str) -> None:
        """Remove the rules of a name."""
        ...

    def replace(self, old: RuleDraft | None, new: RuleDraft | None) -> None:
        """Put a rule in the place of another; None: there is none before, or none after."""
        ...

    def try_draft(self, draft: RuleDraft, text: str) -> RuleTrial:
        """Return what a draft of a rule would do."""
        ...


class PlayedWorld:
    """A board and its events; the caller plays the agents and the commands."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self.clock = clock or ManualClock()
        self.board = Board()
        self.events: list[Event] = []
        self.broken: WhisperError | None = None
        """The error that every operation raises. None: they work."""
        self.sandbox_problem: str | None = None
        """The reason why commands cannot be confined, as `status` reports it. None: they can."""
        self.problem: str | None = None
        """The problem that `status` reports."""
        self.notify_problem = ""
        """What `status` reports about notifications."""
        self.presence: Presence | None = None
        """The last report of a cockpit."""
        self.stalled: dict[str, Stall] = {}
        """The runs that `stalls` reports."""
        self.places: tuple[PlaceState, ...] = ()
        """The places that `status` reports."""
        self.queue = NOT_QUEUED
        """The reasons that `status` reports about queued calls."""
        self.started_anyway: list[str] = []
        """The queued calls that were started at once."""
        self.unguarded: tuple[str, ...] = ()
        """The sentences that `status` reports about agents whose own commands are not supervised."""
        self.directories: dict[str, str] = {}
        """The real directory that effects and edits look at, by the directory of calls."""
        self._contents: dict[str, tuple[FileVersions, ...]] = {}
        """The contents of the files of each edit, as they were when it was asked."""
        self.previews = "with namespaces and overlayfs"
        """The words of `status` about how commands are previewed."""
        self.preview_problem = ""
        """The reason why commands cannot be previewed. Empty: they can."""
        self.draft_pages: dict[str, DraftPage] = {}
        """The drafts, by session."""
        self.preview_pages: dict[str, PreviewPage] = {}
        """The changes of the preview or the run of a call."""
        self.previewed_contents: dict[tuple[str, int], FileVersions] = {}
        """The contents of each changed file, by call and by the number of the change."""
        self.written: dict[str, RecordedStreams] = {}
        """The output of each run, by its call."""
        self.spans: dict[str, list[OutputSpan]] = {}
        """The time index of each run's output."""
        self.terminals: dict[str, list[TerminalSize]] = {}
        """The sizes of each terminal, the first one first."""
        self.rule_book: InMemoryRules | None = None
        """The rules that are shown. None: there are none."""
        self.shown_settings: dict[str, ShownSetting] = {}
        self.told: list[tuple[str, bool]] = []
        """Calls that were undone, and if their agents are told."""
        """The settings that `settings` reports, by name."""
        self._watchers: set[asyncio.Event] = set()
        self._submitted = self._denied = 0
        self._next_pid = 4100

    def check(self) -> None:
        """Raise the error that was set by `break_down`."""
        if self.broken is not None:
            raise self.broken

    def happen(self, *events: Event) -> None:
        """Number events, apply them, and wake the watchers."""
        for event in events:
            numbered = event.model_copy(update={"seq": len(self.events) + 1})
            self.board.apply(numbered)
            self.events.append(numbered)
        for watcher in self._watchers:
            watcher.set()

    def open(self, name: str, root: str = "/home/me/project", client: str = "", version: str = "") -> Session:
        """Play an agent that connects."""
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
        """Play an agent that submits a call, which is judged. Returns the id of the call."""
        self._submitted += 1
        call = ToolCall(id=str(self._submitted), submitted_at=self.clock(), **dict(request))
        words = request.spec.command.words()
        found = resolved or Resolved(program=f"/usr/bin/{words[0]}", cwd=request.spec.cwd, edits=self._edits(request))
        self.happen(
            Submitted(at=self.clock(), call=call),
            Judged(at=self.clock(), call_id=call.id, verdict=verdict, resolved=found),
        )
        self._contents[call.id] = self.contents_now(request.spec, request.session_id)
        self.apply_denials(call.id)
        return call.id

    def _edits(self, request: CallRequest) -> tuple[EditedFile, ...]:
        """Return the facts about the files of an edit as the disk is now."""
        return tuple(each.file for each in self.contents_now(request.spec, request.session_id))

    def contents_now(self, spec: CommandSpec, session_id: str) -> tuple[FileVersions, ...]:
        """Return the contents of the files of an edit as the disk is now, and as it would leave them."""
        root = self.board.sessions[session_id].root
        if not isinstance(spec.command, FileEdits):
            return ()
        real = CommandSpec.model_validate_json(self._on_disk(spec.model_dump_json()))
        found = current_versions(real, (self._on_disk(root),), self._on_disk(HOME), ())
        return tuple(self._as_called(each) for each in found)

    def contents_left(self, call_id: str) -> tuple[FileVersions, ...]:
        """Return the contents of the files of an edit that was left to its agent, and how the files are now."""

        def now(file: EditedFile) -> FileState:
            return state_of(file.model_copy(update={"real": self._on_disk(file.real)}))

        return tuple(each.model_copy(update={"now": now(each.file)}) for each in self._contents[call_id])

    def _on_disk(self, text: str) -> str:
        for called, real in self.directories.items():
            text = text.replace(called, real)
        return text

    def _as_called(self, versions: FileVersions) -> FileVersions:
        text = versions.model_dump_json()
        for called, real in self.directories.items():
            text = text.replace(real, called)
        return FileVersions.model_validate_json(text)

    def apply_denials(self, call_id: str, by: Decider | None = None) -> None:
        """Deny a call that a session denial matches. `by`: the human who gives it now."""
        record = self.board.calls[call_id]
        begins = tuple(beginnings(record.spec.command, record.verdict, record.resolved))
        for denial in self.board.denials_of(record.call.session_id):
            if denial.matches(begins):
                decider = by or Decider(surface="memory", who=denial.id)
                ending = Denied(by=decider, reason=denial.reason, for_session=denial.words)
                decision = Deny(reason=denial.reason)
                self.happen(
                    Decided(at=self.clock(), call_id=call_id, decision=decision, by=decider),
                    Finished(at=self.clock(), call_id=call_id, ending=ending),
                )
                return

    def start(self, call_id: str) -> None:
        """Play the start of an approved call's command."""
        record = self.known(call_id)
        self._next_pid += 3
        leader = ProcessIdentity(pid=self._next_pid, start_time=self._next_pid * 10, boot_id="stage")
        process = RunProcess(leader=leader, pgid=leader.pid, keeper_pid=leader.pid - 1, started_at=self.clock())
        self.happen(
            Started(at=self.clock(), call_id=call_id, attempt=1, spec=record.spec),
            Spawned(at=self.clock(), call_id=call_id, attempt=1, process=process),
        )

    def write(self, call_id: str, data: bytes, stream: Stream = "out") -> None:
        """Play a command that writes output."""
        stored = self.written.setdefault(call_id, RecordedStreams()).stream(stream)
        if data:
            span = OutputSpan(at=self.clock(), stream=stream, start=len(stored), length=len(data))
            self.spans.setdefault(call_id, []).append(span)
        stored.extend(data)

    def leave_behind(self, call_id: str, *commands: str) -> None:
        """Play a command that starts processes that outlive it."""
        record = self.known(call_id)
        processes = list(record.background)
        for command in commands:
            self._next_pid += 1
            identity = ProcessIdentity(pid=self._next_pid, start_time=self._next_pid * 10, boot_id="stage")
            processes.append(BackgroundProcess(identity=identity, pgid=self._next_pid, command=command))
        self.happen(BackgroundSeen(at=self.clock(), call_id=call_id, processes=tuple(processes)))

    def end_preview(self, call_id: str, report: PreviewReport, page: PreviewPage | None = None) -> None:
        """Play the end of a preview with these changes."""
        preview = self.known(call_id).preview
        assert preview is not None
        self.preview_pages[call_id] = page or PreviewPage()
        self.happen(PreviewEnded(at=self.clock(), call_id=call_id, attempt=preview.attempt, report=report))

    def drop(self, call_id: str) -> None:
        """Play that the changes of a preview are discarded."""
        preview = self.known(call_id).preview
        if preview is not None and not preview.dropped:
            self.happen(PreviewDropped(at=self.clock(), call_id=call_id, attempt=preview.attempt))

    def apply_preview(self, call_id: str) -> None:
        """Play that the changes of a preview become real, and that its end becomes that of the call."""
        record = self.known(call_id)
        assert record.preview is not None
        assert record.preview.report is not None
        attempt, report = record.preview.attempt, record.preview.report
        self.happen(
            Started(at=self.clock(), call_id=call_id, attempt=attempt, spec=record.spec, applies=True),
            Finished(at=self.clock(), call_id=call_id, ending=report.ending, output=report.output),
            Settled(at=self.clock(), call_id=call_id),
        )

    def finish(
        self, call_id: str, ending: Ending | None = None, usage: Usage | None = None, blocked: Blocked | None = None
    ) -> None:
        """Play the end of the leader; the call is over unless processes were left behind."""
        written = self.written.get(call_id, RecordedStreams())
        sizes = OutputSizes(out=len(written.out), err=len(written.err))
        ended = Finished(at=self.clock(), call_id=call_id, ending=ending or Exited(code=0), output=sizes, usage=usage)
        self.happen(ended.model_copy(update={"blocked": blocked}))
        if not self.known(call_id).living_background:
            self.settle(call_id)

    def settle(self, call_id: str) -> None:
        """Play the end of the last process of a call."""
        record = self.known(call_id)
        if record.is_open:
            self.happen(Settled(at=self.clock(), call_id=call_id))

    def known(self, call_id: str) -> CallRecord:
        """Return a call of the board. Raises `UnknownCall`."""
        if call_id not in self.board.calls:
            raise UnknownCall(f"There is no call {call_id}")
        return self.board.calls[call_id]

    def break_down(self, error: WhisperError) -> None:
        """Let every operation and every watcher raise this error from now on."""
        self.broken = error
        for watcher in self._watchers:
            watcher.set()
