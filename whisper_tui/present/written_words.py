"""The words of the commands in a text as they stand there, so that an expansion to the same words need not be shown."""

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from whisper_tui.model.call import Argv, Command, Shell
from whisper_tui.model.verdict import Meaning

LONGEST_COMPARED = 4000
"""Characters of a text whose words are compared; a longer one is always shown expanded."""

_UNLIKE_COMMANDS = frozenset({"case", "[["})
"""Begins words that are patterns or conditions and look like commands."""
_KEYWORDS = frozenset({"do", "then", "else", "elif", "if", "while", "until", "!", "{"})
_TOKEN = re.compile(
    r"""(?P<blank>(?:[ \t]|\\\n)+)
    |(?P<comment>\#[^\n]*)
    |(?P<redirection>\d*(?:<<-|<<<|<<|<>|<&|>>|>&|>\||[<>])|&>>?)(?!\()
    |(?P<group>\()
    |(?P<break>[;&|)]|[<>](?=\()|\n)
    |(?P<word>(?:\\.|'[^']*'|"(?:\\.|[^"\\])*"|[^\s;&|()<>'"\\]|[^\S \t\n])+)""",
    re.VERBOSE | re.DOTALL,
)
_NO_COMMANDS = re.compile(r"(?:\(|[^\s;&|()<>$])\(\Z")
"""Begins a list, a pattern or arithmetic."""
_SUBSTITUTES = frozenset("$<>")
"""Before the parenthesis of a substitution."""
_SIGN = "\0"
"""Before a redirection among words, none of which can have it."""


class TextToken(NamedTuple):
    """A word, an operator, a parenthesis or a comment of a text."""

    kind: str
    text: str
    """The group of a substitution has the sign before it."""
    at: int
    """Where it begins, without that sign."""


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
    own = [not meaning.through and _take(meaning, left) for meaning in meanings]
    wrappers = [_words(each) for each, same in zip(meanings, own, strict=True) if same and each.wraps]
    return [same or _ends_one(each, wrappers) for each, same in zip(meanings, own, strict=True)]


def _take(meaning: Meaning, left: Counter[tuple[str, ...]]) -> bool:
    words = _words(meaning)
    for written in left:
        if words and left[written] and len(written) == len(words) and all(map(_is_same, words, written)):
            left[written] -= 1
            return True
    return False


def _ends_one(meaning: Meaning, wrappers: list[Words]) -> bool:
    """True if the words of a command are the last ones of a wrapper that stands in the call."""
    words = _words(meaning)
    return bool(words and meaning.through) and any(each[-len(words) :] == words != each for each in wrappers)


def _words(meaning: Meaning) -> Words:
    """Return the words of a command with its redirections. Empty: more is to be said than words can."""
    # A pattern that matches nothing stays as it is.
    expanded = any(note.startswith("$") or not note.endswith(": 0 files") for note in meaning.expanded)
    if expanded or meaning.assignments or meaning.unknown or meaning.background:
        return ()
    redirections = ((f"{_SIGN}{each.operator}", each.target) for each in meaning.redirects)
    return (*meaning.words, *(part for each in redirections for part in each)) if meaning.words else ()


def _is_same(word: str | None, written: str) -> bool:
    return ("$" in written or "`" in written) if word is None else word == written


@lru_cache(maxsize=64)
def _written(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the words of each command in a text. Empty: they cannot be told from other words without a shell.

    Comments and here-documents are no commands, and neither are the words of a list, a pattern or arithmetic.
    """
    if "\r" in text or _SIGN in text:
        return ()
    try:
        return tuple(tuple(words) for words in _commands(text) if words)
    except ValueError:
        return ()


def _commands(text: str) -> Iterator[list[str]]:
    words: list[str] = []
    is_rest = False
    """True for the words of a command that stand behind a substitution."""
    groups: list[bool] = []
    """The open parentheses: whether each is that of a substitution."""
    for kind, part, _ in tokens(text):
        if kind == "comment":
            continue
        if kind == "word":
            if words or is_rest or part not in _KEYWORDS:
                words += shlex.split(part)
            if words[:1] and words[0] in _UNLIKE_COMMANDS:
                raise ValueError(part)
            continue
        if kind == "redirection":
            words.append(f"{_SIGN}{part}")
            continue
        if not is_rest:
            yield words
        words, is_rest = [], part == ")" and bool(groups) and groups.pop()
        if kind == "group":
            groups.append(part != "(")
    if not is_rest:
        yield words


def tokens(text: str) -> Iterator[TextToken]:
    """Yield the tokens of a text without its blanks. Raises `ValueError` if only a shell could tell them."""
    at, before = 0, ""
    ends: list[tuple[str, bool]] = []
    """The last lines of the here-documents that begin with the next line, and whether tabs before them count for
    nothing."""
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or (_NO_COMMANDS.search(text[max(0, at - 1) : at + 1]) and text[at + 1 : at + 2] != ")"):
            raise ValueError(text[at:])
        kind, part = str(match.lastgroup), match[0]
        if kind == "group" and text[at - 1 : at] in _SUBSTITUTES:
            part = text[at - 1] + part
        start, at = at, match.end()
        if kind == "word" and before in {"<<", "<<-"}:
            ends += [(end, before == "<<-") for end in shlex.split(part)]
        elif part == "\n":
            at, ends = _behind(text, at, ends), []
        before = before if kind == "blank" else part
        if kind != "blank":
            yield TextToken(kind, part, start)


def _behind(text: str, at: int, ends: list[tuple[str, bool]]) -> int:
    """Return where a text goes on behind its here-documents."""
    for end, tabs in ends:
        last = re.compile(rf"^{chr(9) + '*' if tabs else ''}{re.escape(end)}$", re.MULTILINE).search(text, at)
        at = last.end() if last else len(text)
    return at
