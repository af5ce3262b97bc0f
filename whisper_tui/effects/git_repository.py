"""The git repository to which a directory belongs: found, checked, and fixed by variables for git.

For judging, for the sandbox and for effects, this is what answers which repository a workspace has.

Git searches for its repository at each start, and obeys files that a clone can contain: a directory that looks like a
bare repository, a `commondir` with another configuration, a submodule with its own. With the variables it searches for
nothing.
"""

import os
import re
from functools import lru_cache
from typing import NamedTuple

from whisper_tui.model.verdict import Repository
from whisper_tui.system import host_files

_HARMLESS = re.compile(
    r"core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|"
    r"safecrlf|eol|compression|quotepath|sharedrepository|abbrev|longpaths|whitespace|commitgraph|multipackindex)|"
    r"remote\.[^=]*\.(?:fetch|url|pushurl|mirror|tagopt|prune)|branch\.[^=]*\.(?:remote|merge|rebase|description|pushremote)|"
    r"user\.(?:name|email)|init\.defaultbranch|pull\.rebase|push\.(?:default|autosetupremote)|fetch\.prune|"
    r"submodule\.[^=]*\.(?:url|active|branch|update)|gc\.auto|color\.\w+|extensions\.objectformat|"
    r"lfs\.repositoryformatversion|advice\.\w+|log\.(?:date|decorate|abbrevcommit|follow|showroot|mailmap)|merge\.(?:conflictstyle|ff)|rerere\.\w+"
)
"""Settings of names and of display, which run nothing. Values are checked as well: a `url` may be a command."""

_SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]\s*(.*)\Z')
_SETTING = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?\Z")

_SETTINGS = {
    # Git would run its value as a hook at every `git status`.
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "submodule.recurse": "false",
}

NO_PAGER = {
    "PAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GH_PAGER": "cat",
    "AWS_PAGER": "cat",
    "BAT_PAGER": "cat",
    "BAT_PAGING": "never",
}
"""Turns off all pagers: in a terminal, a pager starts programs when its user presses a key."""

NEUTRAL = {
    # No setting turns off a user's external diff, so the whole file is left out.
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
    **{f"GIT_CONFIG_KEY_{at}": name for at, name in enumerate(_SETTINGS)},
    **{f"GIT_CONFIG_VALUE_{at}": value for at, value in enumerate(_SETTINGS.values())},
    "GIT_PAGER": "cat",
    # `git status` would write the index, which the read-only sandbox refuses (decision 7).
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    **NO_PAGER,
}
"""Variables for a read-only command that runs without approval: neither git nor a pager starts anything else."""


def configuration_is_neutral(text: str) -> bool:
    """True if no setting of a configuration can run anything. A setting that is not understood could."""
    section = ""
    for line in text.splitlines():
        bare = line.strip()
        if not bare or bare[0] in "#;":
            continue
        # A continued line could hide a setting from this reader.
        if bare.endswith("\\"):
            return False
        if bare.startswith("["):
            match = _SECTION.match(bare)
            if match is None or match[3]:
                return False
            section = match[1].lower() + ("." + match[2] if match[2] is not None else "")
            continue
        match = _SETTING.match(bare)
        if match is None or not section or not setting_is_harmless(f"{section}.{match[1].lower()}", match[2] or ""):
            return False
    return True


def setting_is_harmless(name: str, value: str) -> bool:
    """True if a setting, named in small letters, makes git run nothing."""
    # `ext::COMMAND` as a URL and `!COMMAND` as a submodule's update run a command; a dash begins an option.
    return _HARMLESS.fullmatch(name) is not None and "::" not in value and not value.startswith(("!", "-"))


_LONGEST = 100_000
_LARGEST_INDEX = 64 * 1024 * 1024
_GITLINK = b"\x00\x00\xe0\x00"
"""The mode of an index entry for a submodule: 0o160000, big-endian."""

_PLAIN = ("HEAD", "config", "index", "packed-refs", "objects", "refs", "logs", "info", "objects/info")
"""Parts of a repository that must not be symbolic links."""

_ELSEWHERE = ("commondir", "objects/info/alternates", "objects/info/http-alternates", "config.worktree")
"""Files that make git read other directories, or settings that are not checked here."""


class FoundRepository(NamedTuple):
    """The repository to which a directory belongs."""

    repository: Repository | None
    """None: there is none, or the one that its `.git` names does not name this work tree in turn."""
    is_neutral: bool
    """True if a git that is pinned to it can run nothing that it names, or if there is none."""


def find_repository(cwd: str) -> FoundRepository:
    """Find the repository to which a directory belongs, and check its configuration."""
    directory = cwd
    while True:
        found = os.path.join(directory, ".git")
        if host_files.lexists(found) and not _is_empty_directory(found):
            return _repository(directory, found)
        if host_files.lexists(os.path.join(directory, "HEAD")):
            # Git may take the directory itself for a bare repository.
            return FoundRepository(None, is_neutral=False)
        parent = os.path.dirname(directory)
        if parent == directory:
            return FoundRepository(None, is_neutral=True)
        directory = parent


def pin_repository(repository: Repository | None, cwd: str) -> dict[str, str]:
    """Return the variables with which git uses exactly this repository, or finds none."""
    git_dir = repository.git_dir if repository else os.path.join(cwd, ".git")
    common = repository.common_dir if repository else git_dir
    work_tree = repository.work_tree if repository else cwd
    return {
        "GIT_DIR": git_dir,
        "GIT_COMMON_DIR": common,
        "GIT_WORK_TREE": work_tree,
        "GIT_CEILING_DIRECTORIES": os.path.dirname(work_tree),
    }


def _is_empty_directory(path: str) -> bool:
    """True if git does not take this for a repository, but looks further up. Some agents leave such a `.git` behind."""
    try:
        return host_files.is_directory(path) and not host_files.is_link(path) and not host_files.names(path, 1)
    except OSError:
        return False


def _repository(work_tree: str, found: str) -> FoundRepository:
    repository = _belonging(work_tree, found)
    if repository is None:
        return FoundRepository(None, is_neutral=False)
    neutral = _is_plain(repository.common_dir, repository.git_dir) and _is_neutral(repository.common_dir)
    modules = _holds_modules(os.path.join(repository.git_dir, "index"))
    made = repository.model_copy(update={"modules": modules is not False})
    return FoundRepository(made, is_neutral=neutral and modules is not None)


def _belonging(work_tree: str, found: str) -> Repository | None:
    """Return the repository that `.git` in a work tree is or names, if it belongs to this work tree."""
    # A clone can bring a link to a directory that is prepared elsewhere.
    if host_files.is_link(found):
        return None
    if host_files.is_directory(found):
        return Repository(work_tree=work_tree, git_dir=found, common_dir=found)
    linked = _linked_work_tree(found)
    return Repository(work_tree=work_tree, git_dir=linked[0], common_dir=linked[1]) if linked else None


def _linked_work_tree(file: str) -> tuple[str, str] | None:
    """Return the git directory and the common directory of a linked work tree (`git worktree add`), or None."""
    # The repository must name this file in turn: a clone can bring any `.git` file, but not change the repository.
    text = _line(file)
    git_dir = text.removeprefix("gitdir: ") if text and text.startswith("gitdir: /") else None
    # A relative or linked path could be repointed between this check and the start.
    if git_dir is None or git_dir != host_files.realpath(git_dir):
        return None
    worktrees, common = os.path.dirname(git_dir), os.path.dirname(os.path.dirname(git_dir))
    if os.path.basename(worktrees) != "worktrees" or os.path.basename(common) != ".git":
        return None
    names = {"gitdir": file, "commondir": "../.."}
    if any(_line(os.path.join(git_dir, name)) != value for name, value in names.items()):
        return None
    return git_dir, common


def _line(path: str) -> str | None:
    text = _text(path, 10_000)
    return None if text is None or text.count("\n") > 1 else text.removesuffix("\n")


def _text(path: str, longest: int) -> str | None:
    content, _ = host_files.read_regular(path, longest, follow=True)
    try:
        text = None if content is None else content.decode()
    except UnicodeDecodeError:
        return None
    return None if text is None else text.replace("\r\n", "\n").replace("\r", "\n")


def _is_plain(common: str, git_dir: str) -> bool:
    """True if git reads only files of these two directories: no links, no alternates, no other configuration."""
    places = dict.fromkeys((common, git_dir))
    if any(host_files.is_link(os.path.join(place, name)) for place in places for name in _PLAIN):
        return False
    return not any(host_files.lexists(os.path.join(common, name)) for name in _ELSEWHERE) and not host_files.lexists(
        os.path.join(git_dir, "config.worktree")
    )


def _is_neutral(common: str) -> bool:
    text = _text(os.path.join(common, "config"), _LONGEST)
    return text is not None and configuration_is_neutral(text)


def _holds_modules(index: str) -> bool | None:
    """True if an index has an entry for a submodule. None: unknown."""
    try:
        about = host_files.stat(index)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    if about.st_size > _LARGEST_INDEX:
        return None
    # The cache is of this machine, and what is assumed of another one until it answers must not be remembered.
    if host_files.place():
        return _read_index_holds_modules(index, about.st_size)
    return _index_holds_modules(index, about.st_size, about.st_mtime_ns, about.st_ino)


@lru_cache(maxsize=64)
def _index_holds_modules(index: str, size: int, changed_ns: int, inode: int) -> bool | None:
    """Return the same, cached for each version of the file."""
    # These two only belong to the key of the cache.
    del changed_ns, inode
    return _read_index_holds_modules(index, size)


def _read_index_holds_modules(index: str, size: int) -> bool | None:
    content, _ = host_files.read_regular(index, size, follow=True)
    if content is None:
        return None
    # A split index keeps its entries in a second file, which git would read.
    if b"link" in content[-size // 2 :] and _has_extension(content, b"link"):
        return None
    # A cheap test for most repositories; the mode can also occur by chance, so a hit is checked entry by entry.
    if _GITLINK not in content:
        return False
    return _entries_hold_modules(content)


def _entries_hold_modules(content: bytes) -> bool:
    """True if an entry has the mode of a submodule, or the index cannot be read."""
    end = _entries_end(content)
    return end is None or end[1]


def _entries_end(content: bytes) -> tuple[int, bool] | None:
    """Return the offset behind the entries, and True if one is a submodule. None: unknown version, or a broken file."""
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
        # Entries of versions 2 and 3 are padded with one to eight NUL bytes.
        at += (end - at) // 8 * 8 + 8
    return at, modules


def _has_extension(content: bytes, name: bytes) -> bool:
    """True if an index has an extension of this name, or cannot be read."""
    end = _entries_end(content)
    if end is None:
        return True
    at = end[0]
    while at + 8 <= len(content) - 20:
        if content[at : at + 4] == name:
            return True
        at += 8 + int.from_bytes(content[at + 4 : at + 8], "big")
    return False
