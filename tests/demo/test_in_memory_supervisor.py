"""The supervisor in memory answers the API as the real one does."""

import asyncio
from contextlib import aclosing

import pytest

from tests.tui.scenes import ME, Scenario
from whisper_tui.model.api import HistoryQuery, Supervision
from whisper_tui.model.board import Board
from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.ending import Denied, Exited, Signalled, Withdrawn
from whisper_tui.model.errors import AlreadyDecided, ChangedSinceSeen, NotRunning, Unavailable, UnknownCall
from whisper_tui.model.state import Ended, Running


async def decided(scenario: Scenario, call_id: str, decision: Approve | Deny) -> None:
    record = await scenario.supervisor.record(call_id)
    await scenario.supervisor.decide(call_id, decision, ME, record.seen_digest())


async def test_every_watcher_has_the_same_board() -> None:
    scenario = Scenario.begin()
    first = scenario.ask("build")
    board = Board()
    async with aclosing(scenario.supervisor.watch(None)) as batches:
        board.apply_all(await anext(batches))
        assert board.calls == scenario.supervisor.board.calls
        await decided(scenario, first, Approve())
        while board.seq < scenario.supervisor.board.seq:
            board.apply_all(await asyncio.wait_for(anext(batches), 60))
    assert board.calls == scenario.supervisor.board.calls
    assert isinstance(board.calls[first].state, Running)


async def test_an_approved_call_runs_until_it_is_finished() -> None:
    scenario = Scenario.begin()
    call = scenario.ask("build")
    outcome = asyncio.create_task(scenario.supervisor.outcome(call))
    started = asyncio.create_task(scenario.supervisor.started(call))
    await decided(scenario, call, Approve(remember="exact_for_session"))
    assert isinstance((await asyncio.wait_for(started, 60)).state, Running)
    scenario.print(call, "build")
    scenario.end(call, 3)
    state = (await asyncio.wait_for(outcome, 60)).state
    assert isinstance(state, Ended) and state.ending == Exited(code=3)
    (grant,) = await scenario.supervisor.grants("s1")
    await scenario.supervisor.revoke(grant.id, ME)
    assert await scenario.supervisor.grants() == ()


async def test_output_is_read_by_offset_from_both_ends() -> None:
    scenario = Scenario.begin()
    call = scenario.ask("build")
    await decided(scenario, call, Approve())
    scenario.supervisor.write(call, b"0123456789")
    chunk = await scenario.supervisor.read_output(call, "out", 2, 3)
    assert (chunk.data, chunk.start, chunk.size, chunk.ended) == (b"234", 2, 10, False)
    assert (await scenario.supervisor.read_output(call, "out", -3, 100)).data == b"789"
    assert (await scenario.supervisor.read_output(call, "out", 99, 100)).data == b""
    assert (await scenario.supervisor.read_output(call, "err", 0, 100)).size == 0


async def test_the_first_decision_wins_and_only_about_what_was_seen() -> None:
    scenario = Scenario.begin()
    call = scenario.ask("build")
    with pytest.raises(ChangedSinceSeen):
        await scenario.supervisor.decide(call, Approve(), ME, "something else")
    await decided(scenario, call, Deny(reason="no"))
    with pytest.raises(AlreadyDecided):
        await decided(scenario, call, Approve())
    state = scenario.supervisor.board.calls[call].state
    assert isinstance(state, Ended) and state.ending == Denied(by=ME, reason="no")


async def test_denying_a_session_denies_what_else_it_waits_for() -> None:
    scenario = Scenario.begin()
    one, two, other = scenario.ask("build"), scenario.ask("fix"), scenario.ask("release")
    await decided(scenario, one, Deny(reason="stop", stop_session=True))
    assert set(scenario.supervisor.board.waiting) == {other}
    assert isinstance(scenario.supervisor.board.calls[two].state, Ended)


async def test_signals_end_a_run_and_what_it_left_behind() -> None:
    scenario = Scenario.begin()
    call = scenario.ask("preview")
    await decided(scenario, call, Approve())
    scenario.supervisor.leave_behind(call, "server")
    await scenario.supervisor.signal(call, 10, "leader", ME)
    assert isinstance(scenario.supervisor.board.calls[call].state, Running)
    await scenario.supervisor.signal(call, 15, "leader", ME)
    record = scenario.supervisor.board.calls[call]
    assert isinstance(record.state, Ended) and record.state.ending == Signalled(number=15, by_us=True)
    assert record.living_background
    await scenario.supervisor.signal(call, 9, "tree", ME)
    assert not scenario.supervisor.board.calls[call].is_open
    with pytest.raises(NotRunning):
        await scenario.supervisor.signal(call, 9, "tree", ME)


async def test_a_withdrawn_call_ends_and_history_finds_it() -> None:
    scenario = Scenario.begin()
    call = scenario.ask("build")
    await scenario.supervisor.withdraw(call, "cancelled")
    state = scenario.supervisor.board.calls[call].state
    assert isinstance(state, Ended) and state.ending == Withdrawn(why="cancelled")
    scenario.ask("release")
    found = await scenario.supervisor.history(HistoryQuery(text="BUILD.sh"))
    assert [record.id for record in found] == [call]
    assert [record.id for record in await scenario.supervisor.history(HistoryQuery(open_only=True))] == ["2"]


async def test_a_broken_stage_tells_everybody() -> None:
    scenario = Scenario.begin()
    supervisor: Supervision = scenario.supervisor
    batches = supervisor.watch(None)
    await anext(batches)
    assert await anext(batches) == ()
    scenario.supervisor.break_down(Unavailable("gone"))
    with pytest.raises(Unavailable):
        await asyncio.wait_for(anext(batches), 60)
    with pytest.raises(Unavailable):
        await supervisor.status()


async def test_an_unknown_call_is_reported_as_unknown() -> None:
    with pytest.raises(UnknownCall):
        await Scenario.begin().supervisor.record("99")
