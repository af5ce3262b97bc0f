"""What a client may send, and that nothing it sends harms the supervisor."""

import asyncio
import json
import os
import stat
from pathlib import Path

import pytest

from tests.wire.conftest import Raw, waiting_call
from whisper_tui.model.errors import BadStateDirectory
from whisper_tui.model.protocol_version import LONGEST_REQUEST, VERSION
from whisper_tui.wire import connection
from whisper_tui.wire.protocol import SOCKET
from whisper_tui.wire.server import serve


async def test_the_socket_is_ours_alone(server, home):
    assert stat.S_IMODE((Path(home.runtime) / SOCKET).stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(home.runtime).stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"this is not JSON", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b'{"id": 1', "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[1, 2]", "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b"", "not JSON"),
        (b"{}", "names no operation"),
        (b'{"id": 1, "op": "explode"}', "no operation 'explode'"),
        (b'{"id": 1, "op": ["status"]}', "no operation"),
        (b'{"op": "status"}', "id: missing"),
        (b'{"id": "one", "op": "status"}', "id: "),
        (b'{"id": 1, "op": "status", "colour": "red"}', "colour: unknown key"),
        (b'{"id": 1, "op": "status", "args": {"loud": true}}', "args.loud: unknown key"),
        (b'{"id": 1, "op": "record"}', "args: missing"),
        (b'{"id": 1, "op": "record", "args": {}}', "args.call_id: missing"),
        (b'{"id": 1, "op": "signal", "args": {"call_id": "1", "number": "KILL", "target": "all", "by": 1}}', "number"),
        (b'{"cancel": "all"}', "cancel: "),
    ],
)
async def test_a_line_without_a_request_gets_a_clear_error_and_the_connection_stays_open(raw, line, complaint):
    answer = await raw.request(line)
    assert answer["error"]["kind"] == "invalid_request"
    assert complaint in answer["error"]["message"]
    assert (await raw.request({"id": 2, "op": "status"}))["ok"]["waiting"] == 0


async def test_an_error_does_not_repeat_secrets(raw):
    hello = {"name": "a", "root": "/", "environment": {"TOKEN": ["hunter2"]}}
    answer = await raw.request({"id": 1, "op": "open_session", "args": {"hello": hello}})
    assert "TOKEN" in answer["error"]["message"] and "hunter2" not in json.dumps(answer)


async def test_an_error_says_which_request_it_is_about(raw):
    assert (await raw.request({"id": 5, "op": "record", "args": {"call_id": "9"}}))["id"] == 5
    assert (await raw.request({"id": 6, "op": "record", "args": {"number": "9"}}))["id"] == 6


async def test_a_line_that_is_too_long_is_reported_and_ends_the_connection(raw, home):
    async def flood():
        try:
            raw.writer.write(b"x" * (LONGEST_REQUEST + 100))
            await raw.writer.drain()
        except ConnectionError:
            pass

    sending = asyncio.create_task(flood())
    answer = await raw.receive()
    assert "longer than" in answer["error"]["message"]
    raw.writer.close()
    await sending
    assert (await (await Raw.open(home)).request({"id": 1, "op": "status"}))["ok"]


@pytest.mark.parametrize(
    ("hello", "complaint"),
    [
        (b"GET / HTTP/1.1", "must be a hello"),
        (b"{}", "must be a hello"),
        (b'{"door": "cellar"}', "no interface 'cellar'"),
        (b'{"door": "port"}', "version None"),
        (b'{"door": "port", "version": 99}', "version 99"),
    ],
)
async def test_a_connection_with_an_invalid_hello_is_told_why_and_closed(server, home, hello, complaint):
    raw = await Raw.open(home, hello=False)
    assert complaint in (await raw.request(hello))["error"]["message"]
    assert await raw.is_closed()


async def test_a_client_of_another_version_is_told_both_versions_and_what_to_do(server, home):
    raw = await Raw.open(home, hello=False)
    error = (await raw.request({"door": "port", "version": VERSION + 1}))["error"]
    assert str(VERSION) in error["message"] and str(VERSION + 1) in error["message"]
    assert "whisper-tui restart" in error["hint"]


async def test_several_requests_are_under_way_at_once_and_each_gets_its_own_answer(raw, supervisor, tmp_path):
    call_id = await waiting_call(supervisor, tmp_path, "true")
    raw.send({"id": 1, "op": "outcome", "args": {"call_id": call_id}})
    assert (await raw.request({"id": 2, "op": "status"}))["id"] == 2
    await supervisor.withdraw(call_id, "enough")
    answer = await raw.receive()
    assert (answer["id"], answer["ok"]["state"]["ending"]["kind"]) == (1, "withdrawn")


async def test_a_waiting_request_can_be_cancelled(raw, supervisor, tmp_path):
    call_id = await waiting_call(supervisor, tmp_path, "true")
    raw.send({"id": 1, "op": "outcome", "args": {"call_id": call_id}})
    raw.send({"cancel": 7})
    answer = await raw.request({"cancel": 1})
    assert (answer["id"], answer["error"]["kind"]) == (1, "cancelled")
    assert (await supervisor.record(call_id)).state.kind == "waiting"


async def test_an_id_is_not_used_twice_at_the_same_time(raw, supervisor, tmp_path):
    call_id = await waiting_call(supervisor, tmp_path, "true")
    raw.send({"id": 1, "op": "outcome", "args": {"call_id": call_id}})
    assert "request 1" in (await raw.request({"id": 1, "op": "status"}))["error"]["message"]


async def test_more_requests_than_anybody_needs_are_refused(raw, supervisor, tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "MOST_IN_FLIGHT", 3)
    call_id = await waiting_call(supervisor, tmp_path, "true")
    for number in range(3):
        raw.send({"id": number, "op": "outcome", "args": {"call_id": call_id}})
    answer = await raw.request({"id": 3, "op": "status"})
    assert (answer["id"], answer["error"]["kind"]) == (3, "invalid_request")


async def test_a_defect_of_the_supervisor_is_an_answer_and_not_the_end(raw, supervisor, monkeypatch, caplog):
    async def broken():
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(supervisor, "status", broken)
    error = (await raw.request({"id": 1, "op": "status"}))["error"]
    assert error["kind"] == "unavailable" and "secret" not in error["message"]
    assert "ZeroDivisionError" in caplog.text
    assert (await raw.request({"id": 2, "op": "grants"}))["ok"] == []


@pytest.mark.slow
async def test_nothing_is_written_to_a_watcher_that_does_not_read(raw, supervisor, home, tmp_path):
    await waiting_call(supervisor, tmp_path, "true", "x" * 1000)
    events = [event async for batch in _once(supervisor) for event in batch]
    asked: list[int] = []

    async def endless(after=None):
        while True:
            asked.append(1)
            yield tuple(events * 100)

    supervisor.watch = endless
    raw.send({"id": 1, "op": "watch"})
    still = 0
    async with asyncio.timeout(60):
        while still < 20:
            before = len(asked)
            await asyncio.sleep(0.01)
            still = still + 1 if asked and len(asked) == before else 0
    assert len(asked) < 1000
    assert (await (await Raw.open(home)).request({"id": 1, "op": "status"}))["ok"]


async def _once(supervisor):
    async for batch in type(supervisor).watch(supervisor):
        yield batch
        if batch[-1].kind == "judged":
            return


async def test_a_stale_socket_is_replaced_and_anything_else_is_left_alone(supervisor, home):
    first = await serve(supervisor, home, {})
    path = Path(home.runtime) / SOCKET
    os.link(path, path.with_name("kept"))
    await first.close()
    path.with_name("kept").rename(path)
    second = await serve(supervisor, home, {})
    assert (await (await Raw.open(home)).request({"id": 1, "op": "status"}))["ok"]
    await second.close()
    path.write_text("precious")
    with pytest.raises(BadStateDirectory, match="not a socket"):
        await serve(supervisor, home, {})
    assert path.read_text() == "precious"


async def test_an_endpoint_is_given_the_hello_and_the_stream(supervisor, home):
    async def echo(reader, writer, hello):
        writer.write(json.dumps(hello).encode() + b"\n")
        writer.write(await reader.readline())

    server = await serve(supervisor, home, {"echo": echo})
    raw = await Raw.open(home, hello=False)
    raw.send({"door": "echo", "version": VERSION, "word": "hi"})
    assert (await raw.receive())["word"] == "hi"
    raw.send({"x": 1})
    assert await raw.receive() == {"x": 1}
    assert await raw.is_closed()
    await server.close()


async def test_a_session_that_ends_with_its_connection_is_closed_with_it_alone(server, supervisor, home, raw, tmp_path):
    ends = {"name": "gone soon", "root": str(tmp_path), "ends_with_connection": True}
    other = await Raw.open(home)
    opened = [
        (await connection.request({"id": 1, "op": "open_session", "args": {"hello": hello}}))["ok"]["id"]
        for connection, hello in ((other, ends), (other, {**ends, "ends_with_connection": False}), (raw, ends))
    ]
    other.writer.close()
    async with asyncio.timeout(60):
        while (await supervisor.session(opened[0])).closed_at is None:
            await asyncio.sleep(0.005)
    first, second, third = [await supervisor.session(session_id) for session_id in opened]
    assert first.closed_because == "the agent disconnected"
    assert second.closed_at is None and third.closed_at is None


async def test_a_session_that_is_resumed_stays_with_the_new_connection(server, supervisor, home, raw, tmp_path):
    hello = {"name": "back", "root": str(tmp_path), "ends_with_connection": True}
    other = await Raw.open(home)
    session_id = (await other.request({"id": 1, "op": "open_session", "args": {"hello": hello}}))["ok"]["id"]
    again = {**hello, "resume": session_id}
    assert (await raw.request({"id": 1, "op": "open_session", "args": {"hello": again}}))["ok"]["id"] == session_id
    other.writer.close()
    async with asyncio.timeout(60):
        while len(server._connections) > 1:
            await asyncio.sleep(0.005)
    assert (await supervisor.session(session_id)).closed_at is None
    raw.writer.close()
    async with asyncio.timeout(60):
        while (await supervisor.session(session_id)).closed_at is None:
            await asyncio.sleep(0.005)


async def test_a_stop_of_the_supervisor_closes_no_session_of_a_connection(supervisor, server, home, raw, tmp_path):
    hello = {"name": "waits", "root": str(tmp_path), "ends_with_connection": True}
    session_id = (await raw.request({"id": 1, "op": "open_session", "args": {"hello": hello}}))["ok"]["id"]
    await server.close()
    assert (await supervisor.session(session_id)).closed_at is None
