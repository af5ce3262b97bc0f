"""The files of a place as a judgement sees them: asked about in batches, and taken for data.

An examination is run against what is known so far. What it asks beyond that is assumed, sent as one request, and the
examination is run again, until it has asked nothing that the place has not answered. So it takes a few round trips,
and nothing in its result is assumed.
"""

import asyncio
import base64
import binascii
import errno
import json
import os
import posixpath
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor as Threads
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from whisper_tui.model.errors import Unavailable
from whisper_tui.model.text import visible
from whisper_tui.supervisor.places.far_files import DIGEST, LARGEST_READ, LOOK, MOST_NAMES, NAMES, READ, TREE
from whisper_tui.supervisor.places.frames import Frame
from whisper_tui.system import host_files
from whisper_tui.system.host_files import Tree

MOST_ROUNDS = 12
"""Requests for one examination. Most need three or four."""
MOST_SECONDS = 15.0
"""Seconds for one examination."""
MOST_ASKED = 2000
"""Questions of one request."""
LARGEST_ANSWER = 12 << 20
"""Bytes of the answers to one request."""
LARGEST_KNOWN = 64 << 20
"""Bytes of the answers for one examination."""
LONGEST_PATH = 4096
_LONGEST_REASON = 200
_DIGEST = re.compile("[0-9a-f]{32}")
_PROGRAMS = ("/usr/bin/", "/bin/")
_STAT_FIELDS = 9

Question = tuple[str | int, ...]
T = TypeVar("T")


class FarUser(Protocol):
    """The user at a place, as it said when it was reached."""

    @property
    def host(self) -> str:
        """The name of the machine."""
        ...

    @property
    def uid(self) -> int:
        """The number of the user."""
        ...

    @property
    def home(self) -> str:
        """The home directory of the user."""
        ...

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of a login shell."""
        ...


class AskedPlace(Protocol):
    """The connection to a place, as far as it is asked about files."""

    name: str

    @property
    def hello(self) -> FarUser | None:
        """The user there. None: the place is not reached."""
        ...

    async def reach(self) -> FarUser | None:
        """Return the user there, after the first attempt if it is not connected. None: it is not reached."""
        ...

    def unreached(self) -> Unavailable:
        """Return the error of a request that cannot be sent."""
        ...

    async def ask(self, do: str, payload: bytes = b"") -> Frame:
        """Send a request and wait for its answer. Raises `WhisperError`."""
        ...


@runtime_checkable
class HasPlaces(Protocol):
    """An executor whose commands run at places, too."""

    on_reached: Callable[[str], None]
    """Called with the name of a place whenever it is reached."""

    def connection(self, place: str) -> AskedPlace:
        """Return the connection to a place. Raises `Unavailable`."""
        ...


def no_such_place(place: str) -> Unavailable:
    """Return the error of a place that the configuration does not name."""
    return Unavailable(f"there is no place {place} in the configuration", hint=f"Add [places.{place}], then restart")


def no_places(place: str) -> AskedPlace:
    """Raise `Unavailable`: commands run on this machine alone."""
    raise no_such_place(place)


class BadAnswer(Exception):
    """A place answers questions about files in a way that is not understood."""


class _Look(NamedTuple):
    """All that a path is."""

    own: os.stat_result | int
    """Its status, or the number of the error."""
    behind: os.stat_result | int
    """The same with links followed."""
    target: str | None
    real: str
    executable: bool


class PlaceFiles:
    """A snapshot of the files of one place, as far as they were asked about."""

    def __init__(self, place: str, user: FarUser, directories: Iterable[str] = ()) -> None:
        """`directories`: assumed to exist until the place has answered."""
        self.place = place
        self._user = user
        self._directories = frozenset(directories)
        self._known: dict[Question, Any] = {}
        self._size = 0
        self._asked: dict[Question, None] = {}
        """Questions without an answer."""

    @property
    def is_complete(self) -> bool:
        """True if the place has answered all that was asked."""
        return not self._asked

    def questions(self) -> bytes:
        """Return the questions without an answer, as many as one request takes."""
        return json.dumps(list(self._asked)[:MOST_ASKED]).encode()

    def learn(self, answer: bytes) -> None:
        """Take the answers to `questions`. Raises `BadAnswer`."""
        asked = list(self._asked)[:MOST_ASKED]
        values = _decoded(answer)
        self._size += len(answer)
        if len(values) != len(asked) or all(value is None for value in values):
            raise BadAnswer("it has not answered each question")
        for question, value in zip(asked, values, strict=True):
            if value is not None:
                self._known[question] = _checked(question, value)
        if self._size > LARGEST_KNOWN:
            raise BadAnswer("it answers at too great a length")
        self._asked.clear()

    def stat(self, path: str) -> os.stat_result:
        """Return the status of a file, links followed."""
        return _found(self._look(path).behind, path)

    def lstat(self, path: str) -> os.stat_result:
        """Return the status of a file or of the link itself."""
        return _found(self._look(path).own, path)

    def readlink(self, path: str) -> str:
        """Return the text of a link."""
        look = self._look(path)
        if look.target is None:
            raise OSError(look.own if isinstance(look.own, int) else errno.EINVAL, "it is no link", path)
        return look.target

    def realpath(self, path: str) -> str:
        """Return a path with its links resolved."""
        if len(path) > LONGEST_PATH:
            return posixpath.normpath(path)  # No system has such a file, so there is nothing to follow.
        return self._look(path).real

    def is_executable(self, path: str) -> bool:
        """True if the user there may execute a file, or search a directory."""
        return len(path) <= LONGEST_PATH and self._look(path).executable

    def names(self, path: str, most: int) -> list[str]:
        """Return at most so many names in a directory."""
        names = self._ask((NAMES, _usable(path)), errno.ENOENT)
        if isinstance(names, int):
            raise OSError(names, os.strerror(names), path)
        return list(names[:most])

    def read_regular(self, path: str, most: int, *, follow: bool) -> tuple[bytes | None, str]:
        """Read a regular file whole, or return None and the reason why not, as a clause."""
        try:
            question = READ, _usable(path), min(most, LARGEST_READ), int(follow)
        except (OSError, ValueError):
            return None, "no system takes such a name"
        content, why = self._ask(question, (None, "nobody has looked"))
        return content, why

    def digest(self, path: str, most: int) -> tuple[str, int] | None:
        """Return the digest and the size of a regular file. None: it is larger than `most`, or cannot be read."""
        try:
            found = self._ask((DIGEST, _usable(path)), None)
        except (OSError, ValueError):
            return None
        return None if found is None or found[1] > most else (found[0], found[1])

    def tree(self, path: str, seconds: float) -> Tree:
        """Count the files below a real path, links not followed; the place says for how long."""
        return Tree(*self._ask((TREE, _usable(path)), (0, 0, False, ())))

    def home(self) -> str:
        """Return the home directory of the user there."""
        return self._user.home

    def home_of_user(self) -> str:
        """Return the home directory of the user there."""
        return self._user.home

    def user_id(self) -> int:
        """Return the number of the user there."""
        return self._user.uid

    def host_name(self) -> str:
        """Return the name of the machine there."""
        return self._user.host

    def _ask(self, question: Question, assumed: Any) -> Any:
        if question in self._known:
            return self._known[question]
        self._asked[question] = None
        return assumed

    def _look(self, path: str) -> _Look:
        look: _Look = self._ask((LOOK, _usable(path)), None) or self._assumed(path)
        return look

    def _assumed(self, path: str) -> _Look:
        """Return what is likely: a right guess saves a round trip, and a wrong one changes no result."""
        if path in self._directories:
            return _Look(_DIRECTORY, _DIRECTORY, None, path, True)
        if posixpath.dirname(path) + "/" in _PROGRAMS:
            return _Look(_PROGRAM, _PROGRAM, None, path, True)
        return _Look(errno.ENOENT, errno.ENOENT, None, posixpath.normpath(path), False)


def _status(mode: int, *more: int) -> os.stat_result:
    inode, device, links, owner, group, size, changed, altered = more
    seconds = (changed // 10**9, changed // 10**9, altered // 10**9)
    exact = {"st_atime_ns": changed, "st_mtime_ns": changed, "st_ctime_ns": altered}
    return os.stat_result((mode, inode, device, links, owner, group, size, *seconds), exact)


_DIRECTORY = _status(stat.S_IFDIR | 0o755, *[0] * 8)
_PROGRAM = _status(stat.S_IFREG | 0o755, *[0] * 8)


def _found(status: os.stat_result | int, path: str) -> os.stat_result:
    if isinstance(status, int):
        raise OSError(status, os.strerror(status), path)
    return status


def _usable(path: str) -> str:
    """Return a path that can be asked about. Raises the errors of `os`."""
    if "\0" in path:
        raise ValueError("embedded null byte")
    if len(path) > LONGEST_PATH:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path)
    if not path.startswith("/"):
        raise FileNotFoundError(errno.ENOENT, "no path from / on", path)
    return path


def _decoded(answer: bytes) -> list[Any]:
    # Compressed bytes from there may stand for any number.
    unpacked = zlib.decompressobj()
    try:
        text = unpacked.decompress(answer, LARGEST_ANSWER)
        if unpacked.unconsumed_tail:
            raise BadAnswer("it answers at too great a length")
        values = json.loads(text)
    except (zlib.error, ValueError, RecursionError):
        raise BadAnswer("its answer cannot be read") from None
    if not isinstance(values, list):
        raise BadAnswer("its answer is no list")
    return values


def _checked(question: Question, wrapped: Any) -> Any:
    """Return the value of an answer. Raises `BadAnswer` for anything that no question about files has."""
    try:
        (value,) = wrapped
        match question[0]:
            case "look":
                return _checked_look(*value)
            case "names":
                return value if isinstance(value, int) else tuple(map(_name, value))
            case "read":
                return _checked_content(*value, most=int(question[2]))
            case "digest":
                return value and (_matching(_DIGEST, value[0]), _size(value[1]))
            case _:
                files, size, complete, *some = value
                names, links = (tuple(_path(name) for name in each[:MOST_NAMES]) for each in some)
                return _size(files), _size(size), bool(complete), names, links
    except (TypeError, ValueError, KeyError, IndexError, OverflowError, binascii.Error):
        raise BadAnswer(f"its answer about {visible(str(question[1]))} cannot be read") from None


def _checked_look(own: Any, behind: Any, target: Any, real: Any, executable: Any) -> _Look:
    status = _checked_status(own)
    followed = status if behind is None else _checked_status(behind)
    if behind is None and not isinstance(status, int) and stat.S_ISLNK(status.st_mode):
        raise ValueError("a link leads somewhere or not")
    return _Look(status, followed, None if target is None else _text(target), _path(real), executable is True)


def _checked_status(told: Any) -> os.stat_result | int:
    if isinstance(told, list):
        if len(told) != _STAT_FIELDS:
            raise ValueError("a status has other fields")
        return _status(*map(_size, told))
    return _size(told) or errno.EIO


def _checked_content(content: Any, why: Any, *, most: int) -> tuple[bytes | None, str]:
    if content is None:
        return None, visible(str(why)[:_LONGEST_REASON]) or "nobody knows why"
    data = base64.b64decode(content, validate=True)
    if len(data) > most:
        raise ValueError("it is longer than what was asked for")
    return data, ""


def _size(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 64:
        raise ValueError("no number of a file")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value or "\0" in value or len(value) > LONGEST_PATH:
        raise ValueError("no text of a link")
    return value


def _path(value: Any) -> str:
    if not _text(value).startswith("/"):
        raise ValueError("no path from / on")
    return str(value)


def _name(value: Any) -> str:
    if "/" in _text(value) or value in {".", ".."}:
        raise ValueError("no name of a file")
    return str(value)


def _matching(pattern: re.Pattern[str], value: Any) -> str:
    if not isinstance(value, str) or pattern.fullmatch(value) is None:
        raise ValueError("no digest")
    return value


async def examine_at(
    asked: AskedPlace, work: Callable[[FarUser], T], threads: Threads, directories: Iterable[str] = ()
) -> T:
    """Return the result of `work`, which looks at the files of a place. Raises `Unavailable` if it cannot be known.

    `work` is called in a thread several times, and must only look. `directories`: those that are likely to exist.
    """
    try:
        async with asyncio.timeout(MOST_SECONDS):
            user = await asked.reach()
    except TimeoutError:
        user = None
    if user is None:
        raise asked.unreached()
    files, loop = PlaceFiles(asked.name, user, directories), asyncio.get_running_loop()

    def look() -> T | Exception:
        with host_files.asking(files):
            try:
                return work(user)
            except Exception as error:  # noqa: BLE001  what is assumed may contradict itself
                return error

    try:
        async with asyncio.timeout(MOST_SECONDS):
            for _ in range(MOST_ROUNDS):
                found = await loop.run_in_executor(threads, look)
                if files.is_complete:
                    return _result(found)
                files.learn((await asked.ask("files", files.questions())).payload)
                # Answers of two machines must not be mixed: a container may have been made anew.
                if asked.hello is not user:
                    raise Unavailable(f"{asked.name} was lost and reached again meanwhile", hint="Try again")
    except TimeoutError:
        why = f"{asked.name} has not said within {MOST_SECONDS:g} s which files it has"
    except BadAnswer as error:
        why = f"{asked.name} cannot be asked about its files: {error}"
    else:
        why = f"{asked.name} was asked about files {MOST_ROUNDS} times, and that was not enough"
    raise Unavailable(why, hint="Look at the command yourself, or try again")


def _result(found: T | Exception) -> T:
    if isinstance(found, Exception):
        raise found
    return found
