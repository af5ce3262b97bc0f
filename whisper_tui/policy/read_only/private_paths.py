"""Private places that a read-only command must not show: homes, processes, devices, whisper_tui's own files."""

import posixpath
import re
from collections.abc import Iterator, Sequence

from whisper_tui.model.verdict import Place
from whisper_tui.policy.commands.argv import Argv, program_name
from whisper_tui.policy.risks.sensitive_paths import names_secret

_SHOWS_NAMES = frozenset(
    "ls dir vdir find gfind fd fdfind stat df tree which whereis type cd pwd test basename dirname realpath readlink "
    "echo printf true false expr seq sleep date exa eza lsd ps pgrep pidof pstree id whoami uname hostname "
    "uptime".split()
)
"""Programs that show names, sizes and times, but no content of files."""

_OPENS_NOTHING = frozenset("test basename dirname echo printf true false expr seq sleep date id whoami uname".split())
"""Programs of these to which a path is only a word."""

_LOOKS_THROUGH_TREES = frozenset({"rg", "ag", "tokei"})

_HOME = re.compile(r"/(?:home|Users|export/home)/[^/]+|/root|/var/root")
_PRIVATE = re.compile(
    r"/(?:(?:home|Users|export/home|root|var/root|run/user|var/run/user)(?:/.*)?|proc(?:/(?:\d+|self|thread-self)(?:/.*)?)?)",
    re.DOTALL,
)
"""Homes, and files about other processes."""

# these hold no data of anybody
_DEVICES_OF_ALL = re.compile(r"/dev/(?:null|zero|full|random|urandom|stdin|fd/0)")
_DEVICES = re.compile(rf"(?!{_DEVICES_OF_ALL.pattern}\Z)/dev/.*", re.DOTALL)
"""Terminals, disks, memory: data there belongs to somebody else."""

_KERNEL = re.compile(
    r"/proc/(?:kcore|kmsg|keys|key-users|sched_debug|timer_list|kallsyms|vmallocinfo|pagetypeinfo|slabinfo|kpage\w*)"
)

_ABOVE = frozenset({"/", "//", "/var", "/var/run", "/run", "/export", "/dev"})
"""Directories above private ones."""

_PUBLIC_TREES = re.compile(r"/(?:usr|opt|lib\w*|bin|sbin|nix|Library|System|Applications)(?:/.*)?", re.DOTALL)
"""Trees of installed packages, which may be searched as a whole."""


def shows_private(commands: Sequence[Argv], cwd: str, root: str, places: Sequence[Place] = ()) -> bool:
    """True if a command that shows the content of files may reach private places outside the workspace.

    `places` are the resolved paths of words that are links, if the file system has been examined (decision 8).
    """
    # a workspace that is a home, or above one, contains the private places itself
    if any(_reads(argv) for argv in commands) and (contains_home(root) or _is_private(cwd, root)):
        return True
    # a cd may fail, so every directory in which the text has been stays possible
    directories = [cwd]
    for at, argv in enumerate(commands):
        here = [place for place in places if place.command == at]
        if argv[:1] and program_name(argv[0] or "") in {"cd", "pushd", "popd"}:
            moved = _moved(argv, directories, here, root)
            if moved is None and at + 1 < len(commands):
                return True
            directories += moved or []
        elif _leads_away(argv, directories, here, root):
            return True
    return False


def names_closed_place(commands: Sequence[Argv], cwd: str, root: str) -> bool:
    """True if a program would look into a private place, even if only at names: the sandbox closes all of them."""
    return any(
        path is None or _is_private(path, root)
        for argv in commands
        if argv and program_name(argv[0] or "") not in _OPENS_NOTHING
        for path in _named(argv[1:], [cwd])
    )


def possible_paths(word: str) -> tuple[str, ...]:
    """Return the parts of a word that may be file names: the word, the value of an option, a path in a commit."""
    attached = word[2:] if word.startswith("-") and not word.startswith("--") else ""
    return tuple(dict.fromkeys((word, word.rpartition("=")[2], word.rpartition(":")[2], attached)))


def searches_trees(argv: Argv) -> bool:
    """True if a program searches everything below its directories."""
    name = program_name(argv[0]) if argv and argv[0] else ""
    if name in _LOOKS_THROUGH_TREES:
        return True
    words = [word for word in argv[1:] if word is not None]
    if name in {"grep", "egrep", "fgrep", "diff"}:
        return any(re.match(r"-[A-Za-z]*[rR]|-[A-Za-z]*d|--(?:dereference-)?rec|--dir", word) for word in words)
    return name == "git" and "--no-index" in words


def contains_home(root: str) -> bool:
    """True if a directory is a home or lies above one."""
    return root in _ABOVE or root in {"/home", "/Users", "/export/home"} or _HOME.fullmatch(root) is not None


def _reads(argv: Argv) -> bool:
    return bool(argv) and (argv[0] is None or program_name(argv[0]) not in _SHOWS_NAMES)


def _moved(argv: Argv, directories: Sequence[str], places: Sequence[Place], root: str) -> list[str] | None:
    """Return the new directories in which later commands may be after a `cd`, or None if not certain or outside."""
    target = argv[1] if len(argv) == 2 and argv[0] == "cd" else None
    # behind a link, the shell resolves `..` by the path that it remembers, other programs by the real one
    if not target or target.startswith(("-", "~")) or (places and ".." in target.split("/")):
        return None
    # above its start, the shell may remember another path than the real one
    if posixpath.normpath(target).startswith("..") or len(directories) > 7:
        return None
    real = [place.path for place in places]
    real += [
        posixpath.normpath(posixpath.join(directory, target))
        for directory in directories
        if not places or len(directories) > 1
    ]
    if not all(_is_inside(path, root) for path in real) or any(place.kind != "directory" for place in places):
        return None
    return [path for path in real if path not in directories]


def _leads_away(argv: Argv, directories: Sequence[str], places: Sequence[Place], root: str) -> bool:
    if any(place.kind == "own" or names_secret(place.path) for place in places):
        return True
    if not _reads(argv):
        return False
    through_trees = searches_trees(argv)
    if any(
        place.kind in {"other", "process", "above-own"}
        or _is_private(place.path, root)
        or (through_trees and not _is_searchable(place.path, root))
        for place in places
        if not _DEVICES_OF_ALL.fullmatch(place.path)
    ):
        return True
    if through_trees and any(not _is_searchable(path, root) for path in _named(_searched(argv), directories) if path):
        return True
    return any(path is None or _is_private(path, root) for path in _named(argv[1:], directories))


def _searched(argv: Argv) -> Argv:
    """Return the words that may be paths to search: all but the pattern, which is the first operand."""
    if program_name(argv[0] or "") not in {"grep", "egrep", "fgrep", "rg", "ag"}:
        return argv[1:]
    if any(re.match(r"-[A-Za-z]*[ef]|--(?:reg|file)", word or "") for word in argv[1:]):
        return argv[1:]
    first = next((at for at, word in enumerate(argv) if at and not (word or "").startswith("-")), len(argv))
    return argv[1:first] + argv[first + 1 :]


def _named(words: Argv, directories: Sequence[str]) -> Iterator[str | None]:
    """Yield the paths that words name by their text; None for an unknown word."""
    for word in words:
        if word is None:
            yield None
            continue
        for part in possible_paths(word):
            if part.startswith("/"):
                yield posixpath.normpath(part)
            elif ".." in part.split("/"):
                yield from (posixpath.normpath(posixpath.join(directory, part)) for directory in directories)


def _is_searchable(path: str, root: str) -> bool:
    return _is_inside(path, root) or _PUBLIC_TREES.fullmatch(path) is not None


def _is_inside(path: str, root: str) -> bool:
    return bool(root) and (path == root or path.startswith(root.rstrip("/") + "/"))


def _is_private(path: str, root: str) -> bool:
    path = posixpath.normpath(path)
    if _is_inside(path, root):
        return False
    return path in _ABOVE or any(each.fullmatch(path) for each in (_PRIVATE, _DEVICES, _KERNEL))
