"""What is behind a wrapper, and what a program is called."""

import re
from functools import lru_cache
from typing import NamedTuple

Argv = tuple[str | None, ...]
"""The words of a command. None: known only when it runs."""

_EXTENSION = re.compile(r"\.(?:exe|cmd|bat|com)\Z", re.IGNORECASE)


class Peeled(NamedTuple):
    """What is behind a wrapper."""

    commands: tuple[Argv, ...] = ()
    """Commands that it runs, with certain or uncertain words."""
    texts: tuple[str, ...] = ()
    """Texts that it gives to a shell."""
    opaque: str | None = None
    """Why it cannot be said what it runs. None: it can."""
    stays: bool = False
    """Whether the wrapper does something of its own beside running them."""
    assignments: tuple[str, ...] = ()
    """Variables that it sets for the command."""
    runner: int | None = None
    """Index of the word that makes it run what follows, where a rule may name both. None: no rule reaches behind it."""


@lru_cache(maxsize=4096)
def program_name(word: str) -> str:
    """A program without its directory and without the endings of Windows."""
    return _EXTENSION.sub("", word.rsplit("/", 1)[-1])
