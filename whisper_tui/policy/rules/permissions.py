"""Permissions for literal commands: by a rule, the built-in read-only list, or a remembered approval."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from whisper_tui.model.verdict import READ_ONLY_RULE
from whisper_tui.policy.commands.shells import StandardInput
from whisper_tui.policy.commands.unwrap import unwrap
from whisper_tui.policy.commands.wrappers import ALLOW_LOOKS_THROUGH
from whisper_tui.policy.read_only.git_queries import reads_submodules
from whisper_tui.policy.read_only.read_only_list import fails_in_sandbox, needs_no_sandbox, only_reads
from whisper_tui.policy.risks.command_dangers import EVALUATING, dangers_of_argv
from whisper_tui.policy.risks.danger import Danger
from whisper_tui.policy.rules.matching import covers, stays_inside
from whisper_tui.policy.rules.rule import Rule
from whisper_tui.policy.shell.bash_reader import read_script
from whisper_tui.policy.shell.strict_reader import PlainCommand
from whisper_tui.policy.view import agreed

CHANGES_SHELL = frozenset(
    "export declare typeset readonly local unset set shopt enable alias unalias hash trap bind complete compopt eval "
    "source . exec builtin let read mapfile readarray getopts history fc coproc umask shift return "
    "logout suspend".split()
) | (EVALUATING - {"test", "printf", "["})
"""Builtins that may change the meaning of later words of the same text."""

DEEPEST = 4
"""Nested wrappers through which an allow rule holds."""

READ_ONLY = Rule(name=READ_ONLY_RULE, anything=True, justification="it only reads", sandbox="read-only")
"""The built-in read-only list as a rule."""

READ_ONLY_WITHOUT_SANDBOX = READ_ONLY.model_copy(update={"sandbox": False})
"""The same for programs that need no sandbox, because they cannot do anything else with any options."""


@dataclass(frozen=True)
class Permissions:
    """Everything that may allow the literal commands of one call."""

    rules: tuple[Rule, ...]
    read_only: bool
    git_is_neutral: bool
    git_modules: bool = False
    """True if the repository has submodules."""

    def allows(self, commands: Sequence[PlainCommand]) -> tuple[Rule, ...] | None:
        """Return the rules that together allow all commands, or None if one command is not allowed."""
        if _changes_directory_before_git(commands):
            return None
        found = [self._one(command, 0) for command in commands]
        if any(rules is None for rules in found):
            return None
        used = tuple(dict.fromkeys(rule for rules in found for rule in rules or ()))
        if len({rule.name for rule in used} | {READ_ONLY.name}) > 1 and self._reads_with_git(commands, found):
            return None  # a git that only looks is held to one repository, which others in the same text would inherit
        return used

    @staticmethod
    def _reads_with_git(commands: Sequence[PlainCommand], found: Sequence[tuple[Rule, ...] | None]) -> bool:
        pairs = zip(commands, found, strict=True)
        return any(_runs_git((command,)) and READ_ONLY in (rules or ()) for command, rules in pairs)

    def _one(self, command: PlainCommand, depth: int) -> tuple[Rule, ...] | None:
        opens = any(redirection.opens_file for redirection in command.redirections)
        dangers = dangers_of_argv(command.argv, has_input=command.piped or bool(command.redirections))
        rule = self._rule(command, dangers, opens)
        if rule is not None:
            return (rule,)
        # only a rule can cover these; the built-in list and wrappers never do
        if opens or command.assignments or depth >= DEEPEST:
            return None
        # decision 8: a background command would outlive the limits of one that nobody was asked about
        if self.read_only and not command.background and self._is_read_only(command):
            return (READ_ONLY_WITHOUT_SANDBOX if needs_no_sandbox(command.argv) else READ_ONLY,)
        return self._behind(command, depth)

    def _is_read_only(self, command: PlainCommand) -> bool:
        if fails_in_sandbox(command.argv):
            return False
        neutral = self.git_is_neutral and not (self.git_modules and reads_submodules(command.argv))
        return only_reads(command.argv, git_is_neutral=neutral)

    def _rule(self, command: PlainCommand, dangers: Sequence[Danger], opens: bool) -> Rule | None:
        if any(danger.id == "opaque" and danger.word >= len(command.argv) for danger in dangers):
            return None
        for rule in self.rules:
            if opens and not rule.redirections:
                continue
            if not covers(rule, command, dangers) or not _may_change(command, rule):
                continue
            # a rule of a project must not reach beyond that project (decision 12)
            if rule.directory is None or stays_inside(command.argv, rule.directory):
                return rule
        return None

    def _behind(self, command: PlainCommand, depth: int) -> tuple[Rule, ...] | None:
        """Return the rules that allow the commands inside a wrapper, if allow rules hold through it."""
        if command.argv[0] not in ALLOW_LOOKS_THROUGH | {"bash"}:
            return None
        if command.argv[0] == "bash" and (len(command.argv) != 3 or command.argv[1] not in {"-c", "-lc"}):
            return None  # every other option can name a file that bash reads first
        unwrapped = unwrap(command.argv, StandardInput(has_input=True))
        if unwrapped is None or unwrapped.opaque is not None:
            return None
        inside: list[PlainCommand] = []
        for argv in unwrapped.commands:
            words = tuple(word for word in argv if word is not None)
            inside.append(PlainCommand(argv=words, start=command.start, end=command.end, background=command.background))
        for text in unwrapped.texts:
            plain, _ = agreed(text, read_script(text))
            if plain is None:
                return None
            inside.extend(replace(each, background=each.background or command.background) for each in plain)
        found = [self._one(each, depth + 1) for each in inside]
        if not found or any(rules is None for rules in found) or _changes_directory_before_git(inside):
            return None
        return tuple(rule for rules in found for rule in rules or ())


def _may_change(command: PlainCommand, rule: Rule) -> bool:
    """True unless the command changes its shell and the rule does not name it with its arguments."""
    if command.argv[0] not in CHANGES_SHELL:
        return True
    return rule.anything or (rule.prefix is not None and len(rule.prefix) > 1)


def _changes_directory_before_git(commands: Sequence[PlainCommand]) -> bool:
    """True if git runs after a `cd`: the settings of the repository there may run programs."""
    moves = any(command.argv[0] in {"cd", "pushd", "popd"} for command in commands)
    return moves and _runs_git(commands)


def _runs_git(commands: Sequence[PlainCommand]) -> bool:
    return any(word.rsplit("/", 1)[-1] == "git" for command in commands for word in command.argv)
