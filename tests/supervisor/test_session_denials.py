"""Denials for a session: kept and applied by the supervisor, whoever watches, until a human lifts them."""

import asyncio
import sqlite3
from contextlib import aclosing, closing
from pathlib import Path

import pytest

from tests.supervisor.conftest import HUMAN, Bench
from whisper_tui.model.board import Board
from whisper_tui.model.decision import Approve, Decider, Deny
from whisper_tui.model.ending import Denied, Withdrawn
from whisper_tui.model.errors import Refused
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.supervisor.journal.counters import check_journal
from whisper_tui.supervisor.journal.store import AT_ONCE
from whisper_tui.tools.agent_text import failure_of

PUBLISH = ("npm", "publish")


def denied(record: CallRecord) -> Denied:
    assert isinstance(record.state, Ended) and isinstance(record.state.ending, Denied)
    return record.state.ending


async def deny(bench: Bench, session: str, *words: str, reason: str = "not today") -> str:
    return await bench.supervisor.deny_for_session(session, words or PUBLISH, reason, HUMAN)


async def test_calls_that_come_are_denied_without_asking_and_told_why(bench: Bench) -> None:
    session, other = await bench.session(), await bench.session("other")
    denial = await deny(bench, session)
    record = await bench.record(await bench.submit(session, text="cd lib && npm publish --tag next"))
    by = Decider(surface="memory", who=denial)
    assert denied(record) == Denied(by=by, reason="not today", for_session=PUBLISH)
    assert record.decision == Deny(reason="not today")
    assert record.verdict is not None
    assert record.verdict.denial_id == denial
    assert record.verdict.reason == "the human denied 'npm publish' for this session"
    assert failure_of(denied(record)).message == (
        "Denied by the human for this whole session, like every call that begins with 'npm publish'."
        " Nothing ran. Reason: not today"
    )
    assert failure_of(Denied(by=by, reason="no"), "edits").message == (
        "Denied by the human. Nothing was changed. Reason: no"
    )
    assert (
        failure_of(Withdrawn(why="it left"), "function").message == "The call was withdrawn. Nothing was done. It left"
    )
    assert (await bench.record(await bench.submit(session, "npm", "pack"))).state.kind == "waiting"
    assert (await bench.record(await bench.submit(other, *PUBLISH))).state.kind == "waiting"


async def test_a_denial_overrides_rules_and_approvals(bench: Bench) -> None:
    rules = Rules(allow=(Rule(name="anything of npm", prefix=("npm",), sandbox=False),))
    await bench.restart(rules)
    session = await bench.session()
    await bench.approve(await bench.submit(session, "make"), remember="exact_for_session")
    await deny(bench, session)
    await deny(bench, session, "make")
    for words in (PUBLISH, ("make",)):
        assert denied(await bench.record(await bench.submit(session, *words))).for_session == words


@pytest.mark.parametrize("text", ["npm -w lib publish", "echo x && npm --prefix lib publish", "npm publis --tag next"])
async def test_options_and_other_spellings_do_not_escape_a_denial(bench: Bench, text: str) -> None:
    session = await bench.session()
    await deny(bench, session)
    assert denied(await bench.record(await bench.submit(session, text=text))).for_session == PUBLISH


async def test_words_that_expansions_lead_to_are_denied(bench: Bench) -> None:
    await bench.restart(Rules(read_only=True))
    session = await bench.session()
    await deny(bench, session, "cat", "notes")
    for text in ("n=notes; echo; cat $n", "echo; cat {notes,x}", "for f in notes; do cat $f; done"):
        assert denied(await bench.record(await bench.submit(session, text=text))).for_session == ("cat", "notes")


async def test_a_rule_that_denies_keeps_its_own_reason(bench: Bench) -> None:
    await bench.restart(Rules(deny=(Rule(name="never", prefix=PUBLISH, justification="by law"),)))
    session = await bench.session()
    await deny(bench, session)
    ending = denied(await bench.record(await bench.submit(session, *PUBLISH)))
    assert (ending.reason, ending.for_session, ending.by.surface) == ("by law", (), "rule")


async def test_all_calls_that_wait_are_denied_in_the_name_of_the_human(bench: Bench) -> None:
    session = await bench.session()
    waiting = [await bench.submit(session, *PUBLISH, str(number)) for number in range(3 * AT_ONCE)]
    spared = await bench.submit(session, "npm", "pack")
    await deny(bench, session)
    for call_id in waiting:
        record = await bench.state(call_id, "ended")
        assert denied(record) == Denied(by=HUMAN, reason="not today", for_session=PUBLISH)
    assert (await bench.record(spared)).state.kind == "waiting"


async def test_an_approved_call_that_has_not_started_is_denied_before_its_start(bench: Bench) -> None:
    session = await bench.session()
    await bench.supervisor.pause(HUMAN)
    await bench.approve(queued := await bench.submit(session, *PUBLISH))
    await deny(bench, session)
    await bench.supervisor.resume(HUMAN)
    assert denied(await bench.state(queued, "ended")).for_session == PUBLISH


async def test_a_call_cannot_be_edited_into_one_that_is_denied(bench: Bench) -> None:
    session = await bench.session()
    await deny(bench, session)
    call_id = await bench.submit(session, "npm", "pack")
    spec = (await bench.record(call_id)).spec
    edited = spec.model_copy(update={"command": spec.command.model_copy(update={"args": ("publish",)})})
    with pytest.raises(Refused, match="the human denied 'npm publish' for this session"):
        await bench.decide(call_id, Approve(edited=edited))


async def test_a_lifted_denial_leaves_denied_calls_denied(bench: Bench) -> None:
    session = await bench.session()
    denial = await deny(bench, session)
    before = await bench.submit(session, *PUBLISH)
    await bench.supervisor.lift_denial(denial, HUMAN)
    assert await bench.supervisor.denials() == ()
    assert (await bench.record(await bench.submit(session, *PUBLISH))).state.kind == "waiting"
    assert denied(await bench.record(before)).for_session == PUBLISH
    with pytest.raises(Refused, match=f"there is no session denial {denial}"):
        await bench.supervisor.lift_denial(denial, HUMAN)


async def test_the_same_words_again_replace_the_reason(bench: Bench) -> None:
    session = await bench.session()
    await deny(bench, session)
    await deny(bench, session, reason="ask me first")
    (denial,) = await bench.supervisor.denials(session)
    assert (denial.id, denial.reason) == ("d2", "ask me first")


async def test_nobody_denies_in_a_session_that_does_not_exist(bench: Bench) -> None:
    with pytest.raises(Refused, match="there is no session s9"):
        await deny(bench, "s9")


@pytest.mark.parametrize("ending", ["restart", "kill"])
async def test_a_denial_survives_the_supervisor(bench: Bench, ending: str) -> None:
    session = await bench.session()
    denial = await deny(bench, session)
    await getattr(bench, ending)()
    assert [each.id for each in await bench.supervisor.denials()] == [denial]
    assert denied(await bench.record(await bench.submit(session, *PUBLISH))).for_session == PUBLISH
    assert await deny(bench, session, "make") == "d2"


async def test_waiting_calls_that_an_earlier_supervisor_did_not_come_to_are_denied_at_the_start(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await bench.session()
    call_id = await bench.submit(session, *PUBLISH)
    with monkeypatch.context() as patch:
        patch.setattr(bench.supervisor._parts.queue.denials, "_deny_waiting", lambda _: None)
        await deny(bench, session)
    await bench.restart()
    assert denied(await bench.state(call_id, "ended")).for_session == PUBLISH


async def test_a_session_that_the_board_has_forgotten_has_its_denials_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("whisper_tui.supervisor.journal.store.SESSIONS_SHOWN", 1)
    old = await bench.session("long ago")
    denial = await deny(bench, old)
    await bench.supervisor.close_session(old, "it ended")
    await bench.session("newer")
    await bench.restart()
    assert old not in bench.supervisor.board.sessions
    board = Board()
    async with asyncio.timeout(60), aclosing(bench.supervisor.watch()) as batches:
        board.apply_all(await anext(batches))
        await bench.session("long ago", resume=old)
        while not board.denials:
            board.apply_all(await anext(batches))
    assert [each.id for each in board.denials_of(old)] == [denial]
    assert denied(await bench.record(await bench.submit(old, *PUBLISH))).for_session == PUBLISH


async def test_a_process_that_resumes_the_session_has_its_denials_too(bench: Bench) -> None:
    session = await bench.session(pid=11)
    await deny(bench, session)
    assert await bench.session(pid=12, resume=session) == session
    assert denied(await bench.record(await bench.submit(session, *PUBLISH))).for_session == PUBLISH


@pytest.mark.parametrize("forgets", [False, True], ids=["at the start", "when the session comes back"])
async def test_a_session_whose_denial_was_lost_is_asked_about_whatever_rules_allow(
    bench: Bench, forgets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = Rules(allow=(Rule(name="new directories", prefix=("mkdir",), sandbox=False),))
    await bench.restart(rules)
    session, other = await bench.session("first"), await bench.session("other")
    await bench.approve(await bench.submit(session, "make"), remember="exact_for_session")
    await deny(bench, session, "mkdir", "dist")
    await deny(bench, session, "mkdir", "lib")
    await bench.supervisor.close()
    with closing(sqlite3.connect(Path(bench.home.state) / "journal.sqlite")) as journal, journal:
        assert journal.execute(
            "UPDATE events SET body = replace(body, 'dist', 'disu') WHERE body LIKE '%denial_added%'"
        ).rowcount
    if forgets:
        monkeypatch.setattr("whisper_tui.supervisor.journal.journal.Journal.session_ids", lambda self, newest: set())
        monkeypatch.setattr(
            "whisper_tui.supervisor.journal.journal.Journal.call_ids_for_board", lambda self: ([], set())
        )
    await bench.open(rules)
    if forgets:
        bench.supervisor._store.bring_back(session)
    problem = (await bench.supervisor.status()).problem or ""
    assert "had denied for these sessions may be missing" in problem and "'first'" in problem
    assert "'other'" not in problem
    record = await bench.record(await bench.submit(session, "mkdir", "dist"))
    assert record.state.kind == "waiting"
    assert record.verdict is not None and "about this session, cannot be read" in record.verdict.reason
    assert (await bench.record(await bench.submit(session, "make"))).state.kind == "waiting"
    assert denied(await bench.record(await bench.submit(session, "mkdir", "lib"))).for_session == ("mkdir", "lib")
    assert (await bench.record(await bench.submit(other, "mkdir", "dist"))).verdict.kind == "allow"
    await bench.approve(record.id, remember="exact_for_session")
    again = await bench.record(await bench.submit(session, "mkdir", "dist"))
    assert again.verdict is not None and again.verdict.kind == "allow"


@pytest.mark.parametrize("place", ["'q1'", "'s2'", "NULL"])
async def test_a_denial_that_stands_at_another_session_is_found_again(bench: Bench, place: str) -> None:
    rules = Rules(allow=(Rule(name="anything of npm", prefix=("npm",), sandbox=False),))
    await bench.restart(rules)
    session, _ = await bench.session(), await bench.session("other")
    await deny(bench, session)
    await bench.supervisor.close()
    journal = Path(bench.home.state) / "journal.sqlite"
    with closing(sqlite3.connect(journal)) as db, db:
        put = f"UPDATE events SET session_id = {place} WHERE body LIKE '%denial_added%'"
        assert db.execute(put).rowcount == 1
    await bench.open(rules)
    assert "was made again from the events" in ((await bench.supervisor.status()).problem or "")
    assert denied(await bench.record(await bench.submit(session, *PUBLISH))).for_session == PUBLISH
    await bench.supervisor.close()
    assert check_journal(journal).problem is None
    await bench.open(rules)
    assert (await bench.supervisor.status()).problem is None
