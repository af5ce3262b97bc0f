"""Claude Code's permissions: `Bash(git commit:*)`."""

import json
import re

from whisper_tui.policy.examples import Effect
from whisper_tui.policy.imports.carried import Carried, words_of
from whisper_tui.policy.rules import Rule

_ENTRY = re.compile(r"Bash(?:\((.*)\))?\Z", re.DOTALL)


def claude_rules(text: str) -> Carried:
    """The rules of a settings file. Raises `ValueError` if it is not JSON of that kind."""
    document = json.loads(text)
    permissions = document.get("permissions", {}) if isinstance(document, dict) else None
    if not isinstance(permissions, dict):
        raise ValueError("it holds no permissions")
    carried = Carried()
    effects: tuple[Effect, ...] = ("deny", "ask", "allow")
    for effect in effects:
        for entry in permissions.get(effect, []):
            _carry(effect, str(entry), carried)
    return carried


def _carry(effect: Effect, entry: str, carried: Carried) -> None:
    match = _ENTRY.match(entry)
    if match is None:
        carried.left.append(f"{effect} {entry}: it is not about commands")
        return
    inside = match[1]
    if inside is None or inside.strip() in {"", "*", ":*"}:
        carried.take(effect, Rule(name=entry, anything=True), f"{effect} {entry}")
        return
    rule = _rule(entry, inside)
    if rule is None:
        carried.left.append(f"{effect} {entry}: the beginning is not certain words")
        if effect != "allow":
            carried.uncertain.append(entry)
    else:
        carried.take(effect, rule, f"{effect} {entry}")


def _rule(entry: str, inside: str) -> Rule | None:
    for ending in (":*", " *"):
        if inside.endswith(ending) and "*" not in inside.removesuffix(ending):
            words = words_of(inside.removesuffix(ending))
            return None if words is None else Rule(name=entry, prefix=words)
    if "*" in inside:
        return None if "?" in inside or "[" in inside else Rule(name=entry, pattern=inside)
    return Rule(name=entry, text=inside)
