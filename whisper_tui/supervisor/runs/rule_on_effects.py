"""The condition of a rule on effects, held against what a preview has found (decision 12)."""

import grp
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from whisper_tui.changes import change_records
from whisper_tui.changes.partial_undo import is_at
from whisper_tui.effects.file_view import Deadline
from whisper_tui.effects.git_history import ChangedGitFile, rewritten_history
from whisper_tui.effects.git_reader import GitReader
from whisper_tui.effects.run_by_git import directories_of_hooks, kind_for_git
from whisper_tui.model.call import LARGEST_EDITED
from whisper_tui.model.ending import Exited
from whisper_tui.model.preview import EXACT_WAYS, WAY_NAMES, PreviewReport
from whisper_tui.model.verdict import PreviewCondition
from whisper_tui.policy.rules.rule import EVERYTHING, FilePlace, file_matches
from whisper_tui.supervisor.runs.preview_changes import (
    EXECUTABLE,
    MOST_NAMED,
    ChangedPath,
    PreviewStore,
    named,
)
from whisper_tui.system.host_files import read_regular

HISTORY_BUDGET_S = 5.0
"""Seconds within which git says whether a branch has only grown."""


@dataclass(frozen=True)
class RuleOnEffects:
    """One condition of a rule, and the changes of one preview."""

    condition: PreviewCondition
    store: PreviewStore
    workspace: str

    def beyond(self, report: PreviewReport) -> Iterator[str]:
        """Yield why the changes are not made real by the rule, as clauses. Nothing: they are."""
        if report.way not in EXACT_WAYS:
            yield f"it was previewed with {WAY_NAMES[report.way]}, which shows less than a rule needs"
        if (group := _foreign_group(self.workspace)) is not None:
            yield f"{named(self.workspace)} belongs to {group}, and a view cannot change files of another group"
        if report.problem or report.stopped:
            yield "it was ended early" if report.stopped else report.problem
        elif not isinstance(report.ending, Exited):
            yield "it did not exit by itself"
        elif self.condition.exit_code is not None and report.ending.code != self.condition.exit_code:
            yield f"its exit code is {report.ending.code}, and the rule wants {self.condition.exit_code}"
        for access in report.blocked:
            if access.what != "network" or not self.condition.network:
                yield f"it tried to reach {access.target}"
                break
        else:
            if report.more_blocked:
                yield "it tried to reach more than is listed"
        if report.left:
            yield f"it left {report.left[0]} running"
        yield from self._beyond_in_changes()

    def _beyond_in_changes(self) -> Iterator[str]:
        """Yield what in the changes is not permitted by the condition of a rule, as clauses."""
        deleted = sum(row.action == "deletes" for row in self.store.rows)
        if deleted > self.condition.deletes:
            yield f"it deletes {deleted:,} files or directories, and the rule permits {self.condition.deletes:,}"
        elsewhere = [row.path for row in self.store.rows if not self._is_permitted(row)]
        if elsewhere:
            more = len(elsewhere) - MOST_NAMED
            first = ", ".join(map(named, elsewhere[:MOST_NAMED])) + (f" and {more:,} more" if more > 0 else "")
            yield f"it changes {first}, where the rule permits no writes"
        for row in self.store.rows if self.condition.no_writes else ():
            if any(self._matches(pattern, row.path) for pattern in self.condition.no_writes):
                yield f"it changes {named(row.path)}, and a rule asks about edits of it, or denies them"
                break
        for row, flags in zip(self.store.rows, self.store.flags, strict=True):
            other = self._other_name(row)
            if other and not self._permits(other):
                yield f"{named(row.path)} becomes a further name of {named(other)}, where the rule permits no writes"
                return
            if leads := self._link_elsewhere(row):
                yield f"{named(row.path)} becomes a link to {named(leads)}, where the rule permits no writes"
                return
            flag = next((flag for flag in flags if flag != EXECUTABLE), None)
            if flag is not None:
                yield f"of {named(row.path)}: {flag}"
                return
        if not self.condition.rewrites_history:
            yield from self._run_by_git()
            yield from self._rewritten_history()

    def _run_by_git(self) -> Iterator[str]:
        """Yield changed files that git runs, or that name what it runs, by where its settings are and lead."""
        hooks = directories_of_hooks((self.workspace,))
        for row in self.store.rows:
            if kind := kind_for_git(row.path, hooks):
                yield f"{named(row.path)} is {kind}"

    def _link_elsewhere(self, row: ChangedPath) -> str:
        """Return where a new link leads, if a rule permits no writes there. Empty: it does, or it is no link."""
        if row.after is None or not stat.S_ISLNK(row.after.mode):
            return ""
        place = self.store.content_path(row.change, new=True)
        leads = os.readlink(os.path.join(place, row.below) if row.below else place)
        # Not resolved: what a further link on the way leads to is a change of that link.
        path = os.path.normpath(os.path.join(os.path.dirname(row.path), leads))
        return "" if self._permits(path) else path

    def _rewritten_history(self) -> Iterator[str]:
        """Yield what the changes do to the branches and tags of git beside adding to them, as clauses."""
        repositories: dict[str, dict[str, ChangedGitFile]] = {}
        for row in self.store.rows:
            top, inside, name = row.path.partition("/.git/")
            if inside and row.action == "attributes":
                # Git touches objects that it needs again, and their content stays.
                if row.before is not None and row.after is not None and row.before.mode != row.after.mode:
                    yield f"it changes who may read or write {named(name)} of git"
            elif inside:
                repositories.setdefault(f"{top}/.git", {})[name] = self._git_file(row, name)
            elif row.path.endswith("/.git") and (row.after is None or not row.after.is_directory):
                yield f"it changes which repository {named(top)} belongs to"
        for directory, files in repositories.items():
            reader = GitReader(Deadline(HISTORY_BUDGET_S), self.store.own)
            repository, _ = reader.repository(os.path.dirname(directory))

            def is_ancestor(old: str, new: str) -> bool:
                if repository is None:  # noqa: B023  it is called within this round
                    return False
                return reader.ask(repository, "merge-base", "--is-ancestor", old, new) is not None  # noqa: B023

            packed, _ = read_regular(os.path.join(directory, "packed-refs"), LARGEST_EDITED)
            yield from rewritten_history(files, packed or b"", is_ancestor)

    def _git_file(self, row: ChangedPath, name: str) -> ChangedGitFile:
        found = [each for each in (row.before, row.after) if each is not None]
        return ChangedGitFile(
            name=name,
            is_directory=all(each.is_directory for each in found),
            old=lambda: self.store.content(row, row.before, is_new=False).data,
            new=lambda: self.store.content(row, row.after, is_new=True).data,
            is_new=row.before is None,
            is_gone=row.after is None,
            is_plain=all(each.is_file for each in found),
        )

    def _other_name(self, row: ChangedPath) -> str:
        """Return the name that the file of a new name has already. Empty: it is a file of its own."""
        change = self.store.plan.changes[row.change]
        if row.below:
            return next((real for name, real in change.relinks if name == row.below), "")
        return change.target if change.op == change_records.LINK else ""

    def _is_permitted(self, row: ChangedPath) -> bool:
        """True if a changed file is where the rule permits writes."""
        if self._permits(row.path):
            return True
        # `build/**` names all that is in `build`, and the directory itself has to be made first.
        is_made = row.action == "creates" and row.after is not None and row.after.is_directory
        return is_made and self._permits(f"{row.path}/x")

    def _permits(self, path: str) -> bool:
        # Nearly all paths of most commands, without a look at a pattern.
        if self._permits_workspace and path.startswith(self._below) and path != self._below:
            return True
        return any(self._matches(pattern, path) for pattern in self.condition.writes_within)

    @cached_property
    def _permits_workspace(self) -> bool:
        return EVERYTHING in self.condition.writes_within

    @cached_property
    def _below(self) -> str:
        """How all paths in the workspace begin."""
        return self.workspace.rstrip("/") + "/"

    def _matches(self, pattern: str, path: str) -> bool:
        inside = path[len(self.workspace.rstrip("/")) + 1 :] if is_at(path, self.workspace) else ""
        place = FilePlace(path, path, inside)
        return file_matches(pattern, place, self.workspace, self.store.home, wide=False)


def _foreign_group(workspace: str) -> str | None:
    """Return the group of a workspace, if overlayfs cannot copy its files up for this user: their group has no number.

    A command would fail in the view, although it works outside of it.
    """
    try:
        group = os.stat(workspace).st_gid
    except OSError:
        return None
    if os.geteuid() == 0 or group == os.getegid():
        return None
    try:
        return f"the group {grp.getgrgid(group).gr_name}"
    except KeyError:
        return f"the group {group}"
