"""Each kind of decision is in the evidence with its author, its surface and what was seen; and no secret is."""

import os
import sqlite3
from pathlib import Path

import pytest

from tests.supervisor.conftest import HUMAN
from tests.supervisor.evidence.conftest import EvidenceBench, call_of, decision_of
from tests.supervisor.phones.authenticator import Authenticator
from whisper_tui.model.call import Argv, CommandSpec
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import InvalidRequest, Refused, UnknownCall
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.present.evidence_text import evidence_lines, not_proven, proven
from whisper_tui.supervisor.evidence import bundle_writer, signed_decisions
from whisper_tui.supervisor.evidence.bundle_lines import LeftOutEvents
from whisper_tui.supervisor.evidence.evidence_check import check_evidence
from whisper_tui.supervisor.journal.sqlite_file import START, Head, LinkedText, check_file
from whisper_tui.supervisor.settings import PhoneSettings


async def test_a_denial_and_an_approval_at_the_desk_name_their_author_and_what_was_seen(bench: EvidenceBench) -> None:
    denied, approved = await bench.asked("rm", "-rf", "build"), await bench.asked("make")
    seen = (await bench.record(denied)).seen_digest()
    await bench.deny(denied, "not the build")
    await bench.approve(approved)
    report = bench.report(denied, approved)
    assert report.problems == ()
    decision = decision_of(report, denied)
    assert (decision.kind, decision.by, decision.reason) == ("deny", HUMAN, "not the build")
    assert (decision.seen, len(decision.seen_in), decision.backing) == (seen, 2, "chain")
    assert decision_of(report, approved).kind == "approve"
    assert call_of(report, denied).is_complete and call_of(report, denied).state == "denied"
    assert "2 decisions at the desk: no signature of it is in this file" in "\n".join(not_proven(report))


async def test_an_edit_a_rule_and_a_standing_approval_are_told_apart(bench: EvidenceBench) -> None:
    await bench.restart(Rules(deny=(Rule(name="no curl", prefix=("curl",)),)))
    session = await bench.session()
    spec = CommandSpec(command=Argv(program="make", args=("check",)), cwd=str(bench.workspace))
    edited = await bench.submit(session, "make", "test")
    await bench.approve(edited, edited=spec)
    ruled = await bench.submit(session, "curl", "x")
    first = await bench.submit(session, "make", "all")
    await bench.approve(first, remember="exact_for_session")
    again = await bench.submit(session, "make", "all", key="again")
    report = bench.report(edited, ruled, first, again)
    assert report.problems == ()
    assert decision_of(report, edited).edited == spec
    assert decision_of(report, ruled).by == Decider(surface="rule", who="no curl")
    assert decision_of(report, first).remembered
    memory = decision_of(report, again)
    assert memory.by.surface == "memory" and memory.standing == f"given after call {first} by tester (library)"


async def test_a_denial_for_the_session_names_who_gave_it(bench: EvidenceBench) -> None:
    session = await bench.session()
    waiting = await bench.submit(session, "curl", "a")
    await bench.supervisor.deny_for_session(session, ("curl",), "no network", HUMAN)
    later = await bench.submit(session, "curl", "b")
    await bench.state(waiting, "ended")
    report = bench.report(waiting, later)
    assert report.problems == ()
    assert decision_of(report, waiting).by == HUMAN and decision_of(report, later).by.surface == "memory"
    assert decision_of(report, later).standing == "given by tester (library)"


async def test_a_call_that_nobody_has_decided_says_how_it_ended(bench: EvidenceBench) -> None:
    call_id = await bench.asked()
    await bench.supervisor.withdraw(call_id, "it waited for 60 s")
    report = bench.report(call_id)
    assert (call_of(report, call_id).decisions, call_of(report, call_id).state) == ((), "withdrawn")


async def test_a_phones_yes_is_verified_again_from_the_file_alone(bench: EvidenceBench, key: Authenticator) -> None:
    token = await bench.pair(key)
    call_id = await bench.yes(token, key, "make", "release")
    bench.write(call_id)
    await bench.supervisor.close()
    for each in Path(bench.home.state).iterdir():
        if each.is_file():
            each.unlink()
    report = check_evidence(bench.file)
    assert report.problems == ()
    signature = decision_of(report, call_id).signature
    assert (signature.signed, signature.phone, signature.same_record) == ("verified", "pixel", True)
    assert any("has signed 1 decision on the page https://box.example.ts.net" in each for each in proven(report))
    assert any("Whose passkeys these are" in each for each in not_proven(report))
    await bench.open()


async def test_a_phones_denial_is_told_as_unsigned(bench: EvidenceBench, key: Authenticator) -> None:
    token = await bench.pair(key)
    call_id = await bench.asked()
    await bench.phones.phone_refuse(token, call_id, "deny", (await bench.card(token, call_id)).seen, "no")
    report = bench.report(call_id)
    assert report.problems == () and decision_of(report, call_id).signature.signed == "denial"
    assert "those need no signature" in "\n".join(not_proven(report))


async def test_without_the_extra_a_signature_is_said_to_be_unchecked(
    bench: EvidenceBench, key: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_id = await bench.yes(await bench.pair(key), key)
    bench.write(call_id)
    from whisper_tui.model.errors import Refused

    def missing() -> None:
        raise Refused("phones need the extra `phone`")

    monkeypatch.setattr(signed_decisions, "check_installed", missing)
    report = check_evidence(bench.file)
    assert report.problems == () and decision_of(report, call_id).signature.signed == "unchecked"
    assert not any("passkey" in each for each in proven(report))
    assert any("1 signature by phones: the extra `phone`" in each for each in not_proven(report))


async def test_other_calls_are_left_out_and_yet_the_chain_is_followed(bench: EvidenceBench) -> None:
    session = await bench.session("mine")
    other = await bench.submit(await bench.session("other"), "cat", "their-plan.txt")
    mine = await bench.submit(session, "make")
    await bench.deny(other, "their own reason")
    await bench.deny(mine, "no")
    report = bench.report("mine")
    text = bench.file.read_text()
    assert report.problems == () and report.left_out >= 4 and report.sessions == (f"mine ({session})",)
    assert "their-plan" not in text and "their own reason" not in text
    assert [call.id for call in report.calls] == [mine]
    assert f"No call of the session mine ({session}) is missing" in "\n".join(proven(report))


async def test_what_was_said_in_a_session_is_left_out(bench: EvidenceBench) -> None:
    session = await bench.session("mine", hears=True)
    await bench.supervisor.say(session, "between you and me", HUMAN)
    await bench.deny(await bench.submit(session, "make"), "no")
    assert bench.report("mine").problems == ()
    assert "between you and me" not in bench.file.read_text()


async def test_a_secret_is_not_in_the_file_and_no_digest_lets_anybody_try_it(
    bench: EvidenceBench, key: Authenticator
) -> None:
    token = await bench.pair(key)
    call_id = await bench.asked("mysql", "--password=hunter22", "-e", "select 1")
    seen = (await bench.card(token, call_id)).seen
    digest = (await bench.record(call_id)).seen_digest()
    await bench.phones.phone_refuse(token, call_id, "deny", seen)
    report = bench.report(call_id)
    text = bench.file.read_text()
    assert report.problems == () and report.masked
    assert "hunter22" not in text and seen not in text and digest not in text
    assert decision_of(report, call_id).by.who == "pixel"
    assert decision_of(report, call_id).seen == ""
    assert "with secrets in them" in "\n".join(not_proven(report))


async def test_a_phones_yes_about_a_secret_from_before_salts_is_not_proven_and_no_forgery(
    bench: EvidenceBench, key: Authenticator
) -> None:
    bench.settings = PhoneSettings(may_approve_severe=True)
    await bench.restart()
    call_id = await bench.yes(await bench.pair(key), key, "mysql", "--password=hunter22")
    end = START
    with sqlite3.connect(Path(bench.home.state) / "journal.sqlite") as db:
        for seq, body in db.execute("SELECT seq, CAST(body AS BLOB) FROM events ORDER BY seq").fetchall():
            end = LinkedText(seq, body, None, "").link(end)
            db.execute("UPDATE events SET salt = NULL, about = NULL, link = ? WHERE seq = ?", (end, seq))
    db.close()
    report = bench.report(call_id)
    assert "hunter22" not in bench.file.read_text()
    assert (report.problems, report.shown) == ((), 0) and report.unlinked
    decision = decision_of(report, call_id)
    assert (decision.backing, decision.signature.signed) == ("nothing", "left out")


async def test_the_ticket_of_a_call_that_can_still_start_is_not_in_the_file(bench: EvidenceBench) -> None:
    from whisper_tui.model.call import CallRequest

    session = await bench.session()
    spec = CommandSpec(command=Argv(program="make"), cwd=str(bench.workspace))
    request = CallRequest(session_id=session, tool="Bash", arguments={}, spec=spec, ticket="a ticket of a test")
    call_id = await bench.supervisor.submit(request)
    await bench.approve(call_id)
    assert bench.report(call_id).problems == ()
    assert "a ticket of a test" not in bench.file.read_text()


async def test_an_end_that_was_kept_elsewhere_proves_what_stood_before_it(bench: EvidenceBench) -> None:
    call_id = await bench.asked()
    await bench.deny(call_id, "no")
    noted = check_file(Path(bench.home.state) / "journal.sqlite").head
    assert noted is not None
    await bench.deny(await bench.asked("make", "later"), "no")
    bench.write(call_id)
    report = check_evidence(bench.file, noted)
    assert report.noted == "same" and f"Up to event {noted.seq} they are" in "\n".join(proven(report))
    assert f"the events after {noted.seq} are events of the machine's journal" in "\n".join(not_proven(report))
    report = check_evidence(bench.file, Head(noted.seq, bytes(32)))
    assert report.problems == (f"the journal up to event {noted.seq} is another one than was noted",)
    bench.write(call_id, noted=noted)
    report = check_evidence(bench.file, noted)
    assert (report.noted, report.end) == ("same", noted.text())
    assert check_evidence(bench.file, Head(noted.seq + 1, bytes(32))).noted == "outside"


async def test_what_is_named_wrongly_is_said(bench: EvidenceBench) -> None:
    await bench.asked()
    with pytest.raises(UnknownCall, match="there is no call 99"):
        bench.write("99")
    with pytest.raises(InvalidRequest, match="no session 'nobody' with calls"):
        bench.write("nobody")
    bench.file.write_text("{}\n")
    with pytest.raises(InvalidRequest, match="is no evidence file"):
        check_evidence(bench.file)


async def test_a_long_journal_around_a_call_is_left_out_in_parts(
    bench: EvidenceBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_writer, "MOST_LEFT_OUT", 3)
    first = await bench.asked()
    for number in range(3):
        await bench.deny(await bench.submit(await bench.session("other"), "make", str(number)), "no")
    await bench.deny(first, "no")
    report = bench.report(first)
    assert report.problems == ()
    assert sum(isinstance(each, LeftOutEvents) for each in bench.lines()) >= 4


async def test_the_sentences_say_who_decided_what(bench: EvidenceBench) -> None:
    call_id = await bench.asked("make", "release")
    await bench.deny(call_id, "not today")
    said = list(evidence_lines(bench.report(call_id)))
    assert said[0] == f"Call {call_id}: make release"
    assert any("denied by tester through the library" in line and "not today" in line for line in said)
    assert said[-1].startswith("The chain in this file ends at ")


async def test_evidence_goes_into_no_file_that_somebody_has_put_in_its_way(bench: EvidenceBench) -> None:
    call_id = await bench.asked()
    trap = bench.file.with_name(f".{bench.file.name}.{os.getpid()}")
    trap.touch(mode=0o666)
    with pytest.raises(Refused, match="cannot be written: File exists"):
        bench.write(call_id)
    assert trap.read_bytes() == b"" and not bench.file.exists()
    trap.unlink()
    bench.write(call_id)
    assert bench.file.stat().st_mode & 0o777 == 0o600
