"""One dangerous part of a command, and the words in which options are looked for."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

Words = Sequence[str | None]


class Danger(NamedTuple):
    """A part that must be named by a rule before the rule covers it."""

    id: str
    sentence: str
    word: int
    """Index of the word that makes it dangerous."""


def before_end_of_options(argv: Words, start: int = 1) -> Iterator[tuple[int, str]]:
    """The words up to `--`, with their index. Words that are not known are left out."""
    for index in range(start, len(argv)):
        word = argv[index]
        if word == "--":
            return
        if word is not None:
            yield index, word


def operands(argv: Words, start: int = 1) -> list[tuple[int, str]]:
    """The words that are not options, with their index."""
    found: list[tuple[int, str]] = []
    ended = False
    for index in range(start, len(argv)):
        word = argv[index]
        if word == "--" and not ended:
            ended = True
        elif word is not None and (ended or not word.startswith("-") or word == "-"):
            found.append((index, word))
    return found


def long_option(word: str, *names: str) -> bool:
    """Whether a word is one of these long options, or could be an abbreviation of one."""
    if not word.startswith("--") or len(word) < 3:
        return False
    given = word[2:].partition("=")[0]
    return any(name.startswith(given) for name in names)


def letters(word: str, valued: str = "") -> str:
    """The letters of bundled short options; what follows one with a value is its value."""
    if not word.startswith("-") or word.startswith("--"):
        return ""
    for position, letter in enumerate(word[1:], start=1):
        if letter in valued:
            return word[1 : position + 1]
    return word[1:]


def short_or_long(argv: Words, short: str, long: tuple[str, ...], valued: str = "", start: int = 1) -> int | None:
    """Index of the first word that holds one of these options."""
    for index, word in before_end_of_options(argv, start):
        if long_option(word, *long) or any(letter in short for letter in letters(word, valued)):
            return index
    return None
