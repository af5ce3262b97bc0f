"""Screens over the cockpit whose keys, buttons, footer, palette and help come from tables of commands."""

from collections.abc import Callable
from inspect import isawaitable
from typing import ClassVar

from whisper_tui.tui.cockpit_context import CommandRequested
from whisper_tui.tui.command_definition import Command
from whisper_tui.tui.keyed_screen import KeyedScreen

HISTORY: tuple[Command, ...] = (
    Command("history-search", "slash", "Search", "Search all calls for words.", "History", in_footer=True),
    Command("history-verdict", "v", "Verdict", "Only calls that were allowed, asked or refused.", "History"),
    Command("history-ending", "x", "Ending", "Only calls that ended with 0, failed, were denied …", "History"),
    Command(
        "history-decider",
        "w",
        "Decided by",
        "Only calls that a human, a rule or a standing approval decided.",
        "History",
    ),
    Command("history-period", "t", "Time", "Only calls of the last hour, day, week, month, or earlier.", "History"),
    Command("history-session", "s", "Session", "Only calls of the selected call's session.", "History"),
    Command("history-machine", "m", "Machine", "Only calls of the selected call's machine.", "History"),
    Command("history-clear", "c", "All", "Remove all filters and list all calls.", "History", in_footer=True),
    Command("history-reload", "n", "Newest", "Search again from the newest call.", "History"),
    Command("history-play", "space", "Play", "Play the recorded output at its original speed, or pause.", "History"),
    Command("history-faster", "plus,equals_sign", "Faster", "Play faster.", "History"),
    Command("history-slower", "minus", "Slower", "Play slower.", "History"),
    Command("history-back", "left_square_bracket", "Back", "Go five seconds back in the output.", "History"),
    Command("history-ahead", "right_square_bracket", "Ahead", "Go five seconds forward in the output.", "History"),
    Command("history-begin", "0", "Beginning", "Go to the beginning of the output.", "History"),
    Command("history-finish", "9", "All output", "Go to the end of the output.", "History"),
    Command(
        "history-layout",
        "o",
        "Output",
        "Show the streams merged, separate, or only one; a terminal as lines.",
        "History",
    ),
    Command(
        "history-zoom",
        "z",
        "Zoom",
        "Enlarge the output, or the focused call, to the right side, then to the whole screen.",
        "History",
    ),
    Command("history-next-hunk", "right_curly_bracket", "Next hunk", "Go to the next hunk of its changes.", "History"),
    Command("history-previous-hunk", "left_curly_bracket", "Previous hunk", "Go to the previous hunk.", "History"),
    Command("history-next-file", "greater_than_sign", "Next file", "Go to the next file of its changes.", "History"),
    Command("history-previous-file", "less_than_sign", "Previous file", "Go to the previous file.", "History"),
    Command(
        "history-take-back",
        "J",
        "Undo changes",
        "Put the files that it changed back; again, redo a command's.",
        "History",
    ),
    Command("history-again", "r", "Run again", "Submit the call again, through the policy.", "History", in_footer=True),
    Command("history-reveal", "M", "Secrets", "Show the secrets of the call for ten seconds, or hide them.", "History"),
    Command("history-why", "Y", "Why", "Show why it was allowed, asked or denied.", "History", in_footer=True),
    Command("history-figures", "i", "Figures", "Show statistics of its session.", "History", in_footer=True),
    Command(
        "history-export",
        "E",
        "Export",
        "Export the call, its session or everything to a file.",
        "History",
        in_footer=True,
    ),
    Command("history-help", "question_mark", "Help", "Show what every key does.", "History"),
    Command("history-leave", "escape,q,H", "Back", "Go back to the cockpit.", "History", in_footer=True),
)

RULES: tuple[Command, ...] = (
    Command("rules-test", "slash", "Test", "Test how a command would be decided.", "Rules", in_footer=True),
    Command("rules-add", "a", "Add", "Add a rule of your own.", "Rules", in_footer=True),
    Command("rules-change", "e", "Edit", "Change the rule in a form.", "Rules", in_footer=True),
    Command("rules-switch", "space", "Disable", "Disable the rule, or enable it again.", "Rules", in_footer=True),
    Command("rules-revoke", "x,delete", "Revoke", "Revoke an approval, or remove a rule.", "Rules", in_footer=True),
    Command("rules-trust", "t", "Trust", "Trust the rules of a project, or withdraw trust.", "Rules", in_footer=True),
    Command("rules-starter", "s", "Starter set", "Offer rules for the project's tests, builds and checks.", "Rules"),
    Command("rules-readers", "b", "Built-in list", "List commands that only read, with a switch each.", "Rules"),
    Command("rules-why", "w", "Why", "Show which rule decided about the selected call.", "Rules", in_footer=True),
    Command("rules-edit", "E", "File", "Open the rules file in your editor.", "Rules", in_footer=True),
    Command("rules-reload", "n", "Reload", "Read rules and approvals again.", "Rules", in_footer=True),
    Command("rules-help", "question_mark", "Help", "Show all keys.", "Rules"),
    Command("rules-leave", "escape,q,L", "Back", "Go back to the cockpit.", "Rules", in_footer=True),
)

SETTINGS: tuple[Command, ...] = (
    Command("settings-change", "e", "Change", "Change the setting; Enter does so too.", "Settings", in_footer=True),
    Command("settings-reset", "x,delete", "Default", "Remove the setting from the file.", "Settings", in_footer=True),
    Command("settings-search", "slash", "Search", "Search the settings for words.", "Settings", in_footer=True),
    Command("settings-reload", "n", "Reload", "Read the configuration file again.", "Settings", in_footer=True),
    Command("settings-help", "question_mark", "Help", "Show all keys.", "Settings"),
    Command("settings-leave", "escape,q,comma", "Back", "Go back to the cockpit.", "Settings", in_footer=True),
)


class CommandScreen(KeyedScreen):
    """A screen over the cockpit with a table of commands of its own."""

    TABLE: ClassVar[tuple[Command, ...]] = ()

    def __init__(self) -> None:
        super().__init__()
        self.does: dict[str, Callable[[], object]] = {}
        """The function of each command of the table, by its id."""

    def means_something(self, command_id: str) -> bool:
        """True if a command is available now."""
        return command_id in self.does

    def why_not(self, command: Command) -> str:
        """Return the reason for which a command of the table is not available now; empty if it is."""
        return "" if self.means_something(command.id) else f"{command.label} is not possible now."

    async def action_command(self, command_id: str) -> None:
        """Carry out a command from a key, a button or the palette."""
        if not self.means_something(command_id):
            return
        result = self.does[command_id]()
        if isawaitable(result):
            await result

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """False for commands that are not available: the footer omits them, and their keys do nothing."""
        if action != "command" or not self.is_mounted:
            return True
        return self.means_something(str(parameters[0]))

    async def on_command_requested(self, message: CommandRequested) -> None:
        """Carry out the command of a button."""
        await self.action_command(message.command_id)
