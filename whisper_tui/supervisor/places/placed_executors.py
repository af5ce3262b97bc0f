"""The executors of this machine and of all places as one: each run is looked after by the one where it runs."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

from whisper_tui.model.board import Board
from whisper_tui.model.run import OutputChunk, OutputSpan, SignalTarget, Stream, TerminalSize
from whisper_tui.model.state import PlaceState
from whisper_tui.supervisor.places.cluster_transports import KubernetesTransport, RayTransport, SlurmTransport
from whisper_tui.supervisor.places.mirror import placed_at
from whisper_tui.supervisor.places.place_connection import PlaceConnection
from whisper_tui.supervisor.places.place_files import no_such_place
from whisper_tui.supervisor.places.place_settings import PlaceSettings
from whisper_tui.supervisor.places.place_transports import (
    ContainerTransport,
    PlaceTransport,
    SshTransport,
    SystemdTransport,
)
from whisper_tui.supervisor.places.remote_executor import RemoteExecutor, ServeAgent
from whisper_tui.supervisor.runs.executor import Executor, Report, RunKey, StartOrder


def transport_of(settings: PlaceSettings, near: str) -> PlaceTransport:
    """Return the way to a place. `near`: the name of this end, which no other end at the same engine has.

    Raises `BadConfiguration`.
    """
    match settings.by:
        case "ssh":
            return SshTransport(settings.name, settings.option("host") or settings.name)
        case "docker" | "podman":
            return ContainerTransport(settings)
        case "systemd":
            return SystemdTransport(settings, near)
        case "slurm":
            return SlurmTransport(settings, near)
        case "kubernetes":
            return KubernetesTransport(settings, near)
        case "ray":
            return RayTransport(settings, near)


class PlacedExecutors:
    """The `Executor` of a supervisor whose commands run on this machine and at places."""

    board: Board
    """Says where each call runs. Set by whoever has it, before this is opened."""
    on_reached: Callable[[str], None]
    """Called with the name of a place whenever it is reached. Set before this is opened."""

    def __init__(
        self,
        here: Executor,
        places: Iterable[PlaceSettings],
        runs: Path,
        way: Callable[[PlaceSettings, str], PlaceTransport] = transport_of,
    ) -> None:
        """`way`: makes the transport to a place, from its settings and the name of this end."""
        self._here = here
        self._runs = runs
        self.on_reached = lambda _place: None
        self._there = {place.name: RemoteExecutor(place, way, runs, self._tell_reached) for place in places}

    @property
    def problem(self) -> str | None:
        """Why runs of this machine cannot be started or monitored now, and what to do. None: they can."""
        return self._here.problem

    @property
    def counts(self) -> tuple[str, ...] | None:
        """The resources that control groups of this machine count for each run. None: runs have no control groups."""
        return self._here.counts

    def problem_at(self, place: str) -> str | None:
        """Why nothing can be started at a place now, as a sentence. None: it can."""
        if not place:
            return self._here.problem
        remote = self._there.get(place)
        return remote.problem if remote is not None else no_such_place(place).sentence()

    def _tell_reached(self, place: str) -> None:
        self.on_reached(place)

    def connection(self, place: str) -> PlaceConnection:
        """Return the connection to a place. Raises `Unavailable`."""
        return self._at(place).connection

    async def connect(self, place: str, *, connected: bool) -> PlaceState:
        """Reach a place now, or let it go, and return how it is then.

        Raises `Unavailable`, and `InvalidRequest` while commands run there.
        """
        remote = self._at(place)
        if connected:
            await remote.reach()
        else:
            await remote.let_go()
        return remote.state()

    def serve_agents(self, serve: ServeAgent) -> None:
        """Serve the agents at the places whose settings say so, from now on."""
        for remote in self._there.values():
            remote.serve_agents(serve)

    def states(self) -> tuple[PlaceState, ...]:
        """Return how each place is reached."""
        return tuple(remote.state() for remote in self._there.values())

    async def open(self) -> None:
        """Get ready to start and to report."""
        await self._here.open()
        for remote in self._there.values():
            await remote.open()

    async def close(self) -> None:
        """Stop reporting. Running commands continue."""
        await asyncio.gather(*(remote.close() for remote in self._there.values()))
        await self._here.close()

    async def start(self, order: StartOrder) -> None:
        """Order a start where its command runs. Raises `Unavailable` if nothing was ordered."""
        executor = self._at(order.spec.place) if order.spec.place else self._here
        await executor.start(order)

    async def attach(self, key: RunKey) -> None:
        """Monitor a start that an earlier supervisor ordered. Everything about it is reported (again)."""
        # A place that is not in the configuration any more is unreachable: its runs stay as they are.
        place = self._place_of(key)
        if not place or place in self._there:
            await self._of(key).attach(key)

    async def reports(self) -> AsyncIterator[tuple[Report, ...]]:
        """Yield batches of new reports about the runs of all, without end, for one reader."""
        batches: asyncio.Queue[tuple[Report, ...]] = asyncio.Queue()

        async def follow(executor: Executor) -> None:
            async for batch in executor.reports():
                batches.put_nowait(batch)

        following = [asyncio.create_task(follow(each)) for each in (self._here, *self._there.values())]
        for task in following:
            # One that fails wakes the reader, who fails as well: otherwise nothing would be recorded (decision 1).
            task.add_done_callback(lambda _: batches.put_nowait(()))
        try:
            while True:
                yield await batches.get()
                for task in following:
                    if task.done():
                        task.result()
        finally:
            for task in following:
                task.cancel()

    async def signal(self, key: RunKey, number: int, target: SignalTarget) -> None:
        """Send a signal. Raises `NotRunning` if no process of the run is alive."""
        await self._of(key).signal(key, number, target)

    async def end(self, key: RunKey, grace_s: float) -> None:
        """End the whole tree: SIGTERM, the grace period, then SIGKILL until no process is left."""
        await self._of(key).end(key, grace_s)

    async def set_frozen(self, key: RunKey, *, frozen: bool) -> None:
        """Freeze or thaw all processes of a run. Raises `NotRunning` if none is alive."""
        await self._of(key).set_frozen(key, frozen=frozen)

    async def write_stdin(self, key: RunKey, data: bytes, *, eof: bool = False) -> None:
        """Write to its input, and wait while it is full. Raises `NotRunning` if it takes no input."""
        await self._of(key).write_stdin(key, data, eof=eof)

    async def resize(self, key: RunKey, rows: int, columns: int) -> None:
        """Set the size of its terminal, if it has one."""
        await self._of(key).resize(key, rows, columns)

    def read_output(self, key: RunKey, stream: Stream, offset: int, limit: int) -> OutputChunk:
        """Return at most `limit` bytes of a stream from `offset`. A negative offset counts from the end."""
        return self._here.read_output(key, stream, offset, limit)  # the mirrors of runs at places are here

    def output_file(self, key: RunKey, stream: Stream) -> str | None:
        """Return the absolute path of the file with a whole stream. None: no file has all of it."""
        return self._here.output_file(key, stream)

    def input_file(self, key: RunKey) -> str | None:
        """Return the absolute path of the FIFO for its input. None: there is none here, or no longer."""
        return self._of(key).input_file(key)

    def last_directory(self, key: RunKey) -> str | None:
        """Return the directory in which its shell ended. None: it was not requested, or is unknown here."""
        return self._of(key).last_directory(key)

    def read_timeline(self, key: RunKey, after: int, limit: int) -> tuple[OutputSpan, ...]:
        """Return at most `limit` rows of the time index, from row `after`."""
        return self._here.read_timeline(key, after, limit)

    def terminal_sizes(self, key: RunKey) -> tuple[TerminalSize, ...]:
        """Return all sizes of its terminal, beginning with the first one."""
        return self._here.terminal_sizes(key)

    def _of(self, key: RunKey) -> Executor:
        place = self._place_of(key)
        return self._at(place) if place else self._here

    def _place_of(self, key: RunKey) -> str:
        record = self.board.calls.get(key.call_id)
        # Old calls are not on the board.
        return record.spec.place if record is not None else placed_at(str(self._runs), key)

    def _at(self, place: str) -> RemoteExecutor:
        remote = self._there.get(place)
        if remote is None:
            raise no_such_place(place)
        return remote
