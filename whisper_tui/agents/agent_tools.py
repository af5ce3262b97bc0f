"""Tools of agents beside their shells: edits of files, the web, MCP servers and sub-agents.

Each kind of tool reads the arguments of a call, and writes them again after a human has changed the result. A call that
is not understood is refused: the agent's program might do something else with it than what was judged.
"""

import ipaddress
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from whisper_tui.model.call import (
    LONGEST_PATH,
    DeleteFile,
    EditCell,
    FileChange,
    FileEdits,
    Function,
    Hunk,
    PatchFile,
    ReplaceText,
    WriteFile,
)
from whisper_tui.model.errors import InvalidRequest

Content = dict[str, Any]

# Patches as the tool apply_patch takes them. The reader is stricter than those of the agents' programs, which skip what
# they do not understand: a patch in which they could find other files or lines is refused.
BEGIN, END = "*** Begin Patch", "*** End Patch"
ADD, UPDATE, DELETE, MOVE = "*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "
END_OF_FILE = "*** End of File"

AbsolutePath = Callable[[str], str]
"""Returns the absolute path of a path in the patch. Raises `InvalidRequest`."""


def changes_in(patch: str, absolute: AbsolutePath) -> tuple[FileChange, ...]:
    """Return the changes of a patch in their order. Raises `InvalidRequest`."""
    # A carriage return before a line feed is no part of the line.
    lines = [line.removesuffix("\r") for line in patch.strip().split("\n")]
    if len(lines) < 2 or lines[0].strip() != BEGIN or lines[-1].strip() != END:
        raise _refusal(f"it is not between {BEGIN!r} and {END!r}")
    changes = tuple(_Patch(lines[1:-1], absolute).changes())
    if not changes:
        raise _refusal("it changes no file")
    return changes


def _refusal(why: str) -> InvalidRequest:
    return InvalidRequest(f"the patch cannot be read: {why}", hint="Send a patch in the usual format")


class _Patch:
    """The lines between the beginning and the end of a patch."""

    def __init__(self, lines: list[str], absolute: AbsolutePath) -> None:
        self._lines = lines
        self._absolute = absolute
        self._at = 0

    def changes(self) -> Iterable[FileChange]:
        while self._at < len(self._lines):
            header = self._lines[self._at].strip()
            self._at += 1
            if header.startswith(ADD):
                yield WriteFile(path=self._path(header, ADD), content=self._added())
            elif header.startswith(DELETE):
                yield DeleteFile(path=self._path(header, DELETE))
            elif header.startswith(UPDATE):
                yield self._update(header)
            elif header:
                raise _refusal(f"line {self._at + 1} begins no change of a file")

    def _path(self, header: str, prefix: str) -> str:
        named = header.removeprefix(prefix)
        if ":" in named:
            # Some programs end the path there.
            raise _refusal("a path contains a colon")
        return self._absolute(named)

    def _added(self) -> str:
        """The content of a new file."""
        begin = self._at
        while self._at < len(self._lines) and self._lines[self._at].startswith("+"):
            self._at += 1
        return "".join(line[1:] + "\n" for line in self._lines[begin : self._at])

    def _update(self, header: str) -> PatchFile:
        path, target = self._path(header, UPDATE), None
        hunks: list[Hunk] = []
        if self._at < len(self._lines) and self._lines[self._at].startswith(MOVE):
            target = self._path(self._lines[self._at].strip(), MOVE)
            self._at += 1
        while self._at < len(self._lines) and not self._lines[self._at].startswith("***"):
            if self._lines[self._at].strip():
                hunks.append(self._hunk(is_first=not hunks))
            else:
                self._at += 1
        if not hunks:
            raise _refusal("an update of a file holds no lines")
        return PatchFile(path=path, hunks=tuple(hunks), move_to=target)

    def _hunk(self, *, is_first: bool) -> Hunk:
        heading, first = "", self._lines[self._at]
        if first.startswith("@@"):
            heading = first.removeprefix("@@ ") if first.startswith("@@ ") else ""
            if first.rstrip() != "@@" and not heading:
                raise _refusal(f"line {self._at + 2} is not a heading: a blank must follow @@")
            self._at += 1
        elif not is_first:
            raise _refusal(f"line {self._at + 2} has no heading @@")
        lines: list[str] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line == END_OF_FILE and lines:
                self._at += 1
                return Hunk(heading=heading, lines=tuple(lines), at_end=True)
            if line.startswith(("@@", "***")):
                break
            if line[:1] not in {" ", "+", "-", ""}:
                raise _refusal(f"line {self._at + 2} begins neither with a blank nor with + or -")
            # An empty line is a line that stays, whose blank was lost.
            lines.append(line or " ")
            self._at += 1
        if not lines:
            raise _refusal("a part holds no lines")
        return Hunk(heading=heading, lines=tuple(lines))


def patch_of(files: Iterable[tuple[str, str | None, str | None]]) -> str:
    """Return a patch that makes these files: the path, the old content, and the new one. None: there is no file.

    Raises `InvalidRequest` for what no patch can express.
    """
    parts = [part for path, old, new in files if old != new for part in _rewritten(path, old, new)]
    if not parts:
        raise InvalidRequest("after the human's change nothing is left to be edited")
    return "\n".join((BEGIN, *parts, END)) + "\n"


def _rewritten(path: str, old: str | None, new: str | None) -> Iterable[str]:
    if "\r" in (old or "") + (new or "") or "\n" in path:
        # Programs drop the carriage returns of a patch.
        raise InvalidRequest(
            f"{path!r} has line ends of Windows, which a patch cannot keep",
            hint="Approve the patch as it is, or deny it",
        )
    if new is None:
        return (DELETE + path,)
    added = ["+" + line for line in _lines(new)]
    if old is None:
        return (ADD + path, *added)
    # Of empty lines at the end of an updated file, programs take one for its last line feed.
    last = ("+",) if new.endswith("\n\n") or new == "\n" else ()
    # All lines of the file: a part of them might be found in several places.
    return (UPDATE + path, "@@", *("-" + line for line in _lines(old)), *added, *last)


def _lines(text: str) -> list[str]:
    """The lines of a content. A file that a patch changes always ends in a line feed."""
    return text.removesuffix("\n").split("\n") if text else []


class FileResult(NamedTuple):
    """A file with the content that a human wants it to have."""

    path: str
    """Absolute, as the agent named it."""
    old: str | None
    """The content now. None: there is no file."""
    new: str | None
    """None: the file is deleted."""


class ToolArguments:
    """The arguments of one call. Every method raises `InvalidRequest` for an argument of another shape."""

    def __init__(self, tool: str, values: object, cwd: str) -> None:
        if not isinstance(values, dict):
            raise InvalidRequest("the hook's input has no tool_input")
        self.tool = tool
        self.values: Content = values
        self.cwd = cwd
        self.absolute: Content = {}
        """The arguments with relative paths, as the absolute paths that were judged."""

    def text(self, name: str) -> str:
        """Return a text."""
        value = self.values.get(name)
        if not isinstance(value, str):
            raise InvalidRequest(f"the tool {self.tool!r} was called without the text {name!r}")
        return value

    def optional(self, name: str) -> str:
        """Return a text, or an empty one if there is none."""
        return "" if self.values.get(name) is None else self.text(name)

    def flag(self, name: str) -> bool:
        """Return True if a switch is on."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, bool):
            raise InvalidRequest(f"the tool {self.tool!r} was called with {name!r}, which is neither true nor false")
        return bool(value)

    def path(self, name: str) -> str:
        """Return the absolute path of a file."""
        given = self.text(name)
        path = absolute_path(given, self.cwd)
        if path != given:
            self.absolute[name] = path
        return path


def absolute_path(given: str, cwd: str) -> str:
    """Return a path below a directory, unless it is absolute. Raises `InvalidRequest` for one that has no file."""
    if not given or "\0" in given or len(given) > LONGEST_PATH:
        problem = "empty" if not given else "not a path" if "\0" in given else "too long"
        raise InvalidRequest(f"the path of a file is {problem}, so nothing was changed", hint="Name the file")
    # Some programs expand `~` and remove blanks, and others do not. So these paths have two meanings.
    if given[0] == "~" or given != given.strip():
        raise InvalidRequest(f"the path {given[:200]!r} has no certain meaning", hint="Use an absolute path")
    # `..` stays: a link before it decides where it leads.
    return given if given.startswith("/") else f"{cwd.rstrip('/')}/{given}"


class Tool(Protocol):
    """One kind of tool."""

    def read(self, arguments: ToolArguments, *, takes_result: bool) -> FileEdits | Function:
        """Return the meaning of a call. Raises `InvalidRequest`."""
        ...

    def rewrite(self, arguments: ToolArguments, files: Sequence[FileResult]) -> Content:
        """Return arguments with which the tool makes these files. Raises `InvalidRequest` if it cannot."""
        ...


def _only(files: Sequence[FileResult], path: str) -> FileResult:
    """The one file of a tool that changes only one."""
    if len(files) != 1 or os.path.realpath(files[0].path) != os.path.realpath(path):
        raise InvalidRequest("the agent's tool can change only the one file that it named")
    return files[0]


def _without_carriage_returns(file: FileResult) -> tuple[str, str]:
    """The content of a file before and after, as programs see it that keep the line ends of Windows by themselves."""
    old, new = file.old or "", file.new or ""
    if "\r" not in old + new:
        return old, new
    texts = [text.replace("\r\n", "\n") for text in (old, new)]
    if any("\r" in text for text in texts) or any(text.count("\n") != text.count("\r\n") for text in (old, new)):
        raise InvalidRequest(
            f"{file.path} has line ends of several kinds, which the agent's tool cannot keep",
            hint="Approve the edit as it is, or deny it",
        )
    return texts[0], texts[1]


@dataclass(frozen=True)
class WriteTool:
    """A tool that writes all of a file."""

    path: str
    content: str

    def read(self, arguments: ToolArguments, *, takes_result: bool) -> FileEdits:
        """Return the file with its content."""
        change = WriteFile(path=arguments.path(self.path), content=arguments.text(self.content))
        return FileEdits(tool=arguments.tool, changes=(change,), takes_result=takes_result)

    def rewrite(self, arguments: ToolArguments, files: Sequence[FileResult]) -> Content:
        """Return the arguments with another content."""
        path = arguments.path(self.path)
        return {**arguments.values, self.path: path, self.content: written(_only(files, path))}


def written(file: FileResult) -> str:
    """Return the new content. Raises `InvalidRequest` for a file that is to be deleted."""
    if file.new is None:
        raise InvalidRequest("the agent's tool cannot delete a file", hint="Deny the edit instead")
    return file.new


@dataclass(frozen=True)
class ReplaceTool:
    """A tool that replaces texts in a file. A human's result replaces all of the file."""

    path: str
    old: str
    new: str
    every: str
    """The argument that asks for each occurrence."""
    edits: str = ""
    """The argument with a list of replacements. Empty: there is one, among the arguments themselves."""
    counted: str = ""
    """The argument with the number of occurrences that are expected. Empty: there is none."""

    def read(self, arguments: ToolArguments, *, takes_result: bool) -> FileEdits:
        """Return the replacements in their order."""
        path = arguments.path(self.path)
        changes = tuple(self._replacement(path, part) for part in self._parts(arguments))
        if not changes:
            raise InvalidRequest(f"the tool {arguments.tool!r} was called without a replacement")
        return FileEdits(tool=arguments.tool, changes=changes, takes_result=takes_result)

    def _parts(self, arguments: ToolArguments) -> Iterable[ToolArguments]:
        if not self.edits:
            return (arguments,)
        listed = arguments.values.get(self.edits)
        if not isinstance(listed, list):
            raise InvalidRequest(f"the tool {arguments.tool!r} was called without the list {self.edits!r}")
        return [ToolArguments(arguments.tool, part, arguments.cwd) for part in listed]

    def _replacement(self, path: str, part: ToolArguments) -> FileChange:
        count = part.values.get(self.counted) if self.counted else None
        if count is not None and (not isinstance(count, int) or isinstance(count, bool)):
            raise InvalidRequest(f"the tool {part.tool!r} was called with {self.counted!r}, which is not a number")
        every = part.flag(self.every) or (count or 1) > 1
        return ReplaceText(path=path, old=part.text(self.old), new=part.text(self.new), every=every)

    def rewrite(self, arguments: ToolArguments, files: Sequence[FileResult]) -> Content:
        """Return the arguments that replace the whole content."""
        path = arguments.path(self.path)
        file = _only(files, path)
        written(file)
        old, new = _without_carriage_returns(file)
        if old == new:
            raise InvalidRequest(f"after the human's change nothing is left to be edited in {path}")
        part = {self.old: old, self.new: new}
        rest = {key: value for key, value in arguments.values.items() if key not in {self.every, self.counted}}
        return {**rest, self.path: path, **({self.edits: [part]} if self.edits else part)}


@dataclass(frozen=True)
class PatchTool:
    """A tool that applies a patch to files."""

    patch: str

    def read(self, arguments: ToolArguments, *, takes_result: bool) -> FileEdits:
        """Return the changes of the patch."""
        changes = changes_in(arguments.text(self.patch), lambda path: absolute_path(path, arguments.cwd))
        return FileEdits(tool=arguments.tool, changes=changes, takes_result=takes_result)

    def rewrite(self, arguments: ToolArguments, files: Sequence[FileResult]) -> Content:
        """Return the arguments with a patch from the contents now to those that the human wants."""
        below = f"{arguments.cwd.rstrip('/')}/"
        patch = patch_of((file.path.removeprefix(below), file.old, file.new) for file in files)
        return {**arguments.values, self.patch: patch}


@dataclass(frozen=True)
class CellTool:
    """A tool that changes a cell of a notebook. It takes no other result."""

    path: str = "notebook_path"

    def read(self, arguments: ToolArguments, *, takes_result: bool) -> FileEdits:
        """Return the cell with its new source."""
        mode, kind = arguments.optional("edit_mode") or "replace", arguments.optional("cell_type")
        if mode not in {"replace", "insert", "delete"} or kind not in {"", "code", "markdown"}:
            raise InvalidRequest(f"the tool {arguments.tool!r} was called with an unknown mode or kind of cell")
        change = EditCell.model_validate(
            {
                "path": arguments.path(self.path),
                "cell": arguments.optional("cell_id"),
                "source": arguments.optional("new_source"),
                "mode": mode,
                "cell_type": kind,
            }
        )
        return FileEdits(tool=arguments.tool, changes=(change,), takes_result=False)

    def rewrite(self, arguments: ToolArguments, files: Sequence[FileResult]) -> Content:
        """Refuse: the program writes notebooks in a form of its own."""
        raise InvalidRequest("the agent's tool takes no other result for a notebook", hint="Deny the edit instead")


@dataclass(frozen=True)
class FunctionTool:
    """A tool whose arguments are shown as they are."""

    about: str
    """`web`, `subagent`, or nothing."""
    url: str = ""
    """The argument with an address."""
    prompt: str = ""
    """The argument with a text that may contain addresses."""
    name: str = ""
    """The argument with the name of the sub-agent."""

    def read(self, arguments: ToolArguments, *, takes_result: bool) -> Function:
        """Return the call with its hosts, or with the name of the sub-agent."""
        urls = [arguments.optional(self.url)] if self.url and arguments.values.get(self.url) is not None else []
        if self.prompt:
            # As JavaScript splits texts: U+FEFF is a blank there.
            urls += [word for word in re.split(r"[\s\ufeff]+", arguments.optional(self.prompt)) if "://" in word]
        names = [arguments.optional(self.name)] if self.name else []
        targets = hosts_of(urls) if self.about == "web" else tuple(name for name in names if name)
        return Function.model_validate(
            {"tool": arguments.tool, "arguments": arguments.values, "about": self.about, "targets": targets}
        )

    def rewrite(self, arguments: ToolArguments, files: Sequence[FileResult]) -> Content:
        """Refuse: it changes no files."""
        raise InvalidRequest(f"the tool {arguments.tool!r} changes no files")


def server_call(arguments: ToolArguments, server: str, tool: str) -> Function:
    """Return the call of a tool of an MCP server."""
    return Function(tool=arguments.tool, arguments=arguments.values, about="server", targets=(server, tool))


def server_and_tool(rest: str, separator: str, named: object) -> tuple[str, str]:
    """Split the name of a tool of an MCP server. `named`: the server's own name, if the agent tells it."""
    if isinstance(named, str) and named:
        prefix = re.sub(r"[^A-Za-z0-9_-]", "_", named) + separator
        if rest.startswith(prefix):
            return named, rest.removeprefix(prefix)
    server, _, tool = rest.partition(separator)
    return server, tool


_HOST_NAME = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.)*[a-z](?:[a-z0-9-]*[a-z0-9])?\.?")
_USUAL_PORTS = {"http": 80, "https": 443}


def hosts_of(urls: Sequence[str]) -> tuple[str, ...]:
    """Return the host of each address, once each. Empty: at least one of them is not certain."""
    hosts = [_host_of(url) for url in urls]
    return () if None in hosts else tuple(dict.fromkeys(host for host in hosts if host))


def _host_of(url: str) -> str | None:
    """The host of an address, where every program reads the same one in it, with an unusual port."""
    # Browsers take a backslash for a slash, drop blanks, decode percent signs and read numbers as addresses.
    if not url.isascii() or not url.isprintable() or re.search(r"[\s\\]", url):
        return None
    try:
        parts = urlsplit(url)
        name, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return None
    if parts.scheme not in _USUAL_PORTS or "@" in parts.netloc or not url[len(parts.scheme) :].startswith("://"):
        return None
    if not _HOST_NAME.fullmatch(name) and not _is_address(name):
        return None
    shown = f"[{name}]" if ":" in name else name
    return shown if port in {None, _USUAL_PORTS[parts.scheme]} else f"{shown}:{port}"


def _is_address(name: str) -> bool:
    try:
        return str(ipaddress.ip_address(name)) == name
    except ValueError:
        return False
