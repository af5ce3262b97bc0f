"""What a confined command gets: the paths of its sandbox on this machine, and its environment.

The keeper sets the sandbox up and knows what every sandbox permits; here stands what depends on the call.
"""

import os
import pwd
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from whisper_tui.model.sandbox import Sandbox
from whisper_tui.model.state import CallRecord
from whisper_tui.supervisor.executor import SandboxProfile
from whisper_tui.supervisor.keeper import sandbox as keeper_sandbox

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where programs that nobody was asked about are looked up: no directory in which an agent could have put one."""

PASSED_ON = frozenset(
    "LANG LANGUAGE TERM COLORTERM NO_COLOR CLICOLOR FORCE_COLOR COLUMNS LINES TZ USER LOGNAME".split()
)
"""Variables of a session that say how to show things, and nothing else. All that begin with LC_ are among them."""

_VIEWERS = frozenset(
    "df findmnt free ipcs last lsblk lscpu lsof mount mountpoint netstat nproc pgrep pidof pidstat pmap procs ps "
    "pstree ss tload top tty uptime vmstat w who".split()
)
"""Programs that show what /proc says about processes. Memory, environments and files of others stay closed to them."""

_PRIVATE_IN_HOME = tuple(
    ".ssh .gnupg .aws .azure .kube .docker .config .local .cache .mozilla .password-store .netrc .pgpass .npmrc "
    ".pypirc .git-credentials .bash_history .zsh_history .python_history .claude .claude.json .codex .gemini "
    ".vault-token .cargo/credentials.toml .m2/settings.xml .thunderbird .var snap".split()
)
"""What even a workspace that is somebody's home does not open to a command that nobody was asked about."""

MOST_ENTRIES = 2000
"""Directory entries that are named one by one around something private. More are left closed."""


@cache
def sandbox_problem() -> str:
    """Why commands cannot be sandboxed on this machine, as a clause. Empty: they can."""
    return keeper_sandbox.probe().problem


@cache
def landlock_version() -> int:
    """The version of the kernel's interface of Landlock. 0: there is none."""
    return keeper_sandbox.probe().version


def sandbox_words() -> str:
    """What `status` and `doctor` say about the sandbox, as one sentence."""
    if sandbox_problem():
        return f"none, for {sandbox_problem()}: what would run in one is asked"
    return f"Landlock {landlock_version()} and seccomp hold every command that runs without a human's decision"


def profile(record: CallRecord, root: str, private: Iterable[str]) -> SandboxProfile | None:
    """The paths of a call's sandbox. `root`: the workspace; `private`: directories that stay closed within it."""
    sandbox = record.sandbox
    if sandbox is None:
        return None
    resolved = record.resolved
    cwd = (resolved.cwd if resolved else None) or record.spec.cwd
    closed = {os.path.realpath(path) for path in (*private, *_private_in_home())}
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


def shown_only(environment: Mapping[str, str], sandbox: Sandbox | None) -> dict[str, str]:
    """The environment of a command that nobody was asked about: an allow list, not what a list forgot to forbid."""
    kept = {name: value for name, value in environment.items() if name in PASSED_ON or name.startswith("LC_")}
    named = ":".join(sandbox.execute) if sandbox is not None else ""
    return kept | {"PATH": f"{named}:{SYSTEM_PATH}" if named else SYSTEM_PATH, "HOME": _home(), "SHELL": "/bin/sh"}


@cache
def _home() -> str:
    """The home of this user as the system knows it, whatever HOME says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "/"


def _private_in_home() -> Iterator[str]:
    homes = {_home(), os.environ.get("HOME") or _home()}
    return (f"{home.rstrip('/')}/{name}" for home in homes for name in _PRIVATE_IN_HOME)


def _without(top: str, closed: set[str]) -> Iterator[str]:
    """The largest parts of a directory that hold nothing closed. A rule of Landlock cannot leave anything out."""
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
        if not Path(path).is_symlink():
            yield from _without(path, closed)


def _runs(record: CallRecord, programs: Iterable[str]) -> bool:
    """Whether one of these programs is among the commands of a call."""
    resolved = record.resolved
    named = [meaning.words[0] for meaning in resolved.commands if meaning.words] if resolved else []
    return any(
        word is not None and word.rpartition("/")[2] in programs for word in (*named, *record.spec.command.words()[:1])
    )


def _repository(cwd: str) -> Iterator[str]:
    """Where the repository around a directory lies, its work tree first; worktrees keep theirs somewhere else."""
    for directory in (Path(cwd), *Path(cwd).parents):
        found = directory / ".git"
        if found.is_dir():
            yield str(directory)
            return
        if found.is_file():
            yield str(directory)
            yield from _linked(found)
            return


def _linked(file: Path) -> Iterator[str]:
    """The directories that a `.git` file names, if they are a repository's."""
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
