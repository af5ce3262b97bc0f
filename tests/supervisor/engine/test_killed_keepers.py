"""A keeper that is killed loses nothing: its successor goes on with all of its runs."""

import asyncio
import os
import random
import signal
import sys
from contextlib import suppress

import pytest

from tests.supervisor.engine.conftest import Engine, handles, until
from whisper_tui.model.ending import Exited, Lost, Signalled, TimedOut
from whisper_tui.model.run import Limits
from whisper_tui.supervisor.runs.executor import HasEnded, RunKey, SandboxProfile
from whisper_tui.system.processes import children_of, command_of, find_process

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere nobody adopts the runs")
MANY = Limits(processes=4)
WRITES = """for i in $(seq 200); do
  echo "$0 line $i 0123456789012345678901234567890123456789"
  [ $((i % 20)) = 0 ] && sleep 0.05
done
echo "the end of $0" >&2
exit {0}"""


def keepers(engine: Engine) -> list[int]:
    parent = engine.executor._keepers._guardian
    assert parent is not None
    return [pid for pid in children_of(parent.pid) if "keeper.guardian" in command_of(pid)]


async def kill_all(engine: Engine, number: signal.Signals = signal.SIGKILL) -> None:
    """End the keepers, and wait for their successors."""
    killed = keepers(engine)
    for pid in killed:
        os.kill(pid, number)
    await until(lambda: len(set(keepers(engine)) - set(killed)) >= len(killed))


def written(name: str) -> bytes:
    return "".join(
        f"{name} line {number} 0123456789012345678901234567890123456789\n" for number in range(1, 201)
    ).encode()


async def ran_whole(engine: Engine, key: RunKey, number: int) -> None:
    assert await engine.ended(key) == Exited(code=number)
    await engine.settled(key)
    assert engine.out(key).count(b"line") == 200
    assert engine.err(key) in {b"the end of bash\n", b"the end of sh\n"}


async def test_output_and_endings_are_exact_however_often_keepers_are_killed(engine: Engine):
    chance = random.Random(1)
    keys = [await engine.start(WRITES.format(number)) for number in range(1, 25)]
    for key in keys:
        await engine.spawned(key)
    for _ in range(6):
        await asyncio.sleep(chance.uniform(0.0, 0.1))
        await kill_all(engine)
    for number, key in enumerate(keys, 1):
        await ran_whole(engine, key, number)
        told = await engine.seen(key, HasEnded)
        assert engine.out(key) == written("bash") or engine.out(key) == written("sh")
        assert (told.output.out, told.output.err) == (len(engine.out(key)), len(engine.err(key)))
        spans = engine.executor.read_timeline(key, 0, 100_000)
        assert sum(span.length for span in spans if span.stream == "out") == told.output.out


async def test_whoever_is_asked_to_end_hands_over(engine: Engine):
    key = await engine.start("until test -e go; do sleep 0.02; done; echo done; exit 4")
    await engine.spawned(key)
    await kill_all(engine, signal.SIGTERM)
    (engine.workspace / "go").touch()
    assert await engine.ended(key) == Exited(code=4)
    assert engine.out(key) == b"done\n"


async def test_a_guardian_that_is_killed_alone_takes_nothing_with_it(engine: Engine):
    parent = engine.executor._keepers._guardian
    assert parent is not None
    keys = [await engine.start("read line; echo got $line; exit 5", accepts_input=True) for _ in range(6)]
    for key in keys:
        await engine.spawned(key)
    before = keepers(engine)
    parent.kill()
    parent.wait()
    await until(lambda: all(handles(keeper, signal.SIGTERM) for keeper in before))
    other = await engine.start("until test -e go; do sleep 0.02; done; exit 6")
    assert (await engine.spawned(other)).process.keeper_pid not in before
    await kill_all(engine)
    (engine.workspace / "go").touch()
    assert await engine.ended(other) == Exited(code=6)
    for key in keys:
        await engine.executor.write_stdin(key, b"it\n")
        assert await engine.ended(key) == Exited(code=5)
        assert engine.out(key) == b"got it\n"
    await until(lambda: not any(map(find_process, before)))


async def test_a_run_of_which_only_the_end_is_kept_is_lost(engine: Engine):
    """Of a ring nobody knows where it ends if its writer was killed; what it has is never taken for the output."""
    text = "head -c 100000 /dev/zero; until test -e go; do sleep 0.02; done; exit 7"
    key = await engine.start(text, max_output_bytes=8192)
    quiet = await engine.start("until test -e go; do sleep 0.02; done; exit 8", max_output_bytes=8192)
    for each in (key, quiet):
        await engine.spawned(each)
    await until(lambda: engine.executor.read_output(key, "out", 99_999, 1).data == b"\0")
    await kill_all(engine)
    assert isinstance(await engine.ended(key), Lost)
    (engine.workspace / "go").touch()
    assert await engine.ended(quiet) == Exited(code=8)


async def test_input_goes_on(engine: Engine):
    key = await engine.start("cat", accepts_input=True)
    await engine.spawned(key)
    await engine.executor.write_stdin(key, b"before\n")
    await kill_all(engine)
    await engine.executor.write_stdin(key, b"after\n", eof=True)
    assert await engine.ended(key) == Exited(code=0)
    await engine.settled(key)
    assert engine.out(key) == b"before\nafter\n"


async def test_a_terminal_loses_and_repeats_nothing(engine: Engine):
    chance = random.Random(2)
    text = """stty -echo; for i in $(seq 300); do
  read -r line; echo "line $line"; [ $((i % 7)) = 0 ] && sleep 0.01
done
read -r -t 60 || echo the end"""
    keys = [await engine.start(text, tty=True, program="/bin/bash") for _ in range(4)]
    for key in keys:
        await engine.spawned(key)

    async def types(key: RunKey) -> None:
        for number in range(1, 301):
            await engine.executor.write_stdin(key, b"%d\n" % number, eof=number == 300)

    typing = asyncio.gather(*map(types, keys))
    for _ in range(40):
        await asyncio.sleep(chance.uniform(0.0, 0.1))
        await kill_all(engine)
        if typing.done():
            break
    await typing
    for key in keys:
        assert await engine.ended(key) == Exited(code=0)
        await engine.settled(key)
        lines = [b"line %d" % number for number in range(1, 301)]
        found = [line for line in engine.out(key).split(b"\r\n") if not line.isdigit()]
        assert found == [*lines, b"the end", b""]


async def test_a_terminal_goes_on(engine: Engine):
    key = await engine.start("read a; echo got $a; read b; echo got $b; stty size", tty=True)
    await engine.spawned(key)
    await engine.executor.write_stdin(key, b"one\n")
    await until(lambda: b"got one" in engine.out(key))
    await kill_all(engine)
    await engine.executor.resize(key, 30, 90)
    await engine.executor.write_stdin(key, b"two\n")
    assert await engine.ended(key) == Exited(code=0)
    await engine.settled(key)
    assert b"got two" in engine.out(key)
    assert b"30 90" in engine.out(key)


async def test_a_timeout_counts_from_the_start(engine: Engine):
    key = await engine.start("sleep 600", timeout_s=1.5)
    await engine.spawned(key)
    await kill_all(engine)
    assert await engine.ended(key) == TimedOut(after_s=1.5)


async def test_it_can_be_ended_and_frozen(engine: Engine):
    key = await engine.start("while :; do echo on; sleep 0.02; done")
    leader = (await engine.spawned(key)).process.leader.pid
    await engine.executor.set_frozen(key, frozen=True)
    await until(lambda: stopped(leader))
    await kill_all(engine)
    assert stopped(leader)
    await engine.executor.set_frozen(key, frozen=False)
    await until(lambda: not stopped(leader))
    await engine.executor.end(key, 5)
    assert await engine.ended(key) == Signalled(number=signal.SIGTERM, by_us=True, core_dumped=False)


def stopped(pid: int) -> bool:
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


async def test_what_is_left_in_the_background_is_still_known(engine: Engine):
    key = await engine.start("(setsid sh -c 'until test -e go; do sleep 0.05; done; echo late' &); exit 3")
    assert await engine.ended(key) == Exited(code=3)
    found = await engine.background(key, lambda told: any(each.alive for each in told.processes))
    await kill_all(engine)
    (engine.workspace / "go").touch()
    await engine.settled(key)
    assert engine.out(key) == b"late\n"
    assert all(find_process(each.identity.pid) is None for each in found.processes)


async def test_a_sandbox_goes_on_answering(engine: Engine):
    sandbox = SandboxProfile(read=(str(engine.workspace),), write=(str(engine.workspace),))
    text = "echo a > one; chmod 600 one; until test -e go; do sleep 0.02; done; echo b > two; chmod 640 two; touch /x"
    key = await engine.start(text, sandbox=sandbox)
    await engine.spawned(key)
    await until((engine.workspace / "one").exists)
    await kill_all(engine)
    (engine.workspace / "go").touch()
    ending = await engine.ended(key)
    assert isinstance(ending, Exited) and ending.code != 0
    assert (engine.workspace / "two").stat().st_mode & 0o777 == 0o640
    blocked = (await engine.seen(key, HasEnded)).blocked
    assert blocked is not None
    assert ("write", "/x") in {(each.what, each.subject) for each in blocked.attempts}


@pytest.mark.slow
async def test_limits_still_hold_and_are_told(engine: Engine):
    waits = "until test -e go; do sleep 0.02; done; "
    many = await engine.start(f"{waits}for i in 1 2 3 4 5 6 7 8; do setsid sleep 1000 & done; wait", limits=MANY)
    spins = await engine.start(f"{waits}exec {sys.executable} -I -S -c 'while True: pass'", limits=Limits(cpu_s=1))
    for key in (many, spins):
        await engine.spawned(key)
    await kill_all(engine)
    (engine.workspace / "go").touch()
    ending = await engine.ended(many)
    assert isinstance(ending, Signalled)
    assert (ending.number, ending.by_us, ending.limit) == (signal.SIGKILL, True, "processes")
    ending = await engine.ended(spins)
    assert isinstance(ending, Signalled)
    assert (ending.number, ending.by_us, ending.limit) == (signal.SIGXCPU, False, "cpu")


async def test_successors_may_be_killed_while_they_take_over(engine: Engine):
    chance = random.Random(3)
    keys = [await engine.start(WRITES.format(number)) for number in range(1, 13)]
    for key in keys:
        await engine.spawned(key)
    for _ in range(25):
        for pid in keepers(engine):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(chance.uniform(0.0, 0.02))
    for number, key in enumerate(keys, 1):
        await ran_whole(engine, key, number)
