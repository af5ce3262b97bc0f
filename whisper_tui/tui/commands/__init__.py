"""Every command of the cockpit, declared once: its key, its place in the footer, the help and the palette."""

from whisper_tui.tui.commands.cockpit import COCKPIT
from whisper_tui.tui.commands.command import Command, Group, Need, available, is_alive, reads_input, why_not
from whisper_tui.tui.commands.deciding import DECIDE
from whisper_tui.tui.commands.history import HISTORY
from whisper_tui.tui.commands.moving import MOVE
from whisper_tui.tui.commands.output import OUTPUT
from whisper_tui.tui.commands.rules import RULES
from whisper_tui.tui.commands.running import RUN
from whisper_tui.tui.commands.viewing import VIEW

COMMANDS: tuple[Command, ...] = (*DECIDE, *RUN, *MOVE, *VIEW, *OUTPUT, *COCKPIT)
BY_ID = {command.id: command for command in COMMANDS}
SCREENS: tuple[tuple[Command, ...], ...] = (HISTORY, RULES)
"""The commands of the screens that lie over the cockpit and have keys of their own."""
GROUPS: tuple[Group, ...] = ("Decide", "Run", "Move", "View", "Output", "Cockpit")

__all__ = [
    "BY_ID",
    "COMMANDS",
    "GROUPS",
    "SCREENS",
    "Command",
    "Group",
    "Need",
    "available",
    "is_alive",
    "reads_input",
    "why_not",
]
