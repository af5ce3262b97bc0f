"""Themes: one TOML file each, read into Textual themes and the sixteen colours of terminal output."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textual.theme import Theme

PLACES = (Path(__file__).parent.parent / "themes", Path(__file__).parent.parent.parent / "themes")
"""Inside the installed package; beside it in a checkout."""

COLORS = (
    "primary",
    "secondary",
    "accent",
    "foreground",
    "background",
    "surface",
    "panel",
    "success",
    "warning",
    "error",
)
VARIABLES = (
    "muted", "frame", "waiting", "running", "behind", "risk", "edited", "hidden-text", "hidden-back",
    "word-back", "row-text", "row-back", "row-idle-back", "thumb", "track", "button-text", "button-back",
)  # fmt: skip
TERMINAL = (
    "black", "red", "green", "yellow", "blue", "magenta", "cyan", "white",
    "bright-black", "bright-red", "bright-green", "bright-yellow",
    "bright-blue", "bright-magenta", "bright-cyan", "bright-white",
)  # fmt: skip

_HEX = re.compile(r"#[0-9a-fA-F]{6}")


@dataclass(frozen=True)
class CockpitTheme:
    """A theme of the cockpit."""

    theme: Theme
    terminal: tuple[str, ...]
    """The colours 0 to 15 of terminal output, as #rrggbb."""


@dataclass(frozen=True)
class Themes:
    """The good themes by name, and one line about each file that is not."""

    good: dict[str, CockpitTheme]
    problems: tuple[str, ...] = ()


class _BadTheme(Exception):
    """What is wrong with a file."""


def load_themes(places: tuple[Path, ...] = PLACES) -> Themes:
    """All themes in some directories; the first file of a name counts."""
    good: dict[str, CockpitTheme] = {}
    problems: list[str] = []
    for file in (file for place in places if place.is_dir() for file in sorted(place.glob("*.toml"))):
        try:
            found = _read(file)
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, _BadTheme) as problem:
            problems.append(f"The theme {file} cannot be used: {problem}".replace("\n", " "))
            continue
        good.setdefault(found.theme.name, found)
    return Themes(good, tuple(problems))


def _read(file: Path) -> CockpitTheme:
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    unknown = set(data) - {"name", "dark", "colors", "variables", "terminal"}
    if unknown:
        raise _BadTheme(f"unknown key {sorted(unknown)[0]!r}")
    name, dark = data.get("name"), data.get("dark")
    if not isinstance(name, str) or not name:
        raise _BadTheme("`name` must be a text")
    if not isinstance(dark, bool):
        raise _BadTheme("`dark` must be true or false")
    colors = _table(data, "colors", COLORS)
    variables = _table(data, "variables", VARIABLES)
    terminal = _table(data, "terminal", TERMINAL)
    theme = Theme(name=name, dark=dark, variables=variables | _textual(colors, variables), text_alpha=1.0, **colors)  # type: ignore[arg-type]
    return CockpitTheme(theme, tuple(terminal[color] for color in TERMINAL))


def _table(data: dict[str, Any], name: str, keys: tuple[str, ...]) -> dict[str, str]:
    table = data.get(name)
    if not isinstance(table, dict):
        raise _BadTheme(f"the table [{name}] is missing")
    for key in table:
        if key not in keys:
            raise _BadTheme(f"unknown key {key!r} in [{name}]")
    for key in keys:
        if not isinstance(table.get(key), str) or not _HEX.fullmatch(table[key]):
            raise _BadTheme(f"{key!r} in [{name}] must be a colour like #1a2b3c")
    return dict(table)


def _textual(colors: dict[str, str], variables: dict[str, str]) -> dict[str, str]:
    """Textual's own variables, so that its widgets look like ours."""
    return {
        "footer-background": colors["panel"],
        "footer-foreground": colors["foreground"],
        "footer-description-foreground": colors["foreground"],
        "footer-description-background": colors["panel"],
        "footer-key-foreground": colors["primary"],
        "footer-key-background": colors["panel"],
        "footer-item-background": colors["panel"],
        "border": colors["primary"],
        "border-blurred": variables["frame"],
        "block-cursor-foreground": variables["row-text"],
        "block-cursor-background": variables["row-back"],
        "block-cursor-text-style": "bold",
        "block-cursor-blurred-foreground": colors["foreground"],
        "block-cursor-blurred-background": variables["row-idle-back"],
        "block-cursor-blurred-text-style": "none",
        "block-hover-background": variables["row-idle-back"],
        "input-cursor-background": colors["foreground"],
        "input-cursor-foreground": colors["background"],
        "input-selection-background": variables["row-idle-back"],
        "scrollbar": variables["thumb"],
        "scrollbar-hover": colors["primary"],
        "scrollbar-active": colors["primary"],
        "scrollbar-background": variables["track"],
        "scrollbar-background-hover": variables["track"],
        "scrollbar-background-active": variables["track"],
        "scrollbar-corner-color": variables["track"],
    }
