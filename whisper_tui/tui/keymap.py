"""The keys in force: those of the tables of commands, changed by a key set and by the user."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Literal, get_args

from whisper_tui.model.text import visible
from whisper_tui.tui.command_definition import Command, read_key, written

KeySet = Literal["default", "vi"]
Tables = tuple[tuple[Command, ...], ...]
"""The commands of each screen that has keys of its own. Within one screen, a key has one meaning."""
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
"""The changes of each key set: keys separated by commas, by the id of the command."""

RESERVED = {
    "ctrl+c": "leaves the cockpit",
    "ctrl+q": "leaves the cockpit",
    "ctrl+p": "opens the palette",
    **dict.fromkeys(("left", "right", "pageup", "pagedown", "home", "end"), "moves in the pane that has the focus"),
    **dict.fromkeys(("enter", "backspace", "delete"), "edits what is typed"),
}
"""Keys that no command can have, each with its fixed effect."""

Remaps = Mapping[str, str | tuple[str, ...]]
"""The changes of the user: one key or several, by the id of the command."""


PANE_KEYS = [
    "## In the pane that has the focus",
    "",
    "| key | what it does |",
    "| --- | --- |",
    "| `↑` `↓` | one row |",
    "| `PgUp` `PgDn` | one page |",
    "| `Home` `End` | the beginning, the end; the end of output is followed again |",
    "| `←` `→` | sideways in long lines of output |",
    "",
    "## While you type into a terminal",
    "",
    "| key | what it does |",
    "| --- | --- |",
    "| `Ctrl+]` | leaves the terminal; every other key goes to the command |",
    "",
    "## Mouse",
    "",
    "Click a call to select it, the heading of the waiting calls to group them, a button to do what it says, a "
    "key in the footer to press it. `⋯` at the end of the buttons, like `Ctrl+P More` in the footer, lists "
    "everything that can be done now. The wheel scrolls what is under it; with Shift, sideways. While you type "
    "into a terminal, a program that asks for the mouse has it, until `Ctrl+]` or a click on the title of the "
    "terminal gives it back.",
    "",
    "## In dialogs",
    "",
    "`Esc` leaves a dialog and changes nothing, and `F1` lists its keys. `Enter` sends a reason or a signal. While"
    " editing, `Ctrl+S` approves what will run, `Ctrl+R` approves it for the session, and `Ctrl+O` asks how far it"
    " reaches, where `Ctrl+T` chooses a sandbox; in a list of arguments `Enter` adds one, `Alt+↑` and `Alt+↓` move it,"
    " `Alt+X` removes it, and `Ctrl+J` is a line end in it. `Ctrl+S` also approves what a table of several calls shows,"
    " and trusts the rules of a project that were shown. In the form of a rule it saves the rule, and `Ctrl+N` saves it"
    " as a new one; `←`, `→` and `Space` go through the choices of a field.",
    "",
]
"""The end of docs/keys.md, in Markdown: keys of widgets, which cannot be changed. The help shows its tables too."""


@dataclass(frozen=True)
class Keymap:
    """The keys of all commands: those of their tables, with the changes of a key set and of the user."""

    changed: Mapping[str, str] = field(default_factory=dict)
    """Keys separated by commas, by the id of the command. Empty: it has no key."""
    problems: tuple[str, ...] = ()
    """The mistakes in the configuration, each as one sentence."""
    name: KeySet = "default"
    tables: Tables = ()

    def by_id(self, command_id: str) -> Command:
        """Return a command with the keys that it has now."""
        return self._by_id[command_id]

    @cached_property
    def _by_id(self) -> dict[str, Command]:
        return {command.id: self.command(command) for table in self.tables for command in table}

    @cached_property
    def order(self) -> dict[str, int]:
        """The place of each command in the footer, by the id of its binding."""
        return {f"cockpit.{id_}": place for place, id_ in enumerate(self._by_id)}

    def command(self, command: Command) -> Command:
        """Return a command with the keys in force."""
        keys = self.changed.get(command.id)
        return command if keys is None else replace(command, key=keys)

    def commands(self, table: Iterable[Command]) -> tuple[Command, ...]:
        """Return a table with the keys in force."""
        return tuple(map(self.command, table))

    def bindings(self) -> dict[str, str]:
        """Return the changes for Textual, by the ids of bindings."""
        return {f"cockpit.{id_}": keys for id_, keys in self.changed.items() if keys}


def in_force(app: object) -> Keymap:
    """Return the keymap of an application; an empty one if it has none."""
    found = getattr(app, "keymap", None)
    return found if isinstance(found, Keymap) else Keymap()


def build_keymap(tables: Tables, name: KeySet = "default", remaps: Remaps | None = None) -> Keymap:
    """Return the keys of some commands. A mistake in `remaps` is left out and reported; nothing is raised."""
    problems: list[str] = []
    wanted = _wanted(tables, remaps or {}, problems)
    changed: dict[str, str] = {}
    for table in tables:
        changed |= _of_table(table, SETS[name], wanted, problems)
    return Keymap(changed, tuple(problems), name, tables)


def _wanted(tables: Tables, remaps: Remaps, problems: list[str]) -> dict[str, tuple[str, ...]]:
    """Return the user's keys by command, without the invalid ones."""
    known = {command.id for table in tables for command in table}
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
    """Return the changed keys of the commands of a screen. A key of the user takes precedence over a default."""
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
