"""Names of keys: as the terminal's library calls them, as people write them, and from one to the other."""

import unicodedata

from textual.binding import Binding
from textual.keys import Keys, format_key

_WRITTEN = {
    "escape": "Esc", "tab": "Tab", "enter": "Enter", "space": "Space", "backspace": "Backspace", "delete": "Del",
    "insert": "Ins", "up": "↑", "down": "↓", "left": "←", "right": "→", "pageup": "PgUp", "pagedown": "PgDn",
    "home": "Home", "end": "End", "slash": "/",
}  # fmt: skip
_READ = {name.lower(): key for key, name in _WRITTEN.items()} | {"return": "enter", "spacebar": "space"}
_MODIFIERS = {"ctrl": "Ctrl", "shift": "Shift", "alt": "Alt"}
_NAMED = {key.value for key in Keys if "<" not in key.value and "+" not in key.value}


def written(keys: str) -> str:
    """Keys of a binding, separated by commas, as people write them: `ctrl+g,slash` is `Ctrl+G /`."""
    return " ".join(_written(key) for key in keys.split(",") if key)


def _written(key: str) -> str:
    *modifiers, last = key.split("+")
    name = _WRITTEN.get(last) or (last.upper() if last[1:].isdigit() else format_key(last))
    if modifiers and len(name) == 1:
        name = name.upper()
    return "+".join((*(_MODIFIERS.get(modifier, modifier) for modifier in modifiers), name))


def read_key(text: str) -> str | None:
    """A key as people write it, in the library's name: `Ctrl+G`, `ctrl+g`, `/`, `K`. None: there is none."""
    text = text.strip(" ") or text[:1]
    if len(text) == 1 and text not in _READ:
        return _read_character(text)
    *modifiers, last = text.split("+") if not text.endswith("++") else (*text[:-2].split("+"), "+")
    last = _READ.get(last.lower(), last)
    if len(last) == 1 and not modifiers:
        return None
    found = _read_character(last.lower()) if len(last) == 1 else _read_name(last.lower())
    if found is None or any(modifier.lower() not in _MODIFIERS for modifier in modifiers):
        return None
    if [modifier.lower() for modifier in modifiers] == ["shift"] and len(found) == 1:
        return found.upper()
    return "+".join((*(modifier.lower() for modifier in modifiers), found))


def _read_character(character: str) -> str | None:
    if character in " ,":
        return "space" if character == " " else "comma"
    if not character.isprintable():
        return None
    return next(iter(Binding.make_bindings([Binding(character, "none")]))).key


def _read_name(name: str) -> str | None:
    if name in _NAMED:
        return name
    try:
        character = unicodedata.lookup(name.replace("_", " "))
    except KeyError:
        return name if name in {"slash", "backslash", "minus", "plus", "underscore", "at"} else None
    return _read_character(character)
