"""A waiting call that a human sets aside: out of the way, still to be decided, and its agent told so."""

import asyncio

import pytest

from tests.supervisor.conftest import HUMAN, Bench
from whisper_tui.model.board import Board
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.ending import Denied, Withdrawn
from whisper_tui.model.errors import AlreadyDecided
from whisper_tui.model.event import SetAside
from whisper_tui.model.packed_calls import own_packing
from whisper_tui.model.state import WENT_ON, CallRecord, Ended, Waiting
from whisper_tui.notify.notifier import NotifySettings, PendingNotifications
from whisper_tui.tools.agent_text import agent_note

TICKET = "0123456789abcdef"


async def aside(bench: Bench, call_id: str) -> CallRecord:
    await bench.supervisor.set_aside(call_id, HUMAN)
    return await bench.record(call_id)


def places(bench: Bench) -> tuple[list[str], list[str]]:
    """Ids of the waiting calls, and of those that are set aside."""
    return list(bench.supervisor.board.waiting), list(bench.supervisor.board.aside)


async def test_a_call_that_is_set_aside_still_waits_and_is_counted_apart(bench: Bench) -> None:
    session = await bench.session()
    first, second = await bench.submit(session, "make"), await bench.submit(session, "touch", "x")
    record = await aside(bench, first)
    assert isinstance(record.state, Waiting) and record.aside is not None and record.aside.by == HUMAN
    assert places(bench) == ([second], [first])
    status = await bench.supervisor.status()
    assert (status.waiting, status.aside) == (1, 1)


async def test_it_comes_back_as_the_last_that_waits_and_nothing_happens_twice(bench: Bench) -> None:
    session = await bench.session()
    first, second = await bench.submit(session, "make"), await bench.submit(session, "touch", "x")
    for back in (False, False, True, True):
        await bench.supervisor.set_aside(first, HUMAN, back=back)
    assert places(bench) == ([second, first], [])
    assert (await bench.record(first)).aside is None
    events = bench.supervisor._store.journal.events_of_call(first)
    assert [event.back for event in events if isinstance(event, SetAside)] == [False, True]


async def test_it_is_decided_as_any_other_with_what_was_seen_before(bench: Bench) -> None:
    session = await bench.session()
    first, second = await bench.submit(session, "make"), await bench.submit(session, "touch", "x")
    seen = (await bench.record(first)).seen_digest()
    assert (await aside(bench, first)).seen_digest() == seen
    await bench.approve(first)
    await bench.ordered(first)
    await aside(bench, second)
    await bench.deny(second, "no")
    assert places(bench) == ([], [])


async def test_only_a_call_that_waits_is_set_aside(bench: Bench) -> None:
    session = await bench.session()
    call_id = await bench.submit(session, "make")
    await bench.deny(call_id, "no")
    for back in (False, True):
        with pytest.raises(AlreadyDecided, match=f"call {call_id} does not wait for a decision"):
            await bench.supervisor.set_aside(call_id, HUMAN, back=back)


@pytest.mark.parametrize("how", ["restart", "kill"])
async def test_it_stays_aside_whatever_becomes_of_the_supervisor(bench: Bench, how: str) -> None:
    session = await bench.session(key="agent 1")
    first, second, third = [await bench.submit(session, "touch", name) for name in "abc"]
    await aside(bench, first)
    await aside(bench, second)
    await bench.supervisor.set_aside(second, HUMAN, back=True)
    await (bench.restart() if how == "restart" else bench.kill())
    assert [sorted(ids) for ids in places(bench)] == [[second, third], [first]]
    record = await bench.record(first)
    assert record.aside is not None and record.aside.by == HUMAN


async def test_a_cockpit_that_connects_later_finds_it_aside(bench: Bench) -> None:
    session = await bench.session()
    first, second = await bench.submit(session, "make"), await bench.submit(session, "touch", "x")
    await aside(bench, first)
    board = Board()
    async for items in bench.supervisor.watch_board(own_packing()):
        for item in items:
            if item.kind == "packed":
                board.add_packed(item)
            else:
                board.apply(item)
        if not items:
            break
    assert (list(board.waiting), list(board.aside)) == ([second], [first])


async def test_an_agent_withdraws_it_and_a_denial_of_its_session_reaches_it(bench: Bench) -> None:
    session = await bench.session()
    first, second, third = [await bench.submit(session, "touch", name) for name in "abc"]
    fourth = await bench.submit(session, "make")
    for call_id in (first, second, fourth):
        await aside(bench, call_id)
    await bench.supervisor.withdraw(first, "the agent gave up")
    await bench.deny(third, "stop", stop_session=True)
    ended = [(await bench.record(call_id)).state for call_id in (first, second, fourth)]
    assert [state.ending.__class__ for state in ended if isinstance(state, Ended)] == [Withdrawn, Denied, Denied]
    assert places(bench) == ([], [])


async def test_a_session_denial_and_a_new_approval_reach_it(bench: Bench) -> None:
    session = await bench.session()
    first, second, again = [await bench.submit(session, *words) for words in (("rm", "a"), ("make",), ("make",))]
    await aside(bench, first)
    await aside(bench, again)
    await bench.supervisor.deny_for_session(session, ("rm",), "no", HUMAN)
    assert (await bench.record(first)).state.kind == "ended"
    await bench.approve(second, remember="exact_for_session")
    await bench.ordered(again)


async def test_who_waits_until_it_is_set_aside_is_answered_then_and_not_at_once_the_next_time(bench: Bench) -> None:
    session = await bench.session()
    call_id = await bench.submit(session, "make")
    waits = [
        asyncio.create_task(ask(call_id, aside_after=0.0))
        for ask in (bench.supervisor.outcome, bench.supervisor.decided)
    ]
    patient = asyncio.create_task(bench.supervisor.outcome(call_id))
    await asyncio.sleep(0)
    known = (await aside(bench, call_id)).aside
    assert known is not None
    for wait in waits:
        assert (await asyncio.wait_for(wait, 60)).aside == known
    late = bench.supervisor.outcome(call_id, aside_after=known.since - 1)
    assert (await asyncio.wait_for(late, 60)).aside == known
    again = asyncio.create_task(bench.supervisor.outcome(call_id, aside_after=known.since))
    await asyncio.sleep(0.05)
    assert not again.done() and not patient.done()
    await bench.deny(call_id, "no")
    assert isinstance((await asyncio.wait_for(again, 60)).state, Ended)
    await asyncio.wait_for(patient, 60)


async def asked_by_hook(bench: Bench, session: str, text: str) -> str:
    spec = CommandSpec(command=Shell(text=text), cwd=str(bench.workspace))
    request = CallRequest(session_id=session, tool="Bash", arguments={}, spec=spec, ticket=TICKET, dedup_key=text)
    return await bench.supervisor.submit(request)


async def test_an_agent_that_went_on_is_told_what_was_decided_with_its_next_answer(bench: Bench) -> None:
    session = await bench.session()
    denied, approved = await asked_by_hook(bench, session, "make all"), await asked_by_hook(bench, session, "make x")
    for call_id in (denied, approved):
        await aside(bench, call_id)
        await bench.supervisor.leave(call_id, WENT_ON)
    await bench.deny(denied, "not today")
    await bench.approve(approved)
    after = await bench.submit(session, "touch", "a")
    await bench.approve(after)
    assert agent_note(await bench.record(after)) == (
        f"The human has denied call {denied} (`make all`), which was set aside. Reason: not today "
        f"The human has approved call {approved} (`make x`), which was set aside. "
        "Ask for the same again, and it is done."
    )


async def test_an_agent_that_listens_is_told_at_once_how_to_get_the_result(bench: Bench) -> None:
    session = await bench.session(hears=True)
    call_id = await bench.submit(session, "make")
    await aside(bench, call_id)
    await bench.supervisor.leave(call_id, WENT_ON)
    await bench.approve(call_id)
    (said,) = (said.text for said in bench.supervisor.board.said[session] if said.is_to_agent)
    assert said == (
        f'The human has approved call {call_id} (`make`), which was set aside. `wait` with ticket "{call_id}" '
        "returns its result."
    )


async def test_an_agent_that_waited_on_is_told_nothing_besides_its_answer(bench: Bench) -> None:
    session = await bench.session()
    call_id = await bench.submit(session, "make")
    await aside(bench, call_id)
    await bench.approve(call_id)
    assert session not in bench.supervisor.board.said


def test_nobody_is_notified_of_it_nor_when_it_comes_back() -> None:
    now = [100.0]
    pending = PendingNotifications(NotifySettings(when="always"), lambda: now[0])
    pending.note("1", 101.0)
    pending.note("1", 101.0, aside=True)
    assert pending.due(away=True) == () and pending.held == 0
    pending.note("1", 101.0)
    assert pending.due(away=True) == ()
    pending.note("1", 105.0)
    assert pending.due(away=True) == ("1",)
