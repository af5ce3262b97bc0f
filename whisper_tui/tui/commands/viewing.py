"""The commands that change what is shown."""

from whisper_tui.tui.commands.command import Command

VIEW: tuple[Command, ...] = (
    Command("follow", "f", "Follow", "Keep the end of the output in view while it grows, or stop that.", "View", "ran"),
    Command("layout", "o", "Output", "Show both streams, only stdout, or only stderr.", "View", "ran"),
    Command("group", "ctrl+g", "Group", "List what waits by arrival, by session, or what is alike.", "View"),
    Command("reveal", "M", "Secrets", "Show the secrets of the call for ten seconds, or hide them.", "View", "call"),
    Command("filter", "slash", "Filter", "List only the calls that hold some words.", "View", in_footer=True),
    Command(
        "clear-filter", "escape", "All calls", "List all calls again, and give the focus back to the list.", "View"
    ),
)
