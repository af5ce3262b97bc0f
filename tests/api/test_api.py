"""What everybody may rely on, wherever the supervisor runs."""

import asyncio
import signal
from contextlib import aclosing

import pytest

from tests.api.conftest import HUMAN
from tests.outside import outside_only
from whisper_tui.model.api import HistoryQuery
from whisper_tui.model.board import Board
from whisper_tui.model.call import ClientInfo, SessionHello
from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.ending import Denied, Exited, Signalled, Withdrawn
from whisper_tui.model.errors import AlreadyDecided, ChangedSinceSeen, NotRunning, Refused, UnknownCall
from whisper_tui.model.packed_calls import PackedCalls, own_packing
from whisper_tui.model.run import TerminalSize
from whisper_tui.model.state import Ended, Waiting

pytestmark = outside_only


async def test_an_approved_command_runs_and_its_exit_code_comes_back(harness):
    record = await harness.run("sh", "-c", "echo out; echo err >&2; exit 3")
    assert record.state.ending == Exited(code=3)
    assert await harness.output(record.id) == b"out\n"
    assert await harness.output(record.id, "err") == b"err\n"


async def test_a_call_waits_until_somebody_decides(harness):
    call_id = await harness.submit("true")
    assert isinstance((await harness.api.record(call_id)).state, Waiting)
    outcome = asyncio.create_task(harness.api.outcome(call_id))
    await harness.decide(call_id, Deny(reason="not   today, “please”\n"))
    record = await asyncio.wait_for(outcome, 60)
    assert record.state.ending == Denied(by=HUMAN, reason="not   today, “please”\n")


async def test_the_edited_command_runs_and_the_record_keeps_both(harness):
    call_id = await harness.submit(text="echo asked")
    record = await harness.api.record(call_id)
    edited = record.spec.model_copy(update={"command": record.spec.command.model_copy(update={"text": "echo ran"})})
    await harness.decide(call_id, Approve(edited=edited))
    record = await harness.api.outcome(call_id)
    assert record.edited and record.call.spec.command.text == "echo asked"
    assert await harness.output(call_id) == b"ran\n"


async def test_the_first_decision_wins(harness):
    call_id = await harness.submit("true")
    seen = (await harness.api.record(call_id)).seen_digest()
    await harness.api.decide(call_id, Deny(reason="first"), HUMAN, seen)
    with pytest.raises(AlreadyDecided):
        await harness.api.decide(call_id, Approve(), HUMAN, seen)


async def test_a_decision_about_something_else_than_is_there_is_refused(harness):
    call_id = await harness.submit("true")
    with pytest.raises(ChangedSinceSeen) as refused:
        await harness.api.decide(call_id, Approve(), HUMAN, "0" * 32)
    assert refused.value.hint


async def test_an_unknown_call_is_named(harness):
    with pytest.raises(UnknownCall, match="4711"):
        await harness.api.record("4711")
    with pytest.raises(UnknownCall, match="4711"):
        await harness.api.outcome("4711")


async def test_the_same_key_is_the_same_call(harness):
    first = await harness.submit("true", key="k")
    assert await harness.submit("true", key="k") == first


async def test_a_call_is_withdrawn_before_it_runs(harness):
    call_id = await harness.submit("true")
    await harness.api.withdraw(call_id, "changed my mind")
    assert (await harness.api.outcome(call_id)).state.ending == Withdrawn(why="changed my mind")


async def test_a_signal_reaches_what_a_command_left_behind(harness):
    record = await harness.run("sh", "-c", "sleep 300 & echo hi")
    assert await _reads(harness, record.id, b"hi\n")
    async with asyncio.timeout(60):
        while not (record := await harness.api.record(record.id)).living_background:
            await asyncio.sleep(0.01)
    await harness.api.signal(record.id, signal.SIGKILL, "tree", HUMAN)
    async with asyncio.timeout(60):
        while (await harness.api.record(record.id)).is_open:
            await asyncio.sleep(0.01)
    with pytest.raises(NotRunning):
        await harness.api.signal(record.id, signal.SIGKILL, "tree", HUMAN)


async def test_a_running_command_is_ended_by_its_signal(harness):
    call_id = await harness.submit("sleep", "300")
    await harness.decide(call_id, Approve())
    await harness.until(call_id, "running")
    await harness.api.signal(call_id, signal.SIGTERM, "tree", HUMAN)
    assert (await harness.api.outcome(call_id)).state.ending == Signalled(number=15, by_us=True)


async def test_bytes_that_are_no_text_go_in_and_come_out_unchanged(harness):
    every_byte = bytes(range(256))
    call_id = await harness.submit("cat", accepts_input=True)
    await harness.decide(call_id, Approve())
    await harness.until(call_id, "running")
    await harness.api.write_stdin(call_id, every_byte)
    await harness.api.write_stdin(call_id, b"", eof=True)
    await harness.api.outcome(call_id)
    assert await harness.output(call_id) == every_byte


async def test_output_can_be_read_from_any_place_and_from_the_end(harness):
    record = await harness.run("printf", "0123456789")
    chunk = await harness.api.read_output(record.id, "out", 4, 3)
    assert (chunk.data, chunk.start, chunk.size) == (b"456", 4, 10)
    assert (await harness.api.read_output(record.id, "out", -2, 100)).data == b"89"


async def test_a_call_that_has_not_run_has_no_output_yet(harness):
    call_id = await harness.submit("true")
    chunk = await harness.api.read_output(call_id, "out", 0, 100)
    assert (chunk.data, chunk.ended) == (b"", False)
    assert await harness.api.read_timeline(call_id, 0, 10) == ()


async def test_the_time_index_tells_the_order_of_the_streams(harness):
    record = await harness.run("sh", "-c", "echo a; sleep 0.2; echo b >&2; sleep 0.2; echo c")
    await harness.output(record.id)
    spans = await harness.api.read_timeline(record.id, 0, 100)
    assert [span.stream for span in spans] == ["out", "err", "out"]


async def test_an_approval_for_the_session_is_remembered_listed_and_revoked(harness):
    call_id = await harness.submit("true")
    await harness.decide(call_id, Approve(remember="exact_for_session"))
    again = await harness.api.outcome(await harness.submit("true"))
    assert again.decided_by.surface == "memory"
    (grant,) = await harness.api.grants(harness.session.id)
    await harness.api.revoke(grant.id, HUMAN)
    assert await harness.api.grants() == ()
    with pytest.raises(Refused):
        await harness.api.revoke(grant.id, HUMAN)
    assert isinstance((await harness.api.record(await harness.submit("true"))).state, Waiting)


async def test_a_denial_for_the_session_answers_calls_until_it_is_lifted(harness):
    waiting = await harness.submit("touch", "a")
    denial = await harness.api.deny_for_session(harness.session.id, ("touch",), "write nothing", HUMAN)
    for call_id in (waiting, await harness.submit("touch", "b")):
        ending = (await harness.api.outcome(call_id)).state.ending
        assert (ending.kind, ending.reason, ending.for_session) == ("denied", "write nothing", ("touch",))
    assert [each.id for each in await harness.api.denials(harness.session.id)] == [denial]
    await harness.api.lift_denial(denial, HUMAN)
    assert await harness.api.denials() == ()
    assert isinstance((await harness.api.record(await harness.submit("touch", "c"))).state, Waiting)


async def test_a_watcher_sees_what_is_there_and_then_what_happens(harness):
    first = await harness.run("true")
    board = Board()
    async with asyncio.timeout(60), aclosing(harness.api.watch()) as batches:
        second = None
        async for batch in batches:
            board.apply_all(batch)
            if second is None and first.id in board.calls:
                second = await harness.submit("false")
                await harness.decide(second, Approve())
            if second in board.calls and not board.calls[second].is_open:
                break
    assert board.calls[second].state.ending == Exited(code=1)
    assert board.sessions[harness.session.id] == harness.session


async def test_a_board_is_sent_with_its_waiting_calls_packed_and_then_what_happens(harness):
    over, (first, second) = await harness.run("true"), [await harness.submit("echo", word) for word in "ab"]
    board, kinds = Board(), []
    async with asyncio.timeout(60), aclosing(harness.api.watch_board(own_packing())) as batches:
        async for batch in batches:
            if not batch:
                assert [*board.waiting] == [first, second] == [*board.open_in[harness.session.id]]
                assert dict(board.calls) == {id_: await harness.api.record(id_) for id_ in (over.id, first, second)}
                assert board.sessions == {harness.session.id: harness.session}
                await harness.decide(first, Deny())
            for item in batch:
                kinds.append(item.kind)
                board.add_packed(item) if isinstance(item, PackedCalls) else board.apply(item)
            if not board.calls or first not in board.calls:
                continue
            if not board.calls[first].is_open:
                break
    assert kinds.count("packed") == 1 and kinds.count("submitted") == 1
    assert board.calls[first] == await harness.api.record(first) and [*board.waiting] == [second]


async def test_a_watcher_resumes_where_it_stopped(harness):
    await harness.run("true")
    seqs = []
    async with asyncio.timeout(60), aclosing(harness.api.watch(after=3)) as batches:
        async for batch in batches:
            seqs += [event.seq for event in batch]
            if len(seqs) >= 3:
                break
    assert seqs[0] == 4 and seqs == sorted(seqs)


async def test_history_is_searched_newest_first(harness):
    ids = [(await harness.run("echo", word)).id for word in ("alpha", "beta", "alphabet")]
    found = await harness.api.history(HistoryQuery(text="alpha"))
    assert [record.id for record in found] == [ids[2], ids[0]]
    assert [record.id for record in await harness.api.history(HistoryQuery(limit=1, before=ids[2]))] == [ids[1]]


async def test_a_session_is_described_resumed_and_closed(harness):
    await harness.api.describe_session(harness.session.id, ClientInfo(name="an agent", version="1"))
    resumed = await harness.api.open_session(
        SessionHello(name="agent", root=harness.session.root, resume=harness.session.id, pid=77)
    )
    assert (resumed.id, resumed.client.name, resumed.pid) == (harness.session.id, "an agent", 77)
    await harness.api.close_session(harness.session.id, "done")
    with pytest.raises(Refused):
        await harness.submit("true")


async def test_the_size_of_a_terminal_is_reported(harness):
    call_id = await harness.submit("sh", "-c", "read go; stty size", tty=True)
    await harness.decide(call_id, Approve())
    await harness.until(call_id, "running")
    await harness.api.resize(call_id, 33, 77)
    await harness.api.write_stdin(call_id, b"\n")
    await harness.api.outcome(call_id)
    assert b"33 77" in await harness.output(call_id)
    assert [(size.start, size.rows, size.columns) for size in await harness.api.terminal_sizes(call_id)] == [
        (0, 33, 77)
    ]


async def test_a_call_without_another_size_has_the_usual_one(harness):
    call_id = await harness.submit("true")
    assert await harness.api.terminal_sizes(call_id) == (TerminalSize(),)
    await harness.decide(call_id, Approve())
    await harness.api.outcome(call_id)
    assert await harness.api.terminal_sizes(call_id) == (TerminalSize(),)


async def test_the_status_counts(harness):
    await harness.submit("true")
    status = await harness.api.status()
    assert (status.waiting, status.queued, status.running) == (1, 0, 0)
    assert status.workers >= 1


async def test_many_wait_at_the_same_time(harness):
    ids = [await harness.submit("sh", "-c", f"exit {number}") for number in range(20)]
    outcomes = [asyncio.create_task(harness.api.outcome(call_id)) for call_id in ids]
    for call_id in reversed(ids):
        await harness.decide(call_id, Approve())
    records = await asyncio.wait_for(asyncio.gather(*outcomes), 60)
    assert [record.state.ending.code for record in records] == list(range(20))


async def test_giving_up_a_wait_leaves_the_call_as_it_is(harness):
    call_id = await harness.submit("true")
    outcome = asyncio.create_task(harness.api.outcome(call_id))
    await asyncio.sleep(0.05)
    outcome.cancel()
    await asyncio.wait([outcome])
    assert isinstance((await harness.api.record(call_id)).state, Waiting)
    await harness.decide(call_id, Approve())
    assert isinstance((await harness.api.outcome(call_id)).state, Ended)


async def _reads(harness, call_id: str, expected: bytes) -> bool:
    async with asyncio.timeout(60):
        while (await harness.api.read_output(call_id, "out", 0, 100)).data != expected:
            await asyncio.sleep(0.01)
    return True
