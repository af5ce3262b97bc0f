"""All commands of the cockpit, joined from the modules that carry them out, and the page of docs/ that lists them."""

from collections.abc import Sequence

from whisper_tui.tui.cockpit import follower
from whisper_tui.tui.command_definition import (
    KEY_SETS,
    PANE_KEYS,
    SETS,
    Command,
    Group,
    Keymap,
    KeySet,
    Remaps,
    build_keymap,
)
from whisper_tui.tui.commands import (
    approve_deny,
    aside_commands,
    change_commands,
    navigation,
    output_commands,
    run_commands,
    several_calls,
    unasked_commands,
    undo_approval,
)
from whisper_tui.tui.screens.command_screen import HISTORY, RULES, SETTINGS

DECIDE: tuple[Command, ...] = (
    *approve_deny.COMMANDS,
    *change_commands.PREVIEWS,
    *several_calls.NEVER,
    *aside_commands.COMMANDS,
    *undo_approval.COMMANDS,
    *several_calls.MARKS,
    *navigation.CONVERSATION,
    *unasked_commands.COMMANDS,
)
RUN = (*run_commands.INPUT, *run_commands.SIGNALS, *run_commands.AGAIN, *run_commands.LEFT_BEHIND)
COCKPIT = (*navigation.SCREENS, *follower.TAKEOVER, *navigation.GENERAL)

COMMANDS: tuple[Command, ...] = (
    *DECIDE,
    *RUN,
    *navigation.MOVE,
    *change_commands.PLACES,
    *navigation.VIEW,
    *output_commands.COMMANDS,
    *COCKPIT,
)
"""The commands of the cockpit itself, in the order of the help and of the footer."""
BY_ID = {command.id: command for command in COMMANDS}
OTHER_SCREENS: tuple[tuple[Command, ...], ...] = (HISTORY, RULES, SETTINGS)
"""The commands of the screens that lie over the cockpit and have keys of their own."""
GROUPS: tuple[Group, ...] = ("Decide", "Run", "Move", "View", "Output", "Cockpit")


def keymap(name: KeySet = "default", remaps: Remaps | None = None) -> Keymap:
    """Return the keys of all commands: those of a set, changed by the user. Mistakes are reported in `problems`."""
    return build_keymap((COMMANDS, *OTHER_SCREENS), name, remaps)


DEFAULT_KEYMAP = keymap()


def keys_page() -> str:
    """The page of the documentation about keys."""
    lines = [
        "# Keys",
        "",
        "This page is generated from the commands in `whisper_tui/tui/commands/`:",
        "`python -m whisper_tui.tui.commands.all_commands > docs/keys.md`.",
        "",
        "Letters are commands; arrows, `j` and `k` move. Every command is also in the palette (`Ctrl+P`). Each has an",
        "id, by which its key can be [changed](configuration.md#keys). The help (`?`) shows the keys in force.",
        "",
        *_sets(),
    ]
    for group in GROUPS:
        lines += [f"## {group}", "", *_table([command for command in COMMANDS if command.group == group])]
    for table in OTHER_SCREENS:
        lines += [f"## {table[0].group} screen", "", *_table(table)]
    return "\n".join(lines + PANE_KEYS)


def _sets() -> list[str]:
    """Keys that each keymap changes."""
    lines = []
    for name in KEY_SETS:
        changed = [command for command in keymap(name).commands(COMMANDS) if command.id in SETS[name]]
        if changed:
            rows = [f"| `{command.key_name}` | {command.label} |" for command in changed]
            lines += [f"## The keymap `{name}`", "", "| key | command |", "| --- | --- |", *rows, ""]
    return lines


def _table(commands: Sequence[Command]) -> list[str]:
    rows = (f"| `{command.key_name}` | {command.label} | {command.help} | `{command.id}` |" for command in commands)
    return ["| key | command | what it does | id |", "| --- | --- | --- | --- |", *rows, ""]


if __name__ == "__main__":
    print(keys_page(), end="")
