"""The sessions of agents, and the environment that their commands inherit."""

import asyncio
import errno
import json
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from whisper_tui.model.api import PRESENCE_LASTS_S, Presence
from whisper_tui.model.board import Board
from whisper_tui.model.call import LONGEST_NAME, ClientInfo, Session, SessionHello
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import InvalidRequest, JournalFailed, Refused, Unavailable
from whisper_tui.model.event import (
    LONGEST_SAID,
    Event,
    GrantRevoked,
    SessionClosed,
    SessionDescribed,
    SessionOpened,
    SessionResumed,
    SessionSaid,
    UnaskedSet,
)
from whisper_tui.model.state import ShellReport
from whisper_tui.policy.rules.grants import grant_is_over
from whisper_tui.supervisor.approvals.admission import MOST_SESSIONS
from whisper_tui.supervisor.journal.journal import check_storable
from whisper_tui.supervisor.journal.store import Store
from whisper_tui.supervisor.places.place_settings import Placement
from whisper_tui.system.processes import find_process, is_process
from whisper_tui.system.session_opener import agent_of_process


class SessionOwners:
    """The owner of each session: the agent that has opened it. Turns and limits are by owner (decision 15).

    Nothing is journaled: each connection of an agent shows its owner anew.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self._known: OrderedDict[str, str] = OrderedDict()

    def note(self, session: Session, opener: str) -> None:
        """Remember which agent has opened or resumed a session. `opener` is empty if this process itself has."""
        # Nothing shows which processes of a place belong together, so all agents there count as one.
        self._known[session.id] = f"place {session.place}" if session.relayed else opener or f"session {session.id}"
        self._known.move_to_end(session.id)
        if len(self._known) > MOST_SESSIONS:
            self._known.popitem(last=False)

    def of(self, session_id: str) -> str:
        """Return the owner of a session. After a restart it is that of the agent's process, until that comes back."""
        session = self._board.sessions.get(session_id)
        if session_id not in self._known and session is not None:
            pid = session.pid if session.closed_at is None else None
            is_there = pid is not None and is_process(pid, session.started)
            self.note(session, agent_of_process(pid) if pid is not None and is_there else "")
        return self._known.get(session_id, f"session {session_id}")


MOST_COCKPITS = 64
"""Cockpits whose reports are kept, the newest."""


class CockpitPresences:
    """The cockpits with somebody at them. Nothing of it is journaled: a cockpit that is gone reports no more."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._reports: OrderedDict[str, tuple[Presence, float]] = OrderedDict()

    def report(self, presence: Presence) -> None:
        """Keep a report in place of the earlier one of the same cockpit."""
        self._reports[presence.cockpit] = presence, self._clock()
        self._reports.move_to_end(presence.cockpit)
        if len(self._reports) > MOST_COCKPITS:
            self._reports.popitem(last=False)

    @property
    def somebody(self) -> bool:
        """True if somebody is at any cockpit."""
        return any(presence.present for presence in self._current())

    @property
    def muted(self) -> bool:
        """True if the person at any cockpit has switched notifications off."""
        return any(presence.muted for presence in self._current())

    def _current(self) -> Iterator[Presence]:
        after = self._clock() - PRESENCE_LASTS_S
        return (presence for presence, at in self._reports.values() if at > after)


SHELL = ".shell.json"
"""The end of the name of the file about a session's shell."""

KNOWN = 50
"""Limit of environments that are held in memory."""


NOT_LEARNED = frozenset({"_", "SHLVL", "PWD", "OLDPWD"})
"""Variables that a shell sets for each command."""

NO_SHELL = ShellReport(names=())


class _SessionEnvironment(NamedTuple):
    """The environment of one session."""

    given: dict[str, str]
    """The agent's own."""
    shell: ShellReport
    """The changes that its shell makes, as far as a ticket has shown them."""

    def merged(self) -> dict[str, str]:
        """Return the environment of the agent's shell."""
        if not self.shell.names:
            return self.given
        names = {*self.shell.names, *NOT_LEARNED}
        merged = {name: value for name, value in self.given.items() if name in names} | self.shell.environment
        # The profile of a login shell may drop the directory of the agent's helpers, such as `apply_patch` of Codex.
        paths = [environment.get("PATH", "").split(os.pathsep) for environment in (self.shell.environment, self.given)]
        if all(map(any, paths)):
            merged["PATH"] = os.pathsep.join((*paths[0], *(each for each in paths[1] if each not in paths[0])))
        return merged


class Environments:
    """Two files for each session that still needs them, readable by the user alone."""

    def __init__(self, directory: Path, own: Mapping[str, str]) -> None:
        self._directory = directory
        self._own = dict(own)
        """Environment of sessions that have none of their own."""
        self._known: OrderedDict[str, _SessionEnvironment] = OrderedDict()
        """LRU cache; the other environments are read from their files when they are needed."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def keep(self, session_id: str, environment: Mapping[str, str]) -> None:
        """Write a session's environment to its file. Raises `Unavailable`."""
        self._know(session_id, _SessionEnvironment(dict(environment) or self._own, self._kept(session_id).shell))
        if environment:
            self._write(self._path(session_id), dict(environment))

    def learn(self, session_id: str, shell: ShellReport) -> None:
        """Take over the variables and the profile of the agent's shell (decision 32). Raises `Unavailable`."""
        kept = self._kept(session_id)
        known = {name: value for name, value in shell.environment.items() if name not in NOT_LEARNED}
        # Not every ticket is shown by a shell: some clients start simple commands without one.
        learned = ShellReport(names=shell.names, environment=known, profile=shell.profile or kept.shell.profile)
        if learned != kept.shell:
            _check_environment(learned.environment)
            self._know(session_id, kept._replace(shell=learned))
            self._write(self._path(session_id, SHELL), learned.model_dump())

    def unlearn(self, session_id: str) -> None:
        """Forget the shell of an agent's process that is another one by now."""
        self._know(session_id, self._kept(session_id)._replace(shell=NO_SHELL))
        with suppress(OSError):
            self._path(session_id, SHELL).unlink(missing_ok=True)

    def of(self, session_id: str) -> dict[str, str]:
        """Return the environment of a session; the supervisor's own if it has none. Raises `Unavailable`."""
        return self._kept(session_id).merged()

    def profile_of(self, session_id: str) -> str:
        """Return the file of functions and aliases that the agent's shell has read. Empty: none is known."""
        return self._kept(session_id).shell.profile

    def forget(self, session_id: str) -> None:
        """Remove the environment of a closed session that has nothing left to start."""
        self._known.pop(session_id, None)
        for path in (self._path(session_id), self._path(session_id, SHELL)):
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _know(self, session_id: str, kept: _SessionEnvironment) -> _SessionEnvironment:
        self._known[session_id] = kept
        self._known.move_to_end(session_id)
        if len(self._known) > KNOWN:
            self._known.popitem(last=False)
        return kept

    def _kept(self, session_id: str) -> _SessionEnvironment:
        return self._know(session_id, self._known.get(session_id) or self._read(session_id))

    def _read(self, session_id: str) -> _SessionEnvironment:
        given = self._load(session_id, self._path(session_id))
        try:
            shell = ShellReport.model_validate(self._load(session_id, self._path(session_id, SHELL)) or NO_SHELL)
        except ValidationError:
            shell = NO_SHELL
        environment = {str(name): str(value) for name, value in given.items()}
        return _SessionEnvironment(environment or self._own, shell)

    def _load(self, session_id: str, path: Path) -> dict[str, Any]:
        """Return the content of a file. Empty: there is none, or it is damaged."""
        try:
            loaded = json.loads(path.read_text())
        except (FileNotFoundError, ValueError):
            return {}
        except OSError as error:
            message = f"the environment of session {session_id} cannot be read: {error.strerror}"
            raise Unavailable(message, hint="Check the disk and the limit of open files, then try again") from error
        return loaded if isinstance(loaded, dict) else {}

    def _write(self, path: Path, content: dict[str, Any]) -> None:
        unfinished = path.with_suffix(".new")
        try:
            # The mode is set at creation: a chmod afterwards would leave a moment in which others can read the tokens.
            with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                json.dump(content, file)
            # Atomic, so that a crash leaves the old environment or the new one.
            unfinished.replace(path)
        except (OSError, UnicodeEncodeError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise Unavailable(
                f"the environment of session {path.stem} cannot be kept in {path.parent}: {why}",
                hint=_keeping_hint(error),
            ) from error

    def _path(self, session_id: str, ending: str = ".json") -> Path:
        return self._directory / f"{session_id}{ending}"


def _keeping_hint(error: Exception) -> str:
    number = error.errno if isinstance(error, OSError) else None
    if number in {errno.ENOSPC, errno.EDQUOT}:
        return "Make room on the disk, then try again; whisper-tui prune removes recorded output"
    if number in {errno.EMFILE, errno.ENFILE}:
        return "Raise the limit of open files (ulimit -n), then whisper-tui restart"
    return "Check the permissions and the disk, then try again"


LARGEST_ENVIRONMENT = 2 * 1024 * 1024
"""Limit of characters of all names and values; no program can be started with more."""


RETURN_S = 60.0
"""Seconds that agents have to reconnect after a restart of the supervisor, before their sessions are closed."""

CHECK_S = 5.0
"""Seconds between two checks of the agents without a connection of their own."""


class Sessions:
    """Opens and closes the sessions of agents, and keeps the environment of their commands."""

    def __init__(
        self,
        store: Store,
        environments: Environments,
        placement: Placement,
        clock: Callable[[], float],
        owners: SessionOwners,
    ) -> None:
        self._store = store
        self._owners = owners
        self._placement = placement
        self._environments = environments
        self._clock = clock
        opened = (session for session in store.board.sessions.values() if session.closed_at is None)
        self._absent = {session.id for session in opened if session.key is None or session.relayed}
        """Sessions of an earlier supervisor whose agents have not come back yet."""
        self._timers: list[asyncio.TimerHandle | asyncio.Task[None]] = []

    def open(self, hello: SessionHello, opener: str = "") -> Session:
        """Open a new session, or resume the one that the agent had before the supervisor restarted.

        `opener`: the agent that the process at the other end belongs to. Empty: this process itself acts.
        """
        if not os.path.isabs(hello.root) or "\0" in hello.root:  # noqa: PTH117
            raise InvalidRequest(f"the workspace {hello.root} is not an absolute path")
        _check_environment(hello.environment)
        place = self._placement.known(hello.place)
        if hello.relayed and not place:
            raise InvalidRequest("an agent that is at a place has to say at which")
        # Hooks connect anew for every call, and are told apart by their client's own name of the session.
        resumed = hello.resume or self._of_key(hello.key)
        if resumed is not None and (session := self._resume(resumed, hello)) is not None:
            self._owners.note(session, opener)
            return session
        session = Session(
            id=f"s{self._store.journal.last_session + 1}",
            name=self._distinct(hello.name),
            # A link could be pointed elsewhere later, and with it the workspace of standing approvals.
            root=os.path.normpath(hello.root) if hello.relayed else os.path.realpath(hello.root),
            client=hello.client,
            pid=hello.pid,
            started=_start_of(hello.pid),
            trust=hello.trust,
            key=hello.key,
            shell=hello.shell,
            hears=hello.hears,
            place=place,
            relayed=hello.relayed,
            opened_at=self._clock(),
        )
        check_storable(session)
        # After the resumption: an agent that returns needs no new room.
        self._check_room()
        self._owners.note(session, opener)
        self._environments.keep(session.id, hello.environment)
        self._store.record(SessionOpened(at=session.opened_at, session=session))
        self._store.journal.last_session += 1
        return session

    def _distinct(self, name: str) -> str:
        """Return a name that no other open session has: `shop (claude-code)`, then `shop 2 (claude-code)`."""
        taken = {session.name for session in self._store.board.sessions.values() if session.closed_at is None}
        base, bracket, rest = name.partition(" (")
        # Before the client's name, because narrow lists cut what comes last.
        numbered = (f"{base[: max(0, LONGEST_NAME - 8 - len(rest))]} {number}{bracket}{rest}" for number in count(2))
        return name if name not in taken else next(each for each in numbered if each not in taken)

    def environment_in(self, root: str) -> Mapping[str, str]:
        """The environment of the newest open session with this workspace, else the supervisor's own."""
        sessions = reversed(self._store.board.sessions.values())
        there = (session.id for session in sessions if session.root_here == root and session.closed_at is None)
        newest = next(there, None)
        return os.environ if newest is None else self._environments.of(newest)

    def start_watching(self, also: Callable[[], object]) -> None:
        """Close the sessions of agents that do not come back or have ended; `also` is called at each check."""
        self._timers = [
            asyncio.get_running_loop().call_later(RETURN_S, self.close_absent),
            asyncio.create_task(self._watch(also)),
        ]

    def stop_watching(self) -> None:
        """Stop the checks that close sessions."""
        for timer in self._timers:
            timer.cancel()

    async def _watch(self, also: Callable[[], object]) -> None:
        while True:
            await asyncio.sleep(CHECK_S)
            with suppress(JournalFailed):
                self.close_gone()
                also()

    def describe(self, session_id: str, client: ClientInfo) -> None:
        """Record the agent's program, if it is not recorded yet."""
        if self.living(session_id).client != client:
            check_storable(client)
            self._store.record(SessionDescribed(at=self._clock(), session_id=session_id, client=client))

    def say(self, session_id: str, text: str, by: Decider) -> None:
        """Record what was said. Agents say what they were told at their own start, too."""
        session = self.living(session_id)
        if not 0 < len(text) <= LONGEST_SAID:
            raise InvalidRequest(f"a message must have 1 to {LONGEST_SAID:,} characters, not {len(text):,}")
        said = SessionSaid(at=self._clock(), session_id=session_id, text=text, by=by)
        if said.is_to_agent and not session.hears:
            raise Refused(
                f"the agent of session {session_id} does not listen", hint="Deny one of its calls with a reason instead"
            )
        self._store.record(said)

    def tell(self, session_id: str, text: str, by: Decider) -> None:
        """Tell an agent something: with its next approved call, unless it listens. Nothing if it is gone."""
        session = self._store.session(session_id)
        if session is not None and session.closed_at is None:
            self._store.record(SessionSaid(at=self._clock(), session_id=session_id, text=text[:LONGEST_SAID], by=by))

    def close(self, session_id: str, why: str) -> None:
        """End a session; its standing approvals end with it.

        That its agent is gone stays true while the journal takes nothing: it is recorded as soon as that is possible.
        """
        self._absent.discard(session_id)
        self._store.retry_until_journaled(lambda: self._close(session_id, why))

    def _close(self, session_id: str, why: str) -> None:
        session = self._store.board.sessions.get(session_id)
        if session is not None and session.closed_at is None:
            self._store.record(SessionClosed(at=self._clock(), session_id=session_id, why=why))
            self.tidy(session_id)

    def close_absent(self) -> None:
        """Close the sessions whose agents did not reconnect after the supervisor's restart."""
        for session_id in tuple(self._absent):
            self.close(session_id, "the agent did not come back after the supervisor was restarted")

    def living(self, session_id: str) -> Session:
        """Return an open session. Raises `Refused`."""
        session = self._store.session(session_id)
        if session is None:
            raise Refused(f"there is no session {session_id}", hint="Open a session first")
        if session.closed_at is not None:
            raise Refused(f"session {session_id} is closed: {session.closed_because}", hint="Open a new one")
        return session

    def tidy(self, session_id: str) -> None:
        """Forget the environment of a closed session that has nothing left to start."""
        board = self._store.board
        session = board.sessions.get(session_id)
        if session is None or session.closed_at is None:
            return
        # Its running commands have their environment already; only queued ones would still need it.
        if all(call_id in board.unsettled for call_id in board.open_in.get(session_id, ())):
            self._environments.forget(session_id)

    def close_gone(self) -> None:
        """Close the sessions without a connection of their own whose agents have ended."""
        for session in tuple(self._store.board.sessions.values()):
            if session.key is not None and session.closed_at is None and not self._is_there(session):
                self.close(session.id, "the agent's program ended")

    def _check_room(self) -> None:
        """Raise `Refused` if too many sessions are open."""
        sessions = self._store.board.sessions
        if len(sessions) >= MOST_SESSIONS:
            opened = sum(session.closed_at is None for session in sessions.values())
            if opened >= MOST_SESSIONS:
                raise Refused(
                    f"{opened:,} sessions are open, and no more are opened", hint="End agents, then try again"
                )

    def _is_there(self, session: Session) -> bool:
        """True if the agent's program still runs, or if that cannot be checked."""
        return session.pid is None or is_process(session.pid, session.started)

    def _of_key(self, key: str | None) -> str | None:
        """Return the newest session with this key."""
        sessions = reversed(self._store.board.sessions.values())
        return next((session.id for session in sessions if key is not None and session.key == key), None)

    def _resume(self, session_id: str, hello: SessionHello) -> Session | None:
        session = self._store.bring_back(session_id)
        # Nobody on this machine goes on with the session of an agent at a place, nor the other way round.
        if session is None or session.relayed != hello.relayed:
            return None
        self._absent.discard(session.id)
        self._environments.keep(session.id, hello.environment)
        same = self._is_same_process(session, hello.pid)
        if not same:
            self._environments.unlearn(session.id)
        started = _start_of(hello.pid)
        if session.closed_at is None and same and started == session.started:
            return session
        resumed = SessionResumed(at=self._clock(), session_id=session.id, pid=hello.pid, started=started)
        # Session names stand in files, so another process that knows one gets no standing approvals (decision 11).
        self._store.record(resumed, *(() if same else self._forgotten(session)), durable=True)
        return self._store.board.sessions[session.id]

    def _is_same_process(self, session: Session, pid: int | None) -> bool:
        """True if a session is resumed by the process that had it."""
        if session.relayed:
            return True  # the key is that of the process there
        if pid is None or session.pid != pid:
            return pid is None and session.pid is None and session.key is None
        # Earlier versions did not record when it started. As long as the session is open, it is that process.
        return session.closed_at is None if session.started is None else is_process(pid, session.started)

    def _forgotten(self, session: Session) -> tuple[Event, ...]:
        """Return the events that revoke what was granted to another process in this session."""
        now, by = self._clock(), Decider(surface="rule", who="another process resumed the session")
        grants = self._store.board.grants.values()
        held = (grant for grant in grants if grant.session_id == session.id and not grant_is_over(grant, now))
        raised = session.unasked is not None and session.unasked.runs_work
        return (
            *(GrantRevoked(at=now, session_id=session.id, grant_id=grant.id, by=by) for grant in held),
            *((UnaskedSet(at=now, session_id=session.id, level=None, by=by),) if raised else ()),
        )


def _start_of(pid: int | None) -> int | None:
    seen = find_process(pid) if pid is not None else None
    return None if seen is None else seen.start


def _check_environment(environment: Mapping[str, str]) -> None:
    size = sum(len(name) + len(value) for name, value in environment.items())
    if size > LARGEST_ENVIRONMENT:
        raise InvalidRequest(
            f"the agent's environment has {size:,} characters, and {LARGEST_ENVIRONMENT:,} can be kept",
            hint="Start the agent with fewer or shorter variables",
        )
