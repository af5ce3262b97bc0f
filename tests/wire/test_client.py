"""The client side of the port: lost connections, long requests, output straight from the files."""

import asyncio
import inspect
from contextlib import aclosing

import pytest

from tests.outside import outside_only
from tests.wire.conftest import waiting_call
from whisper_tui.model.api import Supervision
from whisper_tui.model.board import Board
from whisper_tui.model.decision import Approve, Decider
from whisper_tui.model.errors import InvalidRequest, Unavailable
from whisper_tui.model.protocol_version import LONGEST_REQUEST
from whisper_tui.supervisor.runs.output_files import LocalOutput
from whisper_tui.wire.client import SupervisorClient
from whisper_tui.wire.operations import OF_DESK, OPERATIONS
from whisper_tui.wire.server import serve
from whisper_tui.wire.server_state import OF_ROWS


def test_the_table_has_every_operation_of_the_api():
    declared = {name for name in vars(Supervision) if not name.startswith("_")}
    assert declared | OF_ROWS | OF_DESK == set(OPERATIONS)


@pytest.fixture
async def client(server, home):
    made = await SupervisorClient.connect(home, start=False)
    yield made
    await made.close()


async def test_a_waiting_client_is_told_when_the_supervisor_stops(client, server, supervisor, tmp_path):
    outcome = asyncio.create_task(client.outcome(await waiting_call(supervisor, tmp_path, "true")))
    await client.status()
    await server.close()
    with pytest.raises(Unavailable, match="lost"):
        await asyncio.wait_for(outcome, 60)


@pytest.mark.parametrize("differs", ["the packing", "the version"])
async def test_a_board_comes_as_events_from_a_supervisor_that_packs_otherwise_or_not_at_all(
    client, supervisor, tmp_path, monkeypatch, differs
):
    waiting = await waiting_call(supervisor, tmp_path, "true")
    if differs == "the version":
        known = {name: operation for name, operation in OPERATIONS.items() if name != "watch_board"}
        monkeypatch.setattr("whisper_tui.wire.operations.OPERATIONS", known)
    board = Board()
    async with asyncio.timeout(60), aclosing(client.watch_board("otherwise")) as batches:
        async for events in batches:
            if not events:
                break
            board.apply_all(events)
    assert [*board.waiting] == [waiting]


async def test_a_watcher_is_told_when_the_supervisor_goes_away(client, server, supervisor, tmp_path):
    await waiting_call(supervisor, tmp_path, "true")
    watching = client.watch()
    await anext(watching)
    await server.close()
    with pytest.raises(Unavailable):
        async with asyncio.timeout(60):
            while True:
                await anext(watching)


async def test_the_next_request_connects_again(client, server, supervisor, home):
    await client.status()
    await server.close()
    with pytest.raises(Unavailable, match="no supervisor runs"):
        await client.status()
    again = await serve(supervisor, home, {})
    assert (await client.status()).waiting == 0
    await again.close()


async def test_a_request_that_is_too_long_is_refused_here_and_harms_nothing(client):
    with pytest.raises(InvalidRequest, match="bytes long"):
        await client.write_stdin("1", b"x" * LONGEST_REQUEST)
    assert (await client.status()).waiting == 0


@pytest.mark.slow
async def test_a_slow_watcher_misses_nothing(client, supervisor, tmp_path):
    board = Board()
    watching = client.watch()
    call_ids = [await waiting_call(supervisor, tmp_path, "true", "x" * 10_000) for _ in range(300)]
    async with asyncio.timeout(60):
        async for batch in watching:
            board.apply_all(batch)
            await asyncio.sleep(0)
            if call_ids[-1] in board.waiting:
                break
    await watching.aclose()
    assert list(board.waiting) == call_ids


@outside_only
async def test_output_is_read_without_asking_the_supervisor(server, home, supervisor, tmp_path):
    client = await SupervisorClient.connect(home, start=False, local_output=LocalOutput(home.state))
    call_id = await waiting_call(supervisor, tmp_path, "printf", "hello")
    seen = (await client.record(call_id)).seen_digest()
    await client.decide(call_id, Approve(), Decider(surface="library"), seen)
    await client.outcome(call_id)
    assert (await client.read_output(call_id, "out", 0, 100)).data == b"hello"
    await server.close()
    assert (await client.read_output(call_id, "out", 1, 100)).data == b"ello"
    assert (await client.read_timeline(call_id, 0, 10))[0].length == 5
    await client.close()


@outside_only
async def test_a_client_without_the_files_is_sent_the_same_output(client, home, supervisor, tmp_path):
    call_id = await waiting_call(supervisor, tmp_path, "printf", "hello")
    seen = (await client.record(call_id)).seen_digest()
    await client.decide(call_id, Approve(), Decider(surface="library"), seen)
    await client.outcome(call_id)
    local = await SupervisorClient.connect(home, start=False, local_output=LocalOutput(home.state))
    for reader in (client, local):
        chunk = await reader.read_output(call_id, "out", 1, 3)
        assert (chunk.data, chunk.start, chunk.size) == (b"ell", 1, 5)
        assert [span.length for span in await reader.read_timeline(call_id, 0, 10)] == [5]
        assert len(await reader.terminal_sizes(call_id)) == 1
    await local.close()


async def test_closing_tells_everybody_who_waits(client, supervisor, tmp_path):
    outcome = asyncio.create_task(client.outcome(await waiting_call(supervisor, tmp_path, "true")))
    await client.status()
    await client.close()
    with pytest.raises(Unavailable):
        await asyncio.wait_for(outcome, 60)


async def test_a_request_is_carried_out_even_if_its_client_is_gone(client, server, supervisor, monkeypatch):
    begun, may_end, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(session_id, why):
        begun.set()
        await may_end.wait()
        ended.set()

    monkeypatch.setattr(supervisor, "close_session", slow)
    asking = asyncio.create_task(client.close_session("s1", "bye"))
    await asyncio.wait_for(begun.wait(), 60)
    asking.cancel()
    await asyncio.wait([asking])
    await client.close()
    may_end.set()
    await asyncio.wait_for(ended.wait(), 60)


def test_the_client_has_every_method_of_the_api_as_it_is_declared():
    for name in vars(Supervision):
        if not name.startswith("_"):
            declared, derived = getattr(Supervision, name), getattr(SupervisorClient, name)
            assert taken_by(derived) == taken_by(declared), name
            assert derived is not declared and inspect.getdoc(derived), name


def taken_by(method):
    return [(one.name, one.kind, one.default) for one in inspect.signature(method).parameters.values()]
