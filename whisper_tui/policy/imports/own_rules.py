"""What an agent client's own rules deny or want to be asked, as rules that make things stricter here and never looser.

A rule that cannot be carried over to the letter is carried over as something stricter: everything is asked.
"""

import fnmatch
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from whisper_tui.model.rule_names import of_client
from whisper_tui.policy.examples import Effect
from whisper_tui.policy.imports.carried import Carried, words_of
from whisper_tui.policy.imports.claude import claude_rules
from whisper_tui.policy.imports.codex import codex_rules
from whisper_tui.policy.imports.gemini import TOOL, UNDERSTOOD
from whisper_tui.policy.imports.lists import holds_lists, listed_rules
from whisper_tui.policy.rules import Rule, Rules

_STRICTNESS: dict[Effect, int] = {"allow": 0, "ask": 1, "deny": 2}


@dataclass
class OwnRules:
    """The rules of one file, as far as they make anything stricter."""

    deny: list[Rule] = field(default_factory=list)
    ask: list[Rule] = field(default_factory=list)
    asks_all: list[str] = field(default_factory=list)
    """Why everything is asked: one entry for each rule that cannot be carried over."""
    asks_by_itself: bool = False
    """Whether the client asks about every command, so that the list of commands that only look says nothing."""

    def rules(self, client: str, source: str) -> Rules:
        """The same as rules that name the client, and say in their reasons where they stand."""
        denies, wants = f"{client} denies this command itself", f"{client} wants this command to be asked itself"
        doubt = f"{client} has a rule of its own that cannot be carried over, so everything is asked"
        return Rules(
            deny=tuple(_told(rule, client, denies, source) for rule in self.deny),
            ask=(
                *(_told(rule, client, wants, source) for rule in self.ask),
                *(_told(Rule(name=entry, anything=True), client, doubt, source) for entry in self.asks_all),
            ),
            read_only=False if self.asks_by_itself else None,
        )


class Entry(NamedTuple):
    """One rule of an ordered list."""

    effect: Effect
    pattern: str | None
    """As the client compares it with a command: `*` stands for anything. None: it is about commands of some kind."""
    rule: Rule | None
    """None: it is about every command, or cannot be said as a rule."""


def claude_own(text: str) -> OwnRules:
    """Those of a settings file of Claude Code. Raises `ValueError`."""
    return _unordered(claude_rules(text))


def codex_own(text: str) -> OwnRules:
    """Those of a `.rules` file of Codex, the strictest of which decides. Raises `ValueError`."""
    return _unordered(codex_rules(text))


def gemini_lists_own(text: str) -> OwnRules:
    """Those of the lists in a settings file of Gemini CLI, without comments. Raises `ValueError`."""
    return _unordered(listed_rules(text)) if holds_lists(text) else OwnRules()


def gemini_own(text: str) -> OwnRules:
    """Those of a policy of Gemini CLI, the one with the highest priority of which decides. Raises `ValueError`."""
    rules = tomllib.loads(text).get("rule", [])
    shell = [rule for rule in rules if isinstance(rule, Mapping) and _is_about_shell(rule)]
    entries = [entry for rule in sorted(shell, key=_priority) for entry in _gemini_entries(rule)]
    return _ordered(entries)


def opencode_own(document: Any) -> OwnRules:
    """Those of a configuration of OpenCode, the last of which decides that is about a command."""
    permission = document.get("permission") if isinstance(document, dict) else None
    shell = permission.get("bash", permission.get("*")) if isinstance(permission, dict) else permission
    if isinstance(shell, str):
        shell = {"*": shell}
    if not isinstance(shell, dict):
        return OwnRules()
    effects: dict[Any, Effect] = {"allow": "allow", "ask": "ask", "deny": "deny"}
    known = [(str(pattern), effects[word]) for pattern, word in shell.items() if word in effects]
    return _ordered([Entry(effect, pattern, _of_pattern(pattern)) for pattern, effect in known])


def _unordered(carried: Carried) -> OwnRules:
    found = OwnRules(asks_all=list(carried.uncertain))
    for effect, rule in carried.rules:
        bare = rule.model_copy(update={"tool": None})
        if effect == "ask" and rule.anything:
            found.asks_by_itself = True
        elif effect != "allow" and not rule.anything:
            (found.deny if effect == "deny" else found.ask).append(bare)
    return found


def _ordered(entries: Sequence[Entry]) -> OwnRules:
    """A rule counts as far as no stronger one is milder: behind one with exceptions, a human is asked."""
    found = OwnRules()
    for at, (effect, pattern, rule) in enumerate(entries):
        milder = [other.pattern for other in entries[at + 1 :] if _STRICTNESS[other.effect] < _STRICTNESS[effect]]
        if effect == "allow" or any(_covers(other, pattern) for other in milder):
            continue
        has_exceptions = any(_may_meet(pattern, other) for other in milder)
        if pattern == "*" and effect == "ask":
            found.asks_by_itself = True
        elif pattern == "*" and not has_exceptions:
            continue  # The client has no shell then, and that says nothing about tools of others.
        elif rule is None:
            found.asks_all.append(f"{effect} {pattern or 'of some commands'}")
        elif has_exceptions or effect == "ask":
            found.ask.append(rule)
        else:
            found.deny.append(rule)
    return found


def _covers(other: str | None, pattern: str | None) -> bool:
    """Whether one pattern is about every command that another is about."""
    return other is not None and pattern is not None and fnmatch.fnmatchcase(pattern, _escaped(other))


def _may_meet(one: str | None, other: str | None) -> bool:
    """Whether two patterns may be about the same command: what they begin with does not differ."""
    if one is None or other is None:
        return True
    first, second = (pattern.partition("*")[0].partition("?")[0] for pattern in (one, other))
    return first.startswith(second) or second.startswith(first)


def _of_pattern(pattern: str) -> Rule | None:
    """A pattern of OpenCode as a rule: its ending ` *` may stand for nothing."""
    if pattern == "*":
        return None
    if "*" not in pattern and "?" not in pattern:
        return Rule(name=pattern, text=pattern)
    for ending in (" *", "*"):
        words = words_of(pattern.removesuffix(ending)) if ending == " *" and pattern.endswith(ending) else None
        if words and "*" not in pattern.removesuffix(ending):
            return Rule(name=pattern, prefix=words)
    return Rule(name=pattern, pattern=_escaped(pattern))


def _escaped(pattern: str) -> str:
    return pattern.replace("[", "[[]")


def _is_about_shell(rule: Mapping[str, Any]) -> bool:
    tools = rule.get("toolName")
    named = tools if isinstance(tools, list) else [tools]
    return (TOOL in named or "*" in named or tools is None) and "mcpName" not in rule


def _priority(rule: Mapping[str, Any]) -> float:
    priority = rule.get("priority", 0)
    return float(priority) if isinstance(priority, int | float) else 0.0


_DECISIONS: dict[Any, Effect] = {"allow": "allow", "ask_user": "ask", "deny": "deny"}


def _gemini_entries(rule: Mapping[str, Any]) -> Iterable[Entry]:
    effect = _DECISIONS.get(rule.get("decision"))
    if effect is None:
        return
    special = set(rule) - UNDERSTOOD - {"denyMessage", "deny_message"}
    prefixes = rule.get("commandPrefix")
    if special or prefixes is None:
        yield Entry(effect, None if special else "*", None)
        return
    for prefix in prefixes if isinstance(prefixes, list) else [prefixes]:
        words = words_of(str(prefix))
        yield Entry(effect, f"{prefix}*", Rule(name=str(prefix), prefix=words) if words else None)


def _told(rule: Rule, client: str, sentence: str, source: str) -> Rule:
    name, said = rule.name, rule.justification
    reason = f"{sentence} ({name} in {source})" + (f": {said}" if said else "")
    return rule.model_copy(update={"name": of_client(client, name), "justification": reason})
