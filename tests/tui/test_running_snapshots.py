"""What runs at three sizes, compared with how it looked when somebody last looked at it."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

import pytest
from textual.pilot import Pilot

from tests.pictures import universal_time
from tests.tui.cockpit import Cockpit
from tests.tui.scenes import Play
from tests.tui.test_output_pane import running
from tests.tui.test_processes import left_behind
from tests.tui.test_showing import two_streams
from tests.tui.test_typing_in import asking
from whisper_tui.tui.app import CockpitApp
from whisper_tui.tui.screens.cockpit import CockpitScreen

SIZES = [(80, 24), (120, 40), (200, 60)]


@dataclass(frozen=True)
class Scene:
    """Who is on the stage, what is pressed, and what is then on the screen."""

    name: str
    play: Callable[[], Play]
    keys: tuple[str, ...]
    shows: tuple[str, ...]
    theme: str = "whisper-dark"


def binary() -> Play:
    return running(b"\x7fELF\x02\x01\x01\x00" + bytes(range(256)) * 2)


SCENES = [
    Scene("by-time", two_streams, ("z", "W", "ctrl+f", "e", "r", "r", "enter"), ("of 5 “err”",)),
    Scene("errors", two_streams, ("w", "exclamation_mark"), ("There is nothing like that",), "whisper-light"),
    Scene("bytes", binary, (), ("stdout, bytes", "fe ff")),
    Scene("terminal", asking, ("T",), ("Ctrl+] gives them back", "Name of this release:")),
    Scene("left-behind", left_behind, ("b",), ("Left over from earlier days", "./new-server")),
]


@pytest.fixture(autouse=True)
def same_time_everywhere() -> Iterator[None]:
    with universal_time():
        yield


@pytest.fixture(autouse=True)
def words_in_passing_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, they are there when the picture is taken."""
    notify = CockpitScreen.notify
    patient = {"timeout": 600}
    monkeypatch.setattr(CockpitScreen, "notify", lambda screen, *said, **how: notify(screen, *said, **how | patient))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_it_looks_as_it_did(scene: Scene, size: tuple[int, int], snap_compare: Callable[..., bool]) -> None:
    play = scene.play()
    app = CockpitApp(play.stage, user="me", clock=play.clock, theme=scene.theme)

    def before(pilot: Pilot[None]) -> Awaitable[None]:
        seat = Cockpit(app, pilot, play)

        async def posed() -> None:
            await seat.settled()
            await seat.press(*scene.keys)
            await seat.sees(*scene.shows)
            await seat.pilot.pause()

        return posed()

    assert snap_compare(app, terminal_size=size, run_before=before)
