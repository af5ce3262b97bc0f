"""Trying a rule: whether it is about a text, as it would be judged."""

from collections.abc import Iterable
from typing import Literal

from whisper_tui.model.command import Shell
from whisper_tui.policy.allowing import Allowing
from whisper_tui.policy.matching import reaches
from whisper_tui.policy.rules import Rule, Rules
from whisper_tui.policy.view import view

Effect = Literal["deny", "ask", "allow"]

EFFECTS: tuple[Effect, ...] = ("deny", "ask", "allow")


def is_about(effect: Effect, rule: Rule, text: str) -> bool:
    """Whether a rule decides about this text by itself: for an allow rule, whether it allows all of it."""
    command = Shell(text=text)
    seen = view(command)
    if effect != "allow":
        return reaches(rule, command, seen)
    if rule.matches(command):
        return True
    if seen.plain is None:
        return False
    return Allowing(rules=(rule,), read_only=False, git_is_neutral=False).allows(seen.plain) is not None


def failed_examples(effect: Effect, rule: Rule) -> list[str]:
    """What is wrong with the examples of a rule, one sentence each."""
    missed = [f"it does not match {text!r}" for text in rule.match if not is_about(effect, rule, text)]
    caught = [f"it matches {text!r}" for text in rule.not_match if is_about(effect, rule, text)]
    return missed + caught


def matched(effect: Effect, rule: Rule, texts: Iterable[str]) -> list[str]:
    """Those of the texts that a rule is about."""
    return [text for text in texts if is_about(effect, rule, text)]


def by_effect(rules: Rules) -> Iterable[tuple[Effect, Rule]]:
    """Every rule with what it does, in the order in which they decide."""
    for effect in EFFECTS:
        for rule in getattr(rules, effect):
            yield effect, rule
