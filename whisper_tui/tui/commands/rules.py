"""The commands of the screen about rules and memory."""

from whisper_tui.tui.commands.command import Command

RULES: tuple[Command, ...] = (
    Command("rules-test", "slash", "Test", "Type a command and see what would be said to it.", "Rules", in_footer=True),
    Command("rules-revoke", "x,delete", "Revoke", "Forget an approval, or remove a rule.", "Rules", in_footer=True),
    Command(
        "rules-trust", "t", "Trust", "Trust the rules of a project, or trust them no more.", "Rules", in_footer=True
    ),
    Command("rules-edit", "e", "Edit", "Open the file of rules in your editor.", "Rules", in_footer=True),
    Command("rules-reload", "n", "Reload", "Read rules and approvals again.", "Rules", in_footer=True),
    Command("rules-help", "question_mark", "Help", "Show what every key does.", "Rules"),
    Command("rules-leave", "escape,q,L", "Back", "Go back to the cockpit.", "Rules", in_footer=True),
)
