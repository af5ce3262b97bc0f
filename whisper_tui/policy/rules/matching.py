"""Matching of rules and commands: wide for deny and ask rules; for allow rules narrow, with the read-only list."""

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product, takewhile

from whisper_tui.model.call import Command, CommandSpec
from whisper_tui.model.verdict import READ_ONLY_RULE, Resolved
from whisper_tui.policy.commands.argv import Danger, long_option, parse_git, program_name, without_directory
from whisper_tui.policy.commands.read_only_list import fails_in_sandbox, needs_no_sandbox, only_reads
from whisper_tui.policy.commands.read_only_programs import reads_submodules
from whisper_tui.policy.commands.readings import find_words, read_words
from whisper_tui.policy.commands.spellings import (
    canonical,
    gives_option,
    may_be_another,
    means,
    option_parts,
    other_forms,
    same_options,
    spellings,
    takes_any_order,
    usual_name,
)
from whisper_tui.policy.commands.unwrap import InnerCommand, unwrap
from whisper_tui.policy.commands.words_of_input import starter
from whisper_tui.policy.commands.wrappers import StandardInput, changes_what_runs
from whisper_tui.policy.risks.command_dangers import (
    EVALUATING,
    dangers_of_argv,
    dangers_of_command,
    gives_words_to_readers,
    words_are_data,
)
from whisper_tui.policy.risks.sensitive_paths import names_secret
from whisper_tui.policy.rules.known_programs import says_too_little
from whisper_tui.policy.rules.rule import Effect, Rule, Rules, by_effect, is_below
from whisper_tui.policy.rules.set_variables import (
    ASSIGNMENT,
    behind_env,
    only_exports,
    rest_of,
    to_be_named,
    with_variables,
)
from whisper_tui.policy.shell.bash_reader import read_script
from whisper_tui.policy.shell.static_expansion import is_harmless_setting
from whisper_tui.policy.shell.strict_reader import PlainCommand
from whisper_tui.policy.view import CommandView, Question, agreed, view
from whisper_tui.programs.entries import entry_of

_ELSEWHERE = ("git-dir", "work-tree", "prefix", "directory", "chdir", "cwd")
"""Long options, like `-C`, that make relative paths mean another directory."""
_LETTERS = re.compile(r"\A-\w+")


def applies(effect: Effect, rule: Rule, question: Question, tools: Iterable[str] = ()) -> bool:
    """True if a rule is enabled, and for this session, tool, place and directory. `tools`: more names of the tool."""
    if rule.disabled or not rule.is_about_place(effect, question.spec.place):
        return False
    if rule.tool is not None and not any(fnmatch.fnmatchcase(name, rule.tool) for name in (question.tool, *tools)):
        return False
    if rule.trust and question.trust not in rule.trust:
        return False
    if rule.until is not None and question.now >= rule.until:
        return False
    if rule.directory is None:
        return True
    # The workspace may have another path at a place: rules about it hold there by its path here as well.
    cwds = (question.resolved.cwd or question.spec.cwd, *filter(None, (question.cwd_here,)))
    return any(is_below(cwd, rule.directory) for cwd in cwds)


def place_by_rule(question: Question, rules: Rules) -> str:
    """Return the place to which a rule moves a command that names none. Empty: it stays on this machine."""
    command = question.spec.command
    for effect, rule in by_effect(rules):
        if rule.run_at is not None and effect != "deny" and not rules.broken:
            there = replace(question, spec=question.spec.model_copy(update={"place": rule.run_at}))
            if applies(effect, rule, there) and reaches(rule, command, view(command)):
                return rule.run_at
    return ""


def place_of_unsubmitted(spec: CommandSpec, rules: Rules, tool: str, now: float) -> str:
    """Return the place to which a rule would move a command if a session in its directory submitted it."""
    return place_by_rule(Question("", spec.cwd, spec, "", Resolved(), tool=tool, now=now), rules)


def reaches(rule: Rule, command: Command, seen: CommandView) -> bool:
    """True if a deny or ask rule matches any command of a call, however it is wrapped."""
    if rule.anything or rule.matches(command):
        return True
    if rule.pattern is not None:
        texts = (seen.text.strip(), *(_text_of(inner) for inner in seen.commands))
        if any(fnmatch.fnmatchcase(text, rule.pattern) for text in texts):
            return True
        return any(_begins_like(rule.pattern, inner, seen.sets) for inner in seen.commands)
    if rule.text is not None or rule.argv is not None:
        return any(_is_exactly(rule, inner) for inner in seen.commands)
    words = (rule.program,) if rule.program is not None else rule.prefix or ()
    if _may_begin(words[0] if words else "", seen) and any(_begins(words, inner, seen.sets) for inner in seen.commands):
        return True
    # a text that cannot be parsed may still run in a shell that is more lenient
    return seen.problem is not None and _stands_somewhere(words, seen)


def _text_of(inner: InnerCommand) -> str:
    return " ".join(word or "*" for word in inner.argv)


def _begins_like(pattern: str, inner: InnerCommand, before: Sequence[str]) -> bool:
    """True if the words of a pattern match the first words of a command in some reading."""
    named = pattern.split()
    rest = rest_of(named)
    given = (*inner.assignments, *before)
    if inner.name is None or not rest:
        return False
    if not all(any(map(partial(fnmatch.fnmatchcase, pat=each), given)) for each in named[: -len(rest)]):
        return False
    if len(rest) < len(named) and fnmatch.fnmatchcase(_text_of(inner), " ".join(rest)):
        return True
    program, *words = rest
    name = program_name(program)
    forms = [form for form in _forms(canonical(inner.argv)) if fnmatch.fnmatchcase(form[0] or "", name)]
    if fnmatch.fnmatchcase(inner.name, name):
        forms.append(inner.argv)
    if not words or not forms:
        return False
    # what follows the last word may be nothing at all
    wanted = [word for word in words if not word.startswith("-")]
    while wanted and not wanted[-1].strip("*"):
        wanted.pop()
    options = [word for word in words if word.startswith("-")]
    if not (wanted or options) or not all(
        any(fnmatch.fnmatchcase(word or "", option) for form in forms for word in form[1:]) for option in options
    ):
        return False
    return any(_has_words(form, wanted, fnmatch.fnmatchcase) for form in forms)


def _may_begin(word: str, seen: CommandView) -> bool:
    """True if a comparison word by word may succeed."""
    names = {usual_name(name)[0] for name in seen.names}
    return "=" in word or usual_name(program_name(word))[0] in names or any(map(may_be_another, names))


def _is_exactly(rule: Rule, inner: InnerCommand) -> bool:
    if rule.argv is not None:
        return inner.argv == rule.argv
    return None not in inner.argv and " ".join(word or "" for word in inner.argv) == (rule.text or "").strip()


def _begins(words: Sequence[str], inner: InnerCommand, before: Sequence[str]) -> bool:
    """True if a command begins with these words in some reading and spelling, wherever it has further options.

    `before`: the variables that the text sets for more than one command.
    """
    assigned = list(takewhile(ASSIGNMENT.match, words))
    words = words[len(assigned) :]
    given = (*inner.assignments, *before)
    if not words or not all(assignment in given for assignment in assigned):
        return bool(assigned) and not words and all(assignment in given for assignment in assigned)
    if inner.name is None or not _same_place(words[0], inner.argv[0] or ""):
        return False
    if inner.name == program_name(words[0]) and inner.argv[1 : len(words)] == tuple(words[1:]):
        return True
    name, *rest = canonical(words)
    argv = canonical(inner.argv)
    if name is None:
        return False
    wanted = spellings(name, tuple(word or "" for word in rest))
    return any(_holds(each, form) for form in _forms(argv) if form[0] == name for each in wanted)


def _same_place(said: str, called: str) -> bool:
    """True unless the rule names a path and the command another one."""
    return "/" not in said or said == called


def _forms(argv: tuple[str | None, ...]) -> list[tuple[str | None, ...]]:
    forms = [argv]
    if argv[0] == "git":
        apart = parse_git(argv)
        if apart is not None and apart.options:
            # `git -C dir push` is a `git push`
            forms.append((argv[0], *argv[apart.at :]))
    forms += [canonical(form) for form in other_forms(argv)]
    return forms


def _holds(wanted: Sequence[str], argv: Sequence[str | None]) -> bool:
    """True if the first words in some reading are those of the rule, and its options stand anywhere."""
    name = argv[0] or ""
    return any(
        _has_words(argv, named, partial(means, name))
        and all(_gives(argv, "".join(named[:1]), option, value) for option, value in options)
        for named, options in _rule_readings(tuple(wanted))
    )


def _has_words(argv: Sequence[str | None], wanted: Sequence[str], same: Callable[[str, str], bool]) -> bool:
    """True if a command begins with these words in some reading, or names all of them as targets."""
    read = read_words(argv)
    if takes_any_order(argv[0] or ""):
        return all(any(same(each.word, word) for each in read) for word in wanted)
    return find_words(read, wanted, same) is not None


def _gives(argv: Sequence[str | None], subcommand: str, option: str, value: str | None) -> bool:
    """True if a command has an option of a rule. `-fr` and `--recursive --force` have `-rf`."""
    if gives_option(argv, option, value):
        return True
    *others, last = option_parts(option)
    wanted = (*((part, None) for part in others), (last, value))
    return all(
        any(gives_option(argv, each, needed) for each in same_options(argv[0] or "", subcommand, part))
        for part, needed in wanted
    )


MOST_VALUES = 4
"""Options of a rule that are tried with and without the word behind them as their value."""


@lru_cache(maxsize=1024)
def _rule_readings(wanted: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], tuple[tuple[str, str | None], ...]], ...]:
    """Return the words and the options of a rule in each reading: an option may take the word behind it."""
    may_take = [
        at
        for at, word in enumerate(wanted[:-1])
        if word.startswith("-") and "=" not in word and not wanted[at + 1].startswith("-")
    ][:MOST_VALUES]
    found = []
    for takes in product((False, True), repeat=len(may_take)):
        with_value = {at for at, takes_it in zip(may_take, takes, strict=True) if takes_it}
        named = tuple(word for at, word in enumerate(wanted) if not word.startswith("-") and at - 1 not in with_value)
        options = tuple(
            (word, wanted[at + 1] if at in with_value else None)
            for at, word in enumerate(wanted)
            if word.startswith("-")
        )
        found.append((named, options))
    return tuple(found)


def _stands_somewhere(words: Sequence[str], seen: CommandView) -> bool:
    """True if the words stand one after the other in a text that cannot be parsed."""
    wanted = (program_name(words[0]), *words[1:]) if words else ()
    if not wanted or any(word not in seen.text for word in wanted) or wanted[0] not in seen.fragment_words:
        return False
    fragments = seen.fragments
    return any(
        fragments[at : at + len(wanted)] == wanted for at, fragment in enumerate(fragments) if fragment == wanted[0]
    )


def covers(rule: Rule, command: PlainCommand, dangers: Sequence[Danger]) -> bool:
    """True if an allow rule matches a literal command and names its dangers."""
    if rule.anything:
        # a rule for anything covers every known command; nobody knows what an opaque one runs
        return not any(danger.id == "opaque" for danger in dangers)
    if rule.prefix is not None:
        return _prefix_covers(rule, command, dangers)
    if rule.pattern is not None:
        texts = (" ".join((*each, *command.argv)) for each in (command.assignments, to_be_named(command.assignments)))
        return any(fnmatch.fnmatchcase(text, rule.pattern) for text in texts) and not dangers
    if rule.program is not None:
        named = not to_be_named(command.assignments) and command.argv[0] == rule.program
        return named and not dangers and not is_too_short(rule, command)
    return False


def is_too_short(rule: Rule, command: PlainCommand) -> bool:
    """True if a rule allows nothing but a program of which nothing is known, and the command says more."""
    words = (rule.program,) if rule.program is not None else rule.prefix or ()
    return (
        rule.options is None
        and says_too_little(words)
        and len(command.argv) > 1
        and command.argv[: len(words)] == words
    )


def _prefix_covers(rule: Rule, command: PlainCommand, dangers: Sequence[Danger]) -> bool:
    prefix = rule.prefix or ()
    if not command.assignments and prefix[:1] != command.argv[:1]:
        return False
    words = rest_of(prefix)
    assigned = prefix[: len(prefix) - len(words)]
    if not words or command.argv[: len(words)] != words:
        return False
    if assigned not in {command.assignments, to_be_named(command.assignments)}:
        return False
    if is_too_short(rule, command):
        return False
    if any(danger.word >= len(words) and not _is_named(danger, command, rule) for danger in dangers):
        return False
    return rule.options is None or all(
        _option_is_listed(word, rule.options) for word in _options(command.argv[len(words) :])
    )


def _is_named(danger: Danger, command: PlainCommand, rule: Rule) -> bool:
    """True if a rule lists the dangerous option, which writes a file or runs its value."""
    if danger.id not in {"runs-other-code", "writes-file"} or danger.word >= len(command.argv):
        return False
    word = command.argv[danger.word]
    return word.startswith("-") and rule.options is not None and _option_is_listed(word, rule.options)


def _options(words: Sequence[str]) -> list[str]:
    found = []
    for word in words:
        if word == "--":
            break
        if word.startswith("-") and word != "-":
            found.append(word)
    return found


def _option_is_listed(word: str, allowed: Sequence[str]) -> bool:
    return word in allowed or (word.startswith("--") and word.partition("=")[0] + "=" in allowed)


def names_whole(rules: Sequence[Rule], command: Command, plain: Sequence[PlainCommand] | None) -> bool:
    """True if the rules name a whole call, whatever dangers its commands have: for rules on effects.

    `plain`: its commands, if they are certain.
    """
    # No reading is needed for a rule that names anything, nor for one that repeats the text.
    if any(rule.anything or rule.matches(command) for rule in rules):
        return True
    return bool(plain) and all(any(_names(rule, each) for rule in rules) for each in plain or ())


def _names(rule: Rule, command: PlainCommand) -> bool:
    """True if a rule names a literal command."""
    if rule.pattern is not None:
        return fnmatch.fnmatchcase(" ".join((*command.assignments, *command.argv)), rule.pattern)
    if command.assignments:
        return False
    if rule.prefix is not None:
        return command.argv[: len(rule.prefix)] == rule.prefix
    return rule.program is not None and command.argv[0] == rule.program


def stays_inside(words: Sequence[str], directory: str) -> bool:
    """True if no word of a command leads outside a directory."""
    moved = any(word.startswith("-C") or long_option(word, *_ELSEWHERE) for word in words)
    if moved or words[0] in {"cd", "pushd", "popd"}:
        return False
    root = directory.rstrip("/") + "/"
    for word in words[1:]:
        # `--output=/etc/x` holds a path behind the sign, `-o/etc/x` behind letters
        path = _LETTERS.sub("", word.rpartition("=")[2])
        if ".." in path.split("/") or "://" in path:
            return False
        if path.startswith("/") and not (path + "/").startswith(root) and path != "/dev/null":
            return False
    return True


_PARTS = re.compile(r"[^\w./+-]+")


def mentioned(rules: Iterable[Rule], seen: CommandView) -> tuple[Rule, str, str] | None:
    """Return the first rule whose words stand where they might run, with program and words (decision 9)."""
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


def _stands(wanted: Sequence[str], command: InnerCommand) -> bool:
    for assignment in command.assignments:
        name, _, value = assignment.partition("=")
        if changes_what_runs(name.rstrip("+")) and _in_text(wanted, value):
            return True
    # the words of a wrapper are commands of their own; those of `echo rm` are data
    if command.runs_others or (words_are_data(command.name) and not _runs_code(command)):
        return False
    return _in_text(wanted, "\n".join(word for word in command.argv[1:] if word is not None))


def _runs_code(command: InnerCommand) -> bool:
    return any(danger.id in {"runs-other-code", "opaque"} for danger in dangers_of_command(command))


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


CHANGES_SHELL = frozenset(
    "export declare typeset readonly local unset set shopt enable alias unalias hash trap bind complete compopt eval "
    "source . exec builtin let read mapfile readarray getopts history fc coproc umask shift return "
    "logout suspend".split()
) | (EVALUATING - {"test", "printf", "["})
"""Builtins that may change the meaning of later words of the same text."""

_BASH = frozenset({"bash", "/bin/bash", "/usr/bin/bash"})
"""The names by which agents start bash."""

_SHELLS = _BASH | frozenset({"sh", "/bin/sh", "/usr/bin/sh", "dash", "/bin/dash"})
"""These, and shells with fewer expansions."""

_TAKES_TEXT = re.compile(r"-[eux]*c|-lc|-cl")

_IN_EVERY_SHELL = re.compile(r"(?!.*(?:\btime\b|\|&))[A-Za-z0-9_ \n./,:=@%+\"'|;&-]*", re.DOTALL)
"""Literal text that means the same to bash and to every shell that is called sh."""

DEEPEST = 4
"""Nested wrappers through which an allow rule holds."""

READ_ONLY = Rule(name=READ_ONLY_RULE, anything=True, justification="it only reads", sandbox="read-only")
"""The built-in read-only list as a rule."""

READ_ONLY_WITHOUT_SANDBOX = READ_ONLY.model_copy(update={"sandbox": False})
"""The same for programs that need no sandbox, because they cannot do anything else with any options."""


READ_ONLY_WITH_VARIABLES = READ_ONLY_WITHOUT_SANDBOX.model_copy(
    update={"justification": "it only reads, with variables that it sets"}
)
"""The same for such a program with variables, and for `export`: beside a rule, which has to name the variables."""


@dataclass(frozen=True)
class Permissions:
    """Everything that may allow the literal commands of one call."""

    rules: tuple[Rule, ...]
    read_only: bool
    git_is_neutral: bool
    git_modules: bool = False
    """True if the repository has submodules."""
    git_stays: bool = False
    """True if git finds this repository wherever the text moves, so that a `cd` before it changes nothing."""
    unsure: frozenset[str] = frozenset()
    """Names of programs that may come from the workspace: the read-only list does not hold for them."""
    shows_names: bool = False
    """True if nothing in the text shows more of a file than its name, its size and its times."""
    elsewhere: frozenset[str] = frozenset()
    """Names of programs that are not those of the system, and so always need a sandbox."""

    def allows(self, commands: Sequence[PlainCommand]) -> tuple[Rule, ...] | None:
        """Return the rules that together allow all commands, or None if one command is not allowed."""
        if not self.git_stays and _changes_directory_before_git(commands):
            return None
        found = [self._one(command, 0) for command in self.with_variables(commands)]
        if any(rules is None for rules in found):
            return None
        used = tuple(dict.fromkeys(rule for rules in found for rule in rules or ()))
        if len({rule.name for rule in used} | {READ_ONLY.name}) > 1 and self._reads_with_git(commands, found):
            return None  # a git that only looks is held to one repository, which others in the same text would inherit
        return None if READ_ONLY in used and _names_secrets_for_others(commands) else used

    @staticmethod
    def _reads_with_git(commands: Sequence[PlainCommand], found: Sequence[tuple[Rule, ...] | None]) -> bool:
        pairs = zip(commands, found, strict=True)
        return any(_runs_git((command,)) and READ_ONLY in (rules or ()) for command, rules in pairs)

    def _one(self, command: PlainCommand, depth: int) -> tuple[Rule, ...] | None:
        if (rule := self._by_rule(command)) is not None:
            return (rule,)
        # only a rule can cover these; the built-in list and wrappers never do
        if _opens(command) or depth >= DEEPEST or not all(map(is_harmless_setting, command.assignments)):
            return None
        # decision 8: a background command would outlive the limits of one that nobody was asked about
        harmless = not _dangers(command) or gives_words_to_readers(command.argv)
        if self.read_only and not command.background and harmless and (listed := self._listed(command)):
            free = listed is READ_ONLY_WITHOUT_SANDBOX
            return (READ_ONLY_WITH_VARIABLES if command.assignments and free else listed,)
        return self._behind(command, depth)

    def with_variables(self, commands: Sequence[PlainCommand]) -> Sequence[PlainCommand]:
        """Return commands with the variables that those before them set, but for what a rule allows to set any."""
        return with_variables(commands, lambda each: self._by_rule(each) is not None)

    def allows_by_itself(self, command: PlainCommand) -> bool:
        """True if a rule or the read-only list allows one of the commands."""
        return self._one(command, 0) is not None

    def _listed(self, command: PlainCommand) -> Rule | None:
        """Return the read-only list as the rule that allows a command, or None."""
        if only_exports(command):
            return READ_ONLY_WITH_VARIABLES
        # a program may open what a variable names
        if any(map(names_secret, command.assignments)):
            return None
        started = starter(command.argv)
        programs = (command.argv[0], *(given.argv[0] for given in (started.commands if started else ())))
        if fails_in_sandbox(command.argv) or not self.unsure.isdisjoint(programs):
            return None
        neutral = self.git_is_neutral and not (self.git_modules and reads_submodules(command.argv))
        argv = without_directory(command.argv) if self.git_stays else command.argv
        if not only_reads(argv, git_is_neutral=neutral, shows_names=self.shows_names):
            return None
        is_harmless = needs_no_sandbox(command.argv) and command.argv[0] not in self.elsewhere
        return READ_ONLY_WITHOUT_SANDBOX if is_harmless else READ_ONLY

    def _by_rule(self, command: PlainCommand) -> Rule | None:
        """Return the first rule that allows a command by its words."""
        opens, dangers = _opens(command), _dangers(command)
        if any(danger.id == "opaque" and danger.word >= len(command.argv) for danger in dangers):
            return None
        for rule in self.rules:
            if opens and not rule.redirections:
                continue
            if not covers(rule, command, dangers) or not _may_change(command, rule):
                continue
            # a rule of a project must not reach beyond that project (decision 10)
            if rule.directory is None or stays_inside(command.argv, rule.directory):
                return rule
        return None

    def _behind(self, command: PlainCommand, depth: int) -> tuple[Rule, ...] | None:
        """Return the rules that allow the commands inside a wrapper, if allow rules hold through it."""
        if command.argv[0] == "env":
            return self._with_variables(command, depth)
        inside = () if command.argv[0] in self.unsure else commands_inside(command, self.with_variables)
        found = [self._one(each, depth + 1) for each in inside]
        moves = not self.git_stays and _changes_directory_before_git(inside)
        if not found or moves or any(rules is None for rules in found):
            return None
        return tuple(rule for rules in found for rule in rules or ())

    def _with_variables(self, command: PlainCommand, depth: int) -> tuple[Rule, ...] | None:
        """Return the rules that allow the command of `env`: any for `env NAME=value …`, else the read-only list."""
        named = behind_env(command)
        if command.argv[0] not in self.unsure and named and (found := self._one(named, depth + 1)):
            return found
        words = command.argv[1:]
        # an unasked git is held to its repository by its environment
        keeps = _runs_git((command,))
        while words and (words[0] in _UNSETS or (words[0] in {"-i", "--ignore-environment"} and not keeps)):
            one = len(words) > 1 and words[0] in _UNSETS
            if one and keeps and not is_harmless_setting(words[1] + "="):
                return None
            words = words[2:] if one else words[1:]
        assignments = tuple(takewhile(ASSIGNMENT.match, words))
        argv = words[len(assignments) :]
        if command.argv[0] in self.unsure or not argv or argv[0].startswith("-"):
            return None
        given = (*command.assignments, *assignments)
        found = self._one(replace(command, argv=argv, assignments=given, redirections=()), depth + 1)
        return (READ_ONLY,) if found and all(rule.name == READ_ONLY.name for rule in found) else None


def commands_inside(
    command: PlainCommand, variables: Callable[[Sequence[PlainCommand]], Sequence[PlainCommand]] = with_variables
) -> Sequence[PlainCommand]:
    """Return the commands inside a wrapper through which allow rules hold. Empty: it is none, or not all are known.

    `variables`: adds to the commands of a text what those before them set.
    """
    inside = (each for group in _groups_inside(command) for each in variables(group))
    return tuple(replace(each, assignments=(*command.assignments, *each.assignments)) for each in inside)


@lru_cache(maxsize=256)
def _groups_inside(command: PlainCommand) -> tuple[tuple[PlainCommand, ...], ...]:
    """Return the commands inside a wrapper, those of each text together."""
    program = command.argv[0]
    if not (program in _SHELLS or entry_of(program).transparent):
        return ()
    if program in _SHELLS and (len(command.argv) != 3 or not _TAKES_TEXT.fullmatch(command.argv[1])):
        return ()  # every other option can name a file that a shell reads first
    if program in _SHELLS - _BASH and not _IN_EVERY_SHELL.fullmatch(command.argv[2]):
        return ()
    unwrapped = unwrap(command.argv, StandardInput(has_input=True))
    if unwrapped is None or unwrapped.opaque is not None:
        return ()
    groups: list[tuple[PlainCommand, ...]] = []
    for argv in unwrapped.commands:
        words = tuple(word for word in argv if word is not None)
        groups.append((PlainCommand(argv=words, start=command.start, end=command.end, background=command.background),))
    for text in unwrapped.texts:
        plain, _ = agreed(text, read_script(text))
        if plain is None:
            return ()
        groups.append(tuple(replace(each, background=each.background or command.background) for each in plain))
    return tuple(groups)


_UNSETS = frozenset({"-u", "--unset"})


def _may_change(command: PlainCommand, rule: Rule) -> bool:
    """True unless the command changes its shell and the rule does not name it with its arguments."""
    if command.argv[0] not in CHANGES_SHELL:
        return True
    return rule.anything or (rule.prefix is not None and len(rule.prefix) > 1)


def _opens(command: PlainCommand) -> bool:
    return any(redirection.opens_file for redirection in command.redirections)


def _dangers(command: PlainCommand) -> list[Danger]:
    return dangers_of_argv(command.argv, has_input=command.piped or bool(command.redirections))


def _names_secrets_for_others(commands: Sequence[PlainCommand]) -> bool:
    """True if `xargs` may hand on a name that a pattern such as `*.pem` stands for."""
    words = (re.sub(r"[*?]", "x", word) for command in commands for word in command.argv[1:])
    return any(program_name(command.argv[0]) == "xargs" for command in commands) and any(map(names_secret, words))


def _changes_directory_before_git(commands: Sequence[PlainCommand]) -> bool:
    """True if git runs after a `cd`: the settings of the repository there may run programs."""
    moves = any(command.argv[0] in {"cd", "pushd", "popd"} for command in commands)
    return moves and _runs_git(commands)


def _runs_git(commands: Sequence[PlainCommand]) -> bool:
    return any(word.rsplit("/", 1)[-1] == "git" for command in commands for word in command.argv)
