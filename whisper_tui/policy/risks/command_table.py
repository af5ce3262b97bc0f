"""Tables of subcommands that have an effect: how a line is written, and whether a command is one of it."""

import fnmatch
from collections.abc import Iterator
from functools import cache, partial
from typing import NamedTuple

from whisper_tui.policy.commands.argv import Words, letters
from whisper_tui.policy.commands.readings import find_words, read_words
from whisper_tui.policy.commands.spellings import begins_subcommand, shortens_options, spellings, usual_name


class Entry(NamedTuple):
    """A line: programs divided by `,`, first words as patterns, and perhaps options of which one must be given."""

    words: tuple[str, ...]
    spellings: tuple[tuple[str, ...], ...]
    options: tuple[str, ...]


class FoundEntry(NamedTuple):
    """A command that is in a table."""

    entry: Entry
    program: str
    """Its usual name."""
    shown: str
    """Its telling words."""
    option: str
    """The option that makes it one, or an empty text."""
    at: int
    """Index of the last telling word, so that a rule with that prefix names it."""


@cache
def read_entries(table: str) -> dict[str, tuple[Entry, ...]]:
    """Read a table: its lines by program."""
    found: dict[str, list[Entry]] = {}
    for line in table.strip().splitlines():
        programs, *rest = line.split()
        words = tuple(word for word in rest if not word.startswith("-"))
        options = tuple(word for word in rest if word.startswith("-"))
        for program in programs.split(","):
            # a spelling with an option has a line of its own
            spelled = (each for each in spellings(program, words) if not any(word.startswith("-") for word in each))
            found.setdefault(program, []).append(Entry(words, tuple(spelled), options))
    return {program: tuple(entries) for program, entries in found.items()}


def find_entries(table: str, argv: Words, name: str) -> Iterator[FoundEntry]:
    """Yield the lines of a table that a command is in, in some reading of its options."""
    called = usual_name(name)
    more = len(called) - 1  # words that the usual name has more
    argv, name = (*called, *argv[1:]), called[0]
    read = read_words(argv)
    for entry in read_entries(table).get(name, ()):
        ways = (find_words(read, words, partial(_is_word, name)) for words in entry.spellings)
        places = next((each for each in ways if each is not None), None)
        if places is None:
            continue
        at = places[-1] if places else 0
        option = ""
        if entry.options:
            given = (index for index, word in enumerate(argv) if index and word and _is_option(word, entry, name))
            found = next(given, None)
            if found is None:
                continue
            at, option = found, argv[found] or ""
        shown = " ".join((name, *(argv[place] or "" for place in places), *filter(None, (option,))))
        yield FoundEntry(entry, name, shown, option, max(at - more, 0))


def _is_word(name: str, given: str, wanted: str) -> bool:
    return fnmatch.fnmatchcase(given, wanted) or begins_subcommand(name, given, wanted)


_SHORTEST = 5
"""Characters from which on the beginning of a long option counts as the option."""


def _is_option(word: str, entry: Entry, name: str) -> bool:
    for option in entry.options:
        if option.startswith("--"):
            given = word.partition("=")[0]
            begins = len(given) >= _SHORTEST and given.startswith("--") and shortens_options(name)
            if option in {given, word} or (begins and option.startswith(given)):
                return True
        elif len(option) == 2:
            # longer words with one dash are rather a long option of Go or Java than a bundle
            if option[1] in letters(word) and len(word) <= 5:
                return True
        elif fnmatch.fnmatchcase(word, option):
            return True
    return False
