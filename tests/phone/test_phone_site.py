"""The page of a phone over HTTP: who is answered, with which headers, and how a phone is known."""

import asyncio
import base64
import json
from typing import Any

import pytest

from tests.in_memory.phone import CODE, PhoneInMemory, waiting_call
from tests.phone.served_page import BOUND_S, Site, site
from tests.rows import each_row
from whisper_tui.model.errors import Unavailable
from whisper_tui.transports.phone import phone_site
from whisper_tui.transports.phone.phone_site import FILES, LARGEST, PhoneSite

__all__ = ["site"]
PAIRING: dict[str, Any] = {"code": CODE, "name": "Pixel"}
CREDENTIAL = '{"id": "a", "response": {"attestationObject": "b"}}'
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    "img-src": "'self'",
    "manifest-src": "'self'",
    "worker-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}


def policy(headers: Any) -> dict[str, str]:
    return dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))


async def test_each_answer_forbids_copies_frames_markup_and_other_origins(site: Site) -> None:
    answers = [await site.get(path) for path in FILES]
    answers += [await site.get("/nothing"), await site.get("/", Host="evil.example")]
    answers += [await site.post("phone_calls"), await site.post("phone_pair_begin", PAIRING)]
    for _, _, headers in answers:
        assert policy(headers) == POLICY
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Opener-Policy"] == headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["X-Frame-Options"] == "DENY"
        assert "Access-Control-Allow-Origin" not in headers


async def test_the_shell_is_served_with_its_types_and_names_no_other_origin(site: Site) -> None:
    for path, (_, kind) in FILES.items():
        status, text, headers = await site.get(path)
        assert (status, headers["Content-Type"]) == (200, kind)
        found = {piece.split('"')[0].split("'")[0] for piece in text.split("http")[1:] if piece.startswith(("s:", ":"))}
        assert found <= {"://www.w3.org/2000/svg"}, path  # the name of SVG's elements
    _, page, _ = await site.get("/")
    assert "<script>" not in page and "style=" not in page and "onclick" not in page


async def test_the_script_makes_no_markup_of_text(site: Site) -> None:
    _, script, _ = await site.get("/page.js")
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser"):
        assert way not in script


async def test_the_worker_keeps_the_shell_and_nothing_else(site: Site) -> None:
    _, script, _ = await site.get("/worker.js")
    kept = script.split("SHELL = [")[1].split("]")[0].replace("'", "").split(", ")
    assert set(kept) == {"/", "/page.js", "/page.css", "/icon.svg", "/manifest.webmanifest"}


HOSTS = ("127.0.0.1", "localhost", "evil.example", "desk.localhost", "desk.localhost.evil.example")


@each_row("host", HOSTS)
def test_another_name_is_refused_with_the_right_one(host: str) -> None:
    async def asked() -> None:
        answer = await answered(PhoneSite(PhoneInMemory(), "https://desk.example"), "/", host=host)
        assert answer[0] == 403 and b"https://desk.example" in answer[1]

    asyncio.run(asked())


async def answered(asked: PhoneSite, path: str, **headers: str) -> tuple[int, bytes]:
    """What the site answers to a GET, without a server."""
    said: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        said.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    given = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "GET", "path": path, "headers": given, "query_string": b"", "server": ("x", 1)}
    await asked(scope, receive, send)
    return said[0]["status"], said[1]["body"]


async def test_the_usual_port_may_be_named_and_capitals_do_not_matter() -> None:
    site = PhoneSite(PhoneInMemory(), "https://Desk.example:443/")
    for host in ("desk.example", "desk.example:443", "DESK.example"):
        assert (await answered(site, "/", host=host))[0] == 200
    assert (await answered(site, "/", host="desk.example:80"))[0] == 403


async def test_only_the_own_page_may_ask(site: Site) -> None:
    site.token = site.supervisor.pair()
    assert (await site.post("phone_calls"))[0] == 200
    assert (await site.post("phone_calls", Sec_Fetch_Site="same-origin"))[0] == 200
    for other in ("http://evil.example", "null", f"{site.origin}.evil.example", site.origin.replace("http", "https")):
        assert (await site.post("phone_calls", Origin=other))[0] == 403
    assert (await site.post("phone_calls", Origin=None))[0] == 403
    for fetched in ("cross-site", "same-site", "none"):
        assert (await site.post("phone_calls", Sec_Fetch_Site=fetched))[0] == 403
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert (await site.post("phone_calls", Content_Type=kind))[0] == 415
    assert (await site.get("/api/phone_calls", Origin=site.origin))[0] == 405


async def test_a_request_is_bounded_and_has_to_be_what_the_operation_takes(site: Site) -> None:
    site.token = site.supervisor.pair()
    assert (await site.post("phone_calls", b" " * LARGEST + b"{}"))[0] == 413
    for body in (b"", b"[]", b"{", b'{"device": "token"}', b'{"more": 1}', b"\xff"):
        status, told, _ = await site.post("phone_calls", body)
        assert (status, told["error"]["kind"]) == (400, "invalid_request")
    assert (await site.post("phone_call", {"call_id": "../7"}))[0] == 400
    assert (await site.post("phone_call", {"call_id": "7"}))[0] == 404


async def test_only_the_operations_of_a_phone_are_there(site: Site) -> None:
    site.token = site.supervisor.pair()
    for name in ("decide", "phone_confirm", "phone_pairing_open", "phone_revoke", "__init__", "phone_calls/", ""):
        assert (await site.post(name, {}))[0] == 404


async def test_without_the_secret_of_a_phone_nothing_is_shown(site: Site) -> None:
    await site.supervisor.put(waiting_call())
    site.supervisor.pair()
    asked = {"call_id": "7", "seen": waiting_call().seen}
    for name, body in {
        "phone_device": {},
        "phone_calls": {},
        "phone_call": {"call_id": "7"},
        "phone_wait": {"since": 1},
        "phone_begin": {**asked, "decision": "approve"},
        "phone_refuse": {**asked, "decision": "deny"},
        "phone_decide": {"nonce": "n", "assertion": "{}"},
    }.items():
        status, told, _ = await site.post(name, body)
        assert (status, told["error"]["kind"]) == (401, "not_paired"), name
        status, told, headers = await site.post(name, body, Cookie="whisper-phone=guessed")
        assert (status, told["error"]["kind"]) == (401, "unknown_phone"), name
        assert "Max-Age=0" in headers["Set-Cookie"]
    assert site.supervisor.taken == []


async def test_the_secret_is_in_a_cookie_that_no_script_and_no_other_site_gets(site: Site) -> None:
    status, told, headers = await site.post("phone_pair", {**PAIRING, "attestation": CREDENTIAL})
    (token,) = site.supervisor.devices
    assert (status, told["name"]) == (200, "Pixel") and token not in str(told)
    name, *facts = headers["Set-Cookie"].split("; ")
    assert name == f"whisper-phone={token}"
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} < set(facts) and not any(
        fact.startswith("Domain") for fact in facts
    )
    assert (await site.post("phone_calls", Cookie=f"whisper-phone={token}"))[0] == 200
    secure = PhoneSite(PhoneInMemory(), "https://desk.example")
    assert secure._set_cookie("t", 9) == "__Host-whisper-phone=t; Path=/; Max-Age=9; HttpOnly; SameSite=Strict; Secure"


async def test_who_signs_in_gets_a_new_cookie_and_needs_none(site: Site) -> None:
    lost = site.supervisor.pair()
    begun = (await site.post("phone_sign_in_begin"))[1]
    client = base64.urlsafe_b64encode(json.dumps({"challenge": begun["challenge"]}).encode()).decode()
    signed = json.dumps({"response": {"clientDataJSON": client}})
    status, told, headers = await site.post("phone_sign_in", {"nonce": begun["nonce"], "assertion": signed})
    (token,) = site.supervisor.devices
    assert (status, told["name"]) == (200, "a phone") and token not in str(told) and token != lost
    assert headers["Set-Cookie"].startswith(f"whisper-phone={token}; ")
    assert (await site.post("phone_calls", Cookie=f"whisper-phone={lost}"))[0] == 401
    assert (await site.post("phone_sign_in_begin", Origin="https://evil.example"))[0] == 403


OWN = "203.0.113.7"


@pytest.mark.parametrize(
    ("forwarded", "status"),
    [
        ("203.0.113.8", 200),
        ("203.0.113.7, 203.0.113.8", 200),
        ("203.0.113.8, 127.0.0.1", 200),
        ("2001:db8::1", 200),
        ("unknown", 200),
        ("", 200),
        (OWN, 403),
        (f"203.0.113.8, {OWN}", 403),
        (f"{OWN}, 127.0.0.1, ::1", 403),
        (f"::ffff:{OWN}", 403),
        ("127.0.0.1", 403),
        ("::1", 403),
    ],
)
async def test_a_browser_of_the_machine_itself_neither_pairs_nor_signs_in(
    site: Site, monkeypatch: pytest.MonkeyPatch, forwarded: str, status: int
) -> None:
    monkeypatch.setattr(phone_site, "is_own_address", lambda address: address in {OWN, "127.0.0.1", "::1"})
    for name, body in (("phone_pair_begin", PAIRING), ("phone_sign_in_begin", {})):
        answer = await site.post(name, body, X_Forwarded_For=forwarded)
        assert answer[0] == status
        if status == 403:
            assert answer[1]["error"]["message"] == "This browser runs on the machine that shows the page"
    # A phone that is paired goes on as before.
    site.token = site.supervisor.pair()
    assert (await site.post("phone_calls", X_Forwarded_For=forwarded))[0] == 200


async def test_a_phone_that_may_not_approve_yet_is_not_forgotten(site: Site) -> None:
    site.token = site.supervisor.pair()
    call = waiting_call(may=("deny",), why_not="This phone may approve from 14:00 on.")
    await site.supervisor.put(call)
    begun = await site.post("phone_begin", {"call_id": "7", "decision": "approve", "seen": call.seen})
    assert begun[0] == 403 and begun[1]["error"]["message"] == call.why_not and "Set-Cookie" not in begun[2]


async def test_a_call_that_changed_or_was_decided_says_so(site: Site) -> None:
    site.token = site.supervisor.pair()
    call = waiting_call()
    await site.supervisor.put(waiting_call(command="rm -rf ~"))
    asked = {"call_id": "7", "seen": call.seen, "decision": "deny"}
    status, told, _ = await site.post("phone_refuse", asked)
    assert (status, told["error"]["kind"]) == (409, "changed_since_seen")
    now = (await site.post("phone_call", {"call_id": "7"}))[1]
    assert (await site.post("phone_refuse", {**asked, "seen": now["seen"], "reason": "no"}))[0] == 200
    assert site.supervisor.taken == [("7", "deny", "no")]
    status, told, _ = await site.post("phone_refuse", asked)
    assert (status, told["error"]["kind"]) == (409, "already_decided")


async def test_a_phone_can_approve_nothing_by_refusing(site: Site) -> None:
    site.token = site.supervisor.pair()
    await site.supervisor.put(call := waiting_call())
    assert (await site.post("phone_refuse", {"call_id": "7", "seen": call.seen, "decision": "approve"}))[0] == 400


async def test_codes_cannot_be_tried_without_end(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phone_site, "ATTEMPT_EVERY_S", 3600.0)
    said = [(await site.post("phone_pair_begin", {**PAIRING, "code": f"wrong-{n}"}))[0] for n in range(12)]
    assert said == [403] * phone_site.ATTEMPTS + [429] * (12 - phone_site.ATTEMPTS)


async def test_attempts_to_pair_are_allowed_again_after_a_while() -> None:
    now = [0.0]
    site = PhoneSite(PhoneInMemory(), "https://desk.example", clock=lambda: now[0])
    for _ in range(phone_site.ATTEMPTS):
        site._take_attempt()
    with pytest.raises(phone_site.PhoneRefusal):
        site._take_attempt()
    now[0] += phone_site.ATTEMPT_EVERY_S
    site._take_attempt()


async def test_a_wait_is_answered_by_what_happens_and_their_number_is_bounded(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.token = site.supervisor.pair()
    monkeypatch.setattr(phone_site, "MOST_WAITS", 1)
    since = (await site.post("phone_calls"))[1]["revision"]
    waits = asyncio.create_task(site.post("phone_wait", {"since": since}))
    async with asyncio.timeout(BOUND_S):
        # Until the first one waits, others are answered at once.
        while (await site.post("phone_wait", {"since": since - 1}))[0] != 429:
            await asyncio.sleep(0.01)
    await site.supervisor.put(waiting_call())
    assert (await waits)[:2] == (200, since + 1)


async def test_a_page_that_leaves_waits_no_more(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.token = site.supervisor.pair()
    began, ended = asyncio.Event(), asyncio.Event()

    async def wait(device: str, since: int) -> int:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return since

    monkeypatch.setattr(site.supervisor, "phone_wait", wait)
    page = asyncio.create_task(site.post("phone_wait", {"since": 1}))
    await asyncio.wait_for(began.wait(), BOUND_S)
    page.cancel()
    await asyncio.wait_for(ended.wait(), BOUND_S)


async def test_a_supervisor_that_is_away_is_an_answer_of_its_own(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.token = site.supervisor.pair()

    async def calls(device: str) -> None:
        raise Unavailable("no supervisor runs", hint="Start one")

    monkeypatch.setattr(site.supervisor, "phone_calls", calls)
    status, told, _ = await site.post("phone_calls")
    assert status == 503 and told["error"] == {
        "kind": "unavailable",
        "message": "no supervisor runs",
        "hint": "Start one",
    }


HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)</script>{{7*7}}\u2028</script>'


async def test_hostile_text_is_data_in_json(site: Site) -> None:
    site.token = site.supervisor.pair()
    await site.supervisor.put(waiting_call(command=HOSTILE, verdict=HOSTILE, session=HOSTILE, description=HOSTILE))
    _, calls, headers = await site.post("phone_calls")
    assert headers["Content-Type"] == "application/json" and calls["rows"][0]["command"] == HOSTILE
