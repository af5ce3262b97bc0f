"""How much one client may take: connections, requests, lines, and answers that it does not read."""

import asyncio
import json
import socket
from contextlib import aclosing

import pytest

from tests.wire.conftest import Raw, waiting_call
from whisper_tui.model.api import LARGEST_PAGE, HistoryQuery
from whisper_tui.model.call import Argv, CallRequest, CommandSpec, SessionHello
from whisper_tui.model.errors import Unavailable
from whisper_tui.model.run import OutputChunk
from whisper_tui.wire import connection as port_door
from whisper_tui.wire import rendezvous, server
from whisper_tui.wire.client import Link, SupervisorClient
from whisper_tui.wire.light_client import LightClient
from whisper_tui.wire.operations import error_line
from whisper_tui.wire.protocol import SOCKET
from whisper_tui.wire.rendezvous import connect
from whisper_tui.wire.server import ConnectionLimits, most_connections, serve


async def until(holds):
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.01)


async def test_connections_beyond_those_that_there_may_be_are_told_why_and_closed(server, home):
    server._places = ConnectionLimits(4)
    first = [await Raw.open(home) for _ in range(2)]
    third = await Raw.open(home, hello=False)
    error = (await third.receive())["error"]
    assert error["kind"] == "unavailable" and "half of the limit" in error["message"] and error["hint"]
    assert await third.is_closed()
    assert (await first[0].request({"id": 1, "op": "status"}))["ok"]
    first[1].writer.close()
    await until(lambda: server._places._taken.total() == 1)
    assert (await (await Raw.open(home)).request({"id": 1, "op": "status"}))["ok"]


async def test_a_silent_client_is_told_so_and_disconnected(server, home, monkeypatch):
    monkeypatch.setattr("whisper_tui.wire.server.HELLO_S", 0.05)
    silent = await Raw.open(home, hello=False)
    assert "no hello arrived within 0.05 s" in (await silent.receive())["error"]["message"]
    assert await silent.is_closed()


async def test_a_page_of_history_has_a_length(raw):
    told = await raw.request({"id": 1, "op": "history", "args": {"query": {"limit": LARGEST_PAGE + 1}}})
    assert "less than or equal to 10000" in told["error"]["message"]
    assert (await raw.request({"id": 2, "op": "history", "args": {"query": {"limit": LARGEST_PAGE}}}))["ok"] == []


def test_a_process_has_half_of_the_connections_and_all_together_no_more_than_all():
    places = ConnectionLimits(4)
    with places.taken(1, None), places.taken(1, None):
        with pytest.raises(Exception, match="process 1 has 2 connections open"), places.taken(1, None):
            pass
        with (
            places.taken(2, None),
            places.taken(3, None),
            pytest.raises(Exception, match="4 connections are"),
            places.taken(4, None),
        ):
            pass
        with places.taken(4, None):
            pass


def test_programs_started_by_commands_and_agents_have_their_own_share():
    places = ConnectionLimits(8)
    with places.taken(1, "command"), places.taken(2, "command"):
        with pytest.raises(Unavailable, match="2 connections are open from programs that supervised"):
            places.taken(3, "command").__enter__()
        with places.taken(4, "agent"), places.taken(5, None), places.taken(6, None), places.taken(7, None):
            pass
    with places.taken(3, "command"):
        pass


def test_half_of_the_files_that_a_process_may_open_are_left_for_others(monkeypatch):
    for allowed, most in ((1024, 512), (1, 2), (10**9, 4096), (-1, 4096)):
        monkeypatch.setattr("resource.getrlimit", lambda _, allowed=allowed: (allowed, allowed))
        assert most_connections() == most


async def test_requests_that_are_too_long_together_are_refused_until_others_are_answered(
    raw, supervisor, tmp_path, monkeypatch
):
    monkeypatch.setattr(port_door, "LARGEST_IN_FLIGHT", 250)
    call_id = await waiting_call(supervisor, tmp_path, "true")
    for number in (1, 2):
        raw.send({"id": number, "op": "outcome", "args": {"call_id": call_id}})
    long = {"id": 3, "op": "history", "args": {"query": {"text": "x" * 120}}}
    error = (await raw.request(long))["error"]
    assert "longer than 250 bytes" in error["message"] and "cancel requests" in error["hint"]
    assert (await raw.request({"cancel": 1}))["error"]["kind"] == "cancelled"
    assert (await raw.request(long))["ok"] == []


async def test_no_answer_is_produced_for_a_client_that_does_not_read(raw, supervisor, home, monkeypatch):
    asked: list[int] = []

    async def read_output(call_id, stream, offset, limit):
        asked.append(1)
        return OutputChunk(data=b"x" * 100_000, start=0, size=0, ended=False)

    monkeypatch.setattr(supervisor, "read_output", read_output)
    raw.writer.transport.pause_reading()
    arguments = {"call_id": "1", "stream": "out", "offset": 0, "limit": 1}
    for number in range(300):
        raw.send({"id": number, "op": "read_output", "args": arguments})
    await raw.writer.drain()
    other = await Raw.open(home)
    for number in range(50):
        assert (await other.request({"id": number, "op": "status"}))["ok"]
    assert 1 <= len(asked) <= 10
    raw.writer.transport.resume_reading()
    answered = {(await raw.receive())["id"] for _ in range(300)}
    assert answered == set(range(300))


async def test_a_supervisor_stops_though_a_client_does_not_read_its_answers(supervisor, home, monkeypatch):
    async def read_output(call_id, stream, offset, limit):
        return OutputChunk(data=b"x" * 4_000_000, start=0, size=0, ended=False)

    monkeypatch.setattr(supervisor, "read_output", read_output)
    monkeypatch.setattr(server, "FAREWELL_S", 0.1)
    listening = await serve(supervisor, home, {})
    raw = await Raw.open(home)
    raw.writer.transport.pause_reading()
    arguments = {"call_id": "1", "stream": "out", "offset": 0, "limit": 1}
    for number in range(5):
        raw.send({"id": number, "op": "read_output", "args": arguments})
    await raw.writer.drain()
    (writer,) = listening._connections.values()
    await until(lambda: writer.transport.get_write_buffer_size() > 1_000_000)
    await asyncio.wait_for(listening.close(), 60)


async def test_calls_that_are_large_together_can_be_watched_over_the_socket(server, supervisor, home, tmp_path):
    session = await supervisor.open_session(SessionHello(name="agent", root=str(tmp_path)))
    spec = CommandSpec(command=Argv(program="true"), cwd=str(tmp_path))
    ids = [
        await supervisor.submit(
            CallRequest(session_id=session.id, tool="t", arguments={}, spec=spec, description="é" * 1_000_000)
        )
        for _ in range(9)
    ]
    remote = await SupervisorClient.connect(home, start=False)
    seen = set()
    async with asyncio.timeout(60), aclosing(remote.watch()) as batches:
        async for batch in batches:
            seen |= {event.call.id for event in batch if event.kind == "submitted"}
            if seen == set(ids):
                break
    await remote.close()


async def test_an_event_goes_whole_into_a_line_and_a_line_is_no_longer_than_it_must_be(
    raw, supervisor, tmp_path, monkeypatch
):
    monkeypatch.setattr(port_door, "LARGEST_PART", 2000)
    for _ in range(20):
        await waiting_call(supervisor, tmp_path, "true", "x" * 500)
    raw.send({"id": 1, "op": "watch"})
    events = []
    while len([event for event in events if event["kind"] == "judged"]) < 20:
        line = await asyncio.wait_for(raw.reader.readline(), 60)
        items = json.loads(line)["item"]
        assert len(line) < 2100 or len(items) == 1
        events += items
    assert len({event["seq"] for event in events}) == len(events)


async def test_an_answer_that_no_client_would_take_is_refused(raw, supervisor, tmp_path, monkeypatch):
    monkeypatch.setattr(port_door, "LONGEST_ANSWER", 1000 + port_door.MOST_UNREAD)
    for _ in range(3):
        await waiting_call(supervisor, tmp_path, "true")
    error = (await raw.request({"id": 1, "op": "history", "args": {"query": {}}}))["error"]
    assert error["kind"] == "refused" and "Ask for less" in error["hint"]


async def test_an_error_does_not_repeat_the_whole_input(raw, server, home):
    error = (await raw.request({"id": 1, "op": "x" * 1_000_000}))["error"]
    assert len(json.dumps(error)) < 10_000 and "more characters" in error["message"]
    stranger = await Raw.open(home, hello=False)
    error = (await stranger.request({"door": "x" * 1_000_000}))["error"]
    assert len(json.dumps(error)) < 10_000


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("history", {"query": {"limit": -1}}),
        ("history", {"query": {"limit": 2**70}}),
        ("history", {"query": {"before": "abc"}}),
        ("history", {"query": {"before": "9" * 30}}),
        ("rows", {"kind": "history", "limit": 2**70}),
        ("watch", {"after": -5}),
        ("watch", {"after": 2**70}),
        ("read_output", {"call_id": "1", "stream": "out", "offset": 2**70, "limit": 1}),
        ("read_timeline", {"call_id": "1", "after": -1, "limit": 1}),
        ("resize", {"call_id": "1", "rows": 70_000, "columns": 80}),
        ("signal", {"call_id": "1", "number": 2**70, "target": "tree", "by": {"surface": "cockpit"}}),
        ("leave", {"call_id": "1", "why": "x" * 20_000}),
    ],
)
async def test_numbers_and_words_that_are_out_of_range_are_named_in_the_answer(raw, operation, arguments):
    answer = await raw.request({"id": 1, "op": operation, "args": arguments})
    assert (answer["id"], answer["error"]["kind"]) == (1, "invalid_request")
    assert answer["error"]["message"].startswith("args.")


@pytest.mark.parametrize("request_id", [b"9" * 4300, b"true", b"-9007199254740992", b"1.5", b'"1x"', b"null"])
async def test_an_id_that_no_answer_could_name_is_refused(raw, request_id):
    answer = await raw.request(b'{"id": ' + request_id + b', "op": "explode"}')
    assert "id" not in answer and answer["error"]["kind"] == "invalid_request"
    assert (await raw.request({"id": 2**53 - 1, "op": "status"}))["id"] == 2**53 - 1


async def test_a_page_of_history_has_the_length_that_was_asked_for(supervisor, tmp_path):
    for _ in range(3):
        await waiting_call(supervisor, tmp_path, "true")
    assert [record.id for record in await supervisor.history(HistoryQuery(limit=2, before="3"))] == ["2", "1"]
    assert await supervisor.history(HistoryQuery(limit=0)) == ()


def test_a_client_waits_while_the_backlog_of_the_socket_is_full(home, monkeypatch):
    home.runtime.mkdir(parents=True)
    accepted = []
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as first:
        listening.bind(str(home.runtime / SOCKET))
        listening.listen(0)
        first.connect(str(home.runtime / SOCKET))
        with pytest.raises(Unavailable, match="cannot be used"):
            connect(home, timeout_s=0.0)
        monkeypatch.setattr(rendezvous.time, "sleep", lambda _: accepted.append(listening.accept()[0]))
        connection = connect(home)
        assert connection is not None and len(accepted) == 1
        for opened in (connection, *accepted):
            opened.close()


async def test_a_client_that_is_refused_before_its_hello_is_told_why():
    for greet in (Link.open, lambda connection: asyncio.to_thread(LightClient, connection)):
        ours, theirs = socket.socketpair()
        theirs.sendall(error_line(Unavailable("512 connections are open", hint="End some")))
        theirs.close()
        with pytest.raises(Unavailable, match="512 connections are open"):
            await greet(ours)
        ours.close()


async def test_one_connection_follows_the_events_only_so_often(raw, monkeypatch):
    monkeypatch.setattr(port_door, "MOST_WATCHES", 2)
    for number in (1, 2, 3):
        raw.send({"id": number, "op": "watch", "args": {"after": 10**6}})
    answer = await raw.receive()
    assert answer["id"] == 3 and "2 requests already follow" in answer["error"]["message"] and answer["error"]["hint"]
    assert (await raw.request({"cancel": 1}))["error"]["kind"] == "cancelled"
