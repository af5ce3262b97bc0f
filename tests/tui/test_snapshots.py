"""The cockpit at three sizes, compared with how it looked when somebody last looked at it."""

from collections.abc import Awaitable, Callable, Iterator

import pytest
from textual.pilot import Pilot

from tests.pictures import Picture, pose, universal_time
from tests.tui.cockpit import Cockpit
from tests.tui.scenes import building, workday
from whisper_tui.tui.app import CockpitApp

SIZES = [(80, 24), (120, 40), (200, 60)]
SCENES = [
    Picture("waiting", workday, "7"),
    Picture("running", workday, "6", shows="583800"),
    Picture("edited", workday, "3", shows="staging has the new site", theme="whisper-light"),
    Picture("edit", building, "2", ("e",), typed="staging", shows="Will run: edited"),
    Picture("deny", workday, "8", ("d", "enter"), shows="without a reason"),
    Picture("kill", workday, "6", ("k",), shows="End call 6"),
    Picture("signals", workday, "6", ("x",), shows="SIGTERM", theme="whisper-light"),
    Picture("help", workday, "7", ("question_mark",), shows="Keys and signs"),
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
