"""A command that cannot be started says exactly why, and never looks like one that ran."""

import os
import sys
from pathlib import Path

import pytest

from tests.supervisor.engine.conftest import Engine
from whisper_tui.model.call import Argv
from whisper_tui.model.ending import Exited, FailedToStart
from whisper_tui.supervisor.keeper.spawn import StartFailed, enter
from whisper_tui.supervisor.runs.executor import HasEnded, HasSettled, RunKey


async def failure(engine: Engine, key: RunKey) -> FailedToStart:
    await engine.settled(key)
    assert [type(report) for report in engine.of(key)] == [HasEnded, HasSettled], "there was never a process"
    ending = await engine.ended(key)
    assert isinstance(ending, FailedToStart)
    return ending


async def start_file(engine: Engine, path: Path, **settings) -> FailedToStart:
    key = await engine.start(Argv(program=str(path)), program=str(path), **settings)
    return await failure(engine, key)


async def test_a_program_that_nobody_found(engine: Engine):
    key = await engine.start(Argv(program="no-such-program"))
    told = await failure(engine, key)
    assert (told.problem, told.subject) == ("program_not_found", "no-such-program")


async def test_a_path_where_nothing_is(engine: Engine):
    key = await engine.start(Argv(program="./nothing"), program=None)
    told = await failure(engine, key)
    assert (told.problem, told.subject) == ("program_not_found", "./nothing")


async def test_a_program_that_was_removed_after_it_was_approved(engine: Engine):
    told = await start_file(engine, engine.workspace / "gone")
    assert told.problem == "program_not_found"


async def test_a_link_that_leads_nowhere(engine: Engine):
    (engine.workspace / "link").symlink_to("nowhere")
    assert (await start_file(engine, engine.workspace / "link")).problem == "program_not_found"


async def test_a_working_directory_that_does_not_exist(engine: Engine):
    key = await engine.start("true", cwd=str(engine.workspace / "nowhere"))
    told = await failure(engine, key)
    assert (told.problem, told.subject) == ("cwd_not_found", str(engine.workspace / "nowhere"))


async def test_a_working_directory_that_is_a_file(engine: Engine):
    (engine.workspace / "file").touch()
    told = await failure(engine, await engine.start("true", cwd=str(engine.workspace / "file")))
    assert told.problem == "cwd_not_found"
    assert "not a directory" in told.message


def test_a_working_directory_that_may_not_be_entered(tmp_path: Path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o000)
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(65534)  # root may enter everything
    try:
        with pytest.raises(StartFailed) as caught:
            enter(str(closed))
    finally:
        if was_root:
            os.seteuid(0)
    assert (caught.value.problem, caught.value.subject) == ("permission_denied", str(closed))


async def test_a_file_that_is_not_executable(engine: Engine):
    script = engine.workspace / "script"
    script.write_text("#!/bin/sh\ntrue\n")
    assert (await start_file(engine, script)).problem == "permission_denied"
    key = await engine.start(Argv(program="./script"), program=None)
    assert (await failure(engine, key)).problem == "permission_denied"


async def test_a_directory_in_the_place_of_a_program(engine: Engine):
    told = await start_file(engine, engine.workspace)
    assert told.problem == "permission_denied"
    assert "is a directory" in told.message


async def test_a_script_whose_interpreter_does_not_exist(engine: Engine):
    script = engine.workspace / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    told = await start_file(engine, script)
    assert (told.problem, told.subject) == ("not_executable", str(script))
    assert "interpreter" in told.message


async def test_a_file_that_is_no_program(engine: Engine):
    script = engine.workspace / "script"
    script.write_text("just words\n")
    script.chmod(0o755)
    assert (await start_file(engine, script)).problem == "not_executable"


async def test_a_word_with_a_nul_in_it(engine: Engine):
    key = await engine.start(Argv(program="echo", args=("a\0b",)))
    assert (await failure(engine, key)).problem == "other"


async def test_arguments_longer_than_the_system_takes(engine: Engine):
    key = await engine.start(Argv(program="echo", args=("x" * 200_000,) * 20))
    told = await failure(engine, key)
    assert told.problem == "other"
    assert "longer" in told.message


async def test_characters_that_no_argument_can_hold(engine: Engine):
    key = await engine.start(Argv(program="echo", args=("\ud800",)))
    assert (await failure(engine, key)).problem == "other"


async def test_the_name_as_asked_is_what_the_program_sees(engine: Engine):
    code = (
        "import os; print(open('/proc/self/cmdline').read().split(chr(0))[0])"
        if Path("/proc").is_dir()
        else "print('py')"
    )
    key = await engine.run(Argv(program="py", args=("-c", code)), program=sys.executable)
    assert await engine.ended(key) == Exited(code=0)
    assert engine.out(key) == b"py\n"


async def test_a_failed_start_is_reported_again_after_a_restart(engine: Engine):
    key = await engine.start(Argv(program="no-such-program"))
    before = await failure(engine, key)
    await engine.reopen()
    await engine.executor.attach(key)
    assert await failure(engine, key) == before
