"""The cockpit at three sizes, compared with how it looked when somebody last looked at it.

A row is a scene; each is drawn at every size, in `make test` every third at one of them. After a change of how the
cockpit looks, accept the new pictures with `--snapshot-update`, here alone, and look at each of them.
"""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from pytest_textual_snapshot import normalize_svg
from textual.pilot import Pilot

from tests.pictures import QUIET, Picture, pose, universal_time
from tests.tui.cockpit import Cockpit
from tests.tui.edit_scenes import (
    a_fetch,
    a_servers_tool,
    a_sub_agent,
    ended_edit,
    granting_file,
    new_file,
    one_edit,
    several_files,
)
from tests.tui.past import a_month
from tests.tui.preview_scenes import (
    applied,
    by_bubblewrap,
    cannot_be_applied,
    in_a_copy,
    not_available,
    previewed,
    previewing,
    read_only,
    undone,
)
from tests.tui.scenes import Scenario, building, crowd, long_script, workday
from tests.tui.test_output_pane import running
from tests.tui.test_processes import left_behind
from tests.tui.test_rules_screen import Book, a_day
from tests.tui.test_sandboxed import blocked
from tests.tui.test_scope import with_prefixes
from tests.tui.test_showing import two_streams
from tests.tui.test_talking import talkative
from tests.tui.test_trouble import troubled
from tests.tui.test_typing_in import asking
from whisper_tui.tui.app import CockpitApp
from whisper_tui.tui.cockpit_screen import CockpitScreen

SIZES = [(80, 24), (120, 40), (200, 60)]
LOOKS = 200
"""Looks for the picture as it was, 50 ms after each other."""


def binary() -> Scenario:
    return running(b"\x7fELF\x02\x01\x01\x00" + bytes(range(256)) * 2)


def build_with_prefixes() -> Scenario:
    return with_prefixes(("./build.sh", "--all"))


WHOLE = ("step 5 of 5", "at the end")
"""The history shows all output of the call."""
REPLAY = ("H", "down", "0", *["right_square_bracket"] * 5)
SEARCH = ("W", "ctrl+f", "e", "r", "r", "enter")
TRY = ("L", "slash", *"rm -r x", "enter")
NEXT_FILE = ("greater_than_sign",)
EDIT_FILE = (*NEXT_FILE, *["ctrl+d"] * 3, "less_than_sign", "greater_than_sign", "e")
"""All of the edit has been on the screen before one of its files is edited."""

SCENES = [
    # The queue, and one call of it.
    Picture("waiting", workday, "7"),
    Picture("running", workday, "6", shows="583800"),
    Picture("edited", workday, "3", shows="staging has the new site", theme="whisper-light"),
    Picture("groups", crowd, "2", ("ctrl+g",), shows="┌ s2 release agent", screens=1),
    Picture("long", long_script, "1", ("ctrl+d",), shows="Call 1", screens=1),
    Picture("quiet", crowd, "6", shows="quiet until 07:00", theme="moss-light", notifications=QUIET),
    Picture("trouble", troubled, "7", shows="cannot work as it should", theme="whisper-light"),
    # Dialogs about a decision.
    Picture("edit", building, "2", ("e",), typed="staging", shows="Will run: edited"),
    Picture("deny", workday, "8", ("d", "enter"), shows="without a reason"),
    Picture("scope", build_with_prefixes, "1", ("A",), shows="1 would have run without"),
    Picture("batch", workday, "7", ("space", "down", "space", "R"), shows="Decide about 2 calls"),
    Picture("never", workday, "8", ("N",), shows="also while no cockpit"),
    # Dialogs about everything else.
    Picture("signals", workday, "6", ("x",), shows="SIGTERM", theme="whisper-light"),
    Picture("talk", talkative, "1", ("P",), shows="There are three."),
    Picture("themes", crowd, "6", ("ctrl+t",), shows="Keep it", theme="high-contrast-light"),
    Picture("palette", workday, "7", ("ctrl+p",), shows="Approve  (a)"),
    Picture("help", workday, "7", ("question_mark",), shows="Keys and signs"),
    # Output, and the processes of commands.
    Picture("by-time", two_streams, None, SEARCH, shows="of 5 “err”", screens=1),
    Picture(
        "errors",
        two_streams,
        None,
        ("w", "exclamation_mark"),
        shows="No match in the output",
        theme="whisper-light",
        screens=1,
    ),
    Picture("bytes", binary, None, shows=("stdout, bytes", "fe ff")),
    Picture("terminal", asking, None, ("T",), shows=("Ctrl+] exits", "Name of this release:"), screens=1),
    Picture("blocked", blocked, None, shows=("Blocked", "tried to write /home/me/.cache/garden")),
    Picture("left-behind", left_behind, None, ("b",), shows=("Left over from earlier days", "./new-server")),
    # Edits of files, and other tools of agents.
    Picture("diff", one_edit, "1", shows=("edit settings.py", "hunk 1")),
    Picture("diff-light", one_edit, "1", shows=("edit settings.py", "hunk 1"), theme="whisper-light"),
    Picture("diff-of-files", several_files, "1", NEXT_FILE, shows=("file 2", "edit settings.py"), screens=1),
    Picture("diff-new", new_file, "1", shows="no line feed at the end", theme="whisper-light"),
    Picture("diff-grants", granting_file, "1", shows="with it what runs later"),
    Picture("diff-ended", ended_edit, "1", shows="now as it was approved"),
    Picture("diff-edited", several_files, "1", EDIT_FILE, shows=("Edit file 2 of 3", "Will be made: as asked")),
    Picture("preview", previewed, "1", shows="Preview  3 created"),
    Picture("preview-running", previewing, "1", shows="running for", theme="whisper-light"),
    Picture("preview-blocked", cannot_be_applied, "1", shows="Preview  3 created", theme="whisper-light"),
    Picture("preview-none", not_available, "1", shows="It was not previewed"),
    Picture("preview-bubblewrap", by_bubblewrap, "1", shows="Previewed with bubblewrap", theme="whisper-light"),
    Picture("preview-copy", in_a_copy, "1", shows="Previewed with a copy of the workspace"),
    Picture("preview-read-only", read_only, "1", shows="it would write to 3 files", theme="whisper-light"),
    Picture("history-undone", undone, None, ("H",), shows=("Previewed", "Since then"), screens=2),
    Picture("take-back", applied, "1", ("J",), shows=("Undo the changes of call 1", "edit settings.py"), screens=2),
    Picture("web", a_fetch, "1", shows=("Host", "xn--ython-uye.org")),
    Picture("server", a_servers_tool, "1", shows=("Server", "Moss grows"), theme="whisper-light"),
    Picture("sub-agent", a_sub_agent, "1", shows=("reader", "Read the notes")),
    # The history and the rules.
    Picture("history", a_month, None, ("H", "down"), shows=WHOLE),
    Picture("history-light", a_month, None, ("H", "down"), shows=WHOLE, theme="whisper-light"),
    Picture("replay", a_month, None, REPLAY, shows=("step 2 of 5", "0:25.0")),
    Picture("filtered", a_month, None, ("H", "x", "x"), shows=("ending: failed", "End of the history.", "exit 2")),
    Picture("figures", a_month, None, ("H", "down", "i"), shows=("Saved by approvals", "3.0 s"), screens=3),
    Picture("export", a_month, None, ("H", "down", "E"), shows=("asciicast 3", "All calls of the history"), screens=3),
    Picture("rules", a_day, None, ("L",), shows=("1 time of 5", "git status …  once"), rule_book=Book()),
    Picture("tested", a_day, None, TRY, shows="Asked: you would decide.", rule_book=Book()),
]


@pytest.fixture(autouse=True)
def same_time_and_place_everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir("/")
    with universal_time():
        yield


@pytest.fixture(autouse=True)
def toasts_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, they are there when the picture is taken."""
    notify = CockpitScreen.notify
    patient = {"timeout": 600}
    monkeypatch.setattr(CockpitScreen, "notify", lambda screen, *said, **how: notify(screen, *said, **how | patient))


def everywhere() -> Iterator[object]:
    """Every scene at every size; all are slow but one size of every third scene, a different one each time."""
    for number, scene in enumerate(SCENES):
        for place, size in enumerate(SIZES):
            marks = () if number % 3 == 0 and place == number // 3 % len(SIZES) else pytest.mark.slow
            yield pytest.param(scene, size, id=f"{scene.name}-{size[0]}x{size[1]}", marks=marks)


async def looks_as(picture: Path, cockpit: Cockpit) -> None:
    """Wait until the cockpit looks as it did, bounded: several layouts follow each other until every width is known."""
    expected = picture.read_text(encoding="utf-8") if picture.exists() else ""
    for _ in range(LOOKS):
        if normalize_svg(cockpit.app.export_screenshot(simplify=True)) == expected:
            return
        await cockpit.pilot.pause(0.05)


@pytest.mark.parametrize(("scene", "size"), everywhere())
def test_the_cockpit_looks_as_it_did(
    scene: Picture, size: tuple[int, int], snap_compare: Callable[..., bool], request: pytest.FixtureRequest
) -> None:
    picture = request.path.parent / "__snapshots__" / request.path.stem / f"{request.node.name}.svg"
    scenario = scene.begin()
    scenario.supervisor.rule_book = scene.rule_book
    settings = {"theme": scene.theme, "notifications": scene.notifications}
    app = CockpitApp(scenario.supervisor, user="me", clock=scenario.clock, **settings)

    def before(pilot: Pilot[None]) -> Awaitable[None]:
        cockpit = Cockpit(app, pilot, scenario)

        async def posed() -> None:
            await cockpit.settled()
            await pose(scene, cockpit)
            await cockpit.still()
            await looks_as(picture, cockpit)

        return posed()

    assert snap_compare(app, terminal_size=size, run_before=before)
