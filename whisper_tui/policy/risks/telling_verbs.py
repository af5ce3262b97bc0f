"""Subcommands that say of themselves that they delete or reset something, of programs that no table knows."""

import re

from whisper_tui.policy.commands.argv import Danger, Words
from whisper_tui.policy.commands.readings import read_words

_VERBS = frozenset(
    "delete del destroy purge remove rm drop reset wipe disable clear erase truncate flush prune terminate revoke nuke "
    "deprovision decommission unpublish shred obliterate".split()
)
_SUBCOMMAND = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-:_.][A-Za-z0-9]+)*")
_PARTS = re.compile(r"[-:_.]")

MOST_WORDS = 3
"""First words among which a subcommand is looked for: `fly apps destroy`, `tool db user drop`."""

_PACKAGES = frozenset(
    "npm pnpm yarn bun poetry uv pdm pipenv cargo gem bundle composer conda mamba micromamba pip pipx flatpak helm "
    "pre-commit asdf mise rustup nvm brew dotnet".split()
)
"""Programs whose `remove` takes away what can be installed again."""

_MADE_AGAIN = frozenset({"cache", "caches"})
"""Parts of a subcommand that say of what it clears that it is made again: `cache:clear`."""

_CLEARS_WHAT_IS_MADE = frozenset(
    {
        *(("artisan", f"{what}:clear") for what in "config event optimize route view".split()),
        *(("coverage", "erase"), ("nx", "reset"), ("lerna", "clean"), ("gatsby", "clean")),
    }
)
"""Programs, and subcommands that take away nothing but what they make again."""

_WORDS_ARE_NO_SUBCOMMANDS = frozenset(
    "man info tldr cheat apropos whatis whereis which type help say espeak notify-send wall figlet cowsay logger vim "
    "vi nvim view nano emacs micro code ed ex less more most make gmake ninja just ssh scp sftp rsync mosh curl wget "
    "http ping host dig nslookup nc telnet psql mysql mariadb sqlite3 mongosh mongo redis-cli cqlsh duckdb open "
    "xdg-open git kill pkill killall pgrep tput stty passwd su sudo useradd usermod userdel groupdel mail mutt trap "
    "alias unset export declare typeset local readonly read source . exec eval command builtin test [ mv cp rm ln "
    "rmdir unlink mkdir touch tee install dd truncate chmod chown".split()
)
"""Programs whose first words are names, texts or files."""


def telling_verbs(argv: Words, name: str) -> list[Danger]:
    """Return the danger of a subcommand that says what it does."""
    if name in _WORDS_ARE_NO_SUBCOMMANDS:
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
            if name in _PACKAGES:
                return [Danger("interrupts", f"Removes something that can be installed again (`{shown}`)", each.at)]
            return [Danger("destructive", f"Deletes, disables or resets something, by its name (`{shown}`)", each.at)]
    return []
