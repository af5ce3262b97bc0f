"""What the words of a command mean on this machine: which files would start, and where."""

import os
from collections.abc import Mapping, Sequence

from whisper_tui.model.command import CommandSpec, Function, Shell
from whisper_tui.model.verdict import Resolved
from whisper_tui.policy.read_only.helpers import helpers_of
from whisper_tui.policy.view import view
from whisper_tui.supervisor.files_behind import content_of, files_behind, scripts_behind
from whisper_tui.supervisor.find_program import find_program, is_directory
from whisper_tui.supervisor.git_repository import find_repository
from whisper_tui.supervisor.meaning import explain
from whisper_tui.supervisor.places import places_of
from whisper_tui.supervisor.sensitive_files import sensitive_files


def resolve(spec: CommandSpec, environment: Mapping[str, str], own: Sequence[str] = ()) -> Resolved:
    """Look up programs in the PATH of the command itself, and expand what expands without running anything.

    `own`: the directories of whisper_tui, which a command that only looks does not look into.
    """
    cwd = os.path.realpath(spec.cwd) if is_directory(spec.cwd) else None
    if isinstance(spec.command, Function):
        return Resolved(cwd=cwd, problem=None if cwd else f"the working directory {spec.cwd} does not exist")
    word = spec.command.words()[0]
    path = spec.environment.get("PATH", environment.get("PATH", os.defpath))
    program = find_program(word, cwd or spec.cwd, path)
    problem = _problem(spec, word, program, cwd)
    if problem is not None or cwd is None or program is None:
        return Resolved(program=program, cwd=cwd, problem=problem)
    seen = view(spec.command)
    repository, neutral = find_repository(cwd) if "git" in seen.names else (None, False)
    scripts = scripts_behind(spec, cwd, environment)
    variables, commands, more = explain(spec, cwd, environment, {word: program})
    return Resolved(
        program=program,
        cwd=cwd,
        git_is_neutral=neutral,
        repository=repository,
        places=places_of(seen, cwd, own),
        helpers=tuple(filter(None, (find_program(name, cwd, path) for name in helpers_of(seen.names)))),
        shell=os.path.basename(os.path.realpath(program)) if isinstance(spec.command, Shell) else None,  # noqa: PTH119
        variables=variables,
        commands=commands,
        more=more,
        unread=seen.problem,
        files=files_behind(program, commands, scripts),
        contents={path: found for path in scripts if (found := content_of(path)) is not None},
        sensitive=sensitive_files(spec, cwd, environment, own),
    )


def _problem(spec: CommandSpec, word: str, program: str | None, cwd: str | None) -> str | None:
    if cwd is None:
        return f"the working directory {spec.cwd} does not exist"
    if program is None:
        return f"the program {word} was not found"
    if is_directory(program) or not os.access(program, os.X_OK):
        return f"the program {word} may not be executed"
    return None
