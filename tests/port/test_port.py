"""What everybody may rely on, wherever the supervisor runs."""

import asyncio
import signal
from contextlib import aclosing

import pytest

from tests.outside import outside_only
from tests.port.conftest import HUMAN
from whisper_tui.model.api import HistoryQuery
from whisper_tui.model.board import Board
from whisper_tui.model.call import ClientInfo, SessionHello
from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.ending import Denied, Exited, Signalled, Withdrawn
from whisper_tui.model.errors import AlreadyDecided, ChangedSinceSeen, NotRunning, Refused, UnknownCall
from whisper_tui.model.run import TerminalSize
from whisper_tui.model.state import Ended, Waiting

pytestmark = outside_only


async def test_an_approved_command_runs_and_its_exit_code_comes_back(desk):
    record = await desk.run("sh", "-c", "echo out; echo err >&2; exit 3")
    assert record.state.ending == Exited(code=3)
    assert await desk.output(record.id) == b"out\n"
    assert await desk.output(record.id, "err") == b"err\n"


async def test_a_call_waits_until_somebody_decides(desk):
    call_id = await desk.submit("true")
    assert isinstance((await desk.port.record(call_id)).state, Waiting)
    outcome = asyncio.create_task(desk.port.outcome(call_id))
    await desk.decide(call_id, Deny(reason="not   today, “please”\n"))
    record = await asyncio.wait_for(outcome, 30)
    assert record.state.ending == Denied(by=HUMAN, reason="not   today, “please”\n")


async def test_the_edited_command_runs_and_the_record_keeps_both(desk):
    call_id = await desk.submit(text="echo asked")
    record = await desk.port.record(call_id)
    edited = record.spec.model_copy(update={"command": record.spec.command.model_copy(update={"text": "echo ran"})})
    await desk.decide(call_id, Approve(edited=edited))
    record = await desk.port.outcome(call_id)
    assert record.edited and record.call.spec.command.text == "echo asked"
    assert await desk.output(call_id) == b"ran\n"


async def test_the_first_decision_wins(desk):
    call_id = await desk.submit("true")
    seen = (await desk.port.record(call_id)).seen_digest()
    await desk.port.decide(call_id, Deny(reason="first"), HUMAN, seen)
    with pytest.raises(AlreadyDecided):
        await desk.port.decide(call_id, Approve(), HUMAN, seen)


async def test_a_decision_about_something_else_than_is_there_is_refused(desk):
    call_id = await desk.submit("true")
    with pytest.raises(ChangedSinceSeen) as refused:
        await desk.port.decide(call_id, Approve(), HUMAN, "0" * 32)
    assert refused.value.hint


async def test_an_unknown_call_is_named(desk):
    with pytest.raises(UnknownCall, match="4711"):
        await desk.port.record("4711")
    with pytest.raises(UnknownCall, match="4711"):
        await desk.port.outcome("4711")


async def test_the_same_key_is_the_same_call(desk):
    first = await desk.submit("true", key="k")
    assert await desk.submit("true", key="k") == first


async def test_a_call_is_withdrawn_before_it_runs(desk):
    call_id = await desk.submit("true")
    await desk.port.withdraw(call_id, "changed my mind")
    assert (await desk.port.outcome(call_id)).state.ending == Withdrawn(why="changed my mind")


async def test_a_signal_reaches_what_a_command_left_behind(desk):
    record = await desk.run("sh", "-c", "sleep 300 & echo hi")
    assert await _reads(desk, record.id, b"hi\n")
    async with asyncio.timeout(30):
        while not (record := await desk.port.record(record.id)).living_background:
            await asyncio.sleep(0.01)
    await desk.port.signal(record.id, signal.SIGKILL, "tree", HUMAN)
    async with asyncio.timeout(30):
        while (await desk.port.record(record.id)).is_open:
            await asyncio.sleep(0.01)
    with pytest.raises(NotRunning):
        await desk.port.signal(record.id, signal.SIGKILL, "tree", HUMAN)


async def test_a_running_command_is_ended_by_its_signal(desk):
    call_id = await desk.submit("sleep", "300")
    await desk.decide(call_id, Approve())
    await desk.until(call_id, "running")
    await desk.port.signal(call_id, signal.SIGTERM, "tree", HUMAN)
    assert (await desk.port.outcome(call_id)).state.ending == Signalled(number=15, by_us=True)


async def test_bytes_that_are_no_text_go_in_and_come_out_unchanged(desk):
    every_byte = bytes(range(256))
    call_id = await desk.submit("cat", accepts_input=True)
    await desk.decide(call_id, Approve())
    await desk.until(call_id, "running")
    await desk.port.write_stdin(call_id, every_byte)
    await desk.port.write_stdin(call_id, b"", eof=True)
    await desk.port.outcome(call_id)
    assert await desk.output(call_id) == every_byte


async def test_output_can_be_read_from_any_place_and_from_the_end(desk):
    record = await desk.run("printf", "0123456789")
    chunk = await desk.port.read_output(record.id, "out", 4, 3)
    assert (chunk.data, chunk.start, chunk.size) == (b"456", 4, 10)
    assert (await desk.port.read_output(record.id, "out", -2, 100)).data == b"89"


async def test_a_call_that_has_not_run_has_no_output_yet(desk):
    call_id = await desk.submit("true")
    chunk = await desk.port.read_output(call_id, "out", 0, 100)
    assert (chunk.data, chunk.ended) == (b"", False)
    assert await desk.port.read_timeline(call_id, 0, 10) == ()


async def test_the_time_index_tells_the_order_of_the_streams(desk):
    record = await desk.run("sh", "-c", "echo a; sleep 0.2; echo b >&2; sleep 0.2; echo c")
    await desk.output(record.id)
    spans = await desk.port.read_timeline(record.id, 0, 100)
    assert [span.stream for span in spans] == ["out", "err", "out"]


async def test_an_approval_for_the_session_is_remembered_listed_and_revoked(desk):
    call_id = await desk.submit("true")
    await desk.decide(call_id, Approve(remember="exact_for_session"))
    again = await desk.port.outcome(await desk.submit("true"))
    assert again.decided_by.surface == "memory"
    (grant,) = await desk.port.grants(desk.session.id)
    await desk.port.revoke(grant.id, HUMAN)
    assert await desk.port.grants() == ()
    with pytest.raises(Refused):
        await desk.port.revoke(grant.id, HUMAN)
    assert isinstance((await desk.port.record(await desk.submit("true"))).state, Waiting)


async def test_a_denial_for_the_session_answers_calls_until_it_is_lifted(desk):
    waiting = await desk.submit("touch", "a")
    denial = await desk.port.deny_for_session(desk.session.id, ("touch",), "write nothing", HUMAN)
    for call_id in (waiting, await desk.submit("touch", "b")):
        ending = (await desk.port.outcome(call_id)).state.ending
        assert (ending.kind, ending.reason, ending.for_session) == ("denied", "write nothing", ("touch",))
    assert [each.id for each in await desk.port.denials(desk.session.id)] == [denial]
    await desk.port.lift_denial(denial, HUMAN)
    assert await desk.port.denials() == ()
    assert isinstance((await desk.port.record(await desk.submit("touch", "c"))).state, Waiting)


async def test_a_watcher_sees_what_is_there_and_then_what_happens(desk):
    first = await desk.run("true")
    board = Board()
    async with asyncio.timeout(30), aclosing(desk.port.watch()) as batches:
        second = None
        async for batch in batches:
            board.apply_all(batch)
            if second is None and first.id in board.calls:
                second = await desk.submit("false")
                await desk.decide(second, Approve())
            if second in board.calls and not board.calls[second].is_open:
                break
    assert board.calls[second].state.ending == Exited(code=1)
    assert board.sessions[desk.session.id] == desk.session


async def test_a_watcher_goes_on_where_it_stopped(desk):
    await desk.run("true")
    seqs = []
    async with asyncio.timeout(30), aclosing(desk.port.watch(after=3)) as batches:
        async for batch in batches:
            seqs += [event.seq for event in batch]
            if len(seqs) >= 3:
                break
    assert seqs[0] == 4 and seqs == sorted(seqs)


async def test_history_is_searched_newest_first(desk):
    ids = [(await desk.run("echo", word)).id for word in ("alpha", "beta", "alphabet")]
    found = await desk.port.history(HistoryQuery(text="alpha"))
    assert [record.id for record in found] == [ids[2], ids[0]]
    assert [record.id for record in await desk.port.history(HistoryQuery(limit=1, before=ids[2]))] == [ids[1]]


async def test_a_session_is_described_resumed_and_closed(desk):
    await desk.port.describe_session(desk.session.id, ClientInfo(name="an agent", version="1"))
    resumed = await desk.port.open_session(
        SessionHello(name="agent", root=desk.session.root, resume=desk.session.id, pid=77)
    )
    assert (resumed.id, resumed.client.name, resumed.pid) == (desk.session.id, "an agent", 77)
    await desk.port.close_session(desk.session.id, "done")
    with pytest.raises(Refused):
        await desk.submit("true")


async def test_the_size_of_a_terminal_is_told(desk):
    call_id = await desk.submit("sh", "-c", "read go; stty size", tty=True)
    await desk.decide(call_id, Approve())
    await desk.until(call_id, "running")
    await desk.port.resize(call_id, 33, 77)
    await desk.port.write_stdin(call_id, b"\n")
    await desk.port.outcome(call_id)
    assert b"33 77" in await desk.output(call_id)
    assert [(size.start, size.rows, size.columns) for size in await desk.port.terminal_sizes(call_id)] == [(0, 33, 77)]


async def test_a_call_without_another_size_has_the_usual_one(desk):
    call_id = await desk.submit("true")
    assert await desk.port.terminal_sizes(call_id) == (TerminalSize(),)
    await desk.decide(call_id, Approve())
    await desk.port.outcome(call_id)
    assert await desk.port.terminal_sizes(call_id) == (TerminalSize(),)


async def test_the_status_counts(desk):
    await desk.submit("true")
    status = await desk.port.status()
    assert (status.waiting, status.queued, status.running) == (1, 0, 0)
    assert status.workers >= 1


async def test_many_wait_at_the_same_time(desk):
    ids = [await desk.submit("sh", "-c", f"exit {number}") for number in range(20)]
    outcomes = [asyncio.create_task(desk.port.outcome(call_id)) for call_id in ids]
    for call_id in reversed(ids):
        await desk.decide(call_id, Approve())
    records = await asyncio.wait_for(asyncio.gather(*outcomes), 60)
    assert [record.state.ending.code for record in records] == list(range(20))


async def test_giving_up_a_wait_leaves_the_call_as_it_is(desk):
    call_id = await desk.submit("true")
    outcome = asyncio.create_task(desk.port.outcome(call_id))
    await asyncio.sleep(0.05)
    outcome.cancel()
    await asyncio.wait([outcome])
    assert isinstance((await desk.port.record(call_id)).state, Waiting)
    await desk.decide(call_id, Approve())
    assert isinstance((await desk.port.outcome(call_id)).state, Ended)


async def _reads(desk, call_id: str, expected: bytes) -> bool:
    async with asyncio.timeout(30):
        while (await desk.port.read_output(call_id, "out", 0, 100)).data != expected:
            await asyncio.sleep(0.01)
    return True
