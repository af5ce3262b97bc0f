"""The directories of an instance: private, and used by one supervisor at a time. Standard library only."""

import errno
import fcntl
import json
import os
import stat
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from whisper_tui.model.errors import AlreadyRunning, BadStateDirectory
from whisper_tui.system.file_owners import others_may_change

if TYPE_CHECKING:
    from pathlib import PurePath


class Directories(NamedTuple):
    """The directories of one instance: one supervisor, one journal, one socket.

    A plain tuple, because light commands need it and must not wait for the import of the model.
    """

    config: "PurePath"
    state: "PurePath"
    runtime: "PurePath"


POINTER = "elsewhere"
"""A file in the default state directory that names the directories that are really used."""


def read_pointer(path: str) -> dict[str, str] | None:
    """Return the directories that a pointer file names. None: it is missing or unusable, or others may change it."""
    try:
        with open(path, encoding="utf-8") as file:
            # Another user could lead our agents to a supervisor of theirs.
            if others_may_change(os.fstat(file.fileno()), os.getuid()):
                return None
            named = json.load(file)
    except (OSError, ValueError):
        return None
    if not isinstance(named, dict) or named.keys() != {*Directories._fields}:
        return None
    return named if all(isinstance(each, str) and each.startswith("/") for each in named.values()) else None


LOCK = "supervisor.lock"


def prepare(home: Directories) -> None:
    """Create the state and runtime directories for this user alone. Raises `BadStateDirectory`."""
    for directory in (home.state, home.runtime):
        make_private(directory)


def make_private(directory: "PurePath") -> None:
    """Create a directory, or check an existing one. Raises `BadStateDirectory`."""
    path = os.fspath(directory)
    try:
        _make_parents(os.path.dirname(path))
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
        if not os.path.isdir(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        # An existing directory keeps its mode, so it is checked.
        about = os.stat(path)
    except FileExistsError as error:
        raise BadStateDirectory(f"{path} is not a directory", hint="Move it away, or choose another --home") from error
    except OSError as error:
        raise BadStateDirectory(
            f"{path} cannot be created or used: {error.strerror}",
            hint="Check the permissions and the free space above it, or choose another --home",
        ) from error
    problem = _problem(about)
    if problem:
        what, hint = problem
        raise BadStateDirectory(f"{path} {what}", hint=hint.format(path=path))


def _make_parents(path: str) -> None:
    """Create the missing directories above one that is private. Nobody else can write there, whatever the umask."""
    if path and not os.path.isdir(path):
        _make_parents(os.path.dirname(path))
        with suppress(FileExistsError):
            os.mkdir(path, 0o755)


def _problem(about: os.stat_result) -> tuple[str, str] | None:
    if about.st_uid != os.geteuid():
        return f"belongs to another user (uid {about.st_uid})", "Choose a directory of your own with --home"
    if about.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return (
            f"is open to other users (mode {stat.S_IMODE(about.st_mode):04o})",
            "Check its content, then run: chmod 700 {path}",
        )
    return None


def is_occupied(state: "PurePath") -> bool:
    """True if a supervisor uses a state directory now."""
    return is_locked(state / LOCK)


def is_locked(path: "PurePath") -> bool:
    """True if a process holds the lock of a file now. A file that cannot be opened is not locked."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # A shared lock, so that two programs that check at the same time do not take each other for the supervisor.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


class StateDirectoryLock:
    """The lock of one supervisor on a state directory. It ends with its process."""

    def __init__(self, state: "PurePath") -> None:
        """Take the lock. Raises `AlreadyRunning`, which names the owner, or `BadStateDirectory`."""
        path = self._path = os.fspath(state / LOCK)
        try:
            # Without O_CLOEXEC the commands would inherit the lock and keep it after the supervisor's end.
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise BadStateDirectory(f"{path} cannot be opened: {error.strerror}") from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            holder = os.pread(self._fd, 32, 0).decode(errors="replace").strip()
            os.close(self._fd)
            # The emulation of flock over NFS reports EACCES.
            if error.errno in {errno.EWOULDBLOCK, errno.EACCES}:
                who = f" (pid {holder})" if holder else ""
                raise AlreadyRunning(
                    f"a supervisor{who} already has {state}",
                    hint="Use it, stop it with whisper-tui stop, or choose another --home",
                ) from error
            raise BadStateDirectory(f"{path} cannot be locked: {error.strerror}") from error

    @property
    def holds(self) -> bool:
        """True if the directory is still the locked one, and has not been removed or replaced."""
        try:
            # A lock on a removed file excludes nobody.
            return os.path.samestat(os.lstat(self._path), os.fstat(self._fd))
        except OSError:
            return False

    def release(self) -> None:
        """Release the lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
