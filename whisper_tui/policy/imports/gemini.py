"""Gemini CLI's policies: `[[rule]]` tables with `commandPrefix` and `decision`."""

import tomllib
from collections.abc import Mapping
from typing import Any

from whisper_tui.policy.examples import Effect
from whisper_tui.policy.imports.carried import Carried, words_of
from whisper_tui.policy.rules import Rule

TOOL = "run_shell_command"

_EFFECTS: dict[str, Effect] = {"allow": "allow", "ask_user": "ask", "deny": "deny"}
UNDERSTOOD = frozenset(
    "toolName commandPrefix decision priority allowRedirection allow_redirection name description".split()
)
"""What a rule may say that is carried over."""


def gemini_rules(text: str) -> Carried:
    """The rules of a policy file. Raises `ValueError` if it is not TOML of that kind."""
    document = tomllib.loads(text)
    rules = document.get("rule")
    if not isinstance(rules, list):
        raise ValueError("it holds no [[rule]]")
    carried = Carried()
    for number, rule in enumerate(rules, start=1):
        _carry(number, rule if isinstance(rule, Mapping) else {}, carried)
    return carried


def _carry(number: int, rule: Mapping[str, Any], carried: Carried) -> None:
    source = f"rule {number}"
    effect = _EFFECTS.get(str(rule.get("decision")))
    tools = rule.get("toolName")
    tools = tools if isinstance(tools, list) else [tools]
    if effect is None or TOOL not in tools:
        carried.left.append(f"{source}: it is not about {TOOL}")
        return
    extra = sorted(set(rule) - UNDERSTOOD)
    if extra:
        carried.left.append(f"{source}: {', '.join(extra)} cannot be carried over")
        return
    prefixes = rule.get("commandPrefix")
    if prefixes is None:
        carried.take(effect, Rule(name=f"every {TOOL}", anything=True, tool=TOOL), source)
        return
    redirections = effect == "allow" and bool(rule.get("allowRedirection", rule.get("allow_redirection", False)))
    for prefix in prefixes if isinstance(prefixes, list) else [prefixes]:
        words = words_of(str(prefix))
        if words is None:
            carried.left.append(f"{source}: {prefix!r} is not a plain beginning of a command")
        else:
            carried.take(effect, Rule(name=str(prefix), prefix=words, tool=TOOL, redirections=redirections), source)
