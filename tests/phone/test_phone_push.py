"""Phones are woken by requests that say nothing, to services that are on the internet and nowhere else."""

import asyncio
import socket
import ssl
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey

from tests.phone.push_service import NAME, PushService, push_service
from tests.phone.served_page import BOUND_S
from tests.supervisor.phones.authenticator import Authenticator, b64, unb64
from tests.supervisor.phones.conftest import DESK, PhoneBench, bench
from whisper_tui.model.push_endpoint import PushOrder
from whisper_tui.notify import phone_push
from whisper_tui.notify.phone_push import PhonePush
from whisper_tui.supervisor.phones.push_key import VALID_S
from whisper_tui.system import public_address
from whisper_tui.system.public_address import NotPublic, is_public, public_addresses

__all__ = ["bench"]


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[PushService]:
    async with push_service(tmp_path / "push") as made:
        yield made


@pytest.fixture
async def token(bench: PhoneBench, service: PushService) -> str:
    """A phone that wants pushes."""
    made = await bench.pair(Authenticator())
    await bench.phones.phone_push_to(made, f"{service.origin}/send/abc?x=1")
    return made


def channel(bench: PhoneBench, service: PushService) -> PhonePush:
    return PhonePush(bench.phones, addresses=service.addresses, tls=service.trust)


async def wanted(bench: PhoneBench, token: str) -> str:
    return (await bench.phones.phone_pushing(token)).endpoint


async def got(service: PushService, number: int = 1) -> list[tuple[str, dict[str, str], bytes]]:
    async with asyncio.timeout(BOUND_S):
        while len(service.got) < number:
            await asyncio.sleep(0.01)
    return service.got


async def test_a_push_has_no_content_and_a_signature_for_its_service(
    bench: PhoneBench, service: PushService, token: str
) -> None:
    await bench.asked("make", "the-secret-release")
    assert await channel(bench, service).ping() is None
    ((first, headers, body),) = await got(service)
    assert (first, body) == ("POST /send/abc?x=1 HTTP/1.1", b"")
    signed = headers.pop("Authorization")
    assert headers == {
        "host": f"{NAME}:{service.port}",
        "ttl": "43200",
        "urgency": "high",
        "topic": "calls",
        "content-length": "0",
        "connection": "close",
    }
    claims, key = signed.removeprefix("vapid t=").split(", k=")
    assert key == (await bench.phones.phone_pushing(token)).key
    public = EllipticCurvePublicKey.from_encoded_point(SECP256R1(), unb64(key))
    # By another implementation than the one that has signed.
    read = jwt.decode(claims, public, algorithms=["ES256"], audience=service.origin, options={"verify_exp": False})
    assert read == {"aud": service.origin, "exp": int(bench.now) + VALID_S, "sub": "https://box.example.ts.net"}
    forged = f"{claims.rpartition('.')[0]}.{b64(bytes(63) + bytes([1]))}"
    with pytest.raises(jwt.InvalidSignatureError):
        jwt.decode(forged, public, algorithms=["ES256"], options={"verify_exp": False, "verify_aud": False})
    with pytest.raises(jwt.InvalidAudienceError):
        jwt.decode(claims, public, algorithms=["ES256"], audience="https://evil.example", options={"verify_exp": False})


@pytest.mark.parametrize("status", [404, 410])
async def test_an_address_that_is_gone_is_forgotten(
    bench: PhoneBench, service: PushService, token: str, status: int
) -> None:
    service.answer = f"HTTP/1.1 {status} Gone\r\nContent-Length: 0\r\n\r\n".encode()
    assert await channel(bench, service).ping() is None
    assert await wanted(bench, token) == "" and not (await bench.phones.phone_device(token)).pushed
    await channel(bench, service).ping()
    assert len(await got(service)) == 1


async def test_an_address_that_was_replaced_meanwhile_is_kept(
    bench: PhoneBench, service: PushService, token: str
) -> None:
    (order,) = bench.phones.push_orders()
    await bench.phones.phone_push_to(token, f"{service.origin}/newer")
    bench.phones.push_gone(order)
    assert await wanted(bench, token) == f"{service.origin}/newer"


WRONG_ANSWERS = {
    "a redirection": (
        b"HTTP/1.1 301 Moved\r\nLocation: https://127.0.0.1/\r\nContent-Length: 0\r\n\r\n",
        "answered 301",
    ),
    "a refusal": (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "answered 403"),
    "no http": (b"SSH-2.0-OpenSSH\r\n\r\n", "no HTTP"),
    "no http, at length": (b"\x1b[2J" * 2_000 + b"\r\n\r\n", "no HTTP"),
    "endless": (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 20_000, "too long"),
    "endlessly informed": (b"HTTP/1.1 103 Early Hints\r\n\r\n" * 4_000, "too long"),
    "nothing": (b"", "no HTTP"),
}


@pytest.mark.parametrize("which", WRONG_ANSWERS)
async def test_a_service_that_does_not_take_it_is_a_problem_and_nothing_more(
    bench: PhoneBench, service: PushService, token: str, which: str
) -> None:
    service.answer, why = WRONG_ANSWERS[which]
    problem = await channel(bench, service).ping()
    assert problem is not None and problem.startswith(f"{NAME} ") and why in problem
    assert len(problem) < 300 and problem.isprintable()
    assert await wanted(bench, token) != ""


async def test_a_body_is_not_read(bench: PhoneBench, service: PushService, token: str) -> None:
    service.answer = b"HTTP/1.1 201 Created\r\nContent-Length: 999999999\r\n\r\n" + b"x" * 65_536
    assert await channel(bench, service).ping() is None


async def test_a_service_that_does_not_answer_is_left(
    bench: PhoneBench, service: PushService, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phone_push, "PUSH_S", 0.2)
    service.answers = False
    assert await channel(bench, service).ping() == f"{NAME} has not answered within 0.2 s"


async def test_a_certificate_has_to_be_that_of_the_service(bench: PhoneBench, service: PushService, token: str) -> None:
    problem = await PhonePush(bench.phones, addresses=service.addresses).ping()
    assert problem is not None and "certificate" in problem.lower()
    await bench.phones.phone_push_to(token, f"https://other.example:{service.port}/")

    problem = await PhonePush(bench.phones, addresses=lambda *_: ("127.0.0.1",), tls=service.trust).ping()
    assert problem is not None and "certificate" in problem.lower()
    assert service.got == []


ELSEWHERE = ("8.8.8.8", "2600:1f18::1", "64:ff9b::808:808")
NOT_PUBLIC = (
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.1.1",
    "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::1", "::", "::ffff:127.0.0.1", "::ffff:8.8.8.8",
    "::127.0.0.1", "fe80::1", "fec0::1", "fd00::1", "ff02::1", "64:ff9b::a00:1", "64:ff9b:1::1", "2002:a00:1::1",
    "2002:7f00:1::", "2001:0:1::1", "2001:db8::1", "5f00::1",
)  # fmt: skip


def test_only_addresses_of_the_internet_are_public() -> None:
    assert [address for address in ELSEWHERE if not is_public(address)] == []
    assert [address for address in NOT_PUBLIC if is_public(address)] == []


def names_lead_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    def look_up(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd7a:115c:a1e0::1"])
async def test_a_name_that_leads_inside_is_not_connected_to(
    bench: PhoneBench, service: PushService, token: str, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    # One public address beside it does not help.
    names_lead_to(monkeypatch, "8.8.8.8", address)
    problem = await PhonePush(bench.phones, addresses=public_addresses, tls=service.trust).ping()
    assert problem is not None and "is no address of another machine on the internet" in problem
    assert service.got == []


def test_a_public_address_of_this_machine_is_not_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    names_lead_to(monkeypatch, "127.0.0.1")
    monkeypatch.setattr(public_address, "is_public", lambda _: True)
    with pytest.raises(NotPublic):
        public_addresses("box.example", 443)
    monkeypatch.setattr(public_address, "is_own_address", lambda _: False)
    assert public_addresses("box.example", 443) == ("127.0.0.1",)


async def test_a_name_that_is_none_is_a_problem(
    bench: PhoneBench, service: PushService, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_up(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    problem = await PhonePush(bench.phones, addresses=public_addresses, tls=service.trust).ping()
    assert problem is not None and "Name or service not known" in problem


class Slow:
    """Phones whose orders take as long as a test lets them."""

    def __init__(self) -> None:
        self.rounds = 0
        self.go_on = threading.Event()

    def push_orders(self) -> tuple[PushOrder, ...]:
        self.rounds += 1
        return (PushOrder("p1", "https://push.example/", "vapid"),)

    def push_gone(self, order: PushOrder) -> None:
        raise AssertionError(order)

    def addresses(self, host: str, port: int) -> tuple[str, ...]:
        self.go_on.wait(BOUND_S)
        return ()


async def test_rounds_do_not_pile_up_and_the_last_call_has_one() -> None:
    phones = Slow()
    push = PhonePush(phones, addresses=phones.addresses, tls=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    pings = [asyncio.create_task(push.ping()) for _ in range(5)]
    async with asyncio.timeout(BOUND_S):
        while sum(ping.done() for ping in pings) < 3:
            await asyncio.sleep(0.01)
    assert phones.rounds == 1
    phones.go_on.set()
    await asyncio.wait_for(asyncio.gather(*pings), BOUND_S)
    assert phones.rounds == 2


async def test_a_revoked_phone_is_pushed_to_no_more(bench: PhoneBench, service: PushService, token: str) -> None:
    assert [phone.pushed for phone in await bench.phones.phone_devices()] == [True]
    await bench.phones.phone_revoke("pixel", DESK)
    assert bench.phones.push_orders() == () and await channel(bench, service).ping() is None
    assert service.got == []
    assert service.origin not in (Path(bench.home.state) / "phones.json").read_text()


async def test_phones_are_not_woken_and_everybody_is_told_why_once_the_extra_is_gone(
    bench: PhoneBench, service: PushService, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.utils", None)
    assert "extra `phone`" in (await channel(bench, service).ping() or "")
    assert service.got == []
