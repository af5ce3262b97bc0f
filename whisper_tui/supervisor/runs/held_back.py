"""Limits of a run that is held back, beside the changes that its condition names.

Its changes to caches are dropped, since each tool makes its cache anew; its output waits until it is decided, and goes
to nobody if it shows a secret (decision 36).
"""

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from whisper_tui.changes.change_records import Plan, drop_changes
from whisper_tui.changes.meanings import save_meanings
from whisper_tui.effects.file_view import Deadline
from whisper_tui.effects.git_reader import GitReader
from whisper_tui.model.errors import Refused
from whisper_tui.model.secrets import is_secret_name, secret_spans
from whisper_tui.policy.risks.sensitive_paths import names_secret
from whisper_tui.system import run_files

_CACHES_IN_HOME = frozenset(
    ".cache .npm .yarn .pnpm-store .node-gyp .bun/install/cache .deno .gradle/caches .gradle/daemon .m2/repository "
    ".ivy2/cache .sbt .cargo/registry .cargo/git .nuget/packages .pub-cache .composer/cache .config/configstore "
    ".cpanm go/pkg/mod Library/Caches".split()
)
_CACHES_IN_TMP = re.compile(
    r"/(?:var/)?tmp/(?:node-compile-cache|v8-compile-cache-\d+|npm-[\w-]+|pip-[\w-]+)(?:/.*)?\Z", re.DOTALL
)
MOST_SEARCHED = 4 << 20
"""Bytes of the output that are searched for secrets."""
_SHORTEST_SECRET = 8
"""Characters from which on the value of a variable is looked for: shorter ones occur everywhere."""
_PART = 90_000
_PERSONAL = frozenset(
    ".bash_history .zsh_history .python_history .node_repl_history .psql_history .mysql_history .sqlite_history "
    ".lesshst .viminfo .mozilla .thunderbird .var .local/share/keyrings".split()
)
"""Names in a home that begin with a dot and belong to its user, not to a program that commands need."""
MOST_CLOSED = 300
"""Entries beside the workspace that are closed one by one."""
GIT_BUDGET_S = 5.0
"""Seconds within which git says which of them it tracks."""
MOST_ENTRIES = 20_000
"""Entries among which files with secrets are looked for, those of upper directories first."""
_WITHOUT_SECRETS = frozenset({".git", "node_modules", "__pycache__", ".venv", "venv"})
"""Directories in which they are not looked for."""


def drop_caches(store: str, plan: Plan, homes: Iterable[str], workspace: str) -> None:
    """Take the changes of caches outside of the workspace out of what a run has changed."""
    inside = tuple(f"{home}/{name}" for home in homes for name in _CACHES_IN_HOME)

    def is_cache(path: str) -> bool:
        if path == workspace or path.startswith(f"{workspace}/"):
            return False
        return bool(_CACHES_IN_TMP.match(path)) or any(path == each or path.startswith(f"{each}/") for each in inside)

    if (left := drop_changes(store, plan, is_cache)) is not None:
        save_meanings(store, left)  # They go by the numbers of the changes.


def secret_files(directories: Iterable[str], private: Iterable[str]) -> tuple[str, ...]:
    """Return the files with secrets in these directories and below, which a run that is held back cannot read.

    Not those that git tracks: whoever reads the history reads them, and git would take them for changed. Raises
    `Refused` if git does not say which they are.
    """
    found = list(
        dict.fromkeys(path for directory in dict.fromkeys(directories) for path in _secret_files_in(directory))
    )
    if not found:
        return ()
    reader = GitReader(Deadline(GIT_BUDGET_S), private)
    tracked = set[str]()
    for directory in dict.fromkeys(str(Path(path).parent) for path in found):
        repository, _ = reader.repository(directory)
        if repository is not None:
            names = [path for path in found if path.startswith(f"{directory}/")]
            answer = reader.names(repository, "ls-files", "-z", "--", *names)
            if answer is None:
                raise Refused("git has not said which files with secrets it tracks", hint="Decide")
            tracked.update(answer)
    return tuple(path for path in found if path not in tracked)


def _secret_files_in(directory: str) -> Iterator[str]:
    pending, left = deque([directory]), MOST_ENTRIES
    while pending and left > 0:
        try:
            with os.scandir(pending.popleft()) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in _WITHOUT_SECRETS:
                            pending.append(entry.path)
                    elif names_secret(entry.path) and entry.is_file(follow_symlinks=False):
                        yield entry.path
        except OSError:
            continue


def personal_places(home: str, kept: Iterable[str], path: str) -> tuple[str, ...]:
    """Return what is in a home beside the workspace and installed programs: a run that is held back cannot read it.

    `kept`: real paths that stay readable. `path`: the directories of its programs, of which whole installations do.
    Raises `Refused` if there is too much to be closed.
    """
    tops = {top for each in path.split(":") if (top := _top_below(home, os.path.realpath(each))) if each}
    kept = tuple(each for each in kept if each.startswith(f"{home}/"))
    found: list[str] = []
    pending = [home]
    while pending:
        directory = pending.pop()
        try:
            names = sorted(os.listdir(directory))
        except OSError:
            continue
        for name in names:
            place = f"{directory}/{name}"
            is_of_program = directory == home and name.startswith(".") and name not in _PERSONAL
            if is_of_program or place in kept or place in tops:
                continue
            if any(each.startswith(f"{place}/") for each in kept):
                pending.append(place)
            elif not os.path.islink(place):
                found.append(place)
    if len(found) > MOST_CLOSED:
        raise Refused(f"{len(found):,} files and directories beside the workspace cannot be closed", hint="Decide")
    return tuple(found)


def _top_below(home: str, path: str) -> str:
    """Return the entry of a home in which a path lies. Empty: it lies elsewhere."""
    name = path[len(home) + 1 :].partition("/")[0] if path.startswith(f"{home}/") else ""
    return f"{home}/{name}" if name else ""


def why_withheld(
    attempt: str, environment: Mapping[str, str], closed: Callable[[], Iterable[str]], *, failed: bool
) -> Iterator[str]:
    """Yield why the output of a run may not go to its agent unasked, as clauses: it shows a secret, or misleads.

    `closed` looks through the workspace for the files that it could not read.
    """
    values = {
        value.encode(): name
        for name, value in environment.items()
        if is_secret_name(name) and len(value) >= _SHORTEST_SECRET
    }
    for stream in (run_files.OUT, run_files.ERR):
        try:
            with Path(attempt, stream).open("rb") as file:
                content = file.read(MOST_SEARCHED + 1)
        except FileNotFoundError:
            continue
        if len(content) > MOST_SEARCHED:
            yield "its output is too long to be searched for secrets"
            return
        if name := next((name for value, name in values.items() if value in content), ""):
            yield f"its output shows the value of {name}"
            return
        text = content.decode(errors="replace")
        try:
            hidden = closed() if text and (failed or stream == run_files.ERR) else ()
        except Refused as problem:
            yield problem.message
            return
        if name := next((name for path in hidden if (name := path.rpartition("/")[2]) in text), ""):
            yield f"it names {name}, which is closed to what nobody was asked about"
            return
        if any(secret_spans(text[at : at + _PART]) for at in range(0, len(text), _PART)):
            yield "its output shows what looks like a key or a password"
            return
