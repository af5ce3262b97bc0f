"""The rules of a user, as values: what is always allowed, always asked and never allowed, and for whom."""

from typing import Literal

from whisper_tui.model.call import Trust
from whisper_tui.model.command import Argv, Command, Shell
from whisper_tui.model.sandbox import SandboxKind
from whisper_tui.model.value import Value


class Rule(Value):
    """One rule. Exactly one of `argv`, `text`, `prefix`, `program`, `pattern` and `anything` says what it is about."""

    name: str
    """How the rule is called where it decides."""
    argv: tuple[str, ...] | None = None
    """Matches an argv call with exactly these words."""
    text: str | None = None
    """Matches a shell call with exactly this text, whatever the shell."""
    prefix: tuple[str, ...] | None = None
    """Matches each command that begins with these words."""
    program: str | None = None
    """Matches every call of this program."""
    pattern: str | None = None
    """Matches text: `*` stands for anything, `?` for one character."""
    anything: bool = False
    """Matches every command."""
    options: tuple[str, ...] | None = None
    """Options that may follow the prefix of an allow rule. None: all that are not dangerous."""
    redirections: bool = False
    """Whether an allow rule also covers reading and writing files by `<` and `>`."""
    directory: str | None = None
    """Only in this directory and below; an allow rule then also wants every path to stay there. None: anywhere."""
    tool: str | None = None
    """Only for calls of this tool. None: for all."""
    trust: tuple[Trust, ...] = ()
    """Only for sessions that are trusted like this. Empty: for all."""
    until: float | None = None
    """Seconds since the epoch when it ends. None: never."""
    justification: str = ""
    """Shown to the human, and to the agent where the rule denies."""
    sandbox: SandboxKind | Literal[False] | None = None
    """How what an allow rule lets through is confined; False: not at all. None: as the file says for its rules."""
    network: bool = False
    """Whether a sandboxed command may reach other machines."""
    execute: tuple[str, ...] = ()
    """Directories whose programs a sandboxed command may run, beside those of the system."""
    match: tuple[str, ...] = ()
    """Commands that the rule must match, tried when it is read."""
    not_match: tuple[str, ...] = ()
    """Commands that the rule must not match, tried when it is read."""

    def matches(self, command: Command) -> bool:
        """Whether the command is this one, to the letter. Only `argv` and `text` can tell."""
        if isinstance(command, Argv):
            return self.argv is not None and self.argv == command.words()
        return isinstance(command, Shell) and self.text is not None and self.text == command.text

    def subject(self) -> str:
        """What the rule is about, in short, for lists."""
        if self.argv is not None:
            return "= " + " ".join(self.argv)
        if self.text is not None:
            return "= " + self.text
        if self.prefix is not None:
            return " ".join(self.prefix) + " …"
        if self.program is not None:
            return self.program
        return self.pattern if self.pattern is not None else "anything"

    def subjects(self) -> int:
        """How many of the fields that say what it is about are set."""
        said = (self.argv, self.text, self.prefix, self.program, self.pattern, self.anything or None)
        return sum(field is not None for field in said)


class ExactRule(Rule):
    """One command, word for word. Nothing is derived from it."""


class Rules(Value):
    """All rules that hold."""

    deny: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    allow: tuple[Rule, ...] = ()
    read_only: bool | None = None
    """Whether commands that certainly only look run without being asked. None: nothing is said, which means no here.

    What the files of an instance leave unsaid is switched on where they are read.
    """
    sandbox: SandboxKind | Literal[False] | None = None
    """How what an allow rule lets through is confined where the rule does not say. None: read-only."""
    strict: tuple[str, ...] = ()
    """Tools of which a call that no rule allows is refused instead of asked."""
    otherwise: Literal["ask", "allow"] = "ask"
    """What happens to a certain command that nothing is said about. Only measurements say "allow"; no file can."""
    broken: str | None = None
    """Why the rules could not be read. Then nothing is allowed by them and everything is asked."""


NO_RULES = Rules()


def stricter(rules: Rules, added: Rules) -> Rules:
    """Rules with what others make stricter; those of others that allow do not count."""
    if added is NO_RULES:
        return rules
    return rules.model_copy(
        update={
            "deny": (*rules.deny, *added.deny),
            "ask": (*rules.ask, *added.ask),
            "read_only": False if added.read_only is False else rules.read_only,
            "broken": "; ".join(filter(None, (rules.broken, added.broken))) or None,
        }
    )
