"""The colours of the phone's page are those of the cockpit's themes, and can be read."""

import re
from pathlib import Path

from tests.rows import each_row
from whisper_tui.transports import phone
from whisper_tui.tui.theme import LEAST, contrast, load_themes

CSS = (Path(phone.__file__).parent / "page.css").read_text()
OF_THE_THEME = {
    "background": "background",
    "surface": "surface",
    "panel": "panel",
    "text": "foreground",
    "muted": "muted",
    "frame": "frame",
    "primary": "primary",
    "label": "secondary",
    "good": "success",
    "bad": "error",
    "risk": "risk",
    "waiting": "waiting",
    "button": "button-back",
    "button-text": "button-text",
    "hidden-text": "hidden-text",
    "hidden-ground": "hidden-back",
}
READ = (
    *((text, ground) for text in ("text", "muted", "label") for ground in ("background", "surface", "panel")),
    *((text, "background") for text in ("primary", "good", "bad", "risk", "waiting")),
    *(("text", ground) for ground in ("chip", "added-ground", "removed-ground")),
    *(("background", ground) for ground in ("bad", "risk", "good", "waiting")),
    ("button-text", "button"), ("bad", "button"), ("primary", "button"), ("on-primary", "primary"),
    ("hidden-text", "hidden-ground"), ("good", "added-ground"), ("bad", "removed-ground"),
    ("network", "chip"), ("primary", "surface"), ("waiting", "surface"),
)  # fmt: skip
"""Texts, and the grounds on which they stand."""


def colours(scheme: str) -> dict[str, str]:
    dark, light = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", dark if scheme == "dark" else light))


@each_row("scheme", ("dark", "light"))
def test_the_colours_are_those_of_the_theme(scheme: str) -> None:
    theme = load_themes().good[f"whisper-{scheme}"].colors
    found = colours(scheme)
    assert {name: found[name] for name in OF_THE_THEME} == {name: theme[key] for name, key in OF_THE_THEME.items()}


@each_row("scheme", ("dark", "light"))
def test_what_is_read_can_be_read(scheme: str) -> None:
    found = colours(scheme)
    assert [pair for pair in READ if contrast(found[pair[0]], found[pair[1]]) < LEAST] == []
