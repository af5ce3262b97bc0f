"""What the supervisor does with calls that may start, and after it was gone itself."""

import asyncio
import sqlite3

import pytest

from tests.supervisor.conftest import HUMAN, Bench
from whisper_tui.model.api import HistoryQuery
from whisper_tui.model.board import Board
from whisper_tui.model.ending import Exited, Lost
from whisper_tui.model.errors import BadStateDirectory, JournalFailed, NotRunning, Refused
from whisper_tui.model.state import Ended, Running, Waiting
from whisper_tui.policy.rules.rule import ExactRule, Rule, Rules
from whisper_tui.supervisor.runs.executor import RunKey
from whisper_tui.supervisor.runs.scheduling import FairQueue


async def approved(bench: Bench, *words: str) -> RunKey:
    call_id = await bench.submit(await bench.session(), *(words or ("true",)))
    await bench.approve(call_id)
    return await bench.ordered(call_id)


async def test_a_run_is_followed_from_its_process_to_its_last_child(bench: Bench) -> None:
    key = await approved(bench)
    bench.executor.spawn(key, pid=77)
    running = await bench.state(key.call_id, "running")
    assert isinstance(running.state, Running) and running.state.process.leader.pid == 77
    bench.executor.leave_behind(key, 78)
    bench.executor.finish(key, Exited(code=3), settle=False)
    ended = await bench.supervisor.outcome(key.call_id)
    assert isinstance(ended.state, Ended) and ended.state.ending == Exited(code=3)
    assert [process.identity.pid for process in ended.living_background] == [78]
    bench.executor.settle(key)
    over = await bench.eventually(key.call_id, lambda record: not record.is_open)
    assert over.living_background == ()


async def test_no_more_unasked_commands_run_at_once_than_there_are_workers(bench: Bench) -> None:
    await bench.restart(Rules(allow=(ExactRule(name="harmless", argv=("true",)),)))
    session = await bench.session()
    calls = [await bench.submit(session, "true") for _ in range(6)]
    await bench.ordered(calls[3])
    assert len(bench.executor.orders) == 4
    bench.executor.finish(RunKey(calls[0], 1))
    await bench.ordered(calls[4])
    assert len(bench.executor.orders) == 5


def taken(*calls: tuple[str, str, str]) -> list[str | None]:
    """The order in which a queue gives these calls, each behind its owner and its session."""
    queue = FairQueue()
    for owner, session, call in calls:
        queue.add(owner, session, call)
    found = [queue.take() for _ in range(len(queue))]
    assert queue.take() is None and not len(queue) and not list(queue.sessions())
    return found


def test_sessions_of_one_owner_take_turns_and_keep_their_order() -> None:
    calls = (("a", "1"), ("a", "2"), ("a", "3"), ("b", "4"), ("c", "5"), ("a", "2"))
    assert taken(*(("agent", *call) for call in calls)) == ["1", "4", "5", "2", "3"]


def test_an_owner_with_many_sessions_has_no_more_turns_than_one_with_a_single_session() -> None:
    many = [("many", f"m{number}", f"many {number}") for number in range(4)]
    assert taken(*many, ("one", "o", "one 1"), ("one", "o", "one 2")) == [
        "many 0",
        "one 1",
        "many 1",
        "one 2",
        "many 2",
        "many 3",
    ]


async def test_a_signal_is_journaled_before_it_is_sent(bench: Bench) -> None:
    key = await approved(bench)
    with pytest.raises(NotRunning):
        await bench.supervisor.signal(key.call_id, 15, "tree", HUMAN)
    bench.executor.spawn(key)
    await bench.state(key.call_id, "running")
    await bench.supervisor.signal(key.call_id, 15, "tree", HUMAN)
    assert bench.executor.signals == [(key, 15, "tree")]
    assert (await bench.record(key.call_id)).signals == (15,)


async def test_after_a_restart_waiting_queued_and_running_calls_are_recovered(
    bench: Bench,
) -> None:
    running = await approved(bench)
    bench.executor.spawn(running)
    await bench.state(running.call_id, "running")
    waiting = await bench.submit(await bench.session(), "true")
    before = await bench.record(waiting)
    await bench.restart()
    assert bench.executor.attached == [running]
    assert bench.executor.orders == {}
    assert await bench.record(waiting) == before
    bench.executor.spawn(running)
    bench.executor.finish(running, Exited(code=5))
    record = await bench.supervisor.outcome(running.call_id)
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=5)
    await bench.approve(waiting)
    await bench.ordered(waiting)


async def test_an_attempt_that_never_ran_is_started_again_as_the_next_one(bench: Bench) -> None:
    key = await approved(bench)
    await bench.restart()
    bench.executor.never_ran(key)
    again = await bench.ordered(key.call_id, attempt=2)
    bench.executor.spawn(key)
    bench.executor.spawn(again)
    assert (await bench.state(key.call_id, "running")).attempt == 2
    assert (await bench.record(key.call_id)).process is not None


async def test_after_a_kill_an_attempt_that_never_ran_is_asked_about_again_and_starts_as_the_next_one(
    bench: Bench,
) -> None:
    key = await approved(bench)
    await bench.kill()
    bench.executor.never_ran(key)
    record = await bench.state(key.call_id, "waiting")
    assert isinstance(record.state, Waiting) and "was killed" in (record.state.returned_because or "")
    assert bench.executor.orders == {}
    await bench.approve(key.call_id)
    await bench.ordered(key.call_id, attempt=2)


async def test_after_a_kill_a_rule_lets_start_what_it_had_let_start(bench: Bench) -> None:
    rules = Rules(allow=(Rule(name="true", prefix=("true",)),))
    await bench.kill(rules)
    call_id = await bench.submit(await bench.session(), "true")
    await bench.ordered(call_id)
    await bench.kill(rules)
    bench.executor.never_ran(RunKey(call_id, 1))
    await bench.ordered(call_id, attempt=2)


async def test_after_a_kill_nothing_is_remembered(bench: Bench) -> None:
    session = await bench.session()
    await bench.approve(await bench.submit(session, "true"), remember="exact_for_session")
    await bench.kill()
    assert await bench.session(resume=session) == session
    await bench.state(await bench.submit(session, "true"), "waiting")


async def test_after_a_kill_a_running_command_continues(bench: Bench) -> None:
    key = await approved(bench)
    bench.executor.spawn(key)
    await bench.state(key.call_id, "running")
    await bench.kill()
    assert (await bench.record(key.call_id)).state.kind == "running"
    assert bench.executor.attached == [key]


async def test_a_run_whose_end_cannot_be_known_is_lost_and_not_started_again(bench: Bench) -> None:
    key = await approved(bench)
    await bench.restart()
    bench.executor.finish(key, Lost(why="the machine was restarted"))
    record = await bench.supervisor.outcome(key.call_id)
    assert isinstance(record.state, Ended) and record.state.ending == Lost(why="the machine was restarted")
    assert bench.executor.orders == {}


async def test_sessions_and_their_memory_outlive_the_supervisor_when_the_agent_comes_back(bench: Bench) -> None:
    session = await bench.session(environment={"PATH": "/bin:/usr/bin", "SECRET": "s3cret"})
    await bench.approve(await bench.submit(session, "true"), remember="exact_for_session")
    await bench.restart()
    assert await bench.session(resume=session) == session
    call_id = await bench.submit(session, "true")
    key = await bench.ordered(call_id)
    assert (await bench.record(call_id)).decided_by.surface == "memory"  # type: ignore[union-attr]
    assert key.attempt == 1


async def test_an_environment_is_private_and_never_in_the_journal(bench: Bench) -> None:
    session = await bench.session(environment={"PATH": "/bin:/usr/bin", "SECRET": "s3cret-value"})
    await bench.submit(session, "true")
    kept = list((bench.home.state / "environments").iterdir())  # type: ignore[attr-defined]
    assert [file.stat().st_mode & 0o777 for file in kept] == [0o600]
    for file in bench.home.state.iterdir():  # type: ignore[attr-defined]
        if file.is_file():
            assert b"s3cret-value" not in file.read_bytes(), file.name
            assert file.stat().st_mode & 0o077 == 0, file.name


async def test_the_environment_of_a_session_is_let_go_when_nothing_can_need_it(bench: Bench) -> None:
    session = await bench.session(environment={"SECRET": "x"})
    call_id = await bench.submit(session, "true")
    kept = bench.home.state / "environments" / f"{session}.json"
    await bench.supervisor.close_session(session, "the agent left")
    assert kept.exists()  # type: ignore[attr-defined]
    await bench.deny(call_id, "too late")
    assert not kept.exists()  # type: ignore[attr-defined]


async def test_a_new_watcher_folds_the_same_board_as_the_supervisor(bench: Bench) -> None:
    session = await bench.session()
    calls = [await bench.submit(session, "true") for _ in range(5)]
    await bench.deny(calls[0], "no")
    await bench.approve(calls[1])
    board = Board()

    async def follow() -> None:
        async for batch in bench.supervisor.watch():
            board.apply_all(batch)
            if calls[2] in board.calls and board.calls[calls[2]].state.kind == "ended":
                return

    following = asyncio.create_task(follow())
    await asyncio.sleep(0)
    await bench.deny(calls[2], "neither")
    await asyncio.wait_for(following, 60)
    assert list(board.waiting) == [calls[3], calls[4]]
    assert board.calls == {call_id: await bench.record(call_id) for call_id in calls}


@pytest.mark.slow
async def test_a_watcher_far_behind_gets_every_event_once_and_in_order(bench: Bench) -> None:
    session = await bench.session()
    for _ in range(3000):
        await bench.submit(session, "true")
    numbers: list[int] = []
    async for batch in bench.supervisor.watch(after=0):
        numbers += [event.seq for event in batch]
        if numbers[-1] >= 6001:
            break
    assert numbers == list(range(1, 6002))


async def test_history_finds_calls_by_text_and_session_newest_first(bench: Bench) -> None:
    one, two = await bench.session("one"), await bench.session("two")
    first = await bench.submit(one, "printf", "Straße")
    second = await bench.submit(two, "printf", "other")
    third = await bench.submit(one, "printf", "STRASSE again")
    found = await bench.supervisor.history(HistoryQuery(text="strasse"))
    assert [record.id for record in found] == [third, first]
    assert [record.id for record in await bench.supervisor.history(HistoryQuery(session_id=two))] == [second]
    assert [record.id for record in await bench.supervisor.history(HistoryQuery(limit=1, before=third))] == [second]


async def test_actions_that_cannot_be_journaled_are_not_done(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    call_id = await bench.submit(await bench.session(), "true")
    blocker = sqlite3.connect(bench.home.state / "journal.sqlite")
    blocker.execute("BEGIN IMMEDIATE")
    bench.supervisor._store.journal._db.execute("PRAGMA busy_timeout = 1")
    with pytest.raises(JournalFailed, match="Nothing was done"):
        try:
            await bench.approve(call_id)
        except JournalFailed as error:
            raise JournalFailed(error.sentence()) from error
    assert (await bench.record(call_id)).state.kind == "waiting"
    assert bench.executor.orders == {}
    blocker.rollback()
    blocker.close()
    await bench.approve(call_id)
    await bench.ordered(call_id)


async def test_a_report_is_kept_until_the_journal_takes_it(bench: Bench) -> None:
    key = await approved(bench)
    blocker = sqlite3.connect(bench.home.state / "journal.sqlite")
    blocker.execute("BEGIN IMMEDIATE")
    bench.supervisor._store.journal._db.execute("PRAGMA busy_timeout = 1")
    bench.executor.spawn(key)
    bench.executor.finish(key, Exited(code=7))
    await asyncio.sleep(0.05)
    assert (await bench.record(key.call_id)).state.kind == "starting"
    blocker.rollback()
    blocker.close()
    record = await asyncio.wait_for(bench.supervisor.outcome(key.call_id), 60)
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=7)


async def test_a_journal_of_a_newer_version_is_left_alone(bench: Bench) -> None:
    await bench.supervisor.close()
    journal = sqlite3.connect(bench.home.state / "journal.sqlite")
    journal.execute("PRAGMA user_version = 999")
    journal.close()
    with pytest.raises(BadStateDirectory, match="newer whisper_tui"):
        await bench.open()
    journal = sqlite3.connect(bench.home.state / "journal.sqlite")
    journal.execute("PRAGMA user_version = 2")
    journal.close()
    await bench.open()


async def test_a_session_whose_agent_does_not_come_back_is_closed(bench: Bench) -> None:
    session = await bench.session()
    call_id = await bench.submit(session, "true")
    await bench.restart()
    bench.supervisor._parts.sessions.close_absent()
    with pytest.raises(Refused, match="did not come back"):
        await bench.submit(session, "true")
    assert (await bench.record(call_id)).state.kind == "waiting"


async def test_a_foreign_line_in_the_journal_is_reported_and_a_restart_succeeds(bench: Bench) -> None:
    session = await bench.session()
    waiting, approved = await bench.submit(session, "make"), await bench.submit(session, "true")
    await bench.supervisor.pause(HUMAN)
    await bench.approve(approved)
    with sqlite3.connect(bench.home.state / "journal.sqlite") as db:
        (last,) = db.execute("SELECT max(seq) FROM events").fetchone()
        body = db.execute("SELECT body FROM events WHERE seq = ?", (last,)).fetchone()[0]
        db.execute("INSERT INTO events (seq, body, link) VALUES (?, ?, ?)", (last + 1, body, bytes(32)))
    db.close()
    with pytest.raises(JournalFailed, match="was changed by another program") as told:
        await bench.deny(waiting, "no")
    assert "whisper-tui restart" in told.value.hint
    assert "changed by another program" in (await bench.supervisor.status()).problem
    await bench.restart()
    assert (await bench.supervisor.status()).problem is None
    assert isinstance((await bench.record(approved)).state, Waiting)
    await bench.deny(waiting, "no")
