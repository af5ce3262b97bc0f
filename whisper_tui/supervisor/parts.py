"""The parts of a supervisor: how they are made, opened and closed, and told of each event."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from whisper_tui.model.decision import Approve, Decider, Decision
from whisper_tui.model.event import (
    Claimed,
    Decided,
    Event,
    Finished,
    Judged,
    Resumed,
    SessionClosed,
    Settled,
    Spawned,
    Started,
)
from whisper_tui.model.run import Limits
from whisper_tui.model.state import PlaceState
from whisper_tui.policy.rules.rule import Rules
from whisper_tui.supervisor.approvals.approval_queue import ApprovalQueue, Proof
from whisper_tui.supervisor.approvals.handover import CallerTools, Tickets
from whisper_tui.supervisor.approvals.judge import ClientsRules, Examinations, Judge
from whisper_tui.supervisor.approvals.placed_calls import PlacedCalls
from whisper_tui.supervisor.draft_sessions import DraftSessions
from whisper_tui.supervisor.edit_history import EditHistory
from whisper_tui.supervisor.health import HookGaps, UnguardedAgents
from whisper_tui.supervisor.journal.store import Store
from whisper_tui.supervisor.places.place_files import HasPlaces, no_places, no_such_place
from whisper_tui.supervisor.places.place_settings import Placement
from whisper_tui.supervisor.places.placed_executors import PlacedExecutors
from whisper_tui.supervisor.queries import Queries, StatusReport
from whisper_tui.supervisor.rule_book import RuleBook
from whisper_tui.supervisor.runs.attempt_ways import AttemptWays
from whisper_tui.supervisor.runs.executor import Executor
from whisper_tui.supervisor.runs.kept_changes import KeptChanges
from whisper_tui.supervisor.runs.live_runs import StallMonitor
from whisper_tui.supervisor.runs.open_drafts import OpenDrafts
from whisper_tui.supervisor.runs.pool import Pool
from whisper_tui.supervisor.runs.preview_probe import PreviewProbe, preview_support
from whisper_tui.supervisor.runs.previews import Previews
from whisper_tui.supervisor.runs.retention import Retention
from whisper_tui.supervisor.runs.scheduling import Pause
from whisper_tui.supervisor.runs.start_order import StartOrders
from whisper_tui.supervisor.sessions import Environments, SessionOwners, Sessions
from whisper_tui.supervisor.settings import SupervisorSettings
from whisper_tui.supervisor.undo_of_calls import UndoOfCalls
from whisper_tui.supervisor.unknown_files import number_beyond
from whisper_tui.system.host_files import home_of_user
from whisper_tui.system.state_directory import Directories


@dataclass(frozen=True)
class Parts:
    """The parts of a supervisor: opened and closed together, and told of each event in a fixed order."""

    store: Store
    executor: Executor
    sessions: Sessions
    queue: ApprovalQueue
    tickets: Tickets
    caller_tools: CallerTools
    pool: Pool
    pause: Pause
    retention: Retention
    stall_monitor: StallMonitor
    unguarded: UnguardedAgents
    edits: EditHistory
    undos: UndoOfCalls
    drafts: DraftSessions
    queries: Queries
    status: StatusReport

    async def connect_place(self, place: str, *, connected: bool) -> PlaceState:
        """Reach a place now, or let it go. Raises `Unavailable`, and `InvalidRequest` while commands run there."""
        if not isinstance(self.executor, PlacedExecutors):
            raise no_such_place(place)
        return await self.executor.connect(place, connected=connected)

    def on_event(self, event: Event) -> None:
        """Call the consequences of one event, once it is on the board.

        A consequence that is recorded itself may fail with the journal: `retry_until_journaled` repeats it.
        """
        match event:
            case Judged() | Claimed():
                self.pool.on_moved(event.call_id)
                if isinstance(event, Judged):
                    self.pool.previews.on_judged(self.store.board.calls[event.call_id])
            case Decided():
                self.tickets.on_decided(event.call_id)
                if isinstance(event.decision, Approve):
                    self.queries.keep_approved(self.store.call(event.call_id))
                self.pool.previews.on_decided(self.store.board.calls[event.call_id])
                self.pool.on_moved(event.call_id)
            case Started():
                self.pool.on_started(event.call_id)
            case Spawned():
                self.pause.on_spawned(event.call_id)
            case Finished() | Settled():
                if isinstance(event, Finished):
                    record = self.store.board.calls[event.call_id]
                    self.queue.judge.note_ending(record)
                    self.sessions.tidy(record.call.session_id)
                    self.pool.previews.on_decided(record)
                self.pool.on_over(event.call_id)
            case SessionClosed():
                self.caller_tools.on_session_closed(event.session_id)
                self.tickets.on_session_closed(event.session_id)
            case Resumed():
                self.pool.on_resumed()

    async def open(self, read_rules: Callable[[], object]) -> None:
        """Judge calls that have no verdict yet, recover the runs, and begin to work."""
        if not self.store.journal.ended_cleanly:
            # Whoever can kill the supervisor can also write its journal (decision 11).
            self.queue.doubt_approvals()
            self.store.journal.note_damage()
        for call_id in tuple(self.store.board.unjudged):
            self.queue.judge_waiting(self.store.call(call_id))
        self.queue.denials.apply_all()
        self.caller_tools.open()
        self.tickets.open()
        if isinstance(self.executor, HasPlaces):
            self.executor.on_reached = self.pool.placed.on_reached
        # Tickets and tools of callers are settled first: neither needs a process.
        await self.executor.open()
        await self.pool.open()
        self.undos.open()
        self.drafts.open()
        self.pause.open()
        self.retention.open()
        self.stall_monitor.open()
        # Reading the rules journals a change of a file, so that it is reported also while no call comes.
        self.sessions.start_watching(also=read_rules)

    async def decide(self, call_id: str, decision: Decision, by: Decider, seen: str, proof: Proof = None) -> None:
        """Decide about a waiting call, once an edit of it was examined at the place where it would run."""
        examined = await self.pool.placed.examined_edit(call_id, decision)
        self.queue.decide(call_id, decision, by, seen, examined, proof=proof)

    async def close(self) -> None:
        """Stop working, and close the journal last."""
        self.sessions.stop_watching()
        await self.stall_monitor.close()
        self.unguarded.close()
        await self.retention.close()
        await self.pause.close()
        await self.undos.close()
        await self.drafts.close()
        await self.pool.placed.close()
        await self.pool.close()
        await self.pool.previews.close()
        await self.executor.close()
        self.queue.close()
        self.store.close()


def assemble(
    store: Store,
    executor: Executor,
    home: Directories,
    *,
    rules: Callable[[str], Rules],
    clients_rules: ClientsRules | None,
    gaps: HookGaps | None,
    settings: SupervisorSettings,
    limits: Limits,
    retention: Retention,
    placement: Placement,
    clock: Callable[[], float],
    rule_book: RuleBook | None,
    fail: Callable[[], None],
) -> Parts:
    """Make the parts of a supervisor, in the order in which a call passes them; `fail` stops the supervisor."""
    number_beyond(store.journal, str(home.state))
    environments, undo = Environments(Path(home.state) / "environments", os.environ), retention.undo.keep
    judge = Judge(
        *(store.board, environments, rules, clock, clients_rules),
        own=home,
        undo=undo,
        placement=placement,
        lost_denial=store.journal.damage.doubt_about,
    )
    looks = Examinations(judge, executor.connection if isinstance(executor, HasPlaces) else no_places)
    queue = ApprovalQueue(store, looks, clock, None if rule_book is None else rule_book.keep)
    orders, edits = StartOrders(store.board, environments, settings, limits, home), EditHistory(f"{home.state}/edits")
    unguarded, stall_monitor = UnguardedAgents(gaps, store.board, environments.of), StallMonitor(store, executor)
    owners = SessionOwners(store.board)
    pool = _pool(store, executor, orders, queue, owners, home=home, clock=clock, settings=settings, fail=fail)
    sessions = Sessions(store, environments, placement, clock, owners)
    return Parts(
        store=store,
        executor=executor,
        sessions=sessions,
        queue=queue,
        tickets=Tickets(store, judge, environments, queue.requeue_for_approval, clock=clock, keep_edit=edits.keep),
        caller_tools=CallerTools(store, judge, queue.requeue_for_approval, clock),
        pool=pool,
        pause=Pause(store, executor, clock),
        retention=retention,
        stall_monitor=stall_monitor,
        unguarded=unguarded,
        edits=edits,
        undos=UndoOfCalls(store, pool.previews.changes, edits, sessions.tell, clock),
        drafts=DraftSessions(
            store=store,
            open_drafts=pool.previews.drafts,
            changes=pool.previews.changes,
            queue=queue,
            sessions=sessions,
            environments=environments,
            probe=pool.previews.probe,
            clock=clock,
        ),
        queries=Queries(store, executor, stall_monitor, environments.of, edits, looks=looks, clock=clock, home=home),
        status=StatusReport(
            str(home.state), clock(), settings, store, executor, pool, retention, unguarded, judge.levels
        ),
    )


def _pool(
    store: Store,
    executor: Executor,
    orders: StartOrders,
    queue: ApprovalQueue,
    owners: SessionOwners,
    *,
    home: Directories,
    clock: Callable[[], float],
    settings: SupervisorSettings,
    fail: Callable[[], None],
) -> Pool:
    """Make the worker pool, with the previews whose changes it makes real."""
    store.fail = fail
    changes = KeptChanges(store=store, clock=clock, runs=Path(home.state) / "runs", own=tuple(map(str, home)))
    drafts = OpenDrafts(store, Path(home.state) / "drafts")
    orders.draft_of, queue.judge.has_draft = drafts.path, drafts.has
    probe = PreviewProbe(lambda: preview_support(str(home.state), home_of_user(), settings.previews))
    previews = Previews(
        store=store,
        executor=executor,
        judge=queue.judge,
        orders=orders,
        changes=changes,
        clock=clock,
        decide=queue.decide,
        probe=probe,
        held_back_s=settings.held_back_s,
        drafts=drafts,
    )
    queue.judge.view_problem = probe.view_problem
    return Pool(
        store=store,
        executor=executor,
        judge=queue.judge,
        placed=PlacedCalls(store, queue),
        orders=orders,
        previews=previews,
        ways=AttemptWays(changes, executor, orders.kept_files, clock, drafts),
        clock=clock,
        requeue=queue.requeue_for_approval,
        problem_at=_problems(executor, store),
        owner_of=owners.of,
        fail=fail,
    )


def _problems(executor: Executor, store: Store) -> Callable[[str], str | None]:
    """Return the function that says why nothing can be started at a place, and let the executor know the calls."""
    if not isinstance(executor, PlacedExecutors):
        return lambda _place: None
    executor.board = store.board
    return executor.problem_at
