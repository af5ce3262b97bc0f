"""Themes: good and bad files, the user's own, contrast of everything that is drawn, and choosing one."""

import itertools
import math
from pathlib import Path

import pytest
from rich.color import Color as RichColor

from tests.rows import each_row
from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.scenes import Scenario, workday
from whisper_tui.model.errors import BadConfiguration
from whisper_tui.tui import app as app_module
from whisper_tui.tui.app import CockpitApp
from whisper_tui.tui.theme import (
    GROUNDS,
    LARGEST,
    NUMBERS,
    PLACES,
    Themes,
    carrier,
    contrast,
    counterpart,
    diff_grounds,
    drawn_as,
    load_themes,
    pairs,
    palette_color,
)

STEMS = ("whisper", "colour-blind", "dusk", "grey", "high-contrast", "moss")
NAMES = [f"{stem}-{kind}" for stem in STEMS for kind in ("dark", "light")]
DRAWN_NOT_READ = set(" │┆─━╭╮╰╯█▌▏▎▔▁▂▄▀▊▕◂▸") | {chr(code) for code in range(0x2500, 0x25A0)}
"""Lines and blocks: they are seen, not read."""
SMALL = 4.5


def drawn_pairs(cockpit: Cockpit) -> set[tuple[str, str, str]]:
    """Every text on the screen with its colours; of a dialog alone where there is one, for it dims the rest."""
    dialogs = cockpit.app.screen.query(".dialog")
    region = dialogs.first().region if dialogs else cockpit.app.screen.region
    found = set()
    for strip in cockpit.strips()[region.y : region.bottom]:
        for text, style, _ in strip.crop(region.x, region.right):
            read = "".join(character for character in text if character not in DRAWN_NOT_READ)
            if not read.strip() or style is None or style.color is None or style.bgcolor is None:
                continue
            colors = (style.bgcolor, style.color) if style.reverse else (style.color, style.bgcolor)
            found.add((*map(hexadecimal, colors), read.strip()))
    return found


def hexadecimal(color: RichColor) -> str:
    return color.get_truecolor().hex


def theme_files(tmp_path: Path, **files: str) -> Themes:
    for name, text in files.items():
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    return load_themes((tmp_path,))


def dark_text() -> str:
    place = next(place for place in PLACES if place.is_dir())
    return (place / "whisper-dark.toml").read_text(encoding="utf-8")


def test_twelve_themes_ship_and_all_are_easy_to_read() -> None:
    themes = load_themes()
    assert list(themes.good) == NAMES
    assert themes.problems == ()
    assert all(themes.good[name].theme.dark == name.endswith("-dark") for name in NAMES)


@each_row("name", NAMES)
def test_every_text_is_readable_on_its_backgrounds(name: str) -> None:
    theme = load_themes().good[name]
    for what, text, ground in pairs(theme.colors, theme.terminal):
        assert contrast(text, ground) >= SMALL, f"{name}: {what}"


@each_row("name", NAMES)
def test_every_text_can_be_read_in_256_colours(name: str) -> None:
    theme = load_themes().good[name].indexed()
    colors = {key: drawn_as(color) for key, color in theme.colors.items()}
    for what, text, ground in pairs(colors, tuple(map(drawn_as, theme.terminal))):
        assert contrast(text, ground) >= SMALL, f"{name}: {what}"


@each_row("name", NAMES)
def test_the_selection_and_the_bars_stay_different_from_what_is_around_them_in_256_colours(name: str) -> None:
    drawn = {key: drawn_as(color) for key, color in load_themes().good[name].indexed().colors.items()}
    assert len({drawn[key] for key in ("background", "row-back", "row-idle-back", "word-back", "button-back")}) >= 4
    assert drawn["row-back"] not in {drawn[ground] for ground in (*GROUNDS, "word-back")}


@each_row("name", NAMES)
def test_added_and_removed_lines_can_be_read(name: str) -> None:
    colors = load_themes().good[name].colors
    grounds = diff_grounds(colors)
    for ground in grounds.values():
        assert contrast(colors["foreground"], ground) >= SMALL, name
        assert ground != colors["panel"]
    # A grey theme has one tint for both; the signs before the lines tell them apart.
    assert grounds["added-back"] != grounds["added-part-back"]


def test_every_number_of_the_palette_can_be_drawn() -> None:
    assert [number for number in NUMBERS if drawn_as(carrier(number)) != palette_color(number)] == []


@pytest.mark.parametrize("name", ["high-contrast-dark", "high-contrast-light"])
def test_high_contrast_text_has_a_ratio_of_seven(name: str) -> None:
    theme = load_themes().good[name]
    texts = [pair for pair in pairs(theme.colors, ()) if pair.what.split(" on ")[1] in GROUNDS]
    assert min(contrast(text, ground) for _, text, ground in texts) >= 7


DEFICIENCIES = {
    "none": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}
"""What is seen of linear red, green and blue (Machado, Oliveira and Fernandes, 2009)."""


def seen_as(color: str, deficiency: str) -> tuple[float, float, float]:
    """A colour in the CIE Lab space as somebody sees it."""
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    seen = [
        min(1.0, max(0.0, sum(w * c for w, c in zip(row, linear, strict=True)))) for row in DEFICIENCIES[deficiency]
    ]
    whites = ((0.4124, 0.3576, 0.1805, 0.9505), (0.2126, 0.7152, 0.0722, 1.0), (0.0193, 0.1192, 0.9505, 1.089))
    ratios = [(a * seen[0] + b * seen[1] + c * seen[2]) / white for a, b, c, white in whites]
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in ratios)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@each_row("deficiency", DEFICIENCIES)
@each_row("name", ["colour-blind-dark", "colour-blind-light"])
def test_states_are_distinguishable_with_colour_blindness(name: str, deficiency: str) -> None:
    theme = load_themes().good[name]
    in_palette = {key: drawn_as(color) for key, color in theme.indexed().colors.items()}
    states = ("success", "error", "waiting", "running", "behind")
    for colors, (one, other) in itertools.product((theme.colors, in_palette), itertools.combinations(states, 2)):
        distance = math.dist(seen_as(colors[one], deficiency), seen_as(colors[other], deficiency))
        assert distance > 25, f"{one} and {other}"


SCENES = ("", "down,e", "d,enter", "D", "question_mark", "slash,r", "end,up", "ctrl+g", "ctrl+t", "B")
"""Keys after which there is something else to be read."""
SHORT = ("down,e", "d,enter", "ctrl+t")
"""What is enough for the themes that differ from others in their colours alone."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name if name.startswith("whisper") else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
)
async def test_everything_that_is_drawn_can_be_read(name: str) -> None:
    async with open_cockpit(workday(), theme=name) as cockpit:
        for keys in SCENES if name.startswith("whisper") else SHORT:
            await cockpit.select("7")
            await cockpit.press(*[key for key in keys.split(",") if key])
            await cockpit.pilot.pause()
            assert_readable(cockpit)
            await cockpit.press("escape")
            await cockpit.until(lambda: len(cockpit.app.screen_stack) == 1)
        await cockpit.select("6")
        await cockpit.pilot.pause()
        assert_readable(cockpit)
        await cockpit.press("x")
        await cockpit.pilot.pause()
        assert_readable(cockpit)


@pytest.mark.parametrize("name", ["whisper-dark", pytest.param("whisper-light", marks=pytest.mark.slow)])
async def test_a_terminal_of_256_colours_gets_readable_text_and_no_navy(name: str) -> None:
    async with open_cockpit(workday(), theme=name, indexed=True) as cockpit:
        for keys in ("7", "6"):
            await cockpit.select(keys)
            found = {(drawn_as(text), drawn_as(ground), words) for text, ground, words in drawn_pairs(cockpit)}
            assert len(found) > 5
            for foreground, background, text in found:
                assert contrast(foreground, background) >= SMALL, f"{text!r}: {foreground} on {background}"
                assert background not in {"#00005f", "#005f5f"}, text
        await cockpit.press("t")
        await cockpit.until(lambda: cockpit.app.theme != name)
        assert (
            cockpit.app.theme_variables["row-back"]
            == load_themes().good[cockpit.app.theme].indexed().colors["row-back"]
        )


def assert_readable(cockpit: Cockpit) -> None:
    found = drawn_pairs(cockpit)
    assert len(found) > 5
    for foreground, background, text in found:
        assert contrast(foreground, background) >= SMALL, f"{text!r}: {foreground} on {background}"


def test_a_bad_file_is_reported_in_one_line_and_the_good_ones_stay(tmp_path: Path) -> None:
    good = dark_text()
    themes = theme_files(
        tmp_path,
        good=good,
        broken="name = ",
        unknown=good.replace("[colors]", "[colours]"),
        missing=good.replace('primary = "#7cc4ff"\n', ""),
        wrong=good.replace('"#7cc4ff"', '"sky"', 1),
        extra=good.replace("[variables]", '[variables]\nsparkle = "#ffffff"'),
        nameless=good.replace('name = "whisper-dark"', ""),
        strange=good.replace('name = "whisper-dark"', 'name = "a\\u001b[31m"'),
        grey=good.replace("row-back = 60", "row-back = 59"),
        twice=good,
        large=good + "#" * LARGEST,
    )
    assert list(themes.good) == ["whisper-dark"]
    assert len(themes.problems) == 10
    assert all("\n" not in problem for problem in themes.problems)
    everything = " ".join(themes.problems)
    for words in (
        "'colours'",
        "'primary'",
        "'sparkle'",
        "`name`",
        "broken.toml",
        "has the same name",
        "larger than",
        "59, 102",
    ):
        assert words in everything


async def test_an_unknown_theme_is_reported_and_replaced() -> None:
    async with open_cockpit(workday(), theme="solarized") as cockpit:
        await cockpit.sees("There is no theme 'solarized'")
        assert cockpit.app.theme in NAMES


def test_a_cockpit_without_any_theme_reports_the_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_module, "load_themes", lambda _: Themes({}, ("The theme x.toml cannot be used: bad",)))
    with pytest.raises(BadConfiguration, match="No theme can be used"):
        CockpitApp(Scenario.begin().supervisor)


def test_a_users_theme_replaces_a_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(dark_text().replace("#7cc4ff", "#ffffff"), encoding="utf-8")
    themes = load_themes((tmp_path, *PLACES))
    assert themes.good["whisper-dark"].theme.primary == "#ffffff"
    assert list(themes.good) == NAMES


def test_a_theme_with_low_contrast_is_used_and_reported(tmp_path: Path) -> None:
    weak = (
        dark_text().replace('name = "whisper-dark"', 'name = "weak"').replace('muted = "#93a1b2"', 'muted = "#444444"')
    )
    themes = theme_files(tmp_path, weak=weak)
    assert list(themes.good) == ["weak"]
    (problem,) = themes.problems
    assert "weak.toml is hard to read: muted on" in problem and "4.5 is the least" in problem


def test_a_missing_or_unreadable_theme_directory_is_ignored(tmp_path: Path) -> None:
    assert list(load_themes((tmp_path / "nowhere", *PLACES)).good) == NAMES


def test_t_finds_the_light_theme_of_a_dark_one() -> None:
    themes = load_themes().good
    assert counterpart("moss-dark", themes) == "moss-light"
    assert counterpart("grey-light", themes) == "grey-dark"
    only = {"whisper-light": themes["whisper-light"]}
    assert counterpart("whisper-light", only) == "whisper-light"
    assert counterpart("moss-dark", {"moss-dark": themes["moss-dark"], **only}) == "whisper-light"


@pytest.mark.slow
async def test_the_list_of_themes_shows_each_and_keeps_the_chosen_one(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(dark_text().replace("whisper-dark", "mine"), encoding="utf-8")
    async with open_cockpit(workday(), themes_folder=tmp_path) as cockpit:
        await cockpit.press("ctrl+t")
        await cockpit.sees("Themes", "mine", "high-contrast-dark")
        assert cockpit.app.theme == "whisper-dark"
        await cockpit.press("down", "down")
        await cockpit.until(lambda: cockpit.app.theme == "colour-blind-dark")
        await cockpit.press("enter")
        await cockpit.sees("Theme colour-blind-dark", "keeps it.")
        assert cockpit.app.theme == "colour-blind-dark"


@pytest.mark.slow
async def test_leaving_the_list_of_themes_restores_the_previous_theme() -> None:
    async with open_cockpit(workday(), theme="moss-light") as cockpit:
        await cockpit.press("ctrl+t", "down", "down")
        await cockpit.until(lambda: cockpit.app.theme != "moss-light")
        await cockpit.press("escape")
        await cockpit.until(lambda: cockpit.app.theme == "moss-light")


async def test_a_bad_theme_of_the_user_is_reported_in_the_cockpit(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("name = ", encoding="utf-8")
    async with open_cockpit(workday(), themes_folder=tmp_path) as cockpit:
        await cockpit.sees("The theme", "cannot be used")
