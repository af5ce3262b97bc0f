"""The sandbox profile of a call: the paths that it opens on this machine, and its minimal environment.

The keeper sets the sandbox up and knows the rights that all sandboxes share; this module adds those of the call.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from whisper_tui.model.run import Sandbox
from whisper_tui.model.state import CallRecord
from whisper_tui.supervisor.runs.executor import SandboxProfile
from whisper_tui.system.confinement import probe
from whisper_tui.system.host_files import home_of_user

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The PATH of unasked commands. An agent cannot write to any of these directories."""

INHERITED = frozenset(
    "LANG LANGUAGE TERM COLORTERM NO_COLOR CLICOLOR FORCE_COLOR COLUMNS LINES TZ USER LOGNAME".split()
)
"""Variables of a session that only affect presentation. All names with the prefix LC_ are inherited too."""

_VIEWERS = frozenset(
    "df findmnt free ipcs last lsblk lscpu lsof mount mountpoint netstat nproc pgrep pidof pidstat pmap procs ps "
    "pstree ss tload top tty uptime vmstat w who".split()
)
"""Programs that read /proc of other processes. Memory, environments and files of those stay closed to them."""

_PRIVATE_IN_HOME = tuple(
    ".ssh .gnupg .aws .azure .kube .docker .config .local .cache .mozilla .password-store .netrc .pgpass .npmrc "
    ".pypirc .git-credentials .bash_history .zsh_history .python_history .claude .claude.json .codex .gemini "
    ".vault-token .cargo/credentials.toml .m2/settings.xml .thunderbird .var snap".split()
)
"""Paths in a home directory that stay closed to unasked commands, even if the home is the workspace."""

_SECRET_IN_HOME = tuple(
    ".ssh .gnupg .aws .azure .kube .password-store .netrc .pgpass .pypirc .git-credentials .vault-token .mozilla "
    ".thunderbird .docker/config.json .config/gcloud .config/gh .config/git/credentials .cargo/credentials.toml "
    ".m2/settings.xml .claude/.credentials.json .codex/auth.json .gemini/oauth_creds.json .local/share/keyrings "
    ".local/share/opencode/auth.json .local/share/kilo/auth.json".split()
)
"""Paths in a home directory that hold secrets, and without which programs work."""

MOST_ENTRIES = 2000
"""How many entries beside a private one are opened individually. Further ones stay closed."""


@cache
def sandbox_problem() -> str:
    """Return why commands cannot be sandboxed on this machine, as a clause. Empty: they can."""
    return probe().problem


@cache
def landlock_version() -> int:
    """Return the version of the kernel's Landlock interface. 0: there is none."""
    return probe().version


def sandbox_description() -> str:
    """Describe the sandbox for `status` and `doctor`, in one sentence."""
    if sandbox_problem():
        return f"none, because {sandbox_problem()}: commands that need one are asked about"
    return f"Landlock {landlock_version()} and seccomp confine every command that runs without a human's decision"


def sandbox_profile_of(record: CallRecord, root: str, private: Iterable[str]) -> SandboxProfile | None:
    """Return the profile of a call's sandbox. `root`: the workspace; `private`: directories that stay closed in it."""
    sandbox = record.sandbox
    if sandbox is None:
        return None
    resolved = record.resolved
    cwd = (resolved.cwd if resolved else None) or record.spec.cwd
    closed = _real_paths((*private, *_private_in_home()))
    inside = tuple(_without(os.path.realpath(root or cwd), closed))
    repository = tuple(path for path in _repository(cwd) if path not in closed) if _runs(record, {"git"}) else ()
    writes = sandbox.kind == "workspace"
    return SandboxProfile(
        read=(*inside, *repository),
        execute=(*sandbox.execute, *(inside if writes else ())),
        write=(*inside, *repository) if writes else (),
        network=sandbox.network,
        processes=writes or _runs(record, _VIEWERS),
    )


def readable_paths(top: str, hidden: Iterable[str]) -> tuple[str, ...]:
    """Return the paths below a directory that a previewed command may read in a sandbox: all that are not hidden."""
    return tuple(_without(os.path.realpath(top), {os.path.realpath(path) for path in hidden}))


def minimal_environment(environment: Mapping[str, str], sandbox: Sandbox | None) -> dict[str, str]:
    """Return the environment of an unasked command."""
    # An allow list, because no list of dangerous variables is complete.
    kept = {name: value for name, value in environment.items() if name in INHERITED or name.startswith("LC_")}
    named = ":".join(sandbox.execute) if sandbox is not None else ""
    return kept | {
        "PATH": f"{named}:{SYSTEM_PATH}" if named else SYSTEM_PATH,
        "HOME": home_of_user(),
        "SHELL": "/bin/sh",
    }


def secret_paths(home: str, workspaces: Iterable[str]) -> tuple[str, ...]:
    """Return the paths of a home directory that hold secrets, except those in a workspace below it."""
    home = os.path.realpath(home)
    inside = tuple(path.rstrip("/") + "/" for path in workspaces if path != home)
    found = (f"{home}/{name}" for name in _SECRET_IN_HOME)
    return tuple(path for path in found if os.path.lexists(path) and not path.startswith(inside))


def _private_in_home() -> Iterator[str]:
    homes = {home_of_user(), os.environ.get("HOME") or home_of_user()}
    return (f"{home.rstrip('/')}/{name}" for home in homes for name in _PRIVATE_IN_HOME)


def _real_paths(paths: Iterable[str]) -> set[str]:
    """Return the real paths of these; their directories, which most of them share, are looked up once."""
    directories: dict[str, str] = {}
    found = set()
    for path in paths:
        above, _, name = path.rpartition("/")
        if not path.startswith("/") or name in {"", ".", ".."}:
            found.add(os.path.realpath(path))
            continue
        if above not in directories:
            directories[above] = os.path.realpath(above or "/")
        real = f"{directories[above].rstrip('/')}/{name}"
        found.add(os.path.realpath(real) if os.path.islink(real) else real)  # noqa: PTH114 (called for each start)
    return found


def _without(top: str, closed: set[str]) -> Iterator[str]:
    """Yield the largest subtrees of a directory that contain no closed path."""
    # A Landlock rule opens a whole tree and has no exceptions.
    beneath = top.rstrip("/") + "/"
    if top in closed:
        return
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
        if not Path(path).is_symlink():
            yield from _without(path, closed)


def _runs(record: CallRecord, programs: Iterable[str]) -> bool:
    """True if one of these programs is among the commands of a call."""
    resolved = record.resolved
    named = [meaning.words[0] for meaning in resolved.commands if meaning.words] if resolved else []
    return any(
        word is not None and word.rpartition("/")[2] in programs for word in (*named, *record.spec.command.words()[:1])
    )


def _repository(cwd: str) -> Iterator[str]:
    """Yield the directories of the repository around a directory, the work tree first."""
    for directory in (Path(cwd), *Path(cwd).parents):
        found = directory / ".git"
        if found.is_dir():
            yield str(directory)
            return
        # The `.git` of a linked work tree or a submodule is a file that names a directory elsewhere.
        if found.is_file():
            yield str(directory)
            yield from _linked(found)
            return


def _linked(file: Path) -> Iterator[str]:
    """Yield the directories that a `.git` file names, if they belong to a repository."""
    try:
        kind, _, named = file.read_text()[:4096].partition(":")
        git = (file.parent / named.strip()).resolve()
        if kind.strip() != "gitdir" or not (git / "HEAD").is_file():
            return
        yield str(git)
        common = git / "commondir"
        if common.is_file():
            yield str((git / common.read_text()[:4096].strip()).resolve())
    except (OSError, ValueError):
        return
