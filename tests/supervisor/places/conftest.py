"""An executor of a place that is this machine itself, reached over a pipe or by a real ssh server on the loopback."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.ssh_server import SshServer, loopback_server
from tests.supervisor.engine.conftest import PATIENCE_S, Engine, end_everything, until
from whisper_tui.supervisor.places.far_host import HostMode
from whisper_tui.supervisor.places.place_settings import PlaceSettings
from whisper_tui.supervisor.places.place_transports import PlaceTransport, SshTransport
from whisper_tui.supervisor.places.remote_executor import RemoteExecutor
from whisper_tui.supervisor.runs.executor import RunKey


class PipeTransport:
    """Runs what it is given here: the connection is a pipe."""

    holds: HostMode | None = None

    def __init__(self, name: str) -> None:
        self.name = name

    def summary(self) -> str:
        return "a pipe"

    def command(self, argv: Sequence[str]) -> list[str]:
        return list(argv)

    async def hold(self, argv: Sequence[str]) -> None:
        raise AssertionError("nothing is held")

    async def withdraw(self) -> None:
        raise AssertionError("nothing is held")

    def advice(self, code: int) -> str:
        return ""


class PlaceEngine(Engine):
    """An executor of a place in a directory of its own, and all that it has reported so far."""

    executor: RemoteExecutor

    def __init__(self, directory: Path, server: SshServer | None = None) -> None:
        super().__init__(directory)
        self.there = directory / "there"
        self.settings = PlaceSettings("gpu1", "ssh", directory=str(self.there), python=sys.executable, connect="start")
        self._server = server

    def transport(self, settings: PlaceSettings, near: str) -> PlaceTransport:
        if self._server is None:
            return PipeTransport(settings.name)
        return SshTransport(settings.name, self._server.name, ("-F", str(self._server.config)))

    async def open(self) -> None:
        self.executor = RemoteExecutor(self.settings, self.transport, self.runs)
        await self.executor.open()
        self._listener = asyncio.create_task(self._listen())
        await self.reached()

    async def reached(self) -> None:
        """Wait until the place is reached."""
        await until(lambda: self.executor.problem is None)

    @property
    def directory(self) -> Path:
        """The directory of the host process."""
        return next(path.parent for path in self.there.glob("*/host.lock"))

    def host_pids(self) -> list[int]:
        """The host processes, usually one."""
        return processes_with(b"serve", os.fsencode(self.there))

    def bridge_pids(self) -> list[int]:
        """The bridges of connections, usually one."""
        return processes_with(b"start", os.fsencode(self.there))

    def attempt_there(self, key: RunKey) -> Path:
        """The files of an attempt at the place."""
        return self.directory / "runs" / f"{key.call_id}.{key.attempt}"


def processes_with(*words: bytes) -> list[int]:
    """The processes whose command line has all of these words."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if set(words) <= set(path.read_bytes().split(b"\0")):
                found.append(int(path.parent.name))
    return found


async def end_place(engine: PlaceEngine) -> None:
    """End what still runs, and the host process."""
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            await end_everything(engine)
    await engine.close()
    for pid in engine.host_pids():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def ssh_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with loopback_server(tmp_path_factory.mktemp("sshd") / "server") as server:
        yield server


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[PlaceEngine]:
    made = PlaceEngine(tmp_path)
    await made.open()
    try:
        yield made
    finally:
        await end_place(made)


@pytest.fixture
async def ssh_engine(tmp_path: Path, ssh_server: SshServer) -> AsyncIterator[PlaceEngine]:
    made = PlaceEngine(tmp_path, ssh_server)
    await made.open()
    try:
        yield made
    finally:
        await end_place(made)
