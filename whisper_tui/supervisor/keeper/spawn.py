"""The start of the command with its limits and its sandbox, and the exact reason if it cannot be started."""

import errno
import fcntl
import os
import shlex
import tempfile
from typing import Any

from whisper_tui.supervisor.keeper import sandbox
from whisper_tui.supervisor.keeper.limited_start import (
    ALL_SIGNALS,
    PreviewedCommand,
    ProcessLimits,
    fork_limited,
    limited_as_commands,
)
from whisper_tui.supervisor.keeper.run_cgroup import RunCgroup
from whisper_tui.supervisor.keeper.sandbox import Sandboxes
from whisper_tui.system.run_files import stamp


def limits_of(spec: dict[str, Any]) -> ProcessLimits | None:
    """Return the limits of an attempt. None: the system has none to enforce."""
    limits = ProcessLimits(spec["cpu"], spec["memory"])
    return None if limits == (None, None) else limits


_SCRIPT, _REPORT = 240, 241
"""Descriptors in the command: high ones, which scripts do not use. The first is closed at once."""

_TRAP = f"{{ builtin set +x; builtin pwd -P >&{_REPORT}; }} 2>/dev/null || builtin :"
"""`set -x` does not show it, and it does not change the exit code."""

LONGEST_DIRECTORY = 4096
"""The longest path and the longest inherited `BASH_ENV` in bytes. Both fit into a pipe without a reader."""


class LastDirectory:
    """Asks the bash of one command for its last directory.

    Bash reads the file that `BASH_ENV` names before its command. That file is a pipe with a script that sets an exit
    trap, which writes the directory into an anonymous file. A command that sets an exit trap of its own, or is
    replaced by `exec`, reports nothing.
    """

    # Both descriptors are open before the start: a sandboxed command may not be able to open anything.
    def __init__(self, environment: dict[str, str]) -> None:
        """`environment` belongs to the command, whose own `BASH_ENV` is still read. Raises `OSError`."""
        self.report = _above(os.memfd_create("last directory") if hasattr(os, "memfd_create") else _temporary())
        self._script, writer = os.pipe()
        self._script = _above(self._script)
        try:
            os.set_blocking(writer, False)
            os.write(writer, os.fsencode(_script(environment.get("BASH_ENV"))))
        finally:
            os.close(writer)
        self.environment = {**environment, "BASH_ENV": f"/dev/fd/{_SCRIPT}"}
        """The environment for the start. The script resets the variable before the command begins."""

    @classmethod
    def taken_over(cls, report: int) -> "LastDirectory":
        """Return that of a command which another process has started."""
        made = cls.__new__(cls)
        made.report, made._script, made.environment = report, -1, {}
        return made

    @property
    def actions(self) -> list[tuple[Any, ...]]:
        """File actions for posix_spawn."""
        return [(os.POSIX_SPAWN_DUP2, self._script, _SCRIPT), (os.POSIX_SPAWN_DUP2, self.report, _REPORT)]

    def has_started(self) -> None:
        """Close the pipe that only bash reads."""
        os.close(self._script)
        self._script = -1

    def read(self) -> str | None:
        """Return the last directory. None: bash did not report it."""
        told = os.pread(self.report, LONGEST_DIRECTORY + 1, 0)
        if not told.startswith(b"/") or not told.endswith(b"\n"):
            return None
        return os.fsdecode(told[:-1])

    def close(self) -> None:
        """Close everything."""
        if self._script >= 0:
            self.has_started()
        os.close(self.report)


def _above(fd: int) -> int:
    """Return a descriptor in place of another, with a number that is no target of a file action: it is not closed."""
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _REPORT + 1)
    finally:
        os.close(fd)


def _temporary() -> int:
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _script(own: str | None) -> str:
    """Return the script that bash reads first. `own`: the file that it would have read."""
    # Bash expands the value of BASH_ENV like a word in double quotes. A quote in the value could end them.
    lines = [f"exec {_SCRIPT}<&-", f"trap {shlex.quote(_TRAP)} EXIT"]
    if own is None:
        return "\n".join(("builtin unset BASH_ENV", *lines, ""))
    read = shlex.quote(f'[ ! -e "{own}" ] || . "{own}"')
    return "\n".join((f"export BASH_ENV={shlex.quote(own)}", *lines, f"eval {read}" if '"' not in own else ":", ""))


def report_of_zsh(own: str | None) -> str:
    """Return what zsh runs first to report its last directory: it reads no `BASH_ENV`. `own`: that of the command."""
    restored = "unset BASH_ENV" if own is None else f"export BASH_ENV={shlex.quote(own)}"
    return f"{restored}; trap {shlex.quote(_TRAP)} EXIT"


_STANDARD = (0, 1, 2)


class StartFailed(Exception):
    """No process was started. `problem` is one of the model's start problems, `subject` the path that it concerns."""

    def __init__(self, problem: str, subject: str, message: str) -> None:
        super().__init__(message)
        self.problem = problem
        self.subject = subject
        self.message = message


def enter(cwd: str) -> None:
    """Change to the command's working directory for the start."""
    try:
        os.chdir(cwd)
    except (FileNotFoundError, NotADirectoryError) as error:
        what = "is not a directory" if isinstance(error, NotADirectoryError) else "does not exist"
        raise StartFailed("cwd_not_found", cwd, f"The working directory {cwd} {what}.") from None
    except PermissionError:
        message = f"The working directory {cwd} is not accessible to this user."
        raise StartFailed("permission_denied", cwd, message) from None
    except (OSError, ValueError) as error:
        message = f"The working directory {cwd!r} cannot be used: {_reason(error)}."
        raise StartFailed("other", cwd, message) from None


def last_directory(environment: dict[str, str]) -> LastDirectory:
    """Prepare to ask a command with this environment for its last directory. Raises `StartFailed`."""
    try:
        return LastDirectory(environment)
    except OSError as error:
        raise no_channel("a channel for its last directory", error) from None


def with_private_directory(
    order: dict[str, Any], environment: dict[str, str], directory: str, terminal: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the order and the environment of a sandboxed command with an empty TMPDIR of its own, and its terminal."""
    try:
        os.mkdir(directory, 0o700)
    except OSError as error:
        raise no_channel("a temporary directory", error) from None
    asked = order["sandbox"]
    opened = {**order, "sandbox": {**asked, "write": [*asked["write"], os.path.realpath(directory), *terminal]}}
    caches = _caches(environment, asked, os.path.join(directory, "cache")) if asked["write"] else {}
    return opened, {**environment, **caches, "TMPDIR": directory}


_CACHES = {
    "XDG_CACHE_HOME": ".cache",
    "npm_config_cache": ".npm",
    "YARN_GLOBAL_FOLDER": ".yarn/berry",
    "CARGO_HOME": ".cargo",
    "GOPATH": "go",
    "GRADLE_USER_HOME": ".gradle",
    "DOTNET_CLI_HOME": ".dotnet",
    "NUGET_PACKAGES": ".nuget/packages",
    "COMPOSER_HOME": ".config/composer",
    "BUNDLE_USER_HOME": ".bundle",
}
"""The variables with which tools look for their caches, and the usual places of these in a home directory."""


def _caches(environment: dict[str, str], opened: dict[str, Any], scratch: str) -> dict[str, str]:
    """Return the variables for caches that the sandbox does not open: in the command's own temporary directory."""
    home = environment.get("HOME", "/")
    paths = [path.rstrip("/") + "/" for name in ("read", "write", "execute") for path in opened[name]]
    found: dict[str, str] = {}
    for variable, usual in _CACHES.items():
        used = os.path.realpath(environment.get(variable) or os.path.join(home, usual)) + "/"
        if not any(used.startswith(path) for path in paths):
            found[variable] = os.path.join(scratch, variable.lower())
    return found


def check_unchanged(order: dict[str, Any]) -> None:
    """Check that the working directory and the files are those that were approved. Raises `StartFailed`."""
    # The last check before the start (decision 11): the supervisor's check is some milliseconds old.
    cwd, expected = order["cwd"], order["real_cwd"]
    if expected is not None and (here := _current_directory()) != expected:
        message = f"The working directory {cwd} led to {expected} when it was approved, and now leads to {here}."
        raise StartFailed("other", cwd, message)
    for path, known in order["files"].items():
        if stamp(path) != known:
            raise StartFailed("other", path, f"{path} was replaced or changed just before the start.")


def _current_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "nowhere"


def spawn(
    order: dict[str, Any],
    environment: dict[str, str],
    files: list[tuple[Any, ...]],
    group: RunCgroup,
    sandboxes: Sandboxes,
    *,
    target: int = -1,
) -> tuple[int, int]:
    """Start the command in a session of its own. `files`: file actions for posix_spawn; `target`: our end of its input.

    Returns the leader's pid and the descriptor of its sandbox's notifications, or -1 if it has no sandbox.
    """
    argv: list[str] = order["argv"]
    program: str | None = order["program"]
    if program is None:
        raise _not_found(argv[0])
    profile = sandbox.profile_of(order)
    if profile is not None and sandboxes.support.problem:
        raise _no_sandbox(program, sandboxes.support.problem)
    limits = limits_of(order)
    if order.get("preview") is not None:
        return _start_preview(order, program, environment, files, sandboxes, target=target), -1
    try:
        if limits is not None:
            restrict = sandboxes.restriction(profile) if profile is not None else None
            return fork_limited(program, argv, environment, files=files, limits=limits, group=group, restrict=restrict)

        def start() -> int:
            with limited_as_commands():
                return os.posix_spawn(
                    program, argv, environment, file_actions=files, setsid=True, setsigmask=(), setsigdef=ALL_SIGNALS
                )

        return (start(), -1) if profile is None else sandboxes.start(profile, start)
    except OSError as error:
        raise _failure(program, error, sandboxed=profile is not None) from None
    except ValueError as error:
        message = f"The command cannot be passed to the system: {_reason(error)}."
        raise StartFailed("other", program, message) from None


def load_previews() -> None:
    """Load all that starts a preview, which takes ten milliseconds."""
    from whisper_tui.supervisor.preview import preview_ways

    preview_ways.make_filters()


def _start_preview(
    order: dict[str, Any],
    program: str,
    environment: dict[str, str],
    files: list[tuple[Any, ...]],
    sandboxes: Sandboxes,
    *,
    target: int,
) -> int:
    """Start the command in a view of the files. Returns the pid of the process that ends as the command does."""
    # At places there are no previews, nor these modules.
    from whisper_tui.supervisor.preview import overlay_mounts, preview_process, preview_ways

    terminal = next((action[2] for action in files if action[0] == os.POSIX_SPAWN_OPEN), None)
    limits = limits_of(order) or ProcessLimits(None, None)
    command = PreviewedCommand(program, order["argv"], environment, files, limits)
    options, cwd = order["preview"], order["real_cwd"] or order["cwd"]
    try:
        start = preview_process.PreviewStart(options["store"], options, cwd, terminal, command, target)
        return preview_ways.start(start, sandboxes)
    except overlay_mounts.NoPreview as problem:
        what = "run reversibly" if options["network"] else "be previewed"
        raise StartFailed("other", program, f"Commands cannot {what} here: {problem}.") from None
    except OSError as error:
        raise _failure(program, error) from None
    except ValueError as error:
        message = f"The command cannot be passed to the system: {_reason(error)}."
        raise StartFailed("other", program, message) from None


def _no_sandbox(program: str, problem: str) -> StartFailed:
    """Return the failure of a command that may only run in a sandbox."""
    # Nobody has approved it without a sandbox (decision 7).
    message = f"The command may only run in a sandbox, and this system has none: {problem}."
    return StartFailed("other", program, message)


def no_channel(what: str, error: OSError) -> StartFailed:
    """Return the failure of a start for which the system provides no pipe or terminal."""
    return StartFailed("other", what, f"The system does not provide {what} for the command: {_reason(error)}.")


def standard_streams(stdin: int, stdout: int, stderr: int) -> list[tuple[Any, ...]]:
    """Return file actions that turn these descriptors into the standard ones."""
    return [(os.POSIX_SPAWN_DUP2, fd, number) for fd, number in zip((stdin, stdout, stderr), _STANDARD, strict=True)]


def terminal(path: str, opened: int) -> list[tuple[Any, ...]]:
    """Return file actions that make a terminal all three standard descriptors, and the controlling terminal."""
    # Opening it in the new session makes it the controlling one. It is opened for reading, because a sandbox asks the
    # keeper about each opening for writing, and replaced by the descriptor that was opened before for both.
    return [(os.POSIX_SPAWN_OPEN, 0, path, os.O_RDONLY, 0), *standard_streams(opened, opened, opened)]


def _not_found(asked: str) -> StartFailed:
    """Return the failure of a program that was not found, or that is not executable."""
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
            return StartFailed("other", program, "The arguments and the environment are longer than the system allows.")
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
