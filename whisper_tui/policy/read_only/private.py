"""Whether a command that only looks could show what other people, programs or whisper_tui itself keep to themselves."""

import posixpath
import re
from collections.abc import Iterator, Sequence

from whisper_tui.model.verdict import Place
from whisper_tui.policy.read_only.secret_names import names_secret
from whisper_tui.policy.wrappers.peeled import Argv, program_name

_SHOWS_NAMES = frozenset(
    "ls dir vdir find gfind fd fdfind stat df tree which whereis type cd pwd test basename dirname realpath readlink "
    "echo printf true false expr seq sleep date exa eza lsd ps pgrep pidof pstree id whoami uname hostname "
    "uptime".split()
)
"""Programs that show names, sizes and times, and nothing that is inside of files."""

_LOOKS_THROUGH_TREES = frozenset({"rg", "ag", "tokei"})

_HOME = re.compile(r"/(?:home|Users|export/home)/[^/]+|/root|/var/root")
_PRIVATE = re.compile(
    r"/(?:(?:home|Users|export/home|root|var/root|run/user|var/run/user)(?:/.*)?|proc(?:/(?:\d+|self|thread-self)(?:/.*)?)?)",
    re.DOTALL,
)
"""Where people keep their files, and what tells about other processes."""

_DEVICES_OF_ALL = re.compile(r"/dev/(?:null|zero|full|random|urandom|stdin|fd/0)")
_DEVICES = re.compile(rf"(?!{_DEVICES_OF_ALL.pattern}\Z)/dev/.*", re.DOTALL)
"""Terminals, disks, memory: what is read there was meant for somebody else."""

_KERNEL = re.compile(
    r"/proc/(?:kcore|kmsg|keys|key-users|sched_debug|timer_list|kallsyms|vmallocinfo|pagetypeinfo|slabinfo|kpage\w*)"
)

_ABOVE = frozenset({"/", "//", "/var", "/var/run", "/run", "/export", "/dev"})
"""Directories that hold some of these."""

_PUBLIC_TREES = re.compile(r"/(?:usr|opt|lib\w*|bin|sbin|nix|Library|System|Applications)(?:/.*)?", re.DOTALL)
"""Trees in which packages put their files, outside of which nobody knows what a search would meet."""


def shows_private(commands: Sequence[Argv], cwd: str, root: str, places: Sequence[Place] = ()) -> bool:
    """Whether a command that shows what is inside of files is pointed at private places outside the workspace.

    A workspace that is somebody's home, or lies above one, holds such places itself. `places`: where words lead that
    lead elsewhere than they say; whoever has not looked gives none.
    """
    if any(_reads(argv) for argv in commands) and (holds_homes(root) or _is_private(cwd, root)):
        return True
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


def candidates(word: str) -> tuple[str, ...]:
    """What in a word could be the name of a file: the word, a value attached to an option, a path in a commit."""
    attached = word[2:] if word.startswith("-") and not word.startswith("--") else ""
    return tuple(dict.fromkeys((word, word.rpartition("=")[2], word.rpartition(":")[2], attached)))


def looks_through_trees(argv: Argv) -> bool:
    """Whether a program looks into everything below the directories that it is given."""
    name = program_name(argv[0]) if argv and argv[0] else ""
    if name in _LOOKS_THROUGH_TREES:
        return True
    words = [word for word in argv[1:] if word is not None]
    if name in {"grep", "egrep", "fgrep", "diff"}:
        return any(re.match(r"-[A-Za-z]*[rR]|-[A-Za-z]*d|--(?:dereference-)?rec|--dir", word) for word in words)
    return name == "git" and "--no-index" in words


def holds_homes(root: str) -> bool:
    """Whether a directory is somebody's home, or lies above one."""
    return root in _ABOVE or root in {"/home", "/Users", "/export/home"} or _HOME.fullmatch(root) is not None


def _reads(argv: Argv) -> bool:
    return bool(argv) and (argv[0] is None or program_name(argv[0]) not in _SHOWS_NAMES)


def _moved(argv: Argv, directories: Sequence[str], places: Sequence[Place], root: str) -> list[str] | None:
    """Where else a command may be after a `cd`. None: that is not certain, or not inside the workspace.

    A `cd` may have failed, so where the text was before stays possible. Behind a link, `cd ..` is not what it is for
    other programs; and above where the text began, the shell may believe another path than the real one.
    """
    target = argv[1] if len(argv) == 2 and argv[0] == "cd" else None
    if not target or target.startswith(("-", "~")) or (places and ".." in target.split("/")):
        return None
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
    through_trees = looks_through_trees(argv)
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
    """The words that can be a place to search: all but the pattern, which is the first one without a dash."""
    if program_name(argv[0] or "") not in {"grep", "egrep", "fgrep", "rg", "ag"}:
        return argv[1:]
    if any(re.match(r"-[A-Za-z]*[ef]|--(?:reg|file)", word or "") for word in argv[1:]):
        return argv[1:]
    first = next((at for at, word in enumerate(argv) if at and not (word or "").startswith("-")), len(argv))
    return argv[1:first] + argv[first + 1 :]


def _named(words: Argv, directories: Sequence[str]) -> Iterator[str | None]:
    """The paths that words name by their text."""
    for word in words:
        if word is None:
            yield None
            continue
        for part in candidates(word):
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
