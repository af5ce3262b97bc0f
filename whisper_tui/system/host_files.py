"""Questions about files, asked of the machine on which a command would run: this one, or a place.

Whatever inspects a command asks here instead of `os`, so that no part of a judgement can look at the wrong machine. The
keeper's standard library alone: the far end of a place answers the same questions with this module.
"""

import os
import pwd
import socket
import stat as modes
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from hashlib import blake2b
from typing import NamedTuple, Protocol

from whisper_tui.system import process_names

MOST_LINKS = 40
"""Limit of symbolic links in one path, the same as the kernel's."""

_NEVER_OPENED = ("/proc", "/sys", "/dev")
"""Reading a file there may wait for ever, or change something."""

_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
"""Flags of every file that is read: without O_NONBLOCK a FIFO that was put there would wait for its writer."""

_ONLY_PATH = os.O_PATH | os.O_CLOEXEC if hasattr(os, "O_PATH") else 0
"""Flags that open no file, only what leads to it. 0: this system has none."""

MOST_KEPT_LINKS = 2_000
"""Links below a path that are named."""

MOST_KEPT = 20_000
"""Names of files below one path that are kept for git."""


class Tree(NamedTuple):
    """The files below a path."""

    files: int
    bytes: int
    complete: bool
    names: tuple[str, ...]
    """Real paths of the files, as many as were kept."""
    links: tuple[str, ...] = ()
    """Real paths of the symbolic links, at most `MOST_KEPT_LINKS`."""

    @property
    def is_whole(self) -> bool:
        """True if every file is named."""
        return self.complete and len(self.names) == self.files


class HostFiles(Protocol):
    """A machine that answers. Errors are those of `os`: `OSError`, and `ValueError` for a name that no system takes."""

    place: str
    """The name of the place. Empty: this machine."""

    def stat(self, path: str) -> os.stat_result:
        """Return the status of a file, links followed."""
        ...

    def lstat(self, path: str) -> os.stat_result:
        """Return the status of a file or of the link itself."""
        ...

    def readlink(self, path: str) -> str:
        """Return the text of a link."""
        ...

    def realpath(self, path: str) -> str:
        """Return a path with its links resolved, but for names that mean something else for each process."""
        ...

    def is_executable(self, path: str) -> bool:
        """True if the user may execute a file, or search a directory."""
        ...

    def names(self, path: str, most: int) -> list[str]:
        """Return at most so many names in a directory."""
        ...

    def read_regular(self, path: str, most: int, *, follow: bool) -> tuple[bytes | None, str]:
        """Read a regular file whole, or return None and the reason why not, as a clause."""
        ...

    def digest(self, path: str, most: int) -> tuple[str, int] | None:
        """Return the digest and the size of a regular file. None: it is larger than `most`, or cannot be read."""
        ...

    def tree(self, path: str, seconds: float) -> Tree:
        """Count the files below a real path for at most so long, links not followed."""
        ...

    def home(self) -> str:
        """Return the home directory as programs find it."""
        ...

    def home_of_user(self) -> str:
        """Return the home directory of the user according to the system."""
        ...

    def user_id(self) -> int:
        """Return the number of the user whose commands run."""
        ...

    def host_name(self) -> str:
        """Return the name of the machine."""
        ...


class LocalFiles:
    """The machine of this process."""

    place = ""
    stat = staticmethod(os.stat)
    lstat = staticmethod(os.lstat)
    readlink = staticmethod(os.readlink)
    user_id = staticmethod(os.geteuid)
    host_name = staticmethod(socket.gethostname)

    @staticmethod
    def realpath(path: str) -> str:
        """Return a path with its links resolved, but for names that mean something else for each process."""
        return path if _is_real(path) else _followed(path)

    @staticmethod
    def is_executable(path: str) -> bool:
        """True if the user may execute a file, or search a directory."""
        return os.access(path, os.X_OK)

    @staticmethod
    def names(path: str, most: int) -> list[str]:
        """Return at most so many names in a directory."""
        names: list[str] = []
        with os.scandir(path) as entries:
            for entry in entries:
                if len(names) >= most:
                    break
                names.append(entry.name)
        return names

    @staticmethod
    def read_regular(path: str, most: int, *, follow: bool) -> tuple[bytes | None, str]:
        """Read a regular file whole, or return None and the reason why not, as a clause."""
        if any(path == each or path.startswith(each + "/") for each in _NEVER_OPENED):
            return None, "it is not a file on a disk"
        try:
            descriptor = os.open(path, _OPEN if follow else _OPEN | os.O_NOFOLLOW)
        except OSError as error:
            return None, f"the file cannot be read: {error.strerror}"
        try:
            status = os.fstat(descriptor)
            if not modes.S_ISREG(status.st_mode):
                return None, "it is not a regular file"
            if status.st_size > most:
                return None, f"the file is larger than {most // 1024:,} KiB"
            content = bytearray()
            while len(content) <= most and (part := os.read(descriptor, most + 1 - len(content))):
                content += part
            return (bytes(content), "") if len(content) <= most else (None, "the file is growing")
        except OSError as error:
            return None, f"the file cannot be read: {error.strerror}"
        finally:
            os.close(descriptor)

    @staticmethod
    def digest(path: str, most: int) -> tuple[str, int] | None:
        """Return the digest and the size of a regular file. None: it is larger than `most`, or cannot be read."""
        try:
            descriptor = os.open(path, _OPEN)
            with os.fdopen(descriptor, "rb") as file:
                status = os.fstat(descriptor)
                if not modes.S_ISREG(status.st_mode) or status.st_size > most:
                    return None
                content = file.read(most)
                return blake2b(content, digest_size=16).hexdigest(), len(content)
        except (OSError, ValueError):
            return None

    @staticmethod
    def tree(path: str, seconds: float) -> Tree:
        """Count the files below a real path for at most so long, links not followed."""
        ends = time.monotonic() + seconds
        files = size = 0
        names: list[str] = []
        links: list[str] = []
        for found, status in _walk(path):
            # An unreadable directory may hold any number.
            if time.monotonic() > ends or status is None:
                return Tree(files, size, False, tuple(names), tuple(links))
            if not modes.S_ISDIR(status.st_mode):
                files += 1
                size += status.st_size
                if len(names) < MOST_KEPT:
                    names.append(found)
                if modes.S_ISLNK(status.st_mode) and len(links) < MOST_KEPT_LINKS:
                    links.append(found)
        return Tree(files, size, True, tuple(names), tuple(links))

    @staticmethod
    def home() -> str:
        """Return the home directory as programs find it."""
        return os.path.expanduser("~")

    @staticmethod
    def home_of_user() -> str:
        """Return the home directory of the user according to the system."""
        return _home_of_user()


def _is_real(path: str) -> bool:
    """True if the kernel finds this path without following a link. False also if there is nothing to find."""
    # Most paths that are asked about are real, and three calls say so whatever their length.
    if not _ONLY_PATH:
        return False
    try:
        fd = os.open(path, _ONLY_PATH)
    except OSError:
        return False
    try:
        return os.readlink(f"/proc/self/fd/{fd}") == path
    except OSError:
        return False
    finally:
        os.close(fd)


def realpath_here(path: str) -> str:
    """Return a path of this machine with its links resolved."""
    return path if _is_real(path) else os.path.realpath(path)


def _followed(path: str) -> str:
    """Return a path with its links resolved as the kernel does it, up to a name of `process_names`."""
    if "\0" in path:
        raise ValueError("embedded null byte")
    whole = path if path.startswith("/") else os.path.join(os.getcwd(), path)
    at, rest, links = "/", whole.split("/")[::-1], 0
    while rest:
        part = rest.pop()
        if part in {"", "."}:
            continue
        # `at` is resolved already, so its parent is the real one, as the kernel sees it.
        if part == "..":
            at = os.path.dirname(at)
            continue
        at = at.rstrip("/") + "/" + part
        if process_names.is_of_process(at):
            return "/".join((at, *(each for each in reversed(rest) if each not in {"", "."})))
        if at in process_names.SAME_FOR_ALL:
            continue
        try:
            target = os.readlink(at)
        except OSError:
            continue
        links += 1
        if links > MOST_LINKS:
            return os.path.normpath("/".join((at, *reversed(rest))))
        rest += target.split("/")[::-1]
        at = "/" if target.startswith("/") else os.path.dirname(at)
    return at


@cache
def _home_of_user() -> str:
    # An agent can set HOME.
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "/"


def _walk(real: str) -> Iterator[tuple[str, os.stat_result | None]]:
    """Yield every path at and below a path. Without a status: it could not be looked at."""
    try:
        top = os.lstat(real)
    except FileNotFoundError:
        return
    except OSError:
        yield real, None
        return
    yield real, top
    waiting = [real] if modes.S_ISDIR(top.st_mode) else []
    while waiting:
        directory = waiting.pop()
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    if modes.S_ISDIR(status.st_mode):
                        waiting.append(entry.path)
                    yield entry.path, status
        except FileNotFoundError:
            continue
        except OSError:
            yield directory, None


THIS_MACHINE: HostFiles = LocalFiles()

_ASKED: ContextVar[HostFiles] = ContextVar("asked_host", default=THIS_MACHINE)
"""The machine that is asked at present: a context variable, so that threads and tasks do not mix machines up."""


@contextmanager
def asking(host: HostFiles) -> Iterator[None]:
    """Ask another machine within a block."""
    before = _ASKED.set(host)
    try:
        yield
    finally:
        _ASKED.reset(before)


def place() -> str:
    """Return the name of the place that is asked. Empty: this machine."""
    return _ASKED.get().place


def stat(path: str) -> os.stat_result:
    """Return the status of a file, links followed. Raises `OSError`, `ValueError`."""
    return _ASKED.get().stat(path)


def lstat(path: str) -> os.stat_result:
    """Return the status of a file or of the link itself. Raises `OSError`, `ValueError`."""
    return _ASKED.get().lstat(path)


def status(path: str) -> os.stat_result | None:
    """Return the status of a file, links followed. None: there is none."""
    try:
        return _ASKED.get().stat(path)
    except (OSError, ValueError):
        return None


def readlink(path: str) -> str:
    """Return the text of a link. Raises `OSError`, `ValueError`."""
    return _ASKED.get().readlink(path)


def realpath(path: str, directory: str | None = None) -> str:
    """Return a path with its links resolved. Raises `ValueError` for a name that no system takes.

    Names that mean something else for each process are not followed. `directory`: that of the process which will use
    the path, so that `/proc/self/cwd` can be.
    """
    host = _ASKED.get()
    real = host.realpath(path)
    if directory is not None:
        for _ in range(3):
            inside = process_names.in_directory(real, directory)
            if inside == real:
                break
            real = host.realpath(inside)
    return real


def exists(path: str) -> bool:
    """True if there is anything of that name, links followed."""
    return status(path) is not None


def lexists(path: str) -> bool:
    """True if there is anything of that name, be it a link that leads nowhere."""
    return _own_status(path) is not None


def is_directory(path: str) -> bool:
    """True if there is a directory of that name."""
    found = status(path)
    return found is not None and modes.S_ISDIR(found.st_mode)


def is_file(path: str) -> bool:
    """True if there is a regular file of that name."""
    found = status(path)
    return found is not None and modes.S_ISREG(found.st_mode)


def is_link(path: str) -> bool:
    """True if there is a symbolic link of that name."""
    found = _own_status(path)
    return found is not None and modes.S_ISLNK(found.st_mode)


def _own_status(path: str) -> os.stat_result | None:
    try:
        return _ASKED.get().lstat(path)
    except (OSError, ValueError):
        return None


def is_executable(path: str) -> bool:
    """True if the user may execute a file, or search a directory. Raises `ValueError`."""
    return _ASKED.get().is_executable(path)


def names(path: str, most: int) -> list[str]:
    """Return at most so many names in a directory. Raises `OSError`, `ValueError`."""
    return _ASKED.get().names(path, most)


def read_regular(path: str, most: int, *, follow: bool = False) -> tuple[bytes | None, str]:
    """Read a regular file whole, or return None and the reason why not, as a clause. `follow`: it may be a link."""
    return _ASKED.get().read_regular(path, most, follow=follow)


def digest(path: str, most: int) -> tuple[str, int] | None:
    """Return the digest and the size of a regular file. None: it is larger than `most`, or cannot be read."""
    return _ASKED.get().digest(path, most)


def tree(path: str, seconds: float) -> Tree:
    """Count the files below a real path for at most so long, links not followed."""
    return _ASKED.get().tree(path, seconds)


def home() -> str:
    """Return the home directory as programs find it."""
    return _ASKED.get().home()


def home_of_user() -> str:
    """Return the home directory of the user according to the system."""
    return _ASKED.get().home_of_user()


def user_id() -> int:
    """Return the number of the user whose commands run."""
    return _ASKED.get().user_id()


def host_name() -> str:
    """Return the name of the machine."""
    return _ASKED.get().host_name()


def named_path(path: str, directory: str) -> str:
    """Return the real path of a name, from a directory on. If it names a symbolic link, it is the path of the link."""
    parent, name = os.path.split(os.path.normpath(os.path.join(directory, path)))
    return os.path.join(os.path.realpath(parent), name)
