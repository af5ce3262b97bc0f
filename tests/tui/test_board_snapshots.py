"""The board, its groups and what lies over it at three sizes, compared with how they were when last looked at."""

from collections.abc import Awaitable, Callable, Iterator

import pytest
from textual.pilot import Pilot

from tests.pictures import QUIET, Picture, pose, universal_time
from tests.tui.cockpit import Cockpit
from tests.tui.scenes import crowd, long_script, workday
from tests.tui.test_trouble import troubled
from whisper_tui.tui.app import CockpitApp

SIZES = [(80, 24), (120, 40), (200, 60)]
SCENES = [
    Picture("groups", crowd, "2", ("ctrl+g",), shows="┌ release agent", screens=1),
    Picture("long", long_script, "1", ("ctrl+d",), shows="Call 1", screens=1),
    Picture("quiet", crowd, "6", shows="quiet until 07:00", theme="moss-light", calling=QUIET),
    Picture("themes", crowd, "6", ("ctrl+t",), shows="Keep it", theme="high-contrast-light"),
    Picture("palette", workday, "7", ("ctrl+p",), shows="Approve  (a)"),
    Picture("trouble", troubled, "7", shows="cannot work as it should", theme="whisper-light"),
]


@pytest.fixture(autouse=True)
def same_time_everywhere() -> Iterator[None]:
    with universal_time():
        yield


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_the_board_looks_as_it_did(scene: Picture, size: tuple[int, int], snap_compare: Callable[..., bool]) -> None:
    play = scene.play()
    app = CockpitApp(play.stage, user="me", clock=play.clock, theme=scene.theme, calling=scene.calling)

    def before(pilot: Pilot[None]) -> Awaitable[None]:
        seat = Cockpit(app, pilot, play)

        async def posed() -> None:
            await seat.settled()
            await pose(scene, seat)

        return posed()

    assert snap_compare(app, terminal_size=size, run_before=before)
