"""A paired phone whose secret is lost signs in by its passkey, and gains nothing else by it."""

import random
from typing import Any

import pytest

from tests.supervisor.phones.authenticator import MAY_SYNC, USER_PRESENT, USER_VERIFIED, Authenticator
from tests.supervisor.phones.conftest import DESK, ORIGIN, PhoneBench
from tests.supervisor.phones.test_pairing import write_into_file
from tests.supervisor.phones.test_yes import mutated
from whisper_tui.model.errors import NotAllowed, UnknownPhone
from whisper_tui.model.event import PhoneChanged
from whisper_tui.model.phone import PairedPhone
from whisper_tui.present.phone_notices import phone_sentence
from whisper_tui.supervisor.phones import phone_sign_in
from whisper_tui.supervisor.phones.phone_devices import WAIT_S
from whisper_tui.supervisor.phones.phone_sign_in import SIGN_IN_S


async def sign_in(bench: PhoneBench, key: Authenticator, **wrong: Any) -> PairedPhone:
    challenge = await bench.phones.phone_sign_in_begin()
    options = {**challenge.options, "rpId": key.origin.removeprefix("https://")}
    return await bench.phones.phone_sign_in(challenge.nonce, key.assertion(options, **wrong))


def told(bench: PhoneBench) -> list[PhoneChanged]:
    events = bench.supervisor._store.journal.events_after(0, 10_000)[0]
    return [event for event in events if isinstance(event, PhoneChanged)]


async def test_it_is_the_same_phone_with_another_secret(bench: PhoneBench, key: Authenticator) -> None:
    lost = await bench.pair(key)
    (before,) = await bench.phones.phone_devices()
    bench.now += 5
    signed_in = await sign_in(bench, key)
    assert signed_in.device == before.model_copy(update={"last_used": bench.now})
    assert await bench.phones.phone_devices() == (signed_in.device,)
    with pytest.raises(UnknownPhone, match="this phone is not paired"):
        await bench.phones.phone_calls(lost)
    call_id = await bench.asked()
    await bench.say_yes(signed_in.token, key, call_id)
    await bench.ordered(call_id)
    await bench.restart()
    await bench.phones.phone_calls(signed_in.token)


async def test_everybody_is_told_of_it(bench: PhoneBench, key: Authenticator) -> None:
    await bench.pair(key)
    await sign_in(bench, key)
    event = told(bench)[-1]
    assert event.signed_in and event.by.surface == "phone" and bench.supervisor.board.phones[event.device_id] == event
    said = "The phone pixel signed in again with its passkey. If that was not you, whisper-tui phone revoke pixel"
    assert phone_sentence(event) == f"{said} stops it."


async def test_the_request_names_no_key_and_needs_a_verified_user(bench: PhoneBench, key: Authenticator) -> None:
    await bench.pair(key)
    challenge = await bench.phones.phone_sign_in_begin()
    assert challenge.credential_ids == () and challenge.options["allowCredentials"] == []
    assert challenge.options["userVerification"] == "required"


@pytest.mark.parametrize(
    "wrong",
    [
        {"flags": USER_PRESENT},
        {"flags": USER_PRESENT | USER_VERIFIED | MAY_SYNC},
        {"rp_id": "evil.example"},
        {"origin": "https://evil.example"},
        {"origin": "http://box.example.ts.net"},
        {"challenge": "AAAA"},
        {"type": "webauthn.create"},
        {"cross_origin": True},
        {"user": b"another one"},
        {"credential_id": b"another one"},
        {"step": 0},
    ],
    ids="-".join,
)
async def test_a_wrong_signature_changes_nothing(bench: PhoneBench, key: Authenticator, wrong: dict[str, Any]) -> None:
    token, call_id = await bench.pair(key), await bench.asked()
    # The key has counted, so that a copy of it that counts no further shows.
    await bench.say_yes(token, key, call_id)
    (before,) = await bench.phones.phone_devices()
    with pytest.raises(NotAllowed):
        await sign_in(bench, key, **wrong)
    assert await bench.phones.phone_devices() == (before,) == (await bench.phones.phone_device(token),)
    assert not any(event.signed_in for event in told(bench))


async def test_the_key_of_somebody_else_is_not_that_of_the_phone(bench: PhoneBench, key: Authenticator) -> None:
    await bench.pair(key)
    # It names the paired key, and signs with its own.
    with pytest.raises(NotAllowed, match="was not accepted"):
        await sign_in(bench, Authenticator(user=key.user))
    with pytest.raises(UnknownPhone, match="no paired phone has this passkey"):
        await sign_in(bench, Authenticator(credential_id=b"never paired"))


async def test_none_of_200_changed_answers_is_accepted(bench: PhoneBench, key: Authenticator) -> None:
    token, chance = await bench.pair(key), random.Random(43)
    for _ in range(200):
        challenge = await bench.phones.phone_sign_in_begin()
        signed = key.assertion({**challenge.options, "rpId": "box.example.ts.net"})
        with pytest.raises(NotAllowed):
            await bench.phones.phone_sign_in(challenge.nonce, mutated(signed, chance))
    assert not any(event.signed_in for event in told(bench)) and await bench.phones.phone_count(token) == 0


async def test_a_request_is_answered_once_even_if_the_answer_was_wrong(bench: PhoneBench, key: Authenticator) -> None:
    await bench.pair(key)
    for wrong in ({}, {"flags": USER_PRESENT}):
        challenge = await bench.phones.phone_sign_in_begin()
        options = {**challenge.options, "rpId": "box.example.ts.net"}
        try:
            await bench.phones.phone_sign_in(challenge.nonce, key.assertion(options, **wrong))
        except NotAllowed:
            assert wrong
        with pytest.raises(NotAllowed, match="was answered already"):
            await bench.phones.phone_sign_in(challenge.nonce, key.assertion(options))


async def test_a_request_expires_and_a_restart_forgets_it(bench: PhoneBench, key: Authenticator) -> None:
    await bench.pair(key)
    challenge = await bench.phones.phone_sign_in_begin()
    signed = key.assertion({**challenge.options, "rpId": "box.example.ts.net"})
    bench.now += SIGN_IN_S
    with pytest.raises(NotAllowed, match="not signed within 120 seconds"):
        await bench.phones.phone_sign_in(challenge.nonce, signed)
    challenge = await bench.phones.phone_sign_in_begin()
    await bench.restart()
    with pytest.raises(NotAllowed, match="or the supervisor was restarted"):
        await bench.phones.phone_sign_in(challenge.nonce, signed)


async def test_a_signature_for_one_thing_is_none_for_the_other(bench: PhoneBench, key: Authenticator) -> None:
    token, call_id = await bench.pair(key), await bench.asked()
    seen = (await bench.card(token, call_id)).seen
    yes = await bench.phones.phone_begin(token, call_id, "approve", seen)
    enter = await bench.phones.phone_sign_in_begin()
    options = {**enter.options, "rpId": "box.example.ts.net"}
    with pytest.raises(NotAllowed, match="was answered already"):
        await bench.phones.phone_sign_in(yes.nonce, key.assertion(yes.options))
    with pytest.raises(NotAllowed, match="was answered already"):
        await bench.phones.phone_decide(token, enter.nonce, key.assertion(options))
    with pytest.raises(NotAllowed, match="was not accepted"):
        await bench.phones.phone_sign_in(enter.nonce, key.assertion(yes.options))
    with pytest.raises(NotAllowed, match="was not accepted"):
        await bench.phones.phone_decide(token, yes.nonce, key.assertion(options))


async def test_a_revoked_phone_stays_out(bench: PhoneBench, key: Authenticator) -> None:
    await bench.pair(key)
    await bench.phones.phone_revoke("pixel", DESK)
    with pytest.raises(UnknownPhone, match="pixel was revoked"):
        await sign_in(bench, key)
    assert told(bench)[-1].change == "revoked" and not told(bench)[-1].signed_in


async def test_a_phone_that_nobody_has_confirmed_stays_out(bench: PhoneBench, key: Authenticator) -> None:
    code = (await bench.phones.phone_pairing_open(ORIGIN)).code
    options = (await bench.phones.phone_pair_begin(code, "pixel")).options
    await bench.phones.phone_pair(code, "pixel", key.attestation(options))
    with pytest.raises(UnknownPhone, match="no paired phone"):
        await sign_in(bench, key)


async def test_a_new_phone_waits_as_long_as_before(bench: PhoneBench, key: Authenticator) -> None:
    await bench.pair(key, wait=False)
    call_id = await bench.asked()
    bench.now += WAIT_S - 1
    token = (await sign_in(bench, key)).token
    card = await bench.card(token, call_id)
    assert card.may == ("deny", "set_aside")
    with pytest.raises(NotAllowed, match="This phone is new"):
        await bench.phones.phone_begin(token, call_id, "approve", card.seen)
    bench.now += 1
    assert "approve" in (await bench.card(token, call_id)).may


async def test_a_phone_that_has_to_be_confirmed_again_still_has_to(bench: PhoneBench, key: Authenticator) -> None:
    await bench.pair(key)
    call_id = await bench.asked()
    await bench.kill()
    token = (await sign_in(bench, key)).token
    for _ in range(2):
        assert not (await bench.phones.phone_device(token)).confirmed
        assert (await bench.card(token, call_id)).may == ("deny", "set_aside")
        # Whatever the file says: the journal has it.
        await bench.supervisor.close()
        write_into_file(bench, doubted=False)
        await bench.open()


async def test_requests_to_sign_in_are_few(
    bench: PhoneBench, key: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phone_sign_in, "MOST_BEGUN", 3)
    first = await bench.phones.phone_sign_in_begin()
    for _ in range(3):
        await bench.phones.phone_sign_in_begin()
    assert len(bench.phones._sign_ins._begun) == 3
    with pytest.raises(NotAllowed, match="was answered already"):
        await bench.phones.phone_sign_in(first.nonce, "{}")
