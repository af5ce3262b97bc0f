"""Where the words of a command lead: links followed as the kernel does it, and what kind of file is there."""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence

from whisper_tui.model.verdict import Place, PlaceKind
from whisper_tui.policy.read_only.private import candidates, looks_through_trees
from whisper_tui.policy.view import View

MOST_LINKS = 40
"""Links that are followed for one path, as many as the kernel follows."""

MOST_DIRECTORIES = 8
"""Directories in which a command of a text may find itself, one for each `cd` that may or may not have worked."""

_OF_PROCESSES = ("/proc/self", "/proc/thread-self", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr")
_NETWORK = {"/proc/net": "/proc/net", "/proc/mounts": "/proc/mounts"}
"""Links into the own process that show nothing of it."""


def places_of(seen: View, cwd: str, own: Sequence[str]) -> tuple[Place, ...]:
    """What the words of plain commands name, wherever that is not what it seems to be.

    `own`: the directories of whisper_tui, wherever they are.
    """
    if seen.plain is None:
        return ()
    private = tuple(os.path.realpath(directory) for directory in own)
    found: list[Place] = []
    directories = [cwd]
    for at, command in enumerate(seen.commands):
        words = [word for word in command.argv[1:] if word is not None]
        if looks_through_trees(command.argv):
            words.append(".")
        for path in _paths(words, directories):
            place = _place(at, path, private)
            if place is not None and place not in found:
                found.append(place)
        if command.name == "cd" and words and len(directories) < MOST_DIRECTORIES:
            directories += [real for path in _paths(words[-1:], directories) if os.path.isdir(real := _real(path)[0])]  # noqa: PTH112
    return tuple(found)


def _paths(words: Iterable[str], directories: Iterable[str]) -> Iterator[str]:
    parts = dict.fromkeys(part for word in words for part in candidates(word))
    for part in parts:
        if part and "\0" not in part:
            for directory in directories:
                yield os.path.join(directory, part)  # noqa: PTH118


def _place(at: int, path: str, own: Sequence[str]) -> Place | None:
    """What is found there, if it is not a plain file or directory at the very place that the words name."""
    real, of_process = _real(path)
    kind = "process" if of_process else _kind(real, own)
    if kind is None or (kind in {"file", "directory"} and real == os.path.normpath(path)):
        return None
    return Place(command=at, path=real, kind=kind)


def _kind(real: str, own: Sequence[str]) -> PlaceKind | None:
    try:
        mode = os.stat(real).st_mode  # noqa: PTH116
    except (OSError, ValueError):
        return None
    if any(real == directory or real.startswith(directory + "/") for directory in own):
        return "own"
    if stat.S_ISDIR(mode):
        above = real.rstrip("/") + "/"
        return "above-own" if any(directory.startswith(above) for directory in own) else "directory"
    return "file" if stat.S_ISREG(mode) else "other"


def _real(path: str) -> tuple[str, bool]:
    """The path with its links followed, `..` behind them included, and whether it led through a process."""
    at, rest, links = "/", path.split("/")[::-1], 0
    while rest:
        part = rest.pop()
        if part in {"", "."}:
            continue
        if part == "..":
            at = os.path.dirname(at)  # noqa: PTH120
            continue
        at = at.rstrip("/") + "/" + part
        if _is_of_process(at):
            return "/".join((at, *reversed(rest))), True
        if at in _NETWORK:
            continue
        try:
            target = os.readlink(at)  # noqa: PTH115
        except (OSError, ValueError):
            continue
        links += 1
        if links > MOST_LINKS:
            break
        rest += target.split("/")[::-1]
        at = "/" if target.startswith("/") else os.path.dirname(at)  # noqa: PTH120
    return at, False


def _is_of_process(path: str) -> bool:
    return path in _OF_PROCESSES or (path.startswith("/proc/") and path[len("/proc/") :].isdecimal())
