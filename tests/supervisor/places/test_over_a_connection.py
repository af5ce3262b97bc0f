"""One command at a place, over a pipe and over ssh: output, exit code, input, signals, and what is removed there."""

import os
import signal

from tests.rows import each_row
from tests.ssh_server import needs_sshd
from tests.supervisor.engine.conftest import until
from tests.supervisor.places.conftest import PlaceEngine
from whisper_tui.model.ending import Exited, Signalled
from whisper_tui.supervisor.places.far_package import far_package
from whisper_tui.supervisor.runs.executor import HasEnded, NeverRan, RunKey


async def _runs_as_here(engine: PlaceEngine) -> None:
    key = await engine.run("echo out; echo err >&2; exit 3")
    assert await engine.ended(key) == Exited(code=3)
    assert (engine.out(key), engine.err(key)) == (b"out\n", b"err\n")
    rows = engine.executor.read_timeline(key, 0, 10)
    assert [(row.stream, row.start, row.length) for row in rows] == [("out", 0, 4), ("err", 0, 4)]
    reported = (await engine.seen(key, HasEnded)).output
    assert (reported.out, reported.err) == (4, 4)
    # What is here is whole, so the place does not keep it.
    await until(lambda: not engine.attempt_there(key).exists())


async def test_a_command_at_the_other_end_of_a_pipe_runs_as_here(engine: PlaceEngine) -> None:
    await _runs_as_here(engine)


@needs_sshd
async def test_a_command_behind_ssh_runs_as_here(ssh_engine: PlaceEngine) -> None:
    await _runs_as_here(ssh_engine)


@needs_sshd
async def test_input_and_signals_go_over_ssh(ssh_engine: PlaceEngine) -> None:
    key = await ssh_engine.start("cat; sleep 1000", accepts_input=True)
    data = os.urandom(300_000)
    await ssh_engine.executor.write_stdin(key, data, eof=True)
    await until(lambda: len(ssh_engine.out(key)) == len(data))
    assert ssh_engine.out(key) == data
    await ssh_engine.executor.signal(key, signal.SIGKILL, "tree")
    ending = await ssh_engine.ended(key)
    assert isinstance(ending, Signalled) and ending.number == signal.SIGKILL
    await ssh_engine.settled(key)


async def test_a_place_has_the_login_environment_of_its_user_and_what_was_approved(engine: PlaceEngine) -> None:
    hello = engine.executor.connection.hello
    assert hello is not None and hello.environment["PATH"]
    key = await engine.run("echo $HOME; echo $APPROVED; echo ${LOCAL-none}", **{"environment": {"APPROVED": "yes"}})
    assert engine.out(key).decode() == f"{hello.environment['HOME']}\nyes\nnone\n"


async def test_its_processes_are_nobodys_here(engine: PlaceEngine) -> None:
    key = await engine.start("sleep 1000")
    process = (await engine.spawned(key)).process
    assert process.leader.boot_id.startswith("gpu1/")
    await engine.executor.end(key, 0)
    await engine.settled(key)


async def test_a_late_order_for_an_attempt_that_was_given_up_starts_nothing(engine: PlaceEngine) -> None:
    key = RunKey("7", 1)
    await engine.executor.attach(key)
    assert isinstance(await engine.seen(key, NeverRan), NeverRan)
    mark = engine.workspace / "ran"
    # As an older connection would send it now: the near end here has no trace of the attempt.
    order = engine.order(f"touch {mark}", key=RunKey("7", 1))
    await until(lambda: not (engine.runs / "7.1").exists() or (engine.runs / "7.1" / "done").exists())
    for path in (engine.runs / "7.1").iterdir():
        path.unlink()
    (engine.runs / "7.1").rmdir()
    engine.told.clear()
    revoked = engine.attempt_there(key)
    revoked.mkdir(exist_ok=True)
    (revoked / "claim").unlink(missing_ok=True)
    (revoked / "claim").symlink_to("revoked")
    (revoked / "done").touch()
    await engine.executor.start(order)
    assert isinstance(await engine.seen(key, NeverRan), NeverRan)
    assert not mark.exists()


def test_the_archive_is_the_same_whenever_it_is_made() -> None:
    package = far_package()
    far_package.cache_clear()
    assert far_package() == package


@each_row("word", ["'", "\n", "$", "!"])
def test_the_loader_survives_every_shell(word: str) -> None:
    program = far_package().argv("python3", "start", "", "near")[5]
    assert word not in program or word == "'"
