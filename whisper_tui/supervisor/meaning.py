"""What will really run: the words of each command expanded as far as that runs nothing."""

import fnmatch
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from whisper_tui.model.command import CommandSpec
from whisper_tui.model.masking import is_secret_name
from whisper_tui.model.verdict import Meaning, Redirect
from whisper_tui.policy.builtin_names import BUILTINS
from whisper_tui.policy.dangers.code import is_interpreter
from whisper_tui.policy.dangers.of_inner import ELSEWHERE
from whisper_tui.policy.inner import Inner
from whisper_tui.policy.reading.syntax import Piece, Redirection, Simple, Word
from whisper_tui.policy.view import View, view
from whisper_tui.policy.wrappers.peeled import Argv, program_name
from whisper_tui.supervisor.find_program import find_program

MOST_COMMANDS = 30
"""Commands that are explained for one call. Those with a risk are, however many there are."""

MOST_FILES = 100
"""File names that a pattern is expanded to. One that matches more stays as it is, with a count."""

MOST_ENTRIES = 5000
"""Directory entries that are looked at for one call."""

_ASSIGNING = frozenset({"read", "export", "declare", "typeset", "local", "readonly", "unset", "let", "mapfile"}) | {
    "readarray", "getopts", "coproc", "for", "select", "eval", "source", ".", "trap"
}  # fmt: skip
"""Commands that may set any variable of the text, so that none of them is known before."""

_ASSIGNS_INSIDE = re.compile(r"\$\{[A-Za-z_]\w*(?:\[[^]]*\])?:?=|\(\(|\[\[")
"""Where an expansion, arithmetic or a match sets a variable."""


_NUMBER = re.compile(r"(?:^|[\s;&|()])(\d+)$")


class _Text(NamedTuple):
    """What is known about a call as a whole while one of its commands is explained."""

    text: str
    assigned: frozenset[str]
    """Variables that it sets itself."""
    moves: bool
    """Whether it changes its working directory."""
    defined: frozenset[str]
    """Functions that it defines."""
    is_shell: bool


class Explainer:
    """Expands the words of one call with the variables and the files that it would meet."""

    def __init__(self, cwd: str, environment: Mapping[str, str], programs: Mapping[str, str | None]) -> None:
        """`programs`: those that are known already, by the word that names them."""
        self._cwd = cwd
        self._environment = environment
        self._programs = dict(programs)
        self._entries = 0

    def variables(self, seen: View) -> dict[str, str]:
        """The variables that the text uses, secrets left out. One that is not set is empty."""
        named = seen.scripts[0].variables if seen.scripts and not seen.is_argv else set()
        assigned = _assigned(seen)
        return {
            name: self._environment.get(name, "")
            for name in sorted(named)
            if name.isidentifier() and name not in assigned and not is_secret_name(name)
        }

    def meanings(self, seen: View) -> tuple[tuple[Meaning, ...], int]:
        """One for each command, wrappers before what they run; and how many harmless ones are left out."""
        simples = {} if seen.is_argv or not seen.scripts else _simples_by_span(seen)
        moves = any(command.name in {"cd", "pushd", "popd"} for command in seen.commands)
        text = _Text(seen.text, _assigned(seen), moves, _defined(seen), is_shell=not seen.is_argv)
        risks = _risks(seen)
        kept = _kept(seen.commands, risks)
        found = [
            self._meaning(command, simples.get(command.span), text, risks.get(id(command), ())) for command in kept
        ]
        return (*found, *self._of_groups(seen, text)), len(seen.commands) - len(kept)

    def _meaning(self, command: Inner, source: Simple | None, text: "_Text", risks: tuple[str, ...]) -> Meaning:
        words, notes = list(command.argv), list[str]()
        outermost = source is not None and not command.via
        if source is not None and outermost and None in words:
            words = self._expanded(source.words, text, notes)
        first = words[0] if words else None
        program, missing = self._started(first, command, text)
        return Meaning(
            words=tuple(words),
            assignments=self._assignments(command, source if outermost else None, text, notes),
            redirects=self._redirects(command.redirections, text, notes, written_in=text.text if outermost else ""),
            risks=risks,
            program=program,
            missing=missing,
            wraps=command.runs_others,
            through=command.via,
            expanded=tuple(notes),
            background=command.background,
            unknown=command.opaque,
        )

    def _started(self, first: str | None, command: Inner, text: "_Text") -> tuple[str | None, bool]:
        """The program of a command, and whether there is none of that name."""
        if not first or not ELSEWHERE.isdisjoint(command.via):
            return None, False
        if text.is_shell and first in BUILTINS and not command.via:
            return None, False
        program = self._program(first)
        elsewhere = "PATH" in text.assigned or (text.moves and "/" in first and not first.startswith("/"))
        return program, program is None and not elsewhere and first not in BUILTINS | text.defined

    def _assignments(
        self, command: Inner, source: Simple | None, text: "_Text", notes: list[str]
    ) -> dict[str, str | None]:
        if source is None:
            pairs = (assignment.partition("=") for assignment in command.assignments)
            return {name: value or None for name, _, value in pairs}
        found: dict[str, str | None] = {}
        for word in source.assignments:
            values = [self._piece(piece, text.assigned, notes) for piece in word.pieces]
            name, _, rest = (values[0] or "").partition("=")
            found[name] = None if None in values else rest + "".join(value or "" for value in values[1:])
        return found

    def _redirects(
        self, redirections: Sequence[Redirection], text: "_Text", notes: list[str], *, written_in: str
    ) -> tuple[Redirect, ...]:
        found = []
        for each in redirections:
            target, operator = each.target.value, each.operator
            if written_in:
                words = [target] if target is not None else self._word(each.target, text, notes)
                target = words[0] if len(words) == 1 else None
                operator = _descriptor(written_in, each) + operator
            found.append(Redirect(operator=operator, target=target, access=each.access))
        return tuple(found)

    def _of_groups(self, seen: View, text: "_Text") -> Iterator[Meaning]:
        """Redirections of loops, branches and groups: they belong to no command of their own."""
        own = {id(each) for script in seen.scripts for simple in script.commands for each in simple.redirections}
        for number, script in enumerate(seen.scripts):
            written_in = text.text if number == 0 and text.is_shell else ""
            for each in script.redirections:
                if id(each) not in own:
                    notes: list[str] = []
                    redirects = self._redirects((each,), text, notes, written_in=written_in)
                    yield Meaning(words=(), redirects=redirects, expanded=tuple(notes))

    def every_word(self, seen: View) -> Iterator[tuple[Argv, tuple[str, ...]]]:
        """The words of each command in every text, and the files that it writes by redirection, as far as known."""
        if seen.is_argv:
            yield from ((command.argv, ()) for command in seen.commands if not command.via)
        text = _Text(seen.text, _assigned(seen), moves=False, defined=frozenset(), is_shell=True)
        for script in seen.scripts:
            for simple in script.commands:
                words = tuple(self._expanded(simple.words, text, []))
                yield words, (*self._code(words, simple.redirections),)
            targets = [self._word(each.target, text, []) for each in script.redirections if each.access == "write"]
            yield (), tuple(word for words in targets for word in words if word is not None)

    def read_files(self, seen: View) -> list[str]:
        """The files that commands get as their input, as far as they are known."""
        text = _Text(seen.text, _assigned(seen), moves=False, defined=frozenset(), is_shell=True)
        found = [each for script in seen.scripts for each in script.redirections if each.access == "read"]
        return [word for each in found for word in self._word(each.target, text, []) if word is not None]

    @staticmethod
    def _code(words: Argv, redirections: Sequence[Redirection]) -> Iterator[str]:
        """Words of the code that an interpreter is given by a here-document."""
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

    def _word(self, word: Word, text: "_Text", notes: list[str]) -> list[str | None]:
        parts: list[tuple[str, bool]] = []
        for piece in word.pieces:
            value = self._piece(piece, text.assigned, notes)
            if value is None:
                return [None]
            parts.append((value, piece.kind == "glob"))
        if not any(is_pattern for _, is_pattern in parts):
            value = "".join(part for part, _ in parts)
            bare = all(piece.kind == "variable" and not piece.quoted for piece in word.pieces)
            return [] if bare and not value else [value]
        if text.moves:
            return [None]
        return self._files("".join(part if is_pattern else _literal(part) for part, is_pattern in parts), notes)

    def _piece(self, piece: Piece, assigned: frozenset[str], notes: list[str]) -> str | None:
        """The value of a part of a word. None: only known when it runs."""
        match piece.kind:
            case "text" | "glob":
                return piece.text
            case "tilde" if piece.text == "~" or piece.text.startswith("~/"):
                home = self._environment.get("HOME")
                return None if not home else home + piece.text[1:]
            case "variable" if piece.text.isidentifier() and piece.text not in assigned:
                value = self._environment.get(piece.text, "")
                if is_secret_name(piece.text) or (not piece.quoted and any(each in value for each in " \t\n*?[\\")):
                    return None
                notes.append(f"${piece.text}: {value or 'empty'}")
                return value
            case _:
                return None

    def _files(self, pattern: str, notes: list[str]) -> list[str | None]:
        found = sorted(self._matching(pattern))
        if self._entries > MOST_ENTRIES:
            notes.append(f"{pattern}: too many files to count")
            return [None]
        notes.append(f"{pattern}: {len(found)} {'file' if len(found) == 1 else 'files'}")
        if not found:
            return [pattern]
        return list(found) if len(found) <= MOST_FILES else [None]

    def _matching(self, pattern: str) -> Iterator[str]:
        absolute = pattern.startswith("/")
        parts = [part for part in pattern.split("/") if part]
        yield from self._below("/" if absolute else "", parts)

    def _below(self, prefix: str, parts: list[str]) -> Iterator[str]:
        if not parts:
            yield prefix.rstrip("/")
            return
        part, rest = parts[0], parts[1:]
        if not any(character in part for character in "*?["):
            path = prefix + part
            if os.path.lexists(os.path.join(self._cwd, path)):  # noqa: PTH118
                yield from self._below(path + "/" if rest else path, rest)
            return
        try:
            entries = os.scandir(os.path.join(self._cwd, prefix or "."))  # noqa: PTH118
        except OSError:
            return
        with entries:
            for entry in entries:
                self._entries += 1
                if self._entries > MOST_ENTRIES:
                    return
                hidden = entry.name.startswith(".") and not part.startswith(".")
                if not hidden and fnmatch.fnmatchcase(entry.name, part):
                    yield from self._below(prefix + entry.name + ("/" if rest else ""), rest)


def _literal(text: str) -> str:
    """Text in which no character is a pattern."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in text)


def _assigned(seen: View) -> frozenset[str]:
    """Variables that the text itself sets, so that their value is not known before."""
    names = {assignment.partition("=")[0] for command in seen.commands for assignment in command.assignments}
    sets = any(_may_set(command) for command in seen.commands) or _ASSIGNS_INSIDE.search(seen.text) is not None
    sets = sets or any(script.evaluations for script in seen.scripts[:1])
    loops = {name for script in seen.scripts[:1] for name in script.loop_variables}
    return frozenset(names | loops | (seen.scripts[0].variables if sets and seen.scripts else set()))


def _may_set(command: Inner) -> bool:
    if command.name in {"printf", "wait"}:
        return any(word is None or word.startswith(("-v", "-p")) for word in command.argv[1:])
    return command.name in _ASSIGNING


def _defined(seen: View) -> frozenset[str]:
    return frozenset(name for script in seen.scripts for name in script.functions)


def _simples_by_span(seen: View) -> dict[tuple[int, int], Simple]:
    return {simple.span: simple for simple in seen.scripts[0].commands}


def _risks(seen: View) -> dict[int, tuple[str, ...]]:
    """The ids of the risks of each command, by its identity: two may consist of the same words."""
    found: dict[int, dict[str, None]] = {}
    for command, danger in seen.dangers:
        found.setdefault(id(command), {})[danger.id] = None
    return {key: tuple(ids) for key, ids in found.items()}


def _kept(commands: tuple[Inner, ...], risks: Mapping[int, tuple[str, ...]]) -> list[Inner]:
    """All commands with a risk, and as many of the first of the others as there is room for."""
    room = MOST_COMMANDS - sum(1 for command in commands if id(command) in risks)
    kept = []
    for command in commands:
        risky = id(command) in risks
        if risky or room > 0:
            kept.append(command)
            room -= 0 if risky else 1
    return kept


def _descriptor(text: str, redirection: Redirection) -> str:
    """The number that stands before the operator of a redirection, where one does."""
    before = text[: redirection.target.start].rstrip(" \t\\\n").removesuffix(redirection.operator)
    number = _NUMBER.search(before) if len(before) < redirection.target.start else None
    return number.group(1) if number else ""


def explain(
    spec: CommandSpec, cwd: str, environment: Mapping[str, str], programs: Mapping[str, str | None]
) -> tuple[dict[str, str], tuple[Meaning, ...], int]:
    """The variables that a command uses, what its commands mean here, and how many harmless ones are left out.

    `programs`: those that are known already, by the word that names them.
    """
    seen = view(spec.command)
    explainer = Explainer(cwd, {**environment, **spec.environment}, programs)
    return explainer.variables(seen), *explainer.meanings(seen)
