"""Commands that delete, overwrite, move or publish, and what their file operands come to."""

import re
from collections.abc import Sequence

from whisper_tui.policy.commands.argv import (
    Danger,
    Words,
    before_end_of_options,
    letters,
    long_option,
    operands,
    short_or_long,
)
from whisper_tui.policy.risks.call_patterns import find_calls
from whisper_tui.programs.entries import entry_of

SYSTEM_PLACES = re.compile(
    r"/+(?:(?:bin|boot|dev|etc|home|lib\w*|opt|proc|root|sbin|srv|sys|usr|var|Users|System|Library)/*)?(?:\*|\.)?\Z"
)
"""The top of the file system, or a directory right below it."""


def remove(argv: Words) -> list[Danger]:
    """`rm`: recursive, or without confirmation."""
    at = short_or_long(argv, "rRf", ("recursive", "force", "no-preserve-root"))
    if at is None:
        return []
    rest = argv[1:] if "--" not in argv else argv[1 : argv.index("--")]
    options = [word for word in rest if word is not None and word.startswith("-")]
    recursive = any(long_option(word, "recursive") or set(letters(word)) & set("rR") for word in options)
    forced = any(long_option(word, "force") or "f" in letters(word) for word in options)
    how = " ".join(("recursively",) * recursive + ("without confirmation",) * forced) or "without protection of /"
    sentence = f"Deletes {how} (`{' '.join(('rm', *options))}`)"
    # without a terminal, plain `rm` does not ask either: named files are no more at risk with -f
    if forced and not recursive and "--no-preserve-root" not in options:
        return [Danger("deletes-files", sentence, at)]
    return [Danger("destructive", sentence, at)]


def remove_matching(patterns: Sequence[tuple[int, str]]) -> list[Danger]:
    """`rm *`: files whose names are not written out."""
    for at, pattern in patterns:
        everything = not pattern.rstrip("/").rsplit("/", 1)[-1].strip("*?.")
        if everything:
            return [Danger("destructive", f"Deletes every file that matches (`rm {pattern}`)", at)]
    at, pattern = patterns[0]
    return [Danger("deletes-files", f"Deletes every file that matches (`rm {pattern}`)", at)]


def remove_directory(argv: Words) -> list[Danger]:
    """`rmdir` of a directory that the system needs."""
    return [
        Danger("destructive", f"Removes {place}, a directory of the system", index)
        for index, place in operands(argv)
        if SYSTEM_PLACES.match(place)
    ]


def find(argv: Words) -> list[Danger]:
    """`find`: actions that delete, write or run commands."""
    found = []
    for index, word in enumerate(argv):
        if word in {"-exec", "-execdir", "-ok", "-okdir"}:
            found.append(Danger("runs-other-code", f"Runs a command for each file (`find {word}`)", index))
        elif word == "-delete":
            found.append(Danger("destructive", "Deletes every file that matches (`find -delete`)", index))
        elif word in {"-fprint", "-fprint0", "-fprintf", "-fls"}:
            found.append(Danger("writes-file", f"Overwrites a file (`find {word}`)", index))
    return found


def disk(argv: Words) -> list[Danger]:
    """`dd`: writing over a file or a device."""
    return [
        Danger("destructive", f"Overwrites {word[3:]} (`dd`)", index)
        for index, word in enumerate(argv)
        if word is not None and word.startswith("of=")
    ]


def only_help(argv: Words) -> bool:
    """True if a program is only asked for its help or version."""
    return len(argv) == 2 and argv[1] in {"--help", "--version", "-V"}


def sort(argv: Words) -> list[Danger]:
    """`sort`: an output file, or a compressor."""
    for index, word in before_end_of_options(argv):
        if "o" in letters(word, "kStTo") or long_option(word, "output"):
            return [Danger("writes-file", f"Writes its result to a file (`sort {word}`)", index)]
        if long_option(word, "compress-program"):
            return [Danger("runs-other-code", "Runs another program as its compressor", index)]
    return []


def encoded(argv: Words) -> list[Danger]:
    """`base64 -o`, which writes a file."""
    # only the base64 of macOS has -o
    at = short_or_long(argv, "o", ("output",), valued="wbioD")
    return [] if at is None else [Danger("writes-file", "Writes its result to a file (`base64 -o`)", at)]


_SQL = re.compile(
    r"\b(?:drop\s+(?:table|database|schema|index|view|user|role|column|keyspace)|truncate\s+(?:table\s+)?\w|delete\s+from\s+[\w.\"`]+\s*(?:;|\Z)|"
    r"alter\s+table\s+\S+\s+drop|dropDatabase|deleteMany|\.drop\(|flushall|flushdb)",
    re.IGNORECASE,
)


def deletes(argv: Words, name: str) -> list[Danger]:
    """Return the subcommand or option of a command that deletes or stops something."""
    passing = next(find_calls("interrupts", argv, name), None)
    if passing is not None:
        return [Danger("interrupts", f"{passing.calls.sentence} (`{passing.shown}`)", passing.at)]
    found = next(find_calls("deletes", argv, name), None)
    if found is None:
        return []
    sentence = found.calls.sentence or entry_of(found.program).loses or "Deletes or overwrites data"
    return [Danger("destructive", f"{sentence} (`{found.shown}`)", found.at)]


def database(argv: Words, name: str) -> list[Danger]:
    """Return the deleting statements in arguments of a database client."""
    if not entry_of(name).database:
        return []
    return [
        Danger("destructive", f"Deletes data (`{' '.join(statement[0].split()[:2])}`)", index)
        for index, word in enumerate(argv)
        if index and word is not None and (statement := _SQL.search(word))
    ]


def overwrites_device(argv: Words) -> list[Danger]:
    """`mv` and `cp` onto a device."""
    named = operands(argv)
    if named and named[-1][1].startswith("/dev/") and named[-1][1] not in {"/dev/stdout", "/dev/stderr"}:
        return [Danger("destructive", f"Overwrites the device {named[-1][1]}", named[-1][0])]
    return []


def truncates(argv: Words) -> list[Danger]:
    """`truncate -s`."""
    return [
        Danger("destructive", "Truncates a file (`truncate -s`)", index)
        for index, word in enumerate(argv)
        if word and index and (word.startswith("-s") or long_option(word, "size"))
    ][:1]
