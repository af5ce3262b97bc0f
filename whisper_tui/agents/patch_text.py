"""Patches as the tool apply_patch takes them: read a patch, and write one from two contents.

The reader is stricter than those of the agents' programs, which skip what they do not understand: a patch in which
they could find other files or lines than this module is refused.
"""

from collections.abc import Callable, Iterable

from whisper_tui.model.edits import DeleteFile, FileChange, Hunk, PatchFile, WriteFile
from whisper_tui.model.errors import InvalidRequest

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
                raise _refusal(f"line {self._at + 2} is no heading: a blank has to follow @@")
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
