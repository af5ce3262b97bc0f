"""Expansion of commands: looks programs up and expands words, without running anything."""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from whisper_tui.model.call import CommandSpec
from whisper_tui.model.secrets import is_secret_name
from whisper_tui.model.text import is_sendable
from whisper_tui.model.verdict import Meaning, Redirect
from whisper_tui.policy.commands.argv import Argv, program_name
from whisper_tui.policy.commands.unwrap import InnerCommand
from whisper_tui.policy.commands.wrappers import BUILTINS, SETS_INSIDE, sets_variables
from whisper_tui.policy.risks.code_execution import is_interpreter
from whisper_tui.policy.shell.static_expansion import Pattern
from whisper_tui.policy.shell.strict_reader import NotPlain
from whisper_tui.policy.shell.syntax import Redirection, SimpleCommand, Word, WordPiece, access_of, compounds
from whisper_tui.policy.shell.word_expansion import expanded, is_split, paths_matching, value_of
from whisper_tui.policy.view import LONGEST_READ, CommandView, all_commands, view
from whisper_tui.programs.entries import entry_of
from whisper_tui.system import host_files


def find_program(word: str, cwd: str, path: str) -> str | None:
    """Return the file that a command word names: a path if it has a slash, else the first match in PATH."""
    if not word or "\0" in word:
        return None
    if "/" in word:
        named = os.path.join(cwd, word)  # noqa: PTH118
        return _tidy(named) if host_files.exists(named) else None
    for directory in path.split(os.pathsep):
        # An empty entry of PATH means the working directory.
        candidate = os.path.join(cwd, directory or ".", word)  # noqa: PTH118
        if host_files.is_executable(candidate) and not host_files.is_directory(candidate):
            return _tidy(candidate)
    return None


def _tidy(path: str) -> str:
    """Return a path without `.` parts."""
    # `..` behind a symbolic link leads elsewhere than the text says, so such a path stays as it is.
    return path if ".." in path.split("/") else os.path.normpath(path)


MOST_COMMANDS = 30
"""Limit of harmless commands that are explained for one call; commands with a risk are never left out."""

MOST_FILES = 100
"""Limit of file names that a pattern is expanded to. A pattern that matches more stays, with a count."""

MOST_ENTRIES = 5000
"""Limit of directory entries that are read for one call."""


class _Text(NamedTuple):
    """Facts about the whole text while one of its commands is expanded."""

    assigned: frozenset[str]
    """Variables that the text sets."""
    moves: bool
    """True if the text changes its working directory."""
    defined: frozenset[str]
    """Functions that the text defines."""
    is_shell: bool


class Expander:
    """Expands the words of one call with its environment and the files on the disk."""

    def __init__(self, cwd: str, environment: Mapping[str, str], programs: Mapping[str, str | None]) -> None:
        """`programs`: paths of programs that were looked up already, by their word in the command."""
        self._cwd = cwd
        self._environment = environment
        self._programs = dict(programs)
        self._entries = 0

    def variables(self, seen: CommandView) -> dict[str, str]:
        """Return the values of the variables that the text uses, without secrets. An unset variable is empty."""
        named = seen.scripts[0].variables if seen.scripts and not seen.is_argv else set()
        assigned = _assigned(seen)
        return {
            name: self._environment.get(name, "")
            for name in sorted(named)
            if name.isidentifier() and name not in assigned and not is_secret_name(name)
        }

    def meanings(self, seen: CommandView) -> tuple[tuple[Meaning, ...], int]:
        """Return the meaning of each command, wrappers first, and the number of harmless commands left out."""
        simples = {} if seen.is_argv or not seen.scripts else {each.span: each for each in seen.scripts[0].commands}
        moves = any(command.name in {"cd", "pushd", "popd"} for command in seen.commands)
        defined = frozenset(name for script in seen.scripts for name in script.functions)
        text = _Text(_assigned(seen), moves, defined, is_shell=not seen.is_argv)
        risks = _risks(seen)
        kept = _kept(seen.commands, risks)
        found = [
            self._meaning(command, simples.get(command.span), text, risks.get(id(command), ())) for command in kept
        ]
        return (*found, *self._of_groups(seen, text)), len(seen.commands) - len(kept)

    def _meaning(
        self, command: InnerCommand, source: SimpleCommand | None, text: "_Text", risks: tuple[str, ...]
    ) -> Meaning:
        words, notes = list(command.argv), list[str]()
        outermost = source is not None and not command.via
        if source is not None and outermost and None in words:
            words = self._expanded(source.words, text, notes)
        first = words[0] if words else None
        program, missing = self._started(first, command, text)
        return Meaning(
            words=tuple(words),
            assignments=self._assignments(command, source if outermost else None, text, notes),
            redirects=self._redirects(command.redirections, text, notes, is_written=outermost),
            risks=risks,
            program=program,
            missing=missing,
            wraps=command.runs_others,
            through=command.via,
            expanded=tuple(notes),
            background=command.background,
            unknown=command.opaque,
        )

    def _started(self, first: str | None, command: InnerCommand, text: "_Text") -> tuple[str | None, bool]:
        """Return the program of a command, and True if no program has that name."""
        # In a container or on another host, a path of this machine would be wrong.
        if not first or any(entry_of(each).place for each in command.via):
            return None, False
        if text.is_shell and first in BUILTINS and not command.via:
            return None, False
        program = self._program(first)
        elsewhere = "PATH" in text.assigned or (text.moves and "/" in first and not first.startswith("/"))
        return program, program is None and not elsewhere and first not in BUILTINS | text.defined

    def _assignments(
        self, command: InnerCommand, source: SimpleCommand | None, text: "_Text", notes: list[str]
    ) -> dict[str, str | None]:
        if source is None:
            pairs = (assignment.partition("=") for assignment in command.assignments)
            return {name: value or None for name, _, value in pairs}
        found: dict[str, str | None] = {}
        for word in source.assignments:
            values = [value_of(piece, _Values(self, text, notes)) for piece in word.pieces]
            name, _, rest = (values[0] or "").partition("=")
            found[name] = None if None in values else rest + "".join(value or "" for value in values[1:])
        return found

    def _redirects(
        self, redirections: Sequence[Redirection], text: "_Text", notes: list[str], *, is_written: bool
    ) -> tuple[Redirect, ...]:
        found = []
        for each in redirections:
            target, operator = each.target.value, each.operator
            if is_written:
                words = [target] if target is not None else self._word(each.target, text, notes)
                target = words[0] if len(words) == 1 else None
                operator = (each.descriptor if each.descriptor.isdecimal() else "") + operator
            access = each.access if target is None else access_of(each.operator, target)
            found.append(Redirect(operator=operator, target=target, access=access))
        return tuple(found)

    def _of_groups(self, seen: CommandView, text: "_Text") -> Iterator[Meaning]:
        """Yield the redirections of loops, branches and groups, which no single command has."""
        for number, script in enumerate(seen.scripts):
            for each in (each for group in compounds(script.tree) for each in group.redirections):
                notes: list[str] = []
                redirects = self._redirects((each,), text, notes, is_written=number == 0 and text.is_shell)
                yield Meaning(words=(), redirects=redirects, expanded=tuple(notes))

    def every_word(self, seen: CommandView) -> Iterator[tuple[Argv, tuple[str, ...]]]:
        """Yield the words of each command, and the files that it writes by redirection, as far as known."""
        if seen.is_argv:
            yield from ((command.argv, ()) for command in seen.commands if not command.via)
        text = _Text(_assigned(seen), moves=False, defined=frozenset(), is_shell=True)
        for script in seen.scripts:
            for simple in script.commands:
                words = tuple(self._with_homes(simple.words, text))
                yield words, (*self._code(words, simple.redirections),)
            written = [each.target for each in script.redirections if each.access == "write"]
            yield (), tuple(word for word in self._with_homes(written, text) if word is not None)

    def read_files(self, seen: CommandView) -> list[str]:
        """Return the files that are redirected to the input of commands, as far as known."""
        text = _Text(_assigned(seen), moves=False, defined=frozenset(), is_shell=True)
        found = [each for script in seen.scripts for each in script.redirections if each.access == "read"]
        return [word for each in found for word in self._word(each.target, text, []) if word is not None]

    @staticmethod
    def _code(words: Argv, redirections: Sequence[Redirection]) -> Iterator[str]:
        """Yield the words of code that a here-document passes to an interpreter."""
        if words and words[0] is not None and is_interpreter(program_name(words[0])):
            for each in redirections:
                yield from re.split(r"[\s'\"`;|&<>()=,]+", each.body or "")

    def _program(self, word: str) -> str | None:
        if word not in self._programs:
            self._programs[word] = find_program(word, self._cwd, self._environment.get("PATH", os.defpath))
        return self._programs[word]

    def _expanded(self, source: Sequence[Word], text: "_Text", notes: list[str]) -> list[str | None]:
        words: list[str | None] = []
        for word in source:
            words += self._word(word, text, notes)
        return words

    def _with_homes(self, source: Iterable[Word], text: "_Text") -> Iterator[str | None]:
        """Yield the words; one that begins with the home of a user, or with `~+`, as it is written."""
        for word in source:
            words = self._word(word, text, [])
            if words == [None] and word.pieces[0].kind == "tilde":
                text_of_word = "".join(piece.text for piece in word.pieces)
                words = [None if any(piece.kind != "text" for piece in word.pieces[1:]) else text_of_word]
            yield from words

    def _word(self, word: Word, text: "_Text", notes: list[str]) -> list[str | None]:
        return expanded(word, _Values(self, text, notes))

    def value(self, name: str) -> str:
        """Return the value of a variable in the environment."""
        return self._environment.get(name, "")

    def matching(self, pattern: str) -> list[str] | None:
        """Return the files that match a pattern. None: there are too many directory entries to look at."""

        def exists(path: str) -> bool:
            return host_files.lexists(os.path.join(self._cwd, path))  # noqa: PTH118

        found = sorted(paths_matching(pattern, self._names, exists))
        return found if self._entries <= MOST_ENTRIES else None

    def _names(self, prefix: str) -> Iterator[str]:
        try:
            names = host_files.names(os.path.join(self._cwd, prefix or "."), MOST_ENTRIES + 1)  # noqa: PTH118
        except OSError:
            return
        for name in names:
            self._entries += 1
            if self._entries > MOST_ENTRIES:
                return
            yield name


class _Values:
    """The values of words where a command stands, and notes about those that a person does not see in the text."""

    def __init__(self, expander: Expander, text: _Text, notes: list[str]) -> None:
        self._expander = expander
        self._text = text
        self._notes = notes

    def home(self, sign: str) -> str | None:
        return self._expander.value("HOME") if sign == "~" else None

    def variable(self, piece: WordPiece) -> str | None:
        if piece.text in self._text.assigned or is_secret_name(piece.text):
            return None
        value = self._expander.value(piece.text)
        if not piece.quoted and is_split(value):
            return None
        self._notes.append(f"${piece.text}: {value or 'empty'}")
        return value

    def files(self, pattern: str) -> list[str] | None:
        # After a `cd` the pattern would match in another directory.
        if self._text.moves:
            return None
        found = self._expander.matching(pattern)
        if found is None:
            self._notes.append(f"{pattern}: too many files to count")
            return None
        self._notes.append(f"{pattern}: {len(found)} {'file' if len(found) == 1 else 'files'}")
        # Neither the journal nor a client can be told such a name.
        return found if len(found) <= MOST_FILES and all(map(is_sendable, found)) else None


def _assigned(seen: CommandView) -> frozenset[str]:
    """Return the variables that the text may set, so that the environment does not tell their value."""
    names = {assignment.partition("=")[0] for command in seen.commands for assignment in command.assignments}
    sets = any(sets_variables(each.argv) for each in seen.commands) or SETS_INSIDE.search(seen.text) is not None
    sets = sets or any(script.evaluations for script in seen.scripts[:1])
    loops = {name for script in seen.scripts[:1] for name in script.loop_variables}
    return frozenset(names | loops | (seen.scripts[0].variables if sets and seen.scripts else set()))


def _risks(seen: CommandView) -> dict[int, tuple[str, ...]]:
    """Return the ids of the risks of each command."""
    # By identity: two commands may consist of the same words and have different risks.
    found: dict[int, dict[str, None]] = {}
    for command, danger in seen.dangers:
        if danger.sentence:
            found.setdefault(id(command), {})[danger.id] = None
    return {key: tuple(ids) for key, ids in found.items()}


def _kept(commands: tuple[InnerCommand, ...], risks: Mapping[int, tuple[str, ...]]) -> list[InnerCommand]:
    """Return all commands with a risk, and the first harmless ones up to the limit."""
    room = MOST_COMMANDS - sum(1 for command in commands if id(command) in risks)
    kept = []
    for command in commands:
        risky = id(command) in risks
        if risky or room > 0:
            kept.append(command)
            room -= 0 if risky else 1
    return kept


def expand_command(
    spec: CommandSpec, cwd: str, environment: Mapping[str, str], programs: Mapping[str, str | None]
) -> tuple[dict[str, str], tuple[Meaning, ...], int]:
    """Return the variables of a command, the meanings of its commands, and the number of harmless ones left out.

    `programs`: paths of programs that were looked up already, by their word in the command.
    """
    seen = view(spec.command)
    explainer = Expander(cwd, {**environment, **spec.environment}, programs)
    return explainer.variables(seen), *explainer.meanings(seen)


MOST_NAMES = 200
"""Limit of file names that the patterns of a text may stand for. Such a text is kept with each judgement."""


class PossibleFiles:
    """Looks up the files that patterns may stand for: all that bash would find in any locale, and perhaps more."""

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._found = 0
        self._entries = 0

    def of(self, pattern: Pattern) -> list[str]:
        """Return the names in their order. Raises `NotPlain` if there are too many."""
        parts: list[list[tuple[str, bool]]] = [[]]
        for text, is_sign in pattern:
            first, *others = [text] if is_sign else text.split("/")
            parts[-1].append((first, is_sign))
            parts += [[(other, False)] for other in others]
        found = sorted(self._below("", parts))
        self._found += len(found)
        if self._found > MOST_NAMES:
            raise NotPlain(f"its patterns match more than {MOST_NAMES} files")
        return found

    def _below(self, prefix: str, parts: list[list[tuple[str, bool]]]) -> Iterator[str]:
        """Yield the names that begin with `prefix`, which ends with a slash or is empty."""
        part, rest = parts[0], parts[1:]
        for name in self._names(prefix, part):
            path = prefix + name
            if rest:
                yield from self._below(path + "/", rest)
            elif host_files.lexists(os.path.join(self._cwd, path)):  # noqa: PTH118
                yield path

    def _names(self, prefix: str, part: list[tuple[str, bool]]) -> Iterator[str]:
        if not any(is_sign for _, is_sign in part):
            yield "".join(text for text, _ in part)
            return
        # In some locales a set has more members than it shows.
        expression = "".join((".*" if text == "*" else ".") if is_sign else re.escape(text) for text, is_sign in part)
        matches = re.compile(expression, re.DOTALL).fullmatch
        # In others, `?` is one byte of a character.
        of_bytes = re.compile(os.fsencode(expression), re.DOTALL).fullmatch
        hidden = expression.startswith(r"\.")
        # Before bash 5.2, `.*` also matched these two.
        yield from (name for name in (".", "..") if hidden and matches(name))
        try:
            names = host_files.names(os.path.join(self._cwd, prefix or "."), MOST_ENTRIES + 1)  # noqa: PTH118
        except (OSError, ValueError):
            return
        for name in names:
            self._entries += 1
            if self._entries > MOST_ENTRIES:
                raise NotPlain(f"its patterns select from more than {MOST_ENTRIES:,} files")
            matched = matches(name) or of_bytes(os.fsencode(name))
            if matched and (hidden or not name.startswith(".")):
                yield name


def literal_text(seen: CommandView, cwd: str) -> str | None:
    """Return the commands of a text with expansions in literal words (decision 29). None: it is not certain."""
    if not seen.steps:
        return None
    files = PossibleFiles(cwd)
    try:
        commands = all_commands(seen, host_files.home_of_user(), files.of)
    except NotPlain:
        return None
    text = "; ".join(shlex.join(word.text for word in command) for command in commands)
    return text if len(text) <= LONGEST_READ and is_sendable(text) else None
