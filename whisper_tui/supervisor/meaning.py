"""What will really run: the words of each command expanded as far as that runs nothing."""

import fnmatch
import os
import re
from collections.abc import Iterator, Mapping, Sequence

from whisper_tui.model.command import CommandSpec
from whisper_tui.model.masking import is_secret_name
from whisper_tui.model.verdict import Meaning
from whisper_tui.policy.builtin_names import BUILTINS
from whisper_tui.policy.inner import Inner
from whisper_tui.policy.reading.syntax import Piece, Word
from whisper_tui.policy.view import View, view
from whisper_tui.supervisor.find_program import find_program

MOST_COMMANDS = 30
"""Commands that are explained for one call."""

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

    def meanings(self, seen: View) -> tuple[Meaning, ...]:
        """One for each command, wrappers before what they run."""
        words = {} if seen.is_argv or not seen.scripts else _words_by_span(seen)
        moves = any(command.name in {"cd", "pushd", "popd"} for command in seen.commands)
        assigned = _assigned(seen)
        return tuple(
            self._meaning(command, words.get(command.span), assigned, moves, in_shell=not seen.is_argv)
            for command in seen.commands[:MOST_COMMANDS]
            if command.argv
        )

    def _meaning(
        self, command: Inner, source: Sequence[Word] | None, assigned: frozenset[str], moves: bool, *, in_shell: bool
    ) -> Meaning:
        words, notes = list(command.argv), list[str]()
        if source is not None and not command.via and None in words:
            words = self._expanded(source, assigned, moves, notes)
        first = words[0] if words else None  # `$FOO` alone with nothing in it: bash runs nothing at all
        program = None
        if first is not None and not (in_shell and first in BUILTINS and not command.via):
            program = self._program(first)
        return Meaning(
            words=tuple(words),
            program=program,
            through=command.via,
            expanded=tuple(notes),
            background=command.background,
            unknown=command.opaque,
        )

    def _program(self, word: str) -> str | None:
        if word not in self._programs:
            self._programs[word] = find_program(word, self._cwd, self._environment.get("PATH", os.defpath))
        return self._programs[word]

    def _expanded(
        self, source: Sequence[Word], assigned: frozenset[str], moves: bool, notes: list[str]
    ) -> list[str | None]:
        words: list[str | None] = []
        for word in source:
            words += self._word(word, assigned, moves, notes)
        return words

    def _word(self, word: Word, assigned: frozenset[str], moves: bool, notes: list[str]) -> list[str | None]:
        parts: list[tuple[str, bool]] = []
        for piece in word.pieces:
            value = self._piece(piece, assigned, notes)
            if value is None:
                return [None]
            parts.append((value, piece.kind == "glob"))
        if not any(is_pattern for _, is_pattern in parts):
            value = "".join(text for text, _ in parts)
            bare = all(piece.kind == "variable" and not piece.quoted for piece in word.pieces)
            return [] if bare and not value else [value]
        if moves:
            return [None]
        return self._files("".join(text if is_pattern else _literal(text) for text, is_pattern in parts), notes)

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


def _words_by_span(seen: View) -> dict[tuple[int, int], Sequence[Word]]:
    return {simple.span: simple.words for simple in seen.scripts[0].commands if simple.words}


def explain(
    spec: CommandSpec, cwd: str, environment: Mapping[str, str], programs: Mapping[str, str | None]
) -> tuple[dict[str, str], tuple[Meaning, ...]]:
    """The variables that a command uses, and what each of its commands means here.

    `programs`: those that are known already, by the word that names them.
    """
    seen = view(spec.command)
    explainer = Explainer(cwd, {**environment, **spec.environment}, programs)
    return explainer.variables(seen), explainer.meanings(seen)
