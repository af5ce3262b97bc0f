"""The commands of the cockpit itself."""

from whisper_tui.tui.commands.command import Command

COCKPIT: tuple[Command, ...] = (
    Command("history", "H", "History", "Look for any call ever, and play its output again.", "Cockpit", in_footer=True),
    Command("rules", "L", "Rules", "See, test and change what decides without you: rules and approvals.", "Cockpit"),
    Command("export", "E", "Export", "Write the call, its session or everything to a file.", "Cockpit", "call"),
    Command("theme", "t", "Theme", "Change between the dark and the light theme.", "Cockpit"),
    Command("choose-theme", "ctrl+t", "Themes", "Choose a theme from a list, seeing each.", "Cockpit"),
    Command(
        "hand-over", "V", "Hand over", "Have a supervisor of this version take over; what runs goes on.", "Cockpit"
    ),
    Command("do-not-disturb", "B", "Do not disturb", "Be called no more, or again; everything goes on.", "Cockpit"),
    Command("help", "question_mark", "Help", "Show what every key does.", "Cockpit", in_footer=True),
    Command("quit", "q", "Quit", "Leave the cockpit; everything goes on without it.", "Cockpit", in_footer=True),
)
