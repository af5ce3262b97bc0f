"""A Chromium without a window, driven over the protocol of its developer tools."""

import asyncio
import base64
import itertools
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")

BOUND_S = 90
"""Seconds to wait for anything."""


class NotDone(Exception):
    """The browser did not do something: the page may just be going to another one."""


class Browser:
    """One page."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.problems: list[str] = []
        """Errors that the page has logged."""
        self.workers: dict[str, str] = {}
        """The ids of the registrations of service workers, by their scopes; if the domain of these is enabled."""

    async def tell(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            answer = json.loads((await self._socket.receive()).data)
            match answer.get("method"):
                case "Log.entryAdded" if answer["params"]["entry"]["level"] == "error":
                    self.problems.append(answer["params"]["entry"]["text"])
                case "Runtime.exceptionThrown":
                    self.problems.append(json.dumps(answer["params"]["exceptionDetails"]))
                case "ServiceWorker.workerRegistrationUpdated":
                    known = answer["params"]["registrations"]
                    self.workers |= {each["scopeURL"]: each["registrationId"] for each in known}
            if answer.get("id") == number:
                if "error" in answer:
                    raise NotDone(answer["error"])
                return answer["result"]

    async def value(self, expression: str) -> Any:
        """The value of an expression, or of its promise, in the page."""
        answer = await self.tell("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise NotDone(answer["exceptionDetails"])
        return answer["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait until an expression, or its promise, is true."""
        try:
            async with asyncio.timeout(BOUND_S):
                while not await self._is_true(expression):
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"never: {expression}\n{await self.value('document.body.innerText')}") from None

    async def _is_true(self, expression: str) -> bool:
        try:
            # Elements are not returned by value, so it is decided in the page.
            return bool(await self.value(f"(async () => Boolean(await ({expression})))()"))
        except NotDone:
            return False

    async def open(self, address: str) -> None:
        await self.tell("Page.navigate", url=address)

    async def press(self, letter: str) -> None:
        key = {"key": letter, "code": f"Key{letter.upper()}", "windowsVirtualKeyCode": ord(letter.upper())}
        await self.tell("Input.dispatchKeyEvent", type="keyDown", text=letter, **key)
        await self.tell("Input.dispatchKeyEvent", type="keyUp", **key)

    async def picture(self) -> bytes:
        """What the page looks like, as PNG."""
        return base64.b64decode((await self.tell("Page.captureScreenshot"))["data"])


@asynccontextmanager
async def chromium(profile: Path, *options: str, size: tuple[int, int] = (1400, 1000)) -> AsyncIterator[Browser]:
    """A browser on an empty page."""
    assert CHROMIUM is not None
    usual = ("--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0")
    process = subprocess.Popen(
        [CHROMIUM, *usual, f"--window-size={size[0]},{size[1]}", *options, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        port_file = profile / "DevToolsActivePort"
        async with asyncio.timeout(BOUND_S):
            while not (port_file.exists() and port_file.read_text().count("\n") >= 1):
                await asyncio.sleep(0.05)
        port = port_file.read_text().splitlines()[0]
        async with (
            aiohttp.ClientSession() as http,
            http.ws_connect(await _first_page(http, port), max_msg_size=0) as socket,
        ):
            browser = Browser(socket)
            for domain in ("Log", "Runtime", "Page"):
                await browser.tell(f"{domain}.enable")
            await browser.tell("Page.bringToFront")
            yield browser
    finally:
        process.kill()
        process.wait()


async def _first_page(http: aiohttp.ClientSession, port: str) -> str:
    """The address of the page with which a browser opens, which may come a moment after its port."""
    async with asyncio.timeout(BOUND_S):
        while True:
            async with http.get(f"http://127.0.0.1:{port}/json/list") as answer:
                for entry in await answer.json():
                    if entry["type"] == "page":
                        address: str = entry["webSocketDebuggerUrl"]
                        return address
            await asyncio.sleep(0.05)
