"""A command of the cockpit: its id, key and label, and the calls for which it is available."""

import unicodedata
from dataclasses import dataclass
from typing import Literal

from textual.binding import Binding
from textual.keys import Keys, format_key

from whisper_tui.model.call import FileEdits
from whisper_tui.model.state import CallRecord, Ended, Running, Waiting

_WRITTEN = {
    "escape": "Esc", "tab": "Tab", "enter": "Enter", "space": "Space", "backspace": "Backspace", "delete": "Del",
    "insert": "Ins", "up": "↑", "down": "↓", "left": "←", "right": "→", "pageup": "PgUp", "pagedown": "PgDn",
    "home": "Home", "end": "End", "slash": "/",
}  # fmt: skip
_READ = {name.lower(): key for key, name in _WRITTEN.items()} | {"return": "enter", "spacebar": "space"}
_MODIFIERS = {"ctrl": "Ctrl", "shift": "Shift", "alt": "Alt"}
_NAMED = {key.value for key in Keys if "<" not in key.value and "+" not in key.value}


def written(keys: str) -> str:
    """Return the keys of a binding as people write them: `Ctrl+G /` for `ctrl+g,slash`."""
    return " ".join(_written(key) for key in keys.split(",") if key)


def _written(key: str) -> str:
    *modifiers, last = key.split("+")
    name = _WRITTEN.get(last) or (last.upper() if last[1:].isdigit() else format_key(last))
    # Terminals report Ctrl+G and Ctrl+g as the same key, and the upper-case letter is what keyboards show.
    if modifiers and len(name) == 1:
        name = name.upper()
    return "+".join((*(_MODIFIERS.get(modifier, modifier) for modifier in modifiers), name))


def read_key(text: str) -> str | None:
    """Return Textual's name of a key as people write it: `Ctrl+G`, `ctrl+g`, `/`, `K`. None: there is no such key."""
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


Need = Literal["nothing", "call", "waiting", "alive", "reads", "ran", "terminal", "ended", "blocked", "edit"]
"""The selected call that a command needs: none, any, a waiting one, one with live processes, one that reads input, one
that was started, one that runs in a terminal, an ended one, one that failed and was blocked by its sandbox, one that
edits files."""

Group = Literal["Decide", "Run", "Move", "View", "Cockpit", "Output", "History", "Rules", "Settings"]

Place = Literal["queue", "call", "output", "terminal", "history", "rules", "settings", "dialog"]
"""Where a person is, for the help."""
_PLACES: dict[Group, tuple[Place, ...]] = {
    "Decide": ("queue", "call"),
    "Run": ("output", "terminal"),
    "Move": ("queue",),
    "View": ("call",),
    "Cockpit": (),
    "Output": ("output",),
    "History": ("history",),
    "Rules": ("rules",),
    "Settings": ("settings",),
}


@dataclass(frozen=True)
class Command:
    """One row of the table from which keys, buttons, footer, palette, help and docs/keys.md come (decision 25)."""

    id: str
    """The name in the table [keys] of the configuration, so it never changes."""
    key: str
    label: str
    """One or two words, for the footer and for buttons."""
    help: str
    """One sentence, for the help, the palette and the documentation."""
    group: Group
    need: Need = "nothing"
    in_footer: bool = False
    """False for commands that have a button."""
    only: tuple[Place, ...] | None = None
    """The places whose help begins with it. None: those of its group."""

    @property
    def places(self) -> tuple[Place, ...]:
        """The places whose help begins with this command."""
        return _PLACES[self.group] if self.only is None else self.only

    def binding(self) -> Binding:
        """Return the binding of the key for Textual."""
        action = f"command('{self.id}')"
        return Binding(self.key, action, self.label, show=self.in_footer, tooltip=self.help, id=f"cockpit.{self.id}")

    @property
    def key_name(self) -> str:
        """The keys as people write them; empty if there are none."""
        return written(self.key)


def available(command: Command, record: CallRecord | None) -> bool:
    """True if a command is available for the selected call."""
    match command.need:
        case "nothing":
            return True
        case "call":
            return record is not None
        case "waiting":
            return record is not None and isinstance(record.state, Waiting)
        case "alive":
            return record is not None and is_alive(record)
        case "reads":
            return record is not None and reads_input(record)
        case "ran":
            return record is not None and record.attempt is not None
        case "terminal":
            return record is not None and record.spec.tty and isinstance(record.state, Running)
        case "ended":
            return record is not None and isinstance(record.state, Ended)
        case "blocked":
            return record is not None and record.failed_in_sandbox
        case "edit":
            return record is not None and isinstance(record.spec.command, FileEdits)


def why_not(command: Command, record: CallRecord | None) -> str:
    """Return the sentence that says why a command is not available for the selected call."""
    label = command.label.removesuffix("…")
    if record is None:
        return f"{label} needs a call, and none is selected."
    reasons = {
        "waiting": f"call {record.id} does not wait for a decision",
        "alive": f"call {record.id} has no running process",
        "reads": f"call {record.id} does not run, or takes no input",
        "ran": f"call {record.id} has not run",
        "terminal": f"call {record.id} does not run in a terminal",
        "blocked": f"call {record.id} did not fail because of a sandbox",
        "ended": f"call {record.id} has not ended",
        "edit": f"call {record.id} edits no files",
    }
    return f"{label} is not possible: {reasons[command.need]}."


def reads_input(record: CallRecord) -> bool:
    """True if the call runs and takes input."""
    return isinstance(record.state, Running) and record.takes_input


def is_alive(record: CallRecord) -> bool:
    """True if a process of the call is alive, in the background as well."""
    return isinstance(record.state, Running) or (isinstance(record.state, Ended) and not record.state.settled)
