"""The pictures in screenshots/: scenes of the demo's story, drawn by the cockpit itself."""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from textual.widgets import Input, TextArea

from tests.beside import NAME as BESIDE
from tests.beside import draw as draw_beside
from tests.in_memory.world import InMemoryRules
from tests.story import NAME as STORY
from tests.story import draw as draw_story
from tests.tour import draw as draw_tour
from tests.tui.cockpit import Cockpit, open_cockpit, toast_text
from tests.tui.host_scenes import one_away
from tests.tui.past import a_month
from tests.tui.place_scenes import at_places
from tests.tui.preview_scenes import applied, cannot_be_applied, not_available, previewed, undone
from tests.tui.scenes import Scenario, building, crowd, long_script, with_some_aside, workday
from tests.tui.test_processes import left_behind
from tests.tui.test_rules_screen import Book, a_day, with_a_project
from tests.tui.test_scope import with_prefixes
from tests.tui.test_showing import two_streams
from tests.tui.test_trouble import troubled
from tests.tui.test_typing_in import asking
from whisper_tui.config.configuration import ConfigurationFile
from whisper_tui.notify.notify_settings import NO_NOTIFICATIONS, NotifySettings
from whisper_tui.system.state_directory import Directories
from whisper_tui.tui.screens.command_screen import CommandScreen

FOLDER = Path(__file__).parent.parent / "screenshots"


@dataclass(frozen=True)
class Picture:
    """One scene: its calls, which of them is looked at, what is pressed, and what is then on the screen."""

    name: str
    scenario: Callable[[], Scenario]
    call_id: str | None
    """None: the one that the cockpit selects by itself."""
    keys: tuple[str, ...] = ()
    typed: str = ""
    """What stands in the command field afterwards."""
    shows: str | tuple[str, ...] = ()
    """The picture is ready when all of this is on the screen."""
    size: tuple[int, int] = (120, 40)
    theme: str = "whisper-dark"
    screens: int | None = None
    """How many screens lie over each other then. None: a dialog, if keys are pressed."""
    notifications: NotifySettings = NO_NOTIFICATIONS
    rule_book: InMemoryRules | None = None

    def begin(self) -> Scenario:
        """Make its calls."""
        return self.scenario()


def with_settings() -> Scenario:
    """The settings of somebody who has written none."""
    scenario = a_day()
    listed = ConfigurationFile(Directories(*[Path("/nonexistent")] * 3)).listed()
    scenario.supervisor.shown_settings = {setting.name: setting for setting in listed.settings}
    return scenario


QUIET = NO_NOTIFICATIONS.model_copy(update={"quiet": "22:00-07:00"})

PICTURES = (
    Picture("waiting", workday, "7"),
    Picture("effects", workday, "8", shows="+ rate = 20"),
    Picture("preview", previewed, "1", shows=("Preview  3 created", "edit settings.py"), size=(140, 46)),
    Picture("no-preview", not_available, "1", shows=("It was not previewed", "Not with bubblewrap")),
    Picture(
        "conflict", cannot_be_applied, "1", shows=("Changed since the preview", "edit settings.py"), size=(140, 46)
    ),
    Picture("history-of-changes", undone, None, ("H",), shows=("Previewed", "Since then"), screens=2),
    Picture("take-back", applied, "1", ("J",), shows=("Undo the changes", "edit settings.py"), screens=2),
    Picture("running", building, "1", shows=" 70%"),
    Picture("edit", building, "2", ("e",), typed="staging", shows="Will run: edited"),
    Picture("ended", workday, "2", shows="was      119.00"),
    Picture("denied", workday, "5", shows="Keep what was built"),
    Picture("background", workday, "4", shows="preview: ready"),
    Picture("signals", building, "1", ("x", "down"), shows="SIGTERM"),
    Picture("help", workday, "7", ("question_mark",), shows="Keys and signs"),
    Picture("light", workday, "6", shows="redirects twice", theme="whisper-light"),
    Picture("narrow", workday, "7", size=(80, 24)),
    Picture("wide", workday, "6", shows="redirects twice", size=(200, 60)),
    Picture("groups", crowd, "2", ("ctrl+g",), shows="┌ s2 release agent", screens=1),
    Picture("alike", crowd, "2", ("ctrl+g", "ctrl+g"), shows=", alike", screens=1, theme="dusk-dark"),
    Picture("long", long_script, "1", ("ctrl+d",), shows="not seen yet", screens=1),
    Picture("quiet", crowd, "6", shows="quiet until 07:00", theme="moss-dark", notifications=QUIET),
    Picture("themes", crowd, "6", ("ctrl+t",), shows="high-contrast-light", theme="colour-blind-light"),
    Picture("high-contrast", crowd, "6", shows="Deletes recursively", theme="high-contrast-dark"),
    Picture("history", a_month, "6", ("H", "down", "0", *["right_square_bracket"] * 5), shows="step 2 of 5"),
    Picture("rules", a_day, "6", ("L", "slash", *"rm -r x", "enter"), shows="you would decide", rule_book=Book()),
    Picture("settings", with_settings, None, ("comma", "down", "down"), shows="config.toml"),
    Picture("trust", a_day, "6", ("L", "end"), shows="its project is not trusted", rule_book=with_a_project()),
    Picture("deny", workday, "8", ("d",), shows="Deny call 8"),
    Picture("batch", workday, "7", ("space", "down", "space", "R"), shows="Decide about 2 calls"),
    Picture("aside", with_some_aside, "7", shows=("◈ 2 set aside", "goes on meanwhile")),
    Picture("scope", lambda: with_prefixes(("./build.sh", "--all")), "1", ("A",), shows="1 would have run without"),
    Picture("found", two_streams, "1", ("ctrl+f", *"err", "enter"), shows="of 5 “err”", screens=1),
    Picture("terminal", asking, "1", ("T",), shows="Name of this release:", screens=1),
    Picture("left-behind", left_behind, "1", ("b",), shows="Left over from earlier days"),
    Picture("palette", workday, "7", ("ctrl+p",), shows="Approve  (a)"),
    Picture("trouble", troubled, "7", shows="cannot work as it should"),
    Picture("hosts", one_away, "gpu1:7", shows=("2 of 3 machines", "Try: ssh gpu2 true", "− cache")),
    Picture("places", at_places, "3", shows=("@gpu2", "No route to host", "not on this machine")),
    Picture("grey", workday, "6", shows="redirects twice", theme="grey-light"),
)


@contextmanager
def universal_time():  # type: ignore[no-untyped-def]
    """Times of day that do not depend on where the picture is drawn."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()


async def pose(picture: Picture, cockpit: Cockpit) -> None:
    """Bring a cockpit to what the picture shows."""
    if picture.call_id is not None:
        await cockpit.select(picture.call_id)
        await cockpit.settled()
    await cockpit.until(lambda: not cockpit.screen.card.facts.asking)
    await cockpit.still()
    for key in picture.keys:
        await cockpit.press(key)
        await cockpit.pilot.pause()
    await cockpit.until(lambda: len(cockpit.app.screen_stack) == (picture.screens or (2 if picture.keys else 1)))
    if picture.typed:
        area = cockpit.app.screen.query_one(TextArea)
        area.text = picture.typed
        area.move_cursor(area.document.end)
    for field in cockpit.app.screen.query(Input):
        field.cursor_blink = False
    await cockpit.sees(*([picture.shows] if isinstance(picture.shows, str) else picture.shows))
    cockpit.app.screen.refresh()
    # The history has a header of its own, and so has what lies over it; a toast lies over the header.
    elsewhere = any(isinstance(screen, CommandScreen) for screen in (*cockpit.app.screen_stack[1:], cockpit.app.screen))
    if not toast_text(cockpit.app):
        await cockpit.sees("whisper_tui", *(() if elsewhere else ("connected",)))
    await cockpit.still()


async def _drawn(picture: Picture) -> str:
    settings = {"theme": picture.theme, "notifications": picture.notifications, "rule_book": picture.rule_book}
    async with open_cockpit(picture.begin(), size=picture.size, **settings) as cockpit:
        await pose(picture, cockpit)
        return cockpit.app.export_screenshot(title="whisper_tui")


def drawn(picture: Picture) -> str:
    """The picture as SVG; the same every time."""
    with universal_time():
        return asyncio.run(_drawn(picture))


def main() -> None:
    """Draw all pictures, and remove those that are no longer declared."""
    names = {"tour.svg", f"{BESIDE}.svg", f"{STORY}.svg", *(f"{picture.name}.svg" for picture in PICTURES)}
    for old in FOLDER.glob("*.svg"):
        if old.name not in names:
            old.unlink()
    for picture in PICTURES:
        (FOLDER / f"{picture.name}.svg").write_text(drawn(picture), encoding="utf-8")
        print(f"screenshots/{picture.name}.svg")
    draw_tour(FOLDER)
    with universal_time():
        draw_story(FOLDER)
    draw_beside(FOLDER)
    print(f"screenshots/{BESIDE}.svg")


if __name__ == "__main__":
    main()
