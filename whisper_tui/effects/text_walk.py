"""The commands of a call in their order, each with its words expanded and the directory that it would run in.

The walk follows `cd`, assignments, subshells and pipes as far as they are certain. A value or a directory that is only
known when the command runs is None, never a guess.
"""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from whisper_tui.model.call import Argv, Command, Shell
from whisper_tui.model.secrets import is_secret_name
from whisper_tui.policy.commands.argv import program_name
from whisper_tui.policy.commands.unwrap import DEEPEST, unwrap
from whisper_tui.policy.commands.wrapper_directories import runs_elsewhere
from whisper_tui.policy.commands.wrappers import (
    BUILTINS,
    SET_BY_THE_SHELL,
    SETS_INSIDE,
    StandardInput,
    changes_what_runs,
    may_set_variables,
    sets_variables,
)
from whisper_tui.policy.shell.bash_grammar import mark_patterns
from whisper_tui.policy.shell.bash_reader import parts_of, read_script
from whisper_tui.policy.shell.static_expansion import without_braces
from whisper_tui.policy.shell.strict_reader import NotPlain
from whisper_tui.policy.shell.syntax import (
    LOOPS,
    Block,
    Compound,
    Redirection,
    SimpleCommand,
    Word,
    WordPiece,
    access_of,
    compounds,
    input_of_command,
)
from whisper_tui.policy.shell.word_expansion import expanded, is_split, value_of

MOST_STEPS = 300
"""Commands of one call that are looked at."""

LONGEST_TEXT = 2_000_000
"""Characters of a text that is read: a here-document may hold a large file."""

MOST_NAMES = 1_000
"""File names that a pattern is expanded to, and directory entries that are looked at for it, times ten."""

_SUBSHELLS = frozenset({"(", "coproc"})
_TESTS = frozenset({"[[", "(("})
_OPENS = LOOPS | {"if", "case", "{", "function"}
_OWN_DIRECTORY = re.compile(
    r'\bcd "(?:\$\(dirname (?:-- )?"\$(?:0|BASH_SOURCE|\{BASH_SOURCE(?:\[0\])?\})"\)|\$\{0%/\*\})"(?=\s|;|&|\)|$)'
)
"""The usual way in which a script changes to the directory of its own file."""
_HOME_BEHIND_SIGN = re.compile(r"[A-Za-z_]\w*\+?=(?:.*:)?~", re.DOTALL)
"""The beginning of a word in which bash expands `~` as in an assignment; other shells leave it."""
_MOVING = frozenset({"cd", "pushd", "popd"})
"""Builtins that change the directory."""
_MAY_MOVE = frozenset((name,) for name in (*_MOVING, "source", ".", "eval"))
"""The names of those that may do so."""
_OWN_DESCRIPTORS = frozenset({"0", "1", "2", "-"})
"""Targets of `>&` that are open in any case."""
_SHELLS = frozenset({"bash", "sh", "dash", "ksh", "mksh", "ash", "zsh"})


class OpenedFile(NamedTuple):
    """A redirection with its target expanded."""

    operator: str
    descriptor: str
    """As written; empty: the operator's own. `{NAME}` is one that bash chooses."""
    target: str | None
    access: str
    body: str | None
    """The text of a here-document or here-string."""


@dataclass(frozen=True)
class Step:
    """One command as it would run."""

    words: tuple[str | None, ...]
    """Empty: redirections of a group, or assignments alone."""
    directory: str | None
    """None: it depends on a `cd` that may or may not happen."""
    environment: Mapping[str, str | None]
    redirections: tuple[OpenedFile, ...] = ()
    through: tuple[str, ...] = ()
    """The wrappers around it, outermost first."""
    wraps: bool = False
    """True if it only runs the steps that follow it."""
    opaque: str | None = None
    """Why it is not known what it runs."""
    source: "Step | None" = None
    """The step whose output it reads through a pipe, if that is certain."""
    piped: bool = False
    is_function: bool = False
    """True if it calls a function of the text, the commands of which are steps of their own."""
    is_bash: bool = False
    """True if bash runs it, of which `echo` leaves backslashes alone."""
    secrets: tuple[str, ...] = ()
    """Names of the variables with secrets that its words contain."""
    by_runner: bool = False
    """True if it is a program of the project or of a package, which a wrapper like `npx` finds."""
    assigned: tuple[tuple[str, str | None], ...] = ()
    """The variables that it sets, for itself or for its shell, and their values. None: only known when it runs."""
    unconditional: bool = True
    """False if it is in a branch, a loop or a function, behind `&&` or `||`, or behind an `exit` that may happen."""
    unsure: bool = False
    """True if commands of its text may set any variable."""
    unexported: frozenset[str] = frozenset()
    """Variables of its shell that the programs do not get which it starts."""
    again: bool = False
    """True if it is in a loop or a function and was a step before, when the files were as they are at the start."""

    @property
    def name(self) -> str | None:
        """Its program without the directory. None: only known when it runs."""
        return program_name(self.words[0]) if self.words and self.words[0] is not None else None

    @property
    def text(self) -> str:
        """Its words for a person."""
        return " ".join("…" if word is None else shlex.quote(word) for word in self.words)


class Disk(Protocol):
    """The files, as far as a walk has to look at them."""

    def directory(self, path: str) -> str | None:
        """Where a path leads if there is a directory at that point of the text that can be entered, or None."""
        ...

    def matching(self, directory: str, pattern: str, most: int) -> list[str] | None:
        """The names that match a pattern of the shell at that point. None: too many, or unreadable."""
        ...


@dataclass
class _Shell:
    """The state of one shell while its text is walked through."""

    disk: Disk
    is_bash: bool
    directory: str | None
    variables: dict[str, str | None]
    through: tuple[str, ...]
    functions: frozenset[str] = frozenset()
    unsure: bool = False
    """True if commands of the text may set any variable."""
    uncertain: frozenset[str] = frozenset()
    """Variables that a loop, a branch or a substitution of the text sets."""
    may_have_more: bool = False
    """True if it may have variables that are not in `variables`."""
    unexported: frozenset[str] = frozenset()
    subshells: int = 0
    """Subshells around the place."""
    depth: int = 0
    """Loops and branches around the place."""
    before: str = ";"
    """The operator in front of the place. Empty: a command is."""
    source: Step | None = None
    """The command in front of the place, if a pipe may follow it."""
    begins_group: bool = False
    """True if the next command is the first of a compound command."""
    nested_moved: bool = False
    has_ended: bool = False
    may_have_ended: bool = False
    """True behind an `exit` or `return` that may or may not happen."""
    moved_from: tuple[str | None, ...] = ()
    """The directories before each `cd` behind `&&`, which may not happen."""
    assigned_in_chain: set[str] = field(default_factory=set)
    """Variables that commands behind `&&` set."""

    def pass_operator(self, operator: str) -> None:
        """Pass an operator, and forget what holds only if all commands of a chain of `&&` succeed."""
        self.before = operator
        if operator == "&&":
            return
        if any(each != self.directory for each in self.moved_from):
            self.directory = None
        self.variables.update(dict.fromkeys(self.assigned_in_chain))
        self.moved_from = ()
        self.assigned_in_chain.clear()

    def expand(self, word: Word) -> list[str | None]:
        """The words that a word becomes. None: only known when it runs."""
        if _names_home_inside(word):
            return [None]
        return self._braces(word) if any(piece.kind == "brace" for piece in word.pieces) else expanded(word, self)

    def joined(self, word: Word) -> str | None:
        """The value of an assignment, of which bash splits nothing."""
        values = [value_of(piece, self) for piece in word.pieces]
        return None if None in values or _names_home_inside(word) else "".join(value or "" for value in values)

    def _braces(self, word: Word) -> list[str | None]:
        parts = parts_of(word)
        if parts is None or not self.is_bash:
            return [None]  # some shells expand them, and some do not
        try:
            alternatives = list(without_braces(parts))
        except NotPlain:
            return [None]
        found: list[str | None] = []
        for each in alternatives:
            pieces = mark_patterns([WordPiece("text", text, kind == "quoted") for kind, text in each])
            found += expanded(word._replace(pieces=tuple(pieces)), self)
        return found

    def home(self, sign: str) -> str | None:
        if sign == "~":
            return None if self.unsure or "HOME" in self.uncertain else self.variables.get("HOME")
        return self.directory if sign == "~+" and self.is_bash else None

    def variable(self, piece: WordPiece) -> str | None:
        if self.unsure or piece.text in self.uncertain or is_secret_name(piece.text):
            return None
        if piece.text == "PWD":
            return self.directory
        if SET_BY_THE_SHELL.fullmatch(piece.text):
            return None
        value = self.variables.get(piece.text, None if self.may_have_more else "")
        return None if value is None or (not piece.quoted and is_split(value)) else value

    def files(self, pattern: str) -> list[str] | None:
        if self.directory is None and not pattern.startswith("/"):
            return None
        found = self.disk.matching(self.directory or "/", pattern, MOST_NAMES)
        return None if found is None else sorted(found)


class TextWalk:
    """Walks through the commands of one call."""

    def __init__(self, disk: Disk, environment: Mapping[str, str], *, repeats: bool = False) -> None:
        """`repeats`: what may run more than once is walked through a second time."""
        self._disk = disk
        self._repeats = repeats
        self._environment: dict[str, str | None] = dict(environment)
        self._count = 0
        self._is_bash = False
        self.parts: list[tuple[int, int]] = []
        """The beginning and the end of each command between the operators of the text, in characters."""
        self.part = 0
        """The one among them whose steps come now."""
        self._tree: Block = []
        self.problems: list[str] = []
        """Why a part of the call was not read, one clause each."""

    def steps(self, command: Command, directory: str) -> Iterator[Step]:
        """All commands; whoever takes them one by one can tell the disk what each has changed."""
        if isinstance(command, Argv):
            yield from self._run(Step(command.words(), directory, self._environment), 0)
        elif isinstance(command, Shell):
            name = program_name(command.shell)
            if name not in _SHELLS:
                self.problems.append(f"the syntax of {name} is not supported")
                return
            self._is_bash = name == "bash"
            yield from self._script(command.text, directory, dict(self._environment), (), 0)
        else:
            self.problems.append("it is a tool that the agent runs itself")

    def steps_of_script(self, text: str, step: Step, directory: str, *, is_bash: bool) -> Iterator[Step]:
        """The commands of a script that a command runs; `directory`: that of its file, if the script can tell it."""
        self._is_bash = is_bash
        if directory:
            text = _OWN_DIRECTORY.sub(lambda _: f"cd {shlex.quote(directory)}", text)
        by_shell = dict.fromkeys(("BASH_SOURCE", "OLDPWD", "RANDOM", "SECONDS", "LINENO"))
        step = replace(step, environment={**step.environment, **by_shell})
        yield from self._script(text, step.directory, _variables_inside(step), (), 0, may_have_more=step.unsure)

    def _script(
        self,
        text: str,
        directory: str | None,
        variables: dict[str, str | None],
        through: tuple[str, ...],
        depth: int,
        *,
        may_have_more: bool = False,
    ) -> Iterator[Step]:
        if len(text) > LONGEST_TEXT:
            self.problems.append(f"a text of {len(text):,} characters is too long to be parsed")
            return
        script = read_script(text)
        if not through and not depth:
            self._tree, self.parts, self.part = script.tree, _parts_of(script.tree), 0
        if script.problem:
            self.problems.append(f"the text cannot be parsed to its end: {script.problem}")
        shell = _Shell(self._disk, self._is_bash, directory, variables, through, frozenset(script.functions))
        shell.may_have_more = may_have_more
        assigning = any(may_set_variables(each.argv) or each.argv[:1] == (None,) for each in script.commands)
        shell.unsure = assigning or bool(script.evaluations or script.functions) or SETS_INSIDE.search(text) is not None
        if script.evaluations and "$" in text:
            self.problems.append("it evaluates a value as code")
        for name in script.loop_variables:
            if changes_what_runs(name):
                self.problems.append(f"a loop sets {name}, which can change what runs")
        shell.uncertain = frozenset((*script.loop_variables, *_assigned_inside(script.tree)))
        # A loop comes to its first command again, and a function is called anywhere: neither directory is certain.
        moves = [each for each in script.commands if _changes_directory(each)]
        has_loop = any(each.kind in LOOPS for each in compounds(script.tree))
        if moves and (has_loop or script.functions):
            shell.directory = None
        shell.nested_moved = any(each.nested for each in moves) and has_loop
        yield from self._block(shell, script.tree, depth)
        if self._count > MOST_STEPS:
            self.problems.append(f"it contains more than {MOST_STEPS} commands")
        if self._repeats:
            problems = len(self.problems)
            shell.pass_operator(";")
            shell.has_ended = False
            again = (self._parts(shell, loop, depth) for loop in _outermost_loops(script.tree))
            for steps in (self._block(shell, script.tree, depth),) if script.functions else again:
                yield from (replace(step, again=True) for step in steps)
            del self.problems[problems:]

    def _block(self, shell: _Shell, block: Block, depth: int) -> Iterator[Step]:
        for at, node in enumerate(block):
            if self._count > MOST_STEPS:
                return
            if isinstance(node, str):
                self.part += block is self._tree
                shell.pass_operator(node)
            elif isinstance(node, Compound):
                yield from self._compound(shell, node, depth)
            elif node.nested:
                yield from self._nested(shell, node, depth)
            else:
                behind = [each for each in block[at + 1 :] if isinstance(each, str)]
                yield from self._simple(shell, node, behind, depth)
                if shell.has_ended:
                    return

    def _compound(self, shell: _Shell, compound: Compound, depth: int) -> Iterator[Step]:
        # The files of a group, a loop or a branch are opened before it begins.
        yield from self._opened_by_group(shell, compound)
        if compound.kind == "$(":
            for part in compound.parts:
                yield from self._substituted(shell, part, depth)
        else:
            yield from self._parts(shell, compound, depth)

    def _parts(self, shell: _Shell, compound: Compound, depth: int) -> Iterator[Step]:
        begins, outside, depths = compound.kind not in _TESTS, shell.directory, shell.depth
        shell.begins_group = shell.begins_group or begins
        shell.source = None
        shell.depth += compound.kind in _OPENS
        shell.subshells += compound.kind in _SUBSHELLS
        for part in compound.parts:
            yield from self._block(shell, part, depth)
            if compound.kind == "case":
                shell.pass_operator(";")
        shell.source = None
        shell.depth = depths
        if compound.kind in _SUBSHELLS:
            shell.subshells -= 1
            shell.directory = outside

    def _simple(self, shell: _Shell, command: SimpleCommand, behind: Sequence[str], depth: int) -> Iterator[Step]:
        """A command, the operators behind which may put it into a shell of its own."""
        before, piped = shell.before, shell.before in {"|", "|&"}
        made = self._step(shell, command, shell.source if piped else None, piped=piped)
        made = replace(made, unconditional=made.unconditional and before not in {"&&", "||"})
        yield from self._run(made, depth)
        # Of `a | (b; c)`, b reads the pipe, but what it changes in its shell lasts until c.
        alone = (piped and not shell.begins_group) or behind[:1] in (["|"], ["|&"], ["&"])
        in_background = next((each == "&" for each in behind if each in {";", "&"}), False)
        certain = shell.depth == 0 and before != "||" and not in_background
        kept = shell.directory
        self._moved(shell, made, alone=alone, certain=certain)
        if before == "&&" and shell.directory != kept:
            shell.moved_from = (*shell.moved_from, kept)
        named = self._assigned(shell, command, made, alone=alone, certain=certain and not shell.subshells)
        if before == "&&":
            shell.assigned_in_chain |= named
        # Nothing behind an `exit` runs that stands at the top of its text.
        ends = made.name in {"exit", "return"} or (made.name == "exec" and len(made.words) > 1)
        at_top = certain and not alone and before in {";", "&"} and not shell.subshells
        shell.has_ended = ends and at_top and _certainly_ends(made)
        shell.may_have_ended = shell.may_have_ended or (ends and not shell.has_ended)
        shell.before, shell.source, shell.begins_group = "", made, False

    def _substituted(self, shell: _Shell, block: Block, depth: int) -> Iterator[Step]:
        """The commands of a substitution, of which only the directory is followed."""
        for node in block:
            if isinstance(node, SimpleCommand):
                yield from self._nested(shell, node, depth)
            elif isinstance(node, Compound):
                yield from self._opened_by_group(shell, node)
                for part in node.parts:
                    yield from self._substituted(shell, part, depth)

    def _nested(self, shell: _Shell, command: SimpleCommand, depth: int) -> Iterator[Step]:
        made = self._step(shell, command, None, piped=command.piped)
        if shell.nested_moved:
            made = replace(made, directory=None)
        yield from self._run(made, depth)
        shell.nested_moved = shell.nested_moved or _without_builtin(made.words)[:1] in _MAY_MOVE

    def _opened_by_group(self, shell: _Shell, compound: Compound) -> Iterator[Step]:
        certain = shell.depth == 0 and not shell.may_have_ended
        for each in compound.redirections:
            opened = self._opened(shell, (each,))
            self._count += 1
            yield Step((), shell.directory, shell.variables, opened, shell.through, piped=True, unconditional=certain)

    def _step(self, shell: _Shell, command: SimpleCommand, source: Step | None, *, piped: bool) -> Step:
        words = tuple(each for word in command.words for each in shell.expand(word))
        named = (piece.text for word in command.words for piece in word.pieces if piece.kind == "variable")
        environment = {**shell.variables, **dict.fromkeys(shell.uncertain)}
        assigned: dict[str, str | None] = {}
        for word in command.assignments:
            name, _, value = (shell.joined(word) or "").partition("=")
            assigned[_name_of(word)] = value if name else None
        environment.update(assigned)
        return Step(
            words,
            shell.directory,
            environment,
            self._opened(shell, command.redirections),
            shell.through,
            source=source,
            piped=piped,
            is_function=bool(words) and words[0] in shell.functions,
            is_bash=shell.is_bash,
            secrets=tuple(filter(is_secret_name, named)),
            assigned=(*assigned.items(), *_set_by_words(words)),
            unconditional=shell.depth == 0 and not shell.may_have_ended,
            unsure=shell.unsure or shell.may_have_more,
            unexported=shell.unexported - assigned.keys(),
        )

    def _opened(self, shell: _Shell, redirections: Sequence[Redirection]) -> tuple[OpenedFile, ...]:
        found = []
        for each in redirections:
            if each.operator in {"<<", "<<-"}:
                found.append(OpenedFile(each.operator, each.descriptor, "", each.access, each.body))
                continue
            words = shell.expand(each.target)
            target = words[0] if len(words) == 1 else None
            body = target + "\n" if each.operator == "<<<" and target is not None else None
            access = each.access if target is None else access_of(each.operator, target)
            found.append(OpenedFile(each.operator, each.descriptor, target, access, body))
        return tuple(found)

    def _run(self, step: Step, depth: int) -> Iterator[Step]:
        """A command, and those that it runs in turn."""
        self._count += 1
        if self._count > MOST_STEPS:
            return
        read = input_of_command(step.redirections)
        known = read.body if read is not None else None
        given = StandardInput(text=known, has_input=step.piped or bool(step.redirections))
        unwrapped = unwrap(step.words, given) if depth < DEEPEST else None
        if unwrapped is None:
            yield step if depth < DEEPEST else replace(step, opaque="it wraps commands in commands too deeply")
            return
        runs = bool(unwrapped.commands or unwrapped.texts)
        name = step.name or ""
        opaque = unwrapped.opaque
        if name == "builtin" and any(program_name(argv[0] or "") not in BUILTINS for argv in unwrapped.commands):
            opaque = opaque or "builtin runs nothing but builtins of the shell"
        yield replace(step, wraps=runs and not unwrapped.has_own_effect, opaque=opaque)
        directory = None if runs_elsewhere(step.words) else step.directory
        through = (*step.through, name)
        assigned = dict(_pairs(unwrapped.assignments))
        environment = {**step.environment, **assigned}
        unexported = step.unexported - assigned.keys()
        input_alone = (read,) if read is not None and read.body is not None else ()
        source = step.source if read is None else None
        for argv in unwrapped.commands:
            inner = Step(
                argv, directory, environment, input_alone, through, source=source, piped=step.piped,
                by_runner=unwrapped.runner is not None, unconditional=step.unconditional,
                assigned=(*assigned.items(), *_set_by_words(argv)), unsure=step.unsure, unexported=unexported,
            )  # fmt: skip
            yield from self._run(inner, depth + 1)
        outer, self._is_bash = self._is_bash, name == "bash" or (name in {"eval", "trap"} and self._is_bash)
        inside = {**_variables_inside(replace(step, environment=environment, unexported=unexported)), **assigned}
        for text in unwrapped.texts:
            for each in self._script(text, directory, dict(inside), through, depth + 1, may_have_more=step.unsure):
                yield each if step.unconditional else replace(each, unconditional=False)
        self._is_bash = outer

    def _moved(self, shell: _Shell, step: Step, *, alone: bool, certain: bool) -> None:
        """Follow a `cd`."""
        words = _without_builtin(step.words)
        if alone or words[:1] not in _MAY_MOVE:
            return
        name = words[0]
        if name not in _MOVING:
            shell.directory = None
            return
        operands = [word for word in words[1:] if word not in {"-L", "-P", "--"}]
        target = operands[0] if operands else step.environment.get("HOME")
        reached = None
        is_plain = len(operands) <= 1 and not (target or "").startswith("-") and (bool(operands) or name == "cd")
        certain = certain and not _may_not_be_opened(step)
        if is_plain and certain and name != "popd" and target and shell.directory is not None:
            reached = os.path.join(shell.directory, target or "")
        shell.directory = reached if reached is not None and self._can_enter(reached) else None

    def _can_enter(self, path: str) -> bool:
        """True if a `cd` certainly leads to a path. Otherwise it may leave the shell where it is, without CDPATH.

        Behind a link, `..` is the directory of the link, or with `-P` that of its target.
        """
        parts = path.split("/")
        above = ["/".join(parts[:at]) or "/" for at, part in enumerate(parts) if part == ".."]
        leads = self._disk.directory(path)
        alike = leads is not None and leads == self._disk.directory(os.path.normpath(path))
        return alike and all(self._disk.directory(each) is not None for each in above)

    def _assigned(self, shell: _Shell, command: SimpleCommand, step: Step, *, alone: bool, certain: bool) -> set[str]:
        """Remember the variables that a command leaves in its shell, and return their names."""
        may_fail = _may_not_be_opened(step)
        certain = certain and not may_fail
        pairs: list[tuple[str, str | None]] = []
        if not step.words:
            pairs = [(_name_of(word), shell.joined(word)) for word in command.assignments]
        elif step.name in {"export", "readonly"}:
            pairs = [(word.partition("=")[0], word) for word in step.words[1:] if word is not None and "=" in word]
        if step.name == "export" and any(word is None or word.startswith("-") for word in step.words[1:]):
            shell.unexported |= {(word or "").partition("=")[0] for word in step.words[1:]}
        elif step.name == "export" and not may_fail:
            shell.unexported -= {name for name, _ in pairs}
        else:
            shell.unexported |= {name for name, _ in pairs} - shell.variables.keys()
        for name, whole in pairs:
            if alone:
                continue
            value = whole.partition("=")[2] if whole is not None and "+=" not in whole.partition("=")[0] + "=" else None
            shell.variables[name] = value if certain else None
        return set() if alone else {name for name, _ in pairs}


def _certainly_ends(step: Step) -> bool:
    """True if nothing keeps `exit` or `exec` from ending its shell.

    bash goes on where it has a function of that name, where a redirection fails, and behind `exit --help`.
    """
    is_help = step.name == "exit" and (None in step.words or "--help" in step.words)
    return step.name != "return" and not (step.is_function or is_help or _may_not_be_opened(step))


def _may_not_be_opened(step: Step) -> bool:
    """True if a redirection of a command may fail, so that its shell does not run it."""
    return not all(
        each.access == "null"
        or each.operator.startswith("<<")
        or (each.operator in {">&", "<&"} and each.target in _OWN_DESCRIPTORS)
        for each in step.redirections
    )


def _variables_inside(step: Step) -> dict[str, str | None]:
    """The variables of a text that a command runs. None: only known when it runs."""
    if step.unsure:
        return {**dict.fromkeys(step.environment), **dict(step.assigned)}
    is_same_shell = step.name in {"eval", "trap", "source", "."}
    return {**step.environment, **({} if is_same_shell else dict.fromkeys(step.unexported))}


def _pairs(assignments: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    for assignment in assignments:
        name, _, value = assignment.partition("=")
        yield name, value


def _set_by_words(words: Sequence[str | None]) -> Iterator[tuple[str, str | None]]:
    """The variables that the words of a builtin may set, such as `export NAME=value` and `read NAME`."""
    if not sets_variables(words):
        return
    for word in words[1:]:
        name, equals, value = (word or "").partition("=")
        if name.isidentifier():
            yield name, value if equals else None


def _parts_of(tree: Block) -> list[tuple[int, int]]:
    """The beginning and the end of each command between the operators of a text. Empty ones are (0, 0)."""
    parts: list[Block] = [[]]
    for node in tree:
        if isinstance(node, str):
            parts.append([])
        else:
            parts[-1].append(node)
    found = ([each.span for each in _simple_commands(part) if each.span[1]] for part in parts)
    return [(min(each[0] for each in spans), max(each[1] for each in spans)) if spans else (0, 0) for spans in found]


def _simple_commands(block: Block) -> Iterator[SimpleCommand]:
    for node in block:
        if isinstance(node, SimpleCommand):
            yield node
        elif isinstance(node, Compound):
            for part in node.parts:
                yield from _simple_commands(part)


def _outermost_loops(block: Block) -> Iterator[Compound]:
    for node in block:
        if isinstance(node, Compound) and node.kind in LOOPS:
            yield node
        elif isinstance(node, Compound):
            yield from (loop for part in node.parts for loop in _outermost_loops(part))


def _changes_directory(command: SimpleCommand) -> bool:
    words = _without_builtin(command.argv)
    return bool(words) and (words[0] is None or words[0] in _MOVING)


def _without_builtin(words: tuple[str | None, ...]) -> tuple[str | None, ...]:
    """The words behind `builtin` and `command`, with which the shell's own command is meant."""
    while words[:1] in {("builtin",), ("command",)}:
        words = words[1:]
        while words[:1] in {("-p",), ("--",)}:
            words = words[1:]
    return words


def _assigned_inside(block: Block, *, inside: bool = False) -> Iterator[str]:
    """The variables that a branch, a loop or a substitution sets."""
    for node in block:
        if isinstance(node, Compound):
            for part in node.parts:
                yield from _assigned_inside(part, inside=inside or node.kind in _OPENS or node.kind == "$(")
        elif isinstance(node, SimpleCommand) and inside:
            yield from map(_name_of, node.assignments)
            if (node.argv[:1] or ("",))[0] in {"export", "readonly"}:
                yield from ((word or "").partition("=")[0] for word in node.argv[1:])


def _names_home_inside(word: Word) -> bool:
    text = "".join(piece.text for piece in word.pieces if piece.kind == "text" and not piece.quoted)
    return "~" in text and _HOME_BEHIND_SIGN.match(text) is not None


def _name_of(word: Word) -> str:
    return re.split(r"[+\[=]", word.pieces[0].text, maxsplit=1)[0] if word.pieces else ""
