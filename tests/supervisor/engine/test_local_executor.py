"""What becomes of an order: reports in order, exact bytes, endings that cannot be mistaken for each other."""

import asyncio
import json
import os
import signal
import stat
import sys
from pathlib import Path

import pytest

from tests.supervisor.engine.conftest import Engine, until
from whisper_tui.model.call import Argv
from whisper_tui.model.ending import Exited, Signalled, TimedOut
from whisper_tui.model.errors import BadStateDirectory, NotRunning, Unavailable
from whisper_tui.model.run import OutputSizes
from whisper_tui.supervisor.keeper.guardian import MOST_KEEPERS
from whisper_tui.supervisor.runs.executor import HasEnded, HasSettled, HasSpawned
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.system import processes


async def test_a_command_is_reported_from_its_process_to_its_end(engine: Engine):
    key = await engine.run("echo out; echo err >&2; exit 3")

    spawned, ended, settled = engine.of(key)
    assert isinstance(spawned, HasSpawned)
    assert spawned.process.leader.pid == spawned.process.pgid
    assert isinstance(ended, HasEnded)
    assert ended.ending == Exited(code=3)
    assert ended.output == OutputSizes(out=4, err=4)
    assert ended.usage is not None and ended.usage.wall_s > 0
    assert settled == HasSettled(key)
    assert (engine.out(key), engine.err(key)) == (b"out\n", b"err\n")


async def test_what_was_approved_for_a_place_is_not_run_here(engine: Engine):
    with pytest.raises(Unavailable, match="this executor starts nothing at gpu1"):
        await engine.start("touch made", place="gpu1")
    assert not (engine.runs / "1.1").exists()


async def test_the_memory_of_a_command_is_its_own_and_not_that_of_its_keeper(engine: Engine):
    small = engine.of(await engine.run(Argv(program="true")))[1]
    large = engine.of(await engine.run(Argv(program=sys.executable, args=("-c", "b'x' * 80_000_000"))))[1]
    assert isinstance(small, HasEnded) and small.usage is not None and small.usage.max_rss_kib < 5_000
    assert isinstance(large, HasEnded) and large.usage is not None and large.usage.max_rss_kib > 70_000


async def test_argv_reaches_the_program_unchanged(engine: Engine):
    words = ("a b", "$HOME", "*", "", "ö", "new\nline", "\udcff")
    code = "import sys, os; os.write(1, b'|'.join(os.fsencode(w) for w in sys.argv[1:]))"
    key = await engine.run(Argv(program=sys.executable, args=("-c", code, *words)))
    assert engine.out(key) == b"|".join(os.fsencode(word) for word in words)


async def test_the_command_gets_exactly_the_environment_of_the_order(engine: Engine):
    key = await engine.run(
        Argv(program="env"), environment={"ONLY": "this", "AND": "that\nthing"}, program="/usr/bin/env"
    )
    assert set(engine.out(key).split(b"\n")) == {b"ONLY=this", b"AND=that", b"thing", b""}


async def test_the_environment_is_gone_from_the_disk_once_the_command_runs(engine: Engine):
    key = await engine.start("sleep 60", environment={**os.environ, "TOKEN": "very-secret"})
    await engine.spawned(key)
    files = [path for path in (engine.runs / "1.1").iterdir() if path.is_file()]
    assert files and all(b"very-secret" not in path.read_bytes() for path in files)


async def test_the_files_of_a_run_are_for_its_owner_only(engine: Engine):
    key = await engine.run("echo hi")
    directory = engine.runs / f"{key.call_id}.{key.attempt}"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    for path in [*directory.iterdir(), engine.runs / "keepers.log"]:
        if not path.is_symlink():
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


async def test_the_command_starts_with_default_signals_and_no_foreign_descriptors(engine: Engine):
    code = """
import json, os, signal
ignored = [known.name for known in signal.valid_signals() if signal.getsignal(known) == signal.SIG_IGN]
blocked = [int(number) for number in signal.pthread_sigmask(0, [])]
print(json.dumps([sorted(map(int, os.listdir("/dev/fd"))), sorted(ignored), blocked]))
"""
    key = await engine.run(Argv(program=sys.executable, args=("-I", "-c", code)))
    descriptors, ignored, blocked = json.loads(engine.out(key))
    assert descriptors == [0, 1, 2, 3], "3 is the listing itself"
    assert ignored == ["SIGPIPE", "SIGXFSZ"], "Python itself ignores these two"
    assert blocked == []


async def test_opening_dev_stderr_truncates_nothing(engine: Engine):
    key = await engine.run("echo one; echo two > /dev/stderr; echo three >&2; echo four > /dev/stdout; echo five")
    assert engine.out(key) == b"one\nfour\nfive\n"
    assert engine.err(key) == b"two\nthree\n"


async def test_many_bytes_on_both_streams_arrive_whole(engine: Engine):
    key = await engine.run("head -c 200000 /dev/zero | tr '\\0' a; head -c 200000 /dev/zero | tr '\\0' b >&2")
    assert engine.out(key) == b"a" * 200_000
    assert engine.err(key) == b"b" * 200_000


async def test_bytes_that_are_no_text_arrive_as_they_are(engine: Engine):
    key = await engine.run(r"printf 'a\000b\377\376\303\050\033[31m'")
    assert engine.out(key) == b"a\0b\xff\xfe\xc3\x28\x1b[31m"


async def test_the_timeline_covers_every_byte_in_the_order_of_arrival(engine: Engine):
    key = await engine.run("echo a; sleep 0.1; echo bb >&2; sleep 0.1; echo ccc")
    rows = [(span.stream, span.start, span.length) for span in engine.executor.read_timeline(key, 0, 100)]
    assert rows == [("out", 0, 2), ("err", 0, 3), ("out", 2, 4)]
    times = [span.at for span in engine.executor.read_timeline(key, 0, 100)]
    assert times == sorted(times)
    assert engine.executor.read_timeline(key, 2, 5)[0].start == 2


async def test_the_timeline_is_there_while_the_command_goes_on(engine: Engine):
    key = await engine.start("echo a; exec sleep 600")
    await until(lambda: engine.executor.read_timeline(key, 0, 10))
    (span,) = engine.executor.read_timeline(key, 0, 10)
    assert (span.stream, span.start, span.length) == ("out", 0, 2)
    await engine.executor.end(key, 0)
    await engine.settled(key)


async def test_a_flood_that_never_pauses_is_ended_on_time_and_by_order(engine: Engine):
    timed = await engine.run("exec cat /dev/zero", timeout_s=0.1, max_output_bytes=100_000)
    assert await engine.ended(timed) == TimedOut(after_s=0.1)
    ordered = await engine.start("exec cat /dev/zero", max_output_bytes=100_000)
    await engine.spawned(ordered)
    await engine.executor.end(ordered, 600)
    assert await engine.ended(ordered) == Signalled(number=signal.SIGTERM, by_us=True)
    await engine.settled(ordered)


@pytest.mark.parametrize("code", [0, 1, 126, 127, 137, 143, 255])
async def test_an_exit_code_is_never_taken_for_a_signal(engine: Engine, code: int):
    key = await engine.run(f"exit {code}")
    assert await engine.ended(key) == Exited(code=code)


async def test_a_signal_that_the_command_sends_itself_is_not_ours(engine: Engine):
    key = await engine.run("kill -KILL $$")
    assert await engine.ended(key) == Signalled(number=signal.SIGKILL, by_us=False)


async def test_a_signal_that_was_sent_through_us_is_ours(engine: Engine):
    key = await engine.start("exec sleep 60")
    await engine.spawned(key)
    await engine.executor.signal(key, signal.SIGINT, "leader")
    assert await engine.ended(key) == Signalled(number=signal.SIGINT, by_us=True)


async def test_a_signal_right_after_the_start_waits_for_the_process(engine: Engine):
    key = await engine.start("exec sleep 60")
    await engine.executor.signal(key, signal.SIGTERM, "leader")
    assert await engine.ended(key) == Signalled(number=signal.SIGTERM, by_us=True)


@pytest.mark.slow
async def test_a_timeout_keeps_what_was_printed_so_far(engine: Engine):
    key = await engine.run("echo partial; echo oops >&2; sleep 60; echo never", timeout_s=5.0)
    assert await engine.ended(key) == TimedOut(after_s=5.0)
    assert (engine.out(key), engine.err(key)) == (b"partial\n", b"oops\n")


async def test_a_timeout_kills_what_does_not_listen(engine: Engine):
    command = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
    key = await engine.run(command, timeout_s=1.0, grace_s=0.2)
    assert await engine.ended(key) == TimedOut(after_s=1.0)


async def test_a_command_that_ends_in_time_is_not_timed_out(engine: Engine):
    key = await engine.run("exit 4", timeout_s=30)
    assert await engine.ended(key) == Exited(code=4)


async def test_an_attempt_is_started_at_most_once(engine: Engine):
    key = await engine.run("echo once >> runs")
    with pytest.raises(Unavailable):
        await engine.start("echo twice >> runs", key=key)
    assert (engine.workspace / "runs").read_text() == "once\n"


async def test_an_ended_run_cannot_be_signalled(engine: Engine):
    key = await engine.run("true")
    with pytest.raises(NotRunning):
        await engine.executor.signal(key, signal.SIGTERM, "tree")
    with pytest.raises(NotRunning):
        await engine.executor.end(key, 1.0)


async def test_a_start_that_cannot_be_prepared_asks_for_nothing(engine: Engine):
    (engine.runs / "boot").touch()
    engine.runs.chmod(0o500)
    try:
        if os.geteuid() == 0:
            engine.runs.rename(engine.runs.with_name("moved"))
        with pytest.raises(Unavailable) as caught:
            await engine.start("echo no > ran")
    finally:
        if os.geteuid() == 0:
            engine.runs.with_name("moved").rename(engine.runs)
        engine.runs.chmod(0o700)
    assert "cannot be prepared" in caught.value.message
    assert not (engine.workspace / "ran").exists()


async def test_a_directory_that_others_can_read_is_refused(tmp_path):
    (tmp_path / "runs").mkdir(mode=0o755)
    (tmp_path / "runs").chmod(0o755)
    executor = LocalExecutor(tmp_path / "runs")
    with pytest.raises(BadStateDirectory):
        await executor.open()
    await executor.close()


async def test_closing_lets_the_waiting_keepers_go(engine: Engine):
    key = await engine.run("true")
    guardian = engine.executor._keepers._guardian
    assert guardian is not None
    waiting = processes.children_of(guardian.pid)
    await engine.close()
    await until(lambda: guardian.poll() is not None)
    await until(lambda: not any(map(processes.find_process, waiting)))
    await engine.open()
    await until(lambda: engine.executor.read_output(key, "out", 0, 1).ended)


async def test_closed_keepers_write_no_more_files(engine: Engine):
    warm_ups = engine.runs / "rehearsal"

    def warming_up() -> list[str]:
        # The directory is missing at first, and has one entry for each process that warms up.
        return [name for name in os.listdir(warm_ups) if name != str(guardian.pid)] if warm_ups.exists() else []

    for _ in range(3):
        guardian = engine.executor._keepers._guardian
        assert guardian is not None
        while not warming_up() and len(processes.children_of(guardian.pid)) < min(MOST_KEEPERS, os.cpu_count() or 1):
            await asyncio.sleep(0)
        await engine.close()
        assert warming_up() == []
        await engine.open()


async def test_when_the_parent_of_the_keepers_is_killed_another_takes_its_place(engine: Engine):
    guardian = engine.executor._keepers._guardian
    assert guardian is not None
    guardian.kill()
    guardian.wait()
    for _ in range(8):
        key = await engine.run("echo still here")
        assert engine.out(key) == b"still here\n"


async def test_fifty_commands_at_once_do_not_mix(engine: Engine):
    keys = [await engine.start(f"echo {number}; exit {number}") for number in range(50)]
    for number, key in enumerate(keys):
        assert await engine.ended(key) == Exited(code=number)
        assert engine.out(key) == f"{number}\n".encode()


async def test_too_low_a_limit_of_open_files_is_named_as_the_reason_why_no_keeper_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = LocalExecutor(tmp_path / "runs")
    await executor.open()
    try:
        monkeypatch.setattr("resource.getrlimit", lambda _: (64, 4096))
        executor._replace_keepers("the process that starts commands has ended")
        assert "the limit of open files is 64, which is too few. Run ulimit -n 256" in (executor.problem or "")
    finally:
        await executor.close()
