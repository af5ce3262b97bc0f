"""The rules of a user, as values: commands that are always allowed or never, by their exact words."""

from whisper_tui.model.command import Argv, Command
from whisper_tui.model.value import Value


class ExactRule(Value):
    """One command, word for word. Nothing is derived from it."""

    name: str
    """How the rule is called where it decides."""
    argv: tuple[str, ...] | None = None
    """Matches an argv call with exactly these words."""
    text: str | None = None
    """Matches a shell call with exactly this text, whatever the shell."""
    justification: str = ""
    """Shown to the human, and to the agent where the rule denies."""

    def matches(self, command: Command) -> bool:
        """Whether the command is this one, to the letter."""
        if isinstance(command, Argv):
            return self.argv is not None and self.argv == command.words()
        return self.text is not None and self.text == command.text


class Rules(Value):
    """All rules that hold."""

    deny: tuple[ExactRule, ...] = ()
    allow: tuple[ExactRule, ...] = ()
    broken: str | None = None
    """Why the rules could not be read. Then nothing is allowed by them and everything is asked."""


NO_RULES = Rules()
