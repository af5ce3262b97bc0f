"""A run has a control group of its own where the machine gives one: held still, counted and killed as one."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.interpreter import PYTHON
from tests.supervisor.engine.conftest import Engine, alive, kill_for_good, until, working
from whisper_tui.model.call import Argv
from whisper_tui.model.ending import Exited, Lost, Signalled
from whisper_tui.model.run import ControlGroup, Limits
from whisper_tui.supervisor.keeper.base_cgroup import Cgroups, own_group
from whisper_tui.supervisor.keeper.run_cgroup import TASKS_PER_PROCESS, RunCgroup
from whisper_tui.supervisor.runs.executor import HasBackground, RunKey
from whisper_tui.system.processes import children_of, is_stopped

MIB = 1024 * 1024


def counted(group: Path) -> tuple[str, ...]:
    """Have the kernel count what it can below a group, and below that."""
    for each in ("memory", "pids"):
        with suppress(OSError):
            (group.parent / "cgroup.subtree_control").write_text(f"+{each}")
            (group / "cgroup.subtree_control").write_text(f"+{each}")
    return tuple((group / "cgroup.subtree_control").read_text().split())


@pytest.fixture
def base() -> Iterator[Path]:
    """An empty group of this test's own."""
    own = own_group()
    if own is None:
        pytest.skip("no control groups of version 2 on this machine")
    base = own / f"test-{os.getpid()}"
    try:
        base.mkdir()
    except OSError:
        pytest.skip("the control group of the tests is not theirs to divide")
    if not (base / "cgroup.kill").exists():
        base.rmdir()
        pytest.skip("this kernel cannot kill a control group")
    yield base
    RunCgroup(str(base)).kill()
    RunCgroup(str(base)).remove()
    assert not base.exists(), "no group is left behind"


@pytest.fixture
async def engine(tmp_path: Path, base: Path) -> AsyncIterator[Engine]:
    async with working(Engine(tmp_path, Cgroups(base, counted(base)))) as engine:
        yield engine


def needs(*controllers: str) -> pytest.MarkDecorator:
    own = own_group()
    there = (own / "cgroup.controllers").read_text().split() if own is not None else []
    return pytest.mark.skipif(not {*controllers} <= {*there}, reason=f"the kernel counts no {', '.join(controllers)}")


def python(text: str) -> Argv:
    return Argv(program=sys.executable, args=("-I", "-S", "-c", text))


def groups(base: Path) -> list[Path]:
    return [path for path in base.iterdir() if path.is_dir()]


def in_group(group: str, pid: int) -> bool:
    return own_group(Path(f"/proc/{pid}")) == Path(group)


async def frozen(engine: Engine, key: RunKey) -> None:
    """Hold it still as soon as it is in its group, and wait until it is."""
    group, leader = await group_of(engine, key), (await engine.spawned(key)).process.leader.pid
    await until(lambda: in_group(group.path, leader))
    await engine.executor.set_frozen(key, frozen=True)
    await until(lambda: "frozen 1" in (Path(group.path) / "cgroup.events").read_text())


async def written(path: Path) -> str:
    await until(lambda: path.exists() and path.read_text().endswith("\n"))
    return path.read_text()


async def group_of(engine: Engine, key: RunKey) -> ControlGroup:
    group = (await engine.spawned(key)).process.group
    assert group is not None
    return group


async def test_a_run_that_lasts_has_a_group_and_its_keeper_is_not_in_it(engine: Engine, base: Path):
    key = await engine.start("sleep 1000 & sleep 1000")
    group = await group_of(engine, key)
    process = (await engine.spawned(key)).process
    family = [process.leader.pid, *children_of(process.leader.pid)]
    await until(lambda: all(in_group(group.path, pid) for pid in family))
    assert not in_group(group.path, process.keeper_pid)
    await engine.executor.signal(key, signal.SIGKILL, "tree")
    await engine.settled(key)
    assert not groups(base)


async def test_with_a_memory_limit_the_group_exists_from_the_first_instruction(tmp_path: Path, base: Path):
    engine = Engine(tmp_path, Cgroups(base, ("memory",)))
    await engine.open()
    key = await engine.run("cat /proc/$$/cgroup", limits=Limits(memory_bytes=1024 * MIB))
    assert f"/{base.name}/whisper-" in engine.out(key).decode() and await engine.ended(key) == Exited(code=0)
    await engine.close()
    assert not groups(base)


async def test_background_processes_keep_the_group_until_they_end(engine: Engine, base: Path):
    key = await engine.start("setsid bash -c 'sleep 1000 & echo $! > daemon' > /dev/null 2>&1")
    assert await engine.ended(key) == Exited(code=0)
    daemon = int(await written(engine.workspace / "daemon"))
    await until(lambda: [group for group in groups(base) if in_group(str(group), daemon)])
    os.kill(daemon, signal.SIGKILL)
    await engine.settled(key)
    assert not groups(base)


async def test_a_run_that_was_never_started_leaves_no_group(engine: Engine, base: Path):
    await engine.run("true", cwd=str(engine.workspace / "nowhere"))
    await engine.run(Argv(program="/no/such/program", args=()), program="/no/such/program")
    assert not groups(base)


async def test_groups_that_a_run_has_made_go_with_its_own(engine: Engine, base: Path):
    line = 'read go; cd "$0"/whisper-*; mkdir inner; echo 0 > inner/cgroup.procs; exec sleep 1000'
    key = await engine.start(Argv(program="bash", args=("-c", line, str(base))), accepts_input=True)
    group = Path((await group_of(engine, key)).path)
    leader = (await engine.spawned(key)).process.leader.pid
    await until(lambda: in_group(str(group), leader))
    await engine.executor.write_stdin(key, b"go\n")
    await until(lambda: in_group(str(group / "inner"), leader))
    await engine.executor.signal(key, signal.SIGKILL, "tree")
    await engine.settled(key)
    assert not groups(base)


@pytest.mark.slow
async def test_a_frozen_run_is_not_stopped_and_continues_after_thawing(engine: Engine, base: Path):
    key = await engine.start("echo $$ > a; i=0; while :; do i=$((i+1)); echo $i > n; done")
    leader = int(await written(engine.workspace / "a"))
    await written(engine.workspace / "n")
    await frozen(engine, key)
    before = (engine.workspace / "n").read_bytes()
    await asyncio.sleep(0.2)
    assert (engine.workspace / "n").read_bytes() == before and not is_stopped(leader)
    await engine.executor.set_frozen(key, frozen=False)
    await until(lambda: (engine.workspace / "n").read_bytes() not in {before, b""})
    await engine.executor.signal(key, signal.SIGKILL, "tree")
    await engine.settled(key)


async def test_processes_that_left_the_group_are_stopped_too(engine: Engine, base: Path):
    elsewhere = base / "elsewhere"
    elsewhere.mkdir()
    line = 'read go; echo 0 > "$0/cgroup.procs"; echo $$ > a; sleep 1000'
    key = await engine.start(Argv(program="bash", args=("-c", line, str(elsewhere))), accepts_input=True)
    leader = (await engine.spawned(key)).process.leader.pid
    group = await group_of(engine, key)
    await until(lambda: in_group(group.path, leader))
    await engine.executor.write_stdin(key, b"go\n")
    await written(engine.workspace / "a")
    await engine.executor.set_frozen(key, frozen=True)
    await until(lambda: is_stopped(leader))
    await engine.executor.set_frozen(key, frozen=False)
    await until(lambda: not is_stopped(leader))
    await engine.executor.signal(key, signal.SIGKILL, "tree")
    await engine.settled(key)


async def test_a_held_run_can_be_ended(engine: Engine, base: Path):
    key = await engine.start("echo $$ > a; sleep 1000")
    await written(engine.workspace / "a")
    await frozen(engine, key)
    await engine.executor.end(key, 30.0)
    assert await engine.ended(key) == Signalled(number=signal.SIGTERM, by_us=True)
    await engine.settled(key)


@pytest.mark.slow
async def test_a_killed_keepers_run_is_lost_and_still_seen_and_killed(engine: Engine, base: Path):
    key = await engine.start("setsid bash -c 'sleep 1000 & echo $! > daemon'; exec sleep 1000")
    daemon = int(await written(engine.workspace / "daemon"))
    process, group = (await engine.spawned(key)).process, await group_of(engine, key)
    await until(lambda: in_group(group.path, daemon) and in_group(group.path, process.leader.pid))
    kill_for_good(process.keeper_pid)
    ending = await engine.ended(key)
    assert isinstance(ending, Lost) and f"alive as pid {process.leader.pid}, its output is lost" in ending.why
    left = await engine.background(key, lambda told: len([each for each in told.processes if each.alive]) == 2)
    assert {each.identity.pid for each in left.processes} == {process.leader.pid, daemon}
    await engine.executor.signal(key, signal.SIGKILL, "tree")
    await engine.seen(key, HasBackground, lambda told: not any(each.alive for each in told.processes))
    await engine.settled(key)
    assert not alive(daemon) and not alive(process.leader.pid) and not groups(base)


async def test_a_killed_keepers_run_is_ended_gently_after_a_restart(engine: Engine, base: Path):
    key = await engine.start(
        "exec 2> /dev/null; trap 'echo bye > bye; exit' TERM; echo $$ > a; while :; do sleep 0.01; done"
    )
    await written(engine.workspace / "a")
    process, group = (await engine.spawned(key)).process, await group_of(engine, key)
    await until(lambda: in_group(group.path, process.leader.pid))
    keeper = process.keeper_pid
    await engine.close()
    kill_for_good(keeper)
    await until(lambda: not alive(keeper))
    await engine.open()
    await engine.executor.attach(key)
    assert isinstance(await engine.ended(key), Lost)
    await engine.executor.end(key, 30.0)
    await engine.settled(key)
    assert await written(engine.workspace / "bye") == "bye\n" and not groups(base)


async def test_a_frozen_run_without_a_keeper_is_continued_after_a_restart(engine: Engine, base: Path):
    key = await engine.start("i=0; while :; do i=$((i+1)); echo $i > n; done")
    await written(engine.workspace / "n")
    keeper = (await engine.spawned(key)).process.keeper_pid
    await frozen(engine, key)
    await engine.close()
    kill_for_good(keeper)
    await until(lambda: not alive(keeper))
    await engine.open()
    await engine.executor.attach(key)
    await engine.ended(key)
    before = (engine.workspace / "n").read_bytes()
    await engine.executor.set_frozen(key, frozen=False)
    await until(lambda: (engine.workspace / "n").read_bytes() not in {before, b""})
    await engine.executor.signal(key, signal.SIGKILL, "tree")
    await engine.settled(key)
    assert not groups(base)


@pytest.mark.slow
async def test_the_processor_time_of_all_processes_together_is_limited(engine: Engine):
    """Each of them gets no further than its own second."""
    key = await engine.start("for i in $(seq 9); do (while :; do :; done) & done; wait", limits=Limits(cpu_s=1))
    ending = await engine.ended(key)
    assert isinstance(ending, Signalled) and (ending.number, ending.limit) == (signal.SIGKILL, "cpu")
    assert (await group_of(engine, key)).sums == ("cpu_s",)


@needs("memory")
async def test_a_run_whose_processes_together_have_too_much_memory_is_killed_and_says_so(engine: Engine, base: Path):
    text = "import time; held = bytearray(60 << 20); time.sleep(1000)"
    line = f"for i in 1 2 3; do {PYTHON} -I -S -c '{text}' & done; wait"
    key = await engine.run(line, limits=Limits(memory_bytes=128 * MIB))
    ending = await engine.ended(key)
    assert ending == Signalled(number=signal.SIGKILL, by_us=False, limit="memory")
    assert (await group_of(engine, key)).sums == ("memory_bytes",) and not groups(base)


@needs("memory")
async def test_a_process_alone_is_refused_memory_as_everywhere(engine: Engine):
    key = await engine.run(python("bytearray(512 << 20)"), limits=Limits(memory_bytes=128 * MIB))
    assert b"MemoryError" in engine.err(key) and await engine.ended(key) == Exited(code=1)


@needs("pids")
async def test_a_run_forks_only_so_far_before_its_keeper_counts(engine: Engine):
    text = (
        "import threading\nstarted = 1\n"
        "try:\n  while True: threading.Thread(target=threading.Event().wait, daemon=True).start(); started += 1\n"
        "except RuntimeError: print(started)"
    )
    key = await engine.run(python(text), limits=Limits(processes=1))
    assert engine.out(key) == f"{TASKS_PER_PROCESS}\n".encode()


IN_A_GROUP = """
import os, pathlib, subprocess, sys
group = pathlib.Path(sys.argv[1])
(group / "cgroup.procs").write_text("0")
other = subprocess.Popen(["sleep", "1000"]) if "accompanied" in sys.argv else None
from whisper_tui.supervisor.keeper.base_cgroup import Cgroups, own_group
found = Cgroups.find()
print(found.base == group, own_group().name, *found.counts)
if other: other.kill(); other.wait()
"""


def found_by(base: Path, *words: str) -> list[str]:
    group = base / "unit"
    group.mkdir(exist_ok=True)
    told = subprocess.run([sys.executable, "-c", IN_A_GROUP, str(group), *words], capture_output=True, check=True)
    return told.stdout.decode().split()


def test_a_supervisor_that_is_alone_in_its_group_makes_room_for_counting(base: Path):
    counts = counted(base)
    assert found_by(base) == ["True", "whisper-tui", *counts]


def test_a_supervisor_that_shares_its_group_moves_nobody(base: Path):
    assert found_by(base, "accompanied") == ["True", "unit"]
    assert not groups(base / "unit")
