"""Judging tools that the agent's side carries out itself: denied by name, or by a command among their arguments."""

import fnmatch
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from whisper_tui.model.command import Argv, Command, Function, Shell
from whisper_tui.model.decision import Grant
from whisper_tui.model.verdict import Verdict
from whisper_tui.policy.matching import applies, reaches
from whisper_tui.policy.memory import holds, is_exact
from whisper_tui.policy.question import Question
from whisper_tui.policy.risks import ALWAYS_ASKED, risks_of
from whisper_tui.policy.rules import Rule, Rules
from whisper_tui.policy.view import view

COMMAND_NAMES = frozenset({"command", "commands", "cmd", "cmdline", "command_line", "shell_command", "script"})
"""Names of arguments by which a tool says that they are commands: a text for a shell, or a list of words."""

ARGUMENT_NAMES = ("args", "arguments", "argv")
"""Names of lists of words that belong to a program named beside them."""

DEEPEST = 8
"""How far down in the arguments commands are looked for."""


def evaluate_function(question: Question, function: Function, rules: Rules, memory: Iterable[Grant]) -> Verdict:
    """Such a call is asked, unless a rule denies it or exactly this call was approved for the session."""
    risks = risks_of(question)
    commands = tuple(commands_in(function.arguments))
    for rule in rules.deny:
        if _applies(rule, question, function) and _reaches(rule, function, commands):
            reason = rule.justification or f"the rule {rule.name!r} denies this tool"
            return Verdict(kind="refuse", reason=reason, rule=rule.name, risks=risks)
    if rules.broken:
        reason = f"the rules cannot be read, so everything is asked: {rules.broken}"
        return Verdict(kind="ask", reason=reason, risks=risks)
    doubt = question.resolved.problem or next((risk.sentence for risk in risks if risk.id in ALWAYS_ASKED), None)
    if doubt:
        return Verdict(kind="ask", reason=doubt, risks=risks)
    for rule in rules.ask:
        if _applies(rule, question, function) and _reaches(rule, function, commands):
            reason = rule.justification or f"the rule {rule.name!r} wants this tool to be asked"
            return Verdict(kind="ask", reason=reason, rule=rule.name, risks=risks)
    for grant in memory:
        if holds(grant, question.session_id, question.now) and is_exact(grant) and _same(grant, question):
            reason = f"approved for this session with call {grant.from_call}"
            return Verdict(kind="allow", reason=reason, grant_id=grant.id, risks=risks)
    return Verdict(kind="ask", reason="the agent's side carries out this tool itself, if you agree", risks=risks)


def commands_in(arguments: Any, depth: int = 0) -> Iterator[Command]:
    """What of a tool's arguments is a command, by the names that the tool gave them."""
    if depth > DEEPEST:
        return
    if isinstance(arguments, dict):
        for name, value in arguments.items():
            if name.lower() in COMMAND_NAMES:
                yield from _commands(value, arguments)
            yield from commands_in(value, depth + 1)
    elif isinstance(arguments, list):
        for value in arguments:
            yield from commands_in(value, depth + 1)


def _commands(value: Any, beside: dict[str, Any]) -> Iterator[Command]:
    if isinstance(value, str) and value:
        words = next((beside[name] for name in ARGUMENT_NAMES if _are_words(beside.get(name))), None)
        yield Shell(text=value) if words is None else Argv(program=value, args=tuple(words))
    elif _are_words(value) and value:
        yield Argv(program=value[0], args=tuple(value[1:]))
        for text in value:
            yield Shell(text=text)


def _are_words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _applies(rule: Rule, question: Question, function: Function) -> bool:
    """A rule for a tool is about the tool that is called, and about the one that is carried out."""
    return applies(rule, question) or applies(rule, replace(question, tool=function.tool))


def _reaches(rule: Rule, function: Function, commands: Iterable[Command]) -> bool:
    """Whether a rule that denies or asks is about the tool as a whole, or about a command among its arguments."""
    if rule.anything:
        return True
    if rule.pattern is not None and fnmatch.fnmatchcase(function.text, rule.pattern):
        return True
    return any(reaches(rule, command, view(command)) for command in commands)


def _same(grant: Grant, question: Question) -> bool:
    return grant.spec.identity() == question.spec.identity()
