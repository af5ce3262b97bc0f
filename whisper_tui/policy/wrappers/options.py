"""A strict reading of options: an option that is not known makes the whole command opaque."""

from collections.abc import Sequence
from typing import NamedTuple


class Options(NamedTuple):
    """The options that a program is known to take."""

    flags: str = ""
    """Letters of short options without a value."""
    valued: str = ""
    """Letters of short options with a value, attached or in the next word."""
    long: frozenset[str] = frozenset()
    """Long options without a value, or with one that must be attached by `=`."""
    long_valued: frozenset[str] = frozenset()
    """Long options with a value, attached by `=` or in the next word."""


class Parsed(NamedTuple):
    """Options as they stand before the first operand."""

    options: tuple[tuple[str, str | None], ...]
    """Each option with its dashes, and its value."""
    rest: int
    """Index of the first operand."""

    def has(self, *names: str) -> bool:
        """Whether any of these options is there."""
        return any(name in names for name, _ in self.options)

    def value(self, *names: str) -> str | None:
        """The last value of an option."""
        return next((value for name, value in reversed(self.options) if name in names), None)


def known(flags: str = "", valued: str = "", long: str = "", long_valued: str = "") -> Options:
    """Options from short texts: letters, and names separated by blanks."""
    return Options(flags, valued, frozenset(long.split()), frozenset(long_valued.split()))


def parse(words: Sequence[str | None], start: int, options: Options) -> Parsed | None:
    """Read options from `start` up to the first operand or past `--`. None: one is unknown or not certain."""
    found: list[tuple[str, str | None]] = []
    at = start
    while at < len(words):
        word = words[at]
        if word is None:
            return None
        if word == "--":
            return Parsed(tuple(found), at + 1)
        if not word.startswith("-") or word == "-":
            break
        taken = _long(words, at, options, found) if word.startswith("--") else _short(words, at, options, found)
        if taken == 0:
            return None
        at += taken
    return Parsed(tuple(found), at)


def _long(words: Sequence[str | None], at: int, options: Options, found: list[tuple[str, str | None]]) -> int:
    name, equals, value = (words[at] or "")[2:].partition("=")
    full = _full_name(name, options)
    if full is None:
        return 0
    if equals or full in options.long:
        found.append(("--" + full, value if equals else None))
        return 1
    if at + 1 >= len(words):
        return 0
    found.append(("--" + full, words[at + 1]))
    return 2


def _full_name(name: str, options: Options) -> str | None:
    """The option that a name or a unique beginning of it means, as GNU programs take it."""
    names = options.long | options.long_valued
    if name in names:
        return name
    meant = [candidate for candidate in names if name and candidate.startswith(name)]
    return meant[0] if len(meant) == 1 else None


def _short(words: Sequence[str | None], at: int, options: Options, found: list[tuple[str, str | None]]) -> int:
    word = words[at] or ""
    for position, letter in enumerate(word[1:], start=1):
        if letter in options.flags:
            found.append(("-" + letter, None))
        elif letter in options.valued:
            if position + 1 < len(word):
                found.append(("-" + letter, word[position + 1 :]))
                return 1
            if at + 1 >= len(words):
                return 0
            found.append(("-" + letter, words[at + 1]))
            return 2
        else:
            return 0
    return 1
