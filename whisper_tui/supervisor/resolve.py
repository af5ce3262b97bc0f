"""What the words of a command mean on this machine: which file would start, and where."""

import os
from collections.abc import Mapping

from whisper_tui.model.command import CommandSpec, Function
from whisper_tui.model.verdict import Resolved


def resolve(spec: CommandSpec, environment: Mapping[str, str]) -> Resolved:
    """Look up the program in the PATH of the command's own environment, and follow the links of its directory."""
    cwd = os.path.realpath(spec.cwd) if _is_directory(spec.cwd) else None
    if isinstance(spec.command, Function):
        return Resolved(cwd=cwd, problem=None if cwd else f"the working directory {spec.cwd} does not exist")
    word = spec.command.words()[0]
    program = find_program(word, cwd or spec.cwd, spec.environment.get("PATH", environment.get("PATH", os.defpath)))
    return Resolved(program=program, cwd=cwd, problem=_problem(spec, word, program, cwd))


def find_program(word: str, cwd: str, path: str) -> str | None:
    """The file that a word names: itself where it holds a slash, else the first executable of that name in PATH."""
    if not word or "\0" in word:
        return None
    if "/" in word:
        named = os.path.join(cwd, word)  # noqa: PTH118
        return _tidy(named) if _exists(named) else None
    for directory in path.split(os.pathsep):
        candidate = os.path.join(cwd, directory or ".", word)  # noqa: PTH118
        if os.access(candidate, os.X_OK) and not _is_directory(candidate):
            return _tidy(candidate)
    return None


def _tidy(path: str) -> str:
    """Without `.` parts; `..` stays as it is, for behind a link it means something else."""
    return path if ".." in path.split("/") else os.path.normpath(path)


def _problem(spec: CommandSpec, word: str, program: str | None, cwd: str | None) -> str | None:
    if cwd is None:
        return f"the working directory {spec.cwd} does not exist"
    if program is None:
        return f"the program {word} was not found"
    if _is_directory(program) or not os.access(program, os.X_OK):
        return f"the program {word} may not be executed"
    return None


def _is_directory(path: str) -> bool:
    try:
        return os.path.isdir(path)  # noqa: PTH112
    except ValueError:
        return False


def _exists(path: str) -> bool:
    try:
        return os.path.exists(path)  # noqa: PTH110
    except ValueError:
        return False
