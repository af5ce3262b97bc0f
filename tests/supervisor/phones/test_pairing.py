"""Phones are paired at the desk alone, wait before they may approve, and are revoked at once."""

import json
import stat
from pathlib import Path

import pytest

from tests.supervisor.phones.authenticator import MAY_SYNC, USER_PRESENT, USER_VERIFIED, Authenticator
from tests.supervisor.phones.conftest import DESK, ORIGIN, PhoneBench
from whisper_tui.model import board as boards
from whisper_tui.model.board import Board
from whisper_tui.model.errors import NotAllowed, Refused
from whisper_tui.model.event import PhoneChanged
from whisper_tui.supervisor.phones.phone_devices import WAIT_S
from whisper_tui.supervisor.phones.phone_pairing import OPEN_S


def announced(bench: PhoneBench) -> list[tuple[str, str]]:
    """What was told about phones, with their names."""
    events = bench.supervisor._store.journal.events_after(0, 10_000)[0]
    return [(event.change, event.name) for event in events if isinstance(event, PhoneChanged)]


async def test_a_phone_is_paired_once_the_desk_has_confirmed_it(bench: PhoneBench, key: Authenticator) -> None:
    pairing = await bench.phones.phone_pairing_open(ORIGIN)
    assert pairing.url == f"{ORIGIN}/pair#{pairing.code}" and pairing.expires_in_s == OPEN_S
    written = pairing.code.lower().replace("-", " ").replace("0", "o").replace("1", "l")
    registration = await bench.phones.phone_pair_begin(written, "pixel")
    assert registration.options["rp"]["id"] == "box.example.ts.net"
    assert registration.options["authenticatorSelection"]["userVerification"] == "required"
    paired = await bench.phones.phone_pair(pairing.code, "pixel", key.attestation(registration.options))
    at_desk = await bench.phones.phone_pairing()
    assert at_desk.state == "key" and at_desk.device == paired.device
    assert not paired.device.confirmed and await bench.phones.phone_devices() == ()
    assert await bench.phones.phone_device(paired.token) == paired.device
    with pytest.raises(NotAllowed, match="is not paired"):
        await bench.phones.phone_calls(paired.token)
    device = await bench.phones.phone_confirm(paired.device.id, DESK, add=True)
    assert device.confirmed and device.words == paired.device.words
    assert await bench.phones.phone_devices() == (device,)
    assert (await bench.phones.phone_pairing()).state == "closed"
    assert announced(bench) == [("paired", "pixel")]
    assert bench.supervisor.board.phones[device.id].by == DESK


async def test_the_file_of_the_phones_is_private_and_holds_no_secret(bench: PhoneBench, key: Authenticator) -> None:
    token = await bench.pair(key)
    path = Path(bench.home.state) / "phones.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert token not in path.read_text()


async def test_the_desk_can_refuse_a_phone(bench: PhoneBench, key: Authenticator) -> None:
    code = (await bench.phones.phone_pairing_open(ORIGIN)).code
    options = (await bench.phones.phone_pair_begin(code, "pixel")).options
    paired = await bench.phones.phone_pair(code, "pixel", key.attestation(options))
    await bench.phones.phone_confirm(paired.device.id, DESK, add=False)
    assert await bench.phones.phone_devices() == () and announced(bench) == []
    with pytest.raises(NotAllowed):
        await bench.phones.phone_device(paired.token)
    with pytest.raises(Refused):
        await bench.phones.phone_confirm(paired.device.id, DESK, add=True)


async def test_nothing_is_paired_without_a_pairing_at_the_desk(bench: PhoneBench) -> None:
    with pytest.raises(NotAllowed, match="no pairing is open"):
        await bench.phones.phone_pair_begin("ABCDE-FGHJK", "pixel")


async def test_five_wrong_codes_close_a_pairing(bench: PhoneBench) -> None:
    code = (await bench.phones.phone_pairing_open(ORIGIN)).code
    wrong = "00000-00000" if not code.startswith("00000") else "11111-11111"
    for _ in range(4):
        with pytest.raises(NotAllowed, match=r"the code is wrong$"):
            await bench.phones.phone_pair_begin(wrong, "pixel")
    with pytest.raises(NotAllowed, match="5th time"):
        await bench.phones.phone_pair_begin("é", "pixel")
    with pytest.raises(NotAllowed, match="no pairing is open: 5 wrong codes came"):
        await bench.phones.phone_pair_begin(code, "pixel")


async def test_a_code_expires_and_so_does_a_phone_that_nobody_confirms(bench: PhoneBench, key: Authenticator) -> None:
    code = (await bench.phones.phone_pairing_open(ORIGIN)).code
    bench.now += OPEN_S
    with pytest.raises(NotAllowed, match="its time is over"):
        await bench.phones.phone_pair_begin(code, "pixel")
    code = (await bench.phones.phone_pairing_open(ORIGIN)).code
    options = (await bench.phones.phone_pair_begin(code, "pixel")).options
    paired = await bench.phones.phone_pair(code, "pixel", key.attestation(options))
    bench.now += OPEN_S
    with pytest.raises(Refused):
        await bench.phones.phone_confirm(paired.device.id, DESK, add=True)
    assert await bench.phones.phone_devices() == ()


async def test_a_code_is_used_by_one_phone(bench: PhoneBench, key: Authenticator) -> None:
    code = (await bench.phones.phone_pairing_open(ORIGIN)).code
    options = (await bench.phones.phone_pair_begin(code, "pixel")).options
    await bench.phones.phone_pair(code, "pixel", key.attestation(options))
    with pytest.raises(NotAllowed, match="used this code already"):
        await bench.phones.phone_pair_begin(code, "other")


@pytest.mark.parametrize(
    "wrong",
    [
        {"flags": USER_PRESENT},
        {"rp_id": "evil.example"},
        {"origin": "https://evil.example"},
        {"challenge": "AAAA"},
        {"cross_origin": True},
    ],
    ids="-".join,
)
async def test_a_wrong_key_is_not_taken(bench: PhoneBench, key: Authenticator, wrong: dict[str, object]) -> None:
    code = (await bench.phones.phone_pairing_open(ORIGIN)).code
    options = (await bench.phones.phone_pair_begin(code, "pixel")).options
    with pytest.raises(NotAllowed):
        await bench.phones.phone_pair(code, "pixel", key.attestation(options, **wrong))
    assert (await bench.phones.phone_pairing()).state == "open"
    with pytest.raises(NotAllowed, match="no key was asked for"):
        await bench.phones.phone_pair(code, "pixel", key.attestation(options))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"id": 1}', "\ud800", '{"id":"a","id":"a"}'])
async def test_what_is_no_key_is_refused_in_a_sentence(bench: PhoneBench, text: str) -> None:
    code = (await bench.phones.phone_pairing_open(ORIGIN)).code
    await bench.phones.phone_pair_begin(code, "pixel")
    with pytest.raises(NotAllowed, match="this attestation cannot be read"):
        await bench.phones.phone_pair(code, "pixel", text)


@pytest.mark.parametrize("transports", [(), ("internal",)])
async def test_a_key_of_the_machine_that_shows_the_page_is_refused(
    bench: PhoneBench, transports: tuple[str, ...]
) -> None:
    key = Authenticator(origin="http://localhost:8765", transports=transports)
    with pytest.raises(NotAllowed, match="made on the machine that shows the page"):
        await bench.pair(key)
    phone = Authenticator(origin="http://localhost:8765", transports=("hybrid",))
    await bench.pair(phone)


async def test_a_synced_key_is_called_so(bench: PhoneBench) -> None:
    code = (await bench.phones.phone_pairing_open(ORIGIN)).code
    options = (await bench.phones.phone_pair_begin(code, "pixel")).options
    flags = USER_PRESENT | USER_VERIFIED | MAY_SYNC
    paired = await bench.phones.phone_pair(code, "pixel", Authenticator().attestation(options, flags=flags))
    assert paired.device.synced


async def test_a_new_phone_may_deny_and_not_approve_for_ten_minutes(bench: PhoneBench, key: Authenticator) -> None:
    token, call_id = await bench.pair(key, wait=False), await bench.asked()
    card = await bench.card(token, call_id)
    assert card.may == ("deny", "set_aside") and card.why_not.startswith("This phone is new")
    with pytest.raises(NotAllowed, match="This phone is new"):
        await bench.phones.phone_begin(token, call_id, "approve", card.seen)
    bench.now += WAIT_S - 1
    with pytest.raises(NotAllowed, match="This phone is new"):
        await bench.phones.phone_begin(token, call_id, "approve", card.seen)
    bench.now += 1
    await bench.say_yes(token, key, call_id)
    await bench.ordered(call_id)


async def test_a_revoked_phone_can_do_nothing_and_its_yes_is_withdrawn(bench: PhoneBench, key: Authenticator) -> None:
    bench.phones._yeses.undo_s = 3600.0
    token, first, second = await bench.pair(key), await bench.asked(), await bench.asked("touch", "x")
    await bench.say_yes(token, key, first)
    seen = (await bench.card(token, second)).seen
    challenge = await bench.phones.phone_begin(token, second, "approve", seen)
    await bench.phones.phone_revoke("pixel", DESK)
    assert (await bench.record(first)).pending_yes is None
    with pytest.raises(NotAllowed, match="pixel was revoked"):
        await bench.phones.phone_decide(token, challenge.nonce, key.assertion(challenge.options))
    with pytest.raises(NotAllowed, match="pixel was revoked"):
        await bench.phones.phone_refuse(token, second, "deny", seen)
    with pytest.raises(Refused, match="no phone 'pixel'"):
        await bench.phones.phone_revoke("pixel", DESK)
    assert announced(bench) == [("paired", "pixel"), ("revoked", "pixel")]


async def test_phones_are_known_after_a_restart_and_doubted_after_a_kill(bench: PhoneBench, key: Authenticator) -> None:
    token, call_id = await bench.pair(key), await bench.asked()
    await bench.restart()
    assert "approve" in (await bench.card(token, call_id)).may
    await bench.kill()
    card = await bench.card(token, call_id)
    assert card.may == ("deny", "set_aside") and "whisper-tui phone confirm pixel" in card.why_not
    with pytest.raises(NotAllowed):
        await bench.say_yes(token, key, call_id)
    await bench.restart()
    assert not (await bench.phones.phone_device(token)).confirmed
    await bench.phones.phone_confirm("pixel", DESK, add=True)
    await bench.say_yes(token, key, call_id)
    await bench.ordered(call_id)
    assert [change for change, _ in announced(bench)] == ["paired", "doubted", "confirmed"]


async def test_a_phone_that_was_written_into_the_file_counts_for_nothing_while_the_supervisor_runs(
    bench: PhoneBench, key: Authenticator
) -> None:
    await bench.pair(key)
    path = Path(bench.home.state) / "phones.json"
    forged = json.loads(path.read_text())
    forged[0] |= {"id": "forged", "token_digest": "0" * 64}
    path.write_text(json.dumps(forged))
    assert [device.name for device in await bench.phones.phone_devices()] == ["pixel"]
    await bench.phones.phone_revoke("pixel", DESK)
    assert "forged" not in path.read_text()


@pytest.mark.parametrize("name", [" ", "pixel ", "-x", "a\nb", "\x1b[2J", "pixel\u200b", "\u202elexip", "a\u3164"])
async def test_a_name_that_the_desk_cannot_read_or_write_is_refused(bench: PhoneBench, name: str) -> None:
    code = (await bench.phones.phone_pairing_open(ORIGIN)).code
    with pytest.raises(Refused, match="read and write"):
        await bench.phones.phone_pair_begin(code, name)


def write_into_file(bench: PhoneBench, **change: object) -> None:
    path = Path(bench.home.state) / "phones.json"
    path.write_text(json.dumps([{**each, **change} for each in json.loads(path.read_text())]))


@pytest.mark.parametrize(
    "change",
    [
        {"public_key": "pQECAyYg"},
        {"id": "p0"},
        {"may_approve_from": 0.0},
        {"origin": "https://b.example"},
        {"name": "b"},
    ],
)
async def test_a_phone_that_was_written_into_the_file_is_revoked(
    bench: PhoneBench, key: Authenticator, change: dict[str, object]
) -> None:
    token, call_id = await bench.pair(key), await bench.asked()
    await bench.supervisor.close()
    write_into_file(bench, **change)
    await bench.open()
    with pytest.raises(NotAllowed, match="was revoked"):
        await bench.card(token, call_id)
    with pytest.raises(Refused):
        await bench.phones.phone_confirm("pixel", DESK, add=True)
    assert announced(bench)[-1][0] == "revoked"
    await bench.restart()
    assert len(announced(bench)) == 2


async def test_a_phone_is_not_brought_back_by_its_file(bench: PhoneBench, key: Authenticator) -> None:
    token = await bench.pair(key)
    await bench.phones.phone_revoke("pixel", DESK)
    await bench.supervisor.close()
    write_into_file(bench, revoked_at=None)
    await bench.open()
    with pytest.raises(NotAllowed, match="was revoked"):
        await bench.phones.phone_calls(token)


async def test_a_phone_is_not_confirmed_by_its_file(bench: PhoneBench, key: Authenticator) -> None:
    token, call_id = await bench.pair(key), await bench.asked()
    await bench.kill()
    await bench.supervisor.close()
    write_into_file(bench, doubted=False)
    await bench.open()
    card = await bench.card(token, call_id)
    assert card.may == ("deny", "set_aside") and "confirm this phone at the desk" in card.why_not


async def test_a_cockpit_that_connects_later_knows_the_phones(bench: PhoneBench, key: Authenticator) -> None:
    await bench.pair(key)
    await bench.restart()
    board = Board()
    async for events in bench.supervisor.watch(None):
        board.apply_all(events)
        if not events:
            break
    assert [phone.name for phone in board.phones.values()] == ["pixel"]


async def test_however_many_phones_were_revoked_a_paired_one_stays_known(
    bench: PhoneBench, key: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boards, "PHONES_KEPT", 3)
    token = await bench.pair(key)
    for number in range(4):
        await bench.pair(Authenticator(credential_id=b"%d" % number), f"other {number}")
        await bench.phones.phone_revoke(f"other {number}", DESK)
    assert len(bench.supervisor.board.phones) == 3
    await bench.restart()
    assert (await bench.phones.phone_device(token)).confirmed


async def test_a_file_that_cannot_be_read_stops_all_phones(bench: PhoneBench, key: Authenticator) -> None:
    token = await bench.pair(key)
    (Path(bench.home.state) / "phones.json").write_text("{")
    await bench.restart()
    with pytest.raises(Refused, match="it is damaged"):
        await bench.phones.phone_calls(token)
    with pytest.raises(Refused, match="it is damaged"):
        await bench.phones.phone_pairing_open(ORIGIN)


async def test_names_are_unique_and_phones_are_few(bench: PhoneBench, key: Authenticator) -> None:
    await bench.pair(key)
    code = (await bench.phones.phone_pairing_open(ORIGIN)).code
    with pytest.raises(Refused, match="is called 'pixel' already"):
        await bench.phones.phone_pair_begin(code, "pixel")
