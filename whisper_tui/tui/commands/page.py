"""The page of the documentation about keys, written from the table of commands."""

from whisper_tui.tui.commands import COMMANDS, GROUPS


def keys_page() -> str:
    """The page of the documentation about keys."""
    lines = [
        "# Keys",
        "",
        "This page is written from the table of commands in `whisper_tui/tui/commands/`:"
        " `python -m whisper_tui.tui.commands > docs/keys.md`.",
        "",
        "Letters are commands, arrows move: `k` kills, so there is no `j` and `k` for down and up."
        " Every command is also in the palette (`Ctrl+P`), and each has an id that its key can be changed by.",
        "",
    ]
    for group in GROUPS:
        lines += [f"## {group}", "", "| key | command | what it does | id |", "| --- | --- | --- | --- |"]
        lines += [
            f"| `{command.key_name}` | {command.label} | {command.help} | `cockpit.{command.id}` |"
            for command in COMMANDS
            if command.group == group
        ]
        lines.append("")
    return "\n".join(lines + PANE_KEYS)


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
    "Click a call to select it, a button to decide, a key in the footer to press it."
    " The wheel scrolls what is under it; with Shift, sideways.",
    "",
    "## In dialogs",
    "",
    "`Esc` leaves a dialog and changes nothing. `Enter` sends a reason or a signal. While editing, `Ctrl+S` approves"
    " what will run and `Ctrl+R` approves it for the session.",
    "",
]
