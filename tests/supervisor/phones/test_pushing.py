"""Phones ask for pushes, which are kept with them; the number that a push is about is told to them alone."""

import stat
from pathlib import Path

import pytest

from tests.supervisor.phones.authenticator import Authenticator
from tests.supervisor.phones.conftest import DESK, PhoneBench
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import InvalidRequest, Refused, UnknownPhone
from whisper_tui.model.push_endpoint import push_endpoint

ENDPOINT = "https://push.example/send/abc"


async def test_pushes_are_asked_for_and_asked_for_no_more(bench: PhoneBench, key: Authenticator) -> None:
    token = await bench.pair(key)
    assert (await bench.phones.phone_pushing(token)).endpoint == ""
    pushing = await bench.phones.phone_push_to(token, ENDPOINT)
    assert pushing.endpoint == ENDPOINT and (await bench.phones.phone_device(token)).pushed
    await bench.restart()
    assert await bench.phones.phone_pushing(token) == pushing
    assert [order.endpoint for order in bench.phones.push_orders()] == [ENDPOINT]
    await bench.phones.phone_push_to(token, "")
    assert not (await bench.phones.phone_device(token)).pushed and bench.phones.push_orders() == ()


async def test_only_a_paired_phone_asks_for_them(bench: PhoneBench, key: Authenticator) -> None:
    token = await bench.pair(key)
    await bench.phones.phone_revoke("pixel", DESK)
    for device in ("unknown", token):
        with pytest.raises(UnknownPhone):
            await bench.phones.phone_push_to(device, ENDPOINT)
        with pytest.raises(UnknownPhone):
            await bench.phones.phone_count(device)


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://push.example/x",
        "ftp://push.example/x",
        "https://127.0.0.1/x",
        "https://[::1]/x",
        "https://0x7f.1/x",
        "https://2130706433/x",
        "https://localhost/x",
        "https://push/x",
        "https://push.example./x",
        "https://user@push.example/x",
        "https://push.example:0/x",
        "https://push.example:99999/x",
        "https://push.example/x#y",
        "https://push.example/x y",
        "https://push.example/x\r\nX: y",
        "https://push.example\\@evil.example/x",
        "https://push.exämple/x",
        "https:///x",
        "file:///etc/passwd",
        "x",
        "https://push.example/" + "x" * 1_000,
    ],
)
async def test_what_is_no_address_of_a_push_service_is_refused(
    bench: PhoneBench, key: Authenticator, endpoint: str
) -> None:
    token = await bench.pair(key)
    with pytest.raises(InvalidRequest, match="no address of a push service"):
        await bench.phones.phone_push_to(token, endpoint)
    assert bench.phones.push_orders() == ()


def test_the_addresses_of_the_usual_services_are_taken() -> None:
    for host in (
        "fcm.googleapis.com",
        "updates.push.services.mozilla.com",
        "web.push.apple.com",
        "a.notify.windows.com",
    ):
        assert push_endpoint(f"https://{host}/send/a_b-c:d%3D?e=f").target == "/send/a_b-c:d%3D?e=f"
    assert push_endpoint("https://push.example").target == "/"
    assert push_endpoint("https://push.example:8443/").origin == "https://push.example:8443"


async def test_the_number_leaves_out_what_is_set_aside_or_decided(bench: PhoneBench, key: Authenticator) -> None:
    token = await bench.pair(key)
    assert await bench.phones.phone_count(token) == 0
    one, other, _ = [await bench.asked("make", name) for name in ("one", "other", "third")]
    assert await bench.phones.phone_count(token) == 3
    await bench.supervisor.set_aside(one, Decider(surface="cockpit", who="ada"))
    await bench.deny(other, "no")
    assert await bench.phones.phone_count(token) == 1


async def test_notifications_begin_with_the_first_phone_that_wants_them(bench: PhoneBench, key: Authenticator) -> None:
    begun: list[str] = []
    token = await bench.pair(key)
    bench.phones.listen_pushed(lambda: begun.append("late"))
    await bench.phones.phone_push_to(token, "")
    assert begun == []
    await bench.phones.phone_push_to(token, ENDPOINT)
    assert begun == ["late"]
    await bench.restart()
    bench.phones.listen_pushed(lambda: begun.append("at once"))
    assert begun == ["late", "at once"]


async def test_the_key_is_private_and_stays_the_same(bench: PhoneBench, key: Authenticator) -> None:
    token = await bench.pair(key)
    made = (await bench.phones.phone_pushing(token)).key
    path = Path(bench.home.state) / "push-key.pem"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    await bench.restart()
    assert (await bench.phones.phone_pushing(token)).key == made
    path.write_text("damaged")
    await bench.restart()
    with pytest.raises(Refused, match="is damaged, so no phone is notified"):
        await bench.phones.phone_pushing(token)


async def test_a_phone_that_signs_in_again_is_woken_as_before(bench: PhoneBench, key: Authenticator) -> None:
    await bench.phones.phone_push_to(await bench.pair(key), ENDPOINT)
    challenge = await bench.phones.phone_sign_in_begin()
    signed = key.assertion({**challenge.options, "rpId": "box.example.ts.net"})
    paired = await bench.phones.phone_sign_in(challenge.nonce, signed)
    assert (await bench.phones.phone_pushing(paired.token)).endpoint == ENDPOINT
