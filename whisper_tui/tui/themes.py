"""Themes: one TOML file each, read into Textual themes and the sixteen colours of terminal output."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textual.theme import Theme

from whisper_tui.tui.contrast import LEAST, contrast, pairs

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

LARGEST = 65_536
"""Bytes of a file of colours."""
_HEX = re.compile(r"#[0-9a-fA-F]{6}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,31}")


@dataclass(frozen=True)
class CockpitTheme:
    """A theme of the cockpit."""

    theme: Theme
    terminal: tuple[str, ...]
    """The colours 0 to 15 of terminal output, as #rrggbb."""
    colors: Mapping[str, str]
    """All other colours by the names that they have in the file."""


@dataclass(frozen=True)
class Themes:
    """The good themes by name, and one line about each file that is not."""

    good: dict[str, CockpitTheme]
    problems: tuple[str, ...] = ()


class _BadTheme(Exception):
    """What is wrong with a file."""


def load_themes(places: tuple[Path, ...] = PLACES) -> Themes:
    """All themes in some directories, those called whisper first. The first directory with a name has it.

    A theme that is hard to read is a good one with a problem.
    """
    good: dict[str, CockpitTheme] = {}
    problems: list[str] = []
    for place in (place for place in places if place.is_dir()):
        here: dict[str, Path] = {}
        for file in sorted(place.glob("*.toml")):
            try:
                found = _read(file)
            except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, _BadTheme) as problem:
                problems.append(f"The theme {file} cannot be used: {problem}".replace("\n", " "))
                continue
            if (other := here.setdefault(found.theme.name, file)) is not file:
                problems.append(f"The theme {file} cannot be used: {other.name} has the same name")
            elif good.setdefault(found.theme.name, found) is found:
                problems += _hard_to_read(file, found)
    names = sorted(good, key=lambda name: (not name.startswith("whisper-"), name))
    return Themes({name: good[name] for name in names}, tuple(problems))


def _hard_to_read(file: Path, found: CockpitTheme) -> list[str]:
    weak = [pair for pair in pairs(found.colors, found.terminal) if contrast(pair.text, pair.ground) < LEAST]
    if not weak:
        return []
    worst = min(weak, key=lambda pair: contrast(pair.text, pair.ground))
    words = f"{worst.what} has a contrast of {contrast(worst.text, worst.ground):.1f}, and {LEAST} is the least"
    more = f" ({len(weak) - 1} more)" if len(weak) > 1 else ""
    return [f"The theme {file} is hard to read: {words}{more}"]


def counterpart(name: str, themes: Mapping[str, CockpitTheme]) -> str:
    """The light theme of a dark one with the same beginning, and the other way round; else the next of that kind."""
    dark = themes[name].theme.dark
    others = [other for other, theme in themes.items() if theme.theme.dark is not dark]
    stem = name.rpartition("-")[0]
    same = [other for other in others if stem and other.rpartition("-")[0] == stem]
    return (same or others or [name])[0]


def _read(file: Path) -> CockpitTheme:
    if file.stat().st_size > LARGEST:
        raise _BadTheme(f"it is larger than {LARGEST} bytes")
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    unknown = set(data) - {"name", "dark", "colors", "variables", "terminal"}
    if unknown:
        raise _BadTheme(f"unknown key {sorted(unknown)[0]!r}")
    name, dark = data.get("name"), data.get("dark")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _BadTheme("`name` must be a text of letters, digits and dashes")
    if not isinstance(dark, bool):
        raise _BadTheme("`dark` must be true or false")
    colors = _table(data, "colors", COLORS)
    variables = _table(data, "variables", VARIABLES)
    terminal = _table(data, "terminal", TERMINAL)
    theme = Theme(name=name, dark=dark, variables=variables | _textual(colors, variables), text_alpha=1.0, **colors)  # type: ignore[arg-type]
    return CockpitTheme(theme, tuple(terminal[color] for color in TERMINAL), colors | variables)


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
