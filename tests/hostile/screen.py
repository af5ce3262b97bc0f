"""What a cockpit writes to its terminal, as the terminal takes it and as a person reads it."""

import re

from textual._compositor import LayoutUpdate
from textual.scroll_view import ScrollView
from textual.widget import Widget
from wcwidth import wcwidth

from tests.tui.cockpit import Cockpit
from whisper_tui.model.text import is_hidden, visible

OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[[0-9]+;[0-9]+H|\r?\n")
"""All that a frame needs: colours, and where a row begins."""
DRAWN = re.compile(r"[\s│┆┃“▁-▐▔▕]+")
"""Blanks, and lines drawn at the edges of what is wrapped."""


def frame(cockpit: Cockpit) -> str:
    """The characters with which the whole screen is drawn."""
    update = cockpit.app.screen._compositor.render_update(full=True, screen_stack=cockpit.app._background_screens)
    assert isinstance(update, LayoutUpdate)
    return update.render_segments(cockpit.app.console)


def foreign(written: str, *, printed: bool = False) -> list[str]:
    """What is written to a terminal beside text, colours and places, and text that a person would not see."""
    parts = OURS.split(written)
    return [ascii(part) for part in parts if any(is_hidden(character, printed=printed) for character in part)]


def links(cockpit: Cockpit) -> list[object]:
    """Whatever of the screen does something when it is clicked, or leads somewhere else."""
    styles = [segment.style for strip in cockpit.strips() for segment in strip if segment.style is not None]
    return [found for style in styles for found in (style.link, style.meta.get("@click")) if found]


def rows(cockpit: Cockpit, widget: Widget | None = None) -> list[str]:
    """The text of the screen, or of the part of it that a widget takes, row by row."""
    region = (widget if widget is not None else cockpit.app.screen).scrollable_content_region
    lines = cockpit.strips()[region.y : region.bottom]
    return ["".join(segment.text for segment in strip.crop(region.x, region.right)) for strip in lines]


def shifted(cockpit: Cockpit) -> list[str]:
    """Rows that a terminal, which adds up the columns of characters, would make wider or narrower than they are."""
    return [row for row in rows(cockpit) if sum(map(wcwidth, row)) != cockpit.app.size.width]


def squeezed(text: str) -> str:
    """The text without blanks and edges, which say nothing about what was wrapped where."""
    return DRAWN.sub("", text)


def holds(cockpit: Cockpit, text: str, widget: Widget | None = None) -> bool:
    """Whether all of a text is on the screen, with whatever would not be seen in it shown."""
    return not missing(rows(cockpit, widget), [text])


def missing(shown: list[str], texts: list[str]) -> list[str]:
    """Which of these texts the rows do not hold, by their beginnings."""
    whole = squeezed("".join(shown)).replace("␉", "")
    return [text[:20] for text in texts if squeezed(visible(text.replace("\t", " "))) not in whole]


async def read_through(cockpit: Cockpit, view: ScrollView) -> list[str]:
    """All rows of a text, read by scrolling through it from top to bottom."""
    found: list[str] = []
    while True:
        view.scroll_to(y=len(found), animate=False, immediate=True)
        await cockpit.pilot.pause()
        check(cockpit)
        skipped = len(found) - view.scroll_offset.y
        found += rows(cockpit, view)[skipped : view.scrollable_content_region.height]
        if len(found) >= view.virtual_size.height:
            return found


def check(cockpit: Cockpit, *, printed: bool = False) -> None:
    """Nothing on the screen acts, nothing is there unseen, and every column is where it should be.

    `printed`: output is on it, in which blanks may have other widths.
    """
    assert foreign(frame(cockpit), printed=printed) == []
    assert links(cockpit) == []
    assert shifted(cockpit) == []
