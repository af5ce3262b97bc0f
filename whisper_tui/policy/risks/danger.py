"""One dangerous part of a command."""

from typing import NamedTuple


class Danger(NamedTuple):
    """A dangerous word of a command. A rule covers it only if it names it (decision 9)."""

    id: str
    sentence: str
    """For the human who decides. Empty: a rule must name the word, but it is no risk to show."""
    word: int
    """Index of the word that makes it dangerous."""
