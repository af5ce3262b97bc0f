"""A human says how much runs unasked: in one session, for a time, or in all; and nobody else raises it."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.outside import needs_overlays
from tests.supervisor.conftest import HUMAN, Bench
from tests.supervisor.test_previews import LiveBench
from whisper_tui.model.call import SessionHello, UnaskedLevel
from whisper_tui.model.decision import Approve
from whisper_tui.model.errors import InvalidRequest, Refused
from whisper_tui.model.state import Ended, Waiting
from whisper_tui.policy.rules.rule import NO_RULES, Rule, Rules


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[LiveBench]:
    made = LiveBench(tmp_path)
    await made.open(NO_RULES.at("reading"))
    yield made
    await made.supervisor.close()


@needs_overlays
async def test_a_session_runs_more_unasked_than_the_others(live: LiveBench) -> None:
    first, second = await live.session("first"), await live.session("second")
    await live.supervisor.set_unasked("workspace", HUMAN, first)
    done = await live.over(await live.submit(first, text="echo x > made"))
    assert isinstance(done.state, Ended) and live.files() == {"made": "x\n"}
    waits = await live.state(await live.submit(second, text="echo x > other"), "waiting")
    assert waits.verdict is not None and not waits.verdict.held_back
    assert (await live.supervisor.status()).unasked == {
        "": UnaskedLevel(level="reading"),
        first: UnaskedLevel(level="workspace"),
    }


@needs_overlays
async def test_what_waits_runs_once_more_may_run_unasked(live: LiveBench) -> None:
    session = await live.session()
    call_id = await live.submit(session, text="echo x > made")
    await live.state(call_id, "waiting")
    await live.supervisor.set_unasked("workspace", HUMAN, until=time.time() + 3600)
    await live.over(call_id)
    assert live.files() == {"made": "x\n"}


@needs_overlays
async def test_a_command_that_is_held_back_waits_for_a_human_if_less_may_run_by_its_end(live: LiveBench) -> None:
    session = await live.session()
    await live.supervisor.set_unasked("workspace", HUMAN, session)
    go = live.workspace / "go"
    call_id = await live.submit(session, text="while ! [ -e go ]; do sleep 0.05; done; echo x > made")
    await live.until(call_id, lambda record: record.is_held_back and record.preview is not None)
    await live.supervisor.set_unasked("reading", HUMAN, session)
    go.touch()
    await live.report(call_id)
    record = await live.until(call_id, lambda record: isinstance(record.state, Waiting))
    assert record.preview is not None and record.preview.can_be_applied
    assert call_id in live.supervisor.board.waiting
    assert live.files() == {"go": ""}
    await live.decide(call_id, Approve(preview=(await live.report(call_id)).digest))
    await live.over(call_id)
    assert live.files() == {"go": "", "made": "x\n"}


async def test_less_runs_in_a_session_than_the_rules_let_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.open(NO_RULES.at("reading"))
    session = await bench.session()
    await bench.supervisor.set_unasked("nothing", HUMAN, session)
    assert isinstance((await bench.record(await bench.submit(session, "ls"))).state, Waiting)
    await bench.supervisor.set_unasked(None, HUMAN, session)
    await bench.ordered(await bench.submit(session, "ls"))
    await bench.supervisor.close()


async def test_a_level_ends_with_its_time(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.open()
    session = await bench.session()
    await bench.supervisor.set_unasked("reading", HUMAN, until=time.time() + 0.5)
    await bench.ordered(await bench.submit(session, "ls"))
    async with asyncio.timeout(60):
        while (await bench.supervisor.status()).unasked[""].level == "reading":
            await asyncio.sleep(0.05)
    assert isinstance((await bench.record(await bench.submit(session, "ls"))).state, Waiting)
    with pytest.raises(InvalidRequest, match="is over"):
        await bench.supervisor.set_unasked("reading", HUMAN, until=time.time() - 1)
    await bench.supervisor.close()


async def test_what_rules_ask_about_or_deny_is_asked_or_denied_at_every_level(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    rules = Rules(
        ask=(Rule(name="a", program="make"),), deny=(Rule(name="d", program="rm"),), asks=frozenset({"effects"})
    )
    await bench.open(rules)
    session = await bench.session()
    await bench.supervisor.set_unasked("workspace", HUMAN, session)
    asked = await bench.record(await bench.submit(session, "make"))
    assert isinstance(asked.state, Waiting) and asked.verdict is not None and asked.verdict.rule == "a"
    assert isinstance((await bench.record(await bench.submit(session, "rm", "x"))).state, Ended)
    # A project lowers what a human sets.
    touched = await bench.record(await bench.submit(session, "touch", "x"))
    assert touched.verdict is not None and not touched.verdict.held_back
    await bench.supervisor.close()


async def test_levels_outlive_a_restart_and_a_kill_takes_back_those_that_let_more_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.open()
    first, second = await bench.session("first", pid=None), await bench.session("second")
    await bench.supervisor.set_unasked("nothing", HUMAN, first)
    await bench.supervisor.set_unasked("workspace", HUMAN, second)
    await bench.supervisor.set_unasked("workspace", HUMAN, until=time.time() + 3600)

    def levels() -> list[str | None]:
        board = bench.supervisor.board
        said = (board.sessions[first].unasked, board.sessions[second].unasked, board.unasked)
        return [each.level if each is not None else None for each in said]

    await bench.restart()
    assert levels() == ["nothing", "workspace", "workspace"]
    await bench.kill()
    assert levels() == ["nothing", None, None]
    await bench.supervisor.close()


async def test_another_process_that_names_a_session_gets_no_more_than_the_rules_let_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.open()
    session = await bench.session()
    await bench.supervisor.set_unasked("workspace", HUMAN, session)
    await bench.supervisor.open_session(SessionHello(name="agent", root=str(bench.workspace), resume=session, pid=1))
    assert bench.supervisor.board.sessions[session].unasked is None
    await bench.supervisor.close()


async def test_a_level_is_set_in_an_open_session_only(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.open()
    session = await bench.session()
    await bench.supervisor.close_session(session, "it left")
    for name in (session, "s99"):
        with pytest.raises(Refused):
            await bench.supervisor.set_unasked("reading", HUMAN, name)
    await bench.supervisor.close()
