"""The repository that a git which nobody was asked about is held to: found once, judged, and named in its environment.

Git finds its repository anew whenever it starts, and believes files that a clone brings along: a directory that looks
like a repository without a work tree, a `commondir` that leads to another configuration, a submodule with one of its
own. So nothing is left for it to find.
"""

import os
from functools import lru_cache

from whisper_tui.model.command import CommandSpec
from whisper_tui.model.verdict import Repository, Resolved
from whisper_tui.policy.view import view
from whisper_tui.supervisor.git_configuration import NEUTRAL, NO_PAGER, configuration_is_neutral

_LONGEST = 100_000
_LARGEST_INDEX = 64 * 1024 * 1024
_GITLINK = b"\x00\x00\xe0\x00"
"""The mode of an entry that is a commit of another repository."""

_PLAIN = ("HEAD", "config", "index", "packed-refs", "objects", "refs", "logs", "info", "objects/info")
"""Parts of a repository that may not be links to somewhere else."""

_ELSEWHERE = ("commondir", "objects/info/alternates", "objects/info/http-alternates", "config.worktree")
"""What makes git read from other places, or settings that were not looked at."""


def find_repository(cwd: str) -> tuple[Repository | None, bool]:
    """The repository around a directory, and whether looking at it can run nothing; no repository runs nothing."""
    directory = cwd
    while True:
        found = os.path.join(directory, ".git")  # noqa: PTH118
        if os.path.lexists(found):
            return _repository(directory, found)
        if os.path.lexists(os.path.join(directory, "HEAD")):  # noqa: PTH118
            return None, False  # git may take the directory itself for a repository
        parent = os.path.dirname(directory)  # noqa: PTH120
        if parent == directory:
            return None, True
        directory = parent


def pinned(repository: Repository | None, cwd: str) -> dict[str, str]:
    """Variables with which git finds exactly this repository, or none."""
    git_dir = repository.git_dir if repository else os.path.join(cwd, ".git")  # noqa: PTH118
    common = repository.common_dir if repository else git_dir
    work_tree = repository.work_tree if repository else cwd
    return {
        "GIT_DIR": git_dir,
        "GIT_COMMON_DIR": common,
        "GIT_WORK_TREE": work_tree,
        "GIT_CEILING_DIRECTORIES": os.path.dirname(work_tree),  # noqa: PTH120
    }


def looking_environment(spec: CommandSpec, resolved: Resolved | None, *, alone: bool = True) -> dict[str, str]:
    """Added to the environment of a command that only looks and that nobody was asked about.

    Beside commands that a rule allows, which may be a git of another kind, only pagers are turned off.
    """
    if not alone:
        return NO_PAGER
    if "git" not in view(spec.command).names:
        return NEUTRAL
    cwd = resolved.cwd if resolved and resolved.cwd else spec.cwd
    return NEUTRAL | pinned(resolved.repository if resolved else None, cwd)


def _repository(work_tree: str, found: str) -> tuple[Repository | None, bool]:
    if os.path.islink(found):  # noqa: PTH114
        return None, False
    git_dir = common = found
    if not os.path.isdir(found):  # noqa: PTH112
        linked = _linked_work_tree(found)
        if linked is None:
            return None, False
        git_dir, common = linked
    neutral = _is_plain(common, git_dir) and _is_neutral(common)
    modules = _holds_modules(os.path.join(git_dir, "index"))  # noqa: PTH118
    made = Repository(work_tree=work_tree, git_dir=git_dir, common_dir=common, modules=modules is not False)
    return made, neutral and modules is not None


def _linked_work_tree(file: str) -> tuple[str, str] | None:
    """The two directories behind the `.git` of a work tree that `git worktree add` made.

    Only the repository itself can say that it is one: it names this file in turn.
    """
    text = _line(file)
    git_dir = text.removeprefix("gitdir: ") if text and text.startswith("gitdir: /") else None
    if git_dir is None or git_dir != os.path.realpath(git_dir):
        return None
    worktrees, common = os.path.dirname(git_dir), os.path.dirname(os.path.dirname(git_dir))  # noqa: PTH120
    if os.path.basename(worktrees) != "worktrees" or os.path.basename(common) != ".git":  # noqa: PTH119
        return None
    names = {"gitdir": file, "commondir": "../.."}
    if any(_line(os.path.join(git_dir, name)) != value for name, value in names.items()):  # noqa: PTH118
        return None
    return git_dir, common


def _line(path: str) -> str | None:
    text = _text(path, 10_000)
    return None if text is None or text.count("\n") > 1 else text.removesuffix("\n")


def _text(path: str, longest: int) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            text = file.read(longest + 1)
    except (OSError, UnicodeDecodeError):
        return None
    return text if len(text) <= longest else None


def _is_plain(common: str, git_dir: str) -> bool:
    """Whether everything that git reads is where it looks as if it were."""
    places = dict.fromkeys((common, git_dir))
    if any(os.path.islink(os.path.join(place, name)) for place in places for name in _PLAIN):  # noqa: PTH114, PTH118
        return False
    return not any(os.path.lexists(os.path.join(common, name)) for name in _ELSEWHERE) and not os.path.lexists(  # noqa: PTH118
        os.path.join(git_dir, "config.worktree")  # noqa: PTH118
    )


def _is_neutral(common: str) -> bool:
    text = _text(os.path.join(common, "config"), _LONGEST)  # noqa: PTH118
    return text is not None and configuration_is_neutral(text)


def _holds_modules(index: str) -> bool | None:
    """Whether an index has a commit of another repository among its entries. None: that cannot be said."""
    try:
        about = os.stat(index)  # noqa: PTH116
    except FileNotFoundError:
        return False
    except OSError:
        return None
    if about.st_size > _LARGEST_INDEX:
        return None
    return _index_holds_modules(index, about.st_size, about.st_mtime_ns, about.st_ino)


@lru_cache(maxsize=64)
def _index_holds_modules(index: str, size: int, changed_ns: int, inode: int) -> bool | None:
    """The same, remembered for as long as the file is the same."""
    del changed_ns, inode  # only there to tell one content from another
    try:
        with open(index, "rb") as file:  # noqa: PTH123
            content = file.read(size)
    except OSError:
        return None
    if b"link" in content[-size // 2 :] and _has_extension(content, b"link"):
        return None  # its entries stand in another file
    if _GITLINK not in content:
        return False
    return _entries_hold_modules(content)


def _entries_hold_modules(content: bytes) -> bool:
    """Go through the entries, because a size or a time can look like the mode."""
    end = _entries_end(content)
    return end is None or end[1]


def _entries_end(content: bytes) -> tuple[int, bool] | None:
    """Where the entries end, and whether one is a commit. None: the file is of another version, or broken."""
    if content[:4] != b"DIRC" or content[4:8] not in (b"\0\0\0\2", b"\0\0\0\3"):
        return None
    at, modules = 12, False
    for _ in range(int.from_bytes(content[8:12], "big")):
        modules = modules or content[at + 24 : at + 28] == _GITLINK
        extended = content[at + 60 : at + 61] >= b"\x40" and bool(content[at + 60] & 0x40)
        start = at + (64 if extended else 62)
        end = content.find(b"\0", start)
        if end < 0:
            return None
        at += (end - at) // 8 * 8 + 8
    return at, modules


def _has_extension(content: bytes, name: bytes) -> bool:
    """Whether an index has an extension of this name, or could have one."""
    end = _entries_end(content)
    if end is None:
        return True
    at = end[0]
    while at + 8 <= len(content) - 20:
        if content[at : at + 4] == name:
            return True
        at += 8 + int.from_bytes(content[at + 4 : at + 8], "big")
    return False
