"""Processes, machines, containers, databases and clouds: what ends or deletes them."""

import fnmatch
import re
from typing import NamedTuple

from whisper_tui.policy.dangers.deleting import DELETES
from whisper_tui.policy.dangers.finding import Danger, Words, letters, long_option, operands


class _Entry(NamedTuple):
    words: tuple[str, ...]
    options: tuple[str, ...]


def _entries() -> dict[str, tuple[_Entry, ...]]:
    table: dict[str, list[_Entry]] = {}
    for line in DELETES.strip().splitlines():
        program, *rest = line.split()
        words = tuple(word for word in rest if not word.startswith("-"))
        table.setdefault(program, []).append(_Entry(words, tuple(word for word in rest if word.startswith("-"))))
    return {program: tuple(entries) for program, entries in table.items()}


_TABLE = _entries()

_SQL = re.compile(
    r"\b(?:drop\s+(?:table|database|schema|index|view|user|role|column|keyspace)|truncate\s+(?:table\s+)?\w|delete\s+from\s+[\w.\"`]+\s*(?:;|\Z)|"
    r"alter\s+table\s+\S+\s+drop|dropDatabase|deleteMany|\.drop\(|flushall|flushdb)",
    re.IGNORECASE,
)
_DATABASES = frozenset(
    "psql mysql mariadb sqlite3 mongosh mongo cqlsh clickhouse-client sqlcmd duckdb redis-cli".split()
)


def deletes(argv: Words, name: str) -> list[Danger]:
    """Subcommands and options that delete or stop something."""
    for entry in _TABLE.get(name, ()):
        named = operands(argv)
        if len(named) < len(entry.words):
            continue
        pairs = zip(named, entry.words, strict=False)
        if not all(fnmatch.fnmatchcase(word, pattern) for (_, word), pattern in pairs):
            continue
        at = named[len(entry.words) - 1][0] if entry.words else 0
        if entry.options:
            at_option = next(
                (index for index, word in enumerate(argv) if index and word and _is_option(word, entry.options)), None
            )
            if at_option is None:
                continue
            at = at_option
        return [
            Danger("destructive", f"It ends, deletes or publishes something that is hard to bring back ({name})", at)
        ]
    return []


def _is_option(word: str, options: tuple[str, ...]) -> bool:
    for option in options:
        if option.startswith("--"):
            if word == option or word.startswith(option + "="):
                return True
        elif len(option) == 2:
            if option[1] in letters(word) and len(word) <= 5:
                return True
        elif fnmatch.fnmatchcase(word, option):
            return True
    return False


def database(argv: Words, name: str) -> list[Danger]:
    """Statements that delete, given to a database's client."""
    if name not in _DATABASES:
        return []
    return [
        Danger("destructive", "It holds a statement that deletes data", index)
        for index, word in enumerate(argv)
        if index and word is not None and _SQL.search(word)
    ]


def kill(argv: Words) -> list[Danger]:
    """`kill` of everything, or of the first process."""
    named = [word for word in argv[1:] if word is not None]
    targets = [word for position, word in enumerate(named) if position > 0 or not word.startswith("-")]
    for index, word in enumerate(argv[1:], start=1):
        if word in {"-1", "1", "0"} and word in targets:
            return [Danger("ends-processes", "It ends every process that it can reach", index)]
    return []


def kill_by_name(argv: Words) -> list[Danger]:
    """`pkill` and `killall`: whatever has the name, whatever it does."""
    return (
        [Danger("ends-processes", "It ends every process of that name, whose it may be", len(argv) - 1)]
        if len(argv) > 1
        else []
    )


def moves_to_nowhere(argv: Words) -> list[Danger]:
    """`mv` and `cp` onto a device."""
    named = operands(argv)
    if named and named[-1][1].startswith("/dev/") and named[-1][1] not in {"/dev/stdout", "/dev/stderr"}:
        return [Danger("destructive", "What is written to a device is gone", named[-1][0])]
    return []


def truncates(argv: Words) -> list[Danger]:
    """`truncate`: cutting files off."""
    return [
        Danger("destructive", "It cuts a file off", index)
        for index, word in enumerate(argv)
        if word and index and (word.startswith("-s") or long_option(word, "size"))
    ][:1]
