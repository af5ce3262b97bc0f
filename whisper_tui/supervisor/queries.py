"""The read-only half of the API: answers from the journal, the board and the files of the runs."""

import asyncio
import logging
import os
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast

from whisper_tui import __version__
from whisper_tui.effects import effects_of
from whisper_tui.model.api import HistoryQuery, SupervisorStatus
from whisper_tui.model.call import CommandSpec, FileEdits, FileVersions, Session, UnaskedLevel
from whisper_tui.model.decision import LOOKED_AT, Coverage, Grant, Scope, SessionDenial
from whisper_tui.model.effects import Effects, UnknownEffect
from whisper_tui.model.ending import HandedOver
from whisper_tui.model.errors import Refused, Unavailable, UnknownCall
from whisper_tui.model.run import Echo, OutputChunk, OutputSpan, Stall, Stream, TerminalSize, UsageSample
from whisper_tui.model.state import CallRecord, Ended, Held, Queued, Running, Starting, Unjudged, Waiting
from whisper_tui.supervisor.approvals.command_files import ApprovedScripts
from whisper_tui.supervisor.approvals.judge import Examinations
from whisper_tui.supervisor.approvals.session_grants import PastCall, check_scope, coverage
from whisper_tui.supervisor.edit_history import EditHistory, current_versions
from whisper_tui.supervisor.health import UnguardedAgents
from whisper_tui.supervisor.journal.store import Store
from whisper_tui.supervisor.places.place_files import FarUser
from whisper_tui.supervisor.places.placed_executors import PlacedExecutors
from whisper_tui.supervisor.runs.executor import Executor, run_key
from whisper_tui.supervisor.runs.live_runs import StallMonitor, echo_of, is_alive
from whisper_tui.supervisor.runs.pool import Pool
from whisper_tui.supervisor.runs.retention import Retention
from whisper_tui.supervisor.runs.sandbox_profile import sandbox_description, sandbox_problem
from whisper_tui.supervisor.settings import SupervisorSettings
from whisper_tui.system.processes import is_process
from whisper_tui.system.state_directory import Directories

if TYPE_CHECKING:
    from whisper_tui.supervisor.runs.live_runs import UsageSampler

_log = logging.getLogger(__name__)

Result = TypeVar("Result")

READ_AT_ONCE = 25
"""Records of the history that are read before the event loop gets a turn."""

DISK_PATIENCE_S = 2.0
"""Seconds after which a look at the disk is given up: a file system may hang."""

EFFECTS_KEPT, EFFECTS_KEPT_S = 16, 1.0
"""Computed effects that are kept, and for how many seconds: the disk may change at any moment."""


class Queries:
    """The read-only half of the API: answers from the journal, the board and the files of the runs."""

    def __init__(
        self,
        store: Store,
        executor: Executor,
        stalls: StallMonitor,
        environment_of: Callable[[str], Mapping[str, str]],
        edits: EditHistory,
        *,
        looks: Examinations,
        clock: Callable[[], float],
        home: Directories,
    ) -> None:
        """`environment_of`: the environment of a session by its id."""
        self._edits = edits
        self._looks = looks
        self._own = tuple(os.path.realpath(directory) for directory in home)
        self._store = store
        self._executor = executor
        self._stalls = stalls
        self._sampler: asyncio.Task[UsageSampler] | None = None
        self._environment_of = environment_of
        self._clock = clock
        self._effects: OrderedDict[str, tuple[float, Effects]] = OrderedDict()
        """The newest effects of a few calls, and when they were computed."""
        self._scripts = ApprovedScripts(os.path.join(home.state, "approved-scripts"))  # noqa: PTH118
        self._disk = DiskThread()

    async def session(self, session_id: str) -> Session:
        """Return any session of the journal. Raises `Refused`."""
        session = self._store.session(session_id)
        if session is None:
            raise Refused(f"there is no session {session_id}", hint="Open one first")
        return session

    async def read_output(self, call_id: str, stream: Stream, offset: int, limit: int) -> OutputChunk:
        """Return a part of the recorded output; nothing before the first start."""
        record = self._store.call(call_id)
        if record.output_attempt is None:
            return OutputChunk(data=b"", start=0, size=0, ended=isinstance(record.state, Ended))
        chunk = self._executor.read_output(run_key(record), stream, offset, limit)
        return chunk.model_copy(update={"ended": False}) if isinstance(record.state, Starting) else chunk

    async def output_file(self, call_id: str, stream: Stream) -> str | None:
        """Path of the file that holds all of a stream. None: no file does."""
        record = self._store.call(call_id)
        return None if record.output_attempt is None else self._executor.output_file(run_key(record), stream)

    def input_file(self, call_id: str) -> str | None:
        """Path of the FIFO for the input of a command. None: it does not run, or takes no input."""
        record = self._store.call(call_id)
        return self._executor.input_file(run_key(record)) if isinstance(record.state, Running) else None

    def last_directory(self, call_id: str) -> str | None:
        """The last working directory of the shell of a call. None: it was not recorded, or is not known."""
        record = self._store.call(call_id)
        return self._executor.last_directory(run_key(record)) if isinstance(record.state, Ended) else None

    async def read_timeline(self, call_id: str, after: int, limit: int) -> tuple[OutputSpan, ...]:
        """Rows of the time index of the output."""
        record = self._store.call(call_id)
        return () if record.output_attempt is None else self._executor.read_timeline(run_key(record), after, limit)

    async def terminal_sizes(self, call_id: str) -> tuple[TerminalSize, ...]:
        """The sizes that the terminal of a command had, oldest first."""
        record = self._store.call(call_id)
        return (TerminalSize(),) if record.attempt is None else self._executor.terminal_sizes(run_key(record))

    async def usage(self, call_ids: tuple[str, ...]) -> dict[str, UsageSample]:
        """Measure the living processes of calls."""
        if self._sampler is None:
            # Loaded for the first who asks: psutil takes longer to load than a supervisor may take to start.
            self._sampler = asyncio.create_task(asyncio.to_thread(_sampler, self._store))
        return await (await asyncio.shield(self._sampler)).usage(call_ids)

    async def stalls(self) -> dict[str, Stall]:
        """The runs that are stopped or need input."""
        return self._stalls.now()

    async def echo(self, call_id: str) -> Echo | None:
        """Return the echo of the terminal of a running command."""
        state = self._store.call(call_id).state
        return echo_of(state.process) if isinstance(state, Running) and is_alive(state.process.leader) else None

    async def record(self, call_id: str) -> CallRecord:
        """Return any call of the journal. Raises `UnknownCall`."""
        return self._store.call(call_id)

    async def history(self, query: HistoryQuery) -> tuple[CallRecord, ...]:
        """Calls that match a query, newest first."""
        journal = self._store.journal
        # Only these queries read much of the table; the others use an index and answer within the loop's patience.
        takes_long = query.text or query.session is not None
        found = await journal.find_beside(query) if takes_long else journal.find(query)
        records: list[CallRecord] = []
        for number, call_id in enumerate(found, start=1):
            # A call whose first event is damaged cannot be shown. `verify` names it.
            with suppress(UnknownCall):
                records.append(self._store.call(call_id))
            # Records that the board has forgotten are read from the journal and replayed.
            if number % READ_AT_ONCE == 0:
                await asyncio.sleep(0)
        return tuple(records)

    async def grants(self, session_id: str | None = None) -> tuple[Grant, ...]:
        """The standing approvals that are in force."""
        shown = self._lasting_sessions(session_id)
        grants = self._store.board.grants.values()
        return tuple(grant for grant in grants if grant.revoked_at is None and grant.session_id in shown)

    async def denials(self, session_id: str | None = None) -> tuple[SessionDenial, ...]:
        """The session denials that are in force."""
        shown = self._lasting_sessions(session_id)
        return tuple(denial for denial in self._store.board.denials.values() if denial.session_id in shown)

    def _lasting_sessions(self, session_id: str | None) -> set[str]:
        """The sessions that are open or may be again, or of them the one with this id."""
        # A session that closed because its connection was lost has its approvals again if the same process comes back.
        sessions = self._store.board.sessions.values()
        return {session.id for session in sessions if session_id in {None, session.id} and _may_go_on(session)}

    async def would_cover(self, call_id: str, scope: Scope, edited: CommandSpec | None = None) -> Coverage:
        """Try a scope on the newest calls."""
        record = self._store.call(call_id)
        spec = edited or record.call.spec
        check_scope(scope, spec)
        session = self._store.session(record.call.session_id)
        records = await self.history(HistoryQuery(limit=LOOKED_AT))
        # Evaluating the policy for 500 calls takes a fraction of a second, in which the event loop must serve others.
        home = self._environment_of(record.call.session_id).get("HOME", "")
        reading = bool(self._looks.judge.rules_of(record.call.session_id).read_only)
        root = session.root if session else ""
        return await asyncio.to_thread(coverage, scope, spec, root, records, home, reading=reading)

    async def past_calls(self) -> tuple[PastCall, ...]:
        """The newest calls with their sessions, on which a draft of a rule is tried."""
        records = await self.history(HistoryQuery(limit=LOOKED_AT))
        return tuple((record, self._store.session(record.call.session_id)) for record in records)

    async def effects(self, call_id: str) -> Effects:
        """State what a call that has not started would change. Raises `Refused` for any other."""
        record = self._store.call(call_id)
        if not isinstance(record.state, Unjudged | Waiting | Held | Queued):
            message = f"the effects of call {call_id} cannot be stated any more: it has started, or is over"
            raise Refused(message, hint=f"whisper-tui show {call_id} prints its outcome")
        known = self._effects.get(call_id)
        # The cockpit and others may ask at every redraw.
        if known is not None and 0 <= self._clock() - known[0] < EFFECTS_KEPT_S:
            return known[1]
        session, spec = self._store.session(record.call.session_id), record.spec
        environment = {**self._environment_of(record.call.session_id), **spec.environment}
        roots = (session.root,) if session is not None and session.root else (spec.cwd,)

        def compute() -> Effects:
            find = self._scripts.find
            return effects_of(spec.command, spec.cwd, roots, environment, approved=find, closed=self._own)

        def compute_there(user: FarUser) -> Effects:
            return effects_of(spec.command, spec.cwd, (spec.cwd,), {**user.environment, **spec.environment})

        try:
            if spec.place:
                found = await self._looks.look_at(spec.place, compute_there, spec.cwd)
            else:
                found = await self._disk.run(compute)
        except (TimeoutError, Unavailable) as error:
            why = error.message if isinstance(error, Unavailable) else "the disk has not answered in time"
            unknown = UnknownEffect(about="everything", command="", reason=why)
            return Effects(directory=spec.cwd, unknown=(unknown,), complete=False)
        self._effects[call_id] = (self._clock(), found)
        self._effects.move_to_end(call_id)
        if len(self._effects) > EFFECTS_KEPT:
            self._effects.popitem(last=False)
        return found

    async def file_versions(self, call_id: str) -> tuple[FileVersions, ...]:
        """Contents of the files of an edit before and after it."""
        record = self._store.call(call_id)
        if not isinstance(record.spec.command, FileEdits):
            return ()
        session = self._store.session(record.call.session_id)
        root = session.root if session is not None and session.root else record.spec.cwd
        home = self._environment_of(record.call.session_id).get("HOME") or os.path.expanduser("~")  # noqa: PTH111

        def look() -> tuple[FileVersions, ...]:
            if isinstance(record.state, Ended) and isinstance(record.state.ending, HandedOver):
                return self._edits.versions(record)
            return current_versions(record.spec, (root,), home, self._own)

        try:
            return await self._disk.run(look)
        except TimeoutError:
            files = record.resolved.edits if record.resolved is not None else ()
            return tuple(FileVersions(file=file, not_shown="the disk has not answered in time") for file in files)

    def keep_approved(self, record: CallRecord) -> None:
        """Keep the scripts of a call that a human has approved as it was asked, to show what changes until the next."""
        code = record.resolved.code if record.resolved is not None else ()
        # These texts are known by their paths on this machine.
        if code and record.decided_by_human and not record.edited and not record.spec.place:
            self._disk.run_later(lambda: self._scripts.keep(record.id, code))


class DiskThread:
    """One thread for looks at the disk that nobody may wait for: a file system that hangs holds this one alone."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def run_later(self, job: Callable[[], object]) -> None:
        """Run a job after those before it."""
        if self._thread is None:
            # A daemon: a supervisor that stops does not wait for a disk, either.
            self._thread = threading.Thread(target=self._work, name="disk", daemon=True)
            self._thread.start()
        self._jobs.put(job)

    async def run(self, job: Callable[[], Result]) -> Result:
        """Return the result of a job. Raises `TimeoutError` if it has none in time."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()

        def tell(result: Result | None, error: Exception | None) -> None:
            if not future.done():
                future.set_result(cast(Result, result)) if error is None else future.set_exception(error)

        def carry_out() -> None:
            result, error = None, None
            if not future.cancelled():
                try:
                    result = job()
                except Exception as problem:  # noqa: BLE001 whoever asked is told
                    error = problem
                with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    loop.call_soon_threadsafe(tell, result, error)

        self.run_later(carry_out)
        return await asyncio.wait_for(future, DISK_PATIENCE_S)

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            try:
                job()
            except Exception:  # noqa: BLE001 the thread serves others, too
                _log.exception("looking at the disk failed")


def _sampler(store: Store) -> "UsageSampler":
    from whisper_tui.supervisor.runs.live_runs import UsageSampler

    return UsageSampler(store.board.calls.get)


def _may_go_on(session: Session) -> bool:
    return session.closed_at is None or (session.pid is not None and is_process(session.pid, session.started))


FULL_BELOW = 256 * 1024
"""Free bytes below which a disk counts as full."""

NAMED_AGENTS = 20
"""Connected agents that `status` names."""


@dataclass(frozen=True)
class StatusReport:
    """States the counts, settings and problems of a supervisor."""

    home: str
    """Its state directory."""
    started_at: float
    settings: SupervisorSettings
    store: Store
    executor: Executor
    pool: Pool
    retention: Retention
    unguarded: UnguardedAgents
    levels: Callable[[], dict[str, UnaskedLevel]]
    """How much runs unasked, by session."""

    def _previews(self) -> str:
        found = self.pool.previews.probe.support
        return "" if found is None else found.words

    def _problem(self) -> str | None:
        """Return what is wrong with the disk or the journal although nothing has failed yet."""
        try:
            disk = os.statvfs(self.home)
        except OSError as error:
            return f"{self.home} cannot be used: {error.strerror}"
        if disk.f_bavail * disk.f_frsize < FULL_BELOW or (disk.f_files and not disk.f_favail):
            return f"the disk of {self.home} is full. Make room on it; whisper-tui prune removes recorded output"
        return self.store.journal.problem

    def now(self, notify_problem: str) -> SupervisorStatus:
        """Return the status as it is now; `notify_problem`: why the last notification failed, if it did."""
        board = self.store.board
        queue = self.pool.queue_reasons()
        any_reason = queue.unasked or queue.approved or next(iter(queue.sessions.values()), None)
        connected = [session.name for session in board.sessions.values() if session.closed_at is None]
        return SupervisorStatus(
            version=__version__,
            pid=os.getpid(),
            started_at=self.started_at,
            workers=self.settings.workers,
            waiting=len(board.waiting),
            aside=len(board.aside),
            queued=len(board.queued),
            running=len(board.running),
            home=self.home,
            paused_since=board.paused.at if board.paused else None,
            paused_by=board.paused.by if board.paused else None,
            problem=self.store.health.problem or self.executor.problem or self._problem(),
            busy=any_reason.words_for_agents() if any_reason else "",
            queue=queue,
            agents=len(connected),
            agent_names=tuple(connected[:NAMED_AGENTS]),
            keeps=self.retention.words,
            counts=self.executor.counts,
            sandbox=sandbox_description(),
            sandbox_problem=sandbox_problem() or None,
            previews=self._previews(),
            notify_problem=notify_problem,
            unguarded=self.unguarded.sentences(),
            now=time.time(),
            unasked=self.levels(),
            places=self.executor.states() if isinstance(self.executor, PlacedExecutors) else (),
        )
