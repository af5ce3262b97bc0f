"""The sandbox profile of a call: the paths that it opens on this machine, and its minimal environment.

The keeper sets the sandbox up and knows the rights that all sandboxes share; this module adds those of the call.
"""

import os
from collections.abc import Iterable, Mapping
from functools import cache

from whisper_tui.model.run import Sandbox
from whisper_tui.model.state import CallRecord
from whisper_tui.model.verdict import Repository
from whisper_tui.supervisor.runs.executor import SandboxProfile
from whisper_tui.system.closed_paths import closed_paths, contains_a_home, lies_below, opened_paths
from whisper_tui.system.confinement import probe
from whisper_tui.system.host_files import home_of_user, realpath_here

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

_SECRET_IN_HOME = tuple(
    ".ssh .gnupg .aws .azure .kube .password-store .netrc .pgpass .pypirc .git-credentials .vault-token .mozilla "
    ".thunderbird .docker/config.json .config/gcloud .config/gh .config/git/credentials .cargo/credentials.toml "
    ".m2/settings.xml .claude/.credentials.json .codex/auth.json .gemini/oauth_creds.json .local/share/keyrings "
    ".local/share/opencode/auth.json .local/share/kilo/auth.json".split()
)
"""Paths in a home directory that hold secrets, and without which programs work."""


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
    return f"works (Landlock {landlock_version()}, seccomp), for every command that runs without a human's decision"


def sandbox_profile_of(record: CallRecord, root: str, private: Iterable[str]) -> SandboxProfile | None:
    """Return the profile of a call's sandbox. `root`: the workspace; `private`: directories that stay closed in it."""
    sandbox = record.sandbox
    if sandbox is None:
        return None
    resolved = record.resolved
    top = realpath_here(root or (resolved.cwd if resolved else None) or record.spec.cwd)
    private = tuple(map(realpath_here, private))
    closed = closed_paths(private)
    inside = opened_paths((top,), closed)
    repository = resolved.repository if resolved is not None else None
    around, git = _opened_of(repository, top, closed) if repository is not None else ((), ())
    writes = sandbox.kind == "workspace"
    return SandboxProfile(
        read=(*inside, *around, *git),
        execute=(
            *opened_paths(map(realpath_here, sandbox.execute), closed),
            *(path for path in map(realpath_here, sandbox.programs) if not lies_below(path, private)),
            *(inside if writes else ()),
        ),
        write=(*inside, *git) if writes else (),
        network=sandbox.network,
        processes=writes or runs_one_of(record, _VIEWERS),
    )


def readable_paths(top: str, hidden: Iterable[str]) -> tuple[str, ...]:
    """Return the paths below a directory that a previewed command may read in a sandbox: all that are not hidden."""
    return opened_paths((realpath_here(top),), frozenset(map(realpath_here, hidden)))


def minimal_environment(environment: Mapping[str, str], sandbox: Sandbox | None) -> dict[str, str]:
    """Return the environment of an unasked command."""
    # An allow list, because no list of dangerous variables is complete.
    kept = {name: value for name, value in environment.items() if name in INHERITED or name.startswith("LC_")}
    named = sandbox.execute if sandbox is not None else ()
    # Last: no other program that lies beside one of these takes the place of a program of the system.
    beside = dict.fromkeys(os.path.dirname(path) for path in sandbox.programs) if sandbox is not None else ()
    return kept | {
        "PATH": ":".join((*named, SYSTEM_PATH, *beside)),
        "HOME": home_of_user(),
        "SHELL": "/bin/sh",
    }


def secret_paths(home: str, workspaces: Iterable[str]) -> tuple[str, ...]:
    """Return the paths of a home directory that hold secrets, except those in a workspace below it."""
    home = realpath_here(home)
    inside = tuple(path.rstrip("/") + "/" for path in workspaces if path != home)
    found = (f"{home}/{name}" for name in _SECRET_IN_HOME)
    return tuple(path for path in found if os.path.lexists(path) and not path.startswith(inside))


def _opened_of(repository: Repository, top: str, closed: frozenset[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what is opened of a repository outside of the workspace: of its work tree, and of its own directory.

    Nothing, unless it is the workspace's own: a `.git` in the workspace or above it, or one that a linked work tree
    there names, and that names the work tree in turn. `find_repository` has checked that.
    """
    tree, common = realpath_here(repository.work_tree), repository.common_dir
    is_around = lies_below(top, (tree,))
    if not (is_around or lies_below(tree, (top,))) or (is_around and tree != top and contains_a_home(tree)):
        return (), ()
    if lies_below(common, closed) or contains_a_home(common):
        return (), ()
    git = () if lies_below(common, (top,)) else opened_paths((common,), closed)
    return opened_paths((tree,), closed) if is_around and tree != top else (), git


def runs_one_of(record: CallRecord, programs: Iterable[str]) -> bool:
    """True if one of these programs is among the commands of a call."""
    resolved = record.resolved
    named = [meaning.words[0] for meaning in resolved.commands if meaning.words] if resolved else []
    return any(
        word is not None and word.rpartition("/")[2] in programs for word in (*named, *record.spec.command.words()[:1])
    )
