"""The variables that a text sets for its commands, by `NAME=value`, `export` or `env`, as allow rules name them."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from whisper_tui.model.secrets import is_secret_name, masked_words
from whisper_tui.policy.commands.wrappers import may_set_variables
from whisper_tui.policy.shell.static_expansion import is_harmless_setting, only_changes_looks
from whisper_tui.policy.shell.strict_reader import PlainCommand
from whisper_tui.policy.shell.syntax import DECLARING, ONLY_MARKS

ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
"""The beginning of a word that sets a variable, before a command or in a rule."""
_KEEPS = frozenset(": . break continue eval exec exit export readonly return set shift times trap unset".split())
"""Builtins of which a shell in POSIX mode, as `sh` is, keeps the variables before them."""
_SHORT_VALUE = re.compile(r"[\w./:@%+,-]{0,40}")


def rest_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words behind the variables with which they begin."""
    return tuple(words[len(tuple(takewhile(ASSIGNMENT.match, words))) :])


def to_be_named(assignments: Iterable[str]) -> tuple[str, ...]:
    """Return the variables that a rule has to name, each as it was set last: not those that only change looks."""
    last = {each.partition("=")[0]: each for each in assignments}
    return tuple(each for each in last.values() if not ("=" in each and only_changes_looks(each)))


def may_be_offered(assignment: str) -> bool:
    """True if a rule that names this variable with its value tells a person what it allows, and no secret."""
    name, sign, value = assignment.partition("=")
    is_short = bool(sign) and _SHORT_VALUE.fullmatch(value) is not None
    is_secret = is_secret_name(name) or masked_words((assignment,)) != (assignment,)
    return is_short and not is_secret and is_harmless_setting(assignment)


def only_exports(command: PlainCommand) -> bool:
    """True if a command only sets variables that no reader is known to obey."""
    words = [word for word in command.argv[1:] if not ONLY_MARKS.fullmatch(word)]
    # without a value, the text has to have set the variable before
    known = {each.partition("=")[0] for each in command.assignments}
    certain = all("=" in word or word in known for word in words)
    return command.argv[0] in DECLARING and bool(words) and certain and all(map(_is_harmless_export, words))


def _is_harmless_export(word: str) -> bool:
    name = word.partition("=")[0]
    return name.isidentifier() and name.isascii() and is_harmless_setting(word)


def behind_env(command: PlainCommand) -> PlainCommand | None:
    """Return the command of `env NAME=value … COMMAND` with these variables. None: `env` does something else."""
    if command.argv[0] != "env":
        return None
    argv = rest_of(command.argv[1:])
    if not argv or argv[0].startswith("-"):
        return None
    assignments = command.argv[1 : len(command.argv) - len(argv)]
    return replace(command, argv=argv, assignments=(*command.assignments, *assignments), redirections=())


def with_variables(
    commands: Sequence[PlainCommand], is_approved: Callable[[PlainCommand], bool] = lambda _: False
) -> tuple[PlainCommand, ...]:
    """Return the commands of a text with the variables that those before them have set.

    A variable that may be set or not is a name without a value, which no rule names. `is_approved`: returns True for a
    command that a rule allows whatever it sets.
    """
    held = _Held(has_background=any(command.background for command in commands))
    found = []
    for at, command in enumerate(commands):
        held.goes_on(command.after)
        given = (*held.all(), *held.given(command))
        found.append(command if given == command.assignments else replace(command, assignments=given))
        held.keep(command)
        if command.argv[0] not in DECLARING:
            held.run(command)
        elif not is_approved(command):
            is_piped = command.piped or (at + 1 < len(commands) and commands[at + 1].piped)
            held.declare(command, in_shell=not is_piped)
    return tuple(found)


def _name(assignment: str) -> str:
    return assignment.partition("=")[0].removesuffix("+")


class _Held:
    """The variables that hold at a point of a text."""

    def __init__(self, *, has_background: bool) -> None:
        self._exported: dict[str, str] = {}
        """By name: the assignment, or the name alone if it is not certain."""
        self._of_shell: dict[str, str] = {}
        """Those that no `export` has marked."""
        self._fixed: set[str] = set()
        """Those that may have become read-only."""
        self._has_background = has_background
        self._is_sure = self._is_in_chain = False
        self._of_chain: set[str] = set()
        """Those that were set behind `&&`: they hold for what follows behind a further one."""

    def all(self) -> Iterator[str]:
        """Yield those of the next command."""
        yield from self._exported.values()
        # one that is not marked is in the environment only if it was there before
        yield from (each if only_changes_looks(each) else name for name, each in self._of_shell.items())

    def given(self, command: PlainCommand) -> Iterator[str]:
        """Yield the variables before a command; bash does not set one that is read-only, and runs the command."""
        for each in command.assignments:
            yield _name(each) if _name(each) in self._fixed else each

    def goes_on(self, operator: str) -> None:
        """Come to a command behind an operator."""
        if operator in {"|", "|&"}:
            return
        if operator == "&&":
            self._is_in_chain, self._is_sure = self._is_in_chain or self._is_sure, False
            return
        for name in self._of_chain:
            self._doubt(name)
        self._of_chain.clear()
        self._is_sure, self._is_in_chain = operator != "||" and not self._has_background, False

    def keep(self, command: PlainCommand) -> None:
        """Take the variables before a command for set if it may leave them to those behind it."""
        for each in command.assignments if command.argv[0] in _KEEPS else ():
            self._set(each, marks=False, is_certain=False)

    def run(self, command: PlainCommand) -> None:
        """Come past a command that may set any variable."""
        if may_set_variables(command.argv):
            for name in (*self._exported, *self._of_shell):
                self._doubt(name)

    def declare(self, command: PlainCommand, *, in_shell: bool) -> None:
        """Set the variables of a command that names them."""
        words = command.argv[1:]
        plainly = not (command.assignments or command.redirections) and (command.sets or command.argv[0] == "export")
        is_certain = plainly and in_shell and not any(word.startswith("-") for word in words)
        for word in words:
            if not word.startswith("-"):
                self._set(word, marks=not command.sets, is_certain=is_certain)
        if not plainly:
            self._fixed.update(map(_name, words))

    def _set(self, word: str, *, marks: bool, is_certain: bool) -> None:
        name, sign, _ = word.partition("=")
        # `export NAME` marks what the text has set
        value = word if sign else self._of_shell.pop(name, self._exported.get(name, name))
        marks = marks or name in self._exported
        (self._exported if marks else self._of_shell)[name] = value
        if marks and sign:
            self._of_shell.pop(name, None)
        if not is_certain or name in self._fixed or not (self._is_sure or self._is_in_chain):
            self._doubt(name)
        elif self._is_in_chain:
            self._of_chain.add(name)
        else:
            self._of_chain.discard(name)

    def _doubt(self, name: str) -> None:
        for held in (self._exported, self._of_shell):
            # what only changes looks does no harm if it is set, nor if it is not
            if name in held and not only_changes_looks(held[name]):
                held[name] = name
