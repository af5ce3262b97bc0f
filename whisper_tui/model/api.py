"""The API of the supervisor, in process and over the socket."""

from collections.abc import AsyncIterator
from operator import not_
from typing import Annotated, Any, Literal, Protocol, get_args

from pydantic import Field

from whisper_tui.model.call import (
    CallRequest,
    ClientInfo,
    CommandSpec,
    FileVersions,
    Session,
    SessionHello,
    Unasked,
    UnaskedLevel,
)
from whisper_tui.model.decision import Coverage, Decider, Decision, DeniedWords, Grant, Scope, SessionDenial
from whisper_tui.model.desk_proof import DeskProof
from whisper_tui.model.draft import DraftApplied, DraftApply, DraftPage, SessionDraft
from whisper_tui.model.effects import Effects
from whisper_tui.model.event import Event, RulesChanged
from whisper_tui.model.packed_calls import BoardItem
from whisper_tui.model.preview import CallsUndone, PreviewPage, UndoDirection, UndoOrder
from whisper_tui.model.run import (
    NOT_QUEUED,
    Echo,
    OutputChunk,
    OutputSpan,
    QueueReasons,
    SignalTarget,
    Stall,
    Stream,
    TerminalSize,
    UsageSample,
)
from whisper_tui.model.shown_rules import Judgement, RuleDraft, RuleEffect, RuleList, RuleTrial
from whisper_tui.model.state import CallRecord, Claim, Ended, HostState, PlaceState, ShellReport
from whisper_tui.model.value import Count, Value, Whole

LARGEST_PAGE = 10_000
"""Calls in one answer at most."""

LONGEST_REASON = 16_384
"""Characters of why something was done."""
MOST_CELLS = 2**15 - 1
"""Rows or columns of a terminal."""
MOST_MEASURED = 64
"""Calls whose processes are measured for one request: each may have hundreds."""
MOST_ROOTS = 100
"""Workspaces whose rules are listed for one request: each file may have 256 KiB."""

Reason = Annotated[str, Field(max_length=LONGEST_REASON)]
Page = Annotated[int, Field(ge=0, le=LARGEST_PAGE)]
Cells = Annotated[int, Field(ge=1, le=MOST_CELLS)]
Roots = Annotated[tuple[str, ...], Field(max_length=MOST_ROOTS)]
Paths = Annotated[tuple[str, ...], Field(max_length=LARGEST_PAGE)]
Measured = Annotated[tuple[str, ...], Field(max_length=MOST_MEASURED)]


class HistoryQuery(Value):
    """Filter for past calls, newest first."""

    limit: Page = 50
    before: str | None = Field(default=None, pattern=r"^[0-9]{1,18}$")
    """Only calls with a smaller id than this."""
    after: str | None = Field(default=None, pattern=r"^[0-9]{1,18}$")
    """Only calls with a greater id than this: how far a search for words goes back at once."""
    session_id: str | None = None
    """Only calls of this session. In a cockpit over several machines `gpu1:` stands for all sessions of one of them."""
    session: str | None = None
    """Only calls of the sessions with this name, which several may share, or this id."""
    text: str = ""
    """Only calls whose command, description or tool holds this text. Empty: any."""
    open_only: bool = False
    """Only calls of which something can still happen."""


def all_sessions(machine: str) -> str | None:
    """Return what stands for all sessions of a machine in a query. None: there is only one machine."""
    return f"{machine}:" if machine else None


class SupervisorStatus(Value):
    """The supervisor about itself."""

    version: str
    pid: int
    started_at: float
    """Seconds since the epoch."""
    workers: int
    waiting: int
    """Calls that wait for a human, without those that are set aside."""
    aside: int = Field(default=0, exclude_if=not_)
    """Calls that a human has set aside."""
    queued: int
    running: int
    home: str
    paused_since: float | None = None
    """Seconds since the epoch. None: nothing is held still."""
    paused_by: Decider | None = None
    problem: str | None = None
    """The problem that keeps it from working, and its remedy. None: it works."""
    busy: str = ""
    """The reason why queued commands wait, as a clause. Empty: not reported."""
    queue: QueueReasons = NOT_QUEUED
    """The same for each queued call."""
    agents: int = 0
    """Sessions whose agents are connected."""
    agent_names: tuple[str, ...] = ()
    """Names of those sessions, at most twenty."""
    keeps: str = ""
    """Size of the recorded output and its limits, as a clause. Empty: not reported."""
    counts: tuple[str, ...] | None = None
    """Resources that the cgroup of each run counts. None: runs have no cgroups."""
    sandbox: str = ""
    """The sandbox of commands that run without approval. Empty: not reported."""
    sandbox_problem: str | None = None
    """Why there is none, as a clause. None: there is one."""
    previews: str = ""
    """How commands are previewed, or why they cannot be, as a clause. Empty: that is being found out."""
    notify_problem: str = ""
    """Why the last notification failed, as a clause. Empty: it did not."""
    unguarded: tuple[str, ...] = ()
    """Connected agents whose hooks hold nothing: which, where and why, one sentence each."""
    desks: tuple[str, ...] = ()
    """Addresses of other machines from which somebody watches it, by ssh."""
    now: float | None = None
    """The time by its clock, in seconds since the epoch. None: not reported."""
    hosts: tuple[HostState, ...] = ()
    """The machines whose supervisors this is made of. Empty: it is one supervisor."""
    unasked: dict[str, UnaskedLevel] = Field(default_factory=dict, exclude_if=not_)
    """How much runs unasked now: by the ids of open sessions for which it is said, and by "" in all others.

    Empty: not reported, or it is made of several supervisors.
    """
    places: tuple[PlaceState, ...] = Field(default=(), exclude_if=not_)
    """The places where it runs commands besides its own machine."""

    def level_in(self, session_id: str = "") -> UnaskedLevel | None:
        """Return how much runs unasked in a session. Empty: in those for which nothing is said. None: not reported."""
        return self.unasked.get(session_id) or self.unasked.get("")


PRESENCE_LASTS_S = 25.0
"""Seconds for which a report of a cockpit holds: more than twice what lies between two of them."""


class Presence(Value):
    """A report of a cockpit about the person at it."""

    cockpit: str = Field(min_length=1, max_length=64)
    """A name of its own choice, by which it is told from others."""
    present: bool
    """True if somebody is there, as the settings of notifications mean it."""
    muted: bool = False
    """True if that person has switched notifications off."""


class ShownSetting(Value):
    """A setting of the configuration file that a person changes."""

    name: str
    """Its table and its key, like `cockpit.theme`."""
    title: str = ""
    """A few words for a list. Empty: a supervisor of an earlier version does not send them."""
    about: str
    """A sentence about it."""
    value: str
    """Empty: it has none."""
    default: str
    choices: tuple[str, ...] = ()
    """All values that it may have. Empty: those that `allowed` describes."""
    allowed: str = ""
    """The values that it may have, in words."""
    in_file: bool = False
    """True if the configuration file says it; else the default holds."""
    restart: Literal["supervisor", "cockpit", "both"] = "supervisor"
    """The programs that read it when they start."""


class SettingList(Value):
    """The settings of the configuration file as it is now."""

    path: str
    settings: tuple[ShownSetting, ...] = ()
    problem: str = ""
    """Why the file cannot be read. Empty: it can."""


class Pruned(Value):
    """Result of a retention pass; bytes are those on the disk."""

    runs: int
    bytes: int
    kept_runs: int
    kept_bytes: int
    undos: int = 0
    """Calls that cannot be undone any more, while their output stays."""
    undo_bytes: int = 0
    kept_undos: int = 0
    """Calls that can be undone."""
    kept_undo_bytes: int = 0


class Submission(Value):
    """A call of the caller's own tool that was handed in."""

    call_id: str
    begun: bool
    """True if the caller has to carry it out now. Else `begin_function` waits until it may."""


class Supervision(Protocol):
    """The API; implemented by the supervisor itself and by the socket client. Every error is a `WhisperError`."""

    async def open_session(self, hello: SessionHello) -> Session:
        """Begin, or resume, an agent's session."""
        ...

    async def session(self, session_id: str) -> Session:
        """Return any session of the journal."""
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
        """End a session. Its running commands continue, and its waiting calls stay in the queue, marked."""
        ...

    async def submit(self, request: CallRequest) -> str:
        """Hand in a call. Returns its id once it is journaled, or the id of the call that it joins."""
        ...

    async def decided(self, call_id: str, *, aside_after: float | None = None) -> CallRecord:
        """Wait until a call is decided. May take as long as a human takes. `aside_after`: as for `outcome`."""
        ...

    async def claim(self, call_id: str, ticket: str, claim: Claim, shell: ShellReport | None = None) -> CallRecord:
        """Show the ticket of an approved call, which starts it. `Refused` for any but the first claimer.

        `shell`: what the agent's shell gives its commands, from this one on. None: what the session has.
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

    async def submit_and_begin(self, request: CallRequest) -> Submission:
        """Hand in a call of the caller's own tool, and begin it in the same step if nobody has to be asked."""
        ...

    async def end_function(self, call_id: str, problem: Reason | None = None) -> None:
        """Say that the tool of a call that was begun is done, or why it did not return."""
        ...

    async def outcome(self, call_id: str, *, aside_after: float | None = None) -> CallRecord:
        """Wait until the call has its ending. May take as long as a human takes.

        `aside_after`: also until it is set aside, if that happens later, in seconds since the epoch. None: not.
        """
        ...

    async def withdraw(self, call_id: str, why: Reason, *, stop_running: bool = False) -> None:
        """The agent no longer wants it: a call that has not started is withdrawn, a running one is stopped if told."""
        ...

    async def leave(self, call_id: str, why: Reason) -> None:
        """The agent stops waiting for the answer: the call goes on as it is, marked, and can be rejoined."""
        ...

    def watch(self, after: Count | None = None) -> AsyncIterator[tuple[Event, ...]]:
        """Numbered events in batches, endless. None: first all events of what a board shows now, and an empty batch."""
        ...

    async def watch_board(self, packing: str) -> AsyncIterator[tuple[BoardItem, ...]]:
        """The board of now and then events, as `watch` yields them; waiting calls may be packed in the way named."""
        async for events in self.watch(None):
            yield events

    async def decide(
        self,
        call_id: str,
        decision: Decision,
        by: Decider,
        seen: str,
        proof: Annotated[DeskProof | None, Field(exclude_if=not_)] = None,
    ) -> None:
        """Decide about a waiting call. `seen` is its `seen_digest()`; the first decision wins.

        `proof`: of a signed decision. `NotAllowed` if it is not valid, or if decisions are signed here and it is None.
        """
        ...

    async def set_aside(self, call_id: str, by: Decider, *, back: bool = False) -> None:
        """Move a waiting call out of the way without a decision, or `back` among those that wait.

        `AlreadyDecided` if it does not wait; nothing happens if it is there already.
        """
        ...

    async def withdraw_yes(self, call_id: str, by: Decider) -> None:
        """Withdraw a phone's yes that does not count yet: the call waits as before. `Refused` if there is none."""
        ...

    async def start_anyway(self, call_id: str, by: Decider) -> None:
        """Start a queued call whatever the limits say. `Refused` if it is not queued, or waits for a decision again."""
        ...

    async def signal(self, call_id: str, number: Count, target: SignalTarget, by: Decider) -> None:
        """Send a signal to a run, or to what it left behind."""
        ...

    async def pause(self, by: Decider) -> None:
        """Hold every process of every run still and start nothing, until `resume`, whatever restarts meanwhile."""
        ...

    async def resume(self, by: Decider) -> None:
        """Resume everything after a pause."""
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

    async def usage(self, call_ids: Measured) -> dict[str, UsageSample]:
        """Measure the living processes of at most 64 calls; calls without any are left out.

        A call is measured once a second at most: all who ask within that second get the same sample.
        """
        ...

    async def stalls(self) -> dict[str, Stall]:
        """Return the runs that are stopped or need input, by call, as they were two seconds ago at most."""
        ...

    async def echo(self, call_id: str) -> Echo | None:
        """Return the echo of the terminal of a running command, as it is now. None: it has no terminal."""
        ...

    async def record(self, call_id: str) -> CallRecord:
        """Return any call of the journal."""
        ...

    async def history(self, query: HistoryQuery) -> tuple[CallRecord, ...]:
        """Return the calls that match a query, newest first, in any state."""
        ...

    async def grants(self, session_id: str | None = None) -> tuple[Grant, ...]:
        """Return the standing approvals that are in force."""
        ...

    async def would_cover(self, call_id: str, scope: Scope, edited: CommandSpec | None = None) -> Coverage:
        """Return the newest calls that a scope would have allowed. `Refused` if it may not be given."""
        ...

    async def effects(self, call_id: str) -> Effects:
        """State what a call would change, without running anything. `Refused` if it has started or ended."""
        ...

    async def file_versions(self, call_id: str) -> tuple[FileVersions, ...]:
        """Return the contents of the files of an edit before and after it; empty for a call that is no edit.

        Before it is made, they are as the files are now, with facts that may differ from those of its judgement.
        """
        ...

    async def revert_edit(self, call_id: str, by: Decider, *, tell: bool = True) -> None:
        """Put back the files of an edit as they were before it. `tell`: its agent is told, if its session is open.

        `Refused` if it was not made, if a file is no longer as the edit left it, or if its content was not kept.
        """
        ...

    async def preview(self, call_id: str, by: Decider, edited: CommandSpec | None = None) -> int:
        """Run a waiting command in a view of the files. Returns its attempt; it is over once it has a report."""
        ...

    async def drop_preview(self, call_id: str, by: Decider) -> None:
        """End a preview that runs, and discard its changes."""
        ...

    async def preview_page(self, call_id: str, after: Count = 0, limit: Page = 1000) -> PreviewPage:
        """Return changes of the newest preview, or of a run whose changes were kept, from a number on."""
        ...

    async def preview_versions(self, call_id: str, number: Count) -> FileVersions:
        """Return the content of one changed file before and after it."""
        ...

    async def undo(
        self,
        call_id: str,
        paths: Paths,
        direction: UndoDirection,
        by: Decider,
        *,
        all_but: bool = False,
        tell: bool = True,
    ) -> None:
        """Undo the changes of an ended call, or make them again. No paths: all of them.

        Paths begin in the directory of the call, unless they are absolute. `all_but`: all changes but those. `tell`:
        its agent is told, if its session is open: at once if it listens, else with the answer to its next approval.

        `Refused`, with the paths, if one of them is no longer as the command left it: then nothing is done.
        """
        ...

    async def undo_calls(self, order: UndoOrder, by: Decider) -> CallsUndone:
        """Undo the changes of several calls, the newest first, or redo them, the oldest first.

        What somebody else has changed since is left out and named. It goes on after a kill, and each agent is told
        once.
        """
        ...

    async def drafts(self) -> tuple[SessionDraft, ...]:
        """Return all drafts, the oldest first."""
        ...

    async def start_draft(self, session_id: str, by: Decider) -> SessionDraft:
        """Have all commands of a session run in one private view of its files from now on, and tell its agent.

        `session_id`: the id of a session, its name, or its workspace if no other open session is there.
        `Refused` if its agent runs or edits anything itself, if a call of it is not over, or where no view can be made.
        """
        ...

    async def draft_page(self, session_id: str, after: Count = 0, limit: Page = 1000) -> DraftPage:
        """Return changes of a draft from a number on, as they would be applied now.

        `session_id`: as `start_draft` takes it; here and below, "" means the only draft.
        """
        ...

    async def draft_versions(self, session_id: str, number: Count) -> FileVersions:
        """Return the content of a file before a draft and in it, by its number in the last page that was asked for."""
        ...

    async def apply_draft(self, order: DraftApply, by: Decider) -> DraftApplied:
        """Make a draft real, or a part of it, and tell its agent; an undo of the call that is returned takes it back.

        `Refused`, with the paths, if somebody else has changed any of them since a command of the draft touched it, or
        if a command runs in the draft: then nothing is done.
        """
        ...

    async def drop_draft(self, session_id: str, by: Decider) -> None:
        """Discard a draft with all that its commands have changed, and tell its agent."""
        ...

    async def set_unasked(
        self, level: Unasked | None, by: Decider, session_id: str | None = None, until: float | None = None
    ) -> None:
        """Say how much runs unasked from now on, in one session or in all; what waits is judged again.

        `level` None: as the rules say. `until`: when that ends, in seconds since the epoch. For all sessions and
        without an end it is written into the user's rules file.
        """
        ...

    async def mark_reviewed(self, until: float, by: Decider) -> None:
        """Note that a human has looked at what calls have changed unasked that had ended by then.

        `until`: seconds since the epoch.
        """
        ...

    async def revoke(self, grant_id: str, by: Decider) -> None:
        """Revoke a standing approval."""
        ...

    async def denials(self, session_id: str | None = None) -> tuple[SessionDenial, ...]:
        """Return the session denials that are in force."""
        ...

    async def deny_for_session(self, session_id: str, words: DeniedWords, reason: Reason, by: Decider) -> str:
        """Deny every call of a session that begins with these words, or holds a command that does, until it is lifted.

        Those that wait are denied as well, and so is one that was approved and has not started. Returns the denial's
        id; it replaces one of the same words.
        """
        ...

    async def lift_denial(self, denial_id: str, by: Decider) -> None:
        """Judge the calls of a session denial as before."""
        ...

    async def rule_files(self) -> tuple[RulesChanged, ...]:
        """Return the content of each rule file, and the part of it that is trusted."""
        ...

    async def rule_list(self, roots: Roots = ()) -> RuleList:
        """Return the rules of the user, and those of these workspaces."""
        ...

    async def judge_command(self, text: str, directory: str, tool: str = "", place: str = "") -> Judgement:
        """Return the verdict on a shell command in a session with this workspace, without running it."""
        ...

    async def add_rule(self, effect: RuleEffect, definition: dict[str, Any], by: Decider) -> None:
        """Add a rule with these fields to the user's rules file. It holds at once."""
        ...

    async def replace_rule(self, old: RuleDraft, new: RuleDraft | None, by: Decider) -> None:
        """Put a rule in the place of another one of the user's rules file, which is trusted at once; None removes it.

        `ChangedSinceSeen` if the file no longer has the old one as it was shown.
        """
        ...

    async def try_rule(
        self, draft: RuleDraft, replaces: RuleDraft | None = None, text: str = "", directory: str = ""
    ) -> RuleTrial:
        """Say what a draft would do, if it were in the rules file in the place of another rule.

        It is tried on the newest calls, and on a shell command in a session with this workspace.
        """
        ...

    async def remove_rule(self, name: str, by: Decider) -> int:
        """Remove the rules of a name from the user's rules file. Returns their number."""
        ...

    async def trust_project(self, root: str, by: Decider, digest: str = "", *, trusted: bool) -> None:
        """Trust the rules file of a workspace, or no longer. `ChangedSinceSeen` if `digest` is not of its content."""
        ...

    async def trust_rules(self, path: str, by: Decider, digest: str) -> None:
        """Let all that a rule file of the user allows hold.

        `digest`: of the entries that the human has seen in it; `ChangedSinceSeen` if it has others.
        """
        ...

    async def settings(self) -> SettingList:
        """Return the settings of the configuration file that a person changes; rules are not among them."""
        ...

    async def change_setting(self, name: str, value: str | None, seen: str, by: Decider) -> None:
        """Write a setting into the configuration file; None removes it, so that the default holds.

        `seen`: the value that the human has seen; `ChangedSinceSeen` if the file has another one.
        """
        ...

    async def prune(self, *, dry_run: bool = False) -> Pruned:
        """Remove recorded output beyond what the user keeps; never that of a run that is not over."""
        ...

    async def report_presence(self, presence: Presence) -> None:
        """Say whether somebody is at a cockpit: the supervisor notifies only while nobody is. It holds for 6 s."""
        ...

    async def connect_place(self, place_name: str, by: Decider, *, connected: bool) -> PlaceState:
        """Reach a place now, or let it go, and return how it is then. It is not waited for longer than a minute.

        Letting it go ends the job, Pod or actor that holds it, until a call needs it again. Raises `InvalidRequest`
        while commands of this supervisor run there, and `Unavailable` if there is no such place.
        """
        ...

    async def status(self) -> SupervisorStatus:
        """Return counts, settings and problems of the supervisor."""
        ...

    async def shutdown(self, *, end_runs: bool = False) -> None:
        """Stop the supervisor. Commands go on under their keepers unless `end_runs`."""
        ...


async def output_was_removed(supervision: Supervision, record: CallRecord) -> bool:
    """True if the files of a run that is over hold less than was there when it was answered."""
    if not isinstance(record.state, Ended) or not record.state.settled:
        return False
    for stream in get_args(Stream):
        told: int = getattr(record.state.output, stream)
        if told and (await supervision.read_output(record.id, stream, 0, 0)).size < told:
            return True
    return False
