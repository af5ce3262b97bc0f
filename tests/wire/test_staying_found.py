"""A supervisor that somebody has removed the files of can be found again, or goes."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.wire.conftest import Raw
from whisper_tui.model.home import Home
from whisper_tui.supervisor.core import Supervisor
from whisper_tui.supervisor.state_directory import Occupation
from whisper_tui.wire import staying_found
from whisper_tui.wire.rendezvous import SOCKET
from whisper_tui.wire.server import Server, serve

WITHIN_S = 30


@pytest.fixture
async def gone(supervisor: Supervisor, server: Server, home: Home, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator:
    """Set once nobody can find the supervisor."""
    monkeypatch.setattr(staying_found, "LOOK_EVERY_S", 0.01)
    found_out = asyncio.Event()
    with Occupation(home.state) as occupation:
        looking = asyncio.create_task(staying_found.stay_found(server, occupation, found_out.set))
        yield found_out
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


async def found_again(server: Server) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not server.is_found:
            await asyncio.sleep(0.005)


async def test_a_socket_that_was_removed_is_made_again_and_connections_stay(
    gone: asyncio.Event, server: Server, raw: Raw, home: Home
) -> None:
    (Path(home.runtime) / SOCKET).unlink()
    await found_again(server)
    assert (await (await Raw.open(home)).say({"id": 1, "op": "status"}))["ok"]
    assert (await raw.say({"id": 2, "op": "status"}))["ok"]
    assert not gone.is_set()


async def test_what_is_in_the_place_of_the_socket_is_left_alone_and_the_socket_comes_back_when_it_is_gone(
    gone: asyncio.Event, server: Server, home: Home, caplog: pytest.LogCaptureFixture
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
async def test_whoever_has_lost_its_state_directory_goes(gone: asyncio.Event, home: Home, *, replaced: bool) -> None:
    Path(home.state).rename(Path(home.state).with_name("elsewhere"))
    if replaced:
        Path(home.state).mkdir(mode=0o700)
        Occupation(home.state).release()
    await asyncio.wait_for(gone.wait(), WITHIN_S)


async def test_whoever_goes_leaves_the_socket_of_the_next_one(supervisor: Supervisor, home: Home) -> None:
    first = await serve(supervisor, home, {})
    (Path(home.runtime) / SOCKET).unlink()
    second = await serve(supervisor, home, {})
    await first.close()
    assert (await (await Raw.open(home)).say({"id": 1, "op": "status"}))["ok"]
    await second.close()
