"""The options and operands of programs, wherever they stand among the words, and what is done with them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from whisper_tui.effects.changes import Changes
from whisper_tui.effects.file_view import Found
from whisper_tui.effects.text_walk import Step


class ParsedWords:
    """The options and operands of a GNU program, in any order."""

    def __init__(
        self, words: Sequence[str | None], valued: str = "", long: Iterable[str] = (), attached: str = ""
    ) -> None:
        """`valued`: letters that take a value; `attached`: letters that take only an attached one."""
        self.options: list[tuple[str, str | None]] = []
        self.operands: list[str | None] = []
        self._long = tuple(long)
        at, ended = 1, False
        while at < len(words):
            word = words[at]
            at += 1
            if ended or word is None or not word.startswith("-") or word == "-":
                self.operands.append(word)
            elif word == "--":
                ended = True
            elif word.startswith("--"):
                at += self._long_option(word, words[at : at + 1])
            else:
                at += self._letters(word, valued, attached, words[at : at + 1])

    def _long_option(self, word: str, following: Sequence[str | None]) -> int:
        name, equals, value = word[2:].partition("=")
        full = next((each for each in self._long if each == name), None) or next(
            (each for each in self._long if len(name) > 2 and each.startswith(name)), None
        )
        if equals or full is None or not following:
            self.options.append((full or name, value if equals else ""))
            return 0
        self.options.append((full, following[0]))
        return 1

    def _letters(self, word: str, valued: str, attached: str, following: Sequence[str | None]) -> int:
        for at, letter in enumerate(word[1:], start=1):
            if letter in attached:
                self.options.append((letter, word[at + 1 :]))
                return 0
            if letter in valued:
                rest = word[at + 1 :]
                self.options.append((letter, rest or (following[0] if following else "")))
                return 0 if rest else min(1, len(following))
            self.options.append((letter, ""))
        return 0

    def has(self, *names: str) -> bool:
        """True if one of these options is given; long ones also by a beginning of at least three letters."""
        return any(
            given in names or (len(given) > 2 and any(name.startswith(given) for name in names))
            for given, _ in self.options
        )

    def value(self, *names: str) -> str | None:
        """The last value of one of these options. None: it is not given, or only known when it runs."""
        return next((value for given, value in reversed(self.options) if given in names), None)

    def all(self, *names: str) -> list[str | None]:
        """All values of these options."""
        return [value for given, value in self.options if given in names]


Handler = Callable[[Step, ParsedWords, Changes], None]


class Program(NamedTuple):
    """A program of which the changes can be stated: how, and its options with values."""

    handler: Handler
    valued: str = ""
    """Letters of short options with a value, attached or in the next word."""
    long: str = ""
    """Long options with a value, separated by blanks."""
    attached: str = ""
    """Letters of short options of which only an attached value counts."""


def find_targets(
    step: Step, operands: Iterable[str | None], changes: Changes, *, follow: bool = True
) -> Iterator[Found]:
    """Look at each operand; one that is not known is recorded as that."""
    for operand in operands:
        found = changes.find(step, operand, follow=follow)
        if found is not None:
            yield found
