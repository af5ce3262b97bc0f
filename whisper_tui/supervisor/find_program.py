"""Which file a word names as a program."""

import os


def find_program(word: str, cwd: str, path: str) -> str | None:
    """The file that a word names: itself where it holds a slash, else the first executable of that name in PATH."""
    if not word or "\0" in word:
        return None
    if "/" in word:
        named = os.path.join(cwd, word)  # noqa: PTH118
        return _tidy(named) if _exists(named) else None
    for directory in path.split(os.pathsep):
        candidate = os.path.join(cwd, directory or ".", word)  # noqa: PTH118
        if os.access(candidate, os.X_OK) and not is_directory(candidate):
            return _tidy(candidate)
    return None


def _tidy(path: str) -> str:
    """Without `.` parts; `..` stays as it is, for behind a link it means something else."""
    return path if ".." in path.split("/") else os.path.normpath(path)


def is_directory(path: str) -> bool:
    """Whether there is a directory of that name."""
    try:
        return os.path.isdir(path)  # noqa: PTH112
    except ValueError:
        return False


def _exists(path: str) -> bool:
    try:
        return os.path.exists(path)  # noqa: PTH110
    except ValueError:
        return False
