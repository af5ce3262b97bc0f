"""The served cockpit in a real browser: drawn in its page, worked by its keys. Skipped where there is no Chromium."""

import asyncio
from pathlib import Path

import pytest

from tests.chromium import chromium, needs_chromium
from tests.cli.conftest import Instance
from tests.cli.test_serve import BOUND_S, Served, served
from tests.outside import outside_only
from whisper_tui.tui.cockpit.status_bars import LEAST_COLUMNS, LEAST_ROWS

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


@pytest.mark.parametrize(
    ("width", "height", "row"), [(390, 844, 44), (360, 640, 44), (320, 556, 44), (768, 1024, 44), (844, 390, 21)]
)
async def test_on_a_phone_the_cockpit_is_whole_and_its_rows_are_for_a_thumb(
    instance: Instance, served: Served, tmp_path: Path, width: int, height: int, row: int
) -> None:
    call = instance.call("execute_command", command="echo", args=["by touch"])
    async with chromium(tmp_path / "profile", size=(width, height)) as browser:
        await browser.tell(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=0, mobile=True
        )
        await browser.tell("Emulation.setTouchEmulationEnabled", enabled=True)
        await browser.open(served.address)
        await browser.until("document.body.classList.contains('-first-byte')")
        await browser.until("document.querySelector('.xterm-helper-textarea').style.lineHeight")
        cell, high = await browser.value(
            "(style => [parseFloat(style.width), parseFloat(style.lineHeight)])"
            "(document.querySelector('.xterm-helper-textarea').style)"
        )
        assert high == row
        screen = "document.querySelector('.xterm-screen')"
        await browser.until(f"{screen}.offsetWidth > 300")
        wide, bottom, length = await browser.value(
            f"(box => [box.width, box.bottom, box.height])({screen}.getBoundingClientRect())"
        )
        assert LEAST_COLUMNS * cell <= wide + 0.5 and wide <= width
        assert LEAST_ROWS * high <= length
        assert await browser.value("document.body.innerText.includes('whisper-tui phone')") is (width <= 600)
        # With the line above it, too, nothing of the cockpit is below the screen.
        assert bottom <= height
        # Approve is the first button of the last row but one, however high the rows are.
        x, y = 5 * cell, bottom - 1.5 * high
        async with asyncio.timeout(BOUND_S):
            while call.poll() is None:
                await browser.tell("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
                await browser.tell("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
                await asyncio.sleep(0.2)
        assert instance.rows("show", "1")["exit_code"] == 0
