"""The commands that decide about calls."""

from whisper_tui.tui.commands.command import Command

DECIDE: tuple[Command, ...] = (
    Command("approve", "a", "Approve", "Let the command run as it is shown.", "Decide", "waiting", True),
    Command(
        "approve-session",
        "s",
        "For session",
        "Let it run, and the same command in the same directory for the rest of this session.",
        "Decide",
        "waiting",
        True,
    ),
    Command(
        "edit", "e", "Edit", "Change the command, directory or timeout, and approve that.", "Decide", "waiting", True
    ),
    Command("deny", "d", "Deny", "Do not let it run; the agent is given your reason.", "Decide", "waiting", True),
    Command(
        "deny-session",
        "D",
        "Deny all",
        "Deny it and every other waiting call of its session.",
        "Decide",
        "waiting",
        True,
    ),
)
