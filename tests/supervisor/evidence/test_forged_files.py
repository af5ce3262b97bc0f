"""A file in which something was changed proves nothing, and what nobody can find by the file alone is said."""

import base64
import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.supervisor.evidence.conftest import EvidenceBench, decision_of, with_body
from tests.supervisor.phones.authenticator import Authenticator, b64
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.model.event import EVENT
from whisper_tui.model.evidence import EvidenceReport
from whisper_tui.model.phone_proof import decision_challenge
from whisper_tui.present.evidence_text import not_proven
from whisper_tui.supervisor.evidence.bundle_lines import (
    BundleLine,
    LeftOutEvents,
    MaskedEvent,
    Opening,
    RecordedStream,
    ShownEvent,
    UnlinkedEvent,
)
from whisper_tui.supervisor.evidence.evidence_check import check_evidence
from whisper_tui.supervisor.journal.counters import subject_of
from whisper_tui.supervisor.journal.sqlite_file import Head, check_file, commitment, link_over
from whisper_tui.supervisor.phones.passkeys import decoded

Lines = list[BundleLine]


def kind_of(line: BundleLine) -> str:
    return str(json.loads(line.body)["kind"]) if isinstance(line, ShownEvent | MaskedEvent) else ""


def place_of(lines: Lines, kind: str, which: int = 0) -> int:
    """The place of an event of this kind among the lines."""
    return [at for at, line in enumerate(lines) if kind_of(line) == kind][which]


def committed(line: Any) -> str:
    return commitment(bytes.fromhex(line.salt), line.body.encode()).hex()


def chained_anew(lines: Lines) -> Lines:
    """What somebody writes who makes the whole chain again, as whoever holds the machine can."""
    opening = lines[0]
    assert isinstance(opening, Opening)
    end, seq = bytes.fromhex(opening.before), opening.first
    for line in lines:
        match line:
            case ShownEvent():
                end = link_over(end, seq, subject_of(EVENT.validate_json(line.body)), bytes.fromhex(committed(line)))
                seq += 1
            case MaskedEvent():
                end, seq = link_over(end, seq, line.about, bytes.fromhex(line.commitment)), seq + 1
            case LeftOutEvents():
                for about, held in line.events:
                    end, seq = link_over(end, seq, about, bytes.fromhex(held)), seq + 1
            case _:
                pass
    return [opening.model_copy(update={"last": seq - 1, "end": end.hex()}), *lines[1:]]


@pytest.fixture
async def denied(bench: EvidenceBench) -> EvidenceBench:
    """Evidence about a call that the desk has denied, with other calls around it."""
    other = await bench.submit(await bench.session("other"), "make", "other")
    call_id = await bench.asked("rm", "-rf", "build")
    await bench.deny(other, "no")
    await bench.deny(call_id, "not the build")
    assert bench.report(call_id).problems == ()
    return bench


@pytest.fixture
async def signed(bench: EvidenceBench, key: Authenticator) -> EvidenceBench:
    """Evidence about a call that a phone has approved."""
    call_id = await bench.yes(await bench.pair(key), key, "make", "release")
    assert bench.report(call_id).problems == ()
    return bench


def is_found(bench: EvidenceBench, data: bytes) -> bool:
    bench.file.write_bytes(data)
    try:
        return bool(check_evidence(bench.file).problems)
    except InvalidRequest:
        return True


async def test_a_flipped_bit_anywhere_is_found(signed: EvidenceBench) -> None:
    data = signed.file.read_bytes()
    chosen = random.Random(41)
    places = chosen.sample(range(len(data)), 300) + list(range(120)) + list(range(len(data) - 120, len(data)))
    unseen = []
    for place in places:
        changed = bytearray(data)
        changed[place] ^= 1 << chosen.randrange(8)
        if not is_found(signed, bytes(changed)):
            unseen.append(place)
    assert unseen == []


async def test_a_byte_that_was_added_taken_out_or_exchanged_is_found(signed: EvidenceBench) -> None:
    data = signed.file.read_bytes()
    chosen = random.Random(42)
    for place in chosen.sample(range(len(data)), 60):
        assert is_found(signed, data[:place] + data[place + 1 :])
        assert is_found(signed, data[:place] + b" " + data[place:])
        assert is_found(signed, data[:place])
    assert is_found(signed, data + b"\n") and is_found(signed, data + data) and is_found(signed, data[:-1])
    assert not is_found(signed, data)


async def test_each_line_that_is_missing_twice_or_elsewhere_is_found(denied: EvidenceBench) -> None:
    lines = denied.lines()
    with pytest.raises(InvalidRequest):
        denied.rewritten(lines[1:])
    for at in range(len(lines) - 1):
        if at:
            assert denied.rewritten([*lines[:at], *lines[at + 1 :]]).problems
        assert denied.rewritten([*lines[: at + 1], *lines[at:]]).problems
        if at > 1:
            assert denied.rewritten([*lines[: at - 1], lines[at], lines[at - 1], *lines[at + 1 :]]).problems
    assert not denied.rewritten(lines).problems


async def test_a_gap_is_missed_though_the_chain_was_made_again(denied: EvidenceBench) -> None:
    lines = denied.lines()
    at = place_of(lines, "decided")
    (problem,) = denied.rewritten(chained_anew([*lines[:at], *lines[at + 1 :]])).problems
    assert "one is missing before it" in problem


async def test_a_denial_that_was_left_out_is_missed(denied: EvidenceBench) -> None:
    lines = denied.lines()
    for kind in ("decided", "finished", "judged"):
        at = place_of(lines, kind)
        line = lines[at]
        assert isinstance(line, ShownEvent)
        for about in (subject_of(EVENT.validate_json(line.body)), "", "99"):
            hidden = LeftOutEvents(first=line.seq, events=((about, committed(line)),))
            found = denied.rewritten([*lines[:at], hidden, *lines[at + 1 :]]).problems
            assert any("is left out" in each or "chain ends at another link" in each for each in found)


async def test_a_whole_call_that_was_left_out_of_a_session_is_missed(bench: EvidenceBench) -> None:
    session = await bench.session("mine")
    for word in ("one", "two"):
        await bench.deny(await bench.submit(session, "make", word), "no")
    bench.write("mine")
    lines = [
        LeftOutEvents(first=line.seq, events=((subject_of(event), committed(line)),))
        if isinstance(line, ShownEvent) and "2" in subject_of(event := EVENT.validate_json(line.body)).split()
        else line
        for line in bench.lines()
    ]
    opening = lines[0]
    assert isinstance(opening, Opening)
    lines[0] = opening.model_copy(update={"calls": ("1",)})
    (problem,) = bench.rewritten(lines).problems
    assert problem.startswith("an event about the session")
    # Without the claim that it is the whole session, the file is about one call, and right.
    lines[0] = opening.model_copy(update={"calls": ("1",), "sessions": ()})
    report = bench.rewritten(lines)
    assert report.problems == () and report.sessions == ()


async def test_a_denial_that_became_an_approval_breaks_the_chain(denied: EvidenceBench) -> None:
    lines = denied.lines()
    at = place_of(lines, "decided")
    lines[at] = with_body(lines[at], lambda body: body.update(decision={"kind": "approve"}))
    assert denied.rewritten(lines).problems == (
        "an event in it was changed: its chain ends at another link than its first line says",
    )


async def test_an_event_that_is_said_to_hold_a_secret_is_marked_as_not_proven(denied: EvidenceBench) -> None:
    lines = denied.lines()
    for kind, change in (
        ("decided", lambda body: body.update(decision={"kind": "approve"})),
        ("finished", lambda body: body.update(ending={"kind": "withdrawn", "why": "x"})),
    ):
        at = place_of(lines, kind)
        line = lines[at]
        assert isinstance(line, ShownEvent)
        about = subject_of(EVENT.validate_json(line.body))
        masked = MaskedEvent(seq=line.seq, about=about, commitment=committed(line), body=line.body)
        lines[at] = with_body(masked, change)
    report = denied.rewritten(lines)
    assert report.problems == () and report.masked == 2
    assert report.calls[0].decisions[0].backing == "masked"


def with_other_text(event: str, change: Callable[[dict[str, Any]], Any]) -> Callable[[Lines], Lines]:
    def changed(lines: Lines) -> Lines:
        at = place_of(lines, event)
        return [*lines[:at], with_body(lines[at], change), *lines[at + 1 :]]

    return changed


async def test_who_makes_the_whole_chain_again_is_found_by_an_end_kept_elsewhere_alone(denied: EvidenceBench) -> None:
    noted = Head.parse(check_evidence(denied.file).end)
    lines = with_other_text("finished", lambda body: body["ending"].update(reason="yes"))(denied.lines())
    lines = with_other_text("decided", lambda body: body["decision"].update(reason="yes"))(lines)
    assert denied.rewritten(chained_anew(lines)).problems == ()
    assert check_evidence(denied.file, noted).problems == (
        f"the journal up to event {noted.seq} is another one than was noted",
    )


def tampered(lines: Lines, change: Callable[[dict[str, Any]], Any], event: str = "decided") -> Lines:
    return chained_anew(with_other_text(event, change)(lines))


FORGERIES: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "another document": ("decided", lambda body: body["proof"].update(document=body["proof"]["document"] + " ")),
    "no document": ("decided", lambda body: body["proof"].update(document="")),
    "another call": ("decided", lambda body: body["proof"].update(seen="0" * 64)),
    "apply for approve": ("decided", lambda body: body["proof"].update(decision="apply")),
    "deny for approve": ("decided", lambda body: body["proof"].update(decision="deny")),
    "another nonce": ("decided", lambda body: body["proof"].update(nonce=b64(bytes(32)))),
    "a later end": ("decided", lambda body: body["proof"].update(expires=body["proof"]["expires"] + 1)),
    "another page": ("decided", lambda body: body["proof"].update(origin="https://evil.example")),
    "another name of the page": ("decided", lambda body: body["proof"].update(rp_id="example.ts.net")),
    "no assertion": ("decided", lambda body: body["proof"].update(assertion=None)),
    "no proof": ("decided", lambda body: body.pop("proof")),
    "another phone": ("decided", lambda body: body["proof"].update(device_id="p000000000000")),
    "another name": ("decided", lambda body: body["by"].update(who="nexus")),
    "another surface": ("decided", lambda body: body["by"].update(surface="cockpit")),
    "a way to run it": ("decided", lambda body: body["decision"].update(undoable=False)),
    "a standing approval": ("decided", lambda body: body["decision"].update(remember="exact_for_session")),
    "a revoked phone": ("phone_changed", lambda body: body.update(change="revoked")),
    "a phone that is too new": ("phone_changed", lambda body: body.update(may_approve_from=4e9)),
    "a yes of long ago": ("phone_yes", lambda body: body.update(at=1.0)),
    "no yes": ("phone_yes", lambda body: body.update(until=None)),
    "another command": ("submitted", lambda body: body["call"]["spec"]["command"].update(args=["clean"])),
    "another directory": ("submitted", lambda body: body["call"]["spec"].update(cwd="/")),
    "another description": ("submitted", lambda body: body["call"].update(description="harmless")),
    "another verdict": ("judged", lambda body: body["verdict"].update(reason="harmless")),
    "other risks": ("judged", lambda body: body["verdict"].update(risks=[{"id": "x", "sentence": "y"}])),
}


async def test_a_signature_fits_nothing_but_what_was_signed_even_if_the_chain_is_made_again(
    signed: EvidenceBench,
) -> None:
    lines = signed.lines()
    verified = []
    for name, (event, change) in FORGERIES.items():
        report = signed.rewritten(tampered(lines, change, event))
        if not report.problems or any(each.signature.signed == "verified" for each in report.calls[0].decisions):
            verified.append(name)
    assert verified == []


async def test_no_part_of_an_assertion_can_be_another_one(signed: EvidenceBench) -> None:
    lines = signed.lines()
    chosen = random.Random(43)
    verified = 0
    for name in ("client_data", "authenticator_data", "signature", "credential_id"):
        for _ in range(12):

            def change(body: dict[str, Any], name: str = name) -> None:
                held = body["proof"]["assertion"]
                data = bytearray(decoded(held[name]))
                data[chosen.randrange(len(data))] ^= 1 << chosen.randrange(8)
                held[name] = b64(bytes(data))

            report = signed.rewritten(tampered(lines, change))
            # The name of a credential is not signed: the key is.
            verified += not report.problems and name != "credential_id"
    assert verified == 0


async def test_a_key_of_the_forger_is_another_key_to_whoever_compares_it(
    signed: EvidenceBench, key: Authenticator
) -> None:
    genuine = check_evidence(signed.file)
    mine = Authenticator()
    import cbor2

    numbers = mine.key.public_key().public_numbers()
    public = b64(
        cbor2.dumps({1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")})
    )

    def sign(body: dict[str, Any]) -> None:
        proof = body["proof"]
        challenge = decision_challenge(
            body["call_id"], proof["seen"], proof["decision"], decoded(proof["nonce"]), proof["expires"]
        )
        made = json.loads(mine.assertion({"challenge": b64(challenge), "rpId": proof["rp_id"]}))["response"]
        proof.update(public_key=public)
        proof["assertion"].update(
            client_data=made["clientDataJSON"],
            authenticator_data=made["authenticatorData"],
            signature=made["signature"],
        )

    half = with_other_text("decided", sign)(signed.lines())
    assert "not the one with which this phone was paired" in signed.rewritten(chained_anew(half)).problems[0]
    whole = with_other_text("phone_changed", lambda body: body.update(public_key=public))(half)
    forged = signed.rewritten(chained_anew(whole))
    assert forged.problems == ()
    (call,), (before,) = forged.calls, genuine.calls
    assert call.decisions[0].signature.key != before.decisions[0].signature.key
    assert check_evidence(signed.file, Head.parse(genuine.end)).problems


async def test_a_chain_that_was_cut_says_up_to_where_it_goes(denied: EvidenceBench) -> None:
    noted = Head.parse(check_evidence(denied.file).end)
    lines = denied.lines()
    at = place_of(lines, "decided")
    report = denied.rewritten(chained_anew([*lines[:at], lines[-1]]))
    assert report.problems == () and report.calls[0].decisions == ()
    assert int(report.end.partition(":")[0]) < noted.seq
    assert check_evidence(denied.file, noted).noted == "outside"


async def test_an_end_that_was_noted_before_the_first_event_proves_nothing(bench: EvidenceBench) -> None:
    await bench.deny(await bench.submit(await bench.session("other"), "make", "other"), "no")
    noted = check_file(Path(bench.home.state) / "journal.sqlite").head
    assert noted is not None
    call_id = await bench.asked("rm", "-rf", "build")
    await bench.deny(call_id, "no")
    bench.write(call_id)
    opening = bench.lines()[0]
    assert isinstance(opening, Opening) and opening.before == noted.link.hex()
    lines = with_other_text("finished", lambda body: body["ending"].update(reason="yes"))(bench.lines())
    forged = with_other_text("decided", lambda body: body["decision"].update(reason="yes"))(lines)
    assert bench.rewritten(chained_anew(forged)).problems == ()
    assert check_evidence(bench.file, noted).noted == "outside"


async def test_events_after_the_noted_end_are_not_said_to_be_the_journals(bench: EvidenceBench) -> None:
    call_id = await bench.asked("rm", "-rf", "build")
    noted = check_file(Path(bench.home.state) / "journal.sqlite").head
    await bench.deny(call_id, "no")
    bench.write(call_id)
    report = check_evidence(bench.file, noted)
    assert noted is not None and report.noted_at == noted.seq
    assert any(f"the events after {noted.seq} (among them 1 decision)" in each for each in not_proven(report))


async def test_a_beginning_that_was_cut_off_is_missed(denied: EvidenceBench) -> None:
    lines = denied.lines()
    opening, at = lines[0], place_of(lines, "judged")
    line = lines[at]
    assert isinstance(opening, Opening) and isinstance(line, ShownEvent)
    cut = [opening.model_copy(update={"first": line.seq}), *lines[at:]]
    (problem,) = denied.rewritten(chained_anew(cut)).problems
    assert "do not begin with its request" in problem


def data_of(text: str) -> RecordedStream:
    return RecordedStream(call="1", attempt=1, name="out", data=text)


async def test_output_of_which_no_event_says_anything_is_refused(denied: EvidenceBench) -> None:
    lines = denied.lines()
    for text in (base64.b64encode(b"forged").decode(), "YQ=", "YR==", "a b"):
        assert denied.rewritten([*lines[:-1], data_of(text), lines[-1]]).problems
    one = data_of(base64.b64encode(b"x").decode())
    assert denied.rewritten([*lines[:-1], one, one, lines[-1]]).problems


def sealed(data: bytes) -> bytes:
    end = json.dumps({"line": "end", "sha256": hashlib.sha256(data).hexdigest()}, separators=(",", ":"))
    return data + end.encode() + b"\n"


async def test_what_no_program_writes_is_refused_at_once(denied: EvidenceBench) -> None:
    first = denied.file.read_bytes().partition(b"\n")[0] + b"\n"
    deep = b'{"body":' + b"[" * 1_000_000 + b"}\n"
    body = json.dumps("[" * 100_000)
    for data in (
        first + deep,
        first + b'{"body":' + body.encode() + b',"line":"event","salt":"' + b"0" * 32 + b'","seq":1}\n',
        first + b'{"line":"left out","first":1,"events":[]}\n',
        first + b'{"events":[],"first":' + b"9" * 10_000 + b',"line":"left out"}\n',
        first + b'{"line":"end","line":"end","sha256":"' + b"0" * 64 + b'"}\n',
        first + b"\xff\xfe\n",
        first + b"NaN\n",
        first.replace(b'"last":', b'"last":1e3,"x":'),
        b'{"before":"' + b"0" * 100_000_000,
    ):
        assert is_found(denied, data) and is_found(denied, sealed(data))


async def test_a_body_that_two_readers_read_differently_is_refused(denied: EvidenceBench) -> None:
    lines = denied.lines()
    at = place_of(lines, "decided")
    line = lines[at]
    assert isinstance(line, ShownEvent)
    twice = line.body[:-1] + ',"kind":"decided"}'
    lines[at] = line.model_copy(update={"body": twice})
    (problem,) = denied.rewritten(chained_anew(lines)).problems
    assert "cannot be read" in problem


async def test_events_in_any_order_and_of_any_call_make_no_program_fail(denied: EvidenceBench) -> None:
    lines = denied.lines()
    chosen = random.Random(44)
    events = [line for line in lines if isinstance(line, ShownEvent)]
    for _ in range(40):
        mixed = list[BundleLine]()
        opening = lines[0]
        assert isinstance(opening, Opening)
        for seq, line in enumerate(chosen.choices(events, k=len(events)), opening.first):
            moved = with_body(line, lambda body, seq=seq: body.update(seq=seq))
            mixed.append(moved.model_copy(update={"seq": seq}))
        report: EvidenceReport = denied.rewritten(chained_anew([opening, *mixed, lines[-1]]))
        assert report.problems or report.calls


async def test_a_standing_approval_that_was_revoked_or_is_missing_is_missed(bench: EvidenceBench) -> None:
    session = await bench.session()
    first = await bench.submit(session, "make", "all")
    await bench.approve(first, remember="exact_for_session")
    again = await bench.submit(session, "make", "all", key="again")
    assert decision_of(bench.report(again), again).standing
    lines = bench.lines()
    for change, problem in (
        (lambda body: body["grant"].update(until=1.0), "which did not hold for it any more"),
        (lambda body: body["grant"].update(id="g9"), "no event says who has given that"),
        (lambda body: body["grant"].update(session_id="s9"), ""),
    ):
        assert any(problem in each for each in bench.rewritten(tampered(lines, change, "granted")).problems)


async def test_an_agent_is_named_by_nothing_but_the_chain(denied: EvidenceBench) -> None:
    genuine = check_evidence(denied.file)
    assert genuine.calls[0].session
    lines = denied.lines()
    opening, opened = lines[0], lines[place_of(lines, "session_opened")]
    assert isinstance(opening, Opening) and isinstance(opened, ShownEvent)
    # The chain may begin after the session was opened, and a made-up event of an earlier format may come before it.
    begun = chained_anew([opening, *lines[1 : place_of(lines, "submitted")]])[0]
    assert isinstance(begun, Opening)
    rest = lines[place_of(lines, "submitted") :]
    shorter = opening.model_copy(update={"first": begun.last + 1, "before": begun.end})
    made_up = with_body(
        UnlinkedEvent(seq=opened.seq, body=opened.body),
        lambda body: body["session"].update(name="release", client={"name": "another agent", "version": "9"}),
    )
    report = denied.rewritten([shorter, made_up, *rest])
    assert check_evidence(denied.file, Head.parse(genuine.end)).noted == "same"
    assert (report.problems, report.calls[0].backing) == ((), "chain")
    assert (report.calls[0].agent, report.calls[0].session) == ("", "")
