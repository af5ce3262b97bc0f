"""Sessions that are older than what a board is made of."""

import asyncio
import sqlite3
from contextlib import aclosing

import pytest

from tests.supervisor.conftest import Bench
from whisper_tui.export.session_story import sessions_named
from whisper_tui.model.api import HistoryQuery
from whisper_tui.model.board import Board
from whisper_tui.model.errors import Refused
from whisper_tui.wire.server_state import Rows, ServerState


@pytest.fixture(autouse=True)
def _one_session_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whisper_tui.supervisor.journal.store.SESSIONS_SHOWN", 1)
    monkeypatch.setattr("whisper_tui.supervisor.journal.journal.ENDED_KEPT", 0)


async def test_a_watcher_meets_a_session_that_comes_back_from_long_ago(bench: Bench) -> None:
    old = await bench.session("long ago", pid=11)
    new = await bench.session("newer")
    await bench.restart()
    board = Board()
    async with asyncio.timeout(60), aclosing(bench.supervisor.watch()) as batches:
        board.apply_all(await anext(batches))
        assert list(board.sessions) == [new]
        assert await anext(batches) == ()
        await bench.session("long ago", resume=old, pid=12)
        board.apply_all(await anext(batches))
    assert board.sessions[old] == await bench.supervisor.session(old)
    assert (board.sessions[old].name, board.sessions[old].pid) == ("long ago", 12)


async def test_a_later_watcher_knows_every_open_session(bench: Bench) -> None:
    old, new = await bench.session("long open"), await bench.session("newer")
    board = Board()
    async with asyncio.timeout(60), aclosing(bench.supervisor.watch()) as batches:
        board.apply_all(await anext(batches))
        assert set(board.sessions) == {old, new}
        assert await anext(batches) == ()
        await bench.supervisor.close_session(old, "it ended")
        board.apply_all(await anext(batches))
    assert board.sessions[old].closed_because == "it ended"


async def test_rows_of_the_history_name_the_session_however_old_it_is(bench: Bench) -> None:
    old = await bench.session("long ago")
    await bench.deny(call := await bench.submit(old, "true"), "no")
    await bench.session("newer")
    await bench.restart()
    assert old not in bench.supervisor.board.sessions
    rows = Rows(bench.supervisor, ServerState(bench.supervisor))
    for found in (await rows.rows("history"), await rows.rows("show", call_id=call)):
        assert [(row["id"], row["session"]) for row in found] == [(call, "long ago")]


async def test_the_history_of_a_session_is_found_by_its_name_however_old_it_is(bench: Bench) -> None:
    first = await bench.session("long ago")
    await bench.supervisor.close_session(first, "it ended")
    again = await bench.session("long ago")
    assert await bench.session("long ago", resume=first) == first
    newer = await bench.session("newer")
    wanted = [await bench.submit(session_id, "echo", session_id) for session_id in (first, again, first)]
    for call in (*wanted, await bench.submit(newer, "true")):
        await bench.deny(call, "no")
    await bench.restart()
    assert {first, again}.isdisjoint(bench.supervisor.board.sessions)
    rows = Rows(bench.supervisor, ServerState(bench.supervisor))
    for asked, ids in (
        ({"session": "long ago"}, wanted[::-1]),
        ({"session": "long ago", "limit": 2}, wanted[:0:-1]),
        ({"session": "long ago", "text": first}, [wanted[2], wanted[0]]),
        ({"session": again}, [wanted[1]]),
        ({"session": "long"}, []),
        ({"session": ""}, []),
    ):
        assert [row["id"] for row in await rows.rows("history", **asked)] == ids, asked


async def test_names_that_an_older_program_did_not_keep_are_found_too(bench: Bench) -> None:
    for _ in range(3):
        session = await bench.session("long ago")
        await bench.deny(await bench.submit(session, "true"), "no")
        await bench.supervisor.close_session(session, "it ended")
    await bench.supervisor.close()
    with sqlite3.connect(bench.home.state / "journal.sqlite") as db:
        db.execute("DROP TABLE sessions")
        db.execute("PRAGMA user_version = 2")
    await bench.open()
    await bench.submit(await bench.session("new"), "true")
    query = HistoryQuery(session="long ago")
    assert [record.id for record in await bench.supervisor.history(query)] == ["3", "2", "1"]
    for name, ids in (("long ago", ["s1", "s2", "s3"]), ("s2", ["s2"]), ("new", ["s4"])):
        assert [session.id for session in await sessions_named(bench.supervisor, name)] == ids


async def test_a_session_that_the_board_has_forgotten_is_known_to_be_closed_and_can_come_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("whisper_tui.model.board.IDLE_KEPT", 1)
    board = Board()
    async with asyncio.timeout(60), aclosing(bench.supervisor.watch()) as batches:
        old, other = await bench.session("long ago", pid=11), await bench.session("other")
        for session_id in (old, other):
            await bench.supervisor.close_session(session_id, "done")
        while other not in board.sessions or old in board.sessions:
            board.apply_all(await anext(batches))
        assert set(bench.supervisor.board.sessions) == {other}
        with pytest.raises(Refused, match="session s1 is closed: done"):
            await bench.submit(old, "true")
        await bench.session("long ago", resume=old, pid=12)
        board.apply_all(await anext(batches))
        call = await bench.submit(old, "true")
        board.apply_all(await anext(batches))
    assert (board.sessions[old].pid, board.sessions[old].closed_at) == (12, None)
    assert board.calls[call].call.session_id == old
