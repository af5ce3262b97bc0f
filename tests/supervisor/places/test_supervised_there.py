"""A supervisor whose calls run at a place: queued while it is away, followed across restarts, shown in the status."""

import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from tests.supervisor.conftest import Bench
from tests.supervisor.engine.conftest import until
from tests.supervisor.places.conftest import PipeTransport, processes_with
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.ending import Exited
from whisper_tui.model.state import Ended, Queued
from whisper_tui.policy.rules.rule import NO_RULES, Rules
from whisper_tui.supervisor.places.place_settings import PlaceSettings
from whisper_tui.supervisor.places.place_transports import PlaceTransport
from whisper_tui.supervisor.places.placed_executors import PlacedExecutors
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.supervisor.supervisor import Supervisor


class Away(PipeTransport):
    """A pipe while a file exists."""

    def __init__(self, name: str, gate: Path) -> None:
        super().__init__(name)
        self._gate = gate

    def command(self, argv: Sequence[str]) -> list[str]:
        return list(argv) if self._gate.exists() else ["sh", "-c", "echo no route to host >&2; exit 255"]


class PlacedBench(Bench):
    """A supervisor with real executors: this machine, and a place that is this machine as well."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.there, self.gate = directory / "there", directory / "gate"
        self.gate.touch()
        there = PlaceSettings("gpu1", "ssh", directory=str(self.there), python=sys.executable, connect="start")
        self.places = (there,)

    async def open(self, rules: Rules = NO_RULES, workers: int = 4) -> None:
        runs = Path(self.home.state) / "runs"
        self.placed = PlacedExecutors(LocalExecutor(runs), self.places, runs, self._way)
        self.supervisor = Supervisor(self.home, self.placed, rules=rules, places=self.places)
        await self.supervisor.open()

    def _way(self, settings: PlaceSettings, near: str) -> PlaceTransport:
        return Away(settings.name, self.gate)

    async def asked(self, text: str, place: str = "gpu1") -> str:
        """A call that a human has approved."""
        call_id = await self.submitted(text, place)
        await self.approve(call_id)
        return call_id

    async def submitted(self, text: str, place: str = "gpu1") -> str:
        spec = CommandSpec(command=Shell(text=text), cwd=str(self.workspace), place=place)
        request = CallRequest(session_id=await self.session(), tool="t", arguments={}, spec=spec)
        return await self.supervisor.submit(request)

    async def out(self, call_id: str) -> bytes:
        return (await self.supervisor.read_output(call_id, "out", 0, 1 << 20)).data

    async def end(self) -> None:
        """End all runs, and the host process."""
        await self.supervisor.shutdown(end_runs=True)
        await self.supervisor.close()
        for pid in processes_with(b"serve", os.fsencode(self.there)):
            os.kill(pid, signal.SIGKILL)

    async def reached(self) -> None:
        await until(lambda: self.placed.problem_at("gpu1") is None)


@pytest.fixture
async def placed(tmp_path: Path) -> AsyncIterator[PlacedBench]:
    made = PlacedBench(tmp_path)
    await made.open()
    yield made
    await made.end()


async def test_an_approved_call_runs_there_and_one_without_a_place_here(placed: PlacedBench) -> None:
    await placed.reached()
    there = await placed.asked("echo $WHISPER_TUI_CALL_ID; exit 4")
    here = await placed.asked("echo here", place="")
    for call_id, code, text in ((there, 4, f"{there}\n"), (here, 0, "here\n")):
        record = await placed.supervisor.outcome(call_id)
        assert isinstance(record.state, Ended) and record.state.ending == Exited(code=code)
        assert await placed.out(call_id) == text.encode()
    (state,) = (await placed.supervisor.status()).places
    assert (state.name, state.way, state.reached, state.problem) == ("gpu1", "a pipe", True, "")


@pytest.mark.slow
async def test_a_call_waits_for_a_place_that_is_away_and_says_why(placed: PlacedBench) -> None:
    await placed.reached()
    call_id = await placed.submitted("echo there")
    placed.gate.unlink()
    await placed.restart()
    await until(lambda: "no route" in (placed.placed.problem_at("gpu1") or ""))
    await placed.approve(call_id)
    here = await placed.asked("echo here", place="")
    await placed.supervisor.outcome(here)
    assert isinstance((await placed.record(call_id)).state, Queued)
    status = await placed.supervisor.status()
    reason = status.queue.of("", by_human=True, place="gpu1")
    assert reason is not None and reason.why.startswith("gpu1 is unreachable: no route to host")
    assert (status.places[0].reached, status.places[0].problem) == (False, "no route to host")
    placed.gate.touch()
    record = await placed.supervisor.outcome(call_id)
    assert isinstance(record.state, Ended) and await placed.out(call_id) == b"there\n"


@pytest.mark.slow
async def test_what_nobody_could_look_at_there_is_asked_again_once_it_is_known(placed: PlacedBench) -> None:
    placed.gate.unlink()
    await placed.restart()
    await until(lambda: "no route" in (placed.placed.problem_at("gpu1") or ""))
    call_id = await placed.asked("echo $0 there")
    placed.gate.touch()
    again = await placed.state(call_id, "waiting")
    assert again.verdict is not None and "so what would run there is unknown" in again.verdict.reason
    assert again.resolved is not None and again.resolved.program == "/usr/bin/bash"
    await placed.approve(call_id)
    await placed.supervisor.outcome(call_id)
    assert b"there" in await placed.out(call_id)


@pytest.mark.slow
async def test_its_environment_is_that_of_a_login_there_and_not_the_agents(placed: PlacedBench) -> None:
    await placed.reached()
    session = await placed.session(environment={"AGENTS_OWN": "secret", "PATH": "/agents/own"})
    spec = CommandSpec(command=Shell(text="env"), cwd=str(placed.workspace), place="gpu1", environment={"ADDED": "1"})
    call_id = await placed.supervisor.submit(CallRequest(session_id=session, tool="t", arguments={}, spec=spec))
    await placed.approve(call_id)
    await placed.supervisor.outcome(call_id)
    said = dict(line.partition("=")[::2] for line in (await placed.out(call_id)).decode().splitlines())
    assert (said["ADDED"], said["WHISPER_TUI_CALL_ID"]) == ("1", call_id)
    assert "AGENTS_OWN" not in said and said["PATH"] != "/agents/own"


@pytest.mark.slow
async def test_a_run_goes_on_while_its_supervisor_is_restarted(placed: PlacedBench) -> None:
    await placed.reached()
    call_id = await placed.asked("echo before; until test -e go; do sleep 0.02; done; echo after; exit 6")
    await placed.state(call_id, "running")
    await placed.restart()
    (placed.workspace / "go").touch()
    record = await placed.supervisor.outcome(call_id)
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=6)
    await until(lambda: not placed.supervisor.board.unsettled)
    assert await placed.out(call_id) == b"before\nafter\n"
