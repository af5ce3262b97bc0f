"""Looking at processes: the same answers from every source, and nobody else's process is ever hit."""

import math
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from tests.supervisor.engine.conftest import Engine, until
from whisper_tui.model.ending import Exited
from whisper_tui.supervisor.keeper.guardian import MOST_KEEPERS
from whisper_tui.supervisor.keeper.run_control import Timers
from whisper_tui.supervisor.runs.executor import NeverRan
from whisper_tui.system import processes
from whisper_tui.system.processes import Descendants, ProcessEntry, command_of, find_process, send_to, send_to_group

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")


@pytest.fixture
def family():
    """A shell with two children, one of them in a session of its own."""
    text = "sleep 600 & setsid sleep 601 & echo ready; wait"
    shell = subprocess.Popen(["bash", "-c", text], stdout=subprocess.PIPE, start_new_session=True)
    assert shell.stdout is not None
    shell.stdout.readline()
    deadline = time.monotonic() + 30
    while len(commands(Descendants(shell.pid, adopts=False).now())) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    children = Descendants(shell.pid, adopts=False).now()
    yield shell
    for seen in children:
        send_to(seen, signal.SIGKILL)
    shell.kill()
    shell.wait()
    shell.stdout.close()


def commands(found: list[ProcessEntry]) -> set[str]:
    return {command for seen in found if (command := command_of(seen.pid)).startswith("sleep")}


def test_the_walk_finds_children_in_other_sessions(family):
    assert commands(Descendants(family.pid, adopts=True).now()) == {"sleep 600", "sleep 601"}


def descriptors(pid: int) -> list[str]:
    """What the descriptors of a process stand for."""
    found = []
    with suppress(FileNotFoundError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with suppress(FileNotFoundError):
                found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found


@linux_only
def test_without_lists_of_children_all_processes_are_searched(family):
    descendants = Descendants(family.pid, adopts=True)
    descendants._by_children = False
    assert commands(descendants.now()) == {"sleep 600", "sleep 601"}


@pytest.mark.skipif(not shutil.which("ps"), reason="needs ps")
def test_without_proc_ps_finds_the_same(family, monkeypatch):
    monkeypatch.setattr(processes, "LINUX", False)
    descendants = Descendants(family.pid, adopts=False)
    found = descendants.now()
    assert commands(found) == {"sleep 600", "sleep 601"}
    assert all(abs(seen.start - time.time()) < 3600 for seen in found)
    assert descendants.now(without=found[0].pid) != found

    family.kill()
    family.wait()
    assert commands(descendants.now()) == {"sleep 600", "sleep 601"}, "orphans are known by their group and from before"


def test_one_child_and_all_that_is_its_own_can_be_left_out(family):
    everyone = Descendants(os.getpid(), adopts=True)
    own = {family.pid, *(seen.pid for seen in Descendants(family.pid, adopts=True).now())}
    assert own <= {seen.pid for seen in everyone.now()}
    assert own.isdisjoint(seen.pid for seen in everyone.now(without=family.pid))


def test_a_process_that_took_over_a_pid_is_not_signalled(family):
    seen = find_process(family.pid)
    assert seen is not None
    assert not send_to(seen._replace(start=seen.start - 1), signal.SIGKILL)
    assert family.poll() is None
    assert send_to(seen, signal.SIGKILL)
    assert family.wait(30) == -signal.SIGKILL


def test_a_dead_process_is_nobody():
    child = subprocess.Popen(["true"])
    child.wait()
    assert find_process(child.pid) is None
    assert not send_to_group(child.pid, signal.SIGTERM)


def test_our_own_group_is_never_signalled():
    assert not send_to_group(os.getpgid(0), signal.SIGTERM)
    assert not send_to_group(0, signal.SIGTERM)


def test_an_alarm_that_is_set_again_is_moved():
    rung: list[str] = []
    woken: list[float] = []
    timers = Timers(woken.append)
    assert timers.next_due == math.inf
    timers.set_timer(1000, "a", lambda: rung.append("late"))
    timers.set_timer(0, "a", lambda: rung.append("now"))
    timers.set_timer_once(0, "a", lambda: rung.append("never"))
    assert woken == sorted(woken, reverse=True)
    assert timers.next_due == woken[-1] <= time.monotonic()
    timers.run_due()
    timers.run_due()
    assert rung == ["now"]
    assert timers.next_due == math.inf
    assert not timers.cancel("a")


@linux_only
async def test_many_runs_at_once_hold_no_descriptor_of_the_supervisor(engine: Engine):
    before = len(os.listdir("/dev/fd"))
    keys = [await engine.start("until test -e go; do sleep 0.5; done; exit 3") for _ in range(60)]
    for key in keys:
        await engine.spawned(key)
    # Fewer if what earlier tests left was collected meanwhile.
    assert len(os.listdir("/dev/fd")) <= before
    (engine.workspace / "go").touch()
    for key in keys:
        assert await engine.ended(key) == Exited(code=3)


@linux_only
async def test_a_keeper_keeps_no_descriptor_of_a_run_that_is_over(engine: Engine):
    long = await engine.start("exec sleep 600")
    keeper = (await engine.spawned(long)).process.keeper_pid
    parent = find_process(keeper)
    assert parent is not None
    # By then the parent has all that it holds of the long one.
    orders = str(engine.runs / f"{long.call_id}.{long.attempt}" / "ctl")
    await until(lambda: orders in descriptors(parent.ppid))
    before = len(descriptors(keeper)), len(descriptors(parent.ppid))
    for _ in range(20):
        await engine.run("echo fine; echo error >&2")
    await until(lambda: len(descriptors(keeper)) <= before[0] and len(descriptors(parent.ppid)) <= before[1])


@linux_only
async def test_short_commands_in_a_row_are_kept_by_a_few_keepers(engine: Engine):
    keys = [await engine.run(f"echo {number}; echo {number} >&2; exit {number}") for number in range(1, 31)]
    assert [await engine.ended(key) for key in keys] == [Exited(code=number) for number in range(1, 31)]
    assert [engine.out(key) for key in keys] == [f"{number}\n".encode() for number in range(1, 31)]
    keepers = [(await engine.spawned(key)).process.keeper_pid for key in keys]
    assert len(set(keepers)) <= MOST_KEEPERS


@linux_only
async def test_keepers_end_with_their_supervisor_once_they_have_no_run(engine: Engine):
    keeper = (await engine.spawned(await engine.run("true"))).process.keeper_pid
    key = await engine.start("until test -e go; do sleep 0.05; done")
    other = (await engine.spawned(key)).process.keeper_pid
    await engine.reopen()
    assert processes.find_process(other) is not None
    await engine.executor.attach(key)
    (engine.workspace / "go").touch()
    await engine.settled(key)
    await until(lambda: processes.find_process(keeper) is None and processes.find_process(other) is None)


@linux_only
async def test_a_signal_to_a_keeper_between_two_runs_ends_neither(engine: Engine):
    keeper = (await engine.spawned(await engine.run("true"))).process.keeper_pid
    os.kill(keeper, signal.SIGTERM)
    for key in [await engine.run("sleep 0.01") for _ in range(5)]:
        assert await engine.ended(key) == Exited(code=0)


@linux_only
async def test_keepers_that_wait_are_replaced_when_they_are_killed(engine: Engine):
    """A job that a dying keeper was just taking may be lost with it; that attempt is told as one that never ran."""
    guardian = engine.executor._keepers._guardian
    assert guardian is not None
    wanted = min(MOST_KEEPERS, os.cpu_count() or 1)
    await until(lambda: len(processes.children_of(guardian.pid)) >= wanted)
    killed = set(processes.children_of(guardian.pid))
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    key = await engine.run("echo fine")
    assert engine.of(key) == [NeverRan(key)] or engine.out(key) == b"fine\n"
    await until(lambda: len(set(processes.children_of(guardian.pid)) - killed) >= wanted)
    assert engine.out(await engine.run("echo again")) == b"again\n"
