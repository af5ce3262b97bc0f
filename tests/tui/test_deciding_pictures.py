"""The dialogs about decisions at three sizes, compared with how they looked when somebody last looked at them."""

from collections.abc import Awaitable, Callable, Iterator

import pytest
from textual.pilot import Pilot

from tests.pictures import Picture, pose, universal_time
from tests.tui.cockpit import Cockpit
from tests.tui.scenes import workday
from tests.tui.test_scope import with_prefixes
from tests.tui.test_talking import talkative
from whisper_tui.tui.app import CockpitApp

SIZES = [(80, 24), (120, 40), (200, 60)]
SCENES = [
    Picture("scope", lambda: with_prefixes(("./build.sh", "--all")), "1", ("A",), shows="would have let 1"),
    Picture("batch", workday, "7", ("space", "down", "space", "R"), shows="Decide about 2 calls"),
    Picture("never", workday, "8", ("N",), shows="as long as it is open"),
    Picture("talk", talkative, "1", ("P",), shows="There are three."),
]


@pytest.fixture(autouse=True)
def same_time_everywhere() -> Iterator[None]:
    with universal_time():
        yield


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_it_looks_as_it_did(scene: Picture, size: tuple[int, int], snap_compare: Callable[..., bool]) -> None:
    play = scene.play()
    app = CockpitApp(play.stage, user="me", clock=play.clock, theme=scene.theme)

    def before(pilot: Pilot[None]) -> Awaitable[None]:
        seat = Cockpit(app, pilot, play)

        async def posed() -> None:
            await seat.settled()
            await pose(scene, seat)

        return posed()

    assert snap_compare(app, terminal_size=size, run_before=before)
