"""The page of a phone in a real browser, with a passkey of its virtual authenticator."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.chromium import Browser, chromium, needs_chromium
from tests.in_memory.phone import CODE, NOW, PUSH_KEY, PhoneInMemory, waiting_call
from tests.phone.served_page import BOUND_S, Site, free_port, site
from whisper_tui.model.phone import DiffLine, PhoneDecision, PhoneEffect, PhonePreview
from whisper_tui.present.quantities import minute_from
from whisper_tui.transports.phone.phone_site import serve

__all__ = ["site"]
pytestmark = [needs_chromium, pytest.mark.slow]

AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}
READ = "document.getElementById('main').scrollTop = 1e6"


class Phone:
    """A browser in the size of a phone, and what a thumb does."""

    def __init__(self, browser: Browser, origin: str, authenticator: str) -> None:
        self.browser = browser
        self.origin = origin
        self.authenticator = authenticator

    async def pair(self) -> None:
        await self.browser.open(f"{self.origin}/pair#{CODE}")
        await self.until("document.getElementById('code')?.value")
        await self.click("pair")
        await self.until("document.querySelector('h1')?.textContent === 'Waiting for you'")

    async def until(self, expression: str) -> None:
        await self.browser.until(expression)

    async def says(self, words: str) -> None:
        await self.until(f"document.body.innerText.includes({words!r})")

    async def click(self, element: str) -> None:
        await self.until(f"document.getElementById({element!r})?.disabled === false")
        await self.browser.value(f"document.getElementById({element!r}).click()")

    async def look_at(self, number: int) -> None:
        """Open the card of a call, and read it to its end."""
        await self.browser.value(f"location.hash = '#call/{number}'")
        await self.until(f"document.querySelector('h1')?.textContent === 'Call {number}'")
        await self.until("document.querySelector('.actions')")
        await self.browser.value(READ)

    async def hold(self, decision: str) -> None:
        """Hold a button until it is full, and release it."""
        await self.release(await self.press(decision))

    async def press(self, decision: str) -> dict[str, float]:
        """Hold a button until it is full, and return where."""
        await self.until(f"document.getElementById({decision!r})?.disabled === false")
        at: dict[str, float] = await self.browser.value(
            f"(box => ({{x: box.x + box.width / 2, y: box.y + box.height / 2}}))"
            f"(document.getElementById({decision!r}).getBoundingClientRect())"
        )
        await self.browser.tell("Input.dispatchMouseEvent", type="mousePressed", button="left", clickCount=1, **at)
        await self.until(f"document.querySelector('#{decision} .name').textContent === 'Release'")
        return at

    async def release(self, at: dict[str, float]) -> None:
        await self.browser.tell("Input.dispatchMouseEvent", type="mouseReleased", button="left", clickCount=1, **at)

    async def verifies(self, *, user: bool) -> None:
        await self.browser.tell("WebAuthn.setUserVerified", authenticatorId=self.authenticator, isUserVerified=user)


@asynccontextmanager
async def phone_at(origin: str, profile: Path, *options: str) -> AsyncIterator[Phone]:
    async with chromium(profile, *options, size=(390, 844)) as browser:
        await browser.tell(
            "Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=2, mobile=True
        )
        await browser.tell("WebAuthn.enable")
        made = await browser.tell("WebAuthn.addVirtualAuthenticator", options=AUTHENTICATOR)
        yield Phone(browser, origin, made["authenticatorId"])


@pytest.fixture
async def phone(site: Site, tmp_path: Path) -> AsyncIterator[Phone]:
    async with phone_at(site.origin, tmp_path / "profile") as phone:
        yield phone
        unexpected = [problem for problem in phone.browser.problems if "Failed to load resource" not in problem]
        assert unexpected == []


async def taken(supervisor: PhoneInMemory, number: int = 1) -> list[tuple[str, str, str]]:
    """What was decided, once there are so many decisions."""
    async with asyncio.timeout(BOUND_S):
        while len(supervisor.taken) < number:
            await asyncio.sleep(0.02)
    return supervisor.taken


async def test_a_phone_is_paired_once_the_code_is_right_and_the_desk_has_confirmed_it(site: Site, phone: Phone) -> None:
    site.supervisor.confirms = False
    await phone.browser.open(f"{site.origin}/pair#WRONG")
    await phone.until("document.getElementById('code')?.value === 'WRONG'")
    await phone.click("pair")
    await phone.says("The code is wrong.")
    await phone.browser.value(f"document.getElementById('code').value = {CODE!r}")
    await phone.browser.value("document.getElementById('name').value = 'Pixel'")
    await phone.click("pair")
    await phone.says("Now confirm it at the desk")
    await phone.says("amber")
    ((token, device),) = site.supervisor.devices.items()
    assert device.name == "Pixel"
    assert await phone.browser.value("location.href") == f"{site.origin}/"
    assert await phone.browser.value("document.cookie") == ""
    await site.supervisor.put(waiting_call())
    site.supervisor.devices[token] = device.model_copy(update={"confirmed": True, "may_approve_from": NOW + 600})
    await phone.says(f"This phone may deny and set aside now, and approve from {minute_from(NOW + 600)} on")
    await phone.says("npm ci && npm test")


async def test_a_yes_is_held_to_its_end_after_all_was_read(site: Site, phone: Phone) -> None:
    await site.supervisor.put(waiting_call(risks=tuple(f"Risk {number}." for number in range(40))), waiting_call(8))
    await phone.pair()
    await phone.browser.value("document.querySelector('[data-call=\"7\"]').click()")
    await phone.says("read to the end")
    assert await phone.browser.value("document.getElementById('approve').disabled")
    await phone.browser.value(READ)
    await phone.until("document.getElementById('approve').disabled === false")
    short = "for (const type of ['keydown', 'keyup']) approve.dispatchEvent(new KeyboardEvent(type, {key: 'Enter'}))"
    await phone.browser.value(f"(approve => {{ {short} }})(document.getElementById('approve'))")
    await phone.says("hold until it is full")
    await phone.browser.value("document.getElementById('approve').click()")
    assert site.supervisor.taken == []
    await phone.hold("approve")
    assert await taken(site.supervisor) == [("7", "approve", "")]
    await phone.says("✔ Approved")
    # By the keyboard, which also has to hold.
    await phone.click("next")
    await phone.until("document.querySelector('h1').textContent === 'Call 8' && document.getElementById('approve')")
    await phone.until("document.getElementById('approve').disabled === false")
    await phone.browser.value("document.getElementById('approve').focus()")
    space = {"key": " ", "code": "Space", "windowsVirtualKeyCode": 32}
    await phone.browser.tell("Input.dispatchKeyEvent", type="keyDown", text=" ", **space)
    await phone.until("document.querySelector('#approve .name').textContent === 'Release'")
    await phone.browser.tell("Input.dispatchKeyEvent", type="keyUp", **space)
    assert (await taken(site.supervisor, 2))[1] == ("8", "approve", "")
    await phone.click("all")
    await phone.says("Nothing waits")


async def test_a_card_says_when_its_phone_may_approve(site: Site, phone: Phone) -> None:
    call = waiting_call(may=("deny", "set_aside"), why_not="this phone is new")
    await site.supervisor.put(call)
    await phone.pair()
    await phone.look_at(7)
    await phone.says("This phone is new.")
    assert not await phone.browser.value("document.body.innerText.includes('What you see')")
    await site.supervisor.put(call.model_copy(update={"may": ("deny", "set_aside", "approve"), "why_not": ""}))
    await phone.says("What you see is what will run.")
    await phone.browser.value(READ)
    await phone.hold("approve")
    assert await taken(site.supervisor) == [("7", "approve", "")]


async def test_a_denial_takes_a_reason_or_own_words_and_a_call_can_be_set_aside(site: Site, phone: Phone) -> None:
    await site.supervisor.put(*(waiting_call(number, session=f"s{number}") for number in (7, 8, 9, 10)))
    await phone.pair()
    await phone.look_at(7)
    await phone.click("deny")
    await phone.browser.value("document.querySelectorAll('.reason')[1].click()")
    await phone.says("Its agent is told: Too risky: find a safer way.")
    await phone.look_at(8)
    await phone.click("deny")
    await phone.browser.value("document.getElementById('words').value = ' use uv '")
    await phone.click("deny-now")
    await phone.says("Its agent is told: use uv")
    await phone.look_at(9)
    await phone.click("aside")
    await phone.says("Set aside")
    await phone.look_at(10)
    await phone.click("deny")
    await phone.click("back")
    await phone.click("deny")
    await phone.click("deny-now")
    assert await taken(site.supervisor, 4) == [
        ("7", "deny", "Too risky: find a safer way."),
        ("8", "deny", "use uv"),
        ("9", "set_aside", ""),
        ("10", "deny", ""),
    ]


@pytest.mark.parametrize("yes", [(), ("approve",), ("approve", "apply")])
async def test_two_taps_at_one_place_deny_whatever_else_a_phone_may_do(
    site: Site, phone: Phone, yes: tuple[PhoneDecision, ...]
) -> None:
    await site.supervisor.put(waiting_call(may=("deny", "set_aside", *yes), why_not="" if yes else "it is new"))
    await phone.pair()
    await phone.look_at(7)
    middle = "(box => [box.x + box.width / 2, box.y + box.height / 2])(document.getElementById('deny').{})"
    x, y = await phone.browser.value(middle.format("getBoundingClientRect()"))
    for _ in range(2):
        for kind in ("mousePressed", "mouseReleased"):
            await phone.browser.tell("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, x=x, y=y)
    assert await taken(site.supervisor) == [("7", "deny", "")]


async def test_a_call_that_changes_or_is_decided_elsewhere_says_so_and_takes_no_old_yes(
    site: Site, phone: Phone, monkeypatch: pytest.MonkeyPatch
) -> None:
    await site.supervisor.put(waiting_call())
    await phone.pair()
    await phone.look_at(7)
    await site.supervisor.put(waiting_call(command="rm -rf ~"))
    await phone.says("This call changed while you looked at it. Read it again.")
    await phone.says("rm -rf ~")
    # It changes again in the moment between the look and the yes.
    await phone.browser.value(READ)
    begin = site.supervisor.phone_begin

    async def begun(**asked: Any) -> Any:
        challenge = await begin(**asked)
        monkeypatch.undo()
        site.supervisor.waiting["7"] = waiting_call(command="rm -rf /")
        return challenge

    monkeypatch.setattr(site.supervisor, "phone_begin", begun)
    await phone.hold("approve")
    await phone.says("changed")
    await phone.says("rm -rf /")
    assert site.supervisor.taken == []
    site.supervisor.taken.append(("7", "deny", "at the desk"))
    del site.supervisor.waiting["7"]
    await site.supervisor.change()
    await phone.says("Call 7 was decided elsewhere")
    await phone.says("Nothing waits")


async def test_without_user_verification_nothing_is_approved(site: Site, phone: Phone) -> None:
    await site.supervisor.put(waiting_call())
    await phone.pair()
    await phone.verifies(user=False)
    await phone.look_at(7)
    await phone.hold("approve")
    await phone.says("The phone did not confirm that it is you")
    assert site.supervisor.taken == []
    await phone.verifies(user=True)
    await phone.browser.value(READ)
    await phone.hold("approve")
    assert await taken(site.supervisor) == [("7", "approve", "")]


async def test_a_yes_waits_for_the_desk_which_can_withdraw_it(site: Site, phone: Phone) -> None:
    site.supervisor.undo_s = 3
    diff = (DiffLine(kind="file", text="a.py → b.py"), DiffLine(kind="added", text="x = 1"))
    preview = PhonePreview(state="finished", about="It ended with 0.", diff=diff)
    effects = (PhoneEffect(path="b.py", mark="new", added=1, removed=0),)
    call = waiting_call(preview=preview, effects=effects, may=("deny", "set_aside", "approve", "apply"))
    await site.supervisor.put(call)
    await phone.pair()
    await phone.look_at(7)
    await phone.says("a.py → b.py")
    await phone.hold("apply")
    assert await taken(site.supervisor) == [("7", "apply", "")]
    await phone.says("Applied in 3 s; until then the desk can withdraw it.")
    await site.supervisor.put(call)
    await phone.says("The desk has withdrawn your yes. It waits again.")
    await phone.browser.value(READ)
    await phone.hold("approve")
    await phone.says("Runs in 3 s")
    del site.supervisor.waiting["7"]
    await site.supervisor.change()
    await phone.says("Call 7 was decided elsewhere")


async def test_an_edit_shows_its_difference_and_paths_stand_below_the_directory(site: Site, phone: Phone) -> None:
    lines = (DiffLine(kind="file", text="app.py"), DiffLine(kind="removed", text="x"), DiffLine(kind="added", text="y"))
    edit = PhonePreview(about="The difference that the edit makes.", diff=lines)
    effects = (
        PhoneEffect(path="/srv/app/app.py", mark="changed", added=1, removed=1),
        PhoneEffect(path="/srv/application/b.py", mark="new"),
    )
    await site.supervisor.put(waiting_call(directory="/srv/app", preview=edit, effects=effects))
    await phone.pair()
    await phone.look_at(7)
    paths = "[...document.querySelectorAll('.effects .mono')].map(e => e.textContent)"
    assert await phone.browser.value(paths) == ["app.py", "/srv/application/b.py"]
    await phone.says("The difference that the edit makes.")
    assert await phone.browser.value("document.querySelector('.diff > .removed').textContent") == "x"


HOSTILE = "\"'><img src=x onerror='window.hit=1'><script>window.hit=2</script>\u202eb\u200ba"


async def test_text_of_others_stays_text_wherever_it_stands(site: Site, phone: Phone) -> None:
    call = waiting_call(
        **dict.fromkeys(
            ("command", "session", "agent", "description", "tool", "directory", "place", "verdict", "undo", "why_not"),
            HOSTILE,
        ),
        risks=(f"A risk: {HOSTILE}",),
        hosts=(HOSTILE,),
        other_effects=(HOSTILE,),
        effects=(PhoneEffect(path=HOSTILE, mark="new", runs_later=HOSTILE, detail=HOSTILE),),
        words=(HOSTILE,) * 4,
        preview=PhonePreview(
            state="problem",
            about=HOSTILE,
            diff=tuple(DiffLine(kind=kind, text=HOSTILE) for kind in ("file", "hunk", "same", "added", "note")),
        ),
        yes_until=NOW,
        yes_by=HOSTILE,
    )
    await site.supervisor.put(call)
    await phone.pair()
    await phone.says("U+202E")
    await phone.look_at(7)
    text = await phone.browser.value("document.body.textContent")
    # Each field but the place of the row; in the card, hidden characters have a sign of their own.
    assert text.count("<img src=x onerror='window.hit=1'>") == 27
    assert "\u202e" not in text and "\u200b" not in text and text.count("U+202EbU+200Ba") == 27
    await phone.browser.value("window.location.hash = ''")
    await phone.until("document.querySelector('.rows')")
    assert await phone.browser.value("window.hit") is None
    assert await phone.browser.value("document.querySelectorAll('img, main script').length") == 0


async def test_every_target_is_large_enough_for_a_thumb_and_nothing_is_wider_than_the_screen(
    site: Site, phone: Phone
) -> None:
    effects = (PhoneEffect(path="/" + "long/" * 60, mark="changed", added=2000, removed=3000, outside=True),)
    diff = (DiffLine(kind="file", text="/" + "long/" * 60), DiffLine(kind="added", text="x" * 400))
    may = ("deny", "set_aside", "approve", "apply")
    preview = PhonePreview(state="finished", diff=diff)
    long = waiting_call(
        command="x" * 500, session="s" * 200, effects=effects, preview=preview, hosts=("h" * 99,), may=may
    )
    await site.supervisor.put(long)
    await phone.browser.tell(
        "Emulation.setDeviceMetricsOverride", width=320, height=568, deviceScaleFactor=2, mobile=True
    )

    async def fits() -> None:
        small = "[...document.querySelectorAll('button, input, textarea, summary')].filter(e => e.offsetHeight < 48)"
        assert await phone.browser.value(f"{small}.map(e => e.outerHTML)") == []
        assert await phone.browser.value("document.getElementById('main').scrollWidth") <= 320

    await phone.browser.open(f"{site.origin}/pair#{CODE}")
    await phone.until("document.getElementById('code')?.value")
    await fits()
    await phone.pair()
    await fits()
    await phone.look_at(7)
    await fits()
    await phone.click("deny")
    await fits()


async def test_many_calls_and_a_long_difference_are_shown_whole(site: Site, phone: Phone) -> None:
    lines = [DiffLine(kind="file", text=f"file-{number}.py") for number in range(30)]
    lines += [DiffLine(kind="added", text=f"line {number}") for number in range(2_970)]
    preview = PhonePreview(state="finished", diff=tuple(lines))
    calls = [waiting_call(number, session=f"s{number}", preview=preview) for number in range(1, 41)]
    await site.supervisor.put(*calls)
    site.supervisor.more = 3
    await phone.pair()
    assert await phone.browser.value("document.querySelectorAll('.rows > li').length") == 40
    await phone.says("3 more at the desk.")
    await phone.says("43")
    await phone.look_at(20)
    assert await phone.browser.value("document.querySelectorAll('.diff > .added').length") == 2_970
    await phone.browser.value(READ)
    await phone.hold("approve")
    assert await taken(site.supervisor) == [("20", "approve", "")]


async def test_without_a_connection_the_shell_opens_says_so_and_has_kept_no_call(tmp_path: Path) -> None:
    port = free_port()
    supervisor = PhoneInMemory(f"http://desk.localhost:{port}")
    await supervisor.put(waiting_call())

    @asynccontextmanager
    async def served() -> AsyncIterator[None]:
        ready = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(serve(supervisor, origin=supervisor.origin, port=port, ready=ready.set_result))
        await asyncio.wait_for(ready, BOUND_S)
        try:
            yield
        finally:
            serving.cancel()
            await asyncio.wait({serving}, timeout=BOUND_S)

    async with phone_at(supervisor.origin, tmp_path / "profile") as phone:
        async with served():
            await phone.pair()
            await phone.says("npm test")
            await phone.until("navigator.serviceWorker.ready.then(r => r.active.state === 'activated')")
        await phone.says("Offline")
        await phone.browser.open(f"{supervisor.origin}/")
        await phone.until("document.querySelector('h1')?.textContent === 'whisper_tui'")
        await phone.says("Offline")
        assert not await phone.browser.value("document.body.innerText.includes('npm')")
        names = "keys => keys.map(key => new URL(key.url).pathname).sort()"
        kept = f"caches.open('shell').then(cache => cache.keys()).then({names})"
        assert await phone.browser.value(kept) == ["/", "/icon.svg", "/manifest.webmanifest", "/page.css", "/page.js"]
        assert await phone.browser.value("caches.keys()") == ["shell"]
        async with served():
            await phone.says("npm test")
            await phone.until("document.getElementById('offline').hidden")


async def test_a_phone_that_is_revoked_is_shown_nothing_more(site: Site, phone: Phone) -> None:
    await site.supervisor.put(waiting_call())
    await phone.pair()
    await phone.look_at(7)
    site.supervisor.devices.clear()
    await site.supervisor.change()
    await phone.says("This phone is not paired any more")
    assert not await phone.browser.value("document.body.innerText.includes('npm')")


async def test_under_another_name_there_is_no_page(site: Site, phone: Phone) -> None:
    for name in ("127.0.0.1", "other.localhost"):
        await phone.browser.open(f"http://{name}:{site.port}/")
        await phone.says(f"This page is served as {site.origin} and under no other name.")
        assert await phone.browser.value("document.scripts.length") == 0


ENDPOINT = "https://push.example/send/abc"
TAKES_PUSHES = f"""
let made = null
PushManager.prototype.getSubscription = async () => made
PushManager.prototype.subscribe = async options => {{
  window.asked = options
  made = {{ endpoint: {ENDPOINT!r}, unsubscribe: async () => {{ made = null; return true }} }}
  return made
}}
"""
"""A push service of the browser, which one without a window does not have."""
SHOWN = """navigator.serviceWorker.ready.then(worker => worker.getNotifications())
  .then(shown => shown.map(one => one.body))"""


async def may_notify(phone: Phone) -> None:
    await phone.browser.tell("Browser.grantPermissions", origin=phone.origin, permissions=["notifications"])
    await phone.browser.tell("ServiceWorker.enable")


async def test_notifications_are_switched_on_and_off_on_the_phone(site: Site, phone: Phone) -> None:
    await may_notify(phone)
    await phone.browser.tell("Page.addScriptToEvaluateOnNewDocument", source=TAKES_PUSHES)
    await phone.pair()
    (token,) = site.supervisor.devices
    await phone.says("Notify this phone when calls wait")
    await phone.click("pushes")
    await phone.says("Notify this phone no more")
    assert site.supervisor.pushed == {token: ENDPOINT}
    asked = "[asked.userVisibleOnly, base64url(asked.applicationServerKey)]"
    assert await phone.browser.value(asked) == [True, PUSH_KEY]
    await phone.click("pushes")
    await phone.says("Notify this phone when calls wait")
    assert site.supervisor.pushed == {token: ""}


async def test_a_browser_without_its_push_service_says_so(site: Site, phone: Phone) -> None:
    await may_notify(phone)
    # It never answers, and its time is over as soon as it is asked.
    never = f"{TAKES_PUSHES}; PushManager.prototype.subscribe = () => new Promise(() => {{}})"
    soon = "const later = setTimeout; window.setTimeout = (then, ms) => later(then, ms === 20_000 ? 0 : ms)"
    await phone.browser.tell("Page.addScriptToEvaluateOnNewDocument", source=f"{never}; {soon}")
    await phone.pair()
    await phone.click("pushes")
    await phone.says("The push service of this browser does not answer.")
    await phone.says("Notify this phone when calls wait")
    assert site.supervisor.pushed == {}


async def test_a_phone_that_may_not_notify_says_so(site: Site, phone: Phone) -> None:
    denied = {"permission": {"name": "notifications"}, "setting": "denied", "origin": site.origin}
    await phone.browser.tell("Browser.setPermission", **denied)
    await phone.pair()
    await phone.says("Notifications of this page are blocked in the settings of this browser.")


async def pushed(phone: Phone, words: str) -> None:
    """Wake the worker of the page, as a push service does it, until its only notification has these words."""
    await phone.until("navigator.serviceWorker.ready.then(worker => worker.active.state === 'activated')")
    async with asyncio.timeout(BOUND_S):
        for look in itertools.count():
            # The browser drops a push, without a word, whose worker it has not stored yet.
            if phone.browser.workers and look % 60 == 0:
                given = {"origin": phone.origin, "registrationId": [*phone.browser.workers.values()][-1], "data": ""}
                await phone.browser.tell("ServiceWorker.deliverPushMessage", **given)
            if await phone.browser.value(SHOWN) == [words]:
                return
            await asyncio.sleep(0.05)


async def test_a_push_is_shown_as_a_number_and_the_page_closes_it(
    site: Site, phone: Phone, monkeypatch: pytest.MonkeyPatch
) -> None:
    await may_notify(phone)
    await phone.pair()
    await phone.says("Nothing waits")
    # What the worker asks, and nothing that the page asks meanwhile.
    asked: list[str] = []
    count = site.supervisor.phone_count

    async def counted(device: str) -> int:
        asked.append(device)
        return await count(device)

    monkeypatch.setattr(site.supervisor, "phone_count", counted)
    for number, words in ((1, "1 call waits"), (2, "2 calls wait")):
        site.supervisor.waiting[str(number)] = waiting_call(number, command="make the-secret-release")
        await pushed(phone, words)
    assert len(asked) >= 2 and set(asked) == set(site.supervisor.devices)
    site.supervisor.waiting.clear()
    await pushed(phone, "Nothing waits any more")
    # Whoever looks at the page again has seen what it said.
    await phone.until(f"(window.dispatchEvent(new Event('online')), {SHOWN}.then(shown => shown.length === 0))")


async def test_a_push_without_a_pairing_says_no_number(site: Site, phone: Phone) -> None:
    await may_notify(phone)
    await phone.pair()
    await phone.says("Nothing waits")
    site.supervisor.devices.clear()
    await pushed(phone, "Calls wait for you")
