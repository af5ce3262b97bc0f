"""Resolution of a command where it would run: its programs, the real paths of its words, and the code behind it."""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

from whisper_tui.effects import code_of
from whisper_tui.effects.code_effects import may_run_code
from whisper_tui.effects.edit_results import examine
from whisper_tui.effects.git_repository import FoundRepository, find_repository
from whisper_tui.model.call import CarriedOut, CommandSpec, EditedFile, FileEdits, Shell
from whisper_tui.model.effects import CodeEffect
from whisper_tui.model.verdict import (
    OutsideProgram,
    OwnShell,
    Place,
    PlaceKind,
    Repository,
    Resolved,
    Risk,
    RunCode,
    Verdict,
)
from whisper_tui.policy.commands.argv import named_words, parse_git
from whisper_tui.policy.commands.read_only_list import helpers_of
from whisper_tui.policy.commands.unwrap import InnerCommand
from whisper_tui.policy.risks.sensitive_paths import possible_paths, searches_trees
from whisper_tui.policy.rules.rule import is_below
from whisper_tui.policy.view import CommandView, view
from whisper_tui.supervisor.approvals.command_files import (
    contents_of,
    file_stamps,
    find_scripts,
    own_shell_of,
    sensitive_files,
)
from whisper_tui.supervisor.approvals.expand import expand_command, find_program, literal_text
from whisper_tui.system import host_files, process_names
from whisper_tui.system.file_owners import is_own_binary
from whisper_tui.system.landlock_rules import PROGRAM_DIRECTORIES

MOST_DIRECTORIES = 8
"""Limit of working directories that a command may have: each `cd` before it may or may not have succeeded."""


def find_places(seen: CommandView, cwd: str, own: Sequence[str]) -> tuple[Place, ...]:
    """Return the paths in plain commands that lead elsewhere than they say (decision 8).

    `own`: the directories of whisper_tui.
    """
    if seen.plain is None:
        return ()
    private = tuple(host_files.realpath(directory) for directory in own)
    found: list[Place] = []
    directories = [cwd]
    for at, command in enumerate(seen.commands):
        words = [word for word in named_words(command.argv) if word is not None]
        # `grep -r` and its like search the working directory if no path is given.
        if searches_trees(command.argv):
            words.append(".")
        for path in _paths(words, directories):
            place = _place(at, path, private)
            if place is not None and place not in found:
                found.append(place)
        # `cd x && cat y` reads x/y, and `cd x; cat y` may read either.
        if command.name == "cd" and words and len(directories) < MOST_DIRECTORIES:
            directories += [
                real
                for path in _paths(words[-1:], directories)
                if host_files.is_directory(real := host_files.realpath(path))
            ]
    return tuple(found)


def _paths(words: Iterable[str], directories: Iterable[str]) -> Iterator[str]:
    parts = dict.fromkeys(part for word in words for part in possible_paths(word))
    for part in parts:
        if part and "\0" not in part:
            for directory in directories:
                yield os.path.join(directory, part)  # noqa: PTH118


def _place(at: int, path: str, own: Sequence[str]) -> Place | None:
    """Return the real target of a path. None: it is the plain file or directory that the path names."""
    real = host_files.realpath(path)
    kind = "process" if process_names.is_of_process(real) else _kind(real, own)
    if kind is None or (kind in {"file", "directory"} and real == os.path.normpath(path)):
        return None
    # The journal takes no name that is not UTF-8.
    return Place(command=at, path=os.fsencode(real).decode(errors="backslashreplace"), kind=kind)


def _repository(seen: CommandView, cwd: str) -> FoundRepository:
    """Find the repository to which each git of a text belongs."""
    found = find_repository(cwd)
    moves = any(_targets(command) != [] for command in seen.commands)
    if not moves or (found.repository is not None and _stays(seen, cwd, found.repository)):
        return found
    return FoundRepository(None, is_neutral=False)


def _stays(seen: CommandView, cwd: str, repository: Repository) -> bool:
    """True if git finds the same repository wherever a plain text changes to."""
    if seen.plain is None:
        return False
    directories = [cwd]
    for at, command in enumerate(seen.commands):
        targets = [] if at in seen.returns else _targets(command)
        if targets is None:
            return False
        where = directories
        for target in targets:
            named = [os.path.join(directory, target) for directory in where]  # noqa: PTH118
            where = [os.path.normpath(path) for path in named]
            # behind a link, the shell resolves `..` by another path than git
            if any(host_files.realpath(path) != plain for path, plain in zip(named, where, strict=True)):
                return False
            found = (find_repository(path).repository for path in where if host_files.is_directory(path))
            if list(found) != [repository] * len(where):
                return False
        if command.name == "cd":
            directories = list(dict.fromkeys((*directories, *where)))
        if len(directories) > MOST_DIRECTORIES:
            return False
    return True


def _targets(command: InnerCommand) -> list[str] | None:
    """Return the directories into which a command changes, one after the other. None: they are not certain."""
    if command.name in {"cd", "pushd", "popd"}:
        target = command.argv[1] if len(command.argv) == 2 and command.argv[0] == "cd" else None
        return [target] if target and not target.startswith(("-", "~")) else None
    if command.name != "git":
        return []
    parsed = parse_git(command.argv)
    if parsed is None:
        return None
    values = [value for name, value, _ in parsed.options if name == "-C"]
    return [value or "" for value in values] if all(values) else None


_NOTHING_THERE = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}


def _kind(real: str, own: Sequence[str]) -> PlaceKind | None:
    try:
        mode = host_files.stat(real).st_mode
    except OSError as error:
        # What may not be looked at can be anything; a name that is too long is no file.
        return None if error.errno in _NOTHING_THERE else "other"
    except ValueError:
        return None
    if any(real == directory or real.startswith(directory + "/") for directory in own):
        return "own"
    if stat.S_ISDIR(mode):
        above = real.rstrip("/") + "/"
        return "above-own" if any(directory.startswith(above) for directory in own) else "directory"
    return "file" if stat.S_ISREG(mode) else "other"


def resolve(
    spec: CommandSpec,
    environment: Mapping[str, str],
    own: Sequence[str] = (),
    *,
    root: str = "",
    shell: OwnShell | None = None,
) -> Resolved:
    """Look up the programs in the command's own PATH, and expand its words as far as that runs nothing.

    `own`: the directories of whisper_tui, which read-only commands must not read without approval; `root`: the
    workspace, where it is known; `shell`: the shell and the profile of its agent.
    """
    cwd = host_files.realpath(spec.cwd) if host_files.is_directory(spec.cwd) else None
    if isinstance(spec.command, CarriedOut):
        problem = None if cwd else f"the working directory {spec.cwd} does not exist"
        return Resolved(cwd=cwd, problem=problem, edits=_edits(spec, environment, own, root))
    word = spec.command.words()[0]
    # The command's own PATH: ours may find another program of the same name.
    path = spec.environment.get("PATH", environment.get("PATH", os.defpath))
    program = find_program(word, cwd or spec.cwd, path)
    problem = _problem(spec, word, program, cwd)
    if problem is not None or cwd is None or program is None:
        return Resolved(program=program, cwd=cwd, problem=problem)
    resolved = Resolved(program=program, cwd=cwd, own_shell=own_shell_of(spec, shell, cwd, path))
    try:
        meant = _with_meaning(resolved, spec, environment, own, root)
        literal = literal_text(view(spec.command), cwd)
        return meant if literal is None else _written_out(meant, literal, spec, environment, own)
    except OSError as error:
        # A human can tell what the command means; nobody could lift a refusal.
        return resolved.model_copy(update={"problem": _not_looked_up(error)})


def _not_looked_up(error: OSError) -> str:
    return f"a path in it cannot be looked up: {error.strerror or type(error).__name__}"


def _with_meaning(
    resolved: Resolved, spec: CommandSpec, environment: Mapping[str, str], own: Sequence[str], root: str
) -> Resolved:
    """Look up everything that the words of a command mean, whose program, directory and shell are known."""
    program, cwd = resolved.program or "", resolved.cwd or spec.cwd
    seen, word = view(spec.command), spec.command.words()[0]
    path = spec.environment.get("PATH", environment.get("PATH", os.defpath))
    repository, neutral = _repository(seen, cwd) if "git" in seen.names else (None, False)
    # A profile is bound to the approval like a script: by its file, and by its content.
    profile = resolved.own_shell.profile if resolved.own_shell is not None else ""
    scripts = (*find_scripts(spec, cwd, environment), *filter(None, (profile,)))
    variables, commands, more = expand_command(spec, cwd, environment, {word: program})
    found = () if spec.place else filter(None, (program, *(meaning.program for meaning in commands)))
    workspaces = tuple(host_files.realpath(path) for path in (root or cwd, cwd))
    return Resolved(
        program=resolved.program,
        cwd=resolved.cwd,
        own_shell=resolved.own_shell,
        git_is_neutral=neutral,
        repository=repository,
        places=find_places(seen, cwd, own),
        helpers=tuple(filter(None, (find_program(name, cwd, path) for name in helpers_of(seen.names)))),
        shell=os.path.basename(host_files.realpath(program)) if isinstance(spec.command, Shell) else None,  # noqa: PTH119
        outside=outside_programs(found, workspaces),
        variables=variables,
        commands=commands,
        more=more,
        unread=seen.problem,
        files=file_stamps(program, commands, scripts),
        contents=contents_of(scripts),
        sensitive=sensitive_files(spec, cwd, environment, own),
    )


_START_ANOTHER = frozenset({"rustup", "mise"})
"""Programs that go by many names and start another program of that name, which is not opened with them."""


def outside_programs(programs: Iterable[str], workspaces: Sequence[str]) -> tuple[OutsideProgram, ...]:
    """Return those of the programs of a command that lie neither in the system nor in a workspace (decision 7).

    A version manager or `pip install --user` puts programs into a home directory, which the sandbox keeps closed. One
    that is a binary needs nothing beside itself and the system, so that opening this one file is enough. What lies in a
    workspace is the agent's: no sandbox runs it because of its name.
    """
    found = []
    for program in dict.fromkeys(programs):
        real = host_files.realpath(program)
        if not any(is_below(real, each) for each in PROGRAM_DIRECTORIES) and not any(
            is_below(path, each) for path in (program, real) for each in workspaces
        ):
            here = not host_files.place()  # what is asked of a binary is asked of this machine
            alone = here and PurePath(real).name not in _START_ANOTHER and is_own_binary(program)
            found.append(OutsideProgram(path=program, real=real, runs_alone=alone))
    return tuple(found)


def _written_out(
    resolved: Resolved, literal: str, spec: CommandSpec, environment: Mapping[str, str], own: Sequence[str]
) -> Resolved:
    """Examine the words that expansions lead to like words that are written out (decision 29)."""
    cwd = resolved.cwd or spec.cwd
    spec = spec.model_copy(update={"command": Shell(text=literal)})
    found = {
        "sensitive": resolved.sensitive | sensitive_files(spec, cwd, environment, own),
        "literal": literal,
        "literal_places": find_places(view(spec.command), cwd, own),
    }
    return resolved.model_copy(update=found)


def _edits(spec: CommandSpec, environment: Mapping[str, str], own: Sequence[str], root: str) -> tuple[EditedFile, ...]:
    if not isinstance(spec.command, FileEdits):
        return ()
    home = environment.get("HOME") or host_files.home()
    return examine(spec.command.changes, (root or spec.cwd,), home, tuple(map(host_files.realpath, own)))


def _problem(spec: CommandSpec, word: str, program: str | None, cwd: str | None) -> str | None:
    if cwd is None:
        return f"the working directory {spec.cwd} does not exist"
    if program is None:
        return f"the program {word} was not found"
    if host_files.is_directory(program) or not host_files.is_executable(program):
        return f"the program {word} may not be executed"
    return None


class Examined(NamedTuple):
    """A command as the disk has it where it would run: all that judging it has to read."""

    resolved: Resolved
    code: tuple[CodeEffect, ...] = ()
    home: str | None = None
    """The home directory of the user at its place. None: it runs on this machine, or that is not known."""
    docker_problem: str = ""
    """Why no sandbox answers its docker, as a clause. Empty: it does, or that was not looked up."""


Looked = Callable[[], Examined] | None
"""Returns what was found a moment ago. None: nobody has looked yet."""


def found_code(
    resolved: Resolved, spec: CommandSpec, root: str, environment: Mapping[str, str]
) -> tuple[CodeEffect, ...]:
    """Return the code that a command runs and that is no part of it, with its risks."""
    if isinstance(spec.command, CarriedOut):
        return ()
    programs = (meaning.program for meaning in resolved.commands)
    if resolved.problem or resolved.cwd is None or not may_run_code(view(spec.command), programs, root):
        return ()
    repository = resolved.repository
    hooks = repository.common_dir if repository is not None else ""
    try:
        return code_of(spec.command, resolved.cwd, (root or resolved.cwd,), {**environment, **spec.environment}, hooks)
    except OSError as error:
        return (CodeEffect(name="the code that it runs", not_inspected=_not_looked_up(error)),)


MOST_RISKS = 20
"""Risks of a call and of its scripts together."""


def with_code(verdict: Verdict, examined: Examined) -> tuple[Verdict, Resolved]:
    """Add the code that a command runs, and its risks. They are for the human: the verdict was made without them."""
    if not (found := examined.code):
        return verdict, examined.resolved
    code = tuple(
        RunCode(name=each.name, path=each.path, digest=each.digest, not_inspected=each.not_inspected) for each in found
    )
    risks = dict.fromkeys(
        Risk(id=risk.id, sentence=risk.sentence_about(each.name)) for each in found for risk in each.risks
    )
    updated = verdict.model_copy(update={"risks": (*verdict.risks, *risks)[:MOST_RISKS]})
    return updated, examined.resolved.model_copy(update={"code": code})
