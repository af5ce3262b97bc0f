"""The pictures in screenshots/ are what the cockpit draws now."""

import re
from xml.etree import ElementTree

import pytest
from rich.style import Style

from tests.beside import BACK, NAME, Frame, moving_picture
from tests.pictures import FOLDER, PICTURES, Picture, drawn, universal_time
from tests.story import NAME as STORY
from tests.story import drawn as drawn_story
from tests.tour import TOUR
from tests.tour import moving_picture as the_tour


@pytest.mark.slow  # test_snapshots draws the same scenes
@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_the_picture_is_what_the_cockpit_draws(picture: Picture) -> None:
    kept = (FOLDER / f"{picture.name}.svg").read_text(encoding="utf-8")
    assert drawn(picture) == kept, "look at the difference, then: make screenshots"


def test_every_picture_is_declared() -> None:
    assert {path.stem for path in FOLDER.glob("*.svg")} == {
        "tour",
        NAME,
        STORY,
        *(picture.name for picture in PICTURES),
    }


def test_the_tour_shows_the_pictures_as_they_are_now() -> None:
    kept = {scene.picture: (FOLDER / f"{scene.picture}.svg").read_text(encoding="utf-8") for scene in TOUR}
    assert (FOLDER / "tour.svg").read_text(encoding="utf-8") == the_tour(kept), "make screenshots"


def test_the_timeline_is_what_the_page_of_a_story_draws() -> None:
    with universal_time():
        assert (FOLDER / f"{STORY}.svg").read_text(encoding="utf-8") == drawn_story(), "make screenshots"


def test_a_row_that_stays_is_drawn_once_and_one_that_changes_in_its_time() -> None:
    plain, red = Style.null(), Style.parse("bold red on blue")
    stays, before, after = (("stays", plain),), (("before", plain),), (("after ", red), ("it", plain))
    frames = [Frame((stays, before), (), 1.0, "first"), Frame((stays, after), (), 3.0, "then <it>")]
    text = moving_picture(frames)
    ElementTree.fromstring(text)
    assert text.count(">stays<") == 1 and '<g transform="translate(0 0)"><text' in text
    assert "25.00%{opacity:0}" in text and "25.00%{opacity:1}" in text
    assert "then &lt;it&gt;" in text and text.count("<rect fill=") == 1 and f'fill="{BACK}"' in text


def test_the_agent_beside_the_cockpit_is_a_small_picture_that_runs_and_loads_nothing() -> None:
    text = (FOLDER / f"{NAME}.svg").read_text(encoding="utf-8")
    assert len(text) < 500_000
    assert 25 <= float(re.findall(r"animation:([\d.]+)s", text)[0]) <= 35
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(text).iter()}
    assert tags == {"svg", "style", "g", "rect", "text"} and "url(" not in text and "/tmp/" not in text
