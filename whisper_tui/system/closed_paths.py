"""Paths that stay closed below directories that are opened to a confined process: the private ones of a home."""

import os
from collections.abc import Iterable, Iterator

from whisper_tui.system.host_files import home_of_user, realpath_here

_PRIVATE_IN_HOME = tuple(
    ".ssh .gnupg .aws .azure .kube .docker .config .local .cache .mozilla .password-store .netrc .pgpass .npmrc "
    ".pypirc .git-credentials .bash_history .zsh_history .python_history .claude .claude.json .codex .gemini "
    ".vault-token .cargo/credentials.toml .m2/settings.xml .thunderbird .var snap".split()
)
"""Paths in a home directory that stay closed, even if the home is the workspace."""

MOST_ENTRIES = 2000
"""How many entries beside a closed one are opened individually. Further ones stay closed."""


def closed_paths(private: Iterable[str]) -> frozenset[str]:
    """Return the real paths that stay closed: these, and the private ones in the homes of the user."""
    beneath = (f"{home.rstrip('/')}/{name}" for home in homes() for name in _PRIVATE_IN_HOME)
    return frozenset(real_paths((*private, *beneath)))


def opened_paths(tops: Iterable[str], closed: frozenset[str]) -> tuple[str, ...]:
    """Return the largest subtrees of these real directories that contain no closed path, each once."""
    found: list[str] = []
    for top in tops:
        if not lies_below(top, found):
            found += _without(top, closed)
    return tuple(found)


def lies_below(path: str, directories: Iterable[str]) -> bool:
    """True if a path is one of these directories, or lies below one."""
    return any(path == each or path.startswith(each.rstrip("/") + "/") for each in directories)


def contains_a_home(directory: str) -> bool:
    """True if a real directory is a home of the user, or lies above one."""
    return any(lies_below(realpath_here(home), (directory,)) for home in homes())


def real_paths(paths: Iterable[str]) -> set[str]:
    """Return the real paths of these; their directories, which most of them share, are looked up once."""
    directories: dict[str, str] = {}
    found = set()
    for path in paths:
        above, _, name = path.rpartition("/")
        if not path.startswith("/") or name in {"", ".", ".."}:
            found.add(realpath_here(path))
            continue
        if above not in directories:
            directories[above] = realpath_here(above or "/")
        real = f"{directories[above].rstrip('/')}/{name}"
        found.add(realpath_here(real) if os.path.islink(real) else real)
    return found


def homes() -> set[str]:
    """Return the homes of the user who runs this."""
    # An agent can set HOME, and a human may have moved it.
    return {home_of_user(), os.environ.get("HOME") or home_of_user()}


def _without(top: str, closed: frozenset[str]) -> Iterator[str]:
    """Yield the largest subtrees of a directory that contain no closed path."""
    # A Landlock rule opens a whole tree and has no exceptions.
    if top in closed:
        return
    beneath = top.rstrip("/") + "/"
    if not any(path.startswith(beneath) for path in closed):
        yield top
        return
    try:
        names = sorted(entry.name for entry in os.scandir(top))[:MOST_ENTRIES]
    except OSError:
        return
    for name in names:
        path = beneath + name
        # A link could lead to a closed path.
        if not os.path.islink(path):
            yield from _without(path, closed)
