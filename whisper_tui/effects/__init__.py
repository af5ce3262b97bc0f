"""Effects: the changes that a command would make, computed from its text and from the disk; nothing of it runs.

Each step of the command is handed to those who know its program; a program that nobody knows is recorded as unknown.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import get_args

from whisper_tui.effects.builtin_effects import QUIET as QUIET_BUILTINS
from whisper_tui.effects.builtin_effects import record_builtin, record_variables
from whisper_tui.effects.changes import ApprovedScript, Changes, ReadScript, printable
from whisper_tui.effects.code_effects import record_code
from whisper_tui.effects.file_programs import record_program
from whisper_tui.effects.file_view import Deadline, FileView, resolved_path
from whisper_tui.effects.git_effects import record_git
from whisper_tui.effects.git_reader import GitReader
from whisper_tui.effects.host_effects import record_hosts
from whisper_tui.effects.operands import opened_before_missing, record_redirections
from whisper_tui.effects.script_code import record_git_hooks
from whisper_tui.effects.text_walk import Step, TextWalk
from whisper_tui.model.call import Command
from whisper_tui.model.effects import MOST_ENTRIES, CodeEffect, Effects, StepEffect, StepMark, UnknownEffect
from whisper_tui.model.secrets import is_secret_name
from whisper_tui.policy.commands.argv import parse_git
from whisper_tui.policy.commands.read_only_list import only_reads
from whisper_tui.policy.commands.wrapper_directories import runs_elsewhere
from whisper_tui.policy.commands.wrapper_files import OwnFiles, own_files
from whisper_tui.policy.risks.command_dangers import dangers_of_program
from whisper_tui.policy.risks.host_access import reaches_network
from whisper_tui.policy.risks.sensitive_paths import names_secret, shows_environment
from whisper_tui.programs.entries import entry_of

BUDGET_S = 0.15
"""Seconds after which nothing more is looked at: with the step that is under way then, it takes 0.2 at most."""

CODE_BUDGET_S = 1.0
"""Seconds in which the code that a command runs is read. The card waits for it, and so does a decision."""


def effects_of(
    command: Command,
    directory: str,
    roots: Sequence[str],
    environment: Mapping[str, str],
    *,
    budget_s: float = BUDGET_S,
    approved: Callable[[str], ApprovedScript | None] | None = None,
    closed: Iterable[str] = (),
) -> Effects:
    """State what a command would change if each of its parts succeeds. Nothing of it is run.

    `roots`: the directories of the workspace; `environment`: the variables that the command will get; `approved`: finds
    a script as a human last approved it, by its path; `closed`: directories that git does not read for it.
    """
    if "\0" in directory:
        unknown = UnknownEffect(about="everything", command="", reason="its directory contains a null character")
        return Effects(directory=directory, unknown=(unknown,))
    deadline = Deadline(budget_s)
    real = resolved_path(directory)
    changes = Changes(FileView(roots, deadline), deadline, approved)
    git = GitReader(deadline, closed)
    secrets = _Secrets()
    walk = TextWalk(changes.view, environment, repeats=True)
    parts = _Parts(changes, walk)

    def record(step: Step) -> None:
        parts.begin(step)
        if step.again:
            _record_again(step, changes, git)
        else:
            _record(step, changes, git)
            secrets.note(step)

    _follow(walk.steps(command, directory), changes, record)
    for problem in walk.problems:
        changes.unknown(None, "everything", problem)
    known = not walk.problems and not changes.deadline.was_missed
    steps = parts.steps() if known else ()
    return _gathered(changes, git, environment, secrets, steps, directory=printable(real))


def _gathered(
    changes: Changes,
    git: GitReader,
    environment: Mapping[str, str],
    named: "_Secrets",
    steps: tuple[StepEffect, ...],
    *,
    directory: str,
) -> Effects:
    """All that was recorded, with what git knows about the files that are deleted."""
    secrets = (printable(name) for name, value in environment.items() if value and is_secret_name(name))
    return Effects(
        directory=directory,
        files=tuple(changes.files),
        removals=tuple(git.restorable(removal, names) for removal, names in changes.removals),
        git=tuple(changes.git[:MOST_ENTRIES]),
        hosts=tuple(changes.hosts),
        code=tuple(changes.code),
        secret_variables=tuple(sorted(secrets)),
        secret_files=tuple(named.files)[:MOST_ENTRIES],
        named_secrets=tuple(named.variables)[:MOST_ENTRIES],
        shown_secrets=tuple(named.shown)[:MOST_ENTRIES],
        unknown=tuple(changes.unknowns),
        steps=steps,
        complete=not changes.deadline.was_missed,
    )


class _Parts:
    """The effect of each command between the operators of a text, with all that it runs in turn."""

    def __init__(self, changes: Changes, walk: TextWalk) -> None:
        self._changes, self._walk = changes, walk
        self._marks: dict[int, set[StepMark]] = {}
        self._only_reads: dict[int, bool] = {}
        self._reading: set[int] = set()
        """Those that read something."""
        self._is_plain = True
        """False once a name may mean another program."""
        self._seen_git = 0

    def begin(self, step: Step) -> None:
        """Note a step, and have what it changes noted with the command that the walk has come to."""
        self._note_git()
        part = self._walk.part
        self._changes.marks = marks = set() if step.again else self._marks.setdefault(part, set())
        if step.again:
            # It was a step of its own command before.
            return
        plain = not (step.assigned or step.is_function or step.name in _REDEFINE)
        self._is_plain = self._is_plain and plain
        quiet = self._is_plain and (_is_harmless(step) if step.words else not step.redirections)
        self._only_reads[part] = self._only_reads.get(part, True) and quiet
        if step.words and step.words[0] not in QUIET_BUILTINS and not entry_of(step.name).opens_nothing:
            self._reading.add(part)
        marks |= {"network"} if any(each.access == "net" for each in step.redirections) else set()
        if step.name is not None:
            # A wrapper may give it the names of the files, or run it where its files are not known.
            risks = {
                each.id for each in dangers_of_program(step.words, step.name) if each.sentence.startswith("Deletes ")
            }
            marks |= {"deletes"} if risks else set()
            marks |= {"network"} if reaches_network(step.words, step.name) else set()

    def steps(self) -> tuple[StepEffect, ...]:
        """Return them all in their order; nothing is known of one that the walk did not come to."""
        self._note_git()
        found = []
        for part, (start, end) in enumerate(self._walk.parts):
            marks = set(self._marks.get(part, {"unknown"} if end else ()))
            if not marks and self._only_reads.get(part) and part in self._reading:
                marks = {"reads"}
            if "runs code" in marks:
                marks.discard("unknown")
            if end or marks:
                told = tuple(mark for mark in _MARKS if mark in marks)
                found.append(StepEffect(start=start, end=end, marks=told))
        return tuple(found)

    def _note_git(self) -> None:
        for effect in self._changes.git[self._seen_git :]:
            lost = effect.loses or (effect.drops and effect.subcommand.split()[0] not in {"rebase", "commit"})
            there = bool(effect.remote or effect.host)
            self._changes.marks |= {"deletes"} if lost else set() if there else {"writes"}
            self._changes.marks |= {"network"} if there else set()
        self._seen_git = len(self._changes.git)


_MARKS: tuple[StepMark, ...] = get_args(StepMark)
_REDEFINE = frozenset(
    {"alias", "enable", "eval", "export", "declare", "typeset", "hash", "source", ".", "set", "shopt"}
)
"""Builtins behind which a name may mean another program."""


class _Secrets:
    """The secrets that commands name, and those that their output shows."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.variables: dict[str, None] = {}
        self.shown: dict[str, None] = {}

    def note(self, step: Step) -> None:
        """Note the files and variables of one command."""
        read = (each.target for each in step.redirections if each.access == "read" and each.body is None)
        words = (word for word in (*step.words[1:], *read) if word is not None and len(word) <= 4096)
        files = [printable(word) for word in words if names_secret(word) and not word.endswith(".pub")]
        variables = [printable(name) for name in step.secrets]
        self.files.update(dict.fromkeys(files))
        self.variables.update(dict.fromkeys(variables))
        if _writes_elsewhere(step) or not step.words:
            return
        if step.name in {"echo", "printf"} or entry_of(step.name).content == "shown":
            self.shown.update(dict.fromkeys((*files, *variables)))
        if shows_environment(step.words):
            self.shown["variables of the environment"] = None


def _writes_elsewhere(step: Step) -> bool:
    """True if the standard output of a command goes to a file."""
    written = [each for each in step.redirections if each.access in {"write", "null"}]
    return any(each.operator == "&>" or each.descriptor in {"", "1"} for each in written)


def code_of(
    command: Command,
    directory: str,
    roots: Sequence[str],
    environment: Mapping[str, str],
    git_directory: str = "",
    *,
    budget_s: float = CODE_BUDGET_S,
) -> tuple[CodeEffect, ...]:
    """Return the code that a command would run and that is not part of it, without looking at anything else.

    `git_directory`: the directory with the hooks of the repository around the command, if there is one. Code that was
    not reached in time is an entry that says so.
    """
    if "\0" in directory:
        return ()
    deadline = Deadline(budget_s)
    changes = Changes(FileView(roots, deadline), deadline)

    def record(step: Step) -> None:
        if git_directory and step.name == "git":
            parsed = parse_git(step.words)
            subcommand = step.words[parsed.at] if parsed is not None and parsed.at < len(step.words) else None
            record_git_hooks(step, changes, subcommand or "", git_directory)
            return
        record_redirections(step, changes)
        _record_code_alone(step, changes)
        if entry_of(step.name).makes_files:
            record_program(step, changes)

    _follow(TextWalk(changes.view, environment).steps(command, directory), changes, record)
    if deadline.was_missed:
        changes.leave_out_code("time ran out before it was read")
    return tuple(changes.code)


def _follow(steps: Iterable[Step], changes: Changes, record: Callable[[Step], None]) -> None:
    """Record commands in their order, and behind each those of the scripts that it runs."""
    for step in steps:
        if changes.deadline.is_over:
            changes.unknown(step, "everything", "time ran out before this command was examined")
            return
        record(step)
        while changes.scripts:
            _follow_script(changes.scripts.pop(0), changes, record)


def _follow_script(script: ReadScript, changes: Changes, record: Callable[[Step], None]) -> None:
    """Record what a script does at its top level; of the rest, only which code it runs."""
    walk = TextWalk(changes.view, {})
    start = replace(script.step, directory=script.directory) if script.starts_there else script.step
    sourced = script.step.name in {"source", "."}
    own = "" if sourced or script.starts_there else script.directory
    before, left_out = changes.mark(), 0
    changes.script = script.name
    try:
        for step in walk.steps_of_script(script.text, start, own, is_bash=script.language == "bash"):
            if changes.deadline.is_over:
                break
            if script.runs and step.unconditional and script.step.unconditional:
                record(step)
                continue
            _record_code_alone(step, changes)
            left_out += bool(step.words) and not _is_harmless(step)
        if left_out:
            commands = "1 command runs" if left_out == 1 else f"{left_out:,} commands run"
            when = "under a condition" if script.runs else "if something is out of date"
            changes.unknown(None, "everything", f"{commands} only {when}")
        changes.said_by(script.name, before)
    finally:
        changes.script = ""


def _places(step: Step) -> dict[str, str]:
    """The wrappers that make a command run in a container or on another machine, and where."""
    return {each: place for each in step.through if (place := entry_of(each).place)}


def _is_harmless(step: Step) -> bool:
    writes = any(each.access == "write" and each.target != "/dev/null" for each in step.redirections)
    if writes or step.assigned:
        return False
    if step.wraps:
        return own_files(step.words) == OwnFiles()
    return entry_of(step.words[0]).changes_nothing or step.words[0] in QUIET_BUILTINS or _only_reads(step)


def _record_code_alone(step: Step, changes: Changes) -> None:
    """Record the code that a command runs, and nothing else about it."""
    if step.words and step.words[0] is not None and not step.is_function and not _places(step):
        if step.wraps and not entry_of(step.name).place:
            return
        unknowns = len(changes.unknowns)
        record_code(step, changes)
        del changes.unknowns[unknowns:]


def _record(step: Step, changes: Changes, git: GitReader) -> None:
    elsewhere = _places(step)
    if elsewhere:
        if not step.wraps:
            reason = f"commands run through {' and '.join(sorted(elsewhere))} change another machine or container"
            # A container may have directories of this machine.
            changes.unknown(step, "hosts" if set(elsewhere.values()) == {"another machine"} else "files", reason)
        return
    opened = opened_before_missing(step, changes.view)
    if opened is not None:
        # The shell does not start a command whose input it cannot open, but it has opened what stands before that.
        record_redirections(replace(step, words=(), redirections=opened), changes)
        return
    record_redirections(step, changes)
    record_variables(step, changes)
    if not step.words:
        return
    if step.words[0] is None:
        changes.unknown(step, "everything", "the program is only known when it runs")
        return
    if step.wraps and not entry_of(step.name).place:
        _record_wrapper(step, changes)
        return
    if any(entry_of(each).feeds for each in step.through):
        _fed(step, changes, git)
        return
    _record_program(step, changes, git)


def _record_again(step: Step, changes: Changes, git: GitReader) -> None:
    """Look at a command of a loop as it runs the next time: `ln -s sub new` then makes a link in `sub`."""
    before = changes.mark()
    _record(step, changes, git)
    if changes.forget_repeated(before):
        changes.unknown(step, "files", "it changes other files when it runs again")


def _record_wrapper(step: Step, changes: Changes) -> None:
    """Record what a wrapper writes itself; the command behind it is a step of its own."""
    if step.words[0] == "trap":
        record_builtin(step, changes)
        return
    if entry_of(step.name).name == "find":
        record_program(step, changes)
    if step.opaque is not None:
        changes.unknown(step, "everything", step.opaque)
    if runs_elsewhere(step.words):
        # Another root directory has other files with the same absolute paths.
        changes.unknown(step, "files", f"{step.name} runs it in another directory, or among other files")
    own = own_files(step.words)
    for path in own.written:
        found = changes.find(step, path)
        if found is not None and not (own.opens and found.kind != "absent"):
            changes.write(step, found, b"" if own.opens else None)
    if not own.is_complete:
        changes.unknown(step, "files", f"what {step.name} itself writes is not known")
    if step.name == "nohup" and not any(each.descriptor in {"", "1"} for each in step.redirections):
        found = changes.find(step, "nohup.out")
        if found is not None:
            changes.append(step, found, None, only_if="its output is a terminal")


def _record_program(step: Step, changes: Changes, git: GitReader) -> None:
    """Hand a command to all who know about its program."""
    name = step.name or ""
    if name == "git":
        record_git(step, changes, git)
        return
    if step.is_function or (entry_of(step.words[0]).changes_nothing and not step.by_runner):
        return
    if step.words[0] in QUIET_BUILTINS and not step.by_runner:
        record_builtin(step, changes)
        return
    if entry_of(name).signals:
        changes.unknown(step, "processes", f"{name} sends signals to processes, which are not examined")
        return
    hosts = record_hosts(step, changes)
    files = record_program(step, changes)
    code = not files and record_code(step, changes)
    if entry_of(name).place:
        if not step.wraps:
            changes.unknown(step, "files", f"what {name} changes there, or here, is not known before it runs")
        return
    if step.opaque is not None and not code and not files:
        changes.unknown(step, "everything", step.opaque)
        return
    if hosts and not files and not _only_reads(step):
        changes.unknown(step, "files", f"what {name} changes is not known before it runs")
    if not (hosts or files or code or _only_reads(step)):
        changes.unknown(step, "everything", f"what {name} changes is not known before it runs")


def _fed(step: Step, changes: Changes, git: GitReader) -> None:
    """A command that gets more words from xargs, find or parallel."""
    quiet = entry_of(step.words[0]).changes_nothing or step.words[0] in QUIET_BUILTINS
    if not step.by_runner and (quiet or _only_reads(step)):
        return
    record_code(step, changes)
    changes.unknown(step, "files", f"{step.name} gets its operands from {step.through[-1]} when it runs")
    known = tuple(word for word in step.words if word is None or "{}" not in word)
    if step.name not in {"rm", "git"} and len(known) == len(step.words) and step.through[-1] == "xargs":
        record_hosts(step, changes)


def _only_reads(step: Step) -> bool:
    """True if a command is known to read only; a file with secrets is read like any other."""
    if None in step.words and entry_of(step.name).writes_by_words:
        return False
    words = ["x" if word is None or names_secret(word) else word for word in step.words]
    return only_reads(words, git_is_neutral=True)
