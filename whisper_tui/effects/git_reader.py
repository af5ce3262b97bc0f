"""Questions to git about a repository: answered by a git that only reads, in a cage where the system has one."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence

from whisper_tui.effects.changes import printable
from whisper_tui.effects.file_view import Deadline
from whisper_tui.effects.git_repository import NEUTRAL, find_repository, pin_repository
from whisper_tui.model.effects import DroppedCommit, Removal
from whisper_tui.model.verdict import Repository
from whisper_tui.system import host_files
from whisper_tui.system.caged_program import Looked, cage_problem, look
from whisper_tui.system.closed_paths import closed_paths, opened_paths

_TRUSTED_PATH = "/usr/bin:/bin:/usr/local/bin:/opt/homebrew/bin"
"""The directories in which git is looked for: never one that an agent may write to."""

NO_REPOSITORY = "there is no git repository"
MAY_RUN_PROGRAMS = "the configuration of the repository may run programs"
LONGEST_ANSWER = 8 * 1024 * 1024
MOST_COMMITS = 20
LONGEST_SUBJECT = 200
INDEX = ":0"
"""The index as the source of a content."""
MOST_PATHSPECS = 200
"""Paths that git is asked about at once."""


class GitReader:
    """Asks git about the repositories around the directories of one call."""

    def __init__(self, deadline: Deadline, closed: Iterable[str] = ()) -> None:
        """`closed`: paths that git does not read either, beside the private ones of the home directory."""
        self._deadline = deadline
        self._closed = closed_paths(closed)
        self._known: dict[str, tuple[Repository | None, str]] = {}
        self._states: dict[str, tuple[str | None, int | None]] = {}
        self._open: dict[str, tuple[str, ...]] = {}
        self._program = shutil.which("git", path=_TRUSTED_PATH)

    def repository(self, directory: str) -> tuple[Repository | None, str]:
        """The repository around a directory, and `MAY_RUN_PROGRAMS` if its own git would do more than it says.

        Or None, and the reason why git is not asked, as a clause.
        """
        real = host_files.realpath(directory)
        if real not in self._known:
            self._known[real] = self._look(real)
        return self._known[real]

    def _look(self, real: str) -> tuple[Repository | None, str]:
        repository, neutral = find_repository(real)
        if repository is not None and host_files.place():
            return None, "git is not run at another place before the command is approved"
        if repository is None:
            return (
                None,
                NO_REPOSITORY if neutral else "the repository is not one that git may be asked about",
            )
        if not neutral and cage_problem():
            return None, f"{MAY_RUN_PROGRAMS}, so git was not asked"
        if self._program is None:
            return None, "git was not found"
        return repository, "" if neutral else MAY_RUN_PROGRAMS

    def ask(self, repository: Repository, *words: str) -> bytes | None:
        """The output of one git command that only reads. None: it failed, or did not answer in time."""
        if self._deadline.is_over or self._program is None:
            return None
        environment = {
            "PATH": _TRUSTED_PATH,
            "HOME": "/nonexistent",
            "LC_ALL": "C.UTF-8",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_LITERAL_PATHSPECS": "1",
            **NEUTRAL,
            **pin_repository(repository, repository.work_tree),
        }
        argv = [self._program, "-c", "core.quotePath=false", *words]
        try:
            seen = self._asked(repository, argv, environment)
        except (OSError, ValueError):
            return None
        self._deadline.was_missed |= seen.was_late
        return seen.output

    def _asked(self, repository: Repository, argv: list[str], environment: dict[str, str]) -> Looked:
        directory, seconds = repository.work_tree, self._deadline.left + 0.05
        if cage_problem():
            return _uncaged(argv, environment, directory, seconds)
        if directory not in self._open:
            tops = (directory, repository.common_dir)
            self._open[directory] = opened_paths(tops, self._closed)
        read = self._open[directory]
        return look(argv, environment, directory=directory, read=read, timeout_s=seconds, most_bytes=LONGEST_ANSWER)

    def line(self, repository: Repository, *words: str) -> str | None:
        """The one line that git answers. None: it failed, or the answer is empty."""
        answer = self.ask(repository, *words)
        text = None if answer is None else answer.decode("utf-8", "replace").strip()
        return printable(text) if text else None

    def commit(self, repository: Repository, revision: str) -> str | None:
        """The full id of the commit that a revision means. None: there is none."""
        found = self.line(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}")
        return found if found and re.fullmatch(r"[0-9a-f]{40,64}", found) else None

    def names(self, repository: Repository, *words: str) -> list[str] | None:
        """Names that git prints with NUL between them, as absolute paths."""
        answer = self.ask(repository, *words)
        if answer is None:
            return None
        return [os.path.join(repository.work_tree, os.fsdecode(name)) for name in answer.split(b"\0") if name]

    def content(self, repository: Repository, source: str, path: str) -> bytes | None:
        """The bytes that git would write to a file of a commit or of `INDEX`. None: there is none, or no answer."""
        name = os.path.relpath(path, repository.work_tree)
        return self.ask(repository, "cat-file", "--filters", f"{source}:{name}")

    def statuses(self, repository: Repository, *words: str) -> list[tuple[str, str]] | None:
        """Letters and absolute paths of `git diff --name-status`."""
        answer = self.ask(repository, "diff", "--name-status", "-z", "--no-renames", "--ignore-submodules=all", *words)
        if answer is None:
            return None
        parts = [os.fsdecode(part) for part in answer.split(b"\0")]
        root = repository.work_tree
        return [(kind, os.path.join(root, name)) for kind, name in zip(parts[::2], parts[1::2], strict=False)]

    def count(self, repository: Repository, *words: str) -> int | None:
        """The number of commits that `git rev-list` selects."""
        found = self.line(repository, "rev-list", "--count", *words)
        return int(found) if found and found.isdecimal() else None

    def commits(self, repository: Repository, *words: str) -> tuple[tuple[DroppedCommit, ...], int]:
        """The newest commits that `git log` selects, and how many more there are."""
        answer = self.ask(repository, "log", f"-n{MOST_COMMITS}", "--format=%h %s", *words)
        lines = [] if answer is None else answer.decode("utf-8", "replace").splitlines()
        found = tuple(
            DroppedCommit(id=name, subject=subject[:LONGEST_SUBJECT])
            for name, _, subject in (line.partition(" ") for line in lines)
        )
        more = 0
        if len(found) == MOST_COMMITS:
            more = max(0, (self.count(repository, *words) or 0) - len(found))
        return found, more

    def state(self, repository: Repository) -> tuple[str | None, int | None]:
        """The current branch, and the number of files with uncommitted changes, as they are before the command."""
        if repository.work_tree not in self._states:
            self._states[repository.work_tree] = self._state(repository)
        return self._states[repository.work_tree]

    def _state(self, repository: Repository) -> tuple[str | None, int | None]:
        answer = self.ask(repository, "status", "--porcelain=v2", "--branch", "-z", "--ignore-submodules=all")
        if answer is None:
            return None, None
        parts = iter(answer.split(b"\0"))
        branch, changed = None, 0
        for part in parts:
            if part.startswith(b"# branch.head "):
                name = printable(os.fsdecode(part[14:]))
                branch = None if name == "(detached)" else name
            elif part[:2] in {b"1 ", b"2 ", b"u ", b"? "}:
                changed += 1
                if part.startswith(b"2 "):
                    next(parts, None)  # the name before a rename stands in a part of its own
        return branch, changed

    def restorable(self, removal: Removal, names: Sequence[str]) -> Removal:
        """The same removal with what git knows about its files."""
        if not names:
            return removal.model_copy(update={"no_git": ""})
        if any(".git" in name.split("/") for name in names):
            return removal.model_copy(update={"no_git": "a repository itself is deleted"})
        start = os.path.dirname(names[0])
        repository, why = self.repository(start)
        if repository is None:
            return removal.model_copy(update={"no_git": why})
        root = repository.work_tree.rstrip("/") + "/"
        wanted = [path for path in removal.paths if path.startswith(root)]
        if len(wanted) < len(removal.paths) or len(wanted) > MOST_PATHSPECS or not removal.complete:
            return removal.model_copy(update={"no_git": "not all of them are known to be in one repository"})
        tracked = self.names(repository, "ls-files", "-z", "--", *wanted)
        modified = self.names(repository, "ls-files", "-z", "-m", "-d", "--", *wanted)
        untracked = self.names(repository, "ls-files", "-z", "-o", "--exclude-standard", "--", *wanted)
        if tracked is None or modified is None or untracked is None:
            return removal.model_copy(update={"no_git": "git did not answer"})
        present = set(names)
        known, changed = present & set(tracked), present & set(modified)
        new = present & set(untracked)
        return removal.model_copy(
            update={
                "restorable": len(known - changed),
                "modified": len(changed),
                "untracked": len(new),
                "ignored": len(present - known - new),
            }
        )


def _uncaged(argv: list[str], environment: dict[str, str], directory: str, seconds: float) -> Looked:
    """Ask without a cage: only about a repository whose settings run nothing, as `GitReader._look` sees to."""
    try:
        done = subprocess.run(
            argv,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Looked(None, was_late=True)
    return Looked(done.stdout if done.returncode == 0 and len(done.stdout) <= LONGEST_ANSWER else None)


def unquoted_name(line: bytes) -> str | None:
    """The path in a line of `git clean -n`."""
    match = re.match(rb"Would (?:remove|skip repository) (.*)", line, re.DOTALL)
    if match is None or not line.startswith(b"Would remove"):
        return None
    name = match[1].rstrip(b"/")
    if name.startswith(b'"'):
        name = name[1:].removesuffix(b'"')
        name = re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8) & 0xFF]), name)
        names = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
        name = re.sub(rb"\\(.)", lambda found: names.get(found[1], found[1]), name)
    return os.fsdecode(name)
