"""The served cockpit in a real browser: drawn in its page, worked by its keys. Skipped where there is no Chromium."""

import asyncio
from pathlib import Path

from tests.chromium import chromium, needs_chromium
from tests.cli.conftest import Instance
from tests.cli.test_serve import BOUND_S, Served, served
from tests.outside import outside_only

__all__ = ["served"]
pytestmark = [outside_only, needs_chromium]


async def test_a_browser_shows_the_cockpit_and_its_keys_decide(
    instance: Instance, served: Served, tmp_path: Path
) -> None:
    call = instance.call("execute_command", command="echo", args=["through a browser"])
    async with chromium(tmp_path / "profile") as browser:
        await browser.open(served.address)
        await browser.until("document.body.classList.contains('-first-byte')")
        await browser.until("document.querySelector('.xterm-screen canvas, .xterm-rows') !== null")
        await browser.value("document.querySelector('.xterm-helper-textarea').focus()")
        async with asyncio.timeout(BOUND_S):
            while len(await browser.picture()) < 10_000:  # an empty page is a fifth of that
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


async def test_on_a_phone_the_cockpit_has_the_width_of_the_screen(served: Served, tmp_path: Path) -> None:
    async with chromium(tmp_path / "profile", size=(390, 844)) as browser:
        await browser.tell(
            "Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=0, mobile=True
        )
        await browser.open(served.address)
        await browser.until("document.body.classList.contains('-first-byte')")
        await browser.until("document.querySelector('.xterm-screen')?.offsetWidth > 300")
        assert await browser.value("document.querySelector('.xterm-screen').offsetWidth") <= 390
        assert await browser.value("document.body.innerText.includes('whisper-tui phone')")
        # With the line above it, too, nothing of the cockpit is below the screen.
        assert await browser.value("document.querySelector('.xterm-screen').getBoundingClientRect().bottom") <= 844
