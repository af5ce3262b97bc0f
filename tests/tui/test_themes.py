"""Themes: good and bad files, and contrast of everything that is drawn."""

from pathlib import Path

import pytest
from rich.color import Color as RichColor

from tests.tui.cockpit import Cockpit, cockpit
from tests.tui.scenes import Play, workday
from whisper_tui.model.errors import BadConfiguration
from whisper_tui.tui import app as app_module
from whisper_tui.tui.app import CockpitApp
from whisper_tui.tui.themes import PLACES, CockpitTheme, Themes, load_themes

NAMES = ["whisper-dark", "whisper-light"]
DRAWN_NOT_READ = set(" │┆─━╭╮╰╯█▌▏▎▔▁▂▄▀▊▕◂▸") | {chr(code) for code in range(0x2500, 0x25A0)}
"""Lines and blocks: they are seen, not read."""
SMALL = 4.5


def wcag(one: str, other: str) -> float:
    """The contrast of two colours as WCAG 2 defines it, from 1 to 21."""

    def luminance(color: str) -> float:
        channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def pairs(seat: Cockpit) -> set[tuple[str, str, str]]:
    """Every text on the screen with its colours; of a dialog alone where there is one, for it dims the rest."""
    dialogs = seat.app.screen.query(".dialog")
    region = dialogs.first().region if dialogs else seat.app.screen.region
    found = set()
    for strip in seat.strips()[region.y : region.bottom]:
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


def test_both_themes_ship() -> None:
    themes = load_themes()
    assert sorted(themes.good) == NAMES
    assert themes.problems == ()
    assert themes.good["whisper-dark"].theme.dark
    assert not themes.good["whisper-light"].theme.dark


@pytest.mark.parametrize("name", NAMES)
def test_terminal_colours_can_be_read(name: str) -> None:
    theme: CockpitTheme = load_themes().good[name]
    background = theme.theme.background
    assert background is not None
    for number, color in enumerate(theme.terminal):
        assert wcag(color, background) >= SMALL, f"colour {number} of {name}: {color} on {background}"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("keys", ["", "down,e", "d,enter", "D", "question_mark", "slash,r", "end,up", "up,f,x"])
async def test_everything_that_is_drawn_can_be_read(name: str, keys: str) -> None:
    async with cockpit(workday(), theme=name) as seat:
        if "x" in keys:
            await seat.select("6")
        await seat.press(*[key for key in keys.split(",") if key])
        await seat.pilot.pause()
        found = pairs(seat)
        assert len(found) > 5
        for foreground, background, text in found:
            assert wcag(foreground, background) >= SMALL, f"{text!r}: {foreground} on {background}"


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
    )
    assert list(themes.good) == ["whisper-dark"]
    assert len(themes.problems) == 6
    assert all("\n" not in problem for problem in themes.problems)
    everything = " ".join(themes.problems)
    for words in ("'colours'", "'primary'", "'sparkle'", "`name`", "broken.toml"):
        assert words in everything


async def test_an_unknown_theme_is_told_and_another_one_used() -> None:
    async with cockpit(workday(), theme="solarized") as seat:
        await seat.sees("There is no theme 'solarized'")
        assert seat.app.theme in NAMES


def test_a_cockpit_without_any_theme_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_module, "load_themes", lambda: Themes({}, ("The theme x.toml cannot be used: bad",)))
    with pytest.raises(BadConfiguration, match="No theme can be used"):
        CockpitApp(Play.begin().stage)
