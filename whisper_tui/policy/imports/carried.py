"""What became of another program's rules."""

from dataclasses import dataclass, field

from whisper_tui.policy.banned import is_banned
from whisper_tui.policy.examples import Effect
from whisper_tui.policy.reading.plain import NotPlain, read_plain
from whisper_tui.policy.rules import Rule


@dataclass
class Carried:
    """Rules that mean here what they meant there, and what could not be carried over."""

    rules: list[tuple[Effect, Rule]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    """One sentence for each that was left behind, and why."""
    uncertain: list[str] = field(default_factory=list)
    """Those of them that deny or ask about commands, as they are written there."""

    def of(self, effect: Effect) -> tuple[Rule, ...]:
        """The rules that do this."""
        return tuple(rule for kind, rule in self.rules if kind == effect)

    def take(self, effect: Effect, rule: Rule, source: str) -> None:
        """Keep a rule, unless it would allow nearly anything."""
        if effect == "allow" and (rule.anything or (rule.prefix is not None and is_banned(rule.prefix))):
            self.left.append(f"{source}: it would allow nearly anything; write it by hand if that is meant")
        else:
            self.rules.append((effect, rule))


def words_of(text: str) -> tuple[str, ...] | None:
    """The words of a rule's text. None: they are not certain."""
    try:
        commands = read_plain(text)
    except NotPlain:
        return None
    if len(commands) != 1 or commands[0].redirections or commands[0].background:
        return None
    return (*commands[0].assignments, *commands[0].argv)
