"""The stage answers the port as a supervisor does, from memory."""

import asyncio
from contextlib import aclosing

import pytest

from tests.tui.scenes import ME, Play
from whisper_tui.model.api import HistoryQuery, Supervision
from whisper_tui.model.board import Board
from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.ending import Denied, Exited, Signalled, Withdrawn
from whisper_tui.model.errors import AlreadyDecided, ChangedSinceSeen, NotRunning, Unavailable, UnknownCall
from whisper_tui.model.state import Ended, Running


async def decided(play: Play, call_id: str, decision: Approve | Deny) -> None:
    record = await play.stage.record(call_id)
    await play.stage.decide(call_id, decision, ME, record.seen_digest())


async def test_every_watcher_has_the_same_board() -> None:
    play = Play.begin()
    first = play.ask("build")
    board = Board()
    async with aclosing(play.stage.watch(None)) as batches:
        board.apply_all(await anext(batches))
        assert board.calls == play.stage.board.calls
        await decided(play, first, Approve())
        while board.seq < play.stage.board.seq:
            board.apply_all(await asyncio.wait_for(anext(batches), 10))
    assert board.calls == play.stage.board.calls
    assert isinstance(board.calls[first].state, Running)


async def test_an_approved_call_runs_until_it_is_finished() -> None:
    play = Play.begin()
    call = play.ask("build")
    outcome = asyncio.create_task(play.stage.outcome(call))
    started = asyncio.create_task(play.stage.started(call))
    await decided(play, call, Approve(remember="exact_for_session"))
    assert isinstance((await asyncio.wait_for(started, 10)).state, Running)
    play.print(call, "build")
    play.end(call, 3)
    state = (await asyncio.wait_for(outcome, 10)).state
    assert isinstance(state, Ended) and state.ending == Exited(code=3)
    (grant,) = await play.stage.grants("s1")
    await play.stage.revoke(grant.id, ME)
    assert await play.stage.grants() == ()


async def test_output_is_read_by_offset_from_both_ends() -> None:
    play = Play.begin()
    call = play.ask("build")
    await decided(play, call, Approve())
    play.stage.write(call, b"0123456789")
    chunk = await play.stage.read_output(call, "out", 2, 3)
    assert (chunk.data, chunk.start, chunk.size, chunk.ended) == (b"234", 2, 10, False)
    assert (await play.stage.read_output(call, "out", -3, 100)).data == b"789"
    assert (await play.stage.read_output(call, "out", 99, 100)).data == b""
    assert (await play.stage.read_output(call, "err", 0, 100)).size == 0


async def test_the_first_decision_wins_and_only_about_what_was_seen() -> None:
    play = Play.begin()
    call = play.ask("build")
    with pytest.raises(ChangedSinceSeen):
        await play.stage.decide(call, Approve(), ME, "something else")
    await decided(play, call, Deny(reason="no"))
    with pytest.raises(AlreadyDecided):
        await decided(play, call, Approve())
    state = play.stage.board.calls[call].state
    assert isinstance(state, Ended) and state.ending == Denied(by=ME, reason="no")


async def test_denying_a_session_denies_what_else_it_waits_for() -> None:
    play = Play.begin()
    one, two, other = play.ask("build"), play.ask("fix"), play.ask("release")
    await decided(play, one, Deny(reason="stop", stop_session=True))
    assert set(play.stage.board.waiting) == {other}
    assert isinstance(play.stage.board.calls[two].state, Ended)


async def test_signals_end_a_run_and_what_it_left_behind() -> None:
    play = Play.begin()
    call = play.ask("preview")
    await decided(play, call, Approve())
    play.stage.leave_behind(call, "server")
    await play.stage.signal(call, 10, "leader", ME)
    assert isinstance(play.stage.board.calls[call].state, Running)
    await play.stage.signal(call, 15, "leader", ME)
    record = play.stage.board.calls[call]
    assert isinstance(record.state, Ended) and record.state.ending == Signalled(number=15, by_us=True)
    assert record.living_background
    await play.stage.signal(call, 9, "tree", ME)
    assert not play.stage.board.calls[call].is_open
    with pytest.raises(NotRunning):
        await play.stage.signal(call, 9, "tree", ME)


async def test_a_withdrawn_call_ends_and_history_finds_it() -> None:
    play = Play.begin()
    call = play.ask("build")
    await play.stage.withdraw(call, "cancelled")
    state = play.stage.board.calls[call].state
    assert isinstance(state, Ended) and state.ending == Withdrawn(why="cancelled")
    play.ask("release")
    found = await play.stage.history(HistoryQuery(text="BUILD.sh"))
    assert [record.id for record in found] == [call]
    assert [record.id for record in await play.stage.history(HistoryQuery(open_only=True))] == ["2"]


async def test_a_broken_stage_tells_everybody() -> None:
    play = Play.begin()
    stage: Supervision = play.stage
    batches = stage.watch(None)
    await anext(batches)
    play.stage.break_down(Unavailable("gone"))
    with pytest.raises(Unavailable):
        await asyncio.wait_for(anext(batches), 10)
    with pytest.raises(Unavailable):
        await stage.status()


async def test_an_unknown_call_is_reported_as_unknown() -> None:
    with pytest.raises(UnknownCall):
        await Play.begin().stage.record("99")
