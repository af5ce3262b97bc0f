"""The page of the documentation about keys, written from the table of commands."""

from collections.abc import Sequence

from whisper_tui.tui.commands import COMMANDS, GROUPS, SCREENS, Command
from whisper_tui.tui.keymap import KEY_SETS, SETS, keymap


def keys_page() -> str:
    """The page of the documentation about keys."""
    lines = [
        "# Keys",
        "",
        "This page is written from the table of commands in `whisper_tui/tui/commands/`:"
        " `python -m whisper_tui.tui.commands > docs/keys.md`.",
        "",
        "Letters are commands, arrows move: `k` kills, so there is no `j` and `k` for down and up, save in the set of"
        " keys called `vi`. Every command is also in the palette (`Ctrl+P`), and each has an id that its key can be"
        " [changed by](configuration.md#keys). The help (`?`) shows the keys in force.",
        "",
        *_sets(),
    ]
    for group in GROUPS:
        lines += [f"## {group}", "", *_table([command for command in COMMANDS if command.group == group])]
    for table in SCREENS:
        lines += [f"## On the screen: {table[0].group}", "", *_table(table)]
    return "\n".join(lines + PANE_KEYS)


def _sets() -> list[str]:
    """What the sets of keys change."""
    lines = []
    for name in KEY_SETS:
        changed = [command for command in keymap(name).commands(COMMANDS) if command.id in SETS[name]]
        if changed:
            rows = [f"| `{command.key_name}` | {command.label} |" for command in changed]
            lines += [f"## What the set `{name}` changes", "", "| key | command |", "| --- | --- |", *rows, ""]
    return lines


def _table(commands: Sequence[Command]) -> list[str]:
    rows = (f"| `{command.key_name}` | {command.label} | {command.help} | `{command.id}` |" for command in commands)
    return ["| key | command | what it does | id |", "| --- | --- | --- | --- |", *rows, ""]


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
    "## Mouse",
    "",
    "Click a call to select it, the heading of what waits to group it, a button to do what it says, a key in the footer"
    " to press it. `⋯` at the end of the buttons, like `Ctrl+P More` in the footer, lists everything that can be done"
    " now. The wheel scrolls what is under it; with Shift, sideways. While you type into a terminal, a program that"
    " asks for the mouse has it, until `Ctrl+]` or a click on the title of the terminal gives it back.",
    "",
    "## In dialogs",
    "",
    "`Esc` leaves a dialog and changes nothing. `Enter` sends a reason or a signal. While editing, `Ctrl+S` approves"
    " what will run, `Ctrl+R` approves it for the session, and `Ctrl+O` asks how far it reaches, where `Ctrl+T` chooses"
    " a sandbox; in a list of arguments `Enter` adds one, `Alt+↑` and `Alt+↓` move it, `Alt+X` removes it, and"
    " `Ctrl+J` is a line end in it. `Ctrl+S` also approves what a table of several calls shows,"
    " and trusts the rules of a project that were shown.",
    "",
]
