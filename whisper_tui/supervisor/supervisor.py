"""The supervisor: the API, implemented over the journal, the policy and an executor."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from whisper_tui.model.api import Presence, Pruned, SettingList, Submission, SupervisorStatus
from whisper_tui.model.board import Board
from whisper_tui.model.call import (
    CallRequest,
    ClientInfo,
    CommandSpec,
    FileEdits,
    FileVersions,
    Session,
    SessionHello,
    ToolCall,
    Unasked,
    UnaskedLevel,
)
from whisper_tui.model.decision import Decider, Decision
from whisper_tui.model.desk_proof import DeskProof
from whisper_tui.model.draft import DraftApplied, DraftApply, DraftPage, SessionDraft
from whisper_tui.model.errors import InvalidRequest, Refused
from whisper_tui.model.event import (
    AlarmRaised,
    AttemptRefused,
    Event,
    Reviewed,
    RulesChanged,
    Started,
    UnaskedSet,
)
from whisper_tui.model.phone_facts import PhoneWords
from whisper_tui.model.preview import CallsUndone, UndoDirection, UndoOrder
from whisper_tui.model.run import NO_LIMITS, Limits, SignalTarget
from whisper_tui.model.shown_rules import Judgement, RuleDraft, RuleEffect, RuleList, RuleTrial
from whisper_tui.model.state import (
    MOST_ALARMS,
    WENT_ON,
    Alarm,
    CallRecord,
    Claim,
    Ended,
    Held,
    PlaceState,
    Queued,
    Running,
    ShellReport,
    Starting,
    Unjudged,
    Waiting,
)
from whisper_tui.policy.rules.rule import NO_RULES, Rules
from whisper_tui.supervisor.agent_messages import message_after_aside, undo_message
from whisper_tui.supervisor.approvals.approval_queue import Proof
from whisper_tui.supervisor.approvals.desk_signatures import check_key
from whisper_tui.supervisor.approvals.judge import ClientsRules
from whisper_tui.supervisor.health import HookGaps
from whisper_tui.supervisor.journal.store import open_store
from whisper_tui.supervisor.parts import assemble
from whisper_tui.supervisor.phones.phones import Phones
from whisper_tui.supervisor.places.place_settings import Placement, PlaceSettings
from whisper_tui.supervisor.queries import Queries
from whisper_tui.supervisor.rule_book import RuleBook, RuleOperations, RuleTrust
from whisper_tui.supervisor.runs.executor import Executor, RunControl
from whisper_tui.supervisor.runs.kept_changes import KeptChanges
from whisper_tui.supervisor.runs.retention import Retention
from whisper_tui.supervisor.sessions import CockpitPresences
from whisper_tui.supervisor.settings import (
    NoSettingsFile,
    PhoneSettings,
    RetentionSettings,
    SettingsFile,
    SupervisorSettings,
    TakeBackSettings,
)
from whisper_tui.system.session_opener import opener
from whisper_tui.system.state_directory import Directories

END_S = 15.0
"""Seconds that a shutdown waits for the end of the runs."""


class Supervisor:
    """One user's supervisor. It owns its state directory; nobody else writes there."""

    notify_problem = ""
    """Why the last notification failed, for the status. Set by whoever notifies."""
    settings_file: SettingsFile = NoSettingsFile()
    """The configuration file. Set by whoever runs the supervisor of an instance."""
    desk_key: str = ""
    """The file of the key by which decisions at the desk are signed. Empty: they need not be."""
    phones: Phones | None = None
    """Decisions from paired phones. None: it takes none."""

    def __init__(
        self,
        home: Directories,
        executor: Executor,
        *,
        rules: Rules | Callable[[str], Rules] = NO_RULES,
        clients_rules: ClientsRules | None = None,
        gaps: HookGaps | None = None,
        rule_book: RuleBook | None = None,
        settings: SupervisorSettings | None = None,
        limits: Limits = NO_LIMITS,
        retention: RetentionSettings | None = None,
        undo: TakeBackSettings | None = None,
        places: Iterable[PlaceSettings] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings or SupervisorSettings()
        self.rules = rules if rule_book is None else rule_book.current
        """The rules, or a function from a workspace to its rules, called for every judgement: changes count at once."""
        self.stopped = asyncio.Event()
        """Set when a shutdown was requested."""
        (state := Path(home.state)).mkdir(mode=0o700, parents=True, exist_ok=True)
        self._state = state
        store = self._store = open_store(state / "journal.sqlite")
        self._clock, self.rule_trust, self.presences = clock, RuleTrust(store, clock), CockpitPresences()
        parts = self._parts = assemble(
            *(store, executor, home),
            rules=self._rules_now,
            clients_rules=clients_rules,
            gaps=gaps,
            settings=self._settings,
            limits=limits,
            retention=Retention(state / "runs", retention, store.is_open, clock, undo),
            placement=Placement(places),
            clock=clock,
            rule_book=rule_book,
            fail=self.stopped.set,
        )
        self._take_queries(parts.queries, parts.pool.previews.changes)
        self._run_control, self.stall_monitor = RunControl(store, executor, clock), parts.stall_monitor
        self._rules = RuleOperations(rule_book, self._rules_now, parts.sessions, parts.queue.examinations, home)

    def take_phones(self, words: Callable[[], PhoneWords], settings: PhoneSettings, undo_s: float) -> None:
        """Let paired phones decide, before it is opened (decision 40). `undo_s`: in which the desk withdraws a yes."""
        self.phones = Phones(
            self._store,
            self._state,
            self,
            decide=self._decide,
            words=words,
            settings=settings,
            clock=self._clock,
            undo_s=undo_s,
        )

    def _take_queries(self, queries: Queries, changes: KeptChanges) -> None:
        """Have the queries themselves answer what only reads; the API documents each."""
        self.queries, self.watch_board = queries, self._store.watch_board
        self.session, self.history = queries.session, queries.history
        self.grants, self.would_cover, self.denials = queries.grants, queries.would_cover, queries.denials
        self.effects, self.file_versions = queries.effects, queries.file_versions
        self.preview_page, self.preview_versions = changes.page, changes.versions
        self.read_output, self.output_file = queries.read_output, queries.output_file
        self.read_timeline, self.terminal_sizes = queries.read_timeline, queries.terminal_sizes
        self.usage, self.stalls, self.echo = queries.usage, queries.stalls, queries.echo

    @property
    def board(self) -> Board:
        """The state of everything now; read-only."""
        return self._store.board

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Subscribe a function to every event, in order, once it is on the board."""
        self._store.listen(listener)

    def _rules_now(self, root: str) -> Rules:
        return self.rules if isinstance(self.rules, Rules) else self.rules(root)

    async def open(self) -> None:
        """Recover the runs, judge calls that have no verdict yet, and begin to work."""
        self._store.listen(self._parts.on_event)
        # Before the first reading of the rules: after a kill nothing that was trusted may allow (decision 11).
        self.rule_trust.open()
        self._rules_now("")
        await self._parts.open(read_rules=lambda: self._rules_now(""))
        if self.phones is not None:
            self.phones.open()

    async def close(self) -> None:
        """Stop working. Commands go on under their keepers, and the next supervisor recovers them."""
        if self.phones is not None:
            await self.phones.close()
        await self._parts.close()

    async def open_session(self, hello: SessionHello) -> Session:
        """Begin, or resume, an agent's session."""
        return self._parts.sessions.open(hello, await opener())

    async def describe_session(self, session_id: str, client: ClientInfo) -> None:
        """Say which program the agent is."""
        self._parts.sessions.describe(session_id, client)
        self._parts.unguarded.check(self._parts.sessions.living(session_id))

    async def say(self, session_id: str, text: str, by: Decider) -> None:
        """Add to the conversation of a session."""
        self._parts.sessions.say(session_id, text, by)

    async def close_session(self, session_id: str, why: str) -> None:
        """Close a session. Its running commands continue, and its waiting calls stay in the queue, marked."""
        self._parts.sessions.close(session_id, why)

    async def submit(self, request: CallRequest) -> str:
        """Journal and judge a call."""
        call_id = await self._parts.queue.submit(request, self._parts.pool.try_start_now, self._parts.sessions.living)
        await self._parts.pool.dispatch_started()
        return call_id

    async def decided(self, call_id: str, *, aside_after: float | None = None) -> CallRecord:
        """Wait until a call is decided, or is set aside after that time."""
        return await self._until(call_id, lambda record: not isinstance(record.state, Unjudged | Waiting), aside_after)

    async def _until(self, call_id: str, over: Callable[[CallRecord], bool], aside_after: float | None) -> CallRecord:
        """Wait until a call is in some state, or is set aside after that time."""

        def ends(record: CallRecord) -> bool:
            aside = record.aside
            return over(record) or (aside_after is not None and aside is not None and aside.since > aside_after)

        return await self._store.wait_until(call_id, ends)

    async def claim(self, call_id: str, ticket: str, claim: Claim, shell: ShellReport | None = None) -> CallRecord:
        """Start an approved call for the process that shows its ticket."""
        return self._parts.tickets.claim(call_id, ticket, claim, shell)

    async def hand_over(self, call_id: str, ticket: str) -> CallRecord:
        """Leave an approved call to its agent."""
        if self._parts.pause.paused:
            raise Refused("everything is paused", hint="Run the command again when the supervisor is resumed")
        return self._parts.tickets.hand_over(call_id, ticket)

    async def started(self, call_id: str) -> CallRecord:
        """Wait until the call has a process or its ending."""
        return await self._store.wait_until(call_id, lambda record: isinstance(record.state, Running | Ended))

    async def begin_function(self, call_id: str) -> CallRecord:
        """Wait for the approval of the caller's own tool, and record that it runs."""
        while self._parts.pause.paused or (record := self._parts.caller_tools.begin(call_id)) is None:
            await self._store.change(call_id)
        return record

    async def submit_and_begin(self, request: CallRequest) -> Submission:
        """Journal and judge a call of the caller's own tool, and begin it in the same write if it is allowed."""
        parts, begun = self._parts, list[Started]()

        def begin(call: ToolCall) -> Started | None:
            begun.extend(() if parts.pause.paused else [parts.caller_tools.beginning(call.id, call.spec)])
            return begun[-1] if begun else None

        parts.caller_tools.check_own(request)
        call_id = await parts.queue.submit(request, begin, parts.sessions.living)
        # A call that this one has joined was begun for another request.
        return Submission(call_id=call_id, begun=bool(begun))

    async def end_function(self, call_id: str, problem: str | None = None) -> None:
        """Record the end of the caller's own tool."""
        self._parts.caller_tools.end(call_id, problem)

    async def outcome(self, call_id: str, *, aside_after: float | None = None) -> CallRecord:
        """Wait until the call has its ending, or is set aside after that time."""
        return await self._until(call_id, lambda record: isinstance(record.state, Ended), aside_after)

    async def withdraw(self, call_id: str, why: str, *, stop_running: bool = False) -> None:
        """Withdraw a call that has not started; a running one is stopped if told, and else goes on, marked."""
        record = self._store.call(call_id)
        match record.state:
            case Unjudged() | Waiting() | Held() | Queued():
                self._parts.queue.withdraw(record, why)
            case Starting() | Running():
                stopping = stop_running or self._settings.when_agent_cancels == "stop"
                self._parts.queue.leave(record, why, stopping=stopping)
                if stopping and record.function is None:
                    await self._parts.pool.end(record)

    async def leave(self, call_id: str, why: str) -> None:
        """Mark a call whose agent stops waiting for the answer."""
        self._parts.queue.leave(self._store.call(call_id), why)

    def watch(self, after: int | None = None) -> AsyncIterator[tuple[Event, ...]]:
        """Yield numbered events in batches, endlessly."""
        return self._store.watch(after)

    async def decide(
        self, call_id: str, decision: Decision, by: Decider, seen: str, proof: DeskProof | None = None
    ) -> None:
        """Decide about a waiting call, and tell its agent if it went on without the answer."""
        await check_key(self.desk_key, proof)
        await self._decide(call_id, decision, by, seen, proof)

    async def _decide(self, call_id: str, decision: Decision, by: Decider, seen: str, proof: Proof = None) -> None:
        record = self._store.call(call_id)
        await self._parts.decide(call_id, decision, by, seen, proof)
        if record.agent_gave_up == WENT_ON:
            self._parts.sessions.tell(record.call.session_id, message_after_aside(record, decision), by)
        await self._store.flushed()

    async def set_aside(self, call_id: str, by: Decider, *, back: bool = False) -> None:
        """Move a waiting call out of the way without a decision, or back among those that wait."""
        self._parts.queue.set_aside(call_id, by, back=back)
        await self._store.flushed()

    async def withdraw_yes(self, call_id: str, by: Decider) -> None:
        """Withdraw a phone's yes that does not count yet."""
        if self.phones is None:
            raise Refused("this supervisor takes no decisions from phones")
        await self.phones.withdraw_yes(call_id, by)

    async def start_anyway(self, call_id: str, by: Decider) -> None:
        """Start a queued call whatever the limits say."""
        await self._parts.pool.start_anyway(self._store.call(call_id))

    async def signal(self, call_id: str, number: int, target: SignalTarget, by: Decider) -> None:
        """Send a signal to a run, or to the processes that it left behind."""
        await self._run_control.signal(self._store.call(call_id), number, target, by)

    async def pause(self, by: Decider) -> None:
        """Pause every run and start nothing."""
        await self._parts.pause.pause(by)

    async def resume(self, by: Decider) -> None:
        """Resume everything after a pause."""
        await self._parts.pause.resume(by)

    async def write_stdin(self, call_id: str, data: bytes, *, eof: bool = False) -> None:
        """Write to the command's standard input or terminal."""
        await self._run_control.write_stdin(self._store.call(call_id), data, eof=eof)

    async def resize(self, call_id: str, rows: int, columns: int) -> None:
        """Set the size of the command's terminal."""
        await self._run_control.resize(self._store.call(call_id), rows, columns)

    async def undo(
        self,
        call_id: str,
        paths: Sequence[str],
        direction: UndoDirection,
        by: Decider,
        *,
        all_but: bool = False,
        tell: bool = True,
    ) -> None:
        """Undo what an ended call changed, an edit or a command, or make it again, and tell its agent."""
        record = self._store.call(call_id)
        if not isinstance(record.spec.command, FileEdits):
            await self._parts.pool.previews.changes.undo(call_id, paths, direction, by, all_but=all_but)
            if tell:
                said = undo_message(record, direction, paths, all_but=all_but)
                self._parts.sessions.tell(record.call.session_id, said, by)
            return
        if paths:
            raise Refused(f"edit {call_id} is undone whole", hint=f"whisper-tui undo {call_id}")
        self._parts.undos.move_edit(record, direction, by)
        if tell:
            self._parts.sessions.tell(record.call.session_id, undo_message(record, direction), by)

    async def undo_calls(self, order: UndoOrder, by: Decider) -> CallsUndone:
        """Undo what several calls changed, or make it again, and tell their agents."""
        return await self._parts.undos.undo(order, by)

    async def revert_edit(self, call_id: str, by: Decider, *, tell: bool = True) -> None:
        """Put back the files of an edit as they were before it, and tell its agent."""
        if not isinstance(self._store.call(call_id).spec.command, FileEdits):
            raise Refused(f"call {call_id} is not an edit of files", hint="Only edits can be undone")
        await self.undo(call_id, (), "undo", by, tell=tell)

    async def preview(self, call_id: str, by: Decider, edited: CommandSpec | None = None) -> int:
        """Run a waiting command in a view of the files."""
        return await self._parts.pool.previews.start(call_id, by, edited)

    async def drop_preview(self, call_id: str, by: Decider) -> None:
        """End a preview that runs, and discard its changes."""
        await self._parts.pool.previews.drop(call_id)

    async def drafts(self) -> tuple[SessionDraft, ...]:
        """Return all drafts."""
        return self._parts.drafts.listed()

    async def start_draft(self, session_id: str, by: Decider) -> SessionDraft:
        """Have all commands of a session run in a draft from now on."""
        return await self._parts.drafts.start(session_id, by)

    async def draft_page(self, session_id: str, after: int = 0, limit: int = 1000) -> DraftPage:
        """Return changes of a draft from a number on."""
        return await self._parts.drafts.page(session_id, after, limit)

    async def draft_versions(self, session_id: str, number: int) -> FileVersions:
        """Return the content of a file before a draft and in it."""
        return await self._parts.drafts.versions(session_id, number)

    async def apply_draft(self, order: DraftApply, by: Decider) -> DraftApplied:
        """Make a draft real, or a part of it."""
        return await self._parts.drafts.apply(order, by)

    async def drop_draft(self, session_id: str, by: Decider) -> None:
        """Discard a draft."""
        await self._parts.drafts.drop(session_id, by)

    async def set_unasked(
        self, level: Unasked | None, by: Decider, session_id: str | None = None, until: float | None = None
    ) -> None:
        """Say how much runs unasked from now on, in one session or in all."""
        now = self._clock()
        if until is not None and until <= now:
            raise InvalidRequest("the time for which that was to hold is over", hint="Name a later end")
        if level == "workspace" and (problem := await self._parts.pool.previews.probe.proven_problem()):
            # Without a view it would be less than its name says: edits alone.
            raise Refused(
                f"ordinary work cannot run unasked here, because no command can be held back: {problem}",
                hint="docs/preview.md says where that works, and whisper-tui doctor what is missing",
            )
        if session_id is not None:
            self._parts.sessions.living(session_id)
        elif until is None and level is not None:
            self._rules.set_unasked(level, by)
        kept = session_id is not None or until is not None
        said = UnaskedLevel(level=level, until=until) if level is not None and kept else None
        if session_id is not None or said != self._store.board.unasked:
            self._store.record(UnaskedSet(at=now, session_id=session_id, level=said, by=by), durable=True)
        self._parts.queue.judge_again(session_id)

    async def mark_reviewed(self, until: float, by: Decider) -> None:
        """Note that a human has looked at what calls have changed unasked that had ended by then."""
        self._store.record(Reviewed(at=self._clock(), until=min(until, self._clock()), by=by), durable=True)

    async def revoke(self, grant_id: str, by: Decider) -> None:
        """Revoke a standing approval."""
        self._parts.queue.revoke(grant_id, by)

    async def deny_for_session(self, session_id: str, words: tuple[str, ...], reason: str, by: Decider) -> str:
        """Deny every call of a session that begins with these words."""
        return self._parts.queue.denials.add(session_id, words, reason, by)

    async def lift_denial(self, denial_id: str, by: Decider) -> None:
        """Deny nothing by it any more."""
        self._parts.queue.denials.lift(denial_id, by)

    async def rule_list(self, roots: tuple[str, ...] = ()) -> RuleList:
        """Return the rules of the user, and those of these workspaces."""
        return self._rules.listed(roots)

    async def judge_command(self, text: str, directory: str, tool: str = "", place: str = "") -> Judgement:
        """Return the verdict on a shell command in a session with this workspace, without running it."""
        return await self._rules.judge(text, directory, tool, place)

    async def add_rule(self, effect: RuleEffect, definition: dict[str, Any], by: Decider) -> None:
        """Add a rule to the user's rules file."""
        self._rules.add(effect, definition, by)

    async def replace_rule(self, old: RuleDraft, new: RuleDraft | None, by: Decider) -> None:
        """Put a rule in the place of another one of the user's rules file, or remove that one."""
        self._rules.replace(old, new, by)

    async def try_rule(
        self, draft: RuleDraft, replaces: RuleDraft | None = None, text: str = "", directory: str = ""
    ) -> RuleTrial:
        """Say what a draft of a rule would do."""
        return await self._rules.try_draft(draft, replaces, text, directory, await self.queries.past_calls())

    async def remove_rule(self, name: str, by: Decider) -> int:
        """Remove the rules of a name from the user's rules file. Returns their number."""
        return self._rules.remove(name, by)

    async def trust_project(self, root: str, by: Decider, digest: str = "", *, trusted: bool) -> None:
        """Trust the rules file of a workspace as it was shown, or withdraw that trust."""
        self._rules.trust_project(root, digest, by, trusted=trusted)

    async def rule_files(self) -> tuple[RulesChanged, ...]:
        """Return the newest event about each rule file, as the files are now."""
        # What is shown is trusted next, so a change that nobody has looked at yet must be in it.
        self._rules_now("")
        return tuple(self._store.board.rules.values())

    async def trust_rules(self, path: str, by: Decider, digest: str) -> None:
        """Trust the allow rules of a rule file."""
        self._rules_now("")
        self.rule_trust.trust(path, by, digest)

    async def settings(self) -> SettingList:
        """The settings of the configuration file that a person changes."""
        return await asyncio.to_thread(self.settings_file.listed)

    async def change_setting(self, name: str, value: str | None, seen: str, by: Decider) -> None:
        """Write a setting into the configuration file."""
        self.settings_file.change(name, value, seen)

    async def connect_place(self, place_name: str, by: Decider, *, connected: bool) -> PlaceState:
        """Reach a place now, or let it go, and return how it is then."""
        return await self._parts.connect_place(place_name, connected=connected)

    async def status(self) -> SupervisorStatus:
        """Counts, settings and problems of the supervisor."""
        return self._parts.status.now(self.notify_problem)

    async def report_presence(self, presence: Presence) -> None:
        """Note whether somebody is at a cockpit."""
        self.presences.report(presence)

    async def prune(self, *, dry_run: bool = False) -> Pruned:
        """Remove recorded output beyond what the user keeps."""
        return await self._parts.retention.prune(dry_run=dry_run)

    def attempt_refused(self, attempt: AttemptRefused) -> None:
        """Record an attempt to decide by a process that must not decide."""
        self._store.record(attempt)

    def raise_alarm(self, call_id: str, alarm: Alarm) -> None:
        """Record that something else than what was approved seems to have run; a few times for each call at most."""
        record = self._store.call(call_id)
        known = [each.model_copy(update={"at": alarm.at}) for each in record.alarms]
        if alarm not in known and len(known) < MOST_ALARMS:
            self._store.record(AlarmRaised(at=self._clock(), call_id=call_id, alarm=alarm), durable=True)

    async def shutdown(self, *, end_runs: bool = False) -> None:
        """Request a stop; with `end_runs`, end the runs first."""
        if end_runs:
            await self._parts.pool.end_all(within_s=END_S)
        self.stopped.set()

    async def record(self, call_id: str) -> CallRecord:
        """Return any call of the journal. Raises `UnknownCall`."""
        return self._store.call(call_id)
