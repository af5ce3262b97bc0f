"""Bytes for a command's input: whole, in order, and ended when told."""

import sys

import pytest

from tests.supervisor.engine.conftest import Engine, until
from whisper_tui.model.call import Argv
from whisper_tui.model.ending import Exited
from whisper_tui.model.errors import NotRunning


async def test_a_command_that_takes_no_input_finds_it_at_its_end(engine: Engine):
    key = await engine.run("cat; echo done")
    assert engine.out(key) == b"done\n"


async def test_input_arrives_and_its_end_too(engine: Engine):
    key = await engine.start("cat", accepts_input=True)
    await engine.executor.write_stdin(key, b"one\n")
    await until(lambda: engine.out(key) == b"one\n")
    await engine.executor.write_stdin(key, b"two\n", eof=True)
    await engine.settled(key)
    assert await engine.ended(key) == Exited(code=0)
    assert engine.out(key) == b"one\ntwo\n"


async def test_input_larger_than_a_pipe_arrives_completely(engine: Engine):
    data = bytes(range(256)) * 8192
    key = await engine.start("sleep 0.3; cat", accepts_input=True)
    await engine.executor.write_stdin(key, data, eof=True)
    await engine.settled(key)
    assert engine.out(key) == data


async def test_two_writers_at_once_do_not_mix(engine: Engine):
    import asyncio

    key = await engine.start("cat", accepts_input=True)
    pieces = [bytes([letter]) * 200_000 for letter in b"abc"]
    await asyncio.gather(*(engine.executor.write_stdin(key, piece) for piece in pieces))
    await engine.executor.write_stdin(key, b"", eof=True)
    await engine.settled(key)
    assert sorted(engine.out(key)[start : start + 200_000] for start in (0, 200_000, 400_000)) == pieces


async def test_the_input_can_be_opened_by_name_after_its_end(engine: Engine):
    key = await engine.start("until test -e go; do sleep 0.02; done; cat /dev/stdin", accepts_input=True)
    await engine.executor.write_stdin(key, b"early\n", eof=True)
    (engine.workspace / "go").touch()
    await engine.settled(key)
    assert engine.out(key) == b"early\n"


async def test_writing_to_a_command_without_input_is_refused(engine: Engine):
    key = await engine.start("sleep 600")
    with pytest.raises(NotRunning):
        await engine.executor.write_stdin(key, b"x")


async def test_writing_to_a_command_that_closed_its_input_is_refused_in_the_end(engine: Engine):
    key = await engine.start("exec <&-; echo closed; sleep 600", accepts_input=True)
    await until(lambda: engine.out(key) == b"closed\n")
    with pytest.raises(NotRunning):
        while True:
            await engine.executor.write_stdin(key, b"x" * 100_000)


async def test_a_command_may_end_without_reading_its_input(engine: Engine):
    key = await engine.start(Argv(program=sys.executable, args=("-c", "print('bye')")), accepts_input=True)
    await engine.settled(key)
    assert engine.out(key) == b"bye\n"
