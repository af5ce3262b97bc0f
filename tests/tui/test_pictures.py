"""The pictures in screenshots/ are what the cockpit draws now."""

import pytest

from tests.pictures import FOLDER, PICTURES, Picture, drawn


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_the_picture_is_what_the_cockpit_draws(picture: Picture) -> None:
    kept = (FOLDER / f"{picture.name}.svg").read_text(encoding="utf-8")
    assert drawn(picture) == kept, "look at the difference, then: make screenshots"


def test_every_picture_is_declared() -> None:
    assert {path.stem for path in FOLDER.glob("*.svg")} == {picture.name for picture in PICTURES}
