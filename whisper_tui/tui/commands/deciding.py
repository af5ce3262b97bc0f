"""The commands that decide about calls."""

from whisper_tui.tui.commands.command import Command

DECIDE: tuple[Command, ...] = (
    Command("approve", "a", "Approve", "Let the command run as it is shown.", "Decide", "waiting"),
    Command(
        "approve-session",
        "s",
        "For session",
        "Let it run, and the same command in the same directory for the rest of this session.",
        "Decide",
        "waiting",
    ),
    Command(
        "approve-scope",
        "A",
        "Approve more",
        "Let it run, and choose what else, how often or how long; see which calls that would have let through.",
        "Decide",
        "waiting",
    ),
    Command("edit", "e", "Edit", "Change the command, directory or timeout, and approve that.", "Decide", "waiting"),
    Command("deny", "d", "Deny", "Do not let it run; the agent is given your reason.", "Decide", "waiting"),
    Command(
        "deny-session",
        "D",
        "Deny all",
        "Deny it and every other waiting call of its session.",
        "Decide",
        "waiting",
    ),
    Command(
        "deny-class",
        "N",
        "Never",
        "Deny what begins like this in its session from now on, as long as this cockpit is open.",
        "Decide",
        "call",
    ),
    Command("undo", "u", "Take back", "Take back the last approval, if it is not sent or has not started.", "Decide"),
    Command(
        "mark",
        "space",
        "Mark",
        "Mark the call, to decide about several at once; or unmark it.",
        "Decide",
        "waiting",
        True,
    ),
    Command(
        "mark-alike",
        "r",
        "Mark alike",
        "Mark everything of its session that waits and begins alike; or unmark all of that.",
        "Decide",
        "waiting",
    ),
    Command("review", "R", "Decide marked", "See all that is marked in full, and decide about it at once.", "Decide"),
    Command("talk", "P", "Conversation", "Read what the agent says, and type what it shall do next.", "Decide"),
)
