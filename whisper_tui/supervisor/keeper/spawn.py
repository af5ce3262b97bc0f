"""Starting the command, and saying exactly why it could not be started."""

import errno
import os
import signal
from typing import Any

from whisper_tui.supervisor.keeper import limited, sandbox
from whisper_tui.supervisor.keeper.group import RunGroup
from whisper_tui.supervisor.keeper.sandbox import Sandboxes
from whisper_tui.supervisor.keeper.stamp import stamp

_ALL_SIGNALS = tuple(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
_STANDARD = (0, 1, 2)


class StartFailed(Exception):
    """There was never a process. `problem` is one of the model's start problems, `subject` what it is about."""

    def __init__(self, problem: str, subject: str, message: str) -> None:
        super().__init__(message)
        self.problem = problem
        self.subject = subject
        self.message = message


def enter(cwd: str) -> None:
    """Make the command's working directory our own for the moment of the start."""
    try:
        os.chdir(cwd)
    except (FileNotFoundError, NotADirectoryError) as error:
        what = "is not a directory" if isinstance(error, NotADirectoryError) else "does not exist"
        raise StartFailed("cwd_not_found", cwd, f"The working directory {cwd} {what}.") from None
    except PermissionError:
        message = f"The working directory {cwd} may not be entered by this user."
        raise StartFailed("permission_denied", cwd, message) from None
    except (OSError, ValueError) as error:
        message = f"The working directory {cwd!r} cannot be used: {_reason(error)}."
        raise StartFailed("other", cwd, message) from None


def check_unchanged(order: dict[str, Any]) -> None:
    """Whether we are where it was approved, and its files are still those: the last look before the start."""
    cwd, expected = order["cwd"], order["real_cwd"]
    if expected is not None and (here := _here()) != expected:
        message = f"The working directory {cwd} led to {expected} when it was approved, and now leads to {here}."
        raise StartFailed("other", cwd, message)
    for path, known in order["files"].items():
        if stamp(path) != known:
            raise StartFailed("other", path, f"{path} was replaced or changed in the moment of the start.")


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "nowhere"


def spawn(
    order: dict[str, Any],
    environment: dict[str, str],
    files: list[tuple[Any, ...]],
    group: RunGroup,
    sandboxes: Sandboxes,
) -> tuple[int, int]:
    """Start the command in a session of its own. `files`: file actions for posix_spawn.

    Returns the leader's pid and the descriptor on which its sandbox asks, or -1 where it has none.
    """
    argv: list[str] = order["argv"]
    program: str | None = order["program"]
    if program is None:
        raise _not_found(argv[0])
    profile = sandbox.of(order)
    if profile is not None and sandboxes.support.problem:
        raise _no_sandbox(program, sandboxes.support.problem)
    limits = limited.of(order)
    try:
        if limits is not None:
            restrict = sandboxes.restriction(profile) if profile is not None else None
            return limited.spawn(program, argv, environment, files=files, limits=limits, group=group, restrict=restrict)

        def start() -> int:
            return os.posix_spawn(
                program, argv, environment, file_actions=files, setsid=True, setsigmask=(), setsigdef=_ALL_SIGNALS
            )

        return (start(), -1) if profile is None else sandboxes.start(profile, start)
    except OSError as error:
        raise _failure(program, error, sandboxed=profile is not None) from None
    except ValueError as error:
        message = f"The command cannot be passed to the system: {_reason(error)}."
        raise StartFailed("other", program, message) from None


def _no_sandbox(program: str, problem: str) -> StartFailed:
    """Better not at all than outside of the sandbox in which it was allowed to run."""
    message = f"The command was allowed to run in a sandbox only, and this system offers none: {problem}."
    return StartFailed("other", program, message)


def no_channel(what: str, error: OSError) -> StartFailed:
    """The system gives no pipes or no terminal."""
    return StartFailed("other", what, f"The system does not give {what} for the command: {_reason(error)}.")


def three(stdin: int, stdout: int, stderr: int) -> list[tuple[Any, ...]]:
    """File actions that make these descriptors the standard ones."""
    return [(os.POSIX_SPAWN_DUP2, fd, number) for fd, number in zip((stdin, stdout, stderr), _STANDARD, strict=True)]


def terminal(path: str, opened: int) -> list[tuple[Any, ...]]:
    """File actions that make a terminal all three; opened in the new session, it becomes the controlling one.

    It is opened for reading, which no sandbox asks about, and then replaced by what was opened before for both.
    """
    return [(os.POSIX_SPAWN_OPEN, 0, path, os.O_RDONLY, 0), *three(opened, opened, opened)]


def _not_found(asked: str) -> StartFailed:
    """No program was found for the word that was asked for: is it not there, or just not executable?"""
    if "/" in asked and "\0" not in asked:
        if os.path.isdir(asked):
            return StartFailed("permission_denied", asked, f"{asked} is a directory, not a program.")
        if os.path.exists(asked) and not os.access(asked, os.X_OK):
            return StartFailed("permission_denied", asked, f"{asked} is not executable by this user.")
        return StartFailed("program_not_found", asked, f"There is no program {asked}.")
    return StartFailed("program_not_found", asked, f"There is no program {asked!r} in PATH.")


def _failure(program: str, error: OSError, *, sandboxed: bool = False) -> StartFailed:
    match error.errno:
        case errno.EACCES if sandboxed and os.access(program, os.X_OK):
            message = f"{program} is in none of the directories from which the sandbox executes programs."
            return StartFailed("permission_denied", program, message)
        case errno.ENOENT if os.path.exists(program):
            message = f"{program} names an interpreter that does not exist (its first line, or its loader)."
            return StartFailed("not_executable", program, message)
        case errno.ENOENT | errno.ENOTDIR:
            return StartFailed("program_not_found", program, f"There is no program {program}.")
        case errno.EACCES | errno.EPERM:
            return StartFailed("permission_denied", program, f"{program} {_refusal(program)}.")
        case errno.ENOEXEC:
            message = f"{program} is not a program that this system can run: it is neither a binary of this machine "
            return StartFailed(
                "not_executable", program, message + "nor a script with an interpreter in its first line."
            )
        case errno.E2BIG:
            return StartFailed("other", program, "The arguments and the environment are longer than the system takes.")
        case _:
            return StartFailed("other", program, f"The system did not start {program}: {_reason(error)}.")


def _refusal(program: str) -> str:
    if os.path.isdir(program):
        return "is a directory, not a program"
    if os.access(program, os.X_OK):
        return "may not be executed here: its interpreter, or the file system it is on, does not permit it"
    return "is not executable by this user"


def _reason(error: OSError | ValueError) -> str:
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
