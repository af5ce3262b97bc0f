"""A yes from a phone counts if it was signed, by the right key, for exactly what was seen, once and in time."""

import asyncio
import json
import random
import sqlite3
from typing import Any

import pytest

from tests.supervisor.phones.authenticator import MAY_SYNC, USER_PRESENT, USER_VERIFIED, Authenticator
from tests.supervisor.phones.conftest import DESK, PhoneBench
from whisper_tui.model.decision import Approve, Decider, Deny
from whisper_tui.model.errors import AlreadyDecided, ChangedSinceSeen, NotAllowed, Refused, UnknownCall, WhisperError
from whisper_tui.model.event import Judged, PhoneYes
from whisper_tui.model.four_words import four_words
from whisper_tui.model.phone_proof import decision_challenge, digest_of
from whisper_tui.model.state import Waiting
from whisper_tui.present.words import decided_by_text
from whisper_tui.supervisor.phones.passkeys import decoded, used_key
from whisper_tui.supervisor.phones.phone_yes import SIGN_S


async def still_waits(bench: PhoneBench, call_id: str) -> bool:
    record = await bench.record(call_id)
    return isinstance(record.state, Waiting) and record.pending_yes is None


async def test_a_signed_yes_starts_the_command_and_its_proof_is_kept(bench: PhoneBench, key: Authenticator) -> None:
    token, call_id = await bench.pair(key), await bench.asked()
    card = await bench.card(token, call_id)
    assert (card.command, card.whole, card.may) == ("make test", True, ("deny", "set_aside", "approve"))
    answer = await bench.say_yes(token, key, call_id)
    assert answer.call_id == call_id and answer.decision == "approve"
    await bench.ordered(call_id)
    decided = bench.decided(call_id)
    assert (decided.decision, decided.by) == (Approve(), Decider(surface="phone", who="pixel"))
    assert decided_by_text(decided.by) == "by pixel (phone)"
    proof = decided.proof
    assert proof is not None and proof.assertion is not None
    assert proof.seen == card.seen == digest_of(proof.document)
    assert card.words == four_words(proof.seen)
    assert json.loads(proof.document)["directory"] == str(bench.workspace)
    assert len(proof.assertion.model_dump_json()) < 2_000


async def test_the_proof_is_verified_again_by_what_is_in_it(bench: PhoneBench, key: Authenticator) -> None:
    token, call_id = await bench.pair(key), await bench.asked()
    await bench.say_yes(token, key, call_id)
    await bench.ordered(call_id)
    proof = bench.decided(call_id).proof
    assert proof is not None and proof.assertion is not None
    nonce = decoded(proof.nonce)
    challenge = decision_challenge(call_id, digest_of(proof.document), proof.decision, nonce, proof.expires)
    kept = proof.assertion
    text = json.dumps(
        {
            "id": kept.credential_id,
            "rawId": kept.credential_id,
            "type": "public-key",
            "response": {
                "clientDataJSON": kept.client_data,
                "authenticatorData": kept.authenticator_data,
                "signature": kept.signature,
            },
        }
    )
    stored = bench.phones._devices.all()[0].model_copy(update={"sign_count": 0, "public_key": proof.public_key})
    used_key(stored, challenge, text)
    with pytest.raises(NotAllowed):
        used_key(stored, decision_challenge("2", proof.seen, "approve", nonce, proof.expires), text)


async def test_a_no_needs_no_signature_and_its_reason_reaches_the_agent(bench: PhoneBench, key: Authenticator) -> None:
    token, call_id = await bench.pair(key, wait=False), await bench.asked()
    card = await bench.card(token, call_id)
    answer = await bench.phones.phone_refuse(token, call_id, "deny", card.seen, "not today")
    assert answer.said == f"Call {call_id} is denied"
    decided = bench.decided(call_id)
    assert decided.decision == Deny(reason="not today")
    assert decided.proof is not None and decided.proof.assertion is None and decided.proof.seen == card.seen


async def test_a_call_is_set_aside_and_can_still_be_approved(bench: PhoneBench, key: Authenticator) -> None:
    token, call_id = await bench.pair(key), await bench.asked()
    seen = (await bench.card(token, call_id)).seen
    await bench.phones.phone_refuse(token, call_id, "set_aside", seen)
    record = await bench.record(call_id)
    assert record.aside is not None and record.aside.by.surface == "phone"
    card = await bench.card(token, call_id)
    assert card.seen == seen and card.may == ("deny", "approve")
    await bench.say_yes(token, key, call_id)
    await bench.ordered(call_id)


async def test_the_list_is_bounded_and_counts_the_rest(bench: PhoneBench, key: Authenticator) -> None:
    token, session = await bench.pair(key), await bench.session()
    ids = [await bench.submit(session, "touch", str(number)) for number in range(105)]
    calls = await bench.phones.phone_calls(token)
    assert [row.id for row in calls.rows] == ids[:100] and calls.more == 5
    assert calls.rows[0].command == "touch 0" and calls.rows[0].session == "agent"


@pytest.mark.parametrize(
    "wrong",
    [
        {"origin": "https://box.example.ts.net.evil.example"},
        {"origin": "http://box.example.ts.net"},
        {"rp_id": "evil.example"},
        {"flags": USER_PRESENT},
        {"flags": USER_VERIFIED},
        {"flags": USER_PRESENT | USER_VERIFIED | MAY_SYNC},
        {"user": b"another user"},
        {"credential_id": b"another key"},
        {"type": "webauthn.create"},
        {"cross_origin": True},
        {"challenge": "AAAA"},
        {"step": 0},
    ],
    ids="-".join,
)
async def test_a_wrong_signature_decides_nothing_and_uses_the_request_up(
    bench: PhoneBench, key: Authenticator, wrong: dict[str, Any]
) -> None:
    token, first, second = await bench.pair(key), await bench.asked(), await bench.asked("touch", "x")
    await bench.say_yes(token, key, first)
    seen = (await bench.card(token, second)).seen
    challenge = await bench.phones.phone_begin(token, second, "approve", seen)
    with pytest.raises(NotAllowed):
        await bench.phones.phone_decide(token, challenge.nonce, key.assertion(challenge.options, **wrong))
    with pytest.raises(NotAllowed, match="was answered already"):
        await bench.phones.phone_decide(token, challenge.nonce, key.assertion(challenge.options))
    assert await still_waits(bench, second)


async def test_a_count_that_goes_back_is_refused(bench: PhoneBench, key: Authenticator) -> None:
    token, first, second = await bench.pair(key), await bench.asked(), await bench.asked("touch", "x")
    key.count = 10
    await bench.say_yes(token, key, first)
    key.count = 4
    with pytest.raises(NotAllowed, match="sign count"):
        await bench.say_yes(token, key, second)
    assert await still_waits(bench, second)


async def test_a_key_that_does_not_count_may_always_be_used(bench: PhoneBench) -> None:
    key = Authenticator(counts=False, may_sync=True)
    token = await bench.pair(key)
    for name in "ab":
        call_id = await bench.asked("touch", name)
        await bench.say_yes(token, key, call_id)
        await bench.ordered(call_id)
    assert (await bench.phones.phone_devices())[0].synced


async def test_the_same_answer_counts_once(bench: PhoneBench, key: Authenticator) -> None:
    token, call_id = await bench.pair(key), await bench.asked()
    seen = (await bench.card(token, call_id)).seen
    challenge = await bench.phones.phone_begin(token, call_id, "approve", seen)
    answer = key.assertion(challenge.options)
    await bench.phones.phone_decide(token, challenge.nonce, answer)
    with pytest.raises(NotAllowed, match="was answered already"):
        await bench.phones.phone_decide(token, challenge.nonce, answer)


async def test_the_answer_to_one_request_does_not_answer_another(bench: PhoneBench, key: Authenticator) -> None:
    token, call_id = await bench.pair(key), await bench.asked()
    seen = (await bench.card(token, call_id)).seen
    one, other = [await bench.phones.phone_begin(token, call_id, "approve", seen) for _ in range(2)]
    with pytest.raises(NotAllowed, match="challenge"):
        await bench.phones.phone_decide(token, other.nonce, key.assertion(one.options))
    assert await still_waits(bench, call_id)


async def test_a_request_expires(bench: PhoneBench, key: Authenticator) -> None:
    token, call_id = await bench.pair(key), await bench.asked()
    seen = (await bench.card(token, call_id)).seen
    challenge = await bench.phones.phone_begin(token, call_id, "approve", seen)
    bench.now += SIGN_S
    with pytest.raises(NotAllowed, match="within 120 seconds"):
        await bench.phones.phone_decide(token, challenge.nonce, key.assertion(challenge.options))
    assert await still_waits(bench, call_id)


async def test_a_supervisor_that_was_restarted_knows_no_request(bench: PhoneBench, key: Authenticator) -> None:
    token, call_id = await bench.pair(key), await bench.asked()
    seen = (await bench.card(token, call_id)).seen
    challenge = await bench.phones.phone_begin(token, call_id, "approve", seen)
    await bench.restart()
    with pytest.raises(NotAllowed, match="or the supervisor was restarted"):
        await bench.phones.phone_decide(token, challenge.nonce, key.assertion(challenge.options))
    assert await still_waits(bench, call_id)
    await bench.say_yes(token, key, call_id)
    await bench.ordered(call_id)


async def judged_anew(bench: PhoneBench, call_id: str) -> None:
    record = await bench.record(call_id)
    assert record.verdict is not None and record.resolved is not None
    other = record.resolved.model_copy(update={"files": {"/bin/other": "1"}})
    bench.supervisor._store.record(Judged(at=bench.now, call_id=call_id, verdict=record.verdict, resolved=other))


@pytest.mark.parametrize("when", ["before the request", "before the answer"])
async def test_what_has_changed_since_it_was_seen_is_not_approved(
    bench: PhoneBench, key: Authenticator, when: str
) -> None:
    token, call_id = await bench.pair(key), await bench.asked()
    seen = (await bench.card(token, call_id)).seen
    if when == "before the request":
        await judged_anew(bench, call_id)
        with pytest.raises(ChangedSinceSeen):
            await bench.phones.phone_begin(token, call_id, "approve", seen)
        with pytest.raises(ChangedSinceSeen):
            await bench.phones.phone_refuse(token, call_id, "deny", seen)
    else:
        challenge = await bench.phones.phone_begin(token, call_id, "approve", seen)
        await judged_anew(bench, call_id)
        with pytest.raises(ChangedSinceSeen):
            await bench.phones.phone_decide(token, challenge.nonce, key.assertion(challenge.options))
    assert await still_waits(bench, call_id)


async def test_a_yes_waits_until_the_desk_could_withdraw_it(bench: PhoneBench, key: Authenticator) -> None:
    bench.phones._yeses.undo_s = 3600.0
    token, call_id = await bench.pair(key), await bench.asked()
    answer = await bench.say_yes(token, key, call_id)
    assert answer.undo_s == 3600.0
    record = await bench.record(call_id)
    assert isinstance(record.state, Waiting) and record.pending_yes is not None
    assert record.pending_yes.by.who == "pixel"
    row = (await bench.phones.phone_calls(token)).rows[0]
    assert row.yes_until == record.pending_yes.until
    await bench.supervisor.withdraw_yes(call_id, DESK)
    assert await still_waits(bench, call_id)
    with pytest.raises(Refused, match="no phone has said yes"):
        await bench.supervisor.withdraw_yes(call_id, DESK)


async def test_the_desk_decides_first_while_a_yes_waits(bench: PhoneBench, key: Authenticator) -> None:
    bench.phones._yeses.undo_s = 3600.0
    token, call_id = await bench.pair(key), await bench.asked()
    await bench.say_yes(token, key, call_id)
    held, _ = bench.phones._yeses._held[call_id]
    await bench.deny(call_id, "no")
    assert bench.decided(call_id).by.surface == "library"
    assert call_id not in bench.supervisor.board.promised
    held.cancel()


async def test_a_yes_that_is_recorded_as_withdrawn_never_counts(bench: PhoneBench, key: Authenticator) -> None:
    bench.phones._yeses.undo_s = 0.05
    token, call_id = await bench.pair(key), await bench.asked()
    await bench.say_yes(token, key, call_id)
    task, _ = bench.phones._yeses._held[call_id]
    bench.supervisor._store.record(PhoneYes(at=bench.now, call_id=call_id, until=None, by=DESK))
    await asyncio.wait_for(task, 60)
    assert await still_waits(bench, call_id) and bench.phones._yeses._held == {}


async def test_the_end_of_a_withdrawn_yes_leaves_the_next_one_alone(bench: PhoneBench, key: Authenticator) -> None:
    bench.phones._yeses.undo_s = 3600.0
    token, call_id = await bench.pair(key), await bench.asked()
    await bench.say_yes(token, key, call_id)
    seen = (await bench.card(token, call_id)).seen
    first, _ = bench.phones._yeses._held[call_id]
    challenge = bench.phones._yeses.ask(bench.phones._phone(token), call_id, "approve", seen)
    # Without a pause in between: the task of the first has not ended yet.
    bench.phones._yeses.withdraw(call_id, DESK)
    bench.phones._yeses.take(bench.phones._phone(token), challenge.nonce, key.assertion(challenge.options))
    second, _ = bench.phones._yeses._held[call_id]
    await asyncio.wait({first}, timeout=60)
    assert bench.phones._yeses._held[call_id][0] is second
    bench.phones._yeses.withdraw(call_id, DESK)
    await asyncio.wait({second}, timeout=60)
    assert second.cancelled() and await still_waits(bench, call_id)


async def test_setting_a_call_aside_withdraws_a_yes(bench: PhoneBench, key: Authenticator) -> None:
    bench.phones._yeses.undo_s = 3600.0
    token, call_id = await bench.pair(key), await bench.asked()
    await bench.say_yes(token, key, call_id)
    await bench.supervisor.set_aside(call_id, DESK)
    assert await still_waits(bench, call_id)


async def test_what_changes_while_a_yes_waits_is_not_started(bench: PhoneBench, key: Authenticator) -> None:
    bench.phones._yeses.undo_s = 0.05
    token, call_id = await bench.pair(key), await bench.asked()
    await bench.say_yes(token, key, call_id)
    await judged_anew(bench, call_id)
    await bench.eventually(call_id, lambda record: record.pending_yes is None)
    assert await still_waits(bench, call_id)
    withdrawn = [event for event in bench.events(call_id) if isinstance(event, PhoneYes)][-1]
    assert withdrawn.until is None and "has changed" in withdrawn.by.who


async def test_a_yes_that_cannot_be_journaled_is_withdrawn_once_it_can(bench: PhoneBench, key: Authenticator) -> None:
    token, call_id = await bench.pair(key), await bench.asked()
    await bench.say_yes(token, key, call_id)
    blocker = sqlite3.connect(bench.home.state / "journal.sqlite")
    blocker.execute("BEGIN IMMEDIATE")
    bench.supervisor._store.journal._db.execute("PRAGMA busy_timeout = 1")
    async with asyncio.timeout(60):
        while call_id in bench.phones._yeses._held:
            await asyncio.sleep(0.005)
    blocker.rollback()
    blocker.close()
    await bench.eventually(call_id, lambda record: record.pending_yes is None)
    assert await still_waits(bench, call_id)
    await bench.say_yes(token, key, call_id)
    await bench.ordered(call_id)


async def test_a_yes_that_waited_does_not_count_after_a_restart(bench: PhoneBench, key: Authenticator) -> None:
    bench.phones._yeses.undo_s = 3600.0
    token, call_id = await bench.pair(key), await bench.asked()
    await bench.say_yes(token, key, call_id)
    await bench.restart()
    assert await still_waits(bench, call_id)
    assert bench.supervisor.board.promised == {}


async def test_the_first_of_two_phones_wins(bench: PhoneBench, key: Authenticator) -> None:
    bench.phones._yeses.undo_s = 3600.0
    other = Authenticator(credential_id=b"another credential")
    token, second = await bench.pair(key), await bench.pair(other, "tablet")
    call_id = await bench.asked()
    seen = (await bench.card(token, call_id)).seen
    one = await bench.phones.phone_begin(token, call_id, "approve", seen)
    two = await bench.phones.phone_begin(second, call_id, "approve", seen)
    with pytest.raises(NotAllowed):
        await bench.phones.phone_decide(second, two.nonce, key.assertion(two.options))
    two = await bench.phones.phone_begin(second, call_id, "approve", seen)
    await bench.phones.phone_decide(token, one.nonce, key.assertion(one.options))
    with pytest.raises(AlreadyDecided, match="pixel has said yes"):
        await bench.phones.phone_decide(second, two.nonce, other.assertion(two.options))
    assert "pixel has said yes already" in (await bench.card(second, call_id)).why_not


async def test_a_request_of_one_phone_is_not_answered_by_another(bench: PhoneBench, key: Authenticator) -> None:
    other = Authenticator(credential_id=b"another credential")
    token, second = await bench.pair(key), await bench.pair(other, "tablet")
    call_id = await bench.asked()
    seen = (await bench.card(token, call_id)).seen
    challenge = await bench.phones.phone_begin(token, call_id, "approve", seen)
    with pytest.raises(NotAllowed):
        await bench.phones.phone_decide(second, challenge.nonce, other.assertion(challenge.options))
    assert await still_waits(bench, call_id)


async def test_a_request_to_apply_is_no_request_to_approve(bench: PhoneBench, key: Authenticator) -> None:
    token, call_id = await bench.pair(key), await bench.asked()
    seen = (await bench.card(token, call_id)).seen
    with pytest.raises(NotAllowed, match="has no preview"):
        await bench.phones.phone_begin(token, call_id, "apply", seen)


async def test_calls_that_do_not_wait_are_not_shown(bench: PhoneBench, key: Authenticator) -> None:
    token, call_id = await bench.pair(key), await bench.asked()
    await bench.deny(call_id, "no")
    with pytest.raises(AlreadyDecided, match=rf"call {call_id} was denied by tester \(library\), and is ended"):
        await bench.card(token, call_id)
    with pytest.raises(UnknownCall):
        await bench.card(token, "999")


async def test_a_page_learns_of_changes(bench: PhoneBench, key: Authenticator) -> None:
    token = await bench.pair(key)
    revision = (await bench.phones.phone_calls(token)).revision
    waiting = asyncio.create_task(bench.phones.phone_wait(token, revision))
    call_id = await bench.asked()
    assert await asyncio.wait_for(waiting, 60) > revision
    assert [row.id for row in (await bench.phones.phone_calls(token)).rows] == [call_id]


def mutated(text: str, chance: random.Random) -> str:
    """The answer with a byte of one of its parts changed, or two of its parts exchanged."""
    content = json.loads(text)
    parts = [(content["response"], name) for name in content["response"]]
    parts += [(content, name) for name in ("id", "rawId", "type", "authenticatorAttachment")]
    match chance.randrange(3):
        case 0:
            holder, name = chance.choice(parts)
            at = chance.randrange(len(holder[name]))
            other = chance.choice([each for each in "ABCabc019-_" if each != holder[name][at]])
            holder[name] = holder[name][:at] + other + holder[name][at + 1 :]
        case 1:
            (one, name), (two, other) = chance.sample(parts, 2)
            if one[name] == two[other]:
                content["response"]["signature"] = content["id"]
            else:
                one[name], two[other] = two[other], one[name]
        case _:
            data = bytearray(json.dumps(content).encode())
            at = chance.randrange(len(data))
            data[at] ^= 1 << chance.randrange(7)
            return data.decode("utf-8", "replace")
    return json.dumps(content)


async def test_none_of_200_changed_answers_is_accepted(bench: PhoneBench, key: Authenticator) -> None:
    token, call_id, chance = await bench.pair(key), await bench.asked(), random.Random(42)
    seen, accepted = (await bench.card(token, call_id)).seen, []
    for number in range(200):
        asked = bench.phones._yeses.ask(bench.phones._phone(token), call_id, "approve", seen)
        answer = mutated(key.assertion(asked.options), chance)
        try:
            await bench.phones.phone_decide(token, asked.nonce, answer)
        except WhisperError:
            continue
        accepted.append((number, answer))
    assert accepted == []
    assert await still_waits(bench, call_id)
    await bench.say_yes(token, key, call_id)
    await bench.ordered(call_id)
