"""The files of Codex's environment: reading is answered at once; every change is asked about, and then made here.

A change is made below directories that are opened one by one without following links, and the content is compared once
more on the descriptor that is then written (decision 28).
"""

import base64
import binascii
import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from whisper_tui.model.text import is_sendable

LARGEST_EDIT = 4 << 20
"""Bytes of new content, which a human can be shown."""
LARGEST_READ = 32 << 20
MOST_ENTRIES = 50_000
READ_AGAIN = "Read it again, and make the edit anew"

INVALID_PARAMS, MISSING, FAILED = -32602, -32004, -32603

Message = dict[str, Any]
Ask = Callable[[str, Message], Message]
"""Sends a request to the supervisor, and returns its result once a human or a rule has decided."""


class FailedRequest(Exception):
    """A request that is answered with an error. Nothing was changed."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class FileMethod:
    """One method: it only reads, or it is asked about."""

    name: str
    reads: bool


def uri_of(path: str) -> str:
    """Return a path as Codex writes it."""
    return f"file://{quote(os.fsencode(path))}"


def path_in(uri: object) -> str:
    """Return the absolute path that a URI means. Raises `FailedRequest`."""
    if not isinstance(uri, str):
        raise FailedRequest(INVALID_PARAMS, "a path must be a file URI")
    parts = urlsplit(uri)
    path = unquote(parts.path, errors="surrogateescape")
    if parts.scheme != "file" or parts.netloc or parts.query or parts.fragment or not path.startswith("/"):
        raise FailedRequest(INVALID_PARAMS, "a path must be a file URI of this machine, with an absolute path")
    if "\0" in path or not is_sendable(path):
        raise FailedRequest(INVALID_PARAMS, "the path cannot be shown to a human: it is no valid text")
    return path


class FileService:
    """Carries out the methods for files."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def carry_out(self, method: str, params: Message) -> Message:
        """Return the result of a method. Raises `FailedRequest`."""
        act: Callable[[Message], Message] = getattr(self, METHODS[method].name)
        try:
            return act(params)
        except FileNotFoundError as error:
            raise FailedRequest(MISSING, _said(error)) from error
        except OSError as error:
            raise FailedRequest(FAILED, _said(error)) from error

    def read_file(self, params: Message) -> Message:
        """Return the content of a regular file."""
        descriptor = os.open(path_in(params.get("path")), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return {"dataBase64": base64.b64encode(_content(descriptor, LARGEST_READ)).decode()}
        finally:
            os.close(descriptor)

    def metadata(self, params: Message) -> Message:
        """Return the kind, the size and the times of what a path leads to."""
        path = path_in(params.get("path"))
        about = os.stat(path)
        return {
            "isDirectory": stat.S_ISDIR(about.st_mode),
            "isFile": stat.S_ISREG(about.st_mode),
            "isSymlink": os.path.islink(path),
            "size": about.st_size,
            "createdAtMs": 0,
            "modifiedAtMs": about.st_mtime_ns // 1_000_000,
        }

    def canonicalize(self, params: Message) -> Message:
        """Return a path without links."""
        return {"path": uri_of(os.path.realpath(path_in(params.get("path")), strict=True))}

    def read_directory(self, params: Message) -> Message:
        """Return the names in a directory."""
        entries: list[Message] = []
        with os.scandir(path_in(params.get("path"))) as found:
            for entry in found:
                if len(entries) >= MOST_ENTRIES:
                    raise FailedRequest(FAILED, f"the directory has more than {MOST_ENTRIES:,} entries")
                if is_sendable(entry.name):
                    kinds = {"isDirectory": entry.is_dir(), "isFile": entry.is_file()}
                    entries.append({"fileName": entry.name, **kinds})
        return {"entries": entries}

    def write_file(self, params: Message) -> Message:
        """Ask about a file's new content, and write it."""
        path = path_in(params.get("path"))
        if os.path.isdir(path):
            raise FailedRequest(FAILED, f"{path} is a directory")
        self._edit(path, _text(params.get("dataBase64")), params)
        return {}

    def remove(self, params: Message) -> Message:
        """Ask about the removal of a file as about an edit, and of anything else as about a command."""
        path, force = path_in(params.get("path")), params.get("force") is True
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            if force:
                return {}
            raise
        if stat.S_ISREG(mode):
            self._edit(path, None, params)
        elif stat.S_ISDIR(mode):
            self._run(["rm", "-r", "--", path] if params.get("recursive") is True else ["rmdir", "--", path], params)
        else:
            self._run(["rm", "--", path], params)
        return {}

    def create_directory(self, params: Message) -> Message:
        """Ask about a new directory as about a command."""
        path, recursive = path_in(params.get("path")), params.get("recursive") is True
        if recursive and os.path.isdir(path):
            return {}
        self._run(["mkdir", *(("-p",) if recursive else ()), "--", path], params)
        return {}

    def copy(self, params: Message) -> Message:
        """Ask about a copy as about a command."""
        source, target = path_in(params.get("sourcePath")), path_in(params.get("destinationPath"))
        os.lstat(source)
        if os.path.isdir(target):
            raise FailedRequest(FAILED, f"{target} is a directory, in which the copy would get another name")
        self._run(["cp", *(("-R",) if params.get("recursive") is True else ()), "--", source, target], params)
        return {}

    def _run(self, argv: list[str], params: Message) -> None:
        self._ask("whisper/run", {"argv": argv, "root": _root(params)})

    def _edit(self, path: str, content: str | None, params: Message) -> None:
        """Ask about a change, and make what was approved. Raises `FailedRequest`."""
        approved = self._ask("whisper/edit", {"path": path, "content": content, "root": _root(params)})
        known = {file["real"]: file for file in approved["files"]}
        for change in approved["changes"]:
            real = os.path.realpath(change["path"])
            if real not in known:
                raise FailedRequest(FAILED, f"{path} is another file than the one that was approved. {READ_AGAIN}")
            _make(change["path"], real, change["content"], known[real])


METHODS: dict[str, FileMethod] = {
    "fs/readFile": FileMethod("read_file", reads=True),
    "fs/getMetadata": FileMethod("metadata", reads=True),
    "fs/canonicalize": FileMethod("canonicalize", reads=True),
    "fs/readDirectory": FileMethod("read_directory", reads=True),
    "fs/writeFile": FileMethod("write_file", reads=False),
    "fs/remove": FileMethod("remove", reads=False),
    "fs/createDirectory": FileMethod("create_directory", reads=False),
    "fs/copy": FileMethod("copy", reads=False),
}


def _root(params: Message) -> str | None:
    """Return the workspace that Codex names for a change. None: it names none."""
    sandbox = params.get("sandbox")
    roots = sandbox.get("workspaceRoots") if isinstance(sandbox, dict) else None
    return path_in(roots[0]) if isinstance(roots, list) and roots else None


def _text(data: object) -> str:
    """Return new content as text. Raises `FailedRequest` for content that no human could judge."""
    try:
        content = base64.b64decode(data if isinstance(data, str) else "?", validate=True)
    except binascii.Error as error:
        raise FailedRequest(INVALID_PARAMS, "the content is no valid base64") from error
    if len(content) > LARGEST_EDIT:
        raise FailedRequest(FAILED, f"the content is longer than {LARGEST_EDIT:,} bytes; write it with a command")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise FailedRequest(FAILED, "the content is no UTF-8 text; write it with a command") from error


def _make(path: str, real: str, content: str | None, file: Message) -> None:
    """Write or remove one file, if it is as it was approved."""
    with _directory(os.path.dirname(real), create=content is not None) as directory:
        name = os.path.basename(real)
        if content is None:
            if real != os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)):
                raise FailedRequest(FAILED, f"{path} has become a link. {READ_AGAIN}")
            descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
            try:
                _compare(path, descriptor, file)
            finally:
                os.close(descriptor)
            os.unlink(name, dir_fd=directory)
            return
        new = file["before"] is None and not file["unread"]
        flags = os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        flags |= os.O_CREAT | os.O_EXCL if new else 0
        try:
            descriptor = os.open(name, flags, 0o666, dir_fd=directory)
        except FileExistsError as error:
            raise FailedRequest(FAILED, f"{path} was created since the edit was approved. {READ_AGAIN}") from error
        with os.fdopen(descriptor, "r+b") as opened:
            if not new:
                _compare(path, descriptor, file)
            opened.seek(0)
            opened.write(content.encode())
            opened.truncate()


def _compare(path: str, descriptor: int, file: Message) -> None:
    """Raise `FailedRequest` if an open file is not as it was when the edit was approved."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise FailedRequest(FAILED, f"{path} is no longer the file that was approved. {READ_AGAIN}")
    if file["unread"]:
        return
    if hashlib.sha256(_content(descriptor, LARGEST_READ)).hexdigest() != file["before"]:
        raise FailedRequest(
            FAILED, f"{path} has changed since the edit was approved, so nothing was changed. {READ_AGAIN}"
        )


@contextmanager
def _directory(path: str, *, create: bool) -> Iterator[int]:
    """Open a directory by a path without links; missing ones are created. Raises `OSError` if a link is in the way."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    held = os.open("/", flags)
    try:
        for name in filter(None, path.split("/")):
            try:
                following = os.open(name, flags, dir_fd=held)
            except FileNotFoundError:
                if not create:
                    raise
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=held)
                following = os.open(name, flags, dir_fd=held)
            os.close(held)
            held = following
        yield held
    finally:
        os.close(held)


def _content(descriptor: int, most: int) -> bytes:
    """Return the content of an open regular file. Raises `FailedRequest`."""
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    held = bytearray()
    while len(held) <= most and (piece := os.read(descriptor, 1 << 20)):
        held += piece
    if len(held) > most:
        raise FailedRequest(FAILED, f"the file is longer than {most:,} bytes")
    return bytes(held)


def _said(error: OSError) -> str:
    name = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    return f"{name}{error.strerror or error}"
