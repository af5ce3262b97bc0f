"""A supervisor in memory, without processes: it answers the API by playing events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from tests.in_memory.world import InMemoryRules, PlayedWorld, RecordedStreams
from whisper_tui.effects import effects_of
from whisper_tui.model.api import HistoryQuery, Presence, Pruned, SettingList, Submission, Supervision, SupervisorStatus
from whisper_tui.model.call import (
    CallRequest,
    ClientInfo,
    CommandSpec,
    EditedFile,
    FileEdits,
    FileVersions,
    Session,
    SessionHello,
    Shell,
    Unasked,
    UnaskedLevel,
)
from whisper_tui.model.decision import (
    LOOKED_AT,
    Approve,
    Coverage,
    Decider,
    Decision,
    Deny,
    Grant,
    RuleScope,
    Scope,
    SessionDenial,
    ToolScope,
)
from whisper_tui.model.draft import DraftApplied, DraftApply, DraftPage, SessionDraft
from whisper_tui.model.effects import Effects
from whisper_tui.model.ending import Denied, HandedOver, Signalled, Withdrawn
from whisper_tui.model.errors import (
    AlreadyDecided,
    BadConfiguration,
    ChangedSinceSeen,
    InvalidRequest,
    NotRunning,
    Refused,
)
from whisper_tui.model.event import (
    AgentGaveUp,
    Claimed,
    Decided,
    DenialAdded,
    DenialLifted,
    EditReverted,
    Event,
    Finished,
    Granted,
    GrantRevoked,
    Paused,
    PhoneYes,
    PreviewStarted,
    Resumed,
    Reviewed,
    RulesChanged,
    SessionClosed,
    SessionDescribed,
    SessionResumed,
    SessionSaid,
    SetAside,
    SignalSent,
    Submitted,
    UnaskedSet,
    UndoEnded,
    UndoStarted,
)
from whisper_tui.model.packed_calls import BoardItem
from whisper_tui.model.preview import CallsUndone, LeftOut, PreviewPage, UndoDirection, UndoOrder
from whisper_tui.model.run import (
    Echo,
    OutputChunk,
    OutputSpan,
    SignalTarget,
    Stall,
    Stream,
    TerminalSize,
    UsageSample,
)
from whisper_tui.model.shown_rules import Judgement, RuleDraft, RuleEffect, RuleList, RuleTrial
from whisper_tui.model.state import (
    CallRecord,
    Claim,
    Ended,
    Held,
    PlaceState,
    Queued,
    Running,
    ShellReport,
    Starting,
    Waiting,
)
from whisper_tui.supervisor.approvals.session_grants import check_scope, coverage, with_approved
from whisper_tui.supervisor.places.place_files import no_such_place

BATCH = 1000
"""Events in one batch."""
DEADLY = frozenset({1, 2, 3, 9, 15})
"""Signals that end a played command."""


def _call_of(event: Event) -> str | None:
    return event.call.id if isinstance(event, Submitted) else getattr(event, "call_id", None)


class InMemorySupervisor(PlayedWorld, Supervision):
    """Implements `Supervision`. An approved command is started at once and runs until somebody finishes it."""

    async def open_session(self, hello: SessionHello) -> Session:
        """Begin, or resume, an agent's session."""
        self.check()
        if hello.resume is not None and hello.resume in self.board.sessions:
            self.happen(SessionResumed(at=self.clock(), session_id=hello.resume, pid=hello.pid))
            return self.board.sessions[hello.resume]
        client = hello.client
        return self.open(hello.name, hello.root, client.name if client else "", client.version if client else "")

    async def session(self, session_id: str) -> Session:
        """Return any session."""
        self.check()
        if session_id not in self.board.sessions:
            raise InvalidRequest(f"There is no session {session_id}")
        return self.board.sessions[session_id]

    async def describe_session(self, session_id: str, client: ClientInfo) -> None:
        """Set the program of the agent, once it has introduced itself."""
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

    async def submit(self, request: CallRequest) -> str:
        """Submit a call; it is always asked."""
        self.check()
        return self.ask(request)

    async def decided(self, call_id: str, *, aside_after: float | None = None) -> CallRecord:
        """Wait until the call is decided."""
        return await self._reached(call_id, (Held, Queued, Starting, Running, Ended))

    async def claim(self, call_id: str, ticket: str, claim: Claim, shell: ShellReport | None = None) -> CallRecord:
        """Start the command for any ticket."""
        self.check()
        self.happen(Claimed(at=self.clock(), call_id=call_id, claim=claim))
        self.start(call_id)
        return self.known(call_id)

    async def hand_over(self, call_id: str, ticket: str) -> CallRecord:
        """End a call that its agent runs itself."""
        self.check()
        self.happen(Finished(at=self.clock(), call_id=call_id, ending=HandedOver()))
        return self.known(call_id)

    async def started(self, call_id: str) -> CallRecord:
        """Wait until the call runs or has its ending."""
        return await self._reached(call_id, (Running, Ended))

    async def begin_function(self, call_id: str) -> CallRecord:
        """Nothing is carried out in memory."""
        raise InvalidRequest(f"Call {call_id} is only played")

    async def submit_and_begin(self, request: CallRequest) -> Submission:
        """Nothing is carried out in memory."""
        raise InvalidRequest(f"A call of {request.tool} is only played")

    async def end_function(self, call_id: str, problem: str | None = None) -> None:
        """Nothing is carried out in memory."""
        raise InvalidRequest(f"Call {call_id} is only played")

    async def outcome(self, call_id: str, *, aside_after: float | None = None) -> CallRecord:
        """Wait until the call has its ending."""
        return await self._reached(call_id, (Ended,))

    async def withdraw(self, call_id: str, why: str, *, stop_running: bool = False) -> None:
        """Withdraw a call."""
        self.check()
        state = self.known(call_id).state
        if isinstance(state, Waiting | Held | Queued):
            self.happen(Finished(at=self.clock(), call_id=call_id, ending=Withdrawn(why=why)))
        elif isinstance(state, Running):
            self.happen(AgentGaveUp(at=self.clock(), call_id=call_id, why=why))
            if stop_running:
                self.finish(call_id, Signalled(number=15, by_us=True))

    async def leave(self, call_id: str, why: str) -> None:
        """Note that the agent stops waiting for the answer."""
        self.check()
        self.happen(AgentGaveUp(at=self.clock(), call_id=call_id, why=why))

    async def watch(self, after: int | None = None) -> AsyncIterator[tuple[Event, ...]]:
        """Yield events in batches, endlessly."""
        self.check()
        position = after or 0
        arrived = self._watcher()
        try:
            while True:
                arrived.clear()
                while position < len(self.events):
                    batch = tuple(self.events[position : position + BATCH])
                    position += len(batch)
                    yield batch
                if after is None:
                    # All of the board was sent.
                    after = position
                    yield ()
                await arrived.wait()
                self.check()
        finally:
            self._watchers.discard(arrived)

    async def watch_board(self, packing: str) -> AsyncIterator[tuple[BoardItem, ...]]:
        """Yield the board of now with its waiting calls packed, then events."""
        self.check()
        last, waiting = len(self.events), self.board.packed_waiting()
        packed = self.board.waiting.keys() - self.board.previewing.keys()
        yield tuple(event for event in self.events if _call_of(event) not in packed)
        for part in waiting:
            yield (part,)
        yield ()
        async with aclosing(self.watch(last)) as batches:
            async for events in batches:
                yield events

    async def decide(self, call_id: str, decision: Decision, by: Decider, seen: str) -> None:
        """Decide about a waiting call; an approved one starts at once."""
        self.check()
        record = self.known(call_id)
        if not isinstance(record.state, Waiting):
            raise AlreadyDecided(f"Call {call_id} is decided already")
        if record.seen_digest() != seen:
            raise ChangedSinceSeen(f"Call {call_id} has changed since it was shown", hint="Look at it again")
        self.happen(Decided(at=self.clock(), call_id=call_id, decision=decision, by=by))
        if isinstance(decision, Deny):
            self._deny(record, decision, by)
        else:
            self._remember(record, decision, by)
            if decision.preview is not None:
                self.apply_preview(call_id)
                return
            self.drop(call_id)
            if record.call.ticket is None:
                self.start(call_id)

    async def signal(self, call_id: str, number: int, target: SignalTarget, by: Decider) -> None:
        """Send a signal; those of `DEADLY` end the command."""
        self.check()
        record = self.known(call_id)
        if not isinstance(record.state, Running | Ended) or not record.is_open:
            raise NotRunning(f"Nothing of call {call_id} is alive")
        self.happen(SignalSent(at=self.clock(), call_id=call_id, number=number, target=target, by=by))
        if number not in DEADLY:
            return
        if isinstance(record.state, Running):
            self.finish(call_id, Signalled(number=number, by_us=True))
        if target == "tree" or isinstance(record.state, Ended):
            self.settle(call_id)

    async def write_stdin(self, call_id: str, data: bytes, *, eof: bool = False) -> None:
        """Write input, which is echoed like in a terminal."""
        self.check()
        if not self.known(call_id).spec.accepts_input:
            raise NotRunning(f"Call {call_id} accepts no input")
        self.write(call_id, data)

    async def resize(self, call_id: str, rows: int, columns: int) -> None:
        """Keep the size of a terminal."""
        self.check()
        start = len(self.written[call_id].out) if call_id in self.written else 0
        size = TerminalSize(at=self.clock(), start=start, rows=rows, columns=columns)
        before = self.terminals.get(call_id, [TerminalSize()])
        self.terminals[call_id] = [*(before if start else ()), size]

    async def revoke(self, grant_id: str, by: Decider) -> None:
        """Forget a standing approval."""
        self.check()
        if grant_id not in self.board.grants:
            raise InvalidRequest(f"There is no standing approval {grant_id}")
        session_id = self.board.grants[grant_id].session_id
        self.happen(GrantRevoked(at=self.clock(), session_id=session_id, grant_id=grant_id, by=by))

    async def denials(self, session_id: str | None = None) -> tuple[SessionDenial, ...]:
        """Return the session denials in force."""
        self.check()
        return tuple(self.board.denials.values()) if session_id is None else self.board.denials_of(session_id)

    async def deny_for_session(self, session_id: str, words: tuple[str, ...], reason: str, by: Decider) -> str:
        """Deny the waiting calls of a session that begin with these words, and those that come."""
        self.check()
        self._denied += 1
        denial = SessionDenial(
            id=f"d{self._denied}", session_id=session_id, words=words, reason=reason, denied_at=self.clock(), by=by
        )
        same = [each.id for each in self.board.denials_of(session_id) if each.words == words]
        for each in same:
            self.happen(DenialLifted(at=self.clock(), session_id=session_id, denial_id=each, by=by))
        self.happen(DenialAdded(at=self.clock(), denial=denial))
        for call_id in self.board.waiting_in(session_id):
            self.apply_denials(call_id, by)
        return denial.id

    async def set_aside(self, call_id: str, by: Decider, *, back: bool = False) -> None:
        """Move a waiting call out of the way, or back."""
        self.check()
        record = self.known(call_id)
        if not isinstance(record.state, Waiting):
            raise AlreadyDecided(f"Call {call_id} is decided already")
        if (record.aside is None) != back:
            self.happen(SetAside(at=self.clock(), call_id=call_id, back=back, by=by))

    async def withdraw_yes(self, call_id: str, by: Decider) -> None:
        """Let a call wait as before a phone's yes."""
        self.check()
        if self.known(call_id).pending_yes is None:
            raise Refused(f"No phone has said yes to call {call_id}")
        self.happen(PhoneYes(at=self.clock(), call_id=call_id, until=None, by=by))

    async def start_anyway(self, call_id: str, by: Decider) -> None:
        """Note the call; the test starts it."""
        self.check()
        if not isinstance(self.known(call_id).state, Queued):
            raise Refused(f"call {call_id} is not queued for a worker")
        self.started_anyway.append(call_id)

    async def lift_denial(self, denial_id: str, by: Decider) -> None:
        """Deny nothing by it any more."""
        self.check()
        session_id = self.board.denials[denial_id].session_id
        self.happen(DenialLifted(at=self.clock(), session_id=session_id, denial_id=denial_id, by=by))

    async def file_versions(self, call_id: str) -> tuple[FileVersions, ...]:
        """Return the contents of the files of an edit before and after it."""
        self.check()
        record = self.known(call_id)
        if isinstance(record.state, Ended) and isinstance(record.state.ending, HandedOver):
            return self.contents_left(call_id)
        return self.contents_now(record.spec, record.call.session_id)

    async def revert_edit(self, call_id: str, by: Decider, *, tell: bool = True) -> None:
        """Record that the files were put back; nothing is written."""
        self.check()
        self.told.append((call_id, tell))
        self.happen(EditReverted(at=self.clock(), call_id=call_id, by=by))

    async def preview(self, call_id: str, by: Decider, edited: CommandSpec | None = None) -> int:
        """Start a preview, which lasts until the test ends it with `end_preview`."""
        self.check()
        record = self.known(call_id)
        if not isinstance(record.state, Waiting):
            raise Refused(f"call {call_id} does not wait for a decision, so it cannot be previewed")
        if self.preview_problem:
            raise Refused(f"commands cannot be previewed here: {self.preview_problem}")
        attempt = record.attempts + 1
        self.happen(PreviewStarted(at=self.clock(), call_id=call_id, attempt=attempt, by=by, edited=edited))
        return attempt

    async def drop_preview(self, call_id: str, by: Decider) -> None:
        """Discard a preview."""
        self.check()
        self.drop(call_id)

    async def preview_page(self, call_id: str, after: int = 0, limit: int = 1000) -> PreviewPage:
        """Return the changes that the test has set."""
        self.check()
        page = self.preview_pages.get(call_id)
        if page is None:
            raise Refused(f"there is no preview of call {call_id} whose changes are known")
        return page.model_copy(update={"changes": page.changes[after : after + limit], "total": len(page.changes)})

    async def preview_versions(self, call_id: str, number: int) -> FileVersions:
        """Return the contents that the test has set."""
        self.check()
        return self.previewed_contents[call_id, number]

    async def undo(
        self,
        call_id: str,
        paths: tuple[str, ...],
        direction: UndoDirection,
        by: Decider,
        *,
        all_but: bool = False,
        tell: bool = True,
    ) -> None:
        """Record an undo; nothing is written. It is refused if the test has set conflicts."""
        self.check()
        if isinstance(self.known(call_id).spec.command, FileEdits):
            await self.revert_edit(call_id, by, tell=tell)
            return
        self.told.append((call_id, tell))
        page = self.preview_pages.get(call_id)
        if all_but and page is not None:
            paths = tuple(change.path for change in page.changes if change.path not in paths)
        if page is None or (page.conflicts and (not paths or set(paths) & set(page.conflicts))):
            raise Refused(
                f"call {call_id} cannot be undone: {', '.join(page.conflicts) if page else 'nothing was kept'}"
            )
        undo = direction == "undo"
        changes = (
            change.model_copy(update={"taken_back": undo}) if not paths or change.path in paths else change
            for change in page.changes
        )
        self.preview_pages[call_id] = page.model_copy(update={"changes": tuple(changes)})
        self.happen(UndoStarted(at=self.clock(), call_id=call_id, direction=direction, paths=paths, by=by))
        self.happen(UndoEnded(at=self.clock(), call_id=call_id))

    async def undo_calls(self, order: UndoOrder, by: Decider) -> CallsUndone:
        """Undo one after the other; those with conflicts are left out as a whole."""
        self.check()
        done, left = list[str](), list[LeftOut]()
        for call_id in sorted(order.call_ids, key=int, reverse=order.direction == "undo"):
            page = self.preview_pages.get(call_id)
            if page is not None and page.conflicts:
                left.append(LeftOut(call_id=call_id, paths=page.conflicts, why="changed since"))
                continue
            done.append(call_id)
            if not order.dry_run:
                await self.undo(call_id, order.paths, order.direction, by, tell=order.tell)
        return CallsUndone(calls=tuple(done), left_out=tuple(left))

    async def drafts(self) -> tuple[SessionDraft, ...]:
        """Return the drafts that were begun."""
        self.check()
        return tuple(page.draft for page in self.draft_pages.values())

    async def start_draft(self, session_id: str, by: Decider) -> SessionDraft:
        """Begin a draft without changes."""
        self.check()
        if session_id in self.draft_pages:
            raise Refused(f"session {session_id} has a draft already")
        session = self.board.sessions[session_id]
        draft = SessionDraft(
            session_id=session_id, name=session.name, root=session.root, started_at=self.clock(), by=by
        )
        self.draft_pages[session_id] = DraftPage(draft=draft)
        return draft

    async def draft_page(self, session_id: str, after: int = 0, limit: int = 1000) -> DraftPage:
        """Return the changes that the test has set."""
        self.check()
        if session_id not in self.draft_pages:
            raise Refused(f"session {session_id} has no draft")
        page = self.draft_pages[session_id]
        return page.model_copy(update={"changes": page.changes[after : after + limit]})

    async def draft_versions(self, session_id: str, number: int) -> FileVersions:
        """No contents are known."""
        path = (await self.draft_page(session_id)).changes[number].change.path
        file = EditedFile(action="changes", path=path, real=path)
        return FileVersions(file=file, not_shown="it is not kept")

    async def apply_draft(self, order: DraftApply, by: Decider) -> DraftApplied:
        """End a draft, unless the test has set conflicts."""
        page = await self.draft_page(order.session_id)
        if page.conflicts:
            raise Refused(f"nothing was applied: {', '.join(page.conflicts)} changed in the real files since")
        if not order.dry_run:
            del self.draft_pages[order.session_id]
        return DraftApplied(total=page.total, over=not order.dry_run)

    async def drop_draft(self, session_id: str, by: Decider) -> None:
        """Forget a draft."""
        await self.draft_page(session_id)
        del self.draft_pages[session_id]

    async def set_unasked(
        self, level: Unasked | None, by: Decider, session_id: str | None = None, until: float | None = None
    ) -> None:
        """Record how much runs unasked from now on."""
        self.check()
        said = UnaskedLevel(level=level, until=until) if level is not None else None
        self.happen(UnaskedSet(at=self.clock(), session_id=session_id, level=said, by=by))

    async def connect_place(self, place_name: str, by: Decider, *, connected: bool) -> PlaceState:
        """Know no place."""
        self.check()
        raise no_such_place(place_name)

    async def mark_reviewed(self, until: float, by: Decider) -> None:
        """Record a review."""
        self.check()
        self.happen(Reviewed(at=self.clock(), until=until, by=by))

    async def rule_files(self) -> tuple[RulesChanged, ...]:
        """Return no rule files."""
        return ()

    async def rule_list(self, roots: tuple[str, ...] = ()) -> RuleList:
        """Return the rules of the test; none if it has set none."""
        self.check()
        return RuleList() if self.rule_book is None else self.rule_book.rules(roots)

    async def judge_command(self, text: str, directory: str, tool: str = "", place: str = "") -> Judgement:
        """Return the verdict of the test."""
        return self._rules().judge(text, directory)

    async def add_rule(self, effect: RuleEffect, definition: dict[str, Any], by: Decider) -> None:
        """Add a rule of the test."""
        self._rules().replace(None, RuleDraft(effect=effect, definition=definition))

    async def replace_rule(self, old: RuleDraft, new: RuleDraft | None, by: Decider) -> None:
        """Replace a rule of the test."""
        self._rules().replace(old, new)

    async def try_rule(
        self, draft: RuleDraft, replaces: RuleDraft | None = None, text: str = "", directory: str = ""
    ) -> RuleTrial:
        """Return what the test says about a draft."""
        return self._rules().try_draft(draft, text)

    async def remove_rule(self, name: str, by: Decider) -> int:
        """Remove a rule of the test."""
        self._rules().remove(name)
        return 1

    async def trust_project(self, root: str, by: Decider, digest: str = "", *, trusted: bool) -> None:
        """Trust a project of the test."""
        (project,) = self._rules().rules((root,)).projects
        self._rules().trust(project, trusted=trusted)

    def _rules(self) -> InMemoryRules:
        if self.rule_book is None:
            raise Refused("there are no rule files here", hint="Use a supervisor")
        return self.rule_book

    async def trust_rules(self, path: str, by: Decider, digest: str) -> None:
        """Refuse: there are no rule files."""
        raise Refused(f"there is no file of rules {path} here", hint="Use a supervisor")

    async def settings(self) -> SettingList:
        """Return the settings of the test."""
        return SettingList(path="config.toml", settings=tuple(self.shown_settings.values()))

    async def change_setting(self, name: str, value: str | None, seen: str, by: Decider) -> None:
        """Change a setting of the test."""
        self.check()
        setting = self.shown_settings[name]
        if value == "wrong":
            raise BadConfiguration(f"config.toml: {name}: {value!r} is not allowed")
        changed = {"value": setting.default if value is None else value, "in_file": value is not None}
        self.shown_settings[name] = setting.model_copy(update=changed)

    async def pause(self, by: Decider) -> None:
        """Journal a pause, which stops nothing here."""
        self.check()
        if self.board.paused is None:
            self.happen(Paused(at=self.clock(), by=by))

    async def resume(self, by: Decider) -> None:
        """Journal the end of a pause."""
        self.check()
        if self.board.paused is not None:
            self.happen(Resumed(at=self.clock(), by=by))

    async def prune(self, *, dry_run: bool = False) -> Pruned:
        """Remove nothing: no output is on a disk."""
        return Pruned(runs=0, bytes=0, kept_runs=len(self.board.calls), kept_bytes=0)

    async def shutdown(self, *, end_runs: bool = False) -> None:
        """Do nothing: there is nothing to stop."""

    async def read_output(self, call_id: str, stream: Stream, offset: int, limit: int) -> OutputChunk:
        """Return at most `limit` bytes of a stream from `offset`; a negative offset counts from the end."""
        self.check()
        data = self.written.get(call_id, RecordedStreams()).stream(stream)
        start = max(0, len(data) + offset) if offset < 0 else min(offset, len(data))
        piece = bytes(data[start : start + limit])
        return OutputChunk(data=piece, start=start, size=len(data), ended=not self.known(call_id).is_open)

    async def output_file(self, call_id: str, stream: Stream) -> str | None:
        """Return None: the output is in memory."""
        self.check()
        return None

    async def read_timeline(self, call_id: str, after: int, limit: int) -> tuple[OutputSpan, ...]:
        """Return rows of the time index."""
        self.check()
        return tuple(self.spans.get(call_id, ())[after : after + limit])

    async def terminal_sizes(self, call_id: str) -> tuple[TerminalSize, ...]:
        """Return the sizes of a terminal."""
        self.check()
        return tuple(self.terminals.get(call_id, (TerminalSize(),)))

    async def usage(self, call_ids: tuple[str, ...]) -> dict[str, UsageSample]:
        """Return no samples: nothing runs."""
        self.check()
        return {}

    async def stalls(self) -> dict[str, Stall]:
        """Return what was set."""
        self.check()
        return {call_id: stall for call_id, stall in self.stalled.items() if call_id in self.board.running}

    async def echo(self, call_id: str) -> Echo | None:
        """Return nothing: there are no terminals."""
        self.check()
        return None

    async def record(self, call_id: str) -> CallRecord:
        """Return a call of the board."""
        self.check()
        return self.known(call_id)

    async def history(self, query: HistoryQuery) -> tuple[CallRecord, ...]:
        """Return the matching calls, newest first."""
        self.check()
        newest_first = (self.board.calls[call_id] for call_id in reversed(self.board.calls))
        found = (record for record in newest_first if self._called(record, query.session) and _matches(record, query))
        return tuple(record for _, record in zip(range(query.limit), found, strict=False))

    def _called(self, record: CallRecord, session: str | None) -> bool:
        """True if a call belongs to a session of that name or id. None: any session."""
        session_id = record.call.session_id
        return session in {None, session_id, self.board.sessions[session_id].name}

    async def grants(self, session_id: str | None = None) -> tuple[Grant, ...]:
        """Return the valid standing approvals."""
        self.check()
        grants = self.board.grants.values()
        return tuple(g for g in grants if g.revoked_at is None and session_id in {None, g.session_id})

    async def would_cover(self, call_id: str, scope: Scope, edited: CommandSpec | None = None) -> Coverage:
        """Return the calls with the same command, or with the same first words."""
        self.check()
        record = self.known(call_id)
        if isinstance(scope, ToolScope):
            spec = edited or record.call.spec
            check_scope(scope, spec)
            newest = await self.history(HistoryQuery(limit=LOOKED_AT))
            return coverage(scope, spec, self.board.sessions[record.call.session_id].root, newest)
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
        found = Coverage(looked_at=len(self.board.calls), calls=tuple(same))
        if not isinstance(scope, RuleScope):
            return found
        root, newest = (
            self.board.sessions[record.call.session_id].root,
            await self.history(HistoryQuery(limit=LOOKED_AT)),
        )
        return with_approved(found, scope, edited or record.call.spec, root, newest)

    async def effects(self, call_id: str) -> Effects:
        """State the effects with nothing but the directory of the call to look at."""
        self.check()
        record = self.known(call_id)
        if isinstance(record.state, Starting | Running | Ended):
            raise Refused(f"the effects of call {call_id} cannot be stated any more: it has started, or is over")
        spec = record.spec
        real = self.directories.get(spec.cwd, spec.cwd)
        # All are stated, however busy the machine is.
        found = await asyncio.to_thread(effects_of, spec.command, real, (real,), spec.environment, budget_s=20)
        return Effects.model_validate_json(found.model_dump_json().replace(real, spec.cwd))

    async def report_presence(self, presence: Presence) -> None:
        """Keep the last report."""
        self.check()
        self.presence = presence

    async def status(self) -> SupervisorStatus:
        """Return the number of calls in each state."""
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
            places=self.places,
            paused_since=board.paused.at if board.paused else None,
            paused_by=board.paused.by if board.paused else None,
            problem=self.problem,
            sandbox_problem=self.sandbox_problem,
            previews=self.previews,
            notify_problem=self.notify_problem,
            unguarded=self.unguarded,
            queue=self.queue,
            unasked={"": board.unasked or UnaskedLevel(level="reading")},
            now=self.clock(),
        )

    async def _reached(self, call_id: str, states: tuple[type, ...]) -> CallRecord:
        arrived = self._watcher()
        try:
            while not isinstance(self.known(call_id).state, states):
                arrived.clear()
                await arrived.wait()
                self.check()
        finally:
            self._watchers.discard(arrived)
        return self.known(call_id)

    def _watcher(self) -> asyncio.Event:
        arrived = asyncio.Event()
        self._watchers.add(arrived)
        return arrived

    def _deny(self, record: CallRecord, decision: Deny, by: Decider) -> None:
        denied = Denied(by=by, reason=decision.reason)
        self.happen(Finished(at=self.clock(), call_id=record.id, ending=denied))
        if not decision.stop_session:
            return
        for call_id in self.board.waiting_in(record.call.session_id):
            self.happen(
                Decided(at=self.clock(), call_id=call_id, decision=decision, by=by),
                Finished(at=self.clock(), call_id=call_id, ending=denied),
            )

    def _remember(self, record: CallRecord, decision: Approve, by: Decider) -> None:
        if decision.remember is None:
            return
        grant = Grant(
            id=f"g{len(self.board.grants) + 1}",
            session_id=record.call.session_id,
            spec=decision.edited or record.call.spec,
            from_call=record.id,
            granted_at=self.clock(),
            by=by,
            scope=decision.remember,
            sandbox=decision.sandbox,
        )
        self.happen(Granted(at=self.clock(), grant=grant))


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
    """Return the words of a command, without the shell around them."""
    command = record.call.spec.command
    return (command.text,) if isinstance(command, Shell) else command.words()
