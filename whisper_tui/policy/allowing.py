"""What allows a certain command: a rule, the list of commands that only look, or a remembered approval."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from whisper_tui.policy.dangers.finding import Danger
from whisper_tui.policy.dangers.of_inner import EVALUATING, dangers_of_certain
from whisper_tui.policy.matching import covers, stays_inside
from whisper_tui.policy.read_only.git import looks_into_modules
from whisper_tui.policy.read_only.judged import only_looks
from whisper_tui.policy.read_only.plainly import needs_more_than_a_sandbox, plainly_looks
from whisper_tui.policy.reading.plain import PlainCommand
from whisper_tui.policy.reading.wide import read_script
from whisper_tui.policy.rules import Rule
from whisper_tui.policy.view import agreed
from whisper_tui.policy.wrappers.peel import peel
from whisper_tui.policy.wrappers.shells import Input
from whisper_tui.policy.wrappers.table import ALLOW_LOOKS_THROUGH

CHANGES_SHELL = frozenset(
    "export declare typeset readonly local unset set shopt enable alias unalias hash trap bind complete compopt eval "
    "source . exec builtin let read mapfile readarray getopts history fc coproc umask shift return "
    "logout suspend".split()
) | (EVALUATING - {"test", "printf", "["})
"""Builtins after which later words of the same text may mean something else."""

DEEPEST = 4
"""How many wrappers a rule looks through."""

LOOKS = Rule(name="built-in: only looks", anything=True, justification="it only looks", sandbox="read-only")
"""Stands for the built-in list where a rule's name is shown."""

PLAINLY_LOOKS = LOOKS.model_copy(update={"sandbox": False})
"""The same for a command whose program does nothing else, with any options: it needs no sandbox to be harmless."""


@dataclass(frozen=True)
class Allowing:
    """Everything that could allow a certain command, as far as it is about this call."""

    rules: tuple[Rule, ...]
    read_only: bool
    git_is_neutral: bool
    git_modules: bool = False
    """Whether other repositories are part of the one that git would look at."""

    def allows(self, commands: Sequence[PlainCommand]) -> tuple[Rule, ...] | None:
        """The rules that together allow all commands. None: at least one is not allowed."""
        if _moves_before_git(commands):
            return None
        found = [self._one(command, 0) for command in commands]
        if any(rules is None for rules in found):
            return None
        used = tuple(dict.fromkeys(rule for rules in found for rule in rules or ()))
        if len({rule.name for rule in used} | {LOOKS.name}) > 1 and self._looks_with_git(commands, found):
            return None  # a git that only looks is held to one repository, which others in the same text would inherit
        return used

    @staticmethod
    def _looks_with_git(commands: Sequence[PlainCommand], found: Sequence[tuple[Rule, ...] | None]) -> bool:
        pairs = zip(commands, found, strict=True)
        return any(_runs_git((command,)) and LOOKS in (rules or ()) for command, rules in pairs)

    def _one(self, command: PlainCommand, depth: int) -> tuple[Rule, ...] | None:
        opens = any(redirection.opens_file for redirection in command.redirections)
        dangers = dangers_of_certain(command.argv, comes=command.piped or bool(command.redirections))
        rule = self._rule(command, dangers, opens)
        if rule is not None:
            return (rule,)
        if opens or command.assignments or depth >= DEEPEST:
            return None
        if self.read_only and not command.background and self._only_looks(command):
            return (PLAINLY_LOOKS if plainly_looks(command.argv) else LOOKS,)
        return self._behind(command, depth)

    def _only_looks(self, command: PlainCommand) -> bool:
        if needs_more_than_a_sandbox(command.argv):
            return False
        neutral = self.git_is_neutral and not (self.git_modules and looks_into_modules(command.argv))
        return only_looks(command.argv, git_is_neutral=neutral)

    def _rule(self, command: PlainCommand, dangers: Sequence[Danger], opens: bool) -> Rule | None:
        if any(danger.id == "opaque" and danger.word >= len(command.argv) for danger in dangers):
            return None
        for rule in self.rules:
            if opens and not rule.redirections:
                continue
            if not covers(rule, command, dangers) or not _may_change(command, rule):
                continue
            if rule.directory is None or stays_inside(command.argv, rule.directory):
                return rule
        return None

    def _behind(self, command: PlainCommand, depth: int) -> tuple[Rule, ...] | None:
        """The rules that allow what a wrapper runs, if the wrapper is one of those that are looked through."""
        if command.argv[0] not in ALLOW_LOOKS_THROUGH | {"bash"}:
            return None
        if command.argv[0] == "bash" and (len(command.argv) != 3 or command.argv[1] not in {"-c", "-lc"}):
            return None  # every other option can name a file that bash reads first
        peeled = peel(command.argv, Input(comes=True))
        if peeled is None or peeled.opaque is not None:
            return None
        inside: list[PlainCommand] = []
        for argv in peeled.commands:
            words = tuple(word for word in argv if word is not None)
            inside.append(PlainCommand(argv=words, start=command.start, end=command.end, background=command.background))
        for text in peeled.texts:
            plain, _ = agreed(text, read_script(text))
            if plain is None:
                return None
            inside.extend(replace(each, background=each.background or command.background) for each in plain)
        found = [self._one(each, depth + 1) for each in inside]
        if not found or any(rules is None for rules in found) or _moves_before_git(inside):
            return None
        return tuple(rule for rules in found for rule in rules or ())


def _may_change(command: PlainCommand, rule: Rule) -> bool:
    """A builtin that changes the shell is only covered by a rule that names it with its arguments, or everything."""
    if command.argv[0] not in CHANGES_SHELL:
        return True
    return rule.anything or (rule.prefix is not None and len(rule.prefix) > 1)


def _moves_before_git(commands: Sequence[PlainCommand]) -> bool:
    """Whether git runs in a directory that the text itself chose: the repository there may run programs."""
    moves = any(command.argv[0] in {"cd", "pushd", "popd"} for command in commands)
    return moves and _runs_git(commands)


def _runs_git(commands: Sequence[PlainCommand]) -> bool:
    return any(word.rsplit("/", 1)[-1] == "git" for command in commands for word in command.argv)
