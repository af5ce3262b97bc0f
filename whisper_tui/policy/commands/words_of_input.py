"""Programs that run another one with words that nobody knows before: `xargs`, `find -exec` and `fd -x`."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from whisper_tui.policy.commands.argv import parse_options, program_name
from whisper_tui.policy.commands.read_only_programs import find_tests
from whisper_tui.programs.entries import entry_of


class GivenWords(NamedTuple):
    """A command that such a program runs."""

    argv: tuple[str, ...]
    """Its words, with one that stands for all that are only known when it runs."""
    beginnings: tuple[str | None, ...]
    """For each word None, or the text with which every word in its place begins."""


class Starter(NamedTuple):
    """A command of `xargs`, `find` or `fd`, taken apart."""

    own: tuple[str, ...]
    """Its own words, without the commands that it runs."""
    commands: tuple[GivenWords, ...]


UNKNOWN = "…"
"""Stands for a word that is only known when the command runs."""

_CERTAIN = frozenset(
    "-0 -r -t -x -d -L -n -P -s -I --null --no-run-if-empty --verbose --exit --delimiter --max-args --max-procs "
    "--max-chars".split()
)
"""Options of xargs that ask nothing at a terminal, read no file, and whose value may not be missing."""
_FD_PLACES = re.compile(r"\{(?:/|//|\.|/\.)?\}")


def starter(argv: Sequence[str]) -> Starter | None:
    """Take a command of such a program apart. None: it runs nothing, or nobody knows exactly what."""
    name = entry_of(program_name(argv[0])).name
    if name == "xargs":
        return _xargs(tuple(argv))
    if name == "find":
        return _find(tuple(argv))
    return _fd(tuple(argv)) if name == "fd" else None


def looks_into_files(argv: Sequence[str | None]) -> bool:
    """True if a `find` or `fd` runs a program for the files below its directories."""
    name = entry_of(program_name(argv[0])).name if argv and argv[0] else ""
    if name == "find":
        return any(word in {"-exec", "-execdir", "-ok", "-okdir"} for word in argv[1:])
    return name == "fd" and any(word is not None and re.match(r"--exec|-[A-Za-z0-9]*[xX]", word) for word in argv[1:])


def _xargs(argv: tuple[str, ...]) -> Starter | None:
    parsed = parse_options(argv, 1, entry_of("xargs"))
    if parsed is None or not _CERTAIN.issuperset(name for name, _ in parsed.options):
        return None
    # as many at a time as there are words could fill the machine
    if not re.fullmatch(r"[1-9]|[1-5][0-9]", parsed.value("-P", "--max-procs") or "1"):
        return None
    own, words = argv[: parsed.rest], argv[parsed.rest :] or ("echo",)
    place = parsed.value("-I")
    if place is None:
        given = GivenWords((*words, UNKNOWN), (*(None for _ in words), ""))
    elif place and place not in words[0]:
        given = _placed(words, re.compile(re.escape(place)), "")
    else:
        return None
    return Starter(own, (given,))


def _placed(words: Sequence[str], place: re.Pattern[str], start: str) -> GivenWords:
    """Return a command in whose words a name, which begins with `start`, takes each such place."""
    found = [place.search(word) for word in words]
    beginnings = tuple(match and word[: match.start()] + start for word, match in zip(words, found, strict=True))
    return GivenWords(tuple(place.sub(lambda _: start + UNKNOWN, word) for word in words), beginnings)


def _find(argv: tuple[str, ...]) -> Starter | None:
    own, commands, at = [argv[0]], list[GivenWords](), 1
    starts = _starting_points(argv[1:])
    while at < len(argv):
        if argv[at] not in {"-exec", "-execdir"}:
            own.append(argv[at])
            at += 1
            continue
        end = at + 1
        # `+` ends the command only right behind `{}`
        while end < len(argv) and argv[end] != ";" and not (argv[end] == "+" and argv[end - 1] == "{}"):
            end += 1
        words = argv[at + 1 : end]
        if end == len(argv) or not words or "{}" in words[0] or argv[at - 1] in find_tests():
            return None
        # the names that `-execdir` hands on begin with `./` in one find, and with anything in another
        start = starts if argv[at] == "-exec" else ""
        commands.append(_placed(words, re.compile(re.escape("{}")), start))
        at = end + 1
    return Starter(tuple(own), tuple(commands)) if commands else None


def _starting_points(words: Sequence[str]) -> str:
    """Return a text with which each name that find hands on begins."""
    points = []
    for word in words:
        if word in {"-H", "-L", "-P"}:
            continue
        if word.startswith(("-", "(", "!")):
            break
        points.append(word)
    # BSD find takes `-f DIRECTORY`, whose names may begin with anything
    if "-f" in words or any(not re.match(r"[A-Za-z0-9_./]", point) for point in points):
        return ""
    # which letter it is makes no difference, as long as no name can be taken for an option
    return points[0] if points else "."


def _fd(argv: tuple[str, ...]) -> Starter | None:
    for at, word in enumerate(argv):
        if word in {"-x", "-X", "--exec", "--exec-batch"}:
            words = argv[at + 1 :]
            if not words or ";" in words or _FD_PLACES.search(words[0]):
                return None
            placed = words if any(_FD_PLACES.search(each) for each in words) else (*words, "{}")
            return Starter(argv[:at], (_placed(placed, _FD_PLACES, ""),))
    return None
