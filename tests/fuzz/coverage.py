"""The share of the built-in list that a round of fuzzing has run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet


class Coverage:
    """Counts the calls that were allowed and ran, by program and by option."""

    def __init__(self, options: Mapping[str, AbstractSet[str]]) -> None:
        self._options = {program: {each.rstrip("=") for each in listed} for program, listed in options.items()}
        self._calls: Counter[str] = Counter()
        self._seen: dict[str, set[str]] = {program: set() for program in options}

    def ran(self, words: Sequence[str]) -> None:
        """Count a call."""
        self._calls[words[0]] += 1
        for word in words[1:]:
            if word.startswith("-"):
                self._seen[words[0]] |= self._named(words[0], word)

    def _named(self, program: str, word: str) -> set[str]:
        """The listed options that a word may name: itself, or the letters of a bundle."""
        names = {word, word.partition("=")[0]}
        if not word.startswith("--"):
            names |= {f"-{letter}" for letter in word[1:]}
        return names & self._options[program]

    def words(self) -> str:
        """The figures as one sentence, and what was never allowed."""
        listed = sum(map(len, self._options.values()))
        seen = sum(map(len, self._seen.values()))
        never = [program for program in self._options if not self._calls[program]]
        return (
            f"{self._calls.total()} allowed calls ran, of {len(self._options) - len(never)} of the "
            f"{len(self._options)} installed programs on the list, with {seen} of their {listed} listed options; "
            f"never allowed: {' '.join(never) or 'none'}"
        )
