"""What a command leaves behind is found, listed, saved and ended, however it tried to get away."""

import os
import signal
import sys

import pytest

from tests.interpreter import PYTHON
from tests.supervisor.engine.conftest import Engine, alive, handles, until
from whisper_tui.model.ending import Exited, Signalled, TimedOut
from whisper_tui.model.errors import NotRunning
from whisper_tui.supervisor.keeper.last_output import deliver_last_output
from whisper_tui.supervisor.runs.executor import HasBackground, HasEnded, HasSettled

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a child subreaper")

DOUBLE_FORK = f"""{PYTHON} -I -S -c '
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
os.wait()
'"""

WAYS = {
    "ampersand": "sleep 600 &",
    "setsid": "setsid sleep 600 &",
    "nohup and disown": "nohup sleep 600 >/dev/null 2>&1 & disown",
    "double fork": DOUBLE_FORK,
    "clean environment and setsid": "env -i setsid sleep 600 </dev/null >/dev/null 2>&1 &",
    "deaf": "(trap '' TERM INT HUP; while :; do sleep 0.2; done) &",
    "job control": "set -m; sleep 600 &",
}


async def test_a_background_child_does_not_hold_the_answer_back(engine: Engine):
    key = await engine.start("sleep 600 & echo hi")
    assert await engine.ended(key) == Exited(code=0)
    kinds = [type(report) for report in engine.of(key)]
    assert kinds.index(HasBackground) < kinds.index(HasEnded), "the answer already names what was left behind"
    assert HasSettled not in kinds
    assert engine.out(key) == b"hi\n"
    assert not engine.executor.read_output(key, "out", 0, 0).ended


PASSED_ON = {
    "to a logging program": "exec > >(tee build.log) 2>&1",
    "both streams to one of their own": "exec > >(tee out.log) 2> >(tee err.log >&2)",
    "to a slow one": 'exec > >(while read -r line; do sleep 0.1; echo "$line"; done)',
    "through two of them": "exec > >(cat > >(cat))",
}


@linux_only
@pytest.mark.parametrize("way", PASSED_ON)
async def test_output_that_goes_through_another_process_is_complete_at_the_end(engine: Engine, way: str):
    key = await engine.start(f"{PASSED_ON[way]}\necho one; echo two; echo three; exit 3")
    ended = await engine.seen(key, HasEnded)
    assert ended.ending == Exited(code=3)
    assert ended.output.out == len(b"one\ntwo\nthree\n")
    assert engine.out(key) == b"one\ntwo\nthree\n"


@linux_only
async def test_a_pipeline_in_the_background_does_not_hold_the_answer_back(engine: Engine):
    key = await engine.start("tail -f /dev/null | cat & echo hi")
    ended = await engine.seen(key, HasEnded)
    assert ended.output.out == len(b"hi\n")
    found = await engine.background(key, lambda told: any(process.alive for process in told.processes))
    assert {process.command.split()[0] for process in found.processes} == {"tail", "cat"}
    assert not deliver_last_output(process.identity.pid for process in found.processes)


@linux_only
@pytest.mark.parametrize("way", WAYS)
async def test_background_processes_are_found_and_die_with_the_tree(engine: Engine, way: str):
    key = await engine.start(WAYS[way] + "\necho started")
    assert await engine.ended(key) == Exited(code=0)
    found = await engine.background(key, lambda told: any(process.alive for process in told.processes))
    pids = [process.identity.pid for process in found.processes]
    assert all(alive(pid) for pid in pids)

    await engine.executor.signal(key, signal.SIGKILL, "tree")
    await engine.settled(key)
    assert not any(alive(pid) for pid in pids)


@linux_only
async def test_all_ways_at_once_are_found_and_all_die(engine: Engine):
    key = await engine.start("\n".join(WAYS.values()) + "\necho started")
    await engine.ended(key)
    found = await engine.background(
        key,
        lambda told: (
            sum("sleep 600" in process.command or "time.sleep" in process.command for process in told.processes) >= 6
        ),
    )
    pids = [process.identity.pid for process in found.processes]
    await engine.executor.signal(key, signal.SIGKILL, "tree")
    await engine.settled(key)
    assert not any(alive(pid) for pid in pids)


async def test_a_background_process_is_named_by_its_command_line(engine: Engine):
    key = await engine.start("sleep 600 & echo $!")
    await engine.ended(key)
    found = await engine.background(key, lambda told: any(process.command == "sleep 600" for process in told.processes))
    process = found.processes[0]
    assert process.identity.pid == int(engine.out(key))
    assert process.identity.start_time > 0 and process.identity.boot_id
    assert process.alive


async def test_background_output_is_still_saved(engine: Engine):
    key = await engine.start("(until test -e go; do sleep 0.02; done; echo late; echo later >&2) & echo early")
    await engine.ended(key)
    assert engine.out(key) == b"early\n"
    (engine.workspace / "go").touch()
    await engine.settled(key)
    assert engine.out(key) == b"early\nlate\n"
    assert engine.err(key) == b"later\n"
    assert engine.executor.read_output(key, "out", 0, 0).ended


async def test_no_room_is_kept_for_an_ending_that_is_written_already(engine: Engine):
    key = await engine.run("sleep 0.2 & exit 3")
    assert await engine.ended(key) == Exited(code=3)
    await engine.settled(key)
    names = {file.name for file in (engine.runs / f"{key.call_id}.{key.attempt}").iterdir()}
    assert {"exit", "done"} <= names and "exit.tmp" not in names


async def test_an_ended_background_process_stays_on_the_list_as_ended(engine: Engine):
    key = await engine.start("(until test -e go; do sleep 0.02; done) & sleep 600 & echo hi")
    await engine.background(key, lambda told: sum(process.alive for process in told.processes) >= 2)
    (engine.workspace / "go").touch()
    told = await engine.background(
        key, lambda told: any(not row.alive for row in told.processes) and any(row.alive for row in told.processes)
    )
    assert any(row.command == "sleep 600" and row.alive for row in told.processes)


@linux_only
async def test_a_daemon_is_seen_while_its_parent_still_runs(engine: Engine):
    key = await engine.start("(setsid sleep 600 &) ; exec sleep 600")
    # Before it is that, it is a copy of its shell.
    await engine.background(key, lambda told: any(process.command == "sleep 600" for process in told.processes))
    assert not any(isinstance(report, HasEnded) for report in engine.of(key))


@linux_only
async def test_ending_asks_first_and_then_kills_the_deaf(engine: Engine):
    key = await engine.start(
        "trap 'echo asked; exit 9' TERM; (trap '' TERM; echo deaf; while :; do sleep 0.1; done) & "
        "echo ready; while :; do sleep 0.05; done"
    )
    await until(lambda: set(engine.out(key).split()) == {b"ready", b"deaf"})
    await engine.executor.end(key, 0.5)
    assert await engine.ended(key) == Exited(code=9)
    assert b"asked\n" in engine.out(key)
    await engine.settled(key)
    assert engine.of(key)[-2] != HasEnded, "the deaf one was still there when the leader was answered"


async def test_ending_reaches_a_stopped_process(engine: Engine):
    key = await engine.start("echo ready; kill -STOP $$; echo continued")
    await until(lambda: engine.out(key) == b"ready\n")
    await engine.executor.end(key, 30.0)
    assert await engine.ended(key) == Signalled(number=signal.SIGTERM, by_us=True)


@pytest.mark.slow
@linux_only
async def test_a_timeout_ends_the_background_of_the_command_too(engine: Engine):
    key = await engine.start("setsid sleep 600 & echo $!; sleep 600", timeout_s=5.0)
    assert await engine.ended(key) == TimedOut(after_s=5.0)
    await engine.settled(key)
    assert not alive(int(engine.out(key)))


@linux_only
async def test_processes_that_fork_and_change_sessions_cannot_escape_the_kill(engine: Engine):
    hopper = """
import os, sys, time
deadline = time.time() + 60
while time.time() < deadline:
    pid = os.fork()
    if pid:
        os._exit(0)
    os.setsid()
    time.sleep(0.0005)
"""
    (engine.workspace / "hopper.py").write_text(hopper)
    key = await engine.start(f"for i in 1 2 3; do {PYTHON} -I -S hopper.py & done; echo go")
    await engine.ended(key)
    await engine.background(key, lambda told: bool(told.processes))
    await engine.executor.signal(key, signal.SIGKILL, "tree")
    await engine.settled(key)


async def test_a_signal_to_the_group_spares_other_groups(engine: Engine):
    key = await engine.start("setsid sh -c 'echo $$ > pid; echo ready; exec sleep 600' & sleep 600")
    await until(lambda: engine.out(key) == b"ready\n")
    await engine.executor.signal(key, signal.SIGTERM, "group")
    assert await engine.ended(key) == Signalled(number=signal.SIGTERM, by_us=True)
    assert alive(int((engine.workspace / "pid").read_text()))


async def test_the_leader_cannot_be_signalled_once_it_has_ended(engine: Engine):
    key = await engine.start("sleep 600 & echo hi")
    await engine.ended(key)
    with pytest.raises(NotRunning):
        await engine.executor.signal(key, signal.SIGTERM, "leader")


@linux_only
async def test_a_guardian_that_is_asked_to_end_ends_all_commands_first(engine: Engine):
    """A keeper alone that is asked to end hands over to its successor, which ends them as well."""
    guardian = engine.executor._keepers._guardian
    assert guardian is not None
    text = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    keys = [await engine.start(text) for _ in range(4)]
    keepers = {(await engine.spawned(key)).process.keeper_pid for key in keys}
    await until(lambda: all(engine.out(key) == b"ready\n" for key in keys))
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        os.kill(min(keepers), number)
    os.kill(guardian.pid, signal.SIGTERM)
    for key in keys:
        assert await engine.ended(key) == Exited(code=0)
        await engine.settled(key)
        assert engine.out(key) == b"ready\nbye\n"
    guardian.wait(45)
    assert engine.out(await engine.run("echo the next one")) == b"the next one\n"


@linux_only
async def test_a_keeper_without_a_guardian_ends_its_commands_when_it_is_asked_to_end(engine: Engine):
    guardian = engine.executor._keepers._guardian
    assert guardian is not None
    key = await engine.start("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done")
    keeper = (await engine.spawned(key)).process.keeper_pid
    await until(lambda: engine.out(key) == b"ready\n")
    guardian.kill()
    guardian.wait()
    await until(lambda: handles(keeper, signal.SIGTERM))
    os.kill(keeper, signal.SIGTERM)
    assert await engine.ended(key) == Exited(code=0)
    assert engine.out(key) == b"ready\nbye\n"


@linux_only
async def test_asked_again_to_end_the_shortest_grace_holds(engine: Engine):
    key = await engine.start("trap '' TERM; echo ready; while :; do sleep 0.05; done")
    await until(lambda: engine.out(key) == b"ready\n")
    await engine.executor.end(key, 600.0)
    await engine.executor.end(key, 0.1)
    await engine.executor.end(key, 600.0)
    assert await engine.ended(key) == Signalled(number=signal.SIGKILL, by_us=True)
