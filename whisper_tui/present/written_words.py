"""The words of the commands in a text as they stand there, so that an expansion to the same words need not be shown."""

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from whisper_tui.model.call import Argv, Command, Shell
from whisper_tui.model.verdict import Meaning

LONGEST_COMPARED = 4000
"""Characters of a text whose words are compared; a longer one is always shown expanded."""

_BREAKS = frozenset(";&|()\n")
_KEYWORDS = frozenset({"do", "then", "else", "elif", "if", "while", "until", "!", "{"})
_OPERATOR = re.compile(r"(\d*)(\D+)")

Words = tuple[str | None, ...]
"""The words of one command with its redirections. None: a word that is only known when it runs."""


def as_written(command: Command, meanings: Sequence[Meaning]) -> list[bool]:
    """Return for each command that a call expands to whether it has exactly the words that stand in the call."""
    if isinstance(command, Argv):
        left = Counter([tuple(command.words())])
    elif isinstance(command, Shell) and len(command.text) <= LONGEST_COMPARED:
        left = Counter(_written(command.text))
    else:
        return [False] * len(meanings)
    return [_take(meaning, left) for meaning in meanings]


def _take(meaning: Meaning, left: Counter[tuple[str, ...]]) -> bool:
    # A pattern that matches nothing stays as it is.
    expanded = any(not note.endswith(": 0 files") for note in meaning.expanded)
    if expanded or meaning.assignments or meaning.unknown or meaning.background or not meaning.words:
        return False
    words: list[str | None] = list(meaning.words)
    for redirect in meaning.redirects:
        parts = _OPERATOR.fullmatch(redirect.operator)
        if parts is None:
            return False
        words += (*filter(None, parts.groups()), redirect.target)
    for written in left:
        # What a wrapper runs is the end of its own words.
        end = written[len(written) - len(words) :] if meaning.through else written
        if left[written] and len(end) == len(words) and all(map(_is_same, words, end)):
            # The wrapper and the command that it runs stand in the same words.
            left[written] -= not (meaning.wraps or meaning.through)
            return True
    return False


def _is_same(word: str | None, written: str) -> bool:
    return ("$" in written or "`" in written) if word is None else word == written


@lru_cache(maxsize=64)
def _written(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the words of each command in a text. Empty: it has an unclosed quote."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
    found: list[list[str]] = [[]]
    try:
        for token in lexer:
            if _BREAKS.issuperset(token):
                found.append([])
            elif found[-1] or token not in _KEYWORDS:
                found[-1].append(token)
    except ValueError:
        return ()
    return tuple(tuple(words) for words in found if words)
