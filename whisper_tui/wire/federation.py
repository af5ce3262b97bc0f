"""One API over the supervisors of several machines: their queues merged, each request sent to the machine it is about.

Nothing is decided, kept or run here. An id has the name of its machine before it, `gpu1:7`, and is sent without. What
approvers saw is bound by a digest that holds no ids, so it is the same here and there (decision 31).
"""

import asyncio
import functools
import inspect
import itertools
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Protocol, Self

from whisper_tui import __version__
from whisper_tui.model.api import HistoryQuery, Presence, Supervision, SupervisorStatus
from whisper_tui.model.board import Board
from whisper_tui.model.call import Session, ToolCall, UnaskedLevel
from whisper_tui.model.decision import Coverage, Decider, Grant, SessionDenial
from whisper_tui.model.draft import DraftApplied, DraftApply, DraftPage, SessionDraft
from whisper_tui.model.errors import (
    BrokenHistory,
    InvalidRequest,
    OtherVersion,
    Unavailable,
    UnknownCall,
    WhisperError,
)
from whisper_tui.model.event import (
    AnyEvent,
    DenialAdded,
    Event,
    Granted,
    Paused,
    PhoneChanged,
    PhoneYes,
    Resumed,
    Reviewed,
    RulesChanged,
    SessionOpened,
    Spawned,
    Submitted,
    UnaskedSet,
)
from whisper_tui.model.preview import CallsUndone, UndoOrder
from whisper_tui.model.run import RunProcess, Stall, Stream, UsageSample
from whisper_tui.model.state import CallRecord, Ended, HostState, PlaceState, Running
from whisper_tui.wire.operations import OPERATIONS, Operation

RETRIES_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Pauses between attempts to reach a machine; the last repeats, each up to a quarter longer by chance."""
ANSWER_S = 30.0
"""Seconds that a machine has to answer a request that does not wait for anybody."""
STATUS_S = 5.0
"""Seconds that it has to report its state, which is asked for every second."""
SAME_CLOCK_S = 2.0
"""Difference of two clocks that is not corrected: the answer takes as long to travel."""
BATCHES_AHEAD = 8
"""Batches of events of all machines that wait for a slow reader."""
MOST_CALLS = 250_000
"""Calls, or sessions, that one machine may have on the board: more than a supervisor accepts."""
EVENTS_AT_ONCE = 50
"""Events that are translated before keys and drawing get their turn."""

IDS = ("call_id", "session_id", "grant_id", "denial_id", "place_name")
"""The arguments that say which machine a request is about."""


class HostClient(Supervision, Protocol):
    """A connection to the supervisor of one machine."""

    async def close(self) -> None:
        """End it."""
        ...


class Transport(Protocol):
    """The way to the supervisor of one machine."""

    name: str

    def client(self) -> HostClient:
        """Return a client, which connects with its first request."""
        ...

    def explain(self, error: WhisperError) -> WhisperError:
        """Return the reason for a lost connection, if more is known than that it was lost."""
        ...

    def close(self) -> None:
        """End what leads there."""
        ...


Put = Callable[["FederatedHost", tuple[Event, ...]], Awaitable[None]]
"""Takes events of a machine as it has sent them, and waits while there are too many."""


class FederatedHost:
    """One machine: its connection, its clock, and the last event that was received from it."""

    def __init__(self, transport: Transport, clock: Callable[[], float]) -> None:
        self.name = transport.name
        self.client: HostClient | None = None
        """Its client. None: it is not reached."""
        self.state = HostState(name=self.name, since=clock())
        self.paused: Paused | None = None
        self._transport = transport
        self._clock = clock
        self._seq: int | None = None
        self._newest: ToolCall | None = None
        """The last call that came from it, by which its journal is recognized."""
        self._ahead_s = 0.0
        """Seconds that its clock is ahead of ours."""
        self._board = Board()
        """Its calls as its own events make them up."""

    async def follow(self, put: Put) -> None:
        """Connect again and again, and hand over its events. Raises `NewJournal`."""
        attempt = 0
        while True:
            client = self._transport.client()
            try:
                marked = await self._greet(client)
                # What is missing since the last event follows; nothing that is known is sent again.
                if self._seq is not None or not marked:
                    self._reached(client)
                if not marked:
                    await put(self, ())
                await self._receive(client, put)
            except NewJournal:
                raise
            except WhisperError as error:
                attempt = 0 if self.client is not None else attempt
                self._lost(await asyncio.to_thread(self._transport.explain, error))
                if self._seq is None:
                    await put(self, ())  # All that is known of it, which is nothing.
            finally:
                self.client = None
                await client.close()
            pause = RETRIES_S[min(attempt, len(RETRIES_S) - 1)]
            attempt += 1
            # Many cockpits lose a machine at the same moment, and must not come back at the same one.
            await asyncio.sleep(pause * random.uniform(1.0, 1.25))  # noqa: S311

    async def _receive(self, client: HostClient, put: Put) -> None:
        """Hand over events until the connection is lost. Those that make up a board come together (decision 31)."""
        whole: list[Event] = []
        async with aclosing(client.watch(self._seq)) as batches:  # type: ignore[type-var]
            async for events in batches:
                if self.client is None and events:
                    # Half of them would be shown as if it were all, and sent again after a lost connection.
                    whole += events
                    continue
                news = tuple(whole) or events
                broken = self._first_unsound(news)
                if broken is not None:
                    # Half of a first board is no board; later, what came before is true.
                    news = news[: broken[0]] if self._seq is not None else ()
                for start in range(0, len(news), EVENTS_AT_ONCE):
                    await put(self, news[start : start + EVENTS_AT_ONCE])
                if self._seq is not None or (not events and broken is None):
                    first = self._seq is None
                    self._seq = max((event.seq for event in news), default=self._seq or 0)
                    if first:
                        await put(self, ())
                if broken is not None:
                    raise Unavailable(f"what the machine {self.name} sends is not sound: {broken[1]}")
                whole.clear()
                if self.client is None:
                    self._reached(client)
        raise Unavailable("the supervisor has stopped")

    def _first_unsound(self, events: Sequence[Event]) -> tuple[int, str] | None:
        """Return the number of the first event that a board cannot take, and why. None: there is none.

        The cockpit has one board for all machines, which one of them must neither break nor fill.
        """
        for at, event in enumerate(events):
            try:
                self._board.apply(event)
            except BrokenHistory as error:
                why = error.message
            else:
                if len(self._board.calls) <= MOST_CALLS and len(self._board.sessions) <= MOST_CALLS:
                    continue
                why = f"more than {MOST_CALLS:,} calls or sessions"
            if self._seq is None:
                self._board = Board()
            return at, why
        return None

    def _reached(self, client: HostClient) -> None:
        self.client = client
        self.state = HostState(name=self.name, reached=True, since=self._clock())

    async def _greet(self, client: HostClient) -> bool:
        """Compare clocks and journals. Return True if the supervisor says when all of its board was sent."""
        began = self._clock()
        async with within(ANSWER_S, self.name):
            status = await client.status()
        self._ahead_s = 0.0
        if status.now is not None:
            ahead = status.now - (began + self._clock()) / 2
            self._ahead_s = ahead if abs(ahead) > SAME_CLOCK_S else 0.0
        if self._newest is not None:
            await self._check_journal(client, self._newest)
        return status.now is not None

    async def _check_journal(self, client: HostClient, newest: ToolCall) -> None:
        """Raise `NewJournal` if the machine does not know the last call that came from it."""
        with suppress(UnknownCall):
            known = await client.record(newest.id)
            if known.call.submitted_at == newest.submitted_at:
                return
        # Events are numbered by the journal: after the last number of the old one, a new one would be silent.
        raise NewJournal(f"the machine {self.name} has begun a new journal")

    def _lost(self, error: WhisperError) -> None:
        if isinstance(error, OtherVersion):
            advice = f"To have version {__version__} there, too: whisper-tui bring {self.name}"
            error = OtherVersion(error.message, hint=advice)
        since = self.state.since if self.state.reached is False else self._clock()
        self.state = HostState(name=self.name, reached=False, since=since, problem=error.sentence())

    def close(self) -> None:
        """End what leads there."""
        self._transport.close()

    async def ask(self, name: str, arguments: Mapping[str, Any], seconds: float | None = ANSWER_S) -> Any:
        """Send a request with the machine's own ids, and return the answer with ours. Raises `WhisperError`."""
        if self.client is None:
            raise self.unreached()
        async with within(seconds, self.name):
            own = {key: self.own(value) if key in IDS else value for key, value in arguments.items()}
            answer = await getattr(self.client, name)(**own)
        return self.ours(answer)

    def unreached(self) -> Unavailable:
        """Return the error of a request that cannot be sent."""
        problem = self.state.problem.rstrip(".") or "the first connection is being made"
        return Unavailable(
            f"the machine {self.name} cannot be reached, so nothing was done: {problem}", hint="It is tried again"
        )

    def own(self, value: Any) -> Any:
        """Return an argument as the machine knows it."""
        prefix = f"{self.name}:"
        return value.removeprefix(prefix) if isinstance(value, str) and value.startswith(prefix) else value

    def name_of(self, id_: str) -> str:
        """Return an id of the machine as it is known here."""
        return f"{self.name}:{id_}"

    def ours(self, value: Any) -> Any:
        """Return an answer with the ids and the times of this machine."""
        match value:
            case CallRecord():
                return self._record(value)
            case Session():
                return self._session(value)
            case Grant():
                return self._grant(value)
            case SessionDenial():
                return self._denial(value)
            case Coverage():
                return value.model_copy(update={"calls": tuple(map(self.name_of, value.calls))})
            case PlaceState(name=name, since=since):
                return value.model_copy(update={"name": self.name_of(name), "since": self._time(since)})
            case SessionDraft():
                return self._draft(value)
            case DraftPage():
                changes = (
                    each.model_copy(update={"calls": tuple(map(self.name_of, each.calls))}) for each in value.changes
                )
                return value.model_copy(update={"draft": self._draft(value.draft), "changes": tuple(changes)})
            case DraftApplied():
                named = None if value.call_id is None else self.name_of(value.call_id)
                calls = tuple(map(self.name_of, value.calls))
                return value.model_copy(update={"call_id": named, "calls": calls})
            case tuple():
                return tuple(map(self.ours, value))
            case _:
                return value

    def _draft(self, draft: SessionDraft) -> SessionDraft:
        change: dict[str, object] = {
            "session_id": self.name_of(draft.session_id),
            "started_at": self._time(draft.started_at),
            "running": None if draft.running is None else self.name_of(draft.running),
        }
        return draft.model_copy(update=change)

    def event(self, event: AnyEvent, number: int) -> Event:
        """Return an event with the ids and the times of this machine."""
        change: dict[str, Any] = {"seq": number, "at": self._time(event.at)}
        for name in (*IDS, "from_call", "about", "device_id"):
            if (id_ := getattr(event, name, None)) is not None:
                change[name] = self.name_of(id_)
        match event:
            case SessionOpened(session=session):
                change["session"] = self._session(session)
            case Submitted(call=call):
                self._newest = call
                change["call"] = self._call(call)
            case Granted(grant=grant):
                change["grant"] = self._grant(grant)
            case DenialAdded(denial=denial):
                change["denial"] = self._denial(denial)
            case Spawned(process=process):
                change["process"] = self._process(process)
            case RulesChanged(path=path):
                change["path"] = self.name_of(path)
            case UnaskedSet(level=level):
                change["level"] = self._level(level)
            case Reviewed(until=until) | PhoneYes(until=until):
                change["until"] = self._time(until)
            case PhoneChanged():
                change["name"] = self.name_of(event.name)
                change["may_approve_from"] = self._time(event.may_approve_from)
            case Paused() | Resumed():
                self.paused = event if isinstance(event, Paused) else None
        return event.model_copy(update=change)

    def _time(self, at: float | None) -> float | None:
        return at - self._ahead_s if at is not None else None

    def theirs(self, at: float) -> float:
        """Return our time as the machine counts it."""
        return at + self._ahead_s

    def _session(self, session: Session) -> Session:
        times = {"opened_at": self._time(session.opened_at), "closed_at": self._time(session.closed_at)}
        said = {"id": self.name_of(session.id), "unasked": self._level(session.unasked)}
        return session.model_copy(update={**said, **times})

    def _level(self, level: UnaskedLevel | None) -> UnaskedLevel | None:
        return level.model_copy(update={"until": self._time(level.until)}) if level is not None else None

    def _call(self, call: ToolCall) -> ToolCall:
        ids = {"id": self.name_of(call.id), "session_id": self.name_of(call.session_id)}
        return call.model_copy(update={**ids, "submitted_at": self._time(call.submitted_at)})

    def _grant(self, grant: Grant) -> Grant:
        ids = {name: self.name_of(getattr(grant, name)) for name in ("id", "session_id", "from_call")}
        times = {name: self._time(getattr(grant, name)) for name in ("granted_at", "until", "revoked_at")}
        return grant.model_copy(update={**ids, **times})

    def _denial(self, denial: SessionDenial) -> SessionDenial:
        ids = {"id": self.name_of(denial.id), "session_id": self.name_of(denial.session_id)}
        return denial.model_copy(update={**ids, "denied_at": self._time(denial.denied_at)})

    def _process(self, process: RunProcess) -> RunProcess:
        return process.model_copy(update={"started_at": self._time(process.started_at)})

    def _record(self, record: CallRecord) -> CallRecord:
        change: dict[str, Any] = {"call": self._call(record.call), "decided_at": self._time(record.decided_at)}
        state: dict[str, Any] = {}
        for name in ("since", "at"):
            if (at := getattr(record.state, name, None)) is not None:
                state[name] = self._time(at)
        if record.aside is not None:
            state["aside"] = record.aside.model_copy(update={"since": self._time(record.aside.since)})
        if (yes := record.pending_yes) is not None:
            state["yes"] = yes.model_copy(update={"until": self._time(yes.until)})
        if isinstance(record.state, Running | Ended) and record.state.process is not None:
            state["process"] = self._process(record.state.process)
        change["state"] = record.state.model_copy(update=state)
        if record.preview is not None:
            began = {"started_at": self._time(record.preview.started_at)}
            change["preview"] = record.preview.model_copy(update=began)
        if record.alarms:
            change["alarms"] = tuple(each.model_copy(update={"at": self._time(each.at)}) for each in record.alarms)
        if record.undo is not None:
            change["undo"] = record.undo.model_copy(update={"at": self._time(record.undo.at)})
        return record.model_copy(update=change)

    def stall(self, stall: Stall) -> Stall:
        """Return why a run gets no further, with our time."""
        return stall.model_copy(update={"silent_since": self._time(stall.silent_since)})


class NewJournal(Unavailable):
    """The journal of a machine is not the one that its events came from: all of them have to be received again."""


@asynccontextmanager
async def within(seconds: float | None, name: str) -> AsyncIterator[None]:
    """Give a machine so many seconds to answer. None: any. Raises `Unavailable`."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise Unavailable(
            f"the machine {name} has not answered for {seconds:g} s, and may have received the request",
            hint="Look at the call before you try again",
        ) from None


def _route(operation: Operation) -> Callable[..., Any]:
    """Return the method that sends one operation to the machine that its ids name."""
    declared = getattr(Supervision, operation.name)
    bind = inspect.signature(declared).bind

    @functools.wraps(declared)
    async def routed(self: "Federation", *given: Any, **named: Any) -> Any:
        arguments = bind(self, *given, **named).arguments
        del arguments["self"]
        id_ = next((arguments[name] for name in IDS if arguments.get(name)), None)
        if id_ is None:
            raise InvalidRequest(
                f"{operation.name!r} is about one machine, and this cockpit shows several",
                hint="Use the cockpit of that machine, for example: ssh -t HOST whisper-tui",
            )
        host = self.host_of(id_)
        answer = await host.ask(operation.name, arguments, None if operation.patient else ANSWER_S)
        # The id of a new denial is the one text that is an id.
        return host.name_of(answer) if operation.name == "deny_for_session" else answer

    return routed


def _with_routes(federation: type["Federation"]) -> type["Federation"]:
    """Add every operation of the API that the class does not implement itself."""
    for operation in OPERATIONS.values():
        if hasattr(Supervision, operation.name) and operation.name not in vars(federation):
            setattr(federation, operation.name, _route(operation))
    return federation


@_with_routes
class Federation(Supervision):
    """The API over several machines. Operations that name none of them are answered by all that are reached."""

    def __init__(self, transports: Sequence[Transport], clock: Callable[[], float] = time.time) -> None:
        self._hosts = {transport.name: FederatedHost(transport, clock) for transport in transports}
        self._clock = clock
        self._started_at = clock()
        self._numbers = itertools.count(1)

    @classmethod
    def of(cls, transports: Sequence[Transport], clock: Callable[[], float] = time.time) -> Self:
        """Return the API over the machines at the ends of these."""
        # Only the class itself can create instances, because mypy believes that the derived methods are missing.
        return cls(transports, clock)

    def host_of(self, id_: str) -> FederatedHost:
        """Return the machine that an id belongs to. Raises `UnknownCall`."""
        host = self._hosts.get(id_.rpartition(":")[0])
        if host is None:
            raise UnknownCall(f"{id_} is on no machine of this cockpit", hint=f"There are {', '.join(self._hosts)}")
        return host

    def close(self) -> None:
        """End what leads to the machines."""
        for host in self._hosts.values():
            host.close()

    @property
    def _reached(self) -> list[FederatedHost]:
        return [host for host in self._hosts.values() if host.client is not None]

    async def watch(self, after: int | None = None) -> AsyncIterator[tuple[Event, ...]]:
        """Yield the events of all machines, numbered anew, endlessly, and an empty batch after the board of each.

        Raises `NewJournal`.
        """
        batches: asyncio.Queue[tuple[Event, ...] | WhisperError] = asyncio.Queue(BATCHES_AHEAD)

        async def put(host: FederatedHost, events: tuple[Event, ...]) -> None:
            told: list[Event] = []
            for event in events:
                ours = host.event(event, next(self._numbers))
                # A board knows one level of all sessions, and each machine has one.
                if isinstance(ours, UnaskedSet) and ours.session_id is None:
                    continue
                # A board knows one pause: it lasts until the last machine goes on.
                if not isinstance(ours, Resumed) or not any(each.paused for each in self._hosts.values()):
                    told.append(ours)
            await batches.put(tuple(told))

        async def follow(host: FederatedHost) -> None:
            try:
                await host.follow(put)
            except WhisperError as error:
                await batches.put(error)

        following = [asyncio.create_task(follow(host)) for host in self._hosts.values()]
        try:
            while not isinstance(batch := await batches.get(), WhisperError):
                yield batch
            raise batch
        finally:
            for task in following:
                task.cancel()
            await asyncio.wait(following)

    watch_board = Supervision.watch_board  # As events: the ids in a packed record are those of its own machine.

    async def _all(self, name: str, seconds: float = ANSWER_S, **arguments: Any) -> list[tuple[FederatedHost, Any]]:
        """Ask all machines that are reached, and return their answers. One that fails is left out."""

        async def ask(host: FederatedHost) -> tuple[FederatedHost, Any] | None:
            with suppress(WhisperError):
                return host, await host.ask(name, arguments, seconds)
            return None

        answers = await asyncio.gather(*map(ask, self._reached))
        return [answer for answer in answers if answer is not None]

    async def _everywhere(self, name: str, **arguments: Any) -> None:
        """Have all machines do something. Raises `Unavailable` naming those that are not known to have done it."""
        done = {host.name for host, _ in await self._all(name, **arguments)}
        if missing := [name for name in self._hosts if name not in done]:
            raise Unavailable(f"not done on {', '.join(missing)}", hint="Look at them, then try again")

    async def pause(self, by: Decider) -> None:
        """Pause all machines."""
        await self._everywhere("pause", by=by)

    async def resume(self, by: Decider) -> None:
        """Resume all machines."""
        await self._everywhere("resume", by=by)

    async def mark_reviewed(self, until: float, by: Decider) -> None:
        """Note a review on all machines."""
        for host in self._reached:
            await host.ask("mark_reviewed", {"until": host.theirs(until), "by": by})

    async def report_presence(self, presence: Presence) -> None:
        """Report to all machines that are reached; the others notify as if nobody were there."""
        await self._all("report_presence", STATUS_S, presence=presence)

    async def history(self, query: HistoryQuery) -> tuple[CallRecord, ...]:
        """Return the past calls of one session, or of one machine."""
        host = self.host_of(query.session_id) if query.session_id else None
        if host is None:
            raise InvalidRequest(
                "each machine has its own history", hint="Select a call of one, or: whisper-tui history --host all"
            )
        own = query.model_copy(update={"session_id": host.own(query.session_id) or None})
        return tuple(await host.ask("history", {"query": own}))

    async def output_file(self, call_id: str, stream: Stream) -> str | None:
        """None: the file is on the machine of the call."""
        return None

    async def usage(self, call_ids: tuple[str, ...]) -> dict[str, UsageSample]:
        """Measure the processes of calls on all machines."""
        found: dict[str, UsageSample] = {}

        async def measure(host: FederatedHost) -> None:
            own = tuple(host.own(id_) for id_ in call_ids if id_.startswith(f"{host.name}:"))
            with suppress(WhisperError):
                samples = await host.ask("usage", {"call_ids": own}, STATUS_S) if own else {}
                found.update({host.name_of(id_): sample for id_, sample in samples.items()})

        # All at once: one that does not answer must not stand before the others.
        await asyncio.gather(*map(measure, self._reached))
        return found

    async def undo_calls(self, order: UndoOrder, by: Decider) -> CallsUndone:
        """Undo calls of several machines, on each those that are its own."""
        found = list[CallsUndone]()
        for host in self._hosts.values():
            own = tuple(host.own(id_) for id_ in order.call_ids if self.host_of(id_) is host)
            if own:
                asked = {"order": order.model_copy(update={"call_ids": own}), "by": by}
                found.append(_named_undo(host, await host.ask("undo_calls", asked)))
        return CallsUndone(
            calls=tuple(id_ for each in found for id_ in each.calls),
            files=tuple(file for each in found for file in each.files),
            total=sum(each.total for each in found),
            left_out=tuple(left for each in found for left in each.left_out),
        )

    async def drafts(self) -> tuple[SessionDraft, ...]:
        """Return the drafts of all machines."""
        return tuple(draft for _, drafts in await self._all("drafts") for draft in drafts)

    async def apply_draft(self, order: DraftApply, by: Decider) -> DraftApplied:
        """Apply a draft on its machine."""
        host = self.host_of(order.session_id)
        calls = tuple(map(host.own, order.calls))
        own = order.model_copy(update={"session_id": host.own(order.session_id), "calls": calls})
        applied: DraftApplied = await host.ask("apply_draft", {"order": own, "by": by})
        return applied

    async def stalls(self) -> dict[str, Stall]:
        """Return the runs of all machines that are stopped or need input."""
        answers = await self._all("stalls", STATUS_S)
        return {host.name_of(id_): host.stall(stall) for host, found in answers for id_, stall in found.items()}

    async def grants(self, session_id: str | None = None) -> tuple[Grant, ...]:
        """Return the standing approvals of a session, or of all machines."""
        if session_id is not None:
            return tuple(await self.host_of(session_id).ask("grants", {"session_id": session_id}))
        return tuple(grant for _, grants in await self._all("grants") for grant in grants)

    async def denials(self, session_id: str | None = None) -> tuple[SessionDenial, ...]:
        """Return the session denials of a session, or of all machines."""
        if session_id is not None:
            return tuple(await self.host_of(session_id).ask("denials", {"session_id": session_id}))
        return tuple(denial for _, found in await self._all("denials") for denial in found)

    async def status(self) -> SupervisorStatus:
        """Return the sums of all machines, with the first problem, and how each is reached."""
        told = await self._all("status", STATUS_S)
        problems = [f"{host.name}: {status.problem}" for host, status in told if status.problem]
        numbers = ("workers", "waiting", "aside", "queued", "running", "agents")
        return SupervisorStatus(
            version=__version__,
            pid=os.getpid(),
            started_at=self._started_at,
            home="",
            problem=problems[0] if problems else None,
            unguarded=tuple(f"{host.name}: {sentence}" for host, status in told for sentence in status.unguarded),
            now=self._clock(),
            hosts=tuple(host.state for host in self._hosts.values()),
            places=tuple(host.ours(place) for host, status in told for place in status.places),
            **{name: sum(getattr(status, name) for _, status in told) for name in numbers},
        )


def _named_undo(host: FederatedHost, found: CallsUndone) -> CallsUndone:
    """Return what a machine undoes with the names that its calls have here."""
    files = (file.model_copy(update={"calls": tuple(map(host.name_of, file.calls))}) for file in found.files)
    left = (each.model_copy(update={"call_id": host.name_of(each.call_id)}) for each in found.left_out)
    calls = tuple(map(host.name_of, found.calls))
    return found.model_copy(update={"calls": calls, "files": tuple(files), "left_out": tuple(left)})
