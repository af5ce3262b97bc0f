"""The results of an edit: what its changes make of each file, computed from the disk without touching it."""

import codecs
import hashlib
import json
import os
import re
import stat
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from whisper_tui.effects.changes import diff_of, printable
from whisper_tui.effects.file_view import resolved_path
from whisper_tui.effects.run_by_git import directories_of_hooks, kind_for_git
from whisper_tui.model.call import (
    LARGEST_EDITED,
    DeleteFile,
    EditAction,
    EditCell,
    EditedFile,
    FileChange,
    FileVersions,
    Hunk,
    PatchFile,
    ReplaceText,
    WriteFile,
)
from whisper_tui.model.changed_blocks import lines_of
from whisper_tui.policy.risks.later_files import PACKAGE_SCRIPTS, PYTHON_PROJECT, later_kind, sensitive_kind
from whisper_tui.policy.risks.sensitive_paths import names_secret
from whisper_tui.system import host_files

DIFF_S = 0.05
"""Seconds after which the lines of all files are compared in blocks only: this happens before an agent goes on."""

MOST_FILES = 500
"""Files of one edit that are looked at."""

NO_FILE = "there is no such file"
NOTEBOOK = "the agent's program writes the notebook in a form of its own"
NOT_TEXT = "the content is not UTF-8 text"
TWO_MEANINGS = "its path means another file where `..` follows a link"


class Coding(NamedTuple):
    """An encoding of text, with the byte order mark that a file begins with."""

    name: str
    mark: bytes = b""

    def decode(self, data: bytes) -> str:
        """Return a content as text. Raises `UnicodeDecodeError`."""
        return data[len(self.mark) :].decode(self.name)

    def encode(self, text: str) -> bytes:
        """Return a text as content. Raises `UnicodeEncodeError`."""
        return self.mark + text.encode(self.name)


UTF_8 = Coding("utf-8")
_LATIN_1 = Coding("latin-1")
_MARKED = (
    Coding("utf-32-le", codecs.BOM_UTF32_LE),
    Coding("utf-32-be", codecs.BOM_UTF32_BE),
    Coding("utf-16-le", codecs.BOM_UTF16_LE),
    Coding("utf-16-be", codecs.BOM_UTF16_BE),
)
_CONTROL = re.compile(rb"[\0-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
"""Bytes that no text in an encoding of one byte a character has."""


def coding_of(data: bytes) -> Coding | None:
    """Return the encoding of a content. None: it is no text."""
    marked = next((each for each in _MARKED if data.startswith(each.mark)), None)
    for coding in (UTF_8, *filter(None, (marked,))):
        with suppress(UnicodeDecodeError):
            if coding.encode(coding.decode(data)) == data:
                return coding
    # Each byte is one character. In other encodings of this kind some letters are others, but no line is.
    return None if marked or _CONTROL.search(data) else _LATIN_1


class Writing(NamedTuple):
    """How a program treats a file that is not in UTF-8. Those of agents differ, and do not say what they do."""

    reads_own: bool = True
    """True if it reads the file in its encoding; else as UTF-8, with marks for what is none."""
    keeps: bool = True
    """True if it writes a part of the file in the encoding of the rest; else the whole in UTF-8."""
    keeps_whole: bool = False
    """True if a whole new content gets the encoding of the old one."""
    marks: bool = True
    """True if it then begins with a byte order mark as before."""


LIKELY = Writing()
"""The text that is shown and recorded as the result of an edit."""
_OTHER_WAYS = (
    Writing(keeps_whole=True),
    Writing(keeps_whole=True, marks=False),
    Writing(keeps=False),
    Writing(reads_own=False, keeps=False),
)


class Content(NamedTuple):
    """The content of a path at some point of an edit."""

    data: bytes | None
    """None: there is no file, or it is not known."""
    unknown: str = ""
    """Why it is not known, as a clause. Empty: it is."""


ABSENT = Content(None)


class Facts(NamedTuple):
    """A file as it was before the edit."""

    content: Content
    size: int | None = None
    mode: int | None = None
    links: int = 1


@dataclass
class EditedPaths:
    """The files of an edit, by real path, in the order in which they are met."""

    named: dict[str, str] = field(default_factory=dict)
    """The path of each as the agent named it."""
    before: dict[str, Facts] = field(default_factory=dict)
    now: dict[str, Content] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    moved_from: dict[str, str] = field(default_factory=dict)
    brought: dict[str, str] = field(default_factory=dict)
    """The texts that changes bring into each file, whatever the rest of it will be."""

    def look(self, path: str) -> str:
        """Read a file that was not met before. Returns its real path."""
        real = resolved_path(path)
        if real not in self.before:
            self.named[real] = path
            self.before[real] = facts = _facts(real) if len(self.before) < MOST_FILES else _unread("there are too many")
            self.now[real] = facts.content
        if _has_two_meanings(path):
            self.problems.setdefault(real, TWO_MEANINGS)
        return real

    def become(self, real: str, content: Content) -> None:
        """Take what a change has made of a file."""
        self.now[real] = content
        if content.unknown:
            self.problems.setdefault(real, content.unknown)


def _facts(real: str) -> Facts:
    if "\0" in real:
        return _unread("its name contains a null character")
    try:
        status = host_files.lstat(real)
    except FileNotFoundError:
        return Facts(ABSENT)
    except OSError as error:
        return _unread(f"it cannot be examined: {error.strerror}")
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISREG(status.st_mode):
        return Facts(Content(None, "it is not a regular file"), status.st_size, mode)
    data, why = host_files.read_regular(real, LARGEST_EDITED)
    return Facts(Content(data, why), status.st_size, mode, status.st_nlink)


def _unread(why: str) -> Facts:
    return Facts(Content(None, why))


def _has_two_meanings(path: str) -> bool:
    """True if the system, which follows links first, finds another file than programs that take `..` out first."""
    return ".." in path.split("/") and resolved_path(path) != resolved_path(os.path.normpath(path))


def edited_paths(changes: Sequence[FileChange], writing: Writing = LIKELY) -> EditedPaths:
    """Apply changes in their order, in memory alone. `writing`: how the program treats other encodings than UTF-8."""
    paths = EditedPaths()
    for change in changes:
        real = paths.look(change.path)
        before = paths.now[real]
        target = paths.look(change.move_to) if isinstance(change, PatchFile) and change.move_to else real
        paths.brought[target] = paths.brought.get(target, "") + _brought_by(change)
        match change:
            case WriteFile(content=text):
                paths.become(real, _encoded(text, _coding_of_whole(before, writing)))
            case ReplaceText():
                paths.become(real, _replaced(change, before, writing))
            case DeleteFile():
                paths.become(real, ABSENT if before.data is not None or before.unknown else Content(None, NO_FILE))
            case EditCell():
                paths.become(real, Content(None, NOTEBOOK))
            case PatchFile(move_to=None):
                paths.become(real, _patched(change, before, writing))
            case PatchFile():
                paths.become(target, _patched(change, before, writing))
                if target != real:
                    paths.moved_from[target] = real
                    paths.become(real, ABSENT)
    return paths


def _brought_by(change: FileChange) -> str:
    """Return the text that a change brings, as it is in the change."""
    match change:
        case WriteFile(content=text) | ReplaceText(new=text) | EditCell(source=text):
            return text
        case DeleteFile():
            return ""
        case PatchFile(hunks=hunks):
            return "".join(line for hunk in hunks for line in hunk.lines if line[:1] == "+")


def other_results(changes: Sequence[FileChange], paths: EditedPaths) -> dict[str, list[str]]:
    """Return, for files that are not in UTF-8, the digests of all contents that programs may have made of them."""
    foreign = {
        real
        for real, facts in paths.before.items()
        if facts.content.data is not None and coding_of(facts.content.data) != UTF_8
    }
    foreign |= {target for target, source in paths.moved_from.items() if source in foreign}
    found: dict[str, list[str]] = {real: [] for real in foreign}
    for writing in _OTHER_WAYS if foreign else ():
        now = edited_paths(changes, writing).now
        for real in foreign & now.keys():
            found[real] += filter(None, (_digest(now[real].data),))
    return found


def _coding_of_whole(before: Content, writing: Writing) -> Coding:
    """Return the encoding of a whole new content."""
    own = coding_of(before.data or b"")
    if not writing.keeps_whole or own is None:
        return UTF_8
    return own if writing.marks else own._replace(mark=b"")


def _encoded(text: str, coding: Coding = UTF_8) -> Content:
    try:
        data = coding.encode(text)
    except UnicodeEncodeError as error:
        lacks = f"the encoding of the file has no {text[error.start]!r}" if coding == _LATIN_1 else NOT_TEXT
        return Content(None, lacks)
    return Content(data) if len(data) <= LARGEST_EDITED else Content(None, f"it is larger than {_limit()}")


def _limit() -> str:
    return f"{LARGEST_EDITED >> 20} MiB"


def _text(content: Content) -> tuple[str, str]:
    """Return a content as text, also in another encoding than UTF-8, or why that is not possible."""
    if content.unknown:
        return "", content.unknown
    coding = coding_of(content.data or b"")
    return ("", NOT_TEXT) if coding is None else (coding.decode(content.data or b""), "")


def _read(content: Content, writing: Writing) -> tuple[str, Coding, str]:
    """Return a content as a program reads it, the encoding in which it writes it, or why it cannot be read."""
    if not writing.reads_own and not content.unknown:
        return (content.data or b"").decode(errors="replace"), UTF_8, ""
    text, why = _text(content)
    own = coding_of(content.data or b"")
    return text, own if own is not None and writing.keeps else UTF_8, why


def _replaced(change: ReplaceText, before: Content, writing: Writing) -> Content:
    text, coding, why = _read(before, writing)
    if why:
        return Content(None, why)
    if not change.old:
        # Programs create a file in this way, and refuse to do it with one that has content.
        return _encoded(change.new, coding) if not text else Content(None, "the text to be replaced is empty")
    if before.data is None:
        return Content(None, NO_FILE)
    old, new = change.old, change.new
    if old not in text and "\r\n" in text and "\r" not in old:
        # Programs show files with the line ends of Windows without them, and put them back.
        old, new = old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
    found = text.count(old)
    if not found:
        return Content(None, "the text to be replaced is not in the file")
    if found > 1 and not change.every:
        return Content(None, f"the text to be replaced occurs {found:,} times")
    return _encoded(text.replace(old, new) if change.every else text.replace(old, new, 1), coding)


def _patched(change: PatchFile, before: Content, writing: Writing) -> Content:
    text, coding, why = _read(before, writing)
    if why:
        return Content(None, why)
    if before.data is None:
        return Content(None, NO_FILE)
    if not change.hunks:
        return before
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    made: list[str] = []
    at = 0
    for number, hunk in enumerate(change.hunks, start=1):
        place = _place(lines, hunk, at)
        if place is None:
            return Content(None, f"part {number} of the patch does not fit the file")
        start, end = place
        made += [*lines[at:start], *(line[1:] for line in hunk.lines if line[:1] in {" ", "+"})]
        at = end
    return _encoded("".join(line + "\n" for line in (*made, *lines[at:])), coding)


def _place(lines: Sequence[str], hunk: Hunk, at: int) -> tuple[int, int] | None:
    """Return the lines that a hunk is about, from `at` on. None: they are not there."""
    if hunk.heading:
        headed = next((line for line in range(at, len(lines)) if lines[line].strip() == hunk.heading.strip()), None)
        if headed is None:
            return None
        at = headed + 1
    old = [line[1:] for line in hunk.lines if line[:1] in {" ", "-"}]
    if not old:
        # Only added lines: below the heading, or at the end of the file.
        return (at, at) if hunk.heading and not hunk.at_end else (len(lines), len(lines))
    starts = range(at, len(lines) - len(old) + 1)
    if hunk.at_end:
        starts = range(max(at, len(lines) - len(old)), len(lines) - len(old) + 1)
    found = next((start for start in starts if list(lines[start : start + len(old)]) == old), None)
    return None if found is None else (found, found + len(old))


def examine(
    changes: Sequence[FileChange],
    roots: Sequence[str],
    home: str,
    own: Sequence[str] = (),
    *,
    now: Callable[[], float] = time.monotonic,
) -> tuple[EditedFile, ...]:
    """Return each file of an edit as it is now, with digests of its content before and after.

    `roots`: the directories of the workspace; `own`: those of whisper_tui.
    """
    paths = edited_paths(changes)
    late_at = now() + DIFF_S
    inside = tuple(resolved_path(root).rstrip("/") + "/" for root in roots if root)
    facts = _FileFacts(paths, inside, home, own, lambda: now() > late_at)
    return tuple(map(facts.of, paths.before))


@dataclass
class _FileFacts:
    """Puts together the facts about each file of an edit."""

    paths: EditedPaths
    roots: tuple[str, ...]
    home: str
    own: Sequence[str]
    is_late: Callable[[], bool]

    def of(self, real: str) -> EditedFile:
        """Return the facts about one file. A file that is moved away counts as deleted, with its old content."""
        named, before, after = self.paths.named[real], self.paths.before[real], self.paths.now[real]
        source = self.paths.moved_from.get(real, "")
        old = self.paths.before[source].content if source else before.content
        is_left = real in self.paths.moved_from.values() and after == ABSENT
        added, removed, binary = (0, 0, False) if is_left else _counts(old, after, self.is_late)
        return EditedFile(
            action=_action(before, after, moved=bool(source)),
            path=printable(named),
            real=printable(real),
            before=_digest(before.content.data),
            after=_digest(after.data),
            size=before.size,
            mode=before.mode,
            links=before.links,
            added=added,
            removed=removed,
            moved_from=printable(source),
            inside=self._inside(named, real),
            through_link=real != os.path.normpath(named),
            sensitive=next((kind for path in (named, real) if (kind := self._kind(path))), ""),
            secret=names_secret(named) or names_secret(real),
            binary=binary,
            runs_later=next((kind for path in (real, named) if (kind := self._runs_later(path, old, after))), ""),
            hidden=_deceptive(before.content, after, self.paths.brought.get(real, "")),
            unread=before.content.unknown,
            problem=self.paths.problems.get(real, ""),
        )

    def _inside(self, named: str, real: str) -> str:
        if _has_two_meanings(named) or "\0" in real:
            return ""
        return next((printable(real[len(root) :]) for root in self.roots if real.startswith(root)), "")

    def _runs_later(self, path: str, old: Content, new: Content) -> str:
        """Return the kind of a file that acts later, where the edit changes that part of it."""
        kind = later_kind(path)
        acting = _ACTING_PARTS.get(kind)
        if acting is None or old.unknown or new.unknown:
            return kind
        return kind if acting(old.data) != acting(new.data) else ""

    def _kind(self, path: str) -> str | None:
        return sensitive_kind(path, self.home, self.own) or kind_for_git(path, directories_of_hooks(self.roots))


def _scripts_of(package: bytes | None) -> object:
    """Return the part of a package.json that npm runs. A file that cannot be read differs from every other."""
    try:
        content = json.loads(package or b"{}")
        return {key: content.get(key) for key in ("scripts", "bin", "husky", "lint-staged", "workspaces")}
    except (ValueError, AttributeError):
        return object()


_ONLY_DESCRIBES = frozenset(
    "name version description readme requires-python license license-files authors maintainers keywords classifiers "
    "urls dependencies optional-dependencies".split()
)
"""Keys of the project in a pyproject.toml that run nothing. An installation of dependencies is a command of its own."""


def _settings_of(pyproject: bytes | None) -> object:
    """Return what tools run or load in a pyproject.toml. A file that cannot be read differs from every other."""
    try:
        content = tomllib.loads((pyproject or b"").decode())
        project = {key: value for key, value in content.pop("project", {}).items() if key not in _ONLY_DESCRIBES}
    except (ValueError, AttributeError):
        return object()
    content.pop("dependency-groups", None)
    return content, project


_ACTING_PARTS: dict[str, Callable[[bytes | None], object]] = {
    PACKAGE_SCRIPTS: _scripts_of,
    PYTHON_PROJECT: _settings_of,
}
"""Kinds of files of which only a part is run, with that part."""

_DECEPTIVE = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]")
"""Characters that change the order in which a text is shown, so that it looks like another one."""


def _deceptive(old: Content, new: Content, brought: str) -> str:
    """Return the first of these characters that an edit brings into a file. Empty: it brings none.

    Where the new content is not known, because programs find the place by rules of their own, the change itself counts.
    """
    if new.unknown:
        found = Counter(_DECEPTIVE.findall(brought))
    else:
        try:
            before, after = (old.data or b"").decode(), (new.data or b"").decode()
        except UnicodeDecodeError:
            before, after = "", brought
        found = Counter(_DECEPTIVE.findall(after)) - Counter(_DECEPTIVE.findall(before))
    return f"U+{ord(next(iter(found))):04X}" if found else ""


def _action(before: Facts, after: Content, *, moved: bool) -> EditAction:
    if moved:
        return "moves"
    if after.data is None and not after.unknown:
        return "deletes"
    return "creates" if before.content == ABSENT else "changes"


def _digest(data: bytes | None) -> str | None:
    return None if data is None else hashlib.sha256(data).hexdigest()


def _counts(old: Content, new: Content, is_late: Callable[[], bool]) -> tuple[int, int, bool]:
    """Return how many lines are added and removed, and True if one of the contents is no text."""
    if old.unknown or new.unknown:
        return 0, 0, False
    (before, unreadable), (after, illegible) = _text(old), _text(new)
    if unreadable or illegible or "\0" in before or "\0" in after:
        return 0, 0, True
    diff, _ = diff_of(before.encode(), after.encode(), is_late)
    if diff is not None:
        return diff.added, diff.removed, False
    return len(lines_of(after)), len(lines_of(before)), False


def versions(changes: Sequence[FileChange], files: Sequence[EditedFile]) -> tuple[FileVersions, ...]:
    """Return the contents of the files of an edit that was not made yet, for people."""
    paths = edited_paths(changes)
    cells = {resolved_path(change.path): change for change in changes if isinstance(change, EditCell)}
    return tuple(_versions_of(paths, file, cells.get(file.real)) for file in files)


def _versions_of(paths: EditedPaths, file: EditedFile, cell: EditCell | None) -> FileVersions:
    source = file.moved_from or file.real
    if file.real not in paths.now or source not in paths.before:
        # Names that cannot be sent are shown with escapes, and are not found under these.
        return FileVersions(file=file, not_shown="its name is not valid text")
    old, new = paths.before[source].content, paths.now[file.real]
    if cell is not None:
        return _cell_versions(file, old, cell)
    return shown_versions(file, old, new)


def shown_versions(file: EditedFile, old: Content, new: Content) -> FileVersions:
    """Return two contents as texts, or why they cannot be shown."""
    texts: list[str | None] = []
    for content in (old, new):
        text, why = _text(content)
        if why or "\0" in text:
            return FileVersions(file=file, not_shown=why or "the content is binary")
        texts.append(None if content.data is None else text)
    return FileVersions(file=file, old=texts[0], new=texts[1])


def _cell_versions(file: EditedFile, notebook: Content, change: EditCell) -> FileVersions:
    """Return the source of a notebook's cell before and after."""
    text, why = _text(notebook)
    if why:
        return FileVersions(file=file, not_shown=why)
    old = "" if change.mode == "insert" else _source(text, change.cell)
    if old is None:
        return FileVersions(file=file, not_shown=f"the notebook has no cell {printable(change.cell)!r}")
    return FileVersions(file=file, old=old, new=None if change.mode == "delete" else change.source)


def _source(notebook: str, cell: str) -> str | None:
    """Return the source of a cell by its id, or by its number as some programs name it. None: there is no such cell."""
    try:
        cells = json.loads(notebook)["cells"]
        numbered = {f"cell-{number}": each for number, each in enumerate(cells)}
        named = {str(each["id"]): each for each in cells if "id" in each}
        found = {**numbered, **named}.get(cell) if cell else cells[0]
        source = None if found is None else found["source"]
        return "".join(source) if isinstance(source, list) else source if isinstance(source, str) else None
    except (ValueError, TypeError, LookupError):
        return None
