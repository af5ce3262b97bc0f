"""Files: what deletes, overwrites, or opens them to others."""

import re

from whisper_tui.policy.dangers.finding import (
    Danger,
    Words,
    before_end_of_options,
    letters,
    long_option,
    operands,
    short_or_long,
)
from whisper_tui.policy.scripts.sed import sed_acts

SYSTEM_PLACES = re.compile(
    r"/+(?:(?:bin|boot|dev|etc|home|lib\w*|opt|proc|root|sbin|srv|sys|usr|var|Users|System|Library)/*)?(?:\*|\.)?\Z"
)
"""The top of the file system, or a directory right below it."""


def remove(argv: Words) -> list[Danger]:
    """`rm`: deleting without being asked, or whole trees."""
    at = short_or_long(argv, "rRf", ("recursive", "force", "no-preserve-root"))
    if at is None:
        return []
    return [Danger("destructive", "It deletes files for good, without asking for each", at)]


def remove_directory(argv: Words) -> list[Danger]:
    """`rmdir` of a place that the system needs."""
    return [
        Danger("destructive", f"It removes {place}", index)
        for index, place in operands(argv)
        if SYSTEM_PLACES.match(place)
    ]


def find(argv: Words) -> list[Danger]:
    """`find`: options that delete, write or run."""
    found = []
    for index, word in enumerate(argv):
        if word in {"-exec", "-execdir", "-ok", "-okdir"}:
            found.append(Danger("runs-other-code", f"{word} runs a command for each file", index))
        elif word == "-delete":
            found.append(Danger("destructive", "It deletes every file that it finds", index))
        elif word in {"-fprint", "-fprint0", "-fprintf", "-fls"}:
            found.append(Danger("writes-file", f"{word} overwrites a file", index))
    return found


def disk(argv: Words) -> list[Danger]:
    """`dd`: writing over a file or a device."""
    return [
        Danger("destructive", "It overwrites what it writes to", index)
        for index, word in enumerate(argv)
        if word is not None and word.startswith("of=")
    ]


def permissions(argv: Words) -> list[Danger]:
    """`chmod`: rights for everybody, the rights of another user, or whole trees."""
    for index, word in enumerate(argv[1:], start=1):
        if word is None:
            continue
        if re.fullmatch(r"[2467][0-7]{3}|0[2467][0-7]{3}", word) or re.search(r"[ug+]\+?[rwx]*s", word):
            return [Danger("privilege", "Whoever runs the file gets the rights of its owner", index)]
        if re.fullmatch(r"0?[0-7][0-7][2367]", word) or (
            re.search(r"(?:^|[,augo])[ao]?[+=][rxX]*w", word) and "u+w" not in word
        ):
            return [Danger("privilege", "Everybody may write there afterwards", index)]
        if "R" in letters(word) or long_option(word, "recursive"):
            return [Danger("destructive", "It changes the rights of a whole tree", index)]
    return []


def owner(argv: Words) -> list[Danger]:
    """`chown` and `chgrp` of whole trees."""
    at = short_or_long(argv, "R", ("recursive",))
    return [] if at is None else [Danger("destructive", "It changes the owner of a whole tree", at)]


def only_help(argv: Words) -> bool:
    """Whether a program is only asked what it is."""
    return len(argv) == 2 and argv[1] in {"--help", "--version", "-V"}


def sed(argv: Words) -> list[Danger]:
    """`sed`: changing files in place, and scripts that write or run."""
    found = []
    scripts: list[tuple[int, str]] = []
    at = 1
    while at < len(argv):
        word = argv[at]
        if word is None:
            at += 1
            continue
        bundle = letters(word, "efliI")
        if "i" in bundle or "I" in bundle or long_option(word, "in-place"):
            found.append(Danger("writes-file", "It changes files in place", at))
        if "f" in bundle or long_option(word, "file"):
            found.append(Danger("runs-other-code", "Its script comes from a file", at))
        if "e" in bundle or long_option(word, "expression"):
            attached = word[len(bundle) + 1 :] if "e" in bundle else word.partition("=")[2]
            scripts.append((at, attached or (argv[at + 1] or "" if at + 1 < len(argv) else "")))
            at += 0 if attached else 1
        at += 1
    if not scripts:
        scripts = operands(argv)[:1]
    found += [
        Danger("runs-other-code", "Its script may write files or run commands", index)
        for index, script in scripts
        if sed_acts(script)
    ]
    return found


def sort(argv: Words) -> list[Danger]:
    """`sort`: writing to a file, running a compressor."""
    for index, word in before_end_of_options(argv):
        if "o" in letters(word, "kStTo") or long_option(word, "output"):
            return [Danger("writes-file", "It writes its result to a file", index)]
        if long_option(word, "compress-program"):
            return [Danger("runs-other-code", "It runs a program to compress", index)]
    return []


def encoded(argv: Words) -> list[Danger]:
    """`base64 -o`, where it exists, writes to a file."""
    at = short_or_long(argv, "o", ("output",), valued="wbioD")
    return [] if at is None else [Danger("writes-file", "It writes its result to a file", at)]
