"""A command of the cockpit: its id, key and label, the calls it is for, and the keys in force after changes."""

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Literal, get_args

from textual.binding import Binding
from textual.keys import Keys, format_key

from whisper_tui.model.call import FileEdits
from whisper_tui.model.decision import Approve
from whisper_tui.model.state import CallRecord, Ended, Queued, Running, Waiting
from whisper_tui.model.text import visible

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


Need = Literal[
    "nothing",
    "call",
    "waiting",
    "waiting here",
    "previewable",
    "queued",
    "alive",
    "reads",
    "ran",
    "terminal",
    "ended",
    "repeatable",
    "blocked",
    "edit",
    "kept",
]
"""The selected call that a command needs: none, any, a waiting one, a waiting one that would run on its own machine,
a waiting one whose command may be previewed, one that is queued for a worker, one with live processes, one that
reads input, one that was started, one that runs in a terminal, an ended one, an ended one that whisper_tui has run,
one that failed and was blocked by its sandbox, one that edits files or shows changed ones, one whose
changes can be taken back."""

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
    """One row of the table from which keys, buttons, footer, palette, help and docs/keys.md come (decision 23)."""

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
    also: str = ""
    """Further words by which the help and the palette find it."""

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
    if record is None:
        return command.need == "nothing"
    return command.need in {"nothing", "call"} or _MEETS[command.need](record)


def why_not(command: Command, record: CallRecord | None) -> str:
    """Return the sentence that says why a command is not available for the selected call."""
    label = command.label.removesuffix("…")
    if record is None:
        return f"{label} needs a call, and none is selected."
    reasons = {
        "waiting": f"call {record.id} does not wait for a decision",
        "waiting here": f"call {record.id} {_why_not_here(record)}",
        "previewable": f"call {record.id} {_why_not_previewed(record)}",
        "queued": f"call {record.id} is not queued for a worker",
        "alive": f"call {record.id} has no running process",
        "reads": f"call {record.id} does not run, or takes no input",
        "ran": f"call {record.id} has not run",
        "terminal": f"call {record.id} does not run in a terminal",
        "blocked": f"call {record.id} did not fail because of a sandbox",
        "ended": f"call {record.id} has not ended",
        "repeatable": f"call {record.id} {_why_not_repeated(record)}",
        "edit": f"call {record.id} edits no files, and was not previewed",
        "kept": f"call {record.id} {_why_not_undone(record)}",
    }
    return f"{label} is not possible: {reasons[command.need]}."


def _why_not_repeated(record: CallRecord) -> str:
    return "was run by its agent, and only the agent can repeat it" if record.function else "has not ended"


def _why_not_here(record: CallRecord) -> str:
    if not isinstance(record.state, Waiting):
        return "does not wait for a decision"
    return f"runs at {record.spec.place}, and sandboxes, previews and undo are for this machine only"


def _why_not_previewed(record: CallRecord) -> str:
    if not isinstance(record.state, Waiting) or record.spec.place:
        return _why_not_here(record)
    if record.function is not None:
        return "is no command: its agent runs it itself"
    return "has a rule that says that it is never previewed"


def may_be_previewed(record: CallRecord) -> bool:
    """True if the call waits with a command of this machine, and no rule forbids a preview of it."""
    here = isinstance(record.state, Waiting) and not record.spec.place and record.function is None
    return here and (record.verdict is None or record.verdict.preview != "never")


def _why_not_undone(record: CallRecord) -> str:
    if not isinstance(record.state, Ended):
        return "has not ended"
    if record.decision is not None and not isinstance(record.decision, Approve):
        return "did not run, so there is nothing to undo"
    if record.function is not None:
        return "was carried out by its agent, so nothing of it can be undone here"
    return f"changed what was not kept: {record.not_kept_because}" if record.not_kept_because else "has kept no changes"


def has_preview(record: CallRecord) -> bool:
    """True if the call waits, and the changes of its preview can be made real."""
    return isinstance(record.state, Waiting) and record.preview is not None and record.preview.can_be_applied


def can_take_back(record: CallRecord) -> bool:
    """True if what a call changed was kept, or it edits files: then it can be undone once it has ended."""
    return record.undoable or isinstance(record.spec.command, FileEdits)


def shows_changes(record: CallRecord) -> bool:
    """True if the changes of a preview, or of a run that can be undone, are shown with the call."""
    if isinstance(record.state, Ended):
        return record.undoable
    preview = record.preview
    return isinstance(record.state, Waiting) and preview is not None and preview.report is not None


def reads_input(record: CallRecord) -> bool:
    """True if the call runs and takes input."""
    return isinstance(record.state, Running) and record.takes_input


def is_alive(record: CallRecord) -> bool:
    """True if a process of the call is alive, in the background as well."""
    return isinstance(record.state, Running) or (isinstance(record.state, Ended) and not record.state.settled)


_MEETS: dict[Need, Callable[[CallRecord], bool]] = {
    "waiting": lambda record: isinstance(record.state, Waiting),
    "waiting here": lambda record: isinstance(record.state, Waiting) and not record.spec.place,
    "previewable": may_be_previewed,
    "queued": lambda record: isinstance(record.state, Queued) and record.function is None,
    "alive": is_alive,
    "reads": reads_input,
    "ran": lambda record: record.output_attempt is not None,
    "terminal": lambda record: record.spec.tty and isinstance(record.state, Running),
    "ended": lambda record: isinstance(record.state, Ended),
    "repeatable": lambda record: isinstance(record.state, Ended) and record.function is None,
    "blocked": lambda record: record.failed_in_sandbox,
    "edit": lambda record: isinstance(record.spec.command, FileEdits) or shows_changes(record),
    "kept": lambda record: isinstance(record.state, Ended) and can_take_back(record),
}


KeySet = Literal["default", "vi"]
Tables = tuple[tuple[Command, ...], ...]
"""The commands of each screen that has keys of its own. Within one screen, a key has one meaning."""
KEY_SETS: tuple[KeySet, ...] = get_args(KeySet)

SETS: dict[KeySet, dict[str, str]] = {
    "default": {},
    "vi": {
        "scroll-up": "shift+up,ctrl+y",
        "scroll-down": "shift+down,ctrl+e",
    },
}
"""The changes of each key set: keys separated by commas, by the id of the command."""

_BY_REACH = "'approval-reach' chooses once, session or always, and 'approve' approves"
_BY_WAY = "'approval-way' chooses normally, held back or sandboxed, and 'approve' approves"
RETIRED: dict[str, str] = {
    **dict.fromkeys(("approve-session", "approve-always"), _BY_REACH),
    **dict.fromkeys(("approve-confined", "approve-confined-network", "approve-read-only", "approve-undoable"), _BY_WAY),
    "apply-preview": "'approve' applies a preview",
    "kill": "'signal' ends a run",
    "revoke-latest": "'undo' undoes the last approval, and 'rules' lists all",
}
"""Ids of earlier versions, each with what does it now. Their keys do nothing: no key means more than it did."""

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
    "Click a call to select it, the heading of the waiting calls to sort them, a button, or a key in the footer.",
    "`⋯` at the end of the buttons, like `Ctrl+P More` in the footer, lists all commands that are possible now. The",
    "wheel scrolls what is under the pointer; with Shift, sideways. While you type into a terminal, a program that",
    "asks for the mouse gets it, until `Ctrl+]` or a click on the title of the terminal.",
    "",
    "## In dialogs",
    "",
    "`Enter` confirms, as `Ctrl+S` does; `Esc` leaves a dialog and changes nothing; `F1` lists its keys. In a field of",
    "several lines `Enter` begins another line, so that `Ctrl+S` confirms there. `Space` chooses a row of a list, and",
    "`←`, `→` and `Space` change the choice in a field.",
    "",
    "* In the editor of a call, `Ctrl+L` previews what will run, `Ctrl+R` approves it for the session, and `Ctrl+O`",
    "  chooses the scope of the approval. In its list of arguments `Enter` adds one, `Alt+↑` and `Alt+↓` move it,",
    "  `Alt+X` removes it, and `Ctrl+J` inserts a line break.",
    "* In the dialog of the scope, `Ctrl+T` chooses a sandbox and `Ctrl+N` the next suggestion.",
    "* In the form of a rule, `Ctrl+N` saves it as a new one.",
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
        if (instead := RETIRED.get(id_)) is not None:
            problems.append(f"The command {id_!r} is gone, and its key does nothing: {instead}.")
            continue
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
