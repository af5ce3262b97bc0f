"""Denied words where no reading finds a command: among the words of programs that may run them, and in code."""

import re
from collections.abc import Iterable, Sequence

from whisper_tui.policy.dangers.of_inner import dangers_of
from whisper_tui.policy.dangers.unknown import WORDS_ARE_DATA
from whisper_tui.policy.environment import changes_what_runs
from whisper_tui.policy.inner import Inner
from whisper_tui.policy.rules import Rule
from whisper_tui.policy.view import View
from whisper_tui.policy.wrappers.peeled import program_name

_PARTS = re.compile(r"[^\w./+-]+")


def mentioned(rules: Iterable[Rule], seen: View) -> tuple[Rule, str, str] | None:
    """The first rule whose words stand where nobody can say that they do not run: rule, program, words."""
    for rule in rules:
        wanted = _words(rule)
        if not wanted:
            continue
        for command in seen.commands:
            if _stands(wanted, command):
                return rule, command.name or "it", " ".join(wanted)
    return None


def _words(rule: Rule) -> tuple[str, ...]:
    words = (rule.program,) if rule.program is not None else rule.prefix or rule.argv or ()
    return (program_name(words[0]), *words[1:]) if words else ()


def _stands(wanted: Sequence[str], command: Inner) -> bool:
    for assignment in command.assignments:
        name, _, value = assignment.partition("=")
        if changes_what_runs(name.rstrip("+")) and _in_text(wanted, value):
            return True
    if command.runs_others or (command.name in WORDS_ARE_DATA and not _runs_code(command)):
        return False
    return _in_text(wanted, "\n".join(word for word in command.argv[1:] if word is not None))


def _runs_code(command: Inner) -> bool:
    return any(danger.id in {"runs-other-code", "opaque"} for danger in dangers_of(command))


def _in_text(wanted: Sequence[str], text: str) -> bool:
    if wanted[0] not in text:
        return False
    parts = [part for part in _PARTS.split(text) if part]
    names = [part.rsplit("/", 1)[-1] for part in parts]
    length = len(wanted)
    return any(
        names[at] == wanted[0] and parts[at + 1 : at + length] == list(wanted[1:])
        for at in range(len(parts) - length + 1)
    )
