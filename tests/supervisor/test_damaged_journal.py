"""A damaged journal: one event that cannot be read costs that event, and nothing is allowed by its loss."""

import random
import re
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.supervisor.conftest import HUMAN, Bench
from whisper_tui.model.api import HistoryQuery
from whisper_tui.model.board import Board
from whisper_tui.model.errors import BadStateDirectory, Refused, UnknownCall
from whisper_tui.model.event import entries_digest
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.supervisor.journal.counters import check_journal
from whisper_tui.supervisor.journal.sqlite_file import check_file

DENIED, RAN, RUNNING, QUEUED, WAITING, OF_A_RULE = "1", "2", "3", "4", "5", "6"
RULES = Rules(allow=(Rule(name="ruled", prefix=("mkdir",)),))
SEED = 4711
FLIPS = 48
NOT_FOR_PEOPLE = re.compile(r"pydantic|Traceback|[a-z]Error\b|type=|\bNone\b|b'|Extra inputs|\.py\b")


async def lived(bench: Bench) -> None:
    """Let a bit of everything happen, and stop."""
    await bench.supervisor.close()
    await bench.open(RULES)
    first, second = await bench.session("first"), await bench.session("second", pid=1)
    for words in ("denied", "ran", "running", "queued", "waiting"):
        await bench.submit(second if words == "waiting" else first, words, "now", text=None)
    await bench.deny(DENIED, "no")
    await bench.approve(RAN, remember="exact_for_session")
    key = await bench.ordered(RAN)
    bench.executor.spawn(key)
    bench.executor.finish(key)
    await bench.eventually(RAN, lambda record: not record.is_open)
    await bench.approve(RUNNING)
    bench.executor.spawn(await bench.ordered(RUNNING))
    await bench.state(RUNNING, "running")
    await bench.submit(first, "mkdir", "ruled")
    key = await bench.ordered(OF_A_RULE)
    bench.executor.spawn(key)
    bench.executor.finish(key)
    await bench.eventually(OF_A_RULE, lambda record: not record.is_open)
    await bench.supervisor.set_unasked("workspace", HUMAN, first)
    await bench.supervisor.set_unasked("reading", HUMAN, first)
    await bench.supervisor.set_unasked("reading", HUMAN, until=time.time() + 3600)
    await bench.supervisor.pause(HUMAN)
    await bench.approve(QUEUED)
    (grant,) = await bench.supervisor.grants()
    await bench.supervisor.revoke(grant.id, HUMAN)
    await bench.supervisor.close_session(first, "it left")
    await bench.supervisor.close()


@pytest.fixture
async def stopped(tmp_path: Path) -> AsyncIterator[Bench]:
    """A bench whose supervisor has stopped with a history."""
    bench = Bench(tmp_path)
    await bench.open()
    await lived(bench)
    yield bench
    with suppress(sqlite3.Error):
        await bench.supervisor.close()


def journal_of(bench: Bench) -> Path:
    return Path(bench.home.state) / "journal.sqlite"


def flip_in_text(path: Path, seq: int) -> None:
    """Flip a bit in the middle of the text of an event."""
    with closing(sqlite3.connect(path)) as db, db:
        (body,) = db.execute("SELECT CAST(body AS BLOB) FROM events WHERE seq = ?", (seq,)).fetchone()
        damaged = bytearray(body)
        damaged[len(body) // 2] ^= 1 << (seq % 8)
        db.execute("UPDATE events SET body = CAST(? AS TEXT) WHERE seq = ?", (bytes(damaged), seq))


def events_in(path: Path) -> list[tuple[int, str, str]]:
    """Number, call and text of all events."""
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT seq, call_id, body FROM events ORDER BY seq").fetchall()
    return [(seq, str(call or ""), body) for seq, call, body in rows]


async def told(bench: Bench, after: int | None) -> Board:
    """The board of a watcher."""
    board = Board()
    async for batch in bench.supervisor.watch(after):
        board.apply_all(batch)
        if board.seq >= bench.supervisor.board.seq and (after is not None or not batch):
            return board
    raise AssertionError("the watch ended")


def records(bench: Bench) -> dict[str, CallRecord]:
    return {call_id: bench.supervisor.board.calls[call_id] for call_id in bench.supervisor.board.calls}


def check_harmless(bench: Bench) -> None:
    """Nothing has started, and nothing that was refused or is over can start."""
    assert not bench.executor.orders
    found = records(bench)
    for call_id in (DENIED, RAN, OF_A_RULE):
        assert call_id not in found or isinstance(found[call_id].state, Ended), found[call_id]
    assert not [grant for grant in bench.supervisor.board.grants.values() if grant.revoked_at is None]
    assert all(
        each.unasked is None or each.unasked.level != "workspace" for each in bench.supervisor.board.sessions.values()
    )


@pytest.mark.slow
async def test_one_damaged_event_costs_that_event_whatever_it_is(stopped: Bench, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(stopped.home.state, whole)
    facts = events_in(journal_of(stopped))
    assert {'"kind":"paused"', '"kind":"grant_revoked"'} <= {found for _, _, body in facts for found in kinds(body)}
    await stopped.open(RULES)
    before = records(stopped)
    await stopped.supervisor.close()
    for seq, call_id, body in facts:
        shutil.rmtree(stopped.home.state)
        shutil.copytree(whole, stopped.home.state)
        flip_in_text(journal_of(stopped), seq)
        await stopped.open(RULES)
        check_harmless(stopped)
        after = records(stopped)
        # After a loss no human's approval counts that has not been used, so the queued call waits again.
        others = [each for each in before if each not in {call_id, QUEUED}]
        assert {each: after[each].state for each in others} == {each: before[each].state for each in others}, body
        assert stopped.supervisor.board.paused is not None
        status = await stopped.supervisor.status()
        assert f"event {seq} of the journal" in (status.problem or ""), body
        history = {record.id for record in await stopped.supervisor.history(HistoryQuery(limit=50))}
        assert history == set(after) >= set(others)
        for look in (None, 0):
            assert (await told(stopped, look)).calls.keys() == after.keys(), (look, body)
        if call_id and call_id not in after:
            with pytest.raises(UnknownCall, match=f"call {call_id} cannot be read: event {seq} of the journal"):
                await stopped.record(call_id)
        if call_id != WAITING:
            await stopped.deny(WAITING, "no")
        assert f"event {seq} was changed" in (check_file(journal_of(stopped)).problem or "")
        await stopped.supervisor.close()


def kinds(body: str) -> list[str]:
    return re.findall(r'"kind":"\w+"', body)


async def test_a_call_whose_start_cannot_be_read_is_not_started_a_second_time(stopped: Bench) -> None:
    (seq,) = [seq for seq, call, body in events_in(journal_of(stopped)) if call == RUNNING and '"started"' in body]
    with closing(sqlite3.connect(journal_of(stopped))) as db, db:
        db.execute("UPDATE events SET body = substr(body, 2) WHERE call_id = ? AND seq >= ?", (RUNNING, seq))
    await stopped.open(RULES)
    await stopped.supervisor.resume(HUMAN)
    assert (await stopped.record(RUNNING)).state.kind == "starting"
    assert [key.call_id for key in stopped.executor.attached] == [RUNNING]
    assert RUNNING not in {key.call_id for key in stopped.executor.orders}


async def test_an_event_that_was_changed_to_another_one_is_not_believed(stopped: Bench) -> None:
    with closing(sqlite3.connect(journal_of(stopped))) as db, db:
        db.execute("""UPDATE events SET body = replace(body, '"waiting"', '"changed"') WHERE call_id = 5""")
    await stopped.open(RULES)
    assert WAITING not in records(stopped)
    with pytest.raises(UnknownCall, match="call 5 cannot be read"):
        await stopped.approve(WAITING)


def trusted(bench: Bench, *entries: str) -> None:
    """Let a human trust what a file of rules says."""
    assert bench.supervisor.rule_trust.look("/rules", entries).path == "/rules"
    bench.supervisor.rule_trust.trust("/rules", HUMAN, entries_digest(entries))
    assert bench.supervisor.rule_trust.look("/rules", entries).trusted == entries


async def test_a_file_of_rules_whose_trust_cannot_be_read_is_not_a_new_one(stopped: Bench) -> None:
    await stopped.open(RULES)
    trusted(stopped, "allow make")
    await stopped.supervisor.close()
    flip_in_text(journal_of(stopped), events_in(journal_of(stopped))[-1][0])
    for _ in range(2):
        await stopped.open(RULES)
        assert stopped.supervisor.rule_trust.look("/rules", ("allow make",)).trusted == ()
        await stopped.supervisor.close()


COUNTERS = {
    "flipped name": "UPDATE counters SET name = replace(name, '/rules', '/rulds') WHERE name LIKE 'rules %'",
    "lost row": "DELETE FROM counters WHERE name LIKE 'rules %'",
    "lost rows": "DELETE FROM counters",
    "flipped pause": "UPDATE counters SET name = 'pausee' WHERE name = 'paused'",
    "no pause": "UPDATE counters SET value = 0 WHERE name = 'paused'",
    "lower numbers": "UPDATE counters SET value = value - 1 WHERE name IN ('session', 'grant')",
    "another event": "UPDATE counters SET value = value - 1 WHERE name LIKE 'rules %'",
    "flipped kind": "UPDATE counters SET name = 'rumes /rules' WHERE name LIKE 'rules %'",
}
"""Damage of the notes beside the events."""


@pytest.mark.parametrize("damage", COUNTERS)
async def test_damaged_notes_beside_the_events_trust_nothing_and_lift_no_pause(stopped: Bench, damage: str) -> None:
    await stopped.open(RULES)
    trusted(stopped, "allow make", "deny rm")
    await stopped.supervisor.close()
    assert check_journal(journal_of(stopped)).problem is None
    with closing(sqlite3.connect(journal_of(stopped))) as db, db:
        assert db.execute(COUNTERS[damage]).rowcount
    assert "table counters" in (check_journal(journal_of(stopped)).problem or "")
    await stopped.open(RULES)
    assert "rules trust" in ((await stopped.supervisor.status()).problem or "")
    assert stopped.supervisor.rule_trust.look("/rules", ("allow make", "deny rm")).trusted == ("deny rm",)
    assert stopped.supervisor.board.paused is not None
    assert (await stopped.session("third")) == "s3"
    await stopped.approve(WAITING, remember="exact_for_session")
    assert {grant.id for grant in await stopped.supervisor.grants()} == {"g2"}
    await stopped.restart(RULES)
    assert (await stopped.supervisor.status()).problem is None
    assert stopped.supervisor.rule_trust.look("/rules", ("allow make", "deny rm")).trusted == ("deny rm",)
    assert check_journal(journal_of(stopped)).problem is None


async def test_a_file_without_a_record_is_trusted_in_the_first_journal_only(stopped: Bench, tmp_path: Path) -> None:
    entries = ("allow make", "looks", "deny rm")
    await stopped.open(RULES)
    assert stopped.supervisor.rule_trust.look("/rules", entries).trusted == ("deny rm",)
    await stopped.supervisor.close()
    # The journal was moved away, as its message advises when it is damaged.
    for file in Path(stopped.home.state).glob("journal.sqlite*"):
        file.unlink()
    await stopped.open(RULES)
    assert stopped.supervisor.rule_trust.look("/rules", entries).trusted == ("deny rm",)
    await stopped.supervisor.close()
    (tmp_path / "new").mkdir()
    new = Bench(tmp_path / "new")
    await new.open(RULES)
    assert new.supervisor.rule_trust.look("/rules", entries).trusted == entries
    await new.supervisor.close()


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        ("UPDATE events SET session_id = 'q1' WHERE body LIKE '%grant_revoked%'", "(grant_revoked)"),
        ("UPDATE events SET session_id = NULL WHERE body LIKE '%session_closed%'", "(session_closed)"),
        ("UPDATE events SET call_id = 4 WHERE call_id = 1 AND body LIKE '%finished%'", "(finished)"),
    ],
)
async def test_an_event_that_is_not_found_with_what_it_is_about_is_named(
    stopped: Bench, damage: str, named: str
) -> None:
    assert check_journal(journal_of(stopped)).problem is None
    with closing(sqlite3.connect(journal_of(stopped))) as db, db:
        assert db.execute(damage).rowcount == 1
    assert check_file(journal_of(stopped)).problem is None
    problem = check_journal(journal_of(stopped)).problem or ""
    assert named in problem and "another call or session" in problem


async def test_approvals_are_asked_about_once_after_a_damage_and_not_at_every_start(stopped: Bench) -> None:
    flip_in_text(journal_of(stopped), 1)
    await stopped.open(RULES)
    assert (await stopped.record(QUEUED)).state.kind == "waiting"
    await stopped.approve(QUEUED)
    await stopped.restart(RULES)
    assert (await stopped.record(QUEUED)).state.kind == "queued"
    assert (await stopped.supervisor.status()).problem is None


async def test_a_bit_in_a_link_costs_no_event(stopped: Bench) -> None:
    with closing(sqlite3.connect(journal_of(stopped))) as db, db:
        (link,) = db.execute("SELECT link FROM events WHERE seq = 5").fetchone()
        db.execute("UPDATE events SET link = ? WHERE seq = 5", (bytes([link[0] ^ 1]) + link[1:],))
    await stopped.open(RULES)
    assert (await stopped.supervisor.status()).problem is None
    assert (await stopped.record(QUEUED)).state.kind == "queued"
    assert "event 5 was changed" in (check_file(journal_of(stopped)).problem or "")


def flips(size: int) -> Iterator[tuple[int, int]]:
    """Places and bits, the same in each run."""
    chance = random.Random(SEED)
    for _ in range(FLIPS):
        yield chance.randrange(size), chance.randrange(8)


@pytest.mark.slow
async def test_with_any_flipped_bit_the_supervisor_starts_or_says_what_to_do(stopped: Bench, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(stopped.home.state, whole)
    started, size = 0, (whole / "journal.sqlite").stat().st_size
    header = [(place, bit) for place in (0, 16, 18, 19, 21, 40, 59, 60, 62, 63) for bit in (0, 5)]
    for place, bit in (*header, *flips(size)):
        shutil.rmtree(stopped.home.state)
        shutil.copytree(whole, stopped.home.state)
        with journal_of(stopped).open("r+b") as file:
            file.seek(place)
            (byte,) = file.read(1)
            file.seek(place)
            file.write(bytes([byte ^ 1 << bit]))
        try:
            await stopped.open(RULES)
        except BadStateDirectory as error:
            said = error.sentence()
            assert str(journal_of(stopped)) in said and ("damaged" in said or "newer" in said), (place, bit, said)
            assert not NOT_FOR_PEOPLE.search(said), said
            continue
        started += 1
        assert not stopped.executor.orders, (place, bit)
        for call_id in (DENIED, RAN, OF_A_RULE):
            record = records(stopped).get(call_id)
            assert record is None or isinstance(record.state, Ended), (place, bit, record)
        with suppress(Refused, BadStateDirectory):
            await stopped.supervisor.history(HistoryQuery(limit=50))
        assert not NOT_FOR_PEOPLE.search((await stopped.supervisor.status()).problem or "")
        await stopped.supervisor.close()
    assert started > FLIPS // 2
