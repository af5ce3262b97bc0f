"""Attempts to decide by those who may not are taken down and told, and cannot fill the journal."""

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from tests.interpreter import PYTHON
from tests.mutations.conftest import HUMAN, Field, a_field
from tests.outside import outside_only
from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.scenes import Scenario
from whisper_tui.cli.watch_text import happened
from whisper_tui.model.board import Board
from whisper_tui.model.ending import Exited
from whisper_tui.model.event import AttemptRefused
from whisper_tui.model.state import Ended
from whisper_tui.present.security_text import refused_sentence
from whisper_tui.supervisor.journal.journal import Journal
from whisper_tui.wire.authorization import BURST, EVERY_S, RefusalLog


def attempt(at: float = 1.0, operation: str = "decide", about: str | None = "7") -> AttemptRefused:
    why = "the request comes from inside a supervised command"
    return AttemptRefused(
        at=at, operation=operation, about=about, why=why, pid=4711, program="sh evil.sh", from_call="5"
    )


@pytest.mark.slow
@outside_only
async def test_refused_attempts_are_in_the_journal_and_the_history(field: Field):
    wanted = await field.ask("touch", "owned")
    approve = [PYTHON, "-m", "whisper_tui", "approve", wanted, "--home", str(field.root)]
    culprit = await field.ask("env", f"PYTHONPATH={field.environment['PYTHONPATH']}", *approve)
    await field.approve(culprit)
    await asyncio.wait_for(field.supervisor.outcome(culprit), 60)
    (found,) = field.board_refused
    assert (found.operation, found.about, found.from_call) == ("decide", wanted, culprit)
    assert f"whisper_tui approve {wanted}" in found.program
    history = [PYTHON, "-m", "whisper_tui", "history", "refused", "--home", str(field.root)]
    told = await asyncio.to_thread(subprocess.run, history, capture_output=True, text=True, env=field.environment)
    assert f"inside call {culprit} tried to decide about call {wanted}" in told.stdout
    history.append("--json")
    told = await asyncio.to_thread(subprocess.run, history, capture_output=True, text=True, env=field.environment)
    assert [row["from_call"] for row in json.loads(told.stdout)] == [culprit]


async def test_a_restarted_supervisor_shows_them_again(field: Field):
    field.supervisor.attempt_refused(attempt())
    watching = field.supervisor.watch(None)
    assert any(isinstance(event, AttemptRefused) for event in await anext(watching))
    again = Journal(field.home.state / "journal.sqlite")
    assert [event.pid for event in again.refused(10)] == [4711]
    again.close()


def test_a_flood_is_counted_and_not_recorded():
    recorded: list[AttemptRefused] = []
    now = 0.0
    refusals = RefusalLog(recorded.append, lambda: now)
    for _ in range(1000):
        refusals.note(attempt())
    assert len(recorded) == BURST
    now = EVERY_S
    for _ in range(1000):
        refusals.note(attempt())
    assert [found.left_out for found in recorded] == [0] * BURST + [1000 - BURST]


def test_the_text_mode_says_it_and_shows_what_is_hidden_in_it():
    board, evil = Board(), attempt().model_copy(update={"program": "sh \x1b[2J\u202e"})
    board.apply(evil)
    line = happened(evil, board)
    assert line is not None and "\x1b" not in line and "\u202e" not in line
    assert "inside call 5 tried to decide about call 7" in line


def test_unrecorded_attempts_are_counted_in_the_next_record():
    told = refused_sentence(attempt(operation="pause", about=None).model_copy(update={"left_out": 12}))
    assert "tried to pause everything" in told and "12 others before it went unrecorded" in told


def toasts(cockpit: Cockpit) -> list[str]:
    return [notice.message for notice in cockpit.app._notifications if notice.severity == "error"]


async def test_the_cockpit_tells_each_attempt_once_and_counts_a_flood():
    async with open_cockpit(Scenario.begin()) as cockpit:
        cockpit.scenario.supervisor.happen(attempt(cockpit.scenario.clock()))
        await cockpit.until(lambda: len(toasts(cockpit)) == 1)
        assert "tried to decide about call 7" in toasts(cockpit)[0]
        cockpit.scenario.ask("build")
        await cockpit.settled()
        assert len(toasts(cockpit)) == 1
        for _ in range(10):
            cockpit.scenario.supervisor.happen(attempt(cockpit.scenario.clock()))
        await cockpit.until(lambda: any("other attempt" in told for told in toasts(cockpit)))


async def test_a_cockpit_that_is_opened_later_says_that_there_were_some():
    scenario = Scenario.begin()
    scenario.supervisor.happen(attempt(scenario.clock() - 60))
    scenario.supervisor.happen(attempt(scenario.clock() - 30))
    async with open_cockpit(scenario) as cockpit:
        await cockpit.until(lambda: toasts(cockpit))
        (told,) = toasts(cockpit)
        assert told.startswith("2 attempts to decide were refused earlier") and "history refused" in told


@outside_only
@pytest.mark.parametrize("words", [("restart",), ("supervise", "--replace")], ids=" ".join)
@pytest.mark.few(1)
async def test_a_restart_from_inside_a_supervised_command_is_taken_down(field: Field, words: tuple[str, ...]):
    replace = [PYTHON, "-m", "whisper_tui", *words, "--home", str(field.root)]
    culprit = await field.ask("env", "-u", "WHISPER_TUI", f"PYTHONPATH={field.environment['PYTHONPATH']}", *replace)
    await field.approve(culprit)
    record = await asyncio.wait_for(field.supervisor.outcome(culprit), 60)
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=1)
    (found,) = field.board_refused
    assert (found.operation, found.from_call) == ("shutdown", culprit)
    assert "tried to stop the supervisor" in refused_sentence(found) and " ".join(words) in found.program
    assert not field.supervisor.stopped.is_set()


@outside_only
async def test_a_foreign_order_to_a_keeper_is_ignored_and_reported(field: Field):
    victim = await field.runs("sleep", "60")
    control = field.home.state / "runs" / f"{victim}.1" / "ctl"
    kill = json.dumps({"do": "signal", "number": 9, "target": "tree"})
    culprit = await field.runs("sh", "-c", f"printf '%s\\n' '{kill}' > {control}")
    await asyncio.wait_for(field.supervisor.outcome(culprit), 60)
    await field.until(lambda: bool(field.board_refused))
    (found,) = field.board_refused
    assert (found.operation, found.about, found.pid) == ("order", victim, 0)
    told = refused_sentence(found)
    assert f"an unknown process tried to give an order to the keeper of call {victim}" in told and '"number": 9' in told
    assert (await field.supervisor.record(victim)).state.kind == "running"
    await field.supervisor.signal(victim, 15, "tree", HUMAN)
    await asyncio.wait_for(field.supervisor.outcome(victim), 60)


@outside_only
async def test_an_order_is_valid_after_a_foreign_partial_line(field: Field):
    victim = await field.runs("sleep", "60")
    control = field.home.state / "runs" / f"{victim}.1" / "ctl"
    control.write_bytes(b"x" * 100_000 + b'\n{"do": "sig')
    await field.supervisor.signal(victim, 15, "tree", HUMAN)
    await asyncio.wait_for(field.supervisor.outcome(victim), 60)
    await field.until(lambda: bool(field.board_refused))


@outside_only
async def test_a_flood_of_foreign_orders_is_reported_once_and_counted(tmp_path: Path):
    async with a_field(tmp_path, ends_runs=False) as field:
        victim = await field.runs("sleep", "60")
        control = field.home.state / "runs" / f"{victim}.1" / "ctl"
        control.write_bytes(b"{}\n" * 1000)
        await field.until(lambda: bool(field.board_refused))
        before = field.board_refused
        assert len(before) == 1 and before[0].left_out < 1000
    async with a_field(tmp_path) as field:
        await field.supervisor.signal(victim, 15, "tree", HUMAN)
        await asyncio.wait_for(field.supervisor.outcome(victim), 60)
        await field.until(lambda: not field.supervisor._store.board.unsettled)
        assert field.board_refused[: len(before)] == before
        assert sum(1 + found.left_out for found in field.board_refused) == 1000
