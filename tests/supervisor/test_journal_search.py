"""Finding calls in the journal: what matches, the newest first, while everything else goes on."""

import asyncio
import threading

import pytest

from tests.supervisor.conftest import Bench
from whisper_tui.model.api import HistoryQuery
from whisper_tui.model.errors import Unavailable
from whisper_tui.supervisor.journal import journal_search


async def asked(bench: Bench, count: int) -> tuple[str, str]:
    """Two sessions ask in turn; the calls of the second are denied. Returns the sessions."""
    sessions = await bench.session("one"), await bench.session("two")
    for number in range(count):
        call = await bench.submit(sessions[number % 2], "echo", f"Word {number}")
        if number % 2:
            await bench.deny(call, "no")
    return sessions


async def test_every_way_to_narrow_a_search_narrows_it_beside_the_loop_too(bench: Bench) -> None:
    one, two = await asked(bench, 12)
    expected = {
        HistoryQuery(): range(12, 0, -1),
        HistoryQuery(limit=2): (12, 11),
        HistoryQuery(before="4"): (3, 2, 1),
        HistoryQuery(after="10"): (12, 11),
        HistoryQuery(before="8", after="5"): (7, 6),
        HistoryQuery(session_id=two, before="7"): (6, 4, 2),
        HistoryQuery(open_only=True, after="6"): (11, 9, 7),
        HistoryQuery(text="WORD 1"): (12, 11, 2),
        HistoryQuery(text="word 1", before="12", after="1", session_id=one): (11,),
        HistoryQuery(text="nowhere"): (),
    }
    journal = bench.supervisor._store.journal
    for query, ids in expected.items():
        assert journal.find(query) == [str(number) for number in ids]
        assert await journal.find_beside(query) == [str(number) for number in ids]
        assert [record.id for record in await bench.supervisor.history(query)] == [str(number) for number in ids]


async def test_a_search_for_words_never_runs_in_the_thread_of_the_loop(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asked(bench, 3)
    released, threads = threading.Event(), list[int]()
    original = journal_search._find

    def held(*arguments: object) -> list[str]:
        threads.append(threading.get_ident())
        assert released.wait(30)
        return original(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(journal_search, "_find", held)
    search = asyncio.create_task(bench.supervisor.history(HistoryQuery(text="echo word")))
    call = await bench.submit(await bench.session(), "true")
    assert (await bench.supervisor.record(call)).id == call
    released.set()
    assert [record.id for record in await search] == ["3", "2", "1"]
    assert threading.get_ident() not in threads


async def test_a_call_is_found_as_soon_as_it_is_journaled(bench: Bench) -> None:
    session = await bench.session()
    for number in range(5):
        call = await bench.submit(session, "echo", f"fresh{number}")
        found = await bench.supervisor.history(HistoryQuery(text=f"fresh{number}"))
        assert [record.id for record in found] == [call]


async def test_an_unreadable_journal_is_reported(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.supervisor._store.journal, "_path", bench.workspace / "gone.sqlite")
    with pytest.raises(Unavailable, match=r"gone\.sqlite cannot be read"):
        await bench.supervisor.history(HistoryQuery(text="word"))
