"""A place in each engine, and its executor, with short words for what tests do with them."""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import pytest

from tests.supervisor.engine.conftest import PATIENCE_S
from tests.supervisor.places.conftest import PlaceEngine, end_place, processes_with
from tests.supervisor.places.engines import servers
from tests.supervisor.places.engines.fake_kubernetes import FakeKubernetes
from tests.supervisor.places.engines.servers import Containers, EngineServer, RayCluster
from whisper_tui.supervisor.places.place_settings import Engine, PlaceSettings
from whisper_tui.supervisor.places.place_transports import PlaceTransport
from whisper_tui.supervisor.places.placed_executors import transport_of

ENGINES: tuple[Engine, ...] = ("docker", "podman", "systemd", "slurm", "kubernetes", "ray")

HEAVY: tuple[Engine, ...] = ("docker", "podman", "slurm", "ray")


class EnginePlace(PlaceEngine):
    """An executor whose place is in an engine."""

    def __init__(self, by: Engine, server: EngineServer) -> None:
        directory = server.directory / uuid4().hex[:8]
        directory.mkdir()
        super().__init__(directory)
        self.server = server
        self.settings = PlaceSettings(
            "gpu1", by, server.options, directory=str(self.there), python=server.python, connect="start"
        )

    @property
    def problem(self) -> str | None:
        """Why it is not reached. None: it is, or it is not open."""
        return self.executor.problem if hasattr(self, "executor") else None

    def host_pids(self) -> list[int]:
        """The host processes, without the engine's own processes that have their command line as an argument."""
        return [pid for pid in (*super().host_pids(), *self.staying_pids()) if _is_host(pid)]

    def staying_pids(self) -> list[int]:
        """The host processes that clusters keep, and those that wait for the end of another one."""
        return processes_with(b"stay", os.fsencode(self.there))

    def transport(self, settings: PlaceSettings, near: str) -> PlaceTransport:
        return transport_of(settings, near)


async def end(place: EnginePlace) -> None:
    """End what still runs there, and what the engine keeps: a host process would be started again by it."""
    if place.runs.exists():
        await end_place(place)
    everything = os.fsencode(place.there)
    async with asyncio.timeout(PATIENCE_S):
        while pids := [*processes_with(b"serve", everything), *processes_with(b"stay", everything)]:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            await asyncio.sleep(0.05)


def _is_host(pid: int) -> bool:
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return b"python" in words[0] and b"hold" not in words
    return False


@pytest.fixture(scope="session")
def docker_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containers]:
    with servers.docker(tmp_path_factory.mktemp("docker")) as containers:
        yield containers


@pytest.fixture(scope="session")
def podman_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containers]:
    with servers.podman(tmp_path_factory.mktemp("podman")) as containers:
        yield containers


@pytest.fixture(scope="session")
def systemd_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineServer]:
    with servers.systemd(tmp_path_factory.mktemp("systemd")) as server:
        yield server


@pytest.fixture(scope="session")
def slurm_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineServer]:
    with servers.slurm(tmp_path_factory.mktemp("slurm")) as server:
        yield server


@pytest.fixture(scope="session")
def ray_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    with servers.ray(tmp_path_factory.mktemp("ray")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kubernetes_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeKubernetes]:
    servers.needs("kubectl", "unshare", "nsenter")
    with _in_thread(FakeKubernetes(tmp_path_factory.mktemp("kubernetes"))) as kubernetes:
        yield kubernetes


@contextmanager
def _in_thread(kubernetes: FakeKubernetes) -> Iterator[FakeKubernetes]:
    """Serve in a loop of its own: the loops of tests end with them."""
    loop, ready = asyncio.new_event_loop(), threading.Event()
    ends = asyncio.Event()

    async def serve() -> None:
        async with kubernetes.serving():
            ready.set()
            await ends.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield kubernetes
    finally:
        loop.call_soon_threadsafe(ends.set)
        thread.join(30)


@pytest.fixture
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> EngineServer:
    """The server of the engine that the test is about."""
    if request.param in HEAVY and "TEST_ENGINES" not in os.environ:
        pytest.skip("make test-engines runs it: each worker of the whole suite would start daemons of its own")
    made = request.getfixturevalue(f"{request.param}_server")
    found = made if isinstance(made, EngineServer) else made.server()
    for name, value in found.variables.items():
        monkeypatch.setenv(name, value)
    # An engine takes its time on a busy machine, which is not the time of a keeper.
    monkeypatch.setattr("tests.supervisor.engine.conftest.PATIENCE_S", servers.PATIENCE_S)
    return found


@pytest.fixture
async def place(request: pytest.FixtureRequest, server: EngineServer) -> AsyncIterator[EnginePlace]:
    """A place in the engine that the test is about."""
    made = EnginePlace(request.node.callspec.params["server"], server)
    await made.open()
    try:
        yield made
    finally:
        await end(made)
