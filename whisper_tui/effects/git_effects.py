"""Git commands that change a work tree, a branch or a remote: the files and the commits that they are about."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from whisper_tui.effects.changes import Changes, diff_of, printable
from whisper_tui.effects.file_programs import record_program
from whisper_tui.effects.file_view import Found
from whisper_tui.effects.git_reader import INDEX, NO_REPOSITORY, GitReader, unquoted_name
from whisper_tui.effects.git_repository import setting_is_harmless
from whisper_tui.effects.host_effects import record_remote_host
from whisper_tui.effects.operands import ParsedWords, parse_words
from whisper_tui.effects.script_code import GIT_HOOKS, record_git_hooks
from whisper_tui.effects.text_walk import MOST_NAMES, Step
from whisper_tui.model.effects import GitEffect, LostText
from whisper_tui.model.verdict import Repository
from whisper_tui.policy.commands.argv import GitCommand, parse_git
from whisper_tui.policy.commands.read_only_programs import git_only_reads
from whisper_tui.system import host_files

_ONLY_GIT_DIRECTORY = frozenset(
    (
        "add commit tag branch fetch remote config notes push update-ref gc reflog repack prune symbolic-ref "
        "maintenance update-index pack-refs replace"
    ).split()
)
"""Subcommands that leave the work tree alone."""

_OTHER_SETTINGS = ("-f", "-e", "--f", "--g", "--s", "--e")
"""Options of `git config` for another file than that of the repository: --file, --global, --system; and --edit."""

_TELLING = frozenset(
    "--hard --soft --mixed --amend -D -d --delete --force -f --force-with-lease --abort --cached --staged".split()
)
"""Options without which the name of a subcommand does not say what it does."""


MOST_READ, MOST_STASHES = 20, 3
"""Files whose content git is asked for, or that are read, and stashes, of one command."""


@dataclass(frozen=True)
class GitCall:
    """One git command in its repository."""

    step: Step
    subcommand: str
    args: ParsedWords
    words: tuple[str | None, ...]
    """Its words behind the subcommand."""
    changes: Changes
    git: GitReader
    repository: Repository

    def record(self, **facts: object) -> None:
        """Record the effect on the repository."""
        branch, changed = self.git.state(self.repository)
        told = next((each for each in self.words if each in _TELLING or (self.subcommand == "stash" and each)), None)
        name = printable(f"{self.subcommand} {told}" if told else self.subcommand)
        given = {"subcommand": name, "repository": printable(self.repository.work_tree)}
        entry = GitEffect.model_validate({**given, "branch": branch, "changed": changed, **facts})
        self.changes.git.append(entry)

    def unknown(self, reason: str) -> None:
        """Say that the files that change are not known."""
        self.changes.unknown(self.step, "files", reason)

    def files(self, statuses: list[tuple[str, str]] | None, *, only_if: str = "", becomes: str = "") -> None:
        """Record files by the letters of `git diff`.

        `becomes`: the first side, a commit or `INDEX`, whose files the work tree gets. Empty: it gets the second side.
        """
        if statuses is None:
            self.unknown("git could not list the files that change")
            return
        gone = "A" if becomes else "D"
        removed = []
        left = MOST_READ
        for kind, path in statuses:
            found = self.changes.view.find(path, None, follow=False)
            if found is None:
                continue
            if kind == gone:
                removed.append(found)
            elif found.kind == "absent":
                self.changes.write(self.step, found, None, why="the content is in git", only_if=only_if)
            else:
                # What is in the work tree alone is lost, so these are the lines that a human wants to see.
                left -= 1
                content = self.git.content(self.repository, becomes, path) if becomes and left >= 0 else None
                why = "the content is in git"
                self.changes.write(self.step, found, content, why=why, action="edits", only_if=only_if)
        self.changes.remove(self.step, removed)
        self.empty_directories(removed)

    def lost(self, path: str, old: bytes | None, new: bytes | None) -> Iterator[LostText]:
        """Yield the lines of one text that another one has not, if both are text."""
        diff, _ = diff_of(old or b"", new or b"", lambda: self.changes.deadline.left < 0.05)
        if diff is not None and diff.removed:
            yield LostText(path=printable(path), diff=diff)

    def lost_with(self, stash: str) -> Iterator[LostText]:
        """Yield the lines that only a stash has."""
        statuses = self.git.statuses(self.repository, stash, f"{stash}^1") or []
        for _, path in statuses[:MOST_READ]:
            sides = [self.git.content(self.repository, side, path) for side in (stash, f"{stash}^1")]
            yield from self.lost(os.path.relpath(path, self.repository.work_tree), *sides)
        untracked = self.git.names(self.repository, "ls-tree", "-r", "-z", "--name-only", f"{stash}^3") or []
        for path in untracked[:MOST_READ]:
            content = self.git.content(self.repository, f"{stash}^3", path)
            yield from self.lost(os.path.relpath(path, self.repository.work_tree), content, None)

    def cleaned(self, *words: str) -> list[str] | None:
        """The paths that `git clean` with these words would delete. None: git could not be asked."""
        answer = self.git.ask(self.repository, "clean", "-n", *words)
        names = [unquoted_name(line) for line in (answer or b"").splitlines()]
        return None if answer is None else [os.path.join(self.repository.work_tree, name) for name in names if name]

    def empty_directories(self, removed: Sequence[Found]) -> None:
        """Record the directories that hold nothing any more: git removes them with their last file."""
        view, root = self.changes.view, self.repository.work_tree
        for found in removed:
            parent = os.path.dirname(found.real)
            while parent.startswith(root + "/") and view.names_in(parent, MOST_NAMES) == []:
                directory = view.find(parent, None, follow=False)
                if directory is None or directory.kind != "directory":
                    break
                self.changes.change(self.step, directory, "removes directory")
                view.note(parent, "absent")
                parent = os.path.dirname(parent)

    def commit(self, revision: str | None) -> str | None:
        """The commit that a revision means; None if there is none, or it is only known when it runs."""
        return None if revision is None else self.git.commit(self.repository, revision)

    def drops(self, *words: str) -> dict[str, object]:
        """The commits that are dropped, as fields of the effect."""
        found, more = self.git.commits(self.repository, *words)
        return {"drops": found, "more_drops": more}

    def paths(self) -> list[str]:
        """The operands as paths relative to the work tree, which git is asked in."""
        given = self.step.directory or self.repository.work_tree
        names = [os.path.join(host_files.realpath(given), each) for each in self.args.operands if each]
        return [os.path.normpath(name) for name in names]


def record_git(step: Step, changes: Changes, git: GitReader) -> None:
    """Record what a git command changes."""
    parsed = parse_git(step.words)
    if parsed is None or any(name in {"--git-dir", "--work-tree", "--namespace"} for name, _, _ in parsed.options):
        changes.unknown(step, "everything", "git's options do not show which repository it uses")
        return
    if parsed.at >= len(step.words):
        return
    step = _located(step, parsed, changes)
    subcommand, rest = step.words[parsed.at] or "", step.words[parsed.at + 1 :]
    plain = tuple(word for word in rest if word is not None)
    if len(plain) == len(rest) and subcommand and git_only_reads([subcommand, *plain]):
        return
    if subcommand in {"clone", "init"}:
        _new_repository(step, subcommand, rest, changes)
        return
    if subcommand == "config" and any((word or "-f").startswith(_OTHER_SETTINGS) for word in rest):
        changes.unknown(step, "files", "it may change settings outside of the repository")
    repository, why = git.repository(step.directory) if step.directory else (None, "the directory is not known")
    if repository is None:
        _without_repository(step, subcommand, why, changes)
        return
    if why:
        changes.unknown(step, "everything", why)
    args = _parsed(subcommand, step.words[parsed.at :])
    call = GitCall(step, subcommand, args, rest, changes, git, repository)
    if not (args.has("no-verify") or (subcommand == "commit" and args.has("n"))):
        record_git_hooks(step, changes, subcommand, repository.common_dir)
    moved = any(each.subcommand.partition(" ")[0] not in _ONLY_GIT_DIRECTORY for each in changes.git)
    if subcommand not in _ONLY_GIT_DIRECTORY and (moved or changes.files or changes.removals):
        changes.unknown(step, "files", "commands before it change the files and commits that git finds then")
    handler = _HANDLERS.get(subcommand)
    if handler is not None:
        handler(call)
    elif subcommand in _ONLY_GIT_DIRECTORY:
        call.record()
    else:
        call.record()
        call.unknown(f"which files git {subcommand} changes is not known before it runs")


def _located(step: Step, parsed: GitCommand, changes: Changes) -> Step:
    """The same command in the directory of `-C`; settings that may run something else are said."""
    directory = step.directory
    for name, value, _ in parsed.options:
        if name == "-C":
            directory = None if directory is None or value is None else os.path.join(directory, value)
        if name in {"-c", "--config-env"} and not setting_is_harmless(*(value or "").partition("=")[::2]):
            changes.unknown(step, "everything", "a setting among its options may make git run something else")
    return replace(step, directory=directory)


def _without_repository(step: Step, subcommand: str, why: str, changes: Changes) -> None:
    changes.git.append(GitEffect(subcommand=printable(subcommand), unknown=why))
    if subcommand not in _ONLY_GIT_DIRECTORY:
        changes.unknown(step, "files", why)
    if subcommand in GIT_HOOKS and why != NO_REPOSITORY:
        changes.unknown(step, "everything", "hooks of the repository may run")


def _new_repository(step: Step, subcommand: str, rest: tuple[str | None, ...], changes: Changes) -> None:
    args = _parsed("clone", ("git", *rest))
    operands = args.operands
    if subcommand == "clone":
        source = operands[0] if operands else None
        record_remote_host(step, changes, source, "git")
        name = operands[1] if len(operands) > 1 else source and re.sub(r"(?:/?\.git)?/*\Z", "", source)
        target = name if len(operands) > 1 else name and re.split(r"[/:]", name)[-1]
    else:
        target = operands[0] if operands else "."
    found = changes.find(step, target)
    if found is not None:
        where = found if subcommand == "clone" else changes.find(step, os.path.join(found.path, ".git"))
        if where is not None:
            if found.kind == "absent":
                changes.make_directory(step, found)
            changes.fill(step, where, detail="with a repository", may_lead_out=False)
    changes.git.append(GitEffect(subcommand=subcommand, target=printable(str(operands[0])) if operands else None))


def _parsed(subcommand: str, words: tuple[str | None, ...]) -> ParsedWords:
    return parse_words(words, "git", subcommand)


def _remote(call: GitCall, name: str | None) -> tuple[str | None, str | None]:
    """The remote that a command talks to, and its host, which is recorded."""
    branch = call.git.state(call.repository)[0]
    if name is None and branch is not None:
        for key in (f"branch.{branch}.pushRemote", "remote.pushDefault", f"branch.{branch}.remote"):
            name = name or call.git.line(call.repository, "config", "--get", key)
    name = name or "origin"
    url = call.git.line(call.repository, "config", "--get", f"remote.{name}.pushurl") or call.git.line(
        call.repository, "config", "--get", f"remote.{name}.url"
    )
    if url is None and not re.search(r"[/:]", name):
        return name, None
    return name, record_remote_host(call.step, call.changes, url or name, "git", f"remote {name}" if url else "")


def _push(call: GitCall) -> None:
    operands = call.args.operands
    if None in operands:
        call.changes.unknown(call.step, "git", "the remote or the branch is only known when it runs")
    remote, host = _remote(call, operands[0] if operands else None)
    facts: dict[str, object] = {"remote": remote, "host": host}
    if call.args.has("dry-run", "n"):
        return
    if call.args.has("mirror", "all", "branches", "tags"):
        call.record(**facts, unknown="it pushes more than one branch; which commits is not computed")
        return
    branch = call.git.state(call.repository)[0]
    given = [each for each in operands[1:] if each is not None] or ([branch] if branch else [])
    forced = call.args.has("f", "force") or any(name.startswith("force-w") for name, _ in call.args.options)
    for refspec in given:
        source, _, target = refspec.removeprefix("+").partition(":")
        if call.args.has("d", "delete"):
            source, target = "", source
        target = (target or source).removeprefix("refs/heads/")
        target = branch or target if target == "HEAD" else target
        facts["target"] = printable(target)
        call.record(**facts, **_pushed(call, remote or "", source, target, forced=forced or refspec.startswith("+")))


def _pushed(call: GitCall, remote: str, source: str, target: str, *, forced: bool) -> dict[str, object]:
    """The commits that a push adds and drops, by the state of the last fetch."""
    there = call.commit(f"refs/remotes/{remote}/{target}")
    if not source:
        return call.drops(there, "--not", "--branches") if there else {"unknown": "the remote branch was never fetched"}
    ours = call.commit(source)
    if ours is None:
        return {"unknown": f"{printable(source)} is not a commit in this repository"}
    known = (f"^{there}",) if there else ("--not", f"--remotes={remote}")
    facts: dict[str, object] = {"commits": call.git.count(call.repository, ours, *known)}
    if forced and there:
        facts |= call.drops(there, f"^{ours}")
    return facts


def _reset(call: GitCall) -> None:
    operands = [each for each in call.args.operands if each is not None]
    if len(operands) < len(call.args.operands):
        call.changes.unknown(call.step, "git", "the revision is only known when it runs")
    revision = call.commit(operands[0] if operands else "HEAD")
    if revision is None or len(operands) > 1:
        call.record()  # paths: only the index changes
        return
    call.record(target=printable(operands[0]) if operands else "HEAD", **call.drops("HEAD", f"^{revision}"))
    if call.args.has("hard"):
        call.files(call.git.statuses(call.repository, revision), becomes=revision)
    elif call.args.has("merge", "keep"):
        call.unknown("which files it changes depends on the uncommitted changes")


def _checkout(call: GitCall) -> None:
    operands = [each for each in call.args.operands if each is not None]
    if len(operands) < len(call.args.operands):
        call.unknown("an operand is only known when it runs")
    new = call.args.has("b", "B", "c", "C", "create", "force-create", "orphan")
    dashes = "--" in call.words
    if call.subcommand == "checkout" and not new and operands:
        first = call.commit(operands[0]) if not (dashes and call.words[0] == "--") else None
        if first is None or len(operands) > 1:
            _restore_paths(call, first, call.paths()[0 if first is None else 1 :])
            return
    name = call.args.value("b", "B", "c", "C", "create", "force-create", "orphan") if new else None
    made = f"{call.subcommand} {'--orphan' if call.args.has('orphan') else '-b'}"
    if new and not operands:
        call.record(subcommand=made, target=printable(name or ""))
        return
    revision = call.commit(operands[0] if operands else "HEAD")
    if revision is None:
        call.record(unknown="the branch is not known here")
        call.unknown("the branch is not known here; git may make it from a remote")
        return
    if new:
        call.record(subcommand=made, target=printable(f"{name or ''} at {operands[0]}"))
    else:
        call.record(target=printable(operands[0]) if operands else None)
    if call.args.has("f", "force", "discard-changes"):
        call.files(call.git.statuses(call.repository, revision), becomes=revision)
    else:
        call.files(call.git.statuses(call.repository, "HEAD", revision), only_if="no uncommitted change is in the way")


def _restore_paths(call: GitCall, revision: str | None, paths: list[str]) -> None:
    call.record()
    words = [*((revision,) if revision else ()), "--", *paths]
    found = call.git.statuses(call.repository, *words)
    # Files that only the work tree has stay as they are.
    call.files(found and [(kind, path) for kind, path in found if kind != "A"], becomes=revision or INDEX)


def _restore(call: GitCall) -> None:
    if call.args.has("S", "staged") and not call.args.has("W", "worktree"):
        call.record()
        return
    source = call.args.value("s", "source")
    if call.args.has("S", "staged") and source is None:
        source = "HEAD"
    revision = call.commit(source) if source else None
    if call.args.has("s", "source") and revision is None:
        call.unknown("the revision is only known when it runs")
        return
    _restore_paths(call, revision, call.paths())


def _stash(call: GitCall) -> None:
    verb = call.words[0] if call.words and call.words[0] and not call.words[0].startswith("-") else "push"
    named = call.words[1] if len(call.words) > 1 and (call.words[1] or "").startswith("stash@") else "stash@{0}"
    if verb in {"push", "save"}:
        call.record()
        if call.args.has("p", "patch", "S", "staged", "k", "keep-index", "pathspec-from-file") or (
            verb == "push" and len(call.args.operands) > 1
        ):
            call.unknown("which files it stashes depends on more than their state")
            return
        call.files(call.git.statuses(call.repository, "HEAD"), becomes="HEAD")
        if call.args.has("u", "include-untracked", "a", "all"):
            _remove_names(call, call.cleaned("-d", *(("-x",) if call.args.has("a", "all") else ())))
    elif verb in {"pop", "apply"}:
        call.record(target=printable(named or ""))
        stash = call.commit(named)
        if stash is not None:
            call.files(call.git.statuses(call.repository, f"{stash}^1", stash), only_if="no other change is in the way")
            more = call.git.names(call.repository, "ls-tree", "-r", "-z", "--name-only", f"{stash}^3")
            call.files([("A", name) for name in more or ()], only_if="no other change is in the way")
    elif verb in {"drop", "clear"}:
        stash = call.commit("refs/stash" if verb == "clear" else named)
        words = ("-g", "refs/stash") if verb == "clear" else ("-n1", stash or "")
        each = [f"stash@{{{number}}}" for number in range(MOST_STASHES)] if verb == "clear" else [named or ""]
        stashes = [found for name in each if (found := call.commit(name)) is not None]
        facts = {**call.drops(*words), "loses": [lost for each in stashes for lost in call.lost_with(each)]}
        call.record(target=None if verb == "clear" else printable(named or ""), **(facts if stash else {}))
    else:
        call.record()
        call.unknown(f"which files git stash {verb} changes is not known before it runs")


def _remove_names(call: GitCall, names: list[str] | None) -> None:
    if names is None:
        call.unknown("git could not list the files that it deletes")
        return
    targets = (call.changes.view.find(name, None, follow=False) for name in names)
    removed = [found for found in targets if found is not None]
    call.changes.remove(call.step, removed)
    call.empty_directories(removed)


def _clean(call: GitCall) -> None:
    if call.args.has("n", "dry-run"):
        return
    if not call.args.has("f", "force") or call.args.has("i", "interactive"):
        call.unknown("it asks which files to delete, or refuses")
        return
    letters = [f"-{name}" for name, _ in call.args.options if name in {"d", "x", "X"}]
    excluded = [f"--exclude={value}" for value in call.args.all("e", "exclude") if value is not None]
    twice = sum(1 for name, _ in call.args.options if name in {"f", "force"}) > 1
    paths = call.paths() or [host_files.realpath(call.step.directory or "/")]
    names = call.cleaned(*letters, *excluded, "--", *paths)
    view = call.changes.view
    there = [found for name in (names or ())[:MOST_READ] if (found := view.find(name, None, follow=False)) is not None]
    lost = [
        each for found in there if found.kind == "file" for each in call.lost(found.path, view.content(found)[0], None)
    ]
    call.record(loses=lost)
    _remove_names(call, names)
    if twice:
        call.unknown("with -f twice it deletes repositories inside as well")


def _branch(call: GitCall) -> None:
    deletes = call.args.has("d", "D", "delete")
    for name in call.args.operands if deletes else ():
        if name is None:
            call.changes.unknown(call.step, "git", "the branch is only known when it runs")
            continue
        words: tuple[str, ...] = ()
        if call.commit(f"refs/heads/{name}") is not None:
            words = (f"refs/heads/{name}", "--not", f"--exclude=refs/heads/{name}", "--all", "HEAD")
        call.record(target=printable(name), **(call.drops(*words) if words else {"unknown": "there is no such branch"}))
    if not deletes:
        call.record(target=printable(call.args.operands[0] or "") if call.args.operands else None)


def _rebase(call: GitCall) -> None:
    operands = call.args.operands
    upstream = call.commit(operands[0] if operands else "@{upstream}")
    if upstream is not None and not call.args.has("abort", "continue", "skip", "quit"):
        named = operands[0] if operands else "@{upstream}"
        call.record(target=printable(named or ""), **call.drops("HEAD", f"^{upstream}"))
    else:
        call.record()
    if call.args.has("x", "exec"):
        call.changes.unknown(call.step, "everything", "it runs a command after each commit")
    call.unknown("which files a rebase changes is not computed")


def _commit(call: GitCall) -> None:
    facts = call.drops("HEAD", "-n1") if call.args.has("amend") else {}
    call.record(**facts)


def _merge(call: GitCall) -> None:
    operands = [each for each in call.args.operands if each is not None]
    if (
        len(operands) != 1
        or call.args.has("abort", "continue", "quit", "mainline", "skip")
        or (call.subcommand != "merge" and call.args.has("m"))
    ):
        call.record()
        call.unknown(f"which files git {call.subcommand} changes is not computed")
        return
    revision = call.commit(operands[0])
    if revision is None:
        call.record(unknown=f"{printable(operands[0])} is not a commit in this repository")
        return
    call.record(target=printable(operands[0]))
    sides = ("HEAD..." + revision,) if call.subcommand == "merge" else (f"{revision}^", revision)
    statuses = call.git.statuses(call.repository, *sides)
    if call.subcommand == "revert" and statuses is not None:
        swapped = {"A": "D", "D": "A"}
        statuses = [(swapped.get(kind, kind), path) for kind, path in statuses]
    call.files(statuses, only_if="it is not merged yet and nothing is in the way")


def _rm(call: GitCall) -> None:
    call.record()
    if call.args.has("cached", "n", "dry-run"):
        return
    if None in call.args.operands:
        call.unknown("a path is only known when it runs")
    names = call.git.names(call.repository, "ls-files", "-z", "--", *call.paths()) if call.paths() else []
    _remove_names(call, names)


def _mv(call: GitCall) -> None:
    call.record()
    if not call.args.has("n", "dry-run"):
        record_program(replace(call.step, words=("mv", *call.args.operands)), call.changes)


def _apply(call: GitCall) -> None:
    if call.args.has("check", "stat", "numstat", "summary"):
        return
    call.record()
    if not call.args.has("cached"):
        for operand in call.args.operands or [None]:
            words = ("patch", "-p1") if operand is None else ("patch", "-p1", "-i", operand)
            record_program(replace(call.step, words=words), call.changes)


def _fetch(call: GitCall) -> None:
    remote, host = _remote(call, call.args.operands[0] if call.args.operands else None)
    call.record(remote=remote, host=host)
    if call.subcommand == "pull":
        call.unknown("which files change depends on what the remote sends")


_HANDLERS: Mapping[str, Callable[[GitCall], None]] = {
    "push": _push,
    "reset": _reset,
    "checkout": _checkout,
    "switch": _checkout,
    "restore": _restore,
    "stash": _stash,
    "clean": _clean,
    "branch": _branch,
    "rebase": _rebase,
    "commit": _commit,
    "merge": _merge,
    "cherry-pick": _merge,
    "revert": _merge,
    "rm": _rm,
    "mv": _mv,
    "apply": _apply,
    "fetch": _fetch,
    "pull": _fetch,
}
