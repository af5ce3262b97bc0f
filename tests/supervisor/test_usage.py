"""Measuring what runs: what its processes use, whether they get no further, and what their terminal echoes."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.outside import outside_only
from whisper_tui.model.call import CallRequest, CommandSpec, SessionHello, Shell
from whisper_tui.model.decision import Approve, Decider
from whisper_tui.model.run import RunProcess, Stall
from whisper_tui.supervisor.runs.live_runs import echo_of
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.supervisor.settings import SupervisorSettings
from whisper_tui.supervisor.supervisor import Supervisor
from whisper_tui.system.state_directory import Directories
from whisper_tui.wire.client import SupervisorClient
from whisper_tui.wire.server import serve

HUMAN = Decider(surface="library", who="tester")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")


class Runs:
    """A supervisor with real processes, and short words for what tests do with them."""

    def __init__(self, supervisor: Supervisor, home: Directories, session_id: str, workspace: Path) -> None:
        self.supervisor = supervisor
        self.home = home
        self._session_id = session_id
        self._workspace = workspace

    async def start(self, text: str, *, tty: bool = False, accepts_input: bool = False) -> str:
        spec = CommandSpec(
            command=Shell(text=text), cwd=str(self._workspace), tty=tty, accepts_input=accepts_input, grace_s=0.5
        )
        request = CallRequest(session_id=self._session_id, tool="run_shell_command", arguments={}, spec=spec)
        call_id = await self.supervisor.submit(request)
        record = await self.supervisor.record(call_id)
        if record.state.kind == "waiting":
            await self.supervisor.decide(call_id, Approve(), HUMAN, record.seen_digest())
        await asyncio.wait_for(self.supervisor.started(call_id), 60)
        return call_id

    async def process(self, call_id: str) -> RunProcess:
        process = (await self.supervisor.record(call_id)).process
        assert process is not None
        return process

    async def stall(self, call_id: str, holds: Callable[[Stall], Any]) -> Stall:
        """Wait until the supervisor says so about a run."""
        async with asyncio.timeout(60):
            while not holds(found := (await self.supervisor.stalls()).get(call_id, Stall())):
                await asyncio.sleep(0.02)
        return found

    async def printed(self, call_id: str, text: bytes) -> None:
        async with asyncio.timeout(60):
            while text not in (await self.supervisor.read_output(call_id, "out", 0, 10_000)).data:
                await asyncio.sleep(0.02)


@pytest.fixture
async def runs(tmp_path: Path, home: Directories) -> AsyncIterator[Runs]:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    supervisor = Supervisor(home, LocalExecutor(home.state / "runs"), settings=SupervisorSettings(workers=8))
    await supervisor.open()
    hello = SessionHello(name="agent", root=str(workspace), environment={"PATH": os.environ["PATH"]})
    session = await supervisor.open_session(hello)
    try:
        yield Runs(supervisor, home, session.id, workspace)
    finally:
        await supervisor.shutdown(end_runs=True)
        await supervisor.close()


async def test_all_who_ask_within_a_second_get_the_same_sample(runs: Runs) -> None:
    call = await runs.start("sleep 1000 & exec sleep 1001")
    samples = await asyncio.gather(*(runs.supervisor.usage((call,)) for _ in range(10)))
    assert {sample[call].at for sample in samples} == {samples[0][call].at}
    later = samples[0]
    async with asyncio.timeout(60):
        while later[call].at == samples[0][call].at:
            await asyncio.sleep(0.05)
            later = await runs.supervisor.usage((call,))
    assert later[call].at - samples[0][call].at >= 0.9
    assert later[call].processes == 2 and later[call].memory > 100_000


async def test_calls_of_which_nothing_is_alive_have_no_sample(runs: Runs) -> None:
    call = await runs.start("true")
    async with asyncio.timeout(60):
        while (await runs.supervisor.record(call)).is_open:
            await asyncio.sleep(0.02)
    assert await runs.supervisor.usage((call, "999")) == {}


@linux_only
async def test_background_processes_are_measured_separately(runs: Runs) -> None:
    call = await runs.start("sleep 1000 & sleep 0.1")
    async with asyncio.timeout(60):
        while not (await runs.supervisor.record(call)).living_background:
            await asyncio.sleep(0.02)
    (identity,) = [one.identity for one in (await runs.supervisor.record(call)).living_background]
    async with asyncio.timeout(60):
        while not (behind := (await runs.supervisor.usage((call,)))[call].left_behind):
            await asyncio.sleep(0.1)
    assert behind[0].identity == identity and behind[0].memory > 0
    assert abs(behind[0].started_at - time.time()) < 120


@pytest.mark.slow
@outside_only
async def test_a_cockpit_at_the_socket_gets_the_same(runs: Runs) -> None:
    call = await runs.start("read -r line", accepts_input=True)
    server = await serve(runs.supervisor, runs.home, {})
    client = await SupervisorClient.connect(runs.home, start=False)
    try:
        here, there = await runs.supervisor.usage((call,)), await client.usage((call,))
        assert there[call].memory > 0 and set(there) == set(here)
        if sys.platform == "linux":
            stall = await runs.stall(call, lambda stall: stall.silent_since)
            assert (await client.stalls())[call] == stall
        assert await client.echo(call) is None
        with pytest.raises(Exception, match="64"):
            await client.usage(tuple(str(number) for number in range(65)))
    finally:
        await client.close()
        await server.close()


@pytest.mark.slow
@linux_only
@pytest.mark.parametrize(
    ("command", "tty"), [("printf 'Name: '; read -r name", False), ("printf 'Name: '; read -r name < /dev/tty", True)]
)
async def test_a_command_that_reads_and_is_silent_needs_input_since_its_last_output(
    runs: Runs, command: str, tty: bool
) -> None:
    call = await runs.start(f"{command}; echo got; exec sleep 1000", tty=tty, accepts_input=True)
    await runs.printed(call, b"Name: ")
    printed_at = (await runs.supervisor.read_output(call, "out", 0, 1)).written_at
    stall = await runs.stall(call, lambda stall: stall.silent_since)
    assert await runs.supervisor.stalls() == {call: stall} and stall.waits == "reads"
    assert stall.silent_since == pytest.approx(printed_at, abs=1)
    await runs.supervisor.write_stdin(call, b"\r" if tty else b"x\n")
    await runs.printed(call, b"got")
    await runs.stall(call, lambda stall: stall == Stall())


@pytest.mark.slow
@linux_only
async def test_listeners_hear_once_of_a_run_that_needs_input(runs: Runs) -> None:
    told: list[dict[str, str]] = []
    runs.supervisor.stall_monitor.listen(told.append)
    call = await runs.start("read -r line", accepts_input=True)
    await runs.start("sleep 1000")
    await runs.stall(call, lambda stall: stall.silent_since)
    for _ in range(3):
        await runs.supervisor.stall_monitor.look()
    assert told == [{call: "needs-input"}]


@linux_only
async def test_listeners_hear_of_a_run_that_others_have_stopped(runs: Runs) -> None:
    told: list[dict[str, str]] = []
    runs.supervisor.stall_monitor.listen(told.append)
    outside, asked = await runs.start("exec sleep 1000"), await runs.start("exec sleep 1001")
    await runs.supervisor.signal(asked, signal.SIGSTOP, "tree", HUMAN)
    os.kill((await runs.process(outside)).leader.pid, signal.SIGSTOP)
    for call in (asked, outside):
        await runs.stall(call, lambda stall: stall.stopped)
    assert told == [{outside: "stopped"}]


@pytest.mark.slow
@linux_only
async def test_a_run_that_is_stopped_from_outside_is_stopped_until_it_continues(runs: Runs) -> None:
    call = await runs.start("exec sleep 1000")
    leader = (await runs.process(call)).leader.pid
    os.kill(leader, signal.SIGSTOP)
    await runs.stall(call, lambda stall: stall.stopped)
    os.kill(leader, signal.SIGCONT)
    await runs.stall(call, lambda stall: not stall.stopped)


async def test_the_echo_of_a_terminal_is_what_its_command_has_set(runs: Runs) -> None:
    call = await runs.start("read -rs -p 'Password: ' word; printf read; exec sleep 1000", tty=True)
    plain = await runs.start("exec sleep 1000", accepts_input=True)
    await runs.printed(call, b"Password: ")
    async with asyncio.timeout(60):
        while await runs.supervisor.echo(call) != "hides":
            await asyncio.sleep(0.02)
    await runs.supervisor.write_stdin(call, b"hunter2\r")
    await runs.printed(call, b"read")
    async with asyncio.timeout(60):
        while await runs.supervisor.echo(call) != "shows":
            await asyncio.sleep(0.02)
    assert await runs.supervisor.echo(plain) is None


async def test_the_echo_is_read_from_the_device_that_the_keeper_has_named(runs: Runs) -> None:
    call = await runs.start("stty -echo; printf ready; exec sleep 1000", tty=True)
    await runs.printed(call, b"ready")
    process = await runs.process(call)
    assert process.terminal is not None and process.terminal.startswith("/dev/")
    # As of a command whose own files this user may not open.
    elsewhere = process.model_copy(update={"leader": process.leader.model_copy(update={"pid": 1})})
    assert echo_of(elsewhere) == "hides"
    for other in ("/dev/null", "/etc/passwd", "/dev/pts/no-such"):
        assert echo_of(process.model_copy(update={"terminal": other})) is None


@linux_only
async def test_a_run_of_an_earlier_version_has_its_echo_read_through_its_leader(runs: Runs) -> None:
    call = await runs.start("stty -echo; printf ready; exec sleep 1000", tty=True)
    await runs.printed(call, b"ready")
    assert echo_of((await runs.process(call)).model_copy(update={"terminal": None})) == "hides"
