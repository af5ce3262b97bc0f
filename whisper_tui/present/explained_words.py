"""A command in plain words: its program, its subcommand and each of its options, by the table of programs."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, takewhile
from typing import NamedTuple

from whisper_tui.model.call import Command, Shell
from whisper_tui.model.text import visible
from whisper_tui.model.verdict import Meaning, Resolved
from whisper_tui.present.quantities import count
from whisper_tui.present.spans import BLANK, Paragraph, Span, said
from whisper_tui.programs.entries import UNKNOWN, Option, ProgramEntry, ValueForm, entry_of

NOT_DESCRIBED = "not described"
MOST_EXPLAINED = 200
"""The most words of one call that are explained."""
LONGEST_VALUE = 60
"""Characters of an option with its value that are shown."""
_UNKNOWN = "⟨known only when it runs⟩"


class Explanation(NamedTuple):
    """A few words of a command, and their meaning."""

    words: str
    meaning: str | None
    """None: not described."""
    is_program: bool = False
    """True for a program or its subcommand, and False for its options."""


class _Reader:
    """Reads the words of one command from left to right."""

    def __init__(self, name: str, program: ProgramEntry, words: Sequence[str | None]) -> None:
        self._path = [name]
        self._program = program
        self._shared: dict[str, Option] = {}
        """Options of the programs above a subcommand that may stand behind it."""
        self._words = words
        self._at = 1
        self._unsure = False
        """True behind an option that is not described: it may have a value, or not."""

    def explain(self) -> Iterator[Explanation]:
        yield Explanation(self._path[0], self._program.about, is_program=True)
        if self._program.bundle and self._at < len(self._words):
            yield from self._bundled(self._words[self._at] or "")
        while self._at < len(self._words):
            word = self._words[self._at]
            if word == "--":
                return
            self._at += 1
            if word is None:
                self._unsure = True
                yield Explanation(_UNKNOWN, None)
            elif word.startswith("-") and word != "-":
                yield from self._option(word)
            elif (operand := self._option_of(word.partition("=")[0])) is not None and "=" in word:
                yield Explanation(word, operand.meaning or None)
            elif self._program.commands or self._program.options_first:
                yield from self._first_operand(word)

    def _first_operand(self, word: str) -> Iterator[Explanation]:
        """Explain a subcommand; behind the first operand of other programs the words belong to something else."""
        if self._unsure:
            words = " ".join((word, *(each or _UNKNOWN for each in self._words[self._at :])))
            yield Explanation(words, None)
        elif self._program.commands:
            self._path.append(word)
            path, command = " ".join(self._path), self._program.commands.get(word)
            yield Explanation(path, command.about if command else None, is_program=True)
            if command is not None:
                self._shared |= self._program.options if self._program.anywhere else {}
                self._program = command
                return
        self._at = len(self._words)

    def _option(self, word: str) -> Iterator[Explanation]:
        name, equals, attached = word.partition("=")
        if self._program.single_dash and name.startswith("--"):
            name = name[1:]
        option = self._option_of(name)
        if option is None and word[1:].isdecimal():
            option = self._option_of("-NUMBER")
        is_short = not word.startswith("--") and len(word) > 2
        if option is None and is_short and not self._program.single_dash:
            yield from self._letters(word[1:], "-")
        elif option is None or (equals and option.value == "none") or (equals and len(name) == 2):
            yield from self._not_described(word, may_take_next=not equals)
        else:
            yield self._with_value(name, option, attached if equals else None)

    def _letters(self, letters: str, dash: str) -> Iterator[Explanation]:
        """Explain short options in one word."""
        for position, letter in enumerate(letters):
            name, rest = f"{dash}{letter}", letters[position + 1 :]
            option = self._option_of(name)
            if option is None:
                yield from self._not_described(f"{dash}{letters[position:]}", may_take_next=True)
                return
            if option.value != "none":
                yield self._with_value(name, option, rest or None, between="")
                return
            yield Explanation(name, option.meaning or None)

    def _bundled(self, word: str) -> Iterator[Explanation]:
        """Explain the first word of `tar xzf` and `ps aux`, whose letters have no dash; values follow in order."""
        dash = "-" if self._program.bundle == "dashed" else ""
        options = [self._option_of(f"{dash}{letter}") for letter in word]
        if word.startswith("-") or not word:
            return
        self._at += 1
        for letter, option in zip(word, options, strict=True):
            if option is None:
                self._unsure = True
                yield Explanation(letter, None)
            else:
                yield self._with_value(letter, option, None)

    def _with_value(self, name: str, option: Option, attached: str | None, between: str = "=") -> Explanation:
        if attached is not None:
            shown = f"{name}{between}{attached}"
        else:
            values = self._values(option.value)
            shown = " ".join((name, *(_UNKNOWN if value is None else value for value in values)))
        if option.value == "rest":
            self._at = len(self._words)
        return Explanation(shown, option.meaning or None)

    def _values(self, form: ValueForm) -> list[str | None]:
        """Return the words of the value that follows, and step over them."""
        rest = self._words[self._at :]
        taken: list[str | None] = []
        if form == "command":
            taken = list(takewhile(lambda word: word not in {";", "+"}, rest))
            self._at += min(len(rest), len(taken) + 1)
            return taken
        if form in {"needed", "rest", "last"} or (form == "number" and rest and (rest[0] or "").isdecimal()):
            taken = list(rest[:1])
        self._at += len(taken)
        return taken

    def _not_described(self, words: str, *, may_take_next: bool) -> Iterator[Explanation]:
        self._unsure = self._unsure or may_take_next
        yield Explanation(words, None)

    def _option_of(self, name: str) -> Option | None:
        return self._program.options.get(name) or self._shared.get(name)


_INSTALLED = re.compile(r"(?:/.*)?/s?bin/[^/]+")


@lru_cache(maxsize=512)
def explain_words(words: tuple[str | None, ...]) -> tuple[Explanation, ...]:
    """Return the meaning of the program, the subcommand and the options of one command, in their order."""
    first = words[0] if words else None
    if first is None:
        return ()
    # A script beside the project may have any name: only what is named as an installed program is taken for it
    # (decision 30).
    name = first.rsplit("/", 1)[-1] if _INSTALLED.fullmatch(first) else first
    program = entry_of(name)
    if program is UNKNOWN:
        return (Explanation(first, None, is_program=True),)
    return tuple(_Reader(first, program, words).explain())


def explain_command(command: Command, resolved: Resolved) -> tuple[Explanation, ...]:
    """Return the meaning of all programs and options of a call, in the order in which they are read."""
    text = command.text if isinstance(command, Shell) else ""
    return tuple(chain.from_iterable(_of_meaning(meaning, text) for meaning in resolved.commands))


def _of_meaning(meaning: Meaning, text: str) -> tuple[Explanation, ...]:
    name = meaning.words[0] if meaning.words else None
    if name is not None and _may_redefine(text, name):
        return (Explanation(name, None, is_program=True),)
    return explain_words(meaning.words)


def _may_redefine(text: str, name: str) -> bool:
    """True if a text seems to define a function or an alias of this name, which then runs in place of the program."""
    word = re.escape(name)
    defines = rf"(?<![\w./-])(?:{word}\s*\(\s*\)|(?:function|alias)\s+(?:-\S+\s+)*{word}(?![\w./-]))"
    return name in text and re.search(defines, text) is not None


def explained_rows(explanations: Sequence[Explanation]) -> list[tuple[str, str, bool]]:
    """Return the words, their meaning and True for a program, a row each, ready for a screen."""
    rows = []
    for words, meaning, is_program in explanations[:MOST_EXPLAINED]:
        shown = visible(words)
        cut = shown if len(shown) <= LONGEST_VALUE else f"{shown[: LONGEST_VALUE - 1]}…"
        rows.append((cut, meaning or NOT_DESCRIBED, is_program))
    if len(explanations) > MOST_EXPLAINED:
        rows.append((f"… {count(len(explanations) - MOST_EXPLAINED, 'more word')}", NOT_DESCRIBED, False))
    return rows


def explained_paragraphs(command: Command, resolved: Resolved | None) -> tuple[Paragraph, ...]:
    """Return a section with a line for each program and option; empty if nothing of the command is known."""
    rows = explained_rows(explain_command(command, resolved)) if resolved is not None else []
    if not rows:
        return ()
    found = [BLANK, Paragraph((Span("In plain words", "label"),), margin=(Span(" "),))]
    for words, meaning, is_program in rows:
        name = said(words, "strong" if is_program else "command")
        text = Span(f"  {meaning}", "muted" if meaning == NOT_DESCRIBED else "text")
        margin: tuple[Span, ...] = (Span(" │ ", "frame"), *(() if is_program else (Span("  "),)))
        found.append(Paragraph((*name, text), margin=margin))
    return tuple(found)
