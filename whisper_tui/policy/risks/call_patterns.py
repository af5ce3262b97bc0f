"""Finds the calls that the entry of a program names in `deletes`, `interrupts`, `prints_secrets` or `connects`."""

import fnmatch
from collections.abc import Iterator
from functools import cache, partial
from typing import Literal, NamedTuple

from whisper_tui.policy.commands.argv import Words, letters
from whisper_tui.policy.commands.readings import find_words, read_words
from whisper_tui.policy.commands.spellings import begins_subcommand, shortens_options, spellings, usual_name
from whisper_tui.programs.entries import CallPattern, entry_of


class FoundCalls(NamedTuple):
    """A command that an entry tells something about."""

    calls: CallPattern
    program: str
    """Its usual name."""
    shown: str
    """Its telling words."""
    option: str
    """The option that makes it one, or an empty text."""
    at: int
    """Index of the last telling word, so that a rule with that prefix names it."""


Kind = Literal["deletes", "interrupts", "prints_secrets", "connects"]
"""The field of an entry that names such calls."""


@cache
def _spelled(program: str, kind: Kind) -> tuple[tuple[CallPattern, tuple[tuple[str, ...], ...]], ...]:
    """The calls of a program, each with all spellings of its words."""
    calls: tuple[CallPattern, ...] = getattr(entry_of(program), kind)
    # a spelling with an option has a line of its own
    return tuple(
        (each, tuple(way for way in spellings(program, each.words) if not any(word.startswith("-") for word in way)))
        for each in calls
    )


def find_calls(kind: Kind, argv: Words, name: str) -> Iterator[FoundCalls]:
    """Yield what an entry tells about a command, in some reading of its options."""
    called = usual_name(name)
    more = len(called) - 1  # words that the usual name has more
    argv, name = (*called, *argv[1:]), called[0]
    read = read_words(argv)
    for calls, ways in _spelled(name, kind):
        found_words = (find_words(read, words, partial(_is_word, name)) for words in ways)
        places = next((each for each in found_words if each is not None), None)
        if places is None:
            continue
        at = places[-1] if places else 0
        option = ""
        if calls.options:
            given = (index for index, word in enumerate(argv) if index and word and _is_option(word, calls, name))
            found = next(given, None)
            if found is None:
                continue
            at, option = found, argv[found] or ""
        shown = " ".join((name, *(argv[place] or "" for place in places), *filter(None, (option,))))
        yield FoundCalls(calls, name, shown, option, max(at - more, 0))


def _is_word(name: str, given: str, wanted: str) -> bool:
    return fnmatch.fnmatchcase(given, wanted) or begins_subcommand(name, given, wanted)


_SHORTEST = 5
"""Characters from which on the beginning of a long option counts as the option."""


def _is_option(word: str, calls: CallPattern, name: str) -> bool:
    for option in calls.options:
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
