"""Readings of a command whose options are not all known: which of its words may be its first ones.

A program with subcommands takes options before and between them, and nobody knows of each whether it takes the next
word as its value: `kubectl -n prod delete` may be a `delete`, or a `prod`. So each such word counts both ways. The
readings are not listed, because their number doubles with each option; they are followed all at once.
"""

from collections.abc import Callable, Sequence
from operator import eq
from typing import NamedTuple

from whisper_tui.policy.commands.argv import Words


class ReadWord(NamedTuple):
    """A word of a command that is no option."""

    at: int
    """Its index."""
    word: str
    is_certain: bool
    """False if the option before it may take it as its value."""


def read_words(argv: Words, start: int = 1) -> list[ReadWord]:
    """Return the words that are not options, each with whether it may be the value of one."""
    found: list[ReadWord] = []
    certain, ended = True, False
    for index in range(start, len(argv)):
        word = argv[index]
        if word is None:
            # It may be an option, a value, several words, or nothing.
            certain = ended
        elif ended or not word.startswith("-") or word == "-":
            # `cargo +nightly publish`: a choice of the toolchain
            found.append(ReadWord(index, word, certain and not word.startswith("+")))
            certain = True
        elif word == "--":
            certain = ended = True
        else:
            certain = "=" in word
    return found


def first_words(argv: Words, start: int = 1) -> list[tuple[int, str]]:
    """Return each word that is the first one in some reading, with its index: the possible subcommands."""
    found: list[tuple[int, str]] = []
    for each in read_words(argv, start):
        found.append((each.at, each.word))
        if each.is_certain:
            break
    return found


def find_words(
    read: Sequence[ReadWord], wanted: Sequence[str], same: Callable[[str, str], bool] = eq
) -> tuple[int, ...] | None:
    """Return the indices of the wanted words if some reading begins with them, or None.

    `same`: compares a word of the command with a wanted one.
    """
    # How many wanted words a reading has met so far, and where.
    reached: dict[int, tuple[int, ...]] = {0: ()}
    for each in read:
        if len(wanted) in reached:
            break
        after: dict[int, tuple[int, ...]] = {}
        for count, places in reached.items():
            if same(each.word, wanted[count]):
                after.setdefault(count + 1, (*places, each.at))
            if not each.is_certain:
                after.setdefault(count, places)
        reached = after
    return reached.get(len(wanted))
