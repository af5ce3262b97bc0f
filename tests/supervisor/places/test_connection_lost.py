"""A connection that breaks: input arrives once, honest answers about doubt, one near end at a time, other versions."""

import asyncio
import errno
import hashlib
import os
import random
import shutil
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.interpreter import PYTHON
from tests.ssh_server import SshServer, needs_sshd
from tests.supervisor.engine.conftest import alive, kill_for_good, until
from tests.supervisor.places.conftest import PipeTransport, PlaceEngine, end_place
from tests.supervisor.places.faults import ROUND_S, one_round
from whisper_tui.model.ending import Exited, Lost
from whisper_tui.model.errors import InvalidRequest, Unavailable
from whisper_tui.supervisor.places import far_package as packages
from whisper_tui.supervisor.places import far_runs
from whisper_tui.supervisor.places.frames import GREETING, encoded
from whisper_tui.supervisor.runs.executor import HasSettled, HasSpawned, NeverRan, RunKey


async def killed(engine: PlaceEngine, pids: list[int]) -> None:
    """Kill processes between here and there, and wait until the place is reached over a new connection."""
    before = engine.executor.connection.since
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    await until(lambda: engine.executor.connection.since != before and engine.executor.problem is None)


@pytest.mark.slow
async def test_the_host_process_is_killed_and_the_run_goes_on(engine: PlaceEngine) -> None:
    key = await engine.start("for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.2; done; exit 5")
    await engine.spawned(key)
    for _ in range(2):
        await killed(engine, engine.host_pids())
    assert await engine.ended(key) == Exited(code=5)
    await engine.settled(key)
    assert engine.out(key) == b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"


SAYS_AND_ENDS = "import os, sys; os.close(0); os.write(1, bytes.fromhex(sys.argv[1])); sys.exit('the way is gone')"


@pytest.mark.parametrize(
    "said", [{"needs": "the archive"}, {"hello": 1, "package": "of another version"}], ids=["needs", "another version"]
)
async def test_a_program_that_ends_while_something_is_sent_to_it_is_started_again(
    tmp_path: Path, said: dict[str, Any]
) -> None:
    engine = PlaceEngine(tmp_path)
    firsts = [[PYTHON, "-c", SAYS_AND_ENDS, (GREETING + encoded(said, b"{}")).hex()]]

    class Way(PipeTransport):
        def command(self, argv: Sequence[str]) -> list[str]:
            return firsts.pop() if firsts else super().command(argv)

    engine.transport = lambda settings, _near: Way(settings.name)  # type: ignore[method-assign]
    await engine.open()
    try:
        assert not firsts
        await engine.run("true")
    finally:
        await end_place(engine)


async def test_a_connection_for_which_this_machine_has_no_room_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, made = PlaceEngine(tmp_path), tempfile.TemporaryFile
    full = [OSError(errno.ENOSPC, "No space left on device")]
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: _raise(full.pop()) if full else made())
    engine.reached = lambda: asyncio.sleep(0)  # type: ignore[method-assign]
    await engine.open()
    try:
        await until(lambda: "No space left" in (engine.executor.problem or "") or engine.executor.problem is None)
        del engine.reached
        await engine.reached()
        assert not full
    finally:
        await end_place(engine)


def _raise(error: OSError) -> NoReturn:
    raise error


@pytest.mark.slow
async def test_input_arrives_exactly_once_over_broken_connections(engine: PlaceEngine) -> None:
    key = await engine.start("sha256sum; exit 2", accepts_input=True)
    await engine.spawned(key)
    data = random.Random(7).randbytes(3_000_000)
    writing = asyncio.create_task(engine.executor.write_stdin(key, data, eof=True))
    for _ in range(4):
        await asyncio.sleep(0.02)
        await killed(engine, engine.bridge_pids())
    await writing
    await engine.settled(key)
    assert engine.out(key).split()[0].decode() == hashlib.sha256(data).hexdigest()


@pytest.mark.slow
async def test_input_goes_on_if_the_connection_is_lost_after_each_of_its_pieces_and_at_its_end(
    engine: PlaceEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await engine.start("sha256sum; exit 2", accepts_input=True)
    await engine.spawned(key)
    connection, cuts = engine.executor.connection, 0
    ask = connection.ask

    async def cut(do: str, payload: bytes = b"", **header: Any) -> Any:
        nonlocal cuts
        if do not in {"input", "order"}:
            return await ask(do, payload, **header)
        asking = connection.send(do, payload, **header)
        if do == "input":
            told = await asking
        for pid in engine.bridge_pids():
            os.kill(pid, signal.SIGKILL)
        await until(lambda: connection.hello is None)
        cuts += 1
        return told if do == "input" else await asking

    monkeypatch.setattr(connection, "ask", cut)
    data = random.Random(8).randbytes(300_000)
    writing = asyncio.create_task(engine.executor.write_stdin(key, data, eof=True))
    await until(lambda: cuts >= 4)
    monkeypatch.undo()
    await writing
    await engine.settled(key)
    assert engine.out(key).split()[0].decode() == hashlib.sha256(data).hexdigest()


@pytest.mark.slow
async def test_input_is_doubtful_once_the_host_process_that_counted_it_is_gone(engine: PlaceEngine) -> None:
    key = await engine.start("sleep 1000", accepts_input=True)
    await engine.spawned(key)
    writing = asyncio.create_task(engine.executor.write_stdin(key, b"x" * 1_000_000))
    await asyncio.sleep(0.3)
    await killed(engine, engine.host_pids())
    with pytest.raises(Unavailable, match="the request may have arrived"):
        await writing
    await engine.executor.end(key, 0)
    await engine.settled(key)


@pytest.mark.slow
async def test_a_place_made_anew_has_lost_what_ran_there_and_does_not_run_it_again(engine: PlaceEngine) -> None:
    key = await engine.start("echo started >> started; sleep 1000")
    process = (await engine.spawned(key)).process
    await engine.close()
    for pid in engine.host_pids():
        os.kill(pid, signal.SIGKILL)
    kill_for_good(process.keeper_pid)
    os.kill(process.leader.pid, signal.SIGKILL)
    shutil.rmtree(engine.there)
    engine.told.clear()
    await engine.open()
    await engine.executor.attach(key)
    ending = await engine.ended(key)
    assert isinstance(ending, Lost) and "made anew" in ending.why
    await engine.settled(key)
    assert (engine.workspace / "started").read_text() == "started\n"


@pytest.mark.slow
async def test_an_attempt_without_any_trace_may_have_run_if_the_machine_there_restarted(engine: PlaceEngine) -> None:
    key = await engine.run("true")
    await until(lambda: not engine.attempt_there(key).exists())
    spec = engine.runs / "1.1" / "spec"
    spec.write_text(spec.read_text().replace(engine.executor.connection.hello.boot, "another"))  # type: ignore[union-attr]
    for name in ("done", "exit"):
        (engine.runs / "1.1" / name).unlink()
    await engine.reopen()
    await engine.executor.attach(key)
    ending = await engine.ended(key)
    assert isinstance(ending, Lost) and "restarted when it was being started" in ending.why


async def test_an_order_that_never_left_is_given_up_and_may_be_repeated(engine: PlaceEngine) -> None:
    order = engine.order("touch ran")
    engine.executor.connection.hello = None
    await engine.executor.start(order)
    before = engine.executor.connection.since
    for pid in engine.bridge_pids():
        os.kill(pid, signal.SIGKILL)
    await until(lambda: engine.executor.connection.since != before and engine.executor.problem is None)
    assert isinstance(await engine.seen(order.key, NeverRan), NeverRan)
    assert not (engine.workspace / "ran").exists()


async def test_a_run_is_followed_by_the_next_supervisor_from_the_byte_that_it_has(engine: PlaceEngine) -> None:
    key = await engine.start("seq 20000; until test -e go; do sleep 0.02; done; seq 20000; exit 3")
    await until(lambda: len(engine.out(key)) > 100_000)
    await engine.reopen()
    await engine.executor.attach(key)
    (engine.workspace / "go").touch()
    assert await engine.ended(key) == Exited(code=3)
    await engine.settled(key)
    assert engine.out(key) == 2 * "".join(f"{n}\n" for n in range(1, 20001)).encode()
    assert isinstance(engine.of(key)[0], HasSpawned)
    assert any(isinstance(report, HasSettled) for report in engine.of(key))


async def test_a_killed_keeper_is_noticed_there(engine: PlaceEngine) -> None:
    key = await engine.start("echo before; exec sleep 1000")
    process = (await engine.spawned(key)).process
    await until(lambda: engine.out(key) == b"before\n")
    kill_for_good(process.keeper_pid)
    ending = await engine.ended(key)
    assert isinstance(ending, Lost) and f"its keeper (pid {process.keeper_pid}) was ended" in ending.why
    if alive(process.leader.pid):
        os.kill(process.leader.pid, signal.SIGKILL)
    await engine.settled(key)


@pytest.mark.slow
async def test_a_second_near_end_takes_the_place_over_and_the_first_takes_it_back(
    engine: PlaceEngine, tmp_path: Path
) -> None:
    key = await engine.start("until test -e go; do sleep 0.02; done; echo done")
    await engine.spawned(key)
    since = engine.executor.connection.since
    copy = PlaceEngine.__new__(PlaceEngine)
    copy.__dict__.update(engine.__dict__)
    copy.told, copy.runs = [], tmp_path / "copy"
    copy.runs.mkdir(mode=0o700)
    shutil.copy(engine.runs / "near", copy.runs / "near")
    await copy.open()
    with pytest.raises(InvalidRequest):
        await engine.executor.start(engine.order("touch twice", key=key))
    await until(lambda: engine.executor.connection.since != since)
    await copy.close()
    await engine.reached()
    (engine.workspace / "go").touch()
    await engine.settled(key)
    assert engine.out(key) == b"done\n" and len(engine.host_pids()) == 1


@pytest.mark.slow
async def test_a_host_process_of_another_version_becomes_one_of_this_and_keeps_its_runs(
    engine: PlaceEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await engine.start("until test -e go; do sleep 0.02; done; exit 9")
    await engine.spawned(key)
    (before,) = engine.host_pids()
    await engine.close()
    mine = packages.far_package()
    other = packages.FarPackage(mine.data + b"\0", "f" * 64)
    other = packages.FarPackage(other.data, hashlib.sha256(other.data).hexdigest())
    monkeypatch.setattr("whisper_tui.supervisor.places.place_connection.far_package", lambda: other)
    engine.told.clear()
    await engine.open()
    # It is the same process; one that a bridge has started meanwhile finds the lock taken, and ends.
    await until(lambda: engine.host_pids() == [before])
    await engine.executor.attach(key)
    (engine.workspace / "go").touch()
    assert await engine.ended(key) == Exited(code=9)
    await engine.settled(key)


@pytest.mark.slow
async def test_a_full_disk_there_starts_nothing_and_says_so(
    engine: PlaceEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = engine.directory / "runs"
    runs.chmod(0o700)
    moved = runs.with_name("away")
    runs.rename(moved)
    try:
        key = await engine.start("touch ran")
        ending = await engine.ended(key)
        assert "Nothing was started" in getattr(ending, "message", "")
        await engine.settled(key)
    finally:
        moved.rename(runs)
    assert not (engine.workspace / "ran").exists()
    assert await engine.ended(await engine.run("exit 1")) == Exited(code=1)


def test_names_of_attempts_are_no_paths() -> None:
    for name in ("../x.1", "a/b.1", "7", "7.", ".1", "7.1/..", "7.1\n"):
        assert not far_runs.NAME.fullmatch(name), name


@needs_sshd
@pytest.mark.slow
@pytest.mark.timeout(2 * ROUND_S + 60)
async def test_commands_behind_ssh_run_once_and_exactly_whatever_is_killed_and_cut(
    tmp_path: Path, ssh_server: SshServer
) -> None:
    faults = await one_round(tmp_path, ssh_server, random.Random(11), 15, 16)
    assert faults.made.total() >= 3


@needs_sshd
async def test_why_ssh_fails_is_said_with_what_to_try(tmp_path: Path, ssh_server: SshServer) -> None:
    engine = PlaceEngine(tmp_path, ssh_server)
    engine.settings = type(engine.settings)("gpu1", "ssh", directory=str(engine.there), python="no-such-python")
    engine.reached = lambda: asyncio.sleep(0)  # type: ignore[method-assign]
    await engine.open()
    try:
        await until(lambda: "no-such-python" in (engine.executor.problem or ""))
        problem = engine.executor.problem or ""
        assert "python in [places.gpu1]" in problem and problem.startswith("gpu1 is unreachable: ")
        with pytest.raises(Unavailable, match="gpu1 is unreachable"):
            await engine.executor.connection.ask("ping")
        await engine.executor.attach(RunKey("1", 1))
        assert engine.of(RunKey("1", 1)) == [], "unreachable is neither lost nor never ran"
    finally:
        await end_place(engine)


async def test_what_is_over_and_whole_here_is_removed_there_even_after_a_kill(engine: PlaceEngine) -> None:
    key = await engine.run("echo kept")
    await until(lambda: not engine.attempt_there(key).exists())
    await engine.close()
    # As a supervisor leaves it that is killed after the last byte came.
    shutil.copytree(engine.runs / "1.1", engine.attempt_there(key), symlinks=True)
    (engine.directory / "runs" / "2.1").mkdir()
    (engine.directory / "runs" / "2.1" / "done").touch()
    await engine.open()
    await until(lambda: not engine.attempt_there(key).exists())
    assert engine.out(key) == b"kept\n"
    assert (engine.directory / "runs" / "2.1").exists(), "of this one nothing is here"


async def test_a_command_at_a_place_is_no_bridge(engine: PlaceEngine) -> None:
    since = engine.executor.connection.since
    program = (
        "import os, socket, sys; os.chdir(sys.argv[1]); s = socket.socket(socket.AF_UNIX); s.connect('host.sock');"
        "s.sendall(bytes.fromhex(sys.argv[2])); print(s.recv(100))"
    )
    frame = encoded({"do": "output", "id": 0}).hex()
    key = await engine.run(f'exec {PYTHON} -c "{program}" {engine.directory} {frame}')
    assert engine.out(key) == b"b''\n" or b"ConnectionResetError" in engine.err(key) or b"BrokenPipe" in engine.err(key)
    assert engine.executor.connection.since == since, "the near end was not thrown out"


@pytest.mark.slow
async def test_a_directory_there_that_others_can_read_is_not_used(engine: PlaceEngine) -> None:
    directory = engine.directory
    directory.chmod(0o755)
    for pid in engine.bridge_pids():
        os.kill(pid, signal.SIGKILL)
    await until(lambda: "is not private to the user there" in (engine.executor.problem or ""))
    directory.chmod(0o700)
    engine.executor.connection.try_now()
    await engine.reached()


@pytest.mark.slow
async def test_an_archive_there_that_is_not_ours_is_replaced_and_never_run(engine: PlaceEngine) -> None:
    mine = packages.far_package()
    await engine.close()
    for pid in engine.host_pids():
        os.kill(pid, signal.SIGKILL)
    archive = engine.there / f"place-{mine.digest}.pyz"
    archive.write_bytes(mine.data.replace(b"def main(", b"def niam(", 1))
    await engine.open()
    assert archive.read_bytes() == mine.data
    assert await engine.ended(await engine.run("exit 3")) == Exited(code=3)
