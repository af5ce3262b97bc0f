"""read_file: inside the workspace at once, outside with a human, and every failure by its name."""

import asyncio
import os

import pytest

from tests.supervisor.conftest import Bench
from whisper_tui.model.ending import Exited
from whisper_tui.tools import ArgumentError, ReadFileTool, ToolContext, ToolFailure, ToolRegistry


@pytest.fixture
async def place(tmp_path):
    bench = Bench(tmp_path)
    await bench.open()
    session_id = await bench.session()
    context = ToolContext(bench.supervisor, bench.supervisor._store.board.sessions[session_id])
    yield bench, ToolRegistry((ReadFileTool(context, largest=1000),), context=context)
    await bench.supervisor.close()


async def test_a_file_of_the_workspace_is_read_exactly_and_nobody_is_asked(place):
    bench, tools = place
    (bench.workspace / "a.txt").write_bytes("größe\r\nend\0".encode())
    assert await tools.call("read_file", {"path": "a.txt"}) == "größe\r\nend\0"
    assert await tools.call("read_file", {"path": str(bench.workspace / "a.txt")}) == "größe\r\nend\0"
    assert bench.supervisor._store.board.calls == {}


async def test_the_encoding_is_the_one_asked_for(place):
    bench, tools = place
    (bench.workspace / "a.txt").write_bytes(b"gr\xf6\xdfe")
    assert await tools.call("read_file", {"path": "a.txt", "encoding": "latin-1"}) == "größe"


async def test_every_failure_is_an_error_of_its_own(place):
    bench, tools = place
    (bench.workspace / "latin.txt").write_bytes(b"gr\xf6")
    (bench.workspace / "big.txt").write_bytes(b"x" * 1001)
    os.mkfifo(bench.workspace / "pipe")
    os.symlink("loop", bench.workspace / "loop")
    for arguments, words in (
        ({"path": "nope"}, "File not found: nope"),
        ({"path": "."}, "Is a directory: ."),
        ({"path": "latin.txt"}, "Encoding error: Could not decode file latin.txt with encoding utf-8"),
        ({"path": "latin.txt", "encoding": "klingon"}, "'klingon' is not the name of a text encoding"),
        ({"path": "big.txt"}, "File too large: big.txt has 1,001 bytes"),
        ({"path": "pipe"}, "Not a regular file: pipe"),
        ({"path": "loop"}, "loop"),
    ):
        result = await asyncio.wait_for(tools.call("read_file", arguments), 60)
        assert list(result) == ["error"] and words in result["error"]
        tool = tools.get_tool_by_name("read_file")
        assert tool.is_error(result) and tool.text(result) == f"Error: {result['error']}"


@pytest.mark.parametrize("arguments", [{}, {"path": 1}, {"path": "a", "encoding": None}, {"path": "a", "mode": "r"}])
async def test_a_wrong_argument_reads_nothing(place, arguments):
    _, tools = place
    with pytest.raises(ArgumentError):
        await tools.call("read_file", arguments)


@pytest.mark.parametrize("way", ["absolute", "relative", "link"])
async def test_a_file_outside_is_read_once_a_human_agrees(place, tmp_path, way):
    bench, tools = place
    (tmp_path / "secret.txt").write_text("the plan")
    os.symlink(tmp_path / "secret.txt", bench.workspace / "link")
    path = {"absolute": str(tmp_path / "secret.txt"), "relative": "../secret.txt", "link": "link"}[way]
    answer = asyncio.create_task(tools.call("read_file", {"path": path}))
    record = await bench.state("1", "waiting") if await known(bench) else None
    assert record is not None and record.call.tool == "read_file"
    assert record.spec.command.arguments == {"path": path}
    assert (
        record.call.description == f"Reads {os.path.realpath(tmp_path / 'secret.txt')}, which is outside the workspace."
    )
    await bench.approve("1")
    assert await answer == "the plan"
    assert (await bench.record("1")).state.ending == Exited(code=0)


async def test_a_denied_file_is_not_read(place, tmp_path):
    bench, tools = place
    (tmp_path / "secret.txt").write_text("the plan")
    answer = asyncio.create_task(tools.call("read_file", {"path": "../secret.txt"}))
    assert await known(bench)
    await bench.deny("1", "that is private")
    with pytest.raises(ToolFailure, match="that is private"):
        await answer


async def known(bench: Bench) -> bool:
    async with asyncio.timeout(60):
        while not bench.supervisor._store.board.waiting:
            await asyncio.sleep(0.005)
    return True
