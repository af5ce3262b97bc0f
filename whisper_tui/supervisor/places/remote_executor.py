"""The executor of one place: the far host runs the commands, and their files are mirrored into the runs directory.

It also relays the agents that are there, whose connections are served here.
"""

import asyncio
import hashlib
import json
import logging
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from whisper_tui.model.errors import InvalidRequest, NotRunning, Unavailable, WhisperError
from whisper_tui.model.state import PlaceState
from whisper_tui.supervisor.places.far_agents import LONGEST_PROGRAM, MOST_AGENTS
from whisper_tui.supervisor.places.frames import LONGEST_PAYLOAD, Frame, FrameView
from whisper_tui.supervisor.places.incoming_frames import LongFrame, TakesNews
from whisper_tui.supervisor.places.mirror import Identity, Mirror, MirroredRuns, PlacedRun, PlaceMark, near_name
from whisper_tui.supervisor.places.place_connection import Disconnected, Hello, PlaceConnection
from whisper_tui.supervisor.places.place_settings import PlaceSettings
from whisper_tui.supervisor.places.place_transports import PlaceTransport
from whisper_tui.supervisor.runs.attempt import spec_of
from whisper_tui.supervisor.runs.executor import (
    Report,
    RunKey,
    StartOrder,
)
from whisper_tui.supervisor.runs.monitor import ExecutorOfFiles
from whisper_tui.supervisor.runs.output_files import OutputFiles
from whisper_tui.system import run_files
from whisper_tui.system.ancestry import PeerThere, ProcessSeen

INPUT = 1 << 16
"""Bytes of input in one request."""
MADE_ANEW = "the place was made anew since it was started there; it may have run"
ServeAgent = Callable[[socket.socket, PeerThere], Awaitable[None]]
"""Serves an agent at a place, whose bytes come over a socket. Cancelled when the connection to the place is lost."""

REACH_S = 60.0
"""Seconds that somebody who asks for it waits until a place is reached."""
MOST_AHEAD = 1 << 20
"""Bytes of one agent that wait to be served. The host process sends fewer ahead."""
PIECE = 1 << 16
_log = logging.getLogger(__name__)


class PlaceAgents:
    """The agents at one place."""

    serve: ServeAgent | None = None
    """None: no agents are served."""
    program = ""
    """The program there by which they ask. Empty: none are served there."""

    def __init__(self, place: str, connection: Callable[[], PlaceConnection]) -> None:
        self._place = place
        self._connection = connection
        self._channels: dict[int, _Channel] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def number(self) -> int:
        """How many are connected."""
        return len(self._channels)

    def begin(self) -> None:
        """Have the host process listen for agents. Called whenever the place is reached."""
        self._keep(asyncio.create_task(self._begin()))

    def lose(self) -> None:
        """End what went over a connection that was lost."""
        self.program = ""
        for channel in tuple(self._channels.values()):
            channel.lose()
        self._channels.clear()

    def take(self, frame: FrameView, hello: Hello | None) -> None:
        """Take what the host process says about an agent, or passes on from it."""
        number, header = frame.header.get("agent"), frame.header
        if not isinstance(number, int):
            return
        channel = self._channels.get(number)
        if channel is not None:
            if frame.payload:
                channel.put(bytes(frame.payload))
            if header.get("end") is True or header.get("gone") is True:
                channel.put(b"")
        elif header.get("new") is True:
            self._accept(number, peer_from(self._place, hello, bytes(frame.payload)))

    async def _begin(self) -> None:
        try:
            answer = await self._connection().ask("agent")
        except WhisperError as error:
            _log.warning("no agents are served at %s: %s", self._place, error.sentence())
            return
        self.program = str(answer.header.get("program", ""))[:LONGEST_PROGRAM]

    def _accept(self, number: int, peer: PeerThere) -> None:
        connection = self._connection()
        if self.serve is None or len(self._channels) >= MOST_AGENTS:
            connection.send("agent", of=str(number), end=True)
            return
        channel = self._channels[number] = _Channel(number, connection)
        self._keep(asyncio.create_task(self._serve(number, channel, peer, self.serve)))

    async def _serve(self, number: int, channel: "_Channel", peer: PeerThere, serve: ServeAgent) -> None:
        await channel.serve(serve, peer)
        if self._channels.get(number) is channel:
            del self._channels[number]

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Channel:
    """The connection of one agent: a pair of sockets of this process, and what is copied to and from one of them."""

    def __init__(self, number: int, connection: PlaceConnection) -> None:
        self._number, self._connection = number, connection
        self._coming: asyncio.Queue[bytes] = asyncio.Queue()
        """Bytes of the agent, as many as the host process may send ahead. Empty ones: its end."""
        self._waiting = 0
        """Their number."""
        self._serving: asyncio.Future[None] | None = None
        self._lost = False

    def put(self, data: bytes) -> None:
        """Take bytes of the agent."""
        self._waiting += len(data)
        if self._waiting > MOST_AHEAD:
            self.lose()  # that is no host process of ours
        else:
            self._coming.put_nowait(data)

    def lose(self) -> None:
        """End it, because nothing comes or goes any more."""
        self._lost = True
        if self._serving is not None:
            self._serving.cancel()

    async def serve(self, serve: ServeAgent, peer: PeerThere) -> None:
        """Serve the agent until it is gone."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.setblocking(False)
        copying = asyncio.create_task(self._copy_in(ours))
        self._serving = asyncio.ensure_future(serve(theirs, peer))
        try:
            if self._lost:
                self._serving.cancel()
            await self._copy_out(ours)
            await asyncio.wait([self._serving])
        finally:
            copying.cancel()
            self._serving.cancel()
            ours.close()
            theirs.close()

    async def _copy_in(self, ours: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with suppress(OSError, WhisperError):
            while data := await self._coming.get():
                await loop.sock_sendall(ours, data)
                self._waiting -= len(data)
                # Only now may the host process send more: an agent cannot fill the memory here.
                self._connection.send("agent", of=str(self._number), taken=len(data))
            ours.shutdown(socket.SHUT_WR)

    async def _copy_out(self, ours: socket.socket) -> None:
        """Copy until the server closes its end. Each piece is answered, so an agent that reads nothing gets no more."""
        loop = asyncio.get_running_loop()
        with suppress(OSError, WhisperError):
            while data := await loop.sock_recv(ours, PIECE):
                await self._connection.ask("agent", data, of=str(self._number))
        # Also after an error: that is what is left of a server that has not read everything.
        with suppress(WhisperError):
            self._connection.send("agent", of=str(self._number), end=True)


def peer_from(place: str, hello: Hello | None, told: bytes) -> PeerThere:
    """Return who has connected there. What is wrong with it makes it unknown, which counts as a supervised command."""
    pid, program, line = 0, "", None
    with suppress(ValueError, TypeError, KeyError, AttributeError):
        said = json.loads(told)
        pid, program = int(said["pid"]), str(said["program"])[:LONGEST_PROGRAM]
        line = tuple(map(_seen, said["line"])) if said["line"] else None
    if line is None or hello is None or line[0].pid != pid or line[-1].parent != 0:
        return PeerThere(place, pid, program, None, "")
    process = f"{place}\0{hello.instance}\0{hello.boot}\0{pid}\0{line[0].start}"
    return PeerThere(place, pid, program, line, f"relay {hashlib.sha256(process.encode()).hexdigest()}")


def _seen(told: Mapping[str, Any]) -> ProcessSeen:
    origin = told["descends_from"]
    return ProcessSeen(
        pid=int(told["pid"]),
        parent=int(told["parent"]),
        start=str(told["start"]),
        marked=told["marked"] is not False,
        keeper=told["keeper"] is not False,
        descends_from=origin if origin in {None, "agent"} else "command",
        foreign=told["foreign"] is not False,
    )


class PlaceNews:
    """Takes the news of a place: of agents at once, and of runs as fast as the disk does."""

    def __init__(self, runs: TakesNews, agents: PlaceAgents, hello: Callable[[], Hello | None]) -> None:
        self._runs, self._agents, self._hello = runs, agents, hello

    async def take(self, frames: list[FrameView]) -> None:
        """Take frames, whose payloads are void afterwards."""
        of_runs = list[FrameView]()
        for frame in frames:
            if "agent" in frame.header:
                self._agents.take(frame, self._hello())
            else:
                of_runs.append(frame)
        if of_runs:
            await self._runs.take(of_runs)

    async def pour(self, frame: LongFrame) -> None:
        """Take what has come of a piece of output. Raises `EOFError` at the end of the connection."""
        await self._runs.pour(frame)


class RemoteExecutor(ExecutorOfFiles[PlacedRun]):
    """The `Executor` of one place."""

    def __init__(
        self,
        settings: PlaceSettings,
        transport_of: Callable[[PlaceSettings, str], PlaceTransport],
        runs_directory: Path,
        on_reached: Callable[[str], None] = lambda _place: None,
    ) -> None:
        """`transport_of`: makes the way there, from the settings and the name of this end. `on_reached`: is told."""
        super().__init__(OutputFiles(Path(runs_directory)))
        self.name = settings.name
        self._directory = Path(runs_directory)
        self._settings = settings
        self._transport_of = transport_of
        self._on_place_reached = on_reached
        self._mirrored = MirroredRuns(settings.name, str(runs_directory), self._ask_to_forget)
        self._mark = PlaceMark(self._directory, settings.name)
        self._connection: PlaceConnection | None = None
        self.agents = PlaceAgents(settings.name, lambda: self.connection)

    @property
    def connection(self) -> PlaceConnection:
        """The connection to the place, for whoever asks about its files. Raises `Unavailable`."""
        if self._connection is None:
            raise Unavailable(f"{self.name} is not open")
        return self._connection

    @property
    def problem(self) -> str | None:
        """Why nothing can be started there now, as a sentence. None: it can."""
        if self._connection is None:
            return f"{self.name} is not open"
        if self._connection.hello is None:
            # It is connected once a call is looked at that is about to start.
            return None if self._connection.rests else self._connection.unreached().sentence()
        return self._mirrored.health.problem

    @property
    def counts(self) -> tuple[str, ...] | None:
        """The resources that control groups count for each run there. None: it has none, or is not reached."""
        hello = self._connection.hello if self._connection else None
        return hello.counts if hello else None

    def state(self) -> PlaceState:
        """Return how the place is reached."""
        connection = self.connection
        return PlaceState(
            name=self.name,
            way=connection.summary,
            reached=connection.hello is not None,
            since=connection.since,
            problem=connection.problem,
            host=connection.host,
            running=len(self._mirrored.runs),
            workspace=self._settings.workspace,
            relay=self.agents.program,
            agents=self.agents.number,
        )

    async def reach(self) -> None:
        """Connect now if it is not connected, and wait for the first attempt, for a minute at most."""
        self.connection.try_now()
        with suppress(TimeoutError):
            async with asyncio.timeout(REACH_S):
                await self.connection.reach()

    async def let_go(self) -> None:
        """End the connection and what the engine keeps. Raises `InvalidRequest` while commands run there."""
        if self._is_used():
            runs = len(self._mirrored.runs)
            used = f"{runs} of its commands are not over" if runs else "agents there are connected"
            raise InvalidRequest(f"{self.name} is in use: {used}", hint="Wait for them, or end them, then try again")
        await self.connection.let_go()

    def serve_agents(self, serve: ServeAgent) -> None:
        """Serve the agents there from now on, if the settings say so."""
        if self._settings.agents:
            self.agents.serve = serve
            if self._connection is not None and self._connection.hello is not None:
                self.agents.begin()

    async def open(self) -> None:
        """Begin to connect. Raises `Unavailable` if the directory of runs cannot be used."""
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            near = near_name(self._directory)
        except OSError as error:
            message = f"the directory of runs {self._directory} cannot be used: {error.strerror}"
            raise Unavailable(message, hint="Check its owner, its permissions and the free disk.") from None
        self._mark.read()
        transport = self._transport_of(self._settings, near)
        news = PlaceNews(self._mirrored, self.agents, lambda: self.connection.hello)
        self._connection = PlaceConnection(
            transport, self._settings, near, news, self._on_reached, part=self._on_lost, in_use=self._is_used
        )
        self._connection.open()

    async def close(self) -> None:
        """Stop reporting. Running commands continue."""
        if self._connection is not None:
            await self._connection.close()
        self._mirrored.close()

    async def start(self, order: StartOrder) -> None:
        """Order a start. Its result is reported. While the place is away, the attempt is revoked when it is back."""
        mirror = Mirror(str(self._directory), order.key)
        self.connection.want()
        hello = self.connection.hello
        identity = Identity(hello.instance, hello.boot) if hello else self._mark.before
        try:
            self._mark.note(identity)
            mirror.begin(self.name, identity)
        except FileExistsError:
            message = f"attempt {order.key.attempt} of call {order.key.call_id} was ordered before"
            raise InvalidRequest(message, hint="An attempt is started at most once; start the next one.") from None
        except OSError as error:
            message = f"the run of call {order.key.call_id} cannot be mirrored in {self._directory}: {error.strerror}"
            raise Unavailable(message, hint="Nothing was started. Make room on the disk and try again.") from None
        payload = json.dumps({"spec": spec_of(order), "environment": order.environment}).encode()
        run = PlacedRun(mirror, self._files, ordered=hello is not None)
        if order.sandbox is not None or order.preview is not None or len(payload) > LONGEST_PAYLOAD:
            mirror.discard()
            raise Unavailable(
                f"call {order.key.call_id} cannot run at {self.name}: sandboxes and previews are for this machine",
                hint="Approve it to run there as it is, or run it here",
            )
        self._mirrored.runs[order.key] = run
        if hello is not None:
            # The answer is not waited for: forty starts in a row would take forty times the way there and back.
            self._mirrored.keep(self._confirm_start(run, hello, self.connection.send("start", payload, of=mirror.name)))

    async def attach(self, key: RunKey) -> None:
        """Follow a start that an earlier supervisor ordered. Everything about it is reported (again)."""
        mirror = Mirror(str(self._directory), key)
        mirror.recover(self._mark.before)
        run = self._mirrored.runs[key] = PlacedRun(mirror, self._files, ordered=True)
        if mirror.has(run_files.DONE):
            self._mirrored.look(run)
        else:
            self.connection.want()
            if self.connection.hello is not None:
                self._attach(run, self.connection.hello)

    async def reports(self) -> AsyncIterator[tuple[Report, ...]]:
        """Yield batches of new reports about the started and attached runs, without end, for one reader."""
        while True:
            yield await self._mirrored.news()

    async def write_stdin(self, key: RunKey, data: bytes, *, eof: bool = False) -> None:
        """Write to its input, and wait while it is full. Raises `NotRunning` if it takes no input."""
        run = await self._reachable(key)
        async with run.writing:
            for start in range(0, len(data), INPUT):
                await self._write_piece(run, data[start : start + INPUT])
            if eof:
                await self._write_eof(run)

    def input_file(self, key: RunKey) -> str | None:
        """None: its FIFO is at the place."""
        return None

    def last_directory(self, key: RunKey) -> str | None:
        """None: a shell here cannot go to a directory there."""
        return None

    async def _ask_to_forget(self, name: str) -> None:
        await self.connection.ask("forget", of=name)

    def _on_reached(self, hello: Hello) -> None:
        if self.agents.serve is not None:
            self.agents.begin()
        for run in tuple(self._mirrored.runs.values()):
            self._attach(run, hello)
        self._mirrored.keep(self._forget_finished())
        self._on_place_reached(self.name)

    def _is_used(self) -> bool:
        return bool(self._mirrored.runs or self.agents.number)

    def _on_lost(self) -> None:
        for run in self._mirrored.runs.values():
            run.attached.clear()
        self.agents.lose()

    async def _forget_finished(self) -> None:
        """Have the place forget what is over and whole here: an earlier supervisor was killed before it could."""
        with suppress(WhisperError, ValueError, OSError):
            names = (await self.connection.ask("finished")).header["names"]
            for call_id, _, attempt in (str(name).rpartition(".") for name in names):
                mirror = Mirror(str(self._directory), RunKey(call_id, int(attempt)))
                if mirror.key not in self._mirrored.runs and mirror.has(run_files.DONE):
                    await asyncio.to_thread(mirror.flush)
                    await self._ask_to_forget(mirror.name)

    def _attach(self, run: PlacedRun, hello: Hello) -> None:
        """Have the place send the news of a run. If nobody there knows it, it is revoked there."""
        run.attached.clear()
        before = run.mirror.identity if run.ordered else Identity()
        if before.instance not in {"", hello.instance}:
            self._mirrored.report(run, run.monitor.on_uncertain(MADE_ANEW))
            return
        answer = self.connection.send("attach", of=run.mirror.name, has=run.mirror.has_now(), boot=before.boot)
        self._mirrored.keep(self._confirm_attach(run, hello, answer))

    async def _confirm_attach(self, run: PlacedRun, hello: Hello, answer: "asyncio.Future[Frame]") -> None:
        try:
            told = (await answer).header
        except Disconnected:
            return  # The next connection attaches it.
        except WhisperError as error:
            self._mirrored.health.note(error)
            return
        self._mirrored.health.over()
        if self.connection.hello is hello:
            run.input_taken = int(told.get("taken", 0))
            run.attached.set()

    async def _confirm_start(self, run: PlacedRun, hello: Hello, answer: "asyncio.Future[Frame]") -> None:
        try:
            await answer
        except Disconnected:
            return  # Nobody knows whether it arrived. The next connection attaches it, which revokes a lost order.
        except InvalidRequest:
            if self.connection.hello is hello:
                self._attach(run, hello)
        except WhisperError as error:
            self._fail(run, error)
        else:
            if self.connection.hello is hello:
                run.attached.set()

    def _fail(self, run: PlacedRun, error: WhisperError) -> None:
        """Record that nothing was started, because the place could not prepare it."""
        failed = {"problem": "other", "subject": self.name, "message": f"Nothing was started: {error.sentence()}"}
        facts = {"failed": failed, "at": time.time(), "out": 0, "err": 0, "timed_out": None}
        with suppress(OSError):
            run_files.write_json(run.mirror.path(run_files.EXIT), facts)
            run_files.write_whole(run.mirror.path(run_files.DONE), b"")
        self._mirrored.look(run)

    async def _reachable(self, key: RunKey) -> PlacedRun:
        """Wait until a run can receive orders, and return it. Raises `NotRunning`, `Unavailable` while it is away."""
        run = self._mirrored.runs.get(key)
        if run is not None:
            if self.connection.hello is None:
                raise self.connection.unreached()
            await run.reachable.wait()
        if run is None or run.monitor.over:
            raise NotRunning(f"no process of call {key.call_id} is alive")
        return run

    async def _order(self, run: PlacedRun, order: dict[str, Any]) -> None:
        await self.connection.ask("order", json.dumps(order).encode(), of=run.mirror.name)

    async def _write_piece(self, run: PlacedRun, data: bytes) -> None:
        """Hand over input exactly once, over as many connections as it takes."""
        life = await self._attached(run)
        start = run.input_taken
        while True:
            try:
                told = await self.connection.ask("input", data, of=run.mirror.name, at=start)
            except Disconnected:
                if await self._attached(run) != life:
                    # The count of what was taken was lost with the host process there.
                    raise
                continue
            run.input_taken = int(told.header["taken"])
            return

    async def _write_eof(self, run: PlacedRun) -> None:
        """End the input, over as many connections as it takes: its end twice is its end."""
        await self._attached(run)
        while True:
            try:
                await self._order(run, {"do": "eof"})
                return
            except Disconnected:
                pass
            try:
                await self._attached(run)
            except NotRunning:
                return  # It may have ended because its input did.

    async def _attached(self, run: PlacedRun) -> str:
        """Wait until the place sends news of a run. Returns the life of its host process. Raises `NotRunning`."""
        while not (run.attached.is_set() or run.monitor.over):
            await run.attached.wait()
        if run.monitor.over:
            raise NotRunning(f"the command of call {run.mirror.key.call_id} accepts no input")
        if self.connection.hello is None:
            raise self.connection.unreached()
        return self.connection.hello.life
