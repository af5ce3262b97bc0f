"""The history and the rules at three sizes, compared with how they looked when somebody last looked at them."""

from collections.abc import Callable, Iterator

import pytest
from textual.pilot import Pilot

from tests.pictures import universal_time
from tests.tui.cockpit import Cockpit
from tests.tui.past import a_month
from tests.tui.test_rules_screen import Book, a_day
from whisper_tui.tui.app import CockpitApp

SIZES = [(80, 24), (120, 40), (200, 60)]
SCENES = {
    "history": (a_month, ("H", "down"), ("step 5 of 5", "all of it")),
    "replay": (a_month, ("H", "down", "0", *["right_square_bracket"] * 5), ("step 2 of 5", "0:25.0")),
    "filtered": (a_month, ("H", "x", "x"), ("ending: failed", "That is all.", "exit 2")),
    "figures": (a_month, ("H", "down", "i"), ("Time saved by memory", "3.0 s")),
    "export": (a_month, ("H", "down", "E"), ("asciicast 3", "Every call ever")),
    "rules": (a_day, ("L",), ("1 time of 5", "git status …  once")),
    "tested": (a_day, ("L", "slash", *"rm -r x", "enter"), ("You would be asked.",)),
    "history-light": (a_month, ("H", "down"), ("step 5 of 5", "all of it")),
}


@pytest.fixture(autouse=True)
def same_time_and_place_everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir("/")
    with universal_time():
        yield


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("scene", SCENES)
def test_it_looks_as_it_did(scene: str, size: tuple[int, int], snap_compare: Callable[..., bool]) -> None:
    make, keys, words = SCENES[scene]
    play = make()
    theme = "whisper-light" if scene.endswith("light") else "whisper-dark"
    app = CockpitApp(play.stage, user="me", clock=play.clock, rule_book=Book(), theme=theme)

    async def before(pilot: Pilot[None]) -> None:
        seat = Cockpit(app, pilot, play)
        await seat.settled()
        for key in keys:
            await seat.press(key)
            await pilot.pause()
        await seat.until(lambda: all(word in seat.text() for word in words))
        await pilot.pause(0.3)

    assert snap_compare(app, terminal_size=size, run_before=before)
