"""What is drawn, and when: the effect of a key at once, and of output only the rows that are new."""

import asyncio

import pytest
from textual.events import Key
from textual.strip import Strip

from tests.tui.cockpit import PATIENCE, open_cockpit
from tests.tui.scenes import workday
from tests.tui.test_output_pane import running
from whisper_tui.tui import keyed_screen


async def test_the_effect_of_a_key_does_not_wait_for_the_next_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_cockpit(workday(), frames=True) as cockpit:
        drawn: list[str | None] = []
        monkeypatch.setattr(keyed_screen, "URGENT_S", 60)  # the moment after a key lasts until a busy machine draws
        monkeypatch.setattr(cockpit.screen._update_timer, "resume", lambda: None)  # there is no next frame
        monkeypatch.setattr(cockpit.app, "post_display_hook", lambda: drawn.append(cockpit.selected))
        before = cockpit.selected
        cockpit.app.post_message(Key("down", None))
        for _ in range(PATIENCE):
            if drawn:
                break
            await asyncio.sleep(0.02)
        assert drawn and drawn[-1] != before


async def test_unchanged_rows_are_not_redrawn_while_output_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_cockpit(running(b"".join(b"line %d\n" % number for number in range(1000))), frames=True) as cockpit:
        await cockpit.press("f")
        await cockpit.sees("f to follow", "line 999")
        pane, drawn = cockpit.pane("out"), set[int]()
        draw = pane.render_line

        def counted(y: int) -> Strip:
            drawn.add(y)
            return draw(y)

        monkeypatch.setattr(pane, "render_line", counted)
        cockpit.scenario.supervisor.write("1", b"one more\n")
        await cockpit.until(lambda: pane.view is not None and pane.view.size == 8899)
        await cockpit.until(lambda: 0 in drawn)
        assert len(drawn) < pane.size.height // 2


@pytest.mark.slow
async def test_partial_redraws_equal_a_full_redraw() -> None:
    lines = b"".join(b"\x1b[3%dmline\x1b[0m %d %s\n" % (n % 8, n, b"x" * (n % 90)) for n in range(1000))
    keys = ("f", "shift+up", "w", "W", "W", "w", "Z", "shift+up", "Z", "number_sign", "number_sign", "f", "D", "t")
    async with open_cockpit(running(lines), size=(80, 24), frames=True) as cockpit:
        await cockpit.sees("line 999")
        for number, key in enumerate(keys, start=2):
            await cockpit.press(key)
            cockpit.scenario.supervisor.write("1", lines)
            size = number * len(lines)
            await cockpit.until(lambda size=size: any(pane.view and pane.view.size == size for pane in cockpit.panes))
            drawn = cockpit.text()
            for pane in cockpit.panes:
                pane.refresh()
            assert cockpit.text() == drawn, key
