"""Subcommands that say of themselves that they delete or reset something, of programs that no table knows."""

import re

from whisper_tui.policy.commands.argv import Danger, Words
from whisper_tui.policy.commands.readings import read_words
from whisper_tui.programs.entries import entry_of

_VERBS = frozenset(
    "delete del destroy purge remove rm drop reset wipe disable clear erase truncate flush prune terminate revoke nuke "
    "deprovision decommission unpublish shred obliterate".split()
)
_SUBCOMMAND = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-:_.][A-Za-z0-9]+)*")
_PARTS = re.compile(r"[-:_.]")

MOST_WORDS = 3
"""First words among which a subcommand is looked for: `fly apps destroy`, `tool db user drop`."""

_MADE_AGAIN = frozenset({"cache", "caches"})
"""Parts of a subcommand that say of what it clears that it is made again: `cache:clear`."""

_CLEARS_WHAT_IS_MADE = frozenset(
    {
        *(("artisan", f"{what}:clear") for what in "config event optimize route view".split()),
        *(("coverage", "erase"), ("nx", "reset"), ("lerna", "clean"), ("gatsby", "clean")),
    }
)
"""Programs, and subcommands that take away nothing but what they make again."""


def telling_verbs(argv: Words, name: str) -> list[Danger]:
    """Return the danger of a subcommand that says what it does."""
    if entry_of(name).plain_words:
        return []
    words = []
    for each in read_words(argv)[:MOST_WORDS]:
        if not _SUBCOMMAND.fullmatch(each.word):
            # a path, an address or a value: what follows is no subcommand, unless it was the value of an option
            if each.is_certain:
                break
            continue
        # `users.delete` is a subcommand, and `drop.sql` is a file
        parts = _PARTS.split(each.word.lower())
        telling = parts[-1:] if "." in each.word else parts
        tells = not _VERBS.isdisjoint(telling)
        if tells or each.is_certain:
            words.append(each.word)
        if tells:
            shown = " ".join((name, *words))
            said = {part for word in words for part in _PARTS.split(word.lower())}
            if not _MADE_AGAIN.isdisjoint(said) or (name, each.word) in _CLEARS_WHAT_IS_MADE:
                return [Danger("interrupts", f"Clears what is made again (`{shown}`)", each.at)]
            if entry_of(name).installs:
                return [Danger("interrupts", f"Removes something that can be installed again (`{shown}`)", each.at)]
            return [Danger("destructive", f"Deletes, disables or resets something, by its name (`{shown}`)", each.at)]
    return []
