"""The keys in force: those of the table of commands, changed by a set of keys and by the user."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Literal, get_args

from whisper_tui.model.text import visible
from whisper_tui.tui.commands import COMMANDS, SCREENS, Command
from whisper_tui.tui.commands.keys import read_key, written

KeySet = Literal["default", "vi"]
TABLES: tuple[tuple[Command, ...], ...] = (COMMANDS, *SCREENS)
"""A table for each screen with keys of its own: a key means one thing in each."""
KEY_SETS: tuple[KeySet, ...] = get_args(KeySet)

SETS: dict[KeySet, dict[str, str]] = {
    "default": {},
    "vi": {
        "up": "up,k",
        "down": "down,j",
        "kill": "K",
        "scroll-up": "shift+up,ctrl+y",
        "scroll-down": "shift+down,ctrl+e",
    },
}
"""What each set changes: commands by id, keys separated by commas."""

RESERVED = {
    "ctrl+c": "leaves the cockpit",
    "ctrl+q": "leaves the cockpit",
    "ctrl+p": "opens the palette",
    **dict.fromkeys(("left", "right", "pageup", "pagedown", "home", "end"), "moves in the pane that has the focus"),
    **dict.fromkeys(("enter", "backspace", "delete"), "edits what is typed"),
}
"""Keys that no command can have."""

Remaps = Mapping[str, str | tuple[str, ...]]
"""What the user has set: commands by id, each with a key or several."""


@dataclass(frozen=True)
class Keymap:
    """Which keys commands have that the table does not give them."""

    changed: Mapping[str, str] = field(default_factory=dict)
    """Keys separated by commas, by the id of the command. Empty: it has no key."""
    problems: tuple[str, ...] = ()
    """What could not be done as the user set it, each in one sentence."""
    name: KeySet = "default"

    def command(self, command: Command) -> Command:
        """The command with the keys that it has now."""
        keys = self.changed.get(command.id)
        return command if keys is None else replace(command, key=keys)

    def commands(self, table: Iterable[Command]) -> tuple[Command, ...]:
        """A table with the keys in force."""
        return tuple(map(self.command, table))

    def bindings(self) -> dict[str, str]:
        """What the terminal's library has to change, by the ids of bindings."""
        return {f"cockpit.{id_}": keys for id_, keys in self.changed.items() if keys}


DEFAULT = Keymap()


def in_force(app: object) -> Keymap:
    """The keys of an application; those of the table where it has none of its own."""
    found = getattr(app, "keymap", None)
    return found if isinstance(found, Keymap) else DEFAULT


def keymap(name: KeySet = "default", remaps: Remaps | None = None) -> Keymap:
    """The keys in force. Whatever is wrong in `remaps` is left out and told; nothing is raised."""
    problems: list[str] = []
    wanted = _wanted(remaps or {}, problems)
    changed: dict[str, str] = {}
    for table in TABLES:
        changed |= _of_table(table, SETS[name], wanted, problems)
    return Keymap(changed, tuple(problems), name)


def _wanted(remaps: Remaps, problems: list[str]) -> dict[str, tuple[str, ...]]:
    """The user's keys by command, without those that cannot be."""
    known = {command.id for table in TABLES for command in table}
    found: dict[str, tuple[str, ...]] = {}
    for name, given in remaps.items():
        id_ = name.removeprefix("cockpit.")
        if id_ not in known:
            close = get_close_matches(id_, known, n=1)
            guess = f"did you mean {close[0]!r}?" if close else "docs/keys.md lists them all."
            problems.append(f"There is no command {visible(name)!r} to give a key to; {guess}")
            continue
        keys = [_readable(id_, text, problems) for text in ((given,) if isinstance(given, str) else given)]
        if usable := tuple(dict.fromkeys(key for key in keys if key is not None)):
            found[id_] = usable
    return found


def _readable(id_: str, text: str, problems: list[str]) -> str | None:
    key = read_key(text)
    if key is None:
        problems.append(f"There is no key {visible(text)!r} for {id_!r}; write it like K, F5, / or Ctrl+G.")
    elif key in RESERVED:
        problems.append(f"The key {written(key)} {RESERVED[key]}, so {id_!r} cannot have it.")
        return None
    return key


def _of_table(
    table: tuple[Command, ...], changes: Mapping[str, str], wanted: Mapping[str, tuple[str, ...]], problems: list[str]
) -> dict[str, str]:
    """The changed keys of a screen's commands: what the user wants goes before everything else."""
    taken: dict[str, str] = {}
    for command in table:
        for key in wanted.get(command.id, ()):
            if (first := taken.setdefault(key, command.id)) != command.id:
                problems.append(f"The key {written(key)} is given to {first!r} and {command.id!r}; {first!r} has it.")
    found: dict[str, str] = {}
    for command in table:
        usual = changes.get(command.id, command.key)
        wished = tuple(key for key in wanted.get(command.id, ()) if taken[key] == command.id)
        keys = wished or tuple(key for key in usual.split(",") if taken.get(key, command.id) == command.id)
        if not keys:
            winner = next(taken[key] for key in usual.split(",") if key in taken)
            problems.append(f"{winner!r} took the key {written(usual)} of {command.id!r}, which has none now.")
        if ",".join(keys) != command.key:
            found[command.id] = ",".join(keys)
    return found
