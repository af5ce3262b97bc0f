"""A browser decides over https at a real supervisor, with a passkey that is verified there."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.chromium import needs_chromium
from tests.outside import needs_overlays, outside_only
from tests.phone.served_page import BOUND_S, free_port
from tests.phone.test_phone_page import READ, Phone, may_notify, phone_at, pushed
from tests.phone.tls_front import tls_front
from tests.supervisor.phones.authenticator import Authenticator, unb64
from tests.supervisor.phones.conftest import DESK, PhoneBench, bench
from tests.supervisor.phones.test_applying import LivePhones
from whisper_tui.model.decision import Approve, Decider, Deny
from whisper_tui.model.state import Waiting
from whisper_tui.supervisor.phones.phone_devices import WAIT_S
from whisper_tui.supervisor.phones.phone_yes import SIGN_S
from whisper_tui.transports.phone.phone_site import serve
from whisper_tui.wire import server
from whisper_tui.wire.phone_client import PhoneClient

__all__ = ["bench"]
pytestmark = [needs_chromium, outside_only, pytest.mark.slow]

NAME = "phone.example"
FROM_ELSEWHERE = ("--ignore-certificate-errors", f"--host-resolver-rules=MAP {NAME} 127.0.0.1")
"""The name of the test leads to this machine, and its certificate is signed by nobody."""


class Socket:
    """The supervisor's socket, at which a page asks."""

    def __init__(self, bench: PhoneBench) -> None:
        self._bench = bench
        self._listening: server.Server | None = None

    async def open(self) -> None:
        bench = self._bench
        refused = bench.supervisor.attempt_refused
        self._listening = await server.serve(bench.supervisor, bench.home, {}, refused=refused, phones=bench.phones)

    async def close(self) -> None:
        assert self._listening is not None
        await self._listening.close()

    async def restart(self) -> None:
        """Have another supervisor in the place of this one."""
        await self.close()
        await self._bench.restart()
        await self.open()


@pytest.fixture
async def socket(bench: PhoneBench) -> AsyncIterator[Socket]:
    made = Socket(bench)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def phone(bench: PhoneBench, socket: Socket, tmp_path: Path) -> AsyncIterator[Phone]:
    async with phone_of(bench, tmp_path) as made:
        yield made


@asynccontextmanager
async def phone_of(bench: PhoneBench, directory: Path) -> AsyncIterator[Phone]:
    """A browser over https, and the page, at the socket of a supervisor."""
    behind, port = free_port(), free_port()
    origin = f"https://{NAME}:{port}"
    async with AsyncExitStack() as stack:
        role = await PhoneClient.connect(bench.home)
        stack.push_async_callback(role.close)
        ready = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(serve(role, origin=origin, port=behind, ready=ready.set_result))
        stack.push_async_callback(asyncio.wait, {serving}, timeout=BOUND_S)
        stack.callback(serving.cancel)
        await asyncio.wait_for(ready, BOUND_S)
        (directory / "tls").mkdir()
        await stack.enter_async_context(tls_front(NAME, port, behind, directory / "tls"))
        made = await stack.enter_async_context(phone_at(origin, directory / "profile", *FROM_ELSEWHERE))
        yield made
        assert [problem for problem in made.browser.problems if "Failed to load resource" not in problem] == []


async def paired(bench: PhoneBench, phone: Phone) -> None:
    """Pair it as people do, and let it be old enough to approve."""
    opened = await bench.phones.phone_pairing_open(phone.origin)
    await phone.browser.open(opened.url)
    await phone.until("document.getElementById('code')?.value")
    await phone.click("pair")
    await phone.says("Now confirm it at the desk")
    device = (await bench.phones.phone_pairing()).device
    assert device is not None
    for word in device.words:
        await phone.says(word)
    await bench.phones.phone_confirm(device.id, DESK, add=True)
    await phone.says("Nothing waits")
    bench.now += WAIT_S


async def test_a_phone_is_paired_approves_and_denies(bench: PhoneBench, phone: Phone) -> None:
    await paired(bench, phone)
    call_id = await bench.asked("make", "test")
    await phone.says("make test")
    await phone.look_at(int(call_id))
    for word in (await bench.card(await token(phone), call_id)).words:
        await phone.says(word)
    await phone.hold("approve")
    await phone.says("✔ Approved")
    await bench.ordered(call_id)
    decided = bench.decided(call_id)
    assert isinstance(decided.decision, Approve) and decided.by.surface == "phone"
    assert decided.proof is not None and decided.proof.assertion is not None
    call_id = await bench.asked("make", "clean")
    await phone.look_at(int(call_id))
    await phone.click("deny")
    await phone.browser.value("document.querySelector('.reason').click()")
    await phone.says("⊘ Denied")
    assert bench.decided(call_id).decision == Deny(reason="Not now.")


async def token(phone: Phone) -> str:
    """The secret of the phone, which no script of the page can read."""
    assert await phone.browser.value("document.cookie") == ""
    (cookie,) = (await phone.browser.tell("Network.getCookies"))["cookies"]
    assert (cookie["name"], cookie["httpOnly"], cookie["secure"]) == ("__Host-whisper-phone", True, True)
    assert cookie["sameSite"] == "Strict"
    found: str = cookie["value"]
    return found


@pytest.mark.parametrize("cookie", ["deleted", "expired"])
async def test_a_phone_without_its_cookie_is_in_again_by_its_passkey(
    bench: PhoneBench, phone: Phone, cookie: str
) -> None:
    await paired(bench, phone)
    lost, call_id = await token(phone), await bench.asked("make", "test")
    if cookie == "deleted":
        await phone.browser.tell("Network.clearBrowserCookies")
    else:
        about = {"name": "__Host-whisper-phone", "value": lost, "url": f"{phone.origin}/", "secure": True, "path": "/"}
        await phone.browser.tell("Network.setCookie", expires=1, httpOnly=True, **about)
    await phone.browser.open(f"{phone.origin}/#call/{call_id}")
    await phone.browser.tell("Page.reload")
    await phone.says("A phone that is paired signs in with its passkey.")
    assert not await phone.browser.value("document.body.innerText.includes('make test')")
    assert await phone.browser.value("document.querySelectorAll('.main-button').length") == 1
    await phone.verifies(user=False)
    await phone.click("sign-in")
    await phone.says("The phone did not confirm that it is you")
    assert (await phone.browser.tell("Network.getCookies"))["cookies"] == []
    await phone.verifies(user=True)
    await phone.click("sign-in")
    await phone.says("make test")
    assert await token(phone) != lost
    await phone.look_at(int(call_id))
    await phone.hold("approve")
    await bench.ordered(call_id)


async def test_a_push_wakes_the_worker_which_asks_for_the_number(bench: PhoneBench, phone: Phone) -> None:
    await may_notify(phone)
    await paired(bench, phone)
    await bench.asked("make", "one")
    await bench.asked("make", "two")
    await pushed(phone, "2 calls wait")


async def test_a_revoked_phone_does_not_sign_in_again(bench: PhoneBench, phone: Phone) -> None:
    await paired(bench, phone)
    await bench.phones.phone_revoke("Linux", DESK)
    await phone.click("sign-in")
    await phone.says("The phone Linux was revoked.")
    assert (await phone.browser.tell("Network.getCookies"))["cookies"] == []


BEGUN = """
async function yes (id, decision) {
  const { seen } = await ask('phone_call', { call_id: id })
  const { nonce, options } = await ask('phone_begin', { call_id: id, decision, seen })
  return { nonce, assertion: await signature(options) }
}
function flip (a) {
  const content = JSON.parse(a.assertion)
  const text = content.response.signature
  content.response.signature = text.slice(0, 20) + (text[20] === 'A' ? 'B' : 'A') + text.slice(21)
  a.assertion = JSON.stringify(content)
}
"""
SENT = "ask('phone_decide', {}).then(() => 'taken', problem => problem.message)"


async def test_a_yes_counts_once_for_one_call_and_only_from_a_user_who_was_verified(
    bench: PhoneBench, phone: Phone
) -> None:
    await paired(bench, phone)
    one, other = await bench.asked("make", "one"), await bench.asked("make", "other")
    await phone.look_at(int(one))

    async def said(expression: str) -> Any:
        return await phone.browser.value(f"(async () => {{ {BEGUN} {expression} }})()")

    # The signature of one yes for the nonce of another one.
    swapped = f"const a = await yes('{one}', 'approve'), b = await yes('{other}', 'approve')"
    sent = SENT.format("{ nonce: a.nonce, assertion: b.assertion }")
    assert await said(f"{swapped}; return {sent}") != "taken"
    assert await said(f"const a = await yes('{one}', 'approve'); flip(a); return {SENT.format('a')}") != "taken"
    await phone.verifies(user=False)
    await phone.hold("approve")
    await phone.says("The phone did not confirm that it is you")
    await phone.verifies(user=True)
    for call_id in (one, other):
        assert isinstance((await bench.record(call_id)).state, Waiting)
    sent = SENT.format("a")
    twice = await said(f"const a = await yes('{one}', 'approve'); return [await {sent}, await {sent}]")
    assert twice[0] == "taken" and twice[1] != "taken"
    await bench.ordered(one)


async def test_the_yes_of_somebody_elses_key_does_not_count(bench: PhoneBench, phone: Phone) -> None:
    await paired(bench, phone)
    theirs = Authenticator(origin=phone.origin)
    await bench.pair(theirs, "tablet")
    call_id = await bench.asked("make", "test")
    await phone.look_at(int(call_id))
    asked = f"""(async () => {{
        const {{ seen }} = await ask('phone_call', {{ call_id: '{call_id}' }})
        return ask('phone_begin', {{ call_id: '{call_id}', decision: 'approve', seen }})
    }})()"""
    # The key of the other phone, under its own name and under that of this one; and a key that is paired nowhere.
    for key, pretends in ((theirs, False), (theirs, True), (Authenticator(origin=phone.origin), True)):
        begun = await phone.browser.value(asked)
        (mine,) = begun["options"]["allowCredentials"]
        named = {"credential_id": unb64(mine["id"])} if pretends else {}
        forged = {"nonce": begun["nonce"], "assertion": key.assertion(begun["options"], **named)}
        assert await phone.browser.value(SENT.format(json.dumps(forged))) != "taken"
    assert isinstance((await bench.record(call_id)).state, Waiting)
    await phone.hold("approve")
    await bench.ordered(call_id)


async def test_a_card_has_nothing_to_edit_or_to_remember(bench: PhoneBench, phone: Phone) -> None:
    await paired(bench, phone)
    call_id = await bench.asked("make", "test")
    await phone.look_at(int(call_id))
    buttons = "[...document.querySelectorAll('button')].map(button => button.textContent)"
    assert (await phone.browser.value(buttons))[1:] == ["Deny", "Hold to approve", "Set aside"]
    fields = "document.querySelectorAll('input, textarea, select, [contenteditable]').length"
    assert await phone.browser.value(fields) == 0
    # The only field is for words to the agent.
    await phone.click("deny")
    assert await phone.browser.value(fields) == 1
    for operation in ("approve", "edit", "phone_edit", "add_rule"):
        assert await phone.browser.value(SENT.replace("phone_decide", operation).format("{}")) != "taken"
    assert isinstance((await bench.record(call_id)).state, Waiting)


@needs_overlays
async def test_what_a_real_preview_has_changed_is_applied_as_it_is_shown(tmp_path: Path) -> None:
    live = LivePhones(tmp_path)
    (live.workspace / "kept.txt").write_text("kept\n")
    await live.open()
    socket = Socket(live)
    await socket.open()
    try:
        async with phone_of(live, tmp_path) as phone:
            await paired(live, phone)
            call_id = await live.previewed("cat /proc/sys/kernel/random/uuid > uuid; rm kept.txt")
            await phone.look_at(int(call_id))
            for words in ("Preview: what it changed when it was tried", "uuid", "kept.txt"):
                await phone.says(words)
            shown = await phone.browser.value("document.querySelector('.diff > .added').textContent")
            assert (live.workspace / "kept.txt").exists() and not (live.workspace / "uuid").exists()
            await phone.browser.value(READ)
            await phone.hold("apply")
            await phone.says("✔ To be applied")
            await live.eventually(call_id, lambda record: not record.is_open)
        # A second run would have written another one.
        assert (live.workspace / "uuid").read_text().strip() == shown
        assert not (live.workspace / "kept.txt").exists()
        proof = live.decided(call_id).proof
        assert proof is not None and proof.decision == "apply"
    finally:
        await socket.close()
        await live.supervisor.close()


async def test_a_revoked_phone_is_told_so_and_shown_nothing(bench: PhoneBench, phone: Phone) -> None:
    await paired(bench, phone)
    await bench.asked("make", "secret")
    await phone.says("make secret")
    (device,) = await bench.phones.phone_devices()
    await bench.phones.phone_revoke(device.id, DESK)
    await phone.says("Pair this phone")
    assert not await phone.browser.value("document.body.innerText.includes('make secret')")
    assert (await phone.browser.tell("Network.getCookies"))["cookies"] == []


async def test_the_desk_can_withdraw_the_yes_of_a_phone(bench: PhoneBench, phone: Phone) -> None:
    bench.phones._yeses.undo_s = 600.0
    await paired(bench, phone)
    call_id = await bench.asked("make", "test")
    await phone.look_at(int(call_id))
    await phone.hold("approve")
    await phone.says("until then the desk can withdraw it")
    await bench.supervisor.withdraw_yes(call_id, Decider(surface="cockpit", who="ada"))
    await phone.says("The desk has withdrawn your yes.")
    assert isinstance((await bench.record(call_id)).state, Waiting)


async def test_of_two_phones_the_first_one_decides_and_the_other_one_is_told(bench: PhoneBench, phone: Phone) -> None:
    await paired(bench, phone)
    key = Authenticator()
    other = await bench.pair(key, "tablet")
    call_id = await bench.asked("make", "test")
    await phone.look_at(int(call_id))
    # The page asks for its challenge before the other phone decides, and signs after it.
    begun = await phone.browser.value(f"(async () => {{ {BEGUN} return yes('{call_id}', 'approve') }})()")
    await bench.say_yes(other, key, call_id)
    await bench.ordered(call_id)
    await phone.says(f"Call {call_id} was approved by tablet")
    late = SENT.format(json.dumps(begun))
    assert "approved by tablet" in await phone.browser.value(late)


async def test_a_yes_that_is_signed_too_late_does_not_count(bench: PhoneBench, phone: Phone) -> None:
    await paired(bench, phone)
    call_id = await bench.asked("make", "test")
    await phone.look_at(int(call_id))
    held = await phone.press("approve")
    # The page has its request as soon as the button is full.
    async with asyncio.timeout(BOUND_S):
        while not bench.phones._yeses._asked:
            await asyncio.sleep(0.02)
    bench.now += SIGN_S
    await phone.release(held)
    await phone.says("The request was not signed within 120 seconds.")
    assert isinstance((await bench.record(call_id)).state, Waiting)
    await phone.browser.value(READ)
    await phone.hold("approve")
    await bench.ordered(call_id)


async def test_a_yes_that_began_before_a_restart_does_not_count_after_it(
    bench: PhoneBench, phone: Phone, socket: Socket
) -> None:
    await paired(bench, phone)
    call_id = await bench.asked("make", "test")
    await phone.look_at(int(call_id))
    begun = await phone.browser.value(f"(async () => {{ {BEGUN} return yes('{call_id}', 'approve') }})()")
    await socket.restart()
    late = SENT.format(json.dumps(begun))
    assert "the supervisor was restarted" in await phone.browser.value(late)
    record = await bench.record(call_id)
    assert isinstance(record.state, Waiting) and record.pending_yes is None
    # The phone goes on with the other supervisor, at which it is paired as before.
    await phone.until("document.getElementById('offline').hidden")
    await phone.browser.value(READ)
    await phone.hold("approve")
    await bench.ordered(call_id)
