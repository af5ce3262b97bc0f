"""The door of `whisper-tui call`: one call for each connection, and the same one for whoever comes back."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.supervisor.conftest import Bench
from tests.transports.endpoint_server import EndpointServer
from whisper_tui.model.errors import InvalidRequest, Refused
from whisper_tui.supervisor.places.place_settings import PlaceSettings
from whisper_tui.tools import standard_registry
from whisper_tui.transports.shell_call import INLINE, ShellCallEndpoint

Hello = dict[str, Any]


@pytest.fixture
async def endpoint(bench: Bench, tmp_path) -> AsyncIterator[EndpointServer]:
    door = ShellCallEndpoint(bench.supervisor, standard_registry)
    async with EndpointServer(door, tmp_path / "door", bench.workspace).open() as opened:
        yield opened


def hello(bench: Bench, **changes: object) -> Hello:
    said = {
        "door": "call",
        "version": 1,
        "name": "script",
        "root": str(bench.workspace),
        "pid": os.getpid(),
        "environment": {},
        "nonce": "0123456789abcdef",
        "tool": "execute_command",
        "arguments": {"command": "true"},
    }
    return said | changes


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.005)


async def test_a_call_is_told_its_number_and_then_its_answer_and_its_session_ends(endpoint, bench, human):
    async with endpoint.lines(hello(bench)) as lines:
        assert lines.greeting == {"call": "1", "waits": True}
        await human.approve_and_run("1")
        answer = await lines.receive()
    assert (answer["result"]["stdout"], answer["failed"], answer["told"]) == ("hi\n", False, None)
    session = await bench.supervisor.session("s1")
    assert (session.name, session.closed_because) == ("script", "the command ended")


async def test_the_same_nonce_is_the_same_call(endpoint, bench, human):
    async with endpoint.lines(hello(bench)) as first:
        assert first.greeting["call"] == "1"
        await endpoint.stop()
    assert (await bench.record("1")).state.kind == "waiting"
    async with endpoint.lines(hello(bench)) as second:
        assert second.greeting == {"call": "1", "waits": True}
        await human.approve_and_run("1")
        assert (await second.receive())["result"]["return_code"] == 0
    async with endpoint.lines(hello(bench, nonce="another0another0")) as other:
        assert other.greeting["call"] == "2"


async def test_a_connection_that_ends_takes_back_what_has_not_started(endpoint, bench, human):
    async with endpoint.lines(hello(bench)):
        await human.waiting("1")
    record = await bench.state("1", "ended")
    assert (record.state.ending.kind, record.state.ending.why) == ("withdrawn", "the caller gave up")
    await until(lambda: bench.supervisor.board.sessions["s1"].closed_at)


async def test_a_tool_that_needs_nobody_answers_at_once(endpoint, bench):
    (bench.workspace / "note").write_text("read me")
    async with endpoint.lines(hello(bench, tool="read_file", arguments={"path": "note"})) as lines:
        assert "read me" in json.dumps(lines.greeting["result"])
    assert not bench.supervisor.board.calls


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tool": "nothing"}, "no tool 'nothing'"),
        ({"arguments": {"comand": "ls"}}, "comand"),
        ({"nonce": "short"}, "nonce"),
        ({"environment": 5}, "environment"),
        ({"resume": "s1"}, "resume"),
    ],
)
async def test_an_invalid_hello_is_refused_in_a_form_that_every_version_reads(bench, changes, said):
    door = ShellCallEndpoint(bench.supervisor, standard_registry)
    with pytest.raises(InvalidRequest, match=said):
        await door(asyncio.StreamReader(), None, hello(bench, **changes))
    assert all(session.closed_at for session in bench.supervisor.board.sessions.values())


async def test_long_output_is_left_to_the_caller_or_cut_for_one_that_cannot_read_it(endpoint, bench, human):
    for number, version in enumerate((2, 1), start=1):
        said = hello(bench, version=version, nonce=f"0123456789abcde{version}")
        async with endpoint.lines(said) as lines:
            assert lines.greeting["call"] == str(number)
            await human.waiting(str(number))
            await bench.approve(str(number))
            await human.run(str(number), lambda key: bench.executor.write(key, b"x" * (INLINE + 1)))
            answer = await lines.receive()
        stdout = answer["result"]["stdout"]
        if version == 2:
            assert answer["left_out"][stdout] == "out" and len(stdout) < 100
        else:
            assert "bytes are left out here" in stdout and len(stdout) <= INLINE and not answer["left_out"]


async def test_a_call_names_the_place_where_it_runs(endpoint, bench):
    bench.places = (PlaceSettings("gpu1", "ssh"),)
    await bench.restart()
    door = ShellCallEndpoint(bench.supervisor, standard_registry)
    server = EndpointServer(door, bench.workspace.parent / "placed", bench.workspace)
    async with server.open() as placed, placed.lines(hello(bench, place="gpu1")) as lines:
        assert (await bench.record(lines.greeting["call"])).spec.place == "gpu1"
    with pytest.raises(Refused, match="there is no place 'gpu2'"):
        await door(asyncio.StreamReader(), None, hello(bench, place="gpu2", nonce="another0another0"))
