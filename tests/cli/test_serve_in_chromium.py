"""The served cockpit in a real browser: drawn in its page, worked by its keys. Skipped where there is no Chromium."""

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

from tests.cli.conftest import Instance
from tests.cli.test_serve import BOUND_S, Served, served
from tests.outside import outside_only

__all__ = ["served"]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [outside_only, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")]


class Browser:
    """One page, told what to do over the protocol of the developer tools."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.problems: list[str] = []

    async def tell(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            answer = json.loads((await self._socket.receive()).data)
            if answer.get("method") == "Log.entryAdded" and answer["params"]["entry"]["level"] == "error":
                self.problems.append(answer["params"]["entry"]["text"])
            if answer.get("id") == number:
                return answer["result"]

    async def value(self, expression: str) -> Any:
        return (await self.tell("Runtime.evaluate", expression=expression))["result"].get("value")

    async def until(self, expression: str) -> None:
        async with asyncio.timeout(BOUND_S):
            while not await self.value(expression):
                await asyncio.sleep(0.1)

    async def press(self, letter: str) -> None:
        key = {"key": letter, "code": f"Key{letter.upper()}", "windowsVirtualKeyCode": ord(letter.upper())}
        await self.tell("Input.dispatchKeyEvent", type="keyDown", text=letter, **key)
        await self.tell("Input.dispatchKeyEvent", type="keyUp", **key)


@asynccontextmanager
async def chromium(address: str, profile: Path) -> AsyncIterator[Browser]:
    """A browser without a window, at an address."""
    assert CHROMIUM is not None
    options = (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--remote-debugging-port=0",
        "--window-size=1400,1000",
    )
    process = subprocess.Popen(
        [CHROMIUM, *options, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        port_file = profile / "DevToolsActivePort"
        async with asyncio.timeout(BOUND_S):
            while not (port_file.exists() and port_file.read_text().count("\n") >= 1):
                await asyncio.sleep(0.05)
        port = port_file.read_text().splitlines()[0]
        async with aiohttp.ClientSession() as http:
            async with http.get(f"http://127.0.0.1:{port}/json/list") as answer:
                target = next(entry for entry in await answer.json() if entry["type"] == "page")
            async with http.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                browser = Browser(socket)
                await browser.tell("Log.enable")
                await browser.tell("Page.enable")
                await browser.tell("Page.bringToFront")
                await browser.tell("Page.navigate", url=address)
                yield browser
    finally:
        process.kill()
        process.wait()


async def test_a_browser_shows_the_cockpit_and_its_keys_decide(
    instance: Instance, served: Served, tmp_path: Path
) -> None:
    call = instance.call("execute_command", command="echo", args=["through a browser"])
    async with chromium(served.address, tmp_path / "profile") as browser:
        await browser.until("document.body.classList.contains('-first-byte')")
        await browser.until("document.querySelector('.xterm-screen canvas, .xterm-rows') !== null")
        await browser.value("document.querySelector('.xterm-helper-textarea').focus()")
        async with asyncio.timeout(BOUND_S):
            while len(await picture(browser)) < 10_000:  # an empty page is a fifth of that
                await asyncio.sleep(0.1)
        # A key decides nothing while the call has not been on the screen for a moment.
        async with asyncio.timeout(BOUND_S):
            while call.poll() is None:
                await browser.press("a")
                await asyncio.sleep(0.1)
        assert instance.rows("show", "1")["exit_code"] == 0
        assert browser.problems == []
        await browser.press("q")
        await browser.until("document.body.classList.contains('-closed')")


async def picture(browser: Browser) -> bytes:
    """What the page looks like, as PNG."""
    return base64.b64decode((await browser.tell("Page.captureScreenshot"))["data"])
