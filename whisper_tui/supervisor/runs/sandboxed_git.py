"""Git in a sandbox: the home's configuration is closed to it, so it is told to read none, and what commits need of it.

Git ends if it may not read a configuration that exists. Of that one, which can contain tokens, a sandboxed command
learns the name and the address that stand in each commit, and which files are ignored in every repository.
"""

import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from whisper_tui.model.verdict import Repository
from whisper_tui.system.caged_program import cage_problem, look
from whisper_tui.system.closed_paths import homes, lies_below
from whisper_tui.system.host_files import home_of_user, realpath_here

_TRUSTED_PATH = "/usr/bin:/bin:/usr/local/bin"
"""The directories in which git is looked for: never one that an agent may write to."""
_LONGEST_ANSWER = 10_000
LONGEST_S = 2.0
_VARIABLES = {
    "user.name": ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"),
    "user.email": ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"),
}
_IGNORED = "core.excludesfile"
_INCLUDED = r"^include(if\..*)?\.path$"


class GitInSandbox(NamedTuple):
    """The variables and files that a sandbox has for git in place of the user's configuration."""

    variables: Mapping[str, str]
    read: tuple[str, ...] = ()
    """Files that it opens beside its own."""


def git_in_sandbox(
    environment: Mapping[str, str], read: Iterable[str], repository: Repository | None, *, commits: bool
) -> GitInSandbox:
    """Return what git in a sandbox needs in place of the user's configuration.

    `read`: the paths that the sandbox opens; a configuration in them is left to git. `commits`: it may write.
    """
    home = environment.get("HOME") or home_of_user()
    settings = environment.get("XDG_CONFIG_HOME") or f"{home}/.config"
    named = (f"{home}/.gitconfig", f"{settings}/git/config", f"{settings}/git/ignore")
    *present, ignored = (path if Path(path).is_file() else "" for path in map(realpath_here, named))
    present = list(filter(None, present))
    opened = tuple(read)
    if all(lies_below(path, opened) for path in filter(None, (*present, ignored))):
        return GitInSandbox({})
    variables = {"GIT_CONFIG_GLOBAL": os.devnull}
    if not commits:
        return GitInSandbox(variables)
    # An agent can set HOME, and must not choose which other files are read.
    is_trusted = realpath_here(home) in map(realpath_here, homes())
    asked = _Configuration(home, settings, tuple(present), is_trusted)
    own = asked.read(())
    # Its own configuration says who commits in a repository, and the home's may depend on where that is.
    there = asked.read((repository.git_dir, repository.common_dir)) if repository is not None else {}
    for name, value in (own | there).items():
        variables |= dict.fromkeys(_VARIABLES.get(name, ()), value)
    if is_trusted and _IGNORED in own:
        ignored = realpath_here(_expanded(own[_IGNORED], home))
    if not is_trusted or not Path(ignored).is_file():
        return GitInSandbox(variables)
    variables |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": _IGNORED, "GIT_CONFIG_VALUE_0": ignored}
    return GitInSandbox(variables, (ignored,))


def _expanded(path: str, directory: str) -> str:
    """Return a path of a configuration in a directory as git understands it, for the home if it begins with `~/`."""
    return str(Path(directory) / path.removeprefix("~/"))


class _Configuration(NamedTuple):
    """The configuration of a home, as git reads it in the cage."""

    home: str
    settings: str
    files: tuple[str, ...]
    includes: bool
    """True if it may include other files."""

    def read(self, places: tuple[str, ...]) -> dict[str, str]:
        """Return what stands in each commit in the repository with these directories. Empty: in any."""
        files = (*self.files, *(f"{place}/config" for place in places))
        try:
            return _settings(self, places, _stamps(files))
        except TimeoutError:
            return {}  # The next command asks again.

    def included(self, file: str) -> list[str]:
        """Return the paths of the files that one file may include."""
        # As the file of a home, git would follow it at once, and end where it may not read what is included.
        homeless = self._replace(home="/nonexistent", settings="/nonexistent")
        found = homeless.look(("--file", file, "--no-includes", "--get-regexp", _INCLUDED), (file,))
        return [
            realpath_here(_expanded(path, self.home if path.startswith("~/") else os.path.dirname(file)))  # noqa: PTH120
            for _, path in found
        ]

    def look(self, words: tuple[str, ...], read: Iterable[str], git_dir: str = "") -> list[tuple[str, str]]:
        """Return the names and values of the settings that git finds. Nothing if it cannot be asked.

        Raises `TimeoutError` if it does not answer in time.
        """
        program = shutil.which("git", path=_TRUSTED_PATH)
        if program is None or cage_problem():
            return []
        environment = {"PATH": _TRUSTED_PATH, "HOME": self.home, "XDG_CONFIG_HOME": self.settings}
        environment |= {"GIT_CONFIG_NOSYSTEM": "1"} | ({"GIT_DIR": git_dir} if git_dir else {})
        try:
            seen = look(
                (program, "config", "--null", *words),
                environment,
                directory="/",
                read=tuple(read),
                timeout_s=LONGEST_S,
                most_bytes=_LONGEST_ANSWER,
            )
        except (OSError, ValueError):
            return []
        if seen.was_late:
            raise TimeoutError
        entries = (seen.output or b"").decode("utf-8", "replace").split("\0")
        return [(name, value) for name, _, value in (entry.partition("\n") for entry in entries) if name]


def _stamps(paths: Iterable[str]) -> tuple[tuple[int, ...], ...]:
    found = []
    for path in paths:
        with suppress(OSError):
            status = Path(path).stat()
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)


@lru_cache(maxsize=32)
def _settings(asked: _Configuration, places: tuple[str, ...], stamps: tuple[tuple[int, ...], ...]) -> dict[str, str]:
    del stamps  # It only belongs to the key of the cache.
    included = [path for file in asked.files if asked.includes for path in asked.included(file)]
    read = [path for path in (*asked.files, *included, *places) if Path(path).exists()]
    words = ("--includes" if asked.includes else "--no-includes", "--get-regexp", rf"^(user\.(name|email)|{_IGNORED})$")
    return dict(asked.look(words, read, *places[:1]))
