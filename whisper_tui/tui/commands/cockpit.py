"""The commands of the cockpit itself."""

from whisper_tui.tui.commands.command import Command

COCKPIT: tuple[Command, ...] = (
    Command("theme", "t", "Theme", "Change between the dark and the light theme.", "Cockpit"),
    Command("help", "question_mark", "Help", "Show what every key does.", "Cockpit", in_footer=True),
    Command("quit", "q", "Quit", "Leave the cockpit; everything goes on without it.", "Cockpit", in_footer=True),
)
