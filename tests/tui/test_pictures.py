"""The pictures in screenshots/ are what the cockpit draws now."""

import pytest

from tests.pictures import FOLDER, PICTURES, Picture, drawn
from tests.tour import TOUR, moving_picture


@pytest.mark.slow  # test_snapshots draws the same scenes
@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_the_picture_is_what_the_cockpit_draws(picture: Picture) -> None:
    kept = (FOLDER / f"{picture.name}.svg").read_text(encoding="utf-8")
    assert drawn(picture) == kept, "look at the difference, then: make screenshots"


def test_every_picture_is_declared() -> None:
    assert {path.stem for path in FOLDER.glob("*.svg")} == {"tour", *(picture.name for picture in PICTURES)}


def test_the_tour_shows_the_pictures_as_they_are_now() -> None:
    kept = {scene.picture: (FOLDER / f"{scene.picture}.svg").read_text(encoding="utf-8") for scene in TOUR}
    assert (FOLDER / "tour.svg").read_text(encoding="utf-8") == moving_picture(kept), "make screenshots"
