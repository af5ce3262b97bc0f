"""Themes: one TOML file each, checked for contrast, in the colours of the terminal, and the dialog that chooses one."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from rich.color import Color, ColorSystem
from rich.console import Console
from textual import constants, on
from textual.app import ComposeResult
from textual.color import Color as TextualColor
from textual.containers import Vertical
from textual.content import Content
from textual.theme import Theme
from textual.widgets.option_list import Option

from whisper_tui.model.text import visible
from whisper_tui.tui.dialogs.dialog import Dialog, StyleFiles
from whisper_tui.tui.row_list import RowList

LEAST = 4.5
"""The contrast that text of ordinary size needs (WCAG 2, level AA)."""

GROUNDS = ("background", "surface", "panel")
"""Where text of every role may stand."""
TEXTS = ("foreground", "muted", "primary", "success", "error", "waiting", "running", "behind", "risk", "edited")
"""The colours of roles."""
OTHERS = (
    ("foreground", "word-back"), ("foreground", "row-idle-back"), ("muted", "row-idle-back"),
    ("row-text", "row-back"), ("hidden-text", "hidden-back"), ("button-text", "button-back"), ("background", "error"),
    ("background", "risk"), ("background", "foreground"), ("warning", "surface"), ("warning", "panel"),
    ("warning", "background"),
)  # fmt: skip
"""Text that stands on a ground of its own."""
_READ_ON: dict[str, tuple[str, ...]] = dict.fromkeys((*TEXTS, "warning"), GROUNDS)
"""The grounds of the texts that may be exchanged for readable ones."""


class Pair(NamedTuple):
    """A text and the ground under it, as #rrggbb."""

    what: str
    """Their names."""
    text: str
    ground: str


def pairs(colors: Mapping[str, str], terminal: tuple[str, ...]) -> Iterator[Pair]:
    """Everything that a theme puts on something. Output of commands has the ground of the cockpit."""
    for text, ground in (*((text, ground) for text in TEXTS for ground in GROUNDS), *OTHERS):
        yield Pair(f"{text} on {ground}", colors[text], colors[ground])
    for number, color in enumerate(terminal):
        yield Pair(f"terminal colour {number} on background", color, colors["background"])


def contrast(one: str, other: str) -> float:
    """The contrast of two colours like #1a2b3c, from 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: str) -> float:
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


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


NUMBERS = tuple(number for number in range(16, 256) if number not in {59, 102, 145, 188})
"""Without those below, which are whatever the user has set, and the four greys that Rich never draws."""


def has_indexed_colours() -> bool:
    """True if the terminal is known to show the 256 colours of the standard palette, and no others."""
    return Console(color_system=constants.COLOR_SYSTEM, force_terminal=True).color_system == "256"  # type: ignore[arg-type]


def indexed(
    colors: Mapping[str, str], picked: Mapping[str, int], readable_on: Mapping[str, tuple[str, ...]]
) -> dict[str, str]:
    """Return colours for a terminal with the palette: the picked numbers, and for others the nearest that there is.

    `readable_on` names the grounds on which a text stays as readable as themes have to be.
    """
    grounds = {name for names in readable_on.values() for name in names}
    numbers = {name: picked.get(name) or nearest(colors[name]) for name in grounds}
    for name in colors.keys() - grounds:
        under = tuple(palette_color(numbers[ground]) for ground in readable_on.get(name, ()))
        numbers[name] = picked.get(name) or nearest(colors[name], under)
    return {name: carrier(numbers[name]) for name in colors}


def palette_color(number: int) -> str:
    """The colour that a terminal shows for a number from 16 to 255."""
    return Color.from_ansi(number).get_truecolor().hex


@cache
def carrier(number: int) -> str:
    """Return a colour that is drawn with this number of the palette."""
    # Rich reduces what Textual draws, and rounds light greys to the one beside them: #eeeeee becomes #e4e4e4. So a
    # number cannot always be had by its own colour.
    own = palette_color(number)
    greys = (f"#{level:02x}{level:02x}{level:02x}" for level in range(256))
    return next(color for color in (own, *greys) if drawn_as(color) == own)


def drawn_as(color: str) -> str:
    """Return the colour of the palette that a terminal is told to show for a colour."""
    return Color.parse(color).downgrade(ColorSystem.EIGHT_BIT).get_truecolor().hex


@lru_cache(maxsize=1024)
def nearest(color: str, grounds: tuple[str, ...] = ()) -> int:
    """Return the number of the colour that looks most like another one, and can be read on some grounds."""
    wanted = _oklab(color)
    readable = [n for n in NUMBERS if all(contrast(palette_color(n), ground) >= LEAST for ground in grounds)]
    return min(
        readable or NUMBERS,
        key=lambda number: sum((a - b) ** 2 for a, b in zip(wanted, _oklab(palette_color(number)), strict=True)),
    )


@lru_cache(maxsize=1024)
def _oklab(color: str) -> tuple[float, float, float]:
    """The lightness and the two hues of a colour in a space where equal distances look equal."""
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    middle = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    )


@dataclass(frozen=True)
class CockpitTheme:
    """A theme of the cockpit."""

    theme: Theme
    terminal: tuple[str, ...]
    """The colours 0 to 15 of terminal output, as #rrggbb."""
    colors: Mapping[str, str]
    """All other colours by the names that they have in the file."""
    picked: Mapping[str, int] = field(default_factory=dict)
    """Colours for a terminal of 256 colours: their numbers, where the nearest one would not do."""

    def indexed(self) -> "CockpitTheme":
        """Return this theme for a terminal of 256 colours."""
        colors = indexed(self.colors, self.picked, _READ_ON)
        ground = palette_color(self.picked.get("background") or nearest(self.colors["background"]))
        terminal = tuple(carrier(nearest(color, (ground,))) for color in self.terminal)
        theme = _theme(self.theme.name, self.theme.dark, colors)
        return CockpitTheme(theme, terminal, colors, self.picked)


@dataclass(frozen=True)
class Themes:
    """The good themes by name, and one line about each file that is not."""

    good: dict[str, CockpitTheme]
    problems: tuple[str, ...] = ()


class _BadTheme(Exception):
    """A theme file cannot be used; the text is the reason."""


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
    unknown = set(data) - {"name", "dark", "colors", "variables", "terminal", "indexed"}
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
    return CockpitTheme(
        _theme(name, dark, colors | variables),
        tuple(terminal[color] for color in TERMINAL),
        colors | variables,
        _numbers(data.get("indexed", {})),
    )


def _theme(name: str, dark: bool, colors: Mapping[str, str]) -> Theme:
    """Return Textual's theme of some colours."""
    own = {key: colors[key] for key in COLORS}
    variables = {key: colors[key] for key in VARIABLES}
    return Theme(name=name, dark=dark, variables=variables | _textual(own, variables), text_alpha=1.0, **own)  # type: ignore[arg-type]


def _numbers(table: object) -> dict[str, int]:
    if not isinstance(table, dict):
        raise _BadTheme("[indexed] must be a table")
    for key, number in table.items():
        if key not in (*COLORS, *VARIABLES):
            raise _BadTheme(f"unknown key {key!r} in [indexed]")
        if not isinstance(number, int) or number not in NUMBERS:
            raise _BadTheme(f"{key!r} in [indexed] must be a number from 16 to 255, and not 59, 102, 145 or 188")
    return dict(table)


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


def diff_grounds(colors: Mapping[str, str]) -> dict[str, str]:
    """Return the grounds of added and removed lines, and of the parts of them that differ."""
    # Mixed here: a terminal knows no transparent colours, and without this the tint would cover the text.
    ground = TextualColor.parse(colors["panel"])
    return {
        f"{name}{part}-back": ground.blend(TextualColor.parse(colors[tint]), amount).hex6
        for name, tint in (("added", "success"), ("removed", "error"))
        for part, amount in (("", 0.18), ("-part", 0.38))
    }


def _textual(colors: dict[str, str], variables: dict[str, str]) -> dict[str, str]:
    """Textual's own variables, so that its widgets look like ours."""
    return {
        **diff_grounds(colors),
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


class ThemeScreen(Dialog[str]):
    """Up and down show themes, Enter keeps one, Esc the one that there was."""

    CSS_PATH: ClassVar[StyleFiles] = ["styles/dialog.tcss", "styles/themes.tcss"]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (("Enter", "Keep it", "keep"),)

    def __init__(self, themes: Mapping[str, CockpitTheme], now: str, look: Callable[[str], object]) -> None:
        """`look` draws the cockpit in the colours of a theme."""
        super().__init__()
        self._themes = themes
        self._names = list(themes)
        self._now = now
        self._look = look

    def compose(self) -> ComposeResult:
        """The list."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content("Themes")
            yield RowList(*(Option(_row(name, self._themes[name])) for name in self._names))
            yield from self.buttons()

    def on_mount(self) -> None:
        """Begin at the one that there is."""
        names = self.query_one(RowList)
        names.highlighted = self._names.index(self._now)
        names.focus()

    @on(RowList.OptionHighlighted)
    def _highlighted(self, event: RowList.OptionHighlighted) -> None:
        self._look(self._names[event.option_index])

    @on(RowList.OptionSelected)
    def _selected(self) -> None:
        self.action_keep()

    def action_keep(self) -> None:
        """Keep the one that is shown."""
        if (at := self.query_one(RowList).highlighted) is not None:
            self.dismiss(self._names[at])


def _row(name: str, theme: CockpitTheme) -> Content:
    kind = "dark" if theme.theme.dark else "light"
    return Content.assemble((f"{visible(name):<24}", "bold"), kind)
