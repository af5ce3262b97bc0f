"""A supervisor that somebody has removed the files of can be found again, or goes."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.wire.conftest import Raw
from whisper_tui.supervisor.supervisor import Supervisor
from whisper_tui.system.state_directory import Directories, StateDirectoryLock
from whisper_tui.wire import server as staying_found
from whisper_tui.wire.protocol import SOCKET
from whisper_tui.wire.server import Server, serve

WITHIN_S = 30


@pytest.fixture
async def gone(
    supervisor: Supervisor, server: Server, home: Directories, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator:
    """Set once nobody can find the supervisor."""
    monkeypatch.setattr(staying_found, "CHECK_EVERY_S", 0.01)
    found_out = asyncio.Event()
    with StateDirectoryLock(home.state) as occupation:
        looking = asyncio.create_task(staying_found.keep_listening(server, occupation, found_out.set))
        yield found_out
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


async def found_again(server: Server) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not server.is_found:
            await asyncio.sleep(0.005)


async def test_a_removed_socket_is_created_again_and_connections_stay_open(
    gone: asyncio.Event, server: Server, raw: Raw, home: Directories
) -> None:
    (Path(home.runtime) / SOCKET).unlink()
    await found_again(server)
    assert (await (await Raw.open(home)).request({"id": 1, "op": "status"}))["ok"]
    assert (await raw.request({"id": 2, "op": "status"}))["ok"]
    assert not gone.is_set()


async def test_another_file_in_the_place_of_the_socket_is_left_alone(
    gone: asyncio.Event, server: Server, home: Directories, caplog: pytest.LogCaptureFixture
) -> None:
    path = Path(home.runtime) / SOCKET
    path.unlink()
    path.write_text("precious")
    async with asyncio.timeout(WITHIN_S):
        while "is not a socket" not in caplog.text:
            await asyncio.sleep(0.005)
    assert path.read_text() == "precious"
    path.unlink()
    await found_again(server)
    assert not gone.is_set()


@pytest.mark.parametrize("replaced", [False, True])
async def test_a_supervisor_without_its_state_directory_stops(
    gone: asyncio.Event, home: Directories, *, replaced: bool
) -> None:
    Path(home.state).rename(Path(home.state).with_name("elsewhere"))
    if replaced:
        Path(home.state).mkdir(mode=0o700)
        StateDirectoryLock(home.state).release()
    await asyncio.wait_for(gone.wait(), WITHIN_S)


async def test_a_stopping_supervisor_leaves_the_socket_of_the_next_one(
    supervisor: Supervisor, home: Directories
) -> None:
    first = await serve(supervisor, home, {})
    (Path(home.runtime) / SOCKET).unlink()
    second = await serve(supervisor, home, {})
    await first.close()
    assert (await (await Raw.open(home)).request({"id": 1, "op": "status"}))["ok"]
    await second.close()
