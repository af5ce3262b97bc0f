"""The policy's answers to a corpus of cases, in the form that a case expects."""

from collections.abc import Mapping, Sequence
from typing import Any

from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.verdict import Resolved
from whisper_tui.policy.commands.read_only_list import only_reads
from whisper_tui.policy.commands.unwrap import InnerCommand
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.risks.command_dangers import is_fork_bomb
from whisper_tui.policy.rules.grants import is_too_broad
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.policy.shell.strict_reader import NotPlain, read_plain
from whisper_tui.policy.shell.syntax import ACCESS_RANKS
from whisper_tui.policy.view import Question, view

SHORT = 2
"""Words of a text that is no more than the beginning of a command."""

ROOT = "/workspace"
"""The working directory of cases. Nothing is looked up there."""


def judge_case(
    kind: str, command: str, rules: Mapping[str, Any] | None = None, options: Mapping[str, Any] | None = None
) -> Any:
    """Return the answer to one case. Raises `ValueError` for an unknown kind."""
    seen = view(Shell(text=command))
    match kind:
        case "substitution":
            return seen.expands
        case "split":
            return _split(command)
        case "redirect":
            redirections = seen.scripts[0].redirections if seen.scripts else ()
            return max((redirection.access for redirection in redirections), key=ACCESS_RANKS.index, default="none")
        case "wrapper":
            return [list(inner.argv) for inner in seen.commands if inner.argv and not inner.runs_others] or "error"
        case "decision":
            return _decision(command, rules_from_case(rules or {}))
        case "safe":
            return _decision(command, Rules(read_only=True), in_repository=True) == "allow"
        case "danger":
            if "rule" in (options or {}).get("tags", ()):
                return is_too_broad(_words(command))
            return is_dangerous(command) or _could_only_be_a_rule(command)
        case _:
            raise ValueError(f"there is no kind of case {kind!r}")


def _could_only_be_a_rule(command: str) -> bool:
    """True if a text is so short that it says nothing of what is to be done, and would allow nearly anything.

    Cases that are about rules do not always say so.
    """
    words = _words(command)
    return 0 < len(words) <= SHORT and "--" not in words and is_too_broad(words)


def _split(command: str) -> list[list[str | None]] | str:
    script = view(Shell(text=command)).scripts
    if not script or (script[0].problem and not script[0].commands):
        return "error"
    return [list(simple.argv) for simple in script[0].commands if simple.words]


def _decision(command: str, rules: Rules, *, in_repository: bool = False) -> str:
    question = Question(
        session_id="case",
        session_root=ROOT,
        spec=CommandSpec(command=Shell(text=command), cwd=ROOT),
        description="",
        resolved=Resolved(program="/bin/bash", cwd=ROOT, git_is_neutral=in_repository),
    )
    verdict = evaluate(question, rules, ())
    return "deny" if verdict.kind == "refuse" else verdict.kind


def rules_from_case(case: Mapping[str, Any]) -> Rules:
    """Read rules in short form: words are a prefix, `=text` is exact, `glob:text` a pattern, `*` everything."""
    redirections = bool(case.get("allow_redirect", False))
    return Rules(
        deny=_rules(case.get("deny", ()), redirections),
        ask=_rules(case.get("ask", ()), redirections),
        allow=_rules(case.get("allow", ()), redirections),
        otherwise="allow" if case.get("default") == "allow" else "ask",
    )


def _rules(texts: Sequence[str], redirections: bool) -> tuple[Rule, ...]:
    return tuple(_rule(text, redirections) for text in texts)


def _rule(text: str, redirections: bool) -> Rule:
    if text == "*":
        return Rule(name=text, anything=True, redirections=redirections)
    if text.startswith("="):
        return Rule(name=text, text=text[1:], redirections=redirections)
    if text.startswith("glob:"):
        return Rule(name=text, pattern=text[5:], redirections=redirections)
    return Rule(name=text, prefix=_words(text), redirections=redirections)


def _words(text: str) -> tuple[str, ...]:
    """Return the words of a rule, as the strict reader reads them, or else split at blanks."""
    try:
        commands = read_plain(text)
    except NotPlain:
        return tuple(text.split())
    if len(commands) != 1 or commands[0].redirections:
        return tuple(text.split())
    return (*commands[0].assignments, *commands[0].argv)


def is_dangerous(command: str) -> bool:
    """True if a rule for its programs alone must not cover it."""
    seen = view(Shell(text=command))
    if seen.problem or seen.dangers:
        return True
    if any(is_fork_bomb(script, seen.commands) for script in seen.scripts):
        return True
    if any(redirection.access == "net" for script in seen.scripts for redirection in script.redirections):
        return True
    return any(inner.nested and not _only_reads(inner) for inner in seen.commands)


def _only_reads(inner: InnerCommand) -> bool:
    words = tuple(word for word in inner.argv if word is not None)
    return len(words) == 0 or only_reads(words, git_is_neutral=True)
