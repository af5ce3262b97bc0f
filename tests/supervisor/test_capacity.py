"""One agent cannot fill the memory, nor the list, for all others."""

import random

import pytest

from tests.model.build import a_call, a_shell
from tests.supervisor.conftest import Bench
from whisper_tui.model import board as boards
from whisper_tui.model.call import memory_weight
from whisper_tui.model.errors import Refused
from whisper_tui.supervisor import sessions
from whisper_tui.supervisor.approvals import admission


async def test_a_session_has_a_limit_of_calls_and_the_others_continue(bench, monkeypatch):
    monkeypatch.setattr(admission, "MOST_OF_A_SESSION", 2)
    greedy, modest = await bench.session(), await bench.session()
    first = await bench.submit(greedy, "true")
    await bench.submit(greedy, "true")
    with pytest.raises(Refused, match=r"2 calls of session s1 wait or run.*"):
        await bench.submit(greedy, "true")
    assert await bench.submit(modest, "true") == "3"
    await bench.deny(first, "no")
    assert await bench.submit(greedy, "true") == "4"


async def test_all_together_have_so_many_calls_also_after_a_restart(bench, monkeypatch):
    monkeypatch.setattr(admission, "MOST_CALLS", 2)
    session = await bench.session()
    first = await bench.submit(session, "true")
    await bench.submit(await bench.session(), "true")
    await bench.restart()
    with pytest.raises(Refused, match="2 calls wait or run"):
        await bench.submit(session, "true")
    await bench.deny(first, "no")
    await bench.submit(session, "true")


@pytest.mark.parametrize(
    ("bound", "words"), [("LARGEST_OF_A_SESSION", "calls of session s1"), ("LARGEST", "the calls that wait or run")]
)
async def test_calls_that_wait_take_no_more_memory_than_there_is_for_them(bench, monkeypatch, bound, words):
    monkeypatch.setattr(admission, bound, 5000)
    session = await bench.session()
    first = await bench.submit(session, "echo", "x" * 3000)
    with pytest.raises(Refused, match=words):
        await bench.submit(session, "echo", "x" * 3000)
    await bench.submit(session, "echo")
    await bench.deny(first, "no")
    await bench.submit(session, "echo", "x" * 3000)


async def test_the_weight_of_calls_is_the_sum_of_their_weights(bench):
    chance = random.Random(7)
    held = admission.Capacity(bench.supervisor._store)
    sessions_ = [await bench.session() for _ in range(3)]
    waiting: list[str] = []
    for number in range(60):
        if waiting and chance.random() < 0.4:
            await bench.deny(waiting.pop(chance.randrange(len(waiting))), "no")
        else:
            call_id = await bench.submit(chance.choice(sessions_), "echo", "x" * chance.randrange(300), str(number))
            call = (await bench.supervisor.record(call_id)).call
            held.take(call, held.check(call))
            waiting.append(call_id)
        weights = [memory_weight((await bench.supervisor.record(call_id)).call) for call_id in waiting]
        assert held.taken == sum(weights)
    for call_id in waiting:
        await bench.deny(call_id, "no")
    assert held.taken == 0


async def test_no_more_sessions_are_opened_than_anybody_has_agents(bench, monkeypatch):
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 2)
    first = await bench.session()
    await bench.session()
    with pytest.raises(Refused, match="2 sessions are open"):
        await bench.session()
    await bench.supervisor.close_session(first, "done")
    await bench.session()


async def test_ended_calls_that_are_large_are_left_to_the_journal_sooner(bench: Bench, monkeypatch):
    monkeypatch.setattr(boards, "ENDED_LARGEST", 7000)
    session = await bench.session()
    ids = [await bench.submit(session, "echo", "x" * 2000) for _ in range(4)]
    for call_id in ids:
        await bench.deny(call_id, "no")
    kept = [call_id for call_id in ids if call_id in bench.supervisor._store.board.calls]
    assert kept == ids[-2:]
    assert (await bench.record(ids[0])).state.ending.reason == "no"


def test_structures_weigh_more_than_their_characters():
    plain, wide = (memory_weight(a_call(spec=a_shell(text * 10_000))) for text in ("x", "😀"))
    assert 10_000 < plain < 12_000 and wide > 40_000
    lists = a_call().model_copy(update={"arguments": {"all": [[] for _ in range(1000)]}})
    assert memory_weight(lists) > 64_000
    assert memory_weight(a_call().model_copy(update={"arguments": {"number": 10**4000}})) > 1600
